r"""Linear worlds, told as CellBio: volumes instead of yes and no, every answer computed twice.

A world is a causal graph with a `weight` :math:`b` on each edge. Several *arms*, which are chains
of components, lead from its first node, the root, to its last, the leaf; the direct edge may be one
of them. With noise :math:`U_V`, told as the volume of an enzyme,

.. math:: V := U_V + \sum_{C \in \mathrm{pa}(V)} b_{CV} \, C,

so effects multiply along a path and add up over paths. Weights out of the root and into the leaf
have one decimal; other weights and the noise are whole, so no answer has more than two decimals.
"""

import functools
import itertools
import math
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import jinja2
import networkx as nx
import numpy as np
from scipy.linalg import solve_triangular

from lib import ROOT
from lib.ccr.graphs import Chain
from lib.ccr.theme import Draw
from lib.errors import check, check_known
from lib.noise import uniforms

#: How contexts and questions are told.
CELL_BIO = jinja2.Template((ROOT / "data" / "cell_bio.jinja").read_text("utf-8")).module

#: What is asked, with nodes by name. It is either the effect of one more unit of the cause
#: (*through* nodes: along all paths that meet one of them; *direct*: along all that meet none), or
#: the value of the effect, with the cause, if there is one, set to `value`.
Question = namedtuple("Question", "kind effect cause through value", defaults=("", (), None))
EFFECTS, SETTINGS = ("total", "direct", "through"), ("interventional", "counterfactual")

#: Double precision holds smaller volumes to a hundredth, also as differences of products.
LARGEST = 1e12


def linear_world(
    arms: Sequence[Chain], seed: int = 0, name: str = "", wording: int = 0
) -> nx.DiGraph:
    """Draw a world; its attribute `arms` lists the nodes of every arm between root and leaf.

    It is told as sentences (`wording` 0), as instructions (1) or as equations (2).

    Examples
    --------
    >>> world = linear_world([Chain([2]), Chain([2, 2]), Chain([3, 2])])
    >>> list(world), world.graph["arms"]
    (['Priya', 'Diego', 'Oskar', 'Igor', 'Chloe'], [(), ('Diego',), ('Oskar', 'Igor')])
    """
    check_known("wording", wording, range(3))
    met = len(arms) > 0 and sum(chain.n_nodes == 2 for chain in arms) < 2
    check(met, "there must be at least one arm, and at most one may be the direct edge", arms)
    draw = Draw(seed, name)
    root, *rest, leaf = names = draw.people(2 + sum(chain.n_nodes - 2 for chain in arms))
    world = nx.DiGraph(dict.fromkeys(names, ()), name=name, seed=seed, arms=[], wording=wording)
    for chain in arms:
        arm, rest = rest[: chain.n_nodes - 2], rest[chain.n_nodes - 2 :]
        world.update(nx.relabel_nodes(chain.graph, dict(enumerate([root, *arm, leaf]))))
        world.graph["arms"].append(tuple(arm))
    for x, y, edge in world.edges(data=True):
        size = draw.integer(2, 15) / 10 if x == root or y == leaf else draw.integer(2, 3)
        edge["weight"] = draw.one((-1, 1)) * size
    sizes = np.eye(len(world)) - abs(nx.to_numpy_array(world))
    largest = 9 * np.linalg.inv(sizes).sum(axis=0).max()
    check(largest < LARGEST, f"no volume of a world may reach {LARGEST:.0e}", largest)
    return world


def noise(world: nx.DiGraph, n: int) -> np.ndarray:
    """Draw the noise of n cells, whole numbers from -9 to 9, shape (nodes, n)."""
    return (19 * uniforms(world.graph["seed"], world.name, n=n, terms=len(world))).astype(int) - 9


def questions(world: nx.DiGraph) -> list[Question]:
    """Return all questions: ways from root to leaf, each node, then each cause with each effect."""
    root, *between, leaf = world
    ways = dict.fromkeys([tuple(between), *world.graph["arms"], *((node,) for node in between)])
    pairs = [pair for pair in itertools.combinations(world, 2) if nx.has_path(world, *pair)]
    found = [Question("direct", leaf, root, tuple(between))]
    found += [Question("through", leaf, root, way) for way in ways if way]
    found += [Question("factual", node) for node in world]
    for (x, y), value in zip(pairs, itertools.cycle(range(-9, 10)), strict=False):
        found += [Question("total", y, x), *(Question(kind, y, x, (), value) for kind in SETTINGS)]
    return found


def prompts(world: nx.DiGraph, n_samples: int) -> Iterator[dict[str, Any]]:
    """Yield every prompt about every cell, with `question`, `context`, `text` and `answer`.

    A context gives the cell's enzymes or, for a counterfactual, the volumes of all transcripts.
    """
    enzymes = noise(world, n_samples)
    seen = np.array([by_algebra(world, Question("factual", node), enzymes) for node in world])
    cells = {"enzyme": enzymes.T, "volume": seen.T}
    told = {form: [CELL_BIO.context(world, form, one) for one in cells[form]] for form in cells}
    for question in questions(world):
        contexts = told["volume" if question.kind == "counterfactual" else "enzyme"]
        answers = by_algebra(world, question, enzymes).tolist()
        text = CELL_BIO.question(world, *question)
        for context, answer in zip(contexts, answers, strict=True):
            yield {"question": question, "context": context, "text": text, "answer": answer}


def by_algebra(world: nx.DiGraph, question: Question, noise: np.ndarray) -> np.ndarray:
    r"""Answer a question about each of n cells by linear algebra, from noise of shape (nodes, n).

    With the weights in a matrix :math:`B`, total effects are :math:`(I - B)^{-1}`. For the effects
    along all paths that avoid some nodes, the edges into these nodes are left out of :math:`B`.
    """
    # Causes before their effects, so that every step of this is just a sum of products.
    order = [*nx.topological_sort(world)]
    place = {node: i for i, node in enumerate(order)}
    y, x = place[question.effect], place.get(question.cause)
    weights, unit = nx.to_numpy_array(world, order).T, np.eye(len(world))
    solved = functools.partial(solve_triangular, b=unit, lower=True, unit_diagonal=True)
    total = solved(unit - weights)
    weights[[place[node] for node in question.through]] = 0
    past = solved(unit - weights)
    if question.kind in EFFECTS:
        found = (total - past if question.kind == "through" else past)[y, x]
    else:
        seen = total[:, [place[node] for node in world]] @ noise
        found = seen[y] if x is None else seen[y] + total[y, x] * (question.value - seen[x])
    # No answer has more than two decimals, and adding zero makes a zero of minus zero.
    return np.round(np.broadcast_to(found, noise.shape[1]), 2) + 0.0


def by_paths(
    world: nx.DiGraph, question: Question, noise: np.ndarray, along: Callable[..., Any] = math.prod
) -> np.ndarray:
    """Answer as :func:`by_algebra` does, but by visiting every path, in rational numbers.

    `along` computes the effect of a path from the weights of its edges.
    """
    kind, y, x, through, value = question
    own = {} if kind in EFFECTS else dict(zip(world, noise.astype(object), strict=True))
    done = {x: 1 if kind in EFFECTS else value} if x else {}
    found = np.zeros(noise.shape[1], object)
    for cause, volume in (own | done).items():
        for path in nx.all_simple_paths(world, cause, y):
            if x not in path[1:] and {*path}.isdisjoint(through) == (kind != "through"):
                weights = (world.edges[edge]["weight"] for edge in itertools.pairwise(path))
                found += along([Fraction(str(weight)) for weight in weights]) * volume
    return found.astype(float)
