"""The hand-made mechanisms, each against its rule written out a second time, subject by subject."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score

from lib.adult import EDUCATION_LEVELS, load_adult
from lib.errors import InputError
from lib.income.mechanisms import (
    MECHANISMS,
    STUDIES,
    EducationNumSampler,
    EducationTransition,
    IncomeSampler,
    MaritalStatusTransition,
    StudiesSampler,
)
from lib.noise import uniforms
from lib.scm import Simulator, Specification
from lib.scm.mechanisms import Features, Parents

NO, EVENING, DAY, FULL = "No studies", "Evening course", "Day course", "Full-time studies"

#: Subjects in the hand-made world; each has another combination of causes.
N = 600


@pytest.fixture(scope="module")
def table():
    """A part of Adult in which every level occurs."""
    adult = load_adult()
    rare = [adult.groupby(name, observed=True).head(2) for name in adult.select_dtypes("category")]
    return pd.concat([adult.sample(3_000, random_state=1), *rare], ignore_index=True)


@pytest.fixture(scope="module")
def fitted(table):
    return Simulator(Specification.from_yaml("data/specs/income_scm_1.0.yml", MECHANISMS)).fit(
        table, seed=2
    )


@pytest.fixture(scope="module")
def as_meant():
    """The mechanisms of version 1.1, not fitted."""
    return Specification.from_yaml("data/specs/income_scm_1.1.yml", MECHANISMS)


@pytest.fixture(scope="module")
def world(fitted):
    """Two steps of N subjects, with studies, work and incomes mixed so that every rule applies."""
    seen = fitted.sample(n=N, horizon=2, seed=6)
    columns = [
        {name: seen.loc[seen["t"] == t, name].reset_index(drop=True) for name in fitted.kinds_}
        for t in (0, 1)
    ]
    rng = np.random.default_rng(9)
    for at in columns:
        at["studies"] = pd.Series(rng.choice(STUDIES.categories, N)).astype(STUDIES)
        at["education"] = (
            at["education"]
            .where(rng.random(N) < 0.5, pd.Series(rng.choice(EDUCATION_LEVELS, N)))
            .astype(at["education"].dtype)
        )
        at["education-num"] = at["education"].map(EDUCATION_LEVELS.index).astype(float) + 1
        at["workclass"] = at["workclass"].mask(rng.random(N) < 0.2, "Without-pay")
        at["marital-status"] = pd.Series(
            rng.choice(at["marital-status"].cat.categories, N), dtype=at["marital-status"].dtype
        )
        at["relationship"] = at["relationship"].mask(rng.random(N) < 0.2, "Own-child")
        at["income"] = pd.Series(
            rng.choice([0, 4_999, 5_000, 30_000, 50_000, 50_001, 120_000], N).astype(float)
        )
        at["capital-net"] = at["capital-net"].mask(rng.random(N) < 0.3, 2_500.0)
    before, now = (
        {
            name: column.array if hasattr(column, "cat") else column.to_numpy()
            for name, column in at.items()
        }
        for at in columns
    )
    return Parents(now, before)


def subjects(world):
    """Each subject's values today and the year before, as plain dictionaries."""
    now = pd.DataFrame(dict(world)).to_dict("records")
    before = pd.DataFrame(world.previous).to_dict("records")
    return list(zip(now, before, strict=True))


def assert_probabilities(mechanism, world, rule):
    """Compare stated probabilities with a rule that maps one subject to weights of levels."""
    found = mechanism.probabilities(world)
    for row, (now, before), i in zip(found, subjects(world), range(N), strict=True):
        weights = rule(now, before, i)
        expected = [weights.get(level, 0.0) for level in mechanism.levels_.categories]
        np.testing.assert_allclose(row, np.array(expected) / sum(expected), rtol=0, atol=1e-12)


# --- education ---------------------------------------------------------------------------


def test_education_num_is_the_rank():
    parents = Parents({"education": pd.Categorical(EDUCATION_LEVELS[::-1])})
    found = EducationNumSampler("education-num").evaluate(parents, np.empty((0, 16)))
    assert found.tolist() == list(range(16, 0, -1))


