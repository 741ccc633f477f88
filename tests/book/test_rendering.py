"""What is staged is rendered: links by the name of a page, citations without a bibliography."""

import contextlib
import re
import shlex
import subprocess
import sys

import nbformat
import pytest
from bs4 import BeautifulSoup

from lib import ROOT
from lib.book import rendering
from lib.book.building import build
from lib.book.editions import BOOK, Book, Run, load_edition
from lib.book.parameters import read_notebook
from lib.book.rendering import _LINK, TEMPLATES, Site, code
from lib.book.running import run_page
from lib.errors import InputError


@pytest.fixture
def staged(tiny_book, tmp_path):
    def stage(**pages):
        site = Site(tmp_path / "staging", "A & B", book=tiny_book)
        site.pages |= {f"{name}.md": text for name, text in pages.items()}
        return site

    return stage


LINKS = {
    "[a](start.md)": "[a](/start.md)",
    "[a `b`](../folder/start.ipynb)": "[a `b`](/start.md)",
    "[a](start.md#there)": "[a](there)",  # the label of a figure or a section, of one page only
    "[a](moon.ipynb#there) and [b](start.md)": "a and [b](/start.md)",
    "![a](start.md)": "![a](start.md)",
    "[a](https://example.org/start.html)": "[a](https://example.org/start.html)",
}


@pytest.mark.parametrize("link", LINKS)
def test_links_are_resolved_by_the_name_of_the_page(staged, link):
    assert staged(start="# Start", other=link)._linked("other.md") == LINKS[link]


def test_every_link_names_a_page_of_the_book():
    """A page that an edition has not becomes text, and so would one that no edition has."""
    edition = load_edition("default")
    told = {path.stem: path.read_text(encoding="utf-8") for path in edition.prose.values()}
    for run in edition.runs.values():
        cells = nbformat.read(run.notebook, 4).cells
        told[run.page] = "\n".join(one.source for one in cells if one.cell_type == "markdown")
    named = {(page, link[2]) for page, text in told.items() for link in _LINK.finditer(text)}
    assert [one for one in named if one[1] not in told] == []


def test_code_in_a_line_says_what_it_was_given():
    assert code("no int | str:\n a `b`") == "`` no int | str: a `b` ``"
    assert code("a|b") == "`a|b`"


def test_terms_are_text_where_there_is_no_glossary(staged):
    text = "{term}`overlap` of {term}`covariates <covariate>`, `{term}`"
    assert staged(other=text)._linked("other.md") == "overlap of covariates, `{term}`"
    assert staged(other=text, glossary="# Glossary")._linked("other.md") == text


def test_the_title_of_an_edition_is_that_of_its_page(tiny_book):
    run = Run(tiny_book.notebook("sums"), tiny_book.page("sums"), {}, book=tiny_book)
    run_page(run)
    site = Site(tiny_book.built, "", book=tiny_book)
    for name, title in {"own": "", "other": r"A \1 & more"}.items():
        run.title = title
        site.add(name, run, "a test")
    headings = [
        nbformat.reads(text, 4).cells[0].source
        for text in [*site.pages.values(), site.files["downloads/sums.ipynb"].decode()]
    ]
    own, other, download = headings
    assert own == "# sums\n{n}"
    assert other == download == "# A \\1 & more\n{n}"
    nbformat.write(nbformat.v4.new_notebook(), run.output)
    run.title = ""
    site.add("empty", run, "a test")
    assert "Run this page" in site.pages["empty.ipynb"]
    assert nbformat.reads(site.pages["empty.ipynb"], 4).cells[0].source == "# sums", "its name"
    for heading in ("Text.\n\nSums\n====", "## Sums"):
        own = [nbformat.v4.new_markdown_cell(heading)]
        nbformat.write(nbformat.v4.new_notebook(cells=own), run.output)
        site.add("headed", run, "a test")
        assert nbformat.reads(site.pages["headed.ipynb"], 4).cells[0].source == heading
    for text in ("```python\n# a comment\n```", "#hashtag", "A line.\n\n---"):
        own = [nbformat.v4.new_markdown_cell(text)]
        nbformat.write(nbformat.v4.new_notebook(cells=own), run.output)
        site.add("bare", run, "a test")
        assert nbformat.reads(site.pages["bare.ipynb"], 4).cells[0].source == "# sums", text


