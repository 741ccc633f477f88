"""A published folder describes its own tables, for people and for programs."""

import hashlib
import json
import logging
import os
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pybtex.database import parse_string

from lib import ROOT
from lib.__main__ import main
from lib.book.publishing import QUESTIONS, Description, publish
from lib.ccr.static_data_sets import CONFIGURATIONS
from lib.errors import InputError
from lib.files import digest
from lib.income.data_sets import DATA_SETS

SETS = [*DATA_SETS, *CONFIGURATIONS]

#: Rows of the small sets, by version, as a digest. If one differs, a row has changed: raise the
#: version in `data/income_data_sets.yml` or `data/static_data_sets.yml`, and put the digest here.
DIGESTS = {
    ("IncomeSCM-1.0.CATE", "2.0.5"): "389af3b084b7f781",
    ("IncomeSCM-1.0.CATE-short", "2.0.5"): "77bcabca149d91d8",
    ("IncomeSCM-1.1.CATE", "2.0.5"): "2aec599c76df1a90",
    ("clinical_notes_v0", "2.0.0"): "90b6d4c6d585ee88",
    ("flu_vaccine_v0", "2.0.0"): "8c788e96c18dbe98",
    ("candy_party_v0", "2.0.0"): "45749575297eb080",
    ("flower_garden_v0", "2.0.0"): "fedb8cf0f7956874",
}

os.environ["HF_HUB_OFFLINE"] = "1"  # read when `datasets` is imported

ANSWERS = {
    key: f"We say of {key}: <nothing>."
    for questions in QUESTIONS.values()
    for key, one in questions.items()
    if "answer" not in one
}
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
    answers=ANSWERS,
    command="python -m lamps --at night",
    tags=["light"],
    derived_from=["https://example.org/coast"],
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
    assert [field.get("arrayShape") for field in lamps["field"]] == [None, None, "-1"]
    types = {f["source"]["extract"]["column"]: f["dataType"] for f in effects["field"]}
    assert types == {"P(y | do x)": "sc:Float", "name": "sc:Text", "path": "sc:Integer"}
    assert effects["field"][-1]["isArray"] and effects["field"][-1]["arrayShape"] == "-1,-1"
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


def test_croissant_has_what_version_1_1_requires_and_recommends(folder):
    found = metadata(folder)
    required = {"@context", "@type", "conformsTo", "description", "license", "name", "url"}
    required |= {"creator", "datePublished", "distribution"}
    # But `sameAs`: there is no other page about the same.
    recommended = {"keywords", "publisher", "version", "dateCreated", "dateModified", "sdLicense"}
    recommended |= {"inLanguage", "citeAs", "isLiveDataset"}
    assert required | recommended <= found.keys()
    assert found["conformsTo"][0] == "http://mlcommons.org/croissant/1.1"
    assert found["version"] == "1.2.0" and found["datePublished"] == "2026-01-31"
    types = [entry["@type"] for entry in found["distribution"] + found["recordSet"]]
    assert types == ["cr:FileObject"] * 2 + ["cr:RecordSet"] * 2


def test_croissant_says_from_what_and_by_what_it_was_made(folder):
    found = metadata(folder)
    assert found["prov:wasDerivedFrom"] == [{"@id": "https://example.org/coast"}]
    made = found["prov:wasGeneratedBy"]
    assert made["prov:label"] == "python -m lamps --at night"
    agents = [agent["prov:label"] for agent in made["prov:wasAssociatedWith"]]
    assert f"numpy {np.__version__}" in agents and agents[0].startswith("python 3.")
    assert not any("absent" in agent for agent in agents)
    # Versions of libraries alone do not say which code of the book it was.
    assert agents[-1].endswith(f"digest of lib: {digest(ROOT / 'lib')}")


def test_answers_of_the_datasheet_are_the_fields_of_responsible_ai(folder):
    found = metadata(folder)
    said = {name.removeprefix("rai:"): text for name, text in found.items() if "rai:" in name}
    assert said["dataBiases"] == ANSWERS["risks"]
    assert {"dataCollection", "dataLimitations", "dataUseCases", "dataSocialImpact"} <= said.keys()
    assert {"personalSensitiveInformation", "dataReleaseMaintenancePlan"} <= said.keys()
    assert said.pop("hasSyntheticData") is True
    sheet = (folder / "DATASHEET.md").read_text()
    for questions in QUESTIONS.values():
        for key, one in questions.items():
            answer = ANSWERS.get(key) or one["answer"]
            assert f"**{one['question']}**\n\n{answer}\n" in sheet
    assert all(text in sheet for text in said.values())


