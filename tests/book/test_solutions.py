"""A program that solves an exercise is folded with the words about it."""

import nbformat
import nbformat.v4 as v4
import pytest
from bs4 import BeautifulSoup

from lib.book.rendering import Site

EXERCISE = "# Exercises\n\n**1.** Six by seven?\n\n:::{dropdown} Solution\nIt is computed.\n:::"
SOLVED = {"tags": ["solution"]}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    site = Site(tmp_path_factory.mktemp("site"), "A test.", searched=False)
    cells = [
        v4.new_code_cell("'first'", metadata=SOLVED),
        v4.new_markdown_cell(EXERCISE),
        v4.new_code_cell("6 * 7", metadata=SOLVED),
        v4.new_code_cell("7 * 6", metadata=SOLVED),
        v4.new_code_cell("'shown'"),
    ]
    for cell in cells[2:4]:
        cell.outputs = [v4.new_output("execute_result", {"text/plain": "42"}, execution_count=1)]
    python = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
    notebook = v4.new_notebook(cells=cells, metadata=python)
    site.pages["exercises.ipynb"] = nbformat.writes(notebook)
    rendered, warnings = site.render({"format": "jb-book", "root": "exercises"})
    assert warnings == []
    text = (rendered / "exercises.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").find("article")


def test_a_solution_holds_its_programs_and_what_they_print(page):
    [solution] = page.select("details.sd-dropdown")
    assert [cell.get_text().split() for cell in solution.select(".cell")] == [
        ["6", "*", "7", "42"],
        ["7", "*", "6", "42"],
    ]


def test_what_follows_no_dropdown_stays_where_it_is(page):
    outside = [cell for cell in page.select(".cell") if not cell.find_parent("details")]
    assert [cell.get_text().strip() for cell in outside] == ["'first'", "'shown'"]
