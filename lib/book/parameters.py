"""The parameters of a notebook: read from its source, checked before it runs.

A notebook states its parameters in one cell with the tag `parameters`. Each parameter has a line,
with its type, its default and its meaning::

    n_samples: int = 10_000  # subjects to draw

A meaning may state rules. *At least 100*, *at most*, *above*, *below* and *from 0 to 1* apply to a
number, and to each number of a list. *One or more* forbids an empty list, as does *all different*.

The values must be literals, because papermill replaces them one by one. They are read here, because
papermill's own reader silently leaves out what it does not understand, such as `int | None`.
"""

import ast
import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from pathlib import Path
from typing import Any, Literal, Optional, Union

import nbformat
import yaml
from pydantic import TypeAdapter

from lib.errors import InputError, check, check_names, check_once, one_of, told
from lib.files import PythonNumbers

#: The types of which an annotation may consist.
_KINDS: tuple[Any, ...] = (Any, Literal, Optional, Union, bool, dict, float, int, list, str, tuple)
_TYPES = {kind.__name__: kind for kind in _KINDS}

#: Words that a meaning may state before a bound → the comparison that numbers must pass.
BOUNDS = {"at least": ge, "at most": le, "above": gt, "below": lt}


def _type(node: ast.expr) -> Any:
    """Return the type that an annotation states; nothing in it is evaluated."""
    match node:
        case ast.Name(name) if name in _TYPES:
            return _TYPES[name]
        case ast.Constant(value) if value is None or value is ...:
            return value
        case ast.Tuple(parts):
            return tuple(map(_type, parts))
        case ast.Subscript(ast.Name("Literal"), values):
            return Literal[ast.literal_eval(values)]
        case ast.Subscript(kind, parts):
            return _type(kind)[_type(parts)]
        case ast.BinOp(one, ast.BitOr(), other):
            return Union[_type(one), _type(other)]  # noqa: UP007 - of types known only here
    raise ValueError


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, the type as written, its default, its comment and its lines."""

    name: str
    annotation: str
    default: Any
    help: str = ""
    lines: slice = field(default_factory=lambda: slice(0), compare=False)

    def check(self, value: Any) -> Any:
        """Return the value if it has the parameter's type; an int serves as a float."""
        try:
            kind = TypeAdapter(_type(ast.parse(self.annotation, mode="eval").body))
        except Exception:  # errors of many kinds
            rule = f"has the unknown type {self.annotation!r}: {one_of(_TYPES)}"
            raise InputError(f"parameter {self.name!r} {rule}") from None
        with contextlib.suppress(Exception):
            found = kind.validate_python(value, strict=True)  # 1 is not True, and "5" is not 5
            ast.literal_eval(as_source(found))  # refuses NaN
            # The record of a run cannot hold bytes, and a file cannot hold every character.
            json.dumps(found, ensure_ascii=False).encode()
            return found
        more = ', such as ["a", "b"]' if "list" in self.annotation and type(value) is str else ""
        raise InputError(f"parameter {self.name!r} is {value!r}: expected {self.annotation}{more}")

    def parse(self, text: str) -> Any:
        """Read a value from the command line, as the type of the parameter asks.

        A `str` stays as it was typed. Anything else is read as a Python literal or, failing that,
        as JSON or YAML, so that `True`, `true` and `[No studies, Evening course]` all work.
        """
        # JSON comes first, because YAML 1.1 may read it differently: its 1e-9 is a text. YAML has
        # comments, too, of which nothing would be left in a text such as 'Model #2'.
        readers = ast.literal_eval, json.loads, lambda said: yaml.load(said, PythonNumbers)
        for read in () if self.annotation == "str" else readers[: 2 if " #" in f" {text}" else 3]:
            with contextlib.suppress(Exception):  # any error says: not written in this way
                return self.check(read(text))
        return self.check(text)

    def typed(self, value: Any) -> str:
        """Write a value the way one types it on the command line: text as it is, lists as JSON.

        Text that :meth:`parse` would read differently gets quotes, such as '5' of `int | str`.
        """
        text = value if isinstance(value, str) else as_source(value)
        if isinstance(value, list) and json.loads(json.dumps(value)) == value:
            # JSON has double quotes, which a shell leaves as they are within single quotes.
            text = json.dumps(value, ensure_ascii=False)
        return text if self.parse(text) == value else as_source(value)

    def line(self, value: Any) -> str:
        """Write the parameter with a value, as a line of a notebook."""
        stated = f"{self.name}: {self.annotation} = {as_source(value)}"
        return f"{stated}  # {self.help}" if self.help else stated


