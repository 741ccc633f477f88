"""Intervals: each standard error against what the estimates do, by jackknife or in repetitions."""

from dataclasses import replace
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    Ridge,
)
from statsmodels.regression.linear_model import WLS

from lib import cache
from lib.effects import Study, estimate, evaluate, read_study
from lib.effects.adapter import adapted
from lib.effects.estimands import TILTS, average_effects, tilted
from lib.effects.estimator_files import read_estimators
from lib.effects.estimators import (
    AIPW,
    DML,
    IPW,
    DRLearner,
    Matching,
    RLearner,
    SLearner,
    TLearner,
    TruePropensityWeighting,
    XLearner,
)
from lib.effects.intervals import NORMAL, Bootstrap, covariance, influence, lotteries
from lib.effects.learners import Search
from lib.errors import InputError


class FittedOnce(LogisticRegression):
    """A logistic regression that has seen the same people before: estimands share a propensity."""

    fits: ClassVar[dict] = {}

    def fit(self, features, target, sample_weight=None):
        given = self.get_params(), features, target, sample_weight
        if (key := joblib.hash(given)) not in self.fits:
            self.fits[key] = vars(super().fit(features, target, sample_weight)).copy()
        vars(self).update(self.fits[key])
        return self


OLS = Search(LinearRegression(), scored=False)
RIDGE = Search(Ridge(30), scored=False)
LOGIT = Search(FittedOnce(C=1e4, max_iter=1_000), scored=False)
PENALISED = Search(FittedOnce(C=0.02), scored=False)  # enough to show in an error


@pytest.fixture(autouse=True)
def nothing_is_kept():
    """Hundreds of small fits are made sooner than they are kept, or their parameters checked."""
    before = cache.KEEPING.set(False)
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        yield
    cache.KEEPING.reset(before)