def test_education_rises_one_level_by_last_years_studies(fitted, world):
    chance = {FULL: 0.95, DAY: 0.10, EVENING: 0.05, NO: 0.0}

    def rule(now, before, i):
        level = before["education"]
        if level == "Doctorate":
            return {level: 1.0}
        above = EDUCATION_LEVELS[EDUCATION_LEVELS.index(level) + 1]
        rises = chance[before["studies"]]
        return {level: 1 - rises, above: rises}

    assert_probabilities(fitted.transition_["education"], world, rule)


def test_education_needs_adults_levels_in_order():
    with pytest.raises(
        InputError,
        match=r"'education': EducationTransition must be fitted to levels Preschool, "
        r".*, found levels ",
    ):
        EducationTransition("education").fit(Parents(), pd.Categorical(EDUCATION_LEVELS))


# --- work and family ---------------------------------------------------------------------


def test_workclass(fitted, world, table):
    frequencies = table["workclass"].value_counts(normalize=True).to_dict()

    def rule(now, before, i):
        if before["studies"] == FULL:
            return {"Without-pay": 1.0}
        stays = 0.0 if before["workclass"] == "Without-pay" else 0.95
        weights = {level: (1 - stays) * share for level, share in frequencies.items()}
        weights[before["workclass"]] += stays
        return weights

    assert_probabilities(fitted.transition_["workclass"], world, rule)


ALLOWED = {
    "Never-married": {"Never-married", "Married"},
    "Married": {"Married", "Divorced", "Separated", "Widowed"},
    "Divorced": {"Divorced", "Married"},
    "Separated": {"Separated", "Married", "Divorced", "Widowed"},
    "Widowed": {"Widowed", "Married"},
}


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_marital_status(fitted, as_meant, world, table, version):
    mechanism = fitted.transition_["marital-status"]
    if version == "1.1":
        mechanism = as_meant.transition("marital-status", fitted.initial_["marital-status"])
        mechanism.fit(Parents({"age": table["age"].to_numpy()}), table["marital-status"].array, 2)
    age, mean, deviation = table["age"], table["age"].mean(), table["age"].std(ddof=0)
    forest = RandomForestClassifier(n_estimators=100, random_state=2)
    forest.fit(((age - mean) / deviation).to_numpy()[:, None], table["marital-status"].astype(str))
    by_age = forest.predict_proba(((world["age"] - mean) / deviation)[:, None])
    after_studies = {"Never-married": 4, "Married": 1.2}  # the others, 2, cannot follow it

    def rule(now, before, i):
        previous = before["marital-status"]
        weights = dict(zip(forest.classes_, by_age[i], strict=True))
        if version == "1.1" and previous == "Never-married" and before["studies"] == FULL:
            weights = {level: w * after_studies.get(level, 2) for level, w in weights.items()}
        weights = {level: w * (level in ALLOWED[previous]) for level, w in weights.items()}
        weights[previous] += 5
        return weights

    assert_probabilities(mechanism, world, rule)


def test_marital_status_knows_its_levels():
    people = {"age": np.array([20.0, 30.0])}
    with pytest.raises(InputError, match="level 'Engaged' is unknown: expected one of Never-marr"):
        MaritalStatusTransition("m").fit(Parents(people), pd.Categorical(["Engaged", "Married"]))
    with pytest.raises(ValueError, match=r"after_studies\.Engaged"):  # before anything is fitted
        MaritalStatusTransition("m", after_studies={"Engaged": 2})


