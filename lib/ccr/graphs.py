"""Causal graphs in which effects compose: chains of biconnected components.

A graph of CCR.GB is a chain of *biconnected components* (BCCs): parts that stay connected when any
one node is removed. Neighbours share one node, a *cutpoint*; every effect of the chain before it on
the chain after it passes through it. Root, cutpoints and leaf, in order, span the *commutative cut
tree* (CCT), in which every path from root to leaf composes to the same effect. A component is

- a *cycle*: 0 → 1 → … → n-1 and 0 → n-1;
- a *wheel*: a hub 0 with an edge to every other node, and the other nodes as a cycle,
  1 → 2 → … → n-1 and 1 → n-1;
- a *bridge*: two nodes and their edge.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from lib.errors import check, check_count, check_names

#: The kinds of component; two nodes make a bridge, whichever kind is asked for.
KINDS = ("cycle", "wheel")


@dataclass(frozen=True)
class Chain:
    """A chain of biconnected components, its nodes numbered in topological order.

    `n_per_bcc` lists the number of nodes of each component, at least 2; a cutpoint counts in both
    its components. `bcc_types` lists the kind of each component; a single word stands for all.

    Examples
    --------
    >>> chain = Chain([3, 2, 4], ["cycle", "cycle", "wheel"])
    >>> chain.cut_tree, chain.parents[6]
    ((0, 2, 3, 6), (3, 4, 5))
    """

    n_per_bcc: Sequence[int]
    bcc_types: str | Sequence[str] = "cycle"

    def __post_init__(self) -> None:
        # Only ordered collections: two equal sets may iterate in different orders.
        sizes = tuple(self.n_per_bcc) if hasattr(self.n_per_bcc, "__getitem__") else ()
        check(len(sizes) > 0, "n_per_bcc must list the size of each component", self.n_per_bcc)
        for size in sizes:
            check_count("each entry of n_per_bcc", size, least=2)
        kinds = self.bcc_types
        several = tuple(kinds) if hasattr(kinds, "__getitem__") else ()
        kinds = (kinds,) * len(sizes) if isinstance(kinds, str) else several
        one_each = f"bcc_types must have one kind per component, {len(sizes)}"
        check(len(kinds) == len(sizes), one_each, len(kinds))
        check_names("bcc_types: kind", kinds, KINDS)
        object.__setattr__(self, "n_per_bcc", tuple(map(int, sizes)))
        object.__setattr__(self, "bcc_types", kinds)

    @cached_property
    def cut_tree(self) -> tuple[int, ...]:
        """Root, cutpoints and leaf, in order: the nodes of the commutative cut tree."""
        return tuple(itertools.accumulate((size - 1 for size in self.n_per_bcc), initial=0))

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.cut_tree[-1] + 1

    @property
    def leaf(self) -> int:
        """The only node without effects."""
        return self.cut_tree[-1]

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """The direct causes of every node, in ascending order."""
        causes: list[tuple[int, ...]] = [()]
        for first, size, kind in zip(self.cut_tree, self.n_per_bcc, self.bcc_types, strict=False):
            hub, begin = ({0}, 1) if kind == "wheel" else (set(), 0)
            for node in range(1, size):
                local = {node - 1} | hub | ({begin} if node == size - 1 else set())
                causes.append(tuple(first + cause for cause in sorted(local - {node})))
        return tuple(causes)

    @property
    def graph(self) -> nx.DiGraph:
        """The causal graph."""
        return nx.DiGraph([(x, y) for y, causes in enumerate(self.parents) for x in causes])

    @property
    def global_quantity(self) -> tuple[int, int]:
        """The pair whose effect every composition gives: root and leaf."""
        return self.cut_tree[0], self.leaf

    @property
    def quantities(self) -> list[tuple[int, int]]:
        """Every ordered pair of the commutative cut tree, cause by cause."""
        return list(itertools.combinations(self.cut_tree, 2))

    def compositions(self) -> Iterator[tuple[int, ...]]:
        """Yield the cut tree's paths from root to leaf through other nodes, shortest first.

        A chain of k components has 2^(k-1) - 1 of them.
        """
        root, *between, leaf = self.cut_tree
        for length in range(1, len(between) + 1):
            for stops in itertools.combinations(between, length):
                yield (root, *stops, leaf)
