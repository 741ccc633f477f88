"""Building an edition: the pages that changed are run, then all of its pages are rendered.

The module also makes sheets of exercises from these pages, and keeps the tables that they mark.
"""

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import nbformat
from filelock import Timeout

from lib.book.editions import BOOK, Book, Edition, Run, load_edition
from lib.book.parameters import marked, read_notebook
from lib.book.reading import exercises, plain, student
from lib.book.rendering import TEMPLATES, Site
from lib.book.running import execute, read_record, why_stale
from lib.cache import versions
from lib.errors import InputError, check
from lib.files import file_lock, sha256, writable, write_text

#: The file that the page on the status of all pages includes.
STATUS = "status_table.md"

#: Readers of a sheet → the function that turns an executed page into their version.
SHEETS = {"students": lambda notebook: plain(student(notebook)), "teachers": plain}


@dataclass(frozen=True)
class Outcome:
    """The pages that a build ran or left unchanged, a sentence for each problem, and the index."""

    ran: list[str]
    unchanged: list[str]
    problems: list[str]
    index: Path


def build(
    edition: str = "default", workers: int | None = None, render: bool = True, book: Book = BOOK
) -> Outcome:
    """Bring the pages of an edition up to date with this many `workers`, and `render` its book.

    A problem is a page that failed, or a warning of the renderer. If a page has no good run, the
    book says so in its place.
    """
    made = load_edition(edition, book)
    runs, executed = list(made.runs.values()), book.executed / made.name
    with _alone(executed):
        stale = [run for run in runs if why_stale(run)]
        problems = execute(stale, workers)
        table = status_table(made)
        write_text(executed / STATUS, table)
        problems += _render(made, table, book) if render else []
    unchanged = [run.page for run in runs if run not in stale]
    index = book.built / made.name / "index.html"
    return Outcome([run.page for run in stale], unchanged, problems, index)


@contextlib.contextmanager
def _alone(executed: Path) -> Iterator[None]:
    """Keep others out of a folder of executed pages, which is refused if they are at work there."""
    try:
        with file_lock(executed / ".lock", wait=False):
            yield
    except Timeout:
        raise InputError(f"another build is running in {executed}: wait until it ends") from None


def _render(edition: Edition, table: str, book: Book) -> list[str]:
    staging = book.built / ".staging" / edition.name
    site = Site(staging, f"Edition {edition.name}. {edition.about}", edition.title, book=book)
    site.pages[f"executed/default/{STATUS}"] = table
    for name, path in edition.prose.items():
        site.pages[f"{name}.md"] = path.read_text(encoding="utf-8")
    for name, run in edition.runs.items():
        if read_record(run.record):
            site.add(name, run, f"edition {edition.name}")
        else:
            failed = f"# {name}\n\nThis page has failed, and has no earlier run.\n"
            site.pages[f"{name}.md"] = failed
    return site.publish(book.built / edition.name, edition.contents())


def status_table(edition: Edition) -> str:
    """Return the status of pages as MyST Markdown: the pages, their commands and the versions."""
    runs = [(run, read_record(run.record)) for run in edition.runs.values()]
    seen = [versions(), *(record["versions"] for _, record in runs if record)]
    packages = {name: sorted({one[name] for one in seen if name in one}) for name in seen[0]}
    return TEMPLATES.get_template("status.md").render(runs=runs, packages=packages)


# --- Sheets of exercises ------------------------------------------------------------------------


def make_sheets(edition: str = "default", book: Book = BOOK) -> tuple[list[Path], list[str]]:
    """Render the exercises of a built edition, for students and, with solutions, for teachers.

    Solutions are unfolded, because paper cannot unfold them. Returns the folders and the warnings.
    """
    made = load_edition(edition, book)
    with _alone(book.executed / made.name):
        return _sheets(made, book)


