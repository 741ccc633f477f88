"""The parameters of a notebook: read from its source, checked before it runs.

A notebook states its parameters in one cell with the tag `parameters`, one a
line, each with its type, its default and what it means::

    n_samples: int = 10_000  # subjects to draw

The values must be literals, because papermill replaces them one by one: nothing
may be derived from another there.
"""

import ast
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional, Union

import nbformat
import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from lib.errors import InputError, one_of

#: What an annotation may be made of.
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
    >>> parameter.check(50), parameter.parse("20_000")
    (50, 20000)
    """

    name: str
    annotation: str
    default: Any
    help: str = ""

    def check(self, value: Any, notebook: str = "the notebook") -> Any:
        """Return the value if it has the parameter's type; an int serves as a float.

        Raises
        ------
        InputError
            If the value is of another type.

        Examples
        --------
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

        A `str` stays as it was typed. Anything else is read as a Python literal or,
        failing that, as YAML, so that `True`, `true` and `[No studies, Evening course]` all do.

        Raises
        ------
        InputError
            If no reading of the text has the parameter's type.

        Examples
        --------
        >>> Parameter("levels", "list[str]", []).parse("[No studies, Evening course]")
        ['No studies', 'Evening course']
        >>> Parameter("title", "str", "").parse("10_000")
        '10_000'
        """
        for reading in [] if self.annotation == "str" else _readings(text):
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
    grouped = type(value) is int and abs(value) >= _GROUPED_FROM
    return f"{value:_}" if grouped else repr(value)


def read_parameters(source: str, notebook: str = "the notebook") -> dict[str, Parameter]:
    """Read the parameters, in their order, from the source of their cell.

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
        try:
            default = ast.literal_eval(statement.value)
        except ValueError:
            raise InputError(
                f"parameter {name!r} of {notebook} is {ast.unparse(statement.value)}: "
                "expected a literal value, because nothing may be derived in the parameters cell"
            ) from None
        meaning = _around(lines, statement)[1].strip().lstrip("#").strip()
        parameter = Parameter(name, ast.unparse(statement.annotation), default, meaning)
        parameter.check(default, notebook)
        parameters[name] = parameter
    return parameters


def _statements(source: str, notebook: str) -> list[ast.AnnAssign]:
    """Return the assignments of a parameters cell, which holds nothing else."""
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


def _around(lines: list[str], node: ast.stmt | ast.expr) -> tuple[str, str]:
    """Return what stands before and after a node, on its first line and on its last."""
    # Python counts the bytes of a line, not its characters.
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    after = lines[node.end_lineno - 1].encode()[node.end_col_offset :]
    return before.decode(), after.decode()


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """Return the source of a parameters cell with other values in place.

    Types, comments and values that stay the same are left as they are written, so that a
    reader of the executed page sees one cell with the values it was run with and what they mean.

    Examples
    --------
    >>> with_values("n_samples: int = 10_000  # subjects to draw", {"n_samples": 50_000})
    'n_samples: int = 50_000  # subjects to draw'
    """
    lines = source.split("\n")
    # Backwards, so that the places of earlier values stay right.
    for statement in reversed(_statements(source, "the notebook")):
        name, old = statement.target.id, statement.value
        if name in values and values[name] != ast.literal_eval(old):
            before, after = _around(lines, old)
            lines[old.lineno - 1 : old.end_lineno] = [before + as_source(values[name]) + after]
    return "\n".join(lines)


def checked(
    parameters: Mapping[str, Parameter],
    values: Mapping[str, Any],
    notebook: str = "the notebook",
    *,
    as_text: bool = False,
) -> dict[str, Any]:
    r"""Return the value of every parameter: the one given or, failing that, the default.

    Values that are text, as somebody typed it, are read by :meth:`Parameter.parse`.

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
    complete = {name: parameter.default for name, parameter in parameters.items()}
    for name, value in values.items():
        if name not in parameters:
            raise InputError(f"parameter {name!r} of {notebook} is unknown: {one_of(parameters)}")
        read = parameters[name].parse if as_text else parameters[name].check
        complete[name] = read(value, notebook)
    return complete


def read_notebook(path: Path) -> tuple[nbformat.NotebookNode, nbformat.NotebookNode]:
    """Return a notebook and, of its cells, the one with the tag `parameters`.

    A notebook without such a cell has no parameters, and the cell returned is an empty one.

    Raises
    ------
    InputError
        If the file is no notebook of format 4, or damaged.

    Examples
    --------
    >>> read_notebook(Path(__file__))
    Traceback (most recent call last):
    lib.errors.InputError: parameters.py is damaged: expected a notebook of format 4
    """
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, KeyError, AttributeError):
        raise InputError(f"{path.name} is damaged: expected a notebook of format 4") from None
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = (cell for cell in code if "parameters" in cell.metadata.get("tags", []))
    return notebook, next(tagged, nbformat.v4.new_code_cell())


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters of a notebook, by name.

    Raises
    ------
    InputError
        If the file is no notebook, or its `parameters` cell breaks a rule.

    Examples
    --------
    >>> from lib import ROOT
    >>> list(parameters_of(ROOT / "notebooks" / "simulator_fitting.ipynb"))[0]
    'specification'
    """
    _, cell = read_notebook(notebook)
    return read_parameters(cell.source, notebook.stem)
