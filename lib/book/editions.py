"""Editions: each is a book, with its own pages in order, its parts, parameters and title.

An *edition* is a YAML file in `book/editions`::

    title: Worlds, in one lecture
    about: Three pages for the second week.
    pages: [introduction, worlds]
    parts:
      - caption: Stories
        pages:
          - {page: candies, notebook: error_test, parameters: {theme: candy_party}}

A page given only by a name is the prose of that name in `book`, or the notebook of that name with
its own defaults. An edition that is `like` another has the same pages, and `parameters` of its
own, listed by page. Everything in an edition is checked before anything runs.
"""

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainSerializer

from lib import ROOT
from lib.book.parameters import checked, read_notebook, read_parameters
from lib.errors import InputError, check, check_known, check_names, told
from lib.files import read_yaml, sha256

#: The length at which the name of a run's folder is cut. More is added to it, and systems allow
#: names of 255 bytes, some of them only paths of 260.
LONGEST_NAME = 100


#: Names of pages that the theme makes itself.
OF_THEME = ("index", "search", "genindex")


class Book:
    """The paths of the parts of a book, below its root folder."""

    def __init__(self, root: Path = ROOT):
        self.root = root
        self.notebooks = root / "notebooks"
        self.prose = root / "book"
        self.editions = root / "book" / "editions"
        # Each of these holds one folder per edition:
        self.executed = root / "book" / "executed"  # papermill's notebooks, and run records
        self.recorded = root / "data" / "recorded"  # kept tables
        self.built = root / "_build"  # the rendered book
        self.runs = root / "runs"  # runs of single notebooks, one folder per run

    def page(self, name: str, edition: str = "default") -> Path:
        """Return the path of the executed notebook of a page."""
        return self.executed / edition / f"{name}.ipynb"

    def notebook(self, name: str) -> Path:
        """Return the path of a notebook's source, given its name or path."""
        return _find("notebook", name, self.notebooks, ".ipynb")


def _find(what: str, name: str, folder: Path, ending: str) -> Path:
    """Find a file by its name in a folder or, if the name has the `ending`, by its path."""
    if name.endswith(ending):
        if not Path(name).is_file():
            raise InputError(f"{what} {name} does not exist")
        return Path(name).resolve()
    known = {path.stem: path for path in sorted(folder.glob(f"*{ending}"))}
    check_known(what, name, known)
    return known[name]


def folder_name(*words: str) -> str:
    """Return a folder name that states these words, with a digest if it cannot do so exactly."""
    said = ",".join(words)
    plain = re.sub(r"[^\w.,=+-]+", "-", said, flags=re.ASCII)
    if plain == said and said.count(",") < len(words) and len(said) <= LONGEST_NAME:
        return said
    return f"{plain[:LONGEST_NAME]},{sha256(repr(words).encode())[:8]}"


#: The book that this `lib` belongs to.
BOOK = Book()


@dataclass
class Run:
    """A notebook to execute and the page that it becomes; everything is checked on creation.

    Without an `output` it is a run of one's own: its folder is in the book's `runs`, and relative
    paths in the notebook start from the current folder. With `as_text`, `values` are typed text.

    Examples
    --------
    >>> Run(BOOK.notebook("worlds"), values={"horizon": 4}).command
    'python -m lib run worlds -p horizon 4'
    """

    notebook: Path
    output: Path = Path()
    values: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""  # replaces the title of the notebook
    book: Book = BOOK
    as_text: InitVar[bool] = False

    def __post_init__(self, as_text: bool) -> None:
        self.notebook = self.notebook.resolve()
        self.of_book = self.notebook.parent == self.book.notebooks.resolve()
        self.parameters = read_parameters(read_notebook(self.notebook)[1].source)
        self.values = checked(self.parameters, self.values, as_text)
        if self.output == Path():
            self.folder = Path.cwd()
            self.page = folder_name(self.called, *map("=".join, self.changes.items()))
            self.output = self.book.runs / self.page / self.notebook.name
        else:
            self.folder, self.page = self.book.root, self.output.stem
        self.output = self.output.resolve()
        rule = "the output must not replace the notebook that is run"
        check(self.output != self.notebook, rule, str(self.output))
        self.record = self.output.with_suffix(".json")
        self.failed = self.output.with_suffix(".failed.ipynb")  # the notebook of a failed run

    @property
    def source(self) -> str:
        """The notebook as a command names it: by its name or, from elsewhere, by its path."""
        return self.notebook.stem if self.of_book else str(self.notebook)

    @property
    def called(self) -> str:
        """The notebook as run folders name it; from elsewhere, its own folder tells it apart."""
        folder, stem = self.notebook.parent, self.notebook.stem
        apart = sha256(os.fsencode(folder))[:8]
        return stem if self.of_book else f"{stem}-in-{folder.name}-{apart}"

    @property
    def changes(self) -> dict[str, str]:
        """The parameters that differ from their defaults, with values as one types them."""
        return {
            name: self.parameters[name].typed(value)
            for name, value in self.values.items()
            if value != self.parameters[name].default
        }

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        given = [word for name, text in self.changes.items() for word in ("-p", name, text)]
        return shlex.join(["python", "-m", "lib", "run", self.source, *given])


