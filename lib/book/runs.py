"""Runs of one's own become pages below `runs`: single ones, sweeps and comparisons.

A run has a folder there, named by its notebook and what differs from the defaults. In it are the
executed notebook, its run record and its page. `runs/index.html` lists them all.
"""

import itertools
import math
import shutil
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib import plots
from lib.book.editions import BOOK, Book, Run, folder_name
from lib.book.parameters import read_notebook
from lib.book.recorded import Number
from lib.book.rendering import TEMPLATES, Site
from lib.book.running import execute, read_record, why_stale
from lib.errors import check, check_known
from lib.files import atomic_write, copy, file_lock, writable, write_parquet, write_text

#: More runs than these in one sweep are a mistake rather than a plan.
MOST_RUNS = 10_000


def find_runs(book: Book) -> dict[str, dict[str, Any]]:
    """Return the records of all runs, by the name of their folder, the latest first."""
    # One that is damaged is run again, when it is asked for.
    records = ((path.parent.name, read_record(path)) for path in book.runs.glob("*/*.json"))
    found = [(folder, record) for folder, record in records if record]
    return dict(sorted(found, key=lambda item: item[1]["started"], reverse=True))


def show(
    book: Book, run: Run | None = None, pages: Mapping[str, str] = {}, files: Mapping = {}
) -> list[str]:
    """Render the page of a run, or of a text of its own, and the list of all runs.

    `pages` are Markdown by the name of their folder, and `files` what stands beside them. Returns
    the warnings of the renderer.
    """
    with file_lock(book.runs / ".lock"):
        about = "Runs with values of one's own."
        site = Site(book.runs / ".staging", about, book=book, searched=False)
        site.files |= files
        site.pages |= {f"{folder}/index.md": text for folder, text in pages.items()}
        if run:
            site.add(f"{run.page}/index", run, "a run of its own")
        shown = [Path(name).parent.name for name in site.pages]
        records = find_runs(book)
        others = {path.parent.name for path in book.runs.glob("*/index.html")} | set(shown)
        site.pages["index.md"] = TEMPLATES.get_template("runs.md").render(
            runs=records,
            pages=others,
            others=sorted(others - set(records)),
        )
        contents = {"format": "jb-book", "root": "index"}
        chapters = {"chapters": [{"file": f"{folder}/index"} for folder in shown]}
        html, problems = site.render(contents | (chapters if shown else {}))
        # The pages themselves last: where one is, all that it shows is there.
        for but in (shutil.ignore_patterns("index.html"), None):
            shutil.copytree(html, book.runs, ignore=but, dirs_exist_ok=True, copy_function=copy)
    return problems


# --- Sweeps -------------------------------------------------------------------------------------


