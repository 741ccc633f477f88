"""An edition is refused in one sentence before anything runs, or gives every value."""

import re
import shlex
import shutil

import pytest
import yaml

from lib import ROOT
from lib.book.editions import BOOK, Run, load_edition
from lib.errors import InputError


@pytest.mark.parametrize("name", ["quick", "paper"])
def test_the_other_editions_have_the_pages_of_the_default_one(name):
    edition, default = load_edition(name), load_edition("default")
    assert edition.contents() == default.contents()
    assert edition.prose == default.prose
    assert edition.title == default.title
    values = {page: run.values for page, run in edition.runs.items()}
    assert values != {page: run.values for page, run in default.runs.items()}
    assert values["error_test_flu_vaccine"]["theme"] == "flu_vaccine"


def test_the_contents_in_the_root_are_those_of_the_default_edition():
    """So that Jupyter Book builds the default edition by itself, from the executed pages."""
    default = load_edition("default")
    contents = yaml.safe_dump(default.contents())
    for page in default.prose | default.runs:
        place = "book" if page in default.prose else "book/executed/default"
        contents = re.sub(rf"((file|root): ){page}$", rf"\1{place}/{page}", contents, flags=re.M)
    stated = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert yaml.safe_dump(stated) == contents, "as text, which tells the line"


def test_no_prose_has_the_name_of_a_notebook():
    assert not {path.stem for path in BOOK.prose.glob("*.md")} & {
        path.stem for path in BOOK.notebooks.glob("*.ipynb")
    }


def test_an_edition_gives_every_parameter_a_value(tiny_book):
    edition = load_edition("default", tiny_book)
    source, output = tiny_book.notebook("sums"), tiny_book.page("small_sum")
    run = Run(source, output, {"n": 5, "title": "Sum"}, book=tiny_book)
    assert edition.runs == {"small_sum": run}
    assert output == tiny_book.root / "book" / "executed" / "default" / "small_sum.ipynb"


COURSE = """\
title: One lecture
about: Three pages.
pages: [start, sums]
parts:
  - caption: More
    numbered: true
    pages:
      - {page: large, notebook: sums, title: A large sum, parameters: {n: 100}}
"""


def test_an_edition_owns_its_pages_their_order_and_parts(tiny_book):
    (tiny_book.prose / "start.md").write_text("# Start")
    tiny_book.add_edition("course", COURSE)
    course = load_edition("course", tiny_book)
    assert (course.name, course.title, course.about) == ("course", "One lecture", "Three pages.")
    assert course.prose == {"start": tiny_book.prose / "start.md"}
    assert {page: run.values["n"] for page, run in course.runs.items()} == {"sums": 3, "large": 100}
    large = {"file": "large", "title": "A large sum"}
    assert course.contents() == {
        "format": "jb-book",
        "root": "start",
        "parts": [
            {"chapters": [{"file": "sums"}]},
            {"caption": "More", "numbered": 1, "chapters": [large]},
        ],
    }


def test_an_edition_like_another_changes_parameters_alone(tiny_book):
    (tiny_book.prose / "start.md").write_text("# Start")
    tiny_book.add_edition("course", COURSE + "parameters: {sums: {n: 4}}")
    tiny_book.add_edition(
        "few", "about: Few.\nlike: course\nparameters: {large: {n: 10}, sums: {title: S}}"
    )
    few, course = load_edition("few", tiny_book), load_edition("course", tiny_book)
    assert few.contents() == course.contents()
    assert (few.name, few.title, few.about) == ("few", "One lecture", "Few.")
    assert few.runs["large"].values == {"n": 10, "title": "Sum"}
    assert few.runs["sums"].values == {"n": 4, "title": "S"}, "both what they share and its own"
    assert few.runs["sums"].output == tiny_book.page("sums", "few")


def test_a_run_of_ones_own_is_named_by_what_differs(tiny_book):
    def folder(**values):
        run = Run(tiny_book.notebook("sums"), values=values, book=tiny_book)
        assert run.output == tiny_book.runs / run.page / "sums.ipynb"
        return run.page

    assert folder(n=3) == "sums"
    assert folder(title="Total", n=4) == "sums,n=4,title=Total"
    said = [folder(title=title) for title in ("a b", "a/b", "../b", "é", "x" * 500, "x" * 501)]
    assert len(set(said)) == len(said), "what a name cannot say, a digest tells apart"
    assert all(re.fullmatch(r"[\w.,=-]{,119}", name, re.ASCII) for name in said)
    tiny_book.add_notebook("sums", "title: str = 'Sum'\nn: int = 3")
    assert folder(title="a,n=4") != folder(title="a", n=4) == "sums,title=a,n=4"


@pytest.mark.parametrize("value", ["5", 5, "None", None, "five", "[1]", [1, None], "it's"])
def test_the_command_of_a_run_repeats_its_value(tiny_book, value):
    tiny_book.add_notebook("keys", "key: Any = 0")
    run = Run(tiny_book.notebook("keys"), values={"key": value}, book=tiny_book)
    typed = shlex.split(run.command)[-1]
    again = Run(run.notebook, values={"key": typed}, book=tiny_book, as_text=True)
    assert again.values == run.values and again.page == run.page


def test_a_notebook_from_elsewhere_is_called_by_its_path(tiny_book):
    path = shutil.move(tiny_book.notebook("sums"), tiny_book.root / "mine.ipynb")
    run = Run(tiny_book.notebook(str(path)), book=tiny_book)
    assert run.command == f"python -m lib run {path}"


