"""The base table: the right bytes, all of them, and the numbers the paper prints."""

import gzip
from pathlib import Path

import pandas as pd
import pytest

from lib.adult import (
    ADULT_BYTES,
    ADULT_MD5,
    ADULT_PATH,
    EDUCATION_LEVELS,
    FIELDS,
    load_adult,
    read_adult,
)
from lib.errors import InputError


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.fixture(scope="module")
def content():
    return gzip.decompress(ADULT_PATH.read_bytes())


def test_records_are_read_as_they_stand_in_the_file(content):
    records = read_adult()
    lines = content.decode().splitlines()
    assert list(records.columns) == FIELDS
    assert len(records) == 32_561
    for row in (0, 27, 32_560):  # record 27 has three missing values
        expected = ["missing" if field == "?" else field for field in lines[row].split(", ")]
        assert records.iloc[row].astype(object).fillna("missing").astype(str).tolist() == expected


def test_a_missing_value_drops_the_whole_record(adult, content):
    complete = [line for line in content.decode().splitlines() if line and "?" not in line]
    assert len(adult) == len(complete) == 30_162
    assert adult["age"].tolist() == [float(line.split(", ")[0]) for line in complete]
    assert not adult.isna().any(axis=None)


def test_gains_and_losses_become_one_net_result(adult):
    records = read_adult().dropna(ignore_index=True)
    assert (records["capital-gain"] > 0).any() and (records["capital-loss"] > 0).any()
    net = records["capital-gain"] - records["capital-loss"]
    assert adult["capital-net"].tolist() == net.tolist()


def test_three_kinds_of_marriage_become_one(adult):
    records = read_adult().dropna(ignore_index=True)["marital-status"]
    married = records.str.startswith("Married-")
    assert records[married].nunique() == 3
    assert (adult.loc[married, "marital-status"] == "Married").all()
    assert (adult.loc[~married, "marital-status"] == records[~married]).all()


def test_columns_have_the_types_that_mechanisms_rely_on(adult):
    assert set(adult.columns) == (
        set(FIELDS) - {"fnlwgt", "capital-gain", "capital-loss"} | {"capital-net"}
    )
    numbers = {name for name in adult if pd.api.types.is_float_dtype(adult[name])}
    assert numbers == {"age", "education-num", "capital-net", "hours-per-week"}
    for name in set(adult.columns) - numbers:
        levels = adult[name].cat.categories
        assert set(levels) == set(adult[name].unique()), "every level occurs, and no other"
        if name != "education":
            assert list(levels) == sorted(levels)


def test_the_rank_of_education_is_its_number(adult):
    assert adult["education"].cat.categories.tolist() == EDUCATION_LEVELS
    assert (adult["education"].cat.codes + 1 == adult["education-num"]).all()


@pytest.mark.parametrize(("plain", "kind"), [(True, Path), (False, str)])
def test_another_copy_is_read_plain_or_gzipped(tmp_path, content, adult, plain, kind):
    copy = tmp_path / "adult.data"
    copy.write_bytes(content if plain else gzip.compress(content, compresslevel=1))
    pd.testing.assert_frame_equal(load_adult(kind(copy)), adult, check_exact=True)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda content: content[:-1], f"found '{ADULT_BYTES - 1:,} bytes"),
        (lambda content: content.replace(b"39", b"38", 1), f"found '{ADULT_BYTES:,} bytes"),
        (lambda content: b"", "found '0 bytes"),
        (lambda content: b"a,b\n1,2\n", "found '8 bytes"),
        (lambda content: gzip.compress(b"a,b\n1,2\n"), "found '8 bytes"),
        (lambda content: gzip.compress(content, 1)[:-100], "cannot be read"),
        (lambda content: b"\x1f\x8b\x08\x00 and then nonsense", "cannot be read"),
    ],
    ids=["truncated", "altered", "empty", "foreign", "foreign gzip", "cut gzip", "broken gzip"],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, content, damage, found):
    path = tmp_path / "adult.data"
    path.write_bytes(damage(content))
    with pytest.raises(InputError) as refusal:
        load_adult(path)
    message = str(refusal.value)
    assert str(path) in message and found in message
    assert ADULT_MD5 in message and f"{ADULT_BYTES:,}" in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["nowhere.data", "."])
def test_a_path_that_is_no_file_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        load_adult(tmp_path / name)


def test_income_goes_with_education_and_more_with_marriage():
    adult = load_adult()
    rich = 100 * (adult["income"] == ">50K")
    learned, lived = (
        rich.groupby(adult[name], observed=True).mean().round()
        for name in ("education", "marital-status")
    )
    assert learned[["Bachelors", "HS-grad"]].tolist() == [42, 16]
    assert lived[["Married", "Never-married"]].tolist() == [45, 5]


def test_an_empty_path_is_not_the_book_s_own_table():
    with pytest.raises(InputError, match="cannot be read, expected the"):
        read_adult("")
