"""Pictures of marks: who is how far off, and where."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.errors import InputError, one_of
from lib.income.stress import curve
from lib.plots import COLOURS, FAINT, INK, WIDTH, drawn_quietly


@drawn_quietly
def ranking(
    ours: pd.DataFrame,
    mark: str,
    label: str,
    paper: pd.DataFrame | None = None,
    ceiling: float | None = None,
) -> Figure:
    """Draw a mark of every estimator that has it, the best at the top, with its interval.

    Parameters
    ----------
    ours : pandas.DataFrame
        What :func:`~lib.effects.estimates.benchmark` returned.
    mark : str
        A column with ends, such as `R²` or `AE`.
    label : str
        Of the axis, with the unit.
    paper : pandas.DataFrame, optional
        Published marks, drawn as diamonds.
    ceiling : float, optional
        What the best possible estimator reaches, drawn as a dashed line.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InputError
        If the table has no such mark.

    Examples
    --------
    >>> marks = {"label": ["T", "S"], "R²": [0.3, 0.1]}
    >>> table = pd.DataFrame(marks).assign(**{"R² lower": 0.0, "R² upper": 0.5})
    >>> [text.get_text() for text in ranking(table, "R²", "R²").axes[0].get_yticklabels()]
    ['T', 'S']
    """
    if f"{mark} lower" not in ours:
        raise InputError(f"mark {mark!r} has no interval here: {one_of(['R²', 'MSE', 'AE'])}")
    table = ours.dropna(subset=[mark]).sort_values(mark, ascending=not mark.startswith("R²"))
    rows = np.arange(len(table))
    ends = [table[mark] - table[f"{mark} lower"], table[f"{mark} upper"] - table[mark]]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(table)), layout="constrained")
    axes.errorbar(table[mark], rows, xerr=np.maximum(ends, 0), fmt="o", label="this run")
    if paper is not None and mark in paper:
        theirs = paper[mark].reindex(table.index)
        axes.plot(theirs, rows, "D", color=COLOURS[1], fillstyle="none", label="paper")
    if ceiling is not None:
        axes.axvline(ceiling, color=INK, linewidth=1, linestyle="--", label="ceiling")
    axes.set_yticks(rows, table["label"])
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.set_title("Estimators, the best first")
    axes.set_xlabel(label)
    axes.grid(axis="x")
    if mark == "AE":
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_major_locator(plt.MaxNLocator(4))
    figure.legend(loc="outside upper left", ncols=3)
    return figure


@drawn_quietly
def by_group(table: pd.DataFrame, label: str, names: dict[str, str] | None = None) -> Figure:
    """Draw mean effects by group: the truth with its interval, and every estimator (Figure 2).

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.effects.metrics.effects_by_group` returned, in US dollars.
    label : str
        What the groups are.
    names : dict of str to str, optional
        Name of a column → what the legend says.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> table = pd.DataFrame({"subjects": 9, "sampled": [1.0, 2.0], "standard error": 0.1})
    >>> figure = by_group(table.assign(mine=[1.5, 1.5]), "level")
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['mine', 'sampled truth']
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    axes.axhline(0, color=INK, linewidth=0.6)
    known = ["subjects", "sampled", "standard error", "truth"]
    for k, column in enumerate(table.columns.drop(known, errors="ignore")):
        axes.plot(
            table.index,
            table[column],
            linestyle=("-", "--", ":")[k // len(COLOURS) % 3],
            marker=".",
            linewidth=1.5,
            label=(names or {}).get(column, column),
        )
    axes.errorbar(
        table.index,
        table["sampled"],
        yerr=1.96 * table["standard error"].fillna(0),
        fmt="ks",
        markersize=4,
        linewidth=1,
        label="sampled truth",
    )
    # A level with a handful of subjects has an interval that would flatten everything else.
    inner = table[table["subjects"] >= 30]
    values = (inner if len(inner) else table).drop(columns=known, errors="ignore")
    sampled = (inner if len(inner) else table)["sampled"]
    low, high = (np.nanmin(values), np.nanmax(values)) if values.size else (np.inf, -np.inf)
    low, high = min(low, sampled.min()), max(high, sampled.max())
    axes.set_ylim(low - 0.15 * (high - low) - 1, high + 0.15 * (high - low) + 1)
    axes.set_title(f"Effect by {label}")
    axes.set_xlabel(label)
    axes.set_ylabel("mean effect, US dollars")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


@drawn_quietly
def choices(table: pd.DataFrame, floor: float = -1.0) -> Figure:
    """Draw what each criterion puts first: places on x, R² of the effects on y.

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.effects.selection.trial` returned. The family of a candidate is its
        name up to the first hyphen.
    floor : float
        Candidates with a lower R² are drawn here, as triangles.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> table = pd.DataFrame({"R-loss": [2.0, 1.0], "R²": [0.3, 0.4]}, index=["s-a", "t-b"])
    >>> choices(table).axes[0].get_title(loc="left")
    'R-loss'
    """
    criteria = table.columns.drop("R²")
    rows = -(-len(criteria) // 2)
    size = (WIDTH, 0.7 + 1.75 * rows)
    figure, panels = plt.subplots(
        rows, 2, figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    family = table.index.str.partition("-").get_level_values(0).str.upper()
    for axes, name in zip(panels.flat, criteria, strict=False):
        places = table[name].rank()
        axes.axhline(table["R²"].max(), color=INK, linewidth=1, linestyle="--")
        for k, each in enumerate(family.unique()):
            r2 = table["R²"][family == each]
            for shown, marker in ((r2[r2 >= floor], "o"), (r2[r2 < floor], "v")):
                x, y = places[shown.index], shown.clip(lower=floor)
                label = f"{each}-learners" if marker == "o" else None
                axes.plot(x, y, marker, color=COLOURS[k], markersize=5, label=label)
        picked = table[name].idxmin()
        ring = {"markersize": 11, "color": INK, "fillstyle": "none", "markeredgewidth": 1.3}
        axes.plot(1, max(table["R²"][picked], floor), "o", label="picked", **ring)
        axes.set_title(name)
        axes.set_xticks([1, (len(table) + 1) // 2, len(table)])
        axes.tick_params(labelbottom=True)
        axes.grid(axis="y")
    for axes in panels.flat[len(criteria) :]:
        axes.set_axis_off()
    figure.supxlabel("place by the criterion, 1 is picked", fontsize=10.5)
    figure.supylabel("R² of the true effects", fontsize=10.5)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3)
    return figure


@drawn_quietly
def regrets(found: list[pd.DataFrame], means: pd.DataFrame) -> Figure:
    """Draw the regret of every criterion in every study, and its mean with the interval.

    Parameters
    ----------
    found : list of pandas.DataFrame
        What :func:`~lib.effects.selection.verdicts` returned for each study.
    means : pandas.DataFrame
        What :func:`~lib.effects.selection.over_studies` made of them.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> one = pd.DataFrame({"regret": [0.1]}, index=["R-loss"])
    >>> ends = {"regret lower": 0.1, "regret upper": 0.1}
    >>> regrets([one], one.assign(**ends)).axes[0].get_xlabel()
    'regret, in R² of the true effects'
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 0.9 + 0.36 * len(means)), layout="constrained")
    rows = np.arange(len(means))
    for k, verdict in enumerate(found):
        label = "one study" if k == 0 else None
        axes.plot(verdict["regret"][means.index], rows + 0.18, "|", color=COLOURS[1], label=label)
    ends = [means["regret"] - means["regret lower"], means["regret upper"] - means["regret"]]
    axes.errorbar(means["regret"], rows - 0.1, xerr=ends, fmt="o", label="mean, 95 % interval")
    axes.axvline(0, color=INK, linewidth=1, linestyle="--", label="best")
    axes.set_yticks(rows, means.index)
    axes.set_ylim(len(means) - 0.4, -0.6)
    axes.set_title("What is lost by choosing so")
    axes.set_xlabel("regret, in R² of the true effects")
    axes.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=3)
    return figure


