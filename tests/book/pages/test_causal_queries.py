"""What the chapter on questions beyond the average says is so, with other values than its own.

Bounds are four standard errors, unless said otherwise, about what follows from the mechanisms.
"""

import numpy as np
import pytest

from lib.book.editions import BOOK
from lib.effects.study import ARMS
from lib.errors import InputError
from lib.income import fitted_simulator
from lib.income.study import TREATED_STEP
from lib.scm.comparison import average_effect

VALUES = {
    "n_people": 30_000,
    "job_without": 0.3,
    "job_with": 0.75,
    "extra": 5_000.0,
    "n_samples": 1_000,
    "horizon": 6,
    "threshold": 45_000.0,
    "sizes": [50, 125],
    "n_lives": 1_500,
    "seed": 4,
}
PAY = 8_000
#: Chances of a job without and with studies, what it pays, and what studies pay beside it.
WITHOUT, WITH = VALUES["job_without"], VALUES["job_with"]
AFTER = PAY + VALUES["extra"]
DIRECT = 12_000 - WITH * AFTER + WITHOUT * PAY
#: The chance of a job in the city and elsewhere, without and with studies, and of the city.
JOBS = {0: (0.1, 0.5), 1: (0.3, 0.9)}
CITY = {0: 0.3, 1: 0.7}
PAIRS = [("talent_pays", "match_pays"), ("same_luck", "opposite_luck")]


@pytest.fixture(scope="module")
def page(executed):
    """The run record and the executed notebook."""
    return executed(BOOK.notebook("causal_queries"), VALUES)


@pytest.fixture(scope="module")
def numbers(page):
    return page[0]["numbers"]


@pytest.fixture(scope="module")
def two_worlds():
    """The subjects of the page with studies at step 1, and without."""
    everyone = {"n": VALUES["n_samples"], "horizon": VALUES["horizon"], "seed": VALUES["seed"]}
    return [
        fitted_simulator().sample(**everyone, do={"studies": {TREATED_STEP: arm}})
        for arm in reversed(ARMS)
    ]


@pytest.fixture(scope="module")
def equal_jobs(executed):
    """The page where a job pays all alike and is as likely without studies as with them."""
    same = {"n_people": 1_000, "job_without": 0.35, "job_with": 0.35, "extra": 0.0}
    few = {"n_samples": 100, "horizon": 4, "sizes": [50], "n_lives": 100}
    return executed(BOOK.notebook("causal_queries"), same | few)[1]


@pytest.mark.parametrize("cell", ["formula", "solution-2"])
def test_what_is_the_same_for_all_has_no_error_that_is_rounding(equal_jobs, cell):
    (outputs,) = (one.outputs for one in equal_jobs.cells if one.id == cell)
    html = outputs[-1]["data"]["text/html"]
    assert "12\u202f000<" in html
    assert "12\u202f000.0" not in html


def test_a_policy_that_costs_nothing_is_refused(executed):
    values = VALUES | {"cost_evening": 0.0}
    with pytest.raises(InputError, match="parameter 'cost_evening' must be above 0: found 0"):
        executed(BOOK.notebook("causal_queries"), values)


@pytest.fixture
def near(numbers):
    """Compare a number with a truth, or with another number."""

    def compare(name, expected, more=0.0):
        one = numbers[name]
        error = one["standard_error"] or 0.0
        if isinstance(expected, str):
            other = numbers[expected]
            error = np.hypot(error, other["standard_error"] or 0.0)
            expected = other["value"]
        assert one["value"] == pytest.approx(expected, abs=4 * error + more + 1e-6), name

    return compare


@pytest.mark.parametrize("way", ["program", "counted"])
def test_program_and_formula_find_the_natural_effects(near, numbers, way):
    near(f"natural_direct_{way}", DIRECT + VALUES["extra"] * WITHOUT)
    near(f"natural_indirect_{way}", AFTER * (WITH - WITHOUT))
    assert numbers[f"natural_direct_{way}"]["standard_error"] < 300, "a bound that says something"


