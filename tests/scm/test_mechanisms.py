"""The general mechanisms, each against a truth computed another way."""

import itertools
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_ndtr, ndtr, ndtri, ndtri_exp
from scipy.stats import kstwo
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import r2_score, roc_auc_score

from lib.errors import InputError
from lib.noise import uniforms
from lib.scm.mechanisms import (
    COUPLINGS,
    MECHANISMS,
    BernoulliVariable,
    CategoricalMechanism,
    ConstantSampler,
    EmpiricalVariable,
    Features,
    GaussianRandomForestSampler,
    GaussianRegressionSampler,
    GaussianVariable,
    IncrementSampler,
    KeepPrevious,
    Learned,
    LinearGaussianSampler,
    LogisticSampler,
    LogisticTransitionSampler,
    MultinomialVariable,
    NegativeBinomialSampler,
    Parents,
    RandomForestClassifierSampler,
    UniformRegressionSampler,
    ZeroOrGaussianRegressionSampler,
    bounded,
    gumbel_max,
    inverse_cdf,
    same_kind,
)

N = 100_000

#: How far a count of a level may lie from its expectation, in standard deviations: a false
#: alarm in a million, two-sided, for each comparison.
Z = -ndtri(1e-6 / 2)

#: The same for the largest distance of an empirical distribution function, for N draws.
KS = kstwo.isf(1e-6, N)


def distance(draws: np.ndarray, others: np.ndarray) -> float:
    """Return the largest distance of two empirical distribution functions, ties and all."""
    at = np.union1d(draws, others)
    of_draws, of_others = (
        np.searchsorted(np.sort(x), at, side="right") / len(x) for x in (draws, others)
    )
    return np.abs(of_draws - of_others).max()


def same_distribution(draws: np.ndarray, others: np.ndarray) -> bool:
    """Compare two samples of N each: by the triangle inequality, twice the distance of one."""
    assert len(draws) == len(others) == N
    return distance(draws, others) < 2 * KS


def close_to_expectation(codes: np.ndarray, probabilities: np.ndarray) -> bool:
    """Compare the count of each level with the sum of its probabilities, shape (n, levels)."""
    counts = np.bincount(codes, minlength=probabilities.shape[1])
    expected = probabilities.sum(axis=0)
    deviation = np.sqrt((probabilities * (1 - probabilities)).sum(axis=0))
    return bool((np.abs(counts - expected) <= Z * deviation + 1e-6).all())


@pytest.fixture(scope="module")
def people():
    """A table with causes of both kinds and effects of every kind: a function of n and a seed."""
    rng = np.random.default_rng(4)
    n = 2_000
    age = rng.integers(18, 80, n).astype(float)
    sex = pd.Categorical(rng.choice(["F", "M"], n))
    job = pd.Categorical(rng.choice(["clerk", "cook", "nurse", "smith"], n, p=[0.4, 0.3, 0.2, 0.1]))
    score = (age - 50) / 20 + 0.8 * (sex == "F") - 0.5 * (job == "cook")
    pay = 30_000 + 9_000 * score + rng.normal(0, 5_000, n)
    degree = np.digitize(score + rng.logistic(size=n), [-1, 1])
    return {
        "age": age,
        "sex": sex,
        "job": job,
        "pay": pay,
        "gain": np.where(rng.random(n) < 0.6, 0.0, pay / 10),
        "degree": pd.Categorical.from_codes(degree, ["none", "school", "college"]),
        "rich": pd.Categorical(np.where(score + rng.logistic(size=n) > 0, "yes", "no")),
        "visits": rng.negative_binomial(1, 0.3, n).astype(float),
    }


@pytest.fixture(scope="module")
def parents(people):
    return Parents({name: people[name] for name in ("age", "sex", "job")})


@pytest.fixture(scope="module")
def many(people):
    """The causes of N subjects, drawn from the table."""
    rows = np.random.default_rng(5).integers(0, len(people["age"]), N)
    return Parents({name: people[name][rows] for name in ("age", "sex", "job")}), rows


# --- couplings --------------------------------------------------------------------------


@st.composite
def weights_and_noise(draw):
    levels, n = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    weights = rng.random((n, levels)) * (rng.random((n, levels)) < 0.7)
    weights[np.arange(n), rng.integers(0, levels, n)] += 0.1  # one level at least is possible
    return weights / weights.sum(axis=1, keepdims=True), rng.random((levels, n))


@given(weights_and_noise())
@settings(max_examples=200, deadline=None)
def test_gumbel_max_is_the_formula_of_the_paper(case):
    probabilities, noise = case
    with np.errstate(divide="ignore"):
        scores = np.log(probabilities) - np.log(-np.log(noise.T))
    assert gumbel_max(probabilities, noise).tolist() == scores.argmax(axis=1).tolist()


