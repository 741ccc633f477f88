"""What the chapter on facts withheld says is so, with other values than its own."""

import re

import numpy as np
import pytest
from scipy.stats import binom

from lib.book.editions import BOOK
from lib.ccr import generate
from lib.ccr.questions import UNKNOWN

VALUES = {"n_per_bcc": [2, 4], "n_tasks": 4, "n_samples": 60, "withheld": 0.6, "unknown": 0.4}


@pytest.fixture(scope="module")
def chapter(executed):
    values = VALUES | {"n_read": 3, "n_resamples": 20, "seed": 8}
    return executed(BOOK.notebook("facts_withheld"), values)


@pytest.fixture(scope="module")
def numbers(chapter):
    return {name: one["value"] for name, one in chapter[0]["numbers"].items()}


def test_the_oracles_agree_and_a_spoilt_rule_is_noticed(numbers):
    assert numbers["disagreements"] == 0 < numbers["noticed"]
    assert numbers["prompts_compared"] > 300


def test_the_share_is_set_and_who_always_refuses_earns_it(numbers):
    assert numbers["unknown_where_set"] == pytest.approx(40, abs=1)
    always = numbers["accuracy_always_says_it_cannot_be_known"]
    assert always == pytest.approx(numbers["unknown_where_set"])
    assert numbers["accuracy_perfect"] == 100


def test_each_fault_costs_accuracy(numbers):
    for name in ("ignores_what_is_known", "assumes_untold_facts_are_false"):
        assert numbers[f"accuracy_{name}"] < 100


def test_the_error_of_a_share_is_that_of_leaving_out_worlds(chapter):
    tasks = generate("candy_party", **VALUES | {"unknown": None}, seed=8).tasks
    counts = np.array(
        [((one.labels == UNKNOWN)[one.asked].sum(), one.asked.sum()) for one in tasks]
    )
    left = counts.sum(axis=0) - counts  # the jackknife, which shares no formula with the page
    spread = 100 * (left[:, 0] / left[:, 1]).std() * (len(tasks) - 1) ** 0.5
    found = chapter[0]["numbers"]["unknown_as_it_comes"]
    assert found["value"] == pytest.approx(100 * counts[:, 0].sum() / counts[:, 1].sum())
    assert found["standard_error"] == pytest.approx(spread, rel=0.1)
    assert chapter[0]["numbers"]["accuracy_perfect"]["standard_error"] == 0


def test_three_kinds_are_never_inferred(chapter, shown):
    silent = shown(chapter[1], "solution-1")
    assert {*silent} == {"factual", "interventional", "dependence"}
    assert all(row["inferred"] == 0 < row["unknown"] for row in silent.values())


def test_with_all_a_true_outcome_tells_everything_and_a_false_one_does_not(chapter, shown):
    said = shown(chapter[1], "solution-2")
    assert said["Hugo is happy"] == {"Ines is happy": "Yes", "Hugo, without Ines": "No"}
    unhappy = {"Ines is happy": "Cannot be known", "Hugo, without Ines": "No"}
    assert said["Hugo is not happy"] == unhappy


def test_bounds_widen_with_every_fact_withheld_and_end_at_nothing_known(chapter, shown):
    surely, follows, most = np.array(
        [[*row.values()] for row in shown(chapter[1], "solution-3").values()]
    ).T[-3:]
    assert len({*follows}) == 1 and (surely <= follows).all() and (follows <= most).all()
    assert (np.diff(surely) <= 0).all() and (np.diff(most) >= 0).all()
    assert len(most) == 5 and (surely[-1], most[-1]) == (0, 1), "five facts, none of them told"


def test_who_knows_too_much_is_overconfident_wherever_it_can_be(chapter, numbers, shown):
    rows = shown(chapter[1], "solution-4").items()
    metrics = {name: row["value, %"] for name, row in rows}
    right = pytest.approx(100 - numbers["unknown_where_set"], abs=0.06)
    assert metrics["accuracy"] == metrics["accuracy when answering"] == right
    assert (metrics["overconfidence"], metrics["recall of refusals"]) == (100, 0)


def test_forty_five_of_fifty_leave_a_recall_of_0_78_possible(chapter):
    (cell,) = (one for one in chapter[1].cells if one.id == "solution-5")
    low, high = map(float, re.findall(r"0\.\d\d", cell.outputs[0].text)[1:])
    assert binom.sf(44, 50, low - 0.01) < 0.025 < binom.sf(44, 50, low + 0.01)
    assert binom.cdf(45, 50, high + 0.01) < 0.025 < binom.cdf(45, 50, high - 0.01)
    assert low == 0.78 and binom.sf(44, 50, 0.8) > 0.025, "no surprise at a recall of 0.8"


def test_an_observation_only_takes_worlds_away(chapter, shown):
    known = {name: row["root is known, %"] for name, row in shown(chapter[1], "solution-6").items()}
    assert [*known] == ["nothing", "node 1", "node 4"]
    assert known["nothing"] == min(known.values()) < max(known.values())
