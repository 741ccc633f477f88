"""Editions: a book each, with its pages in their order, its parts, parameters and title.

An *edition* is a YAML file in `book/editions`::

    title: Worlds, in one lecture
    about: Three pages for the second week.
    pages: [introduction, worlds]
    parts:
      - caption: Stories
        pages:
          - {page: candies, notebook: error_test, parameters: {theme: candy_party}}

A page that is only a name is the prose of that name in `book`, or the notebook of that name with
its own defaults. An edition that is `like` another has the pages of that one, and `parameters`
of its own, by page. Everything in it is checked before anything runs.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from lib import ROOT
from lib.book.parameters import as_typed, checked, read_notebook, read_parameters
from lib.errors import InputError, check, check_known, first_problem
from lib.files import read_yaml

#: Of the name of a run's folder: with what is added, systems allow 255 bytes, some a path of 260.
LONGEST_NAME = 100


class Book:
    """Where the parts of a book are, below its root."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.notebooks = root / "notebooks"
        self.prose = root / "book"
        self.editions = root / "book" / "editions"
        # In each of these is a folder an edition:
        self.executed = root / "book" / "executed"  # what papermill wrote, and the run records
        self.recorded = root / "data" / "recorded"  # tables that were kept
        self.built = root / "_build"  # the rendered book
        self.runs = root / "runs"  # runs of single notebooks, a folder each

    def page(self, name: str, edition: str = "default") -> Path:
        """Return where the executed notebook of a page is."""
        return self.executed / edition / f"{name}.ipynb"

    def notebook(self, name: str) -> Path:
        """Return the source of a notebook, by name or path."""
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


def folder_name(*words: str) -> str:
    """Return a name for a folder that says these words; a digest keeps apart what it cannot say.

    Examples
    --------
    >>> folder_name("worlds", "horizon=4", "treatment=Evening course")
    'worlds,horizon=4,treatment=Evening-course,e79659ca'
    """
    said = ",".join(words)
    plain = re.sub(r"[^\w.,=+-]+", "-", said, flags=re.ASCII)
    if plain == said and len(said) <= LONGEST_NAME:
        return said
    return f"{plain[:LONGEST_NAME]},{hashlib.sha256(said.encode()).hexdigest()[:8]}"


#: The book that this `lib` belongs to.
BOOK = Book()


@dataclass
class Run:
    """A notebook to execute and the page that it becomes; checked when it is made.

    The run record is the `.json` beside the output. Without an output it is a run of one's own, in
    a folder of the book's `runs`. Of `values`, those that are not given are the defaults;
    `as_text` are those that somebody typed. Relative paths in the notebook start from `folder`, or
    the book's root.

    Examples
    --------
    >>> Run(BOOK.notebook("worlds"), values={"horizon": 4}).command
    'python -m lib run worlds -p horizon 4'
    """

    notebook: Path
    output: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    book: Book = BOOK
    as_text: InitVar[bool] = False

    def __post_init__(self, as_text: bool):
        self.notebook = self.notebook.resolve()
        self.parameters = read_parameters(read_notebook(self.notebook)[1].source)
        self.values = checked(self.parameters, self.values, as_text)
        self.folder = self.folder or self.book.root
        if self.output is None:
            changes = (f"{name}={text}" for name, text in self.changes.items())
            self.page = folder_name(self.notebook.stem, *changes)
            self.output = self.book.runs / self.page / self.notebook.name
        else:
            self.page = self.output.stem
        self.output = self.output.resolve()
        texts = (text for text in self.values.values() if isinstance(text, str))
        read = [str(self.notebook), *(os.path.realpath(self.folder / text) for text in texts)]
        for path in (self.output, self.output.with_suffix(".json")):
            rule = "the output must have another name than what is read"
            check(str(path) not in read, rule, str(path))
        self.failed = self.output.with_suffix(".failed.ipynb")  # what has not become the page

    @property
    def source(self) -> str:
        """What a command calls the notebook: its name, or the path of one from elsewhere."""
        known = self.notebook.parent == self.book.notebooks.resolve()
        return self.notebook.stem if known else str(self.notebook)

    @property
    def changes(self) -> dict[str, str]:
        """The parameters that are not at their defaults, as one types them."""
        return {
            name: as_typed(value)
            for name, value in self.values.items()
            if value != self.parameters[name].default
        }

    def given(self, names: Iterable[str]) -> dict[str, str | float | bool]:
        """Return the values of parameters; what is no plain value as it is written."""
        values = {name: self.values[name] for name in names}
        return {k: v if isinstance(v, float | int) else as_typed(v) for k, v in values.items()}

    @property
    def command(self) -> str:
        """The command that repeats it."""
        given = [word for name, text in self.changes.items() for word in ("-p", name, text)]
        return shlex.join(["python", "-m", "lib", "run", self.source, *given])


