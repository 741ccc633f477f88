r"""Mechanisms: how a variable follows from its parents and its own noise.

A mechanism is a deterministic function :math:`V := f(\mathrm{pa}(V), U_V)` of the
values of the variable's direct causes and of uniform noise that belongs to the
variable alone. All randomness is in the noise, so the same mechanism evaluated
in two worlds with the same noise differs only through its parents.

There are two kinds. A numeric mechanism turns noise into a value by an inverse
distribution function. A categorical mechanism states the probability of each
level, which is public (it is the true propensity of a treatment), and a
*coupling* turns probabilities and noise into a level.

Mechanisms are named and configured in a specification (see :mod:`lib.scm.spec`);
the names and parameters of the classes are those of the IncomeSCM
specification language (IncomeSCM paper, Section 4).

>>> import numpy as np
>>> from lib.scm.mechanisms import GaussianVariable, Parents
>>> age = GaussianVariable("age", round_result=True, bounds=(18, 150))
>>> age = age.fit(Parents(), np.array([20.0, 30.0, 40.0]))
>>> age.evaluate(Parents(), np.array([[0.01, 0.5, 0.99]])).tolist()
[18.0, 31.0, 49.0]
"""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from pydantic import AfterValidator, ConfigDict, Field
from pydantic.dataclasses import dataclass
from scipy.special import expit, ndtr, ndtri
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score

from lib.errors import InputError, one_of

#: The values of one variable: numbers, or levels of a category.
Column = np.ndarray | pd.Categorical

Probability = Annotated[float, Field(ge=0, le=1)]


def _ordered(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] >= bounds[1]:
        raise ValueError("the lower bound must be below the upper")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_ordered)]


class Parents(Mapping):
    """The values of a variable's direct causes, one column each.

    ``parents["age"]`` is the cause at the same step, ``parents.previous["age"]``
    the one a step earlier. Numbers are float arrays, categories are
    :class:`pandas.Categorical`, so ``parents["sex"] == "Female"`` is a mask.

    Parameters
    ----------
    current, previous : mapping of str to Column, optional

    Examples
    --------
    >>> parents = Parents({"age": np.array([41.0])}, {"income": np.array([60_000.0])})
    >>> parents["age"], parents.previous["income"]
    (array([41.]), array([60000.]))
    """

    def __init__(
        self,
        current: Mapping[str, Column] | None = None,
        previous: Mapping[str, Column] | None = None,
    ):
        self.current = dict(current or {})
        self.previous = dict(previous or {})

    def __getitem__(self, name: str) -> Column:
        return self.current[name]

    def __iter__(self):
        return iter(self.current)

    def __len__(self) -> int:
        return len(self.current)


# --- couplings: from probabilities and noise to a level ---------------------------------


def gumbel_max(probabilities: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Choose a level by the Gumbel-max trick.

    .. math:: V = \arg\max_j \; \log p_j + G_j, \qquad G_j = -\log(-\log U_j)

    (IncomeSCM paper, Section 3.3). Since :math:`\log p_j + G_j` increases with
    :math:`\log(U_j) / p_j`, the latter is compared: one logarithm a level, and a
    level of probability 0 is never chosen. The probabilities need not sum to 1.

    Parameters
    ----------
    probabilities : numpy.ndarray, shape (n, levels)
    noise : numpy.ndarray, shape (levels, n)
        Uniforms between 0 and 1.

    Returns
    -------
    numpy.ndarray of int, shape (n,)
        The position of the chosen level.

    Examples
    --------
    >>> gumbel_max(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.2, 0.2], [0.7, 0.7]])).tolist()
    [1, 0]
    """
    with np.errstate(divide="ignore", over="ignore"):  # towards -inf, which is meant
        scores = np.log(noise) / probabilities.T
    best, chosen = scores[0], np.zeros(scores.shape[1], dtype=np.int64)
    for level in range(1, len(scores)):
        better = scores[level] > best
        best = np.where(better, scores[level], best)
        chosen[better] = level
    return chosen


def inverse_cdf(probabilities: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Choose a level by the inverse distribution function, of the first noise term.

    .. math:: V = \min\Bigl\{ j : U_0 \textstyle\sum_k p_k \le \sum_{k \le j} p_k \Bigr\}

    The distribution is that of :func:`gumbel_max`; what differs is how the levels
    of two worlds go together. Shapes are as there.

    Examples
    --------
    >>> inverse_cdf(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[0.2, 0.2], [0.7, 0.7]])).tolist()
    [0, 1]
    """
    cumulative = [probabilities[:, 0]]
    for level in range(1, probabilities.shape[1]):
        cumulative.append(cumulative[-1] + probabilities[:, level])
    reached = noise[0] * cumulative[-1]
    chosen = np.zeros(len(reached), dtype=np.int64)
    for below in cumulative[:-1]:
        chosen += reached > below
    return chosen


COUPLINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "gumbel": gumbel_max,
    "inverse_cdf": inverse_cdf,
}


# --- the two kinds of mechanism ----------------------------------------------------------

parameters = dataclass(config=ConfigDict(extra="forbid", arbitrary_types_allowed=True))


@parameters
class Mechanism(ABC):
    """A deterministic function of a variable's parents and its own noise.

    A subclass declares its parameters as fields, says in `noise_terms` how many
    uniforms a subject needs, and implements :meth:`evaluate`. What is learned in
    :meth:`fit` ends in an underscore.

    Parameters
    ----------
    variable : str
        The variable whose mechanism this is.
    """

    variable: str

    #: Parents read by name, at the same step and a step earlier (the variable itself, a
    #: step earlier, is always there). A specification that does not declare them is refused.
    reads: ClassVar[tuple[str, ...]] = ()
    reads_previous: ClassVar[tuple[str, ...]] = ()

    #: Whether it starts from the variable's own value a step earlier; then it cannot be initial.
    continues: ClassVar[bool] = False

    noise_terms: ClassVar[int] = 0

    #: Whether it learns from every parent, so that each must be a column of the base table.
    learns_from_parents: ClassVar[bool] = False
    #: Parents of which that is not true, because their effect is written by hand.
    by_hand: ClassVar[tuple[str, ...]] = ()

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Learn from the base table; by default there is nothing to learn.

        Parameters
        ----------
        parents : Parents
            Columns of the table, of the parents that it has.
        values : Column, optional
            The variable's own column; None if the table has none.
        seed : int
            Of whatever is random in fitting.
        """
        return self

    @abstractmethod
    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        """Return the variable's values, shape (n,), for noise of shape (noise_terms, n)."""

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float] | None:
        """Say how well the fitted model predicts `values`: R² or AUC, None if nothing was fitted.

        The AUC of more than two levels is the mean over levels of one against the rest.
        """
        return None


