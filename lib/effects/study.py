"""A study: its subjects, their treatments and outcomes, and, if known, the true effects.

Estimators learn from the observed subjects who took one of two arms. They are marked on test
subjects, whose outcomes in both arms are known.
"""

import contextlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lib.errors import InputError, check, check_known, check_names, check_once, told
from lib.files import ENDINGS, AnyPath, atomic_write, read_table, write_parquet

#: What estimators learn from: covariates of n subjects, (n, p), and one number for each, (n,).
Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]

#: A table, or the CSV or Parquet file that holds it.
Table: TypeAlias = pd.DataFrame | AnyPath

#: The covariates that an estimator may adjust for (paper, Section 4.1). The full set is everything
#: before the treatment. Numbers stand first, as in the reference's encoding, because trees break
#: ties by the order of columns.
FULL_ADJUSTMENT = (
    *("age", "capital-net", "hours-per-week", "education-num", "income_prev"),
    *("native-country", "sex", "race", "education", "workclass", "occupation"),
    *("marital-status", "relationship", "studies_prev"),
)
#: The minimal set is the direct causes of the treatment alone, with education by its rank.
MINIMAL_ADJUSTMENT = ("age", "education-num", "income_prev", "sex", "relationship", "studies_prev")

#: The adjustment sets of the paper, by name.
ADJUSTMENT_SETS = {"full": FULL_ADJUSTMENT, "minimal": MINIMAL_ADJUSTMENT}

#: The arms of the paper: without and with the treatment.
ARMS = ("No studies", "Full-time studies")

#: The column of the groups in the paper's Task 3. Only this one may be absent from the tables.
GROUP = "education-num"

#: The tables of a study.
TABLES = ("observational", "control", "treated")

#: From this size on, squares or sums of many squares may overflow.
LARGE = 1e150

#: Trees see no gain in outcomes that scatter by less than this, or by less than this share of
#: their size: XGBoost takes smaller gains than 1e-6 for rounding, and has seven digits.
FAINT, FAINT_SHARE = 1e-3, 1e-6

#: Field → name of its file, for the tables of a study and for what else may be known.
FILES = dict(zip(TABLES, TABLES, strict=True)) | {
    "probabilities": "propensities",
    "test_probabilities": "test_propensities",
    "truth": "test_effects",
}

#: What pandas may infer about values of a covariate; other kinds could be read in several ways.
KINDS = {"integer", "floating", "mixed-integer-float", "boolean", "string", "empty"}


