r"""Estimators of causal effects, one class each, with their formulas.

All work like scikit-learn's: `fit(covariates, treatment, outcome)` returns the estimator, and
`effect(covariates)` estimates :math:`\tau(z) = E[Y(1) - Y(0) \mid Z = z]`. An estimator of the
average effect alone has `ate_` instead. After `fit`, `score_` is the cross-validated R² of the
outcome model, or the AUC of the propensity model, if the estimator has one.

Below, :math:`\mu_a(z)` models the outcome in arm a, :math:`m(z)` the outcome in both arms, and
:math:`e(z)` the propensity of the treatment. Learners are scikit-learn's, or a
:class:`~lib.effects.learners.Search` among their settings.

References
----------
.. [1] Johansson, F. D. (2024). IncomeSCM. arXiv:2405.16069, Appendix E.
.. [2] Künzel, S. R. et al. (2019). Metalearners for estimating heterogeneous treatment effects
   using machine learning. PNAS 116(10).
.. [3] Nie, X. and Wager, S. (2021). Quasi-oracle estimation of heterogeneous treatment effects.
.. [4] Kennedy, E. H. (2023). Towards optimal doubly robust estimation of heterogeneous causal
   effects. Electronic Journal of Statistics 17(2).
.. [5] Chernozhukov, V. et al. (2018). Double/debiased machine learning for treatment and
   structural parameters. The Econometrics Journal 21(1).
.. [6] Li, F., Morgan, K. L. and Zaslavsky, A. M. (2018). Balancing covariates via propensity
   score weighting. Journal of the American Statistical Association 113(521).
.. [7] Abadie, A. and Imbens, G. W. (2006). Large sample properties of matching estimators for
   average treatment effects. Econometrica 74(1), Theorem 7.
"""

from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.metaestimators import available_if

from lib.effects.estimands import tilted
from lib.effects.intervals import NORMAL, covariance, influence
from lib.effects.learners import (
    Search,
    as_search,
    dealt,
    demanded,
    fit_arms,
    in_sample,
    out_of_fold,
)
from lib.effects.study import Matrix, Vector
from lib.errors import check, needed

#: The scores of AIPW divide by propensities, which are therefore clipped to these bounds.
LOWEST, HIGHEST = 0.01, 0.99

#: What a slot holds: a learner, or a search among its settings.
Slot: TypeAlias = BaseEstimator

#: The estimand of a method that ignores the subjects who take neither arm.
TWO_ARMS = "ATE, two arms"

#: Estimators by their names in estimator files; each class below enters itself.
ESTIMATORS: dict[str, type["EffectEstimator"]] = {}


