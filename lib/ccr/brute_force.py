r"""The second oracle of the exact quantities: every state of the noise, one by one.

In each of the :math:`2^n` states of n nodes, all that happens and all that would have happened is
determined. So every quantity is a sum of probabilities of states, straight from its definition:

.. math::
    \mathrm{PNS} = P(y_x \land \lnot y_{\lnot x}), \quad
    \mathrm{PN} = P(\lnot y_{\lnot x} \mid x \land y), \quad
    \mathrm{PS} = P(y_x \mid \lnot x \land \lnot y).

Neither monotonicity nor the absence of confounding is used, nor any code of :mod:`lib.ccr.exact` or
:class:`lib.ccr.worlds.World`; only the fields of a world are read.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from lib.ccr.worlds import World
from lib.errors import check

#: With more nodes, states take too much memory: the 2^20 states of 20 nodes are 160 MiB a table.
MOST_NODES = 20


def enumerated_quantities(world: World) -> pd.DataFrame:
    """Return what :func:`lib.ccr.exact.exact_quantities` does, for a world of at most 20 nodes."""
    n = world.chain.n_nodes
    check(n <= MOST_NODES, f"at most {MOST_NODES} nodes can be enumerated", n)
    states = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    p = np.array(world.probabilities)
    weight = np.where(states == 1, p, 1 - p).prod(axis=1)
    seen = _outcome(world, states, {})
    rows = {}
    for x, y in itertools.combinations(world.chain.cut_tree, 2):
        y1, y0 = (_outcome(world, states, {x: value})[:, y] == 1 for value in (1, 0))
        rows[x, y] = defined(seen[:, x] == 1, seen[:, y] == 1, y1, y0, lambda w: weight[w].sum())
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["cause", "effect"])


def defined(
    x: np.ndarray, y: np.ndarray, y1: np.ndarray, y0: np.ndarray, n: Callable[..., Any], of: Any = 1
) -> dict[str, Any]:
    r"""Return every quantity of a pair by its definition, from what is true in each case.

    `x` and `y` are the cause and the effect as they are; `y1` and `y0` are the effect as it would
    be if the cause were made true and false. The function `n` returns the weight of an event, such
    as the number of its cases; `of` is the weight of all cases.
    """
    return {
        "P(y | x)": n(x & y) / n(x),
        "P(y | not x)": n(~x & y) / n(~x),
        "P(y | do x)": n(y1) / of,
        "P(y | do not x)": n(y0) / of,
        "ATE": (n(y1) - n(y0)) / of,
        "PNS": n(y1 & ~y0) / of,
        "PN": n(x & y & ~y0) / n(x & y),
        "PS": n(~x & ~y & y1) / n(~x & ~y),
    }


def _outcome(world: World, states: np.ndarray, do: dict[int, int]) -> np.ndarray:
    """Return the value of every node in every state, shape (states, nodes)."""
    outcome, graph = states.copy(), world.chain.graph
    for node in sorted(graph):
        inputs = outcome[:, [node, *graph.predecessors(node)]]
        # Among zeros and ones, "and" is the least and "or" the greatest.
        by_rule = inputs.min(axis=1) if world.operators[node] == "and" else inputs.max(axis=1)
        outcome[:, node] = do.get(node, by_rule)
    return outcome
