"""Marks: agree with their definitions, and weights agree with resampling by index."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from lib.effects.metrics import BLOCK, balance, marks
from lib.effects.study import read_study


@pytest.fixture
def estimates():
    rng = np.random.default_rng(0)
    truth = 5_000 + 60_000 * rng.normal(size=300)
    groups = rng.integers(1, 5, size=300)
    effects = np.column_stack([0.3 * truth + 10_000 * rng.normal(size=300), np.full(300, 100.0)])
    return effects, truth, groups


def by_definition(effects, truth, groups):
    frame = pd.DataFrame({"found": effects, "true": truth}).groupby(groups).mean()
    return {
        "R²": r2_score(truth, effects),
        "MSE": np.mean((truth - effects) ** 2),
        "RMSE": np.mean((truth - effects) ** 2) ** 0.5,
        "ATE": effects.mean(),
        "AE": abs(effects.mean() - truth.mean()),
        "R² by group": r2_score(frame["true"], frame["found"]),
    }


def test_values_are_their_definitions(estimates):
    effects, truth, groups = estimates
    found = marks(effects, truth, groups, bootstraps=0)
    for j in range(2):
        for name, value in by_definition(effects[:, j], truth, groups).items():
            assert found[name][0, j] == pytest.approx(value), name
    assert np.isnan(found["R²"][1:]).all()


def test_weights_are_resampling_by_index(estimates):
    effects, truth, groups = estimates
    bootstraps = BLOCK + 7
    found = marks(effects, truth, groups, bootstraps=bootstraps, seed=6)
    # Subjects are sorted by group before the counts are drawn.
    order = np.argsort(groups, kind="stable")
    rng, drawn = np.random.default_rng(6), []
    for size in (BLOCK, 7):
        for rows in rng.integers(300, size=(size, 300)):
            rows = order[rows]
            drawn.append(by_definition(effects[rows, 0], truth[rows], groups[rows]))
    drawn = pd.DataFrame(drawn)
    for name in drawn:
        expected = np.percentile(drawn[name], [2.5, 97.5])
        np.testing.assert_allclose(found[name][1:, 0], expected, err_msg=name)


def test_true_propensities_balance_the_arms():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000)
    e = 1 / (1 + np.exp(-x))
    a = np.where(rng.random(20_000) < e, "yes", "no")
    seen = pd.DataFrame({"x": x, "studies": a, "income": 0.0})
    study = read_study(seen, seen, seen, ["x"], ("no", "yes"))
    table = balance(study, e)
    assert table.loc["x", "before"] > 0.8
    assert abs(table.loc["x", "after"]) < 0.05
