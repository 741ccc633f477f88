import gc
import hashlib
import os
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lib.ccr import generate, read, tasks
from lib.ccr.questions import ANSWERS
from lib.ccr.stories import FORMS
from lib.ccr.tasks import Setting
from lib.ccr.theme import themes
from lib.errors import InputError

TABLES = ("contexts", "samples", "questions", "answers", "quantities")
FACTUAL = [
    *("Task ID", "Context ID", "Sample ID", "Replicate ID", "Nodes per BCC"),
    *("Effect", "Context", "Question", "True"),
]
INTERVENTIONAL = [
    *("Task ID", "Context ID", "Sample ID", "Replicate ID", "Nodes per BCC"),
    *("Cause-effect pair", "Cause", "Effect", "Context"),
    *("Question (cause = True)", "True (cause = True)"),
    *("Question (cause = False)", "True (cause = False)"),
]

DIGESTS = """
import hashlib
from lib.ccr import generate
from lib.ccr.theme import themes

def digests():
    for theme in sorted(themes()):
        told = {"n_tasks": 2, "n_samples": 5, "seed": 11, "n_wordings": 2}
        made = generate(theme, [3, 4], bcc_types="mixed", **told)
        for table in ("contexts", "samples", "questions", "answers", "quantities"):
            text = getattr(made, table).to_json()
            yield theme, table, hashlib.sha256(text.encode()).hexdigest()
"""


@pytest.mark.parametrize("hash_seed", ["0", "4321"])
def test_another_process_makes_the_same_bytes(hash_seed):
    scope = {}
    exec(DIGESTS, scope)
    here = [" ".join(row) for row in scope["digests"]()]
    script = DIGESTS + "\nfor row in digests():\n    print(*row)"
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    run = [sys.executable, "-c", script]
    there = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.splitlines() == here
    assert len(here) == 5 * len(themes())


def test_every_subset_of_tasks_and_samples_is_the_same():
    whole = generate("flu_vaccine", n_tasks=5, n_samples=9, seed=2, n_wordings=3, least_pns=0.05)
    part = generate(
        "flu_vaccine",
        n_tasks=2,
        n_samples=4,
        seed=2,
        first_task=3,
        n_wordings=3,
        least_pns=0.05,
    )
    for table in TABLES:
        expected = getattr(whole, table)
        expected = expected[expected["task"] >= 3]
        if "sample" in expected:
            expected = expected[expected["sample"] < 4]
        pd.testing.assert_frame_equal(
            getattr(part, table), expected.reset_index(drop=True), check_exact=True
        )


def test_another_seed_is_another_set():
    one, other = (generate("candy_party", n_samples=20, seed=seed) for seed in (0, 1))
    assert one.contexts["text"][0] != other.contexts["text"][0]
    assert not one.answers.equals(other.answers)


def test_tables_hold_every_prompt_once():
    made = generate("candy_party", [3, 2, 4], n_tasks=3, n_samples=7)
    prompts = pd.DataFrame(made.prompts())
    assert len(made) == len(made.answers) == len(prompts) == 3 * 7 * (4 + 2 * 6)
    assert prompts["id"].is_unique
    assert len(made.contexts) == 3 and len(made.samples) == 21 and len(made.questions) == 48
    assert len(made.quantities) == 3 * 6
    assert repr(made) == "Tasks(name='candy_party')"
    keys = ["task", "sample", "question", "answer"]
    pd.testing.assert_frame_equal(prompts[keys], made.answers, check_dtype=False)


def test_flat_frames_have_the_public_columns_and_say_what_the_tables_say():
    made = generate("flower_garden", [3, 3], n_tasks=2, n_samples=6, seed=3)
    assert list(made.factual.columns) == FACTUAL
    assert list(made.interventional.columns) == [*INTERVENTIONAL, "Cause node", "Effect node"]
    prompts = list(made.prompts())
    factual = {(row["Context"], row["Question"]): row["True"] for _, row in made.factual.iterrows()}
    assert len(factual) == 2 * 6 * 3
    flat = factual | {
        (row["Context"], row[f"Question (cause = {value})"]): row[f"True (cause = {value})"]
        for _, row in made.interventional.iterrows()
        for value in (True, False)
    }
    assert flat == {(p["context"], p["text"]): p["answer"] for p in prompts}
    for _, row in made.interventional.iterrows():
        assert row["Cause-effect pair"] == f"{row['Cause']} → {row['Effect']}"
        assert row["Cause"] in row["Question (cause = True)"].split(". ")[0]
        assert row["Effect"] in row["Question (cause = True)"].rpartition("Is ")[2]