def _sheets(made: Edition, book: Book) -> tuple[list[Path], list[str]]:
    folders = list[Path]()
    rule = f"sheets need executed pages: run `python -m lib book --edition {made.name}` first"
    if missing := [name for name, run in made.runs.items() if not read_record(run.record)]:
        raise InputError(f"{rule}; page {missing[0]} has not been run")
    why = {name: why_stale(run) for name, run in made.runs.items()}
    problems = [f"{name} is not up to date: {one}" for name, one in why.items() if one]
    for who, version in SHEETS.items():
        folders.append(book.built / f"{made.name}-{who}")
        title = f"Exercises for {who}"
        site = Site(book.built / ".staging" / folders[-1].name, made.title, title, False, book)
        site.pages["index.md"] = f"# {made.title}: {title.lower()}\n\n```{{tableofcontents}}\n```\n"
        for name, run in made.runs.items():
            executed, _ = read_notebook(run.output)
            sheet = exercises(version(executed))
            if sheet.cells:
                chapter = run.title or executed.cells[0].source.split("\n")[0].strip("# ")
                text = f"# {chapter}: exercises\n\nSome of them use what the chapter shows."
                sheet.cells.insert(0, nbformat.v4.new_markdown_cell(text, id="title"))
                text = nbformat.writes(sheet).replace("<details>", "<details open>")
                site.pages[f"exercises_{name}.ipynb"] = text
        problems += site.publish(folders[-1])
    return folders, problems


# --- Tables that outlive their pages ------------------------------------------------------------


def keep(
    edition: str, write: bool = True, book: Book = BOOK
) -> tuple[dict[str, str | None], list[str]]:
    """Keep the tables that the pages of an edition have marked, in place of those kept before.

    No table is kept of a page with its notebook's own defaults, because everyone has that page.
    Returns, by table, the first line that differs from the one kept before, or None; and a sentence
    for each page that is not up to date, whose kept tables stay as they are.
    """
    made, differences, problems = load_edition(edition, book), {}, []
    with _alone(book.executed / made.name):
        for run in (one for one in made.runs.values() if one.changes):
            if stale := why_stale(run, but=["kept tables"]):
                problems.append(f"{run.page} is not up to date: {stale}")
                continue
            folder = book.recorded / made.name / run.page
            files = _files(run, folder)
            for path in sorted({*files, *folder.glob("[!.]*")}):  # no half-written file
                kept, fresh = path.read_text("utf-8") if path.exists() else "", files.get(path, "")
                if path.suffix == ".csv":
                    lines = zip_longest(kept.splitlines(), fresh.splitlines(), fillvalue="")
                    odd = next((pair for pair in lines if not _alike(*pair)), None)
                    said = odd and f"kept {odd[0]!r}, found {odd[1]!r}"
                    differences[f"{run.page}/{path.stem}"] = said
                if write and fresh:
                    writable(folder)
                    write_text(path, fresh)
                elif write:
                    path.unlink()
    return differences, problems


def _alike(one: str, other: str) -> bool:
    # Numbers agree to 1 in 100 000. Sums differ between processors by less, but that may move the
    # last of the six digits.
    cells = zip_longest(one.split(","), other.split(","), fillvalue="")
    odd = [pair for pair in cells if pair[0] != pair[1]]
    try:
        return all(math.isclose(float(a), float(b), rel_tol=1e-5) for a, b in odd)
    except ValueError:  # a text
        return False


def _files(run: Run, folder: Path) -> dict[Path, str]:
    """Return, by path, the tables that an executed page has marked, and their run record."""
    files, digests, record = {}, {}, read_record(run.record) or {}
    for mark, _ in marked(read_notebook(run.output)[0], "recorded"):
        name, text = mark["name"], mark["text/csv"]
        check(name not in digests, f"page {run.page} may record each name only once", name)
        files[folder / f"{name}.csv"] = text
        digests[name] = sha256(text.encode())
    if files:
        kept = {what: record[what] for what in ("command", "parameters", "seconds", "versions")}
        kept |= {"date": record["started"][:10], "tables": digests}
        files[folder / "run.json"] = json.dumps(kept, indent=1) + "\n"
    return files
