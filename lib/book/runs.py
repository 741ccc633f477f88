"""Runs of one's own become pages below `runs`: single ones, sweeps and comparisons.

Each run has a folder there, named after its notebook and the values that differ from the defaults.
It holds the executed notebook, its run record and its page. `runs/index.html` lists all runs.
"""

import itertools
import math
import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import t

from lib import plots
from lib.book.editions import BOOK, Book, Run, folder_name
from lib.book.parameters import as_source, read_notebook
from lib.book.rendering import TEMPLATES, Site
from lib.book.running import execute, read_record, why_stale
from lib.errors import check, check_names
from lib.files import file_lock, writable, write_bytes, write_text

#: More runs than this in one sweep are a mistake rather than a plan.
MOST_RUNS = 10_000

#: Columns that the table of a sweep and its figure have beside those of the parameters.
COLUMNS = {"number", "value", "unit", "standard_error", "lower", "upper", "panel", "series"}


def find_runs(book: Book) -> dict[str, dict[str, Any]]:
    """Return the records of all runs, by the name of their folder, the latest first."""
    # A damaged record is left out; its run is repeated when it is asked for.
    found = {}
    for path in book.runs.glob("*/*.json"):
        if record := read_record(path):
            failed = path.with_suffix(".failed.ipynb").exists()
            found[path.parent.name] = record | {"failed": failed}
    return dict(sorted(found.items(), key=lambda item: item[1]["started"], reverse=True))


def show(book: Book, run: Run | None = None, pages: Mapping[str, str] = {}) -> list[str]:
    """Render the page of a run, or other `pages`, and the list of all runs.

    `pages` maps the name of a folder to the Markdown of its page. Returns the renderer's warnings.
    """
    with file_lock(book.runs / ".lock"):
        site = Site(book.runs / ".staging", "Runs of one's own.", searched=False, book=book)
        shown = {run.page} if run else set(pages)
        records = find_runs(book)
        others = shown | {path.parent.name for path in book.runs.glob("*/index.html")}
        site.pages["index.md"] = TEMPLATES.get_template("runs.md").render(
            runs=records, pages=others, others=sorted(others - set(records))
        )
        site.pages |= {f"{folder}/index.md": text for folder, text in pages.items()}
        if run:
            site.add(f"{run.page}/index", run, "a run of its own")
        html, problems = site.render()
        # Pages are removed first and written last, so that a page has all the files that it shows.
        for folder in shown:
            _begin(book.runs / folder)
        if html.is_dir():  # else the renderer has crashed
            for but in (shutil.ignore_patterns("*.html"), None):
                shutil.copytree(html, book.runs, False, but, os.replace, dirs_exist_ok=True)
    return problems


def _begin(folder: Path) -> None:
    """Make a folder, and remove the page in it, whose files are about to be replaced."""
    writable(folder)
    (folder / "index.html").unlink(missing_ok=True)


# --- Sweeps -------------------------------------------------------------------------------------


def check_size(size: int) -> None:
    """Refuse a sweep of more than `MOST_RUNS` runs."""
    check(size <= MOST_RUNS, f"a sweep may have at most {MOST_RUNS:,} runs", size)


def sweep(
    notebook: str, grid: Mapping[str, Sequence[str]], workers: int | None = None, book: Book = BOOK
) -> tuple[Path | None, list[str]]:
    """Run a notebook with every combination of typed values, and tabulate its recorded numbers.

    Runs that are up to date are not repeated, and a run that fails does not stop the others.
    Returns a folder, or None if no number was recorded, and the problems. The folder has a tidy
    table of the numbers, as CSV and as Parquet, and a page with a figure of them.
    """
    for name, values in grid.items():
        check(bool(values), f"parameter {name!r} needs at least one value", values)
        check(name not in COLUMNS, "a swept parameter must not have the name of a column", name)
    check_size(math.prod(map(len, grid.values())))
    source, runs = book.notebook(notebook), {}
    for values in itertools.product(*grid.values()):
        run = Run(source, values=dict(zip(grid, values, strict=True)), book=book, as_text=True)
        runs[run.page] = run  # once, if two texts mean one value
    problems = execute([run for run in runs.values() if why_stale(run)], workers)
    rows = []
    for run in (one for one in runs.values() if not why_stale(one)):
        # The values in its record have been JSON, where a tuple is a list. Python counts a bool as
        # a number, but it is none on an axis.
        pairs = ((name, run.values[name]) for name in grid)  # noqa: PD011 - of no frame
        given = {k: v if type(v) in (float, int) else run.parameters[k].typed(v) for k, v in pairs}
        numbers = (read_record(run.record) or {}).get("numbers", {})
        rows += [{**given, "number": name, **found} for name, found in numbers.items()]
    if not rows:
        return None, [*problems, f"no run of {source.name} has recorded a number"]
    table = pd.DataFrame(rows)
    # Values that have no type of Parquet in common, such as 5 and None, become texts.
    table = table.astype({name: str for name in grid if table[name].dtype == object})
    # A sign that nobody types marks a + within a value. It gives the folder another digest.
    words = (f"{k}=" + "+".join(one.replace("+", "+\0") for one in v) for k, v in grid.items())
    where = book.runs / folder_name("sweep", run.called, *words)
    _begin(where)
    write_text(where / "numbers.csv", table.to_csv(index=False, lineterminator="\n"))
    write_bytes(where / "numbers.parquet", table.to_parquet(index=False))
    write_text(where / "sweep.svg", curves(table, list(grid)).svg())
    text = TEMPLATES.get_template("sweep.md").render(
        run=run, grid=grid, size=len(runs), table=table, problems=problems
    )
    return where, problems + show(book, pages={where.name: text})


