"""The glossary is in order, and has every word that a page sends its readers to."""

import ast
import json
import re
from collections import Counter
from functools import cache

import pytest

from lib import ROOT

PAGE = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.search(r"^```\{glossary\}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]

#: The words above each explanation.
WORDS = [re.findall(r"^(\S.*)$", entry, re.MULTILINE) for entry in ENTRIES.strip().split("\n\n")]


def test_words_are_in_the_order_of_the_alphabet():
    first = [words[0].casefold() for words in WORDS]
    assert first == sorted(first)
    every = [word.casefold() for words in WORDS for word in words]
    assert len(every) == len(set(every))


@cache
def prose() -> dict[str, str]:
    """Return the text of each page by its name, without the glossary itself."""
    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "book").glob("*.md")}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        pages[path.stem] = "\n\n".join(texts)
    return {name: text for name, text in pages.items() if name != "glossary"}


def links(text: str) -> set[str]:
    """Return the words that a text sends its readers to."""
    roles = re.findall(r"\{term\}`([^`]+)`", text)
    names = [re.sub(r".*<(.+)>$", r"\1", role, flags=re.DOTALL) for role in roles]
    return {" ".join(name.split()).casefold() for name in names}


@cache
def linked() -> set[str]:
    """Return what the pages of the book send their readers to."""
    return links("\n".join(prose().values()))


def test_words_that_pages_link_are_there():
    assert linked() - {word.casefold() for words in WORDS for word in words} == set()
    assert {"floor", "lottery", "component", "cut tree"} <= linked()


def test_words_that_the_glossary_links_are_there():
    names = re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", PAGE)
    assert {name.casefold() for name in names} <= {one.casefold() for all_ in WORDS for one in all_}


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
def test_every_word_is_linked_from_a_page(words):
    """A reader who meets a word finds the way to it: one of its synonyms is linked somewhere."""
    assert linked() & {word.casefold() for word in words}


@pytest.mark.parametrize("page", prose())
def test_a_word_that_is_set_apart_is_linked_there_or_before(page):
    """A word in italics or bold is new, or explained: it is linked in its paragraph, or above."""
    alike = {
        one.casefold(): {each.casefold() for each in words} for words in WORDS for one in words
    }
    told = set()
    for paragraph in prose()[page].split("\n\n"):
        told |= links(paragraph)
        for _, word in re.findall(r"(?<![*\w])(\*{1,2})(\w[^*`]*)\1(?![*\w])", paragraph):
            known = alike.get(word.casefold())
            if known and (page, word) != ("architecture", "root"):  # the ground floor of `lib`
                assert known & told, word


def test_names_of_the_books_own_in_most_programs_are_explained():
    """Whoever opens a single chapter has not read the ones before it, nor the library."""
    used, chapters = Counter(), [*(ROOT / "notebooks").glob("*.ipynb")]
    for path in chapters:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        (source,) = (
            "".join(c["source"]) for c in cells if "imports" in c["metadata"].get("tags", [])
        )
        of_book = (
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and node.module.startswith("lib")
        )
        used.update(name.name for node in of_book for name in node.names)
    often = {name for name, times in used.items() if times > len(chapters) / 2}
    assert {"typeset", "number"} <= often
    told = (ROOT / "book" / "rerunning.md").read_text(encoding="utf-8")
    (paragraph,) = (one for one in told.split("\n\n") if "names of the book's own" in one)
    assert {name for name in often if f"`{name}`" not in paragraph} == set()
