"""Each criterion against a sum by hand, and against worlds whose effects are known."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from lib import ROOT
from lib.effects.estimators import HIGHEST, LOWEST
from lib.effects.learners import dealt
from lib.effects.selection import (
    Nuisances,
    criteria,
    mean_verdicts,
    nuisances,
    trial,
    verdicts,
)
from lib.effects.study import read_study
from lib.errors import InputError

CAUSAL = ["plug-in", "R-loss", "DR-loss"]


@pytest.fixture(scope="module")
def world():
    """A randomised linear world with true nuisances; the effect is 1 + x1."""
    rng = np.random.default_rng(0)
    n = 40_000
    x = rng.normal(size=(n, 2))
    e = np.full(n, 0.3)
    a = (rng.random(n) < e).astype(float)
    tau, control = 1 + x[:, 1], 50 + 5 * x[:, 0]
    y = control + a * tau + rng.normal(size=n)
    return x, a, y, tau, Nuisances(control, control + tau, control + e * tau, e)


@pytest.fixture(scope="module")
def candidates(world):
    tau = world[3]
    claims = {"none": 0 * tau, "average": 0 * tau + 1, "double": 2 * tau, "noisy": tau**2}
    return pd.DataFrame({"perfect": tau} | claims)


def test_by_hand_on_two_subjects():
    known = Nuisances(*map(np.array, ([10.0, 4.0], [13.0, 5.0], [11.0, 4.5], [0.2, 0.5])))
    effects = pd.DataFrame({"mine": [2.0, -1.0]})
    factual = pd.DataFrame({"mine": [12.0, 5.0]})
    found = criteria(known, np.array([1, 0]), np.array([14.0, 3.0]), effects, factual).loc["mine"]
    assert [*found.index] == ["factual fit", *CAUSAL, "influence function"]
    assert found["factual fit"] == pytest.approx((2**2 + 2**2) / 2)
    assert found["plug-in"] == pytest.approx(((3 - 2) ** 2 + (1 + 1) ** 2) / 2)
    assert found["R-loss"] == pytest.approx(((3 - 0.8 * 2) ** 2 + (-1.5 + 0.5 * -1) ** 2) / 2)
    first, second = 3 + (14 - 13) / 0.2, 1 - (3 - 4) / 0.5
    assert found["DR-loss"] == pytest.approx(((first - 2) ** 2 + (second + 1) ** 2) / 2)
    b = 2 * 0.8 / 0.16  # of the first; that of a control is 0
    of_first = (1 - b) * 9 + b * 14 * 1 - 0.8 * 1 + 4
    of_second = 1 + 0.5 * 4 + 1
    assert found["influence function"] == pytest.approx((of_first + of_second) / 2)


@pytest.mark.parametrize("criterion", CAUSAL)
def test_causal_criteria_put_the_perfect_candidate_first(world, candidates, criterion):
    _, a, y, _, known = world
    assert criteria(known, a, y, candidates)[criterion].idxmin() == "perfect"


def test_so_they_do_with_nuisances_that_were_learned(world, candidates):
    x, a, y, tau, _ = world
    known = nuisances(x, a, y, LinearRegression())
    np.testing.assert_allclose(known.treated - known.control, tau, atol=0.2)
    assert known.propensity.mean() == pytest.approx(0.3, abs=0.01)
    assert (criteria(known, a, y, candidates)[CAUSAL].idxmin() == "perfect").all()


def test_factual_fit_prefers_a_close_fit_without_effects(world):
    _, a, y, tau, known = world
    outcomes = {"blind": known.control + 0.3 * tau, "perfect": y + 3}
    effects = pd.DataFrame({"blind": 0 * tau, "perfect": tau})
    found = criteria(known, a, y, effects, pd.DataFrame(outcomes))
    assert found["factual fit"].idxmin() == "blind"
    assert (found[CAUSAL].idxmin() == "perfect").all()


@pytest.mark.parametrize(("criterion", "weight"), [("DR-loss", 1.0), ("R-loss", 0.3 * 0.7)])
def test_with_true_nuisances_losses_differ_as_errors_do(world, candidates, criterion, weight):
    _, a, y, tau, known = world
    found = criteria(known, a, y, candidates)[criterion]
    errors = candidates.sub(tau, axis=0).pow(2).mean()
    expected = weight * (errors - errors["perfect"])
    np.testing.assert_allclose(found - found["perfect"], expected, atol=0.05 * expected.max())


def test_who_is_heard_is_what_the_exercise_says():
    cells = json.loads((ROOT / "notebooks" / "model_selection.ipynb").read_text("utf-8"))["cells"]
    (solution,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "solution-2")
    shown = []
    exec(solution, {"pd": pd, "typeset": shown.append})
    for chance, said in shown[0].iterrows():
        people = np.arange(50) < 50 * chance  # as many of fifty are treated
        zero, e = np.zeros(50), np.full(50, chance)
        known, effect = Nuisances(zero, zero, zero, e), pd.DataFrame({"one": zero + 1})
        marks = criteria(known, people, zero, effect).loc["one"]
        first = [column[:1] for column in known], people[:1]
        of_treated = criteria(Nuisances(*first[0]), first[1], zero[:1], effect[:1]).loc["one"]
        multiplied = criteria(Nuisances(*first[0]), first[1], zero[:1] + 1, 0 * effect[:1])
        expected = [of_treated["R-loss"], marks["R-loss"], multiplied["DR-loss"].item() ** 0.5]
        assert said.tolist() == pytest.approx(expected)


def test_corrected_plug_in_is_the_dr_loss_less_a_constant(world, candidates):
    _, a, y, _, known = world
    known = known._replace(treated=known.treated + 1, propensity=known.propensity + 0.1)
    plugin = known.treated - known.control
    scores = plugin + a / known.propensity * (y - known.treated)
    scores -= (1 - a) / (1 - known.propensity) * (y - known.control)
    gap = -candidates.sub(plugin, axis=0)
    corrected = (gap**2 + 2 * gap.mul(scores - plugin, axis=0)).mean()
    constant = ((scores - plugin) ** 2).mean()
    expected = criteria(known, a, y, candidates)["DR-loss"] - constant
    np.testing.assert_allclose(corrected, expected, rtol=1e-9)


def test_influence_function_prefers_the_treated_outcome_to_the_effect(world, candidates):
    _, a, y, tau, known = world
    effects = candidates.assign(outcome=known.treated)
    found = criteria(known, a, y, effects)["influence function"]
    assert found.idxmin() == "outcome"
    gap = -effects.sub(tau, axis=0)
    expected = (gap**2 + 2 * gap.mul(known.control, axis=0)).mean()
    np.testing.assert_allclose(found, expected, atol=0.03 * np.ptp(expected))


def test_only_the_influence_function_notices_money_for_everybody(world, candidates):
    _, a, y, _, known = world
    outcomes = {name: getattr(known, name) + 100 for name in ("control", "treated", "mean")}
    before = criteria(known, a, y, candidates)
    after = criteria(known._replace(**outcomes), a, y + 100, candidates)
    np.testing.assert_allclose(after[CAUSAL], before[CAUSAL], atol=1e-9)
    assert after["influence function"].idxmin() != "perfect"
    assert abs(after - before)["influence function"].max() > 100


def test_propensities_keep_away_from_zero_and_one():
    x = np.arange(200.0)[:, None] % 20
    a = (x[:, 0] >= 10).astype(float)
    known = nuisances(x, a, x[:, 0], LinearRegression())
    assert (known.propensity.min(), known.propensity.max()) == (LOWEST, HIGHEST)


def test_effects_that_are_not_finite_are_refused(world, candidates):
    _, a, y, _, known = world
    with pytest.raises(InputError, match=r"must be finite: found \['broken'\]"):
        criteria(known, a, y, candidates.assign(broken=np.nan))


def test_verdicts_compare_with_the_best_of_all_and_rank_those_that_were_scored():
    table = pd.DataFrame(
        {
            "factual fit": [1.0, 2.0, 3.0, np.nan],
            "R-loss": [4.0, 3.0, 2.0, 1.0],
            "R²": [-1.0, 0.2, 0.4, 0.5],
        },
        index=["s", "t", "u", "r"],
    )
    found = verdicts(table)
    assert found["picked"].tolist() == ["s", "r", ""]
    np.testing.assert_allclose(found["rank correlation"], [-1, 1, 0])
    np.testing.assert_allclose(found["regret"], [1.5, 0, 0.5 - 0.025])


def test_interval_over_studies_is_that_of_student():
    found = [pd.DataFrame({"regret": [r], "rank correlation": [1.0]}) for r in (0.0, 0.3, 0.6)]
    row = mean_verdicts(found).iloc[0]
    half = 4.30265 * 0.3 / 3**0.5  # t with 2 degrees of freedom
    assert row["regret"] == pytest.approx(0.3)
    ends = [0, 0.3 + half]  # 0.3 - half is no regret
    assert row[["regret lower", "regret upper"]].tolist() == pytest.approx(ends, rel=1e-5)
    assert row["rank correlation lower"] == row["rank correlation upper"] == 1
    more = [
        one.assign(**{"regret": one["regret"] + 1, "rank correlation": x})
        for one, x in zip(found, (1, 0.9, 0.2), strict=True)
    ]
    row = mean_verdicts(more).iloc[0]
    ends = [1.3 - half, 1.3 + half]
    assert row[["regret lower", "regret upper"]].tolist() == pytest.approx(ends, rel=1e-5)
    assert row["rank correlation upper"] == 1


def test_candidates_learn_from_one_half_and_are_scored_on_the_other(world):
    x, a, y, tau = (part[:4_000] for part in world[:4])
    rest = dealt(len(y), 2) == 1
    y = np.where(rest, -y, y)  # the halves are of opposite worlds
    seen = pd.DataFrame(x, columns=["x0", "x1"]).assign(taken=np.where(a == 1, "yes", "no"), y=y)
    done = seen.assign(y=0.0)
    names = {"adjustment": ["x0", "x1"], "arms": ("no", "yes"), "treatment": "taken"}
    study = read_study(seen, done, done, outcome="y", truth=tau, **names)
    grids = {
        "t": {"estimator": "T-learner", "base_estimator": ["ridge"]},
        "r": {"estimator": "R-learner", "base_estimator": ["ridge"], "propensity": ["lr"]},
    }
    found = trial(study, {"estimators": grids}, outcome_model=LinearRegression())
    assert found.loc["t", "R²"] > 0.95
    # On the other half outcomes and effects have the opposite sign: off by twice their size.
    assert found.loc["t", "factual fit"] == pytest.approx((4 * y[rest] ** 2).mean(), rel=0.02)
    assert found.loc["t", "plug-in"] == pytest.approx((4 * tau[rest] ** 2).mean(), rel=0.1)
    assert np.isnan(found.loc["r", "factual fit"])
    entry = {"estimator": "S-learner", "base_estimator": ["rfr"]}
    few = {"estimators": {"s": entry | {"base_estimator__n_estimators": [2]}}}
    drawn = [trial(study, few, seed, outcome_model=LinearRegression()) for seed in (0, 1)]
    assert drawn[0].loc["s", "R²"] != drawn[1].loc["s", "R²"], "seeds reach the candidates"


def few_of(world):
    """A study of four hundred of its subjects."""
    x, a, y, tau = (part[:400] for part in world[:4])
    seen = pd.DataFrame(x, columns=["x0", "x1"]).assign(taken=np.where(a == 1, "yes", "no"), y=y)
    names = {"adjustment": ["x0", "x1"], "arms": ("no", "yes"), "treatment": "taken"}
    return read_study(seen, seen, seen, outcome="y", truth=tau, **names)


MINE = """
class Claims:
    def fit(self, covariates, treatment, outcome):
        return self

    def effect(self, covariates):
        return covariates[:, 0] * 0 + FACTOR
