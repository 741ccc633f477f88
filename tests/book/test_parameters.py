"""Parameters are read as written, checked by type, and written back in place."""

import ast
import contextlib
import datetime
import math
import shlex

import pytest

from lib.book.parameters import (
    Parameter,
    as_source,
    checked,
    read_parameters,
    with_values,
)
from lib.errors import InputError

CELL = """\
n_samples: int = 10_000  # subjects to draw
horizon: int | None = None  # years; the specification's if None
share: float = 0.5
levels: list[str] = [
    "No studies",  # the reference
    "Étude à plein temps",
]  # which to compare — in this order
title: str = "# no comment"  # shown above the figure
effect: float = -1.5
kind: Literal["ate", "cate"] = "ate"
"""


def test_cell_is_read_in_order_with_types_defaults_and_meaning():
    parameters = read_parameters(CELL)
    assert list(parameters) == [
        "n_samples",
        "horizon",
        "share",
        "levels",
        "title",
        "effect",
        "kind",
    ]
    assert parameters["n_samples"] == Parameter("n_samples", "int", 10_000, "subjects to draw")
    assert parameters["horizon"].annotation == "int | None"
    assert parameters["levels"].default == ["No studies", "Étude à plein temps"]
    assert parameters["levels"].help == "which to compare — in this order"
    assert parameters["title"].default == "# no comment"
    assert parameters["title"].help == "shown above the figure"
    assert parameters["share"].help == ""
    assert parameters["effect"].default == -1.5


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("n = 5", "the parameters cell holds 'n = 5': expected a line `name: type = value"),
        ("n: int", "holds 'n: int'"),
        ("import os", "holds 'import os'"),
        ("a.n: int = 1", "holds 'a.n: int = 1'"),
        (
            "n: int = 1\nm: int = 2\nn: int = 3",
            "^each parameter may be given only once: found 'n'$",
        ),
        ("n: int = 1; m: int = 2", "holds 'm: int = 2': expected a line"),
        ("n: int = m * 2", "holds 'n: int = m [*] 2': expected a line .* whose value is a literal"),
        ("n: int = 'five'", "parameter 'n' is 'five': expected int"),
        ("n: integer = 5", "parameter 'n' has the unknown type 'integer'"),
        ("n: int = ", "the parameters cell is not valid Python"),
        ("n: int = " + "[" * 300, "the parameters cell is not valid Python"),
        ("n: int = " + "-" * 100_000 + "1", "the parameters cell is not valid Python"),
        ("n: int = " + "9" * 5_000, "the parameters cell is not valid Python"),
        ("n: float = 1e999", "parameter 'n' is inf: expected float"),
        (
            "kinds: list[str] = 'wheel'",
            r'expected list\[str\], such as \["a", "b"\]$',
        ),
    ],
)
def test_a_cell_that_breaks_the_rules_is_refused(source, message):
    with pytest.raises(InputError, match=message):
        read_parameters(source)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int", "10_000", 10_000),
        ("int", "10000", 10_000),
        ("int", "-3", -3),
        ("int", "010", 10),
        ("float", "-010", -10.0),
        ("list[int]", "[010, 2]", [10, 2]),
        ("float", "3", 3.0),
        ("float", "1e-3", 0.001),
        ("bool", "true", True),
        ("bool", "False", False),
        ("str", "10_000", "10_000"),
        ("str", "None", "None"),
        ("str", "'quoted'", "'quoted'"),
        ("str | None", "Full-time studies", "Full-time studies"),
        ("str | None", "None", None),
        ("str | None", "null", None),
        ("str | None", "5", "5"),
        ("str | None", "Model #2", "Model #2"),
        ("str | None", "# first", "# first"),
        ("list[str]", "[a#b, c]", ["a#b", "c"]),
        ("Optional[int]", "5", 5),
        ("list[float]", "[0.1, 1]", [0.1, 1.0]),
        ("list[str]", "[No studies, Evening course]", ["No studies", "Evening course"]),
        ("dict", "{'a': 1}", {"a": 1}),
        ("dict[str, int]", "{a: 1}", {"a": 1}),
        ("Literal['ate', 'cate']", "cate", "cate"),
    ],
)
def test_text_is_read_by_the_annotated_type(annotation, text, value):
    read = Parameter("x", annotation, None).parse(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("int", "5"),
        ("int", 5.0),
        ("int", True),
        ("int", None),
        ("bool", 1),
        ("str", 5),
        ("float", True),
        ("list[int]", [1, "2"]),
        ("Literal['ate', 'cate']", "att"),
        ("float", math.nan),
        ("float | None", math.inf),
        ("list[list[float]]", [[1.0, math.nan]]),
        ("dict", {"a": math.nan}),
        ("Any", [-math.inf]),
        ("Any", datetime.date(2001, 9, 9)),
        ("Any", b"no record holds bytes"),
        ("list[Any]", [{1, 2}]),
        ("str", "\ud800"),
    ],
)
def test_values_of_other_types_are_refused(annotation, value):
    with pytest.raises(InputError) as refusal:
        Parameter("x", annotation, None).check(value)
    assert str(refusal.value) == f"parameter 'x' is {value!r}: expected {annotation}"


