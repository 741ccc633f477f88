"""A search page that needs no server: the text of every section, in a script that it loads.

A Sphinx extension. Sphinx's own search fetches the pages that it has found, which a browser
refuses when they are files, and skips numbers. This one writes their sections beside the
pages, and `book/theme/search.js` finds words in them.
"""

import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.config import Config

from lib import ROOT
from lib.files import write_text

#: What differs from the templates of the theme: the search page, with its script, and the layout.
THEME = ROOT / "book" / "theme"

_HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]


def sections(page: str) -> list[dict[str, str]]:
    """Return the anchor, the heading and the text of each section of a rendered page, in order.

    The text of a section is without that of the sections in it. Formulas that plain letters cannot
    show are three dots.

    Examples
    --------
    >>> page = "<article><section id='ate'><h1>Effects</h1><p>The ATE.</p></section></article>"
    >>> sections(page)
    [{'anchor': 'ate', 'heading': 'Effects', 'text': 'The ATE.'}]
    """
    soup, found = BeautifulSoup(page, "html.parser"), []
    body = soup.find("article") or soup.find(role="main") or soup
    for noise in body.select("script, style, .headerlink, .rerun, details.hide > summary"):
        noise.extract()
    for formula in body.select(".math"):
        tex = formula.get_text().strip()[2:-2]
        formula.string = " … " if "\\" in tex else tex
    # The inner ones first: they are taken out of the outer ones.
    for section in reversed(body.select(f"section[id]:has(> :is({', '.join(_HEADINGS)}))")):
        heading = section.find(_HEADINGS, recursive=False).extract()
        # The narrow space within a number tells it from two numbers.
        heading, text = (
            re.sub(r"[^\S\u202f]+", " ", one.get_text()).strip()
            for one in (heading, section.extract())
        )
        found.append({"anchor": section["id"], "heading": heading, "text": text})
    return found[::-1]


def _add_page(app: Sphinx, config: Config) -> None:
    config.templates_path.append(str(THEME))
    config.html_static_path.append(str(THEME / "search.js"))


def _write_sections(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.name not in {"html", "dirhtml"}:
        return
    found = []
    for name in sorted(app.env.found_docs):
        page = sections(Path(app.builder.get_outfilename(name)).read_text(encoding="utf-8"))
        address = {"address": app.builder.get_target_uri(name)}
        found += [address | {"page": page[0]["heading"]} | section for section in page]
    text = f"const bookSections = {json.dumps(found, ensure_ascii=False, indent=0)};\n"
    write_text(Path(app.outdir) / "_static" / "sections.js", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension with Sphinx."""
    app.connect("config-inited", _add_page)
    app.connect("build-finished", _write_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
