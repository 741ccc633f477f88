"""The mechanisms that are particular to IncomeSCM.

What census data cannot show is designed by hand: nobody is seen twice, so no transition can be
fitted, and nobody's `studies` are recorded at all. The constants are those of IncomeSCM-1.0
(Johansson 2024, arXiv:2405.16069) or, where the paper has none, of its reference implementation.
"""

# An overriding method is documented where it is first defined, and in the docstring of its class.
# ruff: noqa: D102

import functools
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import AliasChoices, Field
from scipy.special import expit, ndtri
from scipy.stats import beta
from scipy.stats.sampling import NumericalInversePolynomial
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import roc_auc_score

from lib import noise as addressed
from lib.adult import EDUCATION_LEVELS
from lib.errors import check_names
from lib.scm.mechanisms import (
    CategoricalMechanism,
    Column,
    Learned,
    Mechanism,
    MultinomialVariable,
    Parents,
    Probability,
    RandomForestClassifierSampler,
    State,
    ZeroOrGaussianRegressionSampler,
    bounded,
    is_level,
    named,
    normalised,
    of_rows,
    stay_or_redraw,
)

FULL_TIME, DAY = "Full-time studies", "Day course"
EVENING, NO_STUDIES = "Evening course", "No studies"

#: The levels of `studies`, which Adult does not have.
STUDIES = pd.CategoricalDtype([NO_STUDIES, EVENING, DAY, FULL_TIME])

#: The levels of `income` in Adult.
INCOMES = pd.CategoricalDtype(["<=50K", ">50K"])

#: Studies → the part of a year's income that is earned during them, where it is not all.
PAID = {FULL_TIME: 0.0, DAY: 4 / 5}

#: Unfinished education → the factor by which its full-time students tend to go on.
GOES_ON = dict.fromkeys([*EDUCATION_LEVELS[:8], "Some-college", "Assoc-voc", "Assoc-acdm"], 5.0)


# --- education ---------------------------------------------------------------------------


class EducationNumSampler(Mechanism):
    """The rank of `education`, from 1 (Preschool) to 16 (Doctorate)."""

    reads: ClassVar = ("education",)

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        ranks = {level: float(rank) for rank, level in enumerate(EDUCATION_LEVELS, start=1)}
        return _by_level(parents["education"], ranks, otherwise=np.nan)


class EducationTransition(CategoricalMechanism):
    """Rise by one level, never past Doctorate, depending on last year's studies.

    The probability of a rise is 0.95 after full-time studies, 0.10 after a day course, 0.05 after
    an evening course, and 0 without studies.
    """

    fitted_to: ClassVar = pd.CategoricalDtype(EDUCATION_LEVELS)
    reads_previous: ClassVar = ("studies",)

    def probabilities(self, parents: Parents) -> np.ndarray:
        previous, studies = parents.previous[self.variable], parents.previous["studies"]
        rise = _by_level(studies, {FULL_TIME: 0.95, DAY: 0.10, EVENING: 0.05}, otherwise=0.0)
        above = np.minimum(previous.codes + 1, len(EDUCATION_LEVELS) - 1)
        return stay_or_redraw(1 - rise, previous, np.eye(len(EDUCATION_LEVELS))[above])


def _by_level(column: pd.Categorical, numbers: dict[str, float], otherwise: float) -> np.ndarray:
    """Return the number that goes with each subject's level, shape (n,)."""
    of_level = [numbers.get(level, otherwise) for level in column.categories]
    return np.asarray(np.take(of_level, column.codes))


# --- work and family ---------------------------------------------------------------------


class WorkclassTransition(MultinomialVariable):
    """Keep the class of work with probability `p_stay` or draw from the table's frequencies.

    Subjects without pay always draw; after a year of full-time studies everybody is without pay.
    """

    p_stay: Probability = 0.95

    reads_previous: ClassVar = ("studies",)

    def probabilities(self, parents: Parents) -> np.ndarray:
        previous = parents.previous[self.variable]
        p_stay = np.where(previous == "Without-pay", 0.0, self.p_stay)
        free = stay_or_redraw(p_stay, previous, self.frequencies_[None, :])
        unpaid = np.array([level == "Without-pay" for level in self.levels_.categories], float)
        student = parents.previous["studies"] == FULL_TIME
        return np.where(student, unpaid[:, None], free.T).T


MaritalStatus = Literal["Never-married", "Married", "Divorced", "Separated", "Widowed"]


