"""A book small enough to run in a test: two short notebooks, one edition, its own folders.

And what keeps processes and workers from doing the same twice.
"""

import os
import re

import lib.book  # noqa: F401 - before nbformat, of which it leaves out what takes long

# Before anything is imported that reads it. A worker of the tests takes one core, as a page does:
# threads that wait for a core which another worker holds cost more time than they save.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import importing
import nbformat
import pytest
from hypothesis import settings

from lib.book.editions import BOOK, Book

# The same cases each time, as for all tests: other ones are tried where ``EXAMPLES`` asks for them.
settings.register_profile("repeatable", derandomize=True, database=None)
settings.load_profile("repeatable")

CONFIG = """\
title: Sums
only_build_toc_files: true
execute: {execute_notebooks: 'off'}
sphinx: {config: {html_theme_options: {}}}
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage neither while tests are collected nor, later, in what is there by then."""
    with importing.much():
        return (yield)


#: Modules whose tests import the same for seconds: Inspect, verifiers, and what these import.
OF_LANGUAGE_MODELS = {
    "tests/ccr/test_inspect_task.py",
    "tests/ccr/test_verifiers_taskset.py",
    "tests/test_causal_benchmark_book.py",
}


def sharing(test: str) -> str:
    """Say with which others a test shares fixtures: those of its module, or those of its page."""
    module, page = test.partition("::")[0], re.search(r"[\[-](page \w+)(-\w+)?\]$", test)
    if module in OF_LANGUAGE_MODELS:
        return "tests of language models"
    return f"{module} {page[1]}" if page else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Have one worker do what shares fixtures, and the dear modules first, which stand first.

    Otherwise, workers make the fixtures of a module again, each for itself. Marks named
    `xdist_group` do nothing where pytest is newer than what xdist knows of it, and nobody is told.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OfFixtures(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return sharing(nodeid)

    if config.getvalue("dist") in {"load", "loadgroup"}:
        config.option.loadscopereorder = False
        return OfFixtures(config, log)
    return None


@pytest.fixture(scope="session")
def few_of_adult():
    """A small part of Adult, quickly fitted; rare levels that it lacks cannot be learned."""
    from lib.adult import load_adult

    table = load_adult().sample(1_000, random_state=0, ignore_index=True)
    for name in table.select_dtypes("category"):
        if name != "education":  # the specification's mechanisms need all of its levels
            table[name] = table[name].cat.remove_unused_categories()
    return table


class TinyBook(Book):
    """A book in a folder of its own, with a way to add notebooks and editions."""

    def add_notebook(self, name: str, parameters: str, *cells: str) -> Path:
        """Write a notebook with a parameters cell and cells of code."""
        tagged = nbformat.v4.new_code_cell(
            parameters, metadata={"tags": ["parameters"]}, id="parameters"
        )
        code = [nbformat.v4.new_code_cell(cell, id=f"cell{n}") for n, cell in enumerate(cells)]
        # A kernel that nobody has: whoever wrote the notebook may have called theirs anything.
        kernel = {"name": "my-kernel", "display_name": "Mine", "language": "python"}
        notebook = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_markdown_cell(f"# {name}\n{{n}}", id="title"),
                tagged,
                *code,
            ],
            metadata={"kernelspec": kernel},
        )
        path = self.notebooks / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    def add_edition(self, name: str, text: str) -> Path:
        """Write the YAML of an edition."""
        path = self.editions / f"{name}.yml"
        path.write_text(text, encoding="utf-8")
        return path

    def stand_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the commands work on this book."""
        for name, place in vars(self).items():
            monkeypatch.setattr(BOOK, name, place)


@pytest.fixture(scope="session")
def make_tiny_book():
    """Make a book in an empty folder."""

    def make(root: Path) -> TinyBook:
        book = TinyBook(root)
        folders = [book.notebooks, book.editions, book.executed / "default", root / "lib"]
        for folder in [*folders, book.prose / "assets"]:
            folder.mkdir(parents=True)
        (root / "lib" / "code.py").write_text("one = 1\n")
        (root / "references.bib").write_text("")
        (root / "_config.yml").write_text(CONFIG)
        book.add_notebook(
            "sums", "n: int = 3  # terms\ntitle: str = 'Sum'", "print(title, sum(range(n)))"
        )
        book.add_edition(
            "default",
            "about: A sum.\npages: [{page: small_sum, notebook: sums, parameters: {n: 5}}]\n",
        )
        return book

    return make


@pytest.fixture
def tiny_book(make_tiny_book, tmp_path):
    return make_tiny_book(tmp_path)