@pytest.mark.parametrize(
    ("variable", "version"),
    [("occupation", "1.0"), ("occupation", "1.1"), ("relationship", "1.0")],
)
def test_occupation_and_relationship_stay_or_are_drawn_anew(
    fitted, as_meant, world, table, variable, version
):
    mechanism, initial = fitted.transition_[variable], fitted.initial_[variable]
    if version == "1.1":
        mechanism = as_meant.transition(variable, initial).fit(Parents())
    today = initial.probabilities(world)

    def rule(now, before, i):
        stays = 0.225 if version == "1.1" and before["studies"] == FULL else 0.9
        weights = dict(zip(initial.levels_.categories, (1 - stays) * today[i], strict=True))
        weights[before[variable]] += stays
        return weights

    assert_probabilities(mechanism, world, rule)


def test_hours_are_nine_tenths_of_last_years(fitted, world):
    noise = uniforms(1, "hours", n=N)
    drawn = fitted.initial_["hours-per-week"].evaluate(world, noise)
    found = fitted.transition_["hours-per-week"].evaluate(world, noise)
    for hours, draw, (_, before) in zip(found, drawn, subjects(world), strict=True):
        # Whole numbers often tie at a half, and may go either way.
        assert abs(hours - (0.9 * before["hours-per-week"] + 0.1 * draw)) < 0.5 + 1e-9
        assert hours == int(hours)
    # The bounds of later steps are those of a week, not the 0 to 100 of the first.
    for last_year, bound in ((1_000.0, 168), (-1_000.0, 0)):
        extreme = Parents(world, {"hours-per-week": np.full(N, last_year)})
        assert (fitted.transition_["hours-per-week"].evaluate(extreme, noise) == bound).all()


def test_capital_stays_four_times_in_five(fitted, world):
    mechanism, initial = fitted.transition_["capital-net"], fitted.initial_["capital-net"]
    noise = uniforms(2, "capital", n=N, terms=mechanism.noise_terms)
    redrawn = initial.evaluate(world, noise[2:])
    found = mechanism.evaluate(world, noise)
    stays = noise[0] < 0.8
    assert 0 < stays.sum() < N
    for i, (_, before) in enumerate(subjects(world)):
        previous = before["capital-net"]
        if not stays[i]:
            assert found[i] == redrawn[i]
        elif previous == 0:
            assert found[i] == 0
        else:
            assert found[i] == np.round(previous + initial.error_ * norm.ppf(noise[1, i]))


def test_capital_stays_within_the_bounds_of_its_initial_model():
    rng, n = np.random.default_rng(3), 400
    values = np.where(rng.random(n) < 0.5, 0, rng.exponential(1_000, n))
    initial = {"type": "ZeroOrGaussianRegressionSampler", "bounds": [100.4, 1500.2], "std_mod": 2}
    capital = {
        "parents": ["age"],
        "sampler": initial,
        "seq_parents_curr": ["age"],
        "seq_sampler": {"type": "CapitalTransition", "sampler": "#init_sampler", "p_stay": 1},
    }
    variables = {"age": {"sampler": "gaussian"}, "capital": capital}
    table = pd.DataFrame({"age": rng.normal(size=n), "capital": values})
    simulator = Simulator(Specification(variables, types=MECHANISMS)).fit(table)
    world = simulator.sample(n, 5)
    later = world.loc[world["t"] > 0, "capital"]
    assert set(later.unique()) >= {0.0, 101.0, 1500.0}  # who has nothing, keeps nothing
    assert later[later != 0].between(101, 1500).all()


# --- studies -----------------------------------------------------------------------------


def initial_studies(now) -> dict[str, float]:
    """The weights of the four levels at the first step, from the table of scores."""
    years = now["age"] - 25
    none, evening, day, full = 7 + 2 * years, -5 + years, -3.5, 3 - 0.5 * years
    if now["relationship"] == "Own-child":
        none, full = none + 3, full - 10
    if now["education-num"] in {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12}:
        full += 5
    if now["education"] == "Bachelors":
        evening, day, full = evening - 4, day - 4, full - 4
    if now["education"] == "HS-grad":
        evening, day, full = evening - 2, day - 2, full - 2
    scores = {NO: none, EVENING: evening, DAY: day, FULL: full}
    return {level: 1 / (1 + math.exp(-score / 1.2)) for level, score in scores.items()}