@drawn_quietly
def balance_plot(table: pd.DataFrame, most: int = 12) -> Figure:
    """Draw how far the arms differ before and after weighting, the covariates that differ most.

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.effects.metrics.balance` returned.
    most : int
        Covariates shown.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> table = pd.DataFrame({"before": [0.1, -2.0], "after": 0.0}, index=["sex", "age"])
    >>> [text.get_text() for text in balance_plot(table).axes[0].get_yticklabels()]
    ['age', 'sex']
    """
    worst = table.abs().max(axis=1).sort_values(ascending=False).index[:most]
    figure, axes = plt.subplots(figsize=(WIDTH, 0.9 + 0.27 * len(worst)), layout="constrained")
    for column, shape in (("before", "o"), ("after", "D")):
        axes.plot(table.loc[worst, column], range(len(worst)), shape, label=f"{column} weighting")
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set_yticks(range(len(worst)), worst)
    axes.set_ylim(len(worst) - 0.4, -0.6)
    axes.set_title("How far the arms differ")
    axes.set_xlabel("treated minus control, standard deviations")
    axes.grid(axis="x")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


@drawn_quietly
def error_curves(table: pd.DataFrame, label: str, names: dict[str, str] | None = None) -> Figure:
    """Draw errors and R² over the levels of one stress or two: studies, means, 95 % intervals.

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`~lib.income.stress.stress_test` returned, of one stress or several.
    label : str
        What the levels are, with the unit.
    names : dict of str to str, optional
        Name of an estimator → what its panel is called.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> table = pd.DataFrame({"stress": "size", "level": [9, 9, 90, 90], "estimator": "T"})
    >>> table = table.assign(study=[0, 1, 0, 1], error=[5.0, 3.0, 1.0, 2.0], **{"R²": 0.5})
    >>> [axes.get_ylabel() for axes in error_curves(table, "subjects").axes]
    ['error, $1,000', 'R²']
    """
    kinds, levels = (list(table[column].unique()) for column in ("stress", "level"))
    ticks = [level if isinstance(level, str) else f"{level:,}" for level in levels]
    panels = [
        (mark, name)
        for mark in ("error", "R²")
        for name in table.dropna(subset=[mark])["estimator"].unique()
    ]
    rows = -(-len(panels) // 2)
    figure, grid = plt.subplots(
        rows, 2, figsize=(WIDTH, 0.8 + 1.55 * rows), squeeze=False, layout="constrained"
    )
    leaders = {}
    for cell, (mark, name) in enumerate(panels):
        axes = grid.flat[cell]
        axes.sharey(leaders.setdefault(mark, axes))
        axes.axhline(0, color=INK, linewidth=0.6)
        unit = 1_000 if mark == "error" else 1
        for k, stress in enumerate(kinds):
            part = table[(table["estimator"] == name) & (table["stress"] == stress)]
            shift = 0.2 * (k - (len(kinds) - 1) / 2)
            places = {value: place + shift for place, value in enumerate(levels)}
            axes.plot(part["level"].map(places), part[mark] / unit, ".", color=FAINT, zorder=1)
            means = curve(part, mark).reset_index()
            axes.errorbar(
                means["level"].map(places),
                means["mean"] / unit,
                yerr=(means["upper"] - means["mean"]) / unit,
                fmt="o" if isinstance(levels[0], str) else "o-",
                markersize=4,
                linewidth=1.4,
                label=stress,
            )
        axes.set_title((names or {}).get(name, name), fontsize=10)
        # Upright where their text would be wider than a panel.
        axes.set_xticks(range(len(levels)), ticks, rotation=90 * (len("".join(ticks)) > 18))
        axes.tick_params(labelbottom=cell + 2 >= len(panels))
        # The first panel of a mark has a scale of its own, wherever it stands.
        scaled = cell % 2 == 0 or leaders[mark] is axes
        if scaled:
            axes.set_ylabel("error, $1,000" if mark == "error" else "R²")
        axes.tick_params(labelleft=scaled)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    figure.supxlabel(label, fontsize=10.5)
    if len(kinds) > 1:
        figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure
