"""Tasks: random worlds told many times, with a question for every quantity.

A task is one Boolean world and its causal context. Each of its samples tells what
happened once; about each sample a factual question is asked for every node of the
cut tree, the root among them, and two interventional questions for every pair,
with the cause made true and made false. So P(y | x), P(y | do x) and the PNS can
all be estimated from the answers.

The tables are normalised: a context stands once, not on every row, so half a
million prompts take a few megabytes. Frames with the columns that people already
use are made of them on demand.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import KINDS, Chain
from lib.ccr.stories import Story
from lib.ccr.theme import Draw, Theme, find_theme
from lib.ccr.worlds import CAUSAL_FUNCTIONS, PROBABILITIES, World, random_world
from lib.errors import InputError, check_count, one_of
from lib.files import atomic_write, writable, write_parquet

#: So many worlds are drawn for one task before a floor or balance counts as out of reach.
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class Task:
    """One world, its story, and the samples that are told of it.

    Parameters
    ----------
    number : int
        Which of its set.
    story : Story
    n_samples : int
    attempts : int
        How many worlds were drawn until one met the requirements.
    """

    number: int
    story: Story
    n_samples: int
    attempts: int = 1

    @property
    def world(self) -> World:
        """The world that the story tells."""
        return self.story.world

    @cached_property
    def noise(self) -> np.ndarray:
        """The noise of all samples, shape (nodes, samples)."""
        return self.world.noise(self.story.seed, f"{self.story.name}, noise", self.n_samples)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row a question: `cause` and `value` (-1 if factual), `effect`, and its text."""
        tree = self.world.chain.cut_tree
        pairs = itertools.combinations(tree, 2)
        rows = [(-1, -1, effect) for effect in tree]
        rows += [(cause, value, effect) for cause, effect in pairs for value in (1, 0)]
        frame = pd.DataFrame(rows, columns=["cause", "value", "effect"])
        frame["text"] = [
            self.story.question(effect, None if cause < 0 else cause, value == 1)
            for cause, value, effect in rows
        ]
        frame.insert(0, "question", np.arange(len(frame), dtype=np.int32))
        frame.insert(0, "task", self.number)
        return frame

    @cached_property
    def labels(self) -> np.ndarray:
        """The true answers, shape (questions, samples)."""
        factual = self.world.values(self.noise)
        answers = [factual[list(self.world.chain.cut_tree)]]
        asked = self.questions.loc[self.questions["cause"] >= 0]
        found: dict[tuple[int, int, int], np.ndarray] = {}
        for cause, value in itertools.product(self.world.chain.cut_tree[:-1], (1, 0)):
            after = self.world.values(self.noise, do={cause: bool(value)})
            for effect in self.world.chain.cut_tree:
                found[cause, value, effect] = after[effect]
        keys = zip(asked["cause"], asked["value"], asked["effect"], strict=True)
        return np.vstack([*answers, *(found[key] for key in keys)])

    @cached_property
    def quantities(self) -> pd.DataFrame:
        """The exact quantities of every pair; see :func:`~lib.ccr.exact.exact_quantities`."""
        return exact_quantities(self.world)

    @cached_property
    def samples(self) -> list[str]:
        """The sample contexts."""
        return self.story.samples(self.noise)


