r"""The simulator: a sequential structural causal model, fitted and run.

At step 0 every variable follows from its causes at that step,
:math:`V_0 := f_V(\mathrm{pa}(V_0), U_{V,0})`; later from causes at that step and
the one before, :math:`V_t := g_V(\mathrm{pa}(V_t), U_{V,t})`. The noise
:math:`U_{V,t}` of a subject has an address (:mod:`lib.noise`), so observation,
intervention and counterfactual are the same program run again with one line
changed.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from lib.errors import InputError, check_count, one_of
from lib.files import atomic_write, write_parquet
from lib.noise import uniforms
from lib.scm.interventions import Interventions, Situation, plain
from lib.scm.mechanisms import (
    COUPLINGS,
    CategoricalMechanism,
    Column,
    KeepPrevious,
    Mechanism,
    Parents,
    as_levels,
)
from lib.scm.spec import Specification

#: Subjects simulated at a time where all do not fit into memory; no result depends on it.
SUBJECTS_PER_BLOCK = 50_000


class Simulator(BaseEstimator):
    """A sequential structural causal model, fitted to a table and sampled.

    Parameters
    ----------
    specification : Specification
        Variables, causes and mechanisms.
    coupling : {'gumbel', 'inverse_cdf'}
        How a categorical value follows from its probabilities and its noise: by the
        Gumbel-max trick (IncomeSCM paper, Section 3.3) or by the inverse
        distribution function. Both have the same distribution in every world;
        across worlds, the levels go together differently.

    Attributes
    ----------
    initial_, transition_ : dict of str to Mechanism
        The fitted mechanisms of step 0 and of later steps.
    kinds_ : dict of str to pandas.CategoricalDtype or None
        The levels of each variable; None if it is a number.
    table_levels_ : dict of str to pandas.CategoricalDtype
        The levels that the table had, of its categorical columns.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "pay": [1.0, 2.0, 3.0, 4.5]})
    >>> specification = Specification(
    ...     {
    ...         "age": {"sampler": "gaussian", "seq_sampler": "IncrementSampler"},
    ...         "pay": {"parents": ["age"], "sampler": "LinearGaussianSampler"},
    ...     }
    ... )
    >>> simulator = Simulator(specification).fit(table)
    >>> seen = simulator.sample(n=1_000, horizon=2, seed=1)
    >>> done = simulator.sample(n=1_000, horizon=2, seed=1, do={"pay": {1: 0}})
    >>> changed = seen.ne(done)
    >>> changed.groupby(seen["t"])[["age", "pay"]].sum()
       age   pay
    t
    0    0     0
    1    0  1000
    """

    def __init__(self, specification: Specification, coupling: str = "gumbel"):
        self.specification = specification
        self.coupling = coupling

    @classmethod
    def from_yaml(cls, path: str | os.PathLike, coupling: str = "gumbel", **options) -> "Simulator":
        """Make a simulator of a specification file; see :meth:`Specification.from_yaml`."""
        return cls(Specification.from_yaml(path, **options), coupling)

    def fit(self, table: pd.DataFrame, seed: int = 0) -> Self:
        """Fit every mechanism that learns from data.

        Parameters
        ----------
        table : pandas.DataFrame
            One row a person, a column for each variable that is observed. Numeric
            columns are numbers; anything else is categorical.
        seed : int
            Of what is random in fitting; scikit-learn's `random_state` is this number.

        Raises
        ------
        InputError
            If the table has missing values or no rows, lacks a column from which a
            mechanism learns, or has levels that a mechanism does not know.
        """
        if self.coupling not in COUPLINGS:
            raise InputError(f"coupling {self.coupling!r} is unknown: {one_of(COUPLINGS)}")
        columns = _table_columns(table, self.specification)
        self.table_levels_ = {
            name: column.dtype
            for name, column in columns.items()
            if isinstance(column, pd.Categorical)
        }
        self.initial_, self.transition_, self.kinds_ = {}, {}, {}
        self.recipe_ = None  # whoever knows all that made this fit may name it
        # One thread: on a table of this size more only wait for each other, and how sums
        # are split between them would show in the last bits of the coefficients.
        with threadpool_limits(1):
            self._fit_mechanisms(columns, seed)
        return self

    def _fit_mechanisms(self, columns: Mapping[str, Column], seed: int) -> None:
        specification = self.specification
        for name in specification.initial_order:
            variable = specification.variables[name]
            initial, transition = specification.build(name, self.coupling)
            # In a table nobody is seen twice: only causes at the same step can be learned from.
            for mechanism, causes in (
                (initial, variable.parents),
                (transition, variable.seq_parents_curr),
            ):
                mechanism.fit(_observed(mechanism, causes, columns), columns.get(name), seed)
            self.initial_[name], self.transition_[name] = initial, transition
            self.kinds_[name] = getattr(initial, "levels_", None)
            keeps = isinstance(transition, KeepPrevious)
            later = self.kinds_[name] if keeps else getattr(transition, "levels_", None)
            if _level_names(later) != _level_names(self.kinds_[name]):
                raise InputError(
                    f"variable {name!r}: its levels at step 0, "
                    f"{_levels_in_words(self.kinds_[name])}, are not those of later steps, "
                    f"{_levels_in_words(later)}"
                )
        self._check_causes()

    def _check_causes(self) -> None:
        """Refuse a cause that was one thing in the table and is another in the model."""
        for mechanism in [*self.initial_.values(), *self.transition_.values()]:
            if not mechanism.learns_from_parents:
                continue
            variable = self.specification.variables[mechanism.variable]
            is_initial = mechanism is self.initial_[mechanism.variable]
            for cause in variable.parents if is_initial else variable.seq_parents_curr:
                table, model = self.table_levels_.get(cause), self.kinds_[cause]
                if cause not in mechanism.by_hand and _level_names(table) != _level_names(model):
                    raise InputError(
                        f"variable {mechanism.variable!r}: {type(mechanism).__name__} learns from "
                        f"parent {cause!r}, whose levels in the table, {_levels_in_words(table)}, "
                        f"are not those that its mechanism gives, {_levels_in_words(model)}"
                    )

    def sample(
        self,
        n: int | None = None,
        horizon: int = 1,
        seed: int = 0,
        do: Mapping | None = None,
        start: pd.DataFrame | None = None,
        first: int = 0,
        n_jobs: int = 1,
    ) -> pd.DataFrame:
        """Draw subjects and follow them through time.

        Two calls with one seed share all noise: subject 7 of one is subject 7 of the
        other, with another treatment, perhaps. Rows do not depend on how many are
        drawn, nor on blocks or workers.

        Parameters
        ----------
        n : int
            Number of subjects; may be left out if `start` is given.
        horizon : int
            Number of time steps, from 0 to ``horizon - 1``.
        seed : int
            Names the world's noise.
        do : mapping, optional
            Interventions, as :mod:`lib.scm.interventions` explains:
            ``{"studies": {1: "Full-time studies"}}``.
        start : pandas.DataFrame, optional
            The state that each subject starts from instead of the initial model, a
            row a subject, with a column for each variable. Its column ``t``, if it
            has one, says at which step, 0 otherwise. The first rows returned are
            these states.
        first : int
            The first subject: ``sample(n=10, first=90)`` is the last ten rows of
            ``sample(n=100)``.
        n_jobs : int
            Parallel workers, of joblib's backend.

        Returns
        -------
        pandas.DataFrame
            One row a subject and step, ordered by both; columns `subject`, `t`, and
            the variables in the specification's order.

        Raises
        ------
        InputError
            If `n` or `horizon` is not positive, or an intervention or a starting
            state breaks a rule.
        """
        if n is None:
            if start is None:
                raise InputError("n, the number of subjects, is missing")
            n = len(start)
        block = -(-n // joblib.effective_n_jobs(n_jobs)) if isinstance(n, int) else n
        blocks = self.blocks(n, horizon, seed, do, start, first, n_jobs, block)
        return pd.concat(blocks, ignore_index=True)

    def blocks(
        self,
        n: int,
        horizon: int = 1,
        seed: int = 0,
        do: Mapping | None = None,
        start: pd.DataFrame | None = None,
        first: int = 0,
        n_jobs: int = 1,
        block: int = SUBJECTS_PER_BLOCK,
    ) -> Iterator[pd.DataFrame]:
        """Yield the frame of :meth:`sample` in blocks of so many subjects, in order."""
        check_is_fitted(self, "kinds_")
        for name, number in {"n": n, "horizon": horizon, "block": block}.items():
            check_count(name, number, least=1)
        for name, number in {"seed": seed, "first": first}.items():
            check_count(name, number, least=0)
        begins, states = 0, None
        if start is not None:
            begins, states = self._states(start, n, horizon)
        interventions = Interventions(do, self.kinds_, range(begins, horizon), n, first)
        for variable, step in interventions.actions:
            if states is not None and step == begins:
                raise InputError(
                    f"do: {variable!r} at step {step}: the states at that step are given by start"
                )
        order = self._order(interventions)
        return joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
            joblib.delayed(self._block)(
                range(first + low, first + min(low + block, n)),
                range(begins, horizon),
                seed,
                interventions,
                order,
                states and {name: column[low : low + block] for name, column in states.items()},
            )
            for low in range(0, n, block)
        )

    def to_parquet(
        self,
        path: str | os.PathLike,
        n: int,
        horizon: int = 1,
        report: Callable[[int], None] | None = None,
        **options,
    ) -> Path:
        """Stream :meth:`sample` to a Parquet file, in constant memory.

        Parameters
        ----------
        path : path-like
            The file to write; it appears, or is replaced, when it is complete.
        report : callable, optional
            Called with the number of subjects written so far, after every block.
        n, horizon, **options
            Parameters of :meth:`blocks`.

        Raises
        ------
        InputError
            If the file cannot be written, or as :meth:`sample` does.
        """
        blocks = self.blocks(n, horizon, **options)

        def reported() -> Iterator[pd.DataFrame]:
            for frame in blocks:
                yield frame
                if report is not None:
                    report(int(frame["subject"].iloc[-1]) + 1 - options.get("first", 0))

        with atomic_write(path) as beside:
            write_parquet(beside, reported())
        return Path(path)

    def probabilities(self, variable: str, world: pd.DataFrame, t: int) -> pd.DataFrame:
        """Return the true probability of each level of a variable, given its causes.

        Of a treatment, this is the true propensity.

        Parameters
        ----------
        variable : str
            A categorical variable.
        world : pandas.DataFrame
            What :meth:`sample` returned, or a part of it with steps `t` and `t - 1`.
        t : int
            The time step.

        Returns
        -------
        pandas.DataFrame
            A row a subject, a column a level; the index is `subject`.

        Raises
        ------
        InputError
            If the variable is unknown or a number, or the world lacks a step.
        """
        check_is_fitted(self, "kinds_")
        if variable not in self.kinds_:
            raise InputError(f"variable {variable!r} is unknown: {one_of(self.kinds_, limit=50)}")
        mechanism = self._mechanism(variable, t)
        if not isinstance(mechanism, CategoricalMechanism):
            raise InputError(
                f"variable {variable!r} at step {t}: {type(mechanism).__name__} states no "
                "probabilities, only categorical mechanisms do"
            )
        now = world.loc[world["t"] == t]
        before = world.loc[world["t"] == t - 1]
        if now.empty or (t > 0 and not now["subject"].array.equals(before["subject"].array)):
            raise InputError(f"the world must have every subject at step {t} and the one before")
        columns = [
            {name: self._column(frame[name], name) for name in self.kinds_ if name in frame}
            for frame in (now, before)
        ]
        try:
            parents = self._parents(variable, t, *columns)
        except KeyError as error:
            raise InputError(
                f"the probabilities of {variable!r} follow from {error.args[0]!r}, which is not a "
                "column of the world"
            ) from None
        matrix = mechanism.probabilities(parents)
        return pd.DataFrame(
            np.broadcast_to(matrix, (len(now), matrix.shape[1])),
            index=pd.Index(now["subject"], name="subject"),
            columns=mechanism.levels_.categories.rename(variable),
        )

    def fit_quality(self, table: pd.DataFrame) -> pd.DataFrame:
        """Say how well each fitted initial mechanism predicts a table (paper, Table 1).

        Parameters
        ----------
        table : pandas.DataFrame
            The table that the simulator was fitted to, or another with its columns.

        Returns
        -------
        pandas.DataFrame
            Columns `variable`, `mechanism`, `measure` (R² for numbers, AUC for
            categories and for the indicator behind income) and `value`.
        """
        check_is_fitted(self, "kinds_")
        columns = _table_columns(table, self.specification)
        for name, levels in self.table_levels_.items():
            if name in columns:
                columns[name] = _in_levels(columns[name], name, levels)
        rows = []
        for name, variable in self.specification.variables.items():
            mechanism = self.initial_[name]
            if name in columns and variable.parents and mechanism.learns_from_parents:
                quality = mechanism.fit_quality(
                    _observed(mechanism, variable.parents, columns), columns[name]
                )
                rows.append((name, type(mechanism).__name__, *quality))
        return pd.DataFrame(rows, columns=["variable", "mechanism", "measure", "value"])

    # --- one block of subjects through time ---------------------------------------------

    def _block(
        self,
        subjects: range,
        steps: range,
        seed: int,
        interventions: Interventions,
        order: list[list[str]],
        states: Mapping[str, Column] | None,
    ) -> pd.DataFrame:
        shape = (len(subjects), len(steps))
        kept = {name: np.empty(shape, _code_type(kind)) for name, kind in self.kinds_.items()}
        before: Mapping[str, Column] = {}
        for step in steps:
            now = states if step == steps.start else None
            if now is None:
                now = self._step(subjects, step, seed, interventions, order[min(step, 1)], before)
            for name, column in now.items():
                kept[name][:, step - steps.start] = getattr(column, "codes", column)
            before = now
        ids = np.arange(subjects.start, subjects.stop)
        frame = {"subject": ids.repeat(len(steps)), "t": np.tile(np.array(steps), len(ids))}
        for name, values in kept.items():
            values, kind = values.ravel(), self.kinds_[name]
            frame[name] = values if kind is None else pd.Categorical.from_codes(values, dtype=kind)
        return pd.DataFrame(frame, copy=False)

    def _step(
        self,
        subjects: range,
        step: int,
        seed: int,
        interventions: Interventions,
        order: list[str],
        before: Mapping[str, Column],
    ) -> dict[str, Column]:
        now: dict[str, Column] = {}
        n, first = len(subjects), subjects.start
        for name in order:
            acted_on = (name, step) in interventions
            if not acted_on or interventions.needs_natural_value(name, step):
                mechanism = self._mechanism(name, step)
                noise = uniforms(seed, name, step, n, mechanism.noise_terms, first)
                now[name] = mechanism.evaluate(self._parents(name, step, now, before), noise)
            if acted_on:
                kind, ids = self.kinds_[name], np.array(subjects)
                where = Situation(name, kind, step, ids, seed, self.coupling)
                now[name] = interventions.value(where, now, before)
        return now

    def _mechanism(self, name: str, step: int) -> Mechanism:
        return (self.transition_ if step > 0 else self.initial_)[name]

    def _parents(
        self, name: str, step: int, now: Mapping[str, Column], before: Mapping[str, Column]
    ) -> Parents:
        """Return just the declared causes, so that no mechanism can read anything else."""
        variable = self.specification.variables[name]
        if step == 0:
            return Parents({cause: now[cause] for cause in variable.parents})
        return Parents(
            {cause: now[cause] for cause in variable.seq_parents_curr},
            {cause: before[cause] for cause in self.specification.previous_parents(name)},
        )

    def _order(self, interventions: Interventions) -> list[list[str]]:
        """Order the variables of step 0 and of later steps, causes first.

        A variable that a rule acts on comes as late as possible, so that the rule can
        read whatever does not follow from it.
        """
        ordered = []
        for order, causes in (
            (self.specification.initial_order, "parents"),
            (self.specification.transition_order, "seq_parents_curr"),
        ):
            late: set[str] = set()
            for name in order:
                variable = self.specification.variables[name]
                if interventions.reads_others(name) or late & set(getattr(variable, causes)):
                    late.add(name)
            ordered.append([name for name in order if name not in late])
            ordered[-1] += [name for name in order if name in late]
        return ordered

    def _states(self, start: pd.DataFrame, n: int, horizon: int) -> tuple[int, dict[str, Column]]:
        if len(start) != n:
            raise InputError(f"start must have one row a subject, {n}: found {len(start)}")
        steps = start["t"].unique() if "t" in start else [0]
        if len(steps) != 1:
            raise InputError(f"start must be of one step: found steps {sorted(steps.tolist())}")
        if not 0 <= steps[0] < horizon:
            raise InputError(
                f"start is at step {steps[0]}: horizon must be larger, found {horizon}"
            )
        for name in self.kinds_:
            if name not in start:
                raise InputError(f"start: the column of variable {name!r} is missing")
        return int(steps[0]), {name: self._column(start[name], name) for name in self.kinds_}

    def _column(self, series: pd.Series, name: str) -> Column:
        kind = self.kinds_[name]
        if kind is None:
            if not pd.api.types.is_numeric_dtype(series):
                raise InputError(f"column {name!r} must be numbers: found {series.iloc[0]!r}")
            column = series.to_numpy(dtype=float)
            wrong = ~np.isfinite(column)
            if wrong.any():
                found = plain(series[wrong].iloc[0])
                raise InputError(f"column {name!r} must be finite numbers: found {found!r}")
            return column
        return _in_levels(series, name, kind)


def _in_levels(values: pd.Series | Column, name: str, levels: pd.CategoricalDtype) -> Column:
    """Return values in the order of these levels, and refuse a level that is not among them."""
    column = as_levels(values, levels)
    if (column.codes < 0).any():
        found = plain(np.asarray(values)[column.codes < 0][0])
        raise InputError(f"column {name!r}: found {found!r}: {one_of(levels.categories, 50)}")
    return column


def _table_columns(table: pd.DataFrame, specification: Specification) -> dict[str, Column]:
    """Return the table's columns of the specification's variables, typed."""
    if not len(table):
        raise InputError("the table has no rows")
    columns: dict[str, Column] = {}
    for name in specification.variables:
        if name not in table:
            continue
        series = table[name]
        if missing := int(series.isna().sum()):
            raise InputError(f"the table's column {name!r} has {missing:,} missing values")
        # Numbers may stand for a category; the mechanism says which is meant.
        of_levels = isinstance(specification.build(name)[0], CategoricalMechanism)
        if isinstance(series.dtype, pd.CategoricalDtype):
            columns[name] = series.array
        elif pd.api.types.is_numeric_dtype(series) and not of_levels:
            columns[name] = series.to_numpy(dtype=float)
            if not np.isfinite(columns[name]).all():
                raise InputError(f"the table's column {name!r} has values that are not finite")
        else:
            columns[name] = pd.Categorical(series)
    return columns


def _observed(mechanism: Mechanism, causes: Mapping | tuple, columns: Mapping) -> Parents:
    """Return the columns of the causes, and refuse to learn from one that the table lacks."""
    if mechanism.learns_from_parents:
        for cause in causes:
            if cause not in columns and cause not in mechanism.by_hand:
                raise InputError(
                    f"variable {mechanism.variable!r}: {type(mechanism).__name__} learns from "
                    f"parent {cause!r}, which is not a column of the table"
                )
    return Parents({cause: columns[cause] for cause in causes if cause in columns})


def _code_type(levels: pd.CategoricalDtype | None) -> np.dtype:
    return np.dtype(float) if levels is None else pd.Categorical([], dtype=levels).codes.dtype


def _level_names(levels: pd.CategoricalDtype | None) -> list | None:
    """Return the levels in their order, which the comparison of pandas overlooks."""
    return None if levels is None else list(levels.categories)


def _levels_in_words(levels: pd.CategoricalDtype | None) -> str:
    return "none" if levels is None else ", ".join(str(level) for level in levels.categories)
