r"""The simulator: a sequential structural causal model, fitted and run.

At step 0 every variable follows from its causes at that step,
:math:`V_0 := f_V(\mathrm{pa}(V_0), U_{V,0})`; later from causes at that step and the one before,
:math:`V_t := g_V(\mathrm{pa}(V_t), U_{V,t})`. Each noise term of a subject has an address
(:mod:`lib.noise`), so all worlds are the same program run again with one line changed.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, Self

import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lib.errors import InputError, check, check_count, check_known, check_once, told
from lib.files import AnyPath, atomic_write, write_parquet
from lib.scm.interventions import World
from lib.scm.mechanisms import (
    COUPLINGS,
    CategoricalMechanism,
    Column,
    KeepPrevious,
    Learned,
    Levels,
    Mechanism,
    Parents,
    State,
    as_column,
    columns_of,
    described,
    same_kind,
)
from lib.scm.spec import Specification
from lib.workers import in_order, one_thread, worker_count

#: Subjects simulated at a time when not all fit into memory; no result depends on this number.
BLOCK = 50_000


class Simulator(BaseEstimator):
    """A sequential structural causal model, fitted to a table and sampled.

    Parameters
    ----------
    coupling : {'gumbel', 'inverse_cdf'}
        How a categorical value follows from its probabilities and its noise. Both give the same
        distribution in each world, but a different joint distribution across worlds.

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

    def fit(
        self, table: pd.DataFrame, seed: int = 0, fit: Callable[..., Mechanism] = Mechanism.fit
    ) -> Self:
        """Fit every mechanism that learns from data to a table with one row per person.

        Numeric columns are numbers unless their mechanism is categorical; all others are levels. No
        value may be missing. `fit` replaces :meth:`Mechanism.fit`, for example to cache its result.
        """
        check_known("coupling", self.coupling, COUPLINGS)
        check_count("seed", seed, least=0)
        check(len(table) > 0, "the table must have rows", len(table))
        check_once("column of the table", table)
        model = self.specification
        seen = [name for name in model.variables if name in table]
        self.table_kinds_ = {name: self._kind(name, table[name]) for name in seen}
        columns = columns_of(table, self.table_kinds_, "column")
        self.initial_, self.transition_, self.kinds_ = dict[str, Any](), {}, {}
        self.recipe_ = None  # to be set by a caller that knows all inputs of this fit

        def fitted(mechanism: Mechanism, causes: Iterable[str]) -> Mechanism:
            if mechanism.fitted_to is not None:
                check_known("column of the table", mechanism.variable, table)
            parents = self._observed(mechanism, causes, columns)
            values = columns.get(mechanism.variable)
            with told(f"variable {mechanism.variable!r}: {type(mechanism).__name__}"):
                return fit(mechanism, parents, values, seed if mechanism.seeded else 0)

        with one_thread():
            for name in model.orders[0]:
                initial = fitted(model.initial(name), model.variables[name].parents)
                self.initial_[name], self.kinds_[name] = initial, initial.levels_
            for name, initial in self.initial_.items():
                # A table shows each person once: only causes at the same step can be learned from.
                causes = model.variables[name].seq_parents_curr
                later = self.transition_[name] = fitted(model.transition(name, initial), causes)
                met = same_kind(initial.levels_, later.levels_) or isinstance(later, KeepPrevious)
                rule = f"variable {name!r} must keep the kind that it has at step 0"
                check(met, f"{rule}, {described(initial.levels_)}", described(later.levels_))
        return self

    def made_by(self) -> tuple[Any, ...]:
        """Return what identifies this fit, since its bytes differ from one load to the next."""
        if getattr(self, "recipe_", None) is None:
            raise pickle.PicklingError("it is not known what made this fit")
        # Mechanisms are objects, whose parameters and numbers may have been changed since, or they
        # themselves.
        now = [*self.initial_.values(), *self.transition_.values()]
        now += [v for one in now for v in vars(one).values() if isinstance(v, Mechanism)]
        learned = [v for one in now for v in vars(one).values() if isinstance(v, Learned)]
        models = [v.estimator if hasattr(v.estimator, "coef_") else v.forest for v in learned]
        # Arrays are copied, because the layout in memory has a part in their hash. The numbers of a
        # forest's trees are in its arrays.
        numbers = [
            (k, v.copy() if isinstance(v, np.ndarray) else repr(v))
            for part in [*now, *models, *(one.features for one in learned)]
            for k, v in vars(part).items()
            if isinstance(v, Number | tuple | list | dict | np.ndarray) and k != "trees"
        ]
        return self.recipe_, self.coupling, repr(now), [type(one) for one in now], numbers

    def _kind(self, name: str, series: pd.Series) -> Levels:
        if missing := int(series.isna().sum()):
            raise InputError(f"the table's column {name!r} has {missing:,} missing values")
        # Numbers may stand for categories; the mechanism decides which they are.
        of_levels = isinstance(self.specification.initial(name), CategoricalMechanism)
        number = pd.api.types.is_numeric_dtype(series) and not of_levels
        with told(f"the table's column {name!r}"):
            return None if number else pd.Categorical(series).dtype

    def _observed(self, mechanism: Mechanism, causes: Iterable[str], columns: State) -> Parents:
        for cause in mechanism.learned_from(causes):
            kind = self.kinds_[cause]
            found = described(columns[cause]) if cause in columns else "no such column"
            reader = f"variable {mechanism.variable!r}: {type(mechanism).__name__}"
            rule = f"{reader} learns from parent {cause!r}, which is {described(kind)} in the model"
            met = cause in columns and same_kind(columns[cause], kind)
            check(met, f"{rule} and must be so in the table", found)
        return Parents({cause: columns[cause] for cause in causes if cause in columns})

    def sample(
        self,
        n: int | None = None,
        horizon: int = 1,
        seed: int = 0,
        do: Mapping[str, Any] | None = None,
        start: pd.DataFrame | None = None,
        first: int = 0,
        n_jobs: int | None = None,
    ) -> pd.DataFrame:
        """Draw subjects and follow them through time: one row per subject and step, in this order.

        The columns are `subject`, `t` and the variables. Two calls with one seed share all noise:
        subject 7 is the same in both. No row depends on the number of rows or of workers.

        Parameters
        ----------
        n, horizon : int
            The number of subjects, optional if `start` is given; steps are 0 to ``horizon - 1``.
        do : mapping, optional
            Interventions (:mod:`lib.scm.interventions`): ``{"studies": {1: "No studies"}}``.
        start : pandas.DataFrame, optional
            The states from which subjects start instead of the initial model, one row per subject
            and one column per variable, all at the step in column ``t``, or else at step 0. Column
            ``subject`` says whose noise a row has; without it, rows are numbered from `first`.
        first : int
            The first subject: ``sample(n=10, first=90)`` is the last ten of ``sample(n=100)``.
        n_jobs : int, optional
            The number of workers; by default that of :func:`joblib.parallel_config`, or one.
        """
        blocks = self.blocks(n, horizon, seed, do, start, first, n_jobs=n_jobs, block=None)
        return pd.concat(blocks, ignore_index=True)

    def blocks(
        self, *drawn: Any, n_jobs: int | None = None, block: int | None = BLOCK, **run: Any
    ) -> Iterator[pd.DataFrame]:
        """Yield the frame of :meth:`sample` in blocks of subjects; None: one or more per worker."""
        check_is_fitted(self, "kinds_")
        world = World(self.kinds_, self.coupling, *drawn, **run)
        n = len(world.subjects)
        block = min(BLOCK, -(-n // worker_count(n_jobs))) if block is None else block
        check_count("block", block, least=1)
        # A variable that a rule sets comes as late as possible, so that the rule can read
        # everything that does not follow from the variable.
        late = {name for (name, _), action in world.actions.items() if callable(action)}
        orders = [self.specification.order(step, late) for step in (0, 1)]
        # In threads, which rarely wait for each other in numpy, unless a backend was chosen. The
        # simulator is passed to the backend's workers as an argument, so that it is sent only once.
        one, starts = joblib.delayed(Simulator._block), range(0, n, block)
        parts = (one(self, world, orders, slice(low, low + block)) for low in starts)
        return in_order(parts, n_jobs, prefer="threads")

    def to_parquet(self, path: AnyPath, *drawn: Any, **options: Any) -> Path:
        """Stream :meth:`blocks`, with its parameters, to a Parquet file in constant memory."""
        with atomic_write(path) as beside:
            write_parquet((beside, block) for block in self.blocks(*drawn, **options))
        return Path(path)

    def probabilities(self, variable: str, world: pd.DataFrame, t: int) -> pd.DataFrame:
        """Return each level's true probability given its causes, such as a treatment's propensity.

        `world` holds steps `t` and `t - 1` of a frame that :meth:`sample` returned.
        """
        check_is_fitted(self, "kinds_")
        check_known("variable", variable, self.kinds_, limit=50)
        check_count("t", t, least=0)
        mechanism: Any = self._mechanism(variable, t)
        rule = f"variable {variable!r} at step {t} needs a mechanism that states probabilities"
        check(isinstance(mechanism, CategoricalMechanism), rule, type(mechanism).__name__)
        columns_of(world, {"subject": None, "t": None}, "the world: column")
        now, before = world.loc[world["t"] == t], world.loc[world["t"] == t - 1]
        if now.empty or (t > 0 and not now["subject"].array.equals(before["subject"].array)):
            rule = f"the world must have every subject at step {t} and the one before"
            raise InputError(f"{rule}, in the same order")
        states = [columns_of(frame, self.kinds_, "the world: column") for frame in (now, before)]
        matrix = mechanism.stated(self._parents(variable, t, *states))
        return pd.DataFrame(
            np.broadcast_to(matrix, (len(now), matrix.shape[1])),
            index=pd.Index(now["subject"], name="subject"),
            columns=mechanism.levels_.categories.rename(variable),
        )

    def fit_quality(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return how well each fitted initial mechanism predicts a table: R², or AUC for levels."""
        check_is_fitted(self, "kinds_")
        kinds = {name: kind for name, kind in self.table_kinds_.items() if name in table}
        columns = columns_of(table, kinds, "column")
        rows = []
        for name, variable in self.specification.variables.items():
            mechanism = self.initial_[name]
            if name in columns and mechanism.learned_from(variable.parents):
                parents = self._observed(mechanism, variable.parents, columns)
                if quality := mechanism.fit_quality(parents, columns[name]):
                    rows.append((name, type(mechanism).__name__, *quality))
        return pd.DataFrame(rows, columns=["variable", "mechanism", "measure", "value"])

    # --- one block of subjects through time ---------------------------------------------

    def _block(self, world: World, orders: list[list[str]], rows: slice) -> pd.DataFrame:
        steps, states = world.steps, list[State]([{}])
        for step in steps:
            states.append(self._step(world, orders[step > 0], rows, step, states[-1]))
        ids = np.array(world.subjects[rows])
        frame = {"subject": ids.repeat(len(steps)), "t": np.tile(np.array(steps), len(ids))}
        for name, kind in self.kinds_.items():
            columns: list[Any] = [getattr(now[name], "codes", now[name]) for now in states[1:]]
            values = np.stack(columns, axis=1).ravel()
            frame[name] = values if kind is None else pd.Categorical.from_codes(values, dtype=kind)
        return pd.DataFrame(frame, copy=False)

    def _step(self, world: World, order: list[str], rows: slice, step: int, before: State) -> State:
        now: dict[str, Column] = {}
        for name in order:
            action = world.actions.get((name, step))
            if action is None or callable(action):  # a rule may look at the natural value
                mechanism = self._mechanism(name, step)
                parents = self._parents(name, step, now, before)
                noise = world.noise(name, step, rows, mechanism.noise_terms)
                coupled = [world.coupling] if isinstance(mechanism, CategoricalMechanism) else []
                place = f"variable {name!r} at step {step}, {type(mechanism).__name__}"
                with told(place):
                    now[name] = mechanism.evaluate(parents, noise, *coupled)
                if self.kinds_[name] is None:
                    now[name] = as_column(now[name], None, place, noise.shape[1])
            if action is not None:
                now[name] = world.value(name, step, rows, now, before)
        return now

    def _mechanism(self, name: str, step: int) -> Mechanism:
        return (self.transition_ if step > 0 else self.initial_)[name]

    def _parents(self, name: str, step: int, now: State, before: State) -> Parents:
        # Only the declared causes, so that no mechanism can read anything else.
        today, past = self.specification.variables[name].causes(step)
        return Parents({name: now[name] for name in today}, {name: before[name] for name in past})
