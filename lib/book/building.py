"""Building an edition: the pages that changed are run, then all of its pages are rendered.

Executed notebooks are in `book/executed/EDITION`, which is not under version control, and the
book in `_build/EDITION`. Beside the pages, a status table is written from their run records.
"""

from pathlib import Path
from typing import NamedTuple

from lib.book.editions import BOOK, Book, Edition, load_edition
from lib.book.rendering import TEMPLATES, Site
from lib.book.running import execute, read_record, why_stale
from lib.cache import versions
from lib.errors import InputError, check_count
from lib.files import file_lock, write_text

#: What the page on the status of all pages includes.
STATUS = "status_table.md"


class Outcome(NamedTuple):
    """Which pages a build ran and left, a sentence for each problem, and where the book is."""

    ran: list[str]
    unchanged: list[str]
    problems: list[str]
    index: Path


def build(
    edition: str = "default",
    workers: int = 2,
    *,
    render: bool = True,
    force: bool = False,
    book: Book = BOOK,
) -> Outcome:
    """Bring the pages of an edition up to date, as many at a time as workers; render its book.

    A problem is a page that failed, or a warning of the renderer. In place of a page that has no
    good run, the book says so. With `force`, pages that are up to date are run, too.
    """
    check_count("workers", workers, least=1)
    made = load_edition(edition, book)
    runs, executed = list(made.runs.values()), book.executed / made.name
    try:
        with file_lock(executed / ".lock", wait=False):
            stale = [run for run in runs if force or why_stale(run)]
            # The longest first, by its last run, so that at the end none is left alone.
            stale.sort(key=lambda run: -(read_record(run) or {"seconds": 0})["seconds"])
            problems = execute(stale, workers)
            table = status_table(made)
            write_text(executed / STATUS, table)
            problems += _render(made, table, book) if render else []
    except BlockingIOError:
        raise InputError(f"another build is at work in {executed}: wait for it") from None
    unchanged = [run.page for run in runs if run not in stale]
    index = book.built / made.name / "index.html"
    return Outcome([run.page for run in stale], unchanged, problems, index)


def _render(edition: Edition, table: str, book: Book) -> list[str]:
    staging = book.built / ".staging" / edition.name
    site = Site(staging, f"Edition {edition.name}. {edition.about}", edition.title, book=book)
    included = f"```{{include}} executed/default/{STATUS}\n```"
    for name, path in edition.prose.items():
        site.pages[f"{name}.md"] = path.read_text(encoding="utf-8").replace(included, table)
    for name, run in edition.runs.items():
        if read_record(run) and run.output.is_file():
            site.add(name, run, f"edition {edition.name}", edition.titles[name])
        else:
            site.pages[f"{name}.md"] = (
                f"# {name}\n\nThis page has failed, and has no earlier run.\n"
            )
    return site.publish(edition.contents(), book.built / edition.name)


def status_table(edition: Edition) -> str:
    """Return the state of pages as MyST Markdown: the pages, their commands, the versions.

    Examples
    --------
    >>> print(status_table(Edition("empty", "", "No pages."))[:62])
    | Page | Status | Run (UTC) | Seconds | Notebook, parameters |
    """
    runs = [(run, read_record(run)) for run in edition.runs.values()]
    seen = [versions(), *(record["versions"] for _, record in runs if record)]
    packages = {name: sorted({one[name] for one in seen if name in one}) for name in seen[0]}
    return TEMPLATES.get_template("status.md").render(runs=runs, packages=packages)