def test_values_stand_in_the_box_and_imports_are_folded_on_the_page_alone(tiny_book):
    path = tiny_book.add_notebook("sums", "n: int | str = 5")
    notebook = nbformat.read(path, 4)
    checks = nbformat.v4.new_code_cell("assert n", metadata={"tags": ["checks", "hide-input"]})
    notebook.cells.append(checks)
    notebook.cells.append(nbformat.v4.new_code_cell("import math", metadata={"tags": ["imports"]}))
    nbformat.write(notebook, path)
    run = Run(path, tiny_book.page("sums"), {"n": "5"}, book=tiny_book)
    run_page(run)
    site = Site(tiny_book.built, "", book=tiny_book)
    site.add("sums", run, "a test")
    _, _, box, checks, page = nbformat.reads(site.pages["sums.ipynb"], 4).cells
    assert 'value="&#39;5&#39;" data-default="5"' in box.source, "as the command wants it"
    assert box.source.index("that are not the defaults: <code>n ") < box.source.index("<details")
    assert page.source == "import math"
    assert page.metadata["tags"] == ["hide-input"]
    assert page.metadata["mystnb"]["code_prompt_show"] == "Imports"
    assert checks.metadata["tags"] == ["hide-input"]
    assert checks.metadata["mystnb"]["code_prompt_show"] == "Checks of the parameters"
    for kind in ("", "-student"):
        cells = nbformat.reads(site.files[f"downloads/sums{kind}.ipynb"].decode(), 4).cells
        assert cells[-1].metadata["tags"] == ["imports"]
        assert "pip install" in cells[1].source, "it says what it needs"
    assert nbformat.reads(site.files["downloads/sums-source.ipynb"].decode(), 4) == notebook


