"""The commands `book`, `run` and `pages`; :mod:`lib.__main__` puts them together."""

import sys
import time
from pathlib import Path

import click

from lib.errors import InputError

# ruff: noqa: D301 - in a docstring, \b has click leave the lines of a paragraph as they are.
# The commands import what they need when they are called, so that --help answers at once.


_edition = click.option(
    *("--edition", "edition_name"),
    default="default",
    show_default=True,
    metavar="NAME",
    help="quick, default or paper: a file of book/editions",
)


@click.command()
@_edition
@click.option("--workers", default=2, show_default=True, help="Pages that run at a time.")
@click.option("--no-render", is_flag=True, help="Execute the pages, render nothing.")
@click.option("--force", is_flag=True, help="Run pages that are up to date, too.")
def book(edition_name: str, workers: int, no_render: bool, force: bool) -> int:
    """Execute the pages of an edition that are not up to date, then render the book.

    A page is up to date if its notebook, its parameters and the files that they name, all of
    lib, the data and the versions of all dependencies are what they were when it was run. A
    page that fails does not stop the others and does not replace its last good version; the
    notebook as it failed is kept as book/executed/PAGE.failed.ipynb.

    \b
    examples:
      python -m lib book --edition paper --workers 4   the sizes of the papers
      python -m lib book --no-render                   execute only
      python -m lib book --force                       run every page again
    """
    from lib.book.building import build
    from lib.book.editions import Book

    book, started = Book(), time.monotonic()
    outcome = build(edition_name, workers, render=not no_render, force=force, book=book)
    print(
        f"pages run: {len(outcome.ran)}, up to date: {len(outcome.unchanged)}, "
        f"problems: {len(outcome.problems)}; {time.monotonic() - started:.0f} s"
    )
    if book.index.exists() and not no_render:
        print(f"the book is at {book.index}")
    return _status(outcome.problems)


@click.command()
@click.argument("name", metavar="NOTEBOOK")
@click.option(
    *("-p", "--parameter", "given"),
    type=(str, str),
    multiple=True,
    metavar="NAME VALUE",
    help="A parameter and its value; may be given several times.",
)
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path),
    help="Where it goes; if not given, NOTEBOOK_run.ipynb in the current folder.",
)
def run(name: str, given: tuple[tuple[str, str], ...], output: Path | None) -> int:
    """Execute one notebook with the values you choose, and write a run record beside it.

    NOTEBOOK is a name that `python -m lib pages` lists, or the path of a notebook. Names and
    types of parameters are checked before anything runs. Nothing of the book changes,
    unless you point the output there.

    \b
    examples:
      python -m lib run worlds
      python -m lib run worlds -p n_samples 20_000 -p seed 3 -o twenty_thousand.ipynb
      python -m lib run my_folder/my_notebook.ipynb
    """
    from lib.book.editions import Book, Run
    from lib.book.parameters import checked, parameters_of
    from lib.book.running import execute
    from lib.files import writable

    book = Book()
    notebook = book.notebook(name)
    values = checked(parameters_of(notebook), dict(given), as_text=True)
    output = output or Path(f"{notebook.stem}_run.ipynb")
    if output.suffix != ".ipynb":
        raise InputError(f"output {output} is no notebook: expected a name that ends with .ipynb")
    run = Run(notebook, output, values, Path.cwd(), book)
    writable(run.output.parent)
    problems = execute([run])
    if not problems:
        print(f"{output}, with its run record in {output.with_suffix('.json').name}")
    elif run.failed.exists():
        problems.append(f"the notebook as it failed is {output.with_name(run.failed.name)}")
    return _status(problems)


def _status(problems: list[str]) -> int:
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


@click.command()
@_edition
def pages(edition_name: str) -> int:
    """List the pages of an edition, with their parameters.

    Of each page it says the notebook, whether it is up to date, and the parameters: type,
    value in this edition, and meaning.
    """
    from lib.book.editions import Book, load_edition
    from lib.book.parameters import as_source
    from lib.book.running import why_stale

    edition = load_edition(edition_name, Book())
    print(f"edition {edition_name}: {edition.about.strip()}")
    for run in edition.runs:
        state = why_stale(run) or "up to date"
        print(f"\n{run.page}  (notebooks/{run.notebook.name}; {state})")
        for name, parameter in run.parameters.items():
            usual = f" (default: {as_source(parameter.default)})"
            changed = run.values[name] != parameter.default
            print(f"  {parameter.line(run.values[name])}{usual if changed else ''}")
    return 0
