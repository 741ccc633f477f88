"""Estimators of regimes against a world that can be counted out, and against other programs."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from statsmodels.regression.linear_model import OLS, WLS
from statsmodels.tools import add_constant

from lib.effects import longitudinal
from lib.effects.learners import dealt
from lib.effects.longitudinal import (
    ENTRANTS,
    Panel,
    decided,
    doubly_robust,
    g_computation,
    iterated,
    marked,
    regression,
    structural_model,
    weighting,
)
from lib.errors import InputError

LEVELS = pd.CategoricalDtype(["no", "yes"])


def chance_of_job(talent, before, studied):
    return 0.15 + 0.25 * before + 0.3 * studied * talent + 0.1 * talent


def chance_of_studies(job):
    return 0.7 - 0.4 * job


def expected_income(talent, job1, a1, job2, a2):
    return 10 * talent + 3 * a1 + 5 * a2 * (1 - job2) + 6 * job1 * job2 + 2 * a1 * a2


def without_job(now, before):
    return np.where(now["job"] == 0, "yes", "no")


REGIMES = {"never": "no", "always": "yes", "without a job": without_job, "once": ["yes", "no"]}
RULES = {
    "never": lambda k, job: 0,
    "always": lambda k, job: 1,
    "without a job": lambda k, job: 1 - job,
    "once": lambda k, job: 1 - k,
}
NOISE = 2.0


def lives(decide=None):
    """All lives with their chances: seen, or with both decisions made by a rule."""
    rows = []
    for life in itertools.product((0, 1), repeat=5):
        talent, job1, a1, job2, a2 = life
        chances = [(talent, 0.5), (job1, chance_of_job(talent, 0, 0))]
        chances += [(job2, chance_of_job(talent, job1, a1))]
        for k, (job, a) in enumerate([(job1, a1), (job2, a2)]):
            chances += [(a, chance_of_studies(job) if decide is None else decide(k, job))]
        chance = np.prod([p if value else 1 - p for value, p in chances])
        rows.append((*life, chance, expected_income(*life)))
    return pd.DataFrame(rows, columns=["talent", "job1", "a1", "job2", "a2", "chance", "income"])


def value(name):
    table = lives(RULES[name])
    return np.average(table["income"], weights=table["chance"])


def draw(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    talent = rng.random(n) < 0.5
    job1 = rng.random(n) < chance_of_job(talent, 0, 0)
    p1 = chance_of_studies(job1)
    a1 = rng.random(n) < p1
    job2 = rng.random(n) < chance_of_job(talent, job1, a1)
    p2 = chance_of_studies(job2)
    a2 = rng.random(n) < p2
    income = expected_income(talent, job1, a1, job2, a2) + NOISE * rng.standard_normal(n)
    none, past = np.zeros(n, int), 1 * job1
    steps = [
        {"studies": none, "job": none, "past": none, "income": none},
        {"studies": a1, "job": job1, "past": past, "income": none},
        {"studies": a2, "job": job2, "past": 4 * past + 2 * a1 + job2 + 2, "income": none},
        {"studies": none, "job": none, "past": none, "income": income},
    ]
    frames = [pd.DataFrame(step).assign(subject=range(n), t=t) for t, step in enumerate(steps)]
    table = pd.concat(frames).sort_values(["subject", "t"], ignore_index=True)
    table["studies"] = pd.Categorical.from_codes(table["studies"].astype(int), dtype=LEVELS)
    table["past"] = table["past"].astype(int).astype("category")
    for t, a, p in [(1, a1, p1), (2, a2, p2)]:
        table.loc[table["t"] == t, "propensity"] = np.where(a, p, 1 - p)
    return Panel(table, [1, 2], REGIMES, ["job", "past"])


TRUTH = {name: value(name) - value("never") for name in REGIMES}


@pytest.fixture(scope="module")
def panel():
    return draw()


def wide(panel):
    columns = [panel.outcomes, *panel.taken.T]
    columns += [panel.table.loc[panel.table["t"] == t, "job"].to_numpy() for t in (1, 2)]
    return pd.DataFrame(dict(zip(["income", "a1", "a2", "job1", "job2"], columns, strict=True)))


def counted(panel, name):
    """The g-formula, cell by cell, in the sample."""
    table, rule, total = wide(panel), RULES[name], 0.0
    for job1 in (0, 1):
        first = table[table["job1"] == job1]
        then = first[first["a1"] == rule(0, job1)]
        for job2 in (0, 1):
            second = then[then["job2"] == job2]
            last = second.loc[second["a2"] == rule(1, job2), "income"]
            total += len(first) / len(table) * len(second) / len(then) * last.mean()
    return total


def bound():
    """The least variance that an estimator may have, times n; and that of true weights."""
    least, known = {}, {}
    seen = lives()
    for name, rule in RULES.items():

        def mean(column, by, rows):
            parts = rows.assign(x=rows[column] * rows["chance"]).groupby(by)[["x", "chance"]].sum()
            return parts["x"] / parts["chance"]

        follow1 = seen["a1"] == rule(0, seen["job1"])
        follow2 = seen["a2"] == rule(1, seen["job2"])
        past = ["job1", "a1", "job2"]
        q2 = mean("income", past, seen[follow2])
        seen["q2"] = [q2.loc[key] for key in seen[past].itertuples(index=False, name=None)]
        seen["q1"] = seen["job1"].map(mean("q2", "job1", seen[follow1]))
        p = [chance_of_studies(seen[job]) for job in ("job1", "job2")]
        taken = [np.where(seen[a] == 1, q, 1 - q) for a, q in zip(["a1", "a2"], p, strict=True)]
        w1 = follow1 / taken[0]
        w2 = w1 * follow2 / taken[1]
        squares = (seen["q1"] - value(name)) ** 2
        squares += w1**2 * (seen["q2"] - seen["q1"]) ** 2
        squares += w2**2 * ((seen["income"] - seen["q2"]) ** 2 + NOISE**2)
        least[name] = np.average(squares, weights=seen["chance"])
        squares = w2**2 * ((seen["income"] - value(name)) ** 2 + NOISE**2)
        known[name] = np.average(squares, weights=seen["chance"])
    return least, known


def test_seen_differences_are_no_effects_in_this_world(panel):
    for naive in ("followers", "regression-first", "regression-all"):
        gain, error = ENTRANTS[naive](panel)["always"]
        assert abs(gain - TRUTH["always"]) > 4 * error


@pytest.mark.parametrize("name", REGIMES)
@pytest.mark.parametrize("estimator", [g_computation, weighting, doubly_robust])
def test_with_a_parameter_for_each_cell_all_ways_count(panel, estimator, name):
    """All are the g-formula of the sample then, but for the penalties; cross-fitting halves it."""
    assert estimator(panel, name)[0] == pytest.approx(counted(panel, name), abs=0.02)


@pytest.mark.parametrize("name", REGIMES)
@pytest.mark.parametrize("known", [False, True])
def test_influences_have_the_variance_that_the_world_implies(panel, name, known):
    least, of_weights = bound()
    ways = [g_computation, weighting, doubly_robust]
    if known:
        found = [weighting(panel, name, "known"), doubly_robust(panel, name, "known")]
        expected = [of_weights[name], least[name]]
    else:
        found, expected = [way(panel, name) for way in ways], [least[name]] * 3
    for (estimate, phi), variance in zip(found, expected, strict=True):
        assert phi.var() == pytest.approx(variance, rel=0.06)
        assert phi.mean() == pytest.approx(0, abs=0.01)
        assert abs(estimate - value(name)) < 4 * (variance / len(phi)) ** 0.5


def test_scores_that_are_not_taken_out_would_show():
    least, of_weights = bound()
    assert all(of_weights[name] > 1.2 * least[name] for name in ("always", "once"))


def test_influences_of_lines_that_are_wrong_are_those_of_the_bootstrap():
    """Without the column that makes regressions right, least squares still knows its chance."""
    n, ways = 500, (g_computation, weighting, doubly_robust)
    panel = replace(draw(n, seed=3), adjustment=["job"])
    stated = [way(panel, "without a job")[1].std() / n**0.5 for way in ways]
    rng, drawn = np.random.default_rng(0), []
    for _ in range(100):
        rows = 4 * rng.integers(n, size=(n, 1)) + np.arange(4)
        table = panel.table.iloc[rows.ravel()].assign(subject=np.arange(n).repeat(4))
        again = replace(panel, table=table)
        drawn.append([way(again, "without a job")[0] for way in ways])
    # The standard deviation of 100 numbers is known to 7 %.
    assert np.std(drawn, axis=0) == pytest.approx(stated, rel=0.21)


def test_one_right_model_of_two_is_enough(panel):
    """Wrong regressions with right probabilities, and the reverse; but not both wrong."""
    name, seen = "never", {}
    blind = replace(panel)
    vars(blind)["histories"] = [np.ones((len(panel.taken), 1))] * 2
    seen["probabilities"] = doubly_robust(blind, name, "known")
    wrong = panel.table.assign(propensity=0.5)
    seen["regressions"] = doubly_robust(replace(panel, table=wrong), name, "known")
    for estimate, phi in seen.values():
        assert abs(estimate - value(name)) < 4 * phi.std() / len(phi) ** 0.5
    vars(blind)["table"] = wrong
    estimate, phi = doubly_robust(blind, name, "known")
    assert abs(estimate - value(name)) > 6 * phi.std() / len(phi) ** 0.5


def test_cross_fitted_regressions_have_not_seen_whom_they_predict():
    panel = draw(200, seed=5)
    here = panel.followed("always")[:, 1]
    x = panel.histories[1][:, 1:]
    np.testing.assert_array_equal(x[:, -1], panel.taken[:, 0], "what was decided")
    last = Ridge(1.0).fit(x[here], panel.outcomes[here]).predict(x)
    np.testing.assert_allclose(iterated(panel, "always")[1], last)
    first = np.arange(200) % longitudinal.FOLDS == 0
    outside = iterated(panel, "always", ~first)
    changed = panel.outcomes + 1e6 * first
    vars(panel)["outcomes"] = changed
    assert (iterated(panel, "always", ~first)[:-1] == outside[:-1]).all()
    assert (iterated(panel, "always")[:-1] != outside[:-1]).any()


def dummies(codes):
    return add_constant(np.asarray(codes, dtype=float))


def test_marginal_structural_model_is_weighted_least_squares_with_its_sandwich(panel):
    table = wide(panel)
    share = table.groupby(["a1", "a2"])["income"].transform("size") / len(table)
    p = [chance_of_studies(table[job]) for job in ("job1", "job2")]
    taken = [np.where(table[a] == 1, q, 1 - q) for a, q in zip(["a1", "a2"], p, strict=True)]
    weights = share / (taken[0] * taken[1])
    assert weights.mean() == pytest.approx(1, abs=0.02), "stabilised"
    fit = WLS(table["income"], dummies(table[["a1", "a2"]]), weights=weights)
    fit = fit.fit(cov_type="HC0")
    for name, at in {"never": [1, 0, 0], "always": [1, 1, 1], "once": [1, 1, 0]}.items():
        estimate, phi = structural_model(panel, name, "known")
        test = fit.t_test(at)
        assert estimate == pytest.approx(test.effect.item())
        assert (phi**2).sum() ** 0.5 / len(phi) == pytest.approx(test.sd.item())
    gain, error = ENTRANTS["msm-true"](panel)["always"]
    test = fit.t_test([0, 1, 1])
    assert (gain, error) == pytest.approx((test.effect.item(), test.sd.item()), rel=1e-3)


def test_regression_is_least_squares_with_its_sandwich(panel):
    table = wide(panel)
    columns = pd.get_dummies(panel.table[panel.table["t"] == 1]["past"].to_numpy(), dtype=float)
    x = dummies(np.column_stack([table[["a1", "a2"]], columns[1]]))
    fit = OLS(table["income"], x).fit(cov_type="HC0")
    test = fit.t_test([0, 1, 1, 0])
    gain, error = ENTRANTS["regression-first"](panel)["always"]
    assert (gain, error) == pytest.approx((test.effect.item(), test.sd.item()), rel=1e-6)
    assert regression(panel, "always")[0] != pytest.approx(regression(panel, "always", 0)[0])


def test_truncated_weights_are_no_larger_than_their_quantile(panel):
    followed = panel.followed("always").all(axis=1)
    weights = followed / panel.known[0].prod(axis=1)
    cut = np.minimum(weights, np.quantile(weights[followed], 0.9))
    expected = np.average(panel.outcomes, weights=cut)
    assert weighting(panel, "always", "known", kept=0.9)[0] == pytest.approx(expected)
    assert expected != pytest.approx(weighting(panel, "always", "known")[0], abs=1e-3)


def test_names_of_entrants_say_what_they_know_and_what_they_keep():
    panel, rng = draw(500), np.random.default_rng(0)
    table = panel.table.assign(x=rng.normal(size=2_000))
    panel = replace(panel, table=table, adjustment=["job", "past", "x"])
    other = replace(panel, table=table.assign(propensity=rng.uniform(0.2, 0.8, 2_000)))
    names = [name for name in ENTRANTS if name != "dynamic-dml"]
    here, there = ({name: ENTRANTS[name](one) for name in names} for one in (panel, other))
    changed = [name for name in names if here[name] != there[name]]
    assert changed == ["ipw-true", "msm-true", "aipw-true"]
    silent = [name for name in names if "without a job" not in here[name]]
    assert silent == ["msm", "msm-truncated", "msm-true"]
    gains = {name: found["always"][0] for name, found in here.items()}
    for name, way in (("ipw", weighting), ("msm", structural_model)):
        always, never = (way(panel, regime, kept=0.99)[0] for regime in ("always", "never"))
        assert gains[f"{name}-truncated"] == always - never != gains[name]
    always, never = (regression(panel, regime, history=1)[0] for regime in ("always", "never"))
    assert gains["regression-all"] == always - never


def test_followers_are_averaged(panel):
    table = wide(panel)
    both = (table["a1"] == 1) & (table["a2"] == 0)
    assert weighting(panel, "once", "even")[0] == pytest.approx(table.loc[both, "income"].mean())


def test_dynamic_dml_adds_up_the_years_where_they_add_up():
    """Effects are the same for everybody here, and the second year's studies follow the first."""
    n, rng = 2_000, np.random.default_rng(1)
    x1, a1 = rng.standard_normal(n), rng.random(n) < 0.5
    x2 = x1 + 2 * a1 + rng.standard_normal(n)
    a2 = rng.random(n) < np.where(x2 > 1, 0.7, 0.3)
    income = x2 + 3 * a1 + 4 * a2 + rng.standard_normal(n)
    zero = np.zeros(n)
    steps = [(zero, zero, zero), (x1, a1, zero), (x2, a2, zero), (zero, zero, income)]
    columns = ["x", "studies", "income"]
    frames = [pd.DataFrame(dict(zip(columns, step, strict=True))) for step in steps]
    table = pd.concat([frame.assign(subject=range(n), t=t) for t, frame in enumerate(frames)])
    table["studies"] = pd.Categorical.from_codes(table["studies"].astype(int), dtype=LEVELS)
    panel = Panel(table, [1, 2], {"never": "no", "always": "yes", "mixed": without_x}, ["x"])
    found = ENTRANTS["dynamic-dml"](panel)
    assert [*found] == ["always"], "nothing is said of a dynamic regime"
    gain, error = found["always"]
    assert abs(gain - (3 + 4 + 2)) < 4 * error < 1


