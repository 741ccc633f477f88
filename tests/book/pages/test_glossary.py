"""The glossary is in order, and has every word that a page sends its readers to."""

import json
import re

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


def test_words_that_pages_link_are_there():
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md")]
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        pages += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    linked = re.findall(r"\{term\}`([^`]+)`", "\n".join(pages))
    named = {re.sub(r".*<(.+)>$", r"\1", one, flags=re.DOTALL).casefold() for one in linked}
    assert named - {word.casefold() for words in WORDS for word in words} == set()
    assert {"floor", "lottery", "component", "cut tree"} <= named