@pytest.mark.parametrize("pair", PAIRS)
def test_worlds_of_a_pair_look_the_same(near, numbers, pair):
    one, other = pair
    apart = "apart_with_witness" if "luck" in one else "apart_with_hidden_cause"
    assert numbers[apart]["value"] < 4.5, "the largest of 13"
    for quantity in (
        "total",
        "interventional_direct",
        "interventional_indirect",
        "controlled_direct_with_a_job",
        "controlled_direct_without_a_job",
        "formula_natural_direct",
    ):
        # Both lotteries deal out as many jobs as there are, a number that scatters by itself.
        more = 4 * AFTER / VALUES["n_people"] ** 0.5 if "interventional" in quantity else 0.0
        near(f"{quantity}_{one}", f"{quantity}_{other}", more)


def test_natural_effects_differ_within_pairs(near):
    levels = WITHOUT + np.array([-0.05, 0.05])  # without support, and with it
    talented = (levels * (2 - levels)).mean()  # a job, times what talent makes of it
    near("natural_direct_talent_pays", DIRECT + AFTER * talented - PAY * WITHOUT)
    near("natural_direct_match_pays", DIRECT + AFTER * WITHOUT - PAY * WITHOUT)
    # In the city without studies are 30 in a hundred, with studies 70: all of the first or none.
    elsewhere, there = JOBS[0]
    before = CITY[0] * there
    for luck, both in {"same_luck": CITY[0], "opposite_luck": 0.0}.items():
        after = both * there + (CITY[1] - both) * elsewhere
        near(f"natural_direct_{luck}", DIRECT + 12_000 * (after - before))


def test_controlled_and_interventional_effects_follow_from_the_mechanisms(near):
    near("controlled_direct_without_a_job_same_luck", DIRECT)
    near("controlled_direct_with_a_job_talent_pays", DIRECT + VALUES["extra"])
    near("controlled_direct_with_a_job_opposite_luck", DIRECT + 12_000 * (CITY[1] - CITY[0]))
    more = 4 * AFTER / VALUES["n_people"] ** 0.5
    near("interventional_direct_talent_pays", DIRECT + VALUES["extra"] * WITHOUT, more)
    jobs = CITY[0] * JOBS[0][1] + (1 - CITY[0]) * JOBS[0][0]
    expected = DIRECT + 12_000 * jobs * (CITY[1] - CITY[0])
    near("interventional_direct_same_luck", expected, more)


def test_arrows_add_up_in_both_orders(numbers):
    total = numbers["effect_of_all_arrows"]["value"]
    names = ["pay_of_that_year", "education", "work_and_family", "studies_again"]
    names.append("pay_of_the_next_year")
    for way in ("on", "off"):
        parts = [numbers[f"{name}_switched_{way}"]["value"] for name in names]
        assert sum(parts) == pytest.approx(total)
    assert numbers["pay_of_the_next_year_switched_on"]["value"] == 0
    assert numbers["pay_of_the_next_year_switched_off"]["value"] != 0
    assert numbers["through_work"]["value"] + numbers["past_work"]["value"] == pytest.approx(total)


def test_all_arrows_that_leave_studies_are_in_the_chapter():
    """With all of them given, nothing but studies at that step tells the worlds apart."""
    simulator, step = fitted_simulator(), TREATED_STEP
    arrows = {
        (effect, step + (cause[1] != lag))
        for cause, (effect, lag) in simulator.specification.transition_graph().edges
        if cause[0] == "studies"
    }
    later = ["education", "workclass", "marital-status", "occupation", "studies", "income"]
    assert arrows == {("income", step), *((name, step + 1) for name in later)}
    control, treatment = ARMS
    everyone = {"n": 300, "horizon": 5, "seed": 2}
    treated = simulator.sample(**everyone, do={"studies": {step: treatment}})
    do = {"studies": {step: control}}
    for name, t in arrows:
        do.setdefault(name, {})[t] = treated
    world = simulator.sample(**everyone, do=do)
    assert (world["studies"] != treated["studies"]).sum() == 300
    rest = treated.columns.drop("studies")
    assert world[rest].equals(treated[rest])


def test_a_rule_that_decides_once_is_made_of_two_worlds(numbers):
    assert numbers["consistent"]["value"] == 100
    value = {name: one["value"] for name, one in numbers.items()}
    assert value["best_gain"] >= max(value["effect_of_all_arrows"], value["gain_of_small"], 0)
    assert value["gain_of_small_every_year"] < -10_000, "caught by itself"
    errors = [numbers[f"gain_of_{rule}"]["standard_error"] for rule in ("evening", "small")]
    assert errors[0] < errors[1] / 4, "the more alike, the sharper"