class MaritalStatusTransition(RandomForestClassifierSampler):
    r"""Marital status follows age, and mostly stays.

    .. math::
        P(v) \propto r_v(\text{age})\,w_v\,[v_{t-1} \to v \text{ is allowed}]
        + a_\text{stay}\,[v = v_{t-1}]

    where r is a random forest's distribution given age alone. The weights w are those of
    `after_studies` for the never-married in the year after full-time studies, and 1 otherwise.
    IncomeSCM-1.0 computes such weights and never uses them; version 1.1 uses them.
    """

    a_stay: Annotated[float, Field(gt=0)] = 5.0
    after_studies: dict[MaritalStatus, Annotated[float, Field(ge=0)]] | None = None

    #: Status → the other statuses that may follow it; a status may always follow itself.
    ALLOWED: ClassVar = {
        "Never-married": ("Married",),
        "Married": ("Divorced", "Separated", "Widowed"),
        "Divorced": ("Married",),
        "Separated": ("Married", "Divorced", "Widowed"),
        "Widowed": ("Married",),
    }

    reads: ClassVar = ("age",)
    reads_previous: ClassVar = ("studies",)

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        levels, weights = list(self.levels_.categories), self.after_studies or {}
        check_names(f"variable {self.variable!r}: level", levels, self.ALLOWED)
        super().learn(Parents({"age": parents["age"]}), values, seed)
        self.allowed_ = np.array(
            [[to == v or to in self.ALLOWED[v] for v in levels] for to in levels], dtype=float
        )
        self.weights_ = np.array([weights.get(level, 1.0) for level in levels])

    def learned_from(self, causes: Iterable[str]) -> list[str]:
        return ["age"]

    def probabilities(self, parents: Parents) -> np.ndarray:
        previous = parents.previous[self.variable]
        moved = (previous == "Never-married") & (parents.previous["studies"] == FULL_TIME)
        by_age = super().probabilities(parents).T * np.where(moved, self.weights_[:, None], 1.0)
        allowed = self.allowed_[:, previous.codes]
        return normalised(by_age * allowed + self.a_stay * is_level(previous))


class RelationshipTransition(CategoricalMechanism):
    """Keep the level, or draw from the initial model, `sampler`, at today's parents."""

    sampler: CategoricalMechanism
    p_stay: Probability = 0.9

    levels_ = property(lambda self: self.sampler.levels_)

    def stay(self, parents: Parents) -> np.ndarray | float:
        """Return the probability of keeping the level."""
        return self.p_stay

    def probabilities(self, parents: Parents) -> np.ndarray:
        redrawn = self.sampler.probabilities(parents)
        return stay_or_redraw(self.stay(parents), parents.previous[self.variable], redrawn)


class OccupationTransition(RelationshipTransition):
    """Keep the occupation, or draw from the initial model at today's parents.

    In the year after full-time studies `p_stay_after_studies`, if given, is the probability of
    staying. IncomeSCM-1.0 means to use a quarter of `p_stay` and, by a slip of indexing, does so
    for two subjects only; version 1.1 does so for all.
    """

    p_stay_after_studies: Probability | None = None

    reads_previous: ClassVar = ("studies",)

    def stay(self, parents: Parents) -> np.ndarray | float:
        after = self.p_stay_after_studies
        student = parents.previous["studies"] == FULL_TIME
        return np.where(student, self.p_stay if after is None else after, self.p_stay)


class HoursPerWeekTransition(Mechanism):
    r"""A weighted mean of last year's hours and a draw of the initial model.

    .. math:: V_t = w\,V_{t-1} + (1 - w)\,f(x_t, U), \qquad w = 0.9,

    rounded, and kept between 0 and the 168 hours of a week.
    """

    sampler: Mechanism
    prev_weight: Probability = 0.9

    noise_terms = property(lambda self: self.sampler.noise_terms)

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        drawn = self.sampler.evaluate(parents, noise)
        hours = self.prev_weight * parents.previous[self.variable] + (1 - self.prev_weight) * drawn
        return bounded(hours, True, (0, 168))


class CapitalTransition(Mechanism):
    """Stay with probability 0.8, else draw from the initial model at today's parents.

    A subject that stays at 0 keeps 0; one that stays elsewhere moves by the normal noise of the
    initial model, within its bounds. Values are rounded to whole dollars.
    """

    sampler: ZeroOrGaussianRegressionSampler
    p_stay: Probability = 0.8

    #: One for whether to stay, one for how far to move, and those of the initial model.
    noise_terms: ClassVar = 2 + ZeroOrGaussianRegressionSampler.noise_terms

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        previous = parents.previous[self.variable]
        moved = bounded(previous + self.sampler.deviation(noise[1:2]), True, self.sampler.bounds)
        moved[previous == 0] = 0
        redrawn = self.sampler.evaluate(parents, noise[2:])
        return np.round(np.where(noise[0] < self.p_stay, moved, redrawn))


