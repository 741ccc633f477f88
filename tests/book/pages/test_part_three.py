"""What the chapters on word problems say is so, with other values than their own."""

import ast
import contextlib
import io
import itertools
import re

import nbformat
import numpy as np
import pandas as pd
import pytest

from lib.book.editions import BOOK
from lib.ccr import generate
from lib.ccr.answers import UNPARSEABLE, write_answers
from lib.ccr.exact import composed, exact_quantities
from lib.tables import number_text


class Chapter:
    """A chapter that was run here: its names, and what each cell printed, displayed or ended in."""

    def __init__(self, name: str, **values):
        self.names, self.printed, self.displayed, self.ended = {}, {}, {}, {}
        for cell in nbformat.read(BOOK.notebook(name), 4).cells:
            if cell.cell_type != "code":
                continue
            displayed = self.displayed[cell.id] = []
            self.names["display"] = lambda *shown, to=displayed: to.extend(shown)
            body = ast.parse(cell.source).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(ast.Module(body, []), cell.id, "exec"), self.names)
                if last:
                    expression = compile(ast.Expression(last.value), cell.id, "eval")
                    self.ended[cell.id] = eval(expression, self.names)
            self.printed[cell.id] = out.getvalue()
            if "parameters" in cell.metadata.get("tags", []):
                assert values.keys() <= self.names.keys()
                self.names |= values
            if "typeset" in self.names:
                self.names["typeset"] = lambda table, *_, **__: table  # looked at as data

    def __getitem__(self, name: str):
        return self.names[name]


@pytest.fixture(scope="module")
def exact():
    return Chapter(
        "exact_quantities",
        n_per_bcc=[3, 5, 2],
        bcc_types=["wheel", "wheel", "cycle"],
        causal_functions="or, and at the leaf",
        seed=7,
        n_samples=4_000,
        n_worlds=5,
        n_small=150,
    )


def test_seeing_is_doing_and_the_pns_is_the_ate(exact):
    table = exact["quantities"]
    for seen, done in (("P(y | x)", "P(y | do x)"), ("P(y | not x)", "P(y | do not x)")):
        assert table[seen].tolist() == table[done].tolist()
    assert table["ATE"].tolist() == table["PNS"].tolist()


def test_samples_come_near_the_exact_quantities(exact):
    sampled, known = (pd.Series(one).drop(["PN", "PS"]) for one in exact["both"].values())
    assert (
        sampled - known
    ).abs().max() < 5 * 0.5 / 800**0.5  # a fifth, at least, is conditioned on


def test_a_pair_follows_less_often_than_any_pair_within_it(exact):
    pns = exact["quantities"]["PNS"]
    within = [
        (outer, inner)
        for outer, inner in itertools.permutations(pns.index, 2)
        if outer[0] <= inner[0] and inner[1] <= outer[1]
    ]
    assert within
    assert all(pns[outer] < pns[inner] for outer, inner in within)


def test_the_product_is_the_same_along_every_path(exact):
    products = [exact["composed"](exact["quantities"], path) for path in exact["paths"]]
    assert len(products) == 4
    assert np.ptp(products) < 1e-15


def test_the_long_chain_is_as_long_and_its_effect_as_small_as_is_said(exact):
    chain = exact["long"].chain
    assert (chain.n_nodes, len(chain.quantities)) == (1_201, 45_150)
    assert 0 < exact["exact_quantities"](exact["long"])["PNS"].loc[chain.global_quantity] < 1e-200


def test_with_or_everywhere_every_noise_but_the_root_s_must_be_false(exact):
    for world in (exact["drawn"][0], exact["any_world"](0)):
        all_or = type(world)(world.chain, ["or"] * world.chain.n_nodes, world.probabilities)
        pns = exact_quantities(all_or)["PNS"].loc[world.chain.global_quantity]
        assert pns == pytest.approx(np.prod([1 - p for p in world.probabilities[1:]]))


def test_random_operators_let_the_most_through(exact):
    medians = pd.DataFrame(exact["small"]).median()
    assert medians.idxmax() == "random"


