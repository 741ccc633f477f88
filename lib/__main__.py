"""The command line: `python -m lib --help`."""

import contextlib
import io
import os
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    import click
except ModuleNotFoundError as error:
    raise SystemExit(f"error: {error}: is the book's environment activated?") from None

from lib.errors import InputError, check, check_names, check_once

# ruff: noqa: D301 - in a docstring, \b tells click to keep the lines of a paragraph as they are.
# The commands import what they need when they are called, so that --help answers at once. A
# command that can meet problems returns them, one sentence for each.


@click.group(context_settings={"max_content_width": 100, "show_default": True})
def commands() -> None:
    """Make the Causal Benchmark Book, rerun a page of it, or list what there is to run.

    Every page is a notebook that was executed with certain parameters.

    \b
    examples:
      python -m lib book                      the book, at its usual size
      python -m lib book --edition quick      small samples: see everything work
      python -m lib pages                     which notebooks there are
      python -m lib run worlds -p n_samples 20_000 -p seed 3
                                              one notebook, your values
      python -m lib sweep worlds -p horizon 4 7 10 -p seed 1..20
                                              one notebook, many values
      python -m lib sample income_scm_1.0 -n 50_000 -o seen.parquet
                                              a world, as a file

    \b
    exit status: 0 all is well, 1 a page failed, the book has warnings, or
                 kept results differ from fresh ones,
                 2 the input breaks a rule, 130 interrupted
    """


_path = click.Path(path_type=Path)
_edition = click.option(
    "--edition", default="default", help="default, quick, paper, studies, or your own YAML file."
)
_workers = click.option(
    "--workers", type=click.IntRange(1), help="Parallel runs; by default, cores + 1."
)


@commands.command()
@_edition
@_workers
@click.option("--no-render", is_flag=True, help="Execute the pages, render nothing.")
def book(edition: str, workers: int | None, no_render: bool) -> list[str]:
    """Execute the pages of an edition that are not up to date, then render the book.

    A page is up to date if nothing that it depends on has changed since it was run: its notebook,
    its parameters and the files that they name, all of lib, the data, and the versions of all
    dependencies. A page that fails does not stop the others and does not replace its last good
    version. The failed notebook is kept as book/executed/EDITION/PAGE.failed.ipynb.
    """
    from lib.book.building import build

    started = time.monotonic()
    outcome = build(edition, workers, render=not no_render)
    print(
        f"pages run: {len(outcome.ran)}, up to date: {len(outcome.unchanged)}, "
        f"problems: {len(outcome.problems)}; {time.monotonic() - started:.0f} s"
    )
    if not no_render:
        _say("the book is at", outcome.index)
    return outcome.problems


@commands.command()
@click.argument("name", metavar="NOTEBOOK")
@click.option("-p", "--parameter", "given", type=(str, str), multiple=True, metavar="NAME VALUE")
def run(name: str, given: tuple[tuple[str, str], ...]) -> list[str]:
    """Execute one notebook with the values you choose, and make a page of it.

    NOTEBOOK is a name that `python -m lib pages` lists, or the path of a notebook. Every `-p`
    gives one parameter a value; names and types are checked before anything runs. The page goes
    to a folder in runs, which is named after the values that differ from the defaults, and
    runs/index.html lists all runs. A run that exists and is up to date is not repeated.

    \b
    examples:
      python -m lib run worlds
      python -m lib run worlds -p n_samples 20_000 -p seed 3
      python -m lib run exact_quantities -p n_per_bcc "[4, 4, 4]"
      python -m lib run estimator_benchmark -p estimators "[aipw, my_module:MyClass]"
      python -m lib run my_folder/my_notebook.ipynb
    """
    from lib.book.editions import BOOK, Run
    from lib.book.running import execute, why_stale

    run = Run(BOOK.notebook(name), values=_once(given), as_text=True)
    from lib.book.runs import show  # heavy, and not needed to refuse what was typed

    page = run.output.with_name("index.html")
    if why_stale(run) and (problems := execute([run])):
        return problems + [f"the failed notebook is {run.failed}"] * run.failed.exists()
    fresh = page.exists() and page.stat().st_mtime >= run.record.stat().st_mtime
    if (problems := [] if fresh else show(BOOK, run)) and page.exists():
        os.utime(page, (0, 0))  # so that the same command renders it, and warns, again
    _say("the page is", page)
    return problems