class EffectEstimator(BaseEstimator):
    """An estimator whose parameters without a default are *slots* for learners or searches.

    `fit` leaves the slots as they are and stores a fitted copy of each in an attribute of the same
    name with a trailing underscore. Each subclass defines `_fit`, which gets arrays.
    """

    #: What the average is over: everybody, or see :data:`~lib.effects.estimands.TILTS`.
    estimand = "ATE"

    def __init_subclass__(cls, name: str | None = None) -> None:
        """Enter a class of the book into `ESTIMATORS`, by `name` or else by its own name."""
        super().__init_subclass__()
        if cls.__module__.startswith("lib."):
            name = name or cls.__name__
            same = ESTIMATORS.setdefault(name, cls).__qualname__ == cls.__qualname__
            check(same, f"estimator class {cls.__name__} must have a name of its own", name)

    @classmethod
    def slots(cls) -> list[str]:
        """Return the names of the slots, in the order of the constructor."""
        return demanded(cls)

    def fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> Self:
        """Fit to covariates (n, p), treatment (n,) of zeros and ones, and outcome (n,)."""
        data = [np.asarray(each, dtype=float) for each in (covariates, treatment, outcome)]
        found = np.unique(data[1]).tolist()
        check(found == [0, 1], "the treatment must hold zeros and ones, and both of them", found)
        for slot in self.slots():  # a regressor may predict any propensity, a classifier no number
            base = as_search(getattr(self, slot)).learner
            kind = "classifier" if slot == "propensity" else "regressor"
            met = is_classifier(base) == (kind == "classifier")
            check(met, f"the {slot} must be estimated by a {kind}", base)
        self._fit(*data)
        return self

    def _fit_arms(self, *data: np.ndarray, refit: bool = True) -> None:
        self.control_, self.treated_ = as_search(self.control), as_search(self.treated)
        self.score_ = fit_arms([self.control_, self.treated_], *data, refit=refit)

    def takes_missing(self) -> bool:
        """Say whether the learners in all slots accept missing covariates."""
        return all(as_search(getattr(self, slot)).takes_missing() for slot in self.slots())

    def settled(self) -> Self:
        """Return an unfitted copy with the settings that `fit` has chosen."""
        slots = [slot for slot in self.slots() if hasattr(self, f"{slot}_")]
        best = {slot: clone(getattr(self, f"{slot}_").best_estimator_) for slot in slots}
        chosen = {slot: Search(one, scored=False) for slot, one in best.items()}
        return type(self)(**self.get_params(deep=False) | chosen)

    @available_if(lambda self: getattr(self, "covariance_", None) is not None)
    def effect_interval(self, covariates: Matrix) -> tuple[Vector, Vector]:
        """Return both ends of 95 % intervals of effects, (m,) each, if the models are linear."""
        design = self._contrast(covariates)
        half = NORMAL * np.sqrt(((design @ self.covariance_) * design).sum(axis=1))
        middle: Vector = self.effect(covariates)
        return middle - half, middle + half

    @available_if(lambda self: hasattr(self, "effect_interval"))
    def average_interval(self, covariates: Matrix) -> Vector:
        """Return both ends of the interval of the average effect, the one at mean covariates."""
        return np.ravel(self.effect_interval(np.asarray(covariates).mean(axis=0, keepdims=True)))

    def _contrast(self, covariates: Matrix) -> Matrix:
        """Return how effects depend on the coefficients whose covariance is known."""
        return np.column_stack([covariates, np.ones(len(covariates))])

    def in_words(self) -> str:
        """Say which setting every search has chosen."""
        words = []
        for slot in self.slots():
            search = getattr(self, f"{slot}_", None) or as_search(getattr(self, slot))
            words.append(f"{slot}: {search.in_words()}")
        return "; ".join(words)


class IPW(EffectEstimator, name="IPWEstimator"):
    r"""Inverse propensity weighting: Horvitz–Thompson, or Hájek if `weighted`.

    .. math::
        \hat\mu_a = \frac{1}{n} \sum_{i: a_i = a} \frac{y_i}{P(a \mid z_i)}, \qquad
        \hat\mu_a^{\text{Hájek}} = \frac{\sum_{i: a_i = a} y_i / P(a \mid z_i)}
                                       {\sum_{i: a_i = a} 1 / P(a \mid z_i)},

    and :math:`\hat\tau = \hat\mu_1 - \hat\mu_0` [1]_. Propensities are in-sample and not clipped.
    A term drops out if the propensity of its own arm is 0, as in the reference. For any `estimand`
    other than the average over the two arms, the tilt of the estimand multiplies the weights [6]_,
    and the sum of tilts replaces n.

    If propensities come from logistic regression, the standard error is the stacked sandwich. It
    adds up how a subject moves the effect at given weights and through the coefficients
    :math:`\beta`: :math:`\phi_i + (\partial \hat\tau / \partial \beta)\,\phi_i^\beta`.
    """

    def __init__(self, propensity: Slot, weighted: bool = False, estimand: str = TWO_ARMS):
        self.propensity, self.weighted, self.estimand = propensity, weighted, estimand

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self.propensity_ = as_search(self.propensity).fit(covariates, treatment, refit=False)
        self.score_ = self.propensity_.best_score_
        self.propensities_ = e = in_sample(self.propensity_.best_estimator_, covariates, treatment)
        tilt, slope = tilted(self.estimand, e)
        inverse = inverse_propensity_weights(treatment, e)
        total = None if self.weighted else tilt.sum()
        (control, treated), moves = weighted_means(tilt * inverse, treatment, outcome, total)
        self.ate_ = treated - control
        phi = influence(self.propensity_.best_estimator_, e, covariates, treatment)
        if phi is not None:
            # `steps` has the derivatives of the effect by the log odds of the propensities.
            slant = slope * e * (1 - e)
            steps = moves * (inverse * (slant - tilt * (treatment - e)))
            parts = moves * tilt * inverse
            if not self.weighted:  # the sum of tilts divides, and moves, too
                share = self.ate_ / tilt.sum()
                steps, parts = steps - share * slant, parts - share * (tilt - tilt.mean())
            parts = parts + phi @ (steps @ self._contrast(covariates))
            self.standard_error_ = float(parts.std() * len(parts) ** 0.5)


