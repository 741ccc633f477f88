"""What the chapter on a family of worlds says is so, with other values than its own."""

import pytest

from lib.book.editions import BOOK

VALUES = {
    "n_samples": 700,
    "n_studies": 6,
    "estimators": ["ipw-lr", "ipww-lr", "s-ridge", "t-ridge"],
    "overlaps": [0.0, 2.0],
    "bends": [20_000.0],
    "unevens": [15_000.0, 60_000.0],
    "noises": [30_000.0],
    "strengths": [0.5, 2.0],
    "n_test": 300,
    "repeats": 3,
    "resamples": 200,
    "seed": 3,
}


@pytest.fixture(scope="module")
def page(executed):
    record, notebook = executed(BOOK.notebook("family_of_worlds"), VALUES)
    assert record["stderr"] == []
    return record["numbers"], notebook


def test_every_level_is_a_world_and_claims_are_counted(page, shown):
    numbers, notebook = page
    assert numbers["worlds"]["value"] == 8
    verdicts = shown(notebook, "findings")
    assert all(
        row["holds"] + row["undecided"] + row["contradicted"] == 8 for row in verdicts.values()
    )
    assert len(verdicts) == 3, "claims about estimators that do not run are not made"
    mixed = [row for row in verdicts.values() if row["holds"] > 0 and row["contradicted"] > 0]
    assert numbers["claims_that_depend_on_the_world"]["value"] == len(mixed)


def test_the_truths_are_found_again_by_a_lottery(page):
    apart = [one["value"] for name, one in page[0].items() if name.startswith("apart_")]
    assert len(apart) == 3
    assert all(abs(one) < 4 for one in apart)


def test_a_line_has_the_same_effect_for_everybody(page, shown):
    best = shown(page[1], "cate")
    assert {row["of conditional effects"] for row in best.values()} <= {
        "S-learner (Ridge)",
        "T-learner (Ridge)",
    }


def test_solutions(page, shown):
    notebook = page[1]
    assert [row["Spearman's ρ"] for row in shown(notebook, "solution-2").values()] == [-1, 0.6]
    first = [next(iter(row.values())) for row in shown(notebook, "solution-3").values()]
    assert first == [1.0] * 4
    effects = [*shown(notebook, "solution-5").values()]
    assert len(effects) == 3
    assert effects[0] != effects[-1], "a floor changes the effect"


def test_where_the_world_as_it_is_is_missing_the_first_one_is_home(page, shown):
    numbers, notebook = page
    home = shown(notebook, "agreement-kept")["overlap 0"]
    assert numbers["repeats_itself"]["value"] == pytest.approx(100 * home["with itself"], abs=1)
    claims = {cell.id: cell.source for cell in notebook.cells}
    for name in ("agreement-words", "verdicts-words"):
        assert "world as it is" not in claims[name], "of which these tables have nothing"