def _say(where: str, page: Path) -> None:
    """Print where a page is, if it exists; of a run there is none if the renderer crashed."""
    if page.exists():
        print(f"{where} {page}")


def _once(given: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    check_once("parameter", [name for name, _ in given])
    return dict(given)


@commands.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="NOTEBOOK")
@click.argument("words", metavar="-p NAME VALUE...", nargs=-1, type=click.UNPROCESSED)
@_workers
def sweep(name: str, words: tuple[str, ...], workers: int | None) -> list[str]:
    """Execute one notebook with every combination of values, and tabulate its recorded numbers.

    Every `-p` gives a parameter one or more values; `1..20` stands for the whole numbers from 1 to
    20. Runs that exist and are up to date are not repeated, so an interrupted sweep goes on. The
    printed path is that of a page with a figure. Its folder has the table, as CSV and as Parquet.

    \b
    examples:
      python -m lib sweep worlds -p horizon 4 7 10 -p seed 1..20
      python -m lib sweep worlds -p n_samples 1_000 10_000 -p treatment "Evening course"
    """
    from lib.book.runs import sweep

    given: list[list[str]] = []
    for word in words:
        if word in ("-p", "--parameter"):
            given.append([])
        else:
            check(bool(given), "a value must follow -p and the name of a parameter", word)
            given[-1] += _range(word)
    check(bool(given and all(given)), "a sweep needs a parameter, as in -p seed 1..20", list(words))
    grid = _once([(parameter, [*dict.fromkeys(values)]) for parameter, *values in given])
    folder, problems = sweep(name, grid, workers)
    if folder:
        _say("the page is", folder / "index.html")
    return problems


def _range(word: str) -> list[str]:
    """Return each number of a range such as `1..20`, or any other word as it is."""
    from lib.book.runs import check_size

    if not (ends := re.fullmatch(r"(-?\d{1,99})\.\.(-?\d{1,99})", word)):
        return [word]
    first, last = int(ends[1]), int(ends[2])
    check(first <= last, "a range must not run backwards", word)
    check_size(last - first + 1)  # before the list is made
    return list(map(str, range(first, last + 1)))


@commands.command()
@click.argument("runs", nargs=-1, metavar="RUN RUN...")
def compare(runs: tuple[str, ...]) -> list[str]:
    """Compare two or more runs on a page: parameters that differ, recorded numbers and figures.

    RUN is the name or the path of a folder in runs, such as worlds,horizon=4.
    """
    from lib.book.runs import compare

    folder, problems = compare(runs)
    _say("the page is", folder / "index.html")
    return problems


@commands.command()
@_edition
def pages(edition: str) -> None:
    """List the pages of an edition: the notebook, whether it is up to date, and the parameters.

    Each parameter is shown with its type, its value in this edition, and its meaning.
    """
    from lib.book.editions import load_edition
    from lib.book.parameters import as_source
    from lib.book.running import why_stale

    chosen = load_edition(edition)
    print(f"edition {chosen.name}: {chosen.about.strip()}")
    for run in chosen.runs.values():
        state = why_stale(run) or "up to date"
        where = f"notebooks/{run.notebook.name}" if run.of_book else run.source
        print(f"\n{run.page}  ({where}; {state})")
        for name, parameter in run.parameters.items():
            usual = f" (default: {as_source(parameter.default)})" if name in run.changes else ""
            print(f"  {parameter.line(run.values[name])}{usual}")