def sweep(
    notebook: str,
    grid: Mapping[str, Sequence[str]],
    workers: int = 2,
    numbers: Collection[str] = (),
    folder: Path | None = None,
    book: Book = BOOK,
) -> tuple[Path | None, list[str]]:
    """Run a notebook with every combination of values, as they are typed; tabulate its numbers.

    What is there already is not run again, and a run that fails stops no other. The folder that is
    returned has a table of the recorded numbers, tidy, as CSV and as Parquet, and a page with a
    figure of the `numbers` named, or of all. Problems are returned, too.
    """
    for name, values in grid.items():
        check(bool(values), f"parameter {name!r} needs a value at least", values)
    size = math.prod(map(len, grid.values()))
    check(size <= MOST_RUNS, f"a sweep may have at most {MOST_RUNS:,} runs", size)
    source = book.notebook(notebook)
    points = (dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    every = (Run(source, None, point, folder, book, as_text=True) for point in points)
    runs = {run.page: run for run in every}  # once, where two texts are one value
    problems = execute([run for run in runs.values() if why_stale(run)], workers)
    table = pd.DataFrame(
        {**run.given(grid), "number": number, **found}
        for run in runs.values()
        if not why_stale(run)
        for number, found in read_record(run)["numbers"].items()
    )
    if table.empty:
        return None, [*problems, f"no run of {source.name} has recorded a number"]
    for number in numbers:
        check_known("recorded number", number, table["number"].unique())
    words = (f"{name}={'+'.join(values)}" for name, values in grid.items())
    name = folder_name("sweep", source.stem, *words)
    where = book.runs / name
    writable(where)
    write_text(where / "numbers.csv", table.to_csv(index=False, lineterminator="\n"))
    with atomic_write(where / "numbers.parquet") as beside:
        write_parquet(beside, [table])
    drawn = table[table["number"].isin(numbers)] if numbers else table
    text = TEMPLATES.get_template("sweep.md").render(
        run=next(iter(runs.values())), grid=grid, size=len(runs), table=table, problems=problems
    )
    files = {f"{name}/sweep.svg": curves(drawn, list(grid)).svg().encode()}
    return where, problems + show(book, pages={name: text}, files=files)


def curves(table: pd.DataFrame, swept: Sequence[str]) -> plots.Drawing:
    """Draw recorded numbers against the first parameter that was swept and is no seed.

    `table` has the columns that :func:`sweep` writes. Seeds are averaged over, and an interval of
    95 % is that of their mean; where runs do not differ, it is that of their own standard error.
    """
    seeds = [name for name in swept if name.endswith("seed")]
    x, *others = [name for name in swept if name not in seeds] or seeds
    others = [name for name in others if len(table[name].astype(str).unique()) > 1]
    runs = table.groupby(["number", x, *others], sort=False)
    found = runs.agg(
        value=("value", "mean"), unit=("unit", "first"), error=("standard_error", "first")
    )
    several = runs["value"].sem()
    reach = plots.HALF_WIDTH * several.where(several > 0, found["error"].astype(float)).fillna(0)
    drawn = found.assign(lower=found["value"] - reach, upper=found["value"] + reach).reset_index()
    drawn["panel"] = drawn["number"].str.replace("_", " ")
    drawn["series"] = [
        ", ".join(f"{name} = {row[name]}" for name in others) for _, row in drawn.iterrows()
    ]
    shape = plots.lines if pd.api.types.is_numeric_dtype(drawn[x]) else plots.intervals
    look = {"look": {"marker": "o"}} if shape is plots.lines else {}
    columns = 1 if drawn["panel"].nunique() <= 4 else 2
    return shape(drawn, x, f"What changes with {x}", columns=columns, shared=False, **look)


# --- Comparisons --------------------------------------------------------------------------------


def compare(names: Sequence[str], book: Book = BOOK) -> tuple[Path, list[str]]:
    """Make a page of two runs or more: what differs between them, in and out, and their figures.

    `names` are those of folders in `runs`. Differences are those from the first run, also in
    standard errors, as of independent runs. Returns the folder of the page, and problems.
    """
    names = list(dict.fromkeys(Path(name).name for name in names))
    check(len(names) > 1, "a comparison needs two runs at least", names)
    records = find_runs(book)
    for name in names:
        check_known("run", name, records)
    first, *_ = runs = [records[name] for name in names]
    parameters = {
        name: [run["parameters"].get(name) for run in runs] for name in first["parameters"]
    }
    numbers = {
        name: [Number(**run["numbers"][name]) if name in run["numbers"] else None for run in runs]
        for name in dict.fromkeys(name for run in runs for name in run["numbers"])
    }
    folder, files, figures = folder_name("comparison", *names), {}, {}
    for place, (name, run) in enumerate(zip(names, runs, strict=True), start=1):
        executed, _ = read_notebook(book.runs / name / f"{run['notebook']}.ipynb")
        for cell in executed.cells:
            about = cell.metadata.get("mystnb", {}).get("figure")
            data = {k: v for one in cell.get("outputs", []) for k, v in one.get("data", {}).items()}
            kind = "svg+xml" if "image/svg+xml" in data else "png"
            if about and (image := data.get(f"image/{kind}")):
                figure = about.get("name", cell.id)  # none where one notebook makes several pages
                file = f"{figure}-{place}.{kind[:3]}"
                files[f"{folder}/{file}"] = b64decode(image) if kind == "png" else image.encode()
                alt = cell.metadata["mystnb"]["image"]["alt"]
                figures.setdefault(figure, []).append((place, file, about["caption"], alt))
    text = TEMPLATES.get_template("comparison.md").render(
        names=names,
        runs=runs,
        parameters=parameters,
        numbers=numbers,
        figures=figures,
        pages=[name for name in names if (book.runs / name / "index.html").exists()],
    )
    return book.runs / folder, show(book, pages={folder: text}, files=files)
