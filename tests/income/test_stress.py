"""Stress tests: every stress does what it says, and nothing else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.effects.estimates import Estimate
from lib.effects.estimators import TLearner
from lib.errors import InputError
from lib.income import fitted_simulator, stress
from lib.income.stress import Design, beyond_chance, curve, rising, stress_test
from lib.income.study import MINIMAL_ADJUSTMENT, TrueEffects

SEED = 11
HIDDEN = [name for name in MINIMAL_ADJUSTMENT if name != "age"]


@pytest.fixture(scope="module")
def design():
    return Design(fitted_simulator(), n=4_000, horizon=3, n_test=500, repeats=3)


@pytest.fixture
def tables(monkeypatch):
    """Let stresses return the tables of a study, as they are before they are encoded."""

    def study(self, seen, probabilities, adjustment=MINIMAL_ADJUSTMENT, tests=None):
        return seen, probabilities, adjustment, tests

    monkeypatch.setattr(Design, "study", study)


def test_chances_average_to_the_share_and_rise():
    values = np.random.default_rng(0).lognormal(size=500)
    for share in (0, 0.01, 0.3, 0.9):
        chances = rising(values, share)
        assert chances.mean() == pytest.approx(share)
        assert (np.diff(chances[np.argsort(values)]) >= 0).all()


def test_the_difference_that_is_marked_is_the_true_one(design):
    study = stress.unchanged(design, 0, SEED)
    tests, effects = design.tests()
    np.testing.assert_allclose(study.difference, effects.mean)
    assert len(tests) == 500
    assert not tests.reset_index(drop=True).equals(design.seen(SEED)[0].head(500))


def test_in_a_lottery_simple_and_weighted_differences_hit_the_truth(design):
    study = stress.overlap(replace(design, n=12_000, n_test=2_000), 0.0, SEED)
    np.testing.assert_allclose(study.probabilities, 0.25)
    assert len(study.treatment) == pytest.approx(6_000, abs=4 * 3_000**0.5)
    for name in ("age", "education-num", "income_prev"):  # standardised
        z = study.covariates[name]
        gap = z[study.treatment == 1].mean() - z[study.treatment == 0].mean()
        assert abs(gap) < 4 * 2 / len(z) ** 0.5
    control, treated = (study.outcome[study.treatment == arm] for arm in (0, 1))
    error = treated.var() / len(treated) + control.var() / len(control)
    error += study.difference.var() / len(study.difference)
    found = treated.mean() - control.mean()
    assert abs(found - study.difference.mean()) < 4 * error**0.5


def test_power_one_leaves_the_distribution_and_a_higher_one_sharpens_it(design, tables):
    true = design.seen(SEED)[1]
    drawn, probabilities, *_ = stress.overlap(design, 1.0, SEED)
    np.testing.assert_allclose(probabilities, true)
    for level in true:
        spread = (true[level] * (1 - true[level])).sum() ** 0.5
        assert abs((drawn["studies"] == level).sum() - true[level].sum()) < 4 * spread + 1
    squared = stress.overlap(design, 2.0, SEED)[1]
    expected = true.to_numpy() ** 2
    np.testing.assert_allclose(squared, expected / expected.sum(axis=1, keepdims=True))


def test_only_what_follows_the_treatment_differs(design, tables):
    world, lottery = design.seen(SEED)[0], stress.overlap(design, 0.0, SEED)[0]
    before = world.columns.drop(["studies", "income"])
    pd.testing.assert_frame_equal(world[before], lottery[before])
    same = (world["studies"] == lottery["studies"]).to_numpy()
    assert 0.1 < same.mean() < 0.6
    pd.testing.assert_series_equal(world.loc[same, "income"], lottery.loc[same, "income"])
    assert (world["income"] != lottery["income"])[~same].mean() > 0.5


@pytest.mark.parametrize("hidden", MINIMAL_ADJUSTMENT)
def test_a_hidden_confounder_takes_its_columns_and_no_others(design, hidden):
    full = stress.hidden_confounder(design, "none", SEED).covariates
    left = stress.hidden_confounder(design, hidden, SEED).covariates
    gone = [name for name in full if name == hidden or name.startswith(f"{hidden} = ")]
    assert gone
    pd.testing.assert_frame_equal(left, full.drop(columns=gone))


@pytest.mark.parametrize("kind", ["missing (MCAR)", "missing (MAR)"])
def test_the_share_is_hidden_of_all_but_age(design, tables, kind):
    seen, _, _, tests = stress.STRESSES[kind][0](design, 0.3, SEED)
    for table, whole in ((seen, design.seen(SEED)[0]), (tests, design.tests()[0])):
        shown = table[HIDDEN].notna()
        spread = (0.3 * 0.7 / len(table)) ** 0.5
        assert (abs(1 - shown.mean() - 0.3) < 4 * spread).all()
        for name in HIDDEN:  # what is shown is what was there
            assert (table.loc[shown[name], name] == whole.loc[shown[name], name]).all()
        assert table.drop(columns=HIDDEN).equals(whole.drop(columns=HIDDEN))
    young, old = (
        seen.loc[where, HIDDEN].isna().to_numpy().mean()
        for where in (seen["age"] < 30, seen["age"] > 50)
    )
    assert abs(old - young) < 0.05 if kind == "missing (MCAR)" else old - young > 0.4


def test_hidden_values_are_filled_in_alike_in_both_arms(design, monkeypatch):
    given = {}

    def read(seen, control, treated, *arguments, **options):
        given.update(control=control, treated=treated)
        return read_study(seen, control, treated, *arguments, **options)

    read_study = stress.read_study
    monkeypatch.setattr(stress, "read_study", read)
    study = stress.missing(design, 0.3, SEED, by="age")
    assert given["control"][HIDDEN].isna().equals(given["treated"][HIDDEN].isna())
    assert given["control"][HIDDEN].isna().any().all()
    assert study.missing == {}
    assert not study.covariates.isna().any().any()
    assert {f"{name} missing" for name in HIDDEN} <= set(study.covariates)


@pytest.mark.parametrize("kind", ["censored at random", "censored by income"])
def test_the_share_is_lost_of_the_seen_alone(design, tables, kind):
    stayed, probabilities, _, tests = stress.STRESSES[kind][0](design, 0.4, SEED)
    whole, true = design.seen(SEED)
    assert tests is None
    assert len(stayed) == pytest.approx(0.6 * 4_000, abs=4 * (0.24 * 4_000) ** 0.5)
    pd.testing.assert_frame_equal(stayed, whole.loc[stayed.index])
    pd.testing.assert_frame_equal(probabilities, true.loc[stayed.index])
    ratio = stayed["income"].mean() / whole["income"].mean()
    assert ratio > 0.95 if kind == "censored at random" else ratio < 0.75


@pytest.mark.parametrize(
    ("name", "levels", "options", "message"),
    [
        ("weather", [1], {}, "stress 'weather' is unknown: expected one of sample size"),
        ("sample size", [0.5], {}, "must be a whole number, at least 1: found 0.5"),
        ("sample size", [], {}, "at least 1: found None"),
        ("horizon", [7, 2], {}, "'horizon' must be a whole number, at least 3: found 2"),
        ("hidden confounder", ["race"], {}, "must be one of none, age, .*: found 'race'"),
        ("overlap", [-1.0], {}, "'overlap' must be 0 or more: found -1.0"),
        ("missing (MAR)", ["few"], {}, "must be a share, at least 0 and below 1: found 'few'"),
        ("censored at random", [1.0], {}, "at least 0 and below 1: found 1.0"),
        ("overlap", [1.0], {"n_studies": 1}, "n_studies must be a whole number of at least 2"),
        ("overlap", [1.0], {"estimators": ["mine"]}, "estimator 'mine' is unknown"),
    ],
)
def test_what_is_refused(design, name, levels, options, message):
    with pytest.raises(InputError, match=message):
        stress_test(design, name, levels, progress=False, **options)


def test_the_whole_way(design, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))
    estimators = ["ipw-true", "t-ridge"]
    table = stress_test(design, "sample size", [500, 1_000], estimators, n_studies=2)
    assert capsys.readouterr().err.startswith("sample size, 1 of 2: 500, ")
    assert len(table) == 2 * 2 * 2
    assert (table["absolute error"] == table["error"].abs()).all()
    assert table.loc[table["estimator"] == "ipw-true", "R²"].isna().all()
    # Resumed in another process, nothing is fitted again.
    monkeypatch.setattr(TLearner, "fit", None)
    again = stress_test(replace(design), "sample size", [500, 1_000], estimators, 2)
    pd.testing.assert_frame_equal(table, again)


def test_effects_without_error_have_an_r2_of_one_although_their_truth_is_noisy(design, monkeypatch):
    rng = np.random.default_rng(0)
    effects = rng.normal(5_000, 20_000, size=50_000)
    mean = effects + rng.normal(0, 40_000 / 4**0.5, size=50_000)
    truth = TrueEffects(mean, np.full(50_000, 40_000.0**2), 4)
    monkeypatch.setattr(Design, "tests", lambda self: (None, truth))
    found = {"t": Estimate(1_000.0, effects, "", 0.0, "", 0.0)}
    monkeypatch.setattr(stress, "estimate", lambda *arguments, **options: found)
    monkeypatch.setitem(stress.STRESSES, "overlap", (lambda *arguments: None, "", bool))
    table = stress._level(design, "overlap", 1.0, ["t"], 2, {})
    assert table["R²"].to_numpy() == pytest.approx(1, abs=0.05)  # 0.5 with the noise in it
    assert table["error"].to_numpy() == pytest.approx(1_000 - mean.mean())


def test_curve_and_change_are_those_of_students_t():
    table = pd.DataFrame(
        {
            "stress": "size",
            "level": np.repeat([1, 2], 3),
            "study": [0, 1, 2, 0, 1, 2],
            "estimator": "t",
            "error": [10.0, 20.0, 60.0, 111.0, 119.0, 160.0],
        }
    )
    found = curve(table, "error").loc[("size", 1, "t")]
    half = 4.30265273 * np.std([10, 20, 60], ddof=1) / 3**0.5
    np.testing.assert_allclose(found, [30, 30 - half, 30 + half])
    # Curves overlap widely; study by study, the second level is 100 higher for certain.
    assert curve(table, "error")["lower"].iloc[1] < found["upper"]
    assert beyond_chance(table, "error", "size", 2, {"t": "T"}) == "T by +100 dollars"
    assert beyond_chance(table, "error", "size", 1, {"t": "T"}) == "none"
    nobody = table.assign(error=np.nan)
    assert beyond_chance(nobody, "error", "size", 2, {"t": "T"}) == "none"