class CategoricalMechanism(Mechanism):
    """A mechanism that states the probability of every level.

    A subclass sets `levels_`, at the latest when it is fitted, and implements
    :meth:`probabilities`; the coupling does the rest.
    """

    coupling: str = "gumbel"
    levels_: pd.CategoricalDtype

    @property
    def noise_terms(self) -> int:
        """One uniform a level, whichever coupling uses them."""
        return len(self.levels_.categories)

    @abstractmethod
    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the probability of each level, shape (n, levels); rows sum to 1.

        A mechanism without parents returns a single row, valid for everyone.
        """

    def evaluate(self, parents: Parents, noise: np.ndarray) -> pd.Categorical:
        """Return the levels that the coupling chooses, for noise of shape (levels, n)."""
        codes = COUPLINGS[self.coupling](self.probabilities(parents), noise)
        return pd.Categorical.from_codes(codes, dtype=self.levels_)

    def fit_quality(self, parents: Parents, values: pd.Categorical) -> tuple[str, float] | None:
        """Return the in-sample AUC of a fitted classifier."""
        if not parents or values is None:
            return None
        if absent := set(values.categories).difference(values):
            raise InputError(
                f"variable {self.variable!r}: its AUC needs every level in the table, "
                f"{sorted(absent)[0]!r} is missing"
            )
        probabilities = self.probabilities(parents)
        if probabilities.shape[1] == 2:
            return "AUC", float(roc_auc_score(values.codes, probabilities[:, 1]))
        return "AUC", float(roc_auc_score(values.codes, probabilities, multi_class="ovr"))


def normalised(weights: list[np.ndarray] | np.ndarray) -> np.ndarray:
    """Divide weights of shape (levels, n) by their sum, and return shape (n, levels).

    Examples
    --------
    >>> normalised([np.array([1.0]), np.array([3.0])])
    array([[0.25, 0.75]])
    """
    # Summed level by level: numpy's own sum adds in another order when n is 1, and a
    # subject's value must not depend, by one bit, on the block it is computed in.
    total = functools.reduce(np.add, weights)
    return (np.asarray(weights) / total).T


def as_levels(values: Iterable, levels: pd.CategoricalDtype) -> pd.Categorical:
    """Return values as a category of these levels; the code of an unknown one is -1.

    Examples
    --------
    >>> as_levels(["b", "c"], pd.CategoricalDtype(["a", "b"])).codes.tolist()
    [1, -1]
    """
    return pd.Categorical.from_codes(levels.categories.get_indexer(values), dtype=levels)


def is_level(previous: pd.Categorical) -> np.ndarray:
    """Return the indicator of each subject's level as floats, shape (levels, n).

    Examples
    --------
    >>> is_level(pd.Categorical(["b", "a"]))
    array([[0., 1.],
           [1., 0.]])
    """
    return np.eye(len(previous.categories))[:, previous.codes]


def stay_or_redraw(
    p_stay: np.ndarray | float, previous: pd.Categorical, redrawn: np.ndarray
) -> np.ndarray:
    r"""Keep the previous level with probability `p_stay`, else draw anew.

    .. math:: P(v) = p_\text{stay}\,[v = v_{t-1}] + (1 - p_\text{stay})\,q(v)

    Parameters
    ----------
    p_stay : float or numpy.ndarray, shape (n,)
    previous : pandas.Categorical, length n
    redrawn : numpy.ndarray, shape (n, levels) or (1, levels)
        The distribution q.

    Returns
    -------
    numpy.ndarray, shape (n, levels)

    Examples
    --------
    >>> stay_or_redraw(0.5, pd.Categorical(["a"], ["a", "b"]), np.array([[0.2, 0.8]]))
    array([[0.6, 0.4]])
    """
    return (p_stay * is_level(previous) + (1 - p_stay) * redrawn.T).T


# --- features of a fitted mechanism ------------------------------------------------------


class Features:
    """How a fitted mechanism sees its parents: numbers standardised, categories one-hot.

    Means, standard deviations and levels are those of the base table.

    Parameters
    ----------
    parents : Mapping of str to Column
        The parents' columns of the base table.

    Examples
    --------
    >>> table = {"age": np.array([20.0, 40.0]), "sex": pd.Categorical(["F", "M"])}
    >>> Features(table).matrix(table)
    array([[-1.,  1.,  0.],
           [ 1.,  0.,  1.]])
    """

    def __init__(self, parents: Mapping[str, Column]):
        self.scales, self.slices, width = {}, {}, 0
        for name, column in parents.items():
            if isinstance(column, pd.Categorical):
                size = len(column.categories)
            else:
                size, self.scales[name] = 1, (column.mean(), column.std() or 1.0)
            self.slices[name] = slice(width, width + size)
            width += size
        self.width = width

    def matrix(self, parents: Mapping[str, Column]) -> np.ndarray:
        """Encode columns of length n as a matrix, shape (n, features)."""
        length = len(next(iter(parents.values())))
        matrix = np.zeros((length, self.width))
        for name, part in self.slices.items():
            if name in self.scales:
                matrix[:, part] = self._standardised(name, parents)[:, None]
            else:
                matrix[np.arange(length), part.start + parents[name].codes] = 1
        return matrix

    def linear(
        self, parents: Mapping[str, Column], weights: np.ndarray, intercepts: np.ndarray
    ) -> np.ndarray:
        """Evaluate linear models without building the matrix, shape (models, n).

        `weights` has shape (models, features), `intercepts` (models,). Only elementwise
        sums are used: a matrix product may round differently in another block size.
        """
        length = len(next(iter(parents.values())))
        sums = np.repeat(np.asarray(intercepts, dtype=float)[:, None], length, axis=1)
        for name, part in self.slices.items():
            if name in self.scales:
                sums += weights[:, part] * self._standardised(name, parents)
            else:
                sums += weights[:, part][:, parents[name].codes]
        return sums

    def once_per_profile(
        self, parents: Mapping[str, Column], model: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Apply a costly `model` to each distinct combination of parent values once.

        Rows are visited in sorted order, which also keeps the branches of neighbouring
        rows in a tree alike: forests run two to four times faster for it.
        """
        key, combinations = np.zeros(1, dtype=np.int64), 1
        # Numbers last: neighbouring rows then differ in a number, and share most of a path.
        for name in sorted(self.slices, key=lambda name: name in self.scales):
            column = parents[name]
            if name in self.scales:
                levels, codes = np.unique(column, return_inverse=True)
            else:
                levels, codes = column.categories, column.codes
            combinations *= len(levels)
            if combinations >= 2**62:  # more would overflow: number the combinations that occur
                distinct, key = np.unique(key, return_inverse=True)
                combinations = len(distinct) * len(levels)
            key = key * len(levels) + codes.astype(np.int64)
        _, rows, inverse = np.unique(key, return_index=True, return_inverse=True)
        profiles = {name: parents[name][rows] for name in self.slices}
        return model(self.matrix(profiles))[inverse]

    def _standardised(self, name: str, parents: Mapping[str, Column]) -> np.ndarray:
        mean, deviation = self.scales[name]
        return (parents[name] - mean) / deviation