def test_studies_in_the_first_year(fitted, world):
    assert_probabilities(
        fitted.initial_["studies"], world, lambda now, before, i: initial_studies(now)
    )


def test_studies_of_a_25_year_old_with_a_masters_degree():
    person = {
        "age": np.array([25.0]),
        "education": pd.Categorical(["Masters"]),
        "education-num": np.array([14.0]),
        "relationship": pd.Categorical(["Husband"]),
    }
    odds = [1 / (1 + math.exp(-score / 1.2)) for score in (7, -5, -3.5, 3)]
    found = StudiesSampler("studies").probabilities(Parents(person))[0]
    np.testing.assert_allclose(found, np.array(odds) / sum(odds), atol=1e-12)


def test_studies_later(fitted, world):
    unfinished = {"Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"}
    unfinished |= {"Some-college", "Assoc-voc", "Assoc-acdm"}

    def rule(now, before, i):
        weights = initial_studies(now)
        if before["studies"] == FULL and now["education"] in unfinished:
            weights[FULL] *= 5
        if before["studies"] != FULL:
            weights[FULL] *= 0.05
        if before["income"] > 50_000:
            weights[FULL] *= 0.2
            weights[DAY] *= 0.44
        if now["education"] == "Doctorate":
            weights[FULL] = 0
        return weights

    assert_probabilities(fitted.transition_["studies"], world, rule)


# --- income ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def income_model(fitted, table):
    """The forest and the constants of the first step, fitted a second time."""
    causes = [c for c in fitted.specification.variables["income"].parents if c != "studies"]
    columns = {
        c: table[c].array
        if isinstance(table[c].dtype, pd.CategoricalDtype)
        else table[c].to_numpy()
        for c in causes
    }
    features, rich = Features(columns), (table["income"] == ">50K").to_numpy(dtype=float)
    forest = RandomForestRegressor(100, min_samples_leaf=20, random_state=2)
    forest.fit(features.matrix(columns), rich)
    predicted = forest.predict(features.matrix(columns))
    brier = np.mean((rich - predicted) ** 2)
    epsilon = norm.ppf(uniforms(2, "income in the table", n=len(table))[0])
    squares = np.maximum(predicted + 0.2 * epsilon + 0.3, 0) ** 2
    a = squares.mean()
    b = math.floor(70_000 * squares.max() / a)
    return lambda world: forest.predict(features.matrix(world)), brier, a, b


def test_income_in_the_first_year(fitted, world, income_model):
    predict, brier, a, b = income_model
    noise = uniforms(3, "income", n=N, terms=2)
    # Some draw so low that nothing is left of the prediction.
    noise[0, :40] = 1e-9
    found = fitted.initial_["income"].evaluate(world, noise)
    predicted, none = predict(world), 0
    for i, (now, _) in enumerate(subjects(world)):
        q = max(predicted[i] + 0.2 * norm.ppf(noise[0, i]) + 0.3, 0) ** 2
        s = math.floor(70_000 * q / a)
        tail = beta.ppf(noise[1, i], 1.2, 20.5) * b * math.sqrt(brier) if s > 0 else 0
        expected = s * (1 - math.sqrt(brier)) + tail
        if now["studies"] == DAY:
            expected *= 4 / 5
        if now["studies"] == FULL or now["workclass"] == "Without-pay":
            expected = 0
        none += s == 0
        assert found[i] == pytest.approx(expected, abs=0.5 + 1e-6) and found[i] == round(found[i])
    assert none > 0


def test_the_mean_of_income_does_not_depend_on_one_draw(fitted, table, income_model):
    predict, _, a, _ = income_model
    causes = {c: table[c].array for c in table if c != "income"}
    causes |= {c: table[c].to_numpy() for c in table.select_dtypes("number")}
    predicted = predict(causes)
    auc = roc_auc_score(table["income"] == ">50K", predicted)
    assert fitted.initial_["income"].fit_quality(causes, table["income"].array) == ("AUC", auc)
    rng = np.random.default_rng(1)
    squares = np.maximum(predicted + 0.2 * rng.normal(size=len(table)) + 0.3, 0) ** 2
    # Two draws of noise for the same people: five standard errors of their difference.
    noise = squares.std() * math.sqrt(2 / len(table))
    assert abs(squares.mean() - a) < 5 * noise


