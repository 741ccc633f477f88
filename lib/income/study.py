r"""The data set IncomeSCM-1.0.CATE, and the truth that it hides.

The question of the paper (Section 4.1): what does a year of full-time studies do to the income of a
subject five years later, compared to a year without studies, when the subject is free before and
after? (The paper says six; from its t = 2 to its t = 7 it is five.) One world is *seen*: subjects
study as they wish. Two worlds are *done*: other subjects all study, or none does. The difference of
a subject's two incomes is one noisy draw of its effect. If both arms are simulated again and again
from its state, with shared noise, the mean tends to the conditional average treatment effect,

.. math::
    \tau(z) = \mathbb E[Y(1) - Y(0) \mid Z = z]
    \approx \frac1K \sum_{k=1}^K \bigl(Y^{(k)}(1) - Y^{(k)}(0)\bigr),

a function of the full adjustment set, which is all that the future depends on. Against single draws
no estimator can reach an R² above :math:`\mathrm{Var}(\tau) / \mathrm{Var}(Y(1) - Y(0))`, the
*ceiling*. Steps are counted from 0; the paper's t is one higher.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from lib.cache import cached
from lib.effects.study import ADJUSTMENT_SETS, ARMS, Study, TrueEffects
from lib.errors import check, check_count, check_known
from lib.income.characteristics import cohort
from lib.scm import Simulator, StochasticPolicy
from lib.scm.simulator import BLOCK

#: Fields of a study, by name; its two arms; and the probabilities of levels in a lottery.
Fields: TypeAlias = dict[str, Any]
Arms: TypeAlias = tuple[str, str]
Lottery: TypeAlias = Mapping[str, float] | None

#: The step of the treatment.
TREATED_STEP = 1

#: For several studies that share their test subjects: seeds that nobody gives a study, and enough
#: futures to know the effects, which cost little because they are drawn once.
OF_TEST_SUBJECTS = {"test_seed": 2**32, "truth_seed": 2**32 + 1, "repeats": 10}


@dataclass(frozen=True, eq=False, repr=False)
class DrawnStudy(Study):
    """A study that knows how it was drawn: the arguments of :func:`draw_study`."""

    truth: TrueEffects | None = None
    drawn: Fields = field(default_factory=dict, repr=False)

    def redrawn(self, **changes: Any) -> "DrawnStudy":
        """Draw the study again with some arguments changed; all else, even chance, is as before."""
        rule = "the seed must not be that of the test subjects, unless test_seed is given, too"
        seed = changes.get("seed")
        check("test_seed" in changes or seed != self.drawn["test_seed"], rule, seed)
        drawn = draw_study(**self.drawn | {"adjustment": self.adjustment} | changes)
        return replace(drawn, group=self.group, impute=self.impute)


def draw_study(
    simulator: Simulator,
    n: int = 50_000,
    horizon: int = 7,
    seed: int = 0,
    test_seed: int | None = None,
    n_test: int | None = None,
    repeats: int = 0,
    adjustment: str | Sequence[str] = "full",
    arms: Arms = ARMS,
    truth_seed: int = 2,
    lottery: Lottery = None,
) -> DrawnStudy:
    """Draw the seen subjects, and the test subjects in both arms together with their truth.

    Draws from a simulator of :func:`~lib.income.fitted_simulator` are kept on disk.

    Parameters
    ----------
    n, n_test : int
        The numbers of seen subjects and of test subjects, which are equal by default.
    horizon : int
        The number of steps: 7 in the paper, 4 in its short variant. Income is read at the last.
    seed, test_seed, truth_seed : int
        Seeds of the seen world, of both done worlds together, and of the Monte-Carlo futures.
        By default `test_seed` is 1, or 0 if `seed` is 1: else the seen would be the test subjects.
    repeats : int
        Monte-Carlo futures of each test subject; without any, the true effects are unknown.
    lottery : mapping of str to float, optional
        Probabilities of levels; the treatment is drawn by them instead of chosen.
    """
    n_test = n if n_test is None else n_test
    test_seed = int(seed != 1) if test_seed is None else test_seed
    drawn = dict(locals())
    check_count("horizon", horizon, least=TREATED_STEP + 1)
    if isinstance(adjustment, str):
        check_known("adjustment", adjustment, ADJUSTMENT_SETS)
    rule = "the simulator must have studies and income; for others, use lib.effects.Study"
    check({"studies", "income"} <= {*simulator.kinds_}, rule, [*simulator.kinds_])
    rule = "truth_seed must not be the seed of the test subjects"  # or a future would be their own
    check(not repeats or truth_seed != test_seed, rule, truth_seed)
    seen = _seen(simulator, n, horizon, seed, lottery)
    done = _done(simulator, n_test, horizon, test_seed, arms, repeats, truth_seed, lottery)
    return DrawnStudy(**seen, **done, adjustment=adjustment, arms=arms, drawn=drawn)


def draw_studies(
    simulators: Simulator | Iterable[Simulator], n: int, seeds: Iterable[int], **options: Any
) -> Iterator[DrawnStudy]:
    """Draw one study per seed, when it is needed, from one simulator or from several in turn.

    Seeds are those of the seen subjects. The test subjects and their truth are the same for all
    studies of a simulator. `options` are those of :func:`draw_study`, by default 10 `repeats`.
    """
    simulators = [simulators] if isinstance(simulators, Simulator) else list(simulators)
    met = len(simulators) > 0 and all(isinstance(one, Simulator) for one in simulators)
    check(met, "simulators must be one Simulator or several", simulators[:3])
    check(isinstance(seeds, Iterable), "seeds must be an iterable, such as range(3)", seeds)
    options, firsts = OF_TEST_SUBJECTS | options, dict[Simulator, DrawnStudy]()
    taken = set[tuple[Simulator, int]]()  # one study twice would pass for two draws
    for simulator, seed in zip(itertools.cycle(simulators), seeds, strict=False):
        fixed = firsts[simulator].drawn if simulator in firsts else options
        of_others = seed not in (fixed["test_seed"], fixed["truth_seed"])
        check(of_others, "the seed of a study must differ from test_seed and truth_seed", seed)
        check((simulator, seed) not in taken, "studies of one simulator need different seeds", seed)
        taken.add((simulator, seed))
        if simulator not in firsts:
            firsts[simulator] = draw_study(simulator, n, seed=seed, **options)
            yield firsts[simulator]
        else:  # not left to the disk, which keeps nothing of a simulator of one's own
            drawn = firsts[simulator].drawn | {"seed": seed}
            again = (drawn[name] for name in ("simulator", "n", "horizon", "seed", "lottery"))
            yield replace(firsts[simulator], **_seen(*again), drawn=drawn)


def true_effects(
    simulator: Simulator,
    world: pd.DataFrame,
    repeats: int,
    horizon: int = 7,
    seed: int = 2,
    arms: Arms = ARMS,
) -> TrueEffects:
    """Run the future of a world's subjects many times in both arms, with shared noise.

    The world must have steps 0 and 1; what is done to `studies` at step 1 does not matter. There
    must be at least two repeats, and `seed` must not be the seed of the world, or the first repeat
    is the world's own future.
    """
    check_count("repeats", repeats, least=2)
    n = world["subject"].nunique()
    mean, squares = np.zeros(n), np.zeros(n)
    batch = BLOCK // n or 1  # forests are asked once for what repeats have in common
    for first in range(0, repeats, batch):
        some = range(repeats)[first : first + batch]
        control, treated = (
            future["income"].to_numpy().reshape(len(some), n, horizon)[..., -1]
            for future in _futures(simulator, world, horizon, seed, arms, some)
        )
        for k, difference in enumerate(treated - control, start=first + 1):
            # Welford's recurrence: exact means and variances without keeping every difference.
            step = difference - mean
            mean += step / k
            squares += step * (difference - mean)
    return TrueEffects(mean, squares / (repeats - 1), repeats)


def _futures(
    simulator: Simulator, world: pd.DataFrame, horizon: int, seed: int, arms: Arms, repeats: range
) -> list[pd.DataFrame]:
    """Continue the world from the treatment in both arms; each repeat has subjects of its own."""
    # Subjects become the index, which does not count, because every repeat has other subjects.
    before, now = (world[world["t"] == t].set_index("subject") for t in (0, TREATED_STEP))
    rule = "the world must have every subject at steps 0 and 1, in the same order"
    check(before.index.equals(now.index), rule, [len(before), len(now)])
    first, rows = repeats.start * len(now), np.tile(np.arange(len(now)), len(repeats))
    before, now = before.iloc[rows], now.iloc[rows]
    # All that comes before studies stays as it was; what studies move at step 1 is drawn.
    order = simulator.specification.order(TREATED_STEP, ["studies"])
    past = {name: {TREATED_STEP: now[name].array} for name in order[: order.index("studies")]}
    worlds = [past | {"studies": {TREATED_STEP: arm}} for arm in arms]
    return [simulator.sample(None, horizon, seed, do, before, first) for do in worlds]


@cached
def _seen(simulator: Simulator, n: int, horizon: int, seed: int, lottery: Lottery) -> Fields:
    policy = {} if lottery is None else {"studies": {TREATED_STEP: StochasticPolicy(lottery)}}
    world = simulator.sample(n, horizon, seed, policy)
    return {"observational": cohort(world), "probabilities": _chances(simulator, world, lottery)}


@cached
def _done(
    simulator: Simulator,
    n: int,
    horizon: int,
    seed: int,
    arms: Arms,
    repeats: int,
    truth_seed: int,
    lottery: Lottery,
) -> Fields:
    world = simulator.sample(n, TREATED_STEP + 1, seed)
    control, treated = map(cohort, _futures(simulator, world, horizon, seed, arms, range(1)))
    truth = true_effects(simulator, world, repeats, horizon, truth_seed, arms) if repeats else None
    chances = _chances(simulator, world, lottery)
    return {"control": control, "treated": treated, "truth": truth, "test_probabilities": chances}


def _chances(simulator: Simulator, world: pd.DataFrame, lottery: Lottery) -> pd.DataFrame:
    """Return the true probability of every level of studies, a row per subject of the world."""
    chosen = simulator.probabilities("studies", world, TREATED_STEP)
    return chosen if lottery is None else chosen.assign(**{**dict.fromkeys(chosen, 0.0), **lottery})