class _Page(BaseModel, extra="forbid", strict=True):
    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    notebook: str
    title: str = ""
    parameters: dict[str, Any] = {}


class Part(BaseModel, extra="forbid", strict=True):
    """Pages below a caption, with numbers or without."""

    caption: str = ""
    numbered: bool = False
    pages: list[Any] = Field(min_length=1)


class _File(BaseModel, extra="forbid", strict=True):
    about: str
    title: str = ""
    like: str = ""
    pages: list[Any] = []
    parts: list[Any] = []
    parameters: dict[str, dict[str, Any]] = {}


@dataclass
class Edition:
    """A book: prose and runs of notebooks by the name of their page, and the order of all."""

    name: str
    title: str
    about: str
    prose: dict[str, Path] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # where the contents need another one
    parts: list[Part] = field(default_factory=list)

    def contents(self, place: Callable[[str], str] = str) -> dict[str, Any]:
        """Return the table of contents, as `_toc.yml` has it; `place` says where a page is."""
        parts = []
        for part in self.parts:
            chapters = [
                {"file": place(page)} | ({"title": title} if (title := self.titles[page]) else {})
                for page in part.pages
            ]
            head = {"caption": part.caption} if part.caption else {}
            parts.append(head | ({"numbered": 1} if part.numbered else {}) | {"chapters": chapters})
        contents = {"format": "jb-book", "root": parts[0]["chapters"].pop(0)["file"]}
        parts = [part for part in parts if part["chapters"]]
        return contents | ({"parts": parts} if parts else {})


def load_edition(name: str, book: Book = BOOK) -> Edition:
    """Read and check an edition, by name or path."""
    path = _find("edition", name, book.editions, ".yml")
    own = model = _read(path)
    if own.like:
        rule = f"{path.name}: an edition that is like another may have no pages of its own"
        check(not own.pages + own.parts, rule, own.pages + own.parts)
        model = _read(_find("edition", own.like, book.editions, ".yml"))
    edition = Edition(path.stem, own.title or model.title, own.about)
    prose = {one.stem: one for one in sorted(book.prose.glob("*.md"))}
    where, kind, given = path.name, Part, dict(own.parameters)
    try:
        for number, part in enumerate([{"pages": model.pages}, *model.parts]):
            where, kind = path.name + (f", part {number}" if number else ""), Part
            edition.parts.append(part := Part.model_validate(part))
            for place, entry in enumerate(part.pages):
                where, kind = f"{path.name}, page {len(edition.titles) + 1}", _Page
                if isinstance(entry, str):
                    known = [*prose, *(path.stem for path in book.notebooks.glob("*.ipynb"))]
                    check_known("page", entry, sorted(known))
                    entry = {"page": entry, "notebook": entry}
                page = _Page.model_validate(entry)
                name = part.pages[place] = page.page
                where = f"{path.name}, page {name}"
                check(name not in edition.titles, "each page may be listed once", name)
                edition.titles[name] = page.title
                if name == page.notebook and name in prose:
                    edition.prose[name] = prose[name]
                    continue
                source, output = book.notebook(page.notebook), book.page(name, edition.name)
                values = page.parameters | given.pop(name, {})
                edition.runs[name] = Run(source, output, values, book=book)
    except ValidationError as error:
        raise InputError(f"{where}: {first_problem(error, kind.model_fields)}") from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    for name in given:
        check_known(f"{path.name}: parameters: page", name, edition.runs)
    return edition


def _read(path: Path) -> _File:
    content = read_yaml(path)
    try:
        return _File.model_validate(content)
    except ValidationError as error:
        raise InputError(f"{path.name}: {first_problem(error, _File.model_fields)}") from None
