"""Linear worlds: three oracles agree, each error planted in one is found, and prompts read well."""

import itertools
import math
import re
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from lib.ccr.graphs import KINDS, Chain
from lib.ccr.linear import Question, by_algebra, by_paths, linear_world, noise, prompts, questions
from lib.ccr.linear_reader import read_volume
from lib.errors import InputError

ARMS = [Chain([2]), Chain([3, 3]), Chain([2, 4, 2], "wheel")]


@pytest.fixture(scope="module")
def world():
    return linear_world(ARMS, seed=3)


def three_answers(world, algebra=None, along=math.prod, retold=lambda text: text):
    """Return every answer three times, with what is planted in each."""
    told = list(prompts(world, 2))
    cells = noise(world, 2)
    found = [by_algebra(algebra or world, question, cells) for question in questions(world)]
    counted = [by_paths(world, question, cells, along) for question in questions(world)]
    read = [read_volume(retold(prompt["context"]), prompt["text"]) for prompt in told]
    return np.ravel(found), np.ravel(counted), np.array(read)


def answered_both_ways(world, cell, expected):
    for question, answer in expected.items():
        assert by_algebra(world, question, cell).tolist() == [pytest.approx(answer)]
        assert by_paths(world, question, cell).tolist() == [pytest.approx(answer)]


def test_a_small_world_by_hand():
    """m := u + 2 x and y := u + 1.5 x - 0.8 m."""
    small = nx.DiGraph()
    small.add_weighted_edges_from([("x", "m", 2), ("x", "y", 1.5), ("m", "y", -0.8)])
    cell = np.array([[3], [-1], [4]])  # x = 3, m = -1 + 6 = 5, y = 4 + 4.5 - 4 = 4.5
    expected = {
        Question("total", "y", "x"): 1.5 - 1.6,
        Question("direct", "y", "x", ("m",)): 1.5,
        Question("through", "y", "x", ("m",)): -1.6,
        Question("factual", "y"): 4.5,
        Question("interventional", "y", "x", (), 10): 4 + 15 - 0.8 * 19,
        Question("counterfactual", "y", "m", (), 0): 4 + 4.5,
    }
    answered_both_ways(small, cell, expected)


def test_nodes_may_be_listed_in_any_order():
    """As by somebody who writes down one arm after the other."""
    small = nx.DiGraph()
    first, second = [("r", "a", -1.2), ("a", "y", 0.5)], [("r", "b", 0.4), ("b", "y", -1.5)]
    small.add_weighted_edges_from(first + second)  # y stands before its cause b
    cell = np.array([[1.0], [0.0], [2.0], [4.0]])
    expected = {
        Question("total", "y", "r"): -1.2,
        Question("through", "y", "r", ("b",)): -0.6,
        Question("factual", "y"): 2 - 1.2 - 1.5 * 4,
        Question("counterfactual", "y", "b", (), 0): 2 - 0.6,
    }
    answered_both_ways(small, cell, expected)


def test_nothing_is_not_minus_zero():
    """As floats, 0.6 - 0.2 × 3 is a little less than nothing."""
    small = nx.DiGraph()
    small.add_weighted_edges_from([("x", "m", 3), ("x", "y", 0.6), ("m", "y", -0.2)])
    (effect,) = by_algebra(small, Question("total", "y", "x"), np.zeros((3, 1)))
    assert effect == 0 and not np.signbit(effect)


@pytest.mark.parametrize("wording", range(3))
@pytest.mark.parametrize("seed", range(6))
def test_three_oracles_agree_to_the_last_digit(seed, wording):
    arms = [Chain([2])] * (seed % 2) + [Chain([3, 2], KINDS[seed % 2]), Chain([4, 3])][
        : 1 + seed % 3
    ]
    algebra, paths, reader = three_answers(linear_world(arms, seed=seed, wording=wording))
    assert (algebra == paths).all()
    assert (algebra == reader).all()
    assert (np.round(algebra, 2) == algebra).all(), "two decimals at most"


def test_volumes_that_are_too_large_to_be_told_are_refused():
    linear_world([Chain([2] * 20)])
    with pytest.raises(InputError, match=r"no volume of a world may reach 1e\+12: found"):
        linear_world([Chain([2] * 33)])


@pytest.mark.parametrize("arms", [[], [Chain([2]), Chain([3, 2]), Chain([2])]])
def test_arms_of_which_one_would_be_lost_are_refused(arms):
    with pytest.raises(InputError, match="at least one arm, and at most one may be the direct"):
        linear_world(arms)


def test_an_error_in_the_algebra_is_found_by_both_others(world):
    wrong = world.copy()
    edge = next(edge for edge in wrong.edges if edge[0] == next(iter(wrong)))
    wrong.edges[edge]["weight"] += 0.1
    algebra, paths, reader = three_answers(world, algebra=wrong)
    assert (paths == reader).all()
    assert 0.1 < (algebra != paths).mean() < 1


