"""The average effect found a second time: oracles with power, and one without."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from lib.effects.estimators import TruePropensityWeighting
from lib.errors import InputError
from lib.income import draw_study, fitted_simulator
from lib.income.oracles import three_ways, weighted_studies

ARMS = ("No studies", "Full-time studies")


SIZE = 24_000


@pytest.fixture(scope="module")
def study():
    # At the third step the treated have no income: effects are large, and luck is small.
    chances = dict(zip(ARMS, (0.4, 0.6), strict=True))
    options = {"seed": 0, "test_seed": 0, "adjustment": "minimal"}
    return draw_study(fitted_simulator(), SIZE, 3, lottery=chances, **options)


def z(table):
    return table["from pairs"] / table["standard error"]


def test_weighting_and_regression_find_what_pairs_say(study):
    table = three_ways(study)
    assert table.loc["pairs"].tolist() == [study.difference.mean(), 0, 0]
    assert (abs(z(table).drop("pairs")) < 4).all()
    # Tight: of an effect of about 69 000 dollars.
    assert table.loc["regression", "standard error"] < 170
    assert table.loc["weighting", "standard error"] < 520


def test_a_truth_that_is_wrong_by_1_000_dollars_is_found(study):
    wrong = dataclasses.replace(
        study, treated=study.treated.assign(income=study.treated["income"] + 1_000)
    )
    assert z(three_ways(wrong))["regression"] < -5
    # So is one of the right size for other subjects: regression and pairs see the same people.
    shuffled = study.treated["income"].to_numpy()[::-1] + 1_000
    wrong = dataclasses.replace(study, treated=study.treated.assign(income=shuffled))
    assert z(three_ways(wrong))["regression"] < -5


def test_the_stated_errors_are_those_over_lotteries(study):
    """Of incomes that rise with age, and chances of studies that fall with it."""
    rng, age = np.random.default_rng(0), study.control["age"]
    control = 1_000 * age + rng.normal(0, 20_000, SIZE)
    incomes = np.array([control, 3 * control])
    treated = np.where(age < age.median(), 0.9, 0.7)
    arm = (rng.random(SIZE) < treated).astype(int)
    chances = pd.DataFrame(dict(zip(ARMS, (1 - treated, treated), strict=True)))
    seen = {"studies": np.array(ARMS)[arm], "income": incomes[arm, range(SIZE)]}
    made = {
        "observational": study.observational.assign(**seen),
        "control": study.control.assign(income=incomes[0]),
        "treated": study.treated.assign(income=incomes[1]),
        "probabilities": chances,
        "test_probabilities": chances,
    }
    tables, size = [], 800
    for first in range(0, SIZE, size):
        parts = {name: table[first : first + size] for name, table in made.items()}
        tables.append(three_ways(dataclasses.replace(study, adjustment=["age"], **parts)))
    for way in ("weighting", "regression"):
        squares = [z(table)[way] ** 2 for table in tables]
        # A mean of 30 squares of standard normal numbers: 1 ± 0.26.
        assert 0.3 < np.mean(squares) < 2.1


def test_the_subjects_must_be_the_same():
    other = draw_study(fitted_simulator(), 50, 3, n_test=20, lottery=dict.fromkeys(ARMS, 0.5))
    with pytest.raises(InputError, match="must be the observed subjects"):
        three_ways(other)


def test_weighted_studies_are_those_of_the_seeds():
    simulator = fitted_simulator()
    table = weighted_studies(simulator, 400, [0, 3], horizon=3)
    assert table.index.tolist() == [0, 3]
    study = draw_study(simulator, 400, 3, seed=3, n_test=5)
    known = TruePropensityWeighting(probabilities=study.arm_probability)
    known.fit(study.covariates, study.arm, study.outcomes)
    expected = {"average effect": known.ate_, "standard error": known.standard_error_}
    assert table.loc[3].to_dict() == pytest.approx(expected)