def test_students_get_the_page_as_it_was_run_without_its_solutions(tiny_book, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the tiny book has a folder of the name lib
    total = "from lib.book.recorded import number\nnumber('total', n * 100)"
    path = tiny_book.add_notebook(
        "sums", "n: int = 3  # terms", total, "print('solved by', n * 111)"
    )
    notebook = nbformat.read(path, 4)
    notebook.cells[-1].metadata.tags = ["solution"]
    told = "The total is {glue:text}`total`. Why?\n\n:::{dropdown} Solution\nBecause.\n:::"
    notebook.cells.insert(-1, nbformat.v4.new_markdown_cell(told, id="told"))
    nbformat.write(notebook, path)
    run = Run(path, tiny_book.page("sums"), {"n": 7}, title="Seven", book=tiny_book)
    run_page(run)
    site = Site(tiny_book.built, "", book=tiny_book)
    site.add("sums", run, "a test")
    executed, student = (
        site.files[f"downloads/sums{kind}.ipynb"].decode() for kind in ("", "-student")
    )
    for text in (executed, student):
        assert "# Seven" in text and "n: int = 7  # terms" in text
    assert "solved by 777" in executed and "Because." in executed
    assert not re.search("solved|777|Because|Solution", student), "nor what a solution printed"
    *_, told, answer, rest = nbformat.reads(student, 4).cells
    assert (told.source, answer.cell_type) == ("The total is 700. Why?", "code")
    assert answer.source == rest.source == ""


def test_the_box_says_what_colab_runs_first(tiny_book):
    run = Run(tiny_book.notebook("sums"), tiny_book.page("sums"), {}, book=tiny_book)
    record = {"numbers": {}, "started": "2026-11-25T01:11", "seconds": 1, "versions": {}}
    about = {"run": run, "record": record, "made_by": "a test"}
    for branch, known in ({"branch": "print"}, "print"), ({}, "main"):
        of = {"url": "https://github.com/me/sums", **branch}
        box = TEMPLATES.get_template("box.html").render(about, repository=of)
        page = BeautifulSoup(box, "html.parser")
        assert page.select_one(".colab").text.split("\n") == [
            f"!git clone --quiet --depth 1 --branch {known} https://github.com/me/sums book",
            "%cd book",
            '%pip install --quiet myst-nb pybtex econml "xgboost<3.3"',
        ]
        assert f"me/sums/blob/{known}/notebooks/sums.ipynb" in box
    assert "olab" not in TEMPLATES.get_template("box.html").render(about, repository=None)
    assert "<code>notebooks/sums.ipynb</code>" in box


def test_the_box_says_where_a_notebook_from_elsewhere_is(tiny_book):
    mine = tiny_book.root / "näher heran" / "mine.ipynb"
    mine.parent.mkdir()
    nbformat.write(nbformat.read(tiny_book.notebook("sums"), 4), mine)
    run = Run(mine, book=tiny_book)
    record = {"numbers": {}, "started": "2026-11-25T01:11", "seconds": 1, "versions": {}}
    about = {"run": run, "record": record, "made_by": "a test", "repository": {"url": "https://x"}}
    box = TEMPLATES.get_template("box.html").render(about)
    assert f"<code>{mine.resolve()}</code>" in box and "notebooks/mine.ipynb" not in box
    assert "https://x" not in box, "the repository of the book does not have it"
    (command,) = BeautifulSoup(box, "html.parser").select("form[data-command]")
    assert shlex.split(command["data-command"])[-1] == str(mine.resolve())


#: Texts as one types them; those of the second list are of no type below, or of some only.
TYPED = ["4", "-3", " 10_000 ", "010", "[]", "[1, -2]", "[3]", "[[3, 3], [2]]", "[it is, 2nd]"]
TYPED += ["3.", ".5", "-0.25", "1e-3", "1_000.5E+2", "[0.1, 1]", "[1e-3, 2]", '["a, b", "]"]']
MISTYPED = ["", "many", "1.5", "0,3", "1,000", "3, 3", "4 5", "[a, 1]", "[1.5]", "true", "None"]
TYPES = {
    "int": "3",
    "float": "0.5",
    "list[int]": "[1]",
    "list[float]": "[0.5]",
    "list[str]": "['a']",
    "list[list[int]]": "[[1]]",
}


@pytest.fixture
def box(tiny_book):
    """Fill the box with parameters, and return what the fields of each must match."""

    def fill(parameters):
        path = tiny_book.add_notebook("typed", parameters)
        run = Run(path, tiny_book.page("typed"), {}, book=tiny_book)
        record = {"numbers": {}, "started": "2026-11-25T01:11", "seconds": 1, "versions": {}}
        about = {"run": run, "record": record, "made_by": "a test", "repository": None}
        page = TEMPLATES.get_template("box.html").render(about)
        fields = BeautifulSoup(page, "html.parser").select("form input")
        return [(run.parameters[one["name"]], one.get("pattern")) for one in fields]

    return fill


def test_what_the_box_calls_mistyped_is_refused_by_the_command(box):
    found = box("\n".join(f"p{k}: {kind} = {TYPES[kind]}" for k, kind in enumerate(TYPES)))
    assert [parameter.annotation for parameter, _ in found] == [*TYPES]
    for parameter, pattern in found:
        matched = {text for text in TYPED + MISTYPED if re.fullmatch(pattern, text)}
        read = set()
        for text in TYPED + MISTYPED:
            with contextlib.suppress(InputError):
                parameter.parse(text)
                read.add(text)
        assert read <= matched, "no false alarm"
        assert all(text[0] == "[" for text in matched - read), "what is in a list is not looked at"


def test_the_box_leaves_to_the_command_what_is_no_number_and_no_list(box):
    found = box("a: str = '5'\nb: int | None = 5\nc: bool = True")
    assert [pattern for _, pattern in found] == [None] * 3


def test_every_default_is_what_its_box_expects(box):
    for notebook in sorted(BOOK.notebooks.glob("*.ipynb")):
        _, cell = read_notebook(notebook)
        for parameter, pattern in box(cell.source):
            typed = parameter.typed(parameter.default)
            assert not pattern or re.fullmatch(pattern, typed), (notebook.name, parameter)


def test_code_of_a_notebook_is_left_alone(staged):
    site = staged()
    text = "[a](moon.md) {cite:t}`pearl2009causality`"
    cells = [
        nbformat.v4.new_markdown_cell(text, id="a"),
        nbformat.v4.new_code_cell(f"'{text}'", id="b"),
    ]
    site.pages["page.ipynb"] = nbformat.writes(nbformat.v4.new_notebook(cells=cells))
    told, code = nbformat.reads(site._linked("page.ipynb"), 4).cells
    assert told.source == "a [Pearl (2009)](https://doi.org/10.1017/CBO9780511803161)"
    assert code.source == f"'{text}'"
    site.pages["bibliography.md"] = "# Bibliography"
    told, code = nbformat.reads(site._linked("page.ipynb"), 4).cells
    assert told.source == "a {cite:t}`pearl2009causality`"


@pytest.mark.skipif(sys.platform != "linux", reason="the other tests render so as well")
def test_the_forks_of_the_tests_render_what_a_process_of_its_own_does(staged, forked, monkeypatch):
    site, found = staged(start="# Start\n\n{ref}`nowhere`\n\n$a$\n"), []
    for process in (subprocess, forked):
        monkeypatch.setattr(rendering, "subprocess", process)
        html, problems = site.render()
        pages = {path.name: path.read_bytes() for path in html.rglob("*.*")}
        found.append((problems, pages))
    (problem,) = found[0][0]
    assert "start.md:3: WARNING" in problem
    assert "searchindex.js" in found[0][1] and "start.html" in found[0][1]
    assert found[0] == found[1]


def test_a_book_of_some_of_the_prose_is_rendered_without_a_warning(tmp_path):
    book = Book()
    book.built, book.executed, book.editions = (tmp_path / name for name in "bec")
    book.editions.mkdir()
    (book.editions / "course.yml").write_text(
        'title: A "new" <b>course</b>\nabout: x\n'
        "pages: [introduction, architecture, reference_income]"
    )
    assert build("course", book=book).problems == []
    page = (book.built / "course" / "introduction.html").read_text()
    (alt,) = {one["alt"] for one in BeautifulSoup(page, "html.parser").select(".logo__image")}
    assert alt == 'A "new" <b>course</b> - Home', "as text, where the theme takes it as it is"
    found = (book.built / "course" / "search.html").read_text()
    assert "<b>course" not in page + found
    assert "<title>Search - A &#34;new&#34; &lt;b&gt;course&lt;/b&gt;</title>" in found
    assert 'href="https://doi.org/' in page, "no page has the bibliography, so works are linked"
    assert not list(BOOK.built.glob("course/architecture.html"))