def without_x(now, before):
    return np.where(now["x"] > 0, "no", "yes")


def test_marks_are_errors_with_intervals(panel):
    table = marked([panel, panel], TRUTH, ["ipw", "msm"])
    assert [*table.groupby("estimator")["estimand"].unique().map(len)] == [3, 2]
    row = table.query("study == 1 and estimator == 'ipw' and estimand == 'always'").iloc[0]
    gain, error = ENTRANTS["ipw"](panel)["always"]
    assert row["value"] == pytest.approx(gain - TRUTH["always"])
    assert row["upper"] - row["lower"] == pytest.approx(2 * 1.96 * error, rel=1e-3)


def test_intervals_cover_in_the_world_that_can_be_counted():
    """In 120 panels a coverage of 95 % is seen within 4 standard errors, 8 points."""
    panels, entrants = map(draw, [300] * 120, range(120)), ["g-computation", "ipw", "aipw-true"]
    table = marked(panels, TRUTH, entrants)
    held = (table["lower"] <= 0) & (table["upper"] >= 0)
    shares = held.groupby([table["estimator"], table["estimand"]]).mean()
    assert shares.between(0.87, 1.0).all()
    assert shares.mean() == pytest.approx(0.95, abs=0.02)


def test_rules_and_sequences_say_what_to_do():
    plans = {"a": ["yes", "no"], "b": ("yes", without_job), "c": "yes", "d": without_job}
    assert decided(plans, [1, 3]) == {
        "a": {1: "yes", 3: "no"},
        "b": {1: "yes", 3: without_job},
        "c": {1: "yes", 3: "yes"},
        "d": {1: without_job, 3: without_job},
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"regimes": {"never": "no", "other": "perhaps"}},
            "regime 'other' must name levels: expected one of",
        ),
        (
            {"regimes": {"never": "no", "rule": lambda now, before: now["job"] == "cook"}},
            "regime 'rule' must name levels: expected one of",
        ),
        ({"regimes": {"a": "no", "b": lambda now, before: now["pay"]}}, "regime 'b' at step 1"),
        (
            {"regimes": {"a": "no", "b": ["no"]}},
            "'b' must be a level, .* one per decision, 2: found 1",
        ),
        ({"regimes": {"a": ("no",) * 3}}, "'a' must be a level, .* one per decision, 2: found 3"),
        ({"decisions": [0, 1]}, "step -1 is unknown"),
        ({"treatment": "work"}, "column of the panel 'work' is unknown"),
        ({"adjustment": ["job", "pay"]}, "column of the panel 'pay' is unknown"),
        ({"adjustment": ["pay_prev"]}, "column of the panel 'pay' is unknown"),
        ({"adjustment": ["job", "studies"]}, "must not hold the treatment itself: found"),
        (
            {"adjustment": ["job", "income"], "decisions": [2, 3]},
            "must not hold the outcome of a decision at its own step: found",
        ),
        ({"decisions": [2, 1]}, r"decisions must be in rising order: found \[2, 1\]"),
        ({"decisions": [1, 1]}, r"decisions must be in rising order: found \[1, 1\]"),
        (
            {"decisions": []},
            r"a panel needs at least one regime and one decision: found \[\['never'",
        ),
        ({"regimes": {}}, r"a panel needs at least one regime and one decision: found \[\[\], \["),
        (
            {"adjustment": []},
            "a panel needs at least one row and one column of the adjustment: found",
        ),
        (
            {"regimes": {"a": "no", "b": np.array(["no"] * 3)}},
            "or a sequence of one per decision, 2: found 3",
        ),
        (
            {"regimes": {"a": "no", "b": lambda now, before: ["no"] * 2}},
            "regime 'b' at step 1, from",
        ),
    ],
)
def test_a_panel_that_breaks_a_rule_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        replace(draw(50), **changes)


