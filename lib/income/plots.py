"""The figure of the stress tests, drawn with the shapes of :mod:`lib.plots`."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from lib.income.stress import changed, curve
from lib.plots import intervals
from lib.tables import number_text


def errors_by_level(
    table: pd.DataFrame, title: str, label: str, names: Mapping[str, str] = {}, mark: str = "error"
) -> Figure:
    """Draw mean errors and R² of estimators, with 95 % intervals, at each level of a stress or two.

    The table is that of :func:`~lib.income.stress.stress_test`; `label` stands before each level.
    The title counts the estimators whose mark changes beyond chance: at some level, the paired
    interval leaves out zero. By Bonferroni, the interval of one of k levels leaves 5 % / k outside.
    """
    levels = table[["stress", "level"]].drop_duplicates()
    change = changed(table, mark, 0.05 / max(1, levels.duplicated("stress").sum()))
    sure = change[(change["lower"] > 0) | (change["upper"] < 0)].index.unique("estimator")
    if n := len(change.index.unique("estimator")):
        title += f": {len(sure)} of {n} {mark}s change beyond chance"
    parts, rows = [], curve(table, "error").index
    units = {"error": ("error, thousand dollars", 1e-3, None), "R²": ("R² of the effects", 1, 1)}
    for shown, (unit, scale, most) in units.items():
        if table[shown].isna().all():  # estimators of the average alone have no R²
            continue
        means = curve(table, shown).reindex(rows).mul(scale).clip(upper=most).reset_index()
        parts.append(means.assign(unit=unit, panel=f"{shown}: " + means["stress"]))
    both = pd.concat(parts).rename(columns={"mean": "value"}).replace({"estimator": names})
    levels = both["level"].map(lambda x: x if isinstance(x, str) else number_text(x, digits=",g"))
    both["series"] = label + levels
    return intervals(both, "estimator", title, columns=2, line={"": 0})