def test_solutions_of_exact_quantities_show_what_they_say(exact):
    by_hand = exact.ended["solution-1"]
    assert by_hand["and"].tolist() == pytest.approx([0.8, 1, 0.8])
    assert by_hand["or"].tolist() == pytest.approx([0.2, 0.2, 1])
    asked = exact.ended["solution-2"]
    whole, product, seen, done = asked["as it is"]
    assert (whole, seen) == pytest.approx((product, done))
    whole, product, seen, done = asked["with the arrow"]
    assert whole > product
    assert seen != done
    for functions in ("and", "or"):
        assert exact.ended["solution-3"][functions].astype(float).is_monotonic_decreasing
    fallen = exact.ended["solution-3"].iloc[-1]
    assert fallen["or"] < fallen["and"] / 100
    assert 1 / 4 < fallen["random"] / fallen["and"] < 4, "about as fast"
    assert exact.ended["solution-5"]["difference"].tolist() == pytest.approx(
        [1 / 3, 1 / 8], abs=0.02
    )


@pytest.fixture(scope="module")
def generated():
    return Chapter(
        "task_generation",
        theme="flu_vaccine",
        n_per_bcc=[2, 3],
        bcc_types="wheel",
        n_tasks=12,
        n_samples=60,
        seed=3,
        least_pns=0.15,
        balance=0.3,
        sample=5,
    )


def test_sentences_stand_in_the_order_that_is_told(generated):
    roles = generated["parts"]["role"].tolist()
    n = generated["task"].world.chain.n_nodes
    assert roles[0] == "situation"
    assert roles[1 : n + 1] == [f"rule of node {node}" for node in range(n)]
    assert roles[n + 1] == "closed world"
    facts = roles[n + 2 :]
    assert all(fact.startswith("noise") for fact in facts[::2])
    assert set(facts[1::2]) == {"does not matter"}, "a detail beside each fact"


def test_requirements_are_met_by_the_sets_that_ask_for_them(generated):
    assert min(generated["global_pns"](generated["drawn"]["floor"])) >= 0.15
    for task in generated["drawn"]["floor and balance"].tasks:
        world = task.world
        row, p = task.quantities.loc[world.chain.global_quantity], world.probabilities[0]
        assert 0.3 <= p * row["P(y | do x)"] + (1 - p) * row["P(y | do not x)"] <= 0.7
    right = generated["portraits"].loc["right without the intervention, %"]
    assert right.pop("and only changed") == 0
    assert (right >= 50).all()


def test_the_table_of_answers_holds_no_text(generated):
    assert not generated["tasks"].answers.select_dtypes(exclude=["number", "bool"]).columns.any()


def test_solutions_of_task_generation_show_what_they_say(generated):
    yes = generated.ended["solution-1"]["answer is yes, %"]
    assert yes["and"] < 50 < yes["or"]
    table = generated.ended["solution-2"]
    assert ((table["estimate"] - table["exact"]).abs() <= 5 * table["standard error"]).all()
    assert "no world in 1,000" in generated.printed["solution-3"]
    predicted, counted = generated.ended["solution-4"].iloc[:, 0]
    assert predicted == pytest.approx(counted, abs=4)
    kept = generated.ended["solution-5"]
    assert kept["worlds drawn a task"].is_monotonic_increasing
    assert kept["ignorance is right, %"].iloc[-1] < kept["ignorance is right, %"].iloc[0]


@pytest.fixture(scope="module")
def lighthouses():
    return Chapter("adding_a_theme", n_per_bcc=[4, 2, 3], n_tasks=4, n_samples=8, seed=3)


def test_the_new_theme_is_read_as_it_is_told(lighthouses):
    assert len(lighthouses["wrong"]) == 0
    answer, label = lighthouses.ended["code-11"]
    assert answer == label


def test_solutions_of_a_theme_show_what_they_say(lighthouses):
    unknown, undecided = (shown.data for shown in lighthouses.displayed["solution-2"])
    assert "must know every sentence" in unknown
    assert "must say whether each condition holds" in undecided
    assert lighthouses.printed["solution-3"].startswith("4 ships\na fact must not be told twice")
    wrong, prompts = map(
        int, re.findall(r"\d+", lighthouses.printed["solution-4"].replace("\u202f", ""))
    )
    assert 0 < wrong < prompts
    largest = lighthouses.printed["solution-5"]
    assert largest.startswith("0 of ")
    assert "must return 19 nodes: found 18" in largest


