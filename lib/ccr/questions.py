r"""Questions about a case in which some facts are not told, and their answers by enumeration.

Facts are noise. If every fact is told, a counterfactual is a re-evaluation. If some are not, what
is known of the outcome tells something about them. This is *abduction* [1]_: of all worlds that fit
the facts told, only those remain in which the outcome is as known. A claim that holds in all of
these worlds is answered by yes, one that holds in none by no, and any other *cannot be known*.

A question has two parts: what is known, as pairs of a node and its value, and what it takes for a
yes, as claims that a node, the effect, has a value after some actions. All kinds have this form:

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

What is known is always true of the case: a question is asked only where it is true.

References
----------
.. [1] Pearl, J. (2009). Causality, 2nd edition. Theorem 7.1.7. Cambridge University Press.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np

from lib.ccr.graphs import Chain
from lib.ccr.worlds import Actions, World

#: The answers in words, each at the place of its number.
ANSWERS = ("No", "Yes", "Cannot be known")

#: The number of the answer "Cannot be known".
UNKNOWN = 2

#: The kinds of question.
KINDS = (
    *("factual", "abduction", "interventional", "counterfactual", "joint", "nested"),
    *("necessity", "sufficiency", "dependence"),
)

#: The largest number of facts of a sample that may be left untold. Each may double the number of
#: worlds, so 16 give up to 65 536. Enumeration then labels from some 80 000 prompts per CPU second,
#: where every fact matters, to several times as many; the reader of :mod:`lib.ccr.reader`, which
#: has to agree, reads tens. Each further fact may halve both rates.
MOST_UNTOLD = 16

#: Bytes of worlds that are evaluated at a time: the values of more would not fit in caches.
MOST_BYTES = 2**16


class Claim(NamedTuple):
    """The claim that a node has a value after some actions."""

    node: int
    value: bool = True
    actions: Actions = ()


@dataclass(frozen=True)
class Question:
    """A question: all `claims` must hold for a yes, and all of `given` is known."""

    kind: str
    claims: tuple[Claim, ...]
    given: tuple[Claim, ...] = ()


def every_question(chain: Chain, withheld: bool = True) -> list[Question]:
    """Return every question about a chain: on nodes of its cut tree, and through mediators.

    If no fact is `withheld`, only factual and interventional questions are asked.
    """
    both, tree = (True, False), chain.cut_tree
    single = [(Claim(y, True, ((x, v),)),) for x, y in chain.quantities for v in both]
    asked = [Question("factual", (Claim(node),)) for node in tree]
    asked += [Question("interventional", claims) for claims in single]
    if not withheld:
        return asked
    # A mediator lies within a component, between the ends of the component or of the chain.
    within = [(x, m, y) for x, y in itertools.pairwise(tree) for m in range(x + 1, y)]
    mediated = dict.fromkeys([*within, *((tree[0], m, tree[-1]) for _, m, _ in within)])
    for known in ((Claim(chain.leaf, value),) for value in both):
        asked += [Question("abduction", (Claim(node),), known) for node in tree[:-1]]
        asked += [Question("counterfactual", claims, known) for claims in single]
        for (x, m, y), v in itertools.product(mediated, both):
            for kept in (True, False, ((x, not v),)):
                kind = "joint" if kept in both else "nested"
                asked.append(Question(kind, (Claim(y, True, ((x, v), (m, kept))),), known))
    return asked + [one for pair in chain.quantities for one in of_causation(*pair)]


def of_causation(x: int, y: int) -> list[Question]:
    """Return the questions on necessity, sufficiency and dependence of a cause and its effect."""
    true, false = Claim(y, True, ((x, True),)), Claim(y, False, ((x, False),))
    return [
        Question("necessity", (false,), (Claim(x), Claim(y))),
        Question("sufficiency", (true,), (Claim(x, False), Claim(y, False))),
        Question("dependence", (true, false)),
    ]


def decide(world: World, asked: Sequence[Question], told: np.ndarray) -> np.ndarray:
    """Answer questions by enumerating all noise that fits, shape (questions, samples).

    `told`, shape (nodes, samples), is the noise that is told, 1 or 0, and -1 where it is not told.
    Where no world fits what is known, no claim holds, and the answer is no.

    Examples
    --------
    >>> world = World(Chain([2]), ["and", "or"], [0.5, 0.5])
    >>> known = Question("abduction", (Claim(0),), given=(Claim(1),))
    >>> decide(world, [Question("factual", (Claim(0),)), known], np.array([[-1], [0]])).tolist()
    [[2], [1]]
    """
    # Samples of which the same is told have the same answers.
    told, place = np.unique(told.astype(np.int8), axis=1, return_inverse=True)
    parts = [_answers(world, asked, *some) for some in _worlds(world, asked, told)]
    return np.hstack(parts)[:, place]


def _worlds(world: World, asked: Sequence[Question], told: np.ndarray) -> Iterator[Any]:
    # Yield the noise of worlds that fit, eight as the bits of a byte, and where samples begin.
    # Of worlds that differ in a fact that moves nothing that is asked about, one is enough: its
    # node is not asked about, and noise of its own decides each effect ("and" by 0, "or" by 1).
    # The fact is then taken to decide its node, so that causes of the node may move nothing, too.
    about = {claim.node for one in asked for claim in (*one.claims, *one.given)}
    deciding = np.array([[-(operator == "or")] for operator in world.operators], dtype=np.int8)
    # The first three facts that are not told are bits; each later one, at first 1, doubles bytes.
    bits = np.array([0, 0x55, 0x33, 0x0F, 1], dtype=np.int8)
    noise = np.where(told < 0, bits[np.minimum((told < 0).cumsum(axis=0), 4)], -told)
    sample = np.arange(told.shape[1])
    for node in range(len(told))[::-1]:
        effects = [y for y, causes in enumerate(world.chain.parents) if node in causes]
        moves = (noise[effects] != deciding[effects]).any(axis=0) | (node in about)
        noise[node, ~moves] = deciding[node]
        copies = 1 + (noise[node] == 1)
        noise, sample = noise.repeat(copies, axis=1), sample.repeat(copies)
        noise[node, noise[node] == 1] = np.tile([0, -1], (copies == 2).sum())
        if len(sample) > MOST_BYTES and told.shape[1] > 1:
            for half in np.array_split(told, 2, axis=1):
                yield from _worlds(world, asked, half)
            return
    yield noise, np.flatnonzero(np.diff(sample, prepend=-1))


def _answers(world: World, asked: Sequence[Question], noise: Any, begins: Any) -> np.ndarray:
    # The answers of samples, shape (questions, samples), whose worlds begin at these bytes.
    found = dict[Any, Any]()

    @cache
    def hold(claims: Sequence[Claim]) -> Any:
        # A claim that a node is false flips every bit: a world fits where the node is not true.
        after = ((world.value(node, do, noise, found), value) for node, value, do in claims)
        sides = [true if value else ~true for true, value in after]
        return reduce(np.bitwise_and, sides) if sides else np.full_like(noise[0], -1)

    held = ((fits, fits & hold(one.claims)) for one in asked for fits in [hold(one.given)])
    may = [np.bitwise_or.reduceat([yes, yes ^ fits], begins, axis=1) for fits, yes in held]
    yes, no = np.moveaxis(np.array(may) != 0, 1, 0)  # whether they are possible
    return np.where(yes & no, UNKNOWN, yes).astype(np.int8)
