"""The benchmark: studies and estimators in, a tidy table of metrics out."""

import copy
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lib.cache import cached
from lib.effects.estimator_files import GRIDS, PAPER, Entrant, read_estimators
from lib.effects.learners import kept
from lib.effects.metrics import evaluate
from lib.effects.study import Study, read_study
from lib.errors import InputError, check_count, one_of

#: Settings that the paper's random search draws (its Section 5).
RANDOM_SETTINGS = 20


class Estimate(NamedTuple):
    """What an estimator found.

    Its average effect (of the test subjects, if it has `effect`); its effects of the test
    subjects, shape (m,), if it estimates more than the average; `AUC`, `R²` or nothing as the
    criterion, and the cross-validated score; what selection chose; and the CPU time of all.
    """

    ate: float
    effects: np.ndarray | None
    criterion: str
    score: float
    settings: str
    seconds: float


def benchmark(
    studies: Study | Iterable[Study] | pd.DataFrame | str | os.PathLike,
    control: pd.DataFrame | str | os.PathLike | None = None,
    treated: pd.DataFrame | str | os.PathLike | None = None,
    *,
    estimators: Iterable[str] = PAPER,
    grids: str | os.PathLike | dict = GRIDS,
    selection: str = "grid",
    n_settings: int = RANDOM_SETTINGS,
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
    estimators, grids : iterable of str, path or dict
        Names of the estimator file, or `module:Class`, the paper's eleven by default; and the file.
    selection, n_settings : {"grid", "random"}, int
        All settings, or some at random, and how many these are.
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
    entrants = _entrants(estimators, grids, selection, n_settings, seed)
    tables = []
    for k, study in enumerate(_studies(studies, control, treated, of_study)):
        table = evaluate(study, _estimates(study, entrants, n_jobs, progress), bootstraps, seed)
        table.insert(0, "study", k)
        tables.append(table)
    if not tables:
        raise InputError("a benchmark needs a study: found none")
    return pd.concat(tables, ignore_index=True)


def estimate(
    study: Study,
    estimators: Iterable[str] = PAPER,
    grids: str | os.PathLike | dict = GRIDS,
    selection: str = "grid",
    n_settings: int = RANDOM_SETTINGS,
    seed: int = 0,
    n_jobs: int = 1,
    progress: bool = True,
    scored: bool = True,
) -> dict[str, Estimate]:
    """Run estimators; each result is kept on disk as it finishes, so work can be resumed.

    The parameters are those of :func:`benchmark`; if `scored`, estimators that have nothing to
    choose are cross-validated, too, for their score. Results of a class of your own are not kept,
    because its code is not ours to watch.
    """
    entrants = _entrants(estimators, grids, selection, n_settings, seed, scored)
    return _estimates(study, entrants, n_jobs, progress)


def labels(grids: str | os.PathLike | dict = GRIDS) -> dict[str, str]:
    """Return the label of every estimator of a file: `T-learner (RF)` of `t-rfr`."""
    return {name: entrant.label for name, entrant in read_estimators(grids).items()}


def _studies(studies, control, treated, of_study: dict) -> Iterator[Study]:
    if control is not None and treated is not None:
        studies, of_study = read_study(studies, control, treated, **of_study), {}
    for study in [studies] if isinstance(studies, Study) else studies:
        if not isinstance(study, Study):
            rule = "a benchmark is of a study, of studies, or of three tables"
            raise InputError(f"{rule}: found a {type(studies).__name__}")
        yield replace(study, **of_study) if of_study else study


def _entrants(names, grids, selection, n_settings, seed, scored=True) -> dict[str, Entrant]:
    if selection not in ("grid", "random"):
        raise InputError(f"selection {selection!r} is unknown: {one_of(['grid', 'random'])}")
    check_count("n_settings", n_settings, least=1)
    drawn = n_settings if selection == "random" else None
    return read_estimators(grids, [names] if isinstance(names, str) else names, drawn, seed, scored)


def _estimates(study: Study, entrants: dict[str, Entrant], n_jobs, progress) -> dict[str, Estimate]:
    data = study.covariates.to_numpy(), study.arm, study.outcomes, study.test_covariates.to_numpy()
    ready = {name: _ready(name, entrant.estimator, study) for name, entrant in entrants.items()}
    # Estimators are sent to other processes by value, so that classes of a notebook arrive there.
    work = (
        joblib.delayed(kept(_estimate, made))(name, made, *data) for name, made in ready.items()
    )
    results = {}
    for name, found in zip(
        ready, joblib.Parallel(n_jobs, return_as="generator")(work), strict=True
    ):
        results[name] = Estimate(*found)
        if progress:
            spent = f"{results[name].seconds:,.0f} CPU s"
            print(f"{len(results)} of {len(ready)}: {name}, {spent}", file=sys.stderr, flush=True)
    return results


def _ready(name: str, estimator, study: Study):
    """Refuse a study that an estimator cannot take, and tell it the propensities if it asks."""
    if study.missing and not getattr(estimator, "takes_missing", lambda: True)():
        column, count = next(iter(study.missing.items()))
        found = f"column {column!r} has {count:,}; fill them in with impute=True"
        raise InputError(f"estimator {name!r} has no way to take missing values: {found}")
    if "probabilities" not in getattr(estimator, "get_params", dict)():
        return estimator
    if study.arm_probability is None:
        raise InputError(f"estimator {name!r} needs the true propensities: give probabilities")
    return copy.copy(estimator).set_params(probabilities=study.arm_probability)


@cached
def _estimate(name, estimator, covariates, treatment, outcome, test_covariates):
    begun, estimator, m = time.process_time(), copy.deepcopy(estimator), len(test_covariates)
    # One thread: small matrices cost several times the CPU time on two.
    with threadpool_limits(1):
        estimator.fit(covariates, treatment, outcome)
        effects = None
        if callable(getattr(estimator, "effect", None)):
            effects = np.asarray(estimator.effect(test_covariates), dtype=float)
            if effects.shape != (m,):
                rule = f"effect must return one number a subject, {m:,}"
                raise InputError(f"estimator {name!r}: {rule}: found shape {effects.shape}")
        elif not hasattr(estimator, "ate_"):
            raise InputError(f"estimator {name!r} must have effect(covariates), or ate_ after fit")
    ate = float(estimator.ate_) if effects is None else float(effects.mean())
    score = float(getattr(estimator, "score_", np.nan))
    words = estimator.in_words() if hasattr(estimator, "in_words") else ""
    criterion = getattr(estimator, "criterion", "")
    return ate, effects, criterion, score, words, time.process_time() - begun
