"""Figures show what the tables say, and leave matplotlib as they found it."""

import io
from itertools import permutations
from xml.etree import ElementTree

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from figures import crowded, message, places
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_rgba
from matplotlib.container import BarContainer, ErrorbarContainer

from lib import plots
from lib.adult import EDUCATION_LEVELS, load_adult
from lib.ccr.theme import themes
from lib.effects.estimator_files import COVERAGE, STRESS_GRIDS, labels
from lib.errors import InputError
from lib.income import mechanisms


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


@pytest.fixture
def every_shape(graph):
    """One drawing of each shape, as a function without arguments."""
    tidy = pd.DataFrame({"row": ["a", "b"], "t": [0, 1], "value": [1.0, 2.0], "series": ["x", "y"]})
    tidy = tidy.assign(lower=0.5, upper=3.0)
    return [
        lambda: plots.intervals(tidy, "row", "Ranges", line={"one": 1.0}),
        lambda: plots.lines(tidy.rename(columns={"series": "panel"}), "t", "A band", columns=2),
        lambda: plots.bars(tidy, "row", "Bars", stacked=True),
        lambda: plots.histograms({"all": tidy[["value"]]}, ["value"], "Steps"),
        lambda: plots.causal_graph(graph, into="income"),
        lambda: plots.heat_map(tidy[["value", "lower"]], "Heat"),
    ]


def written(figure):
    """The bytes of a figure, as a notebook saves it: as SVG, and for Jupyter as PNG, too."""
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return figure._repr_svg_(), file.getvalue()


def test_figures_are_drawn_in_our_style_and_no_setting_is_left_behind(every_shape):
    before, converters = dict(plt.rcParams), dict(mpl.units.registry)
    for draw in every_shape:
        figure = draw()
        assert dict(plt.rcParams) == before
        assert mpl.units.registry == converters
        assert plt.get_fignums() == []
        assert figure.get_dpi() == plots.STYLE["figure.dpi"]
        assert figure.get_figwidth() == plots.WIDTH
        figure.canvas.draw()


def test_the_bytes_of_a_figure_are_the_same_twice_whatever_matplotlib_is_set_to(every_shape):
    for draw in every_shape:
        first = written(draw())
        assert written(draw()) == first
        other = {
            "font.size": 30,
            "xtick.color": "red",
            "lines.linewidth": 9,
            "svg.fonttype": "none",
            "savefig.bbox": "tight",
        }
        with plt.rc_context(other):
            assert written(draw()) == first


def test_a_notebook_has_the_svg_and_it_is_small(every_shape):
    for draw in every_shape:
        shown, _ = DisplayFormatter().format(draw())
        drawing = ElementTree.fromstring(shown["image/svg+xml"])
        assert drawing.get("width") == f"{72 * plots.WIDTH:g}pt", "nothing is cut off"
        assert "<text" not in shown["image/svg+xml"], "type needs no font of the reader"
        assert "dc:date" not in shown["image/svg+xml"]
        assert len(shown["image/svg+xml"]) < 100_000


def test_thousands_of_points_are_an_image_in_the_svg():
    few, many = (
        plots.lines(pd.DataFrame({"t": np.arange(n), "value": 1.0}), "t", "", look=plots.DOTS)
        for n in (100, 5_000)
    )
    assert "<image" not in few.svg() and "<image" in many.svg()
    assert len(many.svg()) < 100_000


def test_every_shape_but_a_graph_has_a_title_and_tells_its_series_apart(every_shape):
    titles, names = [], []
    for draw in every_shape:
        for legend in draw().legends:
            titles.append(legend.get_title().get_text())
            names.append([text.get_text() for text in legend.get_texts()])
    assert titles == ["Ranges", "A band", "Bars", "Steps", "Heat"]
    assert names == [["x", "y"], [], ["x", "y"], [], []], "one series needs no name"
    assert texts(every_shape[0]()) == ["one"], "in a single panel, a line is named beside it"


