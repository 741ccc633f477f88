"""The command line of the book: `python -m lib --help`."""

import argparse
import inspect
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lib.errors import InputError

_ABOUT = """
The Causal Benchmark Book: run it, rerun a page of it, or look what there is to run.

Every page is a notebook that was executed with certain parameters. `book` makes
the whole book, `run` executes one notebook with the values you choose, and `pages`
lists the notebooks with their parameters. `sample` writes worlds of a simulator.
"""

_EXAMPLES = """
examples:
  python -m lib book                      the book, at its usual size
  python -m lib book --edition quick      small samples: see everything work
  python -m lib pages                     which notebooks there are, and their parameters
  python -m lib run worlds -p n_samples 20_000 -p seed 3
                                          one notebook, your values
  python -m lib sample income_scm_1.0 -n 50_000 -o seen.parquet
                                          a world of the simulator, as a file

exit status: 0 all is well, 1 a page failed or the book has warnings,
             2 the input breaks a rule, 130 interrupted
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : list of str, optional
        What was typed after `python -m lib`; the process's own arguments if not given.

    Returns
    -------
    int
        0 all is well, 1 a page failed or the book has warnings, 2 the input breaks a rule, 130
        interrupted.

    Examples
    --------
    >>> main(["book", "--workers", "0"])
    2
    """
    try:
        options = _parser().parse_args(arguments)
        return options.command(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: what was finished is kept; repeat the command", file=sys.stderr)
        return 130


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one sentence, and leaves the layout of help alone."""

    def __init__(self, *arguments, **options) -> None:
        options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(*arguments, **options)

    def error(self, message: str) -> None:
        raise InputError(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("python -m lib", description=_ABOUT, epilog=_EXAMPLES)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(function: Callable[[argparse.Namespace], int], about: str) -> _Parser:
        """Add a command; the docstring of its function is what its help says."""
        name = function.__name__.lstrip("_")
        added = commands.add_parser(name, help=about, description=inspect.getdoc(function))
        added.set_defaults(command=function)
        return added

    edition = {
        "default": "default",
        "metavar": "NAME",
        "help": "quick, default or paper: a file of book/editions (default: default)",
    }
    book = command(_book, "execute what has changed, render the book")
    book.add_argument("--edition", **edition)
    book.add_argument(
        "--workers", type=int, default=2, metavar="N", help="pages that run at a time (default: 2)"
    )
    book.add_argument("--no-render", action="store_true", help="execute the pages, render nothing")
    book.add_argument("--force", action="store_true", help="run pages that are up to date, too")

    run = command(_run, "execute one notebook with your values")
    run.add_argument(
        "notebook", metavar="NOTEBOOK", help="a name from `python -m lib pages`, or the path of one"
    )
    run.add_argument(
        *("-p", "--parameter"),
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter and its value; may be given several times",
    )
    run.add_argument(
        *("-o", "--output"),
        type=Path,
        metavar="OUT",
        help="where it goes (default: NOTEBOOK_run.ipynb in the current folder)",
    )

    sample = command(_sample, "fit a specification, write worlds as Parquet")
    sample.add_argument(
        "specification", metavar="SPECIFICATION", help="a name from data/specs, or a YAML file"
    )
    positive, whole = _whole_number(least=1), _whole_number(least=0)
    sample.add_argument("-n", type=positive, required=True, metavar="N", help="subjects")
    sample.add_argument(
        "--horizon", type=positive, default=7, metavar="N", help="steps (default: 7)"
    )
    sample.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="of the world (default: 0)"
    )
    sample.add_argument(
        "--fit-seed", type=whole, default=0, metavar="N", help="of the fit (default: 0)"
    )
    sample.add_argument("--table", type=Path, help="a CSV or Parquet file (default: Adult)")
    sample.add_argument(
        "--do",
        nargs=3,
        action="append",
        default=[],
        metavar=("VARIABLE", "STEP", "VALUE"),
        help="set a variable at a step, or 'always'; may be given several times",
    )
    sample.add_argument("-o", "--output", type=Path, required=True, metavar="OUT")
    sample.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="processes (default: 1)"
    )

    command(_pages, "list notebooks, parameters, and what is up to date").add_argument(
        "--edition", **edition
    )
    return parser


def _whole_number(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers, underscores allowed, that are not below the least."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, at least {least}")
        return number

    return read


# The commands import what they need when they are called, so that --help answers at once.


def _book(options: argparse.Namespace) -> int:
    """Execute the pages of an edition that are not up to date, then render the book.

    A page is up to date if its notebook, its parameters, all of lib, the data and the
    versions of all dependencies are what they were when it was run. A page that fails
    does not stop the others and does not replace its last good version; the notebook
    as it failed is kept as book/executed/PAGE.failed.ipynb.

    For example:
      python -m lib book --edition paper --workers 4    the sizes of the papers, four at a time
      python -m lib book --no-render                    execute only
      python -m lib book --force                        run every page again
    """
    from lib.building import build
    from lib.editions import Book

    started = time.monotonic()
    outcome = build(
        options.edition,
        options.workers,
        render=not options.no_render,
        force=options.force,
        book=Book(),
    )
    for problem in outcome.problems:
        print(f"error: {problem}", file=sys.stderr)
    print(
        f"pages run: {len(outcome.ran)}, up to date: {len(outcome.unchanged)}, "
        f"problems: {len(outcome.problems)}; {time.monotonic() - started:.0f} s"
    )
    if outcome.index:
        print(f"the book is at {outcome.index}")
    return 1 if outcome.problems else 0


def _run(options: argparse.Namespace) -> int:
    """Execute one notebook with the values you choose, and write a run record beside it.

    Names and types of parameters are checked before anything runs; `python -m lib pages`
    lists them. Nothing of the book changes, unless you point OUT there.

    For example:
      python -m lib run worlds
      python -m lib run worlds -p n_samples 20_000 -p seed 3 -o twenty_thousand.ipynb
      python -m lib run my_folder/my_notebook.ipynb
    """
    from lib.editions import Book
    from lib.files import writable
    from lib.parameters import checked, parameters_of
    from lib.running import Run, execute, failed_path

    book = Book()
    notebook = book.notebook(options.notebook)
    given = dict(options.parameter)
    values = checked(parameters_of(notebook), given, notebook.stem, as_text=True)
    output = options.output or Path(f"{notebook.stem}_run.ipynb")
    if output.suffix != ".ipynb":
        raise InputError(f"output {output} is no notebook: expected a name that ends with .ipynb")
    if output.resolve() == notebook:
        raise InputError(f"output {output} is the notebook itself: choose another name")
    writable(output.resolve().parent)
    problems = execute([Run(notebook, output, values)], folder=Path.cwd(), book=book)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not problems:
        print(f"{output}, with its run record in {output.with_suffix('.json').name}")
    elif failed_path(output).exists():
        print(f"the notebook as it failed is {failed_path(output)}", file=sys.stderr)
    return 1 if problems else 0


def _sample(options: argparse.Namespace) -> int:
    r"""Fit a specification to a table, follow subjects through time, and stream them to Parquet.

    Memory stays constant, however many subjects there are. One row a subject and step.

    For example:
      python -m lib sample income_scm_1.0 -n 50_000 --horizon 7 --seed 1 -o seen.parquet
      python -m lib sample income_scm_1.0 -n 50_000 --horizon 7 --seed 1 -o done.parquet \
          --do studies 1 "Full-time studies"
      python -m lib sample my_model.yml --table my_table.csv -n 1000 -o mine.parquet
    """
    from lib.income import simulator_for

    if not options.output.resolve().parent.is_dir():
        raise InputError(f"folder {options.output.resolve().parent} does not exist")
    for variable, step, _ in options.do:
        if step != "always" and not step.isdecimal():
            raise InputError(f"--do {variable}: the step is {step!r}: expected a number or always")
    simulator = simulator_for(options.specification, options.table, options.fit_seed)
    do: dict[str, dict[int | range, str | float]] = {}
    for variable, step, text in options.do:
        where = range(options.horizon) if step == "always" else int(step)
        value = text
        if variable in simulator.kinds_ and simulator.kinds_[variable] is None:
            try:
                value = float(text)
            except ValueError:
                raise InputError(f"--do {variable} is {text!r}: expected a number") from None
        do.setdefault(variable, {})[where] = value
    path = simulator.to_parquet(
        options.output,
        options.n,
        options.horizon,
        seed=options.seed,
        do=do,
        n_jobs=options.workers,
        report=lambda n: print(f"{n:,} subjects", file=sys.stderr),
    )
    print(f"{options.n:,} subjects × {options.horizon} steps: {path}")
    return 0


def _pages(options: argparse.Namespace) -> int:
    """List the pages of an edition.

    Of each: its notebook, whether it is up to date, and its parameters with type, value in
    this edition, and meaning.
    """
    from lib.editions import Book, load_edition
    from lib.parameters import as_source, parameters_of
    from lib.running import why_stale

    book = Book()
    edition = load_edition(options.edition, book)
    print(f"edition {options.edition}: {edition.about.strip()}")
    for page in edition.pages:
        state = why_stale(page, book) or "up to date"
        print(f"\n{page.page}  (notebooks/{page.notebook}.ipynb; {state})")
        for name, parameter in parameters_of(book.notebook(page.notebook)).items():
            value, meaning = page.parameters[name], parameter.help
            if value != parameter.default:
                meaning = f"{meaning} (default: {as_source(parameter.default)})".strip()
            line = f"  {name}: {parameter.annotation} = {as_source(value)}"
            print(f"{line}  # {meaning}" if meaning else line)
    return 0


if __name__ == "__main__":
    # To be asked to end is like Ctrl-C: stop the kernels first, leave nothing half-written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