def mean_over_trees(
    forest: RandomForestClassifier | RandomForestRegressor,
) -> Callable[[np.ndarray], np.ndarray]:
    """Return what a forest predicts as a function of the matrix, shape (n, outputs).

    To the last bit what scikit-learn's `predict` (outputs: 1) and `predict_proba`
    (outputs: classes) return, without their checks and their threads for every tree.
    """

    def mean(matrix: np.ndarray) -> np.ndarray:
        matrix = np.ascontiguousarray(matrix, dtype=np.float32)  # what a tree compares
        total = sum(tree.tree_.predict(matrix) for tree in forest.estimators_)
        return total / len(forest.estimators_)

    return mean


def configured(
    estimator: type[BaseEstimator], options: Mapping, owner: Mechanism, **defaults
) -> BaseEstimator:
    """Make a scikit-learn estimator, and refuse options that it does not have.

    Examples
    --------
    >>> configured(Ridge, {"alpha": 2.0}, GaussianVariable("age"))
    Ridge(alpha=2.0)
    """
    allowed = estimator().get_params()
    for option in options:
        if option not in allowed:
            raise InputError(
                f"key {option!r} is unknown to {type(owner).__name__}: "
                f"{one_of([*parameter_names(owner), *allowed], limit=40)}"
            )
    if "random_state" not in allowed:
        defaults.pop("random_state", None)
    return estimator(**{**defaults, **options})


