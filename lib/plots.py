"""Figures in one quiet style: a few shapes, and what the chapters draw with them.

:func:`intervals`, :func:`lines` and :func:`bars` take a tidy table. It has one row a value: the
column `value`, its range from `lower` to `upper` where there is one, its `unit`, and further
columns that say where it belongs. :func:`causal_graph` and :func:`heat_map` are shapes, too.

No figure manager holds the figures: the last expression of a cell is shown once. Colours are
those of Okabe and Ito (2008), which colour-blind readers tell apart:
https://jfly.uni-koeln.de/color/
"""

import functools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import ScalarFormatter

from lib.errors import InputError, one_of

STYLE = mpl.rc_params_from_file(
    Path(__file__).with_name("book.mplstyle"), use_default_template=False
)
COLOURS = STYLE["axes.prop_cycle"].by_key()["color"]
INK, FAINT = STYLE["text.color"], "#C9CED3"

#: Inches: at the width of a phone, type of 11 points is still about 11 pixels high.
WIDTH = STYLE["figure.figsize"][0]

#: Inches between the rows of a causal graph.
ROW = 0.38

#: A look that makes dots of a line, and that of a line that values are compared with.
DOTS = {"marker": "o", "markersize": 4, "linestyle": ""}
REFERENCE = {"color": INK, "linewidth": 1, "linestyle": "--"}

#: A variable with more levels than fit a panel is drawn with its few most frequent ones.
MOST_LEVELS, FEW_LEVELS = 16, 6

#: Units of the numbers that the book draws.
UNITS = {"age": "years", "education-num": "1 to 16", "hours-per-week": "hours"}
UNITS |= {"capital-net": "US dollars", "income": "US dollars"}