def curves(table: pd.DataFrame, swept: Sequence[str]) -> plots.Drawing:
    """Draw recorded numbers against the first parameter that has several values and is no seed.

    `table` has the columns that :func:`sweep` writes. Numbers are averaged over seeds, with a 95 %
    interval of their mean by Student's t. Where runs do not differ, the interval is that of their
    own standard error. If nothing but seeds differs, each seed is a point.
    """
    several = [name for name in swept if len({*map(str, table[name])}) > 1] or swept[:1]
    x, *others = [name for name in several if not name.endswith("seed")] or several
    runs = table.groupby(["number", x, *others], sort=False)
    found = runs.agg({"value": "mean", "unit": "first", "standard_error": "first"})
    spread = t.ppf(0.975, runs["value"].count() - 1) * runs["value"].sem()
    own = plots.HALF_WIDTH * found["standard_error"].astype(float)
    reach = spread.where(spread > 0, own).fillna(0)
    drawn = found.assign(lower=found["value"] - reach, upper=found["value"] + reach).reset_index()
    drawn["panel"] = drawn["number"].str.replace("_", " ")
    drawn["series"] = [
        ", ".join(f"{name} = {row[name]}" for name in others) for _, row in drawn.iterrows()
    ]
    numeric = pd.api.types.is_numeric_dtype(drawn[x])
    shape: Callable[..., plots.Drawing] = plots.lines if numeric else plots.intervals
    options: dict[str, Any] = {"columns": 1 if drawn["panel"].nunique() <= 4 else 2}
    if numeric:  # but no line leads from one seed to the next
        options["look"] = {"marker": "o"} | ({"linestyle": ""} if x.endswith("seed") else {})
    else:  # a long text would leave no room
        drawn[x] = [s if len(s) < 40 else f"{s[:24]} … {s[-12:]}" for s in map(str, drawn[x])]
    return shape(drawn, x, f"Recorded numbers by {x}", shared=False, **options)


# --- Comparisons --------------------------------------------------------------------------------


def compare(names: Sequence[str], book: Book = BOOK) -> tuple[Path, list[str]]:
    """Make a page on two or more runs: how their inputs and numbers differ, and their figures.

    `names` are names of folders in `runs`. Differences are those from the first run, also in
    standard errors, as for independent runs. Returns the folder of the page, and the problems.
    """
    # A path to somewhere else is kept whole, so that it is not the name of any run.
    home, paths = book.runs.resolve(), map(Path, names)
    told = (one.name if one.parent.resolve() == home else str(one) for one in paths)
    names = list(dict.fromkeys(told))
    check(len(names) > 1, "a comparison needs at least two different runs", names)
    records = find_runs(book)
    check_names("run", names, records)
    runs = [records[name] for name in names]
    # Commas within the names separate words, too.
    where = book.runs / folder_name("comparison", *",".join(names).split(","))
    figures: dict[str, list[Any]] = {}
    _begin(where)
    for place, (name, run) in enumerate(zip(names, runs, strict=True), start=1):
        executed, _ = read_notebook(book.runs / name / f"{run['notebook']}.ipynb")
        for cell in executed.cells:
            about = cell.metadata.get("mystnb", {})
            data = {k: v for one in cell.get("outputs", []) for k, v in one.get("data", {}).items()}
            svg, png = (data.get(kind, "") for kind in ("image/svg+xml", "image/png"))
            if "figure" in about and (svg or png):
                figure = about.figure.get("name", cell.id)  # no name if it makes several pages
                file = f"{figure}-{place}.{'svg' if svg else 'png'}"
                write_bytes(where / file, svg.encode() or b64decode(png))
                figures.setdefault(figure, []).append((place, file, about))
    pages = [name for name in names if (book.runs / name / "index.html").exists()]
    sources = ({k: as_source(value) for k, value in run["parameters"].items()} for run in runs)
    given = pd.DataFrame(sources).fillna("").to_dict("list")
    # A file may be named by one run alone.
    inputs = pd.DataFrame(run["digests"] for run in runs).fillna("")
    apart = [*inputs.columns[(inputs != inputs.iloc[0]).any()]]
    text = TEMPLATES.get_template("comparison.md").render(
        names=names, runs=runs, given=given, apart=apart, figures=figures, pages=pages
    )
    return where, show(book, pages={where.name: text})