def test_a_rule_that_returns_subjects_in_another_order_speaks_of_each():
    def sorted_by_job(now, before):
        said = pd.Series(without_job(now, before), index=now.index)
        return said.loc[now.sort_values("job").index]

    panel = replace(draw(50), regimes={"as it is": without_job, "sorted": sorted_by_job})
    np.testing.assert_array_equal(panel.said["sorted"], panel.said["as it is"])
    apart = replace(panel, regimes={"a": "no", "b": lambda *now: sorted_by_job(*now).to_numpy()})
    assert (apart.said["b"] != panel.said["as it is"]).any(), "the order is another one"
    # The rows of a new Series have numbers that are those of no subjects.
    table = panel.table.sort_values(["t", "subject"], ascending=[True, False])
    new = {"a": without_job, "b": lambda *now: pd.Series(without_job(*now))}
    turned = replace(panel, table=table, regimes=new)
    np.testing.assert_array_equal(turned.said["b"], turned.said["a"])


def test_numbers_in_a_column_of_objects_are_no_levels():
    panel = draw(50)
    age = panel.table.assign(age=np.arange(float(len(panel.table))))
    plain, objects = (
        replace(panel, table=table, adjustment=["age"], regimes={"never": "no"})
        for table in (age, age.astype({"age": object}))
    )
    np.testing.assert_array_equal(objects.histories[1], plain.histories[1])


