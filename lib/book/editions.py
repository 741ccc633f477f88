"""Editions: which notebook becomes which page, with which parameters.

An *edition* is a YAML file in `book/editions`::

    about: Small samples, to see everything work.
    pages:
      - {page: worlds, notebook: worlds, parameters: {n_samples: 1_000}}

Everything in it is checked before anything runs: its keys, that the notebooks exist,
and name and type of every parameter.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lib import ROOT
from lib.book.parameters import checked, parameters_of
from lib.errors import InputError, one_of


@dataclass(frozen=True)
class Book:
    """Where the parts of a book are, below its root."""

    root: Path = ROOT

    @property
    def notebooks(self) -> Path:
        """The sources."""
        return self.root / "notebooks"

    @property
    def editions(self) -> Path:
        """Which notebook runs with which parameters."""
        return self.root / "book" / "editions"

    @property
    def executed(self) -> Path:
        """What papermill wrote, and the run records."""
        return self.root / "book" / "executed"

    @property
    def index(self) -> Path:
        """The first page of the rendered book."""
        return self.root / "_build" / "html" / "index.html"

    def page(self, name: str) -> Path:
        """Return where the executed notebook of a page is."""
        return self.executed / f"{name}.ipynb"

    def notebook(self, name: str) -> Path:
        """Return the source of a notebook, by name or path.

        Raises
        ------
        InputError
            If there is no such notebook.

        Examples
        --------
        >>> Book().notebook("weather")
        Traceback (most recent call last):
        lib.errors.InputError: notebook 'weather' is unknown: ...
        """
        return _find("notebook", name, self.notebooks, ".ipynb")


def _find(what: str, name: str, folder: Path, ending: str) -> Path:
    """Return the file that is meant by a name in a folder, or by a path with its ending."""
    if name.endswith(ending):
        if not Path(name).is_file():
            raise InputError(f"{what} {name} does not exist")
        return Path(name).resolve()
    known = sorted(path.stem for path in folder.glob(f"*{ending}"))
    if name not in known:
        raise InputError(f"{what} {name!r} is unknown: {one_of(known)}")
    return folder / f"{name}{ending}"


#: The book that this `lib` belongs to.
BOOK = Book()


class Page(BaseModel):
    """One page of an edition: its name, its notebook, and the values it is run with."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    notebook: str
    parameters: dict[str, Any] = {}


class Edition(BaseModel):
    """What the book consists of and how much of it is computed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    about: str
    pages: list[Page] = Field(min_length=1)


def load_edition(name: str, book: Book = BOOK) -> Edition:
    """Read and check an edition, by name or path; give every parameter of its notebooks a value.

    Raises
    ------
    InputError
        If the edition, a key, a notebook or a parameter is unknown or of the wrong type.

    Examples
    --------
    >>> load_edition("pocket")
    Traceback (most recent call last):
    lib.errors.InputError: edition 'pocket' is unknown: expected one of default, paper, quick
    """
    path = _find("edition", name, book.editions, ".yml")
    try:
        edition = Edition.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise InputError(f"{path.name} is no YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise InputError(f"{path.name}{_first_problem(error)}") from None

    pages = []
    for page in edition.pages:
        if page.page in [earlier.page for earlier in pages]:
            raise InputError(f"{path.name}: page {page.page!r} is listed twice")
        try:
            source = book.notebook(page.notebook)
            values = checked(parameters_of(source), page.parameters, page.notebook)
        except InputError as error:
            raise InputError(f"{path.name}, page {page.page}: {error}") from None
        pages.append(page.model_copy(update={"parameters": values}))
    return edition.model_copy(update={"pages": pages})


def _first_problem(error: ValidationError) -> str:
    """Say in one sentence what pydantic found first, from the place on: `, page 2: key …`."""
    problem = error.errors()[0]
    location = list(problem["loc"])
    in_page = len(location) > 1 and location[0] == "pages"
    where = f", page {location[1] + 1}" if in_page else ""
    key = ".".join(str(part) for part in (location[2:] if in_page else location))
    if not key:
        return f"{where} is {problem['input']!r}: expected a mapping of keys to values"
    if problem["type"] == "extra_forbidden":
        model = Page if in_page else Edition
        return f"{where}: key {key!r} is unknown: {one_of(model.model_fields)}"
    if problem["type"] == "missing":
        return f"{where}: key {key!r} is missing"
    rule = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{where}: key {key!r} is {problem['input']!r}: {rule}"
