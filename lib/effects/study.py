"""A study: who was seen, what they took, what became of them, and what the answer is.

Estimators learn from the observational subjects who took one of the two arms.
They are marked on other subjects, of whom both outcomes are known.
"""

import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.errors import InputError, one_of
from lib.income.study import FULL_ADJUSTMENT, MINIMAL_ADJUSTMENT

#: The adjustment sets of the paper, by name (its Section 4.1).
ADJUSTMENT_SETS = {"full": FULL_ADJUSTMENT, "minimal": MINIMAL_ADJUSTMENT}

#: The arms of the paper: without and with the treatment.
ARMS = ("No studies", "Full-time studies")


class Study(NamedTuple):
    """What estimators learn from, and what they are marked against.

    Attributes
    ----------
    covariates : pandas.DataFrame
        n rows: numbers standardised, categories one-hot; the columns of the adjustment set.
    treatment : numpy.ndarray, shape (n,)
        1.0 for the treated, 0.0 for the controls.
    outcome : numpy.ndarray, shape (n,)
        In its own unit, US dollars in IncomeSCM.
    test_covariates : pandas.DataFrame
        m rows, encoded as the n were.
    difference : numpy.ndarray, shape (m,)
        The sampled effect of every test subject, with minus without the treatment.
    groups : numpy.ndarray or None, shape (m,)
        The groups of Task 3, levels of education in the paper.
    truth : numpy.ndarray or None, shape (m,)
        The Monte-Carlo effect of every test subject.
    missing : dict of str to int
        Covariates with missing values that were not filled in, and how many.
    probabilities : numpy.ndarray or None, shape (n,)
        The true probability of the arm that each of the n subjects took, among all arms.
    """

    covariates: pd.DataFrame
    treatment: np.ndarray
    outcome: np.ndarray
    test_covariates: pd.DataFrame
    difference: np.ndarray
    groups: np.ndarray | None
    truth: np.ndarray | None
    missing: dict[str, int]
    probabilities: np.ndarray | None


def read_study(
    observational: pd.DataFrame | str | os.PathLike,
    control: pd.DataFrame | str | os.PathLike,
    treated: pd.DataFrame | str | os.PathLike,
    adjustment: str | list[str] | tuple[str, ...] = "full",
    arms: tuple[str, str] = ARMS,
    treatment: str = "studies",
    outcome: str = "income",
    group: str | None = "education-num",
    truth: np.ndarray | None = None,
    probabilities: pd.DataFrame | None = None,
    impute: bool = False,
) -> Study:
    r"""Read three tables as one study, and check that they can be.

    A number is standardised, :math:`(x - \bar x) / s_x`, with the mean and the
    standard deviation of the rows that estimation uses; a category becomes one column
    a level seen there.

    Parameters
    ----------
    observational : pandas.DataFrame or path of a CSV or Parquet file
        One row a subject: covariates, treatment, outcome. Other arms are left out.
    control, treated : pandas.DataFrame or path
        The same subjects without and with the treatment.
    adjustment : {"full", "minimal"} or list of str
        The covariates.
    arms : tuple of str
        The control's level of the treatment, and the treated's.
    treatment, outcome : str
        Columns.
    group : str, optional
        A column of the test subjects to average effects by; left out if they lack it.
    truth : array of shape (m,), optional
        Monte-Carlo effects of the test subjects.
    probabilities : pandas.DataFrame, optional
        The true probability of every level of the treatment, one row a row of `observational`.
    impute : bool
        Fill missing covariates in: a number becomes the mean, a category none of its levels, and
        a column `… missing` says where.

    Returns
    -------
    Study

    Raises
    ------
    InputError
        If a column is missing or not of the right type, an arm has no rows, a value of the
        treatment or the outcome is missing, or control and treated are not the same subjects.

    Warns
    -----
    UserWarning
        If control and treated differ in a few covariates; the test covariates are the control's.

    Examples
    --------
    >>> seen = pd.DataFrame({"age": [20, 40, 30], "studies": ["no", "yes", "no"]})
    >>> seen = seen.assign(income=[1.0, 5.0, 3.0])
    >>> study = read_study(seen, seen, seen.assign(income=9), ["age"], ("no", "yes"))
    >>> study.covariates["age"].round(2).tolist(), study.difference.tolist()
    ([-1.22, 1.22, 0.0], [8.0, 4.0, 6.0])
    """
    if isinstance(adjustment, str):
        if adjustment not in ADJUSTMENT_SETS:
            raise InputError(f"adjustment {adjustment!r} is unknown: {one_of(ADJUSTMENT_SETS)}")
        adjustment = ADJUSTMENT_SETS[adjustment]
    names = list(adjustment)
    if not names:
        raise InputError("the adjustment set must name at least one covariate: found none")
    for name in (treatment, outcome):
        if name in names:
            raise InputError(f"the adjustment set must not hold {name!r}, which it adjusts")
    tables = {
        "observational": _table(observational),
        "control": _table(control),
        "treated": _table(treated),
    }
    for which, table in tables.items():
        needed = [*names, outcome] if which != "observational" else [*names, treatment, outcome]
        _check(table, which, needed, outcome)
    seen, without, with_ = tables.values()
    if seen[treatment].isna().any():
        raise InputError(
            f"column {treatment!r} has {seen[treatment].isna().sum():,} missing values"
        )
    taken = seen[treatment].astype(object)
    for arm in arms:
        if not (taken == arm).any():
            raise InputError(f"arm {arm!r} of {treatment!r} has no rows: {one_of(taken.unique())}")
    if arms[0] == arms[1]:
        raise InputError(f"the two arms must differ: found {arms[0]!r} twice")
    _check_same_subjects(without, with_, names)
    if truth is not None and np.shape(truth) != (len(without),):
        raise InputError(
            f"truth must have one effect a test subject, {len(without):,}: "
            f"found shape {np.shape(truth)}"
        )
    used = taken.isin(arms).to_numpy()
    rows, is_treated = seen[used], (taken[used] == arms[1]).to_numpy()
    covariates, test_covariates = _encoded(rows[names], without[names], impute)
    missing = 0 if impute else rows[names].isna().sum() + without[names].isna().sum()
    missing = pd.Series(missing, index=names)
    if probabilities is not None:
        _check_probabilities(probabilities, arms, len(seen))
        both = probabilities[list(arms)].to_numpy()[used]
        probabilities = np.where(is_treated, both[:, 1], both[:, 0])
    return Study(
        covariates,
        is_treated.astype(float),
        rows[outcome].to_numpy(dtype=float),
        test_covariates,
        with_[outcome].to_numpy(dtype=float) - without[outcome].to_numpy(dtype=float),
        without[group].to_numpy() if group in without else None,
        None if truth is None else np.asarray(truth, dtype=float),
        missing[missing > 0].to_dict(),
        probabilities,
    )


