"""Interventions: what is done to a variable, at which steps.

``do={"studies": {1: "Full-time studies"}}`` sets `studies` at step 1 and leaves it
free before and after; ``do={"studies": "No studies"}`` holds it at every step; a
key ``range(1, 4)`` stands for several steps. What is done is one of

- a constant: a number, or a level;
- a value per subject: an array, or a Series indexed by subject;
- a rule (a dynamic policy): a function of two data frames, the values of the
  current step so far, among them the one the variable would have had, and those of the
  previous step; with a third argument it also gets one uniform a subject;
- a :class:`StochasticPolicy`: a distribution over levels;
- another world, as :meth:`~lib.scm.simulator.Simulator.sample` returned it: the
  variable takes the values it had there (nested counterfactuals).
"""

import inspect
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import InputError, one_of
from lib.noise import uniforms
from lib.scm.mechanisms import COUPLINGS, Column, as_levels

#: The kind of a variable: its levels, or None if it is a number.
Levels = pd.CategoricalDtype | None


class StochasticPolicy:
    """Draw the level of a variable from a distribution of your own.

    The draw has noise of its own, so the mechanism's noise stays what it was.

    Parameters
    ----------
    probabilities : mapping of str to float, or callable
        The probability of each level; levels that are not named have none. A
        callable gets the frames of the current and the previous step, and returns
        such a mapping, of numbers or of one array a level.

    Examples
    --------
    >>> coin = StochasticPolicy({"No studies": 0.5, "Full-time studies": 0.5})
    >>> trial = {"studies": {1: coin}}
    """

    def __init__(self, probabilities: Mapping[str, float] | Callable):
        if isinstance(probabilities, Mapping):
            total = float(sum(probabilities.values()))
            if min(probabilities.values(), default=-1) < 0 or not np.isclose(total, 1):
                raise InputError(
                    "the probabilities of a policy must be 0 or more and sum to 1: found "
                    f"{dict(probabilities)}"
                )
        self.probabilities = probabilities

    def matrix(self, now: pd.DataFrame, before: pd.DataFrame, levels: Levels) -> np.ndarray:
        """Return the probability of each level, shape (n, levels)."""
        given = self.probabilities
        given = given if isinstance(given, Mapping) else given(now, before)
        matrix = np.zeros((len(now), len(levels.categories)))
        for level, probability in given.items():
            matrix[:, levels.categories.get_loc(_known(level, levels, "the policy"))] = probability
        if (matrix < 0).any() or not np.allclose(matrix.sum(axis=1), 1):
            raise InputError("the probabilities of a policy must be 0 or more and sum to 1")
        return matrix


@dataclass(frozen=True)
class Situation:
    """Where an intervention happens: the variable, the step, the subjects, the world's noise."""

    variable: str
    levels: Levels
    step: int
    subjects: np.ndarray
    seed: int
    coupling: str


class Interventions:
    """All that is done in a world, checked before anything is drawn.

    Parameters
    ----------
    do : mapping, optional
        Of variables to what is done, or to a mapping of steps to what is done.
    kinds : mapping of str to Levels
        The variables, and the levels of each.
    steps : range
        The steps that are simulated.
    n, first : int
        Number of subjects, and the first of them.

    Raises
    ------
    InputError
        For an unknown variable or level, a step that is not simulated, a value of
        another kind or length, or a world that lacks what is asked of it.
    """

    def __init__(
        self, do: Mapping | None, kinds: Mapping[str, Levels], steps: range, n: int, first: int = 0
    ):
        self.actions: dict[tuple[str, int], Any] = {}
        self.first = first
        if do is not None and not isinstance(do, Mapping):
            raise InputError(f"do must map variables to what is done: found {do!r}")
        for variable, what in (do or {}).items():
            if variable not in kinds:
                raise InputError(f"do: variable {variable!r} is unknown: {one_of(kinds, limit=50)}")
            by_step = what if isinstance(what, Mapping) else {steps: what}
            for key, action in by_step.items():
                for step in key if isinstance(key, range) else [key]:
                    place = f"do: {variable!r} at step {step}"
                    if isinstance(step, bool) or step not in steps:
                        raise InputError(
                            f"{place}: the steps simulated are {steps.start} to {steps.stop - 1}"
                        )
                    self.actions[variable, int(step)] = _checked(
                        action, place, variable, kinds[variable], int(step), n, first
                    )

    def __contains__(self, place: tuple[str, int]) -> bool:
        return place in self.actions

    def reads_others(self, variable: str) -> bool:
        """Say whether a rule or policy acts on the variable at some step."""
        return any(
            name == variable and isinstance(action, _FUNCTIONS)
            for (name, _), action in self.actions.items()
        )

    def needs_natural_value(self, variable: str, step: int) -> bool:
        """Say whether what is done at this step may look at the value without intervention."""
        return isinstance(self.actions[variable, step], _FUNCTIONS)

    def value(
        self, where: Situation, now: Mapping[str, Column], before: Mapping[str, Column]
    ) -> Column:
        """Return what the variable is set to, one value a subject."""
        action = self.actions[where.variable, where.step]
        n = len(where.subjects)
        if isinstance(action, _FUNCTIONS):
            place = f"the rule for {where.variable!r} at step {where.step}"
            frames = [_frame(columns, where.subjects) for columns in (now, before)]
            noise = uniforms(
                where.seed,
                f"{where.variable}, set by a policy",
                where.step,
                n,
                1 if where.levels is None else len(where.levels.categories),
                int(where.subjects[0]),
            )
            try:
                if isinstance(action, StochasticPolicy):
                    matrix = action.matrix(*frames, where.levels)
                    codes = COUPLINGS[where.coupling](matrix, noise)
                    return pd.Categorical.from_codes(codes, dtype=where.levels)
                given = action(*frames, *([noise[0]] if _takes_noise(action) else []))
            except KeyError as error:
                known = one_of([*now, *(f"{name} (previous)" for name in before)], limit=50)
                raise InputError(
                    f"{place} reads {error.args[0]!r}, which is not known by then: {known}"
                ) from error
            if isinstance(given, pd.Series):
                given = given.array
            action = np.full(n, given) if np.ndim(given) == 0 else given
            return _column(action, place, where.levels, n)
        if isinstance(action, _Constant):
            return action.column.repeat(n)
        offset = int(where.subjects[0]) - self.first
        return action[offset : offset + n]


