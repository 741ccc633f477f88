"""Each estimator against a closed form, or a world whose effects are known."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV

from lib import ROOT
from lib.effects.estimands import tilted
from lib.effects.estimators import (
    AIPW,
    DML,
    ESTIMATORS,
    IPW,
    DRLearner,
    Matching,
    RLearner,
    SLearner,
    TLearner,
    TruePropensityWeighting,
    XLearner,
    inverse_propensity_weights,
    nearest,
    weighted_means,
)
from lib.effects.learners import Search, dealt, out_of_fold
from lib.errors import InputError


@pytest.fixture(scope="module")
def world():
    """A linear world: effect 2 + x1, confounded by x0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 2))
    a = (rng.random(4_000) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)
    y = 3 * x[:, 0] + x[:, 1] + (2 + x[:, 1]) * a + rng.normal(size=4_000)
    return x, a, y


def test_ipw_by_hand_on_six_rows():
    e = np.array([0.5, 0.25, 0.8, 0.5, 0.0, 1.0])
    a = np.array([1, 1, 0, 0, 0, 0])
    y = np.array([4.0, 1.0, 2.0, 6.0, 8.0, 1e9])  # the last, who was impossible, drops out
    treated, control = 4 / 0.5 + 1 / 0.25, 2 / 0.2 + 6 / 0.5 + 8
    weights = inverse_propensity_weights(a, e)
    assert weighted_means(weights, a, y, total=6)[0] == pytest.approx([control / 6, treated / 6])
    total = (1 / 0.2 + 1 / 0.5 + 1, 1 / 0.5 + 1 / 0.25)
    means, moves = weighted_means(weights, a, y)
    assert means == pytest.approx([control / total[0], treated / total[1]])
    assert moves[0] == pytest.approx((4 - means[1]) / total[1])
    assert moves[2] == pytest.approx(-(2 - means[0]) / total[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_ipw_recovers_the_average(world, weighted):
    found = IPW(propensity=LogisticRegression(), weighted=weighted).fit(*world)
    assert found.ate_ == pytest.approx(2, abs=0.3)
    assert found.score_ == pytest.approx(0.74, abs=0.03)


def test_matching_by_brute_force():
    rng = np.random.default_rng(1)
    x, a, y = rng.normal(size=(60, 3)), np.arange(60) % 3 == 0, rng.normal(size=60)
    gains = []
    for i in range(60):
        others = np.flatnonzero(a != a[i])
        j = others[np.argmin(((x[others] - x[i]) ** 2).sum(axis=1))]
        gains.append(y[i] - y[j] if a[i] else y[j] - y[i])
    assert Matching().fit(x, a.astype(float), y).ate_ == pytest.approx(np.mean(gains))
    alone = Matching().fit(x, 1.0 * (np.arange(60) == 7), y)
    first = np.argsort(((x - x[7]) ** 2).sum(axis=1))[1]
    assert alone.ate_ == pytest.approx((60 * y[7] - y.sum() + y[7] - y[first]) / 60)
    assert np.isnan(alone.standard_error_), "there is nobody else to tell it from"


def test_of_equally_near_others_the_first_is_taken_in_both_directions():
    rng = np.random.default_rng(1)
    points, others = (rng.integers(0, 9, (n, 2)).astype(float) for n in (5_000, 2_500))
    points[-1], others[-1] = 100, 101
    distances = cdist(points, others)  # more than one block of 64 MB
    ours, theirs = nearest(points, others)
    np.testing.assert_array_equal(ours, distances.argmin(axis=1))
    np.testing.assert_array_equal(theirs, distances.argmin(axis=0))
    assert theirs.max() > 4_000, "somebody of a later block is nearer"


def test_s_learner_is_the_coefficient_of_a_linear_model(world):
    x, a, y = world
    design = np.column_stack([np.ones(len(y)), x, a])
    coefficient = np.linalg.lstsq(design, y, rcond=None)[0][-1]
    found = SLearner(outcome=LinearRegression()).fit(*world).effect(x[:5])
    np.testing.assert_allclose(found, coefficient)


def test_t_learner_is_the_difference_of_two_regressions(world):
    x, a, y = world
    fits = [
        np.linalg.lstsq(
            np.column_stack([np.ones((a == k).sum()), x[a == k]]), y[a == k], rcond=None
        )
        for k in (0, 1)
    ]
    expected = np.column_stack([np.ones(9), x[:9]]) @ (fits[1][0] - fits[0][0])
    learner = TLearner(control=LinearRegression(), treated=LinearRegression()).fit(*world)
    np.testing.assert_allclose(learner.effect(x[:9]), expected)


LINEAR, LOGISTIC = LinearRegression(), LogisticRegression()


@pytest.mark.parametrize(
    "learner",
    [
        XLearner(control=LINEAR, treated=LINEAR, propensity=LOGISTIC, final=LINEAR),
        RLearner(outcome=LINEAR, propensity=LOGISTIC, final=LINEAR),
        DML(outcome=LINEAR, propensity=LOGISTIC, final=LINEAR),
        DRLearner(control=LINEAR, treated=LINEAR, propensity=LOGISTIC, final=LINEAR),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_learners_of_the_effect_find_it(world, learner):
    at = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    np.testing.assert_allclose(learner.fit(*world).effect(at), [2, 3, 1], atol=0.35)


def test_x_learner_weighs_by_the_propensity(world):
    parts = {"control": LINEAR, "treated": LINEAR, "final": DummyRegressor()}
    learner = XLearner(**parts, propensity=DummyClassifier(strategy="prior")).fit(*world)
    share = world[1].mean()
    of_controls, of_treated = (one.constant_.item() for one in learner.effects_)
    expected = share * of_controls + (1 - share) * of_treated
    assert learner.effect(world[0][:1])[0] == pytest.approx(expected)


def test_both_arms_of_an_x_learner_have_one_setting_that_is_settled(world):
    final = Search(Ridge(), {"learner__alpha": [0.01, 1, 1e6]})
    fitted = XLearner(LINEAR, LINEAR, LOGISTIC, final).fit(*world)
    assert "final: alpha" in fitted.in_words()
    again = fitted.settled().fit(*world)
    assert len(again.final.settings()) == 1
    np.testing.assert_array_equal(again.effect(world[0]), fitted.effect(world[0]))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (SLearner(LogisticRegression()), "the outcome must be estimated by a regressor"),
        (IPW(LinearRegression()), "the propensity must be estimated by a classifier"),
        (
            TLearner(LinearRegression(), Search(LogisticRegression())),
            "the treated must be estimated by a regressor",
        ),
    ],
)
def test_a_slot_takes_the_kind_of_learner_that_it_needs(world, made, message):
    with pytest.raises(InputError, match=message):
        made.fit(*world)


def test_an_average_over_nobody_is_refused(world):
    _, a, _ = world
    apart = np.column_stack([np.where(a == 1, 5.0, -5.0), a])
    with pytest.raises(InputError, match="some subjects of each arm must have a weight above 0"):
        IPW(LogisticRegression(C=1e6), estimand="ATE, trimmed").fit(apart, *world[1:])


@pytest.mark.parametrize("weighted", [False, True])
def test_an_arm_in_which_nobody_has_a_weight_is_refused(weighted):
    arm, outcome = np.array([1, 0, 0]), np.array([5.0, 7.0, 9.0])
    with pytest.raises(InputError, match="each arm must have a weight above 0"):
        weighted_means(np.array([0.0, 1.0, 1.0]), arm, outcome, None if weighted else 2.0)


@pytest.mark.parametrize(
    ("outcome", "propensity"),
    [(LINEAR, DummyClassifier()), (DummyRegressor(), LOGISTIC)],
    ids=["outcomes right", "propensities right"],
)
def test_aipw_is_doubly_robust(world, outcome, propensity):
    found = AIPW(control=outcome, treated=outcome, propensity=propensity).fit(*world)
    assert abs(found.ate_ - 2) < 4 * found.standard_error_
    _, a, y = world
    assert y[a == 1].mean() - y[a == 0].mean() > 4  # the naive difference is far off
    with pytest.raises(NotFittedError):  # nobody asks a model of all rows
        found.control_.predict(world[0])


@pytest.mark.parametrize(("estimand", "is_robust"), [("ATT", True), ("ATO", False)])
def test_it_is_so_for_the_treated_and_not_for_the_overlap(estimand, is_robust):
    rng = np.random.default_rng(4)
    x = rng.normal(size=4_000)
    e, tau = 1 / (1 + np.exp(-2 * x)), 2 + 2 * x + 2 * x**2
    a = (rng.random(4_000) < e).astype(float)
    x, y = np.column_stack([x, x**2]), 3 * x + tau * a + rng.normal(size=4_000)
    truth = np.average(tau, weights=tilted(estimand, e)[0])
    slots = [(LINEAR, LOGISTIC), (LINEAR, DummyClassifier()), (DummyRegressor(), LOGISTIC)]
    made = [AIPW(mu, mu, p, estimand=estimand).fit(x, a, y) for mu, p in slots]
    apart = [abs(one.ate_ - truth) < 4 * one.standard_error_ for one in made]
    assert apart == [True, is_robust, True]
    chapter = (ROOT / "notebooks" / "analysis.ipynb").read_text(encoding="utf-8")
    assert "This is so for the average over everybody, and for that over the treated." in chapter


def test_effects_in_an_arm_of_two_need_no_folds_where_nothing_is_chosen(world):
    covariates, treatment, outcome = (each[:40] for each in world)
    few = np.r_[np.flatnonzero(treatment == 0), np.flatnonzero(treatment == 1)[:2]]
    parts = [covariates[few], treatment[few], outcome[few]]
    unscored = [Search(one, scored=False) for one in (LINEAR, LINEAR, LOGISTIC, LINEAR)]
    fitted = XLearner(*unscored).fit(*parts)
    treated = parts[1] == 1
    imputed = parts[2] - clone(LINEAR).fit(parts[0][~treated], parts[2][~treated]).predict(parts[0])
    own = clone(LINEAR).fit(parts[0][treated], imputed[treated]).predict(parts[0])
    np.testing.assert_allclose(fitted.effects_[1].predict(parts[0]), own)


def test_dml_is_orthogonal_to_a_wrong_outcome_model(world):
    wrong = DML(outcome=DummyRegressor(), propensity=LOGISTIC, final=LINEAR).fit(*world)
    assert wrong.effect(np.zeros((1, 2)))[0] == pytest.approx(2, abs=0.5)


def test_out_of_fold_predictions_have_not_seen_their_fold():
    y = dealt(20).astype(float)
    found = out_of_fold(DummyRegressor(), np.zeros((20, 1)), y)
    np.testing.assert_allclose(found, (10 - y) / 4)


@pytest.mark.parametrize("rhythm", [2, 5, 10])
def test_a_rhythm_of_the_rows_misleads_nobody(rhythm):
    """As of sites in turn, or of several years a person: no fold and no half is one of them."""
    rng, n = np.random.default_rng(0), 2_000
    site = np.arange(n) % rhythm
    a = (rng.random(n) < 0.1 + 0.8 * site / (rhythm - 1)).astype(float)
    x = np.column_stack([np.eye(rhythm)[site], rng.normal(size=n)])
    y = 10 * site + a + x[:, -1] + rng.normal(size=n)
    ridge, logistic = (Search(model, scored=False) for model in (Ridge(1e-3), LogisticRegression()))
    assert AIPW(ridge, ridge, logistic).fit(x, a, y).ate_ == pytest.approx(1, abs=0.25)
    for estimator in (RLearner(ridge, logistic, ridge), DML(ridge, logistic, ridge)):
        assert estimator.fit(x, a, y).effect(x).mean() == pytest.approx(1, abs=0.25)
    # Pairs, in which treated and control take turns, have both arms in every half.
    pairs = np.arange(n) % 2.0
    found = DML(ridge, logistic, ridge).fit(x[:, -1:], pairs, pairs + x[:, -1])
    assert found.effect(x[:, -1:]).mean() == pytest.approx(1, abs=0.25)


def test_trees_are_not_asked_about_a_part_of_a_sorted_table_that_they_have_not_seen():
    x = np.linspace(0, 10, 1_000)[:, None]
    found = out_of_fold(RandomForestRegressor(20, random_state=0), x, x[:, 0])
    assert np.abs(found - x[:, 0]).max() < 0.1


def test_the_order_of_the_arms_does_not_decide():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 2))
    a = 1.0 * (rng.random(4_000) < 1 / (1 + np.exp(0.6 - 0.8 * x[:, 0])))
    y = x[:, 0] + 0.5 * np.exp(x[:, 0]) + a + rng.normal(size=4_000)
    for order in (np.arange(4_000), np.argsort(-a, kind="stable"), np.argsort(a, kind="stable")):
        chances = out_of_fold(LogisticRegression(), x[order], a[order])
        exact = 1 / (1 + np.exp(0.6 - 0.8 * x[order, 0]))
        assert np.abs(chances - exact).max() < 0.08
        assert abs((chances - exact).mean()) < 0.02
        made = AIPW(Ridge(), Ridge(), LogisticRegression()).fit(x[order], a[order], y[order])
        assert abs(made.ate_ - 1) < 2 * made.standard_error_ < 0.2


