"""Tasks: random worlds told many times, the questions for every quantity, and their setting.

About each sample of a world, one factual question is asked for every node of the cut tree, the root
included, and two interventional questions for every pair, with the cause made true and made false.
So P(y | x), P(y | do x) and the PNS can all be estimated from the answers.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import numpy as np
import pandas as pd

from lib.ccr import questions
from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import KINDS, Chain
from lib.ccr.questions import ANSWERS, MOST_UNTOLD, UNKNOWN
from lib.ccr.stories import FORMS, WORDINGS, Story
from lib.ccr.theme import Draw, Theme, find_theme
from lib.ccr.worlds import CAUSAL_FUNCTIONS, PROBABILITIES, World, random_world
from lib.errors import (
    InputError,
    check,
    check_count,
    check_known,
    check_names,
    check_once,
    check_share,
    is_count,
    is_number,
)
from lib.files import AnyPath, atomic_write, write_parquet
from lib.noise import uniforms
from lib.workers import in_order

#: A prompt with its answer, see :meth:`Tasks.prompts`; and the columns of a table, by name.
Prompt: TypeAlias = dict[str, Any]
Columns: TypeAlias = dict[str, Any]

#: The number of samples that are written at a time: smaller blocks take longer and compress less.
BLOCK = 10_000

#: The number of worlds drawn for one task before its floor or balance counts as out of reach.
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class Task:
    """One world, its story, and the samples that are told of it.

    `number` is the task's number in its set, `attempts` counts the worlds drawn until one met the
    requirements. `only_changed` leaves out prompts with the same answer `before`. In every sample,
    `n_untold` facts are not told. If there are such facts, `unknown` leaves out prompts until that
    share of each kind has an answer that cannot be known.
    """

    number: int
    story: Story
    n_samples: int
    attempts: int = 1
    only_changed: bool = False
    n_untold: int = 0
    unknown: float | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """The allowed answers in words, each at the place of its number."""
        return ANSWERS if self.n_untold else ANSWERS[:2]

    @property
    def world(self) -> World:
        """The world that the story tells."""
        return self.story.world

    @property
    def noise(self) -> np.ndarray:
        """The noise of all samples, shape (nodes, samples)."""
        return self.world.noise(self.story.seed, f"{self.story.name}, noise", self.n_samples)

    @property
    def told(self) -> np.ndarray:
        """The noise as it is told: 1 or 0, and -1 where it is not told."""
        if not self.n_untold:
            return self.noise.astype(int)
        rank = self._drawn("untold", self.world.chain.n_nodes).argsort(axis=0).argsort(axis=0)
        return np.where(rank < self.n_untold, -1, self.noise)

    @property
    def samples(self) -> list[str]:
        """The sample contexts, told anew at each access, because many of them are long."""
        return self.story.samples(self.told)

    @cached_property
    def asks(self) -> list[questions.Question]:
        """The questions; not all of them are asked about every sample, see `asked`."""
        return questions.every_question(self.world.chain, self.n_untold > 0)

    @cached_property
    def keys(self) -> np.ndarray:
        """The cause and value that each question sets (-1 if factual), and its effect."""
        rule = "tables of causes and effects need all facts told; `prompts` do not"
        check(self.n_untold == 0, rule, f"{self.n_untold} untold facts")
        claims = [one.claims[0] for one in self.asks]
        return np.array([(*(do or [(-1, -1)])[0], effect) for effect, _, do in claims])

    @cached_property
    def texts(self) -> list[str]:
        """The questions in words, each with the answers that are allowed."""
        answer = FORMS["answer" if self.n_untold else "yes or no"]
        return [f"{self.story.ask(one)} {answer}" for one in self.asks]

    @property
    def questions(self) -> pd.DataFrame:
        """A table of the questions: the three parts of the key, or the kind, and the text."""
        return _numbered([self], _questions)

    @cached_property
    def labels(self) -> np.ndarray:
        """The true answers, shape (questions, samples), as numbers if some facts are not told."""
        labels = questions.decide(self.world, self.asks, self.told)
        return labels if self.n_untold else labels.astype(bool)

    @property
    def truth(self) -> np.ndarray:
        """The true answers as tables and prompts have them, in words if some facts are not told."""
        return np.array(ANSWERS, dtype=object)[self.labels] if self.n_untold else self.labels

    @property
    def before(self) -> np.ndarray:
        """The true answers without interventions or, with facts withheld, without what is known."""
        if self.n_untold:
            asks = [replace(one, given=()) for one in self.asks]
            return questions.decide(self.world, asks, self.told)
        return self.labels[np.searchsorted(self.world.chain.cut_tree, self.keys[:, 2])]

    @property
    def asked(self) -> np.ndarray:
        """Which questions are asked about which samples, shape (questions, samples).

        What is known must be true of the sample, and `only_changed` and `unknown` must allow it.
        """
        known = [questions.Question("known", one.given) for one in self.asks]
        asked: np.ndarray = questions.decide(self.world, known, self.noise) == 1
        if self.only_changed:
            more = [one.given if self.n_untold else one.claims[0].actions for one in self.asks]
            asked &= ~np.array([[bool(one)] for one in more]) | (self.labels != self.before)
        if self.unknown is None:
            return asked
        kinds, order = np.array([one.kind for one in self.asks]), self._drawn("asked", len(asked))
        kept, unknown = np.zeros_like(asked), self.labels == UNKNOWN
        for kind in questions.KINDS:
            here = asked & (kinds == kind)[:, None]
            sides = (here & unknown, self.unknown), (here & ~unknown, 1 - self.unknown)
            most = min(side.sum() / share for side, share in sides if share)
            for side, share in sides:
                limit = np.append(np.sort(order[side]), 1)[round(most * share)]
                kept |= side & (order < limit)
        return kept

    @cached_property
    def quantities(self) -> pd.DataFrame:
        """The exact quantities of every pair, by cause and effect."""
        return exact_quantities(self.world)

    def anatomy(self, sample: int = 0) -> pd.DataFrame:
        """Return every sentence of a prompt with its `part` (context or sample) and its `role`."""
        rule = f"sample must be a whole number from 0 to {self.n_samples - 1}"
        check(is_count(sample, 0) and sample < self.n_samples, rule, sample)
        rows = [("context", role, text) for role, text in self.story.rules]
        noise = self.told[:, sample]
        for node, sentences in self.story.facts(self.told):
            text = sentences[sample]
            known = f"noise of node {node}: {str(node is not None and noise[node] > 0).lower()}"
            role = "facts are missing" if text == FORMS["untold"] else "does not matter"
            rows += [("sample", role if node is None else known, text)] if text else []
        return pd.DataFrame(rows, columns=["part", "role", "text"])

    def program(self, question: int, sample: int) -> str:
        """Return a prompt's world and question as a program that prints its answer."""
        return self.story.program(self.asks[question], self.told[:, sample])

    def _drawn(self, what: str, terms: int) -> np.ndarray:
        name = f"{self.story.name}, {what}"
        return uniforms(self.story.seed, name, n=self.n_samples, terms=terms)


