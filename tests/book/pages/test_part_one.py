"""What the chapters on the table, the fit, its worlds and the study say is so, with other values.

Each runs with parameters that are not its own: a sentence that holds for those alone would be
contradicted by a number that the run records, or by what a solution shows.
"""

import math
import re

import pytest
from nbformat import NotebookNode

from lib.book.editions import BOOK
from lib.book.recorded import recorded
from lib.income import fitted_simulator

WORLDS = {
    "by default": {"n_samples": 4_000},
    "a shorter life": {"n_samples": 1_500, "horizon": 4, "seed": 3},
    "an evening course": {
        "n_samples": 1_500,
        "horizon": 6,
        "seed": 7,
        "intervention_step": 2,
        "treatment": "Evening course",
        "mediator": "occupation",
    },
}
FIT = {"specification": "income_scm_1.1", "n_samples": 3_000, "sampling_seed": 5}
FIT |= {"seed": 3, "effect": "income", "n_fits": 2, "n_fit": 1_000, "n_told": 1_000}
STUDY = {"specification": "income_scm_1.1", "n_samples": 1_500, "horizon": 4, "n_truth": 100}
STUDY |= {"repeats": 3, "n_lottery": 2_000, "n_weighted": 400, "n_studies": 6}


class Page:
    """An executed chapter: its numbers, and what its cells show."""

    def __init__(self, record: dict, notebook: NotebookNode, shown):
        self.values, self.numbers = record["parameters"], record["numbers"]
        self.notebook, self._shown = notebook, shown

    def value(self, name: str) -> float:
        return self.numbers[name]["value"]

    def table(self, cell: str) -> dict:
        return self._shown(self.notebook, cell)

    def printed(self, cell: str) -> str:
        (outputs,) = (one.outputs for one in self.notebook.cells if one.id == cell)
        return "".join(one.text for one in outputs if "text" in one)


@pytest.fixture(scope="module")
def run(executed, shown):
    return lambda name, values: Page(*executed(BOOK.notebook(name), values), shown)


@pytest.fixture(scope="module")
def table(run):
    return run("data_preparation", {"records_shown": 1})


@pytest.fixture(scope="module")
def fit(run):
    return run("simulator_fitting", FIT)


@pytest.fixture(scope="module", params=WORLDS)
def worlds(request, run):
    return run("worlds", WORLDS[request.param])


@pytest.fixture(scope="module")
def study(run):
    return run("effect_data", STUDY)


def test_the_table_is_the_one_that_the_chapter_describes(table):
    assert (table.value("records"), table.value("people")) == (32_561, 30_162)
    with_gap, without_gap = (table.value(f"above_50000_with{out}_a_gap") for out in ("", "out"))
    assert with_gap < without_gap - 4 * 100 * math.sqrt(0.25 / 2_399)
    assert table.value("largest_difference_from_paper") <= 0.05
    gap = table.value("above_50000_of_bachelors") - table.value("above_50000_of_hs_grad")
    assert table.value("gap_of_a_degree") == pytest.approx(gap)


def test_solutions_on_the_table_show_what_they_say(table):
    income, *_ = table.table("solution-weights").values()
    assert income["of the population, %"] < income["of the records, %"]
    alike = table.table("solution-alike")
    gaps = {status: row["gap, percentage points"] for status, row in alike.items()}
    assert max(gaps, key=gaps.get) == "Married"
    married = {sex: row["married, %"] for sex, row in table.table("solution-quirks").items()}
    assert married["Female"] < married["Male"] / 2
    assert "32\u202f561 people" in table.printed("solution-missing")


def test_the_largest_differences_of_the_fit_concern_relationship(fit):
    assert next(iter(fit.table("code-19"))).startswith("relationship")
    assert fit.value("farthest_share") > fit.value("chance_of_a_share")


def test_without_an_arrow_women_are_married_as_often_as_men(fit):
    women, men = (fit.value(f"married_simulated_{sex}") for sex in ("female", "male"))
    # A third of the subjects are women; what both sexes inherit moves the shares a little, too.
    assert abs(women - men) < 4 * 100 * math.sqrt(0.25 * 4.5 / FIT["n_samples"])
    assert fit.value("married_adult_female") < fit.value("married_adult_male") / 2
    rows = fit.table("solution-mend")
    for column in ("women who are married, %", "husbands, %", "wives, %"):
        off = {name: abs(row[column] - rows["Adult"][column]) for name, row in rows.items()}
        assert off["with the arrow"] < off["without the arrow"] / 2


