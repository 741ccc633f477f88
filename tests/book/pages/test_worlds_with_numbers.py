"""What the chapter on worlds with numbers and its error test say is so, with other values."""

import re

import nbformat
import numpy as np
import pytest

from lib.book.editions import BOOK
from lib.ccr.graphs import Chain
from lib.ccr.linear import EFFECTS, SETTINGS
from lib.ccr.linear_reader import is_right, number_in

VALUES = {
    "n_per_bcc": [[4, 2], [2, 2, 2]],
    "n_cells": 4,
    "n_tried": 5,
    "rate": 0.2,
    "seed": 9,
}
#: Which rules a fault breaks; none for those that live in another world without contradiction.
BREAKS = {
    "perfect": set(),
    "forgets the direct arrow": set(),
    "drops every sign": set(),
    "ignores the intervention": set(),
    "adds along an arm": {"along an arm", "done"},
    "forgets an arm of the whole": {"over arms", "done"},
    "forgets the cell": {"imagined"},
    "slips of sign, 20 %": {"over arms", "along an arm", "done", "imagined"},
}


@pytest.fixture(scope="module")
def chapter(executed):
    return executed(BOOK.notebook("worlds_with_numbers"), VALUES)


@pytest.fixture(scope="module")
def error_test(executed):
    return executed(BOOK.notebook("error_test_cell_bio"), {"n_worlds": 12, "seed": 2})


def test_the_smallest_example_nearly_cancels(chapter, shown):
    ways = {way: row["effect of one unit"] for way, row in shown(chapter[1], "small").items()}
    assert ways == {"direct": 1.5, "through the signal": -1.6, "total": -0.1}
    wrong = [1.5, -1.6, 1.5 + 1.6]  # one way forgotten, the other, and a sign
    assert all(abs(one - ways["total"]) > 10 * abs(ways["total"]) for one in wrong)


def test_the_first_exercise_is_solved_as_by_hand(chapter, shown):
    ways = {way: row["effect"] for way, row in shown(chapter[1], "solution-1").items()}
    assert ways == {"direct": 0.5, "indirect": -1.2, "total": -0.7}


def test_ways_add_up_and_arms_multiply(chapter, shown):
    record, notebook = chapter
    (name,) = {column for row in shown(notebook, "ways").values() for column in row}
    ways = {way: row[name] for way, row in shown(notebook, "ways").items()}
    through = [value for way, value in ways.items() if way.startswith("through")]
    assert len(through) == 2
    assert ways["direct"] + sum(through) == pytest.approx(ways["total"])
    assert sum(through) == pytest.approx(ways["indirect"])
    assert ways["total"] == pytest.approx(record["numbers"]["total"]["value"])
    (cell,) = (one for one in notebook.cells if one.id == "along")
    assert len(re.findall("→", cell.outputs[0].data["text/html"])) == 2 + 2 + 2 + 3


@pytest.mark.parametrize("reasoner", BREAKS)
def test_a_broken_rule_names_the_fault(chapter, shown, reasoner):
    row = shown(chapter[1], "compose")[reasoner]
    assert {rule for rule, share in row.items() if share < 100} == BREAKS[reasoner]


def test_wrong_worlds_are_wrong_and_consistent(chapter):
    value = {name: one["value"] for name, one in chapter[0]["numbers"].items()}
    assert value["disagreements"] == 0
    assert value["wrong_and_consistent"] == 3
    for name in ("forgets_the_direct_arrow", "drops_every_sign", "ignores_the_intervention"):
        assert value[f"consistent_{name}"] == 100 > value[f"valid_{name}"]
    assert value["valid_forgets_the_cell"] == 100 > value["consistent_forgets_the_cell"]


def test_a_share_has_an_error_unless_it_is_the_same_in_every_world(chapter):
    shares = [one for name, one in chapter[0]["numbers"].items() if re.match("valid|consist", name)]
    assert len(shares) == 2 * len(BREAKS)
    for one in shares:
        assert (one["standard_error"] == 0) == (one["value"] == 100)


def test_half_a_unit_of_the_last_digit_is_forgiven_and_no_more():
    truth = np.arange(-2_000, 2_001) / 100
    for side in (-1, 1):
        half = np.array([number_in(f"{one + side * 0.005:.3f} pL") for one in truth])
        assert is_right(half, truth).all()
        assert not (abs(half - truth) <= 0.005).all(), "without what rounding takes"
        assert not is_right(truth + side * 0.005_01, truth).any()
    assert not is_right(number_in("I cannot tell."), 0.0)
    assert is_right(1.4, 1.0, tolerance=0.4) and not is_right(1.4, 1.0)


def test_prompts_do_not_name_what_they_ask_for(chapter, shown):
    for kind, row in shown(chapter[1], "kinds").items():
        assert not re.search(r"\b(in)?direct\b|path", row["question about it"]), kind


def test_the_node_that_carries_an_arm_is_a_cutpoint(chapter, shown):
    nodes = shown(chapter[1], "solution-3")
    assert len(nodes) == 3 + 2
    for row in nodes.values():
        assert row["through it"] == pytest.approx(row["product"], abs=0.006)
    assert sum(row["carries the arm"] == "yes" for row in nodes.values()) >= 1 + 2


def test_touching_arms_count_paths_twice(chapter, shown):
    found = {name: row["effect"] for name, row in shown(chapter[1], "solution-5").items()}
    assert found["difference"] == pytest.approx(found["along the new paths"], abs=0.011) != 0


def test_nobody_disagrees_and_no_guess_earns_much(error_test):
    value = {name: one["value"] for name, one in error_test[0]["numbers"].items()}
    assert value["worlds"] == 12
    assert value["prompts"] > 2_000
    assert value["disagreements"] == 0
    assert value["best_guess"] < 40


def test_a_guess_earns_next_to_nothing_where_the_answer_is_not_told(error_test, shown):
    for kind, row in shown(error_test[1], "guess").items():
        if kind != "direct":
            assert max(row.values()) < 8, kind


def test_cells_of_twice_the_volume_find_a_constant_and_no_other_mistake(error_test, shown):
    found = shown(error_test[1], "solution-4")
    assert {*found} == {*EFFECTS, *SETTINGS, "factual"}
    for kind, (fits, adds, one_more) in ((kind, row.values()) for kind, row in found.items()):
        assert [fits, adds, one_more] == [0, 0, 0 if kind in EFFECTS else 100]


def test_an_arm_of_one_component_has_no_rule_along_it_and_the_exercise_says_so():
    assert not list(Chain([3]).compositions()) and list(Chain([2, 3]).compositions())
    cells = nbformat.read(BOOK.notebook("worlds_with_numbers"), 4).cells
    (solution,) = (cell.source for cell in cells if "**2. Two wrongs**" in cell.source)
    assert "An arm of a single component has no cutpoint" in solution
