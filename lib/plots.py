"""Pictures of tables, causal graphs and worlds, in one quiet style.

Every function takes tables or graphs and returns a :class:`matplotlib.figure.Figure`
that no figure manager holds: as the last expression of a cell it is shown once.
Figures are narrow and their type is large, so that a phone shows them as well as a
desk. Colours are those of Okabe and Ito, which colour-blind readers tell apart [1]_.

References
----------
.. [1] Okabe, M. and Ito, K. (2008). Color universal design: how to make figures
   and presentations that are friendly to colorblind people.
   https://jfly.uni-koeln.de/color/
"""

import functools
import textwrap
from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from lib.errors import InputError, one_of

#: Okabe and Ito's blue, vermilion, green, purple, orange and sky blue.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]
INK, FAINT = "#333333", "#C9CED3"

#: Inches: at the width of a phone, type of 11 points is still about 11 pixels high.
WIDTH = 4.8

#: Inches between the rows of a causal graph.
ROW = 0.38

STYLE = {
    "figure.dpi": 180,
    "figure.facecolor": "white",
    "font.size": 11,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10.5,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "grid.color": "#E6E8EB",
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "lines.linewidth": 2,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
}

#: A variable with more levels than fit a panel is drawn with its few most frequent ones.
MOST_LEVELS, FEW_LEVELS = 16, 6

#: Units of the numbers that the book draws.
DOLLARS = "US dollars"
UNITS = {
    "age": "years",
    "capital-net": DOLLARS,
    "education-num": "1 to 16",
    "hours-per-week": "hours",
    "income": DOLLARS,
}


