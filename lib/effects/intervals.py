r"""Intervals for estimators: influences of subjects, the bootstrap, and studies to try both on.

References
----------
.. [1] Stefanski, L. A. and Boos, D. D. (2002). The calculus of M-estimation. The American
   Statistician 56(1).
.. [2] MacKinnon, J. G. and White, H. (1985). Some heteroskedasticity-consistent covariance matrix
   estimators with improved finite sample properties. Journal of Econometrics 29(3).
.. [3] Efron, B. and Tibshirani, R. J. (1993). An introduction to the bootstrap. Chapter 13.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.utils.metaestimators import available_if

from lib.effects.learners import Learner, dealt
from lib.effects.study import Matrix, Study, Vector, tempered
from lib.errors import check, needed

#: Models whose coefficients solve the equations of :func:`influence`.
LINEAR = (Ridge, LinearRegression, LogisticRegression)

#: Options of these models, or of their subclasses, under which coefficients solve other equations.
OTHERWISE = ("class_weight", "Cs", "l1_ratio", "positive")

#: A normal variable is within this many standard deviations of its mean in 95 % of all cases.
NORMAL = ndtri(0.975)


def influence(
    model: Learner,
    fitted: Vector,
    features: Matrix,
    target: Vector,
    weights: Vector | float = 1.0,
    *,
    left_out: bool = False,
) -> Matrix | None:
    r"""Return how much each of n subjects moves each coefficient, (n, p + 1), the intercept last.

    The model is a ridge, least-squares or logistic regression, and `fitted`, (n,), are its
    predictions. For any other model the function returns None. The coefficients solve
    :math:`\sum_i w_i x_i (y_i - \hat y_i) = \Lambda \beta`, and hence [1]_

    .. math:: \phi_i = \Bigl( \sum_j w_j v_j x_j x_j^\top + \Lambda \Bigr)^{-1}
        w_i x_i (y_i - \hat y_i),

    with :math:`v` the derivative of the mean: 1, or :math:`\hat y (1 - \hat y)` for a probability.
    The covariance of the coefficients is the sandwich :math:`\sum_i \phi_i \phi_i^\top`. If each
    residual is that of a model with its subject `left_out`, it is larger by :math:`1 / (1 - h_i)`
    with leverage :math:`h_i = w_i v_i x_i^\top (\dots)^{-1} x_i`, and the covariance is HC3 [2]_.
    """
    other = any(np.any(getattr(model, name, None)) for name in OTHERWISE)
    other |= getattr(model, "penalty", "l2") not in ("l2", "deprecated")
    if other or not (isinstance(model, LINEAR) and model.fit_intercept):
        return None
    curvature, penalty, of_intercept = np.ones(len(fitted)), getattr(model, "alpha", 0.0), 0.0
    if isinstance(model, LogisticRegression):
        curvature, penalty = fitted * (1 - fitted), 1 / model.C
        if model.solver == "liblinear":  # which alone among the solvers penalises it
            of_intercept = penalty / model.intercept_scaling**2
    design = np.column_stack([features, np.ones(len(fitted))])
    penalties = np.diag([penalty] * (design.shape[1] - 1) + [of_intercept])
    curved = (weights * curvature * design.T).T
    inverse = np.linalg.pinv(design.T @ curved + penalties)
    residuals = target - fitted
    if left_out:
        leverage = ((curved @ inverse) * design).sum(axis=1)
        # At a leverage of 1, the residual is nothing but rounding error.
        residuals = residuals / (1 - np.minimum(leverage, 0.999))
    return (weights * residuals * design.T).T @ inverse


def covariance(*fits: tuple[Any, ...]) -> Matrix | None:
    """Sum the HC3 covariances of coefficients of searches, each fitted to different subjects."""
    found = [
        influence(one.best_estimator_, one.predict(features), features, *others, left_out=True)
        for one, features, *others in fits
    ]
    known = [phi.T @ phi for phi in found if phi is not None]
    return sum(known, np.zeros(())) if len(known) == len(found) else None


class Bootstrap(BaseEstimator):
    r"""Bootstrap intervals [3]_ for an estimator of the book, :math:`\hat\tau \pm 1.96\,s`.

    `s` is the standard deviation over resamples. Settings are chosen once, on the whole sample, so
    the intervals do not include the uncertainty of that choice.
    """

    #: Attributes of the fitted estimator that its bootstrap copies.
    SHARED = ("estimand", "score_", "in_words", "effect", "factual", "ate_")

    def __init__(self, estimator: BaseEstimator, n_resamples: int = 200, seed: int = 0):
        self.estimator, self.n_resamples, self.seed = estimator, n_resamples, seed

    def fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> Self:
        """Fit the estimator to all subjects, and to every resample."""
        rule = "an estimator with true propensities states its own error and cannot be bootstrapped"
        check(not getattr(self.estimator, "of_truth", False), rule, self.estimator)
        data, n = [np.asarray(each) for each in (covariates, treatment, outcome)], len(outcome)
        fitted, rng = clone(self.estimator).fit(*data), np.random.default_rng(self.seed)
        self.__dict__.update({k: getattr(fitted, k) for k in self.SHARED if hasattr(fitted, k)})
        # As in `estimate`: a class of one's own may lack this method, and `takes_missing` below.
        self.chosen_ = chosen = getattr(fitted, "settled", lambda: self.estimator)()
        # A resample that lacks an arm, or has it in one fold alone, is drawn again.
        drawn, folds = (rng.integers(n, size=n) for _ in itertools.count()), dealt(n)
        taken = ((rows, data[1][rows]) for rows in drawn)
        both = (rows for rows, a in taken if all(len({*folds[a == arm]}) > 1 for arm in (0, 1)))
        draws = itertools.islice(both, self.n_resamples)
        self.resampled_ = [clone(chosen).fit(*(each[rows] for each in data)) for rows in draws]
        return self

    def settled(self) -> Self:
        """Return the bootstrap of the estimator with the settings that were chosen."""
        return type(self)(self.chosen_, self.n_resamples, self.seed)

    def takes_missing(self) -> bool:
        """Say whether the estimator has a way to take missing covariates."""
        return bool(getattr(self.estimator, "takes_missing", lambda: True)())

    def average_interval(self, covariates: Matrix) -> tuple[float, float]:
        """Return the ends of the interval of the average effect."""
        if hasattr(self, "effect"):
            return self._around(lambda one: one.effect(covariates).mean())
        return self._around(lambda one: one.ate_)

    @available_if(lambda self: hasattr(self, "effect"))
    def effect_interval(self, covariates: Matrix) -> tuple[Vector, Vector]:
        """Return the lower and the upper ends of the intervals of effects, (m,) each."""
        return self._around(lambda one: one.effect(covariates))

    def _around(self, quantity: Callable[[Any], Any]) -> tuple[Any, Any]:
        half = NORMAL * np.std([quantity(one) for one in self.resampled_], axis=0, ddof=1)
        return quantity(self) - half, quantity(self) + half


def lotteries(
    population: Study, n: int, seeds: Iterable[int], power: float, **marked_on: Any
) -> Iterator[Study]:
    r"""Draw one study per seed from a population in which both outcomes are known.

    The population is the test subjects of a study. From it, n are drawn with replacement. Each
    takes an arm with its true probability raised to a power γ: 0 is a fair lottery, 1 leaves it
    as it is. Studies are marked on the population, or on other subjects given as fields of a study.
    """
    arms, tables = list(population.arms), (population.control, population.treated)
    check(not population.alone, "a population needs control and treated tables", "one table")
    known = needed("test_probabilities", population.test_probabilities)
    chances = tempered(known.reindex(columns=arms), power)
    told = zip(tables, arms, strict=True)
    worlds = pd.concat([table.assign(**{population.treatment: arm}) for table, arm in told])
    m, chance = len(chances), chances[arms[1]].to_numpy()
    for rng in map(np.random.default_rng, seeds):
        rows = rng.integers(m, size=n)
        seen = worlds.iloc[rows + m * (rng.random(n) < chance[rows])]
        known = {"probabilities": chances.iloc[rows], "test_probabilities": chances}
        yield replace(population, observational=seen, **known | marked_on)