def test_questions_are_those_of_the_seven_sections():
    assert [*QUESTIONS] == [
        *("Motivation", "Composition", "Collection", "Preprocessing", "Uses", "Distribution"),
        "Maintenance",
    ]
    keys = [key for questions in QUESTIONS.values() for key in questions]
    assert len(keys) == len(set(keys)) >= 45


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({**ANSWERS, "colour": "red"}, "['colour']"),
        ({k: v for k, v in ANSWERS.items() if k != "risks"}, "['risks']"),
    ],
)
def test_a_question_that_is_not_answered_or_not_asked_is_an_error(folder, answers, found):
    with pytest.raises(
        InputError, match=f"must be answered, and no others: found {re.escape(found)}"
    ):
        publish(folder, replace(DESCRIPTION, answers=answers))


def test_csv_has_the_same_values_lists_as_json(folder):
    publish(folder, DESCRIPTION, csv=True)
    for name in DESCRIPTION.columns:
        text = pd.read_csv(folder / "csv" / f"{name}.csv")
        table = pd.read_parquet(folder / f"{name}.parquet")
        assert [*text] == [*table]
        for column in table.columns[table.columns.isin(["ships", "path"])]:
            text[column] = text[column].map(json.loads)
            table[column] = [json.loads(json.dumps(_plain(one))) for one in table[column]]
        assert text.to_dict("list") == table.to_dict("list")
    files = {
        one["@id"]: one
        for one in json.loads((folder / "croissant.json").read_text())["distribution"]
    }
    assert [*files] == ["lamps.parquet", "csv/lamps.csv", "effects.parquet", "csv/effects.csv"]
    digest = hashlib.sha256((folder / "csv" / "lamps.csv").read_bytes()).hexdigest()
    assert files["csv/lamps.csv"]["sha256"] == digest
    assert files["csv/lamps.csv"]["sameAs"] == "lamps.parquet"


def _plain(value):
    return [_plain(one) for one in value] if isinstance(value, np.ndarray) else int(value)


def test_the_official_validator_accepts_it_and_reads_the_rows(folder, caplog):
    assert_valid(publish(folder, DESCRIPTION, csv=True), caplog)


def assert_valid(folder, caplog):
    """Validate a folder, and read every row of every table by what Croissant says."""
    import mlcroissant

    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        # What the validator itself does by ways that pandas and rdflib will end.
        warnings.simplefilter("ignore", DeprecationWarning)
        dataset = mlcroissant.Dataset(str(folder / "croissant.json"))
        issues = dataset.metadata.ctx.issues
        assert not issues.errors and not issues.warnings
        assert dataset.metadata.ctx.is_v1_1()
        for records in dataset.metadata.record_sets:
            found = pd.DataFrame(list(dataset.records(records.uuid)))
            expected = pd.read_parquet(folder / f"{records.uuid}.parquet")
            assert len(found.columns) == len(expected.columns) and len(found) == len(expected) > 0
            for (_, one), (_, other) in zip(found.items(), expected.items(), strict=True):
                assert one.map(_text).tolist() == other.map(_text).tolist()
    assert not caplog.records


