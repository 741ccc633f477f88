"""Pictures of chains, of causal quantities, and of what reasoners make of them.

In the style of :mod:`lib.plots`. Root, cutpoints and leaf are coloured, because
effects compose along them.
"""

import textwrap
from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lib.ccr.graphs import Chain
from lib.ccr.scoring import CELLS, Scores
from lib.plots import COLOURS, FAINT, INK, WIDTH, arrow, drawn_quietly

#: Inches: the radius of a node, and the height of one edge along the chain.
RADIUS, STEP = 0.17, 0.62

#: Arrows end at the circles; matplotlib counts this in points.
EDGE = {"colour": "#8A9299", "shrinkA": 72 * RADIUS, "shrinkB": 72 * RADIUS}


@drawn_quietly
def chain_and_cut_tree(chain: Chain, pns: Mapping[tuple[int, int], float] | None = None) -> Figure:
    """Draw a chain of components and, beside it, its commutative cut tree.

    Causes above their effects; root, cutpoints and leaf at the same height in
    both pictures. Components bulge to the right and to the left in turns.

    Parameters
    ----------
    chain : Chain
    pns : mapping of pairs to float, optional
        Written on the edges of the cut tree.

    Examples
    --------
    >>> figure = chain_and_cut_tree(Chain([3, 3]))
    >>> [axes.get_title() for axes in figure.axes]
    ['causal graph', 'cut tree']
    """
    places = _places(chain)
    bottom = places[chain.leaf][1]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(WIDTH, 0.75 - bottom), layout="constrained", sharey=True
    )
    for axes, title in ((left, "causal graph"), (right, "cut tree")):
        axes.set_title(title, loc="center")
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(-WIDTH / 4, WIDTH / 4)
        axes.set_ylim(bottom - 0.25, 0.25)
    for cause, effect in chain.graph.edges:
        arrow(left, places[cause], places[effect], **EDGE)
    spine = {node: (-0.35, places[node][1]) for node in chain.cut_tree}
    for cause, effect in nx.DiGraph(chain.quantities).edges:
        skipped = chain.cut_tree.index(effect) - chain.cut_tree.index(cause) - 1
        (x, y), (_, end) = spine[cause], spine[effect]
        # The further an arc reaches, the wider it is; a chord's middle is half its bend away.
        width = 0.48 * skipped
        arrow(right, (x, y), (x, end), 2 * width / (end - y), **EDGE)
        if pns is not None:
            text = f"{pns[cause, effect]:.2g}"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            right.text(x + width, (y + end) / 2, text, size=9, ha="center", va="center", bbox=box)
    for axes, nodes in ((left, places), (right, spine)):
        for node, place in nodes.items():
            _circle(axes, place, node, node in chain.cut_tree)
    return figure


@drawn_quietly
def responses(quantities: pd.DataFrame) -> Figure:
    """Draw how often each effect never, or always, is true, or follows its cause.

    One bar a pair, in per cent of all samples.

    Parameters
    ----------
    quantities : pandas.DataFrame
        Of one world, as :func:`lib.ccr.exact.exact_quantities` gives them.

    Examples
    --------
    >>> from lib.ccr.exact import exact_quantities
    >>> from lib.ccr.worlds import World
    >>> world = World(Chain([2]), ["and", "and"], [0.5, 0.5])
    >>> [float(bar.get_width()) for bar in responses(exact_quantities(world)).axes[0].patches]
    [50.0, 50.0, 0.0]
    """
    always, follows = quantities["P(y | do not x)"], quantities["PNS"]
    shares = {
        "never": 100 * (1 - always - follows),
        "follows": 100 * follows,
        "always": 100 * always,
    }
    pairs = [f"{cause} → {effect}" for cause, effect in quantities.index]
    return _stacked_bars(shares, pairs, (FAINT, COLOURS[0], COLOURS[4]), "% of samples", 3)


