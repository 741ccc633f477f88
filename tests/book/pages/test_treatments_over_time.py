"""What the chapter on treatments over time says is so, with other values than its own."""

import pytest

from lib.book.editions import BOOK

VALUES = {
    "job_by_studies": 0.25,
    "job_by_talent": 0.6,
    "job_pays": 16_000,
    "talent_pays": 20_000,
    "year_pays": 3_000,
    "n_samples": 1_200,
    "n_panels": 6,
    "decisions": [2],
    "own": [0.0],
    "entrants": ["followers", "regression-all", "ipw", "ipw-true", "aipw", "aipw-true"],
    "n_truth": 11_000,
    "n_large": 12_000,
    "seed": 8,
}


@pytest.fixture(scope="module")
def page(executed):
    return executed(BOOK.notebook("treatments_over_time"), VALUES)


@pytest.fixture
def numbers(page):
    return {name: one["value"] for name, one in page[0]["numbers"].items()}


def test_two_ways_find_what_two_years_are_worth_and_no_regression_does(numbers):
    truth = 2 * VALUES["year_pays"] + VALUES["job_by_studies"] * VALUES["job_pays"]
    assert numbers["small_truth"] == pytest.approx(truth)
    assert numbers["small_by_regressions_of_regressions"] == pytest.approx(truth)
    assert numbers["small_by_weights"] == pytest.approx(truth)
    assert numbers["small_without_job"] < truth - 1_000
    assert numbers["small_with_job"] < 2 * VALUES["year_pays"] - 1_000, "the collider, too"


def test_truth_is_known_to_a_hundredth_of_the_deviation_of_income(numbers):
    assert 0.9 < numbers["largest_error_of_truth"] <= 1.0


def test_two_oracles_agree_on_the_page(numbers):
    assert numbers["oracles_apart"] < 4


def test_income_that_studies_have_changed_is_a_cause_of_later_studies(page, shown):
    idle, studied, rich, poor = shown(page[1], "panel").values()
    low, now = "low income before, %", "studies now, %"
    assert (rich[low], poor[low]) == (0, 100)
    assert studied[low] > idle[low] + 10
    assert poor[now] > rich[now] + 5


def test_right_entrants_are_nearer_than_those_who_followed(page, shown):
    table = shown(page[1], "decisions-table")
    off = {name: abs(row["bias, 2 decisions, $"]) for name, row in table.items()}
    assert all(off[name] < off["Those who followed"] / 2 for name in ("IPW", "AIPW", "AIPW, true"))


def test_a_rule_is_worth_the_same_by_program_and_both_ways(page, shown):
    table = shown(page[1], "solution-2")
    values = [table[f"by {way}"]["value of the rule, $"] for way in ("regressions", "weights")]
    assert values == [table["by the program"]["value of the rule, $"]] * 2


def test_a_year_that_does_nothing_looks_bad_with_the_job_and_only_through_two_arrows(page, shown):
    said = [row["said of the first year, $"] for row in shown(page[1], "solution-1").values()]
    assert said[0] == 0
    assert 0 > said[1] > said[2]


def test_what_is_hidden_misleads_estimated_probabilities_and_not_true_ones(page, shown):
    table = shown(page[1], "solution-5")
    found = {name: row["always full-time"] for name, row in table.items()}
    assert found["AIPW: without income"] < found["AIPW: all columns"] - 8_000
    assert abs(found["AIPW, true: without income"] - found["truth"]) < 8_000
