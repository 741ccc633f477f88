"""The command line: `python -m lib --help`."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import click

from lib.book.commands import book, pages, run
from lib.errors import InputError

# ruff: noqa: D301 - in a docstring, \b has click leave the lines of a paragraph as they are.
# The commands import what they need when they are called, so that --help answers at once.


@click.group(context_settings={"max_content_width": 100})
def commands() -> None:
    """Make the Causal Benchmark Book, rerun a page of it, or look what there is to run.

    Every page is a notebook that was executed with certain parameters. `book` makes
    the whole book, `run` executes one notebook with the values you choose, and `pages`
    lists the notebooks with their parameters. `sample` writes worlds of a simulator.

    \b
    examples:
      python -m lib book                      the book, at its usual size
      python -m lib book --edition quick      small samples: see everything work
      python -m lib pages                     which notebooks there are
      python -m lib run worlds -p n_samples 20_000 -p seed 3
                                              one notebook, your values
      python -m lib sample income_scm_1.0 -n 50_000 -o seen.parquet
                                              a world, as a file

    \b
    exit status: 0 all is well, 1 a page failed or the book has warnings,
                 2 the input breaks a rule, 130 interrupted
    """


@commands.command()
@click.argument("specification")
@click.option("-n", type=click.IntRange(1), required=True, help="Subjects.")
@click.option("--horizon", type=click.IntRange(1), default=7, show_default=True, help="Steps.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the world.")
@click.option(
    "--fit-seed", type=click.IntRange(0), default=0, show_default=True, help="Of the fit."
)
@click.option("--table", help="A CSV or Parquet file; Adult, if not given.")
@click.option(
    *("--do", "done"),
    type=(str, str, str),
    multiple=True,
    metavar="VARIABLE STEP VALUE",
    help="Set a variable at a step, or 'always'; may be given several times.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True)
def sample(
    specification: str,
    n: int,
    horizon: int,
    seed: int,
    fit_seed: int,
    table: str | None,
    done: tuple[tuple[str, str, str], ...],
    output: Path,
    workers: int,
) -> int:
    """Fit a SPECIFICATION to a table, follow subjects through time, and stream them to Parquet.

    It is a name from data/specs, or a YAML file. Memory stays constant, however many subjects
    there are. The file has one row a subject and step.

    \b
    examples:
      python -m lib sample income_scm_1.0 -n 50_000 --seed 1 -o seen.parquet
      python -m lib sample income_scm_1.0 -n 50_000 --seed 1 -o done.parquet
                       --do studies 1 "Full-time studies"
      python -m lib sample my_model.yml --table my_table.csv -n 1000 -o mine.parquet
    """
    from lib.income import fitted_simulator

    if not output.resolve().parent.is_dir():
        raise InputError(f"folder {output.resolve().parent} does not exist")
    for variable, step, _ in done:
        if step != "always" and not step.isdecimal():
            raise InputError(f"--do {variable}: step {step!r} is no number, nor always")
    simulator = fitted_simulator(specification, fit_seed, table=table)
    do: dict[str, dict[int | range, str | float]] = {}
    for variable, step, value in done:
        if simulator.kinds_.get(variable) is None:  # no levels: a number, or else it is refused
            with contextlib.suppress(ValueError):
                value = float(value)
        do.setdefault(variable, {})[range(horizon) if step == "always" else int(step)] = value

    def report(written) -> None:
        print("subjects written:", written["subject"].iloc[-1] + 1, file=sys.stderr)

    simulator.to_parquet(output, n, horizon, report=report, seed=seed, do=do, n_jobs=workers)
    print(f"{n:,} subjects × {horizon} steps: {output}")
    return 0


for _command in (book, run, pages):
    commands.add_command(_command)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line, by default with what was typed, and return its exit status."""
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        with commands.make_context("python -m lib", typed or ["--help"]) as context:
            status = commands.invoke(context)
            sys.stdout.flush()
            return status
    except click.exceptions.Exit as end:  # after --help
        return end.exit_code
    except BrokenPipeError:
        # Who read this, such as `head`, has read enough. Nothing more is said, at the end neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13  # as if by the signal SIGPIPE, of which the usual tools end
    except KeyboardInterrupt:
        print("interrupted: what was finished is kept; repeat the command", file=sys.stderr)
        return 130
    except click.ClickException as error:
        problem = error.format_message()
    except (InputError, OSError) as error:
        named = isinstance(error, OSError) and error.filename
        problem = f"{error.filename}: {error.strerror}" if named else error
    print(f"error: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    # To be asked to end is like Ctrl-C: stop the kernels first, leave nothing half-written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
