"""The page on notation is an index of the symbols in the chapters' formulas, and nothing else."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lib import ROOT
from lib.book.editions import load_edition

PAGE = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")

#: What lays a formula out, and the arithmetic of every school.
_LAYOUT = {"begin", "end", "text", "quad", "qquad", "underbrace", "left", "right", "dots"}
_LAYOUT |= {"bigl", "bigr", "lvert", "rvert", "frac", "sqrt", "cdot", "times", "le", "ge", "log"}
_LAYOUT |= {"mathrm", "mathbb", "mathbf", "operatorname"}
_TOKEN = re.compile(
    r"\\(?:mathrm|mathbb|mathbf|operatorname)\{(?P<name>\w+)\}"
    r"|\\(?P<macro>[A-Za-z]+)|(?P<letter>do(?=\()|[A-Za-z]|:=|')|(?P<other>[\d.]+|_|[^\s\w\\&,;!])"
)


def math(markdown: str) -> list[str]:
    """Return the formulas of a text in Markdown."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", markdown, flags=re.DOTALL | re.MULTILINE)
    text = text.replace(r"\$", "")  # dollars
    found = re.findall(r"\$\$(.+?)\$\$|\$([^$]+?)\$", text, re.DOTALL)
    return [displayed or inline for displayed, inline in found]


def tokens(formula: str) -> list[str]:
    """Return what a formula consists of, without its layout; words are no symbols."""
    plain = re.sub(r"\\(?:text|begin|end)\{[^}]*\}", "", formula.replace(r"\widehat", r"\hat"))
    found = []
    for token in _TOKEN.finditer(re.sub(r"\\[,;:! ]", "", plain)):
        kind, value = token.lastgroup, token[token.lastgroup]
        if kind != "macro":
            found.append(value)
        elif value not in _LAYOUT:
            found.append("\\" + value)
    # Braces that only hold together: x_{i} is x_i, and \{ is a sign of its own.
    return [one for one in found if one not in "{}"]


def looked_up(formula: list[str]) -> set[str]:
    """Return the letters and signs of a formula that a reader may have to look up."""
    return {one for one in formula if re.search(r"[A-Za-z:]", one)} - {r"\hat", r"\tilde"}


def holds(formula: list[str], symbol: list[str]) -> bool:
    """Say whether a symbol stands in a formula, as itself and not as part of a longer one."""
    size = len(symbol)
    for place in range(len(formula) - size + 1):
        before, after = formula[place - 1 : place], formula[place + size : place + size + 1]
        if formula[place : place + size] != symbol or before in ([r"\hat"], [r"\tilde"]):
            continue
        if len("".join(symbol)) > 1 or after not in (["_"], ["("], ["*"]):
            return True
    return False


@cache
def chapters() -> dict[str, list[list[str]]]:
    """Return the formulas of the introduction and of every notebook, in the order of the book."""
    introduction = (ROOT / "book" / "introduction.md").read_text(encoding="utf-8")
    found = {"introduction": [tokens(one) for one in math(introduction)]}
    for page, run in load_edition("default").runs.items():
        cells = json.loads(run.notebook.read_text(encoding="utf-8"))["cells"]
        prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        found[page] = [tokens(one) for one in math("\n\n".join(prose))]
    return found


def rows() -> list[tuple[list[str], str]]:
    """Return the symbols of each row of the index, and the address that it links."""
    found = []
    for row in re.findall(r"^\| (\$.*) \|$", PAGE, re.MULTILINE):
        first, *_, last = row.split(" | ")
        found.append((math(first), re.fullmatch(r"\[.+\]\((.+)\)", last)[1]))
    return found


INDEX = [(symbol, address) for listed, address in rows() for symbol in listed]
TIMES = Counter(symbol for symbol, _ in INDEX)


@pytest.mark.parametrize("page", chapters())
def test_every_symbol_of_a_chapter_is_in_the_index(page):
    listed = set().union(*(looked_up(tokens(symbol)) for symbol, _ in INDEX))
    missing = {symbol for formula in chapters()[page] for symbol in looked_up(formula)} - listed
    assert missing == set(), "book/notation.md needs a line for each of these"


@pytest.mark.parametrize(("symbol", "address"), INDEX)
def test_a_symbol_is_used_on_the_page_that_the_index_links(symbol, address):
    page, sought = Path(address).stem, tokens(symbol)
    assert address in ("introduction.md", f"executed/default/{page}.ipynb")
    using = [name for name, used in chapters().items() if any(holds(one, sought) for one in used)]
    assert page in using
    if TIMES[symbol] == 1:  # a letter with several meanings is first used with one of them
        assert page == using[0], "the page on which it is first used"


def test_the_introduction_and_the_chapter_on_effects_link_the_index():
    """By their first formulas, so that readers know where to look."""
    introduction = (ROOT / "book" / "introduction.md").read_text(encoding="utf-8")
    assert "](notation.md)" in introduction.split("$$")[2].split("\n\n")[1]
    cells = json.loads((ROOT / "notebooks" / "theory.ipynb").read_text(encoding="utf-8"))["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    (paragraph, *_) = (one for one in "\n\n".join(prose).split("\n\n") if math(one))
    assert "](../../notation.md)" in paragraph


def test_the_index_would_miss_what_it_does_not_list():
    formula = r"\frac{\hat\tau}{\text{words}} \perp \mathrm{PNS}_x"
    assert looked_up(tokens(formula)) == {r"\tau", r"\perp", "PNS", "x"}
    assert holds(tokens(r"1 - \bigl(e(z)\bigr)"), tokens("e(z)"))
    assert not holds(tokens(r"p_0 + \hat p"), tokens("p")), "these are other symbols"