@dataclass(frozen=True)
class _Constant:
    """The same value for everyone, as a column of length 1."""

    column: Column


_FUNCTIONS = (Callable, StochasticPolicy)


def _checked(
    action: Any, place: str, variable: str, levels: Levels, step: int, n: int, first: int
) -> Any:
    """Return the action in its final form: a function, a constant, or a column of length n."""
    subjects = np.arange(first, first + n)
    if isinstance(action, StochasticPolicy):
        if levels is None:
            raise InputError(f"{place}: a StochasticPolicy needs levels: write a rule with noise")
        if isinstance(action.probabilities, Mapping):
            for level in action.probabilities:
                _known(level, levels, place)
        return action
    if callable(action):
        return action
    if isinstance(action, pd.DataFrame):
        return _from_world(action, place, variable, levels, step, subjects)
    if isinstance(action, pd.Series):
        absent = subjects[~np.isin(subjects, action.index)]
        if len(absent):
            raise InputError(f"{place}: the Series has no value for subject {absent[0]}")
        return _column(action.loc[subjects].array, place, levels, n)
    if np.ndim(action) == 0:
        return _Constant(_column([action], place, levels, 1))
    return _column(action, place, levels, n)


def _column(values: Any, place: str, levels: Levels, n: int) -> Column:
    """Return values as a column of the variable's kind, or say what is wrong with them."""
    if len(values) != n:
        raise InputError(f"{place}: one value a subject is needed, {n}: found {len(values)}")
    if np.ndim(values) != 1:
        raise InputError(f"{place}: one value a subject is needed: found shape {np.shape(values)}")
    if levels is None:
        column = np.asarray(values)
        if column.dtype.kind not in "biuf":  # numpy would make a number of the text "40"
            column = np.array([v if isinstance(v, numbers.Real) else np.nan for v in values])
        wrong = ~np.isfinite(column)
        if wrong.any():
            found = plain(values[int(wrong.argmax())])
            raise InputError(f"{place}: finite numbers are needed: found {found!r}")
        return column.astype(float)
    column = as_levels(values, levels)
    if (column.codes < 0).any():
        unknown = next(v for v, code in zip(values, column.codes, strict=True) if code < 0)
        _known(unknown, levels, place)
    return column


def _known(level: Any, levels: pd.CategoricalDtype, place: str) -> Any:
    if level not in levels.categories:
        raise InputError(
            f"{place}: level {plain(level)!r} is unknown: {one_of(levels.categories, limit=50)}"
        )
    return level


def plain(value: Any) -> Any:
    """Return numpy's scalars as Python's own, which a message shows without their type."""
    return value.item() if isinstance(value, np.generic) else value


def _from_world(
    world: pd.DataFrame, place: str, variable: str, levels: Levels, step: int, subjects: np.ndarray
) -> Column:
    for column in ("subject", "t", variable):
        if column not in world:
            raise InputError(f"{place}: the other world has no column {column!r}")
    then = world.loc[world["t"] == step].set_index("subject")[variable]
    absent = subjects[~np.isin(subjects, then.index)]
    if len(absent):
        raise InputError(f"{place}: the other world has no subject {absent[0]} at step {step}")
    return _column(then.loc[subjects].array, place, levels, len(subjects))


def _frame(columns: Mapping[str, Column], subjects: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(dict(columns), index=pd.Index(subjects, name="subject"))


def _takes_noise(rule: Callable) -> bool:
    return len(inspect.signature(rule).parameters) == 3
