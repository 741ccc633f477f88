"""The benchmark: studies and estimators in, a tidy table of metrics out."""

import collections
import contextvars
import copy
import inspect
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
import pandas as pd

from lib.cache import KEEPING, cached
from lib.effects.adapter import EconML, of_econml
from lib.effects.estimands import TILTS, average_effects
from lib.effects.estimator_files import GRIDS, PAPER, Grids, read_estimators
from lib.effects.intervals import NORMAL
from lib.effects.metrics import evaluate
from lib.effects.study import Matrix, Study, Table, Vector, read_study
from lib.errors import InputError, check, check_count, check_known, check_names, needed, told
from lib.workers import in_order, one_thread

#: Name → an estimator of the book, of another library, or of your own; or names alone.
Named: TypeAlias = dict[str, Any]
Estimators: TypeAlias = Named | Iterable[str]

OF_STUDIES = "a benchmark needs a study, an iterable of studies, or three tables"


class Estimate(NamedTuple):
    """What an estimator found, and the ends of the 95 % intervals that it states.

    `effects` are those of the m test subjects, or None if only the average is estimated. `score` is
    a cross-validated AUC or R², `settings` describes the chosen settings, `seconds` is CPU time.
    `effect_interval`, (2, m), has lower, then upper ends for `effects`. `estimand` is "ATE" or one
    of :data:`~lib.effects.estimands.TILTS`; `settled` is the estimator with the chosen settings.
    """

    ate: float
    effects: Vector | None
    score: float
    settings: str
    seconds: float
    lower: float = np.nan
    upper: float = np.nan
    effect_interval: Matrix | None = None
    estimand: str = "ATE"
    settled: Any = None