@pytest.mark.parametrize(
    "annotation",
    [
        "print('evaluated')",
        "list['print(1)']",
        "'print(1)'",
        "9**9**9",
        "[int for int in ()]",
        "int.__class__",
        "(lambda: int)()",
        "Literal[print(1)]",
        "1",
        "()",
        "int | 1",
        "list[" * 50 + "int" + "]" * 50 + "(1)",
        "list[" * 5_000,
    ],
)
def test_an_annotation_is_read_and_not_evaluated(annotation, capsys):
    with pytest.raises(InputError, match=r"^parameter 'x' has the unknown type"):
        Parameter("x", annotation, None).check(1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("Literal[1, -2, 'a', None]", -2),
        ("Literal['a'] | int | None", None),
        ("Union[int, str]", "a"),
        ("tuple[float, ...]", (1.0, 2.0)),
        ("dict[str, list[int] | bool]", {"a": [1], "b": True}),
        ("None | Any", None),
    ],
)
def test_every_way_to_write_a_type_is_read(annotation, value):
    assert Parameter("x", annotation, None).check(value) == value


@pytest.mark.parametrize("annotation", ["int", "float", "list[str]", "dict", "int | None"])
@pytest.mark.parametrize(
    "text",
    [
        *("2001-99-99", ".nan", "-.inf", "1e999", "!!float x", "&a [*a]", "\0", "\ud800"),
        *("[" * 300, "{a: " * 300, "-" * 100_000 + "1", "9" * 5_000),
    ],
)
def test_whatever_is_typed_is_read_or_refused_in_one_sentence(annotation, text):
    with contextlib.suppress(InputError):
        value = Parameter("seed", annotation, None).parse(text)
        assert ast.literal_eval(repr(value)) == value


def test_text_that_fits_no_reading_is_shown_as_typed():
    with pytest.raises(InputError, match="parameter 'x' is 'ten': expected int"):
        Parameter("x", "int", 0).parse("ten")


@pytest.mark.parametrize("number", ["1:30", "1:30.5", "1__0"])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_what_is_a_number_in_yaml_alone_is_refused(kind, number):
    for annotation, text in ((kind, number), (f"list[{kind}]", f"[{number}, 2]")):
        with pytest.raises(InputError, match=r"parameter 'x' is '.*': expected "):
            Parameter("x", annotation, 0).parse(text)
    assert Parameter("x", f"{kind} | str", 0).parse(number) == number


def test_given_values_join_the_defaults():
    parameters = read_parameters(CELL)
    values = checked(parameters, {"share": 1, "n_samples": 50})
    assert values["share"] == 1.0
    assert values["n_samples"] == 50
    assert values["title"] == "# no comment"
    assert list(values) == list(parameters)


