"""Sheets of exercises: students get the questions, teachers what solves them."""

import json

import nbformat.v4 as v4
import pytest
from bs4 import BeautifulSoup

from lib.book.building import build, make_sheets
from lib.book.reading import exercises
from lib.book.rendering import Site
from lib.errors import InputError
from lib.files import file_lock

CELLS = [
    ("markdown", "# Sums\n\nA tale."),
    ("code", "n: int = 3  # terms"),
    ("markdown", "More of it.\n\n## Exercises\n\n**1. Six** Six by seven?"),
    ("markdown", "**2. Seven** Why?\n\n:::{dropdown} Solution\nBecause.\n:::"),
    ("code", "print('computed', 6 * 7)"),
    ("markdown", "## What to remember\n\nAll."),
    ("code", "'the end'"),
]


@pytest.fixture
def taught(tiny_book):
    cells = [getattr(v4, f"new_{kind}_cell")(source) for kind, source in CELLS]
    cells[1].metadata.tags, cells[4].metadata.tags = ["parameters"], ["solution"]
    python = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = v4.new_notebook(cells=cells, metadata=python)
    (tiny_book.notebooks / "taught.ipynb").write_text(json.dumps(notebook))
    tiny_book.add_edition("default", "about: Sums.\ntitle: All sums\npages: [sums, taught]\n")
    return tiny_book


def test_sheets_are_made_of_executed_pages(taught):
    with pytest.raises(InputError, match="--edition default` first; page sums has not been run"):
        make_sheets(book=taught)
    assert build(book=taught, render=False).problems == []
    folders, problems = make_sheets(book=taught)
    assert problems == []
    assert [folder.name for folder in folders] == ["default-students", "default-teachers"]
    said = []
    for folder in folders:
        index, sheet = (
            BeautifulSoup((folder / name).read_text(), "html.parser").find("article")
            for name in ("index.html", "exercises_taught.html")
        )
        assert [link.text for link in index.select("li a")] == ["Sums: exercises"]
        assert not sheet.select("details:not([open])")
        said.append(" ".join(sheet.get_text().split()))
    assert "Some of them use what the chapter shows. 1. Six Six by seven?" in said[0]
    assert "Six by seven? 2. Seven Why?" in said[0]
    assert "Solution" not in said[0]
    assert "computed" not in said[0]
    assert "Solution Because. print('computed', 6 * 7) computed 42" in said[1]
    assert not any("tale" in text or "end" in text for text in said)


def test_sheets_of_pages_that_have_changed_are_called_so(taught, monkeypatch):
    build(book=taught, render=False)
    monkeypatch.setattr(Site, "publish", lambda *_: [])
    assert make_sheets(book=taught)[1] == []
    (taught.root / "lib" / "code.py").write_text("one = 2\n")
    changed = [f"{page} is not up to date: lib changed" for page in ("sums", "taught")]
    assert make_sheets(book=taught)[1] == changed


def test_sheets_wait_for_nobody_and_disturb_nobody(taught):
    with (
        file_lock(taught.executed / "default" / ".lock"),
        pytest.raises(InputError, match="another build is running in"),
    ):
        make_sheets(book=taught)


def test_exercises_end_with_their_section():
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(text) for _, text in CELLS])
    assert exercises(notebook).cells[0].source == "**1. Six** Six by seven?"
    assert exercises(notebook).cells[-1].source == CELLS[4][1]
    without = v4.new_notebook(cells=notebook.cells[:2])
    assert exercises(without).cells == []
