r"""Intervals of estimators: the influence of subjects, the bootstrap, and studies to try both on.

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

from lib import ROOT
from lib.effects.learners import Learner
from lib.effects.study import Matrix, Study, Vector, tempered
from lib.errors import check, needed

#: Estimators that state intervals, with fixed settings.
COVERAGE = ROOT / "data" / "estimators" / "coverage.yml"

#: Models whose coefficients solve the equations of :func:`influence`.
LINEAR = (Ridge, LinearRegression, LogisticRegression)

#: Options of these, or of their kinds, with which coefficients solve other equations.
OTHERWISE = ("class_weight", "Cs", "l1_ratio", "positive")

#: Of a normal distribution, 95 % lie within as many standard deviations.
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
    r"""Return by how much n subjects move each coefficient, (n, p + 1), the intercept's last.

    Of a ridge, least squares or logistic regression that predicts the values `fitted`, (n,); of
    other models nothing is known. Coefficients solve
    :math:`\sum_i w_i x_i (y_i - \hat y_i) = \Lambda \beta`, and hence [1]_

    .. math:: \phi_i = \Bigl( \sum_j w_j v_j x_j x_j^\top + \Lambda \Bigr)^{-1}
        w_i x_i (y_i - \hat y_i),

    with :math:`v` the derivative of the mean: 1, or :math:`\hat y (1 - \hat y)` of a probability.
    The covariance of the coefficients is :math:`\sum_i \phi_i \phi_i^\top`, the sandwich. If each
    residual is that of a model with its subject `left_out`, larger by :math:`1 / (1 - h_i)` with
    the leverage :math:`h_i = w_i v_i x_i^\top (\dots)^{-1} x_i`, it is HC3 [2]_.
    """
    other = any(np.any(getattr(model, name, None)) for name in OTHERWISE)
    if other or not (isinstance(model, LINEAR) and model.fit_intercept):
        return None
    curvature, penalty = np.ones(len(fitted)), getattr(model, "alpha", 0.0)
    if isinstance(model, LogisticRegression):
        curvature, penalty = fitted * (1 - fitted), 1 / model.C
    design = np.column_stack([features, np.ones(len(fitted))])
    penalties = np.diag([penalty] * (design.shape[1] - 1) + [0.0])
    curved = (weights * curvature * design.T).T
    inverse = np.linalg.pinv(design.T @ curved + penalties)
    residuals = target - fitted
    if left_out:
        leverage = ((curved @ inverse) * design).sum(axis=1)
        # At 1, a residual is a matter of rounding.
        residuals = residuals / (1 - np.minimum(leverage, 0.999))
    return (weights * residuals * design.T).T @ inverse


def covariance(*fits: tuple[Any, ...]) -> Matrix | None:
    """Return the summed covariance (HC3) of coefficients of searches fitted to other subjects."""
    found = [
        influence(one.best_estimator_, one.predict(features), features, *others, left_out=True)
        for one, features, *others in fits
    ]
    known = [phi.T @ phi for phi in found if phi is not None]
    return sum(known, np.zeros(())) if len(known) == len(found) else None


class Bootstrap(BaseEstimator):
    r"""Intervals of an estimator of the book by the bootstrap [3]_, :math:`\hat\tau \pm 1.96\,s`.

    `s` is the standard deviation over resamples. Settings are chosen once, on the whole sample, so
    that intervals leave out the chance of that choice.
    """

    #: What the estimator has after `fit`, and its bootstrap too.
    SHARED = ("estimand", "score_", "in_words", "effect", "factual", "ate_")

    def __init__(self, estimator: BaseEstimator, n_resamples: int = 200, seed: int = 0):
        self.estimator, self.n_resamples, self.seed = estimator, n_resamples, seed

    def fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> Self:
        """Fit the estimator to all subjects, and to every resample."""
        rule = "a bootstrap cannot draw true propensities, by which errors are stated without it"
        check("probabilities" not in self.estimator.get_params(), rule, "probabilities")
        data, n = [np.asarray(each) for each in (covariates, treatment, outcome)], len(outcome)
        fitted, rng = clone(self.estimator).fit(*data), np.random.default_rng(self.seed)
        self.__dict__.update({k: getattr(fitted, k) for k in self.SHARED if hasattr(fitted, k)})
        # As `estimate` does: a class of one's own says neither this nor what follows.
        chosen = getattr(fitted, "settled", lambda: self.estimator)()
        # One that lacks an arm is drawn again.
        drawn = (rng.integers(n, size=n) for _ in itertools.count())
        both = (rows for rows in drawn if {*data[1][rows]} == {*data[1]})
        draws = itertools.islice(both, self.n_resamples)
        self.resampled_ = [clone(chosen).fit(*(each[rows] for each in data)) for rows in draws]
        return self

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
        """Return the ends of intervals of effects, (m,) each."""
        return self._around(lambda one: one.effect(covariates))

    def _around(self, quantity: Callable[[Any], Any]) -> tuple[Any, Any]:
        half = NORMAL * np.std([quantity(one) for one in self.resampled_], axis=0, ddof=1)
        return quantity(self) - half, quantity(self) + half


def lotteries(
    population: Study, n: int, seeds: Iterable[int], power: float, **marked_on: Any
) -> Iterator[Study]:
    r"""Draw studies from a population of whom both outcomes are known, one a seed.

    Of the test subjects of a study, the population, n are drawn with replacement. Each takes one of
    the two arms by its true probability raised to a power γ: 0 is a fair lottery, 1 the world as it
    is. Studies are marked on the population, or on other subjects, given as fields of a study.
    """
    arms, tables = list(population.arms), (population.control, population.treated)
    chances = tempered(needed("test_probabilities", population.test_probabilities)[arms], power)
    told = zip(tables, arms, strict=True)
    worlds = pd.concat([table.assign(**{population.treatment: arm}) for table, arm in told])
    m, chance = len(chances), chances[arms[1]].to_numpy()
    for rng in map(np.random.default_rng, seeds):
        rows = rng.integers(m, size=n)
        seen = worlds.iloc[rows + m * (rng.random(n) < chance[rows])]
        known = {"probabilities": chances.iloc[rows], "test_probabilities": chances}
        yield replace(population, observational=seen, **known | marked_on)