@given(weights_and_noise())
@settings(max_examples=200, deadline=None)
def test_inverse_cdf_is_the_first_level_that_reaches_the_noise(case):
    probabilities, noise = case
    chosen = inverse_cdf(probabilities, noise)
    for row, u, code in zip(probabilities, noise[0], chosen, strict=True):
        reached = [sum(row[: j + 1]) >= u * sum(row) for j in range(len(row))]
        assert code == reached.index(True)


def test_inverse_cdf_takes_the_lower_level_where_the_noise_meets_its_sum():
    assert inverse_cdf(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0.5, 0.25]])).tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("coupling", COUPLINGS)
@given(case=weights_and_noise(), extreme=st.sampled_from([2.0**-53, 1 - 2.0**-53]))
@settings(max_examples=100, deadline=None)
def test_a_level_without_probability_is_never_drawn(coupling, case, extreme):
    probabilities, noise = case
    rows = np.arange(len(probabilities))
    for drawn_with in (noise, np.full_like(noise, extreme)):
        chosen = COUPLINGS[coupling](probabilities, drawn_with)
        assert (probabilities[rows, chosen] > 0).all()


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.filterwarnings("error")
def test_probabilities_at_the_edge_of_what_a_float_holds(coupling):
    tiny = 5e-324
    rows = np.array([[tiny, 1.0, 0.0], [0.0, tiny, 1.0], [1.0, 0.0, tiny]])
    noise = np.full((3, 3), 0.5)
    assert COUPLINGS[coupling](rows, noise).tolist() == [1, 2, 0]


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_couplings_draw_with_the_probabilities(coupling):
    one_row = np.array([[0.5, 0.0, 0.3, 0.19, 0.01]])
    noise = uniforms(1, "x", n=N, terms=5)
    assert close_to_expectation(COUPLINGS[coupling](one_row, noise), one_row.repeat(N, axis=0))


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_category_of_one_level_is_certain(coupling):
    mechanism = MultinomialVariable("x").fit(Parents(), pd.Categorical(["only"] * 3))
    noise = uniforms(1, "x", n=4)
    assert mechanism.evaluate(Parents(), noise, COUPLINGS[coupling]).tolist() == ["only"] * 4


# --- features ---------------------------------------------------------------------------


def test_features_are_standardised_numbers_and_indicators(people, parents):
    matrix = Features(parents).matrix(parents)
    frame = pd.DataFrame(dict(parents))
    expected = pd.get_dummies(frame.assign(age=(frame["age"] - frame["age"].mean())))
    expected["age"] /= frame["age"].std(ddof=0)
    np.testing.assert_allclose(matrix, expected.to_numpy(dtype=float), atol=1e-12)


def test_linear_is_the_product_with_the_matrix(parents):
    features = Features(parents)
    rng = np.random.default_rng(0)
    matrix, intercepts = features.matrix(parents), rng.normal(size=3)
    weights = rng.normal(size=(3, matrix.shape[1]))
    expected = weights @ matrix.T + intercepts[:, None]
    np.testing.assert_allclose(
        features.linear(parents, weights, intercepts), expected, rtol=0, atol=1e-12
    )


def test_a_forest_is_asked_once_for_all_who_are_alike(people, parents, monkeypatch):
    forest, calls = RandomForestClassifier(10, random_state=0), []
    learned = Learned(forest, parents, people["degree"].codes)

    def counted(rows, means=learned.forest.means):
        calls.append(len(rows))
        return means(rows)

    monkeypatch.setattr(learned.forest, "means", counted)
    matrix = Features(parents).matrix(parents)
    assert (forest.predict_proba(matrix) == learned(parents).T).all()
    distinct = len(pd.DataFrame(dict(parents)).drop_duplicates())
    assert calls == [distinct] and distinct < len(matrix)


def test_a_forest_with_more_combinations_than_an_integer_holds():
    rng = np.random.default_rng(1)
    columns = Parents({f"x{i}": rng.random(500) for i in range(9)})  # 500⁹ > 2⁶³
    columns["kind"] = pd.Categorical(rng.choice(list("abc"), 500))
    forest = RandomForestRegressor(10, random_state=0)
    found = Learned(forest, columns, rng.random(500))(columns)[0]
    assert (found == forest.predict(Features(columns).matrix(columns))).all()


def test_a_constant_number_is_no_division_by_zero():
    columns = {"x": np.full(3, 2.0)}
    assert Features(columns).matrix(columns).tolist() == [[0.0]] * 3


def test_a_constant_number_whose_mean_is_rounded_has_no_spread():
    columns = {"x": np.full(30, 0.1)}
    assert columns["x"].std() > 0  # of nothing but rounding
    assert Features(columns).matrix({"x": np.array([5.1])})[0, 0] == pytest.approx(5)


# --- without parents ----------------------------------------------------------------------


def test_constants_and_increments():
    noise = np.empty((0, 2))
    assert ConstantSampler("x", value=3).fit(Parents()).evaluate(Parents(), noise).tolist() == [
        3.0,
        3.0,
    ]
    level = ConstantSampler("x", value="b").fit(Parents(), pd.Categorical(["a", "b"]))
    drawn = level.evaluate(Parents(), noise)
    assert drawn.tolist() == ["b", "b"] and drawn.categories.tolist() == ["a", "b"]
    before = Parents(previous={"x": np.array([1.0, 5.0])})
    assert IncrementSampler("x", increment=-2).evaluate(before, noise).tolist() == [-1.0, 3.0]
    assert KeepPrevious("x").evaluate(before, noise).tolist() == [1.0, 5.0]


