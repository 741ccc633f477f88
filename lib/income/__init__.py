"""What is particular to IncomeSCM, the simulator built on the Adult table."""

import os
from pathlib import Path

import joblib
import pandas as pd

from lib import ROOT
from lib.adult import load_adult
from lib.cache import cached
from lib.errors import InputError, one_of
from lib.income.study import draw_studies, draw_study
from lib.scm import Simulator, Specification

__all__ = ["SPECIFICATIONS", "draw_studies", "draw_study", "fitted_simulator"]

#: The folder of the specifications that ship with the book.
SPECIFICATIONS = ROOT / "data" / "specs"


def fitted_simulator(
    specification: str = "income_scm_1.0",
    seed: int = 0,
    coupling: str = "gumbel",
    table: str | os.PathLike | None = None,
) -> Simulator:
    """Return a fitted simulator; the fit is kept on disk and made once.

    Parameters
    ----------
    specification : str
        The path of a YAML file, or a file of `data/specs` without its ending: `income_scm_1.0`,
        faithful to the published data, or `income_scm_1.1`, as the paper's authors meant it.
    seed : int
        Of the fit.
    coupling : {'gumbel', 'inverse_cdf'}
        See :class:`~lib.scm.simulator.Simulator`.
    table : path-like, optional
        A CSV or Parquet file with a column for each variable; Adult by default.

    Raises
    ------
    InputError
        If a file cannot be read, or what it says breaks a rule.

    Examples
    --------
    >>> fitted_simulator("income_scm_2.0")
    Traceback (most recent call last):
    lib.errors.InputError: specification 'income_scm_2.0' is unknown: expected one of ...
    """
    path = SPECIFICATIONS / f"{specification}.yml"
    if not path.is_file():
        path = Path(specification)
    if not path.is_file():
        known = sorted(file.stem for file in SPECIFICATIONS.glob("*.yml"))
        raise InputError(
            f"specification {specification!r} is unknown: {one_of([*known, 'a path'])}"
        )
    text = path.read_text(encoding="utf-8")
    return _fitted(text, path.name, _read_table(table), seed, coupling)


def _read_table(path: str | os.PathLike | None) -> pd.DataFrame:
    if path is None:
        return load_adult()
    read = pd.read_parquet if Path(path).suffix == ".parquet" else pd.read_csv
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise InputError(f"table {path} cannot be read: {error}") from error


# The text, not the path, is an argument: an edited file is another specification.
@cached
def _fitted(text: str, source: str, table: pd.DataFrame, seed: int, coupling: str) -> Simulator:
    simulator = Simulator(Specification.from_text(text, source), coupling).fit(table, seed)
    simulator.recipe_ = joblib.hash([text, table, seed])
    return simulator
