"""Tables that outlive their page: one notebook marks them, another shows them beside its own.

:func:`record` shows a table and puts it, as CSV, into the metadata of that output. The command
`python -m lib record EDITION` takes the tables out of executed pages and keeps them in `data`
(`lib.book.building`), where :func:`recorded` finds them.
"""

import contextlib
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
from lib.files import reading, sha256
from lib.tables import number_text, only_counts, typeset

#: One folder per edition, and in it one per page, with its tables and their record `run.json`.
RECORDED = ROOT / "data" / "recorded"

#: Every number is kept with six significant digits.
NUMBER = "%.6g"


def record(name: str, table: pd.DataFrame, **style: Any) -> None:
    """Show a table, and mark it to be kept under a name.

    All its numbers are kept, with its index as the first columns unless the index only counts the
    rows. The table is shown in a `style` of :func:`lib.tables.typeset`.
    """
    _check_name("table", name)
    flat = table.reset_index(drop=only_counts(table))
    text = flat.to_csv(index=False, float_format=NUMBER, lineterminator="\n")
    display(typeset(table, **style), metadata={"recorded": {"name": name, "text/csv": text}})


@dataclass(frozen=True)
class Number:
    """A recorded number: its value, with its unit and its standard error if it has them."""

    value: float
    unit: str = ""
    standard_error: float | None = None

    def __str__(self) -> str:
        """Round to two digits of the standard error or, without it, to three; counts stay whole."""
        return f"{number_text(self.value, self.standard_error)} {self.unit}".strip()

    def to(self, other: "Number") -> tuple[float, float | None]:
        """Return how far another number is from this one, and how many standard errors that is."""
        error = math.hypot(self.standard_error or 0, other.standard_error or 0)
        difference = other.value - self.value
        return difference, difference / error if error else None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # It is text, because a notebook can hold objects only under a few types. It is quoted,
        # because MyST reads what it shows as Python, where 5,400 is a tuple. No line breaks in it.
        text = repr(str(self).replace(" ", "\u00a0"))
        return {"text/plain": text, "application/json": json.dumps(asdict(self))}


def number(name: str, value: float, unit: str = "", standard_error: float | None = None) -> None:
    r"""Record a number of a notebook under a name, without showing it.

    Signs and spaces in the name become underscores. A missing value, such as NaN, counts as no
    standard error. The number is recorded by :func:`myst_nb.glue`, so prose can show it with the
    role ``{glue:text}``. Runs are listed, swept and compared by their numbers.

    Examples
    --------
    >>> str(Number(4816.3, "US dollars", standard_error=61.2))
    '4\u202f816 ± 61 US dollars'
    """
    name = re.sub(r"[^a-z0-9]+", "_", name.lower())
    _check_name("number", name)
    # Twelve digits are kept: later ones depend on the processor.
    error = None if pd.isna(standard_error) else float(f"{standard_error:.12g}")
    plain = Number(float(f"{value:.12g}"), unit, error)
    for found in (plain.value, plain.standard_error or 0.0):
        check(math.isfinite(found), f"recorded number {name!r} must be finite", found)
    glue(name, plain, display=False)


def _check_name(what: str, name: str) -> None:
    rule = f"name of a recorded {what} must start with a-z and hold only a-z, 0-9 and _"
    check(re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None, rule, name)


class Recorded(dict[str, pd.DataFrame]):
    """Kept tables by label, such as `n = 50 000, recorded 2026-11-22`; there may be none.

    As the last expression of a cell, it says how to repeat the runs.
    """

    def _repr_markdown_(self) -> str:
        said = "A run kept with the book, {}: `{command}` repeats it, in {time} seconds."
        times = {k: number_text(table.attrs["seconds"], digits=0) for k, table in self.items()}
        return " ".join(said.format(k, time=times[k], **self[k].attrs) for k in self)


def recorded(
    page: str, name: str, index: str | list[str] | None = None, edition: str = "*"
) -> Recorded:
    """Read the tables that a page has recorded under a name, in one edition or in all of them.

    The result is empty until a table is recorded for the first time. A table that was changed by
    hand, or whose recording was interrupted, is refused.
    """
    found = Recorded()
    for path in sorted(RECORDED.glob(f"{edition}/{page}/{name}.csv")):
        with reading(path):
            text, run = path.read_text(encoding="utf-8"), dict[str, Any]()
        with contextlib.suppress(OSError, ValueError):  # an interrupted recording
            run = json.loads(path.with_name("run.json").read_text(encoding="utf-8"))
        if run.get("tables", {}).get(name) != sha256(text.encode()):
            again = f"record the edition {path.parts[-3]!r} again"
            raise InputError(f"{path} differs from what was recorded: {again}")
        # Only empty cells are missing values: a level may be called None.
        table = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
        numbers = table.apply(pd.to_numeric, errors="coerce")  # also among texts
        table = numbers.where(numbers.notna(), table).infer_objects()
        table = table if index is None else table.set_index(index)
        table.attrs = run
        label = f"recorded {run['date']}"
        if "-p n_samples " in run["command"]:  # not the default of its notebook
            label = f"n = {number_text(run['parameters']['n_samples'])}, {label}"
        # If two editions would have the same label, that of the second one names it.
        found[f"{label}, {path.parts[-3]}" if label in found else label] = table
    return found