def test_a_constant_level_must_be_in_the_table():
    with pytest.raises(InputError, match="'x': level 'c' is unknown: expected one of a, b"):
        ConstantSampler("x", value="c").fit(Parents(), pd.Categorical(["a", "b"]))
    with pytest.raises(InputError, match="ConstantSampler must be fitted to levels, found numbers"):
        ConstantSampler("x", value="c").fit(Parents(), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match=r"'x': level 3[.]0 is unknown: expected one of a, b"):
        ConstantSampler("x", value=3).fit(Parents(), pd.Categorical(["a", "b"]))
    drawn = ConstantSampler("x", value=1).fit(Parents(), pd.Categorical([0, 1]))
    assert drawn.evaluate(Parents(), np.empty((0, 2))).tolist() == [1, 1]


def test_a_lower_bound_of_zero_makes_more_zeros_than_are_fitted(people, parents):
    fitted = ZeroOrGaussianRegressionSampler("gain", bounds=(0, np.inf), std_mod=3)
    fitted.fit(parents, people["gain"])
    noise = uniforms(1, "gain", n=len(people["gain"]), terms=2)
    zero, drawn = (
        noise[0] < expit(fitted.is_zero_(parents)[0]),
        fitted.evaluate(parents, noise) == 0,
    )
    below = fitted.predict(parents) + fitted.deviation(noise[1:]) <= 0
    assert (drawn == zero | below).all() and drawn.sum() > zero.sum()


@pytest.mark.parametrize("value", [True, False])  # as YAML reads yes and no
def test_a_truth_value_is_no_constant_and_no_probability(value):
    for values in (None, np.array([1.0, 2.0]), pd.Categorical(["no", "yes"])):
        with pytest.raises(
            InputError, match=f"'x': a level that YAML reads as {value} must stand in"
        ):
            ConstantSampler("x", value=value).fit(Parents(), values)
    with pytest.raises(ValueError, match=f"valid number .*input_value={value}"):
        LogisticTransitionSampler("x", p_stay=value)


@pytest.mark.parametrize(
    ("round_result", "bounds"),
    [(False, None), (True, None), (False, (20, 45)), (True, (18, 150)), (True, (37.3, 39.7))],
)
def test_a_normal_variable_is_redrawn_until_it_is_within_its_bounds(round_result, bounds):
    values = np.array([25.0, 35.0, 38.0, 55.0])
    mechanism = GaussianVariable("x", round_result=round_result, bounds=bounds)
    found = mechanism.fit(Parents(), values).evaluate(Parents(), uniforms(2, "x", n=N))
    low, high = bounds or (-np.inf, np.inf)
    rng, kept = np.random.default_rng(7), np.empty(0)
    while len(kept) < N:  # rejection, which the mechanism avoids
        drawn = rng.normal(values.mean(), values.std(), N)
        drawn = np.round(drawn) if round_result else drawn
        kept = np.append(kept, drawn[(drawn >= low) & (drawn <= high)])
    assert same_distribution(found, kept[:N])
    assert found.min() >= low and found.max() <= high


@pytest.mark.parametrize("scale", [1, 1 / 128])
@pytest.mark.parametrize(
    "bounds", [(-np.inf, np.inf), (18, 150), (0, 35), (45, 60), (85, 89.5), (-9, 2)]
)
def test_ordinary_bounds_give_the_formula_to_the_last_bit_in_any_unit(bounds, scale):
    low, high = np.multiply(bounds, scale)
    mechanism = GaussianVariable("x", bounds=None if low == -np.inf else (low, high))
    mechanism.fit(Parents(), np.array([30.0, 50.0]) * scale)  # 40 ± 10
    noise = uniforms(2, "x", n=1_000)
    a, b = (ndtr((bound - 40) / 10) for bound in bounds)
    expected = (40 + 10 * ndtri(a + noise[0] * (b - a))) * scale
    assert (mechanism.evaluate(Parents(), noise) == np.clip(expected, low, high)).all()


def test_a_constant_stays_what_it_is_in_every_bit():
    mechanism = GaussianVariable("x").fit(Parents(), np.full(2_000, 3.3))
    assert (mechanism.evaluate(Parents(), np.linspace(0.01, 0.99, 50)[None]) == 3.3).all()


