import json

import numpy as np
import pytest

from lib.ccr import generate
from lib.ccr.answers import (
    NOT_ASKED,
    UNPARSEABLE,
    as_grids,
    checked,
    from_grids,
    parse,
    read_answers,
    write_answers,
    write_prompts,
)
from lib.errors import InputError


@pytest.fixture(scope="module")
def tasks():
    return generate("candy_party", n_per_bcc=[3, 3], n_tasks=2, n_samples=3, seed=4)


@pytest.fixture
def lines(tasks):
    """One line a prompt that answers all alike: the lines of a file to be spoilt."""
    return [json.dumps({"id": p["id"], "answer": "Yes."}) for p in tasks.prompts()]


@pytest.mark.parametrize(
    "text",
    [
        *("Yes", "yes", "YES.", " Yes\n", "**Yes**", "*Yes.*", "`yes`", '"Yes"', "__Yes__!"),
        *("Yes, Rosa is happy.", "Yes because she is.", "Yes - she is.", "Yes: Rosa gets 4."),
        "Yes\n\nRosa gets 4 candies, which is not fewer than 3.",
        "Rosa gets 4 candies.\nAnswer: Yes",
        "No rule but one speaks of her.\n\n**Answer:** yes.",
        "She needs 3.\n## Final answer: **Yes**",
        "She needs 3.\nThe answer is yes.",
        "Yes.\nAnswer: yes",
    ],
)
def test_yes_and_its_mirror_no(text):
    assert parse(text) == 1
    mirrored = text.replace("No rule", "One rule")
    for word, other in (("Yes", "No"), ("yes", "no"), ("YES", "NO")):
        mirrored = mirrored.replace(word, other)
    assert parse(mirrored) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "Maybe.", "Yes or no?", "Yes/No", "Yes and no.", "yesterday", "Nobody knows."),
        *("No doubt, she is.", "No one is happy.", "No matter what, yes.", "Nope", "Not happy."),
        "Yes.\nAnswer: No.",
        "I think the answer: yes or no",
        "Answer: yes\nor perhaps not",
        "Rosa is happy.",
        "The answer is not no.",
    ],
)
def test_what_is_ambiguous_is_unparseable(text):
    assert parse(text) == UNPARSEABLE


def test_prompts_are_written_with_their_ids_and_without_their_answers(tasks, tmp_path):
    path = write_prompts(tasks, tmp_path / "prompts.jsonl")
    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    expected = list(tasks.prompts())
    assert [line["id"] for line in written] == [prompt["id"] for prompt in expected]
    assert all(set(line) == {"id", "prompt"} for line in written)
    assert written[-1]["prompt"].startswith(expected[-1]["context"])
    assert written[-1]["prompt"].endswith(expected[-1]["text"])
    assert [file.name for file in tmp_path.iterdir()] == ["prompts.jsonl"]


def test_answers_survive_the_way_out_and_back_in_any_order(tasks, tmp_path):
    answers = np.resize([1, 0, UNPARSEABLE, 0], len(tasks))
    path = write_answers(tasks, answers, tmp_path / "answers.jsonl")
    assert read_answers(tasks, path).tolist() == answers.tolist()
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n\n".join(reversed(lines)), encoding="utf-8")
    assert read_answers(tasks, path).tolist() == answers.tolist()


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda lines: lines[:-2], r"must answer all 54 prompts: 2 missing, .* '1-1-8'"),
        (lambda lines: [*lines, '{"id": "9-9-9", "answer": "No"}'], "1 of no prompt, .*9-9-9"),
        (lambda lines: [*lines, lines[0]], "line 55 answers prompt '0-0-0' a second time"),
        (lambda lines: [lines[0], "{id: 1}"], "line 2 is not JSON"),
        (lambda lines: ['{"id": "0-0-0", "answer": true}'], "line 1 must be an object with the te"),
        (lambda lines: ['["0-0-0", "Yes"]'], "line 1 must be an object with the texts"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_in_one_sentence(tasks, lines, tmp_path, spoil, rule):
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(spoil(lines)), encoding="utf-8")
    with pytest.raises(InputError, match=rule) as refused:
        read_answers(tasks, path)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tasks, tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read: No such file"):
        read_answers(tasks, tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"bytes\.jsonl cannot be read"):
        read_answers(tasks, tmp_path / "bytes.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        write_prompts(tasks, tmp_path / "no folder" / "prompts.jsonl")


def test_grids_put_each_answer_at_its_question_and_sample(tasks):
    answers = tasks.answers["answer"].to_numpy()
    for task, grid in zip(tasks.tasks, as_grids(tasks, answers), strict=True):
        assert (grid == task.labels).all()
    mixed = np.resize([1, UNPARSEABLE, 0], len(tasks))
    assert (from_grids(tasks, as_grids(tasks, mixed)) == mixed).all()


def test_what_tasks_leave_out_is_not_asked():
    tasks = generate("candy_party", [3, 3], n_samples=20, only_changed=True)
    (grid,) = as_grids(tasks, tasks.answers["answer"])
    assert (grid != NOT_ASKED).sum() == len(tasks) < grid.size
    asked = grid != NOT_ASKED
    assert (grid[asked] == tasks.tasks[0].labels[asked]).all()


@pytest.mark.parametrize(
    ("answers", "rule"),
    [([1, 0], "one a prompt, 54: found shape"), ([2] * 54, "must be 1, 0 or -1: found others")],
)
def test_answers_of_another_shape_or_value_are_refused(tasks, answers, rule):
    with pytest.raises(InputError, match=rule):
        checked(tasks, answers)