def _table(source: pd.DataFrame | str | os.PathLike) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    path = Path(source)
    text = dict.fromkeys((".csv", ".gz", ".zip"), pd.read_csv)
    readers = text | {".parquet": pd.read_parquet}
    if path.suffix not in readers:
        raise InputError(f"file {path.name} is not of a known kind: {one_of(readers)}")
    if not path.is_file():
        raise InputError(f"file {path} does not exist")
    return readers[path.suffix](path)


def _check(table: pd.DataFrame, which: str, needed: list[str], outcome: str) -> None:
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
    wrong = int((~np.isfinite(column.to_numpy(dtype=float))).sum())
    if wrong:
        raise InputError(
            f"outcome {outcome!r} of the {which} table has {wrong:,} values that are missing or "
            "not finite"
        )


def _check_same_subjects(control: pd.DataFrame, treated: pd.DataFrame, names: list[str]) -> None:
    if len(control) != len(treated):
        raise InputError(
            "control and treated must be the same subjects: found "
            f"{len(control):,} and {len(treated):,} rows"
        )
    differ = {}
    for name in names:
        one, other = (table[name].astype(object).to_numpy() for table in (control, treated))
        if count := int(((one != other) & ~(pd.isna(one) & pd.isna(other))).sum()):
            differ[name] = count
    if not differ:
        return
    found = ", ".join(f"{count:,} rows differ in {name!r}" for name, count in differ.items())
    # Simulators that share noise by a common seed alone lose step once an arm has drawn once
    # more, so that a covariate drawn later in the same year may differ.
    if 2 * len(differ) > len(names):
        raise InputError(
            f"control and treated must be the same subjects in the same order: {found}"
        )
    warnings.warn(
        f"control and treated differ, the control's values are used: {found}", stacklevel=3
    )


def _check_probabilities(table: pd.DataFrame, arms: tuple[str, str], n: int) -> None:
    for arm in arms:
        if arm not in table:
            raise InputError(f"probabilities lack the arm {arm!r}: {one_of(table)}")
    if len(table) != n:
        raise InputError(
            f"probabilities must have one row a seen subject, {n:,}: found {len(table):,}"
        )


def _encoded(
    rows: pd.DataFrame, others: pd.DataFrame, impute: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Encode both by what the first hold; a level that only the others have has no column."""
    here, there = {}, {}
    for name in rows:
        column, other = rows[name], others[name]
        if impute and (column.isna().any() or other.isna().any()):
            for encoded, values in ((here, column), (there, other)):
                encoded[f"{name} missing"] = values.isna().to_numpy(dtype=float)
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            if not pd.api.types.is_numeric_dtype(other):
                raise InputError(f"covariate {name!r} must be numbers: found {other.iloc[0]!r}")
            mean, deviation = column.mean(), column.std(ddof=0) or 1.0
            for encoded, values in ((here, column), (there, other)):
                encoded[name] = (values.to_numpy(dtype=float) - mean) / deviation
                if np.isinf(encoded[name]).any():
                    raise InputError(f"covariate {name!r} has values that are not finite")
            continue
        for level in sorted(column.dropna().astype(str).unique()):
            for encoded, values in ((here, column), (there, other)):
                is_level = (values.astype(str) == level).to_numpy(dtype=float)
                encoded[f"{name} = {level}"] = np.where(values.isna(), np.nan, is_level)
    if impute:  # a standardised number of 0 is the mean
        here, there = ({k: np.nan_to_num(v) for k, v in e.items()} for e in (here, there))
    return pd.DataFrame(here), pd.DataFrame(there)