def _contexts(task: Task) -> Columns:
    chain, story = task.world.chain, task.story
    row = {
        "theme": story.theme.name,
        "wording": story.wording,
        "n_per_bcc": list(chain.n_per_bcc),
        "bcc_types": list(chain.bcc_types),
        "nodes": [node.label for node in story.nodes],
        "edges": [list(edge) for edge in chain.graph.edges],
        "cut_tree": list(chain.cut_tree),
        "operators": list(task.world.operators),
        "probabilities": list(task.world.probabilities),
        "attempts": task.attempts,
        "text": story.context,
    }
    return {name: [cell] for name, cell in row.items()}


def _samples(task: Task) -> Columns:
    return {"sample": np.arange(task.n_samples, dtype=np.int32), "text": task.samples}


def _questions(task: Task) -> Columns:
    about: Columns = {"kind": [one.kind for one in task.asks]}
    if not task.n_untold:
        about = dict(zip(("cause", "value", "effect"), task.keys.T, strict=True))
    return {"question": np.arange(len(task.asks), dtype=np.int32), **about, "text": task.texts}


def _answers(task: Task) -> Columns:
    asked = task.asked
    question, sample = (numbers.astype(np.int32) for numbers in np.nonzero(asked))
    return {"sample": sample, "question": question, "answer": task.truth[asked]}


def _quantities(task: Task) -> Columns:
    found, labels = task.quantities, [node.label for node in task.story.nodes]
    ends = dict(zip(found.index.names, np.array([*found.index]).T, strict=True))
    told = {f"{end} label": [labels[node] for node in nodes] for end, nodes in ends.items()}
    return ends | told | {name: column.to_numpy() for name, column in found.items()}