@pytest.fixture(scope="module")
def static():
    return Chapter(
        "static_data_sets", n_samples=30, n_replicates=3, seed=5, shown="flower_garden_v0"
    )


def test_a_floor_is_kept_by_the_sets_that_have_one(static):
    for name in ("candy_party_v0", "flower_garden_v0"):
        assert min(static["effects"][name]) >= static["floor"]


def left_out(yes):
    """The standard error of a share of yes by the jackknife, which leaves out one at a time."""
    left = yes.sum() - yes
    return (left["sum"] / left["size"]).std(ddof=0) * (len(yes) - 1) ** 0.5


def test_the_error_of_a_share_of_yes_is_that_of_leaving_out_tasks(static):
    assert static["apart"].sem() == pytest.approx(100 * left_out(static["yes"]), rel=0.1)


def test_a_set_of_another_seed_does_not_pass_as_the_book_s(static):
    assert static["croissant"]["version"] == "2.0.0-changed"
    assert "Its seed is 5;" in static["card"]


def test_solutions_of_static_data_sets_show_what_they_say(static):
    assert (static.ended["solution-1"]["prompts a sample"] == 16).all()
    assert static.ended["code-04"].loc["least pns", "candy_party_v0"] == static["floor"] > 0
    for name, row in static.ended["solution-2"].iterrows():
        tree = static["built"][name].tasks[row["task"]].world.chain.cut_tree
        assert tree.index(row["effect"]) == tree.index(row["cause"]) + 1
    assert static.ended["solution-3"]["found in the other set"].tolist() == [3, 0, 0]
    printed = [line.split()[-1] for line in static.printed["solution-4"].splitlines()]
    described, file, again, changed = printed
    assert described == file
    assert len({file, again, changed}) == 3
    for set_name, needed in static["needed"].items():
        assert (needed * static["effects"][set_name]).tolist() == pytest.approx([100] * len(needed))


SCORED = {
    "two components": {
        "theme": "flu_vaccine",
        "n_per_bcc": [4, 3],
        "n_tasks": 4,
        "n_samples": 80,
        "least_pns": 0.1,
        "rate": 0.2,
        "delta": 0.3,
        "multiplier": 1.2,
        "n_resamples": 20,
        "seed": 5,
    },
    "four links": {
        "theme": "clinical_notes",
        "n_per_bcc": [2, 2, 2, 2],
        "n_tasks": 3,
        "n_samples": 50,
        "least_pns": 0.01,
        "rate": 0.02,
        "n_resamples": 20,
        "seed": 2,
    },
}


@pytest.fixture(scope="module", params=SCORED)
def scored(request, tmp_path_factory):
    values = SCORED[request.param]
    if values["seed"] == 2:  # with a file, which says nothing of every tenth sample
        of_tasks = ("theme", "n_per_bcc", "n_tasks", "n_samples", "least_pns", "seed")
        tasks = generate(**{name: values[name] for name in of_tasks})
        tenth = np.arange(values["n_samples"]) % 10 == 0
        said = [np.where(tenth, UNPARSEABLE, task.labels) for task in tasks.tasks]
        path = tmp_path_factory.mktemp("answers") / "mine.jsonl"
        values = values | {"answers_file": str(write_answers(tasks, said, path))}
    return Chapter("evaluation", **values)


def test_a_file_is_scored_beside_the_reasoners(scored):
    printed = "".join(scored.printed.values())
    n = len(scored["tasks"])
    told = f"{number_text(n // 10)} of {number_text(n)} answers are unparseable"
    given = bool(scored["answers_file"])
    assert (told in printed) == ("the file" in scored["shares"].index) == given
    if given:
        assert scored["shares"].loc["the file", "factual"] == pytest.approx(90)


