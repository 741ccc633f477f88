"""What the chapter on effects says is so, with other values than its own.

Bounds are four standard errors, unless said otherwise, about what follows from the mechanisms.
"""

import math
import re

import nbformat
import numpy as np
import pytest

from lib.book.editions import BOOK
from lib.book.recorded import Number

VALUES = {
    "one effect": {"heterogeneity": 0.0, "n_samples": 20_000, "n_studies": 40, "seed": 3},
    "two effects": {
        "heterogeneity": 9_000.0,
        "chance_with": 0.9,
        "chance_without": 0.3,
        "n_samples": 30_000,
        "n_studies": 40,
        "enough": 46_000.0,
        "seed": 4,
    },
}


class Page:
    """The numbers of a run, and what its parameters make of the mechanisms."""

    def __init__(self, record: dict, notebook: nbformat.NotebookNode):
        values, self.notebook = record["parameters"], notebook
        self.numbers = record["numbers"]
        self.n, self.enough = values["n_samples"], values["enough"]
        #: Chances of studying, effects and shares of support, without support and with it.
        self.chances = np.array([values["chance_without"], values["chance_with"]])
        self.effects = 12_000 + values["heterogeneity"] * np.array([-0.5, 0.5])
        more = np.diff(self.chances)[0]
        students = self.chances.mean()
        self.gap_of_support = more / (4 * students * (1 - students))
        self.bias = 8_000 * self.gap_of_support
        self.att = np.average(self.effects, weights=self.chances)
        self.ato = np.average(self.effects, weights=self.chances * (1 - self.chances))
        self.atu = np.average(self.effects, weights=1 - self.chances)

    def value(self, name: str) -> float:
        return self.numbers[name]["value"]

    def near(self, name: str, expected: float) -> None:
        error = self.numbers[name]["standard_error"]
        assert self.value(name) == pytest.approx(expected, abs=4 * error + 1e-6), name


@pytest.fixture(scope="module", params=VALUES)
def page(request, executed):
    """Run the chapter once, its solutions among its cells."""
    record, notebook = executed(BOOK.notebook("theory"), VALUES[request.param])
    return Page(record, notebook)


def test_potential_outcomes_are_consistent_and_groups_are_exchangeable_within_levels(page):
    assert page.value("consistent") == 100
    page.near("seen_difference", page.att + page.bias)
    page.near("bias", page.bias)
    assert page.value("largest_gap_within") < 4


@pytest.mark.parametrize("name", ["largest_gap_within", "regression_from_ato"])
def test_no_number_is_written_with_more_digits_than_it_keeps(page, name):
    written = str(Number(**page.numbers[name]))
    assert not re.search(r"\.\d00+ ", written), "rounded first, and then written with four digits"
    assert not written.startswith("1 "), "1 standard errors"


def test_with_interference_a_trial_and_a_policy_find_two_effects(page):
    page.near("trial", 12_000)
    spread = np.ptp(page.effects) / 2 / page.n**0.5
    assert page.value("everybody") == pytest.approx(2_000, abs=4 * spread + 1e-6)


@pytest.mark.parametrize("way", ["standardized", "horvitz_thompson", "hajek"])
def test_each_way_finds_the_average_over_everybody(page, way):
    page.near(way, 12_000)
    assert page.numbers[way]["standard_error"] < 1_500, "a bound that says something"


def test_horvitz_and_thompson_have_the_largest_standard_error(page):
    ways = ["standardized", "horvitz_thompson", "hajek", "regression"]
    assert max(ways, key=lambda way: page.numbers[way]["standard_error"]) == "horvitz_thompson"


def test_table_regression_and_weights_by_shares_are_one_number(page):
    assert page.value("spread_of_four") < 1e-6
    assert page.value("by_hand") == pytest.approx(page.value("standardized"), abs=1e-6)


def test_averages_differ_by_who_is_averaged(page):
    expected = {"ate": 12_000, "att": page.att, "atu": page.atu, "ato": page.ato}
    assert {name: page.value(name) for name in expected} == pytest.approx(expected)
    several = len({round(value, 3) for value in expected.values()})
    assert several == (1 if np.ptp(page.effects) == 0 else 4)


def test_a_regression_without_product_finds_the_average_over_the_overlap(page):
    page.near("regression", page.ato)
    assert page.value("regression_from_ato") < 4