def _text(value):
    """Return a value as Python has it: the validator has bytes for text, pandas has arrays."""
    if isinstance(value, list | np.ndarray):
        return [_text(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def test_datasets_reads_every_table_by_the_card(folder, tmp_path_factory):
    assert_loads(publish(folder, DESCRIPTION, csv=True), tmp_path_factory.mktemp("cache"))


def assert_loads(folder, cache):
    """Load every table by the head of the card, as readers of data repositories do."""
    import datasets

    datasets.disable_progress_bars()
    tables = sorted(path.stem for path in folder.glob("*.parquet"))
    assert sorted(datasets.get_dataset_config_names(str(folder))) == tables
    for name in tables:
        loaded = datasets.load_dataset(str(folder), name, split="train", cache_dir=str(cache))
        expected = pd.read_parquet(folder / f"{name}.parquet")
        found = loaded.to_pandas().map(_text)
        assert found.to_dict("list") == expected.map(_text).to_dict("list")


def test_what_made_it_and_what_versions_mean_is_on_the_card(folder):
    body = (publish(folder, DESCRIPTION) / "README.md").read_text()
    assert "made by `python -m lamps --at night`" in body
    assert "MAJOR.MINOR.PATCH: MAJOR is raised if rows that were there have changed" in body


def test_names_cannot_bring_html_or_end_a_cell(tmp_path):
    evil = "`<script>alert(1)</script>`|\n# x"
    pd.DataFrame({evil: [1]}).to_parquet(tmp_path / "t.parquet")
    columns = {"t": {evil: f"</td>{evil}"}}
    description = replace(DESCRIPTION, name=evil, columns=columns, keys={"t": [evil]}, cite="")
    publish(tmp_path, description)
    _, head, body = (tmp_path / "README.md").read_text().split("---\n", 2)
    assert yaml.safe_load(head)["pretty_name"] == evil
    assert "\n# x" not in body
    outside = re.sub(r"`[^`\n]*`", "", body.replace("```", ""))
    assert "<script" not in outside and "</td" not in outside
    (row,) = [line for line in body.splitlines() if line.startswith("| `")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert "<" not in (tmp_path / "DATASHEET.md").read_text().splitlines()[0]
    text = (tmp_path / "croissant.json").read_text()
    assert "<" not in text and json.loads(text)["name"] == evil


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
    text = (publish(folder, DESCRIPTION) / "README.md").read_text()
    (row,) = [line for line in text.splitlines() if "do x" in line[:20]]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4


@pytest.mark.parametrize(
    ("rows", "category"), [(999, "n<1K"), (1_000, "1K<n<10K"), (10_000_000, "10M<n<100M")]
)
def test_size_category_is_that_of_the_largest_table(folder, rows, category):
    lamps = dict.fromkeys(("lamp", "lit", "ships"), np.zeros(rows, dtype=bool))
    pq.write_table(pa.table(lamps), folder / "lamps.parquet")
    text = (publish(folder, DESCRIPTION) / "README.md").read_text()
    assert yaml.safe_load(text.split("---\n")[1])["size_categories"] == [category]


def test_lists_of_other_writers_are_lists_too(folder):
    """Polars writes those that Arrow calls large."""
    lamps = pq.read_table(folder / "lamps.parquet")
    ships = pa.array([[1], [], [2]], pa.large_list(pa.int64()))
    pq.write_table(lamps.set_column(2, "ships", ships), folder / "lamps.parquet")
    publish(folder, DESCRIPTION, csv=True)
    written = pd.read_csv(folder / "csv" / "lamps.csv")["ships"]
    assert written.map(json.loads).tolist() == [[1], [], [2]]
    described = json.loads((folder / "croissant.json").read_text())["recordSet"][0]["field"][2]
    assert (described["dataType"], described["arrayShape"]) == ("sc:Integer", "-1")


def test_a_csv_file_of_before_is_not_said_to_be_the_same_as_the_table(folder):
    publish(folder, DESCRIPTION, csv=True)
    pq.write_table(pq.read_table(folder / "lamps.parquet")[:2], folder / "lamps.parquet")
    assert [
        file["name"] for file in metadata(folder)["distribution"] if "csv" in file["name"]
    ] == []
    assert "as CSV" not in (folder / "README.md").read_text()


def test_same_tables_same_bytes(folder):
    first, again = (
        {path: path.read_bytes() for path in publish(folder, DESCRIPTION, csv=True).rglob("*.*")}
        for _ in range(2)
    )
    assert first == again
    assert len(first) == 7


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


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """All data sets, a few rows of each, as the command writes them."""
    folder = tmp_path_factory.mktemp("exported")
    assert main(["export", str(folder), "--small", "--csv", "--url", "https://example.org/"]) == 0
    return folder


def test_the_export_has_every_set_and_nothing_else(exported):
    assert sorted(path.name for path in exported.iterdir()) == sorted(SETS)


@pytest.mark.parametrize("name", SETS)
def test_an_exported_set_is_valid_and_read_by_its_metadata_and_by_its_card(
    exported, name, caplog, tmp_path
):
    assert_valid(exported / name, caplog)
    assert_loads(exported / name, tmp_path)
    found = json.loads((exported / name / "croissant.json").read_text())
    assert found["url"] == f"https://example.org/{name}"
    assert found["prov:wasGeneratedBy"]["prov:label"].endswith(f"FOLDER {name} --small --csv")
    adult, paper = "https://doi.org/10.24432/C5XW20", "https://github.com/Healthy-AI/IncomeSCM"
    form = "https://doi.org/10.48550/arXiv.2503.04556"
    sources = [adult, paper] if name in DATA_SETS else [form]
    assert [one["@id"] for one in found["prov:wasDerivedFrom"]] == sources


@pytest.mark.parametrize("name", SETS)
def test_the_programs_of_a_card_run_in_its_folder_as_they_are_printed(
    exported, name, monkeypatch, tmp_path
):
    import datasets

    monkeypatch.chdir(exported / name)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    card = (exported / name / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)
    assert len(programs) == 2
    for program in programs:
        exec(program, {})


def test_a_card_tells_of_few_rows_and_of_csv_if_there_are(exported, folder):
    card = (exported / "candy_party_v0" / "README.md").read_text()
    assert "a few rows of each table" in card and "The folder `csv`" in card
    card = (publish(folder, DESCRIPTION) / "README.md").read_text()
    assert "a few rows" not in card and "csv" not in card


@pytest.mark.parametrize("name", SETS)
def test_a_card_names_limits_and_licence_and_cites_the_set_and_what_it_is_based_on(exported, name):
    card = (exported / name / "README.md").read_text()
    metadata = json.loads((exported / name / "croissant.json").read_text())
    assert metadata["rai:dataLimitations"] in card
    assert f"<{metadata['license']}>" in card
    (cited,) = re.findall(r"```bibtex\n(.*?)```", card, flags=re.DOTALL)
    assert cited.strip() == metadata["citeAs"]
    own, *others = parse_string(cited, "bibtex").entries.items()
    assert own[0] == f"{name}-{metadata['version']}" and len(others) >= 1
    assert metadata["creator"]["name"] in str(own[1].persons["author"][0])


def _rows(folder):
    """The tables of a set as lines of text, one below the other, and its version."""
    version = json.loads((folder / "croissant.json").read_text())["version"]
    tables = [pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))]
    text = "".join(table.map(_rounded).to_csv(index=False) for table in tables)
    return text, version.removesuffix("-small")


def _rounded(value):
    return f"{value:.4g}" if isinstance(value, float) else str(_text(value))


@pytest.mark.parametrize("name", SETS)
def test_a_changed_row_needs_a_new_version(exported, name):
    text, version = _rows(exported / name)
    assert DIGESTS.get((name, version)) == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_a_second_export_is_the_same_byte_for_byte(exported, tmp_path):
    options = ["--small", "--csv", "--url", "https://example.org"]
    assert main(["export", str(tmp_path), *SETS, *options]) == 0
    first, again = (
        {path.relative_to(top): path.read_bytes() for path in top.rglob("*") if path.is_file()}
        for top in (exported, tmp_path)
    )
    assert first == again and len(first) > 100


def test_a_set_that_is_there_stays_and_one_that_was_interrupted_never_appears(
    tmp_path, monkeypatch, capsys
):
    assert main(["export", str(tmp_path), "flu_vaccine_v0", "--small"]) == 0
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    monkeypatch.setattr("lib.book.publishing.versions", _interrupt)
    names = ["flu_vaccine_v0", "candy_party_v0"]
    capsys.readouterr()
    assert main(["export", str(tmp_path), *names, "--small"]) == 130
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    said = capsys.readouterr()
    assert "flu_vaccine_v0 exists already and is left as it is" in said.out
    assert said.err.splitlines()[0] == "candy_party_v0: started", "of a quarter of an hour, maybe"


def test_what_is_there_and_is_not_the_set_is_refused_before_any_work(tmp_path, capsys):
    (tmp_path / "candy_party_v0").mkdir()
    folder = tmp_path / "flu_vaccine_v0"
    assert main(["export", str(tmp_path), folder.name, "--small"]) == 0
    table, rule = folder / "answers.parquet", "or not exist: found"
    for options, found in (
        ([], "'version 2.0.0-small'"),
        (["--small", "--csv"], "'no CSV files'"),
        (["--small", "candy_party_v0"], "'another folder'"),
        (["--small"], "'answers.parquet damaged'"),
    ):
        if "damaged" in found:
            table.write_bytes(table.read_bytes()[:100])
        capsys.readouterr()
        assert main(["export", str(tmp_path), folder.name, *options]) == 2
        said = capsys.readouterr()
        assert f"{rule} {found}" in said.err and said.out == ""
    table.unlink()
    assert main(["export", str(tmp_path), folder.name, "--small"]) == 2


def _interrupt():
    raise KeyboardInterrupt


def test_an_unknown_set_is_refused_before_anything_is_written(tmp_path, capsys):
    assert main(["export", str(tmp_path / "new"), "--url", 'no "address"']) == 2
    assert "error: --url must be a web address, such as https://example.org/sets: found" in (
        capsys.readouterr().err
    )
    assert main(["export", str(tmp_path / "new"), "candy_party_v0", "candy"]) == 2
    assert "error: data set 'candy' is unknown: expected one of" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