@pytest.mark.parametrize("decisions", [(1, 2), (1, 3)])
@pytest.mark.parametrize("adjustment", [["x"], ["x", "a_prev"]])
def test_regressions_know_earlier_decisions_that_nobody_names(decisions, adjustment):
    n, rng, rows = 4_000, np.random.default_rng(1), []
    income = rng.normal(size=n)
    for t in range(4):
        x = rng.normal(size=n)
        a = (rng.random(n) < 1 / (1 + np.exp(-x))) & (t in decisions)
        income += a + (t in decisions) * x
        rows.append({"subject": np.arange(n), "t": t, "x": x, "a": a, "y": income.copy()})
    table = pd.concat(map(pd.DataFrame, rows))
    regimes = {"never": False, "always": True}
    panel = Panel(table, decisions, regimes, adjustment, treatment="a", outcome="y")
    # Here no decision changes a later history, so that one regression is right, too.
    for name in ("g-computation", "aipw", "regression-all"):
        gain, error = ENTRANTS[name](panel)["always"]
        assert abs(gain - 2) < 3 * error < 0.4
    even = replace(panel, adjustment=[*adjustment, "y_prev"])  # which tells the decisions, too
    assert ENTRANTS["g-computation"](even)["always"][0] == pytest.approx(2, abs=0.15)