# --- studies -----------------------------------------------------------------------------


class StudiesSampler(CategoricalMechanism):
    r"""Whether and how somebody studies in the first year, designed by hand.

    .. math:: P(v) \propto \mathrm{logistic}(s_v / 1.2),

    with a score s for each level that depends on age, living with one's parents, and education.
    """

    reads: ClassVar = ("age", "education", "education-num", "relationship")

    #: Scores, at the age of 25, of (No studies, Evening course, Day course, Full-time studies).
    AT_25: ClassVar = (7.0, -5.0, -3.5, 3.0)

    levels_ = STUDIES

    def probabilities(self, parents: Parents) -> np.ndarray:
        rank = parents["education-num"]
        shifts = [
            ((2.0, 1.0, 0.0, -0.5), parents["age"] - 25),
            ((3.0, 0.0, 0.0, -10.0), parents["relationship"] == "Own-child"),
            ((0.0, 0.0, 0.0, 5.0), (rank <= 12) & (rank != 9)),  # unfinished: 9 is high school
            ((0.0, -4.0, -4.0, -4.0), parents["education"] == "Bachelors"),
            ((0.0, -2.0, -2.0, -2.0), parents["education"] == "HS-grad"),
        ]
        changes = (np.array(by_level)[:, None] * indicator for by_level, indicator in shifts)
        return normalised(expit(sum(changes, np.array(self.AT_25)[:, None]) / 1.2))


class StudiesTransition(CategoricalMechanism):
    """The initial model at today's parents, changed by last year's studies and income.

    Its probabilities are multiplied and then normalised: full-time studies by 5 for full-time
    students of an unfinished education, and by 0.05 for everyone who was not a full-time student;
    after a year's income above $50 000, full-time studies by 0.2 and day courses by 0.44; with a
    Doctorate, full-time studies by 0.
    """

    sampler: CategoricalMechanism

    reads: ClassVar = ("education",)
    reads_previous: ClassVar = ("income",)

    levels_ = STUDIES

    def probabilities(self, parents: Parents) -> np.ndarray:
        none, evening, day, full_time = self.sampler.probabilities(parents).T
        student = parents.previous[self.variable] == FULL_TIME
        rich = parents.previous["income"] > 50_000
        education = parents["education"]
        full_time = full_time * np.where(student, _by_level(education, GOES_ON, 1.0), 0.05)
        full_time = full_time * np.where(rich, 0.2, 1.0)
        full_time = np.where(education == "Doctorate", 0.0, full_time)
        day = day * np.where(rich, 0.44, 1.0)
        return normalised(np.array([none, evening, day, full_time]))


# --- income ------------------------------------------------------------------------------


