"""What the chapter on treatments over time says is so, with other values than its own."""

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.book.editions import BOOK
from lib.book.parameters import checked, read_notebook, read_parameters
from lib.book.recorded import recorded
from lib.errors import InputError
from lib.income import fitted_simulator
from lib.income.regimes import lottery, true_values

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
    off = {name.removesuffix(", 2, 0"): abs(row["bias, $"]) for name, row in table.items()}
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


def apart(one, other):
    """Say how many standard errors lie between two estimates."""
    return abs(one - other) / np.hypot(one.error, other.error)


def test_a_fifth_decision_is_refused_since_it_takes_the_income_away():
    _, cell = read_notebook(BOOK.notebook("treatments_over_time"))
    parameters = read_parameters(cell.source)
    assert checked(parameters, {"decisions": [1, 4]})["decisions"] == [1, 4]
    with pytest.raises(InputError, match="'decisions' must be at most 4: found 5"):
        checked(parameters, {"decisions": [1, 5]})
    regimes = {"never study": "No studies", "always full-time": "Full-time studies"}
    for most, earns in ((4, True), (5, False)):
        values = true_values(fitted_simulator(), regimes, 300, range(1, most + 1))["value"]
        assert (values["always full-time"] > 0) == earns
        assert values["never study"] > 0


def test_no_weight_is_larger_than_the_lottery_allows(page, shown):
    ranks, incomes = np.meshgrid(np.arange(1, 17), [0.0, 90_000.0])
    now, before = (
        pd.DataFrame({"education-num": ranks.ravel()}),
        pd.DataFrame({"income": incomes.ravel()}),
    )
    none, evening, _, full = lottery(now, before).min(axis=0)
    least = {"never study": none, "always full-time": full}
    least |= {"until the Bachelor's": min(none, full), "evening if low": min(none, evening)}
    table = shown(page[1], "solution-3")
    assert set(table) == set(least)
    for name, chance in least.items():
        once, twice = table[name]["after 1"], table[name]["after 2"]
        assert 1 < once <= round(1 / chance)
        assert once < twice <= round(1 / chance**2)
    assert table["always full-time"]["after 1"] == round(1 / full), "somebody has all the learning"


def test_regimes_of_ones_own_have_a_truth_and_estimates_near_it(page, shown):
    table = shown(page[1], "solution-4")
    assert [*table] == ["one year", "while low"]
    assert table["while low"].pop("MSM, $") == "", "of a dynamic regime it knows nothing"
    assert [len(row) for row in table.values()] == [4, 3]
    for truth, *others in (row.values() for row in table.values()):
        assert truth > 0
        assert all(apart(one, truth) < 3 for one in others)


def test_trees_are_iterated_as_lines_are(page, shown):
    table, worth = (shown(page[1], cell) for cell in ("solution-6", "by-hand"))
    assert [*table] == ["always full-time", "until the Bachelor's", "evening if low"]
    for name, row in table.items():
        gain = worth[name]["truth, $"] - worth["never study"]["truth, $"]
        assert row["truth"] == pytest.approx(gain, abs=1)
        error = np.hypot(*(worth[one]["estimate, $"].error for one in (name, "never study")))
        assert abs(row["lines"] - row["truth"]) < 3 * error
        assert abs(row["trees"] - row["truth"]) < 3 * error
        assert row["lines"] != row["trees"]


def test_counts_are_those_of_the_recorded_run(page, shown):
    (kept,) = recorded("treatments_over_time", "by_decisions").values()
    counts = shown(page[1], "kept-counts")
    right = kept[kept["estimator"].isin(["ipw", "ipw-true", "aipw", "aipw-true"])]
    assert len(right) == 24
    for k, rows in right.groupby("decisions"):
        row = counts[f"IPW and AIPW, {k}"]
        assert row["cells"] == 12
        assert row["below 93 %"] == (rows["coverage"] < 0.93).sum()
        assert row["above 97 %"] == (rows["coverage"] > 0.97).sum()
        panels = kept.attrs["parameters"]["n_panels"]
        drawn = np.random.default_rng(0).binomial(panels, 0.95, 200_000) / panels
        expected = 12 * ((drawn < 0.93) | (drawn > 0.97)).mean()
        assert row["expected"] == pytest.approx(expected, abs=0.07)


def test_the_recorded_run_is_as_the_text_says(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from effects import REGIMES

    (kept,) = recorded("treatments_over_time", "by_overlap").values()
    run = kept.attrs["parameters"]
    assert run["own"][0] == 0
    assert run["decisions"] == [1, 3]
    kept = kept[kept["γ"] == 0].set_index(["estimand", "estimator"])
    truth = true_values(fitted_simulator(), REGIMES, 2_000)["error of gain"]
    truth *= (2_000 / run["n_truth"]) ** 0.5
    luck = kept["standard deviation"] / run["n_panels"] ** 0.5
    far = kept["bias"].abs() / np.hypot(luck, truth.reindex(kept.index, level=0))
    static = [("always full-time", name) for name in ("g-computation", "msm", "msm-true")]
    assert (far[static] > 6).all(), "many standard errors"
    assert (kept["coverage"] + 3 * kept["error of coverage"])[static].max() < 0.95
    assert far.xs("aipw", level="estimator").max() < 3
    rmse = kept.pivot_table("RMSE", "estimand", "estimator")
    assert (rmse["aipw"] < rmse["ipw"]).all()