def parameter_names(kind: type[Mechanism] | Mechanism) -> list[str]:
    """Return the parameters of a mechanism that a specification may give.

    Examples
    --------
    >>> parameter_names(GaussianVariable)
    ['round_result', 'bounds']
    """
    return [field.name for field in fields(kind) if field.name not in ("variable", "options")]


def numbers(mechanism: Mechanism, values: Column | None) -> np.ndarray:
    """Return `values` if they are numbers; raise an InputError otherwise."""
    if values is None or isinstance(values, pd.Categorical):
        found = "no such column in the table" if values is None else "text"
        raise InputError(
            f"variable {mechanism.variable!r}: {type(mechanism).__name__} is fitted to numbers, "
            f"found {found}"
        )
    return values


def levels_of(mechanism: Mechanism, values: Column | None) -> pd.CategoricalDtype:
    """Return the levels of `values`; raise an InputError if there are none to learn from."""
    if values is None:
        raise InputError(
            f"variable {mechanism.variable!r}: {type(mechanism).__name__} is fitted to the "
            "variable's column, found no such column in the table"
        )
    return values.dtype


# --- mechanisms without parents ----------------------------------------------------------


@parameters
class ConstantSampler(Mechanism):
    """The same value for everyone.

    Examples
    --------
    >>> ConstantSampler("time", value=0).evaluate(Parents(), np.empty((0, 2)))
    array([0., 0.])
    """

    value: float | str

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Learn the levels of a text variable."""
        if isinstance(self.value, str):
            self.levels_ = pd.CategoricalDtype([self.value]) if values is None else values.dtype
            if self.value not in self.levels_.categories:
                raise InputError(
                    f"variable {self.variable!r}: level {self.value!r} is not in the table: "
                    f"{one_of(self.levels_.categories)}"
                )
        return self

    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        """Return the constant."""
        n = noise.shape[1]
        if isinstance(self.value, str):
            return pd.Categorical([self.value], dtype=self.levels_).repeat(n)
        return np.full(n, self.value)


@parameters
class GaussianVariable(Mechanism):
    r"""A normal variable with the table's mean and standard deviation.

    .. math:: V = \mu + \sigma\, \Phi^{-1}\bigl(\Phi(a) + U\,(\Phi(b) - \Phi(a))\bigr),

    where :math:`a, b` are the standardised bounds. This is the distribution of
    drawing again until the (rounded) value lies within the bounds, at the price of
    one uniform.

    Parameters
    ----------
    round_result : bool
        Round to whole numbers.
    bounds : pair of float, optional
        The least and the largest value.
    """

    round_result: bool = False
    bounds: Bounds | None = None

    noise_terms: ClassVar[int] = 1

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Learn mean and standard deviation."""
        values = numbers(self, values)
        self.mean_, self.deviation_ = values.mean(), values.std()
        return self

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        """Return normal values within the bounds."""
        low, high = self.bounds or (-np.inf, np.inf)
        margin = 0.5 if self.round_result else 0.0  # what rounds into the bounds is within them
        low = ndtr((low - margin - self.mean_) / self.deviation_)
        high = ndtr((high + margin - self.mean_) / self.deviation_)
        values = self.mean_ + self.deviation_ * ndtri(low + noise[0] * (high - low))
        return bounded(values, self.round_result, self.bounds)


def bounded(
    values: np.ndarray, round_result: bool, bounds: tuple[float, float] | None
) -> np.ndarray:
    """Clip to the bounds, then round.

    Examples
    --------
    >>> bounded(np.array([-3.0, 2.6]), True, (0, 100))
    array([0., 3.])
    """
    if bounds is not None:
        values = np.clip(values, *bounds)
    return np.round(values) if round_result else values