@pytest.mark.parametrize(
    "bounds", [(115.5, 400), (300, 400), (300, np.inf), (500, 600), (-220, -35.5), (-600, -500)]
)
def test_bounds_far_from_the_mean_keep_their_digits(bounds):
    mechanism = GaussianVariable("x", bounds=bounds).fit(Parents(), np.array([30.0, 50.0]))
    noise = uniforms(2, "x", n=1_000)
    found = mechanism.evaluate(Parents(), noise)
    a, b = np.sort(np.copysign((np.array(bounds) - 40) / 10, -1))  # in the lower tail …
    upper = bounds[0] > 40
    u = 1 - noise[0] if upper else noise[0]
    # … by logarithms: log(Φ(a) + u (Φ(b) - Φ(a))).
    log_probability = log_ndtr(b) + np.log(u + (1 - u) * np.exp(log_ndtr(a) - log_ndtr(b)))
    expected = 40 + 10 * ndtri_exp(log_probability) * (-1 if upper else 1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert len(set(found)) == 1_000


@pytest.mark.parametrize("round_result", [False, True])
@pytest.mark.parametrize(
    ("bounds", "expected"),
    [(None, 7), ((7, 9), 7), ((0, 7), 7), ((0, 9), 7), ((8, 9), 8), ((0, 6), 6)],
)
def test_a_constant_column_stays_constant_within_its_bounds(round_result, bounds, expected):
    mechanism = GaussianVariable("x", round_result=round_result, bounds=bounds)
    found = mechanism.fit(Parents(), np.full(5, 7.0)).evaluate(Parents(), uniforms(1, "x", n=3))
    assert found.tolist() == [expected] * 3


@pytest.mark.parametrize("bounds", [(np.nan, 3), (3, np.nan), (np.nan, np.nan), (3, 3)])
def test_a_bound_is_a_number_below_the_other(bounds):
    for kind in (GaussianVariable, LinearGaussianSampler):
        with pytest.raises(ValueError, match="the lower bound must be below the upper bound"):
            kind("x", bounds=bounds)


def test_bounds_of_rounded_values_hold_a_whole_number():
    for kind in (GaussianVariable, LinearGaussianSampler):
        kind("x", round_result=True, bounds=(0.2, 1))
        kind("x", bounds=(0.2, 0.8))
        with pytest.raises(ValueError, match="a whole number must lie within the bounds"):
            kind("x", round_result=True, bounds=(0.2, 0.8))


def test_rounding_does_not_leave_the_bounds():
    values = np.array([-9.0, 2.4, 2.6, 3.5, 4.4, 9.0])
    assert bounded(values, True, (2.5, 4.5)).tolist() == [3, 3, 3, 4, 4, 4]
    assert bounded(values, True, (0, np.inf)).tolist() == [0, 2, 3, 4, 4, 9]
    assert bounded(values, False, (2.5, 4.5)).tolist() == [2.5, 2.5, 2.6, 3.5, 4.4, 4.5]
    assert bounded(values, True, None).tolist() == [-9, 2, 3, 4, 4, 9]


def test_a_parameter_is_a_finite_number_and_a_probability_at_most_1():
    for kind, wrong, rule in [
        (ConstantSampler, {"value": np.nan}, "a finite number"),
        (IncrementSampler, {"increment": np.inf}, "a finite number"),
        (GaussianRegressionSampler, {"std_mod": np.nan}, "a finite number"),
        (LogisticTransitionSampler, {"p_stay": np.nan}, "a finite number"),
        (LogisticTransitionSampler, {"p_stay": 1.01}, "less than or equal to 1"),
        (LogisticTransitionSampler, {"p_stay": -0.01}, "greater than or equal to 0"),
    ]:
        with pytest.raises(ValueError, match=f"should be {rule}"):
            kind("x", **wrong)


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0, 1.5, -2.0, 9.0], np.arange(50.0) ** 2])
def test_an_empirical_variable_has_the_values_of_the_table_and_their_shares(values):
    values = np.asarray(values)
    drawn = EmpiricalVariable("x").fit(Parents(), values).evaluate(Parents(), uniforms(3, "x", n=N))
    levels, shares = np.unique(values, return_counts=True)
    assert set(drawn) == set(levels)
    shares = (shares / len(values))[None, :].repeat(N, axis=0)
    assert close_to_expectation(np.searchsorted(levels, drawn), shares)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("kind", [MultinomialVariable, BernoulliVariable])
def test_frequencies_are_those_of_the_table(kind, coupling):
    values = pd.Categorical(["b"] * 7 + ["a"] * 3)
    mechanism = kind("x").fit(Parents(), values)
    assert mechanism.probabilities(Parents()).tolist() == [[0.3, 0.7]]
    noise = uniforms(3, "x", n=N, terms=2)
    drawn = mechanism.evaluate(Parents(), noise, COUPLINGS[coupling])
    assert close_to_expectation(drawn.codes, np.array([[0.3, 0.7]]).repeat(N, axis=0))


def test_a_bernoulli_variable_has_two_levels():
    with pytest.raises(InputError, match="'x': BernoulliVariable needs two levels, found 3"):
        BernoulliVariable("x").fit(Parents(), pd.Categorical(["a", "b", "c"]))


# --- classifiers ------------------------------------------------------------------------


# Another solver, on all records one by one.
EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