def _frame(parts: Iterable[Columns]) -> pd.DataFrame:
    """Stack the columns of all parts; a single value is repeated in every row of its part."""
    parts = list(parts)
    n = [next(len(cells) for cells in part.values() if not np.isscalar(cells)) for part in parts]

    def column(cells: list[Any]) -> Any:
        if isinstance(cells[0], list):
            return [*itertools.chain(*cells)]
        if isinstance(cells[0], pd.Series):
            return pd.concat(cells).array  # long texts are referred to, not copied
        whole = isinstance(cells[0], np.ndarray)
        return np.concatenate(cells) if whole else pd.Series(np.array(cells)).array.repeat(n)

    return pd.DataFrame({name: column([part[name] for part in parts]) for name in parts[0]})


def _numbered(tasks: Iterable[Task], of_task: Callable[[Task], Columns]) -> pd.DataFrame:
    """Return the columns of all tasks, stacked, after a column of the number of each task."""
    return _frame({"task": np.int32(task.number)} | of_task(task) for task in tasks)


def _told(task: Task) -> list[str]:
    context = task.story.context
    return [f"{context}\n\n{sample}" for sample in task.samples]


def _rows(task: Task, values: dict[str, int]) -> Iterator[Columns]:
    """Yield the columns of each question, or pair of questions, with one row per sample."""
    label, told = [node.label for node in task.story.nodes], pd.Series(_told(task))
    asked = [np.flatnonzero(task.keys[:, 1] == value) for value in values.values()]
    for pair in np.transpose(asked):
        (cause, _, effect), labels = task.keys[pair[0]], task.labels[pair]
        kept = labels[0] != labels[1] if task.only_changed and cause >= 0 else slice(None)
        row = {
            "Task ID": task.number,
            "Context ID": task.story.name,
            "Sample ID": np.arange(task.n_samples)[kept],
            "Replicate ID": task.number,
            "Nodes per BCC": str(list(task.world.chain.n_per_bcc)),
            "Cause-effect pair": f"{label[cause]} → {label[effect]}",
            "Cause": label[cause],
            "Effect": label[effect],
            "Context": told[kept],
        }
        for end, question, answers in zip(values, pair, labels, strict=True):
            row |= {f"Question{end}": task.texts[question], f"True{end}": answers[kept]}
        yield row | {"Cause node": cause, "Effect node": effect}


def _flat(tasks: Sequence[Task], values: dict[str, int]) -> pd.DataFrame:
    """Return the questions that set one of `values`, about all samples, with the public columns.

    A question and its answer are in the columns whose ending `values` maps to its value.
    """
    return _frame(row for task in tasks for row in _rows(task, values))


#: The normalised tables, each with the function that returns the columns of one task.
TABLES: dict[str, Callable[[Task], Columns]] = {
    "contexts": _contexts,
    "samples": _samples,
    "questions": _questions,
    "answers": _answers,
    "quantities": _quantities,
}


def _table(of_task: Callable[[Task], Columns]) -> Any:
    """Return a cached property of `Tasks`: one table of all its tasks."""
    return cached_property(lambda self: _numbered(self.tasks, of_task))


