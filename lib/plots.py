"""Figures in one quiet style: a few shapes, and what the chapters draw with them.

:func:`intervals`, :func:`lines` and :func:`bars` take a tidy table with one row for each value. Its
columns are `value`, the ends `lower` and `upper` of its range if it has one, its `unit`, and the
`series` of the legend and the `panel` that it belongs to. The colours are those of Okabe and Ito
(2008), which colour-blind readers can tell apart: https://jfly.uni-koeln.de/color/
"""

import functools
import io
import itertools
import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from sklearn.isotonic import isotonic_regression

from lib import ROOT
from lib.errors import check_known, check_names
from lib.files import read_yaml
from lib.tables import number_text

STYLE = mpl.rc_params_from_file(ROOT / "lib/book.mplstyle", use_default_template=False)
COLOURS = STYLE["axes.prop_cycle"].by_key()["color"]
VERMILION, INK, FAINT = COLOURS[1], STYLE["text.color"], "#8C949B"

#: The beginning of a name → the colour of that name in every figure of the book.
COLOUR_OF: dict[str, str] = read_yaml(ROOT / "lib/colours.yml")

#: Each colour has its marker; a series in any other colour, such as a truth, gets a square.
MARKERS = dict(zip(COLOURS, "oD" * 3, strict=True))

#: The width of a page's column on a desktop screen, in inches; type of 10 points is then about
#: 15 pixels high.
WIDTH = STYLE["figure.figsize"][0]

#: A drawn interval of 95 % reaches this many standard errors to either side.
HALF_WIDTH = 1.96

#: A variable at a step (-1 is the previous step, 0 the current one), and a place in a figure.
Node: TypeAlias = tuple[str, int]
Place: TypeAlias = tuple[float, float]

#: Lengths in a causal graph, in inches: from layer to layer, half the height of a box, the gap
#: between two boxes, and the clearance between a box and an arrow.
LAYER, HIGH, GAP, NEAR = 0.75, 0.13, 0.35, 0.06

#: Keywords of matplotlib: none, those that turn a line into dots, and those of a reference line,
#: with which values are compared.
Look: TypeAlias = Mapping[str, Any]
PLAIN: Look = {}
DOTS = {"marker": "o", "markersize": 4, "linestyle": ""}
REFERENCE = {"color": INK, "linewidth": 1, "linestyle": "--"}

#: If a variable has more levels than fit in a panel, only its few most frequent ones are drawn
#: one by one.
MOST_LEVELS, FEW_LEVELS = 16, 6

#: Frames, each under its name in the legend.
Tables: TypeAlias = Mapping[str, pd.DataFrame]

#: Units of the numbers that the book draws.
UNITS = {"age": "years", "education-num": "1 to 16", "hours-per-week": "hours"}
UNITS |= {"capital-net": "US dollars", "income": "US dollars"}


class Drawing(Figure):
    """A figure that notebooks show as SVG, with the same bytes every time."""

    def svg(self) -> str:
        """Return the figure as the text of an SVG file."""
        file = io.StringIO()
        salt = {"svg.fonttype": "path", "svg.hashsalt": "the same names every time"}
        with plt.style.context(salt, after_reset=True):
            self.savefig(file, format="svg", metadata={"Date": None})
        return file.getvalue()

    # Notebooks look for this method. An SVG file has the title as shapes, so it is added as text.
    def _repr_svg_(self) -> tuple[str, dict[str, str]]:
        titles = (legend.get_title().get_text() for legend in self.legends)
        return self.svg(), {"title": " ".join(" ".join(titles).split())}