def world(n, seed=0):
    """Confounding by the first covariate, an effect of 2 + x1, noise that grows with x0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    e = 1 / (1 + np.exp(-0.6 * x[:, 0]))
    a = (rng.random(n) < e).astype(float)
    noise = rng.normal(size=n) * (1 + 0.5 * np.abs(x[:, 0]))
    return x, a, 3 * x[:, 0] + x[:, 1] + (2 + x[:, 1]) * a + noise


def jackknife(estimator, x, a, y, found):
    """The standard error of what `found` reads, by leaving out one subject after another."""
    keep = ~np.eye(len(y), dtype=bool)
    values = [found(clone(estimator).fit(x[i], a[i], y[i])) for i in keep]
    return ((len(y) - 1) * np.var(values, axis=0)) ** 0.5


@pytest.mark.parametrize("estimand", TILTS)
def test_the_error_of_weighting_counts_that_propensities_are_estimated(estimand):
    data, estimator = world(250), IPW(PENALISED, weighted=True, estimand=estimand)
    expected = jackknife(estimator, *data, lambda fitted: fitted.ate_)
    assert estimator.fit(*data).standard_error_ == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_a_penalty_on_the_intercept_is_part_of_the_error(scaling):
    x, a, y = world(250)
    a = np.maximum(a, np.random.default_rng(1).random(250) < 0.6)  # so that the intercept is large
    model = FittedOnce(C=0.02, solver="liblinear", intercept_scaling=scaling, tol=1e-9)
    estimator = IPW(Search(model, scored=False))
    expected = jackknife(estimator, x, a, y + 20, lambda fitted: fitted.ate_)
    found = estimator.fit(x, a, y + 20).standard_error_
    assert found == pytest.approx(expected, rel=0.05)


def test_the_error_of_horvitz_and_thompson_is_that_of_a_sum():
    data, estimator = world(250), IPW(PENALISED)
    expected = jackknife(estimator, *data, lambda fitted: fitted.ate_)
    assert estimator.fit(*data).standard_error_ == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("estimand", ["ATT", "ATO"])
def test_the_error_of_a_sum_over_a_sum_of_tilts_counts_both(estimand):
    x, a, y = world(250)
    estimator = IPW(PENALISED, estimand=estimand)
    expected = jackknife(estimator, x, a, y + 20 * a, lambda fitted: fitted.ate_)
    assert estimator.fit(x, a, y + 20 * a).standard_error_ == pytest.approx(expected, rel=0.05)


def test_weighting_by_a_forest_states_no_error():
    forest = RandomForestClassifier(5, max_depth=2)
    assert not hasattr(IPW(forest).fit(*world(200)), "standard_error_")


@pytest.mark.parametrize(
    "estimator",
    [SLearner(RIDGE), TLearner(OLS, RIDGE)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_linear_effects_have_the_errors_of_their_coefficients(estimator):
    data, at = world(300), np.array([[0.0, 0.0], [1.0, -1.0]])
    fitted = clone(estimator).fit(*data)
    lower, upper = fitted.effect_interval(at)
    np.testing.assert_allclose((lower + upper) / 2, fitted.effect(at))
    expected = jackknife(estimator, *data, lambda found: found.effect(at))
    np.testing.assert_allclose(upper - lower, 2 * NORMAL * expected, rtol=0.02)
    ends = fitted.average_interval(data[0])
    assert sum(ends) / 2 == pytest.approx(fitted.effect(data[0]).mean())
    middle = fitted.effect_interval(data[0].mean(axis=0, keepdims=True))
    np.testing.assert_allclose(ends, np.ravel(middle))


def test_the_sandwich_is_hc3_of_statsmodels():
    covariates, _, outcome = world(40)
    weights = np.random.default_rng(3).uniform(0.2, 3, 40)
    weighted = LinearRegression().fit(covariates, outcome, weights)
    plain = LinearRegression().fit(covariates, outcome)
    design = np.column_stack([covariates, np.ones(40)])
    for model, w in ((plain, None), (weighted, weights)):
        search = Search(model)
        search.best_estimator_ = model
        given = (search, covariates, outcome, *([] if w is None else [w]))
        theirs = WLS(outcome, design, np.ones(40) if w is None else w).fit(cov_type="HC3")
        np.testing.assert_allclose(covariance(given), theirs.cov_params(), rtol=1e-9)


def test_somebody_alone_in_a_level_leaves_the_sandwich_finite():
    covariates, _, outcome = world(40)
    alone = np.column_stack([covariates, np.arange(40) == 7])
    search = Search(LinearRegression()).fit(alone, outcome)
    assert np.isfinite(covariance((search, alone, outcome))).all()


def test_what_is_not_linear_says_nothing():
    forest = RandomForestRegressor(5)
    assert influence(forest, np.zeros(50), *world(50)[::2]) is None
    odd = Ridge(fit_intercept=False), Ridge(positive=True), LogisticRegressionCV()
    for other in (*odd, LogisticRegression(penalty=None), LogisticRegression(penalty="l1")):
        assert influence(other, np.zeros(50), *world(50)[::2]) is None
    balanced = IPW(LogisticRegression(class_weight="balanced")).fit(*world(100))
    assert not hasattr(balanced, "standard_error_")
    fitted = TLearner(OLS, forest).fit(*world(100))
    assert not hasattr(fitted, "effect_interval")
    assert not hasattr(fitted, "average_interval")
    assert not hasattr(XLearner(OLS, OLS, LOGIT, OLS).fit(*world(100)), "effect_interval")


def test_the_error_of_matching_by_definition():
    x, a, y = world(60)
    fitted, n = Matching().fit(x, a, y), 60
    distance = np.linalg.norm(x[:, None] - x[None], axis=2) + np.diag([np.inf] * n)
    other = [min(np.flatnonzero(a != a[i]), key=lambda j, i=i: distance[i, j]) for i in range(n)]
    alike = [min(np.flatnonzero(a == a[i]), key=lambda j, i=i: distance[i, j]) for i in range(n)]
    gain = np.where(a == 1, y - y[other], y[other] - y)
    often, noise = np.bincount(other, minlength=n), (y - y[alike]) ** 2 / 2
    variance = ((gain - gain.mean()) ** 2).mean() + ((often**2 + often) * noise).mean()
    assert fitted.standard_error_ == pytest.approx((variance / n) ** 0.5)


@pytest.mark.parametrize(
    "estimator",
    [
        *(AIPW(OLS, OLS, LOGIT, estimand) for estimand in TILTS),
        DML(OLS, LOGIT, OLS),
        RLearner(OLS, LOGIT, OLS),
        DRLearner(OLS, OLS, LOGIT, OLS),
        Matching(),
    ],
    ids=lambda estimator: f"{type(estimator).__name__} {getattr(estimator, 'estimand', '')}",
)
def test_stated_errors_are_what_estimates_scatter_by(estimator):
    estimates, stated = [], []
    centre = np.zeros((1, 2))
    for seed in range(80):
        fitted = clone(estimator).fit(*world(300, seed))
        if hasattr(fitted, "effect"):
            estimates.append(fitted.effect(centre)[0])
            stated.append(np.diff(fitted.average_interval(centre)).item() / 2 / NORMAL)
        else:
            estimates.append(fitted.ate_)
            stated.append(fitted.standard_error_)
    # The standard deviation of 80 estimates is known to about 8 %.
    assert np.median(stated) == pytest.approx(np.std(estimates), rel=0.25)
    assert np.mean(estimates) == pytest.approx(2, abs=0.3)


def test_other_estimands_find_their_own_averages():
    """The effect is 2 + 2 x0 and the propensity rises with x0, so averages differ."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40_000, 1))
    e = 1 / (1 + np.exp(-x[:, 0] - 0.5))
    a = (rng.random(len(x)) < e).astype(float)
    y = x[:, 0] + (2 + 2 * x[:, 0]) * a + rng.normal(size=len(x))
    truths = {name: np.average(2 + 2 * x[:, 0], weights=tilted(name, e)[0]) for name in TILTS}
    assert np.ptp(list(truths.values())) > 0.5
    for name, truth in truths.items():
        for made in (IPW(LOGIT, True, name), AIPW(OLS, OLS, LOGIT, name)):
            found = made.fit(x, a, y)
            assert found.ate_ == pytest.approx(truth, abs=4 * found.standard_error_), (made, name)
            assert found.standard_error_ < 0.05


