"""The benchmark: studies and estimators in, a tidy table of metrics out."""

import copy
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from scipy.special import ndtri
from threadpoolctl import threadpool_limits

from lib.cache import cached
from lib.effects.estimator_files import GRIDS, PAPER, read_estimators
from lib.effects.learners import kept
from lib.effects.metrics import evaluate
from lib.effects.study import Study, read_study
from lib.errors import InputError, check, check_known

#: Standard errors to either side of a 95 % interval by the normal distribution.
NORMAL = ndtri(0.975)

#: What a study may be told beside its three tables.
FIELDS = [each.name for each in fields(Study)][3:]


class Estimate(NamedTuple):
    """What an estimator found.

    Its average effect (of the test subjects, if it has `effect`); its effects of the test
    subjects, shape (m,), if it estimates more than the average; `AUC`, `R²` or nothing as the
    criterion, and the cross-validated score; what selection chose; and the CPU time of all.
    Then its 95 % intervals, of the average, missing if it states none, and of the effects, shape
    (m,), or none; and what the average is over, a name of
    :data:`~lib.effects.estimands.ESTIMANDS`.
    """

    ate: float
    effects: np.ndarray | None
    criterion: str
    score: float
    settings: str
    seconds: float
    lower: float = np.nan
    upper: float = np.nan
    effect_lower: np.ndarray | None = None
    effect_upper: np.ndarray | None = None
    estimand: str = "ATE"


def benchmark(
    studies: Study | Iterable[Study] | pd.DataFrame | str | os.PathLike,
    control: pd.DataFrame | str | os.PathLike | None = None,
    treated: pd.DataFrame | str | os.PathLike | None = None,
    *,
    estimators: Iterable[str] | None = None,
    grids: dict | str | os.PathLike = GRIDS,
    selection: str = "grid",
    n_settings: int = 20,
    bootstraps: int = 1_000,
    seed: int = 0,
    n_jobs: int = 1,
    progress: bool = True,
    **of_study,
) -> pd.DataFrame:
    """Estimate the effect by every estimator, and compare it with what really happened.

    Parameters
    ----------
    studies : Study, iterable of Study, or the first of three tables
        An iterable is taken one at a time. Three tables, or paths of CSV or Parquet files, are
        the seen subjects, and the same other subjects without (`control`) and with the treatment
        (`treated`).
    estimators, grids, selection, n_settings
        See :func:`~lib.effects.estimator_files.read_estimators`; by default the paper's eleven,
        or all of the `grids` given.
    bootstraps, seed : int
        Resamples of the test subjects; and the seed of these, of learners and of the search.
    n_jobs, progress : int, bool
        Estimators at work at a time; report each of them on standard error.
    **of_study
        Fields of :class:`~lib.effects.study.Study`, such as `adjustment`.

    Returns
    -------
    pandas.DataFrame
        `study`, counted from 0, and the columns of :func:`~lib.effects.metrics.evaluate`.
        Tables, names and grids that break a rule are refused before any work starts.
    """
    for name in of_study:
        check_known("argument", name, FIELDS)
    names = PAPER if estimators is None and grids is GRIDS else estimators
    made, tables = read_estimators(grids, names, selection, n_settings, seed), []
    if control is not None and treated is not None:
        studies, of_study = read_study(studies, control, treated, **of_study), {}
    for k, study in enumerate([studies] if isinstance(studies, Study) else studies):
        rule = "a benchmark is of a study, of studies, or of three tables"
        check(isinstance(study, Study), rule, type(study).__name__)
        study = replace(study, **of_study) if of_study else study
        found = estimate(study, made, n_jobs=n_jobs, progress=progress)
        tables.append(evaluate(study, found, bootstraps, seed).assign(study=k))
    check(len(tables) > 0, "a benchmark needs a study", tables)
    table = pd.concat(tables, ignore_index=True)
    return table[["study", *table.columns.drop("study")]]


