"""What the chapter on facts withheld says is so, with other values than its own."""

import pytest

from lib.book.editions import BOOK

VALUES = {"n_per_bcc": [2, 4], "n_tasks": 4, "n_samples": 60, "withheld": 0.6, "unknown": 0.4}


@pytest.fixture(scope="module")
def numbers(executed):
    values = VALUES | {"n_read": 3, "n_resamples": 20, "seed": 8}
    record = executed(BOOK.notebook("facts_withheld"), values)[0]
    return {name: one["value"] for name, one in record["numbers"].items()}


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
