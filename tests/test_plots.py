"""Figures show what the tables say, and leave matplotlib as they found it."""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from lib import plots
from lib.adult import EDUCATION_LEVELS, load_adult
from lib.errors import InputError


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.fixture
def world():
    """Two subjects, three steps; the second studies full time at step 1."""
    return pd.DataFrame(
        {
            "subject": [0, 0, 0, 1, 1, 1],
            "t": [0, 1, 2, 0, 1, 2],
            "studies": pd.Categorical(
                ["No", "No", "No", "No", "Full-time", "No"], ["No", "Day", "Full-time"]
            ),
            "income": [10.0, 20.0, 30.0, 30.0, 0.0, 50.0],
        }
    )


@pytest.fixture
def graph():
    edges = [("age", "education"), ("education", "income"), ("age", "income"), ("sex", "income")]
    return nx.DiGraph(edges)


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def tick_labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_figures_are_drawn_in_our_style_and_no_setting_is_left_behind(graph):
    before = dict(plt.rcParams)
    figure = plots.causal_graph(graph)
    assert dict(plt.rcParams) == before
    assert plt.get_fignums() == []
    assert figure.get_dpi() == plots.STYLE["figure.dpi"]
    figure.canvas.draw()


def test_bars_are_the_shares_of_the_table(adult):
    figure = plots.marginals({"Adult": adult}, ["marital-status"])
    bars = dict(
        zip(
            tick_labels(figure.axes[0]),
            [bar.get_width() for bar in figure.axes[0].patches],
            strict=True,
        )
    )
    assert bars["Married"] == pytest.approx(100 * 14_456 / 30_162)
    assert sum(bars.values()) == pytest.approx(100)


def test_ordered_levels_keep_their_order_and_many_levels_are_summed_up(adult):
    figure = plots.marginals({"Adult": adult}, ["education", "native-country"])
    education, country = figure.axes
    assert tick_labels(education)[::-1] == EDUCATION_LEVELS
    assert tick_labels(country)[::-1][0] == "United-States"
    assert tick_labels(country)[0] == "35 others"
    assert sum(bar.get_width() for bar in country.patches) == pytest.approx(100)


def test_histograms_of_two_cohorts_share_their_bins(adult):
    figure = plots.marginals({"all": adult, "half": adult[::2]}, ["age"])
    outlines = [patch.get_data() for patch in figure.axes[0].patches]
    assert len(outlines) == 4  # a line and a shade for each cohort
    for values, edges, _ in outlines:
        np.testing.assert_array_equal(edges, outlines[0].edges)
        assert 98 <= values.sum() <= 100  # the axis is cut at 0.5 % on each side


def test_whole_numbers_are_not_combed_by_the_bins(adult):
    figure = plots.marginals({"Adult": adult}, ["education-num"])
    edges = figure.axes[0].patches[0].get_data().edges
    np.testing.assert_array_equal(np.diff(edges), 1.0)
    assert (edges % 1 == 0.5).all()


def test_a_missing_variable_is_refused(adult, world):
    with pytest.raises(InputError, match="'studies' is not in Adult: expected one of age"):
        plots.marginals({"Adult": adult}, ["studies"])
    with pytest.raises(InputError, match="'age' is not in seen"):
        plots.trajectories({"seen": world}, ["age"])
    with pytest.raises(InputError, match="level '>1M' of income is unknown"):
        plots.share_by_level(adult, "income", ">1M", ["sex"])


def test_shares_by_level_are_means_and_rare_levels_are_left_out(adult):
    axes = plots.share_by_level(adult, "income", ">50K", ["workclass"]).axes[0]
    rich = 100 * (adult["income"] == ">50K")
    assert "Without-pay" not in tick_labels(axes)  # 14 people
    points = dict(zip(tick_labels(axes), axes.lines[1].get_xdata(), strict=True))
    assert points["Private"] == pytest.approx(rich[adult["workclass"] == "Private"].mean())
    assert axes.lines[0].get_xdata()[0] == pytest.approx(rich.mean())


def test_every_variable_of_a_graph_is_a_box_and_causes_stand_above_effects(graph):
    figure = plots.causal_graph(graph)
    boxes = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    assert set(boxes) == set(graph.nodes)
    assert all(boxes[cause][1] > boxes[effect][1] for cause, effect in graph.edges)
    assert len(figure.axes[0].patches) == graph.number_of_edges()


def test_edges_into_the_chosen_variable_stand_out(graph):
    figure = plots.causal_graph(graph, into="income")
    colours = [patch.get_edgecolor() for patch in figure.axes[0].patches]
    assert colours.count(to_rgba(plots.COLOURS[1])) == graph.in_degree("income")


