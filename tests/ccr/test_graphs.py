import itertools

import networkx as nx
import numpy as np
import pytest

from lib.ccr.graphs import Chain
from lib.errors import InputError

CHAINS = [
    Chain([2]),
    Chain([3, 3, 3]),
    Chain([4, 2, 5], "wheel"),
    Chain([8, 6, 8]),
    Chain([6, 3, 2, 4], ["wheel", "cycle", "wheel", "wheel"]),
]


@pytest.mark.parametrize("chain", CHAINS)
def test_the_chain_has_one_root_one_leaf_and_topological_numbers(chain):
    graph = chain.graph
    assert sorted(graph) == list(range(chain.n_nodes))
    assert all(cause < effect for cause, effect in graph.edges)
    assert [node for node in graph if graph.in_degree(node) == 0] == [0]
    assert [node for node in graph if graph.out_degree(node) == 0] == [chain.leaf]


@pytest.mark.parametrize("chain", CHAINS)
def test_components_and_cutpoints_are_those_that_networkx_finds(chain):
    undirected = chain.graph.to_undirected()
    assert sorted(nx.articulation_points(undirected)) == list(chain.cut_tree[1:-1])
    components = sorted(nx.biconnected_components(undirected), key=min)
    assert [len(component) for component in components] == list(chain.n_per_bcc)
    for nodes, kind in zip(components, chain.bcc_types, strict=True):
        n = len(nodes)
        known = nx.wheel_graph(n) if kind == "wheel" and n > 3 else nx.cycle_graph(n)
        known.remove_edges_from(nx.selfloop_edges(known))
        assert nx.is_isomorphic(undirected.subgraph(nodes), known)


@pytest.mark.parametrize("chain", CHAINS)
def test_compositions_are_the_paths_of_the_cut_tree(chain):
    cut_tree = nx.DiGraph(list(itertools.combinations(chain.cut_tree, 2)))
    paths = nx.all_simple_paths(cut_tree, *chain.global_quantity)
    expected = {tuple(path) for path in paths if len(path) > 2}
    compositions = list(chain.compositions())
    assert set(compositions) == expected
    assert len(compositions) == len(expected) == 2 ** (len(chain.n_per_bcc) - 1) - 1
    assert [len(path) for path in compositions] == sorted(len(path) for path in compositions)


def test_compositions_of_a_long_chain_come_one_at_a_time():
    chain = Chain([3] * 200)
    assert list(itertools.islice(chain.compositions(), 2)) == [(0, 2, 400), (0, 4, 400)]


def test_quantities_are_all_pairs_of_the_cut_tree():
    chain = Chain([3, 2, 4])
    assert chain.quantities == [(0, 2), (0, 3), (0, 6), (2, 3), (2, 6), (3, 6)]
    assert chain.global_quantity == (0, 6)


def test_a_chain_is_the_same_however_its_sizes_are_listed():
    """Tables write them out, where NumPy's numbers would read otherwise."""
    one, other = Chain([3, 2]), Chain(np.array([3, 2]), ("cycle", "cycle"))
    assert (other, hash(other), repr(other)) == (one, hash(one), repr(one))


@pytest.mark.parametrize(
    ("sizes", "kinds", "message"),
    [
        ([], "cycle", "n_per_bcc must list the size of each component: found []"),
        (
            [3, 1],
            "cycle",
            "each entry of n_per_bcc must be a whole number of at least 2: found 1",
        ),
        (
            [3, 2.5],
            "cycle",
            "each entry of n_per_bcc must be a whole number of at least 2: found 2.5",
        ),
        (
            [3, True],
            "cycle",
            "each entry of n_per_bcc must be a whole number of at least 2: found True",
        ),
        ([3, 3], ["cycle"], "bcc_types must have one kind per component, 2: found 1"),
        ([3], "ring", "bcc_types: kind 'ring' is unknown: expected one of cycle, wheel"),
    ],
)
def test_an_impossible_chain_is_refused(sizes, kinds, message):
    with pytest.raises(InputError) as error:
        Chain(sizes, kinds)
    assert str(error.value) == message
