r"""The benchmark as a task of Inspect, so that any model that Inspect reaches can take it.

Inspect (UK AI Security Institute 2024, https://inspect.aisi.org.uk) asks the model and logs it::

    inspect eval causal_benchmark_book/ccr --model openai/gpt-4o \
        -T theme=flu_vaccine -T 'n_per_bcc=[4,4,4]' -T n_tasks=5 -T n_samples=100 -T seed=0

The task itself is in the package ``causal_benchmark_book``, by whose name Inspect finds it. This
module holds its parts. ``-T`` takes every parameter of `lib.ccr.generate`, but splits texts at
commas, which ``--task-config`` does not. Inspect itself reports the accuracy on every rung and the
rate of unparseable answers. Other scores need all answers of a task and come from the log::

    tasks, answers = from_log("logs/….eval")
    Scores(tasks, answers).table

With ``--epochs 3`` each prompt is asked three times and its scores are averaged. To ask fewer
prompts, lower `n_tasks` or `n_samples`: Inspect's own ``--limit`` breaks up the pairs of prompts
from which quantities are estimated.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from inspect_ai import dataset, log, scorer, solver

from lib.ccr.answers import answer_text, matched, parse, prompt_text
from lib.ccr.scoring import rungs
from lib.ccr.tasks import Tasks, generate
from lib.errors import InputError, check
from lib.files import AnyPath, reading


def samples(tasks: Tasks) -> Iterator[dataset.Sample]:
    """Yield every prompt as a sample of Inspect, with its task, sample, question and rungs.

    Where facts are withheld, its only rung is its kind of question.
    """
    on = {one.number: (rungs(one), len(one.answers)) for one in tasks.tasks}
    for prompt in tasks.prompts():
        place = {key: prompt[key] for key in ("task", "sample", "question")}
        task, sample, question = place.values()
        by_rung, n_answers = on[task]
        names = [name for name, prompts in by_rung.items() if prompts[question, sample]]
        names = [prompt["kind"]] if "kind" in prompt else names
        yield dataset.Sample(
            id=prompt["id"],
            input=prompt_text(prompt),
            target=answer_text(prompt),
            metadata={**place, "answers": n_answers, "rungs": names},
        )


@scorer.metric
def per_rung() -> scorer.Metric:
    """Report the accuracy on every rung, and the rate of unparseable answers."""

    def compute(scores: list[scorer.SampleScore]) -> dict[str, float]:
        # The mean of a rung is over the samples on it: the others have no value there.
        return dict(pd.DataFrame([one.score.value for one in scores]).mean().to_dict())

    return compute


@scorer.scorer(metrics=[per_rung()])
def yes_or_no() -> scorer.Scorer:
    """Score an answer by rung: 1 if it is right, and 0 if it is wrong or unparseable."""

    async def score(state: solver.TaskState, target: scorer.Target) -> scorer.Score:
        said = state.output.completion
        # Numbers, not words: Inspect averages them over epochs.
        value = dict.fromkeys(state.metadata["rungs"], float(parse(said) == parse(target.text)))
        # As in `matched`, an answer that was not offered counts as none.
        value["unparseable"] = float(parse(said) not in range(state.metadata["answers"]))
        return scorer.Score(value=value, answer=said)

    return score


def from_log(path: AnyPath, **changed: Any) -> tuple[Tasks, list[np.ndarray]]:
    """Read the tasks that a model was given, and its answers, from a log of the Inspect task.

    The tasks are generated again from the parameters in the log; `changed` replaces what it cannot
    hold, such as a theme of your own. Prompts must match word for word, with one answer per epoch.
    """
    with reading(path):
        found = log.read_eval_log(str(path))
    task_name = found.eval.task.rpartition("/")[2]
    check(task_name == "ccr", f"{path} must be a log of the task ccr", task_name)
    tasks = generate(**found.eval.task_args | changed)
    asked = {prompt["id"]: prompt_text(prompt) for prompt in tasks.prompts()}
    said = {n + 1: list[tuple[str, str]]() for n in range(found.eval.config.epochs or 1)}
    for sample in found.samples or []:
        if sample.input != asked.get(sample.id, sample.input):
            raise InputError(f"{path}: prompt {sample.id!r} differs from the generated one")
        if not sample.error:
            said[sample.epoch].append((str(sample.id), sample.output.completion))
    answers = [matched(tasks, words, str(path)) for words in said.values()]
    return tasks, [np.hstack(grids) for grids in zip(*answers, strict=True)]