def as_source(value: Any) -> str:
    """Write a value the way the notebooks do: `50_000`, `0.5`, `'Full-time studies'`."""
    return f"{value:_}" if type(value) is int and abs(value) >= 10_000 else repr(value)


def read_parameters(source: str) -> dict[str, Parameter]:
    """Read the parameters, in their order, from the source of their cell."""
    with told("the parameters cell is not valid Python"):
        body = ast.parse(source).body
    parameters: dict[str, Parameter] = {}
    for statement in body:
        try:
            match statement:
                case ast.AnnAssign(ast.Name(name), kind, ast.expr() as value, col_offset=0):
                    default = ast.literal_eval(value)
                case _:
                    raise ValueError
        except (TypeError, ValueError):
            rule = "expected a line `name: type = value  # meaning`, whose value is a literal"
            found = f"the parameters cell holds {ast.unparse(statement)!r}"
            raise InputError(f"{found}: {rule}") from None
        lines = slice(statement.lineno - 1, statement.end_lineno)
        # Python counts the bytes of a line, not its characters.
        last_line = source.split("\n")[lines][-1].encode()
        meaning = last_line[statement.end_col_offset :].decode().strip(" #")
        annotation = ast.get_source_segment(source, kind) or ""
        check_once("parameter", [*parameters, name])
        parameters[name] = Parameter(name, annotation, default, meaning, lines)
        parameters[name].check(default)
    return parameters


def with_values(source: str, values: Mapping[str, Any]) -> str:
    """Return the source of a parameters cell with new values, and all else unchanged.

    Examples
    --------
    >>> with_values("n_samples: int = 10_000  # subjects to draw", {"n_samples": 50_000})
    'n_samples: int = 50_000  # subjects to draw'
    """
    lines = source.split("\n")
    # Go backwards, so that the places of earlier values stay right.
    for name, parameter in reversed(read_parameters(source).items()):
        if values.get(name, parameter.default) != parameter.default:
            lines[parameter.lines] = [parameter.line(values[name])]
    return "\n".join(lines)


def checked(
    parameters: Mapping[str, Parameter], values: Mapping[str, Any], as_text: bool = False
) -> dict[str, Any]:
    """Return a value for every parameter: the given one (typed, if `as_text`) or the default."""
    read = Parameter.parse if as_text else Parameter.check
    check_names("parameter", values, parameters)
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    given = {name: read(parameters[name], value) for name, value in values.items()}
    for name, value in given.items():
        _check_rules(f"parameter {name!r}", parameters[name].help, value)
    # A value that equals the default is replaced by it: 4000.0 is 4000, and no page runs again.
    return defaults | {name: value for name, value in given.items() if value != defaults[name]}


def _check_rules(what: str, meaning: str, value: Any) -> None:
    several = value if isinstance(value, list | tuple) else [value]
    # No part of a number that is written in another way may match, such as 1,000, 1e-6 or 5 %.
    number = r"(-?\d[\d_]*(?:\.\d+)?)(?![\w,.-]*\d|e|[ \u202f]?[\d%])"
    if re.search("one or more|all different", meaning):
        check(bool(several), f"{what} must have at least one entry", value)
    if "all different" in meaning:
        check_once(f"entry of {what}", map(str, several))
    stated = re.sub(rf"\bfrom {number} to {number}", r"at least \1, at most \2", meaning)
    rules = rf"(?<!not )(?<!never )\b({'|'.join(BOUNDS)}) {number}"
    for words, bound in re.findall(rules, stated, re.IGNORECASE):
        for one in (one for one in several if isinstance(one, int | float)):
            check(BOUNDS[words.lower()](one, float(bound)), f"{what} must be {words} {bound}", one)


def read_notebook(path: Path) -> tuple[nbformat.NotebookNode, nbformat.NotebookNode]:
    """Return a notebook and its cell tagged `parameters`, or an empty cell if there is none."""
    content = path.read_bytes()
    try:
        notebook = nbformat.reads(content, as_version=4)
        nbformat.validate(notebook)
    except Exception:  # of many kinds: nbformat uses content before it checks it
        raise InputError(f"{path.name} is damaged: expected a notebook of format 4") from None
    tagged = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
    return notebook, next(tagged, nbformat.v4.new_code_cell())


def marked(notebook: nbformat.NotebookNode, mark: str) -> Iterator[tuple[Any, Any]]:
    """Yield the content of a mark and the output whose metadata carry it, for each such output."""
    for output in (one for cell in notebook.cells for one in cell.get("outputs", [])):
        if said := output.get("metadata", {}).get(mark):
            yield said, output
