"""A real browser, for the tests of rendered pages; and what executed pages show."""

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from lib import ROOT
from lib.book import rendering
from lib.book.editions import Run
from lib.book.parameters import marked, read_notebook, with_values
from lib.book.running import run_page

CHROMIUM = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), ""
)


# No longer than a module: as long as it is open, no other loop of events runs in this process.
@pytest.fixture(scope="module")
def browser():
    """A browser that reaches this machine alone."""
    if not CHROMIUM:
        pytest.skip("no Chromium on this machine: install it from the system's packages")
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra `test` is missing")
    quiet = ["background-networking", "component-update", "gpu", "sync", "dev-shm-usage"]
    arguments = ["--no-first-run", *(f"--disable-{feature}" for feature in quiet)]
    arguments.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=arguments, chromium_sandbox=False
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def executed(tmp_path_factory):
    """Execute a notebook with values; return its run record, and the notebook.

    Chapters are executed in forks of one process, in chapters.py: what differs from their pages is
    that figures are made and not written, unless `figures` are asked for. Where processes do not
    fork, they have kernels. What the imports of that process say is said by every chapter.
    """
    said = tmp_path_factory.mktemp("chapters") / "stderr"

    def run(notebook: Path, values: dict, figures: bool = False) -> tuple[dict, NotebookNode]:
        asked = Run(notebook, tmp_path_factory.mktemp(notebook.stem) / notebook.name, values)
        if sys.platform != "linux":
            record = run_page(asked)
            assert record["status"] == "complete"
            return record, nbformat.read(asked.output, 4)
        source, cell = read_notebook(notebook)
        cell.source = with_values(cell.source, asked.values)
        code = [cell for cell in source.cells if cell.cell_type == "code"]
        order = {"folder": str(asked.folder), "cells": [cell.source for cell in code]}
        answer = ask(order | {"figures": figures})
        assert answer, said.read_text()
        found = json.loads(answer)
        assert found["error"] is None, found["error"]
        assert found["crowded"] == []
        for cell, outputs in zip(code, found["outputs"], strict=True):
            cell.outputs = nbformat.from_dict(outputs)
        numbers = {
            mark.name: json.loads(output.data[f"{mark.mime_prefix}application/json"])
            for mark, output in marked(source, "scrapbook")
            if f"{mark.mime_prefix}application/json" in output.data
        }
        imports = [{"cell": 0, "text": text}] if (text := said.read_text()) else []
        record = {"parameters": asked.values, "numbers": numbers}
        return record | {"status": "complete", "stderr": imports + found["stderr"]}, source

    with _served("chapters.py", said, MPLBACKEND="agg") as ask:
        yield run


@contextlib.contextmanager
def _served(program: str, said: Path, **environment: str) -> Iterator[Callable[[dict], str]]:
    """Give what asks a process, one line for one line, that starts when it is asked for first."""
    folders = [str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH")]
    path = os.pathsep.join(filter(None, folders))
    servers = []
    # As in lib.book.kernels: from Python 3.12 on, a fork of a process with threads gives a warning.
    quiet = "-Wignore:This process:DeprecationWarning"

    def ask(order: dict) -> str:
        if not servers:
            with said.open("w") as errors:
                server = subprocess.Popen(
                    [sys.executable, quiet, Path(__file__).with_name(program)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | environment,
                    encoding="utf-8",
                )
            servers.append(server)
        print(json.dumps(order), file=servers[0].stdin, flush=True)
        return servers[0].stdout.readline()

    yield ask
    for server in servers:
        server.stdin.close()
        server.wait()


@pytest.fixture(scope="session")
def forked(tmp_path_factory):
    """What `subprocess.run` does for the renderer, in a fork of one process, in renderer.py."""
    folder = tmp_path_factory.mktemp("rendered")
    streams = [folder / name for name in ("stdout", "stderr")]

    def run(command: list[str], stdin, capture_output, **text) -> subprocess.CompletedProcess:
        assert command[:2] == [sys.executable, "-c"]
        assert (stdin, capture_output) == (subprocess.DEVNULL, True)
        order = {"words": command[2:], "streams": [*map(str, streams)]}
        order |= {"environment": {**os.environ}, "folder": os.getcwd()}
        answer = ask(order)
        assert answer, (folder / "imports").read_text()
        said = [stream.read_text(**text) for stream in streams]
        return subprocess.CompletedProcess(command, int(answer), *said)

    with _served("renderer.py", folder / "imports") as ask:
        yield SimpleNamespace(run=run, DEVNULL=subprocess.DEVNULL)


@pytest.fixture(scope="module", autouse=True)
def rendered_in_forks(forked):
    """Have pages rendered in forks, but by modules that have a fixture of this name themselves."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.platform == "linux":
            patch.setattr(rendering, "subprocess", forked)
        yield


class Entry(float):
    """A number of a table, with the standard error behind it, missing if there is none."""

    error = math.nan


@pytest.fixture(scope="session")
def shown():
    """Read the table that a cell shows: the names of a row → that of a column → number or text.

    A name that is written once for several rows is that of each; numbers have their `error`.
    """

    def read(notebook: NotebookNode, cell: str) -> dict[str, dict[str, Entry | str]]:
        (outputs,) = (one.outputs for one in notebook.cells if one.id == cell)
        html = [one.data["text/html"] for one in outputs if "text/html" in one.get("data", {})]
        lines = BeautifulSoup(html[-1], "html.parser").select("tr")
        head, *rows = ([*line.select("th, td")] for line in lines)
        labels = max((sum(cell.name == "th" for cell in row) for row in rows), default=0)
        names = [one.get_text().replace("\xa0", " ") for one in head[labels:]]
        names = [re.sub(r" ± [^,]+", "", name) for name in names]
        table, above = {}, [""] * labels
        for row in rows:
            texts = [one.get_text() for one in row]
            above = [text or name for text, name in zip(texts, above, strict=False)]
            values = map(_entry, texts[labels:])
            table[", ".join(filter(None, above))] = dict(zip(names, values, strict=True))
        assert not labels or len(table) == len(rows), "each row has a name of its own"
        return table

    return read


def _entry(text: str) -> Entry | str:
    """Read a number, and the standard error behind it; what is none stays text."""
    value, *error = map(_plain, text.split("\xa0±\xa0"))
    if value is None:
        return text
    entry = Entry(value)
    entry.error = math.nan if error in ([], [None]) else error[0]
    return entry


def _plain(text: str) -> float | None:
    plain = re.sub(r"[\s,\u202f\u2009]", "", text).replace("\N{MINUS SIGN}", "-")
    return float(plain) if re.fullmatch(r"[-+]?\d+(\.\d*)?(e[-+]?\d+)?|nan", plain) else None
