"""What the book adds to Sphinx: docstrings as pages, folded solutions, a search without a server.

*Docstrings* are written for a terminal. On a page, the number of a footnote may occur only once,
but every docstring counts from 1, so footnotes become lists. The text on a constant or a property
would be read as its type, up to the first colon, so an empty comment is put before the text.

*Solutions* are folded whole. In a notebook, a code cell with the tag *solution* follows a dropdown,
because no directive of Markdown can hold a cell. On the page, it is moved into the dropdown.

*Search* works without a server. Sphinx's own search fetches the pages that it has found, which
browsers refuse for local files, and it skips numbers. Here, a script beside the pages holds the
text of every section, and `book/theme/search.js` finds words in it.
"""

import json
import re
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.config import Config

from lib import ROOT
from lib.files import write_text

#: Templates that replace those of the theme: the search page, with its script, and the layout.
THEME = ROOT / "book" / "theme"

_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]


def _adapt(app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    cited = (re.sub(r"\[(\d+)\]_", r"[\1]", line) for line in lines)
    listed = [re.sub(r"^\.\. \[(\d+)\]", r"\1.", line) for line in cited]
    lines[:] = ["..", ""] * (what in ("data", "attribute", "property")) + listed


def _skip(app: Sphinx, what: str, name: str, found: Any, skip: bool, options: Any) -> bool:
    # The signature of a named tuple shows its fields; Python documents only the number of each.
    return skip or str(getattr(found, "__doc__", "")).startswith("Alias for field number")


def _fold(app: Sphinx, page: Any) -> None:
    parts = [node for node in page.findall() if hasattr(node, "attributes")]  # text has none
    for cell in (node for node in parts if "tag_solution" in node["classes"]):
        place = cell.parent.index(cell)
        above = cell.parent[place - 1]
        if above.get("design_component") == "dropdown":
            above += cell.parent.pop(place)


def sections(page: str) -> list[dict[str, str]]:
    """Return the anchor, the heading and the text of each section of a rendered page, in order.

    The text of a section leaves out the sections within it. A glossary entry counts as a section,
    with its synonyms in the heading. A formula that plain letters cannot show becomes three dots.
    """
    # Menus and the colours of code say nothing, but parsing them would take most of the time.
    page = (re.search(r"(?s)<article.*</article>", page) or [page])[0]
    page = re.sub(r"(?s)<pre>.*?</pre>", lambda code: re.sub(r"</?span[^>]*>", "", code[0]), page)
    page = re.sub(r'</dt>\s*(<dt id="term-)', r"</dt>· \1", page)
    word = r'(?s)((?:<dt id="(term-[^"]*)">.*?</dt>(?:· )?)+)\s*<dd>(.*?)</dd>'
    page = re.sub(word, r'<section id="\2"><h6>\1</h6>\3</section>', page)
    soup, found = BeautifulSoup(page, "html.parser"), []
    for noise in soup.select("script, style, .headerlink, .rerun, details.hide > summary"):
        noise.extract()
    for block in soup.select("td, th, li, dt, dd, p, br"):  # no space separates them
        block.insert_after(" ")
    for formula in soup.select(".math"):
        tex = formula.get_text().strip()[2:-2]
        formula.string = " … " if "\\" in tex else tex
    # Inner sections come first: they are taken out of the outer ones.
    for section in reversed(soup.select(f"section[id]:has(> :is({', '.join(_HEADINGS)}))")):
        (title,) = section.find_all(_HEADINGS, recursive=False, limit=1)
        # Narrow spaces stay: they tell one long number from two numbers.
        heading, text = (
            re.sub(r"[^\S\u202f]+", " ", one.get_text()).strip()
            for one in (title.extract(), section.extract())
        )
        found.append({"anchor": str(section["id"]), "heading": heading, "text": text})
    return found[::-1]


def _add_page(app: Sphinx, config: Config) -> None:
    config.templates_path.append(str(THEME))
    config.html_static_path.append(str(THEME / "search.js"))


def _write_sections(app: Any, error: Exception | None) -> None:
    if error or app.builder.name not in {"html", "dirhtml"}:
        return
    found: list[dict[str, str]] = []
    for name in sorted(app.env.found_docs):
        page = sections(Path(app.builder.get_outfilename(name)).read_text(encoding="utf-8"))
        address = {"address": app.builder.get_target_uri(name)}
        found += [address | {"page": page[0]["heading"]} | section for section in page]
    text = f"const bookSections = {json.dumps(found, ensure_ascii=False, indent=0)};\n"
    write_text(Path(app.outdir) / "_static" / "sections.js", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension to Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", _adapt, priority=400)  # before napoleon reads them
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _fold)
    app.connect("config-inited", _add_page)
    app.connect("build-finished", _write_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
