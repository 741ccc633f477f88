"""Settings: what tasks are made of, and the tasks that are drawn from one."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import KINDS, Chain
from lib.ccr.stories import WORDINGS, Story
from lib.ccr.tasks import Task, Tasks
from lib.ccr.theme import Draw, Theme, find_theme
from lib.ccr.worlds import CAUSAL_FUNCTIONS, PROBABILITIES, World, random_world
from lib.errors import InputError, check, check_count, check_known

#: So many worlds are drawn for one task before a floor or balance counts as out of reach.
MOST_ATTEMPTS = 1_000


@dataclass(frozen=True)
class Setting:
    """What tasks are made of: graph, world, and how it is told.

    Parameters
    ----------
    theme : str or Theme
        'candy_party', for instance; see :func:`lib.ccr.theme.themes`.
    n_per_bcc : sequence of int
        The nodes of each component, cutpoints counted in both neighbours.
    bcc_types : str or sequence of str
        'cycle', 'wheel', one of them for each component, or 'mixed': drawn for each.
    causal_functions : {'and', 'or', 'random', 'or, and at the leaf'}, optional
        See :func:`lib.ccr.worlds.random_world`. If not given, what the theme insists on,
        as ClinicalNotes does on the last, or else 'random'.
    n_samples : int
        Of each world.
    least_pns : float
        Draw worlds anew until the global PNS is at least this.
    balance : float
        Draw worlds anew until the leaf is true with a probability between this and
        one minus this.
    probabilities : sequence of float
        What the probabilities of noise are drawn from.
    n_wordings : int
        Use so many of the three ways to say the same, in turns.
    asides : bool
        Tell details that do not matter.
    only_changed : bool
        Keep of the interventional prompts those that the intervention changes.
    """

    theme: str | Theme
    n_per_bcc: Sequence[int] = (3, 3, 3)
    bcc_types: str | Sequence[str] = "cycle"
    causal_functions: str | None = None
    n_samples: int = 100
    least_pns: float = 0.0
    balance: float = 0.0
    probabilities: Sequence[float] = PROBABILITIES
    n_wordings: int = 1
    asides: bool = True
    only_changed: bool = False

    def __post_init__(self):
        theme = find_theme(self.theme)
        Chain(self.n_per_bcc, KINDS[0] if self.bcc_types == "mixed" else self.bcc_types)
        functions = self.causal_functions or theme.causal_functions or "random"
        check_known("causal_functions", functions, CAUSAL_FUNCTIONS)
        insisted = theme.causal_functions or functions
        rule = f"causal_functions of theme {theme.name!r} must be {insisted!r}"
        check(functions == insisted, rule, functions)
        object.__setattr__(self, "causal_functions", functions)
        check_count("n_samples", self.n_samples, least=1)
        check_count("n_wordings", self.n_wordings, least=1)
        most = len(WORDINGS)
        check(self.n_wordings <= most, f"n_wordings must be at most {most}", self.n_wordings)
        rule = "must be at least 0 and below"
        check(0 <= self.least_pns < 1, f"least_pns {rule} 1", self.least_pns)
        check(0 <= self.balance < 0.5, f"balance {rule} 0.5", self.balance)
        met = len(self.probabilities) > 0 and all(0 < p < 1 for p in self.probabilities)
        check(met, "probabilities must lie between 0 and 1", self.probabilities)

    def task(self, number: int, seed: int) -> Task:
        """Draw a task, always the same for a number and a seed."""
        theme = find_theme(self.theme)
        for attempt in range(1, MOST_ATTEMPTS + 1):
            name = f"{theme.name}, task {number}, attempt {attempt}"
            draw = Draw(seed, f"{name}, kinds")
            mixed = [draw.one(KINDS) for _ in self.n_per_bcc] if self.bcc_types == "mixed" else None
            chain = Chain(self.n_per_bcc, mixed or self.bcc_types)
            world = random_world(chain, self.causal_functions, seed, name, self.probabilities)
            if self._is_met(world):
                story = Story(theme, world, seed, name, number % self.n_wordings, self.asides)
                return Task(number, story, self.n_samples, attempt, self.only_changed)
        raise InputError(
            f"no world in {MOST_ATTEMPTS:,} has a global PNS of at least {self.least_pns} and a "
            f"leaf that is true with a probability of {self.balance} to {1 - self.balance}"
        )

    def _is_met(self, world: World) -> bool:
        if self.least_pns == 0 and self.balance == 0:
            return True
        row = exact_quantities(world).loc[world.chain.global_quantity]
        p_root = world.probabilities[0]
        p_leaf = p_root * row["P(y | do x)"] + (1 - p_root) * row["P(y | do not x)"]
        return row["PNS"] >= self.least_pns and self.balance <= p_leaf <= 1 - self.balance


def generate(
    theme: str | Theme,
    n_per_bcc: Sequence[int] = (3, 3, 3),
    *,
    n_tasks: int = 1,
    seed: int = 0,
    first_task: int = 0,
    **setting,
) -> Tasks:
    """Generate tasks of compositional causal reasoning, with their true answers.

    `setting` takes the other parameters of :class:`Setting`; ``n_tasks=1, first_task=7`` is the
    eighth task of a larger set. What is unknown or out of its range is refused.

    Examples
    --------
    >>> tasks = generate("candy_party", n_per_bcc=[3, 3], n_tasks=2, n_samples=5, seed=0)
    >>> len(tasks), len(tasks.factual), len(tasks.interventional)
    (90, 30, 30)
    """
    known = [*inspect.signature(Setting).parameters, "n_tasks", "seed", "first_task"]
    for name in setting:
        check_known("parameter", name, known)
    check_count("n_tasks", n_tasks, least=1)
    check_count("seed", seed, least=0)
    check_count("first_task", first_task, least=0)
    one = Setting(theme, n_per_bcc, **setting)
    numbers = range(first_task, first_task + n_tasks)
    return Tasks([one.task(number, seed) for number in numbers], find_theme(theme).name)
