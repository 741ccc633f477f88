"""*Run All* in Jupyter, and papermill by itself, show what the book shows, cell by cell.

So does what executes chapters for the other tests, but for the files of figures if nobody asks.
"""

import copy
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from lib.book.editions import BOOK, Run
from lib.book.parameters import read_notebook, read_parameters
from lib.book.running import run_page

NOTEBOOK = BOOK.notebook("adding_a_theme")


def shown(path):
    """What each cell of code shows, but for its error stream, which no page has."""
    return shows(nbformat.read(path, 4))


def shows(notebook):
    cells = []
    for cell in notebook.cells:
        if "injected-parameters" in cell.metadata.get("tags", []):
            continue  # papermill adds it; the book writes values where they are explained
        outputs = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
        # A stream comes in as many pieces as the time that it took had it.
        said = "".join(one.text for one in outputs if one.output_type == "stream")
        others = [one.data for one in outputs if one.output_type != "stream"]
        cells.append((cell.source, said, others))
    return cells


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of the book, with the defaults of its notebook."""
    output = tmp_path_factory.mktemp("book") / "page.ipynb"
    run_page(Run(NOTEBOOK, output))
    return shown(output)


def test_run_all_shows_what_the_book_shows(page, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # the book gives a page one core
    # As JupyterLab does, the kernel starts in the folder of the notebook.
    there = {"metadata": {"path": str(NOTEBOOK.parent)}}
    client = NotebookClient(nbformat.read(NOTEBOOK, 4), resources=there, kernel_name="python3")
    nbformat.write(client.execute(), tmp_path / "out.ipynb")
    assert shown(tmp_path / "out.ipynb") == page


def test_papermill_from_any_folder_shows_what_the_book_shows(page, tmp_path):
    seed = read_parameters(read_notebook(NOTEBOOK)[1].source)["seed"].default
    command = [sys.executable, "-m", "papermill", str(NOTEBOOK), "out.ipynb", "-k", "python3"]
    command += ["-p", "seed", str(seed), "--no-progress-bar"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert shown(tmp_path / "out.ipynb") == page
    executed = nbformat.read(tmp_path / "out.ipynb", 4)
    assert executed.metadata.papermill.parameters == {"seed": seed}


def test_chapters_in_tests_show_what_the_book_shows(page, executed):
    assert shows(executed(NOTEBOOK, {}, figures=True)[1]) == page


def test_chapters_in_tests_show_all_but_figures_where_these_are_not_asked_for(page, executed):
    without = copy.deepcopy(page)
    for *_, others in without:
        for one in others:
            for kind in ("image/png", "image/svg+xml"):
                one.pop(kind, None)
    assert shows(executed(NOTEBOOK, {})[1]) == without


def test_there_is_something_to_compare(page):
    drawn = [shows for _, _, shows in page for one in shows if "image/png" in one]
    tables = [shows for _, _, shows in page for one in shows if "text/html" in one]
    assert drawn and tables
