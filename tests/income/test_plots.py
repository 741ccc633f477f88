"""The figure of the stress tests shows studies, and their means with intervals."""

import numpy as np
import pandas as pd

from lib.income.plots import error_curves
from lib.income.stress import curve


def test_errors_and_r2_have_panels_of_their_own_for_every_estimator_and_stress():
    table = pd.DataFrame(
        [(stress, level, study, estimator)
         for stress in ("MCAR", "MAR") for level in (0.0, 0.5) for study in (0, 1)
         for estimator in ("t", "ipw")],
        columns=["stress", "level", "study", "estimator"],
    )  # fmt: skip
    table["error"] = 1_000.0 * np.arange(len(table))
    table["R²"] = (0.1 * table["study"]).where(table["estimator"] == "t")
    figure = error_curves(table, "share hidden", {"t": "T-learner"})
    titles = [axes.get_title("left") for axes in figure.axes[:3]]
    assert titles == ["T-learner", "ipw", "T-learner, R²"]
    assert [axes.get_ylabel() for axes in figure.axes[:3]] == ["error, $1,000", "", "R²"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim() != figure.axes[2].get_ylim()
    means = curve(table, "error").xs("t", level="estimator")
    for k, (stress, container) in enumerate(
        zip(("MCAR", "MAR"), figure.axes[0].containers, strict=False)
    ):
        assert container.get_label() == stress
        drawn = container[0].get_xydata()
        np.testing.assert_allclose(drawn[:, 0], [0.2 * (k - 0.5), 1 + 0.2 * (k - 0.5)])
        np.testing.assert_allclose(drawn[:, 1], means.loc[stress, "mean"] / 1_000)
        ends = [segment[:, 1] for segment in container[2][0].get_segments()]
        np.testing.assert_allclose(ends, means.loc[stress, ["lower", "upper"]] / 1_000)
    studies = figure.axes[0].containers[2]
    assert studies.get_label() == "one study" and len(studies[0].get_xydata()) == 8
    ticks = [label.get_text() for label in figure.axes[2].get_xticklabels()]
    assert ticks == ["0.0", "0.5"]


def test_levels_with_names_are_not_joined_and_long_names_stand_upright():
    table = pd.DataFrame(
        {"stress": "hidden", "level": ["none", "education-num"] * 2, "estimator": "t"}
    )
    table = table.assign(study=[0, 0, 1, 1], error=[1.0, 2.0, 3.0, 4.0], **{"R²": np.nan})
    (axes, *_) = error_curves(table, "hidden cause").axes
    assert axes.containers[0][0].get_linestyle() == "None"
    assert [label.get_rotation() for label in axes.get_xticklabels()] == [90, 90]
