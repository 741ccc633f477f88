"""Copies of notebooks for plain Jupyter say what the book says; those for students do not tell."""

import copy
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pybtex.database import parse_file

from lib import ROOT
from lib.book.editions import BOOK
from lib.book.parameters import read_notebook
from lib.book.reading import plain, student

NOTEBOOKS = sorted(BOOK.notebooks.glob("*.ipynb"))


def source(path):
    return read_notebook(path)[0]


def prose(notebook) -> str:
    """The text of a notebook, without blocks of code."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return re.sub(r"^```.*?^```$", "", "\n\n".join(texts), flags=re.DOTALL | re.MULTILINE)


def read(text: str) -> str:
    return plain(new_notebook(cells=[new_markdown_cell(text)])).cells[0].source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_syntax_of_the_book_is_left(path):
    text = prose(plain(source(path)))
    rest = r"^:::.*|^\([\w-]+\)=$|\{[a-z:]+\}`.*?`|^`{3,}\{.*|\]\([^)\s]*\.md\b"
    assert re.findall(rest, text, re.MULTILINE) == []
    folded = len(re.findall(r"^:::\{dropdown\}", prose(source(path)), re.MULTILINE))
    assert text.count("<details>\n<summary>") == text.count("\n</details>") == folded
    # HTML ends, and Markdown begins again, at an empty line.
    assert re.findall(r"</(?:details|div)>\n[^\n]+", text) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_code_is_the_same(path):
    before = source(path)
    kept = copy.deepcopy(before)
    copies = [plain(before), student(before), plain(student(before))]
    assert before == kept, "a copy changed its original"
    code = [cell for cell in before.cells if cell.cell_type == "code"]
    asked = [cell for cell in code if "solution" not in cell.metadata.get("tags", [])]
    for one, expected in zip(copies, [code, asked, asked], strict=True):
        nbformat.validate(one)
        assert len({cell.id for cell in one.cells}) == len(one.cells)
        assert [cell for cell in one.cells if cell.cell_type == "code" and cell.source] == expected
    assert plain(student(before)) == copies[-1], "the same notebook gives the same bytes"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_students_get_every_exercise_and_no_solution(path):
    before, given = source(path), student(source(path))
    solution = r"^:::\{dropdown\} Solution\n(.*?)\n:::$"
    solutions = re.findall(solution, prose(before), re.DOTALL | re.MULTILINE)
    text = prose(given)
    assert "Solution" not in text
    assert not any(one.strip() in text for one in solutions)
    left = re.sub(solution, "", prose(before), flags=re.DOTALL | re.MULTILINE)
    assert text.split() == left.split()
    empty = [cell for cell in given.cells if cell.cell_type == "code" and not cell.source]
    assert len(empty) == len(solutions)


def test_the_program_of_a_solution_is_left_out():
    program = new_code_cell("print(42)", metadata={"tags": ["solution"]})
    told = new_markdown_cell("**1.** Six by seven?\n\n:::{dropdown} Solution\n42.\n:::")
    cells = student(new_notebook(cells=[told, program, new_code_cell("1 + 1")])).cells
    assert [cell.source for cell in cells] == ["**1.** Six by seven?", "", "", "1 + 1"]


def test_an_answer_follows_its_exercise():
    text = "**1.** Six by seven?\n\n:::{dropdown} Solution\n42.\n:::\n\n**2.** Why?\n\n"
    cells = student(new_notebook(cells=[new_markdown_cell(text + "## Then")])).cells
    assert [(cell.cell_type, cell.source) for cell in cells] == [
        ("markdown", "**1.** Six by seven?"),
        ("code", ""),
        ("markdown", "**2.** Why?\n\n## Then"),
    ]


def test_other_dropdowns_are_left_to_students():
    closer = new_markdown_cell(":::{dropdown} A closer look\nAt this.\n:::")
    assert student(new_notebook(cells=[closer])).cells == [closer]


@pytest.mark.parametrize(
    ("key", "authors", "year", "link"),
    [
        ("pearl2009causality", "Pearl", 2009, "10.1017/CBO9780511803161"),
        ("maasch2025compositional", "Maasch et al.", 2025, "10.48550/arXiv.2503.04556"),
        ("curth2023insights", "Curth and van der Schaar", 2023, None),
        ("peters2017elements", "Peters et al.", 2017, None),
    ],
)
def test_citations_read_as_text(key, authors, year, link):
    forms = {"t": f"{authors} ({year})", "p": f"({authors}, {year})"}
    for role, text in forms.items():
        expected = f"see [{text}](https://doi.org/{link})." if link else f"see {text}."
        assert read(f"see {{cite:{role}}}`{key}`.") == expected


def test_every_work_can_be_cited():
    for key in parse_file(ROOT / "references.bib").entries:
        assert re.fullmatch(r"[^{}\\]+", read(f"{{cite:p}}`{key}`"))


def test_terms_of_the_glossary_read_as_text():
    assert read("{term}`Overlap` of {term}`covariates <covariate>`.") == "Overlap of covariates."


def test_several_works_are_cited_at_once():
    both = read("{cite:p}`pearl2009causality, peters2017elements`")
    assert both == read("{cite:p}`pearl2009causality` {cite:p}`peters2017elements`")
    assert "{" not in both


def test_unknown_references_stay_as_they_are():
    for role in ["{cite:p}`nobody1900nothing`", "{numref}`fig-of-another-chapter`"]:
        assert read(role) == role


def glued(**data):
    """What a cell shows that has recorded `error`, as these kinds of data."""
    prefix = "application/papermill.record/"
    mark = {"scrapbook": {"name": "error", "mime_prefix": prefix}}
    data = {f"{prefix}{kind}": content for kind, content in data.items()}
    return new_output("display_data", data, metadata=mark)


def test_a_recorded_number_is_its_text_or_before_a_run_its_name():
    shown = glued(**{"text/plain": "'3.1 ± 0.2'", "application/json": "{}"})
    told = new_markdown_cell("It errs by {glue:text}`error`.")
    for outputs, said in [([shown], "3.1 ± 0.2"), ([], "`error`")]:
        cells = [new_code_cell(outputs=[*outputs, new_output("stream", text="more")]), told]
        assert plain(new_notebook(cells=cells)).cells[1].source == f"It errs by {said}."


@pytest.mark.parametrize(
    ("given", "said"), [("3.5", "3.5"), ("<Figure size 640x480>", "`error`"), (None, "`error`")]
)
def test_what_others_have_glued_is_its_text_or_its_name(given, said):
    data = {"text/plain": given} if given else {"image/png": ""}
    shown = new_code_cell(outputs=[glued(**data)])
    told = new_markdown_cell("It errs by {glue:text}`error`.")
    assert plain(new_notebook(cells=[shown, told])).cells[1].source == f"It errs by {said}."


def test_what_looks_like_a_link_in_code_is_code():
    code = "table[name](config.md)"
    assert plain(new_notebook(cells=[new_code_cell(code)])).cells[0].source == code


def test_figures_have_numbers_and_captions():
    def drawing(name):
        return new_code_cell(name, metadata={"mystnb": {"figure": {"caption": name, "name": name}}})

    told = new_markdown_cell("See {numref}`fig-b`.")
    cells = plain(new_notebook(cells=[told, drawing("fig-a"), drawing("fig-b")])).cells
    assert [cell.source for cell in cells] == [
        "See Figure 2.",
        "fig-a",
        "**Figure 1.** fig-a",
        "fig-b",
        "**Figure 2.** fig-b",
    ]


def test_markdown_in_boxes_is_markdown():
    text = ":::{dropdown} Solution\n```python\nx = 1\n```\nIt is *one*.\n:::\n\nNext."
    assert read(text) == (
        "<details>\n<summary><b>Solution</b></summary>\n\n"
        "```python\nx = 1\n```\nIt is *one*.\n\n</details>\n\nNext."
    )
    assert read(":::{admonition} Aim\n- a\n- b\n:::") == (
        '<div class="alert alert-info">\n\n**Aim**\n\n- a\n- b\n\n</div>'
    )