@commands.command()
@_edition
def sheets(edition: str) -> list[str]:
    """Make sheets with the exercises of an edition's pages, for students and for teachers.

    The teachers' sheets include the solutions and what their programs print. The pages must have
    been made by `python -m lib book`.
    """
    from lib.book.building import make_sheets

    folders, problems = make_sheets(edition)
    for folder in folders:
        _say("the sheets are at", folder / "index.html")
    return problems


@commands.command()
@click.argument("edition")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; fail if a table differs.")
def record(edition: str, only_check: bool) -> list[str]:
    """Keep the tables that an edition's executed pages have marked, for other pages to show.

    The tables go to data/recorded, as CSV, with a run record for each page. The command says for
    each table whether it is the same as the one kept before, each number to 1 in 100 000. A page
    that is not up to date is named, and the tables kept from it stay. Nothing is kept from a page
    that runs with its notebook's own defaults.
    """
    from lib.book.building import keep

    differences, problems = keep(edition, write=not only_check)
    for table, difference in differences.items():
        print(f"{table}: {difference or 'the same'}")
    differ = [table for table, difference in differences.items() if difference]
    return problems + [f"{table} differs from the kept table" for table in differ if only_check]


@commands.command()
@click.argument("specification")
@click.option("-n", type=click.IntRange(1), required=True, help="Number of subjects.")
@click.option("--horizon", type=click.IntRange(1), default=7, help="Number of steps.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the sampled world.")
@click.option("--fit-seed", type=click.IntRange(0), default=0, help="Seed of the fitting.")
@click.option("--table", help="A CSV or Parquet file to fit to; by default, Adult.")
@click.option("--do", "done", type=(str, str, str), multiple=True, metavar="VARIABLE STEP VALUE")
@click.option("-o", "--output", type=_path, required=True, help="The Parquet file to write.")
@click.option("--workers", "n_jobs", type=click.IntRange(1), default=1, help="Parallel workers.")
def sample(
    specification: str, fit_seed: int, table: str | None, done: Any, output: Path, **drawn: int
) -> None:
    """Fit a SPECIFICATION to a table, follow subjects through time, and stream them to Parquet.

    SPECIFICATION is a name from data/specs, or the path of a YAML file. Every `--do` sets a
    variable at a step or, if STEP is `always`, at every step. The file has one row for each
    subject and step. Memory stays constant, however many subjects there are.

    \b
    examples:
      python -m lib sample income_scm_1.0 -n 50_000 --seed 1 -o seen.parquet
      python -m lib sample income_scm_1.0 -n 50_000 --seed 1 -o done.parquet
                       --do studies 1 "Full-time studies"
      python -m lib sample my_model.yml --table my_table.csv -n 1000 -o mine.parquet
    """
    from lib.income import fitted_simulator

    folder, horizon = output.resolve().parent, drawn["horizon"]
    check(folder.is_dir(), "folder of the output must exist", str(folder))
    check(output.suffix == ".parquet", "output must end with .parquet", output.name)
    rule = "the output must have another name than the table"
    check(output.resolve() != Path(table or "").resolve(), rule, str(output))
    for variable, step, _ in done:
        rule = f"--do {variable}: STEP must be a whole number or the word always"
        check(step == "always" or step.isdecimal(), rule, step)
    check_once("--do", [f"{variable} {step.lstrip('0')}" for variable, step, _ in done])
    simulator = fitted_simulator(specification, fit_seed, table=table)
    do: dict[str, dict[int | range, str | float]] = {}
    for variable, step, value in done:
        if (kind := simulator.kinds_.get(variable)) is not None:  # a level may be no text
            value = {str(level): level for level in kind.categories}.get(value, value)
        else:
            with contextlib.suppress(ValueError):  # other text than a number is refused later
                value = float(value)
        do.setdefault(variable, {})[range(horizon) if step == "always" else int(step)] = value
    simulator.to_parquet(output, do=do, **drawn)
    print(f"{drawn['n']:,} subjects × {horizon} steps: {output}")