def drawn_quietly(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw in our style and leave matplotlib's own settings, and its open figures, alone.

    A decorator of functions that return a figure.

    Examples
    --------
    >>> @drawn_quietly
    ... def empty():
    ...     return plt.figure()
    >>> empty().get_dpi() == STYLE["figure.dpi"], plt.get_fignums()
    (True, [])
    """

    @functools.wraps(draw)
    def drawn(*arguments, **options) -> Figure:
        with plt.rc_context(STYLE):
            figure = draw(*arguments, **options)
        plt.close(figure)
        return figure

    return drawn


@drawn_quietly
def marginals(
    cohorts: dict[str, pd.DataFrame],
    variables: Sequence[str] | None = None,
) -> Figure:
    """Draw how each variable is distributed: bars of shares, histograms of numbers.

    One panel a variable, shares in per cent of each cohort. The axis of a
    number is cut at the 0.5 and 99.5 percentiles of the cohorts together.

    Of a variable with more than 16 levels, the six most frequent ones are drawn.

    Parameters
    ----------
    cohorts : dict of str to pandas.DataFrame
        Name in the legend → one row a subject. The first cohort decides which
        levels are the most frequent.
    variables : sequence of str, optional
        What to draw; by default all columns of the first cohort.

    Raises
    ------
    InputError
        If a variable is missing in one of the cohorts.

    Examples
    --------
    >>> from lib.adult import load_adult
    >>> figure = marginals({"Adult": load_adult()}, ["age", "sex"])
    >>> [axes.get_title("left") for axes in figure.axes]
    ['age', 'sex']
    """
    first = next(iter(cohorts.values()))
    variables = list(first.columns if variables is None else variables)
    for name, frame in cohorts.items():
        _require_columns(frame, variables, name)
    rows = [variables[start : start + 2] for start in range(0, len(variables), 2)]
    heights = [max(_panel_height(first[name]) for name in row) for row in rows]
    figure = plt.figure(figsize=(WIDTH, sum(heights) + 0.4), layout="constrained")
    grid = figure.add_gridspec(len(rows), 2, height_ratios=heights)
    for i, row in enumerate(rows):
        for j, name in enumerate(row):
            axes = figure.add_subplot(grid[i, j] if len(row) > 1 else grid[i, :])
            values = {cohort: frame[name] for cohort, frame in cohorts.items()}
            if isinstance(first[name].dtype, pd.CategoricalDtype):
                _bars_of_levels(axes, values)
            else:
                _histograms(axes, values, UNITS.get(name, ""))
            axes.set_title(name)
    if len(cohorts) > 1:
        handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[k]) for k in range(len(cohorts))]
        figure.legend(handles, list(cohorts), loc="outside upper center", ncols=len(cohorts))
    return figure


@drawn_quietly
def share_by_level(frame: pd.DataFrame, outcome: str, level: str, by: Sequence[str]) -> Figure:
    r"""Draw how often an outcome has a level, for each level of other variables.

    Shares in per cent, with the share of everyone as a dashed line.

    A line reaches 1.96 standard errors to both sides of a share,
    :math:`\sqrt{s(1-s)/n}`; levels with fewer than 30 subjects are left out.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a subject.
    outcome, level : str
        A categorical column, and the level whose share is drawn.
    by : sequence of str
        Categorical columns, one panel each.

    Raises
    ------
    InputError
        If a column or the level is unknown.

    Examples
    --------
    >>> from lib.adult import load_adult
    >>> figure = share_by_level(load_adult(), "income", ">50K", by=["sex"])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['Female', 'Male']
    """
    _require_columns(frame, [outcome, *by], "the table")
    if level not in frame[outcome].cat.categories:
        raise InputError(
            f"level {level!r} of {outcome} is unknown: {one_of(frame[outcome].cat.categories)}"
        )
    reached = frame[outcome] == level
    columns = min(2, len(by))
    heights = [
        max(0.7 + 0.24 * frame[name].nunique() for name in by[start : start + columns])
        for start in range(0, len(by), columns)
    ]
    figure, panels = _panels(heights, 0.2, columns)
    for name, axes in zip(by, panels.flat, strict=False):
        groups = reached.groupby(frame[name], observed=False).agg(["mean", "size"])
        groups = groups[groups["size"] >= 30]  # below, the normal interval means little
        half_width = 1.96 * np.sqrt(groups["mean"] * (1 - groups["mean"]) / groups["size"])
        axes.axvline(100 * reached.mean(), color=INK, linewidth=1, linestyle="--")
        axes.errorbar(
            100 * groups["mean"], range(len(groups)), xerr=100 * half_width, fmt="o", markersize=5
        )
        axes.set_yticks(range(len(groups)), groups.index)
        axes.set_ylim(len(groups) - 0.3, -0.7)  # the first level at the top
        axes.grid(axis="x")
        axes.set_title(name)
    figure.supxlabel(f"{outcome} {level}, % of the subjects with this level", size=10.5)
    for axes in list(panels.flat)[len(by) :]:
        axes.set_visible(False)
    return figure


@drawn_quietly
def causal_graph(graph: nx.DiGraph, into: str | None = None) -> Figure:
    """Draw a causal graph: variables in causal order, every arc from a cause down to its effect.

    Parameters
    ----------
    graph : networkx.DiGraph
        Acyclic; nodes are names or, of a step of time, `(name, -1)` and `(name, 0)`: the
        previous step, which stands on the left, and the current one.
    into : str, optional
        The variable (of the current step) whose direct causes stand out.

    Raises
    ------
    InputError
        If the graph has a cycle, or `into` is not one of its variables.

    Examples
    --------
    >>> figure = causal_graph(nx.DiGraph([("age", "income"), ("age", "education")]), into="income")
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['age', 'education', 'income']
    """
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " → ".join(str(cause) for cause, _ in nx.find_cycle(graph))
        raise InputError(f"a causal graph has no cycle: found {cycle}")
    graph = nx.relabel_nodes(graph, {node: (node, 0) for node in graph if isinstance(node, str)})
    order = [name for name, step in nx.lexicographical_topological_sort(graph) if step == 0]
    if into is not None and into not in order:
        raise InputError(f"variable {into!r} is not in the graph: {one_of(order)}")
    target, in_time = (into, 0), len(order) < len(graph)
    half_widths = {name: 0.06 + 0.042 * len(name) for name in order}  # inches, for 10 points
    scale = min(1, 0.62 / max(half_widths.values()))
    port = scale * max(half_widths.values()) + 0.04
    # One inch is one unit.
    left, bottom, top = -2.65 if in_time else -0.8, -ROW * len(order) + 0.1, 0.6 if in_time else 0.3
    axes = plt.figure(figsize=(WIDTH, top - bottom)).add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, left + WIDTH), ylim=(bottom, top))
    axes.set_axis_off()
    for cause, effect in graph.edges:
        start, end = (-ROW * order.index(name) for name, _ in (cause, effect))
        emphasised = effect == target
        # An arc is the wider the further it reaches.
        bend = 0.0 if cause[1] else -0.5 if in_time else -1.1
        x, x_end = (
            (half_widths[cause[0]] - 2, -half_widths[effect[0]]) if cause[1] else (port, port)
        )
        colour, width = (COLOURS[1], 1.6) if emphasised else (FAINT, 0.8)
        arrow(axes, (x, start), (x_end, end), bend, colour, width, zorder=1 + emphasised)
    for name, step in sorted(graph, key=lambda node: (node[1], order.index(node[0]))):
        is_effect = (name, step) == target
        marked = is_effect or graph.has_edge((name, step), target)
        box = {
            "boxstyle": "round,pad=0.3",
            "facecolor": "#FBE3D4" if is_effect else "white",
            "edgecolor": COLOURS[1] if marked else INK,
            "linewidth": 1.4 if marked else 0.8,
        }
        weight, place = "bold" if is_effect else "normal", (2 * step, -ROW * order.index(name))
        axes.text(*place, name, ha="center", va="center", size=10 * scale, weight=weight, bbox=box)
    if in_time:
        for x, heading in ((-2, "previous step"), (0, "current step")):
            axes.text(x, 0.4, heading, ha="center", va="center", weight="bold")
    return axes.figure


def arrow(axes: Axes, start: tuple, end: tuple, bend=0.0, colour=INK, width=1.1, **options) -> None:
    """Draw an arrow from place to place; a bend of 1 makes an arc half as wide as it is long."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=9,
            connectionstyle=f"arc3,rad={bend}",
            color=colour,
            linewidth=width,
            **{"shrinkA": 0, "shrinkB": 0} | options,
        )
    )


