import json

import numpy as np
import pytest

from lib import ROOT
from lib.ccr import generate
from lib.ccr.answers import (
    UNPARSEABLE,
    checked,
    matched,
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
        *("Yes  \nRosa gets 4.", "**Yes** \n\nRosa gets 4.", "Yes\r\nRosa gets 4."),
        *("Yes — she is.", "**Yes** – she is.", "Yes—she is.", "Yes… she is."),
        *("# Yes", "### **Yes**\n\nRosa gets 4."),
        "Rosa gets 4 candies.\nAnswer: Yes",
        "No rule but one speaks of her.\n\n**Answer:** yes.",
        "She needs 3.\n## Final answer: **Yes**",
        "She needs 3.\nThe answer is yes.",
        "Rosa gets 4 candies.\n\n**Yes**",
        "Yes.\nAnswer: yes",
        *("Answer: yes, because she gets 4.", "The answer is yes.\n\nShe gets 4.", "Yes, yes."),
        *("- Yes", "> Yes.", "~~Yes~~", "Rosa gets 4.\n- **Answer:** Yes", "1 - 1\n> * Yes"),
        "Yes. No rule says otherwise.",
        "Let me check.\n\nAnswer: Yes, because Emil gets 4 candies.",
        "She gets 4.\n**The answer is yes**, since she wished for 3.",
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
        *("Yes she is.", "Yes  or no?", "Yes -or no?"),
        "Yes.\nAnswer: No.",
        *("Yes.\nNo.", "No.\n\nOn second thought, she is.\n\n**Yes**"),
        *("Yes, No or Cannot be known", "No, yes or cannot be known."),
        "I think the answer: yes or no",
        "She gets 4.\nAnswer: yes\nor perhaps not",
        *("Yes, no.", "Yes. No.", "Yes; no", "Yes, or no", "Yes. Answer: no", "Yes, no or both."),
        *("Answer: yes\nAnswer: no", "Answer: yes, no.", "Answer: no\n\nIt cannot be known."),
        "No.\n\nWait, she got 4.\n\nFinal answer: Yes, because Emil gets 4 candies.",
        "Yes, let me see.\n\nAnswer: No, he is not.",
        *("She gets 4.\nAnswer: yes, or no.", "She gets 4.\nAnswer: no or yes, then."),
        *("She gets 4.\nYes, because she is.", "She gets 4.\nIt cannot be known, since"),
        *("Cannot be known, yes.", "It cannot be known. Answer: no."),
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


def same(answers, others):
    return all((one == other).all() for one, other in zip(answers, others, strict=True))


def test_answers_survive_the_way_out_and_back_in_any_order(tasks, tmp_path):
    answers = [np.resize([1, 0, UNPARSEABLE, 0], task.labels.shape) for task in tasks.tasks]
    path = write_answers(tasks, answers, tmp_path / "answers.jsonl")
    assert same(read_answers(tasks, path), answers)
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n\n".join(reversed(lines)), encoding="utf-8")
    assert same(read_answers(tasks, path), answers)


@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (lambda lines: lines[:-2], r"all 54 prompts once: 2 missing, .* '1-1-8'"),
        (
            lambda lines: [*lines, '{"id": "9-9-9", "answer": "No"}'],
            "1 to unknown prompts, .*9-9-9",
        ),
        (lambda lines: [*lines, lines[0]], "1 answered more than once, .*'0-0-0'"),
        (lambda lines: [lines[0], "{id: 1}"], "line 2: invalid JSON: key must be a string"),
        (lambda lines: ['{"id": "0-0-0", "answer": true}'], "line 1: key 'answer': .* found True"),
        (lambda lines: ['["0-0-0", "Yes"]'], "line 1: input should be an object"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_in_one_sentence(tasks, lines, tmp_path, spoil, rule):
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(spoil(lines)), encoding="utf-8")
    with pytest.raises(InputError, match=rule) as refused:
        read_answers(tasks, path)
    assert "\n" not in str(refused.value)


def test_a_model_that_says_nothing_has_given_no_answer(tasks, lines, tmp_path):
    path = tmp_path / "answers.jsonl"
    nothing = '{"id": "0-0-0", "answer": null}'
    path.write_text("\n".join([nothing, *lines[1:]]), encoding="utf-8")
    (first, *_), *_ = read_answers(tasks, path)
    assert first.tolist() == [UNPARSEABLE, *first[1:]] and set(first[1:].tolist()) == {1}


def test_a_file_that_is_not_there_or_not_text_is_refused(tasks, tmp_path):
    with pytest.raises(InputError, match=r"none\.jsonl does not exist"):
        read_answers(tasks, tmp_path / "none.jsonl")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"bytes\.jsonl cannot be read"):
        read_answers(tasks, tmp_path / "bytes.jsonl")
    with pytest.raises(InputError, match="cannot be written"):
        write_prompts(tasks, tmp_path / "no folder" / "prompts.jsonl")


