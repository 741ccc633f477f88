r"""Mechanisms: how a variable follows from its parents and its own noise.

A mechanism is a deterministic function :math:`V := f(\mathrm{pa}(V), U_V)` of the values of the
variable's direct causes and of uniform noise that belongs to the variable alone. With the same
noise, a variable differs between two worlds only if its parents do. A numeric mechanism turns noise
into a value by an inverse distribution function. A categorical one states the probability of each
level (the true propensity of a treatment), and a *coupling* turns these and noise into a level.

Names and parameters are those of the IncomeSCM paper's specifications (:mod:`lib.scm.spec`).
"""

# A method that overrides another is documented at the other, and in the docstring of its class.
# ruff: noqa: D102

import inspect
import itertools
import numbers
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
from pydantic import AfterValidator, AllowInfNan, ConfigDict, Field, ValidationInfo
from pydantic.dataclasses import dataclass
from scipy.sparse import csr_array
from scipy.special import expit, ndtr, ndtri
from scipy.stats import nbinom, truncnorm
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import r2_score, roc_auc_score

from lib.errors import InputError, check, check_names, one_of
from lib.scm.forests import Forest

#: The values of one variable: numbers, or levels of a category.
Column: TypeAlias = np.ndarray | pd.Categorical

#: The values of all variables at one step: columns, each of the kind of its variable.
State: TypeAlias = Mapping[str, Any]

#: The kind of a variable: its levels, or None if it is a number.
Levels: TypeAlias = pd.CategoricalDtype | None

#: Strict, because YAML reads yes as a truth value, which is no number.
Probability = Annotated[float, Field(strict=True, ge=0, le=1)]


def _ordered(bounds: tuple[float, float], given: ValidationInfo) -> tuple[float, float]:
    low, high = bounds
    if not low < high:  # NaN is refused, too
        raise ValueError("the lower bound must be below the upper bound")
    if given.data.get("round_result") and np.ceil(low) > high:
        raise ValueError("with round_result, a whole number must lie within the bounds")
    return bounds


Bound = Annotated[float, AllowInfNan(True)]
Bounds = Annotated[tuple[Bound, Bound], AfterValidator(_ordered)]


class Parents(dict[str, Any]):
    """The values of a variable's direct causes, one column each.

    ``parents.previous`` holds values a step earlier. Numbers are float arrays and categories are
    :class:`pandas.Categorical`, so ``parents["sex"] == "Female"`` is a mask.
    """

    def __init__(self, now: State | None = None, previous: State | None = None):
        super().__init__(now or {})
        self.previous = dict(previous or {})


def as_column(values: Any, levels: Levels, place: str, n: int | None = None) -> Any:
    """Return values (`n` of them, if given) as a column of kind `levels`; errors name `place`."""
    rule = f"{place}: one value per subject is needed"
    check(np.ndim(values) == 1, f"{rule}, in one dimension", np.shape(values))
    check(n is None or len(values) == n, f"{rule}, {n}", len(values))
    if levels is not None:
        column = pd.Categorical.from_codes(levels.categories.get_indexer(values), dtype=levels)
        wrong = column.codes < 0
    else:
        column = np.asarray(values)
        if column.dtype.kind not in "biuf":  # numpy would turn the text "40" into a number
            column = np.array([v if isinstance(v, numbers.Real) else np.nan for v in values])
        column = column.astype(float)
        wrong = ~np.isfinite(column)
    if wrong.any():
        found = pd.Series(values)[wrong].tolist()[0]
        if levels is None:
            raise InputError(f"{place}: finite numbers are needed: found {found!r}")
        raise InputError(f"{place}: level {found!r} is unknown: {one_of(levels.categories, 50)}")
    return column


def columns_of(
    frame: pd.DataFrame, kinds: Mapping[str, Levels], place: str, n: int | None = None
) -> dict[str, Column]:
    """Return the columns of a frame that `kinds` names, each converted to its kind."""
    check_names(place, kinds, frame, limit=50)
    return {name: as_column(frame[name], kinds[name], f"{place} {name!r}", n) for name in kinds}