def test_flat_frames_of_several_sets_are_theirs_one_below_another():
    sets = [
        generate("candy_party", [3, 4], n_tasks=2, n_samples=5),
        generate("flu_vaccine", [2, 2, 2], first_task=2, n_samples=30, only_changed=True),
    ]
    together = tasks.Tasks([task for made in sets for task in made.tasks])
    for name in ("factual", "interventional"):
        expected = pd.concat([getattr(made, name) for made in sets], ignore_index=True)
        pd.testing.assert_frame_equal(getattr(together, name), expected, check_exact=True)


def test_a_set_has_tasks_and_each_number_once():
    sets = [generate(theme, [2], n_samples=1).tasks for theme in ("candy_party", "flu_vaccine")]
    with pytest.raises(InputError, match="each number of a task may be given only once: found 0"):
        tasks.Tasks([*sets[0], *sets[1]])
    with pytest.raises(InputError, match=r"a set must hold at least one task: found \[\]"):
        tasks.Tasks([])


def test_facts_are_withheld_in_all_tasks_of_a_set_or_in_none():
    """Else its tables have other columns, and its answers are truth values and words."""
    told, untold = (tasks.generate("candy_party", [3, 3], n_tasks=2, withheld=w) for w in (0, 0.4))
    with pytest.raises(InputError, match=r"all tasks or none must withhold facts: found \[0, 2\]"):
        tasks.Tasks([told.tasks[0], untold.tasks[1]])


def test_flat_frames_hold_each_context_once():
    before = pa.total_allocated_bytes()
    told = generate("candy_party", [2] * 10, n_samples=50).interventional["Context"]
    taken = pa.total_allocated_bytes() - before
    assert len(told) == 55 * told.nunique()
    assert taken < told.str.len().sum() / 10


def test_contexts_tell_the_graph():
    made = generate("candy_party", [3, 2], causal_functions="and", n_samples=1)
    row = made.contexts.iloc[0]
    assert row["edges"] == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert row["cut_tree"] == [0, 2, 3] and row["operators"] == ["and"] * 4
    assert made.contexts["attempts"].tolist() == [1]
    assert len(row["nodes"]) == len(row["probabilities"]) == 4


@pytest.mark.parametrize("n", [400, 40_000])
def test_estimates_from_labels_converge_to_the_exact_quantities(n):
    """Each lies within five standard errors, which chance exceeds less than once in a million."""
    made = generate("candy_party", [3, 4, 2], bcc_types="mixed", n_tasks=6, n_samples=n, seed=8)
    for task in made.tasks:
        rows = task.questions.set_index(["cause", "effect", "value"])["question"]
        for (cause, effect), exact in task.quantities.iterrows():
            treated, control = (task.labels[rows[cause, effect, value]] for value in (1, 0))
            for estimate, p in (
                ((treated & ~control).mean(), exact["PNS"]),
                (treated.mean(), exact["P(y | do x)"]),
            ):
                assert abs(estimate - p) <= 5 * np.sqrt(p * (1 - p) / n)
            seen = task.labels[rows[-1, cause, -1]]
            p, m = exact["P(y | x)"], seen.sum()
            given = task.labels[rows[-1, effect, -1]][seen].mean()
            assert abs(given - p) <= 5 * np.sqrt(p * (1 - p) / m) + 1e-12


