"""The simulator: what its noise promises, over random models and in one small town."""

import dataclasses
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score, roc_auc_score

from lib import ROOT
from lib.errors import InputError
from lib.scm import Simulator, Specification, StochasticPolicy
from lib.scm.mechanisms import CategoricalMechanism, Mechanism, Parents

# --- random models ----------------------------------------------------------------------

LEVELS = ["high", "low", "mid"]


class Drift(Mechanism):
    """A number that follows from everything it is given, today's and the day before."""

    noise_terms = 1

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        """Return a sum of noise and of all causes, each with a weight of its own."""
        causes = [*parents.values(), *parents.previous.values()]
        terms = [np.asarray(getattr(column, "codes", column), dtype=float) for column in causes]
        return noise[0] + sum(term * 0.9 ** (i + 1) for i, term in enumerate(terms))


FOREST = {"n_estimators": 2, "max_depth": 3}

#: What a number or a category may follow, at the first step and later, without and with causes.
MECHANISMS = {
    (False, "sampler", False): ["gaussian", {"type": "ConstantSampler", "value": 2}, "Drift"],
    (False, "sampler", True): [
        "LinearGaussianSampler",
        "UniformRegressionSampler",
        "ZeroOrGaussianRegressionSampler",
        {"type": "GaussianRegressionSampler", "estimator": "Ridge", "bounds": [-1, 1]},
        {"type": "GaussianRandomForestSampler", "round_result": True, **FOREST},
        "Drift",
    ],
    (True, "sampler", False): ["multinomial"],
    (True, "sampler", True): [
        "LogisticSampler",
        {"type": "RandomForestClassifierSampler", **FOREST},
    ],
}
MECHANISMS |= {
    (False, "seq_sampler", False): ["None", "IncrementSampler", "gaussian", "Drift"],
    (False, "seq_sampler", True): [*MECHANISMS[False, "sampler", True], "Drift"],
    (True, "seq_sampler", False): ["None", "multinomial"],
    (True, "seq_sampler", True): [
        *MECHANISMS[True, "sampler", True],
        {"type": "LogisticTransitionSampler", "c_prev": 0.5, "p_stay": 0.3},
    ],
}


def random_table(kinds: list[bool]) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    columns = {}
    for i, categorical in enumerate(kinds):
        number = np.where(rng.random(60) < 0.3, 0, rng.normal(size=60))
        columns[f"x{i}"] = rng.permutation(LEVELS * 20) if categorical else number
    return pd.DataFrame(columns)


@st.composite
def simulators(draw):
    """A fitted simulator of two to five variables: two random graphs, random mechanisms."""
    kinds = draw(st.lists(st.booleans(), min_size=2, max_size=5))
    names = [f"x{i}" for i in range(len(kinds))]
    first, later = draw(st.permutations(names)), draw(st.permutations(names))

    def some(candidates):
        return draw(st.lists(st.sampled_from(candidates), unique=True)) if candidates else []

    variables = {}
    for name, categorical in zip(names, kinds, strict=True):
        parents = some(first[: first.index(name)])
        current = some(later[: later.index(name)])
        variables[name] = {
            "parents": parents,
            "sampler": draw(st.sampled_from(MECHANISMS[categorical, "sampler", bool(parents)])),
            "seq_parents_curr": current,
            "seq_sampler": draw(
                st.sampled_from(MECHANISMS[categorical, "seq_sampler", bool(current)])
            ),
        }
        if variables[name]["seq_sampler"] == "Drift":  # the only one that reads any past
            variables[name]["seq_parents_prev"] = some(names)
    specification = Specification(variables, types={"Drift": Drift})
    coupling = draw(st.sampled_from(["gumbel", "inverse_cdf"]))
    return Simulator(specification, coupling).fit(random_table(kinds), seed=draw(st.integers(0, 9)))


def unrolled(specification: Specification, horizon: int) -> nx.DiGraph:
    """The causal graph over time: nodes are (variable, step)."""
    graph = nx.DiGraph()
    for name, variable in specification.variables.items():
        graph.add_edges_from(((cause, 0), (name, 0)) for cause in variable.parents)
        for t in range(1, horizon):
            graph.add_edges_from(((cause, t), (name, t)) for cause in variable.seq_parents_curr)
            past = {*variable.seq_parents_prev, name}
            graph.add_edges_from(((cause, t - 1), (name, t)) for cause in past)
        graph.add_node((name, 0))
    return graph


seeds = st.integers(0, 2**70)
HORIZON = 4