@pytest.mark.parametrize(
    ("seed", "decisions", "chance"),
    [
        (2, (1, 2), lambda t, before: (0.3 + 0.4 * before) * (t > 0)),
        # At step 2, too, where no regime decides: what it does confounds step 3.
        (4, (1, 3), lambda t, before: 0.2 + 0.6 * before * (t == 3)),
    ],
    ids=["a decision", "no decision"],
)
def test_what_was_taken_before_may_be_all_that_is_adjusted_for(seed, decisions, chance):
    n, rng, rows = 4_000, np.random.default_rng(seed), []
    before, income = np.zeros(n, dtype=bool), rng.normal(size=n)
    for t in range(decisions[-1] + 1):
        a = rng.random(n) < chance(t, before)
        income += 2 * a
        rows.append({"subject": np.arange(n), "t": t, "a": a, "y": income.copy()})
        before = a
    table, regimes = pd.concat(map(pd.DataFrame, rows)), {"never": False, "always": True}
    panel = Panel(table, decisions, regimes, ["a_prev"], treatment="a", outcome="y")
    for name in ("g-computation", "aipw", "ipw", "regression-all"):
        gain, error = ENTRANTS[name](panel)["always"]
        assert abs(gain - 4) < 3 * error < 0.4


def test_a_level_has_a_column_also_where_nobody_has_it():
    panel, places = draw(400), ["hill", "lake", "town"]
    first = panel.table["t"] == 1
    place = np.random.default_rng(3).choice(places, len(panel.table))
    table = panel.table.assign(place=np.where(first & (place == "lake"), "town", place))
    regimes = {"never": "no", "always": "yes"}
    text = replace(panel, table=table, regimes=regimes, adjustment=["job", "place"])
    assert [state.shape[1] for state in text.states] == [4, 4]
    levels = table.astype({"place": pd.CategoricalDtype(places)})
    for name in ("dynamic-dml", "ipw", "g-computation"):
        assert ENTRANTS[name](text) == ENTRANTS[name](replace(text, table=levels))
        more = table.astype({"place": pd.CategoricalDtype(["bay", *places])})
        assert ENTRANTS[name](text) == ENTRANTS[name](replace(text, table=more))