def weighted_means(
    weights: Vector, treatment: Vector, outcome: Vector, total: float | None = None
) -> tuple[list[float], Vector]:
    """Return the means of both arms, and the derivatives of their difference by the weights.

    The sum of each arm is divided by `total`, or by default by the sum of the arm's weights.
    """
    means, moves = [], np.empty(len(outcome))
    for arm in (0, 1):
        here = treatment == arm
        own = weights[here].sum()
        check(own > 0, "some subjects of each arm must have a weight above 0", own)
        each = total or own
        means.append(float(weights[here] @ outcome[here] / each))
        moves[here] = (2 * arm - 1) * (outcome[here] - (0 if total else means[-1])) / each
    return means, moves


def inverse_propensity_weights(treatment: Vector, propensities: Vector) -> Vector:
    """Return 1 / P(the arm that was taken), or zero where this probability is 0."""
    taken = np.where(treatment == 1, propensities, 1 - propensities)
    return np.divide(1.0, taken, out=np.zeros(len(taken)), where=taken > 0)


class TruePropensityWeighting(EffectEstimator):
    r"""Weighting by the inverse of the true probability of the arm that was taken.

    .. math::
        \hat\mu_a = \frac{\sum_{i: a_i = a} w_i y_i}{\sum_{i: a_i = a} w_i}, \qquad
        w_i = \frac{1}{P(A = a_i \mid z_i)}, \qquad \hat\tau = \hat\mu_1 - \hat\mu_0

    The means are over all subjects with some chance of the arm, even if they take a third arm. The
    standard error is by linearisation, :math:`\bigl(\sum_i (w_i (y_i - \hat\mu_{a_i})
    / \sum_{j: a_j = a_i} w_j)^2\bigr)^{1/2}`.
    """

    #: Whether `probabilities` are those of the study, which whoever runs an estimator sets.
    of_truth = True

    def __init__(self, probabilities: Any = None):
        self.probabilities = probabilities

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        taken = np.asarray(needed("probabilities", self.probabilities))
        means, moves = weighted_means(1 / taken, treatment, outcome)
        self.ate_ = means[1] - means[0]
        self.standard_error_ = float(np.linalg.norm(moves / taken))


