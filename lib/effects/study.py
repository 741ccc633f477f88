"""A study: who was seen, what they took, what became of them, and what the answer is.

Estimators learn from the observational subjects who took one of the two arms.
They are marked on other subjects, of whom both outcomes are known.
"""

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.errors import InputError, one_of
from lib.files import atomic_write, read_table, write_parquet

#: What an estimator may adjust for (paper, Section 4.1): everything before the treatment …
FULL_ADJUSTMENT = (
    *("native-country", "sex", "race", "age", "education", "workclass", "occupation"),
    *("marital-status", "relationship", "capital-net", "hours-per-week", "education-num"),
    *("income_prev", "studies_prev"),
)
#: … or the direct causes of the treatment alone.
MINIMAL_ADJUSTMENT = ("age", "education-num", "sex", "relationship", "income_prev", "studies_prev")

#: The adjustment sets of the paper, by name.
ADJUSTMENT_SETS = {"full": FULL_ADJUSTMENT, "minimal": MINIMAL_ADJUSTMENT}

#: The arms of the paper: without and with the treatment.
ARMS = ("No studies", "Full-time studies")

#: The groups of the paper's Task 3; only this column may be absent.
GROUP = "education-num"

#: What pandas infers of the values of a column → what they are here.
KINDS = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float"), "numbers"),
    "boolean": "truth values",
    "string": "text",
    "empty": None,
}


@dataclass(frozen=True)
class TrueEffects:
    """Monte-Carlo effects of m subjects, in the unit of the outcome.

    Attributes
    ----------
    mean, variance : numpy.ndarray, shape (m,)
        Of a subject's differences, treated less control.
    repeats : int
        How often each subject's future was run.

    Examples
    --------
    >>> TrueEffects(np.array([0.0, 4.0]), np.array([4.0, 4.0]), repeats=2).ceiling
    0.6
    """

    mean: np.ndarray
    variance: np.ndarray
    repeats: int

    @property
    def variance_of_effects(self) -> float:
        r"""Return Var(τ), cleared of the noise that K repeats leave in the means.

        .. math::
            \widehat{\mathrm{Var}}(\tau)
            = \max\Bigl(0, \widehat{\mathrm{Var}}(\bar d_i) - \frac1K \overline{s_i^2}\Bigr)
        """
        return max(0.0, float(self.mean.var(ddof=1) - self.variance.mean() / self.repeats))

    @property
    def ceiling(self) -> float:
        """Return the R² of the true effects against single differences; nan if none varies."""
        total = self.variance_of_effects + float(self.variance.mean())
        return self.variance_of_effects / total if total > 0 else float("nan")