@parameters
class MultinomialVariable(CategoricalMechanism):
    """A category with the table's frequencies.

    Examples
    --------
    >>> race = MultinomialVariable("race").fit(Parents(), pd.Categorical(["a", "b", "b", "b"]))
    >>> race.probabilities(Parents())
    array([[0.25, 0.75]])
    """

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Count the levels."""
        self.levels_ = levels_of(self, values)
        counts = np.bincount(values.codes, minlength=len(values.categories))
        self.frequencies_ = counts / len(values)
        return self

    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the frequencies, shape (1, levels): the same for everyone."""
        return self.frequencies_[None, :]

    def fit_quality(self, parents: Parents, values: Column) -> None:
        """Return None: a frequency predicts nothing."""
        return None


@parameters
class BernoulliVariable(MultinomialVariable):
    """A variable of two levels with the table's frequencies."""

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Count the two levels."""
        if (found := len(levels_of(self, values).categories)) != 2:
            raise InputError(
                f"variable {self.variable!r}: BernoulliVariable needs two levels, found {found}"
            )
        return super().fit(parents, values, seed)


# --- mechanisms of the previous value alone ----------------------------------------------


@parameters
class KeepPrevious(Mechanism):
    """The value stays what it was; a specification calls it ``None``."""

    continues: ClassVar[bool] = True

    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        """Return the previous value."""
        return parents.previous[self.variable]


@parameters
class IncrementSampler(Mechanism):
    """The previous value and a constant.

    Examples
    --------
    >>> age = IncrementSampler("age", increment=1)
    >>> age.evaluate(Parents(previous={"age": np.array([41.0])}), np.empty((0, 1)))
    array([42.])
    """

    increment: float = 1.0

    continues: ClassVar[bool] = True

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        """Return the previous value, incremented."""
        return parents.previous[self.variable] + self.increment


# --- fitted classifiers ------------------------------------------------------------------


@parameters
class LogisticSampler(CategoricalMechanism):
    r"""A multinomial logistic regression on the parents.

    .. math:: P(v \mid x) \propto \exp(\beta_v^\top x + \beta_{v0})

    Parameters
    ----------
    options : dict
        Parameters of :class:`sklearn.linear_model.LogisticRegression`.
    """

    options: dict = field(default_factory=dict)

    learns_from_parents: ClassVar[bool] = True

    def __post_init__(self):
        configured(LogisticRegression, self.options, self)

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Fit the regression."""
        self.levels_ = levels_of(self, values)
        self.features_ = Features(parents)
        # 100 iterations, the library's default, do not converge on Adult.
        model = configured(LogisticRegression, self.options, self, max_iter=1000)
        model.fit(self.features_.matrix(parents), values.codes)
        absent = len(self.levels_.categories) - len(model.classes_)
        if absent:
            raise InputError(
                f"variable {self.variable!r}: {absent} of its levels do not occur in the table"
            )
        # Two classes have one row of coefficients: the log odds of the second.
        two = len(model.classes_) == 2
        self.weights_ = np.vstack([0 * model.coef_, model.coef_]) if two else model.coef_
        self.intercepts_ = np.append(0, model.intercept_) if two else model.intercept_
        return self

    def scores(self, parents: Parents) -> np.ndarray:
        """Return the log probability of each level up to a constant, shape (levels, n)."""
        return self.features_.linear(parents, self.weights_, self.intercepts_)

    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the softmax of the scores, shape (n, levels)."""
        return softmax(self.scores(parents))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return probabilities, shape (n, levels), from scores, shape (levels, n)."""
    return normalised(np.exp(scores - scores.max(axis=0)))


