"""Metrics: agree with their definitions, and weights agree with resampling by index."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score
from sklearn.utils import resample
from threadpoolctl import threadpool_limits

from lib.effects import Estimate, metrics, read_study
from lib.effects.metrics import (
    BLOCK,
    METRICS,
    OF_AVERAGES,
    balance,
    compare,
    effects_by_group,
    evaluate,
)
from lib.errors import InputError


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
    found = compare(effects, truth, groups, bootstraps=0)
    for j in range(2):
        for name, value in by_definition(effects[:, j], truth, groups).items():
            assert found[name][0, j] == pytest.approx(value), name
    assert np.isnan(found["R²"][1:]).all()


def test_effects_that_are_alike_but_for_rounding_have_no_r2():
    base = np.random.default_rng(0).normal(0, 4, size=60)
    truth = (3.0 + base) - base
    assert 0 < np.ptp(truth) < 1e-14
    found = compare(base[:, None], truth, np.arange(60) % 3, bootstraps=5)
    assert np.isnan(found["R²"]).all() and np.isnan(found["R² by group"]).all()
    assert np.isfinite(found["RMSE"]).all() and np.isfinite(found["AE"]).all()


def test_resamples_in_which_the_truth_does_not_vary_have_no_r2():
    truth, effects = np.zeros(50), np.full((50, 1), 0.3)
    truth[0] = 1  # one resample in three lacks it
    value, *ends = compare(effects, truth)["R²"][:, 0]
    rows = np.random.default_rng(0).integers(50, size=(4_000, 50))
    drawn = [r2_score(truth[i], effects[i, 0]) for i in rows if (i == 0).any()]
    assert value == pytest.approx(r2_score(truth, effects[:, 0]))
    np.testing.assert_allclose(ends, np.percentile(drawn, [2.5, 97.5]), rtol=0.1)


@pytest.mark.parametrize("groups", [list("aabbcc"), ["a"] * 6, ["a", "a", *[None] * 4]])
def test_groups_that_are_alike_but_for_rounding_have_no_r2(groups):
    truth = np.array([0.1, 0.3, 0.2, 0.2, 0.3, 0.1])
    found = compare(truth[:, None] + 1, truth, pd.Series(groups, dtype=object), bootstraps=20)
    assert np.isnan(found["R² by group"][0, 0])
    assert np.isfinite(found["R²"]).all()


def test_weights_are_resampling_by_index(estimates):
    effects, truth, groups = estimates
    bootstraps = BLOCK + 7
    found = compare(effects, truth, groups, bootstraps=bootstraps, seed=6)
    rng, drawn = np.random.default_rng(6), []
    for size in (BLOCK, 7):
        for rows in rng.integers(300, size=(size, 300)):
            drawn.append(by_definition(effects[rows, 0], truth[rows], groups[rows]))
    drawn = pd.DataFrame(drawn)
    for name in drawn:
        expected = np.percentile(drawn[name], [2.5, 97.5])
        np.testing.assert_allclose(found[name][1:, 0], expected, err_msg=name)


def test_without_a_seed_resamples_are_numbered_and_values_their_means(estimates):
    effects, truth, groups = estimates
    rows = [resample(np.arange(300), random_state=i) for i in range(BLOCK + 7)]
    drawn = pd.DataFrame([by_definition(effects[i, 0], truth[i], groups[i]) for i in rows])
    found = compare(effects, truth, groups, bootstraps=BLOCK + 7, seed=None)
    for name in drawn:
        expected = [drawn[name].mean(), *np.percentile(drawn[name], [2.5, 97.5])]
        np.testing.assert_allclose(found[name][:, 0], expected, err_msg=name)


def test_values_do_not_depend_on_how_many_threads_there_are():
    effects, truth = np.random.default_rng(0).normal(size=(2, 20_000, 11))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(compare(effects, truth[:, 0], bootstraps=BLOCK))
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=name)


def test_true_propensities_balance_the_arms():
    rng = np.random.default_rng(1)
    x = rng.normal(size=20_000)
    e = 1 / (1 + np.exp(-x))
    a = np.where(rng.random(20_000) < e, "yes", "no")
    seen = pd.DataFrame({"x": x, "studies": a, "income": 0.0})
    study = read_study(seen, seen, seen, adjustment=["x"], arms=("no", "yes"))
    table = balance(study, e)
    assert table.loc["x", "before"] > 0.8
    assert abs(table.loc["x", "after"]) < 0.05
    holes = seen.assign(x=seen["x"].mask(x > 0.5))  # the weight of a missing value is none
    some = balance(replace(study, observational=holes), np.full(20_000, 0.5))
    assert some.loc["x", "after"] == pytest.approx(some.loc["x", "before"])


@pytest.fixture
def study(estimates):
    """Test subjects whose effects and groups are those of the estimates."""
    _, truth, groups = estimates
    seen = pd.DataFrame({"x": np.arange(300.0), "studies": ["no", "yes"] * 150, "income": 0.0})
    seen["level"] = groups.astype(float)
    names = {"adjustment": ["x"], "arms": ("no", "yes"), "group": "level"}
    control, treated = seen.assign(studies="no"), seen.assign(studies="yes", income=truth)
    return read_study(seen, control, treated, truth=truth + 1, **names)


def test_a_missing_group_takes_nobody_out_of_other_metrics(estimates, study):
    effects, truth, groups = estimates
    groups = np.where(np.arange(300) < 40, np.nan, groups)
    found, whole = compare(effects, truth, groups, 60), compare(effects, truth, None, 60)
    for name in whole:
        assert found[name][0] == pytest.approx(whole[name][0]), name
        assert np.isfinite(found[name]).all()
    expected = by_definition(effects[40:, 0], truth[40:], groups[40:])["R² by group"]
    assert found["R² by group"][0, 0] == pytest.approx(expected)
    levels = effects_by_group(study, {"mine": effects[:, 0]})
    assert levels["subjects"].sum() == 300
    assert [*levels] == ["subjects", "sampled", "standard error", "truth", "mine"]
    np.testing.assert_allclose(levels["truth"] - levels["sampled"], 1)
    apart = pd.Series(study.difference).groupby(study.groups).std(ddof=1)
    np.testing.assert_allclose(levels["standard error"], apart / levels["subjects"] ** 0.5)
    alone = effects_by_group(replace(study, truth=None), {})
    assert [*alone] == ["subjects", "sampled", "standard error"]


def test_the_table_is_tidy_and_has_what_an_estimator_can_have(estimates, study):
    effects = estimates[0][:, 0]
    found = {
        "t": Estimate(effects.mean(), effects, 0.5, "", 0.0),
        "match": Estimate(7.0, None, np.nan, "", 0.0, 5.0, 9.5, estimand="ATT"),
        "silent": Estimate(7.0, None, np.nan, "", 0.0),
    }
    table = evaluate(study, found, bootstraps=20)
    assert list(table) == ["estimator", "estimand", "metric", "value", "lower", "upper"]
    wide = table.pivot_table(index="metric", columns="estimator", values="value")
    assert set(wide.index) == {
        *("cross-validation", "error", *METRICS, *(f"{name}, truth" for name in METRICS))
    }
    of_averages = {*OF_AVERAGES, *(f"{name}, truth" for name in OF_AVERAGES)}
    assert set(wide["match"].dropna().index) == of_averages, "whose truth nobody knows here"
    assert set(wide["silent"].dropna().index) == {"error", *of_averages}
    for name, value in by_definition(effects, *estimates[1:]).items():
        assert wide.loc[name, "t"] == pytest.approx(value), name
    assert wide.loc["AE", "match"] - wide.loc["AE, truth", "match"] == pytest.approx(
        abs(7 - study.difference.mean()) - abs(7 - study.effects.mean())
    )
    stated = table[table["metric"] == "ATE"].set_index("estimator")[["value", "lower", "upper"]]
    assert stated.loc["match"].tolist() == [7.0, 5.0, 9.5]
    assert stated.loc["t", "lower"] < stated.loc["t", "value"] < stated.loc["t", "upper"]
    assert stated.loc["silent", ["lower", "upper"]].isna().all(), "and not of width zero"
    unstated = (table["estimator"] == "silent") & table["metric"].isin(["ATE", "ATE, truth"])
    ends = table[~table["metric"].isin(["cross-validation", "error"]) & ~unstated]
    assert (ends["lower"] <= ends["upper"]).all()
    scores = table[table["metric"] == "cross-validation"]
    assert scores[["lower", "upper"]].isna().all(axis=None)
    assert scores["estimator"].tolist() == ["t"], "there is none of matching"
    of = table.groupby("metric")["estimand"].unique().map(list)
    assert of[["ATE", "AE", "R²"]].tolist() == [["ATE"], ["ATE"], ["CATE"]]


def test_an_error_has_the_ends_of_the_interval_that_is_stated(estimates, study):
    effects = estimates[0][:, 0]
    low, high = study.effects - 3, study.effects + np.where(np.arange(300) < 30, -1, 3)
    found = {
        "t": Estimate(1.0, effects, np.nan, "", 0.0, 0.0, 4.0, np.array([low, high])),
        "match": Estimate(7.0, None, np.nan, "", 0.0),
        "att": Estimate(7.0, None, np.nan, "", 0.0, estimand="ATT"),
    }
    table = evaluate(study, found, bootstraps=2).set_index(["estimator", "estimand", "metric"])
    truth = study.effects.mean()
    assert table.loc[("t", "ATE", "error")].tolist() == pytest.approx(
        [1 - truth, -truth, 4 - truth]
    )
    assert table.loc[("match", "ATE", "error"), "value"] == pytest.approx(7 - truth)
    assert table.loc[("match", "ATE", "error"), ["lower", "upper"]].isna().all()
    assert ("att", "ATT", "error") not in table.index  # nobody knows who would have been treated
    assert table.loc[("t", "CATE", "coverage"), "value"] == 0.9
    assert table.loc[("t", "CATE", "width"), "value"] == pytest.approx(6 - 0.4)


def test_a_metric_is_one_more_function(estimates, monkeypatch):
    def bias(sample) -> np.ndarray:
        return sample.effect - sample.truth

    monkeypatch.setitem(METRICS, "bias", bias)
    effects, truth, _ = estimates
    found = compare(effects, truth, bootstraps=5)["bias"]
    assert found[0] == pytest.approx(effects.mean(axis=0) - truth.mean())


def test_a_metric_without_a_truth_has_the_interval_that_is_stated(study, monkeypatch):
    monkeypatch.setitem(METRICS, "in thousands", lambda of: (of.effect + of.centre) / 1_000)
    for names in ("OF_AVERAGES", "OF_ESTIMATES"):
        monkeypatch.setattr(metrics, names, (*getattr(metrics, names), "in thousands"))
    found = {
        "t": Estimate(5_000.0, np.linspace(0, 1e4, 300), np.nan, "", 0.0, -1e6, 1e6),
        "match": Estimate(7_000.0, None, np.nan, "", 0.0, 5_000.0, 9_500.0),
    }
    table = evaluate(study, found, bootstraps=20).set_index(["estimator", "metric"])
    rows = table[["value", "lower", "upper"]].loc[[("t", "in thousands"), ("t", "ATE")]]
    assert rows.iloc[0].tolist() == pytest.approx((rows.iloc[1] / 1_000).tolist())
    assert 4 < rows["lower"].iloc[0] < 5 < rows["upper"].iloc[0] < 6, "over the test subjects"
    for metric in ("in thousands", "in thousands, truth"):
        assert table.loc[("match", metric), "value":].tolist() == [7.0, 5.0, 9.5]


def test_an_estimate_that_is_missing_has_no_score():
    truth, groups = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
    effects = np.column_stack([truth, np.full(4, np.nan), [1.0, 2.0, np.nan, np.nan]])
    found = compare(effects, truth, groups, bootstraps=5)["R² by group"]
    assert found[0, 0] == 1
    assert np.isnan(found[:, 1:]).all()


def test_effects_of_the_groups_of_nobody_are_refused(study):
    with pytest.raises(InputError, match="groups of the study must be given: found None"):
        effects_by_group(replace(study, group=None), {})
