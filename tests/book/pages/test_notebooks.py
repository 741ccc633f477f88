"""Every notebook runs with few subjects, and its source is in order."""

import ast
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import yaml

from lib.book.editions import Book, load_edition
from lib.book.parameters import Parameter, checked, read_notebook, read_parameters
from lib.book.running import read_record, why_stale
from lib.income import SPECIFICATIONS

NOTEBOOKS = sorted(Book().notebooks.glob("*.ipynb"))
QUICK, DEFAULT = (load_edition(name).runs for name in ("quick", "default"))
#: Those that have exercises; the others are for looking things up.
TAUGHT = [path for path in NOTEBOOKS if path.stem not in ("findings", "numbers")]
PROSE = sorted(Book().root.glob("book/*.md"))


def prose_of(cells: list[nbformat.NotebookNode]) -> str:
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    return read_parameters(read_notebook(notebook)[1].source)


@pytest.fixture(scope="module", params=QUICK, ids="page {}".format)
def page(request, executed):
    """The record of a page with few subjects, or its own defaults, and what was executed.

    Pages that were just made need not be made again; the chapters' own tests run them with yet
    other values.
    """
    editions = [runs[request.param] for runs in (QUICK, DEFAULT)]
    run = next((run for run in editions if why_stale(run) is None), None)
    if run is None:
        return executed(editions[0].notebook, editions[0].values, figures=True)
    return read_record(run.record), nbformat.read(run.output, 4)


def test_every_notebook_is_a_page():
    assert {run.notebook for run in QUICK.values()} == {*NOTEBOOKS}