def described(kind: Column | Levels) -> str:
    """Describe in words the kind of a variable or a column, with its levels in order."""
    # Quotes tell the text 1 from the number.
    told = [repr(v) if str(v).isdecimal() else str(v) for v in getattr(kind, "categories", ())]
    return f"levels {', '.join(told)}" if told else "numbers"


def same_kind(one: Column | Levels, other: Column | Levels) -> bool:
    """Say whether both are numbers, or both have the same levels in the same order."""
    # Text is not the number that it is printed like, and True is not 1, which equals it.
    ours, theirs = ([(str(v), v) for v in getattr(k, "categories", ())] for k in (one, other))
    return ours == theirs


# --- couplings: from probabilities and noise to a level ---------------------------------


def gumbel_max(probabilities: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Choose a level by the Gumbel-max trick.

    .. math:: V = \arg\max_j \; \log p_j + G_j, \qquad G_j = -\log(-\log U_j)

    (IncomeSCM paper, Section 3.3). Since :math:`\log p_j + G_j` increases with
    :math:`\log(U_j) / p_j`, the latter is compared: this takes one logarithm per level and never
    chooses a level of probability 0. The `probabilities`, shape (n, levels), need not sum to 1; the
    `noise` is uniform, shape (levels, n). The result is the position of each chosen level, (n,).

    Examples
    --------
    >>> gumbel_max(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.2, 0.2], [0.7, 0.7]])).tolist()
    [1, 0]
    """
    with np.errstate(divide="ignore", over="ignore"):  # towards -inf, as intended
        scores = np.log(noise) / probabilities.T
    # The first of the highest scores; `scores.argmax(axis=0)` itself takes a third longer.
    return np.asarray((scores == scores.max(axis=0)).argmax(axis=0))


def inverse_cdf(probabilities: np.ndarray, noise: np.ndarray) -> np.ndarray:
    r"""Choose a level by the inverse distribution function, using the first noise term only.

    .. math:: V = \min\Bigl\{ j : U_0 \textstyle\sum_k p_k \le \sum_{k \le j} p_k \Bigr\}

    Distribution and shapes are those of :func:`gumbel_max`, but not how two worlds go together.
    """
    *below, total = itertools.accumulate(probabilities.T)
    return sum((noise[0] * total > part for part in below), np.zeros(noise.shape[1], dtype=int))


Coupling = Callable[[np.ndarray, np.ndarray], np.ndarray]
COUPLINGS: dict[str, Coupling] = {"gumbel": gumbel_max, "inverse_cdf": inverse_cdf}


# --- the two kinds of mechanism ----------------------------------------------------------

parameters = dataclass(
    config=ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)
)


@parameters
class Mechanism(ABC):
    """A deterministic function of a variable's parents and its own noise.

    A subclass is a dataclass with :meth:`evaluate`, which takes `noise_terms` uniforms per subject
    and needs parents `reads` and `reads_previous`. What :meth:`learn` sets ends in an underscore.
    """

    variable: str

    #: What the variable's column in the table must hold: "numbers", "levels", or exactly these
    #: levels in this order; None if the table need not have the column.
    fitted_to: ClassVar[str | pd.CategoricalDtype | None] = None

    #: The levels of the variable, known after the fit at the latest; None if it is a number.
    #: The type is given in a comment, since an annotation would make this a parameter.
    levels_ = None  # type: Levels

    #: Parents looked up by name, at the same step and a step earlier (the variable's own earlier
    #: value is always available). A specification that does not declare them is refused.
    reads: ClassVar[tuple[str, ...]] = ()
    reads_previous: ClassVar[tuple[str, ...]] = ()

    #: Whether it depends on no parents but those looked up by name; others are then refused.
    stands_alone: ClassVar[bool] = False

    #: Whether it builds on the variable's own value a step earlier; if so, it cannot be initial.
    continues: ClassVar[bool] = False

    #: The number of uniforms per subject, as a class variable or a property.
    noise_terms: ClassVar[Any] = 0

    #: Whether what is learned depends on the seed of the fit.
    seeded: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        parameters(cls)

    def fit(self, parents: Parents, values: Column | None = None, seed: int = 0) -> Self:
        """Learn from the table's columns for the parents and, if there is one, for the variable."""
        if self.fitted_to is not None:
            column = self.own(values, self.fitted_to)
            self.levels_ = column.dtype if isinstance(column, pd.Categorical) else None
        self.learn(parents, values, seed)
        return self

    def learn(self, parents: Parents, values: Any, seed: int) -> None:  # noqa: B027
        """Learn from the table, with values of the kind `fitted_to`; by default, learn nothing."""

    def learned_from(self, causes: Iterable[str]) -> list[str]:
        """Return the causes that it learns from; each must be a column of the base table."""
        return []

    @abstractmethod
    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        """Return the variable's values, shape (n,), for noise of shape (noise_terms, n)."""

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float] | None:
        """Return R² or AUC (the mean over levels against the rest); None if nothing was fitted."""
        return None

    def refusal(self, rule: str) -> InputError:
        """Make the error that names the variable and says what is wrong."""
        return InputError(f"variable {self.variable!r}: {rule}")

    def own(self, values: Column | None, kind: str | pd.CategoricalDtype) -> Any:
        """Return the variable's column of the table; refuse another kind, or other levels."""
        wanted = kind if isinstance(kind, str) else described(kind)
        found = "no such column in the table" if values is None else described(values)
        if not (found.split()[0] == kind if isinstance(kind, str) else same_kind(values, kind)):
            levels = pd.Series(getattr(values, "categories", ()), dtype=object)
            odd = levels[pd.to_numeric(levels, errors="coerce").isna()]
            if wanted == "numbers" and len(odd):  # perhaps a few texts among many numbers
                found = f"levels {', '.join(map(str, odd))}"
            found = textwrap.shorten(found, 200, placeholder=" …")
            raise self.refusal(f"{type(self).__name__} must be fitted to {wanted}, found {found}")
        return values