def test_only_changed_keeps_what_the_intervention_changes():
    whole = generate("candy_party", [3, 3], n_tasks=2, n_samples=40, seed=5)
    changed = generate("candy_party", [3, 3], n_tasks=2, n_samples=40, seed=5, only_changed=True)
    told = whole.answers.merge(whole.questions, on=["task", "question"])
    is_factual = told["cause"] < 0
    factual = told[is_factual].set_index(["task", "sample", "effect"])["answer"]
    before = factual.loc[list(zip(told["task"], told["sample"], told["effect"], strict=True))]
    expected = whole.answers[(is_factual | (told["answer"] != before.to_numpy())).to_numpy()]
    assert 0 < len(changed) < len(whole)
    pd.testing.assert_frame_equal(
        changed.answers, expected.reset_index(drop=True), check_exact=True
    )
    assert len(changed) == len(list(changed.prompts()))
    # Of each pair of two answers, one is as things are: the flat frame has a row for each.
    pairs = changed.interventional
    assert (pairs["True (cause = True)"] & ~pairs["True (cause = False)"]).all()
    assert len(pairs) == len(changed) - len(changed.factual)


def test_of_two_interventions_on_a_cause_one_changes_nothing():
    """So whoever ignores interventions is right on at least half of these prompts."""
    for theme in ("clinical_notes", "flower_garden"):
        for task in generate(theme, [2, 4], n_tasks=4, n_samples=200).tasks:
            changed = task.labels != task.before
            of_true, of_false = (changed[task.keys[:, 1] == value] for value in (1, 0))
            assert of_true.any() and of_false.any()
            assert not (of_true & of_false).any()


def test_the_reader_answers_what_the_flat_frames_ask():
    made = generate("candy_party", n_samples=3)
    for _, row in made.factual.iterrows():
        assert read(row["Context"], row["Question"]) == row["True"]


def test_parquet_holds_the_tables(tmp_path):
    made = generate("clinical_notes", n_tasks=3, n_samples=5, only_changed=True)
    folder = made.to_parquet(tmp_path / "a set")
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{t}.parquet" for t in TABLES)
    for table in TABLES:
        expected, found = getattr(made, table), pd.read_parquet(folder / f"{table}.parquet")
        assert found.map(_plain).equals(expected.map(_plain))


@pytest.mark.parametrize("withheld", [0, 0.3])
def test_tables_are_joined_by_columns_of_one_type(withheld):
    made = generate("candy_party", n_samples=2, withheld=withheld)
    tables = [getattr(made, name) for name in TABLES if withheld == 0 or name != "quantities"]
    for key in ("task", "sample", "question"):
        assert {table[key].dtype for table in tables if key in table} == {np.dtype("int32")}


def test_the_same_tasks_are_the_same_files(tmp_path):
    for name in ("one", "other"):
        generate("candy_party", n_tasks=2, n_samples=5).to_parquet(tmp_path / name)
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).digest() for path in folder.iterdir()}
        for folder in (tmp_path / "one", tmp_path / "other")
    ]
    assert digests[0] == digests[1]


