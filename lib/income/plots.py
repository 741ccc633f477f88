"""The figure of the stress tests; with the shapes of :mod:`lib.plots`."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from lib.income.stress import changed, curve
from lib.plots import intervals
from lib.tables import number_text


def errors_by_level(
    table: pd.DataFrame, title: str, label: str, names: Mapping[str, str] = {}, mark: str = "error"
) -> Figure:
    """Draw errors and R² of estimators at every level of one stress or two: means, 95 % intervals.

    The table is that of :func:`~lib.income.stress.stress_test`, `label` stands before a level. The
    title counts whose mark changes beyond chance: at some level the paired interval leaves out
    zero. By Bonferroni, one of k levels leaves 5 % / k outside.
    """
    levels = table[["stress", "level"]].drop_duplicates()
    change = changed(table, mark, 0.05 / max(1, levels.duplicated("stress").sum()))
    sure = change[(change["lower"] > 0) | (change["upper"] < 0)].index.unique("estimator")
    if n := len(change.index.unique("estimator")):
        title += f": {len(sure)} of {n} {mark}s change beyond chance"
    parts, rows = [], curve(table, "error").index
    units = {"error": ("error, thousand dollars", 1e-3, None), "R²": ("R² of the effects", 1, 1)}
    for shown, (unit, scale, most) in units.items():
        if table[shown].isna().all():  # R², of estimators of the average alone
            continue
        means = curve(table, shown).reindex(rows).mul(scale).clip(upper=most).reset_index()
        parts.append(means.assign(unit=unit, panel=f"{shown}: " + means["stress"]))
    both = pd.concat(parts).rename(columns={"mean": "value"}).replace({"estimator": names})
    levels = both["level"].map(lambda x: x if isinstance(x, str) else number_text(x, digits=",g"))
    both["series"] = label + levels
    return intervals(both, "estimator", title, columns=2, line={"": 0})
