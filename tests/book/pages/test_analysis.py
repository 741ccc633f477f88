"""What the chapter on one analysis says of its numbers is so in a run with other parameters."""

import re
from dataclasses import replace

import pytest

from lib.book.editions import BOOK
from lib.book.recorded import Number
from lib.effects import Study, estimate
from lib.effects.estimands import average_effects
from lib.effects.intervals import NORMAL
from lib.effects.study import ADJUSTMENT_SETS, ARMS
from lib.income import draw_study, fitted_simulator
from lib.income.study import OF_TEST_SUBJECTS
from lib.tables import number_text

VALUES = {"n_samples": 2_500, "seed": 6, "n_truth": 3_000, "doubly_robust": ["aipw-ato"]}
VALUES |= {"by_age": ["t-ridge"], "after": ["income", "occupation"], "horizon": 6}


@pytest.fixture(scope="module")
def drawer():
    seeds, sizes = {"seed": 6} | OF_TEST_SUBJECTS, {"n": 2_500, "n_test": 3_000, "horizon": 6}
    return draw_study(fitted_simulator(), **sizes, **seeds)


@pytest.fixture(scope="module")
def people(drawer):
    return drawer.observational[drawer.observational["studies"].isin(ARMS)]


@pytest.fixture(scope="module")
def page(executed):
    """The executed notebook, and the numbers that it recorded."""
    record, notebook = executed(BOOK.notebook("analysis"), VALUES)
    numbers = {name: Number(**one) for name, one in record["numbers"].items()}
    return notebook, numbers


def interval(one: Number) -> tuple[float, float]:
    return one.value - NORMAL * one.standard_error, one.value + NORMAL * one.standard_error


def said(page, cell: str) -> str:
    notebook, _ = page
    (found,) = (one for one in notebook.cells if one["id"] == cell)
    shown = [one.data for one in found.outputs if "text/markdown" in one.get("data", {})]
    return re.sub(r"[ \n]+", " ", shown[0]["text/markdown"].replace(">", "")).strip()


def test_the_truth_is_that_of_the_drawer(page, drawer):
    _, numbers = page
    for estimand, (value, error) in average_effects(drawer).iterrows():
        name = "truth_of_" + re.sub("[^a-z]+", "_", estimand.lower())
        assert numbers[name].value == pytest.approx(value)
        assert numbers[name].standard_error == pytest.approx(error)


def test_estimates_are_of_the_seen_table_alone(page, people):
    _, numbers = page
    # Whatever stands for the test subjects' incomes, estimates must not depend on it.
    incomes = dict(zip(ARMS, (0.0, 1e9), strict=True))
    worlds = (people.assign(studies=arm, income=income) for arm, income in incomes.items())
    known = Study(people, *worlds)
    for name, one in estimate(known, ["s-ridge", "t-ridge", "ipww-att"], progress=False).items():
        recorded = numbers["estimate_" + name.replace("-", "_")]
        assert recorded.value == pytest.approx(one.ate)
        assert interval(recorded) == pytest.approx((one.lower, one.upper))
    means = people.groupby("studies", observed=True)["income"].mean()
    assert numbers["difference_in_means"].value == pytest.approx(means[ARMS[1]] - means[ARMS[0]])


def test_students_were_younger_and_poorer_before(people):
    before = people.groupby("studies", observed=True)[["age", "income_prev"]].mean()
    assert (before.loc[ARMS[1]] < before.loc[ARMS[0]]).all()


def test_two_of_the_proposed_sets_will_do(page):
    _, numbers = page
    assert numbers["sets_that_will_do"].value == 2


def test_income_after_the_treatment_pulls_the_coefficient_up_by_far(page, people):
    _, numbers = page
    without, adjusted = numbers["estimate_s_ridge"], numbers["after_adding_income"]
    assert interval(adjusted)[0] > interval(without)[1]
    assert numbers["after_adding_nothing"] == without
    moved = numbers["after_adding_occupation"].value - without.value
    assert abs(moved) < 0.2 * (adjusted.value - without.value)
    later = fitted_simulator().sample(2_500, 3, seed=6).query("t == 2").set_index("subject")
    arms = later.loc[people.index].groupby(people["studies"], observed=True)
    assert arms["income"].max()[ARMS[1]] == 0
    # Nearly everybody who studies rises by one level, and nobody else does.
    risen = later.loc[people.index, "education-num"] - people["education-num"]
    shares = (risen == 1).groupby(people["studies"], observed=True).mean()
    assert shares[ARMS[1]] > 0.8
    assert shares[ARMS[0]] == 0