@pytest.mark.parametrize(("given", "as_text"), [(4000.0, False), ("4_000", True), ("4e3", True)])
def test_a_default_that_is_given_is_the_default(given, as_text):
    parameters = read_parameters("extra: float = 4000")
    values = checked(parameters, {"extra": given}, as_text)
    assert values == checked(parameters, {}) and type(values["extra"]) is int


def test_unknown_names_are_refused_with_those_allowed():
    parameters = read_parameters("n_samples: int = 1\nseed: int = 0")
    with pytest.raises(InputError) as refusal:
        checked(parameters, {"n_sample": 5})
    assert str(refusal.value) == "parameter 'n_sample' is unknown: expected one of n_samples, seed"


@pytest.mark.parametrize(("value", "as_text"), [(999, False), ("999", True)])
def test_the_least_that_a_meaning_states_is_a_rule(value, as_text):
    count, other = (
        "n: int = 5_000  # people, at least 1_000; 50_000 in the paper",
        "levels: Any = 0",
    )
    parameters = read_parameters(f"{count}\n{other}  # at least 2")
    with pytest.raises(InputError) as refusal:
        checked(parameters, {"n": value}, as_text)
    assert str(refusal.value) == "parameter 'n' must be at least 1_000: found 999"
    allowed = {"n": 1_000, "levels": ["of numbers alone"]}
    assert checked(parameters, allowed) == allowed


@pytest.mark.parametrize(("least", "less"), [("2.5", 2.4), ("0.5", 0.25), ("1_000.5", 1000)])
def test_the_least_may_be_a_decimal(least, less):
    parameters = read_parameters(f"x: float = 5_000.0  # at least {least}. More is better.")
    with pytest.raises(InputError) as refusal:
        checked(parameters, {"x": less})
    assert str(refusal.value) == f"parameter 'x' must be at least {least}: found {float(less)}"
    assert checked(parameters, {"x": float(least)}) == {"x": float(least)}


RULES = {
    "share: float = 0.5  # from 0 to 1": [(0, 1, 0.5), "at least 0", -0.1, "at most 1", 1.5],
    "price: float = 9.0  # dollars; above 0": [(0.1, 1), "above 0", 0.0, "above 0", -1.0],
    "age: int = 30  # below 1_000, at most 120": [
        (0, 120),
        "below 1_000",
        1_000,
        "at most 120",
        121,
    ],
}


@pytest.mark.parametrize(("line", "cases"), RULES.items(), ids=str)
def test_a_meaning_may_state_bounds(line, cases):
    parameters, (allowed, *refused) = read_parameters(line), cases
    (name,) = parameters
    for value in allowed:
        assert checked(parameters, {name: value})[name] == value
    for rule, value in zip(refused[::2], refused[1::2], strict=True):
        with pytest.raises(InputError) as refusal:
            checked(parameters, {name: value})
        assert str(refusal.value) == f"parameter {name!r} must be {rule}: found {value}"


@pytest.mark.parametrize(
    "meaning",
    [
        "at most 1,000",
        "at most 1 000",
        "at most 1\u202f000",
        "above 1e-6",
        "at least 5 %",
        "not below 2_000",
        "never above 10",
        "at least as many as n",
    ],
)
def test_what_is_written_otherwise_is_no_rule(meaning):
    parameters = read_parameters(f"n: float = 0.5  # of people, {meaning}")
    for value in (-3.0, 0.25, 700.0):
        assert checked(parameters, {"n": value})["n"] == value


@pytest.mark.parametrize(("meaning", "wrong"), [("from -1 to 1", -2), ("At least -1.5", -1.6)])
def test_bounds_may_be_negative(meaning, wrong):
    parameters = read_parameters(f"n: float = 0.5  # {meaning}")
    assert checked(parameters, {"n": -1.0})["n"] == -1
    with pytest.raises(InputError, match=f"must be [Aa]t least -1.*: found {wrong}"):
        checked(parameters, {"n": wrong})