# The aliases in both classes are what the `_toc.yml` of Jupyter Book calls the same things.


class Page(BaseModel, extra="forbid", strict=True):
    """A page of an edition: prose, or a notebook with values for its parameters."""

    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$", serialization_alias="file")
    notebook: str = Field(exclude=True)
    title: str = ""
    parameters: dict[str, Any] = Field({}, exclude=True)


class Part(BaseModel, extra="forbid", strict=True):
    """Pages under a caption, numbered or not."""

    caption: str = ""
    numbered: Annotated[bool, PlainSerializer(int)] = False  # there, a depth
    pages: list[Any] = Field(min_length=1, serialization_alias="chapters")


class _File(BaseModel, extra="forbid", strict=True):
    about: str
    title: str = ""
    like: str = ""
    pages: list[Any] = []
    parts: list[Any] = []
    parameters: dict[str, dict[str, Any]] = {}


@dataclass
class Edition:
    """A book: prose and runs of notebooks, each by the name of its page, and the order of pages."""

    name: str
    title: str
    about: str
    prose: dict[str, Path] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    def contents(self) -> dict[str, Any]:
        """Return the table of contents, in the form of `_toc.yml`."""
        parts = [part.model_dump(by_alias=True, exclude_defaults=True) for part in self.parts]
        root = parts[0]["chapters"].pop(0)["file"]
        parts = [part for part in parts if part["chapters"]]
        return {"format": "jb-book", "root": root} | ({"parts": parts} if parts else {})


def load_edition(name: str, book: Book = BOOK) -> Edition:
    """Read and check an edition, given its name or path."""
    path = _find("edition", name, book.editions, ".yml")
    taken = book.editions / path.name  # both would be built in the same folder
    rule = "your own edition must have another name than the editions of the book"
    check(not taken.exists() or taken.samefile(path), rule, path.name)
    own = made = _checked(_File, read_yaml(path), path.name)
    if own.like:
        rule = f"{path.name}: an edition with the key 'like' must not have pages of its own"
        check(not own.pages + own.parts, rule, own.pages + own.parts)
        other = _find("edition", own.like, book.editions, ".yml")
        made = _checked(_File, read_yaml(other), other.name)
        rule = f"{path.name}: 'like' must name an edition with pages of its own"
        check(not made.like, rule, own.like)
    edition = Edition(path.stem, own.title or made.title, own.about)
    prose = {one.stem: one for one in sorted(book.prose.glob("*.md"))}
    known = sorted([*prose, *(one.stem for one in book.notebooks.glob("*.ipynb"))])
    given = dict(own.parameters)
    for number, content in enumerate([{"pages": made.pages}, *made.parts]):
        part = _checked(Part, content, path.name + (f", part {number}" if number else ""))
        edition.parts.append(part)
        for place, entry in enumerate(part.pages):
            pages = edition.prose | edition.runs
            where = f"{path.name}, page {len(pages) + 1}"
            if isinstance(entry, str):
                check_known(f"{where}: page", entry, known)
                entry = {"page": entry, "notebook": entry}
            page = part.pages[place] = _checked(Page, entry, where)
            where = f"{path.name}, page {page.page}"
            check(page.page not in pages, f"{where}: each page may be listed only once", page.page)
            check(page.page not in OF_THEME, f"{where}: the theme has such a page", page.page)
            if page.page == page.notebook and page.page in prose:
                edition.prose[page.page] = prose[page.page]
                continue
            values = page.parameters | made.parameters.get(page.page, {}) | given.pop(page.page, {})
            try:
                source, output = book.notebook(page.notebook), book.page(page.page, edition.name)
                edition.runs[page.page] = Run(source, output, values, title=page.title, book=book)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
    check_names(f"{path.name}: parameters: page", given, edition.runs)
    return edition


def _checked(model: type[BaseModel], content: Any, where: str) -> Any:
    with told(where, model.model_fields):
        return model.model_validate(content)
