"""The paper's numbers, and what chance makes of the difference to ours."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from lib.effects import benchmark
from lib.effects.study import Study
from lib.errors import InputError
from lib.income import fitted_simulator
from lib.income.published import (
    beside_other_samples,
    beside_the_paper,
    every_setting,
    other_samples,
    published_marks,
)
from lib.income.study import effect_data


def frame(errors, r2, name="t-ridge"):
    found = [
        pd.DataFrame({"error": e, "R²": r, "R² by group": r - 0.2}, index=[name])
        for e, r in zip(errors, r2, strict=True)
    ]
    return pd.concat(dict(enumerate(found)), names=["sample", "estimator"])


def test_a_number_of_the_paper_is_inside_if_one_more_sample_might_give_it():
    # The paper: an error of 1 696 of either sign, and an R² of 0.24.
    spread = beside_other_samples(frame([-2_000, -1_500, -1_000], [0.231, 0.232, 0.230]))
    error, r2 = (
        spread.loc["t-ridge", "error of the ATE, $"],
        spread.loc["t-ridge", "R² of the CATE"],
    )
    # Mean and standard deviation are -1 500 and 500; t with two degrees of freedom is 4.303.
    assert error["to"] == pytest.approx(-1_500 + 4.3027 * 500 * (4 / 3) ** 0.5, rel=1e-4)
    assert error["inside"]
    assert r2["to"] == pytest.approx(0.231 + 4.3027 * 0.001 * (4 / 3) ** 0.5, rel=1e-4)
    assert r2["inside"], "0.24 may be 0.2351 before rounding"
    assert spread.loc[("t-ridge", "R² by education"), "paper"] == 0.02
    assert spread.loc[("t-ridge", "R² by education"), "to"] == pytest.approx(r2["to"] - 0.2)
    far = beside_other_samples(frame([-100, 0, 100], [0.2, 0.2001, 0.1999]), names={"t-ridge": "T"})
    assert not far["inside"].any()
    assert set(far.index.get_level_values("estimator")) == {"T"}


def test_what_the_paper_does_not_have_is_left_out():
    of_minimal = beside_other_samples(frame([1, 2], [0.1, 0.2]), "minimal")
    assert "R² by education" not in of_minimal.index.unique("mark")
    assert beside_other_samples(frame([1, 2], [0.1, 0.2], "aipw")).empty
    assert list(beside_other_samples(frame([1, 2], [np.nan] * 2, "ipw-lr")).index) == [
        ("ipw-lr", "error of the ATE, $")
    ]


def test_other_samples_are_other_subjects_and_the_same_again():
    simulator = fitted_simulator()
    options = {"adjustment": "minimal", "estimators": ["match-nn-eu", "s-ridge"], "seed": 1}
    found = other_samples([simulator] * 2, 300, **options)
    assert found["error"].nunique() == 4
    assert found.xs("match-nn-eu", level="estimator")["R²"].isna().all()
    # One sample more leaves the first ones as they were.
    more = other_samples([simulator] * 3, 300, **options)
    pd.testing.assert_frame_equal(found, more.loc[:1])
    seeds = np.random.SeedSequence(1).spawn(2)[1].generate_state(2).tolist()
    data = effect_data(simulator, 300, seed=seeds[0], test_seed=seeds[1])
    gain = (data.treated["income"] - data.control["income"]).mean()
    again = benchmark(*data[:3], "minimal", ["match-nn-eu"], bootstraps=0, progress=False)
    expected = again["ATE"].item() - gain
    assert found.loc[(1, "match-nn-eu"), "error"] == pytest.approx(expected)
    with pytest.raises(InputError, match="needs a simulator: found none"):
        other_samples([], 300)


def test_every_setting_is_marked_and_the_best_fit_comes_first():
    rng = np.random.default_rng(0)
    z, a = rng.normal(size=(400, 1)), (rng.random(400) < 0.5).astype(float)
    covariates, effect = pd.DataFrame(z, columns=["z"]), 2 + 0 * z[:, 0] + rng.normal(size=400)
    study = Study(covariates, a, z[:, 0] + 2 * a, covariates, effect, None, None, {}, None)
    table = every_setting(study, "s-ridge")
    assert len(table) == 11
    assert table["cross-validation"].is_monotonic_decreasing
    assert table.loc[0, "alpha"] == 0.01
    assert table.loc[0, "R²"] == pytest.approx(r2_score(effect, np.full(400, 2)), abs=1e-3)
    with pytest.raises(InputError, match="'t-ridge' must be an S-learner"):
        every_setting(study, "t-ridge")


def test_the_table_has_both_and_brackets():
    ours = pd.DataFrame({"label": ["Mine"], "AE": [3.0], "R²": [0.5], "cross-validation": [0.9]})
    ours = ours.set_axis(["t-ridge"]).assign(**{"AE lower": 1.0, "AE upper": 1_234.5})
    row = beside_the_paper(ours).loc["Mine"]
    assert row["error of the ATE, $", "ours"] == "3 (1, 1,234)"
    assert row["error of the ATE, $", "paper"] == "1,696 (1,213, 2,164)"
    assert row["R² of the CATE", "ours"] == "0.50"
    row = beside_the_paper(ours.assign(**{"R² by group": -0.5}), table="Table 3").loc["Mine"]
    assert row.tolist() == ["-0.50", "0.02 (-0.30, 0.27)"]
    assert ("R² of the CATE, of at most 0.40", "ours") in beside_the_paper(ours, ceiling=0.4)


def test_nothing_was_published_for_another_set():
    assert published_marks("minimal").loc["ipw-lr", "cross-validation"] == pytest.approx(
        0.97, abs=0.011
    )
    with pytest.raises(
        InputError, match="adjustment 'some' is unknown: expected one of full, minimal"
    ):
        published_marks("some")
