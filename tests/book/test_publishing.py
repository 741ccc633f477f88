"""A published folder describes its own tables, for people and for programs."""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

from lib.book.publishing import Description, card, croissant, publish
from lib.errors import InputError

DESCRIPTION = Description(
    name="lamps",
    version="1.2.0",
    about="Lamps along an invented coast.",
    license="MIT",
    columns={
        "lamps": {"lamp": "its number", "lit": "whether it is lit", "ships": "that passed it"},
        "effects": {"P(y | do x)": "an effect", "name": "what it is called", "path": "pairs"},
    },
    keys={"lamps": ["lamp"], "effects": ["P(y | do x)", "name"]},
    cite="@misc{lamps}",
    creator="a coast guard",
    date="2026-01-31",
    tags=["light"],
)


@pytest.fixture
def folder(tmp_path):
    lamps = pd.DataFrame({"lamp": [0, 1, 2], "lit": [True, False, True], "ships": [[1], [], [2]]})
    effects = pd.DataFrame({"P(y | do x)": [0.5], "name": ["PNS"], "path": [[[0, 1], [1, 2]]]})
    lamps.to_parquet(tmp_path / "lamps.parquet")
    effects.to_parquet(tmp_path / "effects.parquet")
    return tmp_path


def metadata(folder):
    return json.loads((publish(folder, DESCRIPTION) / "croissant.json").read_text())


def test_every_file_has_its_digest_and_size(folder):
    distribution = metadata(folder)["distribution"]
    assert [file["contentUrl"] for file in distribution] == ["lamps.parquet", "effects.parquet"]
    for file in distribution:
        content = (folder / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
        assert file["encodingFormat"] == "application/x-parquet"


def test_every_column_has_its_type_and_meaning(folder):
    lamps, effects = metadata(folder)["recordSet"]
    types = {f["source"]["extract"]["column"]: f["dataType"] for f in lamps["field"]}
    assert types == {"lamp": "sc:Integer", "lit": "sc:Boolean", "ships": "sc:Integer"}
    assert [field.get("repeated", False) for field in lamps["field"]] == [False, False, True]
    types = {f["source"]["extract"]["column"]: f["dataType"] for f in effects["field"]}
    assert types == {"P(y | do x)": "sc:Float", "name": "sc:Text", "path": "sc:Text"}
    assert [field["description"] for field in effects["field"]] == [
        *DESCRIPTION.columns["effects"].values()
    ]


def test_croissant_refers_only_to_what_it_defines(folder):
    found = metadata(folder)
    files = {file["@id"] for file in found["distribution"]}
    fields = {field["@id"] for record in found["recordSet"] for field in record["field"]}
    assert len(fields) == 6
    for identifier in files | fields:
        assert re.fullmatch(r"[\w./-]+", identifier), "an identifier is part of a URI"
    for record in found["recordSet"]:
        assert {part["@id"] for part in record["key"]} <= fields
        assert {field["source"]["fileObject"]["@id"] for field in record["field"]} <= files


def test_croissant_has_what_version_1_0_requires(folder):
    found = metadata(folder)
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert found["@type"] == "sc:Dataset"
    required = {"name", "description", "license", "creator", "datePublished", "version"}
    assert required <= found.keys()
    vocabulary = found["@context"]
    assert vocabulary["recordSet"] == "cr:recordSet"
    assert vocabulary["conformsTo"] == "dct:conformsTo"
    types = [entry["@type"] for entry in found["distribution"] + found["recordSet"]]
    assert types == ["cr:FileObject"] * 2 + ["cr:RecordSet"] * 2


def test_card_has_a_head_that_finds_the_tables(folder):
    text = (publish(folder, DESCRIPTION) / "README.md").read_text()
    _, head, body = text.split("---\n", 2)
    head = yaml.safe_load(head)
    assert head["license"] == "mit"
    assert head["size_categories"] == ["n<1K"]
    assert {one["config_name"]: one["data_files"] for one in head["configs"]} == {
        "lamps": "lamps.parquet",
        "effects": "effects.parquet",
    }
    assert "3 rows, identified by `lamp`." in body
    assert "| `lit` | bool | whether it is lit |" in body


def test_bars_in_a_column_name_do_not_end_the_cell(folder):
    (row,) = [line for line in card(folder, DESCRIPTION).splitlines() if "do x" in line[:20]]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4


@pytest.mark.parametrize(("rows", "category"), [(999, "n<1K"), (1_000, "1K<n<10K")])
def test_size_category_is_that_of_the_largest_table(folder, rows, category):
    table = pd.DataFrame({"lamp": np.arange(rows), "lit": True, "ships": [[1]] * rows})
    table.to_parquet(folder / "lamps.parquet")
    assert f"- {category}\n" in card(folder, DESCRIPTION)


def test_same_tables_same_bytes(folder):
    first = {path.name: path.read_bytes() for path in publish(folder, DESCRIPTION).iterdir()}
    again = {path.name: path.read_bytes() for path in publish(folder, DESCRIPTION).iterdir()}
    assert first == again
    assert croissant(folder, DESCRIPTION) == json.loads(first["croissant.json"])


def test_a_column_without_a_meaning_is_an_error_and_nothing_is_written(folder):
    columns = DESCRIPTION.columns | {"lamps": {"lamp": "its number", "lit": "whether it is lit"}}
    with pytest.raises(InputError, match="column 'ships' of lamps is only in the table"):
        publish(folder, replace(DESCRIPTION, columns=columns))
    assert not (folder / "README.md").exists()
    assert not (folder / "croissant.json").exists()


def test_a_meaning_without_a_column_is_an_error(folder):
    columns = DESCRIPTION.columns | {"lamps": DESCRIPTION.columns["lamps"] | {"fish": "supper"}}
    with pytest.raises(InputError, match="column 'fish' of lamps is only in the description"):
        publish(folder, replace(DESCRIPTION, columns=columns))


def test_a_missing_table_is_an_error(folder):
    (folder / "effects.parquet").unlink()
    with pytest.raises(
        InputError, match=r"tables of lamps must be effects, lamps: found \['lamps'\]"
    ):
        publish(folder, DESCRIPTION)
