import itertools

import numpy as np
import pandas as pd
import pytest

from lib.ccr.brute_force import enumerated_quantities
from lib.ccr.exact import COLUMNS, composed, exact_quantities, responses
from lib.ccr.graphs import KINDS, Chain
from lib.ccr.worlds import CAUSAL_FUNCTIONS, World, random_world


def test_a_bridge_by_hand():
    """y := u or x with P(x) = .7, P(u) = .2: y follows x unless u."""
    world = World(Chain([2]), ["and", "or"], [0.7, 0.2])
    row = exact_quantities(world).loc[0, 1]
    known = [1, 0.2, 1, 0.2, 0.8, 0.8, 0.8, 1]
    np.testing.assert_allclose(row[COLUMNS], known, rtol=1e-14)


def test_a_triangle_by_hand():
    """m := u and x, y := v and (x and m): y follows x if u and v, else never is true."""
    world = World(Chain([3]), ["and", "and", "and"], [0.5, 0.6, 0.4])
    never, follows, always = responses(world, 0)
    assert (never, follows, always) == pytest.approx((1 - 0.24, 0.24, 0), abs=1e-15)


@pytest.mark.parametrize("causal_functions", CAUSAL_FUNCTIONS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [[2], [3], [7], [2, 2, 2], [3, 4, 3], [4, 5], [5, 2, 4, 2]])
def test_exact_is_brute_force(sizes, kind, causal_functions):
    for seed in range(3):
        world = random_world(Chain(sizes, kind), causal_functions, seed, "a world")
        exact, enumerated = exact_quantities(world), enumerated_quantities(world)
        assert list(exact.columns) == COLUMNS
        pd.testing.assert_frame_equal(exact, enumerated, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", [[3, 3], [4, 2, 5], [2, 6, 3, 4, 2]])
def test_every_composition_amounts_to_the_global_pns(sizes):
    world = random_world(Chain(sizes, "wheel"), "random", 5, "a world")
    quantities = exact_quantities(world)
    whole = quantities["PNS"].loc[world.chain.global_quantity]
    products = [composed(quantities, path) for path in world.chain.compositions()]
    assert len(products) == 2 ** (len(sizes) - 1) - 1
    np.testing.assert_allclose(products, whole, rtol=1e-12)


def test_a_long_chain_keeps_the_digits_of_a_tiny_effect():
    """Over 200 bridges, y follows x in all of them: .4^100 by hand."""
    p = [0.5] + [0.4, 1 - 0.4] * 50
    world = World(Chain([2] * 100), ["and", *["and", "or"] * 50], p)
    assert exact_quantities(world)["PNS"].loc[0, 100] == pytest.approx(0.4**100, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_a_quantity_too_small_for_a_number_leaves_the_others_right():
    """Over 200 bridges with "and", y is true only if it follows x: PN = 1, though PNS = 0."""
    p = [0.5, 0.2] + [0.01] * 199
    first_or = World(Chain([2] * 200), ["and", "or"] + ["and"] * 199, p)
    row = exact_quantities(first_or).loc[0, 200]
    assert row["PNS"] == 0  # .8 × .01^199, below the smallest number
    assert row["PN"] == pytest.approx(0.8, rel=1e-12)
    only_and = World(Chain([2] * 200), ["and"] * 201, p)
    assert exact_quantities(only_and)["PN"].loc[0, 200] == 1
    only_or = World(Chain([2] * 200), ["or"] * 201, [1 - q for q in p])
    assert exact_quantities(only_or)["PS"].loc[0, 200] == 1


@pytest.mark.parametrize("causal_functions", CAUSAL_FUNCTIONS)
def test_all_pairs_of_a_long_chain_are_probabilities(causal_functions):
    world = random_world(Chain([4, 3] * 60, "wheel"), causal_functions, 0, "a world")
    quantities = exact_quantities(world)
    assert list(quantities.index) == list(itertools.combinations(world.chain.cut_tree, 2))
    assert quantities.notna().all(axis=None)
    assert ((quantities >= 0) & (quantities <= 1 + 1e-12)).all(axis=None)