def test_slopes_are_those_of_the_tilts():
    e, step = np.array([0.2, 0.5, 0.7]), 1e-6
    for name, tilt in TILTS.items():
        value, slope = tilted(name, e)
        np.testing.assert_allclose(value, tilt(e))
        np.testing.assert_allclose(slope, (tilt(e + step) - tilt(e - step)) / 2 / step, atol=1e-8)
    with pytest.raises(InputError, match="estimand 'ATU' is unknown: expected one of 'ATE, two"):
        IPW(LOGIT, True, "ATU").fit(*world(50))


def test_the_bootstrap_agrees_with_the_sandwich():
    x, a, y = world(400)
    plain, wrapped = TLearner(OLS, OLS), Bootstrap(TLearner(OLS, OLS), 200)
    plain.fit(x, a, y)
    wrapped.fit(x, a, y)
    np.testing.assert_array_equal(plain.effect(x), wrapped.effect(x))
    widths = [np.diff(made.effect_interval(x[:50]), axis=0)[0] for made in (wrapped, plain)]
    assert np.median(widths[0] / widths[1]) == pytest.approx(1, abs=0.15)
    width = np.diff(wrapped.average_interval(x)) / np.diff(plain.average_interval(x))
    assert width.item() == pytest.approx(1, abs=0.2)
    again = Bootstrap(TLearner(OLS, OLS), 200).fit(x, a, y)
    np.testing.assert_array_equal(again.average_interval(x), wrapped.average_interval(x))


def test_the_bootstrap_of_an_average_has_no_effects():
    made = Bootstrap(IPW(LOGIT, weighted=True), 100).fit(*world(400))
    plain = IPW(LOGIT, weighted=True).fit(*world(400))
    assert (made.ate_, made.estimand) == (plain.ate_, "ATE, two arms")
    assert not hasattr(made, "effect_interval")
    half = np.diff(made.average_interval(None)).item() / 2
    assert half == pytest.approx(NORMAL * np.std([one.ate_ for one in made.resampled_], ddof=1))
    assert half == pytest.approx(NORMAL * plain.standard_error_, rel=0.25)


def test_the_bootstrap_of_true_propensities_would_give_them_to_others():
    known = Bootstrap(TruePropensityWeighting(np.full(50, 0.5)), 2)
    with pytest.raises(InputError, match=r"with true propensities .* cannot be bootstrapped"):
        known.fit(*world(50))