def test_true_propensities_give_the_effect_among_three_levels():
    rng = np.random.default_rng(2)
    x = rng.random(30_000)
    p = pd.DataFrame({"no": 0.2 + 0.4 * x, "day": 0.2, "yes": 0.6 - 0.4 * x})
    p.loc[0] = [0.0, 0.0, 1.0]  # one who could not have done otherwise
    passed = rng.random(30_000)[:, None] > p.to_numpy().cumsum(axis=1)
    taken = np.array(["no", "day", "yes"])[passed.sum(axis=1)]
    y = 10 * x + 3 * (taken == "yes") + rng.normal(size=30_000)
    two, a = taken != "day", (taken == "yes")[taken != "day"].astype(float)
    chance = np.where(a == 1, p["yes"][two], p["no"][two])
    found = TruePropensityWeighting(probabilities=chance).fit(None, a, y[two])
    assert abs(found.ate_ - 3) < 4 * found.standard_error_ < 0.4
    with pytest.raises(InputError, match="probabilities must be given: found None"):
        TruePropensityWeighting().fit(None, a, y[two])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_of_scikit_learns_kind(name):
    made = ESTIMATORS[name](**dict.fromkeys(ESTIMATORS[name].slots(), LINEAR))
    assert clone(made).get_params().keys() == made.get_params().keys()
    for slot in made.slots():
        changed = clone(made).set_params(**{f"{slot}__fit_intercept": False})
        assert getattr(changed, slot).fit_intercept is False


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_treatment_is_of_zeros_and_ones(world, name):
    x, a, y = (part[:100] for part in world)
    slots = {
        slot: LOGISTIC if slot == "propensity" else LINEAR for slot in ESTIMATORS[name].slots()
    }
    estimator = ESTIMATORS[name](**slots)
    for coded in (a + 1, 2 * a - 1):
        with pytest.raises(
            InputError, match="treatment must hold zeros and ones, and both of them: found"
        ):
            estimator.fit(x, coded, y)
    if slots:
        same = [vars(clone(estimator).fit(x, each, y)) for each in (a, a == 1)]
        for key in ("ate_", "covariance_", "score_"):
            np.testing.assert_array_equal(*(one.get(key) for one in same))


