"""The figure of the stress tests; with the shapes of :mod:`lib.plots`."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from lib.income.stress import curve
from lib.plots import DOTS, FAINT, drawn_quietly, lines


@drawn_quietly
def error_curves(table: pd.DataFrame, label: str, names: Mapping[str, str] = {}) -> Figure:
    """Draw errors and R² over the levels of one stress or two: studies, means, 95 % intervals.

    The table is that of :func:`~lib.income.stress.stress_test`, `label` says what levels are.
    """
    kinds, levels = (list(table[column].unique()) for column in ("stress", "level"))
    parts = []
    for metric, unit, scale in (("error", "error, $1,000", 1_000), ("R²", "R²", 1)):
        means = curve(table, metric).rename(columns={"mean": "value"}).reset_index()
        each = table.dropna(subset=metric).rename(columns={metric: "value"})
        part = pd.concat([means.assign(series=means["stress"]), each.assign(series="one study")])
        part[["value", "lower", "upper"]] /= scale
        panel = part["estimator"].replace(names) + (", R²" if unit == "R²" else "")
        parts.append(part.assign(unit=unit, panel=panel))
    both = pd.concat(parts, ignore_index=True)
    beside = 0.2 * (both["stress"].map(kinds.index) - (len(kinds) - 1) / 2)
    both[label] = both["level"].map(levels.index) + beside
    ticks = [level if isinstance(level, str) else f"{level:,}" for level in levels]
    joined = {**DOTS, "linewidth": 1.4, "linestyle": "" if isinstance(levels[0], str) else "-"}
    options = {"look": joined, "looks": {"one study": {**DOTS, "color": FAINT, "zorder": 1}}}
    options |= {"columns": 2, "xticks": range(len(levels)), "xticklabels": ticks, "line": {"": 0}}
    upright = len(ticks) * max(map(len, ticks)) > 20  # where their text would be wider than a panel
    options["height"] = 2.2 if upright else 1.75
    figure = lines(both, label, f"Errors by {label}", **options)
    for axes in figure.axes:
        axes.tick_params(axis="x", rotation=90 * upright)
    return figure
