"""The search page of a book of two pages: what is in its sections, and which words find them."""

import json
import shutil
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from sphinx.application import Sphinx

from lib.book import extension
from lib.book.extension import sections

LAMPS = """\
Lamps
=====

A lamp costs 40\N{NARROW NO-BREAK SPACE}919 dollars, and the studies of its probability are few.

The ships
---------

There is no back-door to the sea. The estimate is 0.05.

.. figure:: lamp.png

   A lamp that is lit

=====  ======
lamp   ships
=====  ======
north  1,250
south  12
=====  ======

.. math:: \\frac{zeta}{eta}
"""
INDEX = """\
Coast
=====

The ATE of n_samples lamps. The lamp.north module: :math:`N = 50{,}000`.
Is n = 1_000 naive? A café earns 7 ± 2.

.. raw:: html

   <script>const hidden = 1</script>

.. toctree::

   lamps
"""


@pytest.fixture(scope="module", params=["html", "dirhtml"])
def rendered(request, tmp_path_factory):
    """A book of two pages, with nothing set but the extension."""
    folder = tmp_path_factory.mktemp("coast")
    (folder / "index.rst").write_text(INDEX, encoding="utf-8")
    (folder / "lamps.rst").write_text(LAMPS, encoding="utf-8")
    (folder / "lamp.png").write_bytes(b"")
    settings = {"extensions": ["lib.book.extension", "sphinx.ext.mathjax"], "html_theme": "basic"}
    settings |= {"project": "coast", "mathjax_path": "mathjax.js"}
    place = {"confdir": None, "outdir": folder / "out", "doctreedir": folder / "trees"}
    app = Sphinx(folder, **place, buildername=request.param, confoverrides=settings, status=None)
    app.build()
    assert app.statuscode == 0
    return folder / "out"


def written(rendered):
    script = (rendered / "_static" / "sections.js").read_text(encoding="utf-8")
    return json.loads(script.removeprefix("const bookSections = ").removesuffix(";\n"))


def test_every_section_is_written_with_its_address(rendered):
    found = written(rendered)
    lamps = next(one["address"] for one in found if one["anchor"] == "lamps")
    where = [(one["page"], one["anchor"], one["heading"]) for one in found]
    assert where == [
        ("Coast", "coast", "Coast"),
        ("Lamps", "lamps", "Lamps"),
        ("Lamps", "the-ships", "The ships"),
    ]
    page = rendered / lamps
    page = page / "index.html" if page.is_dir() else page
    assert 'id="the-ships"' in page.read_text(encoding="utf-8")


def test_text_has_tables_and_captions_but_neither_scripts_nor_the_sections_below(rendered):
    coast, lamps, ships = (one["text"] for one in written(rendered))
    assert "hidden" not in coast and "module: N = 50{,}000. " in coast
    assert "ships" not in lamps and "back-door" not in lamps
    assert "A lamp that is lit" in ships and "north 1,250 south 12" in ships
    assert "frac" not in ships and ships.endswith("…")


def test_section_without_a_heading_belongs_to_the_one_around_it():
    page = "<article><section id='a'><h2>One</h2><section>two</section></section></article>"
    assert sections(page) == [{"anchor": "a", "heading": "One", "text": "two"}]


def test_words_of_neighbouring_cells_are_not_joined():
    row = "<tr><th>lamp</th><td>north</td><td>1,250</td></tr><tr><td>so<b>uth</b></td></tr>"
    page = (
        f"<section id='a'><h2>One</h2><table>{row}</table><dl><dt>a</dt><dd>b</dd></dl>"
        "<pre><span>print</span><span>(1)</span></pre></section>"
    )
    assert sections(page)[0]["text"] == "lamp north 1,250 south a b print(1)"


def test_words_of_a_glossary_are_sections_with_their_synonyms():
    both = '<dt id="term-a">back door</dt><dt id="term-b">backdoor path</dt>\n<dd><p>An arrow.</p>'
    listed = f'<dl>{both}</dd><dt id="term-c">arm</dt><dd>One level.</dd></dl>'
    found = sections(f"<section id='all'><h1>Words</h1><p>So said.</p>{listed}</section>")
    assert [tuple(one.values()) for one in found] == [
        ("all", "Words", "So said."),
        ("term-b", "back door · backdoor path", "An arrow."),
        ("term-c", "arm", "One level."),
    ]