@dataclass(frozen=True)
class Tasks:
    """A set of tasks, as tables.

    Attributes
    ----------
    contexts, samples, questions, answers, quantities : pandas.DataFrame
        The normalised tables: one row a task; a task's sample; a task's question;
        a sample's question and its true answer; a task's pair of nodes.
    factual, interventional : pandas.DataFrame
        Flat frames with the columns of the public data sets.
    """

    tasks: Sequence[Task]
    only_changed: bool = False
    name: str = field(default="ccr")

    def __len__(self) -> int:
        return sum(len(part) for part in self._answers())

    @cached_property
    def contexts(self) -> pd.DataFrame:
        """One row a task: its theme, graph, world and causal context."""
        rows = [
            {
                "task": task.number,
                "theme": task.story.theme.name,
                "wording": task.story.wording,
                "n_per_bcc": list(task.world.chain.n_per_bcc),
                "bcc_types": list(task.world.chain.bcc_types),
                "nodes": [node.label for node in task.story.nodes],
                "edges": [list(edge) for edge in task.world.chain.graph.edges],
                "cut_tree": list(task.world.chain.cut_tree),
                "operators": list(task.world.operators),
                "probabilities": list(task.world.probabilities),
                "attempts": task.attempts,
                "text": task.story.context,
            }
            for task in self.tasks
        ]
        return pd.DataFrame(rows)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """One row a task and sample: the sample context."""
        return pd.concat([_samples(task) for task in self.tasks], ignore_index=True)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row a task and question."""
        return pd.concat([task.questions for task in self.tasks], ignore_index=True)

    @cached_property
    def answers(self) -> pd.DataFrame:
        """One row a prompt: `task`, `sample`, `question`, and the true `answer`."""
        return pd.concat(self._answers(), ignore_index=True)

    @cached_property
    def quantities(self) -> pd.DataFrame:
        """One row a task and pair: `task`, `cause`, `effect`, and the exact quantities."""
        return pd.concat(
            [task.quantities.reset_index().assign(task=task.number) for task in self.tasks],
            ignore_index=True,
        )[["task", *self.tasks[0].quantities.reset_index().columns]]

    def prompts(self) -> Iterator[dict]:
        """Yield every prompt: `id`, `task`, `sample`, `question`, `context`, `text`, `answer`."""
        for task, part in zip(self.tasks, self._answers(), strict=True):
            context, texts = task.story.context, task.questions["text"]
            for row in part.itertuples(index=False):
                told = f"{context}\n\n{task.samples[row.sample]}"
                yield {
                    "id": f"{row.task}-{row.sample}-{row.question}",
                    "task": row.task,
                    "sample": row.sample,
                    "question": row.question,
                    "context": told,
                    "text": texts[row.question],
                    "answer": bool(row.answer),
                }

    @property
    def factual(self) -> pd.DataFrame:
        """The factual prompts, in the columns of the public data sets."""
        frames = []
        for task in self.tasks:
            asked = task.questions.loc[task.questions["cause"] < 0]
            frames += [
                _head(task).assign(
                    Effect=task.story.nodes[row.effect].label,
                    Context=_told(task),
                    Question=row.text,
                    True_=task.labels[row.question],
                )
                for row in asked.itertuples(index=False)
            ]
        return pd.concat(frames, ignore_index=True).rename(columns={"True_": "True"})

    @property
    def interventional(self) -> pd.DataFrame:
        """The interventional prompts, in pairs, in the columns of the public data sets.

        With `only_changed`, the pairs of two answers: one of them the intervention changes.
        """
        frames = []
        for task in self.tasks:
            asked = task.questions.set_index(["cause", "effect", "value"])
            for cause, effect in itertools.combinations(task.world.chain.cut_tree, 2):
                labels = [task.story.nodes[node].label for node in (cause, effect)]
                frame = _head(task).assign(
                    **{"Cause-effect pair": " → ".join(labels), "Cause": labels[0]},
                    Effect=labels[1],
                    Context=_told(task),
                )
                for value in (True, False):
                    row = asked.loc[(cause, effect, int(value))]
                    frame[f"Question (cause = {value})"] = row["text"]
                    frame[f"True (cause = {value})"] = task.labels[row["question"]]
                if self.only_changed:
                    frame = frame[frame["True (cause = True)"] != frame["True (cause = False)"]]
                frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_parquet(self, folder: str | os.PathLike) -> Path:
        """Write the five tables as Parquet, task by task, in bounded memory.

        Parameters
        ----------
        folder : path-like
            Made if it does not exist; files appear, or are replaced, when all are complete.

        Raises
        ------
        InputError
            If the folder cannot be written.
        """
        folder = Path(folder)
        parts = {
            "contexts": iter([self.contexts]),
            "samples": (_samples(task) for task in self.tasks),
            "questions": (task.questions for task in self.tasks),
            "answers": self._answers(),
            "quantities": iter([self.quantities]),
        }
        writable(folder)
        with contextlib.ExitStack() as tables:  # none takes its place before all are complete
            for name, frames in parts.items():
                beside = tables.enter_context(atomic_write(folder / f"{name}.parquet"))
                write_parquet(beside, frames, compression="zstd")
        return folder

    def _answers(self) -> Iterator[pd.DataFrame]:
        for task in self.tasks:
            asked, labels = task.questions, task.labels
            n = task.n_samples
            frame = pd.DataFrame(
                {
                    "task": np.full(labels.size, task.number, dtype=np.int32),
                    "sample": np.tile(np.arange(n, dtype=np.int32), len(asked)),
                    "question": asked["question"].to_numpy().repeat(n),
                    "answer": labels.ravel(),
                }
            )
            if self.only_changed:
                frame = frame[_changes(task).ravel()]
            yield frame


def generate(
    theme: str | Theme,
    n_per_bcc: Sequence[int] = (3, 3, 3),
    bcc_types: str | Sequence[str] = "cycle",
    causal_functions: str = "random",
    n_tasks: int = 1,
    n_samples: int = 100,
    seed: int = 0,
    *,
    first_task: int = 0,
    least_pns: float = 0.0,
    balance: float = 0.0,
    probabilities: Sequence[float] = PROBABILITIES,
    n_wordings: int = 1,
    asides: bool = True,
    only_changed: bool = False,
) -> Tasks:
    """Generate tasks of compositional causal reasoning, with their true answers.

    Parameters
    ----------
    theme : str or Theme
        'candy_party', for instance; see :func:`lib.ccr.theme.themes`.
    n_per_bcc : sequence of int
        The nodes of each component, cutpoints counted in both neighbours.
    bcc_types : str or sequence of str
        'cycle', 'wheel', one of them for each component, or 'mixed': drawn for each.
    causal_functions : {'and', 'or', 'random', 'or, and at the leaf'}
        See :func:`lib.ccr.worlds.random_world`; ClinicalNotes insists on the last.
    n_tasks, n_samples : int
        Worlds, and samples of each.
    seed : int
    first_task : int
        The first task: ``n_tasks=1, first_task=7`` is the eighth of a larger set.
    least_pns : float
        Draw worlds anew until the global PNS is at least this.
    balance : float
        Draw worlds anew until the leaf is true with a probability between this and
        one minus this.
    probabilities : sequence of float
        What the probabilities of noise are drawn from.
    n_wordings : int
        Use so many of the ways to say the same, in turns.
    asides : bool
        Tell details that do not matter.
    only_changed : bool
        Keep of the interventional prompts those that the intervention changes.

    Raises
    ------
    InputError
        If the theme, a kind or the operators are unknown, a count is not positive,
        a probability is not between 0 and 1, or no world meets the requirements.

    Examples
    --------
    >>> tasks = generate("candy_party", n_per_bcc=[3, 3], n_tasks=2, n_samples=5, seed=0)
    >>> len(tasks), len(tasks.factual), len(tasks.interventional)
    (90, 30, 30)
    """
    theme = find_theme(theme)
    if isinstance(n_per_bcc, int):
        raise InputError(f"n_per_bcc must list the nodes of each component: found {n_per_bcc}")
    counts = {"n_tasks": n_tasks, "n_samples": n_samples, "n_wordings": n_wordings}
    for name, number in counts.items():
        check_count(name, number, least=1)
    for name, number in {"first_task": first_task, "seed": seed}.items():
        check_count(name, number, least=0)
    if not 0 <= least_pns < 1:
        raise InputError(f"least_pns must be at least 0 and below 1: found {least_pns}")
    if not 0 <= balance < 0.5:
        raise InputError(f"balance must be at least 0 and below 0.5: found {balance}")
    if not len(probabilities):
        raise InputError("probabilities must hold at least one: found none")
    for p in probabilities:
        if not 0 < p < 1:
            raise InputError(f"probabilities must lie between 0 and 1: found {p}")
    if causal_functions not in CAUSAL_FUNCTIONS:
        raise InputError(
            f"causal_functions {causal_functions!r} is unknown: {one_of(CAUSAL_FUNCTIONS)}"
        )
    if theme.causal_functions is not None:
        causal_functions = theme.causal_functions

    def drawn(number: int) -> Task:
        for attempt in range(1, MOST_ATTEMPTS + 1):
            name = f"{theme.name}, task {number}, attempt {attempt}"
            chain = Chain(n_per_bcc, _kinds(bcc_types, len(n_per_bcc), seed, name))
            world = random_world(chain, causal_functions, seed, name, probabilities)
            if _meets(world, least_pns, balance):
                story = Story(theme, world, seed, name, number % n_wordings, asides)
                return Task(number, story, n_samples, attempt)
        raise InputError(
            f"no world in {MOST_ATTEMPTS:,} has a global PNS of at least {least_pns} and a leaf "
            f"that is true with a probability of {balance} to {1 - balance}"
        )

    numbers = range(first_task, first_task + n_tasks)
    return Tasks([drawn(number) for number in numbers], only_changed, theme.name)


def _kinds(bcc_types: str | Sequence[str], k: int, seed: int, name: str) -> str | Sequence[str]:
    if bcc_types != "mixed":
        return bcc_types
    draw = Draw(seed, f"{name}, kinds")
    return [draw.one(KINDS) for _ in range(k)]


def _meets(world: World, least_pns: float, balance: float) -> bool:
    if least_pns == 0 and balance == 0:
        return True
    row = exact_quantities(world).loc[world.chain.global_quantity]
    p_root = world.probabilities[0]
    p_leaf = p_root * row["P(y | do x)"] + (1 - p_root) * row["P(y | do not x)"]
    return row["PNS"] >= least_pns and balance <= p_leaf <= 1 - balance


def _samples(task: Task) -> pd.DataFrame:
    numbers = np.arange(task.n_samples, dtype=np.int32)
    frame = pd.DataFrame({"sample": numbers, "text": task.samples})
    frame.insert(0, "task", np.int32(task.number))
    return frame


def _changes(task: Task) -> np.ndarray:
    """Return which prompts stay if only changed answers are kept, shape (questions, samples)."""
    factual = dict(zip(task.world.chain.cut_tree, task.labels, strict=False))
    return np.array(
        [
            np.ones(task.n_samples, bool) if row.cause < 0 else labels != factual[row.effect]
            for row, labels in zip(task.questions.itertuples(), task.labels, strict=True)
        ]
    )


def _told(task: Task) -> list[str]:
    return [f"{task.story.context}\n\n{sample}" for sample in task.samples]


def _head(task: Task) -> pd.DataFrame:
    """Return the columns that both flat frames begin with."""
    return pd.DataFrame(
        {
            "Task ID": task.number,
            "Context ID": task.story.name,
            "Sample ID": np.arange(task.n_samples),
            "Replicate ID": task.number,
            "Nodes per BCC": str(list(task.world.chain.n_per_bcc)),
        }
    )