class IncomeSampler(Mechanism):
    r"""Yearly income in US dollars, from a forest that predicts income above $50 000.

    The forest predicts the one thing that Adult records about income. With normal noise, this gives
    a level, which is scaled to a mean of $70 000 and to which an upper tail is added:

    .. math::
        q &= \max(\hat f(x) + 0.2\,\Phi^{-1}(U_0) + 0.3,\; 0)^2, \qquad
        s = \lfloor 70\,000\; q / \bar q \rfloor, \\
        V &= s\,(1 - \sqrt\beta) + [s > 0]\;B\,b\,\sqrt\beta, \qquad
        B = F^{-1}_{\mathrm{Beta}(1.2,\,20.5)}(U_1),

    where :math:`\beta` is the forest's in-sample Brier score, :math:`\bar q` the mean of q over the
    table and b its largest s, with one draw of noise per record. Full-time students and people
    without pay earn nothing, and during a day course 4/5 is earned. As the maximum of a noisy draw,
    b moves by several per cent with the seed of the fit, and the mean income by about one.
    """

    noise_terms: ClassVar[int] = 2

    reads: ClassVar = ("studies", "workclass")
    MEAN_INCOME: ClassVar = 70_000
    NOISE: ClassVar = 0.2
    SHIFT: ClassVar = 0.3

    def learn(self, parents: Parents, values: Any, seed: int) -> None:
        rich = self._indicator(values)
        observed = {name: parents[name] for name in self.learned_from(parents)}
        forest = RandomForestRegressor(min_samples_leaf=20, random_state=seed)
        self.is_rich_ = Learned(forest, observed, rich)
        predicted = self.predict(parents)
        self.root_brier_ = float(np.sqrt(np.mean((rich - predicted) ** 2)))
        drawn = addressed.uniforms(seed, f"{self.variable} in the table", n=len(rich))
        squares = self._square(predicted, drawn[0])
        self.scale_ = self.MEAN_INCOME / squares.mean()
        self.largest_ = float(np.floor(squares * self.scale_).max())

    def learned_from(self, causes: Iterable[str]) -> list[str]:
        """Return all parents but studies, whose effect is designed by hand."""
        return [cause for cause in causes if cause != "studies"]

    def predict(self, parents: State) -> np.ndarray:
        """Return the forest's probability of an income above $50 000, shape (n,)."""
        return self.is_rich_(parents)[0, :]

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        paid = _by_level(parents["studies"], PAID, 1.0) * (parents["workclass"] != "Without-pay")
        income, earns = np.zeros(len(paid)), paid > 0  # the forest is only asked about these
        predicted = self.predict(of_rows(parents, earns))
        level = np.floor(self._square(predicted, noise[0, earns]) * self.scale_)
        tail = np.where(level > 0, _tail().ppf(noise[1, earns]), 0.0)
        income[earns] = level * (1 - self.root_brier_) + tail * self.largest_ * self.root_brier_
        return np.asarray(np.round(income * paid))

    def fit_quality(self, parents: Parents, values: Column) -> tuple[str, float]:
        return "AUC", float(roc_auc_score(self._indicator(values), self.predict(parents)))

    def _square(self, predicted: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return np.maximum(predicted + self.NOISE * np.asarray(ndtri(noise)) + self.SHIFT, 0) ** 2

    def _indicator(self, values: Column | None) -> np.ndarray:
        return np.asarray(self.own(values, INCOMES).codes, dtype=float)


@functools.cache
def _tail() -> NumericalInversePolynomial:
    """Return the inverse distribution function of Beta(1.2, 20.5), 70 times as fast as SciPy's."""
    options = {"domain": (0, 1), "u_resolution": 1e-12, "random_state": 0}
    return NumericalInversePolynomial(beta(1.2, 20.5), **options)


#: A parameter, and how the public files misspell it.
RAISE = AliasChoices("max_raise_frac", "self.max_raise_frac")


class IncomeTransition(Mechanism):
    r"""Mostly last year's income with a raise, and a little of what today's situation gives.

    .. math:: V_t = w\,V_{t-1}\,(1 + r\,U) + (1 - w)\,\tilde V_t

    where :math:`\tilde V_t` is a draw of the initial model at today's parents and, unless it is 0,
    up to $1 000 more after a day course and up to $100 after an evening course; r is
    `max_raise_frac`. The weight w is 0.95, but 0 for those who begin or end full-time studies, are
    without pay, or earned less than $5 000. Full-time students earn nothing; during a day course
    4/5 of the sum is earned, although the draw is already one of such a year.
    """

    sampler: IncomeSampler
    prev_weight: Probability = 0.95
    max_raise_frac: Annotated[float, Field(ge=0, validation_alias=RAISE)] = 0.05

    reads: ClassVar = ("studies", "workclass")
    reads_previous: ClassVar = ("studies",)

    #: One for what a course brings, one for the raise, and those of the initial model.
    noise_terms: ClassVar = 2 + IncomeSampler.noise_terms

    def evaluate(self, parents: Parents, noise: np.ndarray) -> np.ndarray:
        previous, studied = parents.previous[self.variable], parents.previous["studies"]
        drawn = self.sampler.evaluate(parents, noise[2:])
        course = _by_level(studied, {DAY: 1000.0, EVENING: 100.0}, otherwise=0.0)
        drawn = np.where(drawn > 0, drawn + course * noise[0], drawn)
        starts_afresh = (
            ((studied == FULL_TIME) != (parents["studies"] == FULL_TIME))
            | (parents["workclass"] == "Without-pay")
            | (previous < 5_000)
        )
        weight = np.where(starts_afresh, 0.0, self.prev_weight)
        kept = previous * (1 + self.max_raise_frac * noise[1])
        income = weight * kept + (1 - weight) * drawn
        return np.asarray(np.round(income * _by_level(parents["studies"], PAID, otherwise=1.0)))


#: The names that a specification of IncomeSCM may use beside the general ones.
MECHANISMS: dict[str, type[Mechanism]] = named(globals())