@dataclass(frozen=True)
class Tasks:
    """A set of tasks, as tables.

    The normalised tables are `contexts` (one row per task), `samples` and `questions` of each task,
    `answers` (the true answer to each prompt) and `quantities` (of each pair of nodes of a task).
    The flat frames `factual` and `interventional` have the columns of the public data sets.
    Interventional prompts are in pairs; with `only_changed`, only those whose answers differ.

    Nodes are numbered in topological order, and `contexts` has their names. A question sets the
    node `cause` to `value` and asks about the node `effect`; in a factual question, the first two
    are -1. ``data/static_data_sets.yml``, and so every card, says what every column means.
    """

    tasks: Sequence[Task] = field(repr=False)
    name: str = "ccr"

    def __post_init__(self) -> None:
        check(len(self.tasks) > 0, "a set must hold at least one task", self.tasks)
        # Prompts are named, and tables joined, by the number of a task.
        check_once("number of a task", (task.number for task in self.tasks))
        untold = [task.n_untold for task in self.tasks]
        check(len({n > 0 for n in untold}) == 1, "all tasks or none must withhold facts", untold)

    contexts, samples, questions, answers, quantities = map(_table, TABLES.values())

    @property
    def factual(self) -> pd.DataFrame:
        """The factual prompts."""
        of_causes = ["Cause-effect pair", "Cause", "Cause node", "Effect node"]
        return _flat(self.tasks, {"": -1}).drop(columns=of_causes)

    @property
    def interventional(self) -> pd.DataFrame:
        """The interventional prompts, in pairs."""
        return _flat(self.tasks, {" (cause = True)": 1, " (cause = False)": 0})

    def __len__(self) -> int:
        return sum(int(replace(task).asked.sum()) for task in self.tasks)

    def prompts(self) -> Iterator[Prompt]:
        """Yield every prompt: `id`, `task`, `sample`, `question`, `context`, `text`, `answer`.

        With facts withheld, the answer is one of :data:`~lib.ccr.questions.ANSWERS`, and the `kind`
        of the question is the last item.
        """
        for task in map(replace, self.tasks):  # copies, as in `to_parquet`
            contexts, texts, truth = _told(task), task.texts, task.truth.tolist()
            kinds = [{"kind": one.kind} if task.n_untold else {} for one in task.asks]
            for question, sample in np.argwhere(task.asked).tolist():
                yield {
                    "id": f"{task.number}-{sample}-{question}",
                    "task": task.number,
                    "sample": sample,
                    "question": question,
                    "context": contexts[sample],
                    "text": texts[question],
                    "answer": truth[question][sample],
                    **kinds[question],
                }

    def to_parquet(self, folder: AnyPath) -> Path:
        """Write the five tables as Parquet, some tasks at a time; the files appear all at once.

        An earlier set in that folder is replaced, together with what was published with it.
        """
        files = [*(f"{name}.parquet" for name in TABLES), "README.md", "croissant.json"]
        files += ["DATASHEET.md", "csv"]
        with atomic_write(folder, files) as beside:
            size = BLOCK // max(task.n_samples for task in self.tasks) or 1
            blocks = [self.tasks[low : low + size] for low in range(0, len(self.tasks), size)]
            # Copies of tasks and stories: what is computed from them is freed with them.
            copies = ([replace(one, story=replace(one.story)) for one in b] for b in blocks)
            to = [(beside / f"{name}.parquet", of_task) for name, of_task in TABLES.items()]
            frames = ((path, _numbered(some, of_task)) for some in copies for path, of_task in to)
            write_parquet(frames, compression="zstd")
        return Path(folder)