@parameters
class LogisticTransitionSampler(LogisticSampler):
    r"""A logistic regression on today's parents that favours the previous level.

    .. math::
        P(v) = p_\text{stay}\,[v = v_{t-1}]
        + (1 - p_\text{stay})\,\mathrm{softmax}_v(\beta_v^\top x + c_\text{prev}\,[v = v_{t-1}])

    Parameters
    ----------
    c_prev : float
        What the previous level's score gains.
    p_stay : float
        The probability of keeping the previous level without a draw.
    """

    c_prev: float = 0.0
    p_stay: Probability = 0.0

    continues: ClassVar[bool] = True

    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the mixture of staying and redrawing, shape (n, levels)."""
        previous = parents.previous[self.variable]
        redrawn = softmax(self.scores(parents) + self.c_prev * is_level(previous))
        return stay_or_redraw(self.p_stay, previous, redrawn)


@parameters
class RandomForestClassifierSampler(CategoricalMechanism):
    """A random forest's class probabilities.

    Parameters
    ----------
    options : dict
        Parameters of :class:`sklearn.ensemble.RandomForestClassifier`.
    """

    options: dict = field(default_factory=dict)

    learns_from_parents: ClassVar[bool] = True

    def __post_init__(self):
        configured(RandomForestClassifier, self.options, self)

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Fit the forest."""
        self.levels_ = levels_of(self, values)
        self.features_ = Features(parents)
        self.forest_ = configured(RandomForestClassifier, self.options, self, random_state=seed)
        self.forest_.fit(self.features_.matrix(parents), values.codes)
        return self

    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the mean over trees of the leaf frequencies, shape (n, levels)."""
        seen = self.features_.once_per_profile(parents, mean_over_trees(self.forest_))
        if len(self.forest_.classes_) == len(self.levels_.categories):
            return seen
        probabilities = np.zeros((len(seen), len(self.levels_.categories)))
        probabilities[:, self.forest_.classes_] = seen
        return probabilities


# --- fitted regressions with noise -------------------------------------------------------

REGRESSIONS: dict[str, type[BaseEstimator]] = {
    "LinearRegression": LinearRegression,
    "Ridge": Ridge,
    "RandomForestRegressor": RandomForestRegressor,
}


@parameters
class GaussianRegressionSampler(Mechanism):
    r"""A regression on the parents and normal noise of the size of its error.

    .. math:: V = \hat f(x) + c\,\sqrt{\mathrm{MSE}}\;\Phi^{-1}(U)

    (IncomeSCM paper, Section 3.3), clipped to the bounds, then rounded.

    Parameters
    ----------
    estimator : {'LinearRegression', 'Ridge', 'RandomForestRegressor'}
    round_result : bool
    bounds : pair of float, optional
    std_mod : float
        The factor c by which the noise is larger than the in-sample error.
    options : dict
        Parameters of the estimator.
    """

    estimator: Literal["LinearRegression", "Ridge", "RandomForestRegressor"] = "Ridge"
    round_result: bool = False
    bounds: Bounds | None = None
    std_mod: Annotated[float, Field(ge=0)] = 1.0
    options: dict = field(default_factory=dict)

    noise_terms: ClassVar[int] = 1
    learns_from_parents: ClassVar[bool] = True

    def __post_init__(self):
        configured(REGRESSIONS[self.estimator], self.options, self)

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Fit the regression and measure its in-sample error."""
        self.features_ = Features(parents)
        return self._fit_regression(parents, numbers(self, values), seed)

    def _fit_regression(self, parents: Parents, values: np.ndarray, seed: int) -> Self:
        model = configured(REGRESSIONS[self.estimator], self.options, self, random_state=seed)
        self.model_ = model.fit(self.features_.matrix(parents), values)
        self.error_ = float(np.sqrt(np.mean((values - self.predict(parents)) ** 2)))
        return self

    def predict(self, parents: Parents) -> np.ndarray:
        """Return the regression's mean, shape (n,)."""
        if hasattr(self.model_, "coef_"):
            weights, intercept = self.model_.coef_[None, :], [self.model_.intercept_]
            return self.features_.linear(parents, weights, intercept)[0]
        return self.features_.once_per_profile(parents, mean_over_trees(self.model_))[:, 0]

    def deviation(self, noise: np.ndarray) -> np.ndarray:
        """Return the noise in the variable's units, shape (n,)."""
        return self.std_mod * self.error_ * ndtri(noise[0])

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        """Return mean and noise."""
        values = self.predict(parents) + self.deviation(noise)
        return bounded(values, self.round_result, self.bounds)

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float]:
        """Return the in-sample R²."""
        return "R²", float(r2_score(values, self.predict(parents)))


