r"""The simulator: a sequential structural causal model, fitted and run.

At step 0 every variable follows from its causes at that step,
:math:`V_0 := f_V(\mathrm{pa}(V_0), U_{V,0})`; later from causes at that step and
the one before, :math:`V_t := g_V(\mathrm{pa}(V_t), U_{V,t})`. The noise
:math:`U_{V,t}` of a subject has an address (:mod:`lib.noise`), so observation,
intervention and counterfactual are the same program run again with one line
changed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from lib.scm.interventions import World
from lib.scm.mechanisms import (
    CategoricalMechanism,
    Column,
    KeepPrevious,
    Levels,
    Mechanism,
    Parents,
    State,
    as_column,
    coupling_named,
)
from lib.scm.spec import Specification

#: Subjects simulated at a time where all do not fit into memory; no result depends on it.
BLOCK = 50_000


def fit_mechanism(
    mechanism: Mechanism, parents: Parents, values: Column | None, seed: int
) -> Mechanism:
    """Fit one mechanism to columns of the table: the unit of work of :meth:`Simulator.fit`."""
    return mechanism.fit(parents, values, seed)


class Simulator(BaseEstimator):
    """A sequential structural causal model, fitted to a table and sampled.

    Parameters
    ----------
    specification : Specification
    coupling : {'gumbel', 'inverse_cdf'}
        How a categorical value follows from its probabilities and its noise. Both have the
        same distribution in every world; across worlds, the levels go together differently.

    Attributes
    ----------
    initial_, transition_ : dict of str to Mechanism
        The fitted mechanisms of step 0 and of later steps.
    kinds_ : dict of str to pandas.CategoricalDtype or None
        The levels of each variable; None if it is a number.

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

    def fit(
        self,
        table: pd.DataFrame,
        seed: int = 0,
        fit_mechanism: Callable[..., Mechanism] = fit_mechanism,
    ) -> Self:
        """Fit every mechanism that learns from data.

        Parameters
        ----------
        table : pandas.DataFrame
            One row a person, a column for each variable that is observed. Numeric
            columns are numbers; anything else is categorical. None may be missing.
        seed : int
            Of what is random in fitting; scikit-learn's `random_state` is this number.
        fit_mechanism : callable
            Stands in for :func:`fit_mechanism`, to keep what it returns, for example.
        """
        coupling_named(self.coupling)
        if not len(table):
            raise InputError("the table has no rows")
        seen = [name for name in self.specification.variables if name in table]
        self.table_kinds_ = {name: self._kind(name, table[name]) for name in seen}
        columns = _columns(table, self.table_kinds_)
        self.initial_, self.transition_, self.kinds_ = {}, {}, {}
        self.recipe_ = None  # whoever knows all that made this fit may name it

        def fitted(mechanism: Mechanism, causes: Iterable[str]) -> Mechanism:
            parents, values = _observed(mechanism, causes, columns), columns.get(mechanism.variable)
            return fit_mechanism(mechanism, parents, values, seed if mechanism.seeded else 0)

        # One thread: on a table of this size more only wait for each other, and how sums
        # are split between them would show in the last bits of the coefficients.
        with threadpool_limits(1):
            for name in self.specification.initial_order:
                variable = self.specification.variables[name]
                initial = fitted(self.specification.initial(name), variable.parents)
                self.initial_[name], self.kinds_[name] = initial, getattr(initial, "levels_", None)
                # In a table nobody is seen twice: only causes at the same step can be learned from.
                self.transition_[name] = fitted(
                    self.specification.transition(name, initial), variable.seq_parents_curr
                )
        for name in self.kinds_:
            self._check_levels(name)
        return self

    def _kind(self, name: str, series: pd.Series) -> Levels:
        """Return the levels of a variable's column in the table, or None if it is a number."""
        if missing := int(series.isna().sum()):
            raise InputError(f"the table's column {name!r} has {missing:,} missing values")
        # Numbers may stand for a category; the mechanism says which is meant.
        of_levels = isinstance(self.specification.initial(name), CategoricalMechanism)
        number = pd.api.types.is_numeric_dtype(series) and not of_levels
        return None if number else pd.Categorical(series).dtype

    def _check_levels(self, name: str) -> None:
        """Refuse a variable that changes its kind, or that is not what the table showed."""
        variable, levels = self.specification.variables[name], _names(self.kinds_[name])
        initial, transition = self.initial_[name], self.transition_[name]
        later = getattr(transition, "levels_", None)
        if not isinstance(transition, KeepPrevious) and _names(later) != levels:
            raise InputError(
                f"variable {name!r}: its levels at step 0, {_words(levels)}, are not those of "
                f"later steps, {_words(_names(later))}"
            )
        learned = [(initial, cause) for cause in variable.parents]
        learned += [(transition, cause) for cause in variable.seq_parents_curr]
        for mechanism, cause in learned:
            if mechanism.learns_from_parents and cause not in mechanism.by_hand:
                seen, given = _names(self.table_kinds_[cause]), _names(self.kinds_[cause])
                if seen != given:
                    raise InputError(
                        f"variable {name!r}: {type(mechanism).__name__} learns from parent "
                        f"{cause!r}, whose levels in the table, {_words(seen)}, are not those that "
                        f"its mechanism gives, {_words(given)}"
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
        """Draw subjects and follow them through time: one row a subject and step, in this order.

        The columns are `subject`, `t` and the variables. Two calls with one seed share all noise:
        subject 7 of one is subject 7 of the other, with another treatment, perhaps. Rows depend
        neither on how many are drawn nor on workers.

        Parameters
        ----------
        n : int
            Number of subjects; may be left out if `start` is given.
        horizon : int
            Number of time steps, from 0 to ``horizon - 1``.
        seed : int
            Names the world's noise.
        do : mapping, optional
            Interventions (:mod:`lib.scm.interventions`): ``{"studies": {1: "No studies"}}``.
        start : pandas.DataFrame, optional
            The states that subjects start from instead of the initial model, a row a subject,
            a column a variable, all of the step that its column ``t`` says, or of step 0.
        first : int
            The first subject: ``sample(n=10, first=90)`` is the last ten of ``sample(n=100)``.
        n_jobs : int
        """
        if n is None:
            if start is None:
                raise InputError("n, the number of subjects, is missing")
            n = len(start)
        block = -(-n // joblib.effective_n_jobs(n_jobs)) if isinstance(n, int) else n
        world = {"seed": seed, "do": do, "start": start, "first": first}
        blocks = self.blocks(n, horizon, n_jobs=n_jobs, block=block, **world)
        return pd.concat(blocks, ignore_index=True)

    def blocks(
        self, n: int, horizon: int = 1, *, n_jobs: int = 1, block: int = BLOCK, **world
    ) -> Iterator[pd.DataFrame]:
        """Yield the frame of :meth:`sample`, with its parameters, `block` subjects at a time."""
        check_is_fitted(self, "kinds_")
        world = World(self.kinds_, self.coupling, n, horizon, **world)
        check_count("block", block, least=1)
        subjects = world.subjects
        return joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
            joblib.delayed(self._block)(world, subjects[low : low + block])
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
        """Stream :meth:`blocks`, with its parameters, to a Parquet file in constant memory.

        After every block, `report` is called with the number of subjects written so far.
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
        """Return the true probability of each level of a categorical variable, given its causes.

        Of a treatment, this is the true propensity. `world` is what :meth:`sample` returned, or
        a part of it with steps `t` and `t - 1`. There is a row a subject, a column a level.
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
        now, before = world.loc[world["t"] == t], world.loc[world["t"] == t - 1]
        if now.empty or (t > 0 and not now["subject"].array.equals(before["subject"].array)):
            raise InputError(f"the world must have every subject at step {t} and the one before")
        columns = [_columns(frame, self.kinds_) for frame in (now, before)]
        try:
            matrix = mechanism.probabilities(self._parents(variable, t, *columns))
        except KeyError as error:
            raise InputError(
                f"the probabilities of {variable!r} follow from {error.args[0]!r}, which is not a "
                "column of the world"
            ) from None
        return pd.DataFrame(
            np.broadcast_to(matrix, (len(now), matrix.shape[1])),
            index=pd.Index(now["subject"], name="subject"),
            columns=mechanism.levels_.categories.rename(variable),
        )

    def fit_quality(self, table: pd.DataFrame) -> pd.DataFrame:
        """Say how well each fitted initial mechanism predicts a table (paper, Table 1).

        The columns returned are `variable`, `mechanism`, `measure` (R² for numbers, AUC for
        categories and for the indicator behind income) and `value`.
        """
        check_is_fitted(self, "kinds_")
        columns = _columns(table, self.table_kinds_)
        rows = []
        for name, variable in self.specification.variables.items():
            mechanism = self.initial_[name]
            if name in columns and mechanism.learns_from_parents:
                parents = _observed(mechanism, variable.parents, columns)
                if quality := mechanism.fit_quality(parents, columns[name]):
                    rows.append((name, type(mechanism).__name__, *quality))
        return pd.DataFrame(rows, columns=["variable", "mechanism", "measure", "value"])

    # --- one block of subjects through time ---------------------------------------------

    def _block(self, world: World, subjects: range) -> pd.DataFrame:
        steps, states = world.steps, [{}]
        for step in steps:
            states.append(self._step(world, subjects, step, states[-1]))
        ids = np.array(subjects)
        frame = {"subject": ids.repeat(len(steps)), "t": np.tile(np.array(steps), len(ids))}
        for name, kind in self.kinds_.items():
            columns = [getattr(now[name], "codes", now[name]) for now in states[1:]]
            values = np.stack(columns, axis=1).ravel()
            frame[name] = values if kind is None else pd.Categorical.from_codes(values, dtype=kind)
        return pd.DataFrame(frame, copy=False)

    def _step(self, world: World, subjects: range, step: int, before: State) -> State:
        # Whatever a rule acts on comes as late as possible, so that the rule can read all
        # that does not follow from it.
        now: dict[str, Column] = {}
        causes = "parents" if step == 0 else "seq_parents_curr"
        for name in self.specification.order(causes, world.rules):
            action = world.actions.get((name, step))
            if action is None or callable(action):  # a rule may look at the natural value
                mechanism = self._mechanism(name, step)
                parents = self._parents(name, step, now, before)
                noise = world.noise(name, step, subjects, mechanism.noise_terms)
                categorical = isinstance(mechanism, CategoricalMechanism)
                coupling = {"coupling": world.coupling} if categorical else {}
                now[name] = mechanism.evaluate(parents, noise, **coupling)
            if action is not None:
                now[name] = world.value(name, step, subjects, now, before)
        return now

    def _mechanism(self, name: str, step: int) -> Mechanism:
        return (self.transition_ if step > 0 else self.initial_)[name]

    def _parents(self, name: str, step: int, now: State, before: State) -> Parents:
        """Return just the declared causes, so that no mechanism can read anything else."""
        variable = self.specification.variables[name]
        if step == 0:
            return Parents({cause: now[cause] for cause in variable.parents})
        return Parents(
            {cause: now[cause] for cause in variable.seq_parents_curr},
            {cause: before[cause] for cause in variable.seq_parents_prev},
        )


def _columns(frame: pd.DataFrame, kinds: Mapping[str, Levels]) -> State:
    """Return the columns of the variables that a frame has, each of its kind."""
    return {
        name: as_column(frame[name], kind, f"column {name!r}")
        for name, kind in kinds.items()
        if name in frame
    }


def _observed(mechanism: Mechanism, causes: Iterable[str], columns: State) -> Parents:
    """Return the columns of the causes, and refuse to learn from one that the table lacks."""
    for cause in causes:
        if mechanism.learns_from_parents and cause not in {*columns, *mechanism.by_hand}:
            raise InputError(
                f"variable {mechanism.variable!r}: {type(mechanism).__name__} learns from "
                f"parent {cause!r}, which is not a column of the table"
            )
    return Parents({cause: columns[cause] for cause in causes if cause in columns})


def _names(levels: Levels) -> list:
    """Return the levels in their order, which the comparison of pandas overlooks."""
    return [] if levels is None else list(levels.categories)


def _words(names: list) -> str:
    return ", ".join(str(name) for name in names) or "none"
