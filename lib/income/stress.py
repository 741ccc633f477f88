r"""Stress tests: a study made harder in one way, level by level, and what estimators make of it.

A stress turns a study and a level, such as a share of missing values, into a harder study. Some
stresses change the outcome and, along with it, the known effect. Every level is applied to the same
few independently sampled studies, so levels can be compared in pairs. Two limits that the author
of IncomeSCM names are lifted here: that no value is missing, and that no subject is lost
(Johansson 2024, arXiv:2405.16069, Section 6).
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from lib.effects.estimands import average_effects
from lib.effects.estimates import estimate
from lib.effects.estimator_files import STRESS_GRIDS, read_estimators
from lib.effects.metrics import t_interval
from lib.effects.study import MINIMAL_ADJUSTMENT, TrueEffects, Vector, tempered
from lib.errors import InputError, check, check_known, check_once, is_count, is_number, needed
from lib.income.characteristics import cohort
from lib.income.study import TREATED_STEP, DrawnStudy
from lib.noise import uniforms
from lib.scm.interventions import StochasticPolicy
from lib.tables import number_text

#: One standard deviation more multiplies the odds of being hidden or lost by e², about 7.
SLOPE = 2.0

#: Most of those who choose full-time studies are younger than this.
TURNING_AGE = 30

#: The rank of education from which on studies pay more, if they pay unevenly.
SOME_COLLEGE = 10

#: A table of a study → the name of the seed with which it was drawn.
SEEDS = {"observational": "seed", "control": "test_seed", "treated": "test_seed"}


def hidden_confounder(study: DrawnStudy, name: str) -> DrawnStudy:
    """Leave one direct cause of the treatment, or "none", out of the minimal adjustment set."""
    return replace(study, adjustment=[cause for cause in MINIMAL_ADJUSTMENT if cause != name])


def overlap(study: DrawnStudy, power: float) -> DrawnStudy:
    """Draw the treatment from the true probabilities, :func:`~lib.effects.study.tempered`.

    Power 0 is a lottery of all levels, 1 the world as it is, redrawn; larger powers are sharper.
    """
    tables = ("probabilities", "test_probabilities")
    known = {which: tempered(getattr(study, which), power) for which in tables}
    policy = StochasticPolicy(lambda now, before: known["probabilities"].loc[now.index])
    drawn = {name: study.drawn[name] for name in ("n", "horizon", "seed")}
    world = study.drawn["simulator"].sample(**drawn, do={"studies": {TREATED_STEP: policy}})
    return replace(study, observational=cohort(world), **known)


def missing(study: DrawnStudy, share: float, by: str | None = None) -> DrawnStudy:
    """Hide a share of the values of every covariate but age, more where `by` is high."""
    tables, names = {}, study.observational.columns.drop(["age", study.treatment, study.outcome])
    for which, seed in SEEDS.items():
        table = getattr(study, which)
        hidden, n = _chances(table, share, by), len(table)
        noise = {name: uniforms(study.drawn[seed], f"{name} is hidden", n=n)[0] for name in names}
        holes = {name: table[name].mask(noise[name] < hidden) for name in names}
        tables[which] = table.assign(**holes)
    return replace(study, **tables, impute=True, group=None)


def censored(study: DrawnStudy, share: float, by: str | None = None) -> DrawnStudy:
    """Lose a share of the subjects before income is read, more where `by` is high."""
    seen, chances = study.observational, needed("probabilities", study.probabilities)
    noise = uniforms(study.drawn["seed"], "leaves the study", n=len(seen))[0]
    stays = noise >= _chances(seen, share, by)
    return replace(study, observational=seen[stays], probabilities=chances[stays])


def paid(study: DrawnStudy, dollars: float, pay: Callable[..., np.ndarray]) -> DrawnStudy:
    """Add to the last income, on which nothing else depends, and to the known effect.

    `pay` says how much is added for each dollar, given a table, who is treated in it, and its seed.
    """
    tables = {which: getattr(study, which) for which in SEEDS}
    arms = {k: (table["studies"] == study.arms[1]).to_numpy(float) for k, table in tables.items()}
    more = {k: dollars * pay(tables[k], arms[k], study.drawn[SEEDS[k]]) for k in SEEDS}
    tables = {k: table.assign(income=table["income"] + more[k]) for k, table in tables.items()}
    truth = needed("truth", study.truth)
    mean = truth.mean + more["treated"] - more["control"]
    return replace(study, **tables, truth=replace(truth, mean=mean))


#: Stress → how much is added for each dollar, see :func:`paid`. The first pays more to the young,
#: and less to people beyond :data:`TURNING_AGE`. The second pays more for studies to those with
#: some college, and less to others. The third adds normal noise, the same in both arms.
PAY: dict[str, Callable[..., np.ndarray]] = {
    "bend": lambda table, arm, _: np.tanh((TURNING_AGE - table["age"].to_numpy(float)) / 4),
    "uneven": lambda table, arm, _: np.where(table["education-num"] >= SOME_COLLEGE, arm, -arm),
    "noise": lambda table, arm, seed: ndtri(uniforms(seed, "luck beside", n=len(table))[0]),
}


def _chances(table: pd.DataFrame, share: float, by: str | None) -> np.ndarray:
    return rising(table[by] if by else np.zeros(len(table)), share)


def rising(values: Iterable[float], share: float) -> np.ndarray:
    r"""Return chances that rise with values along a logistic curve and average to a share.

    .. math:: p_i = \operatorname{expit}(a + 2\,(v_i - \bar v) / s_v), \qquad \bar p = \text{share}
    """
    values = np.asarray(values, dtype=float)
    if share == 0:
        return np.zeros(len(values))
    steps = SLOPE * (values - values.mean()) / (values.std() or 1.0)
    bound = 40 + np.abs(steps).max()  # expit(40) is 1 in double precision
    start = brentq(lambda a: expit(a + steps).mean() - share, -bound, bound)
    return np.asarray(expit(steps + start))


def _counts(least: int) -> tuple[str, Callable[[Any], bool]]:
    """Return which levels there are, in words, and a function that tells whether one is valid."""
    return f"a whole number, at least {least}", lambda level: is_count(level, least)


_SHARE = ("a share, at least 0 and below 1", lambda level: is_number(level) and 0 <= level < 1)
_SUM = ("0 or more", lambda level: is_number(level) and level >= 0)
_CAUSES = ("none", *MINIMAL_ADJUSTMENT)

#: Name → the function from a study and a level to the harder study; which levels there are, in
#: words; and a function that tells whether a level is valid. The first two stresses change how many
#: subjects are seen, and at which step income is read.
STRESSES: dict[str, tuple[Callable[[DrawnStudy, Any], DrawnStudy], str, Callable[[Any], bool]]] = {
    "sample size": (lambda study, n: study.redrawn(n=n), *_counts(1)),
    "horizon": (lambda study, horizon: study.redrawn(horizon=horizon), *_counts(3)),
    "hidden confounder": (hidden_confounder, f"one of {', '.join(_CAUSES)}", _CAUSES.__contains__),
    "overlap": (overlap, *_SUM),
    "missing (MCAR)": (missing, *_SHARE),
    "missing (MAR)": (functools.partial(missing, by="age"), *_SHARE),
    "censored at random": (censored, *_SHARE),
    "censored by income": (functools.partial(censored, by="income"), *_SHARE),
    **{name: (functools.partial(paid, pay=pay), *_SUM) for name, pay in PAY.items()},
}


def stress_test(
    studies: Iterable[DrawnStudy],
    stress: str,
    levels: Iterable[Any],
    estimators: Iterable[str] | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    r"""Make studies harder, level by level, run estimators on them, and mark the estimators.

    The studies must have true effects. Estimators are those of data/estimators/stress.yml, all by
    default. Marks are the `error`, an estimate less the average that it estimates, the `absolute
    error` (US dollars), and `R²` of effects, missing for estimators of the average alone. The R² is
    cleared of the noise that K futures leave in a subject's mean difference :math:`\bar d_i`,

    .. math:: R^2 = 1 - \frac{\frac1m \sum_i (\bar d_i - \hat\tau_i)^2 - \overline{s_i^2} / K}
        {\widehat{\mathrm{Var}}(\tau)}.
    """
    check_known("stress", stress, STRESSES)
    harder, rule, allows = STRESSES[stress]
    for level in (levels := list(levels) or [None]):
        check(allows(level), f"a level of the stress {stress!r} must be {rule}", level)
    check_once(f"level of the stress {stress!r}", levels)
    studies, rows = list(studies), []
    if any(study.truth is None for study in studies):
        raise InputError("a stress test needs true effects: draw its studies with repeats")
    made = read_estimators(STRESS_GRIDS, estimators, scored=False)
    for level, (k, study) in itertools.product(levels, enumerate(studies)):
        hard = harder(study, level)
        truth, averages = needed("truth", hard.truth), average_effects(hard)["value"]
        for name, found in estimate(hard, made, progress=progress).items():
            error = found.ate - averages[found.estimand]
            rows.append((stress, level, k, name, error, abs(error), _fit(truth, found.effects)))
    columns = ["stress", "level", "study", "estimator", "error", "absolute error", "R²"]
    return pd.DataFrame(rows, columns=columns)


def _fit(truth: TrueEffects, effects: Vector | None) -> float:
    if effects is None or truth.variance_of_effects == 0:
        return np.nan
    squares = np.mean((truth.mean - effects) ** 2) - truth.variance.mean() / truth.repeats
    return float(1 - squares / truth.variance_of_effects)


def curve(table: pd.DataFrame, mark: str, outside: float = 0.05) -> pd.DataFrame:
    """Average a mark over studies at each level, with :func:`~lib.effects.metrics.t_interval`."""
    groups = ["stress", "level", "estimator"]
    return t_interval(table.dropna(subset=[mark]).groupby(groups, sort=False)[mark], outside)


def changed(table: pd.DataFrame, mark: str, outside: float = 0.05) -> pd.DataFrame:
    """Average a mark's change from a stress's first level to each other level, study by study."""
    later = table["level"] != table.groupby("stress")["level"].transform("first")
    whose = [table[name] for name in ("stress", "study", "estimator")]
    first = table[mark].mask(later).groupby(whose).transform("first")
    return curve(table.assign(**{mark: table[mark] - first})[later], mark, outside)


def changes(table: pd.DataFrame, marks: Iterable[str] = ("error", "R²")) -> pd.DataFrame:
    """Average how several marks have :func:`changed`; the mark comes first in the index."""
    return pd.concat({mark: changed(table, mark) for mark in marks}, names=["mark"])


def in_words(found: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Lay the :func:`changes` out as text: a row per level and mark, a column per estimator.

    A cell is the mean change ± half of its 95 % interval, such as `+1 101 ± 13`.
    """
    texts, rows = [], ["stress", "level", "mark"]
    for (mark, *_), (mean, _, upper) in found.iterrows():
        digits = 2 if mark == "R²" else 0
        text = number_text(mean, digits=f"+z,.{digits}f")
        if pd.notna(upper):  # an interval needs two studies
            text += f" ± {number_text(upper - mean, digits=digits)}"
        texts.append(text)
    found = found.rename(index=names, level="estimator").assign(text=texts)
    return found.pivot_table("text", rows, "estimator", "first", fill_value="", sort=False)