@commands.command()
@click.argument("folder", type=_path)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--csv", is_flag=True, help="Write every table as CSV, too.")
@click.option("--small", is_flag=True, help="Write small data sets, to see everything work.")
@click.option("--url", help="The web address below which the folders will be published.")
def export(folder: Path, names: tuple[str, ...], csv: bool, small: bool, url: str | None) -> None:
    """Write all data sets of the book, or those named, each to a folder of its own.

    A set is a folder of Parquet tables with a card, a datasheet and Croissant metadata. It appears
    when all of it is written. A folder that exists must hold the whole set and stays as it is, so
    an interrupted export goes on. The full sets of IncomeSCM take a quarter of an hour each.

    \b
    examples:
      python -m lib export my_sets
      python -m lib export my_sets IncomeSCM-1.1.CATE flu_vaccine_v0 --csv
    """
    from lib.book.publishing import FILES, Description, check_published, publish
    from lib.ccr import static_data_sets
    from lib.files import atomic_write, writable
    from lib.income import data_sets, fitted_simulator
    from lib.income.data_sets import DATA_SETS

    known = [*DATA_SETS, *static_data_sets.CONFIGURATIONS]
    check_names("data set", names, known)
    rule = "--url must be a web address, such as https://example.org/sets"
    check(url is None or re.fullmatch(r"https?://[^\s<>\"]+", url) is not None, rule, url)
    writable(folder)
    names = tuple(dict.fromkeys(names or known))
    families = {name: data_sets if name in DATA_SETS else static_data_sets for name in names}
    versions = {k: one.DESCRIPTION["version"] + "-small" * small for k, one in families.items()}
    there = [name for name in names if (folder / name).exists()]
    for name in there:
        check_published(folder / name, versions[name], csv)
    for name in names:
        target = folder / name
        if name in there:
            print(f"{target} exists already and is left as it is")
            continue
        print(f"{name}: started", file=sys.stderr, flush=True)
        size = families[name].SMALL if small else {}
        with atomic_write(target, FILES) as beside:
            if name in DATA_SETS:
                simulator = fitted_simulator(DATA_SETS[name][0])
                told = data_sets.write_cate(beside, name, simulator, **size)
            else:
                tasks = static_data_sets.static_tasks(name, **size)
                tasks.to_parquet(beside)
                told = static_data_sets.described(tasks, **size)
            told |= {"url": f"{url.rstrip('/')}/{name}"} if url else {}
            told |= {"version": versions[name]}
            command = f"python -m lib export FOLDER {name}" + " --small" * small + " --csv" * csv
            publish(beside, Description(**told, command=command), csv)
        print(target)


def main(typed: list[str]) -> int:
    """Run the command line with what was typed, and return its exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # it is None if it was closed
        sys.stdout.reconfigure(errors="backslashreplace")  # escapes odd characters, as stderr does
    try:
        with commands.make_context("python -m lib", typed or ["--help"]) as context:
            problems, status = commands.invoke(context) or [], 1
            print(end="", flush=True)
    except click.exceptions.Exit as end:  # after --help
        return end.exit_code
    except BrokenPipeError:
        # The reader, such as `head`, has read enough. Nothing more is written, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as if ended by the signal SIGPIPE, which ends other tools
    except KeyboardInterrupt:
        print("interrupted: finished work is kept; repeat the command to go on", file=sys.stderr)
        return 130
    except click.ClickException as error:
        problems, status = [error.format_message()], 2
    except ModuleNotFoundError as error:
        problems, status = [f"{error}: is the book's environment activated?"], 2
    except (InputError, OSError, UnicodeError) as error:
        named, why = (getattr(error, name, None) for name in ("filename", "strerror"))
        problems, status = [f"{named}: {why}" if named else error], 2
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return status if problems else 0


if __name__ == "__main__":
    # A request to end counts as Ctrl-C: the kernels stop first, and nothing is half-written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
