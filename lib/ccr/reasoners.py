"""Reference reasoners: what a score means, shown on reasoners whose faults are known.

A number such as "91 % of the interventional prompts" says little until it stands beside the score
of a reasoner that never looked at the intervention. Each reasoner here has exactly one fault, or
none. They answer from the world of a task, not from its text.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lib import ROOT
from lib.ccr.questions import UNKNOWN, decide
from lib.ccr.tasks import Task, Tasks
from lib.errors import check, check_share
from lib.files import read_yaml
from lib.noise import uniforms

#: What the scores of each reasoner teach, by its name.
_TEACHES: dict[str, str] = read_yaml(ROOT / "data" / "reasoners.yml")


@dataclass(frozen=True)
class Reasoner:
    """A reasoner that answers in a known way; `teaches` says in a sentence what its scores teach.

    `answer` takes a task, and uniforms of the shape of the answers, (questions, samples).
    """

    name: str
    teaches: str
    answer: Callable[[Task, np.ndarray], np.ndarray]

    def answers(self, tasks: Tasks, seed: int = 0) -> list[np.ndarray]:
        """Return the answers to all prompts, one grid per task; the `seed` is the reasoner's."""
        answers = []
        for task in tasks.tasks:
            # Chance is addressed by question and sample: more samples leave earlier answers alone.
            n_questions, n_samples = task.labels.shape
            chance = uniforms(seed, f"{self.name}, {task.story.name}", 0, n_samples, n_questions)
            answers.append(self.answer(task, chance))
        return answers


def _reasoner(name: str, answer: Callable[[Task, np.ndarray], np.ndarray]) -> Reasoner:
    return Reasoner(name, _TEACHES[name.partition(" at rate ")[0]], answer)


def noisy(rate: float) -> Reasoner:
    r"""Return a reasoner that gives the wrong answer with probability r, its `rate`.

    Because r is the same for yes and no, every ATE estimated from its answers, the global one and
    each factor of a composition, is in expectation :math:`(1 - 2r)` times the true one.
    """
    check_share("rate", rate)

    def answer(task: Task, chance: np.ndarray) -> np.ndarray:
        rule = "all facts must be told to a reasoner that takes yes for no, and no for yes"
        check(not task.n_untold, rule, f"{task.n_untold} untold facts")
        return task.labels ^ (chance < rate)

    return _reasoner(f"noisy at rate {rate:g}", answer)


def _stops_at_the_first_cutpoint(task: Task, chance: np.ndarray) -> np.ndarray:
    following = dict(itertools.pairwise(task.world.chain.cut_tree))
    rows = {key: row for row, key in enumerate(map(tuple, task.keys))}
    return task.labels[[rows[x, value, following.get(x, y)] for x, value, y in task.keys]]


def _echoes_the_intervention(task: Task, chance: np.ndarray) -> np.ndarray:
    value = task.keys[:, [1]]
    return np.where(value == -1, task.labels, value == 1)


def _assumes_untold_facts_are_false(task: Task, chance: np.ndarray) -> np.ndarray:
    asked = [replace(one, given=()) for one in task.asks]
    return decide(task.world, asked, np.maximum(task.told, 0))


_PERFECT = _reasoner("perfect", lambda task, chance: task.labels)

_TOLD = (
    _PERFECT,
    noisy(0.05),
    _reasoner("stops at the first cutpoint", _stops_at_the_first_cutpoint),
    _reasoner("ignores the intervention", lambda task, chance: task.before),
    _reasoner("echoes the intervention", _echoes_the_intervention),
    _reasoner("always yes", lambda task, chance: np.ones_like(task.labels)),
    _reasoner("coin", lambda task, chance: chance < 0.5),
)
_WITHHELD = (
    _PERFECT,
    _reasoner("ignores what is known", lambda task, chance: task.before),
    _reasoner("assumes untold facts are false", _assumes_untold_facts_are_false),
    _reasoner("always says it cannot be known", lambda task, _: 0 * task.labels + UNKNOWN),
)

#: The reference reasoners by name, the perfect one first.
REASONERS = {one.name: one for one in _TOLD}

#: The reference reasoners for tasks with facts withheld, likewise.
WITHHELD_REASONERS = {one.name: one for one in _WITHHELD}