@drawn_quietly
def shares_below(values: Mapping[str, Sequence[float]], quantity: str, mark: float) -> Figure:
    """Draw distribution functions of a positive quantity, on a logarithmic axis.

    For every value, the share of values that are smaller, in per cent.

    Parameters
    ----------
    values : mapping of str to sequence of float
        Name in the legend → values.
    quantity : str
        What they are.
    mark : float
        Drawn as a dashed line.

    Examples
    --------
    >>> figure = shares_below({"and": [0.1, 0.2]}, "PNS", mark=0.01)
    >>> figure.axes[0].get_xlabel()
    'PNS'
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0), layout="constrained")
    for position, (name, sample) in enumerate(values.items()):
        line = ("-", "--", ":", "-.")[position % 4]  # for readers who see no colours
        axes.ecdf(np.asarray(sample), label=name, linestyle=line)
    axes.axvline(mark, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
    axes.set_xlabel(quantity)
    axes.set_ylabel("% of worlds below")
    axes.grid()
    figure.legend(loc="outside upper center", ncols=2)
    return figure


@drawn_quietly
def convergence(errors: pd.DataFrame) -> Figure:
    """Draw the error of estimates against the number of samples, with the expected band.

    Both axes logarithmic: an error that falls as one over the root of n is a
    straight line.

    Parameters
    ----------
    errors : pandas.DataFrame
        As :func:`lib.ccr.agreement.convergence` returns it.

    Examples
    --------
    >>> table = pd.DataFrame(
    ...     {"error": [0.1], "expected": [0.1], "low": [0.09], "high": [0.11]}, index=[25]
    ... )
    >>> convergence(table).axes[0].get_xlabel()
    'number of samples n'
    """
    figure, axes = plt.subplots(figsize=(WIDTH, 3.0), layout="constrained")
    axes.fill_between(errors.index, errors["low"], errors["high"], color=FAINT, label="by chance")
    axes.plot(errors.index, errors["expected"], color=INK, linewidth=1, label="expected")
    axes.plot(errors.index, errors["error"], "o", color=COLOURS[1], label="measured")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if axis is axes.yaxis else (1,)))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("number of samples n")
    axes.set_ylabel("error of the PNS")
    axes.grid()
    figure.legend(loc="outside upper center", ncols=3)
    return figure


@drawn_quietly
def estimates(scores: Mapping[str, Scores]) -> Figure:
    """Draw the ATE that answers amount to against the exact one, a panel for each reasoner.

    One dot for every pair of every task; root and leaf stand out. Right is the
    dashed diagonal.

    Parameters
    ----------
    scores : mapping of str to Scores
        Of reasoners, by name.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> tasks = generate("candy_party", n_samples=10)
    >>> scores = Scores(tasks, [task.labels for task in tasks.tasks], n_resamples=10)
    >>> figure = estimates({"perfect": scores})
    >>> figure.axes[0].get_title("left")
    'perfect'
    """
    rows = -(-len(scores) // 2)
    figure, panels = plt.subplots(
        rows,
        2,
        figsize=(WIDTH, 0.5 + 2.1 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, (name, one) in zip(panels.flat, scores.items(), strict=False):
        found = one.quantities[one.quantities["quantity"] == "ATE"]
        ends = {task.number: task.world.chain.global_quantity for task in one.tasks.tasks}
        pairs = zip(found["task"], found["cause"], found["effect"], strict=True)
        whole = np.array([ends[task] == (cause, effect) for task, cause, effect in pairs])
        axes.axline((0, 0), slope=1, color=INK, linewidth=1, linestyle="--")
        for those, colour, label in ((~whole, COLOURS[5], "parts"), (whole, COLOURS[1], "whole")):
            dots = found[those]
            axes.plot(dots["exact"], dots["answers"], "o", color=colour, markersize=3, label=label)
        axes.set_title(textwrap.fill(name, 17))  # what fits above a panel
        axes.grid()
    for axes in panels.flat[len(scores) :]:
        axes.set_visible(False)
    for axes in panels.flat[len(scores) - 2 : len(scores)]:
        axes.tick_params(labelbottom=True)  # nothing below it shows its ticks
    figure.supxlabel("exact ATE", size=10.5)
    figure.supylabel("ATE of the answers", size=10.5)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


@drawn_quietly
def taxonomy(scores: Mapping[str, Scores]) -> Figure:
    """Draw which share of its compositions is valid or not, consistent or not.

    One bar for each reasoner, in per cent of compositions, averaged over tasks.

    Parameters
    ----------
    scores : mapping of str to Scores
        Of reasoners, by name.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> tasks = generate("candy_party", n_samples=10)
    >>> scores = Scores(tasks, [task.labels for task in tasks.tasks], n_resamples=10)
    >>> figure = taxonomy({"perfect": scores})
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['perfect']
    """
    table = pd.DataFrame({name: 100 * one.table["share"] for name, one in scores.items()})
    shares = {f"{ex}, {inside}": table.iloc[k] for k, (ex, inside) in enumerate(CELLS)}
    # Blue is valid, orange invalid; the paler, the less consistent.
    colours = [COLOURS[0], COLOURS[5], "#CFE3F2", COLOURS[1], COLOURS[4], "#F6E3BF"]
    return _stacked_bars(shares, list(scores), colours, "% of compositions", 2)


def _stacked_bars(
    shares: Mapping[str, pd.Series], rows: list[str], colours: Sequence[str], label: str, ncols: int
) -> Figure:
    """Draw a bar for each row, of parts in per cent, the first row at the top."""
    height = 0.6 + 0.3 * -(-len(shares) // ncols) + 0.32 * len(rows)
    figure, axes = plt.subplots(figsize=(WIDTH, height), layout="constrained")
    start = np.zeros(len(rows))
    for (name, share), colour in zip(shares.items(), colours, strict=True):
        axes.barh(range(len(rows)), share, 0.7, left=start, color=colour, label=name)
        start = start + share.to_numpy()
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel(label)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper center", ncols=ncols)
    return figure


def _places(chain: Chain) -> dict[int, tuple[float, float]]:
    """Put cutpoints on a vertical line, and the nodes between them on arcs beside it."""
    places, top, side = {0: (0.0, 0.0)}, 0.0, 1
    for first, size in zip(chain.cut_tree, chain.n_per_bcc, strict=False):
        height = STEP * max(1.0, 0.8 * (size - 1))
        for place in range(1, size):
            down = place / (size - 1)
            x = side * 0.75 * np.sin(np.pi * down) if place < size - 1 else 0.0
            places[first + place] = (float(x), top - height * down)
        if size > 2:
            side = -side
        top -= height
    return places


def _circle(axes: Axes, place: tuple, node: int, in_cut_tree: bool) -> None:
    colour = COLOURS[0] if in_cut_tree else INK
    face = "#D6E8F5" if in_cut_tree else "white"
    axes.add_patch(
        plt.Circle(place, RADIUS, facecolor=face, edgecolor=colour, linewidth=1.4, zorder=3)
    )
    axes.text(*place, str(node), ha="center", va="center_baseline", size=10, zorder=4)
