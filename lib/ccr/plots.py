"""Figures of chains, of their causal quantities, and of the scores of reasoners."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lib.ccr.graphs import Chain
from lib.ccr.scoring import CELLS, Scores
from lib.plots import DOTS, INK, REFERENCE, WIDTH, Drawing, Look, arrow, bars, drawn_quietly, lines
from lib.tables import number_text

#: The radius of a node, and the difference in height between successive nodes, in inches.
RADIUS, STEP = 0.17, 0.52


@drawn_quietly
def chain_and_cut_tree(chain: Chain, pns: Mapping[tuple[int, int], float]) -> Figure:
    """Draw a chain beside its cut tree, at the same heights, with the PNS of its edges."""
    places, tree = _places(chain), chain.cut_tree
    # If there are many arcs, they begin further left and lie closer, so that all have room.
    arcs = max(1, len(tree) - 2)
    start = float(np.clip(1.25 - 0.48 * arcs, -1.3, -0.35))
    spine = {node: (start, places[node][1]) for node in tree}
    bottom = places[chain.leaf][1]
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 0.75 - bottom), FigureClass=Drawing)
    # Arrows end at the circles; matplotlib takes the distance from the centre in points.
    edge: Look = {"color": "#7F8890", "shrinkA": 72 * RADIUS, "shrinkB": 72 * RADIUS}
    for cause, effect in chain.graph.edges:
        arrow(left, places[cause], places[effect], **edge)
    for cause, effect in chain.quantities:
        (x, y), (_, end) = spine[cause], spine[effect]
        # The further an arc reaches, the wider it is. Its middle lies half its bend off the chord.
        width = min(0.48, (1.25 - start) / arcs) * (tree.index(effect) - tree.index(cause) - 1)
        arrow(right, (x, y), (x, end), 2 * width / (end - y), **edge)
        look = {"bbox": {"fc": "white", "ec": "none", "pad": 0.8}, "size": 9, "ha": "center"}
        said = number_text(pns[cause, effect], digits=".3g")
        right.text(x + width, (y + end) / 2, said, va="center", **look)
    for axes, title, nodes in ((left, "causal graph", places), (right, "cut tree", spine)):
        axes.set(aspect="equal", xlim=(-WIDTH / 4, WIDTH / 4), ylim=(bottom - 0.25, 0.25))
        axes.set_title(title, loc="center")
        axes.set_axis_off()
        for node, place in nodes.items():
            edgecolor, face = ("C0", "#D6E8F5") if node in tree else (INK, "white")
            axes.add_patch(plt.Circle(place, RADIUS, fc=face, ec=edgecolor, lw=1.4, zorder=3))
            axes.text(*place, node, ha="center", va="center_baseline", size=10, zorder=4)
    return figure


def _places(chain: Chain) -> dict[int, tuple[float, float]]:
    """Put cutpoints on a vertical line, and the nodes between them on arcs beside it."""
    places = {}
    for i, (first, size) in enumerate(zip(chain.cut_tree, chain.n_per_bcc, strict=False)):
        for k in range(size):
            x = 0.75 * (-1) ** i * np.sin(np.pi * k / (size - 1))
            places[first + k] = (float(x), -STEP * (first + k))
    return places


def responses(quantities: pd.DataFrame) -> Figure:
    """Draw how often an effect is never true, follows its cause or is always true, in per cent."""
    always, follows = quantities["P(y | do not x)"], quantities["PNS"]
    shares = pd.DataFrame({"never": 1 - always - follows, "follows": follows, "always": always})
    shares.index = [f"{cause} → {effect}" for cause, effect in quantities.index]
    return _stacked(shares, f"The PNS of a pair: {extremes(shares['follows'])}", "% of samples")


def extremes(values: pd.Series, digits: int | str = ".2g", unit: str = "") -> str:
    """Write the least and the largest value, each with its label; if both read alike, only one."""
    whose = values.idxmin(), values.idxmax()
    ends = {number_text(values[k], digits=digits) + unit: k for k in whose}
    return " to ".join(f"{text} ({k})" if len(ends) > 1 else text for text, k in ends.items())


def _stacked(shares: pd.DataFrame, title: str, unit: str) -> Figure:
    table = shares.mul(100).melt(ignore_index=False, var_name="series").rename_axis("row")
    return bars(table.reset_index(), "row", title, unit, stacked=True, xlim=(0, 100))


def shares_below(values: Mapping[str, Sequence[float]], quantity: str, mark: float) -> Figure:
    """Draw the share of values below each value, on a logarithmic axis with a dashed mark."""
    parts = []
    for name, sample in values.items():
        x, below = np.sort([min(sample), *sample]), np.linspace(0, 100, len(sample) + 1)
        parts.append(pd.DataFrame({quantity: x, "value": below, "series": name}))
    parts.append(pd.DataFrame({quantity: mark, "value": [0, 100], "series": ""}))
    options = {"look": {"drawstyle": "steps-post"}, "looks": {"": REFERENCE}, "height": 2.6}
    options |= {"xscale": "log", "ylim": (0, 100)}
    medians = pd.Series({name: np.median(each) for name, each in values.items()})
    title = f"Median {quantity}: {extremes(medians)}"
    return lines(pd.concat(parts), quantity, title, "% of worlds below", **options)


@drawn_quietly
def convergence(errors: pd.DataFrame) -> Figure:
    """Draw the error of estimates by the number of samples, with its band, on logarithmic axes."""
    expected = errors.rename(columns={"low": "lower", "high": "upper", "expected": "value"})
    parts = {"expected": expected, "measured": errors[["error"]].set_axis(["value"], axis=1)}
    table = pd.concat(parts, names=["series", "number of samples n"]).reset_index()
    looks = {"expected": {"color": INK, "linewidth": 1}, "measured": DOTS}
    options = {"looks": looks, "height": 2.6, "xscale": "log", "yscale": "log"}
    least, most = (f"{errors['error'][n]:.2g} with {number_text(n)}" for n in errors.index[[0, -1]])
    title, unit = f"Error of the PNS: {least} samples, {most}", "error of the PNS"
    figure = lines(table, "number of samples n", title, unit, **options)
    figure.axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    return figure


@drawn_quietly
def estimates(scores: Mapping[str, Scores]) -> Figure:
    """Draw the ATE of answers against the exact ATE, a panel per reasoner and a dot per pair."""
    found = {name: one.quantities.query("quantity == 'ATE'") for name, one in scores.items()}
    table = pd.concat(found, names=["panel"]).reset_index("panel")
    table = table.rename(columns={"answers": "value", "exact": "exact ATE"})
    span = table["effect"] - table["cause"]
    whole = span == span.groupby([table["panel"], table["task"]]).transform("max")
    table["series"] = np.where(whole, "whole", "parts")
    options = {"look": DOTS, "columns": 3, "height": 1.8}
    off = (table["value"] - table["exact ATE"]).abs().groupby(table["panel"], sort=False).mean()
    title = f"Mean error: {extremes(off.dropna())}"
    figure = lines(table, "exact ATE", title, "ATE of the answers", **options)
    for axes in figure.axes:
        axes.axline((0, 0), slope=1, **REFERENCE)
    return figure


def taxonomy(scores: Mapping[str, Scores]) -> Figure:
    """Draw each reasoner's share of compositions in every cell of the taxonomy, in per cent."""
    shares = pd.DataFrame({name: one.table["share"] for name, one in scores.items()}).T
    shares.columns = [", ".join(cell) for cell in CELLS]
    right = (shares.iloc[:, 0] > 0.999).sum()
    title = f"Valid and consistent throughout: {right} of {len(shares)} reasoners"
    title = "No composition, in graphs of one component" if shares.isna().all(axis=None) else title
    return _stacked(shares, title, "% of compositions")