@given(simulator=simulators(), seed=seeds, data=st.data())
@settings(max_examples=40, deadline=None)
def test_worlds_differ_only_downstream_of_what_was_done(simulator, seed, data):
    target = data.draw(st.sampled_from(list(simulator.kinds_)))
    step = data.draw(st.integers(0, HORIZON - 1))
    done_to = 12_345.5 if simulator.kinds_[target] is None else "low"
    seen = simulator.sample(n=30, horizon=HORIZON, seed=seed)
    done = simulator.sample(n=30, horizon=HORIZON, seed=seed, do={target: {step: done_to}})
    assert (done.loc[done["t"] == step, target] == done_to).all()
    graph = unrolled(simulator.specification, HORIZON)
    downstream = nx.descendants(graph, (target, step)) | {(target, step)}
    for name in simulator.kinds_:
        for t in range(HORIZON):
            if (name, t) not in downstream:
                then = seen["t"] == t
                assert seen.loc[then, name].equals(done.loc[then, name]), (name, t)


@given(simulator=simulators(), seed=seeds, data=st.data())
@settings(max_examples=40, deadline=None)
def test_neither_number_nor_blocks_nor_offset_change_a_row(simulator, seed, data):
    whole = simulator.sample(n=23, horizon=HORIZON, seed=seed)
    assert whole.equals(simulator.sample(n=23, horizon=HORIZON, seed=seed))
    first = data.draw(st.integers(0, 22))
    n = data.draw(st.integers(1, 23 - first))
    part = simulator.sample(n=n, horizon=HORIZON, seed=seed, first=first)
    rows = whole["subject"].between(first, first + n - 1)
    assert part.equals(whole[rows].reset_index(drop=True))
    size = data.draw(st.integers(1, 23))
    blocks = list(simulator.blocks(n=23, horizon=HORIZON, seed=seed, block=size))
    assert pd.concat(blocks, ignore_index=True).equals(whole)
    assert {len(block) for block in blocks[:-1]} <= {size * HORIZON}
    shorter = simulator.sample(n=23, horizon=2, seed=seed)
    assert shorter.equals(whole[whole["t"] < 2].reset_index(drop=True))


@given(simulator=simulators(), seed=seeds, step=st.integers(0, HORIZON - 1))
@settings(max_examples=30, deadline=None)
def test_a_world_continues_from_its_own_states(simulator, seed, step):
    whole = simulator.sample(n=9, horizon=HORIZON, seed=seed)
    states = whole[whole["t"] == step].sample(frac=1, random_state=0).sort_values("subject")
    again = simulator.sample(start=states, horizon=HORIZON, seed=seed)
    assert again.equals(whole[whole["t"] >= step].reset_index(drop=True))
    blocks = simulator.blocks(n=9, start=states, horizon=HORIZON, seed=seed, block=4)
    assert pd.concat(blocks, ignore_index=True).equals(again)
    # Some of them, in any order, are still who they were.
    some = states.sample(frac=0.6, random_state=step)
    few = list(simulator.blocks(start=some, horizon=HORIZON, seed=seed, block=4))
    of_whole = again.set_index("subject").loc[some["subject"]].reset_index()
    assert pd.concat(few, ignore_index=True).equals(of_whole)


@given(simulator=simulators(), seed=seeds, data=st.data())
@settings(max_examples=30, deadline=None)
def test_doing_what_happens_anyway_changes_nothing(simulator, seed, data):
    target = data.draw(st.sampled_from(list(simulator.kinds_)))
    seen = simulator.sample(n=20, horizon=HORIZON, seed=seed)
    own = {t: seen.loc[seen["t"] == t, target].to_numpy() for t in range(HORIZON)}
    for action in (seen, own, lambda now, before: now[target]):
        assert simulator.sample(n=20, horizon=HORIZON, seed=seed, do={target: action}).equals(seen)


# --- one small town ---------------------------------------------------------------------


def test_the_frame_is_tidy(town, town_table):
    seen = town.sample(n=5, horizon=3, seed=1)
    assert seen.columns.tolist() == ["subject", "t", "age", "sex", "job", "pay"]
    assert seen["subject"].tolist() == np.repeat(np.arange(5), 3).tolist()
    assert seen["t"].tolist() == [0, 1, 2] * 5
    assert seen["job"].cat.categories.tolist() == sorted(set(town_table["job"]))
    assert seen.index.equals(pd.RangeIndex(15))
    assert (seen.groupby("subject")["age"].diff().dropna() == 1).all()
    assert town.sample(n=2, horizon=1, seed=1, first=7)["subject"].tolist() == [7, 8]


def test_another_seed_is_another_world(town):
    one, other = (town.sample(n=500, seed=seed) for seed in (1, 2))
    assert not one["pay"].isin(other["pay"]).any()


