"""The whole path through Inspect, with its mock model: asked, answered, logged, scored."""

import asyncio
import itertools
import os
import sys
from types import SimpleNamespace

import importing
import numpy as np
import pandas as pd
import pytest
import yaml

from lib import ROOT
from lib.ccr import generate, read
from lib.ccr.answers import UNPARSEABLE
from lib.ccr.questions import ANSWERS
from lib.ccr.scoring import RUNGS, Scores
from lib.ccr.theme import find_theme
from lib.errors import InputError

PARAMETERS = {"n_per_bcc": [3, 3], "n_tasks": 2, "n_samples": 2, "seed": 3}


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Import it where it is used: all workers collect all tests, and this takes two seconds."""
    global evaluate, ModelOutput, ModelUsage, get_model, Target, inspect_tasks, inspect_task
    with pytest.MonkeyPatch.context() as patch:
        # Who has only Inspect has no programs of vendors, and Inspect imports those that it finds.
        for program in ("anthropic", "openai"):
            patch.setitem(sys.modules, program, None)
        with importing.much():
            pytest.importorskip(
                "inspect_ai",
                reason="Inspect is an optional extra: pip install -e '.[language-models]'",
            )
            from inspect_ai import eval as evaluate
            from inspect_ai.model import ModelOutput, ModelUsage, get_model
            from inspect_ai.scorer import Target

            from causal_benchmark_book import tasks as inspect_tasks
            from lib.ccr import inspect_task
        yield


def output(text):
    # With its usage told, Inspect does not count tokens with a vocabulary from the network.
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return ModelOutput.from_content("mockllm/model", text).model_copy(update={"usage": usage})


def reader(messages, tools, tool_choice, config):
    """A model that reads: it sees the text of the prompt and nothing else."""
    context, _, question = messages[-1].text.rpartition("\n\n")
    return output(("No.", "**Yes**, it follows.", "Cannot be known.")[read(context, question)])


def run(folder, answers=reader, options=None, **parameters):
    """Evaluate as `inspect eval PATH --model … -T …` does, and return the log."""
    (log,) = evaluate(
        os.path.relpath(inspect_tasks.__file__),
        task_args={**PARAMETERS, **parameters},
        model=get_model("mockllm/model", custom_outputs=answers, memoize=False),
        log_dir=str(folder),
        display="none",
        max_connections=1,
        **(options or {}),
    )
    return log


def reported(log):
    (score,) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}


@pytest.fixture(scope="module")
def perfect(tmp_path_factory):
    return run(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """The same, asked again and in two epochs."""
    return run(tmp_path_factory.mktemp("epochs"), options={"epochs": 2})


def test_a_model_that_reads_scores_perfectly_and_all_scores_come_from_the_log(perfect):
    assert perfect.status == "success"
    assert reported(perfect) == {**dict.fromkeys(RUNGS, 1.0), "unparseable": 0.0}
    tasks, answers = inspect_task.from_log(perfect.location)
    expected = generate("candy_party", **PARAMETERS)
    assert all((a == t.labels).all() for a, t in zip(answers, expected.tasks, strict=True))
    assert len(tasks) == len(expected) == len(perfect.samples)
    table = Scores(tasks, answers, n_resamples=20).table.set_index(["external", "internal"])
    assert table["share"].get(("invalid", "consistent")) == 0


def test_with_facts_withheld_accuracy_is_by_kind_and_the_third_answer_counts(tmp_path):
    log = run(tmp_path, withheld=0.4, n_samples=1)
    tasks, answers = inspect_task.from_log(log.location)
    kinds = {prompt["kind"] for prompt in tasks.prompts()}
    assert reported(log) == {**dict.fromkeys(kinds, 1.0), "unparseable": 0.0}
    assert {sample.target for sample in log.samples} == set(ANSWERS)
    grids = zip(answers, tasks.tasks, strict=True)
    assert all((grid == task.labels)[task.asked].all() for grid, task in grids)


def test_the_entry_in_the_register_names_every_answer_that_is_offered():
    path = ROOT / "causal_benchmark_book" / "eval.yaml"
    said = yaml.safe_load(path.read_text(encoding="utf-8"))["description"]
    assert len(said.split()) <= 80
    assert all(answer.lower() in said.lower() for answer in ANSWERS)
    assert "facts are withheld" in said and "Yes-or-no questions" not in said


def test_samples_tell_where_they_are_and_what_is_right(perfect):
    tasks = generate("candy_party", **PARAMETERS)
    samples = {sample.id: sample for sample in perfect.samples}
    for prompt in tasks.prompts():
        sample = samples[prompt["id"]]
        assert sample.input == f"{prompt['context']}\n\n{prompt['text']}"
        assert sample.target == ("Yes" if prompt["answer"] else "No")
        place = {key: prompt[key] for key in ("task", "sample", "question")}
        assert sample.metadata == {**place, "answers": 2, "rungs": sample.metadata["rungs"]}
        # Factual prompts come first, one for each node of the cut tree, and are on one rung.
        assert len(sample.metadata["rungs"]) == (1 if prompt["question"] < 3 else 2)


def test_what_inspect_reports_is_what_the_scores_say(tmp_path):
    words = iter(["Yes.", "No.", "Cannot be known."] * len(generate("candy_party", **PARAMETERS)))
    log = run(tmp_path, lambda *asked: output(next(words)))
    tasks, answers = inspect_task.from_log(log.location)
    assert (np.concatenate(answers) == UNPARSEABLE).mean() == pytest.approx(1 / 3)
    scores = Scores(tasks, answers, n_resamples=5).accuracy.query("metric == 'accuracy'")
    found = reported(log)
    assert found.pop("unparseable") == pytest.approx(1 / 3)
    assert found == pytest.approx(scores.set_index("rung")["value"].to_dict())
    assert 0 < min(found.values()) < max(found.values()) < 1


@pytest.mark.parametrize(("said", "right", "lost"), [("Yes", 1, 0), ("No.", 0, 0), ("Hm", 0, 1)])
def test_an_answer_is_scored_on_each_rung_that_it_is_on(said, right, lost):
    metadata = {"answers": 2, "rungs": ["cause made true", "changed"]}
    state = SimpleNamespace(output=output(said), metadata=metadata)
    score = asyncio.run(inspect_task.yes_or_no()(state, Target("Yes")))
    assert score.value == {"cause made true": right, "changed": right, "unparseable": lost}


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"theme": "candy"}, "theme 'candy' is unknown"),
        ({"n_nodes": 3}, "parameter 'n_nodes' is unknown: expected one of theme, n_per_bcc"),
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1"),
    ],
)
def test_a_parameter_that_breaks_a_rule_is_refused(parameters, rule):
    with pytest.raises(InputError, match=rule):
        inspect_tasks.ccr(**parameters)


def test_an_incomplete_log_is_refused(tmp_path):
    def fails_once(*asked):
        fails_once.count += 1
        if fails_once.count == 5:
            raise RuntimeError("the line is dead")
        return reader(*asked)

    fails_once.count = 0
    log = run(tmp_path, fails_once, {"fail_on_error": False}, n_samples=1)
    assert log.status == "success"
    with pytest.raises(InputError, match="must answer all 18 prompts once: 1 missing"):
        inspect_task.from_log(log.location)


def test_epochs_change_nothing_but_precision(perfect, twice):
    assert reported(twice) == reported(perfect)
    found = [inspect_task.from_log(log.location) for log in (perfect, twice)]
    for one, two in zip(found[0][1], found[1][1], strict=True):
        assert (np.hstack([one, one]) == two).all()
    tables = (Scores(*each, n_resamples=20).quantities for each in found)
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_what_is_answered_otherwise_in_another_epoch_is_averaged(tmp_path):
    """A model that always answers, but in other words each time, leaves nothing unparseable."""
    said = itertools.cycle(["Yes.", "No.", "No, never.", "**Yes**", "Perhaps."])
    log = run(tmp_path, lambda *asked: output(next(said)), {"epochs": 3}, n_samples=1)
    tasks, answers = inspect_task.from_log(log.location)
    n = 3 * len(tasks)
    lost = sum((grid == UNPARSEABLE).sum() for grid in answers)
    assert lost in (n // 5, n // 5 + 1)
    found = reported(log)
    assert found.pop("unparseable") == pytest.approx(lost / n)
    scores = Scores(tasks, answers, n_resamples=5).accuracy.query("metric == 'accuracy'")
    assert found == pytest.approx(scores.set_index("rung")["value"].to_dict())


def test_a_log_that_answers_a_prompt_twice_in_one_epoch_is_refused(perfect, tmp_path):
    from inspect_ai.log import write_eval_log

    log = perfect.model_copy(deep=True)
    log.samples.append(log.samples[0])
    write_eval_log(log, str(tmp_path / "twice.json"))
    with pytest.raises(InputError, match="1 answered more than once, the first of them '0-0-0'"):
        inspect_task.from_log(tmp_path / "twice.json")


def test_a_log_of_other_prompts_or_another_task_is_refused(perfect, tmp_path):
    from inspect_ai.log import write_eval_log

    log = perfect.model_copy(deep=True)
    log.samples[7].input += " Think first."
    write_eval_log(log, str(tmp_path / "other_prompt.eval"))
    with pytest.raises(
        InputError, match=f"prompt '{log.samples[7].id}' differs from the generated"
    ):
        inspect_task.from_log(tmp_path / "other_prompt.eval")
    log.eval.task = "arithmetic"
    write_eval_log(log, str(tmp_path / "other_task.eval"))
    with pytest.raises(InputError, match="must be a log of the task ccr: found 'arithmetic'"):
        inspect_task.from_log(tmp_path / "other_task.eval")


def test_what_a_log_cannot_hold_is_given_again(tmp_path):
    theme = type("Parties", (type(find_theme("candy_party")),), {"name": "parties"})()
    log = run(tmp_path, lambda *asked: output("Yes."), theme=theme, n_samples=1)
    with pytest.raises(InputError, match=r"theme .* is unknown"):
        inspect_task.from_log(log.location)
    tasks, answers = inspect_task.from_log(log.location, theme=theme)
    assert tasks.tasks[0].story.theme is theme and all((grid == 1).all() for grid in answers)
    with pytest.raises(InputError, match="differs from the generated one"):
        inspect_task.from_log(log.location, theme=theme, seed=4)


def test_a_file_that_is_no_log_is_refused(tmp_path):
    (tmp_path / "no.eval").write_text("no log")
    for name, found in (("no", "cannot be read: "), ("nowhere", "does not exist")):
        with pytest.raises(InputError, match=rf"{name}\.eval {found}"):
            inspect_task.from_log(tmp_path / f"{name}.eval")


def test_the_same_seed_asks_the_same(perfect, twice):
    for epoch in (1, 2):
        again = [sample for sample in twice.samples if sample.epoch == epoch]
        assert [s.input for s in again] == [s.input for s in perfect.samples]
        assert np.unique([s.input for s in again]).size == len(again)