@pytest.mark.parametrize("effect", ["degree", "rich"])
@pytest.mark.parametrize("options", [{}, {"C": 0.01}])
def test_logistic_probabilities_are_those_of_scikit_learn(people, parents, effect, options):
    mechanism = LogisticSampler(effect, options=options).fit(parents, people[effect])
    matrix = Features(parents).matrix(parents)
    model = LogisticRegression(**EXACT, **options).fit(matrix, people[effect].codes)
    np.testing.assert_allclose(
        mechanism.probabilities(parents), model.predict_proba(matrix), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("solver", ["sag", "saga"])
def test_solvers_that_draw_rows_see_all_of_them(solver):
    rng = np.random.default_rng(0)
    causes = Parents({"x": rng.integers(6, size=900).astype(float)})
    rich = pd.Categorical(
        np.where(rng.random(900) < 1 / (1 + np.exp(3 - causes["x"])), "yes", "no")
    )
    options = {"solver": solver, "max_iter": 5_000, "random_state": 0}
    drawn, exact = (
        LogisticSampler("rich", options=more).fit(causes, rich).probabilities(causes)
        for more in (options, {})
    )
    np.testing.assert_allclose(drawn, exact, atol=0.005)


@pytest.mark.parametrize("effect", ["degree", "rich"])
def test_a_logistic_fit_hangs_on_no_order_of_the_records(people, parents, effect):
    order = np.random.default_rng(3).permutation(len(people[effect]))
    moved = Parents({name: column[order] for name, column in parents.items()})
    fits = (
        LogisticSampler(effect).fit(parents, people[effect]),
        LogisticSampler(effect).fit(moved, people[effect][order]),
    )
    one, other = (fit.probabilities(parents) for fit in fits)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_a_transition_stays_or_draws_in_favour_of_the_previous_level(people, parents):
    mechanism = LogisticTransitionSampler("degree", c_prev=1.5, p_stay=0.25)
    mechanism.fit(parents, people["degree"])
    matrix = Features(parents).matrix(parents)
    model = LogisticRegression(**EXACT).fit(matrix, people["degree"].codes)
    logits, previous = model.decision_function(matrix), people["degree"].codes[::-1]
    for row, code in enumerate(previous):
        logits[row, code] += 1.5
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True) * 0.75
    expected[np.arange(len(previous)), previous] += 0.25
    world = Parents(parents, {"degree": people["degree"][::-1]})
    np.testing.assert_allclose(mechanism.probabilities(world), expected, rtol=0, atol=1e-10)


def test_a_favour_beyond_what_a_float_holds_is_certain(people, parents):
    mechanism = LogisticTransitionSampler("degree", c_prev=1_000).fit(parents, people["degree"])
    stated = mechanism.probabilities(Parents(parents, {"degree": people["degree"]}))
    assert (stated.argmax(axis=1) == people["degree"].codes).all() and (
        stated.max(axis=1) == 1
    ).all()


def test_forest_probabilities_are_those_of_scikit_learn(people, parents):
    options = {"n_estimators": 15, "min_samples_leaf": 10}
    mechanism = RandomForestClassifierSampler("degree", options=options)
    mechanism.fit(parents, people["degree"], seed=3)
    matrix = Features(parents).matrix(parents)
    forest = RandomForestClassifier(random_state=3, **options)
    forest.fit(matrix, people["degree"].codes)
    assert (mechanism.probabilities(parents) == forest.predict_proba(matrix)).all()