class NumericMechanism(Mechanism):
    """A mechanism that is fitted to the table's own numbers, with one uniform per subject."""

    fitted_to: ClassVar = "numbers"
    noise_terms: ClassVar = 1


class CategoricalMechanism(Mechanism):
    """A mechanism that states the probability of each level; a coupling then chooses one level.

    A subclass implements :meth:`probabilities`. If it says what it is `fitted_to`, its `levels_`
    are those of the table; otherwise it states its own.
    """

    levels_ = None  # type: pd.CategoricalDtype

    @property
    def noise_terms(self) -> int:
        """One uniform per level, whichever coupling uses them."""
        return len(self.levels_.categories)

    @abstractmethod
    def probabilities(self, parents: Parents) -> np.ndarray:
        """Return the probability of each level, (n, levels), or (1, levels) if alike for all."""

    def stated(self, parents: Parents) -> np.ndarray:
        """Return :meth:`probabilities`, and refuse invalid ones, which couplings do not check."""
        found, n = self.probabilities(parents), len(self.levels_.categories)
        met = (found >= 0).all(axis=1) & np.isclose(found.sum(axis=1), 1) & (found.shape[1] == n)
        rule = f"variable {self.variable!r}: {n} probabilities must be 0 or more and sum to 1"
        check(bool(met.all()), rule, found[~met][:1].tolist())
        return found

    def evaluate(
        self, parents: Parents, noise: np.ndarray, coupling: Coupling = gumbel_max
    ) -> pd.Categorical:
        """Return the levels that the coupling chooses, for noise of shape (levels, n)."""
        codes = coupling(self.stated(parents), noise)
        return pd.Categorical.from_codes(codes, dtype=self.levels_)

    def fit_quality(self, parents: Parents, values: pd.Categorical) -> tuple[str, float] | None:
        """Return the in-sample AUC of a fitted classifier."""
        if absent := sorted(set(values.categories).difference(values)):
            raise self.refusal(f"the AUC needs every level in the table, {absent[0]!r} is missing")
        stated = self.probabilities(parents)
        stated = stated[:, 1] if stated.shape[1] == 2 else stated
        return "AUC", float(roc_auc_score(values.codes, stated, multi_class="ovr"))