def test_fitting_twice_with_one_seed_gives_one_simulator(town, town_table):
    again = Simulator(town.specification, town.coupling).fit(town_table, seed=0)
    assert again.sample(n=50, horizon=3).equals(town.sample(n=50, horizon=3))


def test_the_order_of_levels_in_another_world_does_not_matter(town):
    seen = town.sample(n=50, horizon=2, seed=3)
    turned = seen.assign(job=seen["job"].cat.reorder_categories(["nurse", "clerk", "cook"]))
    plain = seen.assign(job=seen["job"].astype(str))
    for world in (turned, plain):
        assert town.probabilities("job", world, 1).equals(town.probabilities("job", seen, 1))
        start = world[world["t"] == 0]
        assert town.sample(start=start, horizon=2, seed=3).equals(seen)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_workers_do_not_change_a_row(town, n_jobs):
    do = {
        "pay": {1: np.arange(51.0)},
        "job": lambda now, before, u: np.where(u < 0.5, "cook", "nurse"),
    }
    alone = town.sample(n=51, horizon=3, do=do, first=3)
    assert town.sample(n=51, horizon=3, do=do, first=3, n_jobs=n_jobs).equals(alone)


def test_a_sample_takes_no_more_at_a_time_than_fits_into_memory(town, monkeypatch):
    sizes, whole = [], town.sample(n=20, horizon=2)
    monkeypatch.setattr("lib.scm.simulator.BLOCK", 8)
    rule = {"pay": lambda now, before: sizes.append(len(now)) or now["pay"]}
    assert town.sample(n=20, horizon=2, do=rule).equals(whole)
    assert max(sizes) == 8


def test_blocks_are_drawn_as_they_are_needed(town):
    drawn = []
    rule = {"pay": lambda now, before: drawn.append(len(now)) or now["pay"]}
    blocks = town.blocks(n=20, horizon=1, do=rule, block=2)
    assert next(blocks)["subject"].tolist() == [0, 1] and drawn == [2]


def test_both_couplings_have_one_distribution(town_specification, town_table):
    n, shares = 50_000, {}
    for coupling in ("gumbel", "inverse_cdf"):
        simulator = Simulator(town_specification, coupling).fit(town_table)
        # Two independent samples, so that the difference has the variance of both.
        world = simulator.sample(n=n, horizon=3, seed={"gumbel": 1, "inverse_cdf": 2}[coupling])
        shares[coupling] = world.groupby(["t", "sex", "job"], observed=True).size() / n
    p = sum(shares.values()) / 2
    z = -ndtri(1e-6 / 2 / len(p))
    assert len(p) == 18
    apart = (shares["gumbel"] - shares["inverse_cdf"]).abs()
    assert (apart < z * np.sqrt(2 * p * (1 - p) / n)).all()


@pytest.mark.parametrize(("variable", "t"), [("job", 0), ("job", 1), ("sex", 0), ("job", 2)])
def test_stated_probabilities_are_those_that_are_drawn_with(town, variable, t):
    n = 50_000
    world = town.sample(n=n, horizon=3, seed=8)
    stated = town.probabilities(variable, world, t)
    assert stated.index.tolist() == list(range(n)) and stated.index.name == "subject"
    assert stated.columns.tolist() == world[variable].cat.categories.tolist()
    np.testing.assert_allclose(stated.sum(axis=1), 1, atol=1e-12)
    then = world[world["t"] == t].set_index("subject")
    for level in stated:
        p, drawn = stated[level], then[variable] == level
        # In tenths of the stated probability; at most 12 comparisons in one test.
        for low, high in pairwise(np.linspace(0, 1, 11)):
            part = (p > low) & (p <= high)
            spread = np.sqrt((p * (1 - p))[part].sum())
            z = -ndtri(1e-6 / 2 / 30)
            assert abs((drawn[part] - p[part]).sum()) <= z * spread + 1e-9


def test_probabilities_are_of_the_world_they_are_asked_in(town):
    do = {"job": {0: "nurse"}}
    world = town.sample(n=200, horizon=2, do=do)
    stated = town.probabilities("job", world, 1)
    assert (stated["nurse"] >= 0.5).all()  # half of them stay, by the specification
    part = world[world["subject"].isin([3, 150])]
    assert town.probabilities("job", part, 1).equals(stated.loc[[3, 150]])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("wealth", 1), "variable 'wealth' is unknown: expected one of age, sex, job, pay"),
        (
            ("pay", 1),
            "at step 1 needs a mechanism that states probabilities: found 'LinearGaus",
        ),
        (
            ("sex", 1),
            "at step 1 needs a mechanism that states probabilities: found 'KeepPrev",
        ),
        (("job", 5), "the world must have every subject at step 5 and the one before"),
        (("job", -1), "t must be a whole number of at least 0: found -1"),
        (("job", "0"), "t must be a whole number of at least 0: found '0'"),
    ],
)
def test_probabilities_that_do_not_exist(town, arguments, sentence):
    variable, t = arguments
    with pytest.raises(InputError, match=re.escape(sentence)):
        town.probabilities(variable, town.sample(n=3, horizon=2), t)


