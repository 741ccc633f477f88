import numpy as np
import pytest

from lib.ccr.graphs import Chain
from lib.ccr.worlds import PROBABILITIES, World, random_world
from lib.errors import InputError

CHAIN = Chain([4, 2, 5], ["wheel", "cycle", "cycle"])


def naive(world, noise, do):
    """Evaluate one sample by recursion from the definition."""

    def value(node):
        if node in do:
            return do[node]
        inputs = [noise[node], *(value(cause) for cause in world.chain.graph.predecessors(node))]
        return all(inputs) if world.operators[node] == "and" else any(inputs)

    return [value(node) for node in range(world.chain.n_nodes)]


@pytest.mark.parametrize("do", [{}, {0: True}, {0: False}, {3: True, 5: False}])
def test_values_follow_the_definition(do):
    world = random_world(CHAIN, "random", seed=3, name="a world")
    noise = world.noise(seed=3, name="a world", n=200)
    values = world.values(noise, do)
    assert values.T.tolist() == [naive(world, column, do) for column in noise.T]


def test_values_leave_the_noise_as_it_was():
    world = random_world(CHAIN, "or", seed=0, name="a world")
    noise = world.noise(0, "a world", 50)
    before = noise.copy()
    world.values(noise, {0: True})
    np.testing.assert_array_equal(noise, before)


def test_an_intervention_changes_nothing_before_it_and_only_lifts_what_follows():
    world = random_world(CHAIN, "random", seed=1, name="a world")
    noise = world.noise(1, "a world", 1_000)
    seen, treated, control = (world.values(noise, do) for do in ({}, {3: True}, {3: False}))
    np.testing.assert_array_equal(treated[:3], seen[:3])
    assert (control <= seen).all() and (seen <= treated).all()
    assert (control < treated).any()


def test_noise_has_its_probabilities_and_its_first_samples_whatever_is_drawn_after():
    n = 40_000
    world = random_world(CHAIN, "random", seed=2, name="a world")
    noise = world.noise(seed=2, name="a world", n=n)
    p = np.array(world.probabilities)
    assert (np.abs(noise.mean(axis=1) - p) < 5 * np.sqrt(p * (1 - p) / n)).all()
    np.testing.assert_array_equal(world.noise(2, "a world", 17), noise[:, :17])


def test_random_worlds_have_half_of_each_operator_and_all_probabilities():
    seen = set()
    for seed in range(20):
        world = random_world(CHAIN, "random", seed, "a world")
        assert world.operators.count("and") == 5  # of 9 nodes
        assert random_world(Chain([4]), "random", seed, "a world").operators.count("and") == 2
        seen.update(world.probabilities)
    assert seen == set(PROBABILITIES)


@pytest.mark.parametrize("operator", ["and", "or"])
def test_one_operator_for_all(operator):
    assert set(random_world(CHAIN, operator, 0, "a world").operators) == {operator}


def test_or_and_at_the_leaf():
    operators = random_world(CHAIN, "or, and at the leaf", 0, "a world").operators
    assert operators == ("or",) * (CHAIN.n_nodes - 1) + ("and",)


@pytest.mark.parametrize(
    ("operators", "probabilities", "message"),
    [
        (["and"], [0.5, 0.5], "operators must be one per node, 2: found 1"),
        (["and", "or"], [0.5], "probabilities must be one per node, 2: found 1"),
        (["and", "xor"], [0.5, 0.5], "operator 'xor' is unknown: expected one of and, or"),
        (["and", "or"], [0.5, 1], "each of probabilities must be above 0 and below 1: found 1.0"),
        (["and", "or"], [0, 0.5], "each of probabilities must be above 0 and below 1: found 0.0"),
    ],
)
def test_an_impossible_world_is_refused(operators, probabilities, message):
    with pytest.raises(InputError) as error:
        World(Chain([2]), operators, probabilities)
    assert str(error.value) == message


def test_unknown_causal_functions_are_refused():
    with pytest.raises(InputError, match="causal_functions 'nand' is unknown: expected one of and"):
        random_world(CHAIN, "nand", 0, "a world")


@pytest.mark.parametrize("node", [2, -1, "1"])
def test_an_intervention_on_no_node_is_refused(node):
    world = World(Chain([2]), ["and", "or"], [0.5, 0.5])
    with pytest.raises(InputError, match=f"do: node {node!r} is unknown: expected one of 0, 1"):
        world.values(np.zeros((2, 1), dtype=bool), do={node: True})
