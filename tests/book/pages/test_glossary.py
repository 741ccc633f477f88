"""The glossary is in order, and has every word that a page sends its readers to."""

import json
import re
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
def linked() -> set[str]:
    """Return what the pages of the book, without the glossary itself, send their readers to."""
    pages = {path: path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md")}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        pages[path] = "\n".join(prose)
    texts = [text for path, text in pages.items() if path.stem != "glossary"]
    roles = re.findall(r"\{term\}`([^`]+)`", "\n".join(texts))
    names = [re.sub(r".*<(.+)>$", r"\1", role, flags=re.DOTALL) for role in roles]
    return {" ".join(name.split()).casefold() for name in names}


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
