"""The benchmark: estimators in, a table of marks out."""

import os
import sys
import time
from collections.abc import Iterable
from importlib import metadata
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from lib.cache import cached
from lib.effects.estimator_files import GRIDS, PAPER, build, needs_complete_covariates, read_grids
from lib.effects.estimators import ESTIMATORS, TruePropensityWeighting
from lib.effects.metrics import marks
from lib.effects.study import Study, read_study
from lib.errors import InputError, check_count, one_of

#: Settings that the paper's random search draws (its Section 5).
RANDOM_SETTINGS = 20


class Estimate(NamedTuple):
    """What an estimator found.

    Attributes
    ----------
    ate : float
        Its average effect, on the test subjects if it has `effect`.
    effects : numpy.ndarray or None, shape (m,)
        Its effect of every test subject; None if it estimates the average only.
    criterion : str
        `AUC`, `R²`, or empty.
    score : float
        The cross-validated criterion.
    settings : str
        What selection chose.
    seconds : float
        CPU time of selection and fit.
    """

    ate: float
    effects: np.ndarray | None
    criterion: str
    score: float
    settings: str
    seconds: float


def benchmark(
    observational: pd.DataFrame | str | os.PathLike,
    control: pd.DataFrame | str | os.PathLike,
    treated: pd.DataFrame | str | os.PathLike,
    adjustment: str | Iterable[str] = "full",
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
    """Estimate the effect by every estimator, and mark it against what really happened.

    Parameters
    ----------
    observational, control, treated : pandas.DataFrame or path of a CSV or Parquet file
        The seen subjects, and the same other subjects without and with the treatment.
    adjustment : {"full", "minimal"} or list of str
        Which covariates estimators see.
    estimators : iterable of str
        Names of the grid file, or `module:Class`; the paper's eleven by default.
    grids : path or dict
        An estimator file.
    selection : {"grid", "random"}
        All settings, or some at random.
    n_settings : int
        How many settings a random search tries.
    bootstraps : int
        Resamples of the test subjects.
    seed : int
        Of learners, of the random search and of the bootstrap.
    n_jobs : int
        Estimators at work at a time.
    progress : bool
        Report each estimator on standard error as it finishes.
    **of_study
        `arms`, `treatment`, `outcome`, `group`, `truth`, `probabilities` and `impute` of
        :func:`~lib.effects.study.read_study`.

    Returns
    -------
    pandas.DataFrame
        One row an estimator, see :func:`marked`.

    Raises
    ------
    InputError
        If the tables, the names or the grids break a rule: before any work starts.
    """
    study = read_study(observational, control, treated, adjustment, **of_study)
    found = estimate(study, estimators, grids, selection, n_settings, seed, n_jobs, progress)
    return marked(study, found, bootstraps, seed, labels(grids))


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

    Parameters
    ----------
    study : Study
    estimators, grids, selection, n_settings, seed, n_jobs, progress
        As for :func:`benchmark`. The results of a class of your own are not kept, because
        its code is not ours to watch.
    scored : bool
        Cross-validate estimators that have nothing to choose, too, for their score.

    Returns
    -------
    dict of str to Estimate
    """
    if selection not in ("grid", "random"):
        raise InputError(f"selection {selection!r} is unknown: {one_of(['grid', 'random'])}")
    estimators = [estimators] if isinstance(estimators, str) else list(estimators)
    known = read_grids(grids)
    check_count("n_settings", n_settings, least=1)
    n_settings = n_settings if selection == "random" else None
    entries = {}
    for name in estimators:
        if name not in known and ":" not in name:
            raise InputError(
                f"estimator {name!r} is unknown: {one_of([*known, 'module:Class'], 40)}"
            )
        entries[name] = known.get(name, {"estimator": name})
        made = build(name, entries[name], n_settings, seed)
        if study.missing and needs_complete_covariates(made):
            column, count = next(iter(study.missing.items()))
            raise InputError(
                f"estimator {name!r} has no way to take missing values: column {column!r} has "
                f"{count:,}; fill them in with impute=True"
            )
        if isinstance(made, TruePropensityWeighting) and study.probabilities is None:
            raise InputError(f"estimator {name!r} needs the true propensities: give probabilities")
    work = (
        joblib.delayed(_named)(name, study, entry, n_settings, seed, scored)
        for name, entry in entries.items()
    )
    results = {}
    for name, result in joblib.Parallel(n_jobs, return_as="generator_unordered")(work):
        results[name] = result
        if progress:
            print(
                f"{len(results)} of {len(entries)}: {name}, {result.seconds:,.0f} CPU s",
                file=sys.stderr,
                flush=True,
            )
    return {name: results[name] for name in entries}


def marked(
    study: Study,
    estimates: dict[str, Estimate],
    bootstraps: int = 1_000,
    seed: int = 0,
    names: dict[str, str] | None = None,
) -> pd.DataFrame:
    """Mark estimates against the sampled effects, and against the true ones if these are known.

    Parameters
    ----------
    study : Study
    estimates : dict of str to Estimate
    bootstraps, seed : int
    names : dict of str to str, optional
        Name of an estimator → its label.

    Returns
    -------
    pandas.DataFrame
        Indexed by estimator. `label`; `criterion` and `cross-validation`; `ATE`, `AE`, `R²`,
        `MSE`, `RMSE`, `R² by group`, each with `… lower` and `… upper`, the ends of its 95 %
        interval; the same with `, truth` against Monte-Carlo effects; `settings`; `seconds` of
        CPU time. US dollars, or dollars squared. What an estimator of the average alone cannot
        have is missing.
    """
    rows = {
        name: {
            "label": (names or {}).get(name, name),
            "criterion": found.criterion,
            "cross-validation": found.score,
        }
        for name, found in estimates.items()
    }
    # An average alone is marked as if everybody had it.
    effects = np.column_stack(
        [
            np.full(len(study.difference), found.ate) if found.effects is None else found.effects
            for found in estimates.values()
        ]
    )
    targets = {"": study.difference} | ({} if study.truth is None else {", truth": study.truth})
    for suffix, target in targets.items():
        for mark, values in marks(effects, target, study.groups, bootstraps, seed).items():
            for j, (name, found) in enumerate(estimates.items()):
                if found.effects is None and mark not in ("ATE", "AE"):
                    values[:, j] = np.nan
                ends = (mark, f"{mark} lower", f"{mark} upper")
                rows[name] |= {
                    f"{end}{suffix}": value for end, value in zip(ends, values[:, j], strict=True)
                }
    for name, found in estimates.items():
        rows[name] |= {"settings": found.settings, "seconds": found.seconds}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("estimator")


def labels(grids: str | os.PathLike | dict = GRIDS) -> dict[str, str]:
    """Return the label of every estimator of a file.

    Examples
    --------
    >>> labels()["t-rfr"]
    'T-learner (RF)'
    """
    return {name: entry.get("label", name) for name, entry in read_grids(grids).items()}


def _named(name, study, entry, n_settings, seed, scored) -> tuple[str, Estimate]:
    kind = entry["estimator"]
    # An extra, so that its version is not in the key of everything that is kept.
    release = metadata.version("econml") if kind.startswith("econml.") else None
    run = _estimate if kind in ESTIMATORS or release else _estimate.__wrapped__
    data = (study.covariates.to_numpy(), study.treatment, study.outcome)
    knows = kind == "TruePropensityWeighting"
    known = study.probabilities if knows else None
    meaning = {key: value for key, value in entry.items() if key != "label"}
    test = study.test_covariates.to_numpy()
    result = run(name, meaning, *data, test, known, n_settings, seed, scored, release)
    return name, Estimate(*result)


@cached
def _estimate(
    name,
    entry,
    covariates,
    treatment,
    outcome,
    test_covariates,
    probabilities,
    n_settings,
    seed,
    scored,
    release,
):
    begun = time.process_time()
    # One thread: small matrices cost several times the CPU time on two.
    with threadpool_limits(1):
        estimator = build(name, entry, n_settings, seed, scored)
        if probabilities is not None:
            estimator.probabilities = probabilities
        estimator.fit(covariates, treatment, outcome)
        effects = None
        if callable(getattr(estimator, "effect", None)):
            effects = np.asarray(estimator.effect(test_covariates), dtype=float)
            if effects.shape != (len(test_covariates),):
                raise InputError(
                    f"estimator {name!r}: effect must return one number a subject, "
                    f"{len(test_covariates):,}: found shape {effects.shape}"
                )
        elif not hasattr(estimator, "ate_"):
            raise InputError(f"estimator {name!r} must have effect(covariates), or ate_ after fit")
    ate = float(estimator.ate_) if effects is None else float(effects.mean())
    slots = getattr(estimator, "slots", ())
    criterion = "" if not slots else "AUC" if slots == ("propensity",) else "R²"
    score = float(getattr(estimator, "score_", np.nan))
    chosen = "; ".join(f"{slot}: {_in_words(getattr(estimator, slot))}" for slot in slots)
    return ate, effects, criterion, score, chosen, time.process_time() - begun


def _in_words(search) -> str:
    """Say what a search chose, as far as there was a choice."""
    if len(search.settings) == 1 or not hasattr(search, "model_"):
        return type(search.settings[0]).__name__
    return ", ".join(f"{key} {value}" for key, value in search.varied(search.model_).items())