def test_each_answer_comes_to_its_question_and_sample(tasks, tmp_path):
    """The ids alone say where: those that end in an even number are answered with yes."""
    said = {p["id"]: "Yes." if p["id"][-1] in "02468" else "No." for p in tasks.prompts()}
    for grid in matched(tasks, said.items(), "this test"):
        assert (grid == (np.arange(9) % 2 == 0)[:, None]).all()
    truth = {p["id"]: "Yes" if p["answer"] else "No" for p in tasks.prompts()}
    assert same(matched(tasks, truth.items()), [task.labels for task in tasks.tasks])
    with pytest.raises(InputError, match=r"^you must answer all 54 prompts once: 54 missing, "):
        matched(tasks, [])
    assert (matched(tasks, dict.fromkeys(truth).items())[0] == UNPARSEABLE).all()


@pytest.mark.parametrize("answer", [0, 1, True, float("nan")])
def test_replies_that_are_no_pairs_of_an_id_and_a_text_are_refused(tasks, answer):
    """A zero, which is no text, was taken for one that says nothing."""
    said = {prompt["id"]: "Yes." for prompt in tasks.prompts()}
    for wrong in (said, dict.fromkeys(said, answer).items()):
        with pytest.raises(InputError, match="you must give pairs of an id and a text: "):
            matched(tasks, wrong)


def test_what_tasks_leave_out_is_not_asked(tmp_path):
    tasks = generate("candy_party", [3, 3], n_samples=20, only_changed=True)
    (task,) = tasks.tasks
    path = write_answers(tasks, [task.labels], tmp_path / "answers.jsonl")
    assert len(path.read_text().splitlines()) == len(tasks) == task.asked.sum() < task.asked.size
    (grid,) = read_answers(tasks, path)
    assert (grid == task.labels)[task.asked].all()


@pytest.mark.parametrize(
    ("answers", "rule"),
    [
        ([np.ones((9, 3))], "must be 2 grids, one per task .*: found 1"),
        ([np.ones((9, 3)), np.ones(27)], r"task 1 must have the shape .*, \(9, 3\): found \(27,\)"),
        ([np.ones((8, 3))] * 2, r"task 0 must have the shape .*, \(9, 3\): found \(8, 3\)"),
        ([np.ones((9, 4))] * 2, r"task 0 must have the shape .*, \(9, 3\): found \(9, 4\)"),
        ([np.ones((9, 0))] * 2, r"task 0 must have the shape .*, \(9, 3\): found \(9, 0\)"),
        ([np.full((9, 3), 2)] * 2, r"must be 1, 0 or -1: found \[2\]"),
    ],
)
def test_answers_of_another_shape_or_value_are_refused(tasks, answers, rule):
    with pytest.raises(InputError, match=rule):
        checked(tasks, answers)


def test_several_answers_to_a_prompt_are_not_written_as_one(tasks, tmp_path):
    with pytest.raises(InputError, match="must be one per prompt: found 2"):
        write_answers(tasks, [np.ones((9, 6))] * 2, tmp_path / "answers.jsonl")


def test_what_a_small_model_said_is_a_habit():
    tasks = generate("candy_party", n_tasks=4, n_samples=10, least_pns=0.05)
    path = ROOT / "data" / "answers" / "smollm2_135m_candy_party.jsonl"
    said = np.concatenate(read_answers(tasks, path)).ravel()
    truth = np.concatenate([task.labels for task in tasks.tasks]).ravel()
    no = said == 0
    shares = [no.mean(), no[truth].mean(), no[~truth].mean(), (said < 0).mean()]
    shares += [(said == truth).mean(), (~truth).mean()]
    assert len(said) == 640
    assert [round(100 * share) for share in shares] == [94, 90, 96, 5, 64, 65]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Cannot be known.", 2),
        ("**Cannot be known**, because Rosa's candies are not told.", 2),
        ("It cannot be known.", 2),
        ("Two worlds fit.\n\nAnswer: cannot be known", 2),
        ("Yes.\nAnswer: cannot be known", UNPARSEABLE),
        ("No. It cannot be known.", UNPARSEABLE),
        ("No (it cannot be known).", UNPARSEABLE),
        ("No / Cannot be known", UNPARSEABLE),
        ("No it cannot be known.", UNPARSEABLE),
        ("Yes. Whether Rosa is happy cannot be known from the facts, but the rule decides.", 1),
        ("No. The others cannot be known, but Hugo fails.", 0),
        ("Yeſ, she is.", 1),  # a long s, which is one in another case
        ("It is known.", UNPARSEABLE),
        ("Cannot say.", UNPARSEABLE),
    ],
)
def test_the_third_answer_is_read(text, answer):
    assert parse(text) == answer


def test_three_answers_go_to_a_file_and_come_back(tmp_path):
    tasks = generate("candy_party", [3, 3], n_tasks=2, n_samples=4, withheld=0.4)
    answers = [np.where(task.asked, task.labels, 0) for task in tasks.tasks]
    path = write_answers(tasks, answers, tmp_path / "answers.jsonl")
    again = read_answers(tasks, path)
    assert all(map(np.array_equal, again, answers)) and 2 in again[0]


def test_the_third_answer_is_none_where_every_fact_is_told():
    tasks = generate("candy_party", [3], n_samples=1)
    said = {prompt["id"]: "Cannot be known." for prompt in tasks.prompts()}
    assert (matched(tasks, said.items(), "this test")[0] == UNPARSEABLE).all()
    with pytest.raises(InputError, match=r"an answer must be 1, 0 or -1: found \[2\]"):
        write_answers(tasks, [np.full_like(tasks.tasks[0].labels, 2, dtype=int)], "nowhere")