def test_probabilities_need_the_causes(town):
    world = town.sample(n=3, horizon=2)
    with pytest.raises(InputError, match="must have every subject at step 1 and the one before"):
        town.probabilities("job", world[world["t"] == 1], 1)
    with pytest.raises(InputError, match="the world: column 'sex' is unknown: expected one of"):
        town.probabilities("job", world.drop(columns="sex"), 1)
    for place in ("subject", "t"):
        with pytest.raises(InputError, match=f"the world: column '{place}' is unknown"):
            town.probabilities("job", world.drop(columns=place), 1)


def test_fit_quality_is_what_scikit_learn_measures(town, town_table):
    quality = town.fit_quality(town_table).set_index("variable")
    assert quality.index.tolist() == ["job", "pay"]
    world = town_table.assign(subject=range(len(town_table)), t=0)
    stated = town.probabilities("job", world, 0)
    assert quality.loc["job", "measure"] == "AUC" and quality.loc["pay", "measure"] == "R²"
    auc = roc_auc_score(town_table["job"], stated.to_numpy(), multi_class="ovr")
    assert quality.loc["job", "value"] == pytest.approx(auc, abs=1e-12)
    mean = town.initial_["pay"].predict(
        Parents({"age": town_table["age"].to_numpy(), "job": pd.Categorical(town_table["job"])})
    )
    assert quality.loc["pay", "value"] == pytest.approx(r2_score(town_table["pay"], mean))


def test_fit_quality_on_another_table_reads_its_levels_by_name(town, town_table):
    # Were levels numbered anew, a table of men only would be read as one of women.
    men = town_table.assign(sex="M", subject=range(len(town_table)), t=0)
    stated = town.probabilities("job", men, 0).to_numpy()
    auc = roc_auc_score(men["job"], stated, multi_class="ovr")
    turned = men.assign(job=pd.Categorical(men["job"], ["nurse", "cook", "clerk"]))
    for table in (men, turned):
        quality = town.fit_quality(table).set_index("variable")["value"]
        assert quality["job"] == pytest.approx(auc, abs=1e-12)
        assert quality["pay"] == pytest.approx(
            town.fit_quality(town_table).set_index("variable").loc["pay", "value"]
        )
    with pytest.raises(
        InputError, match="column 'job': level 'king' is unknown: expected one of clerk"
    ):
        town.fit_quality(men.assign(job="king"))
    with pytest.raises(
        InputError, match="'job': the AUC needs every level in the table, 'clerk' i"
    ):
        town.fit_quality(men[men["job"] != "clerk"])


# --- Parquet ----------------------------------------------------------------------------


def test_parquet_holds_the_sample(town, tmp_path):
    options = {"n": 40, "horizon": 3, "seed": 2, "do": {"job": {1: "cook"}}}
    path = town.to_parquet(tmp_path / "world.parquet", block=7, **options)
    assert pd.read_parquet(path).equals(town.sample(**options))
    town.to_parquet(path, n=2)  # a file that is there is replaced
    assert len(pd.read_parquet(path)) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["world.parquet"]


@pytest.mark.parametrize(
    ("exception", "told"), [(RuntimeError, InputError), (KeyboardInterrupt, KeyboardInterrupt)]
)
@pytest.mark.parametrize("block", [3, 40])
def test_a_file_is_whole_or_as_it_was(town, tmp_path, exception, told, block):
    path = town.to_parquet(tmp_path / "world.parquet", n=2)
    before = path.read_bytes()

    def fails(now, before):
        if now.index[-1] == 39:
            raise exception("in the last block")
        return now["job"]

    with pytest.raises(told, match="in the last block"):
        town.to_parquet(path, n=40, do={"job": fails}, block=block)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["world.parquet"]


