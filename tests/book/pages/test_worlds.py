"""What the chapter on worlds records follows its parameters, each number once."""

import pytest

from lib.book.editions import BOOK
from lib.income import fitted_simulator

VALUES = {"n_samples": 400, "seed": 5, "horizon": 4}


@pytest.fixture(scope="module")
def numbers(executed):
    return executed(BOOK.notebook("worlds"), VALUES)[0]["numbers"]


def test_previous_incomes_are_of_the_people_of_this_run(numbers):
    found = numbers["previous_income_above_50000"]
    shares = {}
    for seed in (VALUES["seed"], 0):
        first = fitted_simulator().sample(n=VALUES["n_samples"], horizon=1, seed=seed)
        shares[seed] = 100 * (first["income"] > 50_000).mean()
    assert shares[0] != shares[VALUES["seed"]] == pytest.approx(found["value"])


def test_no_number_is_recorded_under_two_names(numbers):
    known = [(one["value"], one["standard_error"]) for one in numbers.values()]
    assert len(known) == len(set(known))
