"""Tables that outlive their page: a notebook marks them, another shows them beside its own.

:func:`record` shows a table, and puts it into the metadata of that output as CSV. The command
`python -m lib record EDITION` takes the tables out of executed pages and keeps them in `data`
(:mod:`lib.book.keeping`), where :func:`recorded` finds them.
"""

import hashlib
import io
import json
import re

import pandas as pd
from IPython.display import display

from lib import ROOT
from lib.errors import InputError, check
from lib.files import reading

#: A folder an edition, and in it a folder a page: its tables, and their run record `run.json`.
RECORDED = ROOT / "data" / "recorded"

#: Six significant digits of every number are kept, and by these two runs are compared.
NUMBER = "%.6g"


def record(name: str, table: pd.DataFrame) -> None:
    """Show a table, and mark it to be kept under a name.

    Its index becomes the first columns, unless it only counts the rows.

    Examples
    --------
    >>> record("Error by size", pd.DataFrame())
    Traceback (most recent call last):
    lib.errors.InputError: name of a recorded table must be like error_by_size: found 'Error ...'
    """
    rule = "name of a recorded table must be like error_by_size"
    check(re.fullmatch(r"[a-z][a-z0-9_]*", name) is not None, rule, name)
    flat = table.reset_index(drop=isinstance(table.index, pd.RangeIndex))
    text = flat.to_csv(index=False, float_format=NUMBER, lineterminator="\n")
    display(table, metadata={"recorded": {"name": name, "text/csv": text}})


class Recorded(dict[str, pd.DataFrame]):
    """A kept table under its label, such as `n = 50,000, recorded 2026-11-22`; or nothing.

    It goes beside other tables as ``{"this run": table, **recorded("page", "name")}``. As the
    last expression of a cell, it says how the run is repeated.
    """

    def _repr_markdown_(self) -> str:
        said = "Another run, {}: `{command}` repeats it, in {seconds:,.0f} seconds."
        return " ".join(said.format(label, **self[label].attrs) for label in self)


def recorded(
    page: str, name: str, index: str | list[str] | None = None, edition: str = "paper"
) -> Recorded:
    """Read the table that a page of an edition has recorded under a name.

    Some of its columns may become the `index`. There is no table until it is recorded for the
    first time. One that was changed by hand, or whose recording was interrupted, is refused.

    Examples
    --------
    >>> recorded("weather", "rain")
    {}
    """
    path = RECORDED / edition / page / f"{name}.csv"
    if not path.exists():
        return Recorded()
    with reading(path):
        text = path.read_text(encoding="utf-8")
        run = json.loads(path.with_name("run.json").read_text(encoding="utf-8"))
    if run["tables"].get(name) != hashlib.sha256(text.encode()).hexdigest():
        raise InputError(f"{path} is not what was recorded: `python -m lib record {edition}` again")
    # Empty cells alone are missing values: a level may be called None.
    missing = {"keep_default_na": False, "na_values": [""]}
    table = pd.read_csv(io.StringIO(text), index_col=index, **missing)
    table.attrs = run
    label = f"recorded {run['date']}"
    if "-p n_samples " in run["command"]:  # not what this notebook takes anyway
        label = f"n = {run['parameters']['n_samples']:,}, {label}"
    return Recorded({label: table})