@dataclass(frozen=True)
class TrueEffects:
    """Mean and variance, (m,), of each subject's sampled effect in `repeats` runs of its future."""

    mean: np.ndarray
    variance: np.ndarray
    repeats: int

    @property
    def variance_of_effects(self) -> float:
        r"""Return Var(τ), cleared of the noise that K repeats leave in the means.

        .. math:: \max\Bigl(0, \widehat{\mathrm{Var}}(\bar d_i) - \frac1K \overline{s_i^2}\Bigr)
        """
        return max(0.0, float(self.mean.var(ddof=1) - self.variance.mean() / self.repeats))

    @property
    def ceiling(self) -> float:
        """Return the R² of the true effects against single differences; nan if nothing varies."""
        total = self.variance_of_effects + float(self.variance.mean())
        return self.variance_of_effects / total if total > 0 else float("nan")

    @property
    def error_of_ceiling(self) -> float:
        r"""Return the standard error of the ceiling for m sampled subjects, by the delta method.

        .. math:: \frac{1}{\sqrt m}\,\operatorname{sd}\left( \frac{(1 - c)\,
            \bigl((\bar d_i - \bar d)^2 - s_i^2 / K\bigr) - c\,s_i^2}{V + \overline{s_i^2}} \right)

        for the ceiling c and the variance V of the effects, which must not be 0.
        """
        between = (self.mean - self.mean.mean()) ** 2 - self.variance / self.repeats
        total, ceiling = self.variance_of_effects + self.variance.mean(), self.ceiling
        moves = (1 - ceiling) * between - ceiling * self.variance
        return float(moves.std(ddof=1) / total / len(moves) ** 0.5)


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Tables, a question about them and, if known, its answer; all is checked on creation.

    `dataclasses.replace(study, adjustment="minimal")` asks another question of the same tables.
    Tables that can be read in more than one way are refused. If `control` and `treated` differ in
    a few covariates, a warning is given and the values of `control` are used.

    Attributes
    ----------
    observational : pandas.DataFrame
        One row per subject: covariates, treatment, outcome. Only the n rows in the arms are used.
    control, treated : pandas.DataFrame
        The same m other subjects without and with the treatment. If the treatment is a column of
        these tables, it must hold the first arm in `control` and the second in `treated`.
    adjustment, arms : {"full", "minimal"} or sequence of str, tuple of str
        The covariates to adjust for, those of IncomeSCM by a word; the levels of both arms.
    group : str or None
        The column of `control` that holds the groups within which effects are averaged.
    truth : TrueEffects or array of shape (m,), optional
        Monte-Carlo effects of the test subjects.
    probabilities, test_probabilities : pandas.DataFrame, optional
        The true probability of every level of the treatment, for each row of `observational`; and
        for each test subject, as if nobody had assigned an arm.
    impute : bool
        Fill in missing covariates: a number becomes the mean, a category becomes none of its
        levels, and a column `… missing` marks the rows.
    covariates, test_covariates : pandas.DataFrame
        Derived, like all fields below. The encoded covariates of the n and of the m subjects:
        numbers are standardised by the n, categories are one-hot. A level that only test subjects
        have gets no column, and a warning if it is not rare.
    arm, outcomes, arm_probability : numpy.ndarray, shape (n,)
        1.0 for the treated, 0.0 for the controls; the outcomes; the true probability, among all
        levels of the treatment, of the arm that was taken, or None if it is unknown.
    difference, effects, groups : numpy.ndarray, shape (m,)
        The sampled effects, treated less control; the true effects, or None; groups, or None.
    missing : dict of str to int
        Covariate → how many of its values are missing and not filled in.
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
    test_probabilities: pd.DataFrame | None = None
    impute: bool = False
    covariates: pd.DataFrame = field(init=False)
    test_covariates: pd.DataFrame = field(init=False)
    arm: np.ndarray = field(init=False)
    outcomes: np.ndarray = field(init=False)
    arm_probability: np.ndarray | None = field(init=False)
    difference: np.ndarray = field(init=False)
    effects: np.ndarray | None = field(init=False)
    groups: np.ndarray | None = field(init=False)
    missing: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        vars(self).update({which: read_table(getattr(self, which)) for which in TABLES})
        names = self._adjustment_set()
        for which in TABLES:
            _check_columns(which, getattr(self, which), [*names, self.outcome])
        check_once("covariate", names)
        used = self._rows_in_arms()
        for table in (self.observational[used], self.control, self.treated):
            _check_outcome(table[self.outcome])
        alone = self.alone
        for which, level in zip(TABLES[1:], self.arms, strict=True):
            took = getattr(self, which).get(self.treatment, pd.Series([level])).unique().tolist()
            rule = f"the {which} table must have subjects with {level!r}{'' if alone else ' alone'}"
            check(level in took if alone else took == [level], rule, took)
        rows, control, treated = self.observational[used], self.control, self.treated
        if self.group not in (None, GROUP):
            check_known("group", self.group, control)
        effects = self.truth.mean if isinstance(self.truth, TrueEffects) else self.truth
        if effects is not None:
            rule, shape = "truth must have one effect per test subject", np.shape(effects)
            check(shape == (len(control),), f"{rule}, {len(control):,}", shape)
            if isinstance(effects, pd.Series):
                check_subjects("truth", effects, control)
            with told("true effects"):
                effects = np.asarray(effects, dtype=float)
            check_finite("true effects", effects)
        if self.test_probabilities is not None:
            _probabilities("test_probabilities", self.test_probabilities, self.arms, control)
        check_subjects("treated", treated, control)
        parts = [table[names].astype(object) for table in (rows, control, treated)]
        if not parts[1].equals(parts[2]):
            _check_same_subjects(*parts[1:])
        both, declared = pd.concat(parts[:2], ignore_index=True), rows.dtypes == "category"
        encoded = [_encoded(both[k], len(rows), declared[k], self.impute) for k in names]
        covariates, absent = pd.concat(encoded, axis=1), both.isna().sum()
        check_once("name of an encoded covariate", covariates)
        arm = (rows[self.treatment] == self.arms[1]).to_numpy(dtype=float)
        seen, tested = covariates[: len(rows)], covariates[len(rows) :].reset_index(drop=True)
        outcomes = rows[self.outcome].to_numpy(dtype=float)
        worlds = [table[self.outcome].to_numpy(dtype=float) for table in (control, treated)]
        groups = control[self.group].to_numpy() if self.group in control else None
        rule = f"column {self.group!r} must tell the group of at least one test subject"
        check(groups is None or not pd.isna(groups).all(), rule, "none")
        missing = {} if self.impute else absent[absent > 0].to_dict()
        vars(self).update(covariates=seen, test_covariates=tested, arm=arm, outcomes=outcomes)
        vars(self).update(difference=worlds[1] - worlds[0], groups=groups, effects=effects)
        vars(self).update(arm_probability=self._probability_of(arm, used), missing=missing)

    def __repr__(self) -> str:
        """Show the question and how many subjects there are; the tables would fill the screen."""
        asked = f"{self.treatment}: {self.arms[0]} or {self.arms[1]} → {self.outcome}"
        people = f"{len(self.arm):,} seen in the arms, {len(self.control):,} test subjects"
        return f"{type(self).__name__}({asked}; {people})"

    @property
    def alone(self) -> bool:
        """Say whether one table stands for all three, so that the other outcomes are unknown."""
        return self.treatment in self.control and self.control.equals(self.treated)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the three tables and, where known, `propensities` and Monte-Carlo effects."""
        found = {name: getattr(self, field) for field, name in FILES.items()}
        if isinstance(self.truth, TrueEffects):
            found["test_effects"] = pd.DataFrame(vars(self.truth))
        elif self.effects is not None:
            found["test_effects"] = pd.DataFrame({"mean": self.effects})
        return {name: one for name, one in found.items() if isinstance(one, pd.DataFrame)}

    def to_parquet(self, folder: AnyPath) -> Path:
        """Write :meth:`tables` to a folder, a file each, all or none, and return its path."""
        with atomic_write(folder, [f"{name}.parquet" for name in FILES.values()]) as beside:
            named = self.tables().items()
            write_parquet((beside / f"{name}.parquet", table) for name, table in named)
        return Path(folder)

    def _adjustment_set(self) -> list[str]:
        chosen = self.adjustment
        if isinstance(chosen, str):
            check_known("adjustment", chosen, ADJUSTMENT_SETS)
            what, chosen = f"adjustment={chosen!r} of IncomeSCM: column", ADJUSTMENT_SETS[chosen]
            check_names(what, chosen, self.observational)
        rule = "the adjustment set must be a sequence, and name at least one covariate"
        check(hasattr(chosen, "__getitem__") and len(chosen) > 0, rule, chosen)
        adjusted = [name for name in chosen if name in (self.treatment, self.outcome)]
        check(not adjusted, "adjustment must not hold the treatment or the outcome", adjusted)
        return list(chosen)

    def _rows_in_arms(self) -> np.ndarray:
        check_known("observational column", self.treatment, self.observational)
        taken = self.observational[self.treatment].astype(object)
        absent = int(taken.isna().sum())
        check(absent == 0, f"column {self.treatment!r} must have no missing value", absent)
        check(np.shape(self.arms) == (2,), "the arms must be two levels", self.arms)
        check_names("arm", self.arms, taken.unique())
        check(self.arms[0] != self.arms[1], "the two arms must differ", self.arms)
        _check_spelling(taken)
        return np.asarray(taken.isin(self.arms))

    def _probability_of(self, arm: Vector, used: np.ndarray) -> Vector | None:
        if self.probabilities is None:
            return None
        both = _probabilities("probabilities", self.probabilities, self.arms, self.observational)
        taken: Vector = np.where(arm == 1, both[used, 1], both[used, 0])
        check(bool((taken > 0).all()), "probability of the arm that was taken must be above 0", 0.0)
        return taken


def read_study(
    observational: Table, control: Table | None = None, treated: Table | None = None, **fields: Any
) -> Study:
    """Make a :class:`Study` from three tables, or from the CSV or Parquet files that hold them.

    A folder that :meth:`Study.to_parquet` has written can be given alone; any truth in it is read,
    too. A table that is given alone holds the observed subjects, whose other outcome is unknown:
    their effects can be estimated, but the estimates cannot be marked.

    Examples
    --------
    >>> seen = pd.DataFrame({"age": [30, 40, 50], "drug": ["old", "new", "old"], "pain": [2, 1, 3]})
    >>> fields = {"treatment": "drug", "arms": ("old", "new"), "outcome": "pain"}
    >>> read_study(seen, adjustment=["age"], **fields)
    Study(drug: old or new → pain; 3 seen in the arms, 3 test subjects)
    """
    given: dict[str, Any] = dict(zip(TABLES, (observational, control, treated), strict=True))
    rule = "a study needs one table or three; name other arguments, as in estimators=['aipw']"
    check((control is None) == (treated is None), rule, 2)
    if control is None:
        path = Path(observational) if isinstance(observational, str | os.PathLike) else None
        if path is None or path.suffix in ENDINGS or path.is_file():
            given = dict.fromkeys(TABLES, read_table(observational))  # once for all three
        else:
            paths = {field: path / f"{name}.parquet" for field, name in FILES.items()}
            given = {k: one for k, one in paths.items() if k in TABLES or one.exists()}
    frames = {name: read_table(one) for name, one in given.items()}
    if "truth" in frames:
        table = frames["truth"]
        check_subjects("truth", table, frames["control"])
        # Of effects that are known exactly, there is only the mean.
        known = ("mean", "variance", "repeats") if len(table.columns) > 1 else ("mean",)
        check_names("column of the truth", known, table)
        mean, *spread = (table[name].to_numpy() for name in known)
        frames["truth"] = TrueEffects(mean, spread[0], int(spread[1][0])) if spread else mean
    chances = [name for name in ("probabilities", "test_probabilities") if name in frames]
    taken = frames["observational"].get(fields.get("treatment", "studies"), pd.Series())
    levels = {str(level): level for level in taken.unique()}  # a file names its columns by texts
    frames |= {name: frames[name].rename(columns=levels) for name in chances}
    return Study(**frames | fields)


def check_finite(what: str, numbers: Vector | pd.Series) -> None:
    """Refuse numbers that are missing, infinite or :data:`LARGE`."""
    wrong = numbers[~(np.abs(numbers) < LARGE)].tolist()
    check(not wrong, f"{what} must be finite numbers below {LARGE}", wrong[:3])


def varies(numbers: Vector) -> bool:
    """Say whether numbers differ by more than rounding, unlike 0.1 + 0.2 and 0.3."""
    return bool(np.ptp(numbers) > 1e-14 * np.abs(numbers).max())


def check_subjects(name: str, table: pd.DataFrame | pd.Series, others: pd.DataFrame) -> None:
    """Refuse rows of other subjects, or in another order, if indices or columns name them."""
    rule = f"{name} must have a row for every subject, in the order of the subjects"
    # Other names of rows say nothing: such rows go by their position.
    moved = not table.index.equals(others.index) and {*table.index} == {*others.index}
    check(not moved, rule, table.index[:3].tolist())
    if "subject" in table and "subject" in others:
        numbers = table["subject"].tolist()
        check(numbers == others["subject"].tolist(), rule, numbers[:3])


def _probabilities(
    which: str, table: pd.DataFrame, arms: tuple[str, str], whose: pd.DataFrame
) -> Matrix:
    rule = f"{which} must be a data frame with a column per arm"
    check(isinstance(table, pd.DataFrame), rule, type(table).__name__)
    check_names(f"{which} column", arms, table)
    rule = f"{which} must have one row per subject, {len(whose):,}"
    check(len(table) == len(whose), rule, len(table))
    check_subjects(which, table, whose)
    # Not by a list of names: one of truth values would choose rows.
    both: Matrix = table.reindex(columns=[*arms]).to_numpy(dtype=float)
    wrong = both[~((both >= 0) & (both <= 1))].tolist()
    check(not wrong, f"{which} must lie between 0 and 1", wrong[:3])
    above = both[both.sum(axis=1) > 1.015].tolist()  # two rounded to per cent may sum to 1.01
    check(not above, f"{which} of both arms must sum to at most 1", above[:3])
    return both


def tempered(probabilities: pd.DataFrame, power: float) -> pd.DataFrame:
    r"""Raise the probabilities of levels, one row per subject, to a power γ, and normalise them.

    .. math:: P_\gamma(a \mid z) = \frac{P(a \mid z)^\gamma}{\sum_b P(b \mid z)^\gamma}
    """
    raised = probabilities**power
    return raised.div(raised.sum(axis=1), axis=0)


def _check_columns(which: str, table: pd.DataFrame, names: list[str]) -> None:
    check_once(f"{which} column", table)
    check_names(f"{which} column", names, table)
    check(len(table) > 0, f"the {which} table must have rows", 0)


def _check_outcome(column: pd.Series) -> None:
    rule = f"outcome {column.name!r} must be finite numbers below {LARGE}, not {column.dtype}"
    check(column.dtype.kind in "iuf", rule, column.head(3).tolist())
    numbers = column.to_numpy(dtype=float)
    check_finite(f"outcome {column.name!r}", numbers)
    least, deviation = max(FAINT, FAINT_SHARE * np.abs(numbers).max()), numbers.std()
    rule = f"outcome {column.name!r} must scatter by {least:g} or more; count it in other units"
    check(deviation >= least or not varies(numbers), rule, f"a standard deviation of {deviation:g}")


def _check_same_subjects(control: pd.DataFrame, treated: pd.DataFrame) -> None:
    rule, sizes = "control and treated must hold the same subjects", [len(control), len(treated)]
    check(sizes[0] == sizes[1], f"{rule}, row by row", sizes)
    control, treated = (table.reset_index(drop=True) for table in (control, treated))
    differ = (control.ne(treated) & ~(control.isna() & treated.isna())).sum()
    if not differ.any():
        return
    differ = differ[differ > 0]
    found = ", ".join(f"{count:,} rows differ in {name!r}" for name, count in differ.items())
    rows = [sorted(map(str, table.to_numpy().tolist())) for table in (control, treated)]
    # If simulators share noise by a common seed alone, the arms lose step once one of them has made
    # an extra draw. A covariate that is drawn later in the same year may then differ.
    varied = pd.concat([control, treated]).nunique().gt(1)  # a constant column says nothing
    if 2 * len(differ) > varied.sum() or rows[0] == rows[1]:
        raise InputError(f"{rule} in the same order: {found}")
    warnings.warn(f"control and treated differ; control's values are used: {found}", stacklevel=5)


def _is_categorical(column: pd.Series, declared: bool) -> bool:
    """Say whether a covariate is categorical; refuse one that could be read in two ways."""
    name, kind = column.name, pd.api.types.infer_dtype(column)
    if kind not in KINDS:
        found = sorted({type(value).__name__ for value in column.dropna()})
        rule = "must hold only numbers, only text or only truth values, alike in all tables"
        raise InputError(f"covariate {name!r} {rule}: found {', '.join(found)}")
    if kind == "string":
        levels = pd.Series(column.unique(), name=name).dropna()
        _check_spelling(levels)
        strange = levels[pd.to_numeric(levels, errors="coerce").isna()].tolist()
        unclear = not declared and 0 < 2 * len(strange) < len(levels)
        rule = f"text {name!r} must be a pandas Categorical if most levels, not all, are numbers"
        check(not unclear, rule, strange[:3])
    return declared or kind in ("boolean", "string", "empty")


def _check_spelling(column: pd.Series) -> None:
    """Refuse levels that differ only in capitals or spaces, or that spell the same number."""
    known: dict[str | float, str] = {}
    for level in column.unique():
        said: str | float = " ".join(str(level).casefold().split())
        with contextlib.suppress(ValueError):
            said = float(said)
        other = known.setdefault(said, level)
        check(other == level, f"column {column.name!r} must spell each level alike", [other, level])


def _encoded(column: pd.Series, n: int, declared: bool, impute: bool) -> pd.DataFrame:
    """Encode a covariate by its first n values; the others are those of the test subjects."""
    # Not with scikit-learn: its one-hot encoder makes a missing category a level of its own or no
    # level at all, but trees need it to be missing in all columns of the category.
    name, absent, known = column.name, column.isna(), column[:n].dropna()
    if _is_categorical(column, declared) or known.empty:
        levels = sorted(known.unique(), key=str)
        codes = pd.Index(levels, dtype=object).get_indexer(column)
        encoded = {f"{name} = {level}": codes == k for k, level in enumerate(levels)}
        _warn_of_unseen(column[n:][codes[n:] < 0], n, len(column) - n)
    else:
        values, numbers = column.mask(absent, np.nan).astype(float), known.to_numpy(dtype=float)
        check_finite(f"covariate {name!r}", values[~absent])
        encoded = {name: (values - numbers.mean()) / (numbers.std() if varies(numbers) else 1.0)}
    place = {f"{name} missing": absent.astype(float)} if impute and absent.any() else {}
    filled = 0.0 if impute else np.nan  # 0 is the mean
    filled_in = {k: np.where(absent, filled, v) for k, v in encoded.items()}
    return pd.DataFrame(place | filled_in, column.index)  # also without any level


def _warn_of_unseen(levels: pd.Series, seen: int, tested: int) -> None:
    """Warn if many test subjects have a level that no observed subject in the arms has.

    If both are drawn from the same population, all k subjects with a level are test subjects with a
    probability of at most (m / (n + m))^k.
    """
    for level, count in levels.value_counts().items():
        if (tested / (seen + tested)) ** count < 1e-6:
            found = f"{count:,} of {tested:,} test subjects have {level!r}"
            rule = f"covariate {levels.name!r}: {found}, which no observed subject in the arms has"
            warnings.warn(rule, stacklevel=7)
