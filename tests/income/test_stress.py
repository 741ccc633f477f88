"""Stress tests: every stress does what it says, and nothing else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from lib.effects import estimate
from lib.effects.estimator_files import STRESS_GRIDS, read_estimators
from lib.effects.estimators import TLearner
from lib.effects.study import FULL_ADJUSTMENT, MINIMAL_ADJUSTMENT, TrueEffects
from lib.errors import InputError
from lib.income import draw_studies, draw_study, fitted_simulator, stress
from lib.income.mechanisms import STUDIES
from lib.income.stress import changes, curve, in_words, rising, stress_test

#: They change the outcome, and one of them the effect.
KNOBS = ["bend", "uneven", "noise"]
HIDDEN = [name for name in FULL_ADJUSTMENT if name != "age"]


@pytest.fixture(scope="module")
def studies():
    options = {"horizon": 3, "n_test": 500, "repeats": 3, "adjustment": "minimal"}
    return list(draw_studies(fitted_simulator(), 4_000, [0, 1], **options))


@pytest.fixture(scope="module")
def study(studies):
    return studies[1]


def test_chances_average_to_the_share_and_rise():
    values = np.random.default_rng(0).lognormal(size=500)
    for share in (0, 0.01, 0.3, 0.9):
        chances = rising(values, share)
        assert chances.mean() == pytest.approx(share)
        order = np.argsort(values)
        assert (np.diff(chances[order]) >= 0).all()
        if share:  # a standard deviation more multiplies the odds by e²
            slopes = np.diff(logit(chances[order])) / np.diff(values[order]) * values.std()
            assert np.median(slopes) == pytest.approx(2)


@pytest.mark.parametrize("name", [name for name in stress.STRESSES if name not in KNOBS])
def test_a_stress_leaves_the_test_subjects_and_their_truth(study, name):
    levels = {"sample size": 700, "horizon": 3, "hidden confounder": "age", "overlap": 0.0}
    harder = stress.STRESSES[name][0](study, levels.get(name, 0.3))
    np.testing.assert_array_equal(harder.effects, study.effects)
    np.testing.assert_array_equal(harder.difference, study.difference)
    known = [name for name in study.control if name not in HIDDEN]
    pd.testing.assert_frame_equal(harder.control[known], study.control[known], check_exact=True)


def test_sample_size_and_horizon_change_nothing_else(study):
    fewer = stress.STRESSES["sample size"][0](study, 700)
    later = stress.STRESSES["horizon"][0](study, 4)
    pd.testing.assert_frame_equal(
        fewer.observational, study.observational.head(700), check_exact=True
    )
    before = study.observational.columns.drop("income")
    pd.testing.assert_frame_equal(
        later.observational[before], study.observational[before], check_exact=True
    )
    assert later.effects.mean() != study.effects.mean()


def test_in_a_lottery_simple_and_weighted_differences_hit_the_truth(study):
    study = stress.overlap(study.redrawn(n=12_000, n_test=2_000), 0.0)
    np.testing.assert_allclose(study.probabilities, 0.25)
    assert len(study.arm) == pytest.approx(6_000, abs=4 * 3_000**0.5)
    for name in ("age", "education-num", "income_prev"):  # standardised
        z = study.covariates[name]
        gap = z[study.arm == 1].mean() - z[study.arm == 0].mean()
        assert abs(gap) < 4 * 2 / len(z) ** 0.5
    control, treated = (study.outcomes[study.arm == arm] for arm in (0, 1))
    error = treated.var() / len(treated) + control.var() / len(control)
    error += study.effects.var() / len(study.effects)
    found = treated.mean() - control.mean()
    assert abs(found - study.effects.mean()) < 4 * error**0.5


def test_power_one_leaves_the_distribution_and_a_higher_one_sharpens_it(study):
    true, drawn = study.probabilities, stress.overlap(study, 1.0)
    np.testing.assert_allclose(drawn.probabilities, true)
    for level in true:
        spread = (true[level] * (1 - true[level])).sum() ** 0.5
        count = (drawn.observational["studies"] == level).sum()
        assert abs(count - true[level].sum()) < 4 * spread + 1
    squared = stress.overlap(study, 2.0)
    for table, of in (("probabilities", true), ("test_probabilities", study.test_probabilities)):
        expected = of.to_numpy() ** 2
        expected /= expected.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(getattr(squared, table), expected)


def test_only_what_follows_the_treatment_differs(study):
    world, lottery = study.observational, stress.overlap(study, 0.0).observational
    before = world.columns.drop(["studies", "income"])
    pd.testing.assert_frame_equal(world[before], lottery[before], check_exact=True)
    same = (world["studies"] == lottery["studies"]).to_numpy()
    assert 0.1 < same.mean() < 0.6
    pd.testing.assert_series_equal(
        world.loc[same, "income"], lottery.loc[same, "income"], check_exact=True
    )
    assert (world["income"] != lottery["income"])[~same].mean() > 0.5


@pytest.mark.parametrize("hidden", MINIMAL_ADJUSTMENT)
def test_a_hidden_confounder_takes_its_columns_and_no_others(study, hidden):
    full = stress.hidden_confounder(study, "none").covariates
    left = stress.hidden_confounder(study, hidden).covariates
    gone = [name for name in full if name == hidden or name.startswith(f"{hidden} = ")]
    assert gone
    pd.testing.assert_frame_equal(left, full.drop(columns=gone), check_exact=True)


@pytest.mark.parametrize("kind", ["missing (MCAR)", "missing (MAR)"])
def test_the_share_is_hidden_of_all_but_age(study, kind):
    holes = stress.STRESSES[kind][0](study, 0.3)
    for which in ("observational", "control", "treated"):
        table, whole = getattr(holes, which), getattr(study, which)
        shown = table[HIDDEN].notna()
        spread = (0.3 * 0.7 / len(table)) ** 0.5
        assert (abs(1 - shown.mean() - 0.3) < 4 * spread).all()
        for name in HIDDEN:  # what is shown is what was there
            assert (table.loc[shown[name], name] == whole.loc[shown[name], name]).all()
        assert table.drop(columns=HIDDEN).equals(whole.drop(columns=HIDDEN))
    seen = holes.observational
    young, old = (
        seen.loc[where, HIDDEN].isna().to_numpy().mean()
        for where in (seen["age"] < 30, seen["age"] > 50)
    )
    assert abs(old - young) < 0.05 if kind == "missing (MCAR)" else old - young > 0.4


def test_hidden_values_are_filled_in_alike_in_both_arms(study):
    holes = stress.missing(replace(study, adjustment="full"), 0.3, by="age")
    assert holes.control[HIDDEN].isna().equals(holes.treated[HIDDEN].isna())
    assert holes.control[HIDDEN].isna().any().all()
    assert holes.missing == {}
    assert not holes.covariates.isna().any().any()
    assert {f"{name} missing" for name in HIDDEN} <= set(holes.covariates)


@pytest.mark.parametrize("kind", ["censored at random", "censored by income"])
def test_the_share_is_lost_of_the_seen_alone(study, kind):
    lost = stress.STRESSES[kind][0](study, 0.4)
    stayed, whole = lost.observational, study.observational
    pd.testing.assert_frame_equal(lost.control, study.control, check_exact=True)
    assert len(stayed) == pytest.approx(0.6 * 4_000, abs=4 * (0.24 * 4_000) ** 0.5)
    pd.testing.assert_frame_equal(stayed, whole.loc[stayed.index], check_exact=True)
    pd.testing.assert_frame_equal(
        lost.probabilities, study.probabilities.loc[stayed.index], check_exact=True
    )
    ratio = stayed["income"].mean() / whole["income"].mean()
    assert ratio > 0.95 if kind == "censored at random" else ratio < 0.75


def test_studies_have_luck_of_their_own(studies):
    for name, kind in (("missing (MCAR)", "isna"), ("censored at random", "index")):
        one, other = (stress.STRESSES[name][0](study, 0.5).observational for study in studies)
        if kind == "isna":
            assert not one["sex"].isna().equals(other["sex"].isna())
        else:
            assert not one.index.equals(other.index)


@pytest.mark.parametrize(
    ("name", "levels", "options", "message"),
    [
        ("weather", [1], {}, "stress 'weather' is unknown: expected one of sample size"),
        ("sample size", [0.5], {}, "must be a whole number, at least 1: found 0.5"),
        ("sample size", [], {}, "at least 1: found None"),
        (
            "sample size",
            [9, 9],
            {},
            "each level of the stress 'sample size' may be given only once",
        ),
        ("horizon", [7, 2], {}, "'horizon' must be a whole number, at least 3: found 2"),
        ("hidden confounder", ["race"], {}, "must be one of none, age, .*: found 'race'"),
        ("overlap", [-1.0], {}, "'overlap' must be 0 or more: found -1.0"),
        ("missing (MAR)", ["few"], {}, "must be a share, at least 0 and below 1: found 'few'"),
        ("censored at random", [1.0], {}, "at least 0 and below 1: found 1.0"),
        ("overlap", [1.0], {"estimators": ["mine"]}, "estimator 'mine' is unknown"),
    ],
)
def test_what_is_refused(studies, name, levels, options, message):
    with pytest.raises(InputError, match=message):
        stress_test(studies, name, levels, progress=False, **options)


def test_studies_without_a_truth_are_refused(study):
    with pytest.raises(InputError, match="needs true effects: draw its studies with repeats"):
        stress_test([replace(study, truth=None)] * 2, "overlap", [1.0], progress=False)


def test_the_whole_way(studies, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))
    estimators = ["ipw-true", "t-ridge"]
    table = stress_test(studies, "sample size", [500, 1_000], estimators)
    assert capsys.readouterr().err.startswith("1 of 2: ipw-true, ")
    assert len(table) == 2 * 2 * 2
    assert (table["absolute error"] == table["error"].abs()).all()
    assert table.loc[table["estimator"] == "ipw-true", "R²"].isna().all()
    # Resumed in another process, nothing is fitted again.
    monkeypatch.setattr(TLearner, "fit", lambda self, covariates, *more: 1 / 0)
    again = stress_test(iter(studies), "sample size", [500, 1_000], estimators)
    pd.testing.assert_frame_equal(table, again, check_exact=True)


def test_effects_without_error_have_an_r2_of_one_although_their_truth_is_noisy(monkeypatch):
    rng = np.random.default_rng(0)
    effects = rng.normal(5_000, 20_000, size=50_000)
    mean = effects + rng.normal(0, 40_000 / 4**0.5, size=50_000)
    truth = TrueEffects(mean, np.full(50_000, 40_000.0**2), 4)
    assert stress._fit(truth, effects) == pytest.approx(1, abs=0.05)  # 0.5 with the noise in it
    # Where noise hides that effects differ at all, there is nothing to divide by.
    hidden = TrueEffects(mean, np.full(50_000, 90_000.0**2), 4)
    assert np.isnan(stress._fit(hidden, effects))


def test_an_estimator_is_marked_by_the_average_that_it_is_of(studies):
    estimators = ["ipww-lr", "t-ridge"]
    table = stress_test(studies[:1], "overlap", [0.0, 1.0], estimators, progress=False)
    found = table.set_index(["level", "estimator"])["error"]
    apart = {}
    for power in (0.0, 1.0):
        hard = stress.overlap(studies[0], power)
        weights = hard.test_probabilities[list(hard.arms)].sum(axis=1)
        truth = {"t-ridge": hard.effects.mean()}
        truth["ipww-lr"] = np.average(hard.effects, weights=weights)
        made = read_estimators(STRESS_GRIDS, estimators, scored=False)
        for name, one in estimate(hard, made, progress=False).items():
            assert found[power, name] == pytest.approx(one.ate - truth[name])
        apart[power] = abs(truth["ipww-lr"] - truth["t-ridge"])
    assert apart[0.0] == pytest.approx(0, abs=1e-6), "a lottery has one average"
    assert apart[1.0] > 100


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
    said = in_words(changes(table, ["error"]), {"t": "T"})
    assert said["T"].to_dict() == {("size", 2, "error"): "+100 ± 2"}, "4.303 / √3"
    assert in_words(changes(table.assign(error=np.nan), ["error"]), {"t": "T"}).empty
    both = pd.concat([table.assign(**{"R²": table["error"] / 100}), table.assign(stress="age")])
    average = both.assign(estimator="a", **{"R²": np.nan})  # one that has no single effects
    said = in_words(changes(pd.concat([both, average])), {"t": "T", "a": "A"})
    assert said["A"]["size", 2].to_dict() == {"error": "+100 ± 2", "R²": ""}
    said = said["T"]
    assert said.index.unique("stress").tolist() == ["size", "age"], "in their order"
    assert said[("size", 2)].to_dict() == {"error": "+100 ± 2", "R²": "+1.00 ± 0.02"}
    assert said[("age", 2)].to_dict() == {"error": "+100 ± 2"}
    # Where only one study knows its first level, it alone tells the change, and no interval.
    unknown = (table["level"] == 1) & (table["study"] > 0)
    one = table.assign(**{"R²": (table["error"] / 100).mask(unknown)})
    assert in_words(changes(one, ["R²"]), {"t": "T"})["T"].tolist() == ["+1.01"]


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_at_zero_changes_nothing(study, knob):
    same = stress.STRESSES[knob][0](study, 0.0)
    for which in ("observational", "control", "treated"):
        pd.testing.assert_frame_equal(getattr(same, which), getattr(study, which), check_exact=True)
    assert (same.truth.mean == study.truth.mean).all()


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_changes_incomes_alone_and_by_what_it_says(study, knob):
    changed = stress.STRESSES[knob][0](study, 20_000.0)
    gains = np.where(study.control["education-num"] >= 10, 20_000.0, -20_000.0)
    if knob != "uneven":
        gains = np.zeros(len(gains))
    assert changed.difference - study.difference == pytest.approx(gains, abs=1e-6)
    assert changed.truth.mean - study.truth.mean == pytest.approx(gains, abs=1e-6)
    assert (changed.truth.variance == study.truth.variance).all()
    for which in ("observational", "control", "treated"):
        before, after = (getattr(one, which) for one in (study, changed))
        pd.testing.assert_frame_equal(
            before.drop(columns="income"), after.drop(columns="income"), check_exact=True
        )
    added = changed.observational["income"] - study.observational["income"]
    if knob == "noise":
        assert added.std() == pytest.approx(20_000, rel=0.1)
        assert abs(added.mean()) < 4 * 20_000 / len(added) ** 0.5
    if knob == "bend":
        younger = 30 - study.observational["age"]
        assert added.to_numpy() == pytest.approx(20_000 * np.tanh(younger / 4), abs=1e-6)
    if knob == "uneven":
        assert (added[study.observational["studies"] == "No studies"] == 0).all()


def test_the_truth_of_a_knob_is_that_of_a_lottery():
    """The second way: arms given by lot, without any formula of the knob."""
    chances = dict.fromkeys(STUDIES.categories, 0.25)
    options = {"horizon": 3, "n_test": 4_000, "repeats": 2}
    study = draw_study(fitted_simulator(), 40_000, lottery=chances, **options)

    def apart(one, truth):
        error, means = 0.0, []
        for arm in (0, 1):
            own = one.outcomes[one.arm == arm]
            means.append(own.mean())
            error += own.var() / len(own)
        error += one.effects.var() / len(one.effects)
        return abs(means[1] - means[0] - truth) / error**0.5

    changed = stress.STRESSES["uneven"][0](study, 80_000.0)
    assert apart(changed, changed.effects.mean()) < 4
    assert apart(changed, study.effects.mean()) > 4, "a truth that forgets the knob is found out"