@pytest.mark.parametrize("values", [pd.Categorical(["low", "high"]), None])
def test_income_is_learned_from_its_two_levels(values):
    with pytest.raises(InputError, match="'income': IncomeSampler "):
        IncomeSampler("income").fit(Parents({"age": np.array([1.0, 2.0])}), values)


def test_income_later(fitted, world):
    mechanism, initial = fitted.transition_["income"], fitted.initial_["income"]
    noise = uniforms(4, "income", n=N, terms=mechanism.noise_terms)
    found = mechanism.evaluate(world, noise)
    drawn = initial.evaluate(world, noise[2:])
    afresh = dict.fromkeys(["begins or ends studies", "without pay", "poor", "none"], 0)
    for i, (now, before) in enumerate(subjects(world)):
        new = drawn[i]
        if new > 0 and before["studies"] == DAY:
            new += 1_000 * noise[0, i]
        if new > 0 and before["studies"] == EVENING:
            new += 100 * noise[0, i]
        weight, reason = 0.95, "none"
        if (before["studies"] == FULL) is not (now["studies"] == FULL):
            weight, reason = 0, "begins or ends studies"
        elif now["workclass"] == "Without-pay":
            weight, reason = 0, "without pay"
        elif before["income"] < 5_000:
            weight, reason = 0, "poor"
        afresh[reason] += 1
        expected = weight * before["income"] * (1 + 0.05 * noise[1, i]) + (1 - weight) * new
        if now["studies"] == FULL:
            expected = 0
        if now["studies"] == DAY:
            expected *= 4 / 5
        assert found[i] == pytest.approx(expected, abs=0.5 + 1e-6) and found[i] == round(found[i])
    assert min(afresh.values()) > 10  # every rule was met


def test_no_subject_depends_on_those_computed_with_it(fitted, world):
    for name, mechanism in [*fitted.initial_.items(), *fitted.transition_.items()]:
        noise = uniforms(5, name, n=N, terms=mechanism.noise_terms)

        def values(rows, mechanism=mechanism, noise=noise):
            part = Parents(
                {cause: column[rows] for cause, column in world.items()},
                {cause: column[rows] for cause, column in world.previous.items()},
            )
            if hasattr(mechanism, "probabilities"):  # to the last bit, not only the level drawn
                probabilities = mechanism.probabilities(part)
                return np.broadcast_to(probabilities, (noise[:, rows].shape[1], len(noise)))
            column = mechanism.evaluate(part, noise[:, rows])
            return np.asarray(getattr(column, "codes", column))

        whole = values(slice(0, N))
        for i in range(50):
            assert values(slice(i, i + 1)).tobytes() == whole[i : i + 1].tobytes(), name
        halves = [values(slice(0, 301)), values(slice(301, N))]
        assert np.concatenate(halves).tobytes() == whole.tobytes(), name


def test_what_a_designed_mechanism_learns_from_must_be_in_the_table(table):
    def constant(value):
        return {"sampler": {"type": "ConstantSampler", "value": value}}

    entries = {
        "age": constant(40),
        "studies": constant(NO),
        "marital-status": {
            "sampler": "multinomial",
            "seq_parents_curr": ["age"],
            "seq_parents_prev": ["studies"],
            "seq_sampler": "MaritalStatusTransition",
        },
    }
    simulator = Simulator(Specification(entries, types=MECHANISMS))
    sentence = "'marital-status': MaritalStatusTransition learns from parent 'age', which is"
    rule = f"{sentence} numbers in the model and must be so in the table: found 'no such"
    with pytest.raises(InputError, match=rule):
        simulator.fit(table.drop(columns="age"))
    assert set(simulator.fit(table).sample(n=5, horizon=2)["studies"]) == {NO}
