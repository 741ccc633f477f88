"""Causal graphs in which effects compose: chains of biconnected components.

A graph of CCR.GB is a chain of *biconnected components* (BCCs): parts that stay
connected when any one node is taken out. Neighbouring components share one node,
a *cutpoint*: all that the first part of the chain does to the last goes through
it. Root, cutpoints and leaf, in order, span the *commutative cut tree* (CCT), the
complete graph in which every path from root to leaf composes to the same effect.

A component of n nodes is

- a *cycle*: 0 → 1 → … → n-1 and 0 → n-1;
- a *wheel*: a hub 0 with an edge to every other node, and those as a cycle,
  1 → 2 → … → n-1 and 1 → n-1;
- a *bridge*: two nodes and their edge.

>>> chain = Chain((3, 2, 4), ("cycle", "cycle", "wheel"))
>>> chain.cut_tree
(0, 2, 3, 6)
>>> chain.parents[6]
(3, 4, 5)
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from lib.errors import InputError, is_count, one_of

#: The kinds of component; two nodes make a bridge, whichever is asked for.
KINDS = ("cycle", "wheel")

#: A cause and its effect, as node numbers.
Pair = tuple[int, int]


@dataclass(frozen=True)
class Chain:
    """A chain of biconnected components, its nodes numbered in topological order.

    Parameters
    ----------
    n_per_bcc : sequence of int
        The number of nodes of each component, at least 2, cutpoints counted in both.
    bcc_types : str or sequence of str
        The kind of each component, 'cycle' or 'wheel'; one word stands for all.
    """

    n_per_bcc: Sequence[int]
    bcc_types: str | Sequence[str] = "cycle"

    def __post_init__(self):
        sizes = tuple(self.n_per_bcc)
        kinds = self.bcc_types
        kinds = (kinds,) * len(sizes) if isinstance(kinds, str) else tuple(kinds)
        if not sizes:
            raise InputError("n_per_bcc must name at least one component: found none")
        for size in sizes:
            if not is_count(size, least=2):
                raise InputError(f"a component needs at least 2 nodes: found {size!r}")
        if len(kinds) != len(sizes):
            raise InputError(
                f"bcc_types must have one kind a component, {len(sizes)}: found {len(kinds)}"
            )
        for kind in kinds:
            if kind not in KINDS:
                raise InputError(f"bcc_types: kind {kind!r} is unknown: {one_of(KINDS)}")
        object.__setattr__(self, "n_per_bcc", tuple(int(size) for size in sizes))
        object.__setattr__(self, "bcc_types", kinds)

    @cached_property
    def cut_tree(self) -> tuple[int, ...]:
        """Root, cutpoints and leaf, in order: the nodes of the commutative cut tree."""
        return tuple(itertools.accumulate((size - 1 for size in self.n_per_bcc), initial=0))

    @property
    def n_nodes(self) -> int:
        """How many nodes the graph has."""
        return self.cut_tree[-1] + 1

    @property
    def root(self) -> int:
        """The only node without causes."""
        return 0

    @property
    def leaf(self) -> int:
        """The only node without effects."""
        return self.cut_tree[-1]

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The direct causes of every node, in ascending order."""
        causes: list[tuple[int, ...]] = [()]
        for first, size, kind in zip(self.cut_tree, self.n_per_bcc, self.bcc_types, strict=False):
            for node in range(1, size):
                local = {0, node - 1} if kind == "wheel" or node == size - 1 else {node - 1}
                if kind == "wheel" and node == size - 1 and size > 2:
                    local.add(1)
                local.discard(node)
                causes.append(tuple(first + cause for cause in sorted(local)))
        return tuple(causes)

    @property
    def graph(self) -> nx.DiGraph:
        """The causal graph."""
        graph = nx.DiGraph()
        graph.add_nodes_from(range(self.n_nodes))
        graph.add_edges_from(
            (cause, node) for node, causes in enumerate(self.parents) for cause in causes
        )
        return graph

    @property
    def global_quantity(self) -> Pair:
        """The pair whose effect all compositions amount to: root and leaf."""
        return self.root, self.leaf

    @property
    def quantities(self) -> list[Pair]:
        """Every ordered pair of the commutative cut tree, the global one first."""
        pairs = list(itertools.combinations(self.cut_tree, 2))
        pairs.remove(self.global_quantity)
        return [self.global_quantity, *pairs]

    @property
    def n_compositions(self) -> int:
        """How many compositions there are: 2^(k-1) - 1 for k components."""
        return 2 ** (len(self.n_per_bcc) - 1) - 1

    def compositions(self) -> Iterator[tuple[int, ...]]:
        """Yield every path of the cut tree from root to leaf with at least two edges.

        They come shortest first and one at a time: their number doubles with every component.

        Examples
        --------
        >>> list(Chain([3, 3, 3]).compositions())
        [(0, 2, 6), (0, 4, 6), (0, 2, 4, 6)]
        """
        between = self.cut_tree[1:-1]
        for length in range(1, len(between) + 1):
            for stops in itertools.combinations(between, length):
                yield (self.root, *stops, self.leaf)
