"""Pictures of chains and scores show what the tables say."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from figures import message

from lib.ccr import generate, plots
from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import Chain
from lib.ccr.reasoners import REASONERS
from lib.ccr.scoring import CELLS, Scores
from lib.ccr.worlds import random_world


@pytest.fixture(scope="module")
def chain():
    return Chain([3, 5, 2], ["cycle", "wheel", "cycle"])


@pytest.fixture(scope="module")
def quantities(chain):
    return exact_quantities(random_world(chain, "random", seed=1, name="a"))


@pytest.fixture(scope="module")
def scores():
    tasks = generate("candy_party", [3, 3, 3], n_tasks=3, n_samples=60, least_pns=0.05, seed=1)
    return {
        name: Scores(tasks, REASONERS[name].answers(tasks), n_resamples=10)
        for name in ("perfect", "always yes", "echoes the intervention")
    }


def test_every_edge_is_drawn_and_written_on(chain, quantities):
    before = dict(plt.rcParams)
    figure = plots.chain_and_cut_tree(chain, quantities["PNS"])
    figure.canvas.draw()
    left, right = figure.axes
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == before
    assert [axes.get_title() for axes in figure.axes] == ["causal graph", "cut tree"]
    rings = [
        [p.get_edgecolor() for p in axes.patches if isinstance(p, plt.Circle)]
        for axes in figure.axes
    ]
    circles = [len(colours) for colours in rings]
    assert circles == [chain.n_nodes, len(chain.cut_tree)]
    assert rings[0].count(rings[1][0]) == len(chain.cut_tree), "cutpoints stand out"
    n_arrows = [len(axes.patches) - n for axes, n in zip(figure.axes, circles, strict=True)]
    assert n_arrows == [chain.graph.number_of_edges(), len(chain.quantities)]
    written = {text.get_text() for text in right.texts}
    assert {f"{pns:.3g}" for pns in quantities["PNS"]} <= written
    assert {text.get_text() for text in left.texts} == {str(n) for n in range(chain.n_nodes)}
    long = Chain([2] * 7)
    _, right = plots.chain_and_cut_tree(long, dict.fromkeys(long.quantities, 1e-5)).axes
    assert {text.get_text() for text in right.texts} > {"1·10⁻⁵"}
    middles = [text.get_position()[0] for text in right.texts]
    assert max(middles) < right.get_xlim()[1] - 0.2, "all of the widest is seen"


def test_nodes_have_places_of_their_own():
    for sizes in ([2], [8, 6, 8], [3] * 6, [2, 9, 2]):
        chain = Chain(sizes, "wheel")
        places = np.array([plots._places(chain)[node] for node in range(chain.n_nodes)])
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
        assert apart[~np.eye(len(places), dtype=bool)].min(initial=1) > 2 * plots.RADIUS
        for cause, effect in chain.graph.edges:
            assert places[cause, 1] > places[effect, 1], "a cause stands above its effect"


def test_bars_of_responses_fill_the_whole(quantities):
    figure = plots.responses(quantities)
    (axes,), pns = figure.axes, quantities["PNS"]
    low, high = (f"{pns[end]:.2g} ({end[0]} → {end[1]})" for end in (pns.idxmin(), pns.idxmax()))
    assert message(figure) == f"The PNS of a pair: {low} to {high}"
    widths = np.array([bar.get_width() for bar in axes.patches]).reshape(3, len(quantities))
    pairs = [f"{cause} → {effect}" for cause, effect in quantities.index]
    assert [label.get_text() for label in axes.get_yticklabels()] == pairs
    assert widths.sum(axis=0) == pytest.approx(100)
    starts = np.array([bar.get_x() for bar in axes.patches]).reshape(3, len(quantities))
    seen, ends = widths[1:] > 0, widths.cumsum(axis=0)[:2]  # what has no width is nowhere
    assert starts[1:][seen] == pytest.approx(ends[seen]), "one after the other"
    assert widths[1] == pytest.approx(100 * quantities["PNS"].to_numpy())


def test_distribution_functions_end_at_a_hundred_per_cent():
    figure = plots.shares_below({"few": [0.1, 0.4, 0.2], "one": [0.01]}, "PNS", mark=0.05)
    assert message(figure) == "Median PNS: 0.01 (one) to 0.2 (few)"
    same = plots.shares_below({"few": [0.1, 0.3], "one": [0.2]}, "PNS", mark=0.05)
    assert message(same) == "Median PNS: 0.2", "no order among equal ones"
    few, one, mark = figure.axes[0].lines
    assert few.get_ydata()[-1] == one.get_ydata()[-1] == 100
    assert few.get_drawstyle() == "steps-post"
    np.testing.assert_allclose(
        few.get_xydata(), [[0.1, 0], [0.1, 100 / 3], [0.2, 200 / 3], [0.4, 100]]
    )
    assert set(mark.get_xdata()) == {0.05}


def test_errors_are_drawn_within_their_band():
    index = pd.Index([100, 400], name="n")
    table = pd.DataFrame({"error": [0.05, 0.02], "expected": [0.04, 0.02]}, index=index)
    table = table.assign(low=0.9 * table["expected"], high=1.1 * table["expected"])
    figure = plots.convergence(table)
    assert message(figure) == "Error of the PNS: 0.05 with 100 samples, 0.02 with 400"
    axes = figure.axes[0]
    assert axes.lines[-1].get_ydata().tolist() == [0.05, 0.02]
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0.9 * 0.02, 1.1 * 0.04))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_estimates_of_every_reasoner_have_a_panel(scores):
    figure = plots.estimates(scores)
    figure.canvas.draw()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.get_title("left").replace("\n", " ") for axes in panels]
    assert titles == list(scores)
    told = r"Mean error: 0\.0\d+ \(perfect\) to 0\.\d+ \(echoes the intervention\)"
    assert re.fullmatch(told, message(figure).replace("\n", " "))
    for axes in panels:
        parts, whole, _ = axes.lines
        assert (len(parts.get_xdata()), len(whole.get_xdata())) == (3 * 5, 3 * 1)
    parts, whole, _ = panels[2].lines
    assert set(parts.get_ydata()) == set(whole.get_ydata()) == {1.0}, "an echo believes in effects"


def test_bars_of_the_taxonomy_are_its_shares(scores):
    figure = plots.taxonomy(scores)
    assert message(figure) == "Valid and consistent throughout: 1 of 3 reasoners"
    (axes,) = figure.axes
    widths = np.array([bar.get_width() for bar in axes.patches]).reshape(len(CELLS), len(scores))
    assert widths.sum(axis=0) == pytest.approx(100)
    at = dict(zip(scores, widths.T, strict=True))
    assert at["perfect"][CELLS.index(("valid", "consistent"))] == 100
    assert at["always yes"][CELLS.index(("invalid", "undefined"))] == 100
    assert at["echoes the intervention"][CELLS.index(("invalid", "consistent"))] == 100
