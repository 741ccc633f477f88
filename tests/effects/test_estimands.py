"""Estimands: each is the average of those whom its name says, and knows its error."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.effects import read_study
from lib.effects.estimands import average_effects, weights_of

ARMS = ("no", "yes")


def study_of(n, seed=0, known=True):
    """Three levels of a treatment, an effect of 1 + x: its averages are integrals over x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    chances = pd.DataFrame({"no": 0.6 - 0.3 * x, "yes": 0.2 + 0.2 * x, "other": 0.2 + 0.1 * x})
    taken = chances.columns.to_numpy()[
        (rng.random(n)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    ]
    test = pd.DataFrame({"x": x, "income": 0.0})
    both = (test.assign(studies=taken), test, test.assign(income=1 + x + rng.normal(size=n)))
    options = {"test_probabilities": chances} if known else {}
    return read_study(*both, adjustment=["x"], arms=ARMS, truth=1 + x, **options), taken


def test_the_averages_are_the_integrals():
    study, _ = study_of(400_000)
    found = average_effects(study)
    x = np.linspace(-1, 1, 200_001)
    for name, weights in weights_of(0.6 - 0.3 * x, 0.2 + 0.2 * x).items():
        truth = np.average(1 + x, weights=weights)
        assert found.loc[name, "value"] == pytest.approx(truth, abs=4 * found.loc[name].iloc[1])
    # By hand: E[(0.2 + 0.2 x)(1 + x)] / 0.2 = 1 + 1/3; E[(0.8 - 0.1 x)(1 + x)] / 0.8 = 1 - 1/24.
    assert found.loc["ATT", "value"] == pytest.approx(4 / 3, abs=0.01)
    assert found.loc["ATE, two arms", "value"] == pytest.approx(23 / 24, abs=0.01)
    assert (found["standard error"] < 0.002).all()


def test_weights_are_the_averages_of_those_who_did():
    study, taken = study_of(400_000, seed=1)
    found, effects = average_effects(study)["value"], pd.Series(study.effects)
    assert effects[taken == "yes"].mean() == pytest.approx(found["ATT"], abs=0.01)
    two = pd.Series(taken).isin(ARMS)
    assert effects[two].mean() == pytest.approx(found["ATE, two arms"], abs=0.01)


def test_the_standard_error_is_what_samples_differ_by():
    found = pd.concat([average_effects(study_of(500, seed)[0]) for seed in range(300)])
    by_name = found.groupby(level=0)
    apart, said = by_name["value"].std(), by_name["standard error"].mean()
    pd.testing.assert_series_equal(apart, said, rtol=0.15, check_names=False)


def test_trimming_keeps_who_might_do_either():
    arms = np.array([0.5, 0.95, 0.05, 0.09]), np.array([0.5, 0.05, 0.95, 0.01])
    assert weights_of(*arms)["ATE, trimmed"].tolist() == pytest.approx([1, 0, 0, 0.1])


def test_who_takes_neither_arm_counts_for_nobody_but_everybody():
    nobody = (np.array([0.0, 0.4]), np.array([0.0, 0.4]))
    for name, (weight, _) in weights_of(*nobody).items():
        assert weight == (name == "ATE"), name


def test_without_probabilities_there_is_one_average_of_sampled_effects():
    study, _ = study_of(1_000, known=False)
    assert average_effects(study).index.tolist() == ["ATE"]
    sampled = study_of(1_000, known=False)[0]
    object.__setattr__(sampled, "effects", None)
    row = average_effects(sampled).loc["ATE"]
    assert row["value"] == pytest.approx(study.difference.mean())
    assert row["standard error"] == pytest.approx(study.difference.std() / 1_000**0.5)
    seen = study.observational.query("studies != 'other'")
    two = average_effects(replace(study, observational=seen))
    assert two.index.tolist() == ["ATE", "ATE, two arms"], "nobody takes another arm"
    assert two.loc["ATE"].equals(two.loc["ATE, two arms"])


def test_an_average_over_nobody_is_missing():
    study, _ = study_of(50)
    rare = study.test_probabilities.assign(no=0.95, yes=0.05)
    found = average_effects(replace(study, test_probabilities=rare))
    assert found.loc["ATE, trimmed"].isna().all()
    assert found.drop("ATE, trimmed").notna().all(axis=None)
