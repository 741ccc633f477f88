"""The parameters of a notebook: read from its source, checked before it runs.

A notebook states its parameters in one cell with the tag `parameters`, one a
line, each with its type, its default and what it means::

    n_samples: int = 10_000  # subjects to draw

The values must be literals, because papermill replaces them one by one: nothing
may be derived from another there.
"""

import ast
import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from lib.errors import InputError, one_of

_TYPES = {
    "Any": Any,
    "Literal": Literal,
    "Optional": Optional,
    "Union": Union,
    **{kind.__name__: kind for kind in (bool, dict, float, int, list, str, tuple)},
}

#: From here on, digits are grouped (50_000), as they are in the notebooks.
_GROUPED_FROM = 10_000


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, the type as written, its default, and its comment.

    Examples
    --------
    >>> parameter = Parameter("n_samples", "int", 10_000, "subjects to draw")
    >>> parameter.check(50)
    50
    >>> parameter.parse("20_000")
    20000
    """

    name: str
    annotation: str
    default: Any
    help: str = ""

    def check(self, value: Any, notebook: str = "the notebook") -> Any:
        """Return the value if it has the parameter's type.

        An int serves as a float; beyond that, nothing is converted.

        Parameters
        ----------
        value : object
            What is to be checked.
        notebook : str
            Whose parameter this is, for the message.

        Raises
        ------
        InputError
            If the value is of another type.

        Examples
        --------
        >>> Parameter("alpha", "float", 0.5).check(1)
        1.0
        >>> Parameter("seed", "int", 0).check("one", notebook="worlds")
        Traceback (most recent call last):
        lib.errors.InputError: parameter 'seed' of worlds is 'one': expected int
        """
        try:
            # A line of the book's own notebook, in which only these names mean anything.
            kind = eval(self.annotation, {"__builtins__": {}}, _TYPES)
            # Strict: a 1 is no True, and "5" is no 5.
            return TypeAdapter(kind, config=ConfigDict(strict=True)).validate_python(value)
        except ValidationError:
            raise InputError(
                f"parameter {self.name!r} of {notebook} is {value!r}: expected {self.annotation}"
            ) from None
        except Exception:
            raise InputError(
                f"parameter {self.name!r} of {notebook} has the unknown type "
                f"{self.annotation!r}: {one_of(_TYPES)}"
            ) from None

    def parse(self, text: str, notebook: str = "the notebook") -> Any:
        """Read a value from the command line, by the parameter's type.

        Parameters
        ----------
        text : str
            What was typed. A `str` stays as it is; anything else is read as a
            Python literal or, failing that, as YAML, so that `True`, `true`,
            `[0.1, 0.9]` and `[Full-time studies, No studies]` all do.
        notebook : str
            Whose parameter this is, for the message.

        Raises
        ------
        InputError
            If no reading of the text has the parameter's type.

        Examples
        --------
        >>> Parameter("levels", "list[str]", []).parse("[No studies, Evening course]")
        ['No studies', 'Evening course']
        >>> Parameter("horizon", "int | None", 7).parse("None") is None
        True
        >>> Parameter("title", "str", "").parse("10_000")
        '10_000'
        """
        readings = [] if self.annotation == "str" else _readings(text)
        for reading in readings:
            with contextlib.suppress(InputError):
                return self.check(reading, notebook)
        return self.check(text, notebook)


def _readings(text: str) -> Iterator[Any]:
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        yield ast.literal_eval(text)
    with contextlib.suppress(yaml.YAMLError):
        yield yaml.safe_load(text)


def as_source(value: Any) -> str:
    """Write a value the way the notebooks do.

    Examples
    --------
    >>> as_source(50_000), as_source("Full-time studies"), as_source(0.5)
    ('50_000', "'Full-time studies'", '0.5')
    """
    if type(value) is int and abs(value) >= _GROUPED_FROM:
        return f"{value:_}"
    return repr(value)


def read_parameters(source: str, notebook: str = "the notebook") -> dict[str, Parameter]:
    """Read the parameters from the source of their cell.

    Parameters
    ----------
    source : str
        The cell: lines of `name: type = literal  # meaning`.
    notebook : str
        Whose cell this is, for the message.

    Returns
    -------
    dict of str to Parameter
        By name, in the cell's order.

    Raises
    ------
    InputError
        If a line is no assignment, has no type, or its value is no literal of that type.

    Examples
    --------
    >>> cell = "n_samples: int = 10_000  # subjects to draw"
    >>> read_parameters(cell)["n_samples"].help
    'subjects to draw'
    """
    lines = source.splitlines()
    parameters = {}
    for statement in _statements(source, notebook):
        name = statement.target.id
        comment = lines[statement.end_lineno - 1].encode()[statement.end_col_offset :].decode()
        try:
            default = ast.literal_eval(statement.value)
        except ValueError:
            raise InputError(
                f"parameter {name!r} of {notebook} is {ast.unparse(statement.value)}: "
                "expected a literal value, because nothing may be derived in the parameters cell"
            ) from None
        parameter = Parameter(
            name, ast.unparse(statement.annotation), default, comment.strip().lstrip("#").strip()
        )
        parameter.check(default, notebook)
        parameters[name] = parameter
    return parameters


def _statements(source: str, notebook: str) -> list[ast.AnnAssign]:
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise InputError(f"the parameters cell of {notebook} is no Python: {error}") from None
    for statement in body:
        typed = isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        if not typed or statement.value is None:
            raise InputError(
                f"the parameters cell of {notebook} holds {ast.unparse(statement)!r}: "
                "expected `name: type = value  # meaning`"
            )
    return body


def checked(
    parameters: Mapping[str, Parameter], values: Mapping[str, Any], notebook: str = "the notebook"
) -> dict[str, Any]:
    r"""Return the value of every parameter: the one given or, failing that, the default.

    Parameters
    ----------
    parameters : mapping of str to Parameter
        What the notebook has, by :func:`read_parameters`.
    values : mapping of str to object
        What was given, by name.
    notebook : str
        Whose parameters these are, for the message.

    Raises
    ------
    InputError
        If a name is unknown or a value is of another type.

    Examples
    --------
    >>> parameters = read_parameters("n_samples: int = 10_000\nseed: int = 0")
    >>> checked(parameters, {"seed": 1})
    {'n_samples': 10000, 'seed': 1}
    >>> checked(parameters, {"n_samp": 5}, "worlds")
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'n_samp' of worlds is unknown: expected one of n_samples, seed
    """
    known(parameters, values, notebook)
    given = {name: parameters[name].check(value, notebook) for name, value in values.items()}
    return {name: given.get(name, parameter.default) for name, parameter in parameters.items()}


def known(parameters: Mapping[str, Parameter], names: Iterable[str], notebook: str) -> None:
    """Refuse a name that no parameter has.

    Raises
    ------
    InputError
        If a name is unknown.

    Examples
    --------
    >>> known({}, ["seed"], "worlds")
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'seed' of worlds is unknown: none is allowed here
    """
    for name in names:
        if name not in parameters:
            raise InputError(f"parameter {name!r} of {notebook} is unknown: {one_of(parameters)}")


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """Return the source of a parameters cell with other values in place.

    Types, comments and everything else stay, so that a reader of the executed
    page sees one cell with the values it was run with and what they mean.

    Parameters
    ----------
    source : str
        The cell, one that :func:`read_parameters` accepts.
    values : mapping of str to object
        The values to write, by name. A value that the cell has already is left as it is written.

    Returns
    -------
    str
        The new source.

    Examples
    --------
    >>> with_values("n_samples: int = 10_000  # subjects to draw", {"n_samples": 50_000})
    'n_samples: int = 50_000  # subjects to draw'
    """
    lines = source.encode().splitlines(keepends=True)
    starts = list(itertools.accumulate(map(len, lines), initial=0))
    written = source.encode()
    # Backwards, so that the places of earlier values stay right.
    for statement in reversed(_statements(source, "the notebook")):
        name, value = statement.target.id, statement.value
        if name not in values or values[name] == ast.literal_eval(value):
            continue
        first = starts[value.lineno - 1] + value.col_offset
        last = starts[value.end_lineno - 1] + value.end_col_offset
        written = written[:first] + as_source(values[name]).encode() + written[last:]
    return written.decode()