@drawn_quietly
def fit_quality(ours: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Draw the quality of each fit beside the published one.

    AUC is 0.5 for a guess and 1 for a certain answer; R² is 0 and 1.

    Parameters
    ----------
    ours, published : pandas.DataFrame
        Columns `variable`, `measure` (`AUC` or `R²`) and `value`. Variables are
        drawn in the published order; those that only we know are left out.

    Examples
    --------
    >>> table = pd.DataFrame({"variable": ["income"], "measure": ["AUC"], "value": [0.93]})
    >>> fit_quality(table, table).axes[0].get_title("left")
    'AUC'
    """
    both = published.merge(ours, on=["variable", "measure"], suffixes=("_published", "_ours"))
    measures = list(both["measure"].unique())
    heights = [0.5 + 0.35 * (both["measure"] == measure).sum() for measure in measures]
    figure, panels = _panels(heights, 0.3, sharex=False)
    for measure, axes in zip(measures, panels.flat, strict=True):
        rows = both[both["measure"] == measure].iloc[::-1]
        places = np.arange(len(rows))
        axes.hlines(places, rows["value_published"], rows["value_ours"], color=FAINT, linewidth=3)
        paper = {"color": COLOURS[1], "markersize": 10, "fillstyle": "none", "markeredgewidth": 2}
        axes.plot(rows["value_published"], places, "D", label="paper", **paper)
        axes.plot(rows["value_ours"], places, "o", color=COLOURS[0], label="this run")
        axes.set_yticks(places, rows["variable"])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(*((0.48, 1.0) if measure == "AUC" else (0.0, 1.0)))
        axes.grid(axis="x")
        axes.set_title(measure)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@drawn_quietly
def trajectories(worlds: dict[str, pd.DataFrame], of: Sequence[str | tuple[str, str]]) -> Figure:
    """Draw how a population moves: means of numbers, shares of levels, step by step.

    Parameters
    ----------
    worlds : dict of str to pandas.DataFrame
        Name in the legend → long frame with columns `subject`, `t` and the variables.
    of : sequence of str or (str, str)
        One panel each: a numeric variable, or a categorical variable and its level.

    Raises
    ------
    InputError
        If a variable is missing in one of the worlds.

    Examples
    --------
    >>> world = pd.DataFrame({"subject": [0, 1, 0, 1], "t": [0, 0, 1, 1], "age": [20, 40, 21, 41]})
    >>> figure = trajectories({"seen": world}, ["age"])
    >>> figure.axes[0].lines[0].get_ydata().tolist()
    [30.0, 31.0]
    """
    for name, world in worlds.items():
        names = [entry if isinstance(entry, str) else entry[0] for entry in of]
        _require_columns(world, ["t", *names], name)
    figure, panels = _panels([1.75] * len(of), 0.6)
    styles = ["-", "--", "-.", ":"]  # worlds that coincide stay visible
    for entry, axes in zip(of, panels.flat, strict=True):
        for k, (name, world) in enumerate(worlds.items()):
            colour, line = COLOURS[k % len(COLOURS)], styles[k % len(styles)]
            if isinstance(entry, str):
                steps = world.groupby("t")[entry]
                middle = steps.mean()
                low, high = steps.quantile(0.25), steps.quantile(0.75)
                axes.fill_between(middle.index, low, high, color=colour, alpha=0.13, linewidth=0)
            else:
                middle = 100 * (world[entry[0]] == entry[1]).groupby(world["t"]).mean()
            axes.plot(middle.index, middle, line, color=colour, label=name)
        axes.grid(axis="y")
        if isinstance(entry, str):
            axes.set_title(f"{entry}: mean and middle 50%")
            _label_with_unit(axes, entry)
        else:
            axes.set_title(f"{entry[0]}: {entry[1]}")
            axes.set_ylabel("% of subjects")
            axes.set_ylim(bottom=0)
    _axis_of_steps(panels[-1, 0], next(iter(worlds.values()))["t"])
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


@drawn_quietly
def one_subject(worlds: dict[str, pd.DataFrame], subject: int, variables: Sequence[str]) -> Figure:
    """Follow one subject through two worlds; steps at which they differ are shaded.

    Levels of a categorical variable stand on the vertical axis in their own
    order, those that the subject visits in either world.

    Parameters
    ----------
    worlds : dict of str to pandas.DataFrame
        Two worlds: name in the legend → long frame with `subject`, `t` and the variables.
    subject : int
        Whom to follow.
    variables : sequence of str
        One panel each, below each other.

    Raises
    ------
    InputError
        If there are not two worlds, or one lacks the subject or a variable.

    Examples
    --------
    >>> world = pd.DataFrame({"subject": [7, 7], "t": [0, 1], "age": [20, 21]})
    >>> other = world.assign(age=[20, 30])
    >>> figure = one_subject({"seen": world, "other": other}, subject=7, variables=["age"])
    >>> len(figure.axes[0].patches)  # they differ at one step
    1
    """
    if len(worlds) != 2:
        raise InputError(f"a subject is followed through two worlds: found {len(worlds)}")
    lives = {}
    for name, world in worlds.items():
        _require_columns(world, ["subject", "t", *variables], name)
        lives[name] = world[world["subject"] == subject].set_index("t").sort_index()
        if lives[name].empty:
            raise InputError(f"subject {subject} does not live in world {name!r}")
    one, other = lives.values()
    scales = {name: _levels_visited(one[name], other[name]) for name in variables}
    heights = [1.0 if levels is None else 0.45 + 0.3 * len(levels) for levels in scales.values()]
    figure, panels = _panels(heights, 0.28 * len(variables) + 0.7)
    for name, axes in zip(variables, panels.flat, strict=True):
        levels = scales[name]
        for step in one.index[one[name].astype(object) != other[name].astype(object)]:
            axes.axvspan(step - 0.5, step + 0.5, color="#F6E7B4", linewidth=0)
        for k, (world, life) in enumerate(lives.items()):
            values = life[name] if levels is None else life[name].astype(str).map(levels.index)
            axes.plot(
                life.index,
                values,
                marker="os"[k],
                markersize=(7, 4)[k],
                linestyle=("-", "--")[k],
                drawstyle="steps-mid",
                color=COLOURS[k],
                label=world,
            )
        if levels is None:
            _label_with_unit(axes, name)
            axes.margins(y=0.2)
        else:
            axes.set_yticks(range(len(levels)), levels)
            axes.set_ylim(-0.6, len(levels) - 0.4)
        axes.set_title(name)
    _axis_of_steps(panels[-1, 0], one.index)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
    return figure


@drawn_quietly
def changed(shares: pd.DataFrame) -> Figure:
    """Draw what an intervention changes and what it leaves alone, as a heat map.

    Parameters
    ----------
    shares : pandas.DataFrame
        Variables × steps: the share (0 to 1) of subjects whose value differs
        between two worlds, as :func:`lib.scm.comparison.share_changed` gives it.

    Cells say per cent; an empty cell is a value that nobody's world changes.

    Examples
    --------
    >>> shares = pd.DataFrame({0: [0.0, 0.0], 1: [0.0, 0.25]}, index=["age", "studies"])
    >>> [text.get_text() for text in changed(shares).axes[0].texts]
    ['25']
    """
    rows, columns = shares.shape
    figure, axes = plt.subplots(figsize=(WIDTH, 0.34 * rows + 1.0), layout="constrained")
    axes.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for row in range(rows):
        for column in range(columns):
            share = shares.iloc[row, column]
            if share > 0:
                text = "<1" if share < 0.01 else f"{100 * share:.0f}"
                colour = "white" if share > 0.55 else INK
                axes.text(column, row, text, ha="center", va="center", color=colour, size=10)
    axes.set_xticks(range(columns), shares.columns)
    axes.set_yticks(range(rows), shares.index)
    axes.set_xlabel("step t")
    axes.set_title("Subjects whose value differs, %")
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#E6E8EB", linewidth=1)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    return figure


@drawn_quietly
def overlap(groups: dict[str, pd.Series]) -> Figure:
    """Draw how the propensity of a treatment is distributed in each group of subjects.

    Shares of each group in per cent, on a logarithmic axis: rare subjects are
    the ones that overlap is about.

    Parameters
    ----------
    groups : dict of str to pandas.Series
        Name in the legend → propensities, from 0 to 1, of the subjects of a group.

    Examples
    --------
    >>> figure = overlap({"treated": pd.Series([0.9, 0.8]), "others": pd.Series([0.1, 0.2])})
    >>> figure.axes[0].get_xlabel()
    'propensity'
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0), layout="constrained")
    edges = np.linspace(0, 1, 21)
    for k, (name, propensities) in enumerate(groups.items()):
        _outline(axes, propensities, edges, COLOURS[k], label=name)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(0, 1)
    axes.set_xlabel("propensity")
    axes.set_ylabel("% of the group")
    axes.set_title("Where the groups overlap")
    figure.legend(loc="outside upper left", ncols=2)
    return figure