def benchmark(
    studies: Study | Iterable[Study] | Table,
    control: Table | None = None,
    treated: Table | None = None,
    *,
    estimators: Estimators | None = None,
    grids: Grids = GRIDS,
    seed: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Estimate the effect with every estimator, and compare it with what really happened.

    The result has a column `study`, counted from 0, and the columns that
    :func:`~lib.effects.metrics.evaluate` explains. Tables, names and grids that break a rule are
    refused before any work starts.

    Parameters
    ----------
    studies : Study, iterable of Study, or the first of three tables
        An iterable is read as studies are needed. Three tables, or paths of CSV or Parquet files,
        hold the observed subjects, and the same other subjects without and with the treatment. A
        folder of :meth:`~lib.effects.study.Study.to_parquet` holds all three.
    estimators, grids
        See :func:`~lib.effects.estimator_files.read_estimators`. By default, they are the paper's
        eleven, or all in the given `grids`. `estimators` may be a dict, as in :func:`estimate`.
    **options
        Parameters of :func:`benchmarks`, such as `bootstraps`; of `read_estimators`, such as
        `selection`; and fields of :class:`~lib.effects.study.Study`, such as `adjustment`.
    """
    parts = [[*inspect.signature(part).parameters] for part in (read_estimators, benchmarks, Study)]
    check_names("argument", options, dict.fromkeys(itertools.chain(*parts)), 40)
    of_file, of_run, of_study = ({k: options[k] for k in part if k in options} for part in parts)
    names = PAPER if estimators is None and grids is GRIDS else estimators
    check_count("seed", seed, least=0)
    of_file |= {} if grids is GRIDS else {"grids": grids}
    made = _as_dict(names, seed=seed, **of_file)
    if not (control is treated is None) or isinstance(studies, pd.DataFrame | str | os.PathLike):
        studies, of_study = read_study(studies, control, treated, **of_study), {}
        average_effects(studies)  # refuses subjects with only one known outcome
    every: Any = [studies] if isinstance(studies, Study) else studies
    check(isinstance(every, Iterable), OF_STUDIES, studies)
    if of_study:
        # Anything that is not a study is refused in `_estimates`.
        every = (replace(one, **of_study) if isinstance(one, Study) else one for one in every)
    tables = list(benchmarks(every, made, seed=seed, **of_run))
    check(len(tables) > 0, "a benchmark needs at least one study", tables)
    return pd.concat(tables, ignore_index=True)


def benchmarks(
    studies: Iterable[Study],
    estimators: Estimators = PAPER,
    choose: str = "each",
    bootstraps: int = 1_000,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = True,
    keep: bool = True,
) -> Iterator[pd.DataFrame]:
    """Yield the table of each study, see :func:`benchmark`, as soon as the study is finished.

    Studies are drawn as they are needed, and only those at work are in memory. For `estimators`,
    see :func:`estimate`. Cross-validation may `choose` their settings in "each" study, or "once",
    in the first one for all. `bootstraps` is the number of resamples of the test subjects. `n_jobs`
    estimators work at a time, by default as :func:`joblib.parallel_config` says. Without `keep`,
    nothing is kept on disk; thousands of small estimates are faster to make again.
    """
    check_known("choose", choose, ["each", "once"])
    check_count("bootstraps", bootstraps, least=0)
    estimators, studies = _as_dict(estimators, seed=seed), iter(studies)
    if choose == "once" and (first := next(studies, None)) is not None:
        estimators = with_settings_of(first, estimators, n_jobs=n_jobs, keep=keep)
        studies = itertools.chain([first], studies)
    for k, (study, found) in enumerate(_estimates(studies, estimators, n_jobs, progress, keep)):
        table = evaluate(study, found, bootstraps, seed)
        table.insert(0, "study", k)
        yield table


def estimate(
    study: Study,
    estimators: Estimators = PAPER,
    n_jobs: int | None = None,
    progress: bool = True,
    keep: bool = True,
    **of_file: Any,
) -> dict[str, Estimate]:
    """Run estimators, and `keep` each result on disk as it finishes, so that work can be resumed.

    `estimators` are names in an estimator file, which is read with the remaining parameters, see
    :func:`~lib.effects.estimator_files.read_estimators`. Or they are a dict, name → estimator, such
    as `{"mine": MyLearner(depth=3)}`; an estimator may also be one of EconML. Results of your own
    classes are not kept, as changes of their code would go unnoticed; unseeded draws of others are.
    """
    ((_, found),) = _estimates([study], _as_dict(estimators, **of_file), n_jobs, progress, keep)
    return found


def with_settings_of(study: Study, estimators: Estimators = PAPER, **options: Any) -> Named:
    """Return estimators with their settings fixed as cross-validation chooses them in a study.

    An estimator that does not say what it chose, such as one of another library, chooses again.
    """
    found = estimate(study, estimators, progress=False, **options)
    return {name: each.settled for name, each in found.items()}


def _as_dict(given: Estimators | None, **of_file: Any) -> Named:
    found = given if isinstance(given, dict) else read_estimators(estimators=given, **of_file)
    unread = of_file if found is given else ()
    check_names("with a dict of estimators, argument", unread, ["seed"])
    check(len(found) > 0, "a benchmark needs at least one estimator", list(found))
    found = {k: EconML(made) if of_econml(type(made)) else made for k, made in found.items()}
    for name, made in found.items():
        fit: Any = getattr(made, "fit", None)
        of_python = inspect.ismethod(fit) or inspect.isfunction(fit)  # others may hide theirs
        taken = [*inspect.signature(fit).parameters] if of_python else [""] * (not callable(fit))
        rule = f"estimator {name!r} must have fit(covariates, treatment, outcome), in this order"
        # Arrays in another order would go unnoticed, and a class is not yet an object to fit.
        check({*map(str.lower, taken[:2])}.isdisjoint(("", "y", "outcome", "self")), rule, taken)
        check_known(f"{name!r}: estimand", getattr(made, "estimand", "ATE"), ["ATE", *TILTS])
    return found


def _estimates(
    studies: Iterable[Study], estimators: Named, n_jobs: int | None, progress: bool, keep: bool
) -> Iterator[tuple[Study, dict[str, Estimate]]]:
    at_work: collections.deque[Study] = collections.deque()

    def work() -> Iterator[Any]:
        for study in studies:
            check(isinstance(study, Study), OF_STUDIES, type(study).__name__)
            at_work.append(study)
            tables = _Tables(study, keep)
            for name, made in estimators.items():
                # Estimators are sent to other processes by value, so that classes that are defined
                # in a notebook arrive there.
                ready = _ready(name, made, study)
                yield joblib.delayed(_estimate if keep else _unkept)(name, ready, tables)

    results = {}
    found = in_order(work(), n_jobs)
    for k, (name, each) in enumerate(zip(itertools.cycle(estimators), found, strict=False)):
        results[name] = each
        if progress:
            place, spent = f"{len(results)} of {len(estimators)}", f"{each.seconds:,.0f} CPU s"
            where = f", study {k // len(estimators)}" if k >= len(estimators) else ""
            print(f"{place}: {name}, {spent}{where}", file=sys.stderr, flush=True)
        if len(results) == len(estimators):
            yield at_work.popleft(), results
            results = {}


def _ready(name: str, estimator: Any, study: Study) -> Any:
    """Refuse a study that an estimator cannot take, and give it propensities if it needs them."""
    takes = getattr(estimator, "takes_missing", lambda: True)
    rule = f"estimator {name!r} cannot take missing values; impute=True fills them in"
    check(not study.missing or takes(), rule, study.missing)
    if not getattr(estimator, "of_truth", False):
        return estimator
    known = needed(f"`probabilities`, by which estimator {name!r} weights,", study.arm_probability)
    return copy.copy(estimator).set_params(probabilities=known)


class _Tables:
    """The arrays that estimators learn from and predict for, as one object that is hashed once."""

    # Separate arrays would be left with one worker of a cluster, and be lost with it.
    def __init__(self, study: Study, keep: bool):
        self.seen = study.covariates.to_numpy(), study.arm, study.outcomes
        self.tested = study.test_covariates.to_numpy()
        self.name = str(joblib.hash((self.seen, self.tested), "sha1")) if keep else ""

    def made_by(self) -> str:
        return self.name


@cached
def _estimate(name: str, given: Any, tables: _Tables) -> Estimate:
    of_test = tables.tested
    begun, m = time.process_time(), len(of_test)
    # Copies, or the next estimator would learn from what this one writes into its arrays.
    estimator, *data = copy.deepcopy([given, *tables.seen])
    # One thread: small matrices cost several times the CPU time on two.
    with told(f"estimator {name!r}"), one_thread():
        estimator.fit(*data)
        effects, ends = None, None
        if callable(getattr(estimator, "effect", None)):
            effects = np.asarray(estimator.effect(of_test), dtype=float)
            rule = f"effect of {name!r} must return one number per subject, {m:,}"
            check(effects.shape == (m,), rule, effects.shape)
        elif not hasattr(estimator, "ate_"):
            raise InputError(f"estimator {name!r} must have effect(covariates), or ate_ after fit")
        if hasattr(estimator, "effect_interval"):
            ends = np.array([*estimator.effect_interval(of_test)], dtype=float)
            rule = f"effect_interval of {name!r} must return lower, then upper ends, {m:,} each"
            met = ends.shape == (2, m) and not (ends[0] > ends[1]).any()
            check(met, rule, ends.shape)
        ate = float(estimator.ate_ if effects is None else effects.mean())
        half = NORMAL * getattr(estimator, "standard_error_", np.nan)
        lower, upper = ate - half, ate + half
        if hasattr(estimator, "average_interval"):
            lower, upper = estimator.average_interval(of_test)
        return Estimate(
            ate=ate,
            effects=effects,
            score=float(getattr(estimator, "score_", np.nan)),
            settings=getattr(estimator, "in_words", str)(),
            seconds=time.process_time() - begun,
            lower=float(lower),
            upper=float(upper),
            effect_interval=ends,
            estimand=getattr(estimator, "estimand", "ATE"),
            settled=getattr(estimator, "settled", lambda: given)(),
        )


def _unkept(*arguments: Any) -> Estimate:
    """Estimate, and keep neither the result nor the models on the way on disk."""
    context = contextvars.copy_context()
    context.run(KEEPING.set, False)
    return context.run(_estimate, *arguments)