def of_legend(figure):
    """The colour of every series, by what the legend says."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    colours = [handle[0].get_facecolor() if isinstance(handle, BarContainer)
               else (handle[0] if isinstance(handle, ErrorbarContainer) else handle).get_color()
               for handle in handles]  # fmt: skip
    return {name: to_rgba(colour) for name, colour in zip(names, colours, strict=True)}


@pytest.mark.parametrize(
    "names", [*permutations(["No studies", "Full-time studies at t = 1", "new"])]
)
def test_an_arm_has_its_colour_in_every_shape_whatever_stands_beside_it(names):
    tidy = pd.DataFrame({"row": [*"aaa"], "t": 0, "value": 1.0, "series": names})
    frames = {name: pd.DataFrame({"propensity": [0.2, 0.4]}) for name in names}
    for figure in (
        plots.lines(tidy, "t", ""),
        plots.intervals(tidy, "row", ""),
        plots.bars(tidy, "row", ""),
        plots.overlap({name: frame["propensity"] for name, frame in frames.items()}),
    ):
        found = of_legend(figure)
        assert found["No studies"] == to_rgba("#0072B2")
        assert found["Full-time studies at t = 1"] == to_rgba(plots.VERMILION)
        assert len(set(found.values())) == 3, "the third takes neither colour"


def test_what_may_stand_in_one_figure_has_colours_that_differ():
    arms = mechanisms.NO_STUDIES, mechanisms.EVENING, mechanisms.DAY, mechanisms.FULL_TIME
    for kind in (arms, themes(), ["as seen", *arms[::3]], ["this run", "paper"]):
        own = plots.colours_of(kind)
        none = [name for name in kind if not any(map(name.startswith, plots.COLOUR_OF))]
        assert none == [], "each has a colour in lib/colours.yml"
        assert len(set(own.values())) == len(own), f"two of {[*own]} have one colour"
    families = plots.colours_of(["S-learner", "T-learner", "X-learner", "R-learner", "DR-learner"])
    assert len(set(families.values())) == 5
    for name in [*labels().values(), *labels(STRESS_GRIDS).values(), *labels(COVERAGE).values()]:
        assert any(map(name.startswith, plots.COLOUR_OF)), f"{name} has a colour in lib/colours.yml"
    many = plots.colours_of([*map(str, range(20))])
    assert set(many.values()) == set(plots.COLOURS)


def test_intervals_reach_from_lower_to_upper_and_values_are_where_they_belong():
    table = pd.DataFrame(
        {"learner": ["T", "S", "T"], "series": ["a", "a", "b"], "value": [0.3, 0.1, 0.2]}
    )
    table = table.assign(lower=[0.2, 0.15, np.nan], upper=[0.5, 0.4, np.nan])
    axes = plots.intervals(table, "learner", "R²").axes[0]
    assert tick_labels(axes) == ["T", "S"]
    assert axes.yaxis_inverted()
    drawn = {
        container.get_label(): (container[0].get_xydata().tolist(), container[2])
        for container in axes.containers
    }
    # In a row with dots of two series, the second stands below the first.
    assert [drawn[name][0] for name in "ab"] == [[[0.3, -0.15], [0.1, 0.85]], [[0.2, 0.15]]]
    (ranges,) = drawn["a"][1]
    ends = [segment[:, 0].tolist() for segment in ranges.get_segments()]
    # A value below its range has a range all the same: it starts at the value.
    np.testing.assert_allclose(ends, [[0.2, 0.5], [0.1, 0.4]])


def test_marks_of_a_logarithmic_axis_are_numbers_that_do_not_overlap():
    table = pd.DataFrame({"learner": [*"ST"], "n": [900, 40_000], "value": [900.0, 40_000.0]})
    for figure in (
        plots.intervals(table, "learner", "Errors", xscale="log"),
        plots.lines(table, "n", "Errors", xscale="log"),
    ):
        axis, ends = figure.axes[0].xaxis, figure.axes[0].get_xlim()
        shown = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        marks = [text.get_text() for at, text in shown if ends[0] <= at <= ends[1]]
        assert marks == ["1\u202f000", "3\u202f000", "10\u202f000", "30\u202f000"]
        assert {one.get_text() for one in axis.get_minorticklabels()} <= {""}
    wide = plots.lines(table.assign(n=[1e-6, 1]), "n", "Errors", xscale="log").axes[0].xaxis
    assert np.ptp(np.log10(wide.get_majorticklocs()) % 1) < 1e-9, "powers of ten alone"
    own = {"xticks": [900, 40_000], "xticklabels": ["few", "many"]}
    axes = plots.lines(table, "n", "Errors", xscale="log", **own).axes[0]
    assert [one.get_text() for one in axes.get_xticklabels()] == ["few", "many"]


def test_marks_of_an_axis_on_both_sides_of_zero_are_numbers_that_do_not_overlap():
    table = pd.DataFrame({"n": [-12_000, 0, 12_000], "value": [0.0, 50.0, 100.0]})
    figure = plots.lines(table, "n", "Errors", xscale="symlog")
    marks = [one.get_text() for one in figure.axes[0].get_xticklabels()]
    assert marks == ["−10\u202f000", "−100", "−1", "0", "1", "100", "10\u202f000"]
    assert crowded(figure) == []


def test_a_dollar_in_a_name_is_a_dollar_and_begins_no_formula():
    table = pd.DataFrame({"row": ["$10_ to $20^", "a$\\frac$"], "value": [1.0, 2.0], "unit": "$^$"})
    for draw, more in ((plots.intervals, {}), (plots.bars, {"series": ["$x$", "$_$"]})):
        figure = draw(table.assign(panel="$\\p$", **more), "row", "From $1^ to $2^")
        assert tick_labels(figure.axes[0]) == ["$10_ to $20^", "a$\\frac$"]
        assert not any(text.get_parse_math() for text in places(figure))


def test_panels_of_one_unit_share_their_scale_and_others_do_not():
    table = pd.DataFrame({"t": [0, 1] * 3, "panel": np.repeat([*"abc"], 2)})
    table = table.assign(value=[0, 1, 0, 5, 0, 1_000], unit=np.repeat(["%", "%", "dollars"], 2))
    a, b, c = plots.lines(table, "t", "Shared").axes
    assert a.get_ylim() == b.get_ylim() != c.get_ylim()
    assert [axes.get_ylabel() for axes in (a, b, c)] == ["%", "%", "dollars"]
    assert [axes.get_title("left") for axes in (a, b, c)] == [*"abc"]
    alone = plots.lines(table, "t", "Apart", shared=False).axes
    assert alone[0].get_ylim() != alone[1].get_ylim()


def test_dots_have_bars_and_lines_have_bands():
    table = pd.DataFrame({"t": [0, 1], "value": [1.0, 2.0], "lower": 0.0, "upper": 3.0})
    line, dots = (plots.lines(table, "t", "", look=look).axes[0] for look in ({}, plots.DOTS))
    assert (len(line.collections), len(line.containers)) == (1, 0)
    assert (len(dots.collections), len(dots.containers)) == (1, 1)
    band = line.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0, 3)
    assert [s[:, 1].tolist() for s in dots.containers[0][2][0].get_segments()] == [[0, 3], [0, 3]]


def test_bars_stand_beside_or_after_each_other_in_the_order_of_the_table():
    table = pd.DataFrame({"who": [*"bbaa"], "series": [*"yxyx"], "value": [1.0, 2.0, 3.0, 4.0]})
    stacked = plots.bars(table, "who", "", stacked=True).axes[0]
    assert tick_labels(stacked) == ["b", "a"]
    assert [(bar.get_x(), bar.get_width()) for bar in stacked.patches] == [
        (0, 1), (0, 3), (1, 2), (3, 4)
    ]  # fmt: skip
    beside = plots.bars(table, "who", "").axes[0]
    assert [bar.get_x() for bar in beside.patches] == [0, 0, 0, 0]
    y_of_b, y_of_a, x_of_b, x_of_a = (bar.get_y() + bar.get_height() / 2 for bar in beside.patches)
    assert -0.5 < y_of_b < 0 < x_of_b < 0.5 < y_of_a < 1 < x_of_a < 1.5


def test_bars_are_the_shares_of_the_table(adult):
    figure = plots.levels({"Adult": adult}, ["marital-status"], "Adult")
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
    figure = plots.levels({"Adult": adult}, ["education", "native-country"], "Adult")
    education, country = figure.axes
    assert education.yaxis_inverted() and country.yaxis_inverted()
    assert tick_labels(education) == EDUCATION_LEVELS
    assert tick_labels(country)[0] == "United-States"
    assert tick_labels(country)[-1] == "35 others"
    assert sum(bar.get_width() for bar in country.patches) == pytest.approx(100)


def test_histograms_of_two_cohorts_share_their_bins(adult):
    figure = plots.histograms({"all": adult, "half": adult[::2]}, ["age"], "Age")
    assert figure.axes[0].get_ylabel() == "%"
    assert {line.get_drawstyle() for line in figure.axes[0].lines} == {"steps-post"}
    outlines = [line.get_xydata() for line in figure.axes[0].lines]
    assert len(outlines) == len(figure.axes[0].collections) == 2  # each with a shade
    for outline in outlines:
        np.testing.assert_array_equal(outline[:, 0], outlines[0][:, 0])
        # A step has the height of its left end; the axis is cut at 0.5 % on each side.
        assert 98 <= outline[1:-1, 1].sum() <= 100
        assert outline[0, 1] == outline[-1, 1] == 0


def test_whole_numbers_are_not_combed_by_the_bins(adult):
    figure = plots.histograms({"Adult": adult}, ["education-num"], "Education")
    edges = figure.axes[0].lines[0].get_xdata()[1:]
    np.testing.assert_array_equal(np.diff(edges), 1.0)
    assert (edges % 1 == 0.5).all()


def test_a_missing_variable_is_refused(adult, world):
    with pytest.raises(InputError, match="of Adult 'studies' is unknown: expected one of age"):
        plots.levels({"Adult": adult}, ["studies"], "Adult")
    with pytest.raises(InputError, match="of Adult 'studies' is unknown: expected one of age"):
        plots.histograms({"Adult": adult}, ["studies"], "Adult")
    with pytest.raises(InputError, match="variable of seen 'age' is unknown"):
        plots.trajectories({"seen": world}, {"age": None})
    with pytest.raises(InputError, match="variable of seen 'age' is unknown"):
        plots.one_subject({"seen": world}, 0, ["age"])
    with pytest.raises(InputError, match="level of income '>1M' is unknown"):
        plots.share_by_level(adult, "income", ">1M", ["sex"])


def test_shares_by_level_are_means_and_rare_levels_are_left_out(adult):
    axes = plots.share_by_level(adult, "income", ">50K", ["workclass"]).axes[0]
    rich = 100 * (adult["income"] == ">50K")
    assert "Without-pay" not in tick_labels(axes)  # 14 people
    points = dict(zip(tick_labels(axes), axes.lines[1].get_xdata(), strict=True))
    (ranges,) = axes.containers[0][2]
    width = ranges.get_segments()[tick_labels(axes).index("Private")][:, 0]
    share, n = points["Private"] / 100, (adult["workclass"] == "Private").sum()
    assert width[1] - width[0] == pytest.approx(2 * 196 * (share * (1 - share) / n) ** 0.5)
    assert points["Private"] == pytest.approx(rich[adult["workclass"] == "Private"].mean())
    assert axes.lines[0].get_xdata()[0] == pytest.approx(rich.mean())


def test_an_interval_of_a_share_stays_between_none_and_all():
    many = {"job": ["yes"] * 39 + ["no"] + ["no"] * 39 + ["yes"], "town": ["A"] * 40 + ["B"] * 40}
    frame = pd.DataFrame(many, dtype="category")
    axes = plots.share_by_level(frame, "job", "yes", ["town"]).axes[0]
    (ranges,) = axes.containers[0][2]
    ends = np.sort([segment[:, 0] for segment in ranges.get_segments()], axis=None)
    assert ends[0] == 0 and ends[-1] == 100 and ends[1] < 10 and ends[2] > 90


def test_every_variable_of_a_graph_is_a_box_and_causes_stand_above_effects(graph):
    figure = plots.causal_graph(graph)
    boxes = {text.get_text(): text.get_position() for text in figure.axes[0].texts}
    assert set(boxes) == set(graph.nodes)
    assert all(boxes[cause][1] > boxes[effect][1] for cause, effect in graph.edges)
    assert len(figure.axes[0].patches) == graph.number_of_edges()


def test_edges_into_the_chosen_variable_stand_out(graph):
    figure = plots.causal_graph(graph, into="income")
    colours = [patch.get_edgecolor() for patch in figure.axes[0].patches]
    assert colours.count(to_rgba(plots.VERMILION)) == graph.in_degree("income")


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


def test_variables_of_a_layer_stand_in_the_order_of_the_graph(graph):
    graph = nx.DiGraph()
    graph.add_nodes_from(["sex", "age", "income", "education"])
    graph.add_edges_from([("education", "income"), ("sex", "income")])
    places = {t.get_text(): t.get_position() for t in plots.causal_graph(graph).axes[0].texts}
    layers = {
        y: sorted((x, n) for n, (x, at) in places.items() if at == y) for _, y in places.values()
    }
    assert [[name for _, name in layers[y]] for y in sorted(layers, reverse=True)] == [
        ["sex", "age", "education"], ["income"]
    ]  # fmt: skip


def test_arrows_begin_and_end_at_their_boxes(graph):
    axes = plots.causal_graph(graph).axes[0]
    axes.figure.canvas.draw()
    boxes = [text.get_bbox_patch().get_window_extent().padded(8) for text in axes.texts]
    for arrow in axes.patches:
        for end in arrow.get_transform().transform(arrow.get_path().vertices[[0, 2]]):
            assert any(box.contains(*end) for box in boxes)


def test_the_previous_step_stands_at_the_top_and_its_own_past_left_of_a_variable():
    steps = nx.DiGraph([((name, -1), (name, 0)) for name in ("age", "studies")])
    steps.add_edge(("studies", -1), ("income", 0))
    axes = plots.causal_graph(steps, into="studies").axes[0]
    places = [(text.get_text(), text.get_position()) for text in axes.texts]
    above, below = [y for name, (_, y) in places if name == "studies"]
    assert above > dict(places)["previous step\ncurrent step"][1] > below
    assert [name for name, _ in places].count("age") == 1
    assert len(axes.patches) == 3, "of age, a short arrow from the left"
    colours = [patch.get_edgecolor() for patch in axes.patches]
    assert colours.count(to_rgba(plots.VERMILION)) == 1


def test_a_cycle_and_an_unknown_variable_are_refused(graph):
    with pytest.raises(nx.NetworkXUnfeasible, match="contains a cycle"):
        plots.causal_graph(nx.DiGraph([("a", "b"), ("b", "a")]))
    with pytest.raises(InputError, match="variable 'wealth' is unknown: expected one of age"):
        plots.causal_graph(graph, into="wealth")


def test_trajectories_are_means_quantiles_and_shares(world):
    figure = plots.trajectories({"seen": world}, {"studies": "Full-time", "income": None})
    assert message(figure) == "The same subjects: the worlds do not differ"
    studies, income = figure.axes
    assert income.lines[0].get_ydata().tolist() == [20.0, 10.0, 40.0]
    assert studies.lines[0].get_ydata().tolist() == [0.0, 50.0, 0.0]
    band = income.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (5.0, 45.0)  # quartiles of (20, 0) and of (30, 50)


def test_one_subject_shades_the_steps_at_which_worlds_differ(world):
    other = world.copy()
    other.loc[4, "studies"] = "Day"
    other.loc[[4, 5], "income"] = 7.0
    figure = plots.one_subject({"a": world, "b": other}, 1, ["studies", "income"])
    assert message(figure) == "Subject 1: the worlds part at step 1"
    studies, income = figure.axes
    assert [patch.get_x() for patch in studies.patches] == [0.5]
    assert [patch.get_x() for patch in income.patches] == [0.5, 1.5]
    assert tick_labels(studies) == ["No", "Day", "Full-time"]
    assert studies.lines[0].get_ydata().tolist() == [0, 2, 0]


def test_a_subject_is_followed_through_any_number_of_worlds_and_lives_in_all(world):
    other = world.assign(income=[*world["income"][:5], 9.0])
    both = plots.trajectories({"a": world, "c": other}, {"income": None})
    assert message(both) == "The same subjects: the worlds part at step 2"
    worlds = {"a": world, "b": world, "c": other}
    assert [p.get_x() for p in plots.one_subject(worlds, 1, ["income"]).axes[0].patches] == [1.5]
    assert not plots.one_subject({"a": world}, 0, ["income"]).axes[0].patches
    with pytest.raises(InputError, match="subject of b 1 is unknown: expected 0"):
        plots.one_subject({"a": world, "b": world[:3]}, 1, ["income"])


def test_the_heat_map_says_per_cent_and_leaves_the_unchanged_empty():
    shares = pd.DataFrame({0: [0.0, 0.0], 1: [0.004, 0.256]}, index=["age", "studies"])
    assert texts(plots.heat_map(100 * shares, "Changed, %")) == ["<1", "26"]


def test_the_darkest_colour_of_a_heat_map_is_that_of_the_largest_number():
    errors = pd.DataFrame({"a learner": [1_500.0, 0.0]}, index=["size", "overlap"])
    figure = plots.heat_map(errors, "Errors", most=1_500)
    assert texts(figure) == ["1\u202f500"]
    assert figure.axes[0].collections[0].get_clim() == (0, 1_500)


@pytest.mark.parametrize("size", [(3, 1), (1, 3), (1, 1)])
def test_the_cells_of_a_single_row_or_column_fill_the_heat_map(size):
    axes = plots.heat_map(pd.DataFrame(np.full(size, 50.0)), "One").axes[0]
    cells = axes.collections[0].get_coordinates()
    assert (np.ptp(cells[..., 1]), np.ptp(cells[..., 0])) == size


@pytest.mark.parametrize("rows", [["T"], ["S", "T"]])
def test_a_row_or_two_have_room_below_the_name_of_their_panel(rows):
    table = pd.DataFrame({"learner": rows, "value": 1.0, "panel": "error", "unit": "dollars"})
    figure = plots.intervals(table, "learner", "One level")
    tall = figure.axes[0].get_position().height * figure.get_figheight() / (len(rows) + 0.2)
    assert tall > 10 / 72, "inches a row, of which its name takes ten points"


def test_overlap_draws_the_share_of_each_group():
    figure = plots.overlap({"a": pd.Series([0.02, 0.02, 0.98, 0.98]), "b": pd.Series([0.5])})
    assert message(figure) == "20 % of the propensities are between 0.1 and 0.9"
    edges, shares = figure.axes[0].lines[0].get_data()
    assert shares[1] == 50 and shares[-2] == 50 and shares.sum() == 100
    np.testing.assert_allclose(edges[1:], np.linspace(0, 1, 21))
    assert figure.axes[0].get_yscale() == "log"
    # Within a decade, matplotlib would write 6·10¹ and the like at small ticks.
    assert not any(label.get_text() for label in figure.axes[0].get_yticklabels(minor=True))
    assert message(plots.overlap({"a": pd.Series(dtype=float)})) == "Nobody is in these groups"


def test_what_a_line_is_stands_at_its_end_or_beside_a_name_of_the_panel_in_the_legend():
    table = pd.DataFrame({"row": ["a"], "value": [1.0], "panel": "a name as long as the panel"})
    named = plots.intervals(table, "row", "One", line={"what is promised": 1.0})
    assert "what is promised" in of_legend(named) and not named.axes[0].texts
    plain = plots.intervals(table.drop(columns="panel"), "row", "", line={"promised": 1.0})
    assert [text.get_text() for text in plain.axes[0].texts] == ["promised"]


@pytest.mark.parametrize("ends", [(1, 2, 3), (3, 1, 2), (1, 1.05, 3)])
def test_lines_are_named_at_their_ends(ends):
    parts = [pd.DataFrame({"x": [0, 1], "value": [0, y]}) for y in ends]
    table = pd.concat(dict(zip("abc", parts, strict=True)), names=["series"]).reset_index()
    figure = plots.lines(table, "x", "Apart", line={"promised": 2.5})
    assert not figure.legends[0].get_texts() and not crowded(figure)
    (axes,) = figure.axes
    heights = {text.get_text(): axes.transAxes.transform(text.xy)[1] for text in axes.texts}
    truth = dict(zip(["a", "b", "c", "promised"], [*ends, 2.5], strict=True))
    assert sorted(heights, key=heights.get) == sorted(truth, key=truth.get)
    line = figure.dpi * 0.17
    for name, y in truth.items():
        assert abs(heights[name] - axes.transData.transform((1, y))[1]) < line
    colours = {text.get_text(): text.get_color() for text in axes.texts}
    assert all((colours[name] < mpl.colors.to_rgb(of_legend(figure)[name])).any() for name in "abc")


@pytest.mark.parametrize(
    ("ends", "names", "look"),
    [
        ([1, 1.02, 1.04, 3], "abcd", {}),  # names would stand at the ends of other lines
        ([1, 2, np.nan, 3], "abcd", {}),
        ([1, 2, 3, 4], "abcd", plots.DOTS),  # points have no ends
        ([1, 2, 3, 4], ["a name that would leave a line no room", *"bcd"], {}),
    ],
)
def test_lines_that_cannot_be_named_at_their_ends_have_a_legend(ends, names, look):
    parts = [pd.DataFrame({"x": [0, 1], "value": [0, y]}) for y in ends]
    table = pd.concat(dict(zip(names, parts, strict=True)), names=["series"]).reset_index()
    figure = plots.lines(table, "x", "Together", look=look)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*names]
    assert not texts(figure)


def test_places_of_axes_do_not_hang_on_the_last_digits_of_a_solver():
    table = pd.DataFrame({"x": [0, 1, 0, 1], "value": [1, 2, 3, 4], "panel": [*"aabb"]})
    figure = plots.lines(table, "x", "Two panels")
    places = np.array([axes.get_position().bounds for axes in figure.axes])
    # A width is a difference of two edges, which has digits of its own.
    np.testing.assert_allclose(places, places.round(6), rtol=0, atol=1e-15)
    assert figure.svg() == figure.svg()


def test_long_words_are_neither_cut_off_nor_touch_each_other(world):
    tidy = pd.DataFrame(
        {"x": [0, 1, 2], "value": [1.0, 2.0, 3.0], "panel": ["one", "two", "three"]}
    )
    unit = "what an estimate says, thousand dollars"
    names = [f"{letter}-learner (Ridge)" for letter in "RSTUVWXY"]
    world = world.assign(work=world["t"].map(lambda t: f"long-winded-{t}"))
    drawings = [
        plots.lines(tidy, "x", "Three", unit),
        plots.heat_map(pd.DataFrame([range(8)], ["errors"], names), "Eight"),
        plots.one_subject({"seen": world}, 0, ["work", "income"]),
    ]
    adult = load_adult()
    drawings.append(plots.share_by_level(adult, "workclass", "Private", ["education", "race"]))
    for drawing in drawings:
        assert crowded(drawing) == []


def test_a_graph_stands_in_the_middle():
    figure = plots.causal_graph(nx.DiGraph([("talent", "job"), ("job", "income")]))
    boxes = places(figure).values()
    left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    assert left == pytest.approx(figure.bbox.width - right, abs=15)


def test_a_long_title_has_several_lines():
    tidy = pd.DataFrame({"row": ["a"], "value": [1.0]})
    figure = plots.intervals(tidy, "row", " ".join(["word"] * 30))
    assert message(figure).count("\n") == 2 and crowded(figure) == []


def test_a_marker_goes_with_its_colour_and_a_truth_is_a_square():
    names = ["paper", "this run", "truth", "other"]
    for order in (names, names[::-1]):
        tidy = pd.DataFrame({"row": "a", "value": 1.0, "series": order})
        containers = plots.intervals(tidy, "row", "").axes[0].containers
        found = {one.get_label(): one[0].get_marker() for one in containers}
        assert found == {"paper": "D", "this run": "o", "truth": "s", "other": "o"}


@pytest.mark.parametrize("page", [1.0, 0.1])
def test_arrows_that_do_not_stand_out_are_seen_on_either_page(page):
    """A line that has a meaning needs a contrast of 3 (WCAG 2.2, 1.4.11)."""

    def luminance(rgb):
        rgb = np.asarray(rgb)
        rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return rgb @ [0.2126, 0.7152, 0.0722]

    # In the dark, the style of the book turns 1 to 0.1 and 0 to 0.9: `invert(0.9)`.
    line = np.array(to_rgba(plots.FAINT)[:3])
    line = line if page == 1 else 0.9 - 0.8 * line
    pale, dark = sorted([luminance(line), luminance([page] * 3)], reverse=True)
    assert (pale + 0.05) / (dark + 0.05) >= 3