# Of the session, as tests are ordered by the two simulators, and return to a module thrice.
@pytest.fixture(scope="session")
def killed(tmp_path_factory):
    """A process of the simulator alone that was killed while it wrote a world, and its folder."""
    folder = tmp_path_factory.mktemp("killed")
    program = """
import os, sys
import pandas as pd
from lib.scm import Simulator, Specification

print([name for name in sys.modules if "income" in name], flush=True)
table = pd.DataFrame({"x": [1.0, 2.0]})
simulator = Simulator(Specification({"x": {"sampler": "gaussian"}})).fit(table)

def killed(now, before):
    if now.index[-1] == 9:
        os._exit(9)
    return now["x"]

simulator.to_parquet(sys.argv[1], n=10, block=2, do={"x": killed})
"""
    run = [sys.executable, "-c", program, str(folder / "world.parquet")]
    return subprocess.run(run, capture_output=True, text=True, cwd=ROOT), folder


def test_what_a_killed_process_left_is_cleared_by_the_next(town, killed, tmp_path):
    process, left = killed
    assert process.returncode == 9
    (partial,) = left.iterdir()
    assert partial.name != "world.parquet"
    shutil.copytree(left, tmp_path, dirs_exist_ok=True)
    town.to_parquet(tmp_path / "world.parquet", n=10)
    assert len(pd.read_parquet(tmp_path / "world.parquet")) == 10
    assert [file.name for file in tmp_path.iterdir()] == ["world.parquet"]


def test_a_folder_that_cannot_be_written_is_named(town, tmp_path):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder.parquet").mkdir()
    for name in ("nowhere/w.parquet", "file/w.parquet", "folder.parquet"):
        path = tmp_path / name
        with pytest.raises(InputError, match=re.escape(f"{path} cannot be written: ")):
            town.to_parquet(path, n=2)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["file", "folder.parquet"]


# --- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, True, 2.0, "3", None])
@pytest.mark.parametrize("name", ["horizon", "n"])
def test_numbers_of_subjects_and_steps_are_positive(town, name, number):
    sentence = f"{name} must be a whole number of at least 1: found {number!r}"
    for n_jobs in (1, 2):
        with pytest.raises(InputError, match=re.escape(sentence)):
            town.sample(**{"n": 3, name: number, "n_jobs": n_jobs})


@pytest.mark.parametrize("name", ["seed", "first"])
@pytest.mark.parametrize("number", [-1, 1.5, None])
def test_seed_and_first_subject_are_not_negative(town, name, number):
    with pytest.raises(InputError, match=rf"^{name} must be a whole number of at least 0: found"):
        town.sample(n=3, **{name: number})