def test_more_simulated_people_are_above_the_threshold_than_in_the_table():
    incomes = fitted_simulator("income_scm_1.1").sample(n=3_000, horizon=1, seed=5)["income"]
    assert (incomes > 50_000).mean() > 0.249 + 4 * math.sqrt(0.25 / 3_000)


def test_there_are_as_many_fits_as_are_asked_for_whatever_the_seed(fit):
    assert {int(row["fits"]) for row in fit.table("code-32").values()} == {FIT["n_fits"]}


def test_the_kept_lottery_of_fits_has_the_authors_draw_among_ours(fit):
    kept = list(recorded("simulator_fitting", "lottery", index="fact").values())[-1]
    assert set(kept["fits"]) == {20}
    assert fit.value("farthest_fact") == pytest.approx(kept["distance"].abs().max())
    assert fit.value("farthest_fact") < 2, "of which the page says that it is no sign"


def test_fits_move_the_effect_to_quote_by_more_than_the_error_that_is_quoted(run):
    page = run("numbers", {"n_samples": 300, "n_draws": 1, "n_truth": 200, "repeats": 2})
    kept = list(recorded("simulator_fitting", "lottery", index="fact").values())[-1]
    fits = kept.loc["average effect, $"]
    assert (page.value("fits"), page.value("effect_between_fits")) == (
        fits["fits"],
        fits["standard deviation"],
    )
    effects = list(recorded("numbers", "effects", index="estimand").values())[-1]
    assert fits["standard deviation"] > 2 * effects.loc["ATE", "standard error"]


def test_every_fit_is_told_apart_from_the_published_sample(fit):
    pairs = {name: int(row["pairs"]) for name, row in fit.table("likeness").items()}
    assert list(pairs.values()) == [FIT["n_fits"], FIT["n_fits"], FIT["n_fits"] - 1, 1]
    kept = list(recorded("simulator_fitting", "likeness", index="samples of").values())[-1]
    theirs, _, ours, itself = kept.to_dict("records")
    assert (theirs["pairs"], ours["pairs"]) == (20, 19)
    assert abs(itself["median"] - 0.5) < 3 * itself["standard error of one"]
    assert theirs["least AUC"] < ours["largest"], "some fit is as near to theirs as ours are"


def test_solutions_on_the_fit_show_what_they_say(fit):
    first, later = (line.split()[2:] for line in fit.printed("solution-graph").splitlines())
    studied = "marital-status occupation relationship hours-per-week capital-net income studies"
    assert sorted(first) == sorted(studied.split())
    assert later[-2:] == ["education", "education-num"]
    printed = fit.printed("solution-right-and-poor").splitlines()
    of_table, of_simulated = (float(line.split()[-1]) for line in printed)
    assert 0.5 < of_simulated < of_table + 0.02 < 0.65


def test_the_solution_on_fits_parts_the_chance_of_subjects_from_that_of_fits(fit):
    between, within = (row["average effect, $"] for row in fit.table("solution-fits").values())
    here = fit.table("code-32")["average effect, $"]
    assert between == pytest.approx(here["standard deviation"], abs=1)
    # The error of subjects falls with the root of their number; that of fits need not.
    kept = list(recorded("simulator_fitting", "lottery", index="fact").values())[-1]
    more = kept.loc["average effect, $"]
    size = kept.attrs["parameters"]["n_fit"] / FIT["n_fit"]
    assert within == pytest.approx(size**0.5 * more["standard error"], rel=0.25)
    assert more["standard deviation"] < more["standard error"], "subjects move it more than fits"


def full_time(worlds) -> bool:
    return worlds.values["treatment"] == "Full-time studies"


def test_the_effect_is_that_of_the_step(worlds):
    assert (worlds.value("effect_at_once") < 0) == full_time(worlds)
    error = worlds.numbers["average_effect"]["standard_error"]
    if worlds.values["horizon"] == 7:
        assert worlds.value("average_effect") > 2 * error
        assert worlds.value("from_published_files") < 4
    else:
        assert worlds.value("average_effect") < 4 * error
        assert worlds.value("from_published_files") > 4
    assert worlds.value("from_the_paper") > 4


