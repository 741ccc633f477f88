"""Shares that the chapter on the table records have the error of what was counted."""

import pytest

from lib.adult import load_adult, read_adult
from lib.book.editions import BOOK


@pytest.fixture(scope="module")
def numbers(executed):
    return executed(BOOK.notebook("data_preparation"), {"records_shown": 1})[0]["numbers"]


@pytest.fixture(scope="module")
def groups():
    """The people of each share: whether they are above the threshold."""
    records, adult = read_adult(), load_adult()
    gap = records.isna().any(axis="columns")
    education, status = adult["education"], adult["marital-status"]
    above, all_above = (table["income"] == ">50K" for table in (adult, records))
    return {
        "without_a_gap": all_above[~gap],
        "with_a_gap": all_above[gap],
        "of_bachelors": above[education == "Bachelors"],
        "of_hs_grad": above[education == "HS-grad"],
        "of_married": above[status == "Married"],
        "of_never_married": above[status == "Never-married"],
    }


def test_every_share_above_the_threshold_has_its_binomial_error(numbers, groups):
    assert {name for name in numbers if name.startswith("above_50000_")} == {
        f"above_50000_{name}" for name in groups
    }
    for name, above in groups.items():
        found, p = numbers[f"above_50000_{name}"], above.mean()
        assert found["value"] == pytest.approx(100 * p)
        binomial = 100 * (p * (1 - p) / (len(above) - 1)) ** 0.5
        assert found["standard_error"] == pytest.approx(binomial)


def test_the_error_of_a_gap_is_that_of_two_groups_of_people(numbers):
    gap = numbers["gap_of_a_degree"]
    errors = [
        numbers[f"above_50000_of_{name}"]["standard_error"] for name in ("bachelors", "hs_grad")
    ]
    assert max(errors) < gap["standard_error"] < sum(errors)
    assert gap["standard_error"] ** 2 == pytest.approx(sum(error**2 for error in errors))