def test_page_is_whole(page):
    record, executed = page
    assert record["status"] == "complete"
    assert record["stderr"] == [], "a warning that a reader would have to wonder about"
    cells = executed.cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    frames = [
        cell.id
        for cell in code
        for result in cell.outputs
        if 'class="dataframe"' in result.get("data", {}).get("text/html", "")
    ]
    assert frames == [], "a table that is not typeset"
    figures = [
        (cell, data)
        for cell in code
        for data in (result.get("data", {}) for result in cell.outputs)
        if any(kind.startswith("image/") for kind in data)
    ]
    assert figures
    for cell, data in figures:
        # Pages show the SVG; Jupyter shows no SVG of a notebook that it does not trust.
        assert {"image/svg+xml", "image/png"} <= {*data}
        assert cell.metadata["mystnb"]["figure"]["caption"], "a figure without a caption"
        assert cell.metadata["mystnb"]["image"]["alt"], "a figure without a text for the blind"
    marks = [
        result.get("metadata", {}).get("scrapbook") for cell in code for result in cell.outputs
    ]
    names = [mark["name"] for mark in marks if mark]
    assert len(names) == len(set(names)), "a name stands for one number"
    assert names == list(record["numbers"]) != [], "a page has numbers that count"
    prose = prose_of(cells)
    assert set(re.findall(r"\{glue:text\}`(\w+)`", prose)) <= set(names), "a number not recorded"
    for number in record["numbers"].values():
        assert math.isfinite(number["value"])
        assert number["standard_error"] is None or 0 <= number["standard_error"] < math.inf


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_source_holds_no_results(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", TAUGHT, ids=lambda path: path.stem)
def test_exercises_are_graded_and_solved_and_five_sentences_remain(path):
    cells = nbformat.read(path, 4).cells
    texts = [cell.source for cell in cells]
    assert "## Exercises" in texts, "a heading in a cell of its own, before the exercises"
    start, grades = texts.index("## Exercises"), []
    end = next(place for place in range(start + 1, len(texts)) if texts[place].startswith("## "))
    for before, cell in pairwise(cells[start:end]):
        if cell.cell_type == "code":
            assert "\n:::{dropdown} Solution\n" in before.source
            hidden = {"source_hidden": True, "outputs_hidden": True}
            assert cell.metadata == {"tags": ["solution"], "jupyter": hidden}
            continue
        form = rf"\*\*{len(grades) + 1}\. [^*]+\*\* \*\((warm-up|core|project)\)\*\. "
        title = re.match(form, cell.source)
        assert title, cell.source[:80]
        grades.append(["warm-up", "core", "project"].index(title[1]))
        assert cell.source.count("\n:::{dropdown} Solution\n") == 1
        assert cell.source.endswith("\n:::"), "the solution is the last part of its cell"
        assert "```python" not in cell.source, "programs of solutions are cells, which run"
    assert grades == sorted(grades)
    assert texts[-1].startswith("## Where to go from here\n")
    assert re.fullmatch(r"## What to remember\n\n(- [^\n]+\.(\n|$)){5}", texts[end])
    assert not re.search(r"\. ", texts[end]), "each is one sentence"
    assert end == len(texts) - 2
    assert 4 <= len(grades) <= 6
    assert {*grades} == {0, 1, 2}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_names_a_colour(path):
    """What has a name has its colour in the whole book: see `COLOUR_OF` of `lib.plots`."""
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            assert not re.search(r"""["']colou?r["']:|COLOURS|#[0-9A-Fa-f]{6}""", cell.source)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_variables_stand_in_the_order_of_the_specification(path):
    specification = (SPECIFICATIONS / "income_scm_1.0.yml").read_text(encoding="utf-8")
    order = [*yaml.safe_load(specification)["variables"]]
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", []):
            for node in ast.walk(ast.parse(cell.source)):
                values = getattr(node, "elts", None) or getattr(node, "keys", None) or []
                named = [value.value for value in values if isinstance(value, ast.Constant)]
                if {*named} <= {*order}:
                    assert named == sorted(named, key=order.index), f"in cell {cell.id}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_line_of_code_is_wider_than_a_page(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = (cell for cell in cells if cell["cell_type"] == "code")
    lines = (line.rstrip("\n") for cell in code for line in cell["source"])
    assert [line for line in lines if len(line) > 79] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_is_longer_than_a_screen(path):
    """A cell does one thing: what it needs is defined before it, or stands in `lib`."""
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code" and not {"parameters", "imports"} & {
            *cell.metadata.get("tags", [])
        }:
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 25, f"in cell {cell.id}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_parameters_say_what_they_mean(path):
    parameters = parameters_of(path)
    for parameter in parameters.values():
        assert parameter.help, f"{parameter.name} has no comment"
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert checked(parameters, defaults) == defaults, "a default breaks a rule of its own"


@pytest.mark.parametrize("path", [*NOTEBOOKS, *PROSE], ids=lambda path: path.stem)
def test_thousands_in_prose_are_never_parted_by_a_line(path):
    """A narrow space that does not break stands between them, as in every table."""
    is_notebook = path.suffix == ".ipynb"
    text = prose_of(nbformat.read(path, 4).cells) if is_notebook else path.read_text("utf-8")
    found = re.findall(r"(?<![-\d])\d{1,3} \d{3}\b", text)
    assert not found, found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_measures_time(path):
    """Times differ from run to run: they belong into run records, and pages repeat byte by byte."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            clock = re.search(
                r"\b(seconds|timeit|perf_counter|process_time|import time|datetime)\b|%time",
                "".join(cell["source"]),
            )
            assert clock is None, f"{clock[0]} in cell {cell['id']}"


@pytest.mark.parametrize(
    "name",
    [
        "analysis",
        "causal_queries",
        "coverage",
        "effect_data",
        "estimator_benchmark",
        "findings",
        "other_libraries",
        "published_sample",
        "simulator_fitting",
        "stress_tests",
        "treatments_over_time",
        "worlds",
    ],
)
def test_a_page_with_an_average_effect_of_its_own_names_the_one_to_quote(name):
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    assert "(numbers.ipynb)" in prose_of(nbformat.read(path, 4).cells)