class Matching(EffectEstimator, name="MatchingEstimator"):
    r"""A comparison of each subject with the nearest one in the other arm.

    .. math:: \hat\tau = \frac1n \sum_i (2 a_i - 1)\,(y_i - y_{j(i)}),

    where `j(i)` is the first subject to minimise the Euclidean distance of the encoded covariates
    [1]_. If subject i serves as a match :math:`K_i` times, and :math:`l(i)` is the nearest other
    subject in its own arm, the standard error is [7]_

    .. math:: \frac1n \Bigl( \sum_i \bigl[ (\hat\tau_i - \hat\tau)^2
        + (K_i^2 + K_i)\,(y_i - y_{l(i)})^2 / 2 \bigr] \Bigr)^{1/2},

    where :math:`\hat\tau_i` is the term of subject i in the first sum.
    """

    estimand = TWO_ARMS

    def takes_missing(self) -> bool:
        """Return False: a distance needs all coordinates."""
        return False

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        gain, often, noise = np.zeros((3, len(outcome)))
        noise += np.nan  # stays nan in an arm of one subject, without a neighbour
        arms = [np.flatnonzero(treatment == arm) for arm in (0, 1)]
        pairs = nearest(*(covariates[rows] for rows in arms))
        for arm, here in enumerate(arms):
            matched = arms[1 - arm][pairs[arm]]
            gain[here] = (2 * arm - 1) * (outcome[here] - outcome[matched])
            often += np.bincount(matched, minlength=len(outcome))
            if len(here) > 1:
                search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(covariates[here])
                alike = here[search.kneighbors(return_distance=False)[:, 0]]  # never themselves
                noise[here] = (outcome[here] - outcome[alike]) ** 2 / 2
        self.ate_ = float(gain.mean())
        squares = (gain - self.ate_) ** 2 + (often**2 + often) * noise
        self.standard_error_ = float(squares.sum() ** 0.5 / len(outcome))


