"""Figures of metrics: how far off estimators are, and where; with shapes of :mod:`lib.plots`."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.effects.intervals import NORMAL
from lib.errors import check_known, check_once
from lib.plots import DOTS, INK, Look, Tables, intervals, lines
from lib.tables import number_text


def ranking(
    runs: Tables, metric: str, unit: str, names: Mapping[str, str] = {}, **options: object
) -> Figure:
    """Draw a metric of the estimators, the best at the top, with its intervals.

    The best R² is the largest; the best value of any other metric is the nearest to 0. `runs` maps
    texts of the legend to tidy metrics, `{"this run": table}`. The first run that has the metric
    ranks its estimators. `unit` says what the values are, and `names` renames the estimators' rows.
    A run over many studies must be a summary by :mod:`~lib.effects.summaries`.
    """
    table = pd.concat(runs, names=["series"]).reset_index("series").dropna(subset="value")
    check_known("metric", metric, table["metric"].unique())
    table = table[table["metric"] == metric].set_index("estimator").rename(index=names)
    check_once("estimator of a run (see over_studies)", table["series"] + ": " + table.index)
    whose = table["series"].iloc[0]
    first = table[table["series"] == whose]
    largest = metric.startswith("R²")
    order = first.sort_values("value", ascending=not largest, key=None if largest else abs).index
    table = table.loc[order].reset_index()
    best, last = table["estimator"].iloc[[0, -1]]
    title = f"{best} comes first, {last} last" if len(order) > 1 else f"{best} alone"
    title = title if whose in [*runs][:1] else f"{whose}: {title}"
    return intervals(table, "estimator", title, unit, **options)


def by_group(table: pd.DataFrame, label: str, names: Mapping[str, str] = {}) -> Figure:
    """Draw the table of :func:`~lib.effects.metrics.effects_by_group`, in US dollars (Figure 2)."""
    found = table.drop(columns=["subjects", "sampled", "standard error", "truth"], errors="ignore")
    long = found.rename(columns=names).melt(var_name="series", ignore_index=False)
    mean, half = table["sampled"], NORMAL * table["standard error"].fillna(0)
    truth = pd.DataFrame({"value": mean, "lower": mean - half, "upper": mean + half})
    long = pd.concat([long, truth.assign(series="sampled truth")])
    # A level with a handful of subjects has numbers that would flatten everything else.
    many = long[long.index.isin(table.index[table["subjects"] >= 30])]
    many = many if len(many) else long
    low, high = many["value"].agg(["min", "max"])
    ends = many["value"][many["series"] == "sampled truth"].agg(["min", "max"])
    least, most = (number_text(end, digits=0) for end in ends)
    span = f"from {least} to {most}" if least != most else least
    title = f"Sampled effects by {label}: {span} dollars"
    room = 0.15 * (high - low) + 1
    # Learners of one kind share a colour, so each has a marker of its own.
    drawn = enumerate(long["series"].unique())
    looks: dict[str, Look] = {name: {"marker": ".^vDx*"[k % 6]} for k, name in drawn}
    looks["sampled truth"] = {**DOTS, "marker": "s", "elinewidth": 1}
    options = {"look": {"markersize": 4, "linewidth": 1.5}, "looks": looks, "height": 2.9}
    options |= {"line": {"": 0}, "ylim": (low - room, high + room)}
    table = long.rename_axis(label).reset_index()
    return lines(table, label, title, "mean effect, US dollars", **options)


def coverage(runs: Tables, level: str, names: Mapping[str, str] = {}) -> Figure:
    """Draw the share of 95 % intervals that hold the truth, a panel per run, a colour per level.

    `runs` are tables of :func:`~lib.effects.summaries.by_level`. The title counts the estimators
    that hold it too rarely, beyond Monte-Carlo error, in the last run and at the highest level.
    """
    table = pd.concat(runs, names=["panel"]).reset_index("panel").replace({"estimator": names})
    table["series"] = f"{level} = " + table[level].map("{:g}".format)
    # The ends are Wilson's. With k = z²/n his half-width h obeys h²(1 + k)² = k p(1 − p) + k²/4.
    share, half = table["coverage"], NORMAL * table["error of coverage"]
    a, b = half**2 - 1 / 4, 2 * half**2 - share * (1 - share)
    k = (b + (b**2 - 4 * a * half**2) ** 0.5) / (-2 * a)
    middle = (share + k / 2) / (1 + k)
    for end, place in {"value": share, "lower": middle - half, "upper": middle + half}.items():
        table[end] = (100 * place).clip(0, 100)
    last = table[(table["panel"] == [*runs][-1]) & table["coverage"].notna()]
    hardest = last[last[level] == last[level].max()]
    rare = f"{(hardest['upper'] < 95).sum()} of {len(hardest)} hold the truth too rarely"
    title = f"At {hardest['series'].iloc[0]}, {rare}{', last panel' if len(runs) > 1 else ''}"
    unit, line = "intervals that hold the truth, %", {"what 95 % promises": 95}
    return intervals(table, "estimator", title, unit, line=line)


def agreements(table: pd.DataFrame) -> Figure:
    """Draw how far rankings of estimators agree, a row per world, with 95 % intervals.

    Columns are the agreement with itself, with one world, and what is expected at most, then their
    standard errors, as `error of with itself`.
    """
    values = table.drop(columns=table.filter(like="error of ")).rename_axis("world")
    errors = table.reindex(columns="error of " + values.columns)
    shown = values.melt(var_name="series", ignore_index=False).reset_index()
    half = NORMAL * errors.melt()["value"]
    shown["lower"] = (shown["value"] - half).clip(lower=-1)
    shown["upper"] = (shown["value"] + half).clip(upper=1)
    _, home, most = values
    middle = values.drop(index=home.removeprefix("with ")).median()
    found, bound = (number_text(middle[name], digits=2) for name in (home, most))
    title = f"Median agreement {home}: {found} (same rankings: {bound})"
    return intervals(shown, "world", title, "Spearman's ρ", line={"none": 0})


def choices(table: pd.DataFrame) -> Figure:
    """Draw candidates by their place and R² in the table of :func:`~lib.effects.selection.trial`.

    An R² below −1 is drawn at −1. The family of a candidate is its name up to the first hyphen.
    """
    table = table.dropna(axis=1, how="all")  # a fit that no candidate has
    below, place = "R² below −1", "place by the criterion, 1 is picked"
    shown = table.melt("R²", var_name="panel", ignore_index=False)
    shown[place] = shown.groupby("panel")["value"].rank(method="first")
    family = shown.index.str.partition("-").get_level_values(0).str.upper() + "-learners"
    shown["series"] = family.where(shown["R²"] >= -1, below)
    shown = pd.concat([shown, shown[shown[place] == 1].assign(series="picked")])
    shown = shown.assign(value=shown["R²"].clip(lower=-1))
    ring = {"markersize": 11, "color": INK, "fillstyle": "none", "markeredgewidth": 1.3}
    looks = {below: {"marker": "v", "color": INK}, "picked": ring}
    options = {"columns": 2, "look": DOTS, "looks": looks, "line": {"best": table["R²"].max()}}
    right = (table.drop(columns="R²").idxmin() == table["R²"].idxmax()).sum()
    title = f"The best candidate is picked by {right} of {shown['panel'].nunique()} criteria"
    return lines(shown, place, title, "R² of effects", **options)


def regrets(found: Sequence[pd.DataFrame], means: pd.DataFrame) -> Figure:
    """Draw every criterion's regret in each of the verdicts `found`, and its mean over studies."""
    names = {"regret": "value", "regret lower": "lower", "regret upper": "upper"}
    runs = {"mean, 95 % interval": means, "one study": pd.concat(found)}
    table = pd.concat(runs, names=["series", "criterion"]).rename(columns=names).reset_index()
    options = {"looks": {"one study": {"marker": "|", "markersize": 10}}, "line": {"best": 0}}
    mean = means["regret"].drop("at random", errors="ignore")
    ends = (f"{number_text(mean[k], digits=2)} ({k})" for k in (mean.idxmin(), mean.idxmax()))
    title = f"Mean regret is between {' and '.join(ends)}"
    title = title if mean.min() < mean.max() else "All criteria lose the same"
    return intervals(table, "criterion", title, "regret, in R² of the true effects", **options)