"""


def test_what_a_class_of_ones_own_gave_is_not_remembered(world, tmp_path, monkeypatch):
    """After an edit of the class, its old effects would stand beside its new name."""
    monkeypatch.syspath_prepend(tmp_path)
    study = few_of(world)
    candidates = {"estimators": {"mine": {"estimator": "my_claims:Claims"}}}
    scores = []
    for factor in ("1.0", "10.0"):
        (tmp_path / "my_claims.py").write_text(MINE.replace("FACTOR", factor))
        sys.modules.pop("my_claims", None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode = True
        scores.append(trial(study, candidates, outcome_model=LinearRegression()))
    assert scores[1].loc["mine", "R²"] < scores[0].loc["mine", "R²"] - 10
    assert (scores[1][CAUSAL] > scores[0][CAUSAL]).all(axis=None)


def test_a_study_without_truth_and_a_candidate_without_effects_are_refused_before_any_fit(world):
    study = few_of(world)
    averages = {"estimators": {"w": {"estimator": "IPWEstimator", "base_estimator": ["lr"]}}}
    with pytest.raises(InputError, match=r"effects of single subjects: found \['w'\]"):
        trial(study, averages)
    with pytest.raises(InputError, match="truth must be given"):
        trial(replace(study, truth=None), averages)


def test_a_criterion_that_can_score_nobody_has_no_verdict():
    scores = {"factual fit": np.nan, "plug-in": [2.0, 1.0], "R²": [0.1, 0.3]}
    table = pd.DataFrame(scores, ["x", "r"])
    found = verdicts(table)
    assert found.index.tolist() == ["plug-in", "at random"]
    assert found.loc["plug-in"].tolist() == ["r", pytest.approx(1), 0]