def test_the_bootstrap_keeps_the_settings_of_the_whole_sample():
    search = Search(Ridge(), {"learner__alpha": [1e-3, 1e6]})
    made = Bootstrap(SLearner(search), 3).fit(*world(200))
    assert [each.outcome.learner.alpha for each in made.resampled_] == [1e-3] * 3
    assert made.in_words() == "outcome: alpha 0.001"
    again = clone(made.settled()).fit(*world(200))
    assert again.estimator.outcome.learner.alpha == 1e-3
    assert again.average_interval(world(9)[0]) == made.average_interval(world(9)[0])


def test_the_bootstrap_is_a_key_of_a_file():
    entry = {"estimator": "T-learner", "base_estimator": ["ridge"], "bootstrap": 7}
    made = read_estimators({"estimators": {"mine": entry}}, seed=5)["mine"]
    assert (type(made), made.n_resamples, made.seed) == (Bootstrap, 7, 5)
    assert made.takes_missing() is False
    assert Bootstrap(SLearner(RandomForestRegressor())).takes_missing()
    with pytest.raises(InputError, match="'mine': bootstrap must be a whole number of at least 2"):
        read_estimators({"estimators": {"mine": entry | {"bootstrap": 1}}})


@pytest.fixture(scope="module")
def population():
    """People with an effect of 1 + x, who take the treatment the likelier the higher x."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 500)
    control = pd.DataFrame({"x": x, "income": x})
    treated = control.assign(income=1 + 2 * x)
    chances = pd.DataFrame({"no": 0.5 - 0.4 * x, "yes": 0.25 + 0.2 * x, "maybe": 0.25 + 0.2 * x})
    names = {"adjustment": ["x"], "arms": ("no", "yes"), "treatment": "did", "group": None}
    seen = control.assign(did=["no", "yes"] * 250)
    return Study(seen, control, treated, test_probabilities=chances, **names)


def test_a_lottery_draws_people_and_tosses_for_their_arms(population):
    fair, same, other = (
        next(lotteries(population, 2_000, [seed], power))
        for seed, power in [(1, 0), (1, 1), (2, 1)]
    )
    assert (fair.arm_probability == 0.5).all()
    assert fair.arm.mean() == pytest.approx(0.5, abs=0.05)
    pd.testing.assert_series_equal(
        fair.observational["x"], same.observational["x"], check_index=False
    )
    assert not same.covariates.equals(other.covariates)
    x = same.observational["x"].to_numpy()
    e = (0.25 + 0.2 * x) / (0.75 - 0.2 * x)
    np.testing.assert_allclose(same.arm_probability, np.where(same.arm == 1, e, 1 - e))
    high = x > 0
    assert same.arm[high].mean() == pytest.approx(e[high].mean(), abs=0.05)
    np.testing.assert_allclose(same.outcomes, np.where(same.arm == 1, 1 + 2 * x, x))


def test_a_population_has_both_outcomes(population):
    alone = read_study(
        population.observational,
        outcome="income",
        test_probabilities=population.test_probabilities,
        **{name: getattr(population, name) for name in ("adjustment", "arms", "treatment")},
    )
    with pytest.raises(InputError, match="a population needs control and treated tables"):
        next(lotteries(alone, 100, [0], 0))


def test_truth_in_a_lottery_is_that_of_its_population(population):
    study = next(lotteries(population, 100, [0], 2.0))
    x = population.control["x"].to_numpy()
    p = np.column_stack([0.5 - 0.4 * x, 0.25 + 0.2 * x]) ** 2
    e = p[:, 1] / p.sum(axis=1)
    truth = average_effects(study)["value"]
    assert truth["ATE"] == pytest.approx((1 + x).mean())
    assert truth["ATE, two arms"] == pytest.approx(truth["ATE"])
    assert truth["ATT"] == pytest.approx(np.average(1 + x, weights=e))
    assert truth["ATO"] == pytest.approx(np.average(1 + x, weights=e * (1 - e)))


def test_a_lottery_may_be_marked_on_others(population):
    others = {"control": population.control[:7], "treated": population.treated[:7]}
    marked = {**others, "truth": np.arange(7.0), "test_probabilities": None}
    study = next(lotteries(population, 100, [0], 1.0, **marked))
    own = next(lotteries(population, 100, [0], 1.0))
    assert study.effects.tolist() == [*range(7)]
    np.testing.assert_array_equal(study.outcomes, own.outcomes)


def test_intervals_reach_the_table(population):
    study = next(lotteries(population, 400, [0], 1.0))
    study = replace(study, truth=study.difference)
    names = {
        "true": TruePropensityWeighting(),
        "t": TLearner(OLS, OLS),
        "att": AIPW(OLS, OLS, LOGIT, "ATT"),
    }
    found = estimate(study, names | {"boot": Bootstrap(TLearner(OLS, OLS), 20)}, progress=False)
    assert found["true"].upper - found["true"].lower > 0
    assert found["t"].effect_interval.shape == (2, 500)
    assert found["att"].estimand == "ATT"
    table = evaluate(study, found, bootstraps=0).set_index(["estimator", "estimand", "metric"])
    error = table.loc[("att", "ATT", "error")]
    assert error["lower"] < error["value"] < error["upper"]
    assert error["value"] == pytest.approx(
        found["att"].ate - average_effects(study)["value"]["ATT"]
    )
    assert {("t", "CATE", "coverage"), ("boot", "CATE", "width")} <= set(table.index)
    assert ("true", "CATE", "coverage") not in table.index


def test_econml_states_its_own_intervals():
    options = {"model_y": "ridge", "model_t": "lr"}
    x, a, y = world(600)
    stating = adapted("econml.dml:LinearDML", options | {"inference": "auto"}).fit(x, a, y)
    lower, upper = stating.effect_interval(x)
    assert ((lower < stating.effect(x)) & (stating.effect(x) < upper)).all()
    low, high = stating.average_interval(x)
    assert low < stating.effect(x).mean() < high
    ours = RLearner(Ridge(), LOGIT, OLS).fit(x, a, y)
    assert high - low == pytest.approx(np.diff(ours.average_interval(x)).item(), rel=0.25)
    silent = adapted("econml.dml:LinearDML", options).fit(x, a, y)
    assert not hasattr(silent, "effect_interval")
    assert not hasattr(silent, "average_interval")


class Difference(BaseEstimator):
    """Somebody's own: the difference of the means, and nothing else."""

    def fit(self, covariates, treatment, outcome):
        self.ate_ = outcome[treatment == 1].mean() - outcome[treatment == 0].mean()
        return self


