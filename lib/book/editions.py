"""Editions: which notebook becomes which page, with which parameters.

An *edition* is a YAML file in `book/editions`::

    about: Small samples, to see everything work.
    pages:
      - {page: worlds, notebook: worlds, parameters: {n_samples: 1_000}}

Everything in it is checked before anything runs.
"""

import shlex
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from lib import ROOT
from lib.book.parameters import as_source, checked, read_notebook, read_parameters
from lib.errors import InputError, check, check_known, first_problem
from lib.files import read_yaml


class Book:
    """Where the parts of a book are, below its root."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.notebooks = root / "notebooks"
        self.editions = root / "book" / "editions"
        self.executed = root / "book" / "executed"  # what papermill wrote, and the run records
        self.recorded = root / "data" / "recorded"  # tables kept of editions
        self.index = root / "_build" / "html" / "index.html"

    def page(self, name: str) -> Path:
        """Return where the executed notebook of a page is."""
        return self.executed / f"{name}.ipynb"

    def notebook(self, name: str) -> Path:
        """Return the source of a notebook, by name or path.

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
    known = {path.stem: path for path in sorted(folder.glob(f"*{ending}"))}
    check_known(what, name, known)
    return known[name]


#: The book that this `lib` belongs to.
BOOK = Book()


@dataclass
class Run:
    """A notebook to execute and the page that it becomes; checked when it is made.

    The run record is the `.json` beside the output. Of `values`, those that are not given are
    the defaults; `as_text` are those that somebody typed. Relative paths in the notebook start
    from `folder`, or the book's root.

    Examples
    --------
    >>> Run(BOOK.notebook("worlds"), Path("page.ipynb"), {"moon": 1})
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'moon' is unknown: expected one of ...
    """

    notebook: Path
    output: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    book: Book = BOOK
    as_text: InitVar[bool] = False

    def __post_init__(self, as_text: bool):
        self.notebook, self.output = self.notebook.resolve(), self.output.resolve()
        rule = "the output must have another name than the notebook itself"
        check(self.output != self.notebook, rule, str(self.output))
        self.parameters = read_parameters(read_notebook(self.notebook)[1].source)
        self.values = checked(self.parameters, self.values, as_text)
        self.folder = self.folder or self.book.root
        self.page = self.output.stem
        self.failed = self.output.with_suffix(".failed.ipynb")  # what has not become the page

    @property
    def command(self) -> str:
        """The command that repeats it, with the parameters that are not at their defaults."""
        known = self.notebook.parent == self.book.notebooks.resolve()
        words = ["python", "-m", "lib", "run", self.notebook.stem if known else str(self.notebook)]
        for name, value in self.values.items():
            if value != self.parameters[name].default:
                words += ["-p", name, value if isinstance(value, str) else as_source(value)]
        return shlex.join(words)


class _Page(BaseModel, extra="forbid", strict=True):
    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    notebook: str
    parameters: dict[str, Any] = {}


class _File(BaseModel, extra="forbid", strict=True):
    about: str
    pages: list[Any] = Field(min_length=1)


def load_edition(name: str, book: Book = BOOK) -> tuple[str, list[Run]]:
    """Read and check an edition, by name or path; return what it is about and one run a page.

    Examples
    --------
    >>> load_edition("pocket")
    Traceback (most recent call last):
    lib.errors.InputError: edition 'pocket' is unknown: expected one of default, paper, quick
    """
    path, runs = _find("edition", name, book.editions, ".yml"), {}
    content, where, kind = read_yaml(path), path.name, _File
    try:
        edition = _File.model_validate(content)
        for number, entry in enumerate(edition.pages, start=1):
            where, kind = f"{path.name}, page {number}", _Page
            page = _Page.model_validate(entry)
            where = f"{path.name}, page {page.page}"
            check(page.page not in runs, "each page may be listed once", page.page)
            source, output = book.notebook(page.notebook), book.page(page.page)
            runs[page.page] = Run(source, output, page.parameters, book=book)
    except ValidationError as error:
        raise InputError(f"{where}: {first_problem(error, kind.model_fields)}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return edition.about, list(runs.values())