@dataclass(frozen=True)
class Setting:
    """What tasks are made of: a graph, a world, and how the world is told.

    Parameters
    ----------
    theme : Theme or str
        A theme or its name, such as 'candy_party'.
    n_per_bcc, bcc_types : sequence of int, str or sequence of str
        As in :class:`~lib.ccr.graphs.Chain`; with 'mixed', a kind is drawn for each component.
    causal_functions : {'and', 'or', 'random', 'or, and at the leaf'}, optional
        By default what the theme insists on (ClinicalNotes: the last one), or else 'random'.
    n_samples : int
        The number of samples of each world.
    least_pns, balance : float
        Worlds are drawn anew until the global PNS is at least `least_pns` and the leaf is true with
        a probability between `balance` and one minus `balance`.
    probabilities : sequence of float
        The values from which the probabilities of noise are drawn.
    n_wordings, asides : int, bool
        How many of the three ways to say the same take turns; whether needless details are told.
    only_changed : bool
        Keep an interventional prompt only if the intervention changes its answer. With facts
        withheld, keep a prompt that tells what is known only if this changes its answer.
    withheld : float
        The share of the facts of every sample that is not told. If it is above 0, at least one fact
        is not told, and all kinds of :mod:`lib.ccr.questions` are asked.
    unknown : float, optional
        The share of prompts of each kind whose answer cannot be known; by default, as it comes.
    """

    theme: Theme
    n_per_bcc: Sequence[int] = (3, 3, 3)
    bcc_types: str | Sequence[str] = "cycle"
    causal_functions: str = ""
    n_samples: int = 100
    least_pns: float = 0.0
    balance: float = 0.0
    probabilities: Sequence[float] = PROBABILITIES
    n_wordings: int = 1
    asides: bool = True
    only_changed: bool = False
    withheld: float = 0.0
    unknown: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "theme", find_theme(self.theme))
        if isinstance(self.bcc_types, str):
            check_known("bcc_types", self.bcc_types, [*KINDS, "mixed"])
        Chain(self.n_per_bcc, KINDS[0] if self.bcc_types == "mixed" else self.bcc_types)
        functions = self.causal_functions or self.theme.causal_functions or "random"
        allowed = [self.theme.causal_functions] if self.theme.causal_functions else CAUSAL_FUNCTIONS
        check_known(f"in theme {self.theme.name!r}, causal_functions", functions, allowed)
        object.__setattr__(self, "causal_functions", functions)
        check_count("n_samples", self.n_samples, least=1)
        met = is_count(self.n_wordings, 1) and self.n_wordings <= len(WORDINGS)
        check(met, f"n_wordings must be a whole number from 1 to {len(WORDINGS)}", self.n_wordings)
        for name, below in {"least_pns": 1, "balance": 0.5}.items():
            met = is_number(found := getattr(self, name)) and 0 <= found < below
            check(met, f"{name} must be at least 0 and below {below}", found)
        for name in ("asides", "only_changed"):
            found = getattr(self, name)
            check(found in (True, False), f"{name} must be True or False", found)
        chances = self.probabilities if np.ndim(self.probabilities) == 1 else []
        met = len(chances) > 0 and all(is_number(p) and 0 < p < 1 for p in chances)
        check(met, "probabilities must list numbers above 0 and below 1", self.probabilities)
        check_share("withheld", self.withheld)
        rule = f"withheld must leave at most {MOST_UNTOLD} facts untold, as each doubles the work"
        check(self.n_untold <= MOST_UNTOLD, rule, self.n_untold)
        met = is_number(self.unknown) and 0 <= self.unknown <= 1 and self.withheld > 0
        rule = "unknown must lie between 0 and 1, and needs withheld above 0"
        check(met or self.unknown is None, rule, self.unknown)
        rule = "unknown must be 0 or None with only_changed, which keeps what can be inferred"
        check(not (self.only_changed and self.unknown), rule, self.unknown)

    @property
    def n_untold(self) -> int:
        """How many facts of every sample are not told."""
        share = self.withheld * Chain(self.n_per_bcc).n_nodes
        return max(round(share), int(share > 0))

    def task(self, number: int, seed: int) -> Task:
        """Draw a task, always the same for a number and a seed."""
        for attempt in range(1, MOST_ATTEMPTS + 1):
            name = f"{self.theme.name}, task {number}, attempt {attempt}"
            draw = Draw(seed, f"{name}, kinds")
            mixed = [draw.one(KINDS) for _ in self.n_per_bcc] if self.bcc_types == "mixed" else None
            chain = Chain(self.n_per_bcc, mixed or self.bcc_types)
            world = random_world(chain, self.causal_functions, seed, name, self.probabilities)
            if self._is_met(world):
                story = Story(self.theme, world, seed, name, number % self.n_wordings, self.asides)
                kept = (self.only_changed, self.n_untold, self.unknown)
                return Task(number, story, self.n_samples, attempt, *kept)
        rule = f"a global PNS of at least {self.least_pns}"
        if least := self.balance:
            rule += f" and a leaf that is true with a probability of {least} to {1 - least}"
        raise InputError(f"no world in {MOST_ATTEMPTS:,} has {rule}")

    def _is_met(self, world: World) -> bool:
        if self.least_pns == 0 and self.balance == 0:
            return True
        row = exact_quantities(world).loc[world.chain.global_quantity]
        p_root = world.probabilities[0]
        p_leaf = p_root * row["P(y | do x)"] + (1 - p_root) * row["P(y | do not x)"]
        return bool(row["PNS"] >= self.least_pns and self.balance <= p_leaf <= 1 - self.balance)


def generate(
    theme: str | Theme,
    n_per_bcc: Sequence[int] = (3, 3, 3),
    *,
    n_tasks: int = 1,
    seed: int = 0,
    first_task: int = 0,
    n_jobs: int | None = None,
    **setting: Any,
) -> Tasks:
    """Generate tasks of compositional causal reasoning, with their true answers.

    `setting` takes the other parameters of :class:`Setting`. Unknown parameters and values out of
    range are refused. ``n_tasks=1, first_task=7`` makes the eighth task of a larger set. `n_jobs`
    workers draw worlds, by default as many as :func:`joblib.parallel_config` says, or else one.

    Examples
    --------
    >>> tasks = generate("candy_party", n_per_bcc=[3, 3], n_tasks=2, n_samples=5, seed=0)
    >>> len(tasks), len(tasks.factual), len(tasks.interventional)
    (90, 30, 30)
    """
    known = [*(field.name for field in fields(Setting)), "n_tasks", "seed", "first_task", "n_jobs"]
    check_names("parameter", setting, known)
    check_count("n_tasks", n_tasks, least=1)
    check_count("seed", seed, least=0)
    check_count("first_task", first_task, least=0)
    one = Setting(find_theme(theme), n_per_bcc, **setting)
    numbers = range(first_task, first_task + n_tasks)
    drawn = in_order((joblib.delayed(one.task)(number, seed) for number in numbers), n_jobs)
    return Tasks([*drawn], one.theme.name)