def test_one_level_alone_tells_nobody_apart():
    panel = draw(400)
    there = panel.table.assign(place="town", constant=1.0)
    by_level, by_number = (
        replace(panel, table=there, adjustment=[name], regimes={"never": "no", "always": "yes"})
        for name in ("place", "constant")
    )
    for name in ("ipw", "g-computation", "aipw"):
        assert ENTRANTS[name](by_level) == ENTRANTS[name](by_number)


def test_true_probabilities_that_are_not_there_are_missed():
    panel = draw(50)
    blind = replace(panel, table=panel.table.drop(columns="propensity"))
    with pytest.raises(InputError, match="column of the panel 'propensity' is unknown"):
        weighting(blind, "never", "known")


def test_true_probabilities_may_be_objects_and_no_text():
    panel = draw(50)
    objects = replace(panel, table=panel.table.astype({"propensity": object}))
    texts = replace(panel, table=panel.table.assign(propensity="likely"))
    assert ENTRANTS["msm-true"](objects) == ENTRANTS["msm-true"](panel)
    with pytest.raises(InputError, match="propensity: could not convert string to float"):
        weighting(texts, "never", "known")


@pytest.mark.parametrize("wrong", [np.nan, 0.0, 7.0])
def test_what_is_no_probability_divides_nothing(wrong):
    panel = draw(50)
    panel.table.loc[panel.table["t"] == 2, "propensity"] = wrong
    with pytest.raises(InputError, match="propensity must be above 0 and at most 1: found"):
        weighting(panel, "never", "known")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("income", np.nan, r"outcome 'income' must be finite numbers below 1e\+150: found \[nan\]"),
        ("income", "much", "outcome 'income': could not convert string to float: 'much'"),
        ("past", np.inf, r"columns of the adjustment must be finite: found \['job', 'past'\]"),
    ],
)
def test_a_panel_of_what_is_no_number_is_refused(column, value, message):
    panel = draw(50)
    table = panel.table.astype({"past": float, column: object if value == "much" else float})
    table.loc[table.index[table["subject"] == 7], column] = value
    with pytest.raises(InputError, match=message):
        replace(panel, table=table)