def test_where_nobody_studies_estimates_agree_and_miss(page):
    assert page.value("empty_cells") > 80
    # People with support alone earn half of what support adds more than everybody; the median of
    # 40 studies scatters by about 160 dollars.
    expected = 12_000 + (8_000 + np.ptp(page.effects)) / 2
    assert page.value("median_at_smallest") == pytest.approx(expected, abs=650)


def test_the_rule_of_d_separation_agrees_with_correlations(page):
    # Ten correlations, of which four or five are chance.
    assert page.value("largest_if_separated") < 4 / page.n**0.5
    assert page.value("smallest_if_not") == pytest.approx(0.2, abs=4 / page.n**0.5)
    assert page.value("statements") == 64 * 6 * 4
    assert page.value("disagreements") == 0


def test_adjusting_for_too_little_or_too_much_misses(page):
    page.near("adjusted_for_nothing", page.att + page.bias)
    page.near("adjusted_for_support", 12_000)
    page.near("adjusted_for_support_and_job", 8_000)
    club = page.numbers["adjusted_for_support_and_club"]
    assert club["value"] < 12_000 - 4 * club["standard_error"]


def test_two_worlds_look_the_same_and_differ_in_their_effect(page):
    seen = page.att + page.bias
    page.near("seen_in_this_world", seen)
    page.near("seen_in_other_world", seen)
    page.near("effect_in_this_world", 12_000)
    page.near("effect_in_other_world", seen)


def test_pns_lies_within_its_bounds_and_depends_on_the_coupling(page):
    without = 30_000 + np.array([0, 8_000])
    p1, p0 = (
        np.clip((base + 20_000 - page.enough) / 20_000, 0, 1)
        for base in (without + page.effects, without)
    )
    expected = {
        "same_luck": (p1 - p0).mean(),
        "luck_drawn_again": (p1 * (1 - p0)).mean(),
        "opposite_luck": np.minimum(p1, 1 - p0).mean(),
    }
    same, again, opposite = expected.values()
    assert same < again < opposite, "an experiment sees none of this"
    for coupling, pns in expected.items():
        found, lower, upper, inner_lower, inner_upper, harmed = (
            page.value(f"{quantity}_with_{coupling}")
            for quantity in (
                "pns",
                "lower",
                "upper",
                "lower_by_support",
                "upper_by_support",
                "harmed",
            )
        )
        assert found == pytest.approx(pns, abs=2 / math.sqrt(page.n))
        rounding = 1e-12
        assert lower <= inner_lower + rounding
        assert inner_lower <= found + rounding
        assert found <= inner_upper + rounding
        assert inner_upper <= upper + rounding
        assert (harmed == 0) == (coupling == "same_luck")
    assert page.value("pns_with_same_luck") == pytest.approx(page.value("lower_with_same_luck"))


def test_solutions_show_what_they_say(page, shown):
    def solution(name: str) -> dict[str, dict[str, float | str]]:
        return shown(page.notebook, f"solution-{name}")

    error = 4 * 160  # one standard error is below 160 dollars with these numbers of people
    lottery = {name: row["value, $"] for name, row in solution("lottery").items()}
    assert lottery.pop("adjusted for support and club") < 12_000 - error
    expected = dict.fromkeys(lottery, 12_000)
    expected |= {"more anyway": 0, "adjusted for support and job": 8_000}
    assert lottery == pytest.approx(expected, abs=error)
    assert [lottery[name] for name in ("ATE", "ATT", "ATU", "ATO")] == [12_000] * 4
    assert {"adjusted for nothing", "effect in the other world"} < {*lottery}
    closed = [row["back door closed"] for row in solution("school").values()]
    assert closed == ["yes", "no", "yes"]
    treated = {name: row["ATT, $"] for name, row in solution("treated").items()}
    assert treated["truth"] == round(page.att)
    assert treated["from what is seen"] == pytest.approx(page.att, abs=error)
    (cancelled,) = (cell for cell in page.notebook.cells if cell.id == "solution-cancel")
    assert abs(float(cancelled.outputs[0].text.split()[-1])) < 4 / page.n**0.5
    weighting, hajek = ([*row.values()] for row in solution("zero").values())
    assert weighting[0] != weighting[1]
    assert hajek[0] == hajek[1], "Hájek's estimate does not know where zero is"
    front = {name: row["effect, $"] for name, row in solution("front").items()}
    # 24,000 dollars times the standard error of the effect on having the job, and a little more.
    near = 4 * 24_000 / page.n**0.5 * 1.1
    assert front["by the front door"] == pytest.approx(front["by mechanisms"], abs=near)