def normalised(weights: np.ndarray) -> np.ndarray:
    """Divide weights of shape (levels, n) by their sum, and return shape (n, levels)."""
    # Summed level by level: numpy's own sum adds in another order when n is 1, and not one bit
    # of a subject's value may depend on the block in which it is computed.
    return np.asarray(weights / sum(weights)).T


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return probabilities, shape (n, levels), from scores, shape (levels, n)."""
    return normalised(np.exp(scores - scores.max(axis=0)))


def is_level(previous: pd.Categorical) -> np.ndarray:
    """Return the indicator of each subject's level, shape (levels, n)."""
    return np.asarray(previous.codes == np.arange(len(previous.categories))[:, None])


def stay_or_redraw(
    p_stay: np.ndarray | float, previous: pd.Categorical, redrawn: np.ndarray
) -> np.ndarray:
    r"""Keep the previous level with probability `p_stay`, else draw anew from q.

    .. math:: P(v) = p_\text{stay}\,[v = v_{t-1}] + (1 - p_\text{stay})\,q(v)

    `redrawn` is q, of shape (n, levels) or (1, levels); the result is of shape (n, levels).
    """
    return (p_stay * is_level(previous) + (1 - p_stay) * redrawn.T).T


# --- what a mechanism learns --------------------------------------------------------------


def of_rows(columns: State, rows: Any) -> State:
    """Return the given rows of every column."""
    return {name: column[rows] for name, column in columns.items()}


