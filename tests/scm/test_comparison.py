"""Two worlds side by side."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from lib.errors import InputError
from lib.scm.comparison import average_effect, share_changed, two_sample_auc


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
    found = r"found \[{'subject': 3, 't': 2}, {'subject': 2, 't': 2}\]"
    with pytest.raises(InputError, match=found):
        share_changed(world, world[world["subject"] < 2])
    shuffled = world.iloc[::-1]
    with pytest.raises(InputError, match="the same subjects and steps"):
        average_effect(world, shuffled, "income", step=1)


@pytest.mark.parametrize(
    ("outcome", "step", "rule"),
    [
        ("wealth", 1, "'wealth' is unknown: expected one of subject, t"),
        ("income", 9, "step 9 is unknown: expected one of 0, 1"),
        ("studies", 1, "variable 'studies': finite numbers are needed: found 'No'"),
    ],
)
def test_unknown_outcomes_and_steps_are_refused(world, outcome, step, rule):
    with pytest.raises(InputError, match=rule):
        average_effect(world, world, outcome, step)


def test_levels_that_are_numbers_have_an_effect(world):
    levels = pd.CategoricalDtype([1, 0])
    control, treated = (world.assign(ill=ill) for ill in ([0, 1, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0]))
    worlds = [one.astype({"ill": levels}) for one in (treated, control)]
    effect = average_effect(*worlds, "ill", step=1)
    assert effect["average effect"] == 0 and effect["standard deviation"] == 1
    assert effect.equals(average_effect(treated, control, "ill", step=1)) and effect.name == "ill"
    text = control.astype({"ill": str})
    with pytest.raises(InputError, match="variable 'ill': finite numbers are needed: found '0'"):
        average_effect(treated, text, "ill", step=1)


def test_worlds_of_other_variables_are_refused(world):
    with pytest.raises(InputError, match="same variables"):
        share_changed(world, world.drop(columns="income"))


def two_tables(n: int, m: int, shift: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(3)
    first, second = (
        pd.DataFrame({"x": rng.normal(mean, 1, size), "sex": rng.choice(["F", "M"], size)})
        for size, mean in ((n, shift), (m, 0.0))
    )
    return first, second[["sex", "x"]]


@pytest.mark.parametrize("shift", [0.0, 0.5, -2.0])
def test_tables_are_told_apart_as_far_as_they_can_be(shift):
    n, m = 3_000, 2_000
    found = two_sample_auc(*two_tables(n, m, shift))
    # Of two normal variables the larger is the farther one with this probability.
    best = ndtr(abs(shift) / 2**0.5)
    assert best - 0.02 - 4 * found["standard error"] < found["AUC"]
    assert found["AUC"] < best + 4 * found["standard error"]
    if shift == 0:  # twice the variance of the Mann-Whitney statistic where nothing differs
        expected = ((n + m + 1) / (6 * n * m)) ** 0.5
        assert found["standard error"] == pytest.approx(expected, rel=0.05)


def test_the_standard_error_counts_that_each_row_helps_to_score_others():
    rng, found = np.random.default_rng(1), []
    for _ in range(30):  # of tables that do not differ
        tables = (pd.DataFrame(rng.normal(size=(40, 1)), columns=["x"]) for _ in range(2))
        found.append(two_sample_auc(*tables))
    found = pd.DataFrame(found)
    # With the variance for given trees, the ratio would be 1.35.
    assert 0.75 < found["AUC"].std() / found["standard error"].mean() < 1.2


def test_levels_alone_tell_tables_apart_and_a_seed_repeats_it():
    one, other = two_tables(500, 500, 0.0)
    other = other.assign(sex=pd.Categorical(np.where(other["x"] > -2, "F", "M")))
    found = two_sample_auc(one, other, seed=4)
    # Who is M is of the first table, of which half are; the rest are a toss, if trees see no more.
    assert 0.7 < found["AUC"] < 0.8
    # Levels are levels, whatever their type.
    truths = (table["sex"] == "M" for table in (one, other))
    one, other = one.assign(sex=next(truths)), other.assign(sex=pd.Categorical(next(truths)))
    assert found.equals(two_sample_auc(one, other, seed=4))
    assert not found.equals(two_sample_auc(one, other, seed=5))


def test_names_and_levels_may_be_of_any_kind():
    one, other = two_tables(60, 50, 0.5)
    found = two_sample_auc(one, other)
    odd, names = {"F": 1, "M": "1"}, {"x": "x [years]", "sex": "<sex>"}
    renamed = (
        table.assign(sex=table["sex"].map(odd)).rename(columns=names) for table in (one, other)
    )
    assert found.equals(two_sample_auc(*renamed))


def test_each_fold_needs_a_row_of_either_table():
    one, other = two_tables(60, 4, 0.5)
    with pytest.raises(InputError, match=r"must have a row per fold, five: found \[60, 4\]"):
        two_sample_auc(one, other)


def test_tables_of_other_variables_are_not_compared():
    one = pd.DataFrame({"age": [1, 2]})
    with pytest.raises(InputError, match="tables must have the same variables"):
        two_sample_auc(one, one.assign(sex="F"))
