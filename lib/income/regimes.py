r"""Panels, and their truth, drawn from a simulator in which studies are decided again and again.

At several steps in a row, a share γ of the subjects, drawn anew at every step, do as they like. For
the others, a lottery decides, and its chances depend on the past,

.. math:: P(A_t = a \mid H_t) = (1 - \gamma)\,\frac{e^{s_a(H_t)}}{\sum_b e^{s_b(H_t)}}
    + \gamma\,P_{\text{own}}(A_t = a \mid H_t).

At γ = 0 every regime without day courses has overlap; at γ = 1 the world is the simulator's own.
The truth comes from carrying out each regime in the simulator, on noise that all regimes share.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from lib.effects.longitudinal import Panel, decided
from lib.effects.study import MINIMAL_ADJUSTMENT
from lib.errors import check_count, check_once, check_share
from lib.income.mechanisms import STUDIES
from lib.scm import Simulator
from lib.scm.simulator import BLOCK

#: Below this income, in US dollars, the lottery prefers studies; StudiesTransition has the
#: same bound.
LOW = 50_000

#: What decisions depend on; the last says whether last year's income was low.
ADJUSTMENT = (*MINIMAL_ADJUSTMENT, "low-income_prev")


def lottery(now: pd.DataFrame, before: pd.DataFrame) -> np.ndarray:
    """Return the chances of every level of studies, (n, 4): more studies after a low income."""
    low, rank = before["income"].to_numpy() < LOW, now["education-num"].to_numpy() - 10
    never = np.full(len(low), -np.inf)
    scores = [0.0 * low, -0.5 + 0.4 * low, never, -0.5 + 0.9 * low - 0.05 * rank]
    return np.asarray(softmax(scores, axis=0)).T


def draw_panels(
    simulator: Simulator,
    regimes: Mapping[str, Any],
    n: int,
    panels: int = 1,
    decisions: Sequence[int] = (1, 2, 3),
    own: float = 0.0,
    horizon: int = 7,
    seed: int = 0,
) -> Iterator[Panel]:
    """Draw a world of many subjects and cut it into independent panels of n subjects each.

    Income is read at the last step, `horizon - 1`; a share `own` of the subjects do as they like.
    """
    check_share("own", own)
    decided(regimes, decisions)  # refuse regimes here, before a world is drawn
    check_once("column of a panel", ["low-income", "propensity", *simulator.kinds_])

    def policy(now: pd.DataFrame, before: pd.DataFrame, noise: np.ndarray) -> np.ndarray:
        by_lot = own + (1 - own) * lottery(now, before).cumsum(axis=1)[:, :-1]
        drawn = STUDIES.categories[(noise[:, None] > by_lot).sum(axis=1)]
        return np.asarray(np.where(noise < own, now["studies"], drawn))

    do, block = {"studies": dict.fromkeys(decisions, policy)}, n * (BLOCK // (n or 1) or 1)
    for world in simulator.blocks(n * panels, horizon, seed, do, block=block):
        world["low-income"], steps = world["income"] < LOW, dict(list(world.groupby("t")))
        for t in decisions:
            liked = simulator.probabilities("studies", world, t).to_numpy()
            chances = own * liked + (1 - own) * lottery(steps[t], steps[t - 1])
            taken = steps[t]["studies"].cat.codes
            world.loc[taken.index, "propensity"] = chances[np.arange(len(taken)), taken]
        for _, rows in world.groupby(world["subject"] // n):
            yield Panel(rows, decisions, regimes, ADJUSTMENT)


def true_values(
    simulator: Simulator,
    regimes: Mapping[str, Any],
    n: int,
    decisions: Sequence[int] = (1, 2, 3),
    horizon: int = 7,
    seed: int = 2**32,
) -> pd.DataFrame:
    """Carry out regimes: `value` and `gain` over the first, with standard errors (US dollars)."""
    check_count("n", n, least=2)
    values = pd.DataFrame()
    for name, plan in decided(regimes, decisions).items():
        world = simulator.sample(n, horizon, seed, {"studies": plan})
        values[name] = world["income"].to_numpy()[horizon - 1 :: horizon]
    gains = values.sub(values.iloc[:, 0], axis=0)
    columns = {"value": values.mean(), "standard error": values.sem()}
    return pd.DataFrame(columns | {"gain": gains.mean(), "error of gain": gains.sem()})