def test_a_forest_gives_a_level_without_records_no_probability(people, parents):
    wider = pd.Categorical(people["rich"], categories=["maybe", "no", "yes"])
    mechanism = RandomForestClassifierSampler("rich", options={"n_estimators": 3})
    probabilities = mechanism.fit(parents, wider).probabilities(parents)
    assert (probabilities[:, 0] == 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_a_logistic_regression_refuses_a_level_without_records(people, parents):
    wider = pd.Categorical(people["rich"], categories=["maybe", "no", "yes"])
    with pytest.raises(InputError, match="'rich': 1 of its levels do not occur in the table"):
        LogisticSampler("rich").fit(parents, wider)


# --- regressions ------------------------------------------------------------------------

MODELS = {
    "LinearRegression": LinearRegression,
    "Ridge": Ridge,
    "RandomForestRegressor": RandomForestRegressor,
}


@pytest.mark.parametrize(
    ("mechanism", "estimator", "options"),
    [
        (LinearGaussianSampler, "LinearRegression", {}),
        (GaussianRegressionSampler, "Ridge", {"alpha": 20.0}),
        (GaussianRegressionSampler, "LinearRegression", {}),
        (GaussianRegressionSampler, "RandomForestRegressor", {"n_estimators": 5}),
        (GaussianRandomForestSampler, "RandomForestRegressor", {"min_samples_leaf": 30}),
        (UniformRegressionSampler, "Ridge", {}),
    ],
)
def test_regressions_are_mean_and_noise_of_the_size_of_the_error(
    people, parents, many, mechanism, estimator, options
):
    options = {"n_estimators": 10, **options} if "Forest" in estimator else options
    fitted = mechanism("pay", estimator=estimator, std_mod=1.5, options=options)
    fitted.fit(parents, people["pay"], seed=2)
    matrix = Features(parents).matrix(parents)
    seeded = {"random_state": 2} if estimator != "LinearRegression" else {}
    model = MODELS[estimator](**seeded, **options).fit(matrix, people["pay"])
    mean = model.predict(matrix)
    np.testing.assert_allclose(fitted.predict(parents), mean, rtol=1e-12)
    size = 1.5 * np.sqrt(np.mean((people["pay"] - mean) ** 2))
    causes, rows = many
    residuals = fitted.evaluate(causes, uniforms(4, "pay", n=N)) - mean[rows]
    rng = np.random.default_rng(3)
    expected = (
        rng.uniform(-np.sqrt(3), np.sqrt(3), N)
        if mechanism is UniformRegressionSampler
        else rng.normal(size=N)
    )
    assert same_distribution(residuals, size * expected)


def test_rounded_values_are_whole_numbers_within_the_bounds(people, parents):
    plain = LinearGaussianSampler("pay").fit(parents, people["pay"])
    both = LinearGaussianSampler("pay", bounds=(25_000.5, 36_000.2), round_result=True)
    both.fit(parents, people["pay"])
    noise = uniforms(1, "pay", n=len(people["pay"]))
    expected = np.clip(np.round(plain.evaluate(parents, noise)), 25_001, 36_000)
    assert (both.evaluate(parents, noise) == expected).all()
    assert {25_001.0, 36_000.0} <= set(expected)


def test_zero_or_a_regression_of_those_that_are_not_zero(people, parents, many):
    mechanism = ZeroOrGaussianRegressionSampler("gain", estimator="Ridge", std_mod=0.5)
    mechanism.fit(parents, people["gain"])
    matrix, zero = Features(parents).matrix(parents), people["gain"] == 0
    classifier = LogisticRegression(**EXACT).fit(matrix, zero)
    ridge = Ridge().fit(matrix[~zero], people["gain"][~zero])
    error = np.sqrt(np.mean((people["gain"] - ridge.predict(matrix))[~zero] ** 2))
    causes, rows = many
    found = mechanism.evaluate(causes, uniforms(5, "gain", n=N, terms=2))
    rng = np.random.default_rng(8)
    p_zero = classifier.predict_proba(matrix)[rows, 1]
    np.testing.assert_allclose(expit(mechanism.is_zero_(causes)[0]), p_zero, rtol=0, atol=1e-10)
    expected = ridge.predict(matrix)[rows] + 0.5 * error * rng.normal(size=N)
    expected[rng.random(N) < p_zero] = 0
    assert same_distribution(found, expected)
    count, deviation = p_zero.sum(), np.sqrt((p_zero * (1 - p_zero)).sum())
    assert abs((found == 0).sum() - count) < Z * deviation


@pytest.mark.parametrize("values", [np.zeros(3), np.ones(3)])
def test_zero_or_a_regression_needs_both(values):
    causes = Parents({"age": np.arange(3.0)})
    with pytest.raises(InputError, match=r"'gain': .* needs zeros and other values, found"):
        ZeroOrGaussianRegressionSampler("gain").fit(causes, values)


# --- counts -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counts(many):
    """Counts of N people whose mean and dispersion are known."""
    causes, _ = many
    mean = np.exp(0.3 + 0.02 * (causes["age"] - 50) + 0.7 * (causes["sex"] == "F"))
    rng = np.random.default_rng(6)
    # A gamma mixture of Poisson counts, which is what negative binomial means.
    return rng.poisson(mean * rng.gamma(1 / 0.8, 0.8, N)).astype(float), mean


def test_counts_have_the_mean_and_the_dispersion_that_made_them(many, counts):
    causes, _ = many
    fitted = NegativeBinomialSampler("visits").fit(causes, counts[0])
    np.testing.assert_allclose(fitted.mean(causes), counts[1], rtol=0.1)
    assert abs(fitted.dispersion_ - 0.8) < 0.05
    model = PoissonRegressor(alpha=0, max_iter=10_000, tol=1e-8)
    matrix = Features(causes).matrix(causes)
    expected = model.fit(matrix, counts[0]).predict(matrix)
    np.testing.assert_allclose(fitted.mean(causes), expected, rtol=1e-10)
    for job in causes["job"].categories:  # without a penalty, the means of levels are the table's
        here = causes["job"] == job
        assert abs(fitted.mean(causes)[here].mean() - counts[0][here].mean()) < 1e-3


def test_counts_are_drawn_from_a_gamma_mixture_of_poisson_counts(many, counts):
    causes, _ = many
    fitted = NegativeBinomialSampler("visits").fit(causes, counts[0])
    drawn, alpha = fitted.evaluate(causes, uniforms(7, "visits", n=N)), fitted.dispersion_
    rng = np.random.default_rng(8)
    mixed = rng.poisson(fitted.mean(causes) * rng.gamma(1 / alpha, alpha, N))
    assert same_distribution(drawn, mixed)
    assert ((drawn >= 0) & (drawn % 1 == 0)).all()
    # With its own noise, nobody has fewer visits where more are expected.
    more = Parents(causes | {"sex": pd.Categorical(["F"] * N, causes["sex"].categories)})
    assert (fitted.evaluate(more, uniforms(7, "visits", n=N)) >= drawn).all()


def test_counts_that_vary_less_than_poisson_are_drawn_from_poisson(many):
    causes, _ = many
    fitted = NegativeBinomialSampler("visits").fit(causes, np.tile([2.0, 3.0], N // 2))
    drawn = fitted.evaluate(causes, uniforms(7, "visits", n=N))
    mean = fitted.mean(causes)
    assert same_distribution(drawn, np.random.default_rng(8).poisson(mean))


@pytest.mark.parametrize(("wrong", "found"), [(-1.0, "-1"), (0.5, "0.5"), (1e13, r"1e\+13")])
def test_only_counts_are_counted(wrong, found):
    causes = Parents({"age": np.arange(3.0)})
    message = rf"'x': NegativeBinomialSampler needs counts from 0 to 1e\+12, found {found}"
    with pytest.raises(InputError, match=message):
        NegativeBinomialSampler("x").fit(causes, np.array([0.0, wrong, 2.0]))


def test_counts_of_zero_alone_say_nothing_of_what_raises_them():
    with pytest.raises(InputError, match="'x': NegativeBinomialSampler needs counts, not all of"):
        NegativeBinomialSampler("x").fit(Parents({"age": np.arange(3.0)}), np.zeros(3))


@pytest.mark.parametrize(("age", "found"), [(60.0, r"\d[.\d]*e\+\d\d"), (5_000.0, "inf")])
def test_counts_that_grow_beyond_all_bounds_are_refused(age, found):
    ages = np.arange(20.0)
    fitted = NegativeBinomialSampler("x").fit(Parents({"age": ages}), 2.0**ages)
    with pytest.raises(InputError, match=rf"from 0 to 1e\+12, found {found}"):
        fitted.evaluate(Parents({"age": np.array([age])}), np.full((1, 1), 0.5))


# --- rules for all ------------------------------------------------------------------------


def every_mechanism(people, parents):
    """Each general mechanism, fitted, with the name of its effect."""
    effects = {"MultinomialVariable": "degree", "BernoulliVariable": "rich"}
    effects |= {"LogisticSampler": "degree", "LogisticTransitionSampler": "degree"}
    effects |= {"RandomForestClassifierSampler": "degree", "None": "degree"}
    effects |= {"NegativeBinomialSampler": "visits"}
    for name, kind in MECHANISMS.items():
        if name in ("gaussian", "multinomial", "bernoulli"):
            continue
        effect = effects.get(name, "gain" if "Zero" in name else "pay")
        small = {"options": {"n_estimators": 5}} if "Forest" in name else {}
        if name == "ConstantSampler":
            small = {"value": 4.0}
        if name == "LogisticTransitionSampler":
            small = {"p_stay": 0.3, "c_prev": 1.0}
        yield name, kind(effect, **small).fit(parents, people[effect], seed=1)


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_no_subject_depends_on_those_computed_with_it(people, parents, coupling):
    n = 101
    now = {name: column[:n] for name, column in parents.items()}
    past = {name: people[name][n : 2 * n] for name in ("pay", "gain", "degree", "rich")}
    rng = np.random.default_rng(0)
    for name, mechanism in every_mechanism(people, parents):
        noise = rng.random((mechanism.noise_terms, n))
        categorical = isinstance(mechanism, CategoricalMechanism)
        coupled = {"coupling": COUPLINGS[coupling]} if categorical else {}

        def values(rows, mechanism=mechanism, noise=noise, coupled=coupled):
            world = Parents(
                {cause: column[rows] for cause, column in now.items()},
                {cause: column[rows] for cause, column in past.items()},
            )
            column = mechanism.evaluate(world, noise[:, rows], **coupled)
            return np.asarray(getattr(column, "codes", column))

        whole = values(slice(0, n)).tobytes()
        for cuts in ([0, 1, n], [0, 37, 50, n], list(range(n + 1))):
            parts = [values(slice(*cut)) for cut in pairwise(cuts)]
            assert np.concatenate(parts).tobytes() == whole, name


@pytest.mark.parametrize("coupling", COUPLINGS)
def test_what_is_drawn_has_the_probabilities_that_are_stated(people, parents, many, coupling):
    causes, rows = many
    past = {name: people[name][rows[::-1]] for name in ("degree", "rich")}
    world = Parents(causes, past)
    for name, mechanism in every_mechanism(people, parents):
        if not isinstance(mechanism, CategoricalMechanism):
            continue
        probabilities = mechanism.probabilities(world)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)
        noise = uniforms(9, name, n=N, terms=mechanism.noise_terms)
        codes = mechanism.evaluate(world, noise, COUPLINGS[coupling]).codes
        wide = np.broadcast_to(probabilities, (N, probabilities.shape[1]))
        assert close_to_expectation(codes, wide), name


def test_the_quality_of_a_fit_is_measured_on_what_it_is_fitted_to(people, parents):
    for kind, effect in (
        (LogisticSampler, "rich"),
        (ZeroOrGaussianRegressionSampler, "gain"),
        (NegativeBinomialSampler, "visits"),
    ):
        fitted, values = kind(effect).fit(parents, people[effect]), people[effect]
        if effect == "rich":
            expected = "AUC", roc_auc_score(values == "yes", fitted.probabilities(parents)[:, 1])
        elif effect == "gain":  # the regression is of those that are not zero
            some = values != 0
            expected = "R²", r2_score(values[some], fitted.predict(parents)[some])
        else:
            expected = "R²", r2_score(values, fitted.mean(parents))
        assert fitted.fit_quality(parents, values) == expected


def test_two_fits_with_one_seed_are_one(people, parents):
    noise = uniforms(1, "x", n=len(people["age"]), terms=4)
    past = {name: people[name] for name in ("pay", "degree", "gain", "rich")}
    world = Parents(parents, past)
    pairs = zip(every_mechanism(people, parents), every_mechanism(people, parents), strict=True)
    for (name, one), (_, other) in pairs:
        terms = noise[: one.noise_terms]
        first, second = one.evaluate(world, terms), other.evaluate(world, terms)
        assert pd.Series(first).equals(pd.Series(second)), name


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (LogisticSampler, {}),
        (RandomForestClassifierSampler, {}),
        (LinearGaussianSampler, {}),
        (GaussianRegressionSampler, {"estimator": "Ridge"}),
        (GaussianRandomForestSampler, {}),
    ],
)
def test_an_option_that_scikit_learn_does_not_have_is_refused(kind, fields):
    message = r"key 'leafs' is unknown: expected one of [\w, ]+(verbose|tol)"
    with pytest.raises(ValueError, match=message) as raised:
        kind("x", options={"leafs": 3}, **fields)
    assert "noise_terms" not in str(raised.value)


