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

import nbformat
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lib import ROOT
from lib.errors import InputError, one_of
from lib.parameters import Parameter, checked, read_parameters


@dataclass(frozen=True)
class Book:
    """Where the parts of a book are.

    Parameters
    ----------
    root : Path
        The folder that holds `notebooks`, `book`, `lib` and `data`.

    Examples
    --------
    >>> Book().executed.relative_to(ROOT).as_posix()
    'book/executed'
    """

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
        if name.endswith(".ipynb"):
            path = Path(name)
            if not path.is_file():
                raise InputError(f"notebook {name} does not exist")
            return path.resolve()
        known = sorted(path.stem for path in self.notebooks.glob("*.ipynb"))
        if name not in known:
            raise InputError(f"notebook {name!r} is unknown: {one_of(known)}")
        return self.notebooks / f"{name}.ipynb"


class Page(BaseModel):
    """One page of an edition: its name, its notebook, and the values it is run with.

    Examples
    --------
    >>> Page(page="worlds", notebook="worlds", parameters={"n_samples": 500}).page
    'worlds'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    notebook: str
    parameters: dict[str, Any] = {}


class Edition(BaseModel):
    """What the book consists of and how much of it is computed.

    Examples
    --------
    >>> Edition(about="A page.", pages=[Page(page="worlds", notebook="worlds")]).pages[0].parameters
    {}
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    about: str
    pages: list[Page] = Field(min_length=1)


def load_edition(name: str, book: Book | None = None) -> Edition:
    """Read and check an edition: its keys, its notebooks, and every parameter.

    Parameters
    ----------
    name : str
        A file of `book/editions`, without `.yml`; or the path of a YAML file.
    book : Book, optional
        Whose edition; this project's if not given.

    Returns
    -------
    Edition
        Its pages, with a value for every parameter of their notebooks.

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
    book = book or Book()
    if name.endswith((".yml", ".yaml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"edition {name} does not exist")
    else:
        known = sorted(path.stem for path in book.editions.glob("*.yml"))
        if name not in known:
            raise InputError(f"edition {name!r} is unknown: {one_of(known)}")
        path = book.editions / f"{name}.yml"
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


def read_notebook(path: Path) -> nbformat.NotebookNode:
    """Read a notebook and make sure that it is one.

    Raises
    ------
    InputError
        If the file is no notebook of format 4, or damaged.

    Examples
    --------
    >>> read_notebook(ROOT / "LICENSE")
    Traceback (most recent call last):
    lib.errors.InputError: LICENSE is damaged: expected a notebook of format 4
    """
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, KeyError, AttributeError):
        raise InputError(f"{path.name} is damaged: expected a notebook of format 4") from None
    return notebook


def parameters_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return the cell of a notebook that has the tag `parameters`, or an empty one.

    Examples
    --------
    >>> parameters_cell(nbformat.v4.new_notebook()).source
    ''
    """
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            return cell
    # Without such a cell, a notebook has no parameters.
    return nbformat.v4.new_code_cell()


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters of a notebook, by name.

    Parameters
    ----------
    notebook : Path
        The source.

    Raises
    ------
    InputError
        If the file is no notebook, or its `parameters` cell breaks the rules
        of :func:`lib.parameters.read_parameters`.

    Examples
    --------
    >>> import tempfile
    >>> cell = nbformat.v4.new_code_cell("seed: int = 0", metadata={"tags": ["parameters"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "worlds.ipynb"
    ...     nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    ...     parameters_of(path)
    {'seed': Parameter(name='seed', annotation='int', default=0, help='')}
    """
    return read_parameters(parameters_cell(read_notebook(notebook)).source, notebook.stem)
