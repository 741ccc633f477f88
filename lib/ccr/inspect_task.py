r"""The benchmark as a task of Inspect, so that any model that Inspect reaches can take it.

Inspect [1]_ asks the model, retries, keeps a log, and shows how far it is::

    inspect eval lib/ccr/inspect_task.py --model openai/gpt-4o \
        -T theme=flu_vaccine -T n_per_bcc=[4,4,4] -T n_tasks=5 -T n_samples=100 -T seed=0

``-T`` takes every parameter of :func:`lib.ccr.generate`. Inspect itself reports the
accuracy on every rung and the rate of unparseable answers. All other scores need all
answers of a task together; they are computed from the log::

    tasks, answers = from_log("logs/….eval")
    Scores(tasks, answers).table

To ask less, lower `n_tasks` or `n_samples`: a prompt that is left out, as by Inspect's
own ``--limit``, breaks the pairs of which the quantities are made.

References
----------
.. [1] UK AI Security Institute (2024). Inspect AI: framework for large language model
   evaluations. https://inspect.aisi.org.uk
"""

import inspect
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lib.ccr.answers import UNPARSEABLE, matched, parse, prompt_text
from lib.ccr.scoring import RUNGS, rungs
from lib.ccr.tasks import Tasks, generate
from lib.errors import InputError, one_of

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import (
        Metric,
        SampleScore,
        Score,
        Scorer,
        Target,
        metric,
        scorer,
    )
    from inspect_ai.solver import TaskState
    from inspect_ai.solver import generate as ask
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "evaluating a language model needs Inspect: pip install -e '.[language-models]'",
        name=error.name,
    ) from error


@task
def ccr(theme: str = "candy_party", n_samples: int = 10, **parameters) -> Task:
    """Ask a model every prompt of a set of tasks.

    Parameters
    ----------
    theme : str
    n_samples : int
        The samples of each task; with three components, each has 16 prompts.
    **parameters
        Those of :func:`lib.ccr.generate`.

    Raises
    ------
    InputError
        If a parameter is unknown or out of its range.
    """
    allowed = list(inspect.signature(generate).parameters)
    for name in parameters:
        if name not in allowed:
            raise InputError(f"parameter {name!r} is unknown: {one_of(allowed)}")
    tasks = generate(theme, n_samples=n_samples, **parameters)
    return Task(
        dataset=MemoryDataset(list(_samples(tasks)), name=f"ccr, {theme}"),
        solver=ask(),
        scorer=yes_or_no(),
    )


@metric
def per_rung() -> Metric:
    """Report the accuracy on every rung, and the rate of unparseable answers."""

    def mean(values: list[float]) -> float:
        return float(np.mean(values)) if values else float("nan")

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        found = {
            rung: mean([s.score.as_float() for s in scores if rung in s.sample_metadata["rungs"]])
            for rung in RUNGS
        }
        lost = [float(parse(s.score.answer or "") == UNPARSEABLE) for s in scores]
        return {**found, "unparseable": mean(lost)}

    return compute


@scorer(metrics=[per_rung()])
def yes_or_no() -> Scorer:
    """Score an answer 1 if it is right, and 0 if it is wrong or unparseable."""

    async def score(state: TaskState, target: Target) -> Score:
        said = state.output.completion
        return Score(value=int(parse(said) == parse(target.text)), answer=said)

    return score


def from_log(path: str | os.PathLike) -> tuple[Tasks, np.ndarray]:
    """Read what a model was asked, and what it answered, from a log of Inspect.

    The tasks are generated again from the parameters in the log; each prompt must be,
    word for word, what the model was given.

    Parameters
    ----------
    path : path-like
        Of a log of the task :func:`ccr`.

    Raises
    ------
    InputError
        If the log cannot be read or is of another task, a prompt was not answered
        exactly once, or is not what these parameters generate.
    """
    path = Path(path)
    try:
        log = read_eval_log(str(path))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a log of Inspect: {error}") from error
    if log.eval.task.rpartition("/")[2] != "ccr":
        raise InputError(f"{path} must be a log of the task ccr: found {log.eval.task}")
    tasks = generate(**log.eval.task_args)
    said, asked = {}, {}
    for sample in log.samples or []:
        if sample.id in said:
            raise InputError(f"{path} answers prompt {sample.id!r} a second time")
        asked[sample.id] = sample.input
        if not sample.error:
            said[sample.id] = sample.output.completion
    answers = matched(tasks, said, str(path))
    for prompt in tasks.prompts():
        if asked[prompt["id"]] != prompt_text(prompt):
            raise InputError(f"{path} asked something else as prompt {prompt['id']!r}")
    return tasks, answers


def _samples(tasks: Tasks) -> Iterator[Sample]:
    """Yield every prompt as a sample of Inspect that knows its rungs."""
    on_rung = {
        one.number: [np.broadcast_to(where, one.labels.shape) for where in rungs(one)]
        for one in tasks.tasks
    }
    for prompt in tasks.prompts():
        place = {key: int(prompt[key]) for key in ("task", "sample", "question")}
        on_it = [where[place["question"], place["sample"]] for where in on_rung[place["task"]]]
        yield Sample(
            id=prompt["id"],
            input=prompt_text(prompt),
            target="Yes" if prompt["answer"] else "No",
            metadata={**place, "rungs": list(itertools.compress(RUNGS, on_it))},
        )
