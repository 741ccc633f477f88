r"""Stress tests: a study made harder in one way, level by level, and what estimators make of it.

A stress turns a level, such as a share of missing values, into a study. Every level is met by
the same few independently sampled studies, so levels can be compared in pairs; all studies are
marked on the same test subjects, of whom the Monte-Carlo effects are known. Two limits that the
authors of IncomeSCM name are lifted here: that no value is missing, and nobody lost [1]_.

References
----------
.. [1] Johansson, F. D. (2024). IncomeSCM: From tabular data set to time-series simulator and
   causal estimation benchmark. arXiv:2405.16069, Section 6.
"""

import functools
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, stdtrit

from lib import ROOT
from lib.effects.estimates import estimate
from lib.effects.estimator_files import read_grids
from lib.effects.study import Study, read_study
from lib.errors import InputError, check_count, is_count, one_of
from lib.income.characteristics import cohort
from lib.income.study import MINIMAL_ADJUSTMENT, TREATED_STEP, TrueEffects, true_effects
from lib.noise import uniforms
from lib.scm import Simulator
from lib.scm.interventions import StochasticPolicy

#: Estimators of several families, with fixed settings.
STRESS_GRIDS = ROOT / "data" / "estimators" / "stress.yml"

#: A standard deviation more multiplies the odds of being hidden, or lost, by e², about 7.
SLOPE = 2.0