class Features:
    """How a fitted estimator sees parents: numbers are standardised and levels one-hot."""

    def __init__(self, parents: State):
        numbers = {name: x for name, x in parents.items() if isinstance(x, np.ndarray)}
        # Equal numbers may differ from their mean in the last bit, which does not count as spread.
        scales = {k: (x.mean(), x.std() if np.ptp(x) else 1.0) for k, x in numbers.items()}
        self.scales = dict.fromkeys(parents) | scales

    def matrix(self, parents: State, dtype: type = float) -> np.ndarray:
        """Encode columns of length n as a matrix, shape (n, features), column after column."""
        rows = [self._rows(name, parents[name]) for name in self.scales]
        return np.vstack(rows, dtype=dtype, casting="same_kind").T

    def linear(self, parents: State, weights: np.ndarray, intercepts: np.ndarray) -> np.ndarray:
        """Return linear models' values, (models, n), from weights of shape (models, features).

        Only elementwise sums are used: a matrix product may round differently in another block.
        """
        left, sums = list(weights.T), intercepts[:, None]
        for name, scale in self.scales.items():
            column, width = parents[name], 1 if scale else len(parents[name].categories)
            part, left = np.array(left[:width]).T, left[width:]
            sums = sums + (part * self._rows(name, column) if scale else part[:, column.codes])
        return sums

    def profiles(self, parents: State, *others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the distinct combinations of values of the parents and of any other columns.

        Return one row's number for each, in sorted order, and the place of every row's combination.
        """
        columns: list[Any] = [getattr(parents[k], "codes", parents[k]) for k in self.scales]
        columns += others
        order = np.lexsort(columns[::-1])
        ordered = [column[order] for column in columns]
        differs = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
        first = np.append(True, differs)[: len(order)]  # whether a row is the first of its profile
        place = np.empty(len(order), dtype=int)
        place[order] = first.cumsum() - 1
        return order[first], place

    def _rows(self, name: str, column: Column) -> np.ndarray:
        if scale := self.scales[name]:
            return np.asarray((column - scale[0]) / scale[1])
        return is_level(column)


ALL = slice(None)

#: How a logistic regression is fitted, unless its options say otherwise.
OPTIMUM: dict[str, Any] = {"solver": "newton-cg", "tol": 1e-10, "max_iter": 1000}


class Learned:
    """A scikit-learn estimator that predicts from parents, fitted to columns of the base table."""

    def __init__(self, model: BaseEstimator, parents: State, values: np.ndarray, rows: Any = ALL):
        self.features = Features(parents)
        parents, values, weights = of_rows(parents, rows), values[rows], {}
        # Solvers that go from row to row at random do not converge where a row has a large weight.
        if isinstance(model, LogisticRegression) and model.solver not in ("sag", "saga"):
            # Identical records become one, weighted by their number; a sparse matrix skips zeros.
            first, place = self.features.profiles(parents, values)
            parents, values = of_rows(parents, first), values[first]
            weights = {"sample_weight": np.bincount(place)}
        matrix = np.ascontiguousarray(self.features.matrix(parents))  # stored row by row
        self.estimator = model.fit(csr_array(matrix) if weights else matrix, values, **weights)

    def __call__(self, parents: State) -> np.ndarray:
        """Return a linear model's scores or a forest's predictions, shape (outputs, n)."""
        if not hasattr(self.estimator, "coef_"):
            # Each distinct combination once, and in single precision, in which trees compare.
            rows, place = self.features.profiles(parents)
            matrix = self.features.matrix(of_rows(parents, rows), np.float32)
            return self.forest.means(matrix)[:, place]
        weights, intercepts = self.estimator.coef_, self.estimator.intercept_
        return self.features.linear(parents, np.atleast_2d(weights), np.atleast_1d(intercepts))

    @cached_property
    def forest(self) -> Forest:
        """The estimator's trees, in the form in which they are evaluated."""
        return Forest(self.estimator)


LINEAR = (LinearRegression, Ridge, LogisticRegression, PoissonRegressor)
ESTIMATORS = {of.__name__: of for of in (*LINEAR, RandomForestRegressor, RandomForestClassifier)}


class FittedMechanism(Mechanism):
    """A mechanism that is learned from parents by a scikit-learn `estimator` with `options`."""

    # Not dict[str, Any]: pydantic would then check the keys before `__post_init__` does.
    options: dict = field(default_factory=dict)  # type: ignore[type-arg]

    #: The name of the estimator's class, which a subclass states.
    estimator = ""

    def __post_init__(self) -> None:
        allowed = ESTIMATORS[self.estimator]().get_params()
        check_names("key", self.options, [*parameter_names(type(self)), *allowed], limit=40)

    def learned_from(self, causes: Iterable[str]) -> list[str]:
        return list(causes)

    def estimate(self, parents: State, values: np.ndarray, rows: Any = ALL, **more: Any) -> Learned:
        estimator = ESTIMATORS[self.estimator]()
        known = {name: more[name] for name in more if name in estimator.get_params()}
        return Learned(estimator.set_params(**known | self.options), parents, values, rows)


def parameter_names(kind: type[Any]) -> list[str]:
    """Return the parameters of a mechanism that a specification may give, except `options`."""
    return [field.name for field in fields(kind) if field.name not in ("variable", "options")]


# --- mechanisms without parents ----------------------------------------------------------


class ConstantSampler(Mechanism):
    """The same value for every subject."""

    value: bool | float | str

    stands_alone: ClassVar = True

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        if isinstance(self.value, bool):
            raise self.refusal(f"a level that YAML reads as {self.value} must stand in quotes")
        if isinstance(self.value, str) or isinstance(values, pd.Categorical):
            known = pd.Categorical([self.value]) if values is None else values
            self.levels_ = self.own(known, "levels").dtype
        self.column_ = as_column([self.value], self.levels_, f"variable {self.variable!r}")

    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        return self.column_.repeat(noise.shape[1])


#: Distance from the mean, in standard deviations, beyond which a normal tail needs more care.
FAR = 5


def truncated_normal(noise: np.ndarray, low: float, high: float) -> np.ndarray:
    """Turn uniforms into standard normal values between two bounds."""
    if low > FAR or high < -FAR:
        return np.asarray(truncnorm.ppf(noise, low, high))
    low, high = ndtr(low), ndtr(high)
    return np.asarray(ndtri(low + noise * (high - low)))


class GaussianVariable(NumericMechanism):
    r"""A normal variable with the table's mean and standard deviation.

    .. math:: V = \mu + \sigma\, \Phi^{-1}\bigl(\Phi(a) + U\,(\Phi(b) - \Phi(a))\bigr),

    where :math:`a, b` are the standardised bounds. Drawing again until the (rounded) value lies
    within the bounds would give the same distribution; this takes a single uniform.
    """

    round_result: bool = False
    bounds: Bounds | None = None

    stands_alone: ClassVar = True

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        # The computed mean of equal numbers may differ from them in the last bit.
        self.mean_ = values.mean().clip(values.min(), values.max())
        self.deviation_ = values.std() if np.ptp(values) > 0 else 0.0

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        values = np.full(noise.shape[1], self.mean_)
        if self.deviation_ > 0:
            low, high = self.bounds or (-np.inf, np.inf)
            if self.round_result:  # a value counts if it rounds into the bounds
                low, high = np.ceil(low) - 0.5, np.floor(high) + 0.5
            bounds = (np.array([low, high]) - self.mean_) / self.deviation_
            values = self.mean_ + self.deviation_ * truncated_normal(noise[0], *bounds)
        return bounded(values, self.round_result, self.bounds)


def bounded(values: np.ndarray, round_result: bool, bounds: Bounds | None) -> np.ndarray:
    """Round, and clip to the bounds; rounded values, to the whole numbers within the bounds."""
    if round_result:
        values = np.round(values)
        bounds = bounds and (float(np.ceil(bounds[0])), float(np.floor(bounds[1])))
    return values if bounds is None else np.clip(values, *bounds)


class EmpiricalVariable(NumericMechanism):
    r"""A number with the table's own distribution, whatever its shape.

    .. math:: V = \min\{v : \hat F(v) \ge U\}
    """

    stands_alone: ClassVar = True

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        self.values_ = np.sort(values)

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        return np.asarray(np.quantile(self.values_, noise[0], method="inverted_cdf"))


class MultinomialVariable(CategoricalMechanism):
    """A category with the table's frequencies."""

    fitted_to: ClassVar = "levels"
    stands_alone: ClassVar = True

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        self.frequencies_ = np.bincount(values.codes, minlength=self.noise_terms) / len(values)

    def probabilities(self, parents: Parents) -> np.ndarray:
        return self.frequencies_[None, :]


class BernoulliVariable(MultinomialVariable):
    """A variable of two levels with the table's frequencies."""

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        if self.noise_terms != 2:
            raise self.refusal(f"BernoulliVariable needs two levels, found {self.noise_terms}")
        super().learn(parents, values, seed)


# --- mechanisms of the previous value alone ----------------------------------------------


class KeepPrevious(Mechanism):
    """The previous value, unchanged; a specification calls this mechanism ``None``."""

    continues: ClassVar[bool] = True
    stands_alone: ClassVar = True

    def evaluate(self, parents: Parents, noise: np.ndarray) -> Column:
        return parents.previous[self.variable]


class IncrementSampler(Mechanism):
    """The previous value plus a constant."""

    increment: float = 1.0

    continues: ClassVar[bool] = True
    stands_alone: ClassVar = True

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        return np.asarray(parents.previous[self.variable] + self.increment)


# --- fitted classifiers ------------------------------------------------------------------


class LogisticSampler(FittedMechanism, CategoricalMechanism):
    r"""A logistic regression on standardised parents, with the penalty C = 1 unless `C` is `.inf`.

    .. math:: P(v \mid x) \propto \exp(\beta_v^\top x + \beta_{v0})
    """

    estimator = "LogisticRegression"
    fitted_to: ClassVar = "levels"
    seeded: ClassVar[bool] = False

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        if absent := len(set(values.categories).difference(values)):
            raise self.refusal(f"{absent} of its levels do not occur in the table")
        # Fitted to the optimum, which depends neither on the processor nor on the order of records.
        # Where other solvers stop by their tolerance, probabilities of rare records are off by up
        # to 0.07 on Adult. The random state matters only to solvers that shuffle.
        self.model_ = self.estimate(parents, values.codes, **OPTIMUM, random_state=0)

    def scores(self, parents: Parents) -> np.ndarray:
        """Return the log probability of each level up to a constant, shape (levels, n)."""
        scores = self.model_(parents)
        return scores if len(scores) > 1 else np.vstack([0 * scores, scores])

    def probabilities(self, parents: Parents) -> np.ndarray:
        return softmax(self.scores(parents))


class LogisticTransitionSampler(LogisticSampler):
    r"""A logistic regression on today's parents that favours the previous level.

    .. math::
        P(v) = p_\text{stay}\,[v = v_{t-1}]
        + (1 - p_\text{stay})\,\mathrm{softmax}_v(\beta_v^\top x + c_\text{prev}\,[v = v_{t-1}])
    """

    c_prev: float = 0.0
    p_stay: Probability = 0.0

    continues: ClassVar[bool] = True

    def probabilities(self, parents: Parents) -> np.ndarray:
        previous = parents.previous[self.variable]
        redrawn = softmax(self.scores(parents) + self.c_prev * is_level(previous))
        return stay_or_redraw(self.p_stay, previous, redrawn)


class RandomForestClassifierSampler(FittedMechanism, CategoricalMechanism):
    """A random forest's class probabilities."""

    estimator = "RandomForestClassifier"
    fitted_to: ClassVar = "levels"

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        self.model_ = self.estimate(parents, values.codes, random_state=seed)

    def probabilities(self, parents: Parents) -> np.ndarray:
        seen = self.model_(parents)
        probabilities = np.zeros((len(self.levels_.categories), seen.shape[1]))
        probabilities[self.model_.estimator.classes_] = seen
        return probabilities.T


# --- fitted regressions with noise -------------------------------------------------------


class GaussianRegressionSampler(FittedMechanism, NumericMechanism):
    r"""A regression on the parents plus normal noise of the size of its error.

    .. math:: V = \hat f(x) + c\,\sqrt{\mathrm{MSE}}\;\Phi^{-1}(U)

    (IncomeSCM paper, Section 3.3). With `round_result`, V is rounded; it is clipped to the bounds;
    c is `std_mod`. Ridge has the penalty alpha = 1 on standardised parents, LinearRegression none.
    """

    estimator: Literal["LinearRegression", "Ridge", "RandomForestRegressor"] = "Ridge"
    round_result: bool = False
    bounds: Bounds | None = None
    std_mod: Annotated[float, Field(ge=0)] = 1.0

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        rows = self.rows(values)
        self.model_ = self.estimate(parents, values, rows, random_state=seed)
        self.error_ = float(np.sqrt(np.mean((values - self.predict(parents))[rows] ** 2)))

    def rows(self, values: np.ndarray) -> slice | np.ndarray:
        return ALL

    def predict(self, parents: Parents) -> np.ndarray:
        """Return the regression's mean, shape (n,)."""
        return self.model_(parents)[0, :]

    def deviation(self, noise: np.ndarray) -> np.ndarray:
        """Return the noise in the variable's units, shape (n,)."""
        return np.asarray(self.std_mod * self.error_ * ndtri(noise[0]))

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        values = self.predict(parents) + self.deviation(noise)
        return bounded(values, self.round_result, self.bounds)

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float]:
        rows = self.rows(values)
        return "R²", float(r2_score(values[rows], self.predict(parents)[rows]))