def test_lists_in_a_list_may_have_to_differ():
    parameters = read_parameters("n: list[list[int]] = [[3]]  # all different")
    assert checked(parameters, {"n": [[3], [4]]})["n"] == [[3], [4]]
    with pytest.raises(InputError, match=r"each entry of parameter 'n' may be given only once"):
        checked(parameters, {"n": [[4], [3], [4]]})


def test_bounds_hold_for_each_number_of_a_list():
    parameters = read_parameters('n: list[int | str] = [1, "all"]  # from 1 to 5, or all')
    assert checked(parameters, {"n": [5, "none", 1]})["n"] == [5, "none", 1]
    assert checked(parameters, {"n": []})["n"] == []
    with pytest.raises(InputError, match="parameter 'n' must be at most 5: found 6"):
        checked(parameters, {"n": [1, 6]})


@pytest.mark.parametrize("rule", ["one or more", "all different"])
def test_a_list_may_have_to_hold_something(rule):
    parameters = read_parameters(f"names: list[str] = ['a']  # of people, {rule}")
    with pytest.raises(
        InputError, match=r"parameter 'names' must have at least one entry: found \[\]"
    ):
        checked(parameters, {"names": []})
    twice = {"names": ["b", "a", "b"]}
    if rule == "one or more":
        assert checked(parameters, twice) == twice
        return
    with pytest.raises(InputError, match="each entry of parameter 'names' may be given only once"):
        checked(parameters, twice)


def test_values_are_written_in_place_and_all_else_stays():
    values = {
        "n_samples": 50_000,
        "levels": ["Evening course"],
        "title": 'It\'s "à part"',
        "share": 0.5,
        "kind": "cate",
    }
    written = with_values(CELL, values)
    assert "n_samples: int = 50_000  # subjects to draw\n" in written
    assert "levels: list[str] = ['Evening course']  # which to compare — in this order" in written
    assert written.count("\n") == CELL.count("\n") - 3
    read = read_parameters(written)
    assert {name: read[name].default for name in values} == values
    assert read["effect"].default == -1.5
    assert [p.help for p in read.values()] == [p.help for p in read_parameters(CELL).values()]


def test_defaults_leave_the_cell_as_it_is():
    defaults = {name: p.default for name, p in read_parameters(CELL).items()}
    assert with_values(CELL, defaults) == CELL


@pytest.mark.parametrize("value", [0, -10_000, 1_000_000, 0.1, True, None, "it's", [1], {"a": 2}])
def test_source_of_a_value_means_the_value(value):
    assert eval(as_source(value)) == value


def test_thousands_are_apart_in_numbers_of_five_digits():
    assert [as_source(n) for n in (9_999, 10_000, 1e4)] == ["9999", "10_000", "10000.0"]


@pytest.mark.parametrize(
    "value",
    [
        ["No studies", "it's"],
        [True, None],
        [1e-9, '"\\\n\x01é'],
        [1e-9, None],
        ["\x7f", False],
        [[1], {"a": 2}],
        [(1, 2)],
        [{1: 2}],
    ],
)
def test_a_list_as_typed_is_read_as_the_list(value):
    levels = Parameter("levels", "list", [])
    assert levels.parse(levels.typed(value)) == value


@pytest.mark.parametrize(
    ("annotation", "value"),
    [("list[tuple[int, int]]", [(1, 2)]), ("list[dict[int, str]]", [{1: "a"}])],
)
def test_a_list_of_what_json_has_not_is_typed_as_python_writes_it(annotation, value):
    pairs = Parameter("pairs", annotation, [])
    assert pairs.typed(value) == repr(value) and pairs.parse(repr(value)) == value


def test_a_list_is_typed_without_quotes_within_quotes():
    levels = Parameter("levels", "list[str]", [])
    typed = shlex.join(["-p", "levels", levels.typed(["ipw-lr", "Étude du soir"])])
    assert typed == """-p levels '["ipw-lr", "Étude du soir"]'"""