@dataclass(frozen=True)
class Design:
    """What the studies of a stress test have in common.

    Attributes
    ----------
    simulator : Simulator
        Fitted to a specification of IncomeSCM.
    n, horizon : int
        Subjects of a study, before any is lost; and steps, of which the last has the income.
    n_test, repeats : int
        Test subjects, and Monte-Carlo futures of each.
    seed : int
        Of everything that is drawn.
    """

    simulator: Simulator
    n: int = 2_000
    horizon: int = 7
    n_test: int = 1_000
    repeats: int = 4
    seed: int = 0

    def seeds(self, n_studies: int = 0) -> list[int]:
        """Return the seeds of the test subjects, of their futures, and of every study."""
        return np.random.SeedSequence(self.seed).generate_state(2 + n_studies).tolist()

    def tests(self) -> tuple[pd.DataFrame, TrueEffects]:
        """Return the test subjects when they are treated, and their effects (US dollars)."""
        return _tests(self.simulator, self.n_test, self.repeats, self.horizon, *self.seeds())

    @functools.lru_cache(maxsize=16)  # noqa: B019 (most stresses start from the same few worlds)
    def seen(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return a study's subjects, and the true probabilities of what they could take."""
        world = self.simulator.sample(self.n, self.horizon, seed)
        probabilities = self.simulator.probabilities("studies", world, TREATED_STEP)
        return cohort(world, TREATED_STEP, self.horizon - 1), probabilities

    def study(self, seen, probabilities, adjustment=MINIMAL_ADJUSTMENT, tests=None) -> Study:
        """Set what was seen beside the test subjects; values that are missing are filled in."""
        tests = self.tests()[0] if tests is None else tests
        # The difference that estimators are marked against is the true one.
        arms = [tests.assign(income=income) for income in (0.0, self.tests()[1].mean)]
        return read_study(seen, *arms, list(adjustment), probabilities=probabilities, impute=True)


@functools.lru_cache(maxsize=4)
def _tests(simulator, n, repeats, horizon, subjects, futures) -> tuple[pd.DataFrame, TrueEffects]:
    world = simulator.sample(n, TREATED_STEP + 1, subjects)
    effects = true_effects(simulator, world, repeats, horizon, futures)
    return cohort(world, TREATED_STEP, TREATED_STEP), effects


def unchanged(design: Design, level: int, seed: int) -> Study:
    """Leave a study as it is; the design itself has another sample size or horizon."""
    return design.study(*design.seen(seed))


def hidden_confounder(design: Design, name: str, seed: int) -> Study:
    """Leave one direct cause of the treatment, or "none", out of the minimal adjustment set."""
    left = [covariate for covariate in MINIMAL_ADJUSTMENT if covariate != name]
    return design.study(*design.seen(seed), adjustment=left)


def overlap(design: Design, power: float, seed: int) -> Study:
    r"""Draw the treatment from the true probabilities raised to a power γ.

    .. math:: P_\gamma(a \mid z) = \frac{P(a \mid z)^\gamma}{\sum_b P(b \mid z)^\gamma}

    γ = 0 is a lottery of all levels, γ = 1 the world as it is, and a larger one is sharper.
    """
    tempered = design.seen(seed)[1] ** power
    tempered = tempered.div(tempered.sum(axis=1), axis=0)
    drawn = StochasticPolicy(lambda now, before: tempered.loc[now.index])
    do = {"studies": {TREATED_STEP: drawn}}
    world = design.simulator.sample(design.n, design.horizon, seed, do)
    return design.study(cohort(world, TREATED_STEP, design.horizon - 1), tempered)


def missing(design: Design, share: float, seed: int, by: str | None = None) -> Study:
    """Hide a share of the values of every covariate but age, more where `by` is high."""
    seen, probabilities = design.seen(seed)
    hidden, others = [], [name for name in MINIMAL_ADJUSTMENT if name != "age"]
    for table, which in ((seen, seed), (design.tests()[0], design.seeds()[0])):
        chances, n = rising(table[by] if by else np.zeros(len(table)), share), len(table)
        at = {name: uniforms(which, f"{name} is hidden", n=n)[0] < chances for name in others}
        hidden.append(table.assign(**{name: table[name].mask(at[name]) for name in others}))
    return design.study(hidden[0], probabilities, tests=hidden[1])


def censored(design: Design, share: float, seed: int, by: str | None = None) -> Study:
    """Lose a share of the subjects before income is read, more where `by` is high."""
    seen, probabilities = design.seen(seed)
    chances = rising(seen[by] if by else np.zeros(len(seen)), share)
    stays = uniforms(seed, "leaves the study", n=len(seen))[0] >= chances
    return design.study(seen[stays], probabilities[stays])


def rising(values: Iterable[float], share: float) -> np.ndarray:
    r"""Return chances that rise with values along a logistic curve and average to a share.

    .. math:: p_i = \operatorname{expit}(a + 2\,(v_i - \bar v) / s_v), \qquad \bar p = \text{share}

    Examples
    --------
    >>> rising([1.0, 2.0, 3.0], 0.5).round(2).tolist()
    [0.08, 0.5, 0.92]
    """
    values = np.asarray(values, dtype=float)
    if share == 0:
        return np.zeros(len(values))
    steps = SLOPE * (values - values.mean()) / (values.std() or 1.0)
    bound = 40 + np.abs(steps).max()  # expit(40) is 1 in double precision
    return expit(steps + brentq(lambda a: expit(a + steps).mean() - share, -bound, bound))


def _is_share(level) -> bool:
    return isinstance(level, Real) and 0 <= level < 1


_CAUSES, _SHARE = ("none", *MINIMAL_ADJUSTMENT), "a share, at least 0 and below 1"

#: Name → the function from a design, a level and a seed to a study; which levels there are, in
#: words; and whether something is one.
STRESSES: dict[str, tuple[Callable[[Design, Any, int], Study], str, Callable[[Any], bool]]] = {
    "sample size": (unchanged, "a whole number, at least 1", lambda n: is_count(n, 1)),
    "horizon": (unchanged, "a whole number, at least 3", lambda n: is_count(n, 3)),
    "hidden confounder": (hidden_confounder, f"one of {', '.join(_CAUSES)}", _CAUSES.__contains__),
    "overlap": (overlap, "0 or more", lambda p: isinstance(p, Real) and 0 <= p < np.inf),
    "missing (MCAR)": (missing, _SHARE, _is_share),
    "missing (MAR)": (functools.partial(missing, by="age"), _SHARE, _is_share),
    "censored at random": (censored, _SHARE, _is_share),
    "censored by income": (functools.partial(censored, by="income"), _SHARE, _is_share),
}


def stress_test(
    design: Design,
    stress: str,
    levels: Iterable[Any],
    estimators: Iterable[str] | None = None,
    n_studies: int = 5,
    progress: bool = True,
) -> pd.DataFrame:
    r"""Run estimators on several studies at every level of a stress, and mark them.

    Every estimate is kept on disk, see :func:`~lib.effects.estimates.estimate`. The noise that K
    futures leave in a test subject's mean difference :math:`\bar d_i` is taken out of

    .. math:: R^2 = 1 - \frac{\frac1m \sum_i (\bar d_i - \hat\tau_i)^2 - \overline{s_i^2} / K}
        {\widehat{\mathrm{Var}}(\tau)}.

    Parameters
    ----------
    design : Design
    stress : str
        A name of `STRESSES`.
    levels : iterable
    estimators : iterable of str, optional
        Names of data/estimators/stress.yml; all of them by default.
    n_studies : int
        Independently sampled studies, the same ones at every level.
    progress : bool
        Report each level on standard error as it finishes.

    Returns
    -------
    pandas.DataFrame
        `stress`, `level`, `study`, `estimator`, `error` of the average effect and its `absolute
        error` (US dollars), and `R²` of the effects, missing for estimators of the average alone.

    Raises
    ------
    InputError
        If the stress, a level or an estimator is unknown, or there are fewer than two studies.
    """
    if stress not in STRESSES:
        raise InputError(f"stress {stress!r} is unknown: {one_of(STRESSES)}")
    known, (_, rule, allows), tables = read_grids(STRESS_GRIDS), STRESSES[stress], []
    for level in (levels := list(levels) or [None]):
        if not allows(level):
            raise InputError(f"a level of the stress {stress!r} must be {rule}: found {level!r}")
    check_count("n_studies", n_studies, least=2)
    estimators = list(known if estimators is None else estimators)
    for k, level in enumerate(levels):
        begun = time.process_time()
        tables.append(_level(design, stress, level, estimators, n_studies, known))
        if progress:
            spent = f"{time.process_time() - begun:,.0f} CPU s"
            print(f"{stress}, {k + 1} of {len(levels)}: {level}, {spent}", file=sys.stderr)
    return pd.concat(tables, ignore_index=True)


def _level(design, stress, level, estimators, n_studies, entries) -> pd.DataFrame:
    changed = {"sample size": "n", "horizon": "horizon"}.get(stress)
    design = replace(design, **{changed: level}) if changed else design
    _, effects = design.tests()
    noise, rows = effects.variance.mean() / effects.repeats, []
    for k, seed in enumerate(design.seeds(n_studies)[2:]):
        study = STRESSES[stress][0](design, level, seed)
        grids = {"estimators": entries}
        found = estimate(study, estimators, grids, progress=False, scored=False)
        for name, result in found.items():
            error, fit = result.ate - effects.mean.mean(), np.nan
            if result.effects is not None and effects.variance_of_effects > 0:
                squares = np.mean((effects.mean - result.effects) ** 2) - noise
                fit = 1 - squares / effects.variance_of_effects
            rows.append((stress, level, k, name, error, abs(error), fit))
    columns = ["stress", "level", "study", "estimator", "error", "absolute error", "R²"]
    return pd.DataFrame(rows, columns=columns)


def curve(table: pd.DataFrame, mark: str) -> pd.DataFrame:
    r"""Average a mark over the k studies of a level: :math:`\bar x \pm t_{0.975,k-1}\,s / \sqrt k`.

    Examples
    --------
    >>> table = pd.DataFrame({"stress": "size", "level": 9, "estimator": "T", "R²": [0.1, 0.3]})
    >>> curve(table, "R²").round(2).to_numpy().tolist()
    [[0.2, -1.07, 1.47]]
    """
    grouped = table.dropna(subset=[mark]).groupby(["stress", "level", "estimator"], sort=False)
    mean, size = grouped[mark].mean(), grouped[mark].size()
    half = stdtrit(size - 1, 0.975) * grouped[mark].std() / size**0.5
    return pd.DataFrame({"mean": mean, "lower": mean - half, "upper": mean + half})


def beyond_chance(table: pd.DataFrame, mark: str, stress: str, level: Any, names: dict) -> str:
    """Say whose mark changed, study by study, from the first level to another beyond chance.

    Examples
    --------
    >>> table = pd.DataFrame({"stress": "size", "level": [9, 9, 1, 1], "study": [0, 1, 0, 1]})
    >>> table = table.assign(estimator="t", error=[50.0, 70.0, 1_150.0, 1_172.0])
    >>> beyond_chance(table, "error", "size", 1, {"t": "T-learner"})
    'T-learner by +1,101 dollars'
    """
    first = table.groupby(["stress", "study", "estimator"], sort=False)[mark].transform("first")
    here = (table["stress"] == stress) & (table["level"] == level)
    change = curve(table.assign(**{mark: table[mark] - first})[here], mark)
    sure = change.loc[(change["lower"] > 0) | (change["upper"] < 0), "mean"]
    shown = "{} by {:+.2f}" if mark == "R²" else "{} by {:+,.0f} dollars"
    return ", ".join(shown.format(names[name], mean) for (*_, name), mean in sure.items()) or "none"