def estimate(
    study: Study, estimators=PAPER, n_jobs: int = 1, progress: bool = True, **of_file
) -> dict[str, Estimate]:
    """Run estimators; each result is kept on disk as it finishes, so work can be resumed.

    `estimators` are names of an estimator file, which is read with other parameters of
    :func:`~lib.effects.estimator_files.read_estimators`, or a dict, name → the estimator itself.
    Results of a class of your own are not kept, because its code is not ours to watch.
    """
    if not isinstance(estimators, dict):
        estimators = read_estimators(estimators=estimators, **of_file)
    data = study.covariates.to_numpy(), study.arm, study.outcomes, study.test_covariates.to_numpy()
    ready = {name: _ready(name, estimator, study) for name, estimator in estimators.items()}
    # Estimators are sent to other processes by value, so that classes of a notebook arrive there.
    work = (joblib.delayed(kept(_estimate, made))(k, made, *data) for k, made in ready.items())
    finished, results = joblib.Parallel(n_jobs, return_as="generator")(work), {}
    for name, found in zip(ready, finished, strict=True):
        results[name] = found
        if progress:
            spent = f"{found.seconds:,.0f} CPU s"
            print(f"{len(results)} of {len(ready)}: {name}, {spent}", file=sys.stderr, flush=True)
    return results


def _ready(name: str, estimator, study: Study):
    """Refuse a study that an estimator cannot take, and tell it the propensities if it asks."""
    takes = getattr(estimator, "takes_missing", lambda: True)
    rule = f"estimator {name!r} has no way to take missing values, which impute=True fills in"
    check(not study.missing or takes(), rule, study.missing)
    if "probabilities" not in getattr(estimator, "get_params", dict)():
        return estimator
    if study.arm_probability is None:
        raise InputError(f"estimator {name!r} needs the true propensities: give probabilities")
    return copy.copy(estimator).set_params(probabilities=study.arm_probability)


@cached
def _estimate(name, estimator, covariates, treatment, outcome, test_covariates) -> Estimate:
    begun, estimator, m = time.process_time(), copy.deepcopy(estimator), len(test_covariates)
    # One thread: small matrices cost several times the CPU time on two.
    with threadpool_limits(1):
        estimator.fit(covariates, treatment, outcome)
        effects = None
        if callable(getattr(estimator, "effect", None)):
            effects = np.asarray(estimator.effect(test_covariates), dtype=float)
    if effects is None and not hasattr(estimator, "ate_"):
        raise InputError(f"estimator {name!r} must have effect(covariates), or ate_ after fit")
    rule, shape = f"effect of {name!r} must return one number a subject, {m:,}", np.shape(effects)
    check(effects is None or shape == (m,), rule, shape)
    ate = float(estimator.ate_ if effects is None else effects.mean())
    lower, upper = _interval(estimator, ate, test_covariates)
    ends = (None, None)
    if hasattr(estimator, "effect_interval"):
        ends = [np.asarray(end, dtype=float) for end in estimator.effect_interval(test_covariates)]
    return Estimate(
        ate=ate,
        effects=effects,
        criterion=getattr(estimator, "criterion", ""),
        score=float(getattr(estimator, "score_", np.nan)),
        settings=getattr(estimator, "in_words", str)(),
        seconds=time.process_time() - begun,
        lower=float(lower),
        upper=float(upper),
        effect_lower=ends[0],
        effect_upper=ends[1],
        estimand=getattr(estimator, "estimand", "ATE"),
    )


def _interval(estimator, ate: float, test_covariates) -> tuple[float, float]:
    """Return the 95 % interval of the average that an estimator states, in one way or another."""
    if hasattr(estimator, "average_interval"):
        return estimator.average_interval(test_covariates)
    half = NORMAL * getattr(estimator, "standard_error_", np.nan)
    return getattr(estimator, "interval_", (ate - half, ate + half))