def test_rungs_tell_apart_what_they_are_said_to(scored):
    shares = scored["shares"]
    for name in ("perfect", "echoes the intervention", "stops at the first cutpoint"):
        assert shares.loc[name, "changed"] == 100
    for name in ("perfect", "ignores the intervention", "echoes the intervention"):
        assert shares.loc[name, "factual"] == 100
    ignoring = shares.loc["ignores the intervention"]
    assert (ignoring["changed"], ignoring["unchanged"]) == (0, 100)
    prompts = scored["scores"]["perfect"].accuracy.set_index("rung")["prompts"]
    unchanged = prompts["unchanged"].max() / (prompts["changed"].max() + prompts["unchanged"].max())
    assert scored["interventional"]["ignores the intervention"] == pytest.approx(100 * unchanged)
    assert unchanged >= 0.5


def test_effects_lie_where_the_figure_is_said_to_show_them(scored):
    found = {
        name: one.quantities.query("quantity == 'ATE'") for name, one in scored["scores"].items()
    }
    assert (found["ignores the intervention"]["answers"] == 0).all()
    assert (found["always yes"]["answers"] == 0).all()
    assert (found["echoes the intervention"]["answers"] == 1).all()
    assert found["perfect"]["valid"].all()
    assert scored["scores"]["perfect"].quantities["valid"].dropna().all()
    stops = found["stops at the first cutpoint"]
    assert (stops["answers"] >= stops["labels"] - 1e-12).all()


def test_no_effect_seen_has_an_error_of_one_before_luck_is_taken_out(scored):
    for name in ("ignores the intervention", "always yes"):
        assert scored["valid"][name]["with luck left in"] == pytest.approx(1)


def test_each_fault_has_the_signature_that_is_told(scored):
    tables = {name: one.compositions for name, one in scored["scores"].items()}
    assert (tables["perfect"]["external"] == "valid").all()
    for name in ("perfect", "echoes the intervention"):
        assert (tables[name]["internal"] != "inconsistent").all()
    for name in ("ignores the intervention", "always yes"):
        assert (tables[name]["internal"] == "undefined").all()
    stops = tables["stops at the first cutpoint"]
    links = stops["path"].map(len) == len(scored["n_per_bcc"]) + 1
    assert links.sum() == scored["n_tasks"]
    assert (stops.loc[links, "external"] == "valid").all()
    for row in stops[links].itertuples():
        task = scored["tasks"].tasks[row.task]
        assert row.product == pytest.approx(composed_labels(task, row.path))


def composed_labels(task, path) -> float:
    """Return the product of the effects that the true answers to the samples show."""
    rows = {key: row for row, key in enumerate(map(tuple, task.keys))}
    effect = {
        step: (task.labels[rows[step[0], 1, step[1]]].mean())
        - (task.labels[rows[step[0], 0, step[1]]].mean())
        for step in itertools.pairwise(path)
    }
    return float(np.prod(list(effect.values())))


def test_the_small_model_has_said_what_the_words_tell(scored):
    words = scored.ended["small-model-words"].data
    told = [float(share) for share in re.findall(r"(\d+) %", words)]
    said, truth = scored["said"], scored["truth"]
    assert len(said) == 640
    assert told == pytest.approx(
        [
            100 * np.mean(said == 0),
            100 * np.mean(said[truth] == 0),
            100 * np.mean(said[~truth] == 0),
            100 * np.mean(said == -1),
            100 * np.mean(said == truth),
            100 * np.mean(~truth),
        ],
        abs=0.5,
    )
    assert told[5] > told[4] > 0, "a habit is no worse"


def test_solutions_of_evaluation_show_what_they_say(scored):
    assert set(scored.ended["solution-1"].columns) == {"changed", "unchanged"}
    half = [line.split(": ")[0] for line in scored.printed["solution-3"].splitlines()]
    assert half == ["half", "everywhere"]
    even = np.mean([task.number % 2 == 0 for task in scored["tasks"].tasks])
    cells = scored.ended["solution-3"]
    assert cells.loc["valid", "half"].sum() >= 100 * even - 0.1
    sizes = scored.ended["solution-4"]
    n = scored["n_samples"]
    several = [f"noisy at rate {scored['rate']:g}", "stops at the first cutpoint", "coin"]
    assert list(sizes.index) == list(itertools.product(several, sorted({50, n, 4 * n})))
    few, as_run, more = (sizes.xs(size, level="samples") for size in (50, n, 4 * n))
    width = "widest interval, points"
    assert (more[width] / as_run[width]).tolist() == pytest.approx([0.5] * 3, abs=0.15)
    assert (more["consistent ones, %"] <= few["consistent ones, %"])[several[1:]].all()
    assert set(scored.ended["solution-5"].columns) == {"ATE", "PNS"}
    assert scored.ended["solution-6"].sum().tolist() == pytest.approx([100, 100], abs=0.5)
    assert scored["errors"].iloc[1] < scored["errors"].iloc[0], "with ever more samples"


