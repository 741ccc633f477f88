"""What the chapter on other people's truths says is so, with other values than its own."""

import ast
import itertools
import re

import numpy as np
import pytest

from lib.book.editions import BOOK
from lib.ccr.cladder import audit, contracted, published_models

NOTEBOOK = BOOK.notebook("published_truths")
#: The first model's chances may all be true, and the one done by hand is another one.
VALUES = {"first": 298, "shown": 342, "visible": 0.02, "n_people": 20_000, "n_samples": 15}
LOOPS = {"mediation", "confounding", "IV", "diamond", "diamondcut", "frontdoor", "arrowhead"}


@pytest.fixture(scope="module")
def page(executed):
    return executed(NOTEBOOK, VALUES)


@pytest.fixture
def says(page):
    """Return the text that a cell shows."""

    def read(cell):
        (outputs,) = (one.outputs for one in page[1].cells if one.id == cell)
        return " ".join(o.data.get("text/markdown", "") for o in outputs if "data" in o) or "".join(
            o.text for o in outputs if "text" in o
        )

    return read


@pytest.fixture(scope="module")
def models():
    return {model.about["model_id"]: model for model in published_models()}


def test_three_numbers_that_may_be_true_are_not_said_to_be_wrong(says):
    text = says("question-answer")
    assert text.strip() == "the third lies between the first two: yes"
    assert "wrong" not in text


def test_numbers_that_count_are_those_of_the_audit(page, models):
    numbers = {name: one["value"] for name, one in page[0]["numbers"].items()}
    table = audit(list(models.values()))
    assert numbers["numbers_checked"] == len(table)
    assert numbers["numbers_wrong"] == table["wrong"].sum()
    counts = table[table["wrong"]].groupby("quantity").size()
    assert numbers["wrong_chance_of_y"] == counts["P(Y=1)"] == 278
    for effect in ("ATE", "ETT", "NDE", "NIE"):
        assert numbers[f"wrong_{effect.lower()}"] == counts[effect]
    assert numbers["unexplained"] < 1e-12
    assert numbers["prompts_that_differ"] == 0
    assert numbers["other_answer_with_chance"] == 8


def test_families_are_wrong_as_the_text_says(models):
    table = audit(list(models.values()))
    wrong = table[table["wrong"]]
    assert set(wrong.loc[wrong["quantity"] == "P(Y=1)", "graph_id"]) == LOOPS
    assert set(wrong.loc[wrong["quantity"] != "P(Y=1)", "graph_id"]) == {"arrowhead"}
    assert table["graph_id"].nunique() - len(LOOPS) == 3


def answer(quantity, value):
    """Return what the rule of CLadder makes of a number: its side, or 0 for *no* near zero.

    Of an ATE or ETT of exactly zero it makes *unknown*, and none that is wrong here is zero.
    """
    return np.sign(value - 0.5 * (quantity == "P(Y=1)")) if abs(value) >= 0.005 else 0


def test_errors_and_answers_are_as_the_text_says(models):
    table = audit(list(models.values()))
    wrong = table[table["wrong"]]
    size = (wrong["published"] - wrong["enumerated"]).abs()
    assert ((wrong["quantity"] == "P(Y=1)") & (size < 1e-6)).sum() == 2
    assert round(size.median(), 4) == 0.0024
    changed = [
        one
        for one in wrong[wrong["equation_type"] == "bernoulli"].itertuples()
        if "|" not in one.quantity
        and answer(one.quantity, one.published) != answer(one.quantity, one.enumerated)
    ]
    assert sorted(one.quantity for one in changed) == ["NIE"] * 4 + ["P(Y=1)"] * 4
    of_rule = wrong[wrong["quantity"].isin(["ATE", "ETT"])]
    assert of_rule[["published", "enumerated"]].abs().min(axis=None) > 1e-9, "else: unknown"
    for one in changed:
        if one.quantity == "P(Y=1)":
            known = models[one.model_id].published
            x, given = known["P(X=1)"], [known[f"P(Y=1 | X={k})"] for k in (0, 1)]
            assert one.published > 0.5 > (1 - x) * given[0] + x * given[1]


