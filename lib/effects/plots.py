"""Figures of metrics: who is how far off, and where; with the shapes of :mod:`lib.plots`."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.errors import InputError, one_of
from lib.plots import DOTS, INK, intervals, lines


def ranking(
    table: pd.DataFrame,
    metric: str,
    xlabel: str,
    names: Mapping[str, str] = {},
    paper: pd.DataFrame | None = None,
    ceiling: float | None = None,
) -> Figure:
    """Draw a metric of every estimator that has it, the best at the top, with its interval.

    Parameters
    ----------
    table, paper : pandas.DataFrame
        Tidy, with columns `estimator`, `metric`, `value`, `lower`, `upper`: this run, and published
        numbers, which are drawn as diamonds.
    xlabel : str
        What the metric is, with the unit.
    names : mapping of str to str
        Estimator → what its row is called.
    ceiling : float, optional
        What the best possible estimator reaches, drawn as a dashed line.

    Examples
    --------
    >>> table = pd.DataFrame({"estimator": ["S", "T"], "metric": "R²", "value": [0.1, 0.3]})
    >>> figure = ranking(table.assign(lower=0.0, upper=0.5), "R²", "R²")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['T', 'S']
    """
    ours = table[table["metric"] == metric]
    if ours.empty:
        raise InputError(f"metric {metric!r} is unknown here: {one_of(table['metric'].unique())}")
    ours = ours.dropna(subset="value").sort_values("value", ascending=not metric.startswith("R²"))
    runs = {"this run": ours}
    if paper is not None:
        known = paper["estimator"].isin(ours["estimator"]) & (paper["metric"] == metric)
        runs["paper"] = paper.loc[known, ["estimator", "value"]]
    both = pd.concat(runs, names=["run"]).reset_index("run")
    both["estimator"] = both["estimator"].replace(names)
    line = {} if ceiling is None else {"ceiling": ceiling}
    title = "Estimators, the best first"
    return intervals(both, "estimator", title, "run", xlabel=xlabel, line=line)


def by_group(table: pd.DataFrame, label: str, names: Mapping[str, str] = {}) -> Figure:
    """Draw mean effects by group: the truth with its interval, and every estimator (Figure 2).

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.effects.metrics.effects_by_group` returned, in US dollars.
    label : str
        What the groups are.
    names : mapping of str to str
        Name of a column → what the legend says.

    Examples
    --------
    >>> table = pd.DataFrame({"subjects": 9, "sampled": [1.0, 2.0], "standard error": 0.1})
    >>> figure = by_group(table.assign(mine=[1.5, 1.5]), "level")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['mine', 'sampled truth']
    """
    table = table.rename_axis("group")
    found = table.drop(columns=["subjects", "sampled", "standard error", "truth"], errors="ignore")
    long = found.rename(columns=names).melt(var_name="estimator", ignore_index=False)
    mean, half = table["sampled"], 1.96 * table["standard error"].fillna(0)
    truth = pd.DataFrame({"value": mean, "lower": mean - half, "upper": mean + half})
    long = pd.concat([long, truth.assign(estimator="sampled truth")])
    # A level with a handful of subjects has numbers that would flatten everything else.
    many = long[long.index.isin(table.index[table["subjects"] >= 30])]
    low, high = (many if len(many) else long)["value"].agg(["min", "max"])
    room = 0.15 * (high - low) + 1
    looks = {name: {"marker": ".", "linewidth": 1.5} for name in long["estimator"]}
    looks["sampled truth"] = {**DOTS, "marker": "s", "color": "black", "elinewidth": 1}
    options = {"xlabel": label, "ylabel": "mean effect, US dollars", "height": 2.9, "looks": looks}
    title, ylim = f"Effect by {label}", (low - room, high + room)
    return lines(long.reset_index(), "group", title, "estimator", ylim=ylim, **options)


def choices(table: pd.DataFrame, floor: float = -1.0) -> Figure:
    """Draw what each criterion puts first: places on x, R² of the effects on y.

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.effects.selection.trial` returned. The family of a candidate is its
        name up to the first hyphen.
    floor : float
        Candidates with a lower R² are drawn here, as triangles.

    Examples
    --------
    >>> table = pd.DataFrame({"R-loss": [2.0, 1.0], "R²": [0.3, 0.4]}, index=["s-a", "t-b"])
    >>> choices(table).axes[0].get_title(loc="left")
    'R-loss'
    """
    below = f"R² below {floor:g}"
    family = table.index.str.partition("-").get_level_values(0).str.upper() + "-learners"
    shown = pd.DataFrame({"value": table["R²"].clip(lower=floor), "unit": "R² of the true effects"})
    shown["of"] = family.where(table["R²"] >= floor, below)
    parts = {}
    for name in table.columns.drop("R²"):
        placed = shown.assign(place=table[name].rank())
        picked = placed.loc[[table[name].idxmin()]].assign(of="picked")
        parts[name] = pd.concat([placed, picked])
    both = pd.concat(parts, names=["criterion"]).reset_index("criterion").sort_values("of")
    ring = {"markersize": 11, "color": INK, "fillstyle": "none", "markeredgewidth": 1.3}
    looks = {below: {"marker": "v", "color": INK}, "picked": ring}
    options = {"columns": 2, "look": DOTS, "looks": looks, "line": {"best": table["R²"].max()}}
    title, xlabel = "What each criterion puts first", "place by the criterion, 1 is picked"
    return lines(both, "place", title, "of", "criterion", xlabel=xlabel, **options)


def regrets(found: Sequence[pd.DataFrame], means: pd.DataFrame) -> Figure:
    """Draw the regret of every criterion in every study, and its mean with the interval.

    Parameters
    ----------
    found : sequence of pandas.DataFrame
        What :func:`~lib.effects.selection.verdicts` returned for each study.
    means : pandas.DataFrame
        What :func:`~lib.effects.selection.over_studies` made of them.

    Examples
    --------
    >>> one = pd.DataFrame({"regret": [0.1]}, index=["R-loss"])
    >>> ends = {"regret lower": 0.1, "regret upper": 0.1}
    >>> regrets([one], one.assign(**ends)).axes[0].get_xlabel()
    'regret, in R² of the true effects'
    """
    names = {"regret": "value", "regret lower": "lower", "regret upper": "upper"}
    runs = {"mean, 95 % interval": means, "one study": pd.concat(found)}
    table = pd.concat(runs, names=["run", "criterion"]).rename(columns=names).reset_index()
    looks, line = {"one study": {"marker": "|", "markersize": 10}}, {"best": 0}
    title, xlabel = "What is lost by choosing so", "regret, in R² of the true effects"
    return intervals(table, "criterion", title, "run", xlabel=xlabel, looks=looks, line=line)