def test_luck_shrinks_in_the_end_and_limits_do_not(scored):
    table, n = scored.ended["code-21"], scored["n_samples"]
    r, m = scored["rate"], table.index.get_level_values("factors")
    assert table["external, limit"].tolist() == pytest.approx(1 - (1 - 2 * r) ** m)
    assert table["internal, limit"].tolist() == pytest.approx(1 - (1 - 2 * r) ** (m - 1))
    if scored["least_pns"] < 0.1:
        return  # effects so small that more samples define more of them, with the most luck
    luck = table["internal, true answers"]
    assert (luck[10 * n] < luck[n]).all()
    assert (
        table.loc[10 * n, "external RAE"].sub(table.loc[10 * n, "external, limit"]).abs().max()
        < 0.05
    )


def test_the_small_model_earns_no_more_than_no_to_everything_where_the_words_say_so(scored):
    shown = scored["shown"]
    value, no = (shown[name] for name in ("value", "No to all"))
    assert value["cause made false"] == pytest.approx(no["cause made false"], abs=0.01)
    assert value["changed"] <= no["changed"]
    below = scored["published"]["cause made false"]
    assert below.min() < value["cause made false"] < below.max()


def test_somebody_who_misreads_the_operators_is_consistent_in_the_end(scored):
    """The product of the effects is the whole in any world of these operators."""
    misread = [
        type(task.world)(
            task.world.chain, ["and"] * task.world.chain.n_nodes, task.world.probabilities
        )
        for task in scored["tasks"].tasks
    ]
    for world in misread:
        found = exact_quantities(world)
        whole = found["PNS"].loc[world.chain.global_quantity]
        for path in world.chain.compositions():
            assert composed(found, path) == pytest.approx(whole)


@pytest.fixture(scope="module")
def error_test():
    return Chapter(
        "error_test",
        theme="clinical_notes",
        n_configurations=4,
        n_samples=3,
        n_worlds=8,
        repetitions=100,
        seed=4,  # a setting has *or* at the root alone
    )


def test_the_error_of_a_share_of_yes_is_that_of_leaving_out_settings(error_test):
    yes = error_test["yes"]
    assert yes["size"].tolist() == [len(tasks) for tasks in error_test["tested"]]
    assert error_test["error"] == pytest.approx(left_out(yes), rel=0.3)


def test_worlds_tell_how_far_a_score_varies(scored):
    each_world = scored["each_world"]
    yes = [task.labels[task.keys[:, 1] >= 0].mean() for task in scored["tasks"].tasks]
    assert each_world["always yes"].tolist() == pytest.approx([100 * share for share in yes])
    assert each_world["perfect"].sem() == 0 < each_world["coin"].sem()


def test_the_expected_error_falls_with_the_root_of_the_number(error_test):
    errors = error_test["errors"]
    assert np.ptp(errors["expected"] * errors.index**0.5) < 1e-12


def test_solutions_of_the_error_test_show_what_they_say(error_test):
    caught = error_test.ended["solution-2"]
    assert 0 < caught["read otherwise"].sum() < caught["prompts"].sum()
    lists = caught["operators"].str.contains("or")
    assert ((caught["read otherwise"] > 0) == lists).all() and not lists.all()
    assert not any(len(found) for found in map(error_test["disagreements"], error_test["tested"]))
    shared = error_test.ended["solution-3"]
    assert shared["measured"].iloc[-1] > 2 * shared["expected"].iloc[-1]
    assert shared["measured"].iloc[-1] > 0.5 * shared["measured"].iloc[0]
    retold = error_test.ended["solution-4"]
    own, other = retold["answers that change"]
    assert own == 0 < other < retold["prompts"].iloc[1]
