"""Tasks: random worlds told many times, with a question for every quantity.

A task is one Boolean world and its causal context. Each of its samples tells what
happened once; about each sample a factual question is asked for every node of the
cut tree, the root among them, and two interventional questions for every pair,
with the cause made true and made false. So P(y | x), P(y | do x) and the PNS can
all be estimated from the answers.

The tables are normalised: a context stands once, not on every row. Frames with the
columns that people already use are made of them on demand.
"""

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from lib.ccr.exact import exact_quantities
from lib.ccr.stories import Story
from lib.ccr.worlds import World
from lib.files import atomic_write, writable, write_parquet


@dataclass(frozen=True)
class Task:
    """One world, its story, and the samples that are told of it.

    `number` is which of its set, `attempts` how many worlds were drawn until one met the
    requirements. `only_changed` leaves out interventional prompts that the intervention does
    not change.
    """

    number: int
    story: Story
    n_samples: int
    attempts: int = 1
    only_changed: bool = False

    @property
    def world(self) -> World:
        """The world that the story tells."""
        return self.story.world

    @property
    def noise(self) -> np.ndarray:
        """The noise of all samples, shape (nodes, samples)."""
        return self.world.noise(self.story.seed, f"{self.story.name}, noise", self.n_samples)

    @property
    def samples(self) -> list[str]:
        """The sample contexts; told anew each time, because many of them are long."""
        return self.story.samples(self.noise)

    @cached_property
    def keys(self) -> list[tuple[int, int, int]]:
        """What each question sets and asks for: cause and value (-1 if factual), and effect."""
        tree = self.world.chain.cut_tree
        pairs = itertools.combinations(tree, 2)
        factual = [(-1, -1, effect) for effect in tree]
        return factual + [(cause, value, effect) for cause, effect in pairs for value in (1, 0)]

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row a question: the three parts of its key, and its text."""
        frame = pd.DataFrame(self.keys, columns=["cause", "value", "effect"])
        frame["text"] = [
            self.story.question(effect, None if cause < 0 else cause, value == 1)
            for cause, value, effect in self.keys
        ]
        frame.insert(0, "question", np.arange(len(frame), dtype=np.int32))
        frame.insert(0, "task", self.number)
        return frame

    @cached_property
    def labels(self) -> np.ndarray:
        """The true answers, shape (questions, samples)."""
        tree, noise = self.world.chain.cut_tree, self.noise
        worlds = {(-1, -1): self.world.values(noise)}
        for cause, value in itertools.product(tree[:-1], (1, 0)):
            worlds[cause, value] = self.world.values(noise, do={cause: bool(value)})
        return np.array([worlds[cause, value][effect] for cause, value, effect in self.keys])

    @property
    def before(self) -> np.ndarray:
        """For every question the true answer without an intervention, (questions, samples)."""
        place = {node: i for i, node in enumerate(self.world.chain.cut_tree)}
        return self.labels[[place[effect] for _, _, effect in self.keys]]

    @property
    def asked(self) -> np.ndarray:
        """Which questions are asked about which samples, shape (questions, samples)."""
        if not self.only_changed:
            return np.ones(self.labels.shape, dtype=bool)
        factual = np.array(self.keys)[:, [0]] < 0
        return factual | (self.labels != self.before)

    @cached_property
    def quantities(self) -> pd.DataFrame:
        """The exact quantities of every pair, by cause and effect."""
        return exact_quantities(self.world)

    def anatomy(self, sample: int = 0) -> pd.DataFrame:
        """Return every sentence of a context with its `part` (context or sample) and its `role`.

        Examples
        --------
        >>> from lib.ccr import generate
        >>> task = generate("candy_party", n_per_bcc=[2], n_samples=1).tasks[0]
        >>> task.anatomy()["role"].tolist()[:4]
        ['situation', 'rule of node 0', 'rule of node 1', 'closed world']
        """
        rows = [("context", role, text) for role, text in self.story.rules]
        noise = self.noise[:, [sample]]
        for node, (text,) in self.story.facts(noise, first=sample):
            known = f"noise of node {node}: {str(node is not None and noise[node, 0]).lower()}"
            rows.append(("sample", "does not matter" if node is None else known, text))
        return pd.DataFrame(rows, columns=["part", "role", "text"])


def _contexts(task: Task) -> pd.DataFrame:
    row = {
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
    return pd.DataFrame([row])


def _samples(task: Task) -> pd.DataFrame:
    numbers = np.arange(task.n_samples, dtype=np.int32)
    return pd.DataFrame({"task": np.int32(task.number), "sample": numbers, "text": task.samples})


def _answers(task: Task) -> pd.DataFrame:
    asked = task.asked
    question, sample = (numbers.astype(np.int32) for numbers in np.nonzero(asked))
    columns = {"sample": sample, "question": question, "answer": task.labels[asked]}
    return pd.DataFrame({"task": np.full(len(sample), task.number, np.int32), **columns})


def _quantities(task: Task) -> pd.DataFrame:
    names = [node.label for node in task.story.nodes]
    cause, effect = zip(*task.quantities.index, strict=True)
    nodes = {"task": task.number, "cause": cause, "effect": effect}
    labels = {"cause label": [names[x] for x in cause], "effect label": [names[y] for y in effect]}
    return pd.DataFrame(nodes | labels | task.quantities.to_dict("list"))


def _told(task: Task) -> list[str]:
    context = task.story.context
    return [f"{context}\n\n{sample}" for sample in task.samples]


def _flat(task: Task, rows: Iterable[tuple[dict, dict[str, int], dict]]) -> pd.DataFrame:
    """Return a row a sample for each of some names, questions by suffix, and further cells."""
    head = {
        "Task ID": task.number,
        "Context ID": task.story.name,
        "Sample ID": np.arange(task.n_samples),
        "Replicate ID": task.number,
        "Nodes per BCC": str(list(task.world.chain.n_per_bcc)),
    }
    told, texts, frames = {"Context": _told(task)}, task.questions["text"], []
    for names, questions, further in rows:
        cells = head | names | told
        for suffix, i in questions.items():
            cells |= {f"Question{suffix}": texts[i], f"True{suffix}": task.labels[i]}
        frames.append(pd.DataFrame(cells | further))
    return pd.concat(frames)


def _factual(task: Task) -> pd.DataFrame:
    names = [task.story.nodes[node].label for node in task.world.chain.cut_tree]
    return _flat(task, (({"Effect": name}, {"": i}, {}) for i, name in enumerate(names)))


def _interventional(task: Task) -> pd.DataFrame:
    rows, tree = [], task.world.chain.cut_tree
    for number, pair in enumerate(itertools.combinations(tree, 2)):
        cause, effect = (task.story.nodes[node].label for node in pair)
        names = {"Cause-effect pair": f"{cause} → {effect}", "Cause": cause, "Effect": effect}
        first = len(tree) + 2 * number
        questions = {" (cause = True)": first, " (cause = False)": first + 1}
        rows.append((names, questions, {"Cause node": pair[0], "Effect node": pair[1]}))
    frame = _flat(task, rows)
    changed = frame["True (cause = True)"] != frame["True (cause = False)"]
    return frame[changed] if task.only_changed else frame


#: The normalised tables, each made of one task at a time.
TABLES: dict[str, Callable[[Task], pd.DataFrame]] = {
    "contexts": _contexts,
    "samples": _samples,
    "questions": lambda task: task.questions,
    "answers": _answers,
    "quantities": _quantities,
}


def _table(of_task: Callable[[Task], pd.DataFrame], kind: type = cached_property):
    """Return a property of tasks: the tables of all, one below another."""
    return kind(lambda self: pd.concat(map(of_task, self.tasks), ignore_index=True))


@dataclass(frozen=True)
class Tasks:
    """A set of tasks, as tables.

    Attributes
    ----------
    contexts, samples, questions, answers, quantities : pandas.DataFrame
        The normalised tables: one row a task; a task's sample; a task's question;
        a sample's question and its true answer; a task's pair of nodes.
    factual, interventional : pandas.DataFrame
        Flat frames with the columns of the public data sets; interventional prompts in pairs,
        and with the numbers of their nodes. With `only_changed`, the pairs of two answers:
        one of them the intervention changes.
    """

    tasks: Sequence[Task]
    name: str = "ccr"

    contexts = _table(TABLES["contexts"])
    samples = _table(TABLES["samples"])
    questions = _table(TABLES["questions"])
    answers = _table(TABLES["answers"])
    quantities = _table(TABLES["quantities"])
    factual = _table(_factual, property)
    interventional = _table(_interventional, property)

    def __len__(self) -> int:
        return sum(int(task.asked.sum()) for task in self.tasks)

    def prompts(self) -> Iterator[dict]:
        """Yield every prompt: `id`, `task`, `sample`, `question`, `context`, `text`, `answer`."""
        for task in self.tasks:
            contexts, texts = _told(task), task.questions["text"].tolist()
            for question, sample in np.argwhere(task.asked).tolist():
                yield {
                    "id": f"{task.number}-{sample}-{question}",
                    "task": task.number,
                    "sample": sample,
                    "question": question,
                    "context": contexts[sample],
                    "text": texts[question],
                    "answer": bool(task.labels[question, sample]),
                }

    def to_parquet(self, folder: str | os.PathLike) -> Path:
        """Write the five tables as Parquet, samples and answers with one task in memory.

        The folder is made if it does not exist; the files appear when all are complete.
        """
        folder = Path(folder)
        writable(folder)
        with contextlib.ExitStack() as files:  # none takes its place before all are complete
            for name, of_task in TABLES.items():
                beside = files.enter_context(atomic_write(folder / f"{name}.parquet"))
                # A copy of each task: it goes, and with it all that was computed of it.
                frames = (of_task(replace(task)) for task in self.tasks)
                if name not in ("samples", "answers"):  # a few rows a task
                    frames = iter([pd.concat(frames)])
                write_parquet(beside, frames, compression="zstd")
        return folder
