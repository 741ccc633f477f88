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

from lib.book.editions import BOOK, Book, Page, load_edition
from lib.book.parameters import as_source
from lib.book.running import Run, execute, failed_path, read_record, why_stale
from lib.cache import versions
from lib.errors import InputError
from lib.files import file_lock, writable, write_text


@dataclass
class Outcome:
    """Which pages a build ran and which it left, and one sentence for each problem."""

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
    book: Book = BOOK,
) -> Outcome:
    """Bring the pages of an edition up to date, then render the book.

    A problem is a page that failed, a page that the table of contents lists and nothing
    made, or a warning of the renderer.

    Parameters
    ----------
    edition : str
        A file of `book/editions`, without `.yml`.
    workers : int
        How many pages run at a time.
    render : bool
        Whether to render the book.
    force : bool
        Whether to run pages that are up to date, too.
    book : Book

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
    pages = load_edition(edition, book).pages
    writable(book.executed)
    outcome = Outcome()
    try:
        with file_lock(book.executed / ".lock", wait=False):
            # What a killed run left behind; we are alone, so nobody is still writing it.
            for partial in book.executed.glob(".partial.*"):
                partial.unlink()
            stale = [page for page in pages if force or why_stale(page, book)]
            outcome.unchanged = [page.page for page in pages if page not in stale]
            outcome.ran = [page.page for page in stale]
            runs = [
                Run(book.notebook(page.notebook), book.page(page.page), page.parameters)
                for page in stale
            ]
            outcome.problems += execute(runs, workers, book=book)
            write_text(book.executed / "status_table.md", status_table(pages, book))
            outcome.problems += [
                f"_toc.yml lists book/executed/{name}, and there is no such page: "
                f"edition {edition} does not make it, or it failed"
                for name in _listed(book)
                if not book.page(name).is_file()
            ]
            if render:
                outcome.problems += _render(book)
                outcome.index = book.index if book.index.exists() else None
    except BlockingIOError:
        raise InputError(f"another build is at work in {book.executed}: wait for it") from None
    return outcome


def _listed(book: Book) -> list[str]:
    """Return the executed pages that the table of contents lists."""
    toc = book.root / "_toc.yml"
    text = toc.read_text(encoding="utf-8") if toc.is_file() else ""
    return re.findall(r"book/executed/(\w+)", text)


def status_table(pages: Iterable[Page], book: Book = BOOK) -> str:
    """Return the state of pages as MyST Markdown: the pages, their commands, the versions.

    Examples
    --------
    >>> table = status_table([Page(page="moon", notebook="worlds")])
    >>> print(table.splitlines()[2])
    | `moon` | **not run** | | | `worlds` |
    """
    rows, commands = [], []
    listed = _listed(book)
    found = {name: {version} for name, version in versions().items()}
    for page in pages:
        output = book.page(page.page)
        record = read_record(output)
        failed = failed_path(output).exists()
        if record is None:
            status = "**failed**" if failed else "**not run**"
            rows.append(f"| `{page.page}` | {status} | | | `{page.notebook}` |")
            continue
        # A page that the table of contents leaves out is not rendered: no link would find it.
        name = f"{{doc}}`/book/executed/{page.page}`" if page.page in listed else f"`{page.page}`"
        status = "**failed since**; this is the last good run" if failed else record["status"]
        when = record["started"][:16].replace("T", " ")
        values = [f"`{key}={as_source(value)}`" for key, value in record["parameters"].items()]
        source = f"`{record['notebook']}`: {', '.join(values)}" if values else record["notebook"]
        cells = [name, status, when, f"{record['seconds']:.0f}", source.replace("|", "\\|")]
        rows.append(f"| {' | '.join(cells)} |")
        commands.append(f"$ {record['command']}")
        for package, version in record["versions"].items():
            found.setdefault(package, set()).add(version)
    packages = [f"| {name} | {', '.join(sorted(seen))} |" for name, seen in found.items()]
    return "\n".join(
        [
            *("| Page | Status | Run (UTC) | Seconds | Notebook, parameters |", "|---" * 5 + "|"),
            *rows,
            *("", "## The commands that repeat them", ""),
            *("```console", *commands, "```"),
            *("", "## Versions", ""),
            *("| Package | Version |", "|---|---|", *packages, ""),
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
