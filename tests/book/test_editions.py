"""An edition is refused in one sentence before anything runs, or gives every value."""

import re

import pytest

from lib import ROOT
from lib.book.editions import Run, load_edition
from lib.errors import InputError


@pytest.mark.parametrize("name", ["quick", "default", "paper"])
def test_the_editions_of_the_book_are_valid_and_make_what_the_contents_list(name):
    _, runs = load_edition(name)
    pages = [run.page for run in runs]
    listed = re.findall(r"book/executed/(\w+)", (ROOT / "_toc.yml").read_text())
    assert sorted(pages) == sorted(listed)


def test_an_edition_gives_every_parameter_a_value(tiny_book):
    _, (run,) = load_edition("default", tiny_book)
    source, output = tiny_book.notebook("sums"), tiny_book.executed / "small_sum.ipynb"
    assert run == Run(source, output, {"n": 5, "title": "Sum"}, tiny_book.root, tiny_book)


PAGE = "about: x\npages:\n  - "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: x", "draft.yml: key 'pages' is missing"),
        ("about: x\npages: []", "draft.yml: key 'pages': list should have at least 1 item"),
        ("- 1", "draft.yml: input should be a valid dictionary"),
        ("about: x\npages: [1]\n", "draft.yml, page 1: input should be a valid dictionary"),
        ("page: x", "draft.yml: key 'about' is missing"),
        ("a: [", "draft.yml is not YAML: "),
        (
            PAGE + "{page: a, notebook: sums}\nextra: 1",
            "key 'extra' is unknown: expected one of about",
        ),
        (
            PAGE + "{page: a, notebook: sums, parametrs: {}}",
            "draft.yml, page 1: key 'parametrs' is unknown: expected one of page, notebook, param",
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
            "draft.yml, line 3: the key 'n' stands twice",
        ),
        (
            PAGE + "{page: a, notebook: sums}\n  - {page: a, notebook: sums}",
            "draft.yml, page a: each page may be listed once: found 'a'",
        ),
    ],
)
def test_an_edition_that_breaks_a_rule_is_refused_in_one_sentence(tiny_book, text, message):
    tiny_book.add_edition("draft", text)
    with pytest.raises(InputError) as refusal:
        load_edition("draft", tiny_book)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_damaged_notebook_is_refused(tiny_book):
    path = tiny_book.notebook("sums")
    path.write_text(path.read_text()[:50])
    with pytest.raises(InputError, match=r"sums.ipynb is damaged: expected a notebook of format 4"):
        load_edition("default", tiny_book)