def drawn_quietly(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Let a function draw in our style, whatever matplotlib is set to, and leave that as it was."""

    @functools.wraps(draw)
    def drawn(*arguments, **options) -> Figure:
        with plt.style.context(STYLE, after_reset=True):
            figure = draw(*arguments, **options)
            figure.draw_without_rendering()  # ticks ask for the style no sooner than here
        plt.close(figure)
        return figure

    return drawn


def shape(draw: Callable) -> Callable[..., Figure]:
    """Let a function that draws one panel of a tidy table draw a figure of several.

    `place` is the column on the other axis than that of the values; its name labels that axis
    if it holds numbers, and names have a row each. `series` and `panel` are the columns for the
    legend and the panels, of which `columns` stand beside each other. Their horizontal scale is
    `shared`, and that of the values among panels of one unit. `height` is theirs, in inches.
    What is left over are properties of the axes, such as `xlim`.
    """

    @drawn_quietly
    @functools.wraps(draw)
    def drawn(
        table, place, title, series=None, panel=None, columns=1, shared=True, height=None, **options
    ):
        labels = table[series] if series else pd.Series("", table.index)
        table = table.assign(series=pd.Categorical(labels, labels.unique()))
        if in_rows := not pd.api.types.is_numeric_dtype(table[place]):
            table[place] = table[place].astype(str)  # of a categorical, without absent levels
        parts = dict(list(table.groupby(panel, sort=False))) if panel else {"": table}
        units = [part["unit"].iloc[0] if "unit" in part else "" for part in parts.values()]
        sizes = [part[place].nunique() for part in parts.values()]
        heights = [height or (0.5 + 0.26 * size if in_rows else 1.75) for size in sizes]
        rows = [max(heights[i : i + columns]) for i in range(0, len(heights), columns)]
        frame = {"figsize": (WIDTH, sum(rows)), "height_ratios": rows, "squeeze": False}
        figure, grid = plt.subplots(len(rows), columns, sharex=shared, **frame)
        for axes in grid.flat:
            axes.locator_params(nbins=6 // columns)
        known, of_unit = {}, {}
        for i, (axes, (name, part)) in enumerate(zip(grid.flat, parts.items(), strict=False)):
            first = of_unit.setdefault((shared and not in_rows and units[i]) or i, axes)
            axes.sharey(first)
            draw(axes, part, place, **options)
            axes.set_title(textwrap.fill(str(name), 46 // columns))
            if first is not axes and i % columns:
                axes.tick_params(labelleft=False)
            elif not in_rows:
                axes.set_ylabel(units[i])
            if i + columns >= len(parts):  # nothing below has labels
                axes.tick_params(labelbottom=True)
            for axis in (axes.xaxis, axes.yaxis):
                if isinstance(axis.get_major_formatter(), ScalarFormatter):
                    axis.set_major_formatter("{x:,g}")
            handles, labels = axes.get_legend_handles_labels()
            known = dict(zip(labels, handles, strict=True)) | known
        for axes in grid.flat[len(parts) :]:
            axes.set_visible(False)
        figure.supxlabel(units[0] if in_rows else place)
        _head(figure, title, known)
        return figure

    return drawn


def _head(figure: Figure, title: str, known: Mapping) -> None:
    """Write a title, and below it the legend, above all panels, and make room for them."""
    beside = 3 if max(map(len, known), default=0) <= 12 else 2
    font = {"weight": "bold", "size": STYLE["legend.title_fontsize"]}
    place = {"loc": "outside upper left", "alignment": "left", "ncols": beside}
    figure.legend(known.values(), known.keys(), title=title, title_fontproperties=font, **place)
    figure.set_figheight(figure.get_figheight() + 0.35 + 0.22 * -(-len(known) // beside))


def _range(table: pd.DataFrame) -> np.ndarray | None:
    """Say how far ranges reach below and above their values, as error bars want it."""
    if "lower" not in table or table["lower"].isna().all():
        return None
    return np.maximum([table["value"] - table["lower"], table["upper"] - table["value"]], 0)


@shape
def intervals(axes, table, row, looks: Mapping = {}, line: Mapping = {}, **axis):
    """Draw a dot for each row, the first at the top, with its range as a line.

    `line` maps what the legend says to values that are dashed lines, and `looks` a series to
    keywords of :meth:`matplotlib.axes.Axes.errorbar`.

    Examples
    --------
    >>> table = pd.DataFrame({"learner": ["T", "S"], "value": [0.3, 0.1], "lower": 0, "upper": 0.5})
    >>> [text.get_text() for text in intervals(table, "learner", "R²").axes[0].get_yticklabels()]
    ['T', 'S']
    """
    rows = list(table[row].unique())
    for name, value in line.items():
        axes.axvline(value, label=name, **REFERENCE)
    for k, (name, part) in enumerate(table.groupby("series", observed=False)):
        marker = {"marker": "oD"[k % 2], "fillstyle": ("full", "none")[k % 2]}
        look = {"label": name, "color": COLOURS[k], "linestyle": ""} | marker | looks.get(name, {})
        axes.errorbar(part["value"], part[row].map(rows.index), xerr=_range(part), **look)
    axes.set_yticks(range(len(rows)), rows)
    axes.grid(axis="x")
    axes.set(ylim=(len(rows) - 0.4, -0.6), **axis)


@shape
def lines(axes, table, x, look: Mapping = {}, looks: Mapping = {}, line: Mapping = {}, **axis):
    """Draw a line for each series, its range as a band; of a series with markers, as bars.

    `line` maps what the legend says to values that are dashed lines. Keywords of
    :meth:`matplotlib.axes.Axes.plot` are `look` for all series and `looks` for the one named.

    Examples
    --------
    >>> table = pd.DataFrame({"t": [0, 1], "value": [20.0, 21.0], "unit": "years"})
    >>> figure = lines(table, "t", "Years pass")
    >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_ylabel()
    ([20.0, 21.0], 'years')
    """
    for name, value in line.items():
        axes.axhline(value, label=name, **REFERENCE)
    for k, (name, part) in enumerate(table.groupby("series", observed=False)):
        dashes = ("-", "--", "-.", ":")[k % 4]  # lines that coincide stay visible
        style = {"label": name, "color": COLOURS[k % len(COLOURS)], "linestyle": dashes}
        style |= {**look, **looks.get(name, {})}
        if "marker" in style:
            axes.errorbar(part[x], part["value"], yerr=_range(part), **style)
            continue
        axes.plot(part[x], part["value"], **style)
        if "lower" in part:
            band = {"step": style.get("drawstyle", "").removeprefix("steps-") or None}
            band |= {"color": style["color"], "alpha": 0.13, "linewidth": 0}
            axes.fill_between(part[x], part["lower"], part["upper"], **band)
    if pd.api.types.is_integer_dtype(table[x]):
        axes.locator_params(axis="x", nbins=9, integer=True)
    axes.grid()
    axes.set(**axis)


@shape
def bars(axes, table, row, stacked: bool = False, colours: Sequence[str] = COLOURS, **axis):
    """Draw a bar for each row, the first at the top, and the series beside or after each other.

    Examples
    --------
    >>> table = pd.DataFrame({"who": "coin", "cell": ["valid", "invalid"], "value": [70.0, 30.0]})
    >>> figure = bars(table, "who", "Shares", series="cell", stacked=True)
    >>> [float(bar.get_x()) for bar in figure.axes[0].patches]
    [0.0, 70.0]
    """
    wide = table.pivot_table("value", row, "series", sort=False, observed=False, dropna=False)
    wide.plot.barh(ax=axes, stacked=stacked, width=0.75, color=colours, legend=False)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.set(ylabel="", **axis)


@drawn_quietly
def causal_graph(graph: nx.DiGraph, into: str | None = None) -> Figure:
    """Draw a causal graph: variables in causal order, every arc from a cause down to its effect.

    Nodes are names or, of a step of time, `(name, -1)` and `(name, 0)`: the previous step, which
    stands on the left, and the current one. The direct causes of `into` stand out.

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
    width = 0.06 + 0.042 * max(map(len, order))  # inches, half of the widest box in 10 points
    scale = min(1, 0.62 / width)
    port = scale * width + 0.04
    # One inch is one unit.
    left, bottom, top = -2.65 if in_time else -0.8, -ROW * len(order) + 0.1, 0.6 if in_time else 0.3
    figure = plt.figure(figsize=(WIDTH, top - bottom), layout="none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(left, left + WIDTH), ylim=(bottom, top))
    axes.set_axis_off()
    for (cause, step), (effect, _) in graph.edges:
        start, end = (-ROW * order.index(name) for name in (cause, effect))
        # An arc is the wider the further it reaches.
        bend = 0.0 if step else -0.5 if in_time else -1.1
        marked = {"color": COLOURS[1], "linewidth": 1.6, "zorder": 2}
        look = marked if effect == into else {"color": FAINT}
        arrow(axes, (port + 2 * step, start), (-port if step else port, end), bend, **look)
    for name, step in sorted(graph, key=lambda node: (node[1], order.index(node[0]))):
        is_effect = (name, step) == target
        marked = is_effect or graph.has_edge((name, step), target)
        box = {"boxstyle": "round,pad=0.3", "facecolor": "#FBE3D4" if is_effect else "white"}
        box |= {"edgecolor": COLOURS[1] if marked else INK, "linewidth": 1.4 if marked else 0.8}
        font = {"size": 10 * scale, "weight": "bold" if is_effect else "normal", "bbox": box}
        axes.text(2 * step, -ROW * order.index(name), name, ha="center", va="center", **font)
    for x, heading in ((-2, "previous step"), (0, "current step")) if in_time else ():
        axes.text(x, 0.4, heading, ha="center", va="center", weight="bold")
    return figure


def arrow(axes: Axes, start: tuple, end: tuple, bend: float = 0.0, **look) -> None:
    """Draw an arrow from place to place; a bend of 1 makes an arc half as wide as it is long."""
    look = {"mutation_scale": 9, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 0} | look
    look |= {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
    axes.add_patch(FancyArrowPatch(start, end, **look))


@drawn_quietly
def heat_map(table: pd.DataFrame, title: str, xlabel: str = "") -> Figure:
    """Draw numbers from 0 to 100 as colours and in words; a cell that holds 0 stays empty.

    Examples
    --------
    >>> shares = pd.DataFrame({0: [0.0, 0.0], 1: [0.4, 25.0]}, index=["age", "studies"])
    >>> [text.get_text() for text in heat_map(shares, "Changed, %").axes[0].texts]
    ['<1', '25']
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 0.34 * len(table) + 0.5))
    axes.pcolormesh(table, cmap="Blues", vmin=0, vmax=100, edgecolor=STYLE["grid.color"])
    for (row, column), value in np.ndenumerate(table.to_numpy()):
        if value > 0:
            text, colour = f"{value:.0f}" if value >= 1 else "<1", "white" if value > 55 else INK
            font = {"ha": "center", "va": "center", "size": 10, "color": colour}
            axes.text(column + 0.5, row + 0.5, text, **font)
    axes.set_xticks(np.arange(table.shape[1]) + 0.5, table.columns)
    axes.set_yticks(np.arange(table.shape[0]) + 0.5, table.index)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    axes.set_xlabel(xlabel)
    _head(figure, title, {})
    return figure


def histograms(
    cohorts: Mapping[str, pd.DataFrame], variables: Sequence[str], title: str, bins=None, **options
) -> Figure:
    """Draw how numbers are distributed in each cohort, in per cent, a panel for each variable.

    Unless the edges of the bins are given, the axis is cut at the 0.5 and 99.5 percentiles of
    the cohorts together, and whole numbers fall into bins of whole width.
    """
    parts = []
    for variable in variables:
        columns = _columns(cohorts, variable)
        edges = _edges(pd.concat(columns.values())) if bins is None else bins
        for name, values in columns.items():
            shares = 100 * np.histogram(values, edges)[0] / max(1, len(values))
            # A step reaches from its own edge to the next one; the first and the last start at 0.
            steps = pd.DataFrame({"": [edges[0], *edges], "value": [0, *shares, 0]})
            panel = f"{variable}, {UNITS[variable]}" if variable in UNITS else variable
            parts.append(steps.assign(cohort=name, panel=panel, unit="%"))
    table = pd.concat(parts)
    table = table.assign(lower=0, upper=table["value"])
    look = {"drawstyle": "steps-post", "linestyle": "-", "linewidth": 1.5}
    frame = {"columns": min(2, len(variables)), "shared": False, "look": look}
    return lines(table, "", title, "cohort", "panel", **frame, **options)


def _edges(values: pd.Series) -> np.ndarray:
    low, high = values.quantile([0.005, 0.995])
    width = (high - low) / 25 or 1.0
    if (values % 1 == 0).all():
        width = max(1.0, np.ceil(width))
        low -= 0.5
    return low + width * np.arange(np.ceil((high - low) / width) + 1)


def _columns(frames: Mapping[str, pd.DataFrame], variable: str) -> dict[str, pd.Series]:
    for name, frame in frames.items():
        if variable not in frame:
            raise InputError(f"variable {variable!r} is not in {name}: {one_of(frame.columns)}")
    return {name: frame[variable] for name, frame in frames.items()}


def levels(cohorts: Mapping[str, pd.DataFrame], variables: Sequence[str], title: str) -> Figure:
    """Draw how often levels of variables are taken in each cohort, in per cent.

    Of a variable with more than 16 levels, the six that are most frequent in the first cohort
    are drawn, and the others together.
    """
    parts = []
    for variable in variables:
        columns = _columns(cohorts, variable).items()
        counts = {name: c.value_counts(normalize=True, sort=False) for name, c in columns}
        shares = 100 * pd.DataFrame(counts).fillna(0.0)
        if len(shares) > MOST_LEVELS:
            kept = shares.iloc[:, 0].nlargest(FEW_LEVELS).index
            others = shares.drop(index=kept)
            shares = shares.loc[kept]
            shares.loc[f"{len(others)} others"] = others.sum()
        parts.append(shares.melt(var_name="cohort", ignore_index=False).assign(variable=variable))
    table = pd.concat(parts).rename_axis("level").reset_index()
    table["level"] = [textwrap.shorten(str(level), 18) for level in table["level"]]
    frame = {"columns": min(2, len(variables)), "shared": False}
    return bars(table.assign(unit="% of each group"), "level", title, "cohort", "variable", **frame)


@drawn_quietly
def overlap(groups: Mapping[str, pd.Series]) -> Figure:
    """Draw how the propensity of a treatment, from 0 to 1, is distributed in groups of subjects.

    The axis of shares is logarithmic: rare subjects are the ones that overlap is about.
    """
    frames = {name: propensity.to_frame("propensity") for name, propensity in groups.items()}
    options = {"bins": np.linspace(0, 1, 21), "xlim": (0, 1), "yscale": "log", "height": 2.2}
    figure = histograms(frames, ["propensity"], "Where the groups overlap", **options)
    figure.axes[0].yaxis.set_major_formatter("{x:g}")
    return figure


def share_by_level(frame: pd.DataFrame, outcome: str, level: str, by: Sequence[str]) -> Figure:
    r"""Draw how often an outcome has a level, for each level of other variables, in per cent.

    A line reaches 1.96 standard errors to both sides of a share,
    :math:`\sqrt{s(1-s)/n}`; levels with fewer than 30 subjects are left out.
    """
    known = frame[outcome].cat.categories
    if level not in known:
        raise InputError(f"level {level!r} of {outcome} is unknown: {one_of(known)}")
    reached = 100 * (frame[outcome] == level)
    groups = {name: reached.groupby(frame[name], observed=False) for name in by}
    table = pd.concat({name: group.agg(["mean", "size"]) for name, group in groups.items()})
    table = table[table["size"] >= 30]  # below, the normal interval means little
    value = table["mean"]
    half = 1.96 * np.sqrt(value * (100 - value) / table["size"])
    unit = "% of the subjects with this level"
    table = table.assign(value=value, lower=value - half, upper=value + half, unit=unit)
    table = table.rename_axis(["variable", "level"]).reset_index()
    frame = {"columns": min(2, len(by)), "line": {"everyone": reached.mean()}}
    return intervals(table, "level", f"Who has {outcome} {level}", panel="variable", **frame)


def trajectories(worlds: Mapping[str, pd.DataFrame], of: Sequence[str | tuple[str, str]]) -> Figure:
    """Draw how a population moves: means and quartiles of numbers, shares of levels.

    Worlds are long frames with a column `t`. A panel shows a numeric variable, or a categorical
    variable and its level.
    """
    parts = []
    for entry in of:
        variable, level = (entry, None) if isinstance(entry, str) else entry
        for name, column in _columns(worlds, variable).items():
            values = column if level is None else 100 * (column == level)
            steps = values.groupby(worlds[name]["t"].rename("step t"))
            part = pd.DataFrame({"value": steps.mean()})
            panel, unit = f"{variable}: {level}", "% of subjects"
            if level is None:
                panel, unit = f"{variable}: mean and middle 50%", UNITS.get(variable, "")
                part = part.assign(lower=steps.quantile(0.25), upper=steps.quantile(0.75))
            parts.append(part.assign(world=name, panel=panel, unit=unit))
    table = pd.concat(parts).reset_index()
    return lines(table, "step t", "The same subjects in every world", "world", "panel")


@drawn_quietly
def one_subject(
    worlds: Mapping[str, pd.DataFrame], subject: int, variables: Sequence[str]
) -> Figure:
    """Follow one subject through two worlds; steps at which they differ are shaded.

    Of a categorical variable, the levels that the subject visits stand on the vertical axis.
    """
    if len(worlds) != 2:
        raise InputError(f"a subject is followed through two worlds: found {len(worlds)}")
    for name, subjects in _columns(worlds, "subject").items():
        if subject not in set(subjects):
            raise InputError(f"subject {subject} does not live in world {name!r}")
    one, other = (world[world["subject"] == subject].set_index("t") for world in worlds.values())
    parts, visited = [], {}
    for variable in variables:
        _columns(worlds, variable)
        life = pd.concat([one[variable], other[variable]], keys=worlds, names=["world", "step t"])
        if isinstance(life.dtype, pd.CategoricalDtype):
            life = life.cat.remove_unused_categories()
            visited[variable], life = life.cat.categories, life.cat.codes
        unit = UNITS.get(variable, f"level of {variable}")
        parts.append(life.rename("value").reset_index().assign(variable=variable, unit=unit))
    title, look = f"Subject {subject} in two worlds", {"drawstyle": "steps-mid"}
    figure = lines(pd.concat(parts), "step t", title, "world", "variable", height=1.3, look=look)
    for axes, variable in zip(figure.axes, variables, strict=True):
        for step in one.index[one[variable].astype(object) != other[variable].astype(object)]:
            axes.axvspan(step - 0.5, step + 0.5, color="#F6E7B4", linewidth=0, zorder=0)
        if variable in visited:
            axes.set_yticks(range(len(visited[variable])), visited[variable])
            axes.set_ylabel("")
        axes.margins(y=0.2)
    return figure
