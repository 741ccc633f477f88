"""A real browser, for the tests of rendered pages; and what executed pages show."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from lib.book.editions import Run
from lib.book.running import run_page

CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), ""
)


@pytest.fixture(scope="module")
def browser():
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: install it from the system's packages")
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `test` is missing")
    quiet = ["background-networking", "component-update", "gpu", "sync", "dev-shm-usage"]
    arguments = ["--no-first-run", *(f"--disable-{feature}" for feature in quiet)]
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=arguments, chromium_sandbox=False
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    """Execute a notebook with values; return its run record, and the notebook."""

    def run(notebook: Path, values: dict) -> tuple[dict, NotebookNode]:
        output = tmp_path_factory.mktemp(notebook.stem) / notebook.name
        record = run_page(Run(notebook, output, values))
        assert record["status"] == "complete"
        return record, nbformat.read(output, 4)

    return run


@pytest.fixture(scope="session")
def shown():
    """Read the table that a cell shows: the name of a row → that of a column → number or text."""

    def read(notebook: NotebookNode, cell: str) -> dict[str, dict[str, float | str]]:
        (outputs,) = (one.outputs for one in notebook.cells if one.id == cell)
        html = [one.data["text/html"] for one in outputs if "text/html" in one.get("data", {})]
        rows = BeautifulSoup(html[-1], "html.parser").select("tr")
        names = [name.get_text().replace("\xa0", " ") for name in rows[0].select("th")]
        names = [re.sub(r" ± [^,]+", "", name) for name in names]
        table = {}
        for row in rows[1:]:
            values = [_as_number(value.get_text()) for value in row.select("td")]
            if values:
                labels = [label.get_text() for label in row.select("th")]
                table[", ".join(labels)] = dict(zip(names[-len(values) :], values, strict=True))
        return table

    return read


def _as_number(text: str) -> float | str:
    """Read a number, without the standard error behind it."""
    value = text.split("\xa0±\xa0")[0]
    plain = re.sub(r"[\s,\u202f\u2009]", "", value).replace("\N{MINUS SIGN}", "-")
    return float(plain) if re.fullmatch(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?|nan", plain) else text