@parameters
class LinearGaussianSampler(GaussianRegressionSampler):
    """A linear regression by least squares and normal noise."""

    estimator: Literal["LinearRegression"] = "LinearRegression"


@parameters
class GaussianRandomForestSampler(GaussianRegressionSampler):
    """A random forest regressor and normal noise."""

    estimator: Literal["RandomForestRegressor"] = "RandomForestRegressor"


@parameters
class UniformRegressionSampler(GaussianRegressionSampler):
    r"""A regression and uniform noise with the standard deviation of its error.

    .. math:: V = \hat f(x) + c\,\sqrt{3\,\mathrm{MSE}}\;(2U - 1)
    """

    def deviation(self, noise: np.ndarray) -> np.ndarray:
        """Return the noise in the variable's units, shape (n,)."""
        return self.std_mod * self.error_ * np.sqrt(3) * (2 * noise[0] - 1)


@parameters
class ZeroOrGaussianRegressionSampler(GaussianRegressionSampler):
    r"""Zero with a fitted probability, else a regression with noise.

    .. math::
        V = [U_0 > \hat p_0(x)]\;
        \bigl(\hat f(x) + c\,\sqrt{\mathrm{MSE}}\;\Phi^{-1}(U_1)\bigr)

    The classifier of zeros is fitted to all records, the regression to those that
    are not zero (IncomeSCM paper, Section 3.3).

    Parameters
    ----------
    zero_estimator : {'LogisticRegression'}
        The classifier; its parameters are scikit-learn's defaults.
    """

    zero_estimator: Literal["LogisticRegression"] = "LogisticRegression"

    noise_terms: ClassVar[int] = 2

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Fit classifier and regression."""
        values = numbers(self, values)
        zero = values == 0
        if zero.all() or not zero.any():
            raise InputError(
                f"variable {self.variable!r}: {type(self).__name__} needs zeros and other values, "
                f"found {zero.sum():,} zeros of {len(values):,}"
            )
        self.features_ = Features(parents)
        model = LogisticRegression(max_iter=1000).fit(self.features_.matrix(parents), zero)
        self.zero_weights_, self.zero_intercept_ = model.coef_, model.intercept_
        return self._fit_regression(_rows(parents, ~zero), values[~zero], seed)

    def zero_probability(self, parents: Parents) -> np.ndarray:
        """Return the probability of a zero, shape (n,)."""
        log_odds = self.features_.linear(parents, self.zero_weights_, self.zero_intercept_)[0]
        return expit(log_odds)

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        """Return zero, or mean and noise."""
        values = super().evaluate(parents, noise[1:])
        return np.where(noise[0] < self.zero_probability(parents), 0.0, values)

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float]:
        """Return the in-sample R² of the records that are not zero."""
        return super().fit_quality(_rows(parents, values != 0), values[values != 0])


def _rows(parents: Parents, chosen: np.ndarray) -> Parents:
    return Parents({name: column[chosen] for name, column in parents.items()})


def named(of_module: Mapping) -> dict[str, type[Mechanism]]:
    """Return the mechanisms that a module defines and that can be made, by name."""
    return {
        name: kind
        for name, kind in of_module.items()
        if inspect.isclass(kind)
        and issubclass(kind, Mechanism)
        and kind.__module__ == of_module["__name__"]
        and not inspect.isabstract(kind)
    }


#: The names that a specification may use, and what they stand for.
MECHANISMS: dict[str, type[Mechanism]] = {
    "None": KeepPrevious,
    "gaussian": GaussianVariable,
    "multinomial": MultinomialVariable,
    "bernoulli": BernoulliVariable,
    **named(globals()),
}
