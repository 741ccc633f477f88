"""Items: addressed, cheap, balanced, and right by the second oracle."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from lib.ccr import generate, read, tasks
from lib.ccr.items import LEVELS, item, score
from lib.ccr.questions import ANSWERS, KINDS
from lib.ccr.theme import themes
from lib.errors import InputError

DIFFICULTIES = [
    {"components": k, "nodes": n, "withheld": share}
    for k, n, share in (
        (1, 2, 0.0),
        (3, 3, 0.0),
        (5, 4, 0.0),
        (1, 3, 0.3),
        (3, 3, 0.2),
        (5, 4, 0.3),
    )
]


@pytest.mark.parametrize("theme", themes())
@pytest.mark.parametrize("difficulty", DIFFICULTIES, ids=str)
def test_the_reader_finds_every_answer_in_the_prompt_alone(theme, difficulty):
    for index in range(12):
        one = item(index, seed=1, theme=theme, **difficulty)
        context, _, question = one["prompt"].rpartition("\n\n")
        assert ANSWERS[read(context, question)] == one["answer"]


@pytest.mark.parametrize("withheld", [0.0, 0.3])
def test_an_item_is_a_prompt_of_the_task_of_its_number(withheld):
    """So items and sets of tasks of one seed ask about the same worlds."""
    tasks = generate("flu_vaccine", [3, 3], n_tasks=5, n_samples=1, seed=2, withheld=withheld)
    prompts = {one["id"]: one for one in tasks.prompts()}
    for index in range(5):
        one = item(index, seed=2, theme="flu_vaccine", components=2, withheld=withheld)
        prompt = prompts[one["id"]]
        assert one["task"] == index
        assert one["prompt"] == f"{prompt['context']}\n\n{prompt['text']}"
        assert one["answer"] == {True: "Yes", False: "No"}.get(prompt["answer"], prompt["answer"])


def test_an_index_and_a_seed_are_an_address():
    once = [item(index, seed=4)["prompt"] for index in range(20)]
    assert [item(index, seed=4)["prompt"] for index in reversed(range(20))] == once[::-1]
    assert len(set(once)) == 20
    # Seed 5 is no shifted seed 4, as it would be if seed and index were added.
    assert set(once).isdisjoint(item(index, seed=5)["prompt"] for index in range(20))


@cache
def first_items(withheld):
    return [item(index, components=2, withheld=withheld) for index in range(200)]


@pytest.mark.parametrize(("withheld", "n_answers"), [(0.0, 2), (0.3, 3)])
def test_who_always_says_the_same_is_right_as_often_as_by_chance(withheld, n_answers):
    said = Counter(one["answer"] for one in first_items(withheld))
    assert set(said) == set(ANSWERS[:n_answers])
    # Not every world has all answers: hence the twentieth beside chance.
    allowed = 1 / 20 + 3 * np.sqrt(0.25 / 200)
    assert max(said.values()) / 200 < 1 / n_answers + allowed


def test_answers_are_balanced_even_where_nearly_all_are_yes():
    setting = {"probabilities": [0.7], "causal_functions": "or"}
    tasks = generate("candy_party", [3, 3], n_tasks=100, n_samples=1, **setting)
    assert np.mean([prompt["answer"] for prompt in tasks.prompts()]) > 0.85
    said = [item(index, components=2, **setting)["answer"] for index in range(100)]
    assert 0.4 < said.count("Yes") / 100 < 0.75


def test_with_facts_withheld_every_kind_of_question_is_asked():
    kinds = Counter(one["kind"] for one in first_items(0.3))
    assert set(kinds) == set(KINDS) and max(kinds.values()) < 200 / 4


def test_an_item_draws_one_world_wherever_it_is(monkeypatch):
    """What that takes is measured in benchmarks/training.py, and less than 20 milliseconds."""
    hardest, worlds, draw = {n: levels[-1] for n, levels in LEVELS.items()}, [], tasks.random_world
    monkeypatch.setattr(tasks, "random_world", lambda *how: worlds.append(how) or draw(*how))
    for index in (0, 7, 10**9):
        assert item(index, **hardest)["task"] == index
    assert [re.search(r"task (\d+)", how[3])[1] for how in worlds] == ["0", "7", str(10**9)]


def test_levels_go_from_easy_to_hard_and_all_have_items():
    for name, levels in LEVELS.items():
        assert levels == sorted(set(levels))
        assert all(item(0, **{name: level})["prompt"] for level in levels)
    assert item(0) == item(0, components=3, nodes=3, withheld=0)


@pytest.mark.parametrize("answer", ANSWERS)
def test_words_score_by_what_they_say(answer):
    for said in (answer, f"**{answer}**, it follows.", f"So be it.\nAnswer: {answer}."):
        assert score(said, answer) == 1
    others = [other for other in ANSWERS if other != answer]
    for said in (*others, "Yes or no?", f"{answer}.\nAnswer: {others[0]}", "", None, 3, b"Yes"):
        assert score(said, answer) == 0


@pytest.mark.parametrize("answer", ["True", True, "yes", "", None])
def test_what_is_no_true_answer_is_refused(answer):
    """Words that say nothing would be as good as an answer that says nothing."""
    with pytest.raises(InputError, match=f"answer {answer!r} is unknown: expected one of No, Yes"):
        score("Perhaps.", answer)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"index": -1}, "index must be a whole number of at least 0: found -1"),
        ({"index": 1.0}, "index must be a whole number of at least 0: found 1.0"),
        (
            {"component": 2},
            "'component' is unknown: expected one of components, nodes, seed, asides",
        ),
        ({"n_samples": 2}, "parameter 'n_samples' is unknown"),
        ({"n_per_bcc": [3]}, "parameter 'n_per_bcc' is unknown"),
        ({"withheld": 2}, "withheld"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"components": 0}, "components must be a whole number of at least 1: found 0"),
        ({"components": 2.0}, "components must be a whole number of at least 1: found 2.0"),
        ({"theme": "candy"}, "theme 'candy' is unknown"),
        ({"nodes": 1}, "at least 2"),
        (
            {"index": 1, "components": 1, "withheld": 0.3, "unknown": 0.5},
            "must leave at least one prompt of item 1",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(arguments, rule):
    with pytest.raises(InputError, match=rule):
        item(**{"index": 0, **arguments})