def test_an_error_along_paths_is_found_by_both_others(world):
    along = {"adds": lambda of: sum(of) if of else 1, "drops signs": lambda of: abs(math.prod(of))}
    for rule in along.values():
        algebra, paths, reader = three_answers(world, along=rule)
        assert (algebra == reader).all()
        assert 0.1 < (algebra != paths).mean() < 1


@pytest.mark.parametrize("wording", range(3))
def test_an_error_in_the_text_is_found_by_both_others(wording):
    world = linear_world(ARMS, seed=3, wording=wording)

    def retold(text):
        return re.sub(r"(; |add |[+-] )-?[\d.]+(?= times| v\()", r"\g<1>7", text, count=1)

    algebra, paths, reader = three_answers(world, retold=retold)
    assert (algebra == paths).all()
    assert 0.1 < (algebra != reader).mean() < 1


def test_effects_multiply_along_an_arm_and_add_over_arms(world):
    root, *between, leaf = world
    cells = noise(world, 1)

    def effect(kind, y, x, through=()):
        return Fraction(
            by_paths(world, Question(kind, y, x, tuple(through)), cells)[0]
        ).limit_denominator(100)

    arms = [arm for arm in world.graph["arms"] if arm]
    through = {arm: effect("through", leaf, root, arm) for arm in arms}
    direct = effect("direct", leaf, root, between)
    assert effect("total", leaf, root) == direct + sum(through.values())
    assert effect("through", leaf, root, between) == sum(through.values())
    for chain, arm in zip(ARMS[1:], arms, strict=True):
        nodes = [root, *arm, leaf]
        for path in chain.compositions():
            steps = itertools.pairwise(nodes[i] for i in path)
            assert math.prod(effect("total", y, x) for x, y in steps) == through[arm]


def test_a_cell_told_by_its_volumes_is_the_cell_told_by_its_enzymes(world):
    told = {(one["question"], one["context"]): one["answer"] for one in prompts(world, 1)}
    done = {q[1:]: a for (q, _), a in told.items() if q.kind == "interventional"}
    imagined = {q[1:]: a for (q, _), a in told.items() if q.kind == "counterfactual"}
    assert done == imagined
    assert len({context for _, context in told}) == 2


def test_a_counterfactual_without_a_change_is_what_was_seen(world):
    cells = noise(world, 20)
    root, *_, leaf = world
    changed = by_algebra(world, Question("counterfactual", leaf, root, (), cells[0, 0]), cells)
    same = changed == by_algebra(world, Question("factual", leaf), cells)
    assert (same == (cells[0] == cells[0, 0])).all()


def test_a_world_is_the_same_for_a_seed_and_another_for_another_name():
    one, same, other = (linear_world(ARMS, seed=1, name=name) for name in ("a", "a", "b"))
    assert nx.utils.graphs_equal(one, same)
    assert [*one] != [*other] and (noise(one, 9) != noise(other, 9)).any()
    assert (noise(one, 9)[:, :4] == noise(one, 4)).all(), "more cells leave the first alone"
    assert set(np.unique(noise(one, 400))) == set(range(-9, 10))


def test_weights_are_as_promised():
    outer, inner = set(), set()
    for world in (linear_world(ARMS, seed) for seed in range(40)):
        root, *_, leaf = world
        for x, y, weight in world.edges(data="weight"):
            (outer if x == root or y == leaf else inner).add(weight)
    assert outer == {sign * tenths / 10 for tenths in range(2, 16) for sign in (-1, 1)}
    assert inner == {-3, -2, 2, 3}


def test_a_wording_is_one_of_three_and_changes_the_words_alone():
    worlds = [linear_world(ARMS, seed=3, wording=wording) for wording in range(3)]
    told = [list(prompts(world, 1)) for world in worlds]
    assert len({tuple((one["question"], one["answer"]) for one in some) for some in told}) == 1
    for same in zip(*told, strict=True):
        assert len({one["context"] for one in same}) == len({one["text"] for one in same}) == 3
    with pytest.raises(InputError, match="wording 3 is unknown: expected one of 0, 1, 2"):
        linear_world(ARMS, wording=3)


@pytest.mark.parametrize("wording", range(3))
def test_a_prompt_of_every_kind_reads_well(wording):
    world = linear_world(ARMS, seed=3, wording=wording)
    texts = {one["question"].kind: one["text"] for one in prompts(world, 1)}
    assert len(texts) == 6
    for prompt in prompts(world, 1):
        whole = f"{prompt['context']}\n\n{prompt['text']}"
        assert "  " not in whole
        assert not re.search(r" [.,;:?]|None|\(\)|-0 |\{|\}", whole)
        assert prompt["text"].endswith("? Answer with one number, in pL.")


@pytest.mark.parametrize("kind", KINDS)
def test_large_components_have_exact_answers(kind):
    """Where effects are in the millions, an inverse by elimination has lost their last digits."""
    algebra, paths, reader = three_answers(linear_world([Chain([15], kind)], seed=1))
    assert (algebra == paths).all() and (algebra == reader).all()
    world = linear_world([Chain([26], kind)], seed=1)
    told = list(prompts(world, 1))
    assert [one["answer"] for one in told] == [
        read_volume(one["context"], one["text"]) for one in told
    ]