class _Encoded(NamedTuple):
    seen: pd.DataFrame
    tests: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Study:
    r"""Tables, a question about them and, if known, its answer; checked when it is made.

    `dataclasses.replace(study, adjustment="minimal")` asks another question of the same tables.

    Attributes
    ----------
    observational : pandas.DataFrame
        One row a subject: covariates, treatment, outcome. Only the n rows in the arms are used.
    control, treated : pandas.DataFrame
        The same m other subjects without and with the treatment.
    adjustment : {"full", "minimal"} or sequence of str
        The covariates.
    arms : tuple of str
        The control's level of the treatment, and the treated's.
    treatment, outcome : str
        Columns.
    group : str, optional
        A column of the test subjects to average effects by.
    truth : TrueEffects or array of shape (m,), optional
        Monte-Carlo effects of the test subjects.
    probabilities : pandas.DataFrame, optional
        The true probability of every level of the treatment, one row a row of `observational`.
    impute : bool
        Fill missing covariates in: a number becomes the mean, a category none of its levels, and
        a column `… missing` says where.

    Raises
    ------
    InputError
        If the tables cannot be read as a study in one way only.

    Warns
    -----
    UserWarning
        If control and treated differ in a few covariates; the test covariates are the control's.

    Examples
    --------
    >>> seen = pd.DataFrame({"age": [20, 40, 30], "studies": ["no", "yes", "no"]})
    >>> seen = seen.assign(income=[1.0, 5.0, 3.0])
    >>> study = Study(seen, seen, seen.assign(income=9), ["age"], ("no", "yes"))
    >>> study.covariates["age"].round(2).tolist(), study.difference.tolist()
    ([-1.22, 1.22, 0.0], [8.0, 4.0, 6.0])
    """

    observational: pd.DataFrame
    control: pd.DataFrame
    treated: pd.DataFrame
    adjustment: str | Sequence[str] = "full"
    arms: tuple[str, str] = ARMS
    treatment: str = "studies"
    outcome: str = "income"
    group: str | None = GROUP
    truth: TrueEffects | np.ndarray | None = None
    probabilities: pd.DataFrame | None = None
    impute: bool = False

    def __post_init__(self) -> None:
        names = self.adjustment_set
        for name in (self.treatment, self.outcome):
            if name in names:
                raise InputError(f"the adjustment set must not hold {name!r}, which it adjusts")
        for which, table in self._tables.items():
            more = [self.treatment] if which == "observational" else []
            _check_table(which, table, [*names, *more, self.outcome], self.outcome)
        self._check_treatment()
        self._check_test_subjects()
        for name in names:
            self._check_covariate(name)
        if self.probabilities is not None:
            self._check_probabilities()
        self._encoded  # noqa: B018 (what cannot be encoded is refused now, not later)

    @cached_property
    def adjustment_set(self) -> list[str]:
        """The names of the covariates."""
        names = self.adjustment
        if isinstance(names, str):
            if names not in ADJUSTMENT_SETS:
                raise InputError(f"adjustment {names!r} is unknown: {one_of(ADJUSTMENT_SETS)}")
            names = ADJUSTMENT_SETS[names]
        if not list(names):
            raise InputError("the adjustment set must name at least one covariate: found none")
        return list(names)

    @cached_property
    def covariates(self) -> pd.DataFrame:
        """The n seen subjects: numbers standardised, categories one-hot."""
        return self._encoded.seen

    @cached_property
    def test_covariates(self) -> pd.DataFrame:
        """The m test subjects, encoded as the n were."""
        return self._encoded.tests

    @cached_property
    def arm(self) -> np.ndarray:
        """1.0 for the treated and 0.0 for the controls among the n."""
        return (self._taken[self._used] == self.arms[1]).to_numpy(dtype=float)

    @cached_property
    def outcomes(self) -> np.ndarray:
        """The outcomes of the n."""
        return self.observational.loc[self._used, self.outcome].to_numpy(dtype=float)

    @cached_property
    def difference(self) -> np.ndarray:
        """The sampled effects of the m, with less without the treatment."""
        treated, control = (table[self.outcome] for table in (self.treated, self.control))
        return treated.to_numpy(dtype=float) - control.to_numpy(dtype=float)

    @cached_property
    def groups(self) -> np.ndarray | None:
        """The groups of the m, if they have any."""
        return self.control[self.group].to_numpy() if self.group in self.control else None

    @cached_property
    def effects(self) -> np.ndarray | None:
        """The true effects of the m, if they are known."""
        truth = self.truth.mean if isinstance(self.truth, TrueEffects) else self.truth
        return None if truth is None else np.asarray(truth, dtype=float)

    @cached_property
    def arm_probability(self) -> np.ndarray | None:
        """The true probability, among all levels, of the arm that each of the n took."""
        if self.probabilities is None:
            return None
        control, treated = self.probabilities[list(self.arms)].to_numpy(dtype=float)[self._used].T
        return np.where(self.arm == 1, treated, control)

    @cached_property
    def missing(self) -> dict[str, int]:
        """Covariates with missing values that are not filled in, and how many."""
        if self.impute:
            return {}
        seen = self.observational.loc[self._used, self.adjustment_set]
        counts = seen.isna().sum() + self.control[self.adjustment_set].isna().sum()
        return counts[counts > 0].to_dict()

    def to_parquet(self, folder: str | os.PathLike) -> Path:
        """Write one file a table, and `propensities` if known, into a folder; return it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in (self._tables | {"propensities": self.probabilities}).items():
            if table is not None:
                with atomic_write(folder / f"{name}.parquet") as beside:
                    write_parquet(beside, [table])
        return folder

    @property
    def _tables(self) -> dict[str, pd.DataFrame]:
        return {name: getattr(self, name) for name in ("observational", "control", "treated")}

    @cached_property
    def _taken(self) -> pd.Series:
        return self.observational[self.treatment].astype(object)

    @cached_property
    def _used(self) -> np.ndarray:
        return self._taken.isin(self.arms).to_numpy()

    @cached_property
    def _encoded(self) -> _Encoded:
        names = self.adjustment_set
        return _encode(self.observational.loc[self._used, names], self.control[names], self.impute)

    def _check_treatment(self) -> None:
        taken, name = self._taken, self.treatment
        if count := taken.isna().sum():
            raise InputError(f"column {name!r} has {count:,} missing values")
        for arm in self.arms:
            if not (taken == arm).any():
                raise InputError(f"arm {arm!r} of {name!r} has no rows: {one_of(taken.unique())}")
        if self.arms[0] == self.arms[1]:
            raise InputError(f"the two arms must differ: found {self.arms[0]!r} twice")
        _check_spelling(name, taken)

    def _check_test_subjects(self) -> None:
        control, treated = self.control, self.treated
        if len(control) != len(treated):
            raise InputError(
                "control and treated must be the same subjects: found "
                f"{len(control):,} and {len(treated):,} rows"
            )
        if self.group not in (None, GROUP, *control):
            raise InputError(f"group {self.group!r} is unknown: {one_of(control)}")
        if self.effects is not None and self.effects.shape != (len(control),):
            raise InputError(
                f"truth must have one effect a test subject, {len(control):,}: "
                f"found shape {self.effects.shape}"
            )
        differ = {}
        for name in self.adjustment_set:
            one, other = (t[name].astype(object).to_numpy() for t in (control, treated))
            if count := int(((one != other) & ~(pd.isna(one) & pd.isna(other))).sum()):
                differ[name] = count
        if not differ:
            return
        found = ", ".join(f"{count:,} rows differ in {name!r}" for name, count in differ.items())
        rows = [
            Counter(zip(*(table[name].astype(str) for name in self.adjustment_set), strict=True))
            for table in (control, treated)
        ]
        # Simulators that share noise by a common seed alone lose step once an arm has drawn once
        # more, so that a covariate drawn later in the same year may differ.
        if 2 * len(differ) > len(self.adjustment_set) or rows[0] == rows[1]:
            raise InputError(
                f"control and treated must be the same subjects in the same order: {found}"
            )
        warnings.warn(
            f"control and treated differ, the control's values are used: {found}", stacklevel=5
        )

    def _check_covariate(self, name: str) -> None:
        columns = {which: table[name] for which, table in self._tables.items()}
        kinds = {which: _kind(name, column) for which, column in columns.items()}
        if len(set(kinds.values()) - {None}) > 1:
            found = ", ".join(f"{kind} in {which}" for which, kind in kinds.items())
            raise InputError(f"covariate {name!r} must be of one kind in all tables: found {found}")
        if "text" in kinds.values():
            levels = pd.concat([column.astype(object) for column in columns.values()])
            _check_spelling(name, levels)
            if not isinstance(self.observational[name].dtype, pd.CategoricalDtype):
                _check_text(name, levels)

    def _check_probabilities(self) -> None:
        table, n = self.probabilities, len(self.observational)
        for arm in self.arms:
            if arm not in table:
                raise InputError(f"probabilities lack the arm {arm!r}: {one_of(table)}")
        if len(table) != n:
            raise InputError(
                f"probabilities must have one row a seen subject, {n:,}: found {len(table):,}"
            )
        both = table[list(self.arms)].to_numpy(dtype=float)
        wrong = both[~((both >= 0) & (both <= 1))]
        if wrong.size:
            raise InputError(f"probabilities must be within 0 and 1: found {wrong[0]}")
        if none := int((self.arm_probability == 0).sum()):
            raise InputError(
                f"what was taken must have a probability above 0: found 0 for {none:,} subjects"
            )


def read_study(
    observational: pd.DataFrame | str | os.PathLike,
    control: pd.DataFrame | str | os.PathLike,
    treated: pd.DataFrame | str | os.PathLike,
    **fields,
) -> Study:
    """Make a :class:`Study` of three tables, or of the CSV or Parquet files that hold them."""
    tables = (
        table if isinstance(table, pd.DataFrame) else read_table(table)
        for table in (observational, control, treated)
    )
    return Study(*tables, **fields)


def _check_table(which: str, table: pd.DataFrame, needed: list[str], outcome: str) -> None:
    for name in needed:
        if name not in table:
            raise InputError(
                f"the {which} table lacks column {name!r}: found {', '.join(map(str, table))}"
            )
    if table.empty:
        raise InputError(f"the {which} table has no rows")
    column = table[outcome]
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        raise InputError(f"outcome {outcome!r} must be numbers: found {column.iloc[0]!r}")
    if wrong := int((~np.isfinite(column.to_numpy(dtype=float))).sum()):
        raise InputError(
            f"outcome {outcome!r} of the {which} table has {wrong:,} values that are missing or "
            "not finite"
        )


def _kind(name: str, column: pd.Series) -> str | None:
    """Say what a covariate holds, whatever type of column it is kept in."""
    values = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    inferred = pd.api.types.infer_dtype(values, skipna=True)
    if inferred not in KINDS:
        raise InputError(
            f"covariate {name!r} must hold numbers, truth values or text: found {inferred}"
        )
    return KINDS[inferred]


def _check_spelling(name: str, values: pd.Series) -> None:
    """Refuse levels that are told apart by capitals or spaces only."""
    known: dict[str, str] = {}
    for level in values.dropna().unique():
        other = known.setdefault(str(level).strip().casefold(), level)
        if other != level:
            raise InputError(f"column {name!r} spells one level in two ways: {other!r}, {level!r}")


def _check_text(name: str, values: pd.Series) -> None:
    """Refuse numbers among which stands something else, such as a mark for a missing one."""
    levels = pd.Series(values.dropna().unique())
    others = levels[pd.to_numeric(levels, errors="coerce").isna()]
    if 0 < 2 * len(others) < len(levels):
        raise InputError(
            f"covariate {name!r} is text, but {len(levels) - len(others):,} of its {len(levels):,} "
            f"levels are numbers: found {others.iloc[0]!r} among them; if they are the names of "
            "categories, make the column a pandas Categorical"
        )


def _encode(seen: pd.DataFrame, tests: pd.DataFrame, impute: bool) -> _Encoded:
    """Encode both by what the first hold; a level that only the others have has no column.

    Not by scikit-learn's transformers: to its one-hot encoder a missing category is a level or
    none, but trees want it to be missing in all the columns of the category.
    """
    n, both, encoded = len(seen), pd.concat([seen, tests], ignore_index=True), []
    for name, column in both.items():
        absent, here = column.isna().to_numpy(), column[:n]
        if impute and absent.any():
            encoded.append((f"{name} missing", absent.astype(float)))
        if isinstance(seen[name].dtype, pd.CategoricalDtype) or _kind(name, here) != "numbers":
            values = column.astype(object).to_numpy()
            for level in sorted(here.dropna().unique(), key=str):
                is_level = (values == level).astype(float)
                encoded.append((f"{name} = {level}", np.where(absent, np.nan, is_level)))
            continue
        values = column.to_numpy(dtype=float)
        if np.isinf(values).any():
            raise InputError(f"covariate {name!r} has values that are not finite")
        mean, deviation = values[:n][~absent[:n]].mean(), values[:n][~absent[:n]].std()
        encoded.append((name, (values - mean) / (deviation or 1.0)))
    twice = [name for name, count in Counter(name for name, _ in encoded).items() if count > 1]
    if twice:
        raise InputError(f"two covariates are encoded as {twice[0]!r}: rename one of them")
    table = pd.DataFrame(dict(encoded))
    if impute:  # a standardised number of 0 is the mean
        table = table.fillna(0.0)
    return _Encoded(table[:n], table[n:].reset_index(drop=True))
