"""Building the book: the pages that changed are run, then Jupyter Book renders them all.

Executed notebooks are in `book/executed`, which is not under version control; the book
renders these, and executes nothing itself. After the pages, a status table is written
from their run records.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lib.cache import alone, versions
from lib.editions import Book, Page, load_edition
from lib.errors import InputError
from lib.parameters import as_source
from lib.running import Run, execute, failed_path, read_record, why_stale, writable, write_whole


@dataclass
class Outcome:
    """What a build did, and what went wrong, one sentence each.

    Examples
    --------
    >>> Outcome(ran=["worlds"]).problems
    []
    """

    ran: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    index: Path | None = None


def build(
    edition: str = "default",
    workers: int = 2,
    *,
    render: bool = True,
    force: bool = False,
    book: Book | None = None,
) -> Outcome:
    """Bring the pages of an edition up to date, then render the book.

    Parameters
    ----------
    edition : str, default "default"
        A file of `book/editions`, without `.yml`.
    workers : int, default 2
        How many pages run at a time.
    render : bool, default True
        Whether to render the book.
    force : bool, default False
        Whether to run pages that are up to date, too.
    book : Book, optional
        Which book; this project's if not given.

    Returns
    -------
    Outcome
        Which pages ran, and a sentence for each problem: a page that failed, a page that the table
        of contents lists and nothing made, a warning of the renderer.

    Raises
    ------
    InputError
        If the edition breaks a rule, the folder for pages cannot be written, or another
        build is at work in it.

    Examples
    --------
    >>> build(workers=0)
    Traceback (most recent call last):
    lib.errors.InputError: workers is 0: expected at least 1
    """
    if workers < 1:
        raise InputError(f"workers is {workers}: expected at least 1")
    book = book or Book()
    pages = load_edition(edition, book).pages
    writable(book.executed)
    outcome = Outcome()
    try:
        with alone(book.executed / ".lock", wait=False):
            # What a killed run left behind; we are alone, so nobody is still writing it.
            for part in book.executed.glob(".*.part*"):
                part.unlink()
            stale = [page for page in pages if force or why_stale(page, book)]
            outcome.unchanged = [page.page for page in pages if page not in stale]
            outcome.ran = [page.page for page in stale]
            outcome.problems += execute([_run_for(page, book) for page in stale], workers, book)
            _write_if_changed(book.executed / "status_table.md", status_table(pages, book))
            outcome.problems += _missing_pages(book, edition)
            if render:
                outcome.problems += _render(book)
                outcome.index = book.index if book.index.exists() else None
    except BlockingIOError:
        raise InputError(f"another build is at work in {book.executed}: wait for it") from None
    return outcome


def _run_for(page: Page, book: Book) -> Run:
    output = book.executed / f"{page.page}.ipynb"
    return Run(book.notebook(page.notebook), output, page.parameters, book.root)


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file only if it differs, because the renderer reads again what is newer."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)


def _listed(book: Book) -> list[str]:
    """Return the executed pages that the table of contents lists."""
    toc = book.root / "_toc.yml"
    text = toc.read_text(encoding="utf-8") if toc.is_file() else ""
    return re.findall(r"book/executed/(\w+)", text)


def _missing_pages(book: Book, edition: str) -> list[str]:
    return [
        f"_toc.yml lists book/executed/{name}, and there is no such page: edition {edition} "
        "does not make it, or it failed"
        for name in _listed(book)
        if not (book.executed / f"{name}.ipynb").is_file()
    ]


def status_table(pages: Iterable[Page], book: Book | None = None) -> str:
    """Return the state of every page as MyST Markdown: two tables and the commands.

    Parameters
    ----------
    pages : iterable of Page
        The pages of an edition.
    book : Book, optional
        Whose pages; this project's if not given.

    Returns
    -------
    str
        A table of pages, the command that repeats each, and a table of versions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = status_table([Page(page="worlds", notebook="worlds")], Book(Path(folder)))
    >>> print(table.splitlines()[2])
    | `worlds` | **not run** | | | `worlds` |
    """
    book = book or Book()
    rows = ["| Page | Status | Run (UTC) | Seconds | Notebook, parameters |", "|---" * 5 + "|"]
    commands = []
    listed = _listed(book)
    found: dict[str, set[str]] = {name: {version} for name, version in versions().items()}
    for page in pages:
        output = book.executed / f"{page.page}.ipynb"
        record = read_record(output)
        failed = failed_path(output).exists()
        # A page that the table of contents leaves out is not rendered: no link would find it.
        name = f"{{doc}}`/book/executed/{page.page}`" if page.page in listed else f"`{page.page}`"
        if record is None:
            status = "**failed**" if failed else "**not run**"
            rows.append(f"| `{page.page}` | {status} | | | `{page.notebook}` |")
            continue
        status = "**failed since**; this is the last good run" if failed else record["status"]
        when = record["started"][:16].replace("T", " ")
        values = [f"`{key}={as_source(value)}`" for key, value in record["parameters"].items()]
        source = f"`{record['notebook']}`: {', '.join(values)}" if values else record["notebook"]
        cells = [name, status, when, f"{record['seconds']:.0f}", source.replace("|", "\\|")]
        rows.append(f"| {' | '.join(cells)} |")
        commands.append(record["command"])
        for package, version in record["versions"].items():
            found.setdefault(package, set()).add(version)
    return "\n".join(
        [
            *rows,
            "",
            "## The commands that repeat them",
            "",
            "```console",
            *[f"$ {command}" for command in commands],
            "```",
            "",
            "## Versions",
            "",
            "| Package | Version |",
            "|---|---|",
            *[f"| {name} | {', '.join(sorted(seen))} |" for name, seen in found.items()],
            "",
        ]
    )


def _render(book: Book) -> list[str]:
    """Render the book with warnings as errors; return the warnings."""
    writable(book.index.parent.parent)
    print("rendering the book", file=sys.stderr, flush=True)
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    # --all: it takes seconds, and otherwise a page that did not change would keep old titles in its
    # side bar, would stay half-written after an interrupt, and would not repeat its warnings.
    options = ["build", "--all", "-n", "-W", "--keep-going"]
    finished = subprocess.run(
        [*jupyter_book, *options, str(book.root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if finished.returncode == 0:
        return []
    said = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout + finished.stderr)
    lines = said.strip().splitlines()
    warnings = [line for line in lines if re.search(r"WARNING|ERROR|CRITICAL", line)]
    return [f"rendering: {line.strip()}" for line in warnings or lines[-15:]]