def _panels(heights: Sequence[float], room: float, columns: int = 1, sharex: bool = True) -> tuple:
    """Return a figure, with room for titles and legend (inches), and its panels, row by row."""
    return plt.subplots(
        len(heights),
        columns,
        figsize=(WIDTH, sum(heights) + room),
        height_ratios=heights,
        sharex=sharex,
        squeeze=False,
        layout="constrained",
    )


def _require_columns(frame: pd.DataFrame, names: Sequence[str], holder: str) -> None:
    for name in names:
        if name not in frame.columns:
            raise InputError(f"variable {name!r} is not in {holder}: {one_of(frame.columns)}")


def _panel_height(column: pd.Series) -> float:
    """Give a panel of bars room for its levels, in inches."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return 1.9
    levels = len(column.cat.categories)
    return 0.8 + 0.21 * (levels if levels <= MOST_LEVELS else FEW_LEVELS + 1)


def _bars_of_levels(axes: Axes, values: dict[str, pd.Series]) -> None:
    shares = {
        cohort: 100 * column.value_counts(normalize=True, sort=False)
        for cohort, column in values.items()
    }
    table = pd.DataFrame(shares).fillna(0.0)
    if len(table) > MOST_LEVELS:
        kept = table.iloc[:, 0].nlargest(FEW_LEVELS).index
        others = table.drop(index=kept)
        table = table.loc[kept]
        table.loc[f"{len(others)} others"] = others.sum()
    table = table.iloc[::-1]  # the first level at the top
    places, height = np.arange(len(table)), 0.8 / len(values)
    for k, cohort in enumerate(table):
        offset = ((len(values) - 1) / 2 - k) * height
        axes.barh(places + offset, table[cohort], height, color=COLOURS[k])
    axes.set_yticks(places, [textwrap.shorten(str(level), 18) for level in table.index])
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set_xlabel("%")


def _histograms(axes: Axes, values: dict[str, pd.Series], unit: str) -> None:
    together = pd.concat(list(values.values()))
    low, high = together.quantile([0.005, 0.995])
    width = (high - low) / 25 or 1.0
    if (together % 1 == 0).all():  # whole numbers fall into bins of whole width
        width = max(1.0, np.ceil(width))
        low -= 0.5
    edges = low + width * np.arange(np.ceil((high - low) / width) + 1)
    for k, column in enumerate(values.values()):
        _outline(axes, column, edges, COLOURS[k])
    axes.grid(axis="y")
    axes.set_ylabel("%")
    axes.set_xlabel(unit)
    axes.locator_params(axis="x", nbins=2 if unit == DOLLARS else 4)
    if unit == DOLLARS:
        axes.xaxis.set_major_formatter("{x:,.0f}")


def _outline(axes: Axes, values: pd.Series, edges: np.ndarray, colour: str, label=None) -> None:
    shares = 100 * np.histogram(values, edges)[0] / max(1, len(values))
    axes.stairs(shares, edges, color=colour, linewidth=1.5, label=label)
    axes.stairs(shares, edges, color=colour, alpha=0.2, fill=True)


def _label_with_unit(axes: Axes, variable: str) -> None:
    axes.set_ylabel(UNITS.get(variable, ""))
    if UNITS.get(variable) == DOLLARS:
        axes.yaxis.set_major_formatter("{x:,.0f}")


def _axis_of_steps(axes: Axes, steps: pd.Index | pd.Series) -> None:
    axes.set_xticks(sorted(set(steps)))
    axes.set_xlabel("step t")


def _levels_visited(one: pd.Series, other: pd.Series) -> list[str] | None:
    """Name the levels that a subject visits in either world; None for a number."""
    if not isinstance(one.dtype, pd.CategoricalDtype):
        return None
    visited = {*one.astype(str), *other.astype(str)}
    return [str(level) for level in one.cat.categories if str(level) in visited]