def test_whole_numbers_of_numpy_are_whole_numbers(town):
    found = town.sample(n=np.int64(5), horizon=np.int32(2), seed=np.uint8(4), n_jobs=2)
    assert found.equals(town.sample(n=5, horizon=2, seed=4))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.assign(age=t["age"].where(t.index > 2)), "column 'age' has 3 missing values"),
        (lambda t: t.assign(sex=t["sex"].where(t.index > 0)), "column 'sex' has 1 missing values"),
        (lambda t: t.assign(age=np.inf), "column 'age': finite numbers are needed: found inf"),
        (lambda t: t.head(0), "the table must have rows: found 0"),
        (
            lambda t: t.assign(pay="much"),
            "'pay': LinearGaussianSampler must be fitted to numbers, found levels much",
        ),
        (
            lambda t: t.assign(pay=t["pay"].astype(str).where(t.index > 0, "?")),
            "'pay': LinearGaussianSampler must be fitted to numbers, found levels ?",
        ),
        (
            lambda t: t.drop(columns="pay"),
            "column of the table 'pay' is unknown: expected one of age, sex",
        ),
        (
            lambda t: t.drop(columns="sex"),
            "column of the table 'sex' is unknown: expected one of age, job",
        ),
        (
            lambda t: t.assign(job=pd.Categorical(t["job"], ["clerk", "cook", "king", "nurse"])),
            "variable 'job': 1 of its levels do not occur in the table",
        ),
    ],
)
def test_a_table_that_cannot_be_learned_from(town_specification, town_table, change, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        Simulator(town_specification).fit(change(town_table))


def test_a_learned_mechanism_needs_its_causes_in_the_table(town_table):
    hidden = {"sampler": {"type": "ConstantSampler", "value": 1}}
    effect = {"parents": ["hidden"], "sampler": "LinearGaussianSampler"}
    specification = Specification({"hidden": hidden, "pay": effect})
    with pytest.raises(
        InputError, match=r"from parent 'hidden', .* in the table: found 'no such column'"
    ):
        Simulator(specification).fit(town_table)


@pytest.mark.parametrize(
    ("seq_sampler", "found"),
    [
        ("IncrementSampler", "must keep the kind .* step 0, levels F, M: found 'numbers'"),
        ("Drift", "must keep the kind .* step 0, levels F, M: found 'numbers'"),
        ({"type": "ConstantSampler", "value": 0}, "level 0.0 is unknown: expected one of F, M"),
    ],
)
def test_a_category_stays_a_category(town_table, seq_sampler, found):
    variables = {"sex": {"sampler": "multinomial", "seq_sampler": seq_sampler}}
    specification = Specification(variables, types={"Drift": Drift})
    with pytest.raises(InputError, match=f"variable 'sex'.* {found}"):
        Simulator(specification).fit(town_table)


class Answers(CategoricalMechanism):
    """Levels that are printed like the numbers 0 and 1."""

    levels_ = pd.CategoricalDtype(["0", "1"])

    def probabilities(self, parents):
        return np.array([[0.5, 0.5]])


def test_text_is_not_the_number_that_it_is_printed_like():
    table = pd.DataFrame({"ill": [0, 1] * 10, "pay": np.arange(20.0)})
    later = {"ill": {"sampler": "multinomial", "seq_sampler": "Answers"}}
    with pytest.raises(InputError, match="step 0, levels 0, 1: found \"levels '0', '1'\""):
        Simulator(Specification(later, types={"Answers": Answers})).fit(table)
    pay = {"parents": ["ill"], "sampler": "LinearGaussianSampler"}
    specification = Specification(
        {"ill": {"sampler": "Answers"}, "pay": pay}, types={"Answers": Answers}
    )
    with pytest.raises(
        InputError, match=r"is levels '0', '1' in the model .*: found 'levels 0, 1'"
    ):
        Simulator(specification).fit(table)


def test_a_cause_is_in_the_model_what_it_was_in_the_table(town_table):
    effect = {"parents": ["job"], "sampler": "LinearGaussianSampler"}

    def with_constant(value):
        cause = {"sampler": {"type": "ConstantSampler", "value": value}}
        return Simulator(Specification({"job": cause, "pay": effect})).fit(town_table)

    assert set(with_constant("cook").sample(n=5)["job"]) == {"cook"}
    with pytest.raises(
        InputError, match=r"'job': level 1[.]0 is unknown: expected one of clerk, co"
    ):
        with_constant(1)
    sentence = (
        "'pay': LinearGaussianSampler learns from parent 'job', which is numbers in the model "
    )
    found = "found 'levels clerk, cook, nurse'"
    drifting = Specification({"job": {"sampler": "Drift"}, "pay": effect}, types={"Drift": Drift})
    with pytest.raises(InputError, match=f"{sentence}and must be so in the table: {found}"):
        Simulator(drifting).fit(town_table)


def test_numbers_and_truth_values_may_be_levels():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"treated": rng.integers(0, 2, 50), "well": rng.random(50) < 0.5})
    well = {"parents": ["treated"], "sampler": "LogisticSampler"}
    specification = Specification({"treated": {"sampler": "bernoulli"}, "well": well})
    simulator = Simulator(specification).fit(table)
    done = simulator.sample(n=4, do={"treated": [1, 0, 1, 0], "well": True})
    assert done["treated"].tolist() == [1, 0, 1, 0] and done["well"].tolist() == [True] * 4
    with pytest.raises(InputError, match="level '1' is unknown: expected one of 0, 1"):
        simulator.sample(n=4, do={"treated": "1"})


def test_a_learned_transition_may_have_a_past(town_table):
    # A table shows today's causes only; the past enters by the rule of staying.
    job = {
        "sampler": "multinomial",
        "seq_parents_curr": ["age"],
        "seq_parents_prev": ["job"],
        "seq_sampler": {"type": "LogisticTransitionSampler", "p_stay": 0.5},
    }
    simulator = Simulator(Specification({"age": {"sampler": "gaussian"}, "job": job}))
    seen = simulator.fit(town_table).sample(n=2_000, horizon=2, seed=1)
    stays = seen.loc[seen["t"] == 0, "job"].array == seen.loc[seen["t"] == 1, "job"].array
    assert 0.5 < stays.mean() < 0.85  # half of them by rule, a third of the others by chance


def test_an_unknown_coupling(town_specification, town_table):
    with pytest.raises(
        InputError, match="coupling 'copula' is unknown: expected one of gumbel, in"
    ):
        Simulator(town_specification, "copula").fit(town_table)