def test_numbers_and_levels_are_told_apart():
    text, absent = pd.Categorical(["a", "b"]), None
    with pytest.raises(
        InputError, match="'x': GaussianVariable must be fitted to numbers, found levels a, b"
    ):
        GaussianVariable("x").fit(Parents(), text)
    with pytest.raises(InputError, match=r"'x': GaussianVariable .* found no such column"):
        GaussianVariable("x").fit(Parents(), absent)
    with pytest.raises(InputError, match=r"'x': MultinomialVariable .* found no such column"):
        MultinomialVariable("x").fit(Parents(), absent)


def test_kinds_are_those_of_levels_not_of_what_is_printed():
    kinds = [None, *(pd.CategoricalDtype(of) for of in (["0", "1"], [0, 1], [1, 0], [False, True]))]
    for one, other in itertools.product(kinds, kinds):
        assert same_kind(one, other) == (one is other)
    assert same_kind(pd.Categorical([0, 1]), kinds[2]) and same_kind(np.ones(2), None)
    column = CategoricalMechanism.own(MultinomialVariable("x"), pd.Categorical([0, 1]), kinds[2])
    assert column.tolist() == [0, 1]
    with pytest.raises(InputError, match="fitted to levels '0', '1', found levels 0, 1"):
        CategoricalMechanism.own(MultinomialVariable("x"), pd.Categorical([0, 1]), kinds[1])