class LinearGaussianSampler(GaussianRegressionSampler):
    """A linear regression by least squares plus normal noise."""

    estimator: Literal["LinearRegression"] = "LinearRegression"


class GaussianRandomForestSampler(GaussianRegressionSampler):
    """A random forest regressor plus normal noise."""

    estimator: Literal["RandomForestRegressor"] = "RandomForestRegressor"


class UniformRegressionSampler(GaussianRegressionSampler):
    r"""A regression plus uniform noise with the standard deviation of its error.

    .. math:: V = \hat f(x) + c\,\sqrt{3\,\mathrm{MSE}}\;(2U - 1)
    """

    def deviation(self, noise: np.ndarray) -> np.ndarray:
        return np.asarray(self.std_mod * self.error_ * np.sqrt(3) * (2 * noise[0] - 1))


class ZeroOrGaussianRegressionSampler(GaussianRegressionSampler):
    r"""Zero with a fitted probability, otherwise a regression with noise.

    .. math::
        V = [U_0 > \hat p_0(x)]\;
        \bigl(\hat f(x) + c\,\sqrt{\mathrm{MSE}}\;\Phi^{-1}(U_1)\bigr)

    The classifier of zeros, a logistic regression with C = 1, is fitted to all records; the
    regression, and its R², is of those that are not zero (IncomeSCM paper, Section 3.3). Where
    bounds begin at 0, lower draws are clipped to it, so there are more zeros than are fitted.
    """

    zero_estimator: Literal["LogisticRegression"] = "LogisticRegression"

    noise_terms: ClassVar = 2

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        zero = ~self.rows(values)
        if zero.all() or not zero.any():
            found = f"found {zero.sum():,} zeros of {len(values):,}"
            raise self.refusal(f"{type(self).__name__} needs zeros and other values, {found}")
        self.is_zero_ = Learned(LogisticRegression(**OPTIMUM), parents, zero)
        super().learn(parents, values, seed)

    def rows(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values != 0)

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        values = super().evaluate(parents, noise[1:])
        return np.where(noise[0] < expit(self.is_zero_(parents)[0]), 0.0, values)


