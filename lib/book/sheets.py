"""Sheets of exercises, chapter by chapter: those for students, and those for teachers.

They are made of the executed pages of an edition, so that solutions come with what their programs
print, and are rendered into `_build/EDITION-students` and `_build/EDITION-teachers`. Solutions are
open, since on paper nothing unfolds.
"""

from pathlib import Path

import nbformat
from nbformat.v4 import new_markdown_cell

from lib.book.editions import BOOK, Book, load_edition
from lib.book.parameters import read_notebook
from lib.book.reading import exercises, plain, student
from lib.book.rendering import Site
from lib.book.running import read_record
from lib.errors import InputError

#: What is made of an executed page, by those whom it is for.
SHEETS = {"students": lambda notebook: plain(student(notebook)), "teachers": plain}


def make_sheets(edition: str = "default", book: Book = BOOK) -> tuple[list[Path], list[str]]:
    """Render both sheets of an edition that was made; return their folders, and warnings."""
    made, folders, problems = load_edition(edition, book), [], []
    for name, run in made.runs.items():
        if not (read_record(run) and run.output.is_file()):
            rule = "sheets are made of executed pages: `python -m lib book --edition"
            raise InputError(f"{rule} {edition}` first; page {name} has no run")
    for who, version in SHEETS.items():
        output = book.built / f"{made.name}-{who}"
        title = f"Exercises for {who}"
        site = Site(book.built / ".staging" / output.name, made.title, title, False, book)
        for name, run in made.runs.items():
            executed, _ = read_notebook(run.output)
            sheet = exercises(version(executed))
            if sheet.cells:
                chapter = made.titles[name] or executed.cells[0].source.split("\n")[0].strip("# ")
                sheet.cells.insert(0, new_markdown_cell(f"# {chapter}: exercises", id="title"))
                text = nbformat.writes(sheet).replace("<details>", "<details open>")
                site.pages[f"exercises_{name}.ipynb"] = text
        chapters = [{"file": Path(page).stem} for page in site.pages]
        listed = "\n".join(f"- [](/{one['file']})" for one in chapters)
        site.pages["index.md"] = f"# {made.title}: exercises for {who}\n\n{listed}\n"
        contents = {"format": "jb-book", "root": "index", "chapters": chapters}
        problems += site.publish(contents, output)
        folders.append(output)
    return folders, problems
