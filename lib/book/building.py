"""Building the book: the pages that changed are run, then Jupyter Book renders them all.

Executed notebooks are in `book/executed`, which is not under version control; the book
renders these, and executes nothing itself. After the pages, a status table is written
from their run records.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from lib.book.editions import BOOK, Book, Run, load_edition
from lib.book.markdown import markdown_table
from lib.book.parameters import as_source
from lib.book.running import execute, read_record, why_stale
from lib.cache import versions
from lib.errors import InputError, check_count
from lib.files import file_lock, writable, write_text


class Outcome(NamedTuple):
    """Which pages a build ran and which it left, and one sentence for each problem."""

    ran: list[str]
    unchanged: list[str]
    problems: list[str]


def build(
    edition: str = "default",
    workers: int = 2,
    *,
    render: bool = True,
    force: bool = False,
    book: Book = BOOK,
) -> Outcome:
    """Bring the pages of an edition up to date, as many at a time as workers; render the book.

    A problem is a page that failed, a page that the table of contents lists and nothing
    made, or a warning of the renderer. With `force`, pages that are up to date are run, too.

    Examples
    --------
    >>> build(workers=0)
    Traceback (most recent call last):
    lib.errors.InputError: workers must be a whole number of at least 1: found 0
    """
    check_count("workers", workers, least=1)
    _, runs = load_edition(edition, book)
    try:
        with file_lock(book.executed / ".lock", wait=False):
            stale = [run for run in runs if force or why_stale(run)]
            # The longest first, by its last run, so that at the end none is left alone.
            stale.sort(key=lambda run: -(read_record(run) or {"seconds": 0})["seconds"])
            problems = execute(stale, workers)
            write_text(book.executed / "status_table.md", status_table(runs, book))
            problems += [
                f"_toc.yml lists book/executed/{name}, and there is no such page: "
                f"edition {edition} does not make it, or it failed"
                for name in _listed(book)
                if not book.page(name).is_file()
            ]
            problems += _render(book) if render else []
    except BlockingIOError:
        raise InputError(f"another build is at work in {book.executed}: wait for it") from None
    unchanged = [run.page for run in runs if run not in stale]
    return Outcome([run.page for run in stale], unchanged, problems)


def _listed(book: Book) -> list[str]:
    """Return the executed pages that the table of contents lists."""
    contents = (book.root / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"book/executed/(\w+)", contents)


def status_table(runs: Sequence[Run], book: Book = BOOK) -> str:
    """Return the state of pages as MyST Markdown: the pages, their commands, the versions.

    Examples
    --------
    >>> from pathlib import Path
    >>> moon = Run(BOOK.notebook("worlds"), Path("moon.ipynb"))
    >>> print(status_table([moon]).splitlines()[2])
    | `moon` | **not run** |  |  | `worlds` |
    """
    listed, rows, commands, seen = _listed(book), [], [], [versions()]
    for run in runs:
        record, failed = read_record(run), run.failed.exists()
        if record is None:
            status = "**failed**" if failed else "**not run**"
            rows.append((f"`{run.page}`", status, "", "", f"`{run.notebook.stem}`"))
            continue
        status = "**failed since**; this is the last good run" if failed else record["status"]
        # A page that the table of contents leaves out is not rendered: no link would find it.
        name = f"{{doc}}`/book/executed/{run.page}`" if run.page in listed else f"`{run.page}`"
        when = record["started"][:16].replace("T", " ")
        values = [f"`{key}={as_source(value)}`" for key, value in record["parameters"].items()]
        source = f"`{record['notebook']}`: {', '.join(values) or 'no parameters'}"
        rows.append((name, status, when, record["seconds"], source))
        commands.append(f"$ {record['command']}")
        seen.append(record["versions"])
    packages = [
        (name, ", ".join(sorted({one[name] for one in seen if name in one}))) for name in seen[0]
    ]
    parts = [
        markdown_table(["Page", "Status", "Run (UTC)", "Seconds", "Notebook, parameters"], rows),
        "## The commands that repeat them",
        "\n".join(["```console", *commands, "```"]),
        "## Versions",
        markdown_table(["Package", "Version"], packages),
    ]
    return "\n\n".join(parts) + "\n"


def _render(book: Book) -> list[str]:
    """Render the book with warnings as errors; return the warnings."""
    writable(book.index.parent.parent)
    print("rendering the book", file=sys.stderr, flush=True)
    # --all: it takes seconds, and otherwise a page that did not change would keep old titles in its
    # side bar, would stay half-written after an interrupt, and would not repeat its warnings.
    options = ["build", "--all", "-n", "-W", "--keep-going", str(book.root)]
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", *options]
    finished = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
    )
    if finished.returncode == 0:
        return []
    said = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout + finished.stderr)
    lines = said.strip().splitlines()
    warnings = [line for line in lines if re.search(r"WARNING|ERROR|CRITICAL", line)]
    return [f"rendering: {line.strip()}" for line in warnings or lines[-15:]]