def nearest(points: Matrix, others: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the first of `others` nearest to each point, and vice versa.

    Distances are computed once for both, and n² of them are never in memory.
    """
    # SciPy's Minkowski distance, of power 2, in blocks of 64 MB: scikit-learn's own Euclidean
    # distance is not exact.
    options = {"metric": "minkowski", "working_memory": 64}
    ours, theirs, least, start = [], [], [], 0
    for block in pairwise_distances_chunked(points, others, **options):
        # Rounded, so that the order of the columns does not decide between equal distances. There
        # are many in IncomeSCM, and the choice of the match moves the effect.
        distances = block.round(12)
        ours.append(distances.argmin(axis=1))
        theirs.append(start + distances.argmin(axis=0))
        least.append(distances.min(axis=0))
        start += len(block)
    first = np.argmin(least, axis=0)  # the block with the nearest point
    return np.concatenate(ours), np.array(theirs)[first, np.arange(len(others))]


class SLearner(EffectEstimator, name="S-learner"):
    r"""One model of the outcome, with the treatment among its features [2]_.

    .. math:: \hat\tau(z) = \hat\mu(z, 1) - \hat\mu(z, 0)
    """

    def __init__(self, outcome: Slot):
        self.outcome = outcome

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        features = np.column_stack([covariates, treatment])
        self.outcome_ = as_search(self.outcome).fit(features, outcome)
        self.score_ = self.outcome_.best_score_
        self.covariance_ = covariance((self.outcome_, features, outcome))

    def _contrast(self, covariates: Matrix) -> Matrix:
        n, p = np.shape(covariates)
        return np.tile([*[0.0] * p, 1.0, 0.0], (n, 1))

    def factual(self, covariates: Matrix, treatment: Vector) -> Vector:
        """Return the expected outcome in the arm that is taken, shape (m,)."""
        return self.outcome_.predict(np.column_stack([covariates, treatment]))

    def effect(self, covariates: Matrix) -> Vector:
        """Return effects, shape (m,)."""
        nobody = np.zeros(len(covariates))
        return self.factual(covariates, nobody + 1) - self.factual(covariates, nobody)


class TLearner(EffectEstimator, name="T-learner"):
    r"""A model of the outcome in each arm [2]_.

    .. math:: \hat\tau(z) = \hat\mu_1(z) - \hat\mu_0(z)
    """

    def __init__(self, control: Slot, treated: Slot):
        self.control, self.treated = control, treated

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self._fit_arms(covariates, treatment, outcome)
        arms = [(self.control_, treatment == 0), (self.treated_, treatment == 1)]
        self.covariance_ = covariance(*((one, covariates[i], outcome[i]) for one, i in arms))

    def factual(self, covariates: Matrix, treatment: Vector) -> Vector:
        """Return the expected outcome in the arm that is taken, shape (m,)."""
        control, treated = self.control_.predict(covariates), self.treated_.predict(covariates)
        return np.where(treatment == 1, treated, control)

    def effect(self, covariates: Matrix) -> Vector:
        """Return effects, shape (m,)."""
        return self.treated_.predict(covariates) - self.control_.predict(covariates)


class XLearner(EffectEstimator, name="X-learner"):
    r"""Imputed effects of each arm, combined by the propensity [2]_.

    .. math::
        d_i = \begin{cases} y_i - \hat\mu_0(z_i) & a_i = 1 \\
                            \hat\mu_1(z_i) - y_i & a_i = 0 \end{cases}, \qquad
        \hat\tau(z) = \hat e(z)\,\hat\tau_0(z) + (1 - \hat e(z))\,\hat\tau_1(z),

    with :math:`\hat\tau_a` fitted to the :math:`d_i` of arm a, by one setting for both arms.
    """

    def __init__(self, control: Slot, treated: Slot, propensity: Slot, final: Slot):
        self.control, self.treated = control, treated
        self.propensity, self.final = propensity, final

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self._fit_arms(covariates, treatment, outcome)
        self.propensity_ = as_search(self.propensity).fit(covariates, treatment)
        control, treated = self.control_.predict(covariates), self.treated_.predict(covariates)
        imputed = np.where(treatment == 1, outcome - control, treated - outcome)
        self.final_ = as_search(self.final, scored=False).fit(covariates, imputed, refit=False)
        final, arms = self.final_.best_estimator_, (treatment == 0, treatment == 1)
        self.effects_ = [clone(final).fit(covariates[arm], imputed[arm]) for arm in arms]

    def effect(self, covariates: Matrix) -> Vector:
        """Return effects, shape (m,)."""
        e = self.propensity_.predict(covariates)
        of_controls, of_treated = (model.predict(covariates) for model in self.effects_)
        found: Vector = e * of_controls + (1 - e) * of_treated
        return found


class RLearner(EffectEstimator, name="R-learner"):
    r"""A regression of residuals on residuals, with cross-fitted nuisance models [3]_.

    .. math::
        \hat\tau = \arg\min_\tau \sum_i
        \bigl( (y_i - \hat m(z_i)) - \tau(z_i)\,(a_i - \hat e(z_i)) \bigr)^2

    This is a regression of the ratio of the residuals, weighted by :math:`(a_i - \hat e(z_i))^2`.
    """

    def __init__(self, outcome: Slot, propensity: Slot, final: Slot):
        self.outcome, self.propensity, self.final = outcome, propensity, final

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self._fit_nuisances(covariates, treatment, outcome)
        # Unfitted clones: results are kept by a hash, and scikit-learn's fitted searches have none.
        mean = out_of_fold(clone(self.outcome_.best_estimator_), covariates, outcome)
        e = out_of_fold(clone(self.propensity_.best_estimator_), covariates, treatment)
        self._fit_effect(covariates, outcome - mean, treatment - e)

    def effect(self, covariates: Matrix) -> Vector:
        """Return effects, shape (m,)."""
        return self.final_.predict(covariates)

    def _fit_nuisances(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self.outcome_ = as_search(self.outcome).fit(covariates, outcome)
        self.propensity_ = as_search(self.propensity).fit(covariates, treatment)
        self.score_ = self.outcome_.best_score_

    def _fit_effect(self, covariates: Matrix, left: Vector, surprise: Vector) -> None:
        """Regress residuals of the outcome, `left`, on those of the treatment, `surprise`."""
        weights = surprise**2
        used = weights > 0  # a residual of zero says nothing, and cannot divide
        ratio = left[used] / surprise[used]
        self.final_ = as_search(self.final, scored=False)
        self.final_.fit(covariates[used], ratio, weights[used])
        self.covariance_ = covariance((self.final_, covariates[used], ratio, weights[used]))


class DML(RLearner, name="DMLCATEEstimator"):
    r"""The R-learner: a random half of the rows for the nuisances, half for the effect [5]_."""

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        first, second = (dealt(len(outcome), 2) == half for half in (0, 1))
        self._fit_nuisances(covariates[first], treatment[first], outcome[first])
        left = outcome[second] - self.outcome_.predict(covariates[second])
        surprise = treatment[second] - self.propensity_.predict(covariates[second])
        self._fit_effect(covariates[second], left, surprise)


class AIPW(EffectEstimator):
    r"""Augmented inverse propensity weighting, cross-fitted [5]_.

    .. math::
        \hat\tau = \frac1n \sum_i \psi_i, \qquad
        \psi_i = \hat\mu_1(z_i) - \hat\mu_0(z_i)
        + \frac{a_i - \hat e(z_i)}{\hat e(z_i)(1 - \hat e(z_i))}\,(y_i - \hat\mu_{a_i}(z_i))

    It is consistent if outcome models or propensities are. These are kept within 0.01 and 0.99:
    where many lie beyond, as with one treated subject in 200, outcome models must be right, and the
    standard error is too small. For an `estimand` with the tilt h, the estimate solves
    :math:`\sum_i \phi_i = 0`, where

    .. math:: E[h]\,\phi_i = h(\hat e_i)(\psi_i - \hat\tau)
        + h'(\hat e_i)(a_i - \hat e_i)(\hat\mu_1 - \hat\mu_0 - \hat\tau)

    is the influence function if propensities are estimated. The standard error is that of its mean.
    If h is not linear in the propensity, as for the overlap, propensities must be right.
    """

    def __init__(self, control: Slot, treated: Slot, propensity: Slot, estimand: str = TWO_ARMS):
        self.control, self.treated, self.propensity = control, treated, propensity
        self.estimand = estimand

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        e, plugin = self._fit_scores(covariates, treatment, outcome)
        tilt, slope = tilted(self.estimand, e)
        surprise = slope * (treatment - e)
        above, below = tilt * self.scores_ + surprise * plugin, tilt + surprise
        self.ate_ = float(above.sum() / below.sum())
        self.standard_error_ = float(np.linalg.norm(above - self.ate_ * below) / below.sum())

    def _fit_scores(
        self, covariates: Matrix, treatment: Vector, outcome: Vector
    ) -> tuple[Vector, Vector]:
        self._fit_arms(covariates, treatment, outcome, refit=False)  # fitted fold by fold, below
        self.propensity_ = as_search(self.propensity).fit(covariates, treatment, refit=False)
        e = out_of_fold(self.propensity_.best_estimator_, covariates, treatment)
        e = np.clip(e, LOWEST, HIGHEST)
        mu = [
            out_of_fold(search.best_estimator_, covariates, outcome, treatment == arm)
            for arm, search in enumerate((self.control_, self.treated_))
        ]
        residual = outcome - np.where(treatment == 1, mu[1], mu[0])
        self.scores_ = mu[1] - mu[0] + (treatment - e) / (e * (1 - e)) * residual
        return e, mu[1] - mu[0]


class DRLearner(AIPW, name="DR-learner"):
    r"""A regression of the scores of AIPW, :math:`\psi_i`, on the covariates [4]_."""

    def __init__(self, control: Slot, treated: Slot, propensity: Slot, final: Slot):
        super().__init__(control, treated, propensity, estimand="ATE")
        self.final = final

    def _fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> None:
        self._fit_scores(covariates, treatment, outcome)
        self.final_ = as_search(self.final, scored=False).fit(covariates, self.scores_)
        self.covariance_ = covariance((self.final_, covariates, self.scores_))

    effect = RLearner.effect
