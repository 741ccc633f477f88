"""Interventions: what is done to a variable, at which steps, in one world.

``do={"studies": {1: "Full-time studies"}}`` sets `studies` at step 1 and leaves it free before and
after; ``do={"studies": "No studies"}`` holds it at every step. A key ``range(1, 4)`` stands for
several steps. The action is one of

- a constant: a number, or a level;
- a value per subject: an array, or a Series indexed by subject;
- a rule (a dynamic policy), which decides for each subject alone. It is a function of two data
  frames of some subjects. The first has the values of the current step so far, including the value
  that the variable itself would have had; the second has those of the previous step. A function
  with a third argument that has no default also gets one uniform per subject;
- a :class:`StochasticPolicy`: a distribution over levels;
- another world, as :meth:`~lib.scm.simulator.Simulator.sample` returned it: the variable takes the
  values that it had there (nested counterfactuals).
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import InputError, check, check_count, check_known, check_names, is_count, told
from lib.noise import uniforms
from lib.scm.mechanisms import COUPLINGS, Column, Levels, State, as_column, columns_of


class StochasticPolicy:
    """Draw a variable's level from a distribution of your choice, with noise of its own.

    `probabilities` maps levels to numbers (0 for a level that is not named), or it is a function of
    the frames of the current and the previous step that returns such a mapping.
    """

    def __init__(self, probabilities: Mapping[str, float] | Callable[..., Any]):
        with told("a policy needs a mapping of levels to numbers, or a function that returns one"):
            self.probabilities = probabilities if callable(probabilities) else dict(probabilities)
            if isinstance(self.probabilities, dict):
                self._table(self.probabilities, pd.Index(range(1)))

    def __call__(self, now: pd.DataFrame, before: pd.DataFrame, levels: Any) -> np.ndarray:
        """Return the probability of each level, shape (n, levels)."""
        given = self.probabilities
        given = given if isinstance(given, Mapping) else given(now, before)
        table, matrix = self._table(given, now.index), np.zeros((len(now), len(levels.categories)))
        matrix[:, as_column(list(table), levels, "the policy").codes] = table
        return matrix

    def _table(self, given: Mapping[str, Any] | pd.DataFrame, subjects: pd.Index) -> pd.DataFrame:
        table = pd.DataFrame({k: _matched(v, subjects) for k, v in dict(given).items()}, subjects)
        wrong = (table < 0).any(axis=1) | ~np.isclose(table.sum(axis=1, skipna=False), 1)
        rule = "the probabilities of a policy must be 0 or more and sum to 1"
        check(not wrong.any(), rule, table[wrong].head(1).to_dict("records"))
        return table


#: Noise is generated for blocks of this many consecutive subject numbers.
NEAR = 2**16


class World:
    """One run of a simulator: its noise, its subjects, its steps and all interventions in it."""

    def __init__(
        self,
        kinds: Mapping[str, Levels],
        coupling: str,
        n: int | None = None,
        horizon: int = 1,
        seed: int = 0,
        do: Mapping[str, Any] | None = None,
        start: pd.DataFrame | None = None,
        first: int = 0,
    ):
        number: Any = len(start) if n is None and start is not None else n
        counts = {"n": (number, 1), "horizon": (horizon, 1), "seed": (seed, 0), "first": (first, 0)}
        for name, (count, least) in counts.items():
            check_count(name, count, least)
        check_known("coupling", coupling, COUPLINGS)
        self.kinds, self.seed, self.coupling = kinds, seed, COUPLINGS[coupling]
        #: The numbers of the subjects, which are part of the address of their noise.
        self.subjects: Any = range(int(first), int(first) + int(number))
        if start is not None and "subject" in start:
            check(first == 0, "first must be left out if start names its subjects", first)
            self.subjects = _subjects(start["subject"])
        begins = np.unique(0 if start is None else start.get("t", 0)).tolist()
        met = len(begins) == 1 and is_count(begins[0], least=0) and begins[0] < horizon
        check(met, f"start must hold one step, below the horizon of {horizon}", begins)
        self.steps = range(begins[0], horizon)
        #: What is done: a rule, or a column with one value for all subjects or one for each.
        self.actions: dict[tuple[str, int], Column | Callable[..., Any]] = {}
        if start is not None:  # an intervention on every variable at the first step
            for variable, column in columns_of(start, kinds, "start: column", number).items():
                self.actions[variable, begins[0]] = column
        do = {} if do is None else do
        check(isinstance(do, Mapping), "do must be a mapping from variables to actions", do)
        for variable, what in do.items():
            check_known("do: variable", variable, kinds, limit=50)
            by_step = what if isinstance(what, Mapping) else {self.steps: what}
            some = bool(by_step) and range(0) not in by_step  # to which all empty ranges are equal
            check(some, f"do: {variable!r} needs a step", what)
            for key, action in by_step.items():
                for step in key if isinstance(key, range) else [key]:
                    rule = f"do: {variable!r} may be set only once at each step"
                    rule += ", start included" * (start is not None)
                    check((variable, step) not in self.actions, rule, step)
                    self._act(variable, step, action)

    def noise(self, source: str, step: int, rows: slice, terms: int) -> np.ndarray:
        """Return the uniforms of the subjects in `rows`, shape (terms, subjects)."""
        subjects = self.subjects[rows]
        if isinstance(subjects, range):
            return uniforms(self.seed, source, step, len(subjects), terms, subjects.start)
        noise, places = np.empty((terms, len(subjects))), pd.Series(subjects)
        # One block of nearby numbers at a time: between two distant ones there may be billions.
        for _, near in places.groupby(places // NEAR):
            low, span = near.min(), near.max() - near.min() + 1
            every = uniforms(self.seed, source, step, span, terms, low)
            noise[:, near.index] = every[:, near - low]
        return noise

    def value(self, variable: str, step: int, rows: slice, now: State, before: State) -> Column:
        """Return the values that a variable is set to, one for each subject in `rows`."""
        action, levels = self.actions[variable, step], self.kinds[variable]
        n = len(index := pd.Index(self.subjects[rows], name="subject"))
        if not callable(action):
            return action.repeat(n) if len(action) == 1 else action[rows]
        today, past = (pd.DataFrame(dict(columns), index=index) for columns in (now, before))
        terms = 1 if levels is None else len(levels.categories)
        noise = self.noise(f"{variable}, set by a policy", step, rows, terms)
        place = f"the rule for {variable!r} at step {step}"
        known = ", ".join([*now, *(f"{name} (previous)" for name in before)])
        with told(f"{place}, which may read {known}"):
            if isinstance(action, StochasticPolicy):
                codes = self.coupling(action(today, past, levels), noise)
                return pd.Categorical.from_codes(codes, dtype=levels)
            taken = inspect.signature(action).parameters.values()
            # An argument with a default was bound where the rule was written, as in a loop.
            free = sum(one.default is one.empty for one in taken if one.kind < one.VAR_POSITIONAL)
            given = action(today, past, *([noise[0]] if free == 3 else []))
        given = _matched(given, index)
        return as_column(np.full(n, given) if np.ndim(given) == 0 else given, levels, place, n)

    def _act(self, variable: str, step: Any, action: Any) -> None:
        levels, place = self.kinds[variable], f"do: {variable!r} at step {step}"
        met = step in self.steps and not isinstance(step, bool)
        check(met, f"{place}: step must be a number from {self.steps[0]} to {self.steps[-1]}", step)
        rule = f"{place}: the value must not be a mapping; use StochasticPolicy for a distribution"
        check(not isinstance(action, Mapping), rule, action)
        if isinstance(action, StochasticPolicy):
            rule = f"{place}: a StochasticPolicy is for levels; for numbers, use a rule with noise"
            check(levels is not None, rule, "numbers")
            if isinstance(action.probabilities, Mapping):
                as_column(list(action.probabilities), levels, place)
        elif isinstance(action, pd.DataFrame):
            check_names(f"{place}: column", ("subject", "t", variable), action)
            action = action.loc[action["t"] == step].set_index("subject")[variable]
        if isinstance(action, pd.Series):
            rows, n = len(action), len(self.subjects)
            whole = isinstance(action.index, pd.RangeIndex) and rows == n * len(self.steps) > n
            rule = f"{place}: a column must have a row per subject; a world is given as a frame"
            check(not whole, rule, f"{rows:,} rows for {n:,} subjects")
            subjects = pd.Index(self.subjects)
            if len(absent := subjects[~subjects.isin(action.index)]):
                raise InputError(f"{place}: no value is given for subject {absent[0]}")
            action = action.loc[subjects].array
        if not callable(action):
            values, n = (action, len(self.subjects)) if np.ndim(action) else ([action], 1)
            action = as_column(values, levels, place, n)
        self.actions[variable, int(step)] = action


def _matched(given: Any, subjects: pd.Index) -> Any:
    # A Series is matched by subject if it names them all, and anything else by position.
    if not isinstance(given, pd.Series):
        return given
    named, rows = subjects.isin(given.index).all(), pd.RangeIndex(len(subjects))
    # Pandas numbers the rows of a new Series, and these numbers may happen to be those of subjects.
    counted = isinstance(given.index, pd.RangeIndex) and given.index.equals(rows)
    return (given.loc[subjects] if named and not counted else given).array


def _subjects(given: pd.Series) -> np.ndarray:
    # From 2**53 on, a float stands for several whole numbers.
    numbers, bits = given.to_numpy(), 63
    if numbers.dtype.kind not in "iu":
        numbers, bits = as_column(given, None, "start: column 'subject'"), 53
    odd = (numbers < 0) | (numbers >= 2**bits) | (numbers % 1 != 0)
    wrong = numbers[odd | pd.Series(numbers).duplicated()][:1].tolist()
    check(not wrong, f"start: subjects must be unique whole numbers ≥ 0, below 2**{bits}", wrong)
    return np.asarray(numbers, dtype=int)
