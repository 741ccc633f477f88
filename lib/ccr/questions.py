r"""Questions about a case of which some facts are not told, and their answers by enumeration.

Facts are noise. If every one is told, a counterfactual is a re-evaluation. If some are not, what is
known of the outcome tells something about them, *abduction* [1]_: of all worlds that fit what
is told, those remain in which the outcome is as it is known to be. What holds in all of them
is answered by yes, what holds in none by no, and all else *cannot be known*.

A question is what is known, pairs of a node and its value, and what it takes for a yes: claims that
a node, the effect, has a value after something was done. All kinds are of this one form:

====================  ============================================  ============================
kind                  what is known                                 what it takes for a yes
====================  ============================================  ============================
factual               nothing but the facts told                    :math:`Y`
abduction             the leaf                                      :math:`X`
interventional        nothing but the facts told                    :math:`Y_x`
counterfactual        the leaf                                      :math:`Y_x`
joint                 the leaf                                      :math:`Y_{x, m}`
nested                the leaf                                      :math:`Y_{x, M_{\lnot x}}`
necessity             :math:`X` and :math:`Y`                       :math:`\lnot Y_{\lnot x}`
sufficiency           :math:`\lnot X` and :math:`\lnot Y`           :math:`Y_x`
dependence            nothing but the facts told                    :math:`Y_x, \lnot Y_{\lnot x}`
====================  ============================================  ============================

What is known is always true of the case, so a question is asked where it is.

References
----------
.. [1] Pearl, J. (2009). Causality, 2nd edition. Theorem 7.1.7. Cambridge University Press.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np

from lib.ccr.graphs import Chain
from lib.ccr.worlds import World

#: The answers in words, each at the place of its number.
ANSWERS = ("No", "Yes", "Cannot be known")

#: The number of the answer that there is none.
UNKNOWN = 2

#: The kinds of question.
KINDS = (
    *("factual", "abduction", "interventional", "counterfactual", "joint", "nested"),
    *("necessity", "sufficiency", "dependence"),
)

#: At most so many facts of a sample are not told. Each more may double the worlds, with 16 up to
#: 65 536: enumeration then labels more than 10 000 prompts a CPU second, and the reader of
#: :mod:`lib.ccr.reader`, which has to agree, reads some tens. Further facts halve both.
MOST_UNTOLD = 16

#: What is done: a node and its value, or the actions after which it has the one that it is kept at.
Actions = tuple[tuple[int, "bool | Actions"], ...]


class Claim(NamedTuple):
    """That a node has a value after something is done."""

    node: int
    value: bool = True
    actions: Actions = ()


@dataclass(frozen=True)
class Question:
    """All that must hold for a yes, and all that is known."""

    kind: str
    claims: tuple[Claim, ...]
    given: tuple[Claim, ...] = ()


def every_question(chain: Chain, withheld: bool = True) -> list[Question]:
    """Return every question about a chain: between nodes of its cut tree, and through mediators.

    If no fact is `withheld`, only factual and interventional ones are asked.
    """
    both, tree = (True, False), chain.cut_tree
    single = [(Claim(y, True, ((x, v),)),) for x, y in chain.quantities for v in both]
    asked = [Question("factual", (Claim(node),)) for node in tree]
    asked += [Question("interventional", claims) for claims in single]
    if not withheld:
        return asked
    # A mediator is within a component, and between its ends or those of the chain.
    within = [(x, m, y) for x, y in itertools.pairwise(tree) for m in range(x + 1, y)]
    mediated = dict.fromkeys([*within, *((tree[0], m, tree[-1]) for _, m, _ in within)])
    for known in ((Claim(chain.leaf, value),) for value in both):
        asked += [Question("abduction", (Claim(node),), known) for node in tree[:-1]]
        asked += [Question("counterfactual", claims, known) for claims in single]
        for (x, m, y), v in itertools.product(mediated, both):
            for kept in (True, False, ((x, not v),)):
                kind = "joint" if kept in both else "nested"
                asked.append(Question(kind, (Claim(y, True, ((x, v), (m, kept))),), known))
    for x, y in chain.quantities:
        true, false = Claim(y, True, ((x, True),)), Claim(y, False, ((x, False),))
        asked.append(Question("necessity", (false,), (Claim(x), Claim(y))))
        asked.append(Question("sufficiency", (true,), (Claim(x, False), Claim(y, False))))
        asked.append(Question("dependence", (true, false)))
    return asked


def decide(world: World, asked: Sequence[Question], told: np.ndarray) -> np.ndarray:
    """Answer by enumeration of all noise that fits, shape (questions, samples).

    What is `told` of the noise is 1, 0 or, if nothing, -1, shape (nodes, samples). Where
    no world fits what is known, no claim holds, and the answer is no.

    Examples
    --------
    >>> world = World(Chain([2]), ["and", "or"], [0.5, 0.5])
    >>> known = Question("abduction", (Claim(0),), given=(Claim(1),))
    >>> decide(world, [Question("factual", (Claim(0),)), known], np.array([[-1], [0]])).tolist()
    [[2], [1]]
    """
    untold, told = told < 0, told.astype(np.int8)
    n = max(3, untold.sum(axis=0).max())
    size = max(1, 2**19 >> n)  # samples at a time: with more worlds, their bits leave the caches
    if untold.shape[1] > size:
        parts = np.split(told, range(size, untold.shape[1], size), axis=1)
        return np.hstack([decide(world, asked, part) for part in parts])
    # Of every sample, world number b has bit number j of b as the j-th noise that is not told.
    # Eight worlds are the bits of a byte, so that each operation evaluates all of these at once.
    bits = np.packbits(np.arange(2**n) >> np.arange(n + 1)[:, None] & 1, axis=1).view(np.int8)
    noise = np.where(untold[..., None], bits[untold.cumsum(axis=0) - untold], -told[..., None])
    after = lru_cache(maxsize=32)(lambda actions: world.values(noise, dict(actions)))

    def hold(claims: Sequence[Claim]) -> Any:
        # Of a claim that something is false, every bit is turned: a world fits where it is not.
        bits = (after(do)[node] ^ (value - 1) for node, value, do in claims)
        return reduce(np.bitwise_and, bits, np.full_like(noise[0], -1))

    held = ((hold(one.given), hold(one.claims)) for one in asked)
    may = np.array([[(fits & side).any(axis=1) for side in (yes, ~yes)] for fits, yes in held])
    return np.where(may.all(axis=1), UNKNOWN, may[:, 0]).astype(np.int8)
