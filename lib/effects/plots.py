"""Figures of metrics: who is how far off, and where; with the shapes of :mod:`lib.plots`."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lib.errors import InputError, one_of
from lib.plots import DOTS, INK, intervals, lines


def ranking(
    runs: Mapping[str, pd.DataFrame], metric: str, unit: str, names: Mapping = {}, **options
) -> Figure:
    """Draw a metric of the estimators, the best at the top, with its intervals.

    Parameters
    ----------
    runs : mapping of str to pandas.DataFrame
        Name in the legend → tidy metrics. The first run ranks the estimators that it has.
    metric, unit : str
        One of the column `metric`, and what its values are.
    names : mapping of str to str
        Estimator → what its row is called.

    Examples
    --------
    >>> table = pd.DataFrame({"estimator": ["S", "T"], "metric": "R²", "value": [0.1, 0.3]})
    >>> figure = ranking({"this run": table.assign(lower=0.0, upper=0.5)}, "R²", "R²")
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['T', 'S']
    """
    table = pd.concat(runs, names=["run"]).reset_index("run").assign(unit=unit)
    known = list(table["metric"].unique())
    if metric not in known:
        raise InputError(f"metric {metric!r} is unknown: {one_of(known)}")
    table = table[(table["metric"] == metric) & table["value"].notna()]
    first = table[table["run"] == next(iter(runs))]
    order = first.sort_values("value", ascending=not metric.startswith("R²"))["estimator"]
    table["estimator"] = pd.Categorical(table["estimator"], order)  # without those of others
    table = table.dropna(subset="estimator").sort_values("estimator", kind="stable")
    table["estimator"] = table["estimator"].astype(str).replace(names)
    return intervals(table, "estimator", "Estimators, the best first", "run", **options)


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
    found = table.drop(columns=["subjects", "sampled", "standard error", "truth"], errors="ignore")
    long = found.rename(columns=names).melt(var_name="estimator", ignore_index=False)
    mean, half = table["sampled"], 1.96 * table["standard error"].fillna(0)
    truth = pd.DataFrame({"value": mean, "lower": mean - half, "upper": mean + half})
    long = pd.concat([long, truth.assign(estimator="sampled truth")])
    # A level with a handful of subjects has numbers that would flatten everything else.
    many = long[long.index.isin(table.index[table["subjects"] >= 30])]
    low, high = (many if len(many) else long)["value"].agg(["min", "max"])
    room = 0.15 * (high - low) + 1
    looks = {"sampled truth": {**DOTS, "marker": "s", "color": "black", "elinewidth": 1}}
    options = {"look": {"marker": ".", "linewidth": 1.5}, "looks": looks, "height": 2.9}
    table = long.rename_axis(label).reset_index().assign(unit="mean effect, US dollars")
    ylim = (low - room, high + room)
    return lines(table, label, f"Effect by {label}", "estimator", ylim=ylim, **options)


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
    below, place = f"R² below {floor:g}", "place by the criterion, 1 is picked"
    family = table.index.str.partition("-").get_level_values(0).str.upper() + "-learners"
    shown = pd.DataFrame({"value": table["R²"].clip(lower=floor), "unit": "R² of effects"})
    shown["of"] = family.where(table["R²"] >= floor, below)
    parts = {}
    for name in table.columns.drop("R²"):
        placed = shown.assign(**{place: table[name].rank()})
        picked = placed.loc[[table[name].idxmin()]].assign(of="picked")
        parts[name] = pd.concat([placed, picked])
    both = pd.concat(parts, names=["criterion"]).reset_index("criterion")
    ring = {"markersize": 11, "color": INK, "fillstyle": "none", "markeredgewidth": 1.3}
    looks = {below: {"marker": "v", "color": INK}, "picked": ring}
    options = {"columns": 2, "look": DOTS, "looks": looks, "line": {"best": table["R²"].max()}}
    return lines(both, place, "What each criterion puts first", "of", "criterion", **options)


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
    >>> regrets([one], one.assign(**ends)).get_supxlabel()
    'regret, in R² of the true effects'
    """
    names = {"regret": "value", "regret lower": "lower", "regret upper": "upper"}
    runs = {"mean, 95 % interval": means, "one study": pd.concat(found)}
    table = pd.concat(runs, names=["run", "criterion"]).rename(columns=names).reset_index()
    table = table.assign(unit="regret, in R² of the true effects")
    options = {"looks": {"one study": {"marker": "|", "markersize": 10}}, "line": {"best": 0}}
    return intervals(table, "criterion", "What is lost by choosing so", "run", **options)