def test_two_rules_agree_on_margins_and_not_on_moves(worlds):
    # Levels that both worlds give, by the rule: the overlap of two stacks of probabilities, and
    # for Gumbel-max the sum of 1 / Σₖ max(pₖ / pⱼ, qₖ / qⱼ).
    here, there = (0.4, 0.4, 0.2), (0.3, 0.2, 0.5)
    stay = sum(
        1 / sum(max(p / here[j], q / there[j]) for p, q in zip(here, there, strict=True))
        for j in range(3)
    )
    tolerance = 4 * 100 * math.sqrt(0.25 / 100_000)
    assert worlds.value("stay_under_gumbel_max") == pytest.approx(100 * stay, abs=tolerance)
    assert worlds.value("stay_under_inverse_cdf") == pytest.approx(60, abs=tolerance)
    assert worlds.value("low_to_middle_under_inverse_cdf") == pytest.approx(10, abs=tolerance)
    assert worlds.value("low_to_middle_under_gumbel_max") == 0


def test_shared_noise_helps_little_where_incomes_are_drawn_afresh(worlds):
    error = worlds.numbers["average_effect"]["standard_error"]
    gain = worlds.value("error_with_different_people") / error
    assert gain < 2 if full_time(worlds) else gain > 5


def test_parts_add_up_and_have_opposite_signs_by_default(worlds):
    direct, indirect = (worlds.value(f"natural_{part}_effect") for part in ("direct", "indirect"))
    assert direct + indirect == pytest.approx(worlds.value("average_effect"))
    if worlds.values["horizon"] == 7:
        assert direct < 0 < indirect
        _, direct, indirect = (
            row["average effect, $"] for row in worlds.table("code-coupling").values()
        )
        assert direct < 0 < indirect


def test_an_effect_that_is_exactly_zero_is_not_infinitely_far_from_another(run):
    last = {"n_samples": 50, "horizon": 2, "subject": 0, "treatment": "Evening course"}
    page = run("worlds", last)
    assert page.value("average_effect") == 0, "an evening course changes no income of its year"
    away = [row["from this run, in standard errors"] for row in page.table("code-23").values()]
    assert away[:2] == ["—", "—"], "neither this run nor the paper's number has an error"
    assert away[2] == pytest.approx(page.value("from_published_files"), abs=0.05)


def test_solutions_on_worlds_show_what_they_say(worlds):
    assert "mean income: 0 dollars" in worlds.printed("solution-lasting")
    empty = worlds.printed("solution-empty").splitlines()[1:]
    assert {"- age", "- race", "- sex", "- native-country"} < {*empty}
    assert "- hours-per-week" not in empty
    poorer, richer = (row["average effect, $"] for row in worlds.table("solution-gain").values())
    if full_time(worlds):
        assert poorer > richer
    if worlds.values["horizon"] == 7:
        assert richer < 0 < poorer
    _, hours = worlds.table("solution-mediator").values()
    assert abs(hours["average effect, $"]) < 300
    rule = {name: row["income, $"] for name, row in worlds.table("solution-rule").items()}
    (sent,) = map(float, re.findall(r"\d+\.\d", worlds.printed("solution-rule")))
    assert 0 < sent < 30
    # The share is printed with one decimal, and the effects are rounded to dollars.
    on_these = 100 * rule["average effect"] / sent
    assert rule["average effect on these"] == pytest.approx(on_these, rel=0.01, abs=20)


def test_what_the_study_says_holds_for_a_shorter_one(study):
    assert study.value("average_effect") < 0
    assert study.value("effective_size_of_treated") < study.value("effective_size_of_control")
    for way in ("weighting", "regression"):
        one = study.numbers[f"error_{way}"]
        assert abs(one["value"]) < 4 * one["standard_error"]


def test_solutions_on_the_study_show_what_they_say(study):
    assert study.printed("solution-worth").strip() == "3.96"
    ceilings = [row["ceiling of R²"] for row in study.table("solution-shorter").values()]
    assert ceilings == sorted(ceilings, reverse=True)
    assert ceilings[0] > 0.9
    everybody, overlap = study.table("solution-honest").values()
    assert overlap["worth of the treated"] > everybody["worth of the treated"]
    assert overlap["worth of the controls"] < everybody["worth of the controls"]
    years, evenings = study.table("solution-evening").values()
    hardly = "controls with a chance below 0.01, %"
    assert evenings[hardly] < years[hardly] / 2
    assert abs(evenings["average effect, $"]) < abs(years["average effect, $"]) / 10
    assert evenings["ceiling of R²"] < 0.01 < years["ceiling of R²"]