def test_a_class_of_ones_own_is_resampled_as_it_is():
    made = Bootstrap(Difference(), 50).fit(*world(400))
    assert made.takes_missing()
    assert len({one.ate_ for one in made.resampled_}) == 50


@pytest.mark.parametrize("estimator", [Matching(), TLearner(OLS, OLS)], ids=str)
def test_a_resample_that_lacks_an_arm_is_drawn_again(estimator):
    rng = np.random.default_rng(0)
    few = np.arange(60) % 20 == 0  # three of the sixty: one resample in twenty has none
    fitted = Bootstrap(estimator, 100).fit(rng.normal(size=(60, 2)), few, rng.normal(size=60))
    assert len(fitted.resampled_) == 100
    assert np.isfinite(fitted.average_interval(np.zeros((1, 2)))).all()


@pytest.mark.parametrize("rare", [True, False])
def test_a_resample_with_an_arm_in_one_fold_alone_is_drawn_again(rare):
    rng = np.random.default_rng(0)
    few = np.arange(60) % 8 == 7  # as scarce as an arm may be, so that folds often lack it
    few &= np.arange(60) < 30
    data = rng.normal(size=(60, 2)), few == rare, rng.normal(size=60)
    # Of the first fifty draws, fourteen have an arm in one fold alone, and three have it in none.
    fitted = Bootstrap(AIPW(OLS, OLS, LOGIT), 50).fit(*data)
    assert len(fitted.resampled_) == 50


@pytest.mark.parametrize("arm", [0, 1])
def test_one_arm_alone_is_refused(arm):
    data = np.zeros((9, 2)), np.full(9, arm), np.arange(9)
    for estimator in (Matching(), SLearner(OLS), Bootstrap(SLearner(OLS))):
        with pytest.raises(
            InputError, match="the treatment must hold zeros and ones, and both of them"
        ):
            estimator.fit(*data)