def test_a_failure_while_writing_leaves_the_old_files(tmp_path, monkeypatch):
    generate("candy_party", n_tasks=2, n_samples=5).to_parquet(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(task):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(tasks.TABLES, "answers", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        generate("candy_party", n_tasks=2, n_samples=9).to_parquet(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_set_is_replaced_with_what_was_published_of_it(tmp_path):
    generate("candy_party", n_tasks=2, n_samples=5).to_parquet(tmp_path / "set")
    (tmp_path / "set" / "croissant.json").write_text("{}")
    generate("candy_party", n_tasks=1, n_samples=5).to_parquet(tmp_path / "set")
    assert sorted(path.stem for path in (tmp_path / "set").iterdir()) == sorted(TABLES)
    (tmp_path / "set" / "mine.txt").write_text("")
    with pytest.raises(InputError, match="will be replaced and must not hold anything else"):
        generate("candy_party", n_samples=1).to_parquet(tmp_path / "set")


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="taken cannot be written: it exists and is not a folder"):
        generate("candy_party", n_samples=1).to_parquet(tmp_path / "taken")


def _plain(value):
    """Return a cell with lists where Parquet gives arrays."""
    if isinstance(value, list | np.ndarray):
        return [_plain(item) for item in value]
    return value


def test_quantities_and_prompts_name_nodes_alike_so_that_they_join():
    made = generate("flu_vaccine", [3, 3], n_tasks=3, n_samples=4, seed=6)
    by_number = made.interventional.merge(
        made.quantities,
        left_on=["Task ID", "Cause node", "Effect node"],
        right_on=["task", "cause", "effect"],
    )
    by_name = made.interventional.merge(
        made.quantities,
        left_on=["Task ID", "Cause", "Effect"],
        right_on=["task", "cause label", "effect label"],
    )
    assert len(by_number) == len(made.interventional) == 3 * 3 * 4
    pd.testing.assert_frame_equal(by_number, by_name, check_exact=True)
    for row in made.quantities.to_dict("records"):
        nodes = made.contexts["nodes"][row["task"]]
        assert (nodes[row["cause"]], nodes[row["effect"]]) == (
            row["cause label"],
            row["effect label"],
        )


def test_writing_takes_the_memory_of_one_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "BLOCK", 1_000)

    def most(n_tasks):
        made = generate("candy_party", n_tasks=n_tasks, n_samples=1_000)
        gc.collect()
        tracemalloc.start()
        made.to_parquet(tmp_path)
        kept, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return kept, peak

    most(1)  # what is kept once, such as compiled patterns
    (kept_of_few, few), (kept_of_many, many) = most(5), most(20)
    assert many < 1.3 * few
    assert kept_of_many - kept_of_few < 0.5 * few


def test_to_count_and_to_yield_prompts_keeps_no_labels():
    made = generate("candy_party", n_tasks=2, n_samples=5)
    assert len(list(made.prompts())) == len(made)
    assert all("labels" not in vars(task) for task in made.tasks)


@pytest.mark.parametrize("theme", themes())
@pytest.mark.parametrize("asides", [True, False])
def test_the_anatomy_is_the_whole_prompt(theme, asides):
    tasks = generate(theme, [3, 4], n_tasks=3, n_samples=6, n_wordings=3, seed=4, asides=asides)
    for task in tasks.tasks:
        for sample in range(task.n_samples):
            parts = task.anatomy(sample)
            told = parts.groupby("part", sort=False)["text"].agg(" ".join)
            assert told["context"] == task.story.context
            assert told["sample"] == task.samples[sample]


def test_roles_follow_world_and_noise():
    (task,) = generate("candy_party", [3, 3], n_samples=4, seed=2).tasks
    roles = task.anatomy(3)["role"].tolist()
    assert roles[:7] == ["situation", *(f"rule of node {i}" for i in range(5)), "closed world"]
    noises = [role for role in roles if role.startswith("noise")]
    expected = ["true" if noise else "false" for noise in task.noise[:, 3]]
    assert noises == [f"noise of node {i}: {value}" for i, value in enumerate(expected)]
    assert roles.count("does not matter") == 5


def leaf_share(world):
    """Return how often the leaf is true, from the states of all noise."""
    n = world.chain.n_nodes
    states = (np.arange(2**n) >> np.arange(n)[:, None]) & 1 == 1
    p = np.array(world.probabilities)[:, None]
    weight = np.where(states, p, 1 - p).prod(axis=0)
    return weight[world.values(states)[world.chain.leaf]].sum()


def test_a_floor_on_the_pns_and_a_balanced_leaf_are_met():
    made = generate("candy_party", n_tasks=6, n_samples=1, least_pns=0.1, balance=0.3, seed=1)
    free = generate("candy_party", n_tasks=6, n_samples=1, seed=1)
    assert any(task.attempts > 1 for task in made.tasks)
    for task, drawn in zip(made.tasks, free.tasks, strict=True):
        assert task.quantities["PNS"].loc[task.world.chain.global_quantity] >= 0.1
        assert 0.3 <= leaf_share(task.world) <= 0.7
        assert (task.attempts == 1) == (task.world == drawn.world)


def test_balance_counts_with_how_often_the_root_is_true():
    """A rare root over bridges of "and" and "or": the leaf's share depends on it."""
    rare = {"probabilities": [0.1, 0.25], "causal_functions": "or", "n_per_bcc": [2, 2]}
    made = generate("candy_party", n_tasks=20, n_samples=1, balance=0.4, **rare)
    assert all(0.4 <= leaf_share(task.world) <= 0.6 for task in made.tasks)


def test_mixed_kinds_are_both_drawn():
    made = generate("candy_party", [4] * 6, bcc_types="mixed", n_tasks=3, n_samples=1)
    kinds = made.contexts["bcc_types"].tolist()
    assert {kind for row in kinds for kind in row} == {"cycle", "wheel"}
    assert len({tuple(row) for row in kinds}) > 1


def test_wordings_take_turns_if_asked_for():
    assert generate("candy_party", n_tasks=2, n_samples=1).contexts["wording"].tolist() == [0, 0]
    made = generate("candy_party", n_tasks=5, n_samples=1, n_wordings=3)
    assert made.contexts["wording"].tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theme": "candy"}, "theme 'candy' is unknown: expected one of candy_party, "),
        (
            {"n_per_bcc": [3, 1]},
            "each entry of n_per_bcc must be a whole number of at least 2",
        ),
        ({"n_per_bcc": []}, "n_per_bcc must list the size of each component: found []"),
        ({"n_per_bcc": 3}, "n_per_bcc must list the size of each component: found 3"),
        ({"bcc_types": ["cycle"]}, "bcc_types must have one kind per component, 3: found 1"),
        ({"bcc_types": "ring"}, "bcc_types 'ring' is unknown: expected one of cycle, wheel, mixed"),
        (
            {"causal_functions": "nor"},
            "in theme 'candy_party', causal_functions 'nor' is unknown: expected one of and",
        ),
        (
            {"probabilities": [0.5, 1.0]},
            "probabilities must list numbers above 0 and below 1: found [0.5, 1.0]",
        ),
        (
            {"probabilities": [0.0]},
            "probabilities must list numbers above 0 and below 1: found [0.0]",
        ),
        (
            {"probabilities": [float("nan")]},
            "probabilities must list numbers above 0 and below 1: found [nan]",
        ),
        ({"probabilities": []}, "probabilities must list numbers above 0 and below 1: found []"),
        ({"probabilities": 0.5}, "probabilities must list numbers above 0 and below 1: found 0.5"),
        (
            {"probabilities": "0.5"},
            "probabilities must list numbers above 0 and below 1: found '0.5'",
        ),
        ({"n_tasks": 0}, "n_tasks must be a whole number of at least 1: found 0"),
        ({"n_samples": 2.5}, "n_samples must be a whole number of at least 1: found 2.5"),
        ({"n_wordings": 4}, "n_wordings must be a whole number from 1 to 3: found 4"),
        ({"n_wordings": 0}, "n_wordings must be a whole number from 1 to 3: found 0"),
        ({"first_task": -1}, "first_task must be a whole number of at least 0: found -1"),
        ({"seed": -1}, "seed must be a whole number of at least 0: found -1"),
        ({"least_pns": 1.0}, "least_pns must be at least 0 and below 1: found 1.0"),
        ({"least_pns": "a"}, "least_pns must be at least 0 and below 1: found 'a'"),
        ({"balance": 0.5}, "balance must be at least 0 and below 0.5: found 0.5"),
        ({"balance": None}, "balance must be at least 0 and below 0.5: found None"),
        (
            {"probabilities": ["a"]},
            "probabilities must list numbers above 0 and below 1: found ['a']",
        ),
        ({"asides": "no"}, "asides must be True or False: found 'no'"),
        ({"only_changed": None}, "only_changed must be True or False: found None"),
        ({"n_per_bcc": {3, 4}}, "n_per_bcc must list the size of each component: found {3, 4}"),
        ({"bcc_types": {"cycle"}}, "bcc_types must have one kind per component, 3: found 0"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(InputError) as error:
        generate(**{"theme": "candy_party"} | arguments)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("functions", "rule"),
    [
        ("nor", "theme 'clinical_notes', causal_functions 'nor' is unknown: expected 'or, and at"),
        ("and", "theme 'clinical_notes', causal_functions 'and' is unknown: expected 'or, and at"),
        ("random", "theme 'clinical_notes', causal_functions 'random' is unknown: expected 'or, "),
    ],
)
def test_a_theme_that_insists_on_its_operators_refuses_others(functions, rule):
    with pytest.raises(InputError, match=rule):
        generate("clinical_notes", causal_functions=functions)


def test_what_a_theme_insists_on_may_be_asked_for():
    asked, not_asked = (
        generate("clinical_notes", [4, 3], n_samples=1, **functions).contexts
        for functions in ({"causal_functions": "or, and at the leaf"}, {})
    )
    pd.testing.assert_frame_equal(asked, not_asked, check_exact=True)
    assert asked["operators"][0] == ["or"] * 5 + ["and"]


def test_an_unknown_parameter_is_refused():
    with pytest.raises(InputError) as error:
        generate("candy_party", n_nodes=3)
    assert str(error.value) == (
        "parameter 'n_nodes' is unknown: expected one of theme, n_per_bcc, bcc_types, "
        "causal_functions, n_samples, least_pns, balance, probabilities, n_wordings, asides, "
        "only_changed, withheld, unknown, n_tasks, seed, first_task, n_jobs"
    )


def test_a_setting_is_checked_before_anything_is_drawn():
    with pytest.raises(InputError, match=r"balance must be at least 0 and below 0\.5: found 0\.7"):
        Setting("candy_party", balance=0.7)


@pytest.mark.parametrize(("n", "withheld", "n_untold"), [(8, 1.0, 8), (8, 0.5, 4), (3, 0.01, 1)])
def test_a_share_of_the_facts_is_withheld_but_at_least_one(n, withheld, n_untold):
    assert Setting("candy_party", [n], withheld=withheld).n_untold == n_untold


def test_a_floor_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_ATTEMPTS", 30)
    floor = "no world in 30 has a global PNS of at least 0.9"
    for balance, more in {
        0.0: "",
        0.45: " and a leaf that is true with a probability of 0.45 to 0.55",
    }.items():
        with pytest.raises(InputError, match=f"^{floor}{more}$"):
            generate("candy_party", least_pns=0.9, balance=balance)


def test_withheld_facts_are_left_out_and_nothing_else_is():
    told = {"n_tasks": 2, "n_samples": 30, "seed": 4}
    whole, part = (generate("flower_garden", [3, 4], **told, withheld=w) for w in (0.0, 0.3))
    for all_told, some_told in zip(whole.tasks, part.tasks, strict=True):
        assert some_told.n_untold == 2 and ((some_told.told < 0).sum(axis=0) == 2).all()
        assert (some_told.told == all_told.noise)[some_told.told >= 0].all()
        assert all_told.story.context == some_told.story.context
        for long, short in zip(all_told.samples, some_told.samples, strict=True):
            *sentences, last = re.split(r"(?<=\.) (?=Not every fact|\w+'s|\w+ \w+s )", short)
            assert last == FORMS["untold"]
            assert all(sentence in long for sentence in sentences)
            assert long.count("bloom") - short.count("bloom") == 2


def test_what_is_known_is_true_and_the_tables_hold_every_prompt():
    made = generate("candy_party", [3, 3], n_tasks=2, n_samples=20, withheld=0.4, seed=2)
    prompts = pd.DataFrame(made.prompts())
    assert len(made) == len(prompts) == len(made.answers)
    assert set(prompts["answer"]) == set(ANSWERS) and prompts["id"].is_unique
    pd.testing.assert_series_equal(prompts["answer"], made.answers["answer"], check_exact=True)
    for prompt in prompts.itertuples():
        task = made.tasks[prompt.task]
        values = task.world.values(task.noise)[:, prompt.sample]
        for node, value, _ in task.asks[prompt.question].given:
            assert values[node] == value
            clause = task.story.nodes[node].true if value else task.story.nodes[node].false
            assert f"that {clause}" in prompt.text.partition(".")[0]


@pytest.mark.parametrize("share", [0.0, 0.2, 1 / 3, 0.5, 1.0])
def test_the_share_of_the_unknown_is_as_asked_for(share):
    told = {"n_tasks": 2, "n_samples": 200, "withheld": 0.3, "seed": 1}
    whole, part = (generate("candy_party", **told, unknown=u) for u in (None, share))
    rows = pd.DataFrame(part.prompts())
    assert set(rows["id"]) <= {prompt["id"] for prompt in whole.prompts()}
    for (_, kind), of_kind in rows.groupby(["task", "kind"]):
        found = (of_kind["answer"] == "Cannot be known").mean()
        assert abs(found - share) <= 1 / len(of_kind), kind


def test_only_changed_keeps_of_what_is_known_what_matters():
    told = {"n_samples": 60, "withheld": 0.4, "seed": 3}
    (whole,), (part,) = (
        generate("candy_party", **told, only_changed=only).tasks for only in (False, True)
    )
    silent = np.array([[not one.given] for one in whole.asks])
    kept = whole.asked & (silent | (whole.labels != whole.before))
    assert (part.asked == kept).all() and 0 < kept.sum() < whole.asked.sum()


def test_questions_about_withheld_facts_have_no_quantities():
    made = generate("candy_party", [3], n_samples=5, withheld=0.3)
    for use in (lambda: made.factual, lambda: made.interventional, lambda: made.tasks[0].keys):
        with pytest.raises(InputError, match=r"need all facts told; .*: found '1 untold facts'"):
            use()


def test_an_anatomy_says_that_facts_are_missing():
    (task,) = generate("candy_party", [3], n_samples=1, withheld=1.0).tasks
    roles = task.anatomy()["role"].tolist()
    assert roles[-1] == "facts are missing" and not any("noise" in role for role in roles)


def test_withheld_tables_are_written_and_read_again(tmp_path):
    made = generate("candy_party", [3], n_samples=5, withheld=0.3)
    made.to_parquet(tmp_path)
    again = pd.read_parquet(tmp_path / "answers.parquet")
    pd.testing.assert_frame_equal(again, made.answers, check_exact=True)


@pytest.mark.parametrize("first_task", [0, 1])  # the first that is asked something, or is not
def test_tasks_of_which_nothing_is_asked_are_written_among_others(tmp_path, first_task):
    one = {"n_samples": 1, "withheld": 0.3, "unknown": 0.5}
    made = generate("candy_party", [2], n_tasks=4, first_task=first_task, **one)
    assert 0 in [task.asked.sum() for task in made.tasks]
    made.to_parquet(tmp_path)
    again = pd.read_parquet(tmp_path / "answers.parquet")
    assert again.to_numpy().tolist() == made.answers.to_numpy().tolist() and len(again) > 0


def test_tasks_of_which_nothing_is_asked_at_all_are_written(tmp_path):
    one = {"n_samples": 1, "withheld": 0.3, "unknown": 0.5}
    made = generate("candy_party", [2], first_task=1, **one)
    made.to_parquet(tmp_path)
    again = pd.read_parquet(tmp_path / "answers.parquet")
    assert again.columns.tolist() == made.answers.columns.tolist() and len(again) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"withheld": 1.5}, "withheld must lie between 0 and 1: found 1.5"),
        (
            {"withheld": 0.9, "n_per_bcc": [10, 10]},
            "withheld must leave at most 16 facts untold, as each doubles the work: found 17",
        ),
        (
            {"unknown": 0.3},
            "unknown must lie between 0 and 1, and needs withheld above 0: found 0.3",
        ),
        ({"unknown": 2, "withheld": 0.3}, "unknown must lie between 0 and 1, and needs with"),
        ({"unknown": "a", "withheld": 0.3}, "unknown must lie between 0 and 1, and needs with"),
        (
            {"unknown": 0.5, "withheld": 0.3, "only_changed": True},
            "unknown must be 0 or None with only_changed, which keeps what can be inferred: "
            "found 0.5",
        ),
    ],
)
def test_bad_shares_are_refused(arguments, message):
    with pytest.raises(InputError) as error:
        generate("candy_party", **arguments)
    assert str(error.value).startswith(message)