@pytest.mark.parametrize("coupling", ["gumbel", "inverse_cdf"])
def test_another_coupling_after_the_fit_changes_every_draw(town, town_table, coupling):
    policy = {"job": {1: StochasticPolicy({"cook": 0.5, "nurse": 0.5})}}
    fresh = Simulator(town.specification, coupling).fit(town_table)
    changed = Simulator(town.specification, town.coupling).fit(town_table)
    changed.set_params(coupling=coupling)
    found, expected = (s.sample(n=200, horizon=3, seed=1, do=policy) for s in (changed, fresh))
    assert found.equals(expected)
    changed.set_params(coupling="copula")
    with pytest.raises(InputError, match="coupling 'copula' is unknown: expected one of gumbel, i"):
        changed.sample(n=1)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (lambda noise: noise[0, :1], "one value per subject is needed, 5: found 1"),
        (lambda noise: noise, r"one value per subject is needed, in one dimension: found \(1, 5\)"),
        (lambda noise: 1.0, r"one value per subject is needed, in one dimension: found \(\)"),
        (lambda noise: np.log(noise[0] - 1), "finite numbers are needed: found nan"),
        (lambda noise: Parents()["age"] + noise[0], "'age' is not there"),
    ],
)
def test_what_a_mechanism_returns_is_one_finite_number_a_subject(value, sentence):
    class Wrong(Mechanism):
        noise_terms = 1

        def evaluate(self, parents, noise):
            with np.errstate(invalid="ignore"):
                return value(noise)

    specification = Specification({"x": {"sampler": "Wrong"}}, types={"Wrong": Wrong})
    simulator = Simulator(specification).fit(pd.DataFrame({"x": [1.0, 2.0]}))
    with pytest.raises(InputError, match=f"variable 'x' at step 0, Wrong: {sentence}"):
        simulator.sample(5)


@pytest.mark.parametrize("row", [[1.0, 3.0], [0.2, 0.2], [1.5, -0.5], [np.nan, 1.0], [1.0]])
def test_what_a_mechanism_states_are_probabilities(row):
    """Couplings draw from whatever is stated, which then is no propensity."""

    class Wrong(CategoricalMechanism):
        fitted_to = "levels"

        def probabilities(self, parents):
            return np.array([row])

    specification = Specification({"x": {"sampler": "Wrong"}}, types={"Wrong": Wrong})
    simulator = Simulator(specification).fit(pd.DataFrame({"x": ["no", "yes"]}))
    rule = "variable 'x': 2 probabilities must be 0 or more and sum to 1"
    message = re.escape(f"{rule}: found [{row}]")
    with pytest.raises(InputError, match=message):
        simulator.sample(5)
    with pytest.raises(InputError, match=message):  # of what was done, nothing was drawn
        simulator.probabilities("x", simulator.sample(5, do={"x": "no"}), t=0)


def test_a_simulator_knows_nothing_of_income(killed):
    process, _ = killed
    assert process.stdout == "[]\n"


def test_an_unfitted_simulator_says_so(town_specification, town_table):
    unfitted = Simulator(town_specification)
    for asked, what in (
        (unfitted.sample, (1,)),
        (unfitted.probabilities, ("job", town_table, 0)),
        (unfitted.fit_quality, (town_table,)),
    ):
        with pytest.raises(NotFittedError):
            asked(*what)


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (lambda s: s, {"n": 4}, "start: column 'age': one value per subject is needed, 4: found 3"),
        (
            lambda s: s,
            {"horizon": 1},
            "start must hold one step, below the horizon of 1: found [1]",
        ),
        (
            lambda s: s.assign(t=[0, 1, 1]),
            {},
            "start must hold one step, below the horizon of 3: found [0, 1]",
        ),
        (
            lambda s: s.drop(columns="job"),
            {},
            "start: column 'job' is unknown: expected one of subject, t, age",
        ),
        (
            lambda s: s.assign(job="king"),
            {},
            "start: column 'job': level 'king' is unknown: expected one of clerk, c",
        ),
        (lambda s: s.assign(age="old"), {}, "'age': finite numbers are needed: found 'old'"),
        (lambda s: s.assign(age=[1, 2, np.nan]), {}, "'age': finite numbers are needed: found nan"),
        (
            lambda s: s,
            {"do": {"job": {1: "cook"}}},
            "do: 'job' may be set only once at each step, start included: found 1",
        ),
        (
            lambda s: s,
            {"first": 2},
            "first must be left out if start names its subjects: found 2",
        ),
        *(
            (lambda s, subject=subject: s.assign(subject=subject), {}, sentence)
            for subject, sentence in (
                ([0, 1, 1], "subjects must be unique whole numbers ≥ 0, below 2**63: found [1]"),
                ([0, 0.5, 1], "must be unique whole numbers ≥ 0, below 2**53: found [0.5]"),
                ([-1, 0, 1], "subjects must be unique whole numbers ≥ 0, below 2**63: found [-1]"),
                ([0.0, 1.0, 2.0**53], "≥ 0, below 2**53: found [9007199254740992.0]"),
                (list("abc"), "start: column 'subject': finite numbers are needed: found 'a'"),
            )
        ),
        (
            lambda s: s,
            {"do": {"job": {0: "cook"}}},
            "'job' at step 0: step must be a number from 1 to 2",
        ),
    ],
)
def test_starting_states_that_break_a_rule(town, change, options, sentence):
    states = town.sample(n=3, horizon=2).query("t == 1")
    with pytest.raises(InputError, match=re.escape(sentence)):
        town.sample(start=change(states), **{"horizon": 3, **options})


