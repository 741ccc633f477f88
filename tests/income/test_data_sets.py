"""A data set is written with its truth, and one line reads what belongs together."""

import shutil

import numpy as np
import pandas as pd
import pytest

from lib.adult import load_adult
from lib.effects.study import FULL_ADJUSTMENT, read_study
from lib.errors import InputError
from lib.income import draw_study, fitted_simulator, load_cate
from lib.income.data_sets import DATA_SETS, write_cate

SHORT = "IncomeSCM-1.0.CATE-short"


@pytest.fixture(scope="module")
def simulator():
    return fitted_simulator()


@pytest.fixture(scope="module")
def folder(simulator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    write_cate(folder, SHORT, simulator, n=400, repeats=3)
    return folder


def test_it_is_the_study_of_its_seeds(folder, simulator):
    expected = draw_study(simulator, 400, horizon=4, repeats=3)
    found = read_study(folder)
    pd.testing.assert_frame_equal(found.covariates, expected.covariates, check_exact=True)
    pd.testing.assert_frame_equal(found.test_covariates, expected.test_covariates, check_exact=True)
    for name in ("arm", "outcomes", "difference", "effects", "groups", "arm_probability"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.truth.repeats == 3
    assert found.truth.ceiling == expected.truth.ceiling


def test_one_line_reads_rows_that_belong_together(folder, simulator):
    X, t, y, tau, e = load_cate(folder)
    study = draw_study(simulator, 400, horizon=4)
    pd.testing.assert_frame_equal(X, study.covariates, check_exact=True)
    assert t.tolist() == study.arm.tolist() and y.tolist() == study.outcomes.tolist()
    assert {len(one) for one in (X, t, y, tau, e)} == {len(study.arm)} and len(t) < 400
    # The propensity is that of the arm that was taken, divided by that of either.
    chances = study.probabilities[list(study.arms)][study.observational["studies"].isin(study.arms)]
    both = chances.sum(axis=1).to_numpy()
    np.testing.assert_allclose(np.where(t == 1, e, 1 - e) * both, study.arm_probability)


def test_true_effects_of_the_seen_are_theirs(folder, simulator):
    effects = pd.read_parquet(folder / "effects.parquet")["mean"]
    seen = pd.read_parquet(folder / "observational.parquet")
    same = draw_study(simulator, 400, horizon=4, test_seed=0, repeats=3, truth_seed=3)
    assert effects.tolist() == same.effects.tolist()
    assert (
        same.control[list(FULL_ADJUSTMENT)]
        .astype(str)
        .equals(seen[list(FULL_ADJUSTMENT)].astype(str))
    )
    # Three futures explain some of another one's differences; those of other people, nothing.
    assert np.corrcoef(effects, same.difference)[0, 1] > 0.3
    others = pd.read_parquet(folder / "test_effects.parquet")["mean"]
    assert abs(np.corrcoef(others, same.difference)[0, 1]) < 0.2
    used = seen["studies"].isin(["No studies", "Full-time studies"])
    assert load_cate(folder)[3].tolist() == effects[used].tolist()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("effects", lambda table: table[::-1], "effects must have a row for every subject, in"),
        ("effects", lambda table: table[:-5], "effects must have a row for every subject, in"),
        (
            "effects",
            lambda table: table.assign(mean=np.nan),
            r"must be finite numbers below 1e\+150: found",
        ),
        ("effects", lambda table: table.drop(columns="mean"), "column of the effects 'mean' is"),
        ("propensities", lambda table: table[::-1], "probabilities must have a row for every"),
        ("treated", lambda table: table[::-1], "treated must have a row for every subject, in"),
        ("test_effects", lambda table: table[::-1], "truth must have a row for every subject"),
        ("test_effects", lambda table: table.assign(mean=np.inf), "effects must be finite numbers"),
    ],
)
def test_what_is_true_of_other_subjects_is_refused(folder, tmp_path, name, change, message):
    shutil.copytree(folder, tmp_path / "set")
    path = tmp_path / "set" / f"{name}.parquet"
    change(pd.read_parquet(path)).to_parquet(path)
    with pytest.raises(InputError, match=message):
        load_cate(tmp_path / "set")


def test_another_question_is_asked_by_a_field(folder):
    few, many = load_cate(folder, adjustment="minimal")[0], load_cate(folder)[0]
    assert set(few) < set(many)


def test_every_set_is_described_with_what_tells_it_from_the_others(simulator, tmp_path):
    told = {name: write_cate(tmp_path, name, simulator, n=50, repeats=2) for name in DATA_SETS}
    assert len({one["about"] for one in told.values()}) == len(DATA_SETS)
    assert all(one["name"] == name and "{" not in one["about"] for name, one in told.items())


def test_a_card_says_of_how_many_futures_true_effects_are_means(simulator, tmp_path):
    told = write_cate(tmp_path, SHORT, simulator, n=50, repeats=2)
    assert "over 2 futures" in told["about"]


def test_what_cards_say_of_groups_and_of_doctorates_is_so(simulator):
    study, adult = draw_study(simulator, 20_000, horizon=2), load_adult()
    seen = study.observational
    for name in ("sex", "race", "native-country"):
        shares = [table[name].astype(str).value_counts(normalize=True) for table in (seen, adult)]
        assert shares[0].sub(shares[1], fill_value=0).abs().max() < 0.02
    assert seen["age"].min() >= 19 and seen["age"].mean() > adult["age"].mean() + 2
    full_time = study.probabilities["Full-time studies"]
    assert ((full_time == 0) == (seen["education"] == "Doctorate")).all()


def test_an_unknown_set_is_an_error(simulator, tmp_path):
    with pytest.raises(InputError, match="data set 'IncomeSCM-2' is unknown: expected one of"):
        write_cate(tmp_path, "IncomeSCM-2", simulator)
    with pytest.raises(InputError, match=r"nowhere/observational.parquet does not exist"):
        load_cate(tmp_path / "nowhere")
