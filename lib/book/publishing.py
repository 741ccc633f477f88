"""Publishing a folder of Parquet tables: a card for people, metadata for machines.

A data set is a folder with one Parquet file a table. :func:`publish` adds

- `README.md`, a card whose YAML head data repositories read, and whose text people do;
- `croissant.json`, metadata in the Croissant 1.0 vocabulary [1]_, JSON-LD that names
  every file with its SHA-256 and every column with its type and meaning.

Both are made from the tables themselves and a :class:`Description`, so that neither
can speak of a column that is not there.

References
----------
.. [1] MLCommons (2024). Croissant format specification, version 1.0.
   http://mlcommons.org/croissant/1.0
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

from lib.errors import InputError
from lib.files import write_text

#: The terms of the Croissant vocabulary that the recommended context of its specification lists.
_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject"),
    *("fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
    *("samplingRate", "separator", "source", "subField", "transform"),
)
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS},
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
}

#: From so many rows on, and below so many, a set belongs to a size category of data repositories.
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"))


@dataclass(frozen=True)
class Description:
    """What people should know about a data set, and cannot see from its tables.

    Parameters
    ----------
    name, version : str
    about : str
        A paragraph or more, in Markdown.
    license : str
        An SPDX identifier, such as 'MIT'.
    columns : mapping of str to mapping of str to str
        Table → column → meaning. Every column of every table, and no other.
    keys : mapping of str to sequence of str
        Table → the columns that identify a row.
    cite : str
        A reference in BibTeX.
    creator : str
        Who made it.
    date : str
        Of publication, as 2026-01-31.
    tags : sequence of str
    """

    name: str
    version: str
    about: str
    license: str
    columns: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, Sequence[str]]
    cite: str
    creator: str
    date: str
    tags: Sequence[str] = ()


def publish(folder: str | os.PathLike, description: Description) -> Path:
    """Write card and Croissant metadata beside the Parquet tables of a folder.

    Parameters
    ----------
    folder : path-like
        Holds one `TABLE.parquet` for each table of the description.
    description : Description

    Raises
    ------
    InputError
        If tables or columns of folder and description differ, or a file cannot be written.

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
    found = sorted(path.stem for path in folder.glob("*.parquet"))
    if found != sorted(description.columns):
        raise InputError(
            f"tables of {description.name} must be {', '.join(sorted(description.columns))}: "
            f"found {', '.join(found) or 'none'}"
        )
    for table, meanings in description.columns.items():
        columns = pq.read_schema(folder / f"{table}.parquet").names
        if odd := sorted(set(columns) ^ set(meanings)):
            where = "table" if odd[0] in columns else "description"
            raise InputError(f"column {odd[0]!r} of {table} is only in the {where}")
    metadata = json.dumps(croissant(folder, description), indent=2)
    write_text(folder / "croissant.json", metadata + "\n")
    write_text(folder / "README.md", card(folder, description))
    return folder


def croissant(folder: Path, description: Description) -> dict:
    """Return the Croissant metadata of a folder of Parquet tables, as JSON-LD.

    Values of a list are `repeated`; Croissant 1.0 has no lists of lists, and a column
    of those is described as text.
    """
    files, records = [], []
    for table, meanings in description.columns.items():
        file = f"{table}.parquet"
        path = folder / file
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": file,
                "name": file,
                "contentUrl": file,
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
        fields = [
            {
                "@type": "cr:Field",
                "@id": _id(table, column.name),
                "name": _id(table, column.name),
                "description": meanings[column.name],
                **_data_type(column.type),
                "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
            }
            for column in pq.read_schema(path)
        ]
        record = {"@type": "cr:RecordSet", "@id": table, "name": table, "field": fields}
        if key := description.keys.get(table):
            record["key"] = [{"@id": _id(table, column)} for column in key]
        records.append(record)
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
    rows = {
        table: pq.read_metadata(folder / f"{table}.parquet").num_rows
        for table in description.columns
    }
    largest = max(rows.values())
    head = {
        "pretty_name": description.name,
        "license": description.license.lower(),
        "language": ["en"],
        "tags": list(description.tags),
        "size_categories": [next((name for n, name in _SIZES if largest < n), "1M<n<10M")],
        "configs": [
            {"config_name": table, "data_files": f"{table}.parquet"}
            for table in description.columns
        ],
    }
    parts = [f"# {description.name}", description.about, f"Version {description.version}."]
    for table, meanings in description.columns.items():
        schema = pq.read_schema(folder / f"{table}.parquet")
        key = description.keys.get(table)
        identified = f", identified by {', '.join(f'`{column}`' for column in key)}" if key else ""
        parts.append(f"## `{table}.parquet`\n\n{rows[table]:,} rows{identified}.")
        lines = [
            f"| {_cell(f'`{c.name}`')} | {_cell(c.type)} | {_cell(meanings[c.name])} |"
            for c in schema
        ]
        parts.append("\n".join(["| column | type | meaning |", "|---|---|---|", *lines]))
    if description.cite:
        parts.append(f"## To cite\n\n```bibtex\n{description.cite.strip()}\n```")
    yaml_head = yaml.safe_dump(head, sort_keys=False, allow_unicode=True)
    return f"---\n{yaml_head}---\n\n" + "\n\n".join(parts) + "\n"


def _id(table: str, column: str) -> str:
    """Return the identifier of a column: part of a URI, so letters, digits, - and _ only."""
    return f"{table}/{re.sub(r'[^A-Za-z0-9-]+', '_', column)}"


def _cell(content: object) -> str:
    """Return a cell of a Markdown table, which a bare bar would end, even within code."""
    return str(content).replace("|", "\\|")


def _data_type(kind: pa.DataType) -> dict:
    if pa.types.is_list(kind):
        if pa.types.is_list(kind.value_type):
            return {"dataType": "sc:Text"}
        return _data_type(kind.value_type) | {"repeated": True}
    if pa.types.is_boolean(kind):
        return {"dataType": "sc:Boolean"}
    if pa.types.is_integer(kind):
        return {"dataType": "sc:Integer"}
    return {"dataType": "sc:Float" if pa.types.is_floating(kind) else "sc:Text"}
