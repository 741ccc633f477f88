"""Tables that outlive their page: a notebook marks them, another shows them beside its own.

:func:`record` shows a table, and puts it into the metadata of that output as CSV. The command
`python -m lib record EDITION` takes the tables out of executed pages and keeps them in `data`
(`lib.book.building`), where :func:`recorded` finds them.
"""

import hashlib
import io
import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
from IPython.display import display
from myst_nb import glue

from lib import ROOT
from lib.errors import InputError, check
from lib.files import reading
from lib.tables import number_text, only_counts, typeset

#: A folder an edition, and in it a folder a page: its tables, and their run record `run.json`.
RECORDED = ROOT / "data" / "recorded"

#: Six significant digits of every number are kept, and by these two runs are compared.
NUMBER = "%.6g"


def record(name: str, table: pd.DataFrame, **style: Any) -> None:
    """Show a table, and mark it to be kept under a name.

    What is kept are all its numbers, with its index as the first columns, unless that only counts
    the rows; what is shown is set in a `style` of :func:`lib.tables.typeset`.
    """
    _check_name("table", name)
    flat = table.reset_index(drop=only_counts(table))
    text = flat.to_csv(index=False, float_format=NUMBER, lineterminator="\n")
    display(typeset(table, **style), metadata={"recorded": {"name": name, "text/csv": text}})


@dataclass(frozen=True)
class Number:
    """A number that counts: its value, with its standard error and unit where it has them."""

    value: float
    unit: str = ""
    standard_error: float | None = None

    def __str__(self) -> str:
        """Round to two digits of the standard error, or to three without one; counts stay whole."""
        return f"{number_text(self.value, self.standard_error)} {self.unit}".strip()

    def to(self, other: "Number") -> tuple[float, float | None]:
        """Return how far another one lies from it, and how many standard errors that is."""
        error = math.hypot(self.standard_error or 0, other.standard_error or 0)
        difference = other.value - self.value
        return difference, difference / error if error else None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # As text, because a notebook may hold objects under a few types only; and quoted, because
        # MyST reads what it shows as Python, in which 5,400 is a tuple. No line ends within it.
        text = repr(str(self).replace(" ", "\u00a0"))
        return {"text/plain": text, "application/json": json.dumps(asdict(self))}


def number(name: str, value: float, unit: str = "", standard_error: float | None = None) -> None:
    r"""Record a number of a notebook under a name, without showing it.

    Signs and spaces of the name become underscores. A standard error that is missing is none. The
    record is one of :func:`myst_nb.glue`, so that the prose may show it by the role
    ``{glue:text}``. Runs are listed, swept and compared by their numbers.

    Examples
    --------
    >>> str(Number(4816.3, "US dollars", standard_error=61.2))
    '4\u202f816 ± 61 US dollars'
    """
    name = re.sub(r"[^a-z0-9]+", "_", name.lower())
    _check_name("number", name)
    # Twelve digits: those that follow hang on the processor.
    error = None if pd.isna(standard_error) else float(f"{standard_error:.12g}")
    plain = Number(float(f"{value:.12g}"), unit, error)
    for found in (plain.value, plain.standard_error or 0.0):
        check(math.isfinite(found), f"recorded number {name!r} must be finite", found)
    glue(name, plain, display=False)


def _check_name(what: str, name: str) -> None:
    rule = f"name of a recorded {what} must be like error_by_size"
    check(re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None, rule, name)


class Recorded(dict[str, pd.DataFrame]):
    """A kept table under its label, such as `n = 50 000, recorded 2026-11-22`; or nothing.

    As the last expression of a cell, it says how the run is repeated.
    """

    def _repr_markdown_(self) -> str:
        said = "A run kept with the book, {}: `{command}` repeats it, in {time} seconds."
        times = {k: number_text(table.attrs["seconds"], digits=0) for k, table in self.items()}
        return " ".join(said.format(k, time=times[k], **self[k].attrs) for k in self)


def recorded(
    page: str, name: str, index: str | list[str] | None = None, edition: str = "*"
) -> Recorded:
    """Read the tables that a page has recorded under a name: of an edition, or of all that did.

    There is none until it is recorded for the first time. One that was changed by hand, or whose
    recording was interrupted, is refused.
    """
    found = Recorded()
    for path in sorted(RECORDED.glob(f"{edition}/{page}/{name}.csv")):
        with reading(path):
            text = path.read_text(encoding="utf-8")
            run = json.loads(path.with_name("run.json").read_text(encoding="utf-8"))
        if run["tables"].get(name) != hashlib.sha256(text.encode()).hexdigest():
            again = f"`python -m lib record {path.parts[-3]}` again"
            raise InputError(f"{path} is not what was recorded: {again}")
        # Empty cells alone are missing values: a level may be called None.
        table = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
        numbers = table.apply(pd.to_numeric, errors="coerce")  # also those of a column of both
        table = numbers.where(numbers.notna(), table).infer_objects()
        table = table if index is None else table.set_index(index)
        table.attrs = run
        label = f"recorded {run['date']}"
        if "-p n_samples " in run["command"]:  # not what this notebook takes anyway
            label = f"n = {number_text(run['parameters']['n_samples'])}, {label}"
        # Where two editions would be called the same, the second one is named.
        found[f"{label}, {path.parts[-3]}" if label in found else label] = table
    return found