def test_notebooks_of_one_name_have_runs_of_their_own(tiny_book):
    paths = [tiny_book.notebook("sums")]
    for folder in ("a/same", "b/same"):
        (tiny_book.root / folder).mkdir(parents=True)
        paths.append(shutil.copy(paths[0], tiny_book.root / folder / "sums.ipynb"))
    pages = [Run(path, values={"n": 4}, book=tiny_book).page for path in paths]
    assert pages[0] == "sums,n=4" and len({*pages}) == 3
    assert all(re.fullmatch(r"sums-in-same-[0-9a-f]{8},n=4", page) for page in pages[1:])


def test_a_number_and_its_text_have_runs_of_their_own(tiny_book):
    tiny_book.add_notebook("keys", "key: int | str = 0")
    notebook = tiny_book.notebook("keys")
    pages = [Run(notebook, values={"key": key}, book=tiny_book).page for key in (5, "5", "five")]
    assert pages[0] == "keys,key=5" and pages[2] == "keys,key=five" and len(set(pages)) == 3


PAGE = "about: x\npages:\n  - "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: x", "draft.yml: key 'pages': list should have at least 1 item"),
        ("about: x\npages: []", "draft.yml: key 'pages': list should have at least 1 item"),
        ("- 1", "draft.yml: input should be a valid dictionary, found"),
        ("about: x\npages: [1]\n", "draft.yml, page 1: input should be a valid dictionary, "),
        ("about: x\npages: [moon]\n", "draft.yml, page 1: page 'moon' is unknown: expected sums"),
        (
            "about: x\npages: [sums]\nparts: [{pages: [a], page: b}]\n",
            "draft.yml, part 1: key 'page' is unknown: expected one of caption, numbered, pages",
        ),
        (
            "about: x\nlike: default\npages: [sums]\n",
            "an edition with the key 'like' must not have pages of its own: found ['sums']",
        ),
        (
            "about: x\nlike: few\n",
            "draft.yml: 'like' must name an edition with pages of its own: found 'few'",
        ),
        (
            "about: x\nlike: moon\n",
            "edition 'moon' is unknown: expected one of default, draft, few",
        ),
        (
            "about: x\nlike: default\nparameters: {sums: {n: 1}}\n",
            "draft.yml: parameters: page 'sums' is unknown: expected small_sum",
        ),
        ("page: x", "draft.yml: key 'about' is missing"),
        ("a: [", "draft.yml is not YAML: "),
        (
            PAGE + "{page: a, notebook: sums}\nextra: 1",
            "key 'extra' is unknown: expected one of about",
        ),
        (
            PAGE + "{page: a, notebook: sums, parametrs: {}}",
            "draft.yml, page 1: key 'parametrs' is unknown: expected one of page, notebook, title",
        ),
        (PAGE + "{page: a}", "draft.yml, page 1: key 'notebook' is missing"),
        (
            PAGE + "{page: ../a, notebook: sums}",
            "draft.yml, page 1: key 'page': string should match pattern",
        ),
        (
            PAGE + "{page: 5, notebook: sums}",
            "draft.yml, page 1: key 'page': input should be a valid string, found 5",
        ),
        (
            PAGE + "{page: a, notebook: sum}",
            "draft.yml, page a: notebook 'sum' is unknown: expected sums",
        ),
        (
            PAGE + "{page: a, notebook: sums, parameters: {m: 1}}",
            "draft.yml, page a: parameter 'm' is unknown: expected one of n, title",
        ),
        (
            PAGE + "{page: a, notebook: sums, parameters: {n: five}}",
            "draft.yml, page a: parameter 'n' is 'five': expected int",
        ),
        (
            PAGE + "{page: a, notebook: sums, parameters: {n: 1, n: 2}}",
            "draft.yml, line 3: the key 'n' occurs twice",
        ),
        (
            PAGE + "{page: a, notebook: sums}\n  - {page: a, notebook: sums}",
            "draft.yml, page a: each page may be listed only once: found 'a'",
        ),
        (
            PAGE + "{page: search, notebook: sums}",
            "draft.yml, page search: the theme has such a page: found 'search'",
        ),
    ],
)
def test_an_edition_that_breaks_a_rule_is_refused_in_one_sentence(tiny_book, text, message):
    tiny_book.add_edition("few", "about: Few.\nlike: default\n")
    tiny_book.add_edition("draft", text)
    with pytest.raises(InputError) as refusal:
        load_edition("draft", tiny_book)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_edition_of_ones_own_takes_the_place_of_none_of_the_book(tiny_book):
    theirs, mine = tiny_book.editions / "default.yml", tiny_book.root / "default.yml"
    shutil.copy(theirs, mine)
    with pytest.raises(InputError) as refusal:
        load_edition(str(mine), tiny_book)
    rule = "your own edition must have another name than the editions of the book"
    assert str(refusal.value) == f"{rule}: found 'default.yml'"
    named = load_edition(str(mine.rename(mine.with_name("mine.yml"))), tiny_book)
    assert named.name == "mine"
    assert load_edition(str(theirs), tiny_book) == load_edition("default", tiny_book)


def test_a_damaged_notebook_is_refused(tiny_book):
    path = tiny_book.notebook("sums")
    path.write_text(path.read_text()[:50])
    with pytest.raises(InputError, match=r"sums.ipynb is damaged: expected a notebook of format 4"):
        load_edition("default", tiny_book)