def test_small_studies_promise_more_than_they_keep(numbers):
    value = {name: one["value"] for name, one in numbers.items()}
    curses = [value[f"promised_by_{n}"] - value[f"kept_by_{n}"] for n in VALUES["sizes"]]
    assert curses[0] == pytest.approx(value["curse_of_the_smallest"])
    assert curses[0] > curses[1] > 0
    assert value["kept_by_50"] < value["best_gain"] < value["promised_by_50"]


def test_couplings_agree_on_the_experiment_and_part_on_one_life(near, numbers):
    near("all_go_on_gumbel", "all_go_on_inverse")
    gumbel, inverse = numbers["goes_on_gumbel"], numbers["goes_on_inverse"]
    assert gumbel["value"] - 4 * gumbel["standard_error"] > inverse["value"]
    all_of_them = numbers["all_go_on_inverse"]["value"]
    assert inverse["value"] < all_of_them / 2, "the lower bound is far from the average"


def test_the_solution_on_sums_finds_a_difference_where_there_is_a_city(page, shown):
    # A lottery breaks what ties jobs to the city, where a job pays 12 000 dollars more.
    broken = [CITY[a] * (1 - CITY[a]) * np.diff(JOBS[a])[0] for a in (0, 1)]
    expected = dict.fromkeys(["talent pays", "match pays"], 0.0)
    expected |= dict.fromkeys(["same luck", "opposite luck"], -12_000 * (broken[1] - broken[0]))
    found = shown(page[1], "solution-3")
    assert list(found) == list(expected)
    for name, row in found.items():
        (value,) = row.values()
        assert value == pytest.approx(expected[name], abs=4 * value.error), name
        assert (value + 4 * value.error < 0) == (expected[name] < 0), "more than chance"


def test_the_solution_that_counts_all_years_searches_the_same_thresholds(page, shown, two_worlds):
    gains = [world.groupby("subject")["income"].sum() for world in two_worlds]
    gain = (gains[0] - gains[1]).to_numpy()  # before step 1 nothing differs
    before = two_worlds[1].query("t == 0")["income"].to_numpy()
    table = shown(page[1], "solution-4")
    for name, price in {"without the price": 0, "with the price": 10_000}.items():
        row, net = table[name], gain - price
        assert row["gain of sending everybody, $"] == round(net.mean())
        worth = {c: (net * (before < c)).mean() for c in range(0, 200_001, 5_000)}
        assert row["best threshold, $"] == max(worth, key=worth.get)
        assert row["its gain, $"] == round(max(worth.values()))
        assert row["best threshold, $"] < page[0]["numbers"]["best_threshold"]["value"]


def test_the_solution_on_couplings_compares_the_arrow_of_the_table(page, shown, numbers):
    (one,), (other,) = (row.values() for row in shown(page[1], "solution-5").values())
    assert one == round(numbers["education_switched_on"]["value"])
    assert abs(one - other) < 4 * np.hypot(one.error, other.error)
    assert other > 2 * other.error


def test_an_arrow_carries_the_same_under_another_coupling():
    everyone, step = {"n": 8_000, "horizon": 6, "seed": 3}, TREATED_STEP
    found = []
    for coupling in ("gumbel", "inverse_cdf"):
        simulator = fitted_simulator(coupling=coupling)
        treated = simulator.sample(**everyone, do={"studies": {step: ARMS[1]}})
        do = {"studies": {step: ARMS[0]}, "income": {step: treated}}
        off = simulator.sample(**everyone, do=do)
        on = simulator.sample(**everyone, do=do | {"education": {step + 1: treated}})
        found.append(average_effect(on, off, "income", 5).iloc[:2])
    (one, error), (other, its_error) = found
    tolerance = 4 * np.hypot(error, its_error)
    assert one == pytest.approx(other, abs=tolerance)
    assert one > tolerance, "a bound that says something"


def test_the_solution_on_a_richer_rule_promises_more_and_reports_on_others(page, shown, numbers):
    table = shown(page[1], "solution-6")
    single, richer = table["income"], table["income and age"]
    assert richer["promise, $"] >= single["promise, $"]
    assert single["report, $"] == round(numbers["reported_for_even"]["value"])
    assert single["error, $"] == round(numbers["reported_for_even"]["standard_error"])
    assert richer["report, $"] != richer["promise, $"]
