"""Publishing a folder of Parquet tables: a card for people, metadata for machines.

A data set is a folder with one Parquet file a table. :func:`publish` adds `README.md`, a card
whose YAML head data repositories read, and whose text people do; and `croissant.json`, which
names every file with its SHA-256 and every column with its type and meaning, in the vocabulary
Croissant 1.0 (MLCommons, 2024, http://mlcommons.org/croissant/1.0). Both are made from the tables
themselves and a :class:`Description`, so that neither can speak of a column that is not there.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyarrow import types

from lib import ROOT
from lib.errors import InputError, check
from lib.files import write_text

#: What the terms of the metadata mean, as the specification recommends.
CONTEXT = json.loads((ROOT / "data" / "croissant" / "context.json").read_text(encoding="utf-8"))

#: From so many rows on, and below so many, a set belongs to a size category of data repositories.
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))


@dataclass(frozen=True)
class Description:
    """What people should know about a data set, and cannot see from its tables."""

    name: str
    version: str
    about: str  # a paragraph or more, in Markdown
    license: str  # an SPDX identifier, such as 'MIT'
    columns: Mapping[str, Mapping[str, str]]  # table → column → meaning; every one, and no other
    keys: Mapping[str, Sequence[str]]  # table → the columns that identify a row
    cite: str  # a reference in BibTeX
    creator: str
    date: str  # of publication, as 2026-01-31
    tags: Sequence[str] = ()


def publish(folder: str | os.PathLike, description: Description) -> Path:
    """Write card and Croissant metadata beside the Parquet tables of a folder.

    The folder holds one `TABLE.parquet` for each table of the description, with the columns
    that are described, and no other.

    Examples
    --------
    >>> import tempfile
    >>> description = Description(
    ...     "coins", "1.0", "Tosses of a coin.", "MIT", {"tosses": {"head": "1 if head"}},
    ...     keys={}, cite="", creator="a hand", date="2026-01-31",
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"head": [0, 1]}), Path(folder) / "tosses.parquet")
    ...     sorted(path.name for path in publish(folder, description).iterdir())
    ['README.md', 'croissant.json', 'tosses.parquet']
    """
    folder = Path(folder)
    found = {path.stem: pq.read_schema(path).names for path in folder.glob("*.parquet")}
    rule = f"tables of {description.name} must be {', '.join(sorted(description.columns))}"
    check(found.keys() == description.columns.keys(), rule, sorted(found))
    for table, meanings in description.columns.items():
        if odd := sorted(set(found[table]) ^ set(meanings)):
            where = "table" if odd[0] in found[table] else "description"
            raise InputError(f"column {odd[0]!r} of {table} is only in the {where}")
    metadata = json.dumps(croissant(folder, description), indent=2)
    write_text(folder / "croissant.json", metadata + "\n")
    write_text(folder / "README.md", card(folder, description))
    return folder


def croissant(folder: Path, description: Description) -> dict:
    """Return the Croissant metadata of a folder of Parquet tables, as JSON-LD.

    Croissant 1.0 has no lists of lists: a column of those is described as text.
    """
    files, records = [], []
    for table, meanings in description.columns.items():
        file = f"{table}.parquet"
        content = (folder / file).read_bytes()
        files.append(
            _named("cr:FileObject", file)
            | {
                "contentUrl": file,
                "contentSize": f"{len(content)} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
        fields = [
            _named("cr:Field", _id(table, column.name))
            | {"description": meanings[column.name]}
            | _data_type(column.type)
            | {"source": {"fileObject": {"@id": file}, "extract": {"column": column.name}}}
            for column in pq.read_schema(folder / file)
        ]
        records.append(_named("cr:RecordSet", table) | {"field": fields})
        if key := description.keys.get(table):
            records[-1]["key"] = [{"@id": _id(table, column)} for column in key]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": description.name,
        "description": description.about,
        "version": description.version,
        "license": f"https://spdx.org/licenses/{description.license}.html",
        "creator": {"@type": "Organization", "name": description.creator},
        "datePublished": description.date,
        "keywords": list(description.tags),
        "citeAs": description.cite,
        "distribution": files,
        "recordSet": records,
    }


def card(folder: Path, description: Description) -> str:
    """Return the card of a folder of Parquet tables: Markdown with a YAML head."""
    parts = [f"# {description.name}", description.about, f"Version {description.version}."]
    largest = 0
    for table, meanings in description.columns.items():
        file = pq.ParquetFile(folder / f"{table}.parquet")
        largest = max(largest, file.metadata.num_rows)
        key = ", ".join(f"`{column}`" for column in description.keys.get(table, ()))
        rows = f"{file.metadata.num_rows:,} rows" + (f", identified by {key}." if key else ".")
        lines = ["| column | type | meaning |", "| --- | --- | --- |"]
        for c in file.schema_arrow:
            # Escaped, because a bar would end the cell, even in code.
            name, meaning = (text.replace("|", "\\|") for text in (c.name, meanings[c.name]))
            lines.append(f"| `{name}` | {c.type} | {meaning} |")
        parts += [f"## `{table}.parquet`", rows, "\n".join(lines)]
    if description.cite:
        parts.append(f"## To cite\n\n```bibtex\n{description.cite.strip()}\n```")
    head = {
        "pretty_name": description.name,
        "license": description.license.lower(),
        "language": ["en"],
        "tags": list(description.tags),
        "size_categories": [next((name for n, name in _SIZES if largest < n), "1M<n<10M")],
        "configs": [
            {"config_name": name, "data_files": f"{name}.parquet"} for name in description.columns
        ],
    }
    yaml_head = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    return f"---\n{yaml_head}---\n\n" + "\n\n".join(parts) + "\n"


def _named(kind: str, identifier: str) -> dict:
    return {"@type": kind, "@id": identifier, "name": identifier}


def _id(table: str, column: str) -> str:
    """Return the identifier of a column: part of a URI, so letters, digits, - and _ only."""
    return f"{table}/{re.sub(r'[^A-Za-z0-9-]+', '_', column)}"


def _data_type(kind: pa.DataType) -> dict:
    if types.is_list(kind) and not types.is_list(kind.value_type):
        return _data_type(kind.value_type) | {"repeated": True}
    tests = {"Boolean": types.is_boolean, "Integer": types.is_integer, "Float": types.is_floating}
    name = next((name for name, test in tests.items() if test(kind)), "Text")
    return {"dataType": f"sc:{name}"}