def test_the_report_and_the_verdicts_follow_from_the_numbers(page):
    _, numbers = page
    report, everybody = said(page, "report"), ["s_ridge", "t_ridge", "ipww_lr"]
    ends = [interval(numbers[f"estimate_{name}"]) for name in everybody]
    agree = max(low for low, _ in ends) <= min(high for _, high in ends)
    assert ("We give no number for everybody" in report) != agree
    overlap = [interval(numbers[f"estimate_{name}"]) for name in ("ipww_ato", "aipw_ato")]
    clear = min(low for low, _ in overlap) > 0 or max(high for _, high in overlap) < 0
    part = report.split("**Those who might do either, by overlap weights.**")[1].split("**")[0]
    assert ("one side of zero" in part) == clear
    for name in ("ipww_ato", "aipw_ato", "ipww_att"):
        dollars = number_text(numbers[f"estimate_{name}"].value, digits=0)
        assert f"{dollars} dollars" in report
    truth = {"ipww_ato": "ato", "aipw_ato": "ato", "ipww_att": "att", "ipww_trim": "ate_trimmed"}
    truth = dict.fromkeys(everybody, "ate_two_arms") | truth
    held = [
        low <= numbers[f"truth_of_{truth[name]}"].value <= high
        for name in truth
        for low, high in [interval(numbers[f"estimate_{name}"])]
    ]
    low, high = interval(numbers["difference_in_means"])
    held.append(low <= numbers["truth_of_ate_two_arms"].value <= high)
    assert numbers["intervals_that_hold_the_truth"].value == pytest.approx(
        100 * sum(held) / len(held)
    )
    within = f"The truth lies within {sum(held)} of {len(held)} intervals."
    assert said(page, "truth-answer").startswith(within)


def test_the_treated_are_worth_least_where_they_stand_for_everybody(page):
    _, numbers = page
    worth = {k: one.value for k, one in numbers.items() if k.startswith("worth_of_treated")}
    assert min(worth, key=worth.get) == "worth_of_treated_ate_two_arms"
    assert worth["worth_of_treated_att"] == pytest.approx(numbers["treated"].value)


def test_single_propensities_are_wrong_by_large_factors_in_both_directions(page):
    _, numbers = page
    assert numbers["true_over_estimated_5_percent"].value < 0.5
    assert numbers["true_over_estimated_95_percent"].value > 2


def test_the_solution_that_hides_a_cause_pulls_the_estimate_down(page, people, shown):
    notebook, numbers = page
    table = shown(notebook, "solution-hidden")
    known = numbers["estimate_ipww_ato"].value
    assert table["with last year's income"]["ATO, $"] == round(known)
    without = table["without it"]["ATO, $"]
    assert without < known
    fewer = [name for name in ADJUSTMENT_SETS["full"] if name != "income_prev"]
    hidden = replace(Study(people, people, people), adjustment=fewer)
    assert without == round(estimate(hidden, ["ipww-ato"], progress=False)["ipww-ato"].ate)


def test_the_solution_on_late_variables_finds_that_one_of_them_moves_the_coefficient(page, shown):
    late = {name: row["estimate, $"] for name, row in shown(page[0], "solution-late").items()}
    moved = {name: abs(value - late["nothing"]) for name, value in late.items()}
    assert moved["workclass"] > 5 * moved["occupation"]


REGRESSION, WEIGHTING = "S-learner (Ridge)", "IPW-W (LR), overlap weights"
NAMES = {"s-ridge": REGRESSION, "ipww-ato": WEIGHTING}


def dollars(one) -> list[float]:
    """Round an estimate, and the width of its interval, as a table does."""
    return [round(one.ate), round(one.upper - one.lower)]


def test_the_solution_on_the_smaller_set_estimates_with_both_sets(page, people, shown):
    table = shown(page[0], "solution-smaller")
    rows = {name: [*row.values()] for name, row in table.items()}
    assert len(rows) == 2 * len(NAMES)
    for columns in ("full", "minimal"):
        study = Study(people, people, people, columns)
        for name, one in estimate(study, list(NAMES), progress=False).items():
            assert rows[f"{columns}, {NAMES[name]}"][-2:] == dollars(one)
    fits = [rows[f"{columns}, {REGRESSION}"][0] for columns in ("full", "minimal")]
    assert fits[0] > fits[1], "the full set has what predicts the income"
    widths = [rows[f"{columns}, {WEIGHTING}"][-1] for columns in ("full", "minimal")]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_the_solution_on_more_people_takes_a_quarter_of_them(page, people, shown):
    rows = shown(page[0], "solution-more")
    assert len(rows) == 2 * len(NAMES)
    widths = {name: [] for name in NAMES}
    for size in (len(people) // 4, len(people)):
        some = people.head(size)
        found = estimate(Study(some, some, some), list(NAMES), progress=False)
        for name, one in found.items():
            row = [*rows[f"{NAMES[name]}, {number_text(size, digits=0)} people"].values()]
            assert row == dollars(one)
            widths[name].append(row[1])
    for few, all_of_them in widths.values():
        assert all_of_them < few < 2 * all_of_them, (
            "of which the page says that it need not be twice"
        )


def test_the_solution_on_twenty_analysts_counts_the_truth_of_the_drawer(page, drawer, shown):
    truth = average_effects(drawer)["value"]
    goals = {"s-ridge": "ATE, two arms", "ipww-ato": "ATO"}
    held = dict.fromkeys(goals, 0)
    for seed in range(100, 104):
        table = draw_study(fitted_simulator(), 1_000, 6, seed=seed, n_test=1).observational
        seen = table[table["studies"].isin(ARMS)]
        for name, one in estimate(Study(seen, seen, seen), list(goals), progress=False).items():
            held[name] += one.lower < truth[goals[name]] < one.upper
    rows = {name: [*row.values()] for name, row in shown(page[0], "solution-twenty").items()}
    assert rows == {f"{NAMES[name]}, {goals[name]}": [25.0 * k] for name, k in held.items()}
