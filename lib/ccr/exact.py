r"""Exact causal quantities of a Boolean world, component by component.

A component touches the rest of the chain in two nodes only, its source s and its sink t, and no two
components share noise. *And* and *or* never turn a gain into a loss, so the noise of a component
decides between three responses of t to s: t is *never* true, *follows* s, or is *always* true,
whatever s is. Their probabilities are all that a component does, and along the chain they compose:

.. math::
    \mathrm{follows}_{ij} = \mathrm{follows}_{i,j-1}\,\mathrm{follows}_j, \qquad
    \mathrm{always}_{ij} = \mathrm{always}_j + \mathrm{follows}_j\,\mathrm{always}_{i,j-1},

likewise for *never*. Because a cutpoint lets nothing past, cause and effect in the cut tree are
unconfounded, :math:`P(y \mid do(x)) = P(y \mid x)`, so that [1]_

.. math::
    \mathrm{PNS} = \mathrm{ATE} = \mathrm{follows}, \qquad
    \mathrm{PN} = \frac{\mathrm{follows}}{\mathrm{always} + \mathrm{follows}}, \qquad
    \mathrm{PS} = \frac{\mathrm{follows}}{\mathrm{never} + \mathrm{follows}}.

The first equation above is the composition theorem: the PNS of root and leaf is the product of the
PNS along any path of the cut tree. Only sums, products and quotients of probabilities occur, never
a difference, so a small effect keeps all its digits.

References
----------
.. [1] Tian, J. and Pearl, J. (2000). Probabilities of causation: bounds and identification. Annals
   of Mathematics and Artificial Intelligence 28, 287-313.
"""

import itertools

import numpy as np
import pandas as pd

from lib.ccr.worlds import World

#: The quantities of a pair, by the names of their columns.
COLUMNS = ["P(y | x)", "P(y | not x)", "P(y | do x)", "P(y | do not x)", "ATE", "PNS", "PN", "PS"]

#: How a node responds to the source of its component, from the least to the greatest.
NEVER, FOLLOWS, ALWAYS = range(3)


def responses(world: World, component: int) -> tuple[float, float, float]:
    """Return the probabilities that a component's sink is never true, follows, or is always true.

    With the source given, the other nodes of a component form a path; a wheel's sink also sees the
    first node of this path. The joint distribution of the responses of the first and of the current
    node is carried along the path, which takes time linear in the size of the component.
    """
    chain = world.chain
    first, last = chain.cut_tree[component], chain.cut_tree[component + 1]
    hub = (FOLLOWS,) if chain.bcc_types[component] == "wheel" else ()
    path = {(FOLLOWS, FOLLOWS): 1.0}
    for node in range(first + 1, last):
        moved: dict[tuple[int, int], float] = {}
        for (begin, current), weight in path.items():
            for response, part in enumerate(_response(world, node, [((current, *hub), weight)])):
                ends = (begin if node > first + 1 else response, response)
                moved[ends] = moved.get(ends, 0.0) + part
        path = moved
    # The sink hears the source, the end of the path and, in a wheel, its beginning.
    heard = [((FOLLOWS, *(ends if hub else ends[1:])), weight) for ends, weight in path.items()]
    return _response(world, last, heard)


def _response(
    world: World, node: int, causes: list[tuple[tuple[int, ...], float]]
) -> tuple[float, float, float]:
    """Return how likely each response of a node is, given how likely those of its causes are."""
    # "And" is the least of noise and causes, "or" the greatest; noise itself is never or always.
    p = world.probabilities[node]
    found = [0.0, 0.0, 0.0]
    for combination, weight in causes:
        if world.operators[node] == "and":
            found[NEVER] += (1 - p) * weight
            found[min(combination)] += p * weight
        else:
            found[ALWAYS] += p * weight
            found[max(combination)] += (1 - p) * weight
    return found[NEVER], found[FOLLOWS], found[ALWAYS]


def exact_quantities(world: World) -> pd.DataFrame:
    """Return the exact quantities, `COLUMNS`, of every pair of the cut tree, by cause and effect.

    Examples
    --------
    >>> from lib.ccr.graphs import Chain
    >>> world = World(Chain([2, 2]), ["and", "and", "or"], [0.5, 0.8, 0.5])
    >>> exact_quantities(world)["PNS"].round(3).tolist()
    [0.8, 0.4, 0.5]
    """
    nodes = np.array(world.chain.cut_tree)
    k = len(nodes)
    # Entry [i, j] is about the response of node j to node i, by position in the cut tree; a node
    # follows itself.
    follows, always = np.ones((k, k)), np.zeros((k, k))
    # The odds always : follows and never : follows are carried along too: at the end of a long
    # chain, all three probabilities may be too small for a float, while PN and PS are not.
    always_odds, never_odds = np.zeros((k, k)), np.zeros((k, k))
    with np.errstate(divide="ignore", over="ignore"):
        for j in range(1, k):
            n, f, a = responses(world, j - 1)
            follows[:j, j] = f * follows[:j, j - 1]
            always[:j, j] = a + f * always[:j, j - 1]
            always_odds[:j, j] = always_odds[:j, j - 1] + (a / follows[:j, j] if a else 0)
            never_odds[:j, j] = never_odds[:j, j - 1] + (n / follows[:j, j] if n else 0)
    cause, result = pairs = np.triu_indices(k, 1)
    follows, always = follows[pairs], always[pairs]
    on = always + follows
    pn, ps = 1 / (1 + always_odds[pairs]), 1 / (1 + never_odds[pairs])
    columns = [on, always, on, always, follows, follows, pn, ps]
    index = pd.MultiIndex.from_arrays([nodes[cause], nodes[result]], names=["cause", "effect"])
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)), index=index)


def composed(quantities: pd.DataFrame, path: tuple[int, ...]) -> float:
    """Return the product of the PNS along a path of the cut tree."""
    return float(np.prod([quantities["PNS"].loc[step] for step in itertools.pairwise(path)]))