@pytest.mark.parametrize("count", [3, 14])
def test_boxes_of_a_graph_do_not_overlap(count):
    names = [f"variable-number-{k}" for k in range(count)]
    graph = nx.DiGraph([(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])
    graph.add_nodes_from(["another-variable", "and-one-more-here", "and-the-last-one"])
    steps = nx.DiGraph([((name, -1), (name, 0)) for name in graph])
    steps.add_edges_from(((a, 0), (b, 0)) for a, b in graph.edges)
    for figure in (plots.causal_graph(graph), plots.causal_graph(steps)):
        figure.canvas.draw()
        boxes = [text.get_window_extent() for text in figure.axes[0].texts]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
            assert figure.bbox.contains(*box.min) and figure.bbox.contains(*box.max)


def test_the_previous_step_stands_to_the_left():
    graph = nx.DiGraph([(("age", -1), ("age", 0)), (("age", 0), ("income", 0))])
    figure = plots.causal_graph(graph, into="income")
    places = [(text.get_text(), text.get_position()) for text in figure.axes[0].texts]
    ages = [place for name, place in places if name == "age"]
    assert len(ages) == 2 and ages[0][1] == ages[1][1] and ages[0][0] != ages[1][0]


def test_a_cycle_and_an_unknown_variable_are_refused(graph):
    with pytest.raises(InputError, match="no cycle: found a → b"):
        plots.causal_graph(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(InputError, match="'wealth' is not in the graph"):
        plots.causal_graph(graph, into="wealth")


def test_fit_quality_draws_both_values_of_every_published_variable():
    published = pd.DataFrame(
        {"variable": ["education", "hours"], "measure": ["AUC", "R²"], "value": [0.68, 0.28]}
    )
    ours = pd.DataFrame(
        {
            "variable": ["age", "hours", "education"],
            "measure": ["R²", "R²", "AUC"],
            "value": [0.0, 0.3, 0.7],
        }
    )
    figure = plots.fit_quality(ours, published)
    drawn = {
        (tick_labels(axes)[0], line.get_label()): line.get_xdata()[0]
        for axes in figure.axes
        for line in axes.lines
    }
    assert drawn == {
        ("education", "paper"): 0.68,
        ("education", "this run"): 0.7,
        ("hours", "paper"): 0.28,
        ("hours", "this run"): 0.3,
    }


def test_trajectories_are_means_quantiles_and_shares(world):
    figure = plots.trajectories({"seen": world}, ["income", ("studies", "Full-time")])
    income, studies = figure.axes
    assert income.lines[0].get_ydata().tolist() == [20.0, 10.0, 40.0]
    assert studies.lines[0].get_ydata().tolist() == [0.0, 50.0, 0.0]
    band = income.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (5.0, 45.0)  # quartiles of (20, 0) and of (30, 50)


def test_one_subject_shades_the_steps_at_which_worlds_differ(world):
    other = world.copy()
    other.loc[4, "studies"] = "Day"
    other.loc[[4, 5], "income"] = 7.0
    figure = plots.one_subject({"a": world, "b": other}, 1, ["studies", "income"])
    studies, income = figure.axes
    assert [patch.get_x() for patch in studies.patches] == [0.5]
    assert [patch.get_x() for patch in income.patches] == [0.5, 1.5]
    assert tick_labels(studies) == ["No", "Day", "Full-time"]
    assert studies.lines[0].get_ydata().tolist() == [0, 2, 0]


def test_a_subject_needs_two_worlds_and_a_life_in_both(world):
    with pytest.raises(InputError, match="two worlds: found 1"):
        plots.one_subject({"a": world}, 0, ["income"])
    with pytest.raises(InputError, match="subject 9 does not live in world 'a'"):
        plots.one_subject({"a": world, "b": world}, 9, ["income"])


def test_the_heat_map_says_per_cent_and_leaves_the_unchanged_empty():
    shares = pd.DataFrame({0: [0.0, 0.0], 1: [0.004, 0.256]}, index=["age", "studies"])
    assert texts(plots.changed(shares)) == ["<1", "26"]


def test_overlap_draws_the_share_of_each_group():
    figure = plots.overlap({"a": pd.Series([0.02, 0.02, 0.98, 0.98]), "b": pd.Series([0.5])})
    shares, _, _ = figure.axes[0].patches[0].get_data()
    assert shares[0] == 50 and shares[-1] == 50 and shares.sum() == 100
