"""Panels are what their probabilities say, and each oracle of their truth finds the other wrong."""

import copy
import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.effects.longitudinal import weighting
from lib.errors import InputError
from lib.income import fitted_simulator, regimes
from lib.income.regimes import LOW, draw_panels, lottery, true_values

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(ROOT / "benchmarks")
    from effects import FULL, NONE, REGIMES

DECISIONS = (1, 2)
#: Income is read soon after the last decision, when it tells most of what was done.
WORLD = {"decisions": DECISIONS, "horizon": 5}


@pytest.fixture(scope="module")
def simulator():
    return fitted_simulator()


@pytest.fixture(scope="module")
def panel(simulator):
    return next(draw_panels(simulator, REGIMES, 20_000, seed=3, **WORLD))


@pytest.fixture(scope="module")
def truth(simulator):
    return true_values(simulator, REGIMES, 15_000, **WORLD)


def apart(panel, truth):
    """Standard errors between both oracles, the largest of all values."""
    found = {}
    for name, (value, error) in truth[["value", "standard error"]].iterrows():
        estimate, phi = weighting(panel, name, "known")
        both = np.hypot(error, phi.std() / len(phi) ** 0.5)
        found[name] = abs(estimate - value) / both
    return pd.Series(found)


def test_truth_is_known_to_a_hundredth_of_the_deviation_of_income(panel, truth):
    assert (truth["standard error"] < 0.01 * panel.outcomes.std()).all()
    assert (truth["error of gain"] < 0.01 * panel.outcomes.std()).all()
    assert truth.loc["never study", ["gain", "error of gain"]].eq(0).all()


def test_two_oracles_agree(panel, truth):
    assert (apart(panel, truth) < 4).all()


def test_probabilities_that_are_not_those_of_the_lottery_are_found(panel, truth):
    """A lottery that does not look at last year's income has other probabilities."""
    mean = panel.table.groupby(["t", "studies"], observed=False)["propensity"].transform("mean")
    wrong = panel.table.assign(propensity=mean)
    assert apart(replace(panel, table=wrong), truth).max() > 8


@pytest.mark.parametrize(
    "planted",
    [
        {"decisions": (2, 3)},  # a year too late
        {"decisions": (1, 2, 3)},  # free again a year too late
        {"regimes": REGIMES | {"evening if low": "Day course"}},
    ],
)
def test_a_regime_that_is_carried_out_otherwise_is_found(simulator, panel, planted):
    wrong = true_values(simulator, **{"regimes": REGIMES, "n": 5_000} | WORLD | planted)
    assert apart(panel, wrong).max() > 5


def test_chances_are_far_from_zero_if_the_lottery_decides(panel):
    assert panel.known[0].min() > 0.2
    assert "Day course" not in set(panel.table.loc[panel.table["t"].isin(DECISIONS), "studies"])


def test_confounding_is_affected_by_earlier_treatment(panel):
    """Who has studied full-time has a low income; who has a low income studies; and both last."""
    steps = {t: rows.set_index("subject") for t, rows in panel.table.groupby("t")}
    studied, low = steps[1]["studies"] == "Full-time studies", steps[1]["income"] < LOW
    assert low[studied].mean() > low[~studied].mean() + 0.3
    again = steps[2]["studies"] == "Full-time studies"
    assert again[low].mean() > again[~low].mean() + 0.1
    free = steps[2]["studies"] == "No studies"
    after = steps[3]["income"]
    assert after[free & ~low].mean() > after[free & low].mean() + 20_000


@pytest.mark.parametrize("own", [0.0, 0.4, 1.0])
def test_people_decide_as_the_true_probabilities_say(simulator, own):
    """Weights of those who took a level add up to everybody, in cells of the past, but for luck."""
    panel = next(draw_panels(simulator, REGIMES, 6_000, own=own, seed=5, **WORLD))
    for t in DECISIONS:
        now, before = (panel.table[panel.table["t"] == step] for step in (t, t - 1))
        cell = ((before["income"] < LOW).astype(str) + before["studies"].astype(str)).to_numpy()
        for level in ("No studies", "Full-time studies"):
            taken = now["studies"] == level
            weights = taken / now["propensity"].where(taken, 1.0)
            possible = weights.groupby(cell).max() > 0
            missed = (weights - 1).groupby(cell).mean() / weights.groupby(cell).sem()
            assert (missed[possible & (weights.groupby(cell).max() < 40)].abs() < 4.5).all()
            assert possible.sum() > 3


