"""What the chapters on tasks, themes and sets say of themselves, and of what was published."""

import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from lib import ROOT
from lib.book.editions import BOOK
from lib.ccr.static_data_sets import CONFIGURATIONS

COLOUR = '\nlighthouses: "#123456"\n'


def cells(page):
    return {cell.id: cell.source for cell in nbformat.read(BOOK.notebook(page), 4).cells}


@pytest.mark.parametrize("samples", [1, 40])
def test_a_set_of_few_prompts_takes_memory(executed, samples):
    values = {"n_tasks": 1, "n_samples": samples, "n_per_bcc": [2], "least_pns": 0.0}
    page = executed(BOOK.notebook("task_generation"), values | {"balance": 0.0})[1]
    ((said,),) = (
        [o.data["text/markdown"] for o in c.outputs] for c in page.cells if c.id == "code-24"
    )
    normalised, flat = map(float, re.findall(r"take ([\d.]+) MB", said))
    assert normalised > 0
    assert flat > 0


def test_a_set_has_the_published_graphs_that_are_said():
    """By `generate_flu_vaccine.ipynb` of its authors, commit 21b5620."""
    said = " ".join(cells("static_data_sets")["text-05"].split())
    published = [json.loads(graph) for graph in re.findall(r"\[\d, \d, \d\]", said)]
    assert published == [[6, 4, 6], [7, 5, 7], [8, 6, 8]]
    assert CONFIGURATIONS["flu_vaccine_v0"]["graphs"] == published
    notes = CONFIGURATIONS["clinical_notes_v0"]
    assert notes["graphs"] == [[3, 3, 3], [4, 4, 4]], "its graphs, too"


@pytest.fixture
def copy(tmp_path):
    """Give the theme of the chapter a file of its own, in a copy; say what the tests say of it."""
    for folder in ("lib", "data", "tests"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    source = cells("adding_a_theme")
    module = "\n\n".join(
        ["import re", "from lib.ccr.theme import Draw, Node, Theme, counted, only"]
        + [source[cell] for cell in ("words", "writer", "code-04")]
        + ["THEME = Lighthouses()\n"]
    )
    (command,) = re.findall(r"\$ (python -m pytest .*)", source["text-15"])
    *paths, chosen = re.fullmatch(r"python -m pytest (\S+) (\S+) -k \"(.+)\"", command).groups()

    def asked(told, colours=""):
        (tmp_path / "lib/ccr/themes/lighthouses.py").write_text(told(module), encoding="utf-8")
        with (tmp_path / "lib/colours.yml").open("a", encoding="utf-8") as file:
            file.write(colours)
        run = [sys.executable, "-m", "pytest", "-n", "0", "-q", *paths, "-k", chosen]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        environment["CAUSAL_BENCHMARK_BOOK_CACHE"] = str(tmp_path / "results")
        said = {"capture_output": True, "text": True, "check": False}
        done = subprocess.run(
            [*run, "-p", "no:cacheprovider"], cwd=tmp_path, env=environment, **said
        )
        return set(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)), done

    return asked


def test_a_theme_in_the_folder_needs_names_and_a_colour_and_nothing_else(copy):
    missing, _ = copy(str)
    assert missing == {
        "test_the_reader_gives_the_labels_of_a_chain_of_more_than_100_nodes",
        "test_what_may_stand_in_one_figure_has_colours_that_differ",
    }
    named = "draw.some(PLACES, n)", "draw.people(n)"
    nothing, done = copy(lambda module: module.replace(*named), COLOUR)
    assert nothing == set() and done.returncode == 0, done.stdout