def test_nothing_is_looked_for_after_an_error_or_in_a_book_on_paper():
    for name, error in (("html", ValueError("no page")), ("latex", None)):
        app = SimpleNamespace(builder=SimpleNamespace(name=name))  # and no pages
        assert extension._write_sections(app, error) is None


def test_page_without_sections_has_none():
    assert sections("<p>Nothing.</p>") == []


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    yield page
    page.close()


@pytest.mark.parametrize(
    ("query", "marks"),
    [
        ("40 919", ["40\u202f919"]),
        ("40,919", ["40\u202f919"]),
        ("$40919", ["40\u202f919"]),
        ("1250", ["1,250"]),
        ("50000", ["50{,}000"]),
        ("1000", ["1_000"]),
        ("1_000", ["1_000"]),
        ("1_250", ["1,250"]),
        ("000", None),
        ("50", None),
        ("250", None),  # a part of a number
        ("919", None),
        ("0.05", ["0.05"]),
        ("ate", ["ATE"]),  # and not in "estimate"
        ("back door", ["back-door"]),
        ("study", ["studies"]),
        ("probabilities", ["probability"]),
        ("lamp.north", ["lamp.north"]),
        ("samples", ["samples"]),
        ("sea zebra", None),
        ("the dollars", ["dollars"]),
        ("cafe", ["café"]),
        ("café", ["café"]),
        ("cafe\N{COMBINING ACUTE ACCENT}", ["café"]),
        ("naïve", ["naive"]),
        ("±", ["±"]),
        ("?", ["?"]),
        ("[(", None),
        ("<b>sea</b>", None),
    ],
)
@pytest.mark.parametrize("rendered", ["html"], indirect=True)
def test_words_are_found_in_their_forms(rendered, page, query, marks):
    page.goto(f"{rendered.as_uri()}/search.html?q={quote(query)}")
    status = page.locator("#search-results [role=status]")
    status.wait_for()
    found = page.locator("#search-results li p").evaluate_all(
        "all => all.map(one => [...one.querySelectorAll('mark')].map(one => one.textContent))"
    )
    assert found == ([] if marks is None else [marks])
    assert status.text_content().startswith("No section" if marks is None else "1 section")
    assert f"“{query}”" in status.text_content()


@pytest.mark.parametrize("rendered", ["html"], indirect=True)
def test_section_named_by_the_query_comes_first(rendered, page):
    page.goto(f"{rendered.as_uri()}/search.html?q=lamps")
    page.locator("#search-results [role=status]").wait_for()
    assert page.locator("#search-results li a").first.get_attribute("href") == "lamps.html#lamps"
    assert page.locator("#search-results li").count() == 3


@pytest.mark.parametrize("rendered", ["html"], indirect=True)
def test_where_a_word_is_explained_comes_before_where_it_is_said_often(rendered, page, tmp_path):
    folder = shutil.copytree(rendered, tmp_path / "book")
    form = {"address": "g.html", "page": "G", "text": "of the ATE, of one ATE"}
    sections = [
        {"address": "a.html", "anchor": "many", "page": "A", "heading": "A", "text": "ATE " * 99},
        form | {"anchor": "term-ATE-formula", "heading": "ATE formula"},
        form | {"anchor": "term-ATE", "heading": "mean · ATE", "text": "mean"},
    ]
    script = f"const bookSections = {json.dumps(sections)};"
    (folder / "_static" / "sections.js").write_text(script, encoding="utf-8")
    page.goto(f"{folder.as_uri()}/search.html?q=ATE")
    page.locator("#search-results [role=status]").wait_for()
    links = page.locator("#search-results li a").evaluate_all("all => all.map(one => one.hash)")
    assert links == ["#term-ATE", "#term-ATE-formula", "#many"], "the word itself is the first"
