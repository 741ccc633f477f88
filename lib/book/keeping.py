"""Keeping the tables that pages have marked, and comparing a fresh run with those kept."""

import hashlib
import json
from itertools import zip_longest
from pathlib import Path

from lib.book.editions import BOOK, Book, Run, load_edition
from lib.book.parameters import marked, read_notebook
from lib.book.running import read_record, why_stale
from lib.errors import check
from lib.files import writable, write_text


def keep(
    edition: str, write: bool = True, book: Book = BOOK
) -> tuple[dict[str, str | None], list[str]]:
    """Keep the tables that the pages of an edition have marked, in place of those kept before.

    Returns, by table, the first line that differs from the one kept before, or None; and a
    sentence for each page that is not up to date, of which nothing is kept anew.
    """
    differences, problems, made = {}, [], load_edition(edition, book)
    for run in made.runs.values():
        if stale := why_stale(run, but=["kept tables"]):
            problems.append(f"{run.page} is not up to date: {stale}")
            continue
        folder = book.recorded / made.name / run.page
        files = _files(run, folder)
        for path in sorted({*files, *folder.glob("*")}):
            kept, fresh = path.read_text("utf-8") if path.exists() else "", files.get(path, "")
            if path.suffix == ".csv":
                lines = zip_longest(kept.splitlines(), fresh.splitlines(), fillvalue="")
                odd = next((pair for pair in lines if pair[0] != pair[1]), None)
                said = odd and "kept {!r}, found {!r}".format(*odd)
                differences[f"{run.page}/{path.stem}"] = said
            if write and fresh:
                writable(folder)
                write_text(path, fresh)
            elif write:
                path.unlink()
    return differences, problems


def _files(run: Run, folder: Path) -> dict[Path, str]:
    """Return the tables that an executed page has marked, and their run record, by path."""
    files, digests, record = {}, {}, read_record(run)
    for mark, _ in marked(read_notebook(run.output)[0], "recorded"):
        name, text = mark["name"], mark["text/csv"]
        check(name not in digests, f"page {run.page} may record a name once", name)
        files[folder / f"{name}.csv"] = text
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    if files:
        kept = {what: record[what] for what in ("command", "parameters", "seconds", "versions")}
        kept |= {"date": record["started"][:10], "tables": digests}
        files[folder / "run.json"] = json.dumps(kept, indent=1) + "\n"
    return files