def colours_of(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of every name: its own in `COLOUR_OF`, or the next one that is free."""
    own = {n: next((c for start, c in COLOUR_OF.items() if n.startswith(start)), "") for n in names}
    free = itertools.cycle([one for one in COLOURS if one not in own.values()] or COLOURS)
    return {name: colour or next(free) for name, colour in own.items()}


def drawn_quietly(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Let a function draw in the book's style, and leave matplotlib's own settings as they are."""

    @functools.wraps(draw)
    def drawn(*arguments: Any, **options: Any) -> Figure:
        # matplotlib picks its backend now, so that what the backend sets outlasts our style.
        plt.draw_if_interactive()
        with plt.style.context(STYLE, after_reset=True):
            figure = draw(*arguments, **options)
            if figure.get_layout_engine():  # again, if an inner function has fixed the layout
                figure.set_layout_engine("constrained")
                plt.setp(figure.axes, in_layout=True)
            figure.draw_without_rendering()  # only here do ticks read the style
            figure.set_layout_engine("none")  # the layout stays as it is now
            for axes in figure.axes:  # the last digits of the solver vary from process to process
                axes.set_position(np.round(axes.get_position(original=True).bounds, 6))
        plt.close(figure)
        return figure

    return drawn


def tick_text(value: float, _: int) -> str:
    """Write the number at a tick of an axis in the way in which the book writes all numbers."""
    return number_text(value, digits=",g")


def shape(draw: Callable[..., None]) -> Callable[..., Figure]:
    """Turn a function that draws one panel of a tidy table into one that draws a whole figure.

    `place` is the column on the axis that does not show values. If it holds numbers, its name
    labels that axis; if it holds names, each gets a row of its own. `unit` is the unit of the
    values if the table has none. At most `columns` panels stand side by side. If `shared`, panels
    of one unit have one scale of values, and numbers in `place` have one scale in all panels.
    `height` is the height of a panel, in inches. `line` maps labels of the legend to values, which
    become dashed lines. Other keywords, such as `xlim`, are properties of the axes.
    """

    @drawn_quietly
    @functools.wraps(draw)
    def drawn(table: pd.DataFrame, place: str, title: str, unit: str = "", **more: Any) -> Figure:
        columns, shared = more.pop("columns", 1), more.pop("shared", True)
        height, line = more.pop("height", None), more.pop("line", {})
        table = table.assign(**{"series": "", "panel": "", "unit": unit} | dict(table.items()))
        table["series"] = pd.Categorical(table["series"], table["series"].unique())
        if in_rows := not pd.api.types.is_numeric_dtype(table[place]):
            table[place] = table[place].astype(str)  # drops absent levels of a categorical
        parts = table.groupby("panel", sort=False)
        names = [tuple(part.unique()) for _, part in parts[place]]
        units, columns = [*parts["unit"].first()], min(columns, len(names))
        a_row, of_unit = 0.2 + 0.06 * len(table["series"].cat.categories), dict[object, Axes]()
        least = 1.15 * any(parts.groups)  # room for a name above one or two rows
        flat = [max(0.5 + a_row * len(each), least) if in_rows else 1.9 for each in names]
        heights = [height or each for each in flat]
        rows = [max(heights[i : i + columns]) for i in range(0, len(heights), columns)]
        figure = plt.figure(figsize=(WIDTH, sum(rows)), FigureClass=Drawing)
        cells = figure.add_gridspec(len(rows), columns, height_ratios=rows)
        for i, ((name, part), unit) in enumerate(zip(parts, units, strict=True)):
            axes = figure.add_subplot(cells[i])
            axes.locator_params(nbins=6 // columns)
            axes.xaxis.set_major_formatter(tick_text)
            first = of_unit.setdefault(unit if shared and (unit or in_rows) else i, axes)
            axes.sharex(first if in_rows else figure.axes[0] if shared else axes)
            axes.sharey(axes if in_rows else first)
            axes.grid(axis="x" if in_rows else "both")
            alone = len(names) == 1 and not name
            for label, value in line.items():
                # In a single panel without a name, the label of a line stands at its end.
                beside = {"label": "" if alone and in_rows else label, **REFERENCE}
                (axes.axvline if in_rows else axes.axhline)(value, **beside)
                if alone and in_rows:
                    where = ("data", "axes fraction")
                    axes.annotate(label, (value, 1.03), xycoords=where, ha="center")
            draw(axes, part, place, **more)
            if (scale := axes.get_xscale()) != "linear" and "xticks" not in more:
                # The labels of more ticks would overlap.
                few = np.divide(*axes.get_xlim()) > 1e-3  # less than three decades
                most = 6 if scale == "symlog" else None
                axes.locator_params("x", subs=(1, 3) if few else (1,), numticks=most)
                axes.xaxis.set_major_formatter(tick_text)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_minor_formatter("")  # else, a log axis of less than a decade has labels
            if in_rows:  # so panels side by side have rows of the same height
                axes.set_ylim(max(map(len, names[i - i % columns :][:columns])) - 0.4, -0.6)
            axes.set_title(textwrap.fill(str(name), math.ceil(52 / columns)))
            across, up = (unit, "") if in_rows else (place, unit)
            up = textwrap.fill(up, int(14 * heights[i]) - 8)  # as many letters as fit the axis
            last = i + columns >= len(names) or (in_rows and units[i + columns] != unit)
            inner = i % columns and (names[i] == names[i - 1] if in_rows else first is not axes)
            axes.tick_params(labelbottom=last or not shared, labelleft=not inner)
            axes.set(xlabel=across if last else "", ylabel="" if inner else up)
        figure.align_ylabels()
        series = [*table["series"].cat.categories]
        told = series if len(series) == 1 else []
        if alone and not in_rows:
            told += _named_at_ends(axes, told, heights[0])
        _head(figure, title, but=told)
        return figure

    return drawn


def _named_at_ends(axes: Axes, told: Sequence[str], height: float) -> list[str]:
    """Name lines at their right ends if no name has to move far, and return those named."""
    handles = zip(*axes.get_legend_handles_labels(), strict=True)
    named = {name: one[0] if isinstance(one, tuple) else one for one, name in handles}
    lines = {name: one for name, one in named.items() if name not in told}
    drawn = all(one.get_linestyle() != "None" for one in lines.values())
    if not drawn or max(map(len, lines), default=99) > 24:  # letters: a third of a column
        return []
    axes.get_ylim()  # which settles the scale
    ends = [one.get_transform().transform(one.get_xydata()[-1]) for one in lines.values()]
    right, up = axes.transAxes.inverted().transform(ends).T
    if right.min() < 0.9 or not np.isfinite(up).all():
        return []
    order, line = np.argsort(up), 0.17 / (height - 0.5)
    steps = line * np.arange(len(up))
    places = isotonic_regression(up[order] - steps) + steps  # the nearest, one text line apart
    if np.abs(places - up[order]).max() > 0.75 * line:  # such as if three ends coincide
        return []
    for k, place in zip(order, places, strict=True):
        name, one = [*lines.items()][k]
        shade = 0.6 * np.array(to_rgb(one.get_color()))  # pale thin letters are hard to read
        axes.annotate(name, (1.01, place), xycoords="axes fraction", va="center", color=shade)
    return [*lines]


def _head(figure: Figure, title: str, but: Collection[str] = ()) -> None:
    """Write a title above all panels and, below it, the legend without `but`, and make room."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    told = {label: one for label, one in zip(labels, handles, strict=True) if label not in but}
    beside = 4 if max(map(len, told), default=0) <= 14 else 2
    place = {"loc": "outside upper left", "alignment": "left", "ncols": beside}
    title = textwrap.fill(title, 62)
    figure.legend(told.values(), told, title=title, **place).get_title().set_weight("bold")
    rows = 1 + title.count("\n") - (-len(told) // beside)
    figure.set_figheight(figure.get_figheight() + 0.2 + 0.22 * rows)


def _range(table: pd.DataFrame) -> np.ndarray | None:
    if "lower" not in table or table["lower"].isna().all():
        return None
    return np.maximum([table["value"] - table["lower"], table["upper"] - table["value"]], 0)


@shape
def intervals(axes: Axes, table: pd.DataFrame, row: str, looks: Look = PLAIN, **axis: Any) -> None:
    """Draw a dot for each row, the first at the top, with its range as a line.

    `looks` maps a series to keywords of :meth:`matplotlib.axes.Axes.errorbar`.
    """
    rows, colours = list(table[row].unique()), colours_of(table["series"].cat.categories)
    # If a row has dots of several series, they stand below each other.
    apart = 0.6 / len(colours) * (table.groupby(row)["series"].nunique().max() > 1)
    for k, (name, part) in enumerate(table.groupby("series", observed=False)):
        marker = MARKERS.get(colours[name], "s")
        look = {"label": name, "color": colours[name], "linestyle": "", "marker": marker}
        look |= {"fillstyle": "none" if marker == "D" else "full"}
        places = part[row].map(rows.index).astype(float) + apart * (k - (len(colours) - 1) / 2)
        axes.errorbar(part["value"], places, xerr=_range(part), **look | looks.get(name, {}))
    axes.set_yticks(range(len(rows)), rows)
    axes.set(**axis)


@shape
def lines(
    axes: Axes, table: pd.DataFrame, x: str, look: Look = PLAIN, looks: Look = PLAIN, **axis: Any
) -> None:
    """Draw a line for each series, with its range as a band or, if it has markers, as error bars.

    `look` has keywords of :meth:`matplotlib.axes.Axes.plot` for all series, and `looks` maps a
    series to keywords of its own.

    Examples
    --------
    >>> table = pd.DataFrame({"t": [0, 1], "value": [20.0, 21.0], "unit": "years"})
    >>> figure = lines(table, "t", "Years pass")
    >>> figure.axes[0].lines[0].get_ydata().tolist(), figure.axes[0].get_ylabel()
    ([20.0, 21.0], 'years')
    """
    colours = colours_of(table["series"].cat.categories)
    for k, (name, part) in enumerate(table.groupby("series", observed=False)):
        # With different dashes, lines that coincide stay visible.
        style = {"label": name, "color": colours[name], "linestyle": ("-", "--", "-.", ":")[k % 4]}
        # A line of more points becomes an image within the figure.
        style |= {"rasterized": len(part) > 500, **look, **looks.get(name, {})}
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
    axes.set(**axis)
    axes.yaxis.set_major_formatter(tick_text)


@shape
def bars(axes: Axes, table: pd.DataFrame, row: str, stacked: bool = False, **axis: Any) -> None:
    """Draw bars for each row, the first row at the top; series stand side by side or `stacked`."""
    wide = table.pivot_table("value", row, "series", observed=False, dropna=False)
    wide = wide.reindex(table[row].unique())  # pandas 2 would sort the rows
    # An edge shows where a pale part of a stacked bar ends.
    look = {"width": 0.75, "color": colours_of(wide), "edgecolor": INK, "linewidth": 0.5 * stacked}
    wide.plot.barh(ax=axes, stacked=stacked, legend=False, **look)
    axes.set(**axis)


@drawn_quietly
def causal_graph(graph: nx.DiGraph, into: str | None = None) -> Figure:
    """Draw a causal graph in layers: every arrow leads from a cause down to its effect.

    A node is a name or, in a graph over time, a pair: `(name, -1)` is at the previous step, which
    stands at the top, and `(name, 0)` at the current one. `into` and its direct causes stand out.
    """
    graph = nx.relabel_nodes(graph, {node: (node, 0) for node in graph if isinstance(node, str)})
    if into is not None:
        check_known("variable", into, [name for name, step in graph if step == 0])
    # A variable of the previous step has a box if another variable reads it, or else an arrow.
    own = {node for node in graph if node[1] and {*graph[node]} <= {(node[0], 0)}}
    layers = [[node for node in graph if node[1] and node not in own], []]
    layers, places = layers[not layers[0] :], dict[Node, Place]()
    for node in nx.lexicographical_topological_sort(graph, list(graph).index):
        if node[1] == 0:
            full = sum(2 * _half(one) + GAP for one in [*layers[-1], node]) > WIDTH
            if full or any(graph.has_edge(cause, node) for cause in layers[-1]):
                layers.append([])
            layers[-1].append(node)
    arcs = [(*arc, arc[1] == (into, 0)) for arc in graph.edges if arc[0] not in own]
    # One layer at a time is placed anew, and stays so if fewer arcs are hidden then.
    rng = np.random.default_rng(0)
    for k in (*range(len(layers)), *rng.integers(len(layers), size=1_000)):
        moved = places | _placed(layers[k], -LAYER * k, rng)
        if len(moved) > len(places) or _hidden(moved, arcs) < _hidden(places, arcs):
            places = moved
    ends = [x + side * _half(node) for node, (x, _) in places.items() for side in (-1, 1)]
    shift = (WIDTH - min(ends) - max(ends)) / 2
    places = {node: (x + shift, y) for node, (x, y) in places.items()}
    figure = plt.figure(figsize=(WIDTH, LAYER * len(layers)), layout="none", FigureClass=Drawing)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH))  # one inch is one unit
    axes.set(ylim=(LAYER * (0.5 - len(layers)), LAYER / 2))
    axes.set_axis_off()
    looks = {"color": FAINT, "linewidth": 0.8}, {"color": VERMILION, "linewidth": 1.8, "zorder": 2}
    for cause, effect, marked in arcs:
        (x, y), (u, v) = places[cause], places[effect]
        lean = 1.2 * (u - x) / WIDTH  # arrows keep apart where several begin or end
        start, end = (x + lean * _half(cause), y - HIGH), (u - lean * _half(effect), v + HIGH)
        arrow(axes, start, end, **looks[marked])
    for node, (x, y) in places.items():
        stands_out = node == (into, 0) or graph.has_edge(node, (into, 0))
        box = {"boxstyle": "round,pad=0.3", "edgecolor": VERMILION if stands_out else INK}
        box |= {"facecolor": "#FBE3D4" if node == (into, 0) else "white", "linewidth": 1.2}
        axes.text(x, y, node[0], ha="center", va="center", size=10, bbox=box, zorder=3)
        if (node[0], -1) in own and graph.has_edge((node[0], -1), node):
            left = x - _half(node)
            arrow(axes, (left - 0.8 * GAP, y), (left, y), **looks[node == (into, 0)])
    if layers[0][0][1]:
        axes.axhline(-LAYER / 2, **REFERENCE)
        axes.text(0.05, -LAYER / 2, "previous step\ncurrent step", va="center", linespacing=1.7)
    return figure


def _half(node: Node) -> float:
    """Return half the width of the box of a node, in inches, for type of 10 points."""
    return 0.06 + 0.0375 * len(node[0])


def _placed(layer: Sequence[Node], y: float, rng: np.random.Generator) -> dict[Node, Place]:
    """Place the boxes of a layer at its height `y`, in their order, with random gaps."""
    rooms = np.array([2 * _half(node) + GAP for node in layer])
    gaps = rng.dirichlet(np.full(len(layer) + 1, 3.0)) * (WIDTH - rooms.sum())
    return dict(zip(layer, ((x, y) for x in np.cumsum(rooms + gaps[:-1]) - rooms / 2), strict=True))


def _hidden(places: Mapping[Node, Place], arcs: Sequence[tuple[Node, Node, bool]]) -> float:
    """Count the arcs that boxes hide, and a fifth of those near one; marked arcs count tenfold."""
    x, y, u, v, marked = np.array([(*places[a], *places[b], m) for a, b, m in arcs]).T[..., None]
    p, q, reach = np.array([(*place, _half(node)) for node, place in places.items()]).T
    clear = abs(x + (u - x) * (q - y) / (v - y) - p) - reach
    passes = (v < q) & (q < y) & (clear < NEAR)
    weights = (1 + 9 * marked) * np.where(clear < 0, 1, 0.2)
    return float((passes * weights).sum() + 0.01 * abs(u - x).sum())


def arrow(axes: Axes, start: Place, end: Place, bend: float = 0.0, **look: Any) -> None:
    """Draw an arrow from place to place; a bend of 1 makes an arc half as wide as it is long."""
    look = {"mutation_scale": 9, "shrinkA": 0, "shrinkB": 0} | look
    look |= {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
    axes.add_patch(FancyArrowPatch(start, end, **look))


@drawn_quietly
def heat_map(table: pd.DataFrame, title: str, xlabel: str = "", most: float = 100) -> Figure:
    """Draw numbers from 0 to `most` as colours and as text; a cell that holds 0 stays empty."""
    figure, axes = plt.subplots(figsize=(WIDTH, 0.34 * len(table) + 0.5), FigureClass=Drawing)
    letters = 64 // table.shape[1]
    shown = table.rename(index=str, columns=lambda name: textwrap.fill(str(name), letters))
    look = {"cmap": "Blues", "vmin": 0, "vmax": most, "edgecolor": STYLE["grid.color"]}
    down, across = (np.arange(n + 1) - 0.5 for n in shown.shape)  # a single cell has edges, too
    axes.pcolormesh(across, down, shown, **look)
    axes.set_xticks(across[1:] - 0.5, shown.columns)
    axes.set_yticks(down[1:] - 0.5, shown.index)
    for (row, column), value in np.ndenumerate(shown):
        if value > 0:
            text = number_text(value, digits=0) if value >= 1 else "<1"
            font = {"size": 10, "color": "white" if value > 0.55 * most else INK}
            axes.text(column, row, text, ha="center", va="center", **font)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    axes.set_xlabel(xlabel)
    _head(figure, title)
    return figure


def _together(frames: Tables, variables: Iterable[str]) -> pd.DataFrame:
    """Stack frames with these variables; the column `series` says which frame a row is from."""
    for name, frame in frames.items():
        check_names(f"variable of {name}", variables, frame)
    return pd.concat(frames, names=["series"]).reset_index("series")


def histograms(
    cohorts: Tables, variables: Sequence[str], title: str, bins: Any = None, **options: Any
) -> Figure:
    """Draw how numbers are distributed in each cohort, in per cent, a panel for each variable.

    Unless `bins` gives the edges of the bins, the axis is cut at the 0.5 and 99.5 percentiles of
    all cohorts together, and whole numbers fall into bins of whole width.
    """
    everyone, parts = _together(cohorts, variables), []
    for variable in variables:
        edges = _edges(everyone[variable]) if bins is None else bins
        panel = f"{variable}, {UNITS[variable]}" if variable in UNITS else variable
        for name, cohort in cohorts.items():
            shares = 100 * np.histogram(cohort[variable], edges)[0] / max(1, len(cohort))
            # A step reaches from its own edge to the next one; the outline begins and ends at 0.
            steps = pd.DataFrame({"": [edges[0], *edges], "value": [0, *shares, 0]})
            parts.append(steps.assign(series=name, panel=panel, unit="%"))
    table = pd.concat(parts).assign(lower=0, upper=lambda steps: steps["value"])
    look = {"drawstyle": "steps-post", "linewidth": 1.5}
    return lines(table, "", title, columns=2, shared=False, look=look, **options)


def _edges(values: pd.Series) -> np.ndarray:
    low, high = values.quantile([0.005, 0.995])
    if (values % 1 == 0).all():
        width = max(1, np.ceil((high - low) / 25))
        return np.arange(low - 0.5, high + width, width)
    return np.histogram_bin_edges(values, 25, (low, high))


def levels(cohorts: Tables, variables: Sequence[str], title: str) -> Figure:
    """Draw how often each cohort has each level, in per cent; rare ones of many share a bar."""
    everyone, parts = _together(cohorts, variables), []
    for variable in variables:
        taken = everyone[variable].astype("category")
        frequent = taken.value_counts().index
        if len(frequent) > MOST_LEVELS:
            others = f"{len(frequent) - FEW_LEVELS} others"
            taken = taken.cat.set_categories([*frequent[:FEW_LEVELS], others]).fillna(others)
        shares = 100 * pd.crosstab(taken, everyone["series"], normalize="columns", dropna=False)
        parts.append(shares[[*cohorts]].melt(ignore_index=False).assign(panel=variable))
    table = pd.concat(parts).rename(index=lambda level: textwrap.shorten(str(level), 18))
    table = table.rename_axis("level").reset_index()
    return bars(table, "level", title, "% of each group", columns=2, shared=False)


def overlap(groups: Mapping[str, pd.Series]) -> Figure:
    """Draw the propensity in groups; shares have a log scale, as overlap is about rare subjects.

    The title gives the percentage of propensities between 0.1 and 0.9, where estimation is easy by
    the rule of thumb of Crump et al. (2009).
    """
    everyone = pd.concat(groups)
    between = 100 * everyone.between(0.1, 0.9).mean()
    title = f"{between:.0f} % of the propensities are between 0.1 and 0.9"
    title = "Nobody is in these groups" if everyone.empty else title
    frames = {name: propensity.to_frame("propensity") for name, propensity in groups.items()}
    options = {"bins": np.linspace(0, 1, 21), "xlim": (0, 1), "ylim": (None, 110), "height": 2.2}
    scale = "linear" if everyone.empty else "log"
    return histograms(frames, ["propensity"], title, yscale=scale, **options)


def share_by_level(frame: pd.DataFrame, outcome: str, level: str, by: Sequence[str]) -> Figure:
    r"""Draw how often an outcome has a level, for each level of other variables, in per cent.

    A line reaches 1.96 standard errors to both sides of a share,
    :math:`\sqrt{s(1-s)/n}`; levels with fewer than 30 subjects are left out.
    """
    check_known(f"level of {outcome}", level, frame[outcome].cat.categories)
    reached = 100 * (frame[outcome] == level)
    parts = {name: reached.groupby(frame[name], observed=True).agg(["mean", "size"]) for name in by}
    table = pd.concat(parts, names=["panel", "level"]).reset_index()
    table = table[table["size"] >= 30]  # with fewer, the normal interval means little
    value = table["mean"]
    half = HALF_WIDTH * np.sqrt(value * (100 - value) / table["size"])
    lower, upper = (value - half).clip(lower=0), (value + half).clip(upper=100)
    table = table.assign(value=value, lower=lower, upper=upper)
    title, unit = f"Who has {outcome} {level}", "% of those of this level"
    return intervals(table, "level", title, unit, columns=2, line={"everyone": reached.mean()})


def trajectories(worlds: Tables, of: Mapping[str, str | None]) -> Figure:
    """Draw how a population moves: means and quartiles of numbers, shares of levels.

    `worlds` are long frames with a column `t`. Each variable in `of` has a panel: as a number if it
    maps to None, and otherwise as the share of the level that it maps to.
    """
    everyone = _together(worlds, ["t", *of])
    for variable, level in of.items():
        if level is not None:
            everyone[variable] = 100 * (everyone[variable] == level)
    table = everyone.melt(["series", "t"], list(of), "panel")
    table = table.groupby(["panel", "series", "t"], sort=False)["value"].describe().reset_index()
    names = {"mean": "value", "25%": "lower", "75%": "upper", "t": "step t"}
    table, level = table.rename(columns=names), table["panel"].map(of)
    table[["lower", "upper"]] = table[["lower", "upper"]].where(level.isna())
    table["unit"] = table["panel"].map(UNITS).where(level.isna(), "% of subjects").fillna("")
    table["panel"] += ": " + level.fillna("mean and middle 50 %")
    return lines(table, "step t", f"The same subjects: {_parting(_apart(table))}")


def _apart(table: pd.DataFrame) -> pd.Series:
    """Return how far apart worlds are, for each panel and step at which they differ."""
    spread = table.groupby(["panel", "step t"])["value"].agg(np.ptp)
    return spread[spread > 0]


def _parting(apart: pd.Series) -> str:
    steps = apart.index.get_level_values("step t")
    return f"the worlds part at step {min(steps)}" if len(steps) else "the worlds do not differ"


@drawn_quietly
def one_subject(worlds: Tables, subject: int, variables: Sequence[str]) -> Figure:
    """Follow one subject through worlds; steps at which the worlds differ are shaded."""
    everyone, visited = _together(worlds, ["subject", "t", *variables]), {}
    for name, world in worlds.items():
        check_known(f"subject of {name}", subject, world["subject"].unique())
    life = everyone[everyone["subject"] == subject].rename(columns={"t": "step t"})
    for variable in life[variables].select_dtypes(exclude="number"):
        life[variable], visited[variable] = pd.factorize(life[variable], sort=True)
    table = life.melt(["series", "step t"], variables, "panel")
    table["unit"] = table["panel"].map(UNITS).fillna("")
    apart, look = _apart(table), {"drawstyle": "steps-mid"}
    figure = lines(table, "step t", f"Subject {subject}: {_parting(apart)}", height=1.3, look=look)
    panels = dict(zip(variables, figure.axes, strict=True))
    for variable, step in apart.index:
        panels[variable].axvspan(step - 0.5, step + 0.5, color="#F6E7B4", linewidth=0, zorder=0)
    for variable, axes in panels.items():
        if variable in visited:
            axes.set_yticks(range(len(visited[variable])), visited[variable])
        axes.margins(y=0.2)
    return figure
