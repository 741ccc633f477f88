r"""The second oracle of the exact quantities: every state of the noise, one by one.

In each of the :math:`2^n` states of n nodes, all that happens and all that would have happened is
determined, so every quantity is a sum of probabilities of states, straight from its definition:

.. math::
    \mathrm{PNS} = P(y_x \land \lnot y_{\lnot x}), \quad
    \mathrm{PN} = P(\lnot y_{\lnot x} \mid x \land y), \quad
    \mathrm{PS} = P(y_x \mid \lnot x \land \lnot y).

Neither monotonicity nor the absence of confounding is used, nor any code of
:mod:`lib.ccr.exact` or :class:`lib.ccr.worlds.World`, whose fields alone are read.
"""

import itertools

import numpy as np
import pandas as pd

from lib.ccr.worlds import World
from lib.errors import check

#: Above this the states would not fit into memory: 2^20 states of 20 nodes take 20 MB a world.
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
        treated = _outcome(world, states, {x: 1})[:, y] == 1
        control = _outcome(world, states, {x: 0})[:, y] == 1
        is_x, is_y = seen[:, x] == 1, seen[:, y] == 1
        rows[x, y] = {
            "P(y | x)": _share(weight, is_y, is_x),
            "P(y | not x)": _share(weight, is_y, ~is_x),
            "P(y | do x)": weight[treated].sum(),
            "P(y | do not x)": weight[control].sum(),
            "ATE": weight[treated].sum() - weight[control].sum(),
            "PNS": weight[treated & ~control].sum(),
            "PN": _share(weight, ~control, is_x & is_y),
            "PS": _share(weight, treated, ~is_x & ~is_y),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["cause", "effect"])


def _share(weight: np.ndarray, event: np.ndarray, given: np.ndarray) -> float:
    return float(weight[event & given].sum() / weight[given].sum())


def _outcome(world: World, states: np.ndarray, do: dict[int, int]) -> np.ndarray:
    """Return the value of every node in every state, shape (states, nodes)."""
    outcome, graph = states.copy(), world.chain.graph
    for node in sorted(graph):
        inputs = outcome[:, [node, *graph.predecessors(node)]]
        # Of zeros and ones, "and" is the least and "or" the greatest.
        by_rule = inputs.min(axis=1) if world.operators[node] == "and" else inputs.max(axis=1)
        outcome[:, node] = do.get(node, by_rule)
    return outcome
