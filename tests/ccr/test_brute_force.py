import itertools
from fractions import Fraction

import pytest

from lib.ccr import brute_force
from lib.ccr.brute_force import enumerated_quantities
from lib.ccr.graphs import Chain
from lib.ccr.worlds import World
from lib.errors import InputError


def test_quantities_are_those_of_the_definitions_in_rational_numbers():
    """x := a, m := b or x, y := c and x and m, z := d or y, told out by hand."""
    p = [Fraction(1, 2), Fraction(2, 5), Fraction(4, 5), Fraction(3, 10)]
    world = World(Chain([3, 2]), ["and", "or", "and", "or"], [float(q) for q in p])

    def z(noise, x):
        m = noise[1] or x
        return noise[3] or (noise[2] and x and m)

    pns = Fraction(0)
    both = disabled = neither = enabled = Fraction(0)
    for noise in itertools.product((False, True), repeat=4):
        weight = Fraction(1)
        for true, q in zip(noise, p, strict=True):
            weight *= q if true else 1 - q
        seen, treated, control = z(noise, noise[0]), z(noise, True), z(noise, False)
        pns += weight * (treated and not control)
        both += weight * (noise[0] and seen)
        disabled += weight * (noise[0] and seen and not control)
        neither += weight * (not noise[0] and not seen)
        enabled += weight * (not noise[0] and not seen and treated)
    row = enumerated_quantities(world).loc[0, 3]
    assert row["PNS"] == pytest.approx(float(pns), abs=1e-15)
    assert row["PN"] == pytest.approx(float(disabled / both), abs=1e-15)
    assert row["PS"] == pytest.approx(float(enabled / neither), abs=1e-15)


def test_a_world_too_large_is_refused(monkeypatch):
    world = World(Chain([21]), ["and"] * 21, [0.5] * 21)
    with pytest.raises(InputError, match="at most 20 nodes can be enumerated: found 21"):
        enumerated_quantities(world)
    monkeypatch.setattr(brute_force, "MOST_NODES", 2)
    assert len(enumerated_quantities(World(Chain([2]), ["and"] * 2, [0.5] * 2))) == 1