def test_what_is_done_to_some_subjects_is_what_was_done_to_them_among_all(town):
    def by_noise(now, before, noise):
        return pd.Series(now["age"] + noise).sort_values()  # by subject, in another order

    far = 10**12
    seen = town.sample(n=40, horizon=2, seed=5)
    start = seen[(seen["t"] == 1) & (seen["pay"] > seen["pay"].median())].iloc[::-1]
    world = town.sample(n=40, horizon=4, seed=6)
    policy = StochasticPolicy({"cook": 0.5, "nurse": 0.5})
    do = {"pay": {2: by_noise, 3: world}, "job": {2: policy}}
    whole = town.sample(n=40, horizon=4, seed=5, do=do).query("t > 0").set_index("subject")
    some = town.sample(start=start, horizon=4, seed=5, do=do)
    assert some["subject"].unique().tolist() == start["subject"].tolist()
    assert some.equals(whole.loc[start["subject"]].reset_index())
    # Between two who are far apart, nobody is simulated.
    apart = start.iloc[:2].assign(subject=[far, 3])
    one = town.sample(start=apart.iloc[:1].drop(columns="subject"), first=far, horizon=4, seed=5)
    assert town.sample(start=apart, horizon=4, seed=5).query("subject == @far").equals(one)


def test_neighbours_beyond_what_a_float_counts_are_not_one(town):
    start, far = town.sample(n=2, seed=5), [2**53 + 1, 2**53]
    done = town.sample(start=start.assign(subject=far), horizon=2, seed=5)
    assert done["subject"].unique().tolist() == far
    alone = town.sample(
        start=start.drop(columns="subject").head(1), horizon=2, seed=5, first=far[0]
    )
    assert done.head(2).equals(alone)


def test_parameters_are_left_as_they_were_given(town_specification, town_table):
    def mechanisms():
        initial = town_specification.initial("pay")
        transition = town_specification.transition("pay", initial)
        return dataclasses.asdict(initial), dataclasses.asdict(transition)

    before = mechanisms()
    simulator = Simulator(town_specification)
    assert simulator.fit(town_table) is simulator
    assert simulator.get_params() == {"specification": town_specification, "coupling": "gumbel"}
    assert mechanisms() == before


def test_a_doubled_column_of_the_table_is_refused():
    table = pd.DataFrame([[20.0, 1.0], [30.0, 2.0]], columns=["age", "age"])
    with pytest.raises(
        InputError, match="each column of the table may be given only once: found 'age'"
    ):
        Simulator(Specification({"age": {"sampler": "gaussian"}})).fit(table)


@pytest.mark.parametrize("seed", [None, -1, "a", True])
def test_a_seed_that_is_none_is_refused_before_anything_is_fitted(seed):
    table = pd.DataFrame({"age": [20.0, 30.0]})
    with pytest.raises(InputError, match="seed must be a whole number of at least 0"):
        Simulator(Specification({"age": {"sampler": "gaussian"}})).fit(table, seed)


class Reads(Mechanism):
    """Reads the levels of its parent."""

    def evaluate(self, parents, noise):
        return parents["job"].codes.astype(float)


def test_what_a_mechanism_cannot_read_or_learn_names_the_variable():
    table = pd.DataFrame({"job": [1.0, 2.0], "kind": ["a", "b"]})
    variables = {"job": {"sampler": "gaussian"}, "pay": {"parents": ["job"], "sampler": "Reads"}}
    simulator = Simulator(Specification(variables, types={"Reads": Reads})).fit(table)
    with pytest.raises(InputError, match=r"'pay' at step 0, Reads: 'numpy[.]ndarray' object"):
        simulator.sample(3)
    kind = {"parents": ["job"], "sampler": {"type": "LogisticSampler", "C": -1}}
    with pytest.raises(InputError, match="variable 'kind': LogisticSampler: The 'C' parameter"):
        Simulator(Specification(variables | {"kind": kind}, types={"Reads": Reads})).fit(table)