@pytest.mark.parametrize(
    ("family", "same", "nothing"),
    [
        ("chain", ["ATE", "ETT", "NIE"], ["NDE"]),
        ("diamond", ["ATE", "ETT", "NIE"], ["NDE"]),
        ("fork", ["ATE", "ETT", "NDE"], ["NIE"]),
        ("collision", [], ["ATE", "ETT", "NDE", "NIE"]),
        ("confounding", ["ATE", "NDE"], ["NIE"]),
        ("diamondcut", ["ATE", "NDE"], ["NIE"]),
        ("IV", ["ATE", "NDE"], ["NIE"]),
        ("frontdoor", ["ATE", "NIE"], ["NDE"]),
        ("mediation", ["ATE", "ETT"], []),
        ("arrowhead", ["ATE", "ETT"], []),
    ],
)
def test_effects_of_a_family_are_what_its_line_says(models, family, same, nothing):
    for model in models.values():
        if model.about["graph_id"] == family:
            found = contracted(model)
            assert [found[name] for name in nothing] == pytest.approx([0] * len(nothing), abs=1e-12)
            if same:
                assert np.ptp([found[name] for name in same]) < 1e-12


def by_hand():
    """Return the models done by hand, with what the chapter says that their tables say."""
    found = []
    for cell in ("by-hand", "effects-by-hand"):
        (source,) = (one for one in sources() if f"# {cell}" in one)
        tree = ast.parse(source)
        names = {
            node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)
        }
        texts = {name: node.value for name, node in names.items() if isinstance(node, ast.Constant)}
        table = names["BY_HAND" if cell == "by-hand" else "EFFECTS_BY_HAND"]
        for key, entry in zip(table.keys, table.values, strict=True):
            parts = [texts[e.id] if isinstance(e, ast.Name) else e for e in entry.elts[:2]]
            parts = [part.value if isinstance(part, ast.Constant) else part for part in parts]
            found.append((key.value, parts[0]) if cell == "by-hand" else tuple(parts))
    return found


def sources():
    import nbformat

    cells = nbformat.read(NOTEBOOK, 4).cells
    return [f"{cell.source}\n# {cell.id}" for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize(("number", "says"), by_hand())
def test_tables_say_what_the_chapter_says_that_they_say(models, number, says):
    tables, told = models[number].tables, dict(re.split(r" = ", one) for one in says.split(", "))
    assert set(told) == {variable for variable, (parents, _) in tables.items() if parents}
    for variable, rule in told.items():
        parents, entries = tables[variable]
        for values in itertools.product((0, 1), repeat=len(parents)):
            found = eval(rule, {}, dict(zip(parents, map(bool, values), strict=True)))
            assert entries[values] == found, f"{variable} = {rule}"


def test_a_model_of_each_family_is_done_by_hand_and_right(page, shown, models):
    table = shown(page[1], "by-hand")
    assert {row.split(",")[0] for row in table} == {m.about["graph_id"] for m in models.values()}
    for family, row in table.items():
        truth = contracted(models[row["model"]])["P(Y=1)"]
        assert row["P(Y=1)"] == pytest.approx(truth, abs=6e-5)
        assert row["published"] == row["with coins"]
        assert (abs(row["P(Y=1)"] - row["published"]) > 1e-3) == (family in LOOPS)
    for effect, row in shown(page[1], "effects-by-hand").items():
        truth = contracted(models[row["model"]])[effect]
        assert row["effect"] == pytest.approx(truth, abs=6e-5)
        assert abs(row["effect"] - row["published"]) > 0.2


def test_four_rows_give_the_effects_and_coins_the_published_ones(page, shown, models):
    table = shown(page[1], "four-effects")
    truth, published = contracted(models[VALUES["shown"]]), models[VALUES["shown"]].published
    for effect, row in table.items():
        assert row["by the tables"] == pytest.approx(truth[effect], abs=6e-5)
        assert row["by the coins"] == pytest.approx(published[effect], abs=6e-5)


def test_total_probability_finds_the_truth_in_all_families_but_one(page, shown):
    lines = shown(page[1], "total")
    assert len(lines) == 10
    for name, row in lines.items():
        mends = row["by total probability"] == row["computed"]
        assert mends == ("arrowhead" not in name)
        fits = row["by total probability"] == row["published P(Y=1)"]
        assert fits == (not any(family in name.split(", ") for family in LOOPS))


def test_a_lottery_has_power_and_rare_choices_have_not(page, shown):
    table = shown(page[1], "power-of-weights")
    names = [name for name in table["a lottery"] if "in standard errors" in name]
    assert table["a lottery"][names[0]] > 5
    assert table["a few choose it"][names[0]] < 2


def test_incidents_are_as_the_text_tells_them(page, says, shown):
    answers = [row["the reader says"] for row in shown(page[1], "reader").values()]
    assert answers == ["no", "yes", "refused"]
    assert says("underflow").strip() == "PNS 0.0, PN as a quotient nan, PN 0.800"
