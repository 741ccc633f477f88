"""Publishing a folder of Parquet tables: a card and a datasheet for people, metadata for machines.

A data set is a folder with one Parquet file per table. :func:`publish` adds three files:
`README.md`, a card with a YAML head for data repositories and a text for people; `DATASHEET.md`,
which answers the questions of Gebru and others (2021, https://doi.org/10.1145/3458723); and
`croissant.json`, which names every file with its SHA-256 and every column with its type and
meaning, in the vocabulary Croissant 1.1 (MLCommons, 2026, http://mlcommons.org/croissant/1.1) and
its extension for responsible AI. All are made from the tables themselves and a
:class:`Description`, so none of them can mention a column that does not exist.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from lib import ROOT
from lib.book.rendering import TEMPLATES
from lib.cache import versions
from lib.errors import InputError, check
from lib.files import AnyPath, digest, read_yaml, sha256, write_text

#: Section of a datasheet → key → question and, if it is the same for all data sets, the answer.
QUESTIONS = read_yaml(ROOT / "data" / "datasheet.yml")

#: Lists in Arrow; Polars writes the large ones.
LISTS = pa.ListType, pa.LargeListType

#: Files that are written beside the tables, each from its own template.
FILES = ("README.md", "DATASHEET.md", "croissant.json")


@dataclass(frozen=True)
class Description:
    """What people should know about a data set but cannot see from its tables."""

    name: str
    version: str
    about: str  # a paragraph or more, in Markdown
    license: str  # an SPDX identifier, such as 'MIT'
    columns: Mapping[str, Mapping[str, str]]  # table → column → meaning; all columns and no others
    keys: Mapping[str, Sequence[str]]  # table → the columns that identify a row
    cite: str  # a reference in BibTeX
    creator: str
    date: str  # of publication, such as 2026-01-31
    answers: Mapping[str, str]  # to the questions of the datasheet that have no common answer
    command: str  # that makes the data set
    tags: Sequence[str] = ()
    derived_from: Sequence[str] = ()  # addresses of the data it is made from
    url: str = "README.md"  # the address of its page


def publish(folder: AnyPath, description: Description, csv: bool = False) -> Path:
    """Write a card, a datasheet and Croissant metadata beside the Parquet tables of a folder.

    The folder holds a `TABLE.parquet` for each table of the description, with exactly its columns,
    and no other. With `csv`, every table is also written to the folder `csv`, with lists as JSON.
    """
    folder = Path(folder)
    found = {path.stem: pq.read_schema(path).names for path in folder.glob("*.parquet")}
    rule = f"tables of {description.name} must be {', '.join(sorted(description.columns))}"
    check(found.keys() == description.columns.keys(), rule, sorted(found))
    for table, meanings in description.columns.items():
        if odd := sorted(set(found[table]) ^ set(meanings)):
            where = "table" if odd[0] in found[table] else "description"
            raise InputError(f"column {odd[0]!r} of {table} is only in the {where}")
    questions = {key: one for section in QUESTIONS.values() for key, one in section.items()}
    answers = {key: one["answer"] for key, one in questions.items() if "answer" in one}
    answers |= description.answers
    rule = "all questions of the datasheet must be answered, and no others"
    check(answers.keys() == questions.keys(), rule, sorted(answers.keys() ^ questions.keys()))
    if csv:
        _write_csv(folder, description.columns)
    tables = [_table(folder, name, description, csv) for name in description.columns]
    told = {"description": description, "tables": tables, "answers": answers}
    code = {"The Causal Benchmark Book, lib.files.digest of lib:": digest(ROOT / "lib")}
    told |= {"sections": QUESTIONS, "versions": versions() | code}
    for name in FILES:
        text = TEMPLATES.get_template(f"published/{name}").render(told)
        write_text(folder / name, text.strip() + "\n")
    return folder


def check_published(folder: Path, version: str, csv: bool) -> None:
    """Refuse a folder that does not hold a published version, whole and, if asked, with `csv`."""
    rule, found = f"{folder} must hold all of version {version}, or not exist", "another folder"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads((folder / FILES[-1]).read_text(encoding="utf-8"))
        files = {one["contentUrl"]: one["sha256"] for one in told["distribution"]}
        damaged = [k for k, one in files.items() if sha256((folder / k).read_bytes()) != one]
        found = f"{damaged[0]} damaged" if damaged else f"version {told['version']}"
        if csv and not any(name.endswith(".csv") for name in files):
            found = "no CSV files"
    check(found == f"version {version}", rule, found)


def _table(folder: Path, name: str, description: Description, csv: bool) -> dict[str, Any]:
    """Return what the templates say about a table: its rows, its key, its files and its columns."""
    files = [f"{name}.parquet", *[f"csv/{name}.csv"] * csv]  # none that was there before
    contents = {file: (folder / file).read_bytes() for file in files}
    parquet = pq.ParquetFile(folder / files[0])
    return {
        "name": name,
        "rows": parquet.metadata.num_rows,
        "key": [_id(name, column) for column in description.keys.get(name, ())],
        "files": {k: (len(one), sha256(one)) for k, one in contents.items()},
        "columns": [
            {"id": _id(name, one.name), "name": one.name, "type": str(one.type)}
            | {"meaning": description.columns[name][one.name], **_data_type(one.type)}
            for one in parquet.schema_arrow
        ],
    }


def _id(table: str, column: str) -> str:
    """Return the identifier of a column: part of a URI, so letters, digits, - and _ only."""
    return f"{table}/{re.sub(r'[^A-Za-z0-9-]+', '_', column)}"


def _write_csv(folder: Path, tables: Iterable[str]) -> None:
    (folder / "csv").mkdir(exist_ok=True)
    for name in tables:
        table = pq.read_table(folder / f"{name}.parquet")
        frame = table.to_pandas()
        for column in table.schema:
            if isinstance(column.type, LISTS):
                frame[column.name] = [json.dumps(one) for one in table[column.name].to_pylist()]
        frame.to_csv(folder / "csv" / f"{name}.csv", index=False, lineterminator="\n")


def _data_type(kind: pa.DataType) -> dict[str, Any]:
    """Return the type of a column in Croissant's terms, and how deep its lists are nested."""
    depth = 0
    while isinstance(kind, LISTS):
        kind, depth = kind.value_type, depth + 1
    tests = {"Boolean": types.is_boolean, "Integer": types.is_integer, "Float": types.is_floating}
    name = next((name for name, test in tests.items() if test(kind)), "Text")
    return {"data_type": f"sc:{name}", "depth": depth}
