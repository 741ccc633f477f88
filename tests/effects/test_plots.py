"""Figures of metrics show what the tables say."""

import numpy as np
import pandas as pd
import pytest
from figures import message
from scipy import stats

from lib.effects import plots
from lib.effects.intervals import NORMAL
from lib.errors import InputError


def tick_labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def dots(axes):
    """Where the dots of every series are, by what the legend says."""
    return {c.get_label(): c[0].get_xydata().tolist() for c in axes.containers}


@pytest.fixture
def metrics():
    table = pd.DataFrame({"estimator": [*"stm"] * 2, "metric": ["R²"] * 3 + ["AE"] * 3})
    table["value"] = [0.1, 0.3, np.nan, 50.0, 70.0, 60.0]
    return table.assign(lower=table["value"] - 0.05, upper=table["value"] + 0.05)


def test_the_best_estimator_is_at_the_top(metrics):
    runs = {"this run": metrics}
    names = {"s": "S-learner", "t": "T-learner", "m": "Matching"}
    r2 = plots.ranking(runs, "R²", "share", names, line={"ceiling": 0.4}).axes[0]
    assert tick_labels(r2) == ["T-learner", "S-learner"]
    assert [text.get_text() for text in r2.texts] == ["ceiling"]
    assert set(r2.lines[0].get_xdata()) == {0.4}
    error = plots.ranking(runs, "AE", "dollars", names)
    assert tick_labels(error.axes[0]) == ["S-learner", "Matching", "T-learner"]
    assert message(error) == "S-learner comes first, T-learner last"
    assert message(plots.ranking({"a": metrics[3:4]}, "AE", "$")) == "s alone"
    assert error.axes[0].get_xlabel() == "dollars"
    with pytest.raises(InputError, match=r"\(see over_studies\) .*found 'this run: s'"):
        plots.ranking({"this run": pd.concat([metrics, metrics])}, "AE", "dollars")


def test_the_best_error_is_the_smallest_in_either_direction(metrics):
    signed = metrics.assign(metric="bias", value=[-90.0, 2.0, 30.0] * 2)[:3]
    assert tick_labels(plots.ranking({"a": signed}, "bias", "$").axes[0]) == [*"tms"]


def test_published_metrics_stand_in_the_rows_of_this_run(metrics):
    paper = pd.DataFrame({"estimator": [*"xts"], "metric": "R²", "value": [0.9, 0.25, 0.2]})
    figure = plots.ranking({"this run": metrics[3:], "paper": paper}, "R²", "share")
    assert message(figure) == "paper: x comes first, s last"
    axes = plots.ranking({"this run": metrics, "paper": paper}, "R²", "share").axes[0]
    assert tick_labels(axes) == ["t", "s"]
    found = dots(axes)
    assert found["this run"] == [[0.3, -0.15], [0.1, 0.85]]
    assert found["paper"] == [[0.25, 0.15], [0.2, 1.15]]


def test_coverage_is_a_percentage_with_its_monte_carlo_interval():
    # Of 16 studies, with Wilson's ends as SciPy finds them.
    low, high = stats.binomtest(15, 16).proportion_ci(method="wilson")
    table = pd.DataFrame({"γ": [0.0, 1.0], "estimator": "s", "coverage": [0.5, 15 / 16]})
    table["error of coverage"] = (high - low) / 2 / stats.norm.ppf(0.975)
    figure = plots.coverage({"this run": table, "large": table}, "γ", {"s": "S-learner"})
    assert message(figure) == "At γ = 1, 0 of 1 hold the truth too rarely, last panel"
    few = pd.concat([table, table.assign(estimator="t", coverage=0.6)])
    figure = plots.coverage({"this run": table, "large": few}, "γ", {"s": "S-learner"})
    assert message(figure) == "At γ = 1, 1 of 2 hold the truth too rarely, last panel"
    assert tick_labels(figure.axes[1]) == ["S-learner", "t"]
    assert [axes.get_title("left") for axes in figure.axes] == ["this run", "large"]
    assert tick_labels(figure.axes[0]) == ["S-learner"]
    shown = {c.get_label(): c for c in figure.axes[0].containers}
    assert list(shown) == ["γ = 0", "γ = 1"]
    assert shown["γ = 1"][0].get_xdata().tolist() == [pytest.approx(100 * 15 / 16)]
    assert set(figure.axes[0].lines[0].get_xdata()) == {95}, "what is promised"
    (ranges,) = shown["γ = 1"][2]
    ((start, end),) = [segment[:, 0] for segment in ranges.get_segments()]
    assert (start, end) == pytest.approx((100 * low, 100 * high), abs=0.01)


def test_an_unknown_metric_is_refused(metrics):
    with pytest.raises(InputError, match="metric 'R2' is unknown: expected one of R², AE"):
        plots.ranking({"this run": metrics}, "R2", "share")
    unknown = metrics.assign(value=metrics["value"].where(metrics["metric"] != "AE"))
    with pytest.raises(InputError, match="metric 'AE' is unknown: expected R²"):
        plots.ranking({"this run": unknown}, "AE", "US dollars")