@pytest.mark.parametrize("name", ["R-learner", "DMLCATEEstimator", "AIPW", "IPWEstimator"])
def test_a_search_of_scikit_learn_is_a_learner(world, name):
    x, a, y = (part[:1_000] for part in world)
    kind, plain = ESTIMATORS[name], (Ridge(), LOGISTIC)
    searches = [
        GridSearchCV(plain[0], {"alpha": [1, 1e6]}),
        GridSearchCV(LOGISTIC, {"C": [1, 1e-6]}),
    ]
    found = [
        kind(**{slot: pair[slot == "propensity"] for slot in kind.slots()}).fit(x, a, y)
        for pair in (searches, plain)
    ]
    effects = [one.effect(x) if hasattr(one, "effect") else one.ate_ for one in found]
    np.testing.assert_allclose(*effects)


def test_a_search_in_two_slots_is_two_searches_and_stays_as_it_was(world):
    search = Search(LINEAR)
    learner = RLearner(outcome=search, propensity=LOGISTIC, final=search).fit(*world)
    assert learner.outcome is learner.final is search
    assert not hasattr(search, "best_estimator_")
    assert search.scored and learner.outcome_.scored and not learner.final_.scored
    # The outcome model is still that of the outcome, not that of the effect.
    x, _, y = world
    expected = LinearRegression().fit(x, y).predict(x[:5])
    np.testing.assert_allclose(learner.outcome_.predict(x[:5]), expected)


