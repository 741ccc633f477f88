"""The page of findings says what large runs have recorded, and what two oracles find."""

import pandas as pd
import pytest

from lib.book.editions import BOOK
from lib.book.recorded import RECORDED
from lib.ccr.cladder import contracted, published_models
from lib.income.published import published_metrics


@pytest.fixture(scope="module")
def page(executed):
    values = {"percent": 0.0, "dollars": 250.0, "regime": "evening if low"}
    return executed(BOOK.notebook("findings"), values)


@pytest.fixture(scope="module")
def found(page):
    return {name: one["value"] for name, one in page[0]["numbers"].items()}


def of_run(place: str) -> pd.DataFrame:
    return pd.read_csv(RECORDED / place)


def test_errors_of_the_paper_are_counted_within_the_distance_that_is_asked_for(found):
    ours = of_run("paper/published_sample/metrics.csv").query("metric == 'AE'")
    near = 0
    for adjustment, some in ours.groupby("adjustment"):
        paper = published_metrics(adjustment).query("metric == 'AE'").set_index("estimator")
        near += (some.set_index("estimator")["value"] - paper["value"]).abs().le(250).sum()
    assert (found["errors_compared"], found["errors_met"]) == (22, near)
    assert 0 < near < 22


def test_the_authors_draw_is_as_far_from_the_kept_fits_as_is_said(found):
    fits = of_run("paper/simulator_fitting/lottery.csv").dropna()
    apart = (fits["author's draw"] - fits["mean of fits"]).abs()
    chance = fits["standard deviation"] ** 2 * 21 / 20
    chance += fits["standard error"] ** 2 + fits["its error"] ** 2
    assert found["farthest_fact"] == pytest.approx((apart / chance**0.5).max(), rel=1e-4)
    assert (found["fits"], len(fits)) == (20, 3)


def test_extremes_are_those_of_the_recorded_tables(found):
    marks = of_run("studies/estimator_benchmark/summary.csv").groupby("metric")["value"]
    assert found["smallest_rmse"] == marks.min()["RMSE"]
    assert found["largest_r2"] == marks.max()["R², truth"]
    large = of_run("paper/estimator_benchmark/summary.csv").groupby("metric")["value"]
    assert large.min()["RMSE"] < found["smallest_rmse"], "so the size of a study must be said"
    assert large.max()["R², truth"] > found["largest_r2"]
    assert (found["people_of_a_study"], found["people_of_an_interval"]) == (5_000, 1_000)
    ceiling = of_run("paper/numbers/limits.csv")["value"][0]
    # Of means of ten futures, by the formula of Spearman and Brown.
    assert found["r2_of_truth"] == pytest.approx(10 * ceiling / (1 + 9 * ceiling))
    coverage = of_run("studies/coverage/averages.csv").groupby("γ")["coverage"]
    for end in ("min", "max"):
        assert found[f"coverage_{end}_at_1"] == pytest.approx(100 * coverage.agg(end)[1])
        kinds = of_run("studies/facts_withheld/kinds.csv")["cannot be known, %"]
        assert found[f"unknown_{end}"] == round(kinds.agg(end))


def test_regrets_are_those_of_the_recorded_choices(found):
    means = of_run("studies/model_selection/means.csv").set_index("criterion")["regret"]
    assert found["least_regret"] == means.min() < found["regret_at_random"] == means["at random"]


def test_truths_that_are_wrong_are_those_of_the_audit(found):
    # As its own chapter counts them: in P(Y=1), in its two conditional forms, and in effects.
    assert found["truths_checked"] == 8 * 396
    assert found["truths_wrong"] == 278 + 2 * 48 + 50 + 50 + 53 + 51
    errors = [
        abs(value - model.published[quantity])
        for model in published_models()
        for quantity, value in contracted(model).items()
    ]
    assert found["truths_plainly_wrong"] == sum(error >= 0.005 for error in errors)


def test_a_regime_that_nobody_followed_is_refused(executed):
    with pytest.raises(AssertionError, match="regime 'never' is unknown: expected one of always"):
        executed(BOOK.notebook("findings"), {"regime": "never"})