def test_effects_by_group_keep_the_scale_of_groups_that_are_large_enough():
    table = pd.DataFrame({"subjects": [30, 90, 2], "sampled": [1.0, 2.0, 9_000.0]})
    table = table.set_axis([7, 8, 9]).assign(
        **{"standard error": [0.1, 0.2, np.nan]}, mine=[1.5, np.nan, 3.0]
    )
    figure = plots.by_group(table, "level", {"mine": "My learner"})
    assert message(figure) == "Sampled effects by level: from 1 to 2 dollars"
    assert message(plots.by_group(table[1:], "level")) == "Sampled effects by level: 2 dollars"
    (axes,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "My learner",
        "sampled truth",
    ]
    assert -10 < axes.get_ylim()[0] < 0.8 and 2.4 < axes.get_ylim()[1] < 10
    assert dots(axes)["My learner"][0] == [7, 1.5]
    (ranges,) = axes.containers[1][2]
    np.testing.assert_allclose(ranges.get_segments()[0][:, 1], [1 - 0.1 * NORMAL, 1 + 0.1 * NORMAL])
    assert axes.get_xlabel() == "level" and axes.get_ylabel() == "mean effect, US dollars"


def test_agreements_have_the_intervals_that_are_possible():
    columns = {"with itself": [0.9, 0.5], "with home": [0.9, 0.2], "at most": [0.9, 0.67]}
    columns |= {"error of with itself": [0.1, 0.1], "error of with home": [0.1, 0.3]}
    figure = plots.agreements(pd.DataFrame(columns, index=["home", "away"]))
    itself, home, most = figure.axes[0].containers
    assert [one.get_label() for one in (itself, home, most)] == [*columns][:3]
    assert [x for x, _ in itself[0].get_xydata()] == columns["with itself"]
    reach = [segment[:, 0].tolist() for segment in home[2][0].get_segments()]
    assert reach == [
        pytest.approx([0.9 - NORMAL * 0.1, 1]),
        pytest.approx([0.2 - NORMAL * 0.3, 0.2 + NORMAL * 0.3]),
    ]
    assert not most[2], "what is expected has no interval"
    assert message(figure) == "Median agreement with home: 0.20 (same rankings: 0.67)"
    assert tick_labels(figure.axes[0]) == ["home", "away"]


def test_choices_are_ordered_by_each_criterion_and_the_first_has_a_ring():
    table = pd.DataFrame({"R-loss": [2.0, 1.0, 3.0], "plug-in": [1.0, np.nan, 2.0]})
    table = table.assign(**{"R²": [0.3, 0.4, -7.0]}).set_axis(["s-a", "t-b", "t-c"])
    figure = plots.choices(table)
    assert message(figure) == "The best candidate is picked by 1 of 2 criteria"
    loss, plug_in = figure.axes
    assert [axes.get_title("left") for axes in (loss, plug_in)] == ["R-loss", "plug-in"]
    assert dots(loss) == {
        "S-learners": [[2, 0.3]],
        "T-learners": [[1, 0.4]],
        "R² below −1": [[3, -1]],
        "picked": [[1, 0.4]],
    }
    assert dots(plug_in)["picked"] == [[1, 0.3]]
    assert set(loss.lines[0].get_ydata()) == {0.4}, "the best of them"
    nobody = plots.choices(table.assign(**{"factual fit": np.nan}))
    assert message(nobody) == message(figure) and len(nobody.axes) == 2


def test_regrets_are_those_of_every_study_and_their_means():
    first, second = (
        pd.DataFrame({"regret": regret}, index=["R-loss", "plug-in"])
        for regret in ([0.1, 0.3], [0.2, 0.5])
    )
    means = (first + second) / 2
    means = means.assign(**{"regret lower": -0.1, "regret upper": 0.9})
    figure = plots.regrets([first, second], means)
    assert message(figure) == "Mean regret is between 0.15 (R-loss) and 0.40 (plug-in)"
    same = plots.regrets([first, second], means.assign(regret=0.2))
    assert message(same) == "All criteria lose the same"
    (axes,) = figure.axes
    assert tick_labels(axes) == ["R-loss", "plug-in"]
    assert set(axes.lines[0].get_xdata()) == {0}, "nothing is lost"
    found = dots(axes)
    np.testing.assert_allclose(found["mean, 95 % interval"], [[0.15, -0.15], [0.4, 0.85]])
    assert found["one study"] == [[0.1, 0.15], [0.3, 1.15], [0.2, 0.15], [0.5, 1.15]]


def test_a_run_without_the_metric_leaves_the_order_to_the_next():
    averages = pd.DataFrame({"estimator": ["IPW"], "metric": "AE", "value": 7.0})
    both = pd.DataFrame({"estimator": ["S", "T"], "metric": "R²", "value": [0.1, 0.3]})
    figure = plots.ranking({"this run": averages, "paper": both}, "R²", "R²")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["T", "S"]