def test_an_interval_of_the_average_takes_a_data_frame_or_a_list(world):
    x, a, y = world
    made = TLearner(LinearRegression(), LinearRegression()).fit(x, a, y)
    for given in (pd.DataFrame(x), x.tolist()):
        assert made.average_interval(given).tolist() == made.average_interval(x).tolist()


def test_data_frames_do_as_well_as_arrays(world):
    x, a, y = (part[:500] for part in world)
    frames = pd.DataFrame(x), pd.Series(a, range(9, 509)), pd.Series(y)
    ours, theirs = (AIPW(LINEAR, LINEAR, LOGISTIC).fit(*data) for data in (frames, (x, a, y)))
    assert ours.ate_ == theirs.ate_


@pytest.mark.parametrize("kind", [SLearner, TLearner])
def test_models_of_outcomes_tell_what_they_expect_of_what_was_done(world, kind):
    x, a, y = world
    found = kind(**dict.fromkeys(kind.slots(), LINEAR)).fit(*world).factual(x, a)
    assert np.mean((y - found) ** 2) < 1.6


def test_two_estimators_of_the_book_have_two_names():
    with pytest.raises(InputError, match="Other must have a name of its own: found 'AIPW'"):
        type("Other", (AIPW,), {"__module__": "lib.effects.mine"}, name="AIPW")
    type("Another", (AIPW,), {"__module__": "mine"})
    assert "Another" not in ESTIMATORS, "a class that is not of the book"