def test_a_decision_that_all_take_alike_has_no_propensity():
    panel = draw(50)
    table = panel.table.assign(studies=panel.table["studies"].where(panel.table["t"] != 1, "no"))
    with pytest.raises(InputError, match="at least two levels must be taken at step 1: found 1"):
        weighting(replace(panel, table=table), "never", "estimated")


def test_a_regime_without_a_true_gain_is_refused_before_any_work():
    with pytest.raises(InputError, match="true gain of regime 'without a job' is unknown"):
        marked([draw(50)], {"never": 0.0, "always": 0.0}, [])
    assert marked([draw(50)], pd.Series(TRUTH), []).empty


def test_a_subject_that_left_is_refused():
    panel = draw(50)
    with pytest.raises(InputError, match="every subject once at every step"):
        replace(panel, table=panel.table[1:])


def test_an_entrant_that_is_unknown_and_a_regime_without_followers_are_refused():
    with pytest.raises(InputError, match="entrant 'magic' is unknown"):
        marked([], {}, ["magic"])
    panel = draw(50)
    alone = replace(panel, regimes={"never": "no", "always": "yes"})
    vars(alone)["said"]["always"] = 1 - alone.taken
    with pytest.raises(InputError, match="followed by somebody"):
        weighting(alone, "always")


def test_regressions_of_a_fold_need_followers_outside_of_it():
    panel, first = draw(60), dealt(60) == 0
    alone = replace(panel, regimes={"never": "no", "always": "yes"})
    vars(alone)["taken"][:] = first[:, None]
    assert np.isfinite(g_computation(alone, "always")[0])
    with pytest.raises(InputError, match=r"'always' must be followed .* two of the folds"):
        doubly_robust(alone, "always")


@pytest.mark.parametrize("name", ["msm", "dynamic-dml"])
def test_a_gain_over_a_rule_is_not_said_by_who_knows_no_rules(name):
    panel = draw(2_000)
    after = replace(panel, regimes={"rule": without_job, "never": "no", "always": "yes"})
    assert ENTRANTS[name](panel)
    assert ENTRANTS[name](after) == {}
    if name == "dynamic-dml":
        assert ENTRANTS[name](draw(20)) == {}, "nothing is said where a level is rare"
        alike = panel.table.assign(studies=pd.Categorical(["no"] * 8_000, dtype=LEVELS))
        nobody = replace(panel, table=alike, regimes={"never": "no", "always": "yes"})
        assert ENTRANTS[name](nobody) == {}, "nor where all decide alike"


@pytest.mark.parametrize("name", ["regression-all", "g-computation", "aipw", "msm", "followers"])
def test_a_level_that_nobody_took_has_no_worth(name):
    panel = draw(500)
    levels = pd.CategoricalDtype(["no", "yes", "later"])
    table = panel.table.assign(studies=panel.table["studies"].astype(levels))
    other = replace(panel, table=table, regimes={"never": "no", "later": "later"})
    with pytest.raises(InputError, match="regime 'later' must be followed by somebody"):
        ENTRANTS[name](other)


def test_a_subject_that_is_there_twice_and_a_step_that_is_not_are_refused():
    panel = draw(50)
    twice = pd.concat([panel.table, panel.table]).sort_values("t", kind="stable")
    with pytest.raises(InputError, match="every subject once at every step"):
        replace(panel, table=twice)
    with pytest.raises(InputError, match="step 4 is unknown"):
        replace(panel, decisions=[1, 4])


@pytest.mark.parametrize("column", ["studies", "job", "past"])
def test_what_is_missing_where_a_regime_decides_is_refused(column):
    panel = draw(50)
    gone = [panel.table[column].mask(panel.table.index == step) for step in (1, 3)]
    with pytest.raises(InputError, match=rf"no missing value at step 1: found \['{column}'\]"):
        replace(panel, table=panel.table.assign(**{column: gone[0]}))
    replace(panel, table=panel.table.assign(**{column: gone[1]}))