#: Above this, neighbouring counts differ so little that the search for a quantile may never end.
MOST_COUNTS = 1e12


class NegativeBinomialSampler(FittedMechanism, NumericMechanism):
    r"""A count with the mean of a Poisson regression on the parents, but more variance.

    .. math::
        V = F^{-1}_{\mu, \alpha}(U), \qquad
        \mu = E[V \mid x] = \exp(\beta^\top x + \beta_0), \qquad
        \mathrm{Var}(V \mid x) = \mu + \alpha \mu^2,

    with F negative binomial and :math:`\alpha = \sum_i ((v_i - \mu_i)^2 - \mu_i) / \sum_i \mu_i^2`
    over records, at least 1e-6, by moments (Cameron and Trivedi 2005, Microeconometrics, ch. 20).
    """

    estimator = "PoissonRegressor"
    seeded: ClassVar[bool] = False

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        self._check_counts(values[(values < 0) | (values % 1 != 0) | (values > MOST_COUNTS)])
        if not values.any():
            raise self.refusal(f"{type(self).__name__} needs counts, not all of them 0")
        # The library's default penalty would shrink effects; its tolerance would end the fit early.
        self.model_ = self.estimate(parents, values, alpha=0, max_iter=10_000, tol=1e-8)
        mean = self.mean(parents)
        excess = ((values - mean) ** 2 - mean).sum() / (mean**2).sum()
        self.dispersion_ = max(float(excess), 1e-6)  # nearly a Poisson distribution, which has 0

    def mean(self, parents: Parents) -> np.ndarray:
        """Return the expected count, shape (n,)."""
        with np.errstate(over="ignore"):  # towards inf, which is refused
            return np.asarray(np.exp(self.model_(parents)[0]))

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        alpha, mean = self.dispersion_, self.mean(parents)
        self._check_counts(mean[~(mean <= MOST_COUNTS)])
        return np.asarray(nbinom.ppf(noise[0], 1 / alpha, 1 / (1 + alpha * mean)))

    def _check_counts(self, wrong: np.ndarray) -> None:
        if len(wrong):
            rule = f"{type(self).__name__} needs counts from 0 to {MOST_COUNTS:g}"
            raise self.refusal(f"{rule}, found {wrong[0]:g}")

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float]:
        return "R²", float(r2_score(values, self.mean(parents)))


def named(names: Mapping[str, Any]) -> dict[str, type[Mechanism]]:
    """Return the mechanisms among these values that are not abstract, by their class names."""
    classes = filter(inspect.isclass, names.values())
    found = [kind for kind in classes if issubclass(kind, Mechanism)]
    return {kind.__name__: kind for kind in found if not inspect.isabstract(kind)}


#: The names that a specification may use, and the mechanisms that they stand for.
MECHANISMS: dict[str, type[Mechanism]] = {
    "None": KeepPrevious,
    "gaussian": GaussianVariable,
    "multinomial": MultinomialVariable,
    "bernoulli": BernoulliVariable,
    **named(globals()),
}
