"""Two worlds side by side."""

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.scm.comparison import average_effect, share_changed


@pytest.fixture
def world():
    return pd.DataFrame(
        {
            "subject": [0, 0, 1, 1, 2, 2],
            "t": [0, 1, 0, 1, 0, 1],
            "studies": pd.Categorical(["No", "No", "Full", "No", "No", "Full"], ["No", "Full"]),
            "income": [10.0, 11.0, 20.0, 22.0, 30.0, 33.0],
        }
    )


def test_shares_are_counted_by_variable_and_step(world):
    other = world.copy()
    other.loc[[1, 3], "studies"] = "Full"
    other.loc[[1, 3, 5], "income"] = 0.0
    shares = share_changed(world, other)
    expected = pd.DataFrame({0: [0.0, 0.0], 1: [2 / 3, 1.0]}, index=["studies", "income"])
    pd.testing.assert_frame_equal(shares, expected, check_names=False)


def test_levels_are_compared_by_name_not_by_position(world):
    other = world.assign(studies=world["studies"].cat.reorder_categories(["Full", "No"]))
    assert (share_changed(world, other) == 0).all(axis=None)


def test_the_effect_is_that_of_numpy_on_paired_differences(world):
    generator = np.random.default_rng(3)
    treated = world.assign(income=world["income"] + generator.normal(size=len(world)))
    difference = (treated["income"] - world["income"])[world["t"] == 1]
    effect = average_effect(treated, world, "income", step=1)
    assert effect["average effect"] == pytest.approx(np.mean(difference))
    assert effect["standard deviation"] == pytest.approx(np.std(difference, ddof=1))
    assert effect["standard error"] == pytest.approx(np.std(difference, ddof=1) / np.sqrt(3))


def test_pairing_by_position_needs_the_same_subjects(world):
    with pytest.raises(InputError, match="found subjects × steps 3 × 2 and 2 × 2"):
        share_changed(world, world[world["subject"] < 2])
    shuffled = world.iloc[::-1]
    with pytest.raises(InputError, match="subject by subject"):
        average_effect(world, shuffled, "income", step=1)


@pytest.mark.parametrize(
    ("outcome", "step", "rule"),
    [
        ("wealth", 1, "'wealth' is unknown: expected one of subject, t"),
        ("income", 9, "step 9 is unknown: expected one of 0, 1"),
    ],
)
def test_unknown_outcomes_and_steps_are_refused(world, outcome, step, rule):
    with pytest.raises(InputError, match=rule):
        average_effect(world, world, outcome, step)


def test_worlds_of_other_variables_are_refused(world):
    with pytest.raises(InputError, match="same variables"):
        share_changed(world, world.drop(columns="income"))