def test_who_all_decide_for_themselves_live_in_the_simulators_own_world(simulator):
    panel = next(draw_panels(simulator, REGIMES, 500, own=1.0, seed=5, **WORLD))
    world = simulator.sample(500, WORLD["horizon"], 5)
    pd.testing.assert_frame_equal(panel.table[[*world]], world, check_exact=True)
    for t in DECISIONS:
        chances = simulator.probabilities("studies", world, t).to_numpy()
        now = panel.table[panel.table["t"] == t]
        expected = chances[range(500), now["studies"].cat.codes]
        assert now["propensity"].to_numpy() == pytest.approx(expected)


def test_panels_are_cut_from_one_world_in_any_number_of_pieces(simulator, monkeypatch):
    some = list(draw_panels(simulator, REGIMES, 60, 3, seed=2, **WORLD))
    monkeypatch.setattr(regimes, "BLOCK", 100)
    again = list(draw_panels(simulator, REGIMES, 60, 3, seed=2, **WORLD))
    assert [panel.table["subject"].iloc[0] for panel in some] == [0, 60, 120]
    for one, other in zip(some, again, strict=True):
        pd.testing.assert_frame_equal(
            one.table, other.table.set_axis(one.table.index), check_exact=True
        )


def test_unless_told_otherwise_the_truth_answers_what_panels_ask_on_luck_of_its_own():
    asked, answered = (inspect.signature(each).parameters for each in (draw_panels, true_values))
    for name in ("decisions", "horizon"):
        assert asked[name].default == answered[name].default
    assert answered["seed"].default >= 2**32  # beyond the seeds that numpy spawns


def test_lottery_prefers_studies_after_a_low_income_and_with_less_education():
    before = pd.DataFrame({"income": [LOW, LOW - 1, LOW - 1]})
    chances = lottery(pd.DataFrame({"education-num": [10.0, 10.0, 9.0]}), before)
    assert chances.argmax(axis=1).tolist() == [0, 3, 3] and chances[1, 3] < chances[2, 3]
    assert chances.sum(axis=1) == pytest.approx(1)
    odds = chances[:, 3] / chances[:, 0]
    assert odds[1] / odds[0] == pytest.approx(np.exp(0.9))


@pytest.mark.parametrize(
    ("broken", "rule"),
    [({"own": 1.5}, "own must lie between 0 and 1: found 1.5")]
    + [({of: 0}, "n must be a whole number of at least 1") for of in ("panels", "n")],
)
def test_what_is_no_share_or_no_number_of_panels_is_refused(simulator, broken, rule):
    with pytest.raises(InputError, match=rule):
        next(draw_panels(simulator, REGIMES, **{"n": 10, **broken}))


@pytest.mark.parametrize("name", ["low-income", "propensity"])
def test_a_variable_called_as_a_column_of_a_panel_is_refused(simulator, name):
    mine = copy.copy(simulator)
    mine.kinds_ = simulator.kinds_ | {name: None}
    rule = f"each column of a panel may be given only once: found '{name}'"
    with pytest.raises(InputError, match=rule):
        next(draw_panels(mine, REGIMES, 10))


@pytest.mark.parametrize("said", [[NONE], (NONE, FULL, NONE)])
def test_a_sequence_that_is_longer_or_shorter_than_its_decisions_is_refused_first(said):
    given = {"never study": NONE, "then and now": said}
    rule = f"regime 'then and now' must be a level, .* one per decision, 2: found {len(said)}"
    for draw in (true_values, lambda *given, **more: next(draw_panels(*given, **more))):
        with pytest.raises(InputError, match=rule):
            draw(None, given, 10, **WORLD)  # a simulator is not asked


@pytest.mark.parametrize("decisions", [(1, 1), (2, 1)])
def test_decisions_are_in_rising_order_before_a_world_is_drawn(decisions):
    # Of two parts of a regime for the same step, the truth took the last.
    given = {"never study": NONE, "then and now": (FULL, NONE)}
    for draw in (true_values, lambda *given, **more: next(draw_panels(*given, **more))):
        with pytest.raises(InputError, match="decisions must be in rising order"):
            draw(None, given, 10, **WORLD | {"decisions": decisions})