def test_without_its_penalty_a_logistic_regression_states_the_shares_of_the_table():
    ill, drug = np.repeat(["no", "yes"], [50, 10]), np.tile(["new", "old", "old", "old", "old"], 12)
    drug[-3:] = "new"
    columns = {"ill": pd.Categorical(ill), "drug": pd.Categorical(drug)}
    found = {}
    for c in (1.0, np.inf):
        fitted = LogisticSampler("drug", options={"C": c})
        fitted.fit(Parents({"ill": columns["ill"]}), columns["drug"])
        found[c] = fitted.probabilities(Parents({"ill": pd.Categorical(["no", "yes"])}))[:, 0]
    shares = [(drug[ill == level] == "new").mean() for level in ("no", "yes")]
    np.testing.assert_allclose(found[np.inf], shares, atol=1e-6)
    assert np.abs(found[1.0] - shares).max() > 0.01


def test_columns_of_many_levels_do_not_meet():
    """A code of eight bits and the place of a column may be more than eight bits together."""
    first = pd.Categorical.from_codes([99, 0], [f"a{k}" for k in range(100)])
    second = pd.Categorical.from_codes([99, 0], [f"b{k}" for k in range(100)])
    parents = {"first": first, "second": second}
    rows, columns = Features(parents).matrix(parents).nonzero()
    assert (rows.tolist(), columns.tolist()) == ([0, 0, 1, 1], [99, 199, 0, 100])
