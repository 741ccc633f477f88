"""The figure of the stress tests shows means with intervals, level by level."""

import numpy as np
import pandas as pd
import pytest
from figures import message

from lib.income.plots import errors_by_level
from lib.income.stress import curve


@pytest.fixture
def table():
    table = pd.DataFrame(
        [(stress, level, study, estimator)
         for stress in ("MCAR", "MAR") for level in (0.0, 0.5) for study in (0, 1)
         for estimator in ("t", "ipw")],
        columns=["stress", "level", "study", "estimator"],
    )  # fmt: skip
    table["error"] = 1_000.0 * np.array([*range(15), 16])
    table["R²"] = (0.1 * table["study"]).where(table["estimator"] == "t")
    return table


def test_errors_and_r2_have_panels_of_their_own_for_every_stress(table):
    figure = errors_by_level(table, "Holes", "share hidden: ", {"t": "T-learner"})
    assert message(figure) == "Holes: 2 of 2 errors change beyond chance"
    other = errors_by_level(table.assign(size=1.0), "Holes", "share hidden: ", mark="size")
    assert message(other) == "Holes: 0 of 2 sizes change beyond chance"
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["error: MCAR", "error: MAR", "R²: MCAR", "R²: MAR"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim() != figure.axes[2].get_xlim()
    assert figure.axes[2].get_xlim() == figure.axes[3].get_xlim()
    units = [axes.get_xlabel() for axes in figure.axes[::2]]  # each below its own panels
    assert units == ["error, thousand dollars", "R² of the effects"]
    for left, right in (figure.axes[:2], figure.axes[2:]):
        assert [label.get_text() for label in left.get_yticklabels()] == ["T-learner", "ipw"]
        assert left.get_ylim() == right.get_ylim() and not right.get_yticklabels(), "named once"
    assert all(set(axes.lines[0].get_xdata()) == {0} for axes in figure.axes), "a line at 0"
    means = curve(table, "error").loc["MAR"] / 1_000
    for level, container in zip((0.0, 0.5), figure.axes[1].containers, strict=True):
        assert container.get_label() == f"share hidden: {level:g}"
        drawn = container[0].get_xydata()[:, 0]
        np.testing.assert_allclose(drawn, means.loc[level, "mean"])
        ends = [segment[:, 0] for segment in container[2][0].get_segments()]
        np.testing.assert_allclose(ends, means.loc[level, ["lower", "upper"]])
    r2 = figure.axes[2].containers[0][0].get_xydata()[:, 0]
    assert r2[0] == pytest.approx(0.05) and np.isnan(r2[1])


def test_intervals_of_r2_end_at_one(table):
    figure = errors_by_level(table.assign(**{"R²": table["R²"] + 0.8}), "Holes", "hidden: ")
    ends = figure.axes[2].containers[0][2][0].get_segments()[0][:, 0]
    half = 12.7062 * 0.05  # of two studies: t with a degree of freedom
    np.testing.assert_allclose(ends, [0.85 - half, 1], rtol=1e-4)


def test_one_stress_has_two_panels_and_levels_have_their_names(table):
    table = table[table["stress"] == "MAR"].replace({"level": {0.0: "none", 0.5: "age"}})
    figure = errors_by_level(table, "Hidden causes", "hidden: ")
    assert len(figure.axes) == 2
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["hidden: none", "hidden: age"]
    # All errors of t change by 4, those of ipw by 4 and 5, of which two studies are not sure.
    assert message(figure) == "Hidden causes: 1 of 2 errors change beyond chance"
    alone = table[(table["estimator"] == "ipw") & (table["level"] == "none")]
    figure = errors_by_level(alone, "Of averages alone", "hidden: ")
    assert message(figure) == "Of averages alone", "nothing changes"
    assert [axes.get_title("left") for axes in figure.axes] == ["error: MAR"]
