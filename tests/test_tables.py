"""Numbers are written in one way, and a frame becomes a table to read."""

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from lib.errors import InputError
from lib.tables import number_text, typeset


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((4330.4, 272.0), "4\u202f330 ± 272"),
        ((1_234_567,), "1\u202f234\u202f567"),
        ((-0.0004, None, 2), "0.00"),
        ((-0.0004, 0.01), "0.000 ± 0.010"),
        ((-12.345,), "−12.3"),
        ((0.0,), "0"),
        ((0.00082, None, ".1e"), "8.2·10⁻⁴"),
        ((5e12, None, ".0e"), "5·10¹²"),
        ((3.0, None, "+.1f"), "+3.0"),
        ((np.float32(0.5), np.float64(0.0)), "0.500 ± 0.000"),
        ((8.4466e-5,), "0.0000845"),
        ((-7.84671797814e-247,), "−7.85·10⁻²⁴⁷"),
        ((4.4e-16, 2e-17), "4.4·10⁻¹⁶ ± 2.0·10⁻¹⁷"),
        ((9.996,), "10.0"),
        ((0.09996,), "0.100"),
        ((99.96, 0.0996), "99.96 ± 0.10"),
        ((np.nan, np.nan), "—"),
        ((np.inf,), "∞"),
        ((-np.inf, np.nan), "−∞"),
    ],
)
def test_a_number_is_written_in_one_way(arguments, text):
    assert number_text(*arguments) == text


def cells(table) -> list[list[str]]:
    soup = BeautifulSoup(table._repr_html_(), "html.parser")
    return [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in soup.find_all("tr")]


def test_the_largest_of_a_column_has_three_digits_and_integers_have_none_more():
    frame = pd.DataFrame({"a": [67.62, 0.04], "b": [4330.4, -0.3], "n": [1, 20_000], "w": [1.0, 2]})
    expected = [["67.6", "4\u202f330", "1", "1"], ["0.0", "0", "20\u202f000", "2"]]
    assert cells(typeset(frame)) == [["a", "b", "n", "w"], *expected]
    assert cells(typeset(frame, digits=2))[1] == ["67.62", "4\u202f330.40", "1", "1.00"]
    assert cells(typeset(frame, digits={"a": 0}))[1][:2] == ["68", "4\u202f330"]
    assert cells(typeset(frame[["a"]] * 1e-17))[1:] == [["6.76·10⁻¹⁶"], ["4.00·10⁻¹⁹"]]
    assert cells(typeset(frame[["a", "b"]], by_row=True))[1:] == [
        ["68", "4\u202f330"],
        ["0.040", "−0.300"],
    ]


def test_errors_stand_behind_their_values_and_units_in_headings():
    frame = pd.DataFrame(
        {"value": [4330.4, 3.0], "error": [272.0, np.nan], "of": ["ATE", None]},
        index=pd.Index(["x", "y"], name="who"),
    )
    table = typeset(frame, error={"value": "error"}, unit="$")
    assert cells(table) == [
        ["who", "value ± error,\xa0$", "of"],
        ["x", "4\u202f330\xa0±\xa0272", "ATE"],
        ["y", "3", "—"],
    ]
    named = typeset(frame, unit={"error": "$"})
    assert cells(named)[0] == ["who", "value", "error,\xa0$", "of"]
    again = frame.rename(columns={"error": "error of value"})
    assert cells(typeset(again, error={"value": "error of value"}, unit="$")) == cells(table)
    with pytest.raises(InputError, match="column 'errors' is unknown: expected one of"):
        typeset(frame, error={"value": "errors"})
    with pytest.raises(InputError, match="column 'errors' is unknown: expected one of who, value"):
        typeset(frame, unit={"errors": "$"})


def test_nothing_of_pandas_shows():
    frame = pd.DataFrame(
        {
            ("left", "yes?"): [True, np.False_],
            ("left", "missing"): [np.nan, None],
            ("right", "level"): pd.Categorical(["a < b", None]),
            ("right", "count"): pd.array([3, None], "Int64"),
        },
        index=pd.MultiIndex.from_tuples([("p", 1), ("p", 2)], names=["outer", None]),
    )
    table = typeset(frame)
    assert cells(table) == [
        ["outer", "", "left: yes?", "left: missing", "right: level", "right: count"],
        ["p", "1", "yes", "—", "a < b", "3"],
        ["", "2", "no", "—", "—", "—"],
    ]
    assert "&lt; b" in table._repr_html_()
    assert repr(table) == repr(typeset(frame))
    assert "0x" not in repr(table)


def test_headings_say_what_they_head_and_none_is_empty():
    frame = pd.DataFrame({"n": [5], "name": ["a-1"]}, index=["first"])
    soup = BeautifulSoup(typeset(frame)._repr_html_(), "html.parser")
    assert [(one.get_text(), one["scope"]) for one in soup.find_all("th")] == [
        ("n", "col"),
        ("name", "col"),
        ("first", "row"),
    ]
    numbers = [one.get_text() for one in soup.find_all(class_="number")]
    assert numbers == ["n", "5"], "what is a number stands on the right"
    assert soup.find(style=True) is None and soup.find(id=True) is None


def test_an_index_that_only_counts_is_left_out_unless_it_has_a_name():
    frame = pd.DataFrame({"n": [5, 6]})
    assert cells(typeset(frame)) == [["n"], ["5"], ["6"]]
    assert cells(typeset(frame.rename_axis("n")))[:2] == [["n", "n"], ["0", "5"]]
    assert cells(typeset(frame[:0])) == [["n"]]
    assert cells(typeset(frame[frame["n"] > 5])) == [["n"], ["6"]]


def test_labels_are_as_they_are():
    frame = pd.DataFrame({"x": [0.25, 0.5]}, index=pd.Index([0.02, 20_000], name="γ"))
    assert cells(typeset(frame, digits=1)) == [["γ", "x"], ["0.02", "0.2"], ["20\u202f000", "0.5"]]


def test_a_column_without_a_name_has_the_digits_that_it_was_asked_for():
    frame = pd.DataFrame({"": [0.0016157, 16.3239]}, index=["least", "most"])
    expected = [["", ""], ["least", "0.0016"], ["most", "16"]]
    assert cells(typeset(frame, digits=",.2g")) == expected


def test_a_short_label_is_not_broken():
    frame = pd.DataFrame({"x": ["a b"] * 2}, index=["overlap 0.25", "one regression, all history"])
    soup = BeautifulSoup(typeset(frame)._repr_html_(), "html.parser")
    assert [one.get_text() for one in soup.find_all(class_="short")] == ["overlap 0.25"]


def test_numbers_in_headings_are_written_as_everywhere():
    frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([["n"], [4000, 0.5]]))
    assert cells(typeset(frame))[0] == ["n: 4\u202f000", "n: 0.5"]


def test_an_error_that_is_only_rounding_does_not_ask_for_its_digits():
    assert number_text(3582.2341952790093, 4.1e-13) == "3\u202f582.2342 ± 0.0000"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("4\u202f330 (1, 2)", True),
        ("67.6 %", True),
        ("−1.5 ± 2", True),
        ("9th", False),
        ("1: the first", False),
        ("2026-11-22", False),
    ],
)
def test_texts_of_numbers_stand_on_the_right(text, number):
    assert ('class="number"' in typeset(pd.DataFrame({"x": [text]}))._repr_html_()) == number
