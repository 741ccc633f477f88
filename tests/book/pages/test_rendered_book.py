"""Every page, opened in a real browser: quiet, whole, and readable on a desk and on a phone.

The pages are those of the edition that was rendered last, and those of a few runs. Needs a Chromium
from the system's packages and a rendered book (``python -m lib book``), and is skipped with a
message where either is absent.
"""

import doctest
import html
import io
import re
import shlex
import threading
from collections import Counter
from contextlib import contextmanager
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag, urlsplit

import nbformat
import numpy as np
import pytest
from PIL import Image

from lib import ROOT
from lib.book.editions import BOOK, Book, Run, load_edition
from lib.book.runs import compare, show, sweep

RENDERED = max(
    (folder for name in ("default", "quick", "paper") if (folder := BOOK.built / name).exists()),
    key=lambda folder: folder.stat().st_mtime,
    default=BOOK.built / "default",
)
DESK, PHONE = 1280, 390  # CSS pixels
ENLARGED = 320  # CSS pixels: what is left of a desk at 400 per cent
PAPER = 718  # CSS pixels: A4 without the margin of one centimetre that browsers leave
SMALLEST_TEXT = 14  # CSS pixels
COUNTS = ["serious", "critical"]  # as axe calls what keeps readers out
HEAVIEST_PAGE = 1_500_000  # bytes, beyond the styles, scripts and fonts that all pages share


PAGES = [one.page for part in load_edition("default").parts for one in part.pages]

#: Of the runs that the tests make: the list of all, a sweep, one of its runs, and a comparison.
RUN = "data_preparation,records_shown=2"
SWEEP = "sweep,data_preparation,records_shown=2+3"
COMPARISON = f"comparison,{RUN},data_preparation,records_shown=3"
RUNS = ["index", f"{SWEEP}/index", f"{RUN}/index", f"{COMPARISON}/index"]


@cache
def anchors(file: Path) -> set[str]:
    """The places of a page that a link can point at."""
    # Sphinx writes quotation marks in no other places than around values.
    tags = re.compile(r'<(?:[a-z][^<>]*?\sid|a [^<>]*?\bname)="([^"]*)"')
    found = tags.findall(file.read_text(encoding="utf-8"))
    return {"", "top", *map(html.unescape, found)}  # both mean the beginning of any page


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def end_headers(self):
        # What pages share is asked for once.
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


@contextmanager
def served(folder: Path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def address():
    """The rendered book, served on this machine only."""
    if not (RENDERED / "index.html").exists():
        pytest.skip(f"no rendered book in {RENDERED}: run `python -m lib book` first")
    with served(RENDERED) as address:
        yield address


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the pages of some runs, served on this machine only."""
    book = Book()
    book.runs = tmp_path_factory.mktemp("runs")
    folder, problems = sweep("data_preparation", {"records_shown": ["2", "3"]}, book=book)
    run = Run(book.notebook("data_preparation"), values={"records_shown": 2}, book=book)
    assert problems == [] and (folder.name, run.page) == (SWEEP, RUN)
    assert show(book, run) == []
    folder, problems = compare([RUN, "data_preparation,records_shown=3"], book)
    assert (folder.name, problems) == (COMPARISON, [])
    with served(book.runs) as address:
        yield book.runs, address


@contextmanager
def opened(page, url: str, home: str):
    """Open a page of the book; yield it and the list of what went wrong while it loaded.

    One page of the browser opens them one after the other: a new one would start a process, and
    compile anew what all of them share, which takes longer than all else.
    """
    page.set_viewport_size({"width": DESK, "height": 900})
    page.emulate_media(media="screen", color_scheme="light")
    troubles = []

    def hear(message):
        if message.type in {"error", "warning"}:
            troubles.append(f"console {message.type}: {message.text}")

    def look(response):
        if response.status >= 400:
            troubles.append(f"status {response.status}: {response.url}")

    def notice(request):
        if not request.url.startswith((home, "data:", "blob:")):
            troubles.append(f"request to elsewhere: {request.url}")

    listeners = {
        "pageerror": lambda error: troubles.append(f"script error: {error}"),
        "requestfailed": lambda request: troubles.append(f"not loaded: {request.url}"),
        "console": hear,
        "response": look,
        "request": notice,  # which the browser does not send
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        page.goto(url, wait_until="networkidle")
        yield page, troubles
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)


def small_texts(page) -> list[str]:
    """Every text of a page that is smaller than it may be, with its size."""
    return page.evaluate(
        """(smallest) => {
            const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const small = [];
            while (words.nextNode()) {
                const box = words.currentNode.parentElement, text = words.currentNode.data.trim();
                if (!text || !box.checkVisibility({visibilityProperty: true})) continue;
                if (box.closest('script, style, svg, .katex, sup, sub')) continue;
                const size = parseFloat(getComputedStyle(box).fontSize);
                if (size < smallest) small.push(`${size} px: ${text.slice(0, 60)}`);
            }
            return small;
        }""",
        SMALLEST_TEXT,
    )


#: Marks, of all texts that look alike, the longest, which stands for the others; and takes from the
#: page, until `putBack` is called, what only costs axe time, which grows with the square of boxes.
LOOK_ONCE = """() => {
    const undo = [];
    window.putBack = () => { while (undo.length) undo.pop()(); };
    // The signs of formulas, which have the colour of the text around them; their places stay.
    const formulas = [...document.querySelectorAll('.katex-html[aria-hidden=true]')]
        .filter(one => !one.querySelector('a, [tabindex], [role]'));
    const sizes = formulas.map(one => one.getBoundingClientRect());
    formulas.forEach((one, i) => {
        const inside = [...one.childNodes];
        one.replaceChildren();
        one.style.cssText = `display: inline-block; width: ${sizes[i].width}px;`
            + `height: ${sizes[i].height}px`;
        undo.push(() => { one.replaceChildren(...inside); one.removeAttribute('style'); });
    });
    // What is seen of each box, what it lies on, and with what letters it is written.
    const looks = new Map(), painted = [], longest = new Map();
    const within = (one, frame) => ({
        left: Math.max(one.left, frame.left), right: Math.min(one.right, frame.right),
        top: Math.max(one.top, frame.top), bottom: Math.min(one.bottom, frame.bottom)});
    const meet = (one, other) => one.left < other.right && one.right > other.left
        && one.top < other.bottom && one.bottom > other.top;
    const shown = box => box.checkVisibility({visibilityProperty: true});
    for (const box of document.querySelectorAll('*')) {
        const above = looks.get(box.parentElement) ?? {ground: '', frame: null};
        const style = getComputedStyle(box), whole = box.getBoundingClientRect();
        const seen = above.frame ? within(whole, above.frame) : whole;
        const paint = `${style.backgroundColor} ${style.backgroundImage}`;
        const effects = [style.opacity, style.filter, style.mixBlendMode, style.clipPath].join(' ');
        const clear = paint === 'rgba(0, 0, 0, 0) none';
        if (!clear && shown(box)) painted.push({box, seen});
        looks.set(box, {
            ground: clear && effects === '1 none normal none'
                ? above.ground : `${above.ground} > ${paint} ${effects}`,
            frame: style.overflow === 'visible' ? above.frame : seen,
            letters: [style.color, style.fontSize, style.fontWeight, style.textShadow].join(' '),
            // What gives letters their place.
            set: [style.font, style.letterSpacing, style.whiteSpace, style.visibility].join(' '),
            bare: [style.display, style.position, style.padding, style.margin].join(' ')
                === 'inline static 0px 0px',
            seen,
            cut: ['left', 'right', 'top', 'bottom'].some(side => seen[side] !== whole[side]),
        });
    }
    for (const [box, {ground, letters, seen, cut}] of looks) {
        const text = [...box.childNodes].filter(one => one.nodeType === Node.TEXT_NODE)
            .map(one => one.data.trim()).join('');
        if (!text || !shown(box)) continue;
        // What lies on, or below, something that it is no part of looks like nothing else.
        const apart = painted.some(one => meet(one.seen, seen)
            && !one.box.contains(box) && !box.contains(one.box));
        const look = apart ? box : `${letters} on ${ground} ${cut}`;
        if (!(longest.get(look)?.length >= text.length))
            longest.set(look, {box, length: text.length});
    }
    const chosen = new Set([...longest.values()].map(one => one.box));
    chosen.forEach(box => box.setAttribute('data-stands-for-others', ''));
    undo.push(() => chosen.forEach(box => box.removeAttribute('data-stands-for-others')));
    // Of code, what differs from what is around it by nothing but the colour of its letters, and
    // is text alone, is as good as that text; the last first, as some are in others.
    const plain = [...document.querySelectorAll(':is(pre, code, dt) span')].filter(one => {
        const own = looks.get(one), around = looks.get(one.parentElement);
        return !chosen.has(one) && one.firstChild && own.bare && own.set === around.set
            && own.ground === around.ground && one.getAttributeNames().join() === 'class';
    });
    for (const one of plain.reverse()) {
        const texts = [...one.childNodes];
        if (texts.some(inside => inside.nodeType !== Node.TEXT_NODE)) continue;
        one.replaceWith(...texts);
        undo.push(() => { texts[0].before(one); one.append(...texts); });
    }
}"""

#: Runs axe on what stands for the others, and where it is told so, every rule that may count.
AXE = """async ([counts, everything]) => {
    const contrast = 'color-contrast', chosen = '[data-stands-for-others]';
    axe.configure({rules: [{id: contrast, selector: `${chosen}, ${chosen} *`}]});
    // The impact of a rule, where it says one, is that of all that it finds.
    const minor = axe._audit.rules.filter(one => one.impact && !counts.includes(one.impact));
    const rules = Object.fromEntries(minor.map(one => [one.id, {enabled: false}]));
    // Without `preload`, which asks for style sheets once more and from the wrong places; and
    // without the places where all is well, which are most of a page.
    const options = {preload: false, resultTypes: ['violations']};
    const found = await axe.run(
        document, {...options, ...(everything ? {rules} : {runOnly: [contrast]})});
    return found.violations.filter(one => counts.includes(one.impact));
}"""


def axe_on(page):
    """Have axe on a page."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no extra `test`")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(axe.Axe().axe_script)


def findings(page, everything: bool = True) -> list[str]:
    """What axe calls serious or critical on a page, each with its place.

    Of texts that stand out too little from what they lie on, one of those that look alike: axe
    takes milliseconds for each text, and would say the same of all of them. What else is left out
    changes nothing that it says.
    """
    axe_on(page)
    page.evaluate(LOOK_ONCE)
    try:
        violations = page.evaluate(AXE, [COUNTS, everything])
    finally:
        page.evaluate("() => putBack()")
    return [
        f"{one['id']}: {' '.join(node['target'])}: {node['failureSummary']}"
        for one in violations
        for node in one["nodes"]
    ]


pale = partial(findings, everything=False)


@pytest.fixture(scope="module")
def window(browser):
    """What opens pages one after the other, and keeps what they share."""
    with browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def fresh(browser):
    """What opens a page as if it were the first, with nothing kept."""
    with browser.new_context() as context:
        yield context.new_page()


# One worker looks at a page, and perhaps another at the next; runs are made once.
@pytest.fixture(
    scope="module",
    params=[*PAGES, *(f"runs/{page}" for page in RUNS)],
    ids=lambda page: page if page.startswith("runs/") else f"page {page}",
)
def visit(request, window):
    """Each page in turn, opened once for all of the tests below, and where it lies."""
    if request.param.startswith("runs/"):
        folder, home = request.getfixturevalue("runs")
    else:
        folder, home = RENDERED, request.getfixturevalue("address")
    page = f"{request.param.removeprefix('runs/')}.html"
    assert (folder / page).exists(), f"{page} was not rendered"
    with opened(window, f"{home}/{quote(page)}", home) as (page, troubles):
        yield page, troubles, folder, home


def test_page_loads_quietly_and_asks_nobody_else(visit):
    _, troubles, *_ = visit
    assert troubles == []


def test_every_image_is_there_and_described(visit):
    page, *_ = visit
    images = page.evaluate(
        """() => [...document.images].map(image => ({
            source: image.getAttribute('src').slice(0, 120), width: image.naturalWidth,
            alt: (image.alt || '').trim()}))"""
    )
    assert images, "even the logo is missing"
    for image in images:
        assert image["width"] > 0, f"broken image {image['source']}"
        # Sphinx fills a missing description with the name of the file.
        described = image["alt"] and not image["alt"].endswith((".png", ".svg", ".jpg"))
        assert described, f"no description of image {image['source']}: found {image['alt']!r}"


def test_page_is_light(visit):
    page, _, folder, home = visit
    shown = page.eval_on_selector_all("img[src]", "images => images.map(one => one.src)")
    files = {unquote(address.removeprefix(home)).lstrip("/") for address in [page.url, *shown]}
    assert sum((folder / file).stat().st_size for file in files) <= HEAVIEST_PAGE


def test_every_link_within_the_book_leads_somewhere(visit):
    page, _, folder, address = visit
    links = page.evaluate("() => [...document.querySelectorAll('a[href]')].map(link => link.href)")
    inside = sorted({link for link in links if link.startswith(address)})
    assert inside
    for link in inside:
        path, anchor = urldefrag(link)
        file = folder / unquote(urlsplit(path).path).lstrip("/")
        file = file / "index.html" if file.is_dir() else file
        assert file.is_file(), f"{link} leads nowhere"
        if anchor and file.suffix == ".html":
            assert unquote(anchor) in anchors(file), f"{link} names no place on its page"


def test_no_link_leads_into_this_machine(visit):
    page, *_, address = visit
    links = page.evaluate("() => [...document.querySelectorAll('a[href]')].map(link => link.href)")
    strange = [link for link in links if not link.startswith((address, "https://", "javascript:"))]
    assert strange == []


def test_mathematics_is_drawn(visit):
    page, *_ = visit
    formulas, drawn, broken = page.evaluate(
        """() => ['.math', '.math:has(> .katex, > .katex-display)', '.katex-error'].map(
            selector => document.querySelectorAll(selector).length)"""
    )
    assert (drawn, broken) == (formulas, 0)
    alone = page.evaluate(
        """() => [...document.querySelectorAll('article span.math')]
            .filter(one => /^[,.;:!?)]/.test(one.nextSibling?.data ?? ''))
            .map(one => one.textContent)"""
    )
    assert alone == [], "a line may begin with the comma after a formula"
    prose = page.evaluate(
        """() => {
            const copy = document.querySelector('article').cloneNode(true);
            copy.querySelectorAll('pre, code, script, .katex').forEach(one => one.remove());
            return copy.textContent;
        }"""
    )
    for sign in ["$$", r"\(", r"\["]:
        assert sign not in prose, f"raw {sign} in the prose"


def test_headings_form_an_outline(visit):
    page, *_ = visit
    assert page.evaluate("() => document.documentElement.lang") == "en"
    levels = page.evaluate(
        """() => [...document.querySelectorAll('article :is(h1, h2, h3, h4, h5, h6)')]
            .map(heading => Number(heading.tagName[1]))"""
    )
    assert levels.count(1) == 1 and levels[0] == 1
    for above, below in pairwise(levels):
        assert below <= above + 1, f"a heading of level {below} follows one of level {above}"


@pytest.mark.parametrize("width", [DESK, PHONE, ENLARGED])
def test_page_is_readable(visit, width):
    page, *_ = visit
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert small_texts(page) == []


def test_code_fits_a_desk_where_it_is_folded_too(visit):
    """79 columns are no wider than a page, and no wider than an opened solution on it."""
    page, *_ = visit
    page.set_viewport_size({"width": DESK, "height": 900})
    page.reload()  # as it opens at a desk, whatever windows it was in before
    cut = page.evaluate(
        """async () => {
            const folded = [...document.querySelectorAll('article details:not([open])')];
            for (const one of folded) one.open = true;
            // Values of parameters may be of any length.
            const cells = 'article .cell:not(.tag_parameters) .cell_input pre';
            const cut = () => [...document.querySelectorAll(cells)]
                .filter(one => one.scrollWidth > one.clientWidth)
                .map(one => `${one.scrollWidth - one.clientWidth} px: ${one.textContent}`);
            // Menus come and go with the width of the window, and take their time.
            for (let k = 0; k < 100 && cut().length; k++)
                await new Promise(end => setTimeout(end, 100));
            const found = cut();
            for (const one of folded) one.open = false;
            return found;
        }"""
    )
    assert cut == []


def test_formulas_and_tables_of_the_prose_fit_a_desk(visit):
    """Also those in what unfolds. Tables that a program shows are as wide as what it computes."""
    page, *_ = visit
    page.set_viewport_size({"width": DESK, "height": 900})
    page.reload()  # as it opens at a desk, whatever windows it was in before
    wide = page.evaluate(
        """async () => {
            const folded = [...document.querySelectorAll('article details:not([open])')];
            for (const one of folded) one.open = true;
            const wide = () => [...document.querySelectorAll(
                    '.katex-display, .pst-scrollable-table-container:has(> .table)')]
                .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth)
                .map(one => `${one.scrollWidth - one.clientWidth} px: ${one.textContent}`);
            // Pages are told of a change of width, and of what unfolds, when there is time.
            for (let k = 0; k < 100 && wide().length; k++)
                await new Promise(end => setTimeout(end, 100));
            const found = wide();
            for (const one of folded) one.open = false;
            return found;
        }"""
    )
    assert wide == []


def test_no_table_of_prose_or_of_runs_scrolls_on_a_phone(visit):
    """There, texts stand below each other, and say in which column they would be, without TeX."""
    page, *_ = visit
    page.set_viewport_size({"width": PHONE, "height": 844})
    wide, nameless = page.evaluate(
        """() => {
            const of_runs = ':is(#runs, #what-ran-when-and-with-what) > div > table';
            const tables = [...document.querySelectorAll(`table.listed, ${of_runs}`)];
            const texts = document.querySelectorAll('table.listed td:not(:first-child)');
            const scrolls = box => box.scrollWidth > box.clientWidth;
            return [tables.filter(one => scrolls(one.parentElement)).length,
                [...texts].filter(one => !/^[^\\\\]{2,}$/.test(one.dataset.column ?? '')).length];
        }"""
    )
    assert (wide, nameless) == (0, 0)
    if page.url.endswith(("/notation.html", "/neighbours.html")):
        assert page.locator("table.listed").count() >= 2


def test_page_on_a_phone_keeps_wide_things_within_reach(visit):
    """What is wider than the screen can be scrolled to; nothing is cut off."""
    page, *_ = visit
    page.set_viewport_size({"width": PHONE, "height": 844})
    lost = page.evaluate(
        """() => [...document.querySelectorAll(
                'article :is(p, li, table, pre, img, .katex)')].filter(one => {
                if (!one.checkVisibility() || one.getBoundingClientRect().right <= innerWidth)
                    return false;
                for (let box = one; box && box.tagName !== 'ARTICLE'; box = box.parentElement)
                    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return false;
                return true;
            }).map(one => one.outerHTML.slice(0, 120))"""
    )
    assert lost == []


def test_what_scrolls_fades_where_more_is_to_come(window, address):
    """At the edge of what is seen, until there is nothing more to come; captions never do."""
    of_each = """share => new Promise(end => {
        const all = [...document.querySelectorAll('.bd-article *')]
            .filter(one => one.checkVisibility()  // what is folded does not scroll yet
                && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX));
        for (const one of all) one.scrollLeft = share * (one.scrollWidth - one.clientWidth);
        // Until two frames are drawn, nothing has scrolled.
        requestAnimationFrame(() => requestAnimationFrame(() => end(all.map(one => {
            const style = getComputedStyle(one.querySelector('figure img') || one);
            return [one.scrollWidth > one.clientWidth, !!one.querySelector('figure'),
                style.maskImage];
        }))));
    })"""

    def fading(share: float) -> dict[tuple[bool, bool], set[str]]:
        found: dict[tuple[bool, bool], set[str]] = {}
        for scrolls, has_figure, mask in page.evaluate(of_each, share):
            found.setdefault((scrolls, has_figure), set()).add(mask)
        return found

    table, picture, short = (True, False), (True, True), (False, False)
    whole = "linear-gradient(to left, rgba(0, 0, 0, 0.133), rgb(0, 0, 0) {})".format
    seen = "linear-gradient(to right, rgb(0, 0, 0) {}, rgba(0, 0, 0, 0.133) {})".format
    with opened(window, f"{address}/theory.html", address) as (page, _):
        page.set_viewport_size({"width": PHONE, "height": 844})
        page.wait_for_selector(".katex-html")
        found = fading(0)
        assert found[table] == {whole("48px")}
        assert found[short] == {whole("0px"), "none"}  # what has outputs, and they themselves
        width = page.evaluate("() => document.querySelector('.cell_output').clientWidth")
        ends = [f"calc(0% + {width - fade}px)" for fade in (48, 0)]
        assert found[picture] == {seen(*ends)}
        found = fading(1)
        assert found[table] == {whole("0px")}
        assert found[picture] == {seen("100%", "100%")}
        outside = """() => [...document.querySelectorAll('.cell_output:has(> figure)')]
            .map(one => [one, one.querySelector('figcaption')])
            .map(each => each.map(one => one.getBoundingClientRect()))
            .filter(([box, caption]) => caption.left < box.left || caption.right > box.right)"""
        assert page.evaluate(outside) == [], "captions stay in sight"
        page.emulate_media(media="print")
        assert {mask for masks in fading(0).values() for mask in masks} == {"none"}


def test_what_rows_are_called_stays_where_a_table_scrolls(window, address):
    """On the ground of what it lies on, so that no number is seen through it."""
    clear = {"rgba(0, 0, 0, 0)", "transparent"}
    of_each = """() => {
        for (const one of document.querySelectorAll('article details')) one.open = true;
        const boxes = [...document.querySelectorAll('.cell_output .output:has(table.typeset)')]
            .filter(one => one.scrollWidth > one.clientWidth);
        for (const box of boxes) box.scrollLeft = box.scrollWidth;
        return new Promise(end => requestAnimationFrame(() => requestAnimationFrame(() => end(
            boxes.flatMap(box => [...box.querySelectorAll('tr > :first-child')].map(cell => [
                Math.round(cell.getBoundingClientRect().left - box.getBoundingClientRect().left),
                getComputedStyle(cell).backgroundColor,
                getComputedStyle(cell, '::after').opacity]))))));
    }"""
    with opened(window, f"{address}/analysis.html", address) as (page, _):
        page.set_viewport_size({"width": PHONE, "height": 844})
        cells = page.evaluate(of_each)
        assert len(cells) > 20
        assert {left for left, *_ in cells} == {0}
        assert not clear & {ground for _, ground, _ in cells}
        assert {shadow for *_, shadow in cells} == {"1"}
        short = "table.typeset:not(.output *:has(th:nth-child(4))) tr > :first-child"
        page.set_viewport_size({"width": DESK, "height": 900})
        shadows = page.locator(short).evaluate_all(
            "all => all.map(one => getComputedStyle(one, '::after').opacity)"
        )
        assert shadows and set(shadows) == {"0"}, "where nothing scrolls"


def test_the_contents_say_what_part_of_a_long_page_is_read(fresh, address):
    """Also of a part that is longer than ten screens, of which a tenth is never seen at once."""
    with opened(fresh, f"{address}/worlds.html", address) as (page, _):
        headings = page.locator("article :is(h2, h3)")
        for at in range(1, headings.count() - 1):
            top = headings.nth(at).evaluate("one => one.getBoundingClientRect().top + scrollY")
            page.evaluate("top => scrollTo({top: top + 200, behavior: 'instant'})", top)
            name = headings.nth(at).evaluate("one => one.firstChild.textContent")
            active = page.locator("#pst-page-toc-nav .active", has_text=name)
            active.first.wait_for(state="attached", timeout=3_000)


def test_what_is_folded_is_a_line_and_no_bar(fresh, address):
    with opened(fresh, f"{address}/analysis.html", address) as (page, _):
        folded = page.locator("article details.hide:not([open])")
        looks = folded.evaluate_all(
            """all => all.map(one => getComputedStyle(one)).map(style =>
                [style.backgroundColor, style.boxShadow, style.borderLeftWidth].join())"""
        )
        assert len(looks) > 2 and set(looks) == {"rgba(0, 0, 0, 0),none,0px"}
        heights = folded.evaluate_all("all => all.map(one => one.offsetHeight)")
        assert max(heights) < 32
        page.emulate_media(reduced_motion="reduce")
        folded.first.locator("summary").click()
        unfolded = page.locator("article details.hide[open] > .cell_input").first
        assert unfolded.evaluate("one => getComputedStyle(one).animationName") == "none"


def test_below_what_a_cell_shows_is_as_much_room_as_above(window, address):
    with opened(window, f"{address}/analysis.html", address) as (page, _):
        gaps = page.evaluate(
            """() => [...document.querySelectorAll('section > .cell:has(table.typeset)')]
                .filter(one => one.checkVisibility() && one.nextElementSibling?.matches('p'))
                .map(one => one.nextElementSibling.getBoundingClientRect().top
                    - one.querySelector('table').getBoundingClientRect().bottom)"""
        )
        assert len(gaps) > 5 and min(gaps) >= 8 and max(gaps) <= 24
        page.set_viewport_size({"width": PHONE, "height": 844})
        before = page.evaluate(
            """() => document.querySelector('.prev-next-area').getBoundingClientRect().top
                - document.querySelector('article').getBoundingClientRect().bottom"""
        )
        assert before >= 32


def test_a_reference_says_types_in_a_line_and_all_of_its_examples(window, address):
    with opened(window, f"{address}/reference_effects.html", address) as (page, _):
        types = page.locator("dl.py.attribute dl.field-list").evaluate_all(
            """all => all.map(one => [one.querySelector('dt'), one.querySelector('dd p')].map(
                part => part.getClientRects()[0].bottom)).map(([name, type]) => name - type)"""
        )
        assert len(types) > 5 and max(map(abs, types)) < 3
        cut = page.locator("dl.py pre").evaluate_all(
            "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
        )
        assert cut == 0
        page.set_viewport_size({"width": DESK, "height": 900})
        margin = page.locator(".bd-sidebar-secondary")
        assert margin.evaluate("one => one.scrollWidth - one.clientWidth") == 0


def test_79_columns_of_code_fit_in_prose_too(window, address):
    with opened(window, f"{address}/rerunning.html", address) as (page, _):
        code = page.locator("article .highlight-python pre").first
        width = code.evaluate(
            """one => {
                one.textContent = 'm'.repeat(79);
                return one.scrollWidth - one.clientWidth;
            }"""
        )
        assert width == 0


def test_figures_of_a_comparison_are_large_enough_to_be_read(window, runs):
    """Their letters are as large as those of the text where they are 672 pixels wide."""
    _, home = runs
    for place in (COMPARISON, SWEEP):
        with opened(window, f"{home}/{quote(place)}/index.html", home) as (page, _):
            for width in (DESK, PHONE):
                page.set_viewport_size({"width": width, "height": 844})
                shown = page.locator("article figure img").evaluate_all(
                    "all => all.map(one => one.getBoundingClientRect().width)"
                )
                assert not shown or min(shown) >= 448


def test_numbers_of_runs_stand_on_the_right(window, runs):
    _, home = runs
    columns = {"index": "#runs td:nth-child(3)", f"{COMPARISON}/index": "#recorded-numbers td"}
    for place, cells in columns.items():
        with opened(window, f"{home}/{quote(place)}.html", home) as (page, _):
            aligned = page.locator(f"{cells}:not(:first-child)").evaluate_all(
                "all => all.map(one => getComputedStyle(one).textAlign)"
            )
            assert aligned and set(aligned) == {"right"}


def test_page_on_paper_loses_nothing(visit):
    """On paper nothing scrolls: all that is shown there is within its width."""
    page, *_ = visit
    page.set_viewport_size({"width": PAPER, "height": 1000})
    page.emulate_media(media="print")
    lost = page.evaluate(
        """() => [...document.querySelectorAll(
                'article :is(p, li, table, pre, img, .katex)')]
            .filter(one => one.checkVisibility() && (one.scrollWidth > one.clientWidth + 1
                && one.matches('pre') || one.getBoundingClientRect().right > innerWidth))
            .map(one => one.outerHTML.slice(0, 120))"""
    )
    page.emulate_media(media="screen")
    assert lost == []


def test_on_paper_most_figures_fit_what_is_left_of_a_page(window, address):
    with opened(window, f"{address}/analysis.html", address) as (page, _):
        page.set_viewport_size({"width": PAPER, "height": 1000})
        page.emulate_media(media="print")
        boxes = page.locator("article figure img").evaluate_all(
            """all => all.map(one => one.getBoundingClientRect()).map(
                box => [box.width, box.height])"""
        )
        assert len(boxes) > 4
        assert max(height for _, height in boxes) <= 16 / 2.54 * 96 + 1
        assert min(width for width, _ in boxes) > 0.6 * PAPER
        said = page.locator("details.sd-dropdown:not([open]) > summary").evaluate_all(
            "all => all.map(one => getComputedStyle(one, '::after').content)"
        )
        assert len(said) > 3 and all("folded" in one for one in said)


def test_who_reads_in_the_dark_prints_in_the_light(fresh, address):
    with opened(fresh, f"{address}/introduction.html", address) as (page, troubles):
        shown = "() => document.documentElement.dataset.theme"
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"() => ({shown})() === 'dark'")
        page.evaluate(f"() => addEventListener('beforeprint', () => window.printed = ({shown})())")
        page.pdf()
        assert [page.evaluate("() => printed"), page.evaluate(shown)] == ["light", "dark"]
        assert troubles == []


def test_figures_are_light_in_the_light_and_dark_in_the_dark(window, address):
    with opened(window, f"{address}/worlds.html", address) as (page, _):
        figure = page.locator(".bd-article figure img").first
        for scheme, (least, most) in {"light": (230, 255), "dark": (0, 40)}.items():
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(500)  # colours change by degrees
            drawn = Image.open(io.BytesIO(figure.screenshot())).convert("L")
            assert least <= np.median(drawn) <= most


def test_page_has_no_serious_accessibility_findings(visit):
    page, *_ = visit
    page.set_viewport_size({"width": PHONE, "height": 844})
    page.emulate_media(color_scheme="dark")
    # The theme waits, too, before it says anew what the keyboard reaches.
    page.wait_for_timeout(500)
    assert findings(page) == []
    page.set_viewport_size({"width": DESK, "height": 844})
    page.emulate_media(color_scheme="light")
    page.wait_for_timeout(500)  # colours change by degrees
    # All that the other colours change.
    assert pale(page) == []


def test_one_pale_text_is_found_among_thousands(window, address):
    with opened(window, f"{address}/worlds.html", address) as (page, _):
        assert pale(page) == []
        for selector in ("pre span.n", "th", "p", "h2"):
            spoiled = page.locator(f"article {selector}:visible").last
            spoiled.evaluate("one => one.style.setProperty('color', '#bbb', 'important')")
            found = pale(page)
            assert found and all("#bbbbbb" in one for one in found)
            spoiled.evaluate("one => one.style.removeProperty('color')")


#: Troubles of many kinds, of which axe calls all but the last serious or critical.
SPOILED = """() => {
    const article = document.querySelector('article');
    const [role, aria, pale, pressed] = [...article.querySelectorAll('pre span:not([id])')]
        .filter(one => one.textContent.trim());
    role.setAttribute('role', 'img');
    aria.setAttribute('aria-wrong', 'true');
    pale.style.setProperty('color', '#bbb', 'important');
    pressed.innerHTML = '<button></button>';
    article.querySelector('.katex-html > *').setAttribute('tabindex', '0');
    article.querySelector('ul').append(document.createElement('span'), 'text');
    article.insertAdjacentHTML('beforeend', `<img src="logo.png"><a href="#top"></a>
        <code style="display: block; overflow: auto; width: 9em; white-space: pre"><span
        class="n">longer</span> <span class="n">than it is wide</span></code>
        <p style="color: #000">Nobody sees, among these words, <a href="#top" style="color: #222
        !important; text-decoration: none !important">what leads elsewhere</a>.</p>`);
    document.documentElement.removeAttribute('lang');
    article.querySelector('h1').remove();
}"""


def test_what_is_left_out_changes_nothing_that_axe_finds(window, address):
    with opened(window, f"{address}/rerunning.html", address) as (page, _):
        page.set_viewport_size({"width": PHONE, "height": 844})
        page.wait_for_timeout(500)  # until the theme has said what the keyboard reaches
        page.evaluate(SPOILED)
        axe_on(page)
        before = page.content()
        run = "() => axe.run({preload: false}).then(found => found.violations)"
        whole = Counter(
            {one["id"]: len(one["nodes"]) for one in page.evaluate(run) if one["impact"] in COUNTS}
        )
        found = Counter(finding.partition(":")[0] for finding in findings(page))
        # Of pale texts, one stands for those that look alike.
        assert 0 < found.pop("color-contrast") <= whole.pop("color-contrast")
        assert found == whole
        assert len(found) >= 10
        assert page.content() == before


def test_troubles_are_heard_at_every_visit_and_stay_with_their_page(window, tmp_path):
    ground = "<!doctype html><link rel=icon href=data:,>"
    (tmp_path / "quiet.html").write_text(ground)
    (tmp_path / "troubled.html").write_text(
        f"{ground}<img src=none.png><img src=https://elsewhere.example/one.png>"
        "<script>console.warn('careful'); throw new Error('no')</script>"
    )
    with served(tmp_path) as home:
        heard = []
        for name in ("troubled", "quiet", "troubled"):
            with opened(window, f"{home}/{name}.html", home) as (_, troubles):
                heard.append(sorted(troubles))
    first, quiet, second = heard
    assert (quiet, second) == ([], first)
    for trouble in (
        f"status 404: {home}/none.png",
        "request to elsewhere: https://elsewhere.example/one.png",
        "not loaded: https://elsewhere.example/one.png",
        "console warning: careful",
        "script error: no",
    ):
        assert trouble in first


def test_page_opens_from_a_file_without_a_server(fresh, address):
    home = RENDERED.as_uri()
    with opened(fresh, f"{home}/{PAGES[0]}.html", home) as (page, troubles):
        assert page.locator("article .katex").count() > 0
        assert troubles == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ATE", "effect_data"),
        ("40 919", "introduction"),  # printed so
        ("40 919", "published_sample"),  # printed 40,919
        ("back door", "effect_data"),
        ("counterfactual", "introduction"),
    ],
)
def test_search_finds_words_and_numbers(window, address, query, expected):
    def squeezed(text):
        return re.sub(r"[\s,]", "", text).lower()

    with opened(window, f"{address}/search.html?q={quote(query)}", address) as (page, troubles):
        page.wait_for_selector("#search-results li", timeout=10_000)
        result = page.locator(
            "#search-results li", has=page.locator(f"a[href^='{expected}.html#']")
        )
        marks = result.locator("p mark").all_text_contents()
        assert squeezed(query) in map(squeezed, marks)
        link = result.locator("a").first.get_attribute("href")
        assert urldefrag(link).fragment in anchors(RENDERED / f"{expected}.html")
        assert troubles == []


def test_search_is_reached_by_the_keyboard_without_a_server(fresh, address):
    home = RENDERED.as_uri()
    with opened(fresh, f"{home}/{PAGES[0]}.html", home) as (page, troubles):
        page.keyboard.press("Control+k")
        page.keyboard.type("counterfactual")
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results li", timeout=10_000)
        first = page.locator("#search-results li a").first
        for _ in range(3):  # from the field past what the theme puts there
            if first.evaluate("link => link === document.activeElement"):
                break
            page.keyboard.press("Tab")
        address = first.evaluate("link => link.href")
        page.keyboard.press("Enter")
        page.wait_for_url(address)
        assert troubles == []


def test_search_page_is_readable(window, address):
    with opened(window, f"{address}/search.html?q=effect", address) as (page, troubles):
        page.wait_for_selector("#search-results li", timeout=10_000)
        for width, scheme in [(DESK, "light"), (PHONE, "dark")]:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(500)  # colours change by degrees
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
            assert small_texts(page) == []
            assert findings(page) == []
            # What is typed begins to the right of the magnifying glass.
            glass = page.locator(".bd-article-container .bd-search > i").bounding_box()
            field = page.locator(".bd-article-container .bd-search > input")
            begins = field.evaluate("one => parseFloat(getComputedStyle(one).paddingLeft)")
            assert glass["x"] + glass["width"] < field.bounding_box()["x"] + begins
        assert troubles == []


@pytest.mark.parametrize("name", ["genindex", "py-modindex"])
def test_index_fits_a_screen_and_paper(window, address, name):
    with opened(window, f"{address}/{name}.html", address) as (page, troubles):
        for width, media in [(PHONE, "screen"), (ENLARGED, "screen"), (PAPER, "print")]:
            page.set_viewport_size({"width": width, "height": 844})
            page.emulate_media(media=media)
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        page.emulate_media(media="screen")
        assert troubles == []


def test_the_keyboard_keeps_its_place_and_shows_it(fresh, address):
    """After a press, too, where the theme takes the focus from its buttons."""
    with opened(fresh, f"{address}/introduction.html", address) as (page, _):
        for name in ("primary-toggle", "theme-switch-button"):
            button = page.locator(f"button.{name}").first
            page.keyboard.press("Tab")  # as one who uses the keyboard
            button.focus()
            assert button.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
            page.keyboard.press("Enter")
            assert button.evaluate("one => one === document.activeElement")


def test_paper_has_what_sliders_say_and_where_links_lead(fresh, address):
    with opened(fresh, f"{address}/explorables.html", address) as (page, _):
        page.emulate_media(media="print")
        assert page.locator("figure.explorable label").first.is_visible()
        assert not page.locator("figure.explorable input").first.is_visible()
        sizes = [
            page.locator(f"article {level}").first.evaluate(
                "one => parseFloat(getComputedStyle(one).fontSize)"
            )
            for level in ("h1", "h2")
        ]
        assert sizes[0] > sizes[1]
        page.goto(f"{address}/training.html")
        link = page.locator("article a.external").first
        said = link.evaluate("one => getComputedStyle(one, '::after').content")
        assert link.get_attribute("href") in said


@pytest.mark.parametrize("name", ["glossary", "reference_scm"])
def test_no_page_of_paper_ends_between_a_word_and_its_definition(window, address, name):
    with opened(window, f"{address}/{name}.html", address) as (page, _):
        page.emulate_media(media="print")
        styles = page.locator("article :is(dt, h2)").evaluate_all(
            "all => all.map(one => getComputedStyle(one).breakAfter)"
        )
        assert len(styles) > 30 and set(styles) == {"avoid"}


def test_the_box_writes_the_command_for_other_values(fresh, address):
    with opened(fresh, f"{address}/worlds.html", address) as (page, troubles):
        page.locator("details.rerun summary").first.click()
        page.locator("input[name=horizon]").fill("4")
        page.locator("input[name=treatment]").fill("Evening 'course'")
        page.locator("input[name=n_samples]").fill("500")
        command = page.locator("pre.command").text_content()
        assert shlex.split(command) == shlex.split(
            "python -m lib run worlds -p n_samples 500 -p horizon 4 "
            "-p treatment \"Evening 'course'\""
        )
        for link in page.locator("details.rerun a[download]").all():
            file = RENDERED / link.get_attribute("href")
            nbformat.validate(nbformat.read(file, 4))
        assert troubles == []


def test_the_box_says_what_is_of_another_type(fresh, address):
    with opened(fresh, f"{address}/facts_withheld.html", address) as (page, troubles):
        page.locator("details.rerun summary").first.click()
        said = page.locator("form.rerun strong:visible")
        assert said.count() == 0, "of the defaults"
        mistyped = {"n_tasks": "many", "withheld": "0,3", "n_per_bcc": "3, 3", "seed": ""}
        for name, text in {**mistyped, "n_samples": "1_000", "theme": "any"}.items():
            page.locator(f"input[name={name}]").fill(text)
        expected = ["list[int]", "int", "float", "int"]
        assert said.all_text_contents() == [f"expected {kind}" for kind in expected]
        assert findings(page) == [] and small_texts(page) == []
        page.locator("input[name=seed]").fill("7")
        assert said.count() == 3 and troubles == []


def test_a_page_is_printed_with_its_number_and_once_with_its_title(window, address):
    with opened(window, f"{address}/facts_withheld.html", address) as (page, _):
        title = page.locator("article h1").text_content()
        page.emulate_media(media="print")
        shown = page.locator("h1:visible").all_text_contents()
        page.emulate_media(media="screen")
        assert shown == [title] and re.match(r"\d+\. \w", title)


def test_who_touches_finds_the_buttons_that_copy(browser, address):
    url = f"{address}/facts_withheld.html"
    touched = browser.new_context(has_touch=True, is_mobile=True)
    with touched as context, opened(context.new_page(), url, address) as (page, _):
        opacity = "all => all.map(one => getComputedStyle(one).opacity)"
        shown = page.locator("button.copybtn").evaluate_all(opacity)
        assert len(shown) > 10 and set(shown) == {"1"}


def test_who_goes_back_finds_the_command_and_the_figure_of_what_was_typed(fresh, address):
    with opened(fresh, f"{address}/worlds.html", address) as (page, troubles):
        page.locator("details.rerun summary").first.click()
        page.locator("input[name=horizon]").fill("4")
        command = page.locator("pre.command").text_content()
        # Whoever leaves before the icon of a page has come has its request ended.
        page.goto(f"{address}/explorables.html", wait_until="networkidle")
        page.locator("input[name=support]").fill("20000")
        said = page.locator("[data-explorable=confounding] output").text_content()
        page.goto(f"{address}/introduction.html", wait_until="networkidle")
        page.go_back(wait_until="networkidle")
        assert page.locator("input[name=support]").input_value() == "20000"
        assert page.locator("[data-explorable=confounding] output").text_content() == said
        page.go_back(wait_until="networkidle")
        assert page.locator("input[name=horizon]").input_value() == "4"
        assert page.locator("pre.command").text_content() == command
        assert "-p horizon 4" in command and troubles == []


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("name", ["estimator_benchmark", "worlds", "treatments_over_time"])
def test_all_of_the_box_is_on_the_screen(window, address, name, width):
    with opened(window, f"{address}/{name}.html", address) as (page, _):
        page.set_viewport_size({"width": width, "height": 844})
        page.locator("details.rerun summary").first.click()
        rows = page.locator("form.rerun tbody tr")
        heights = rows.evaluate_all("all => all.map(row => row.getBoundingClientRect().height)")
        assert len(heights) >= 9 and max(heights) < 300  # no towers of a few letters a line
        numbers = page.locator("details.rerun details")
        command = page.locator("pre.command").bounding_box()
        downloads = page.locator("details.rerun a[download]").first.bounding_box()
        below = command["y"] + command["height"]  # it is as long as parameters are many
        assert downloads["y"] - below < 200, "numbers are folded"
        numbers.locator("summary").click()
        parts = page.locator("details.rerun").locator("th:visible, td:visible, input, code")
        box = page.locator("details.rerun").bounding_box()
        ends = parts.evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert len(ends) > 30 and max(ends) <= box["x"] + box["width"]


def test_a_click_sorts_a_table_by_its_numbers(fresh, runs):
    _, home = runs
    with opened(fresh, f"{home}/index.html", home) as (page, _):
        seconds = page.locator("table.sortable th button", has_text="Seconds")
        cells = page.locator("table.sortable tbody tr td:nth-child(3)")
        for reverse in (False, True):
            seconds.click()
            shown = [float(text) for text in cells.all_text_contents()]
            assert len(shown) == 2 and shown == sorted(shown, reverse=reverse)


SORTED = {  # as they stand in a column → in which order
    "Parameters": (
        ["n 200, seed 1", "seed 3", "n 9, seed 10", "n 10_000", "n 9, seed 2", "n -3", "n 0.05"],
        ["n -3", "n 0.05", "n 9, seed 2", "n 9, seed 10", "n 200, seed 1", "n 10_000", "seed 3"],
    ),
    "Recorded": (
        ["mean: 4\u202f816 ± 61", "", "mean: 79 ± 2", "mean: −2\u202f100 ± 3", "mean: −9.5 ± 1"],
        ["", "mean: −2\u202f100 ± 3", "mean: −9.5 ± 1", "mean: 79 ± 2", "mean: 4\u202f816 ± 61"],
    ),
    "Begun": (
        ["2026-11-23 09:15", "2026-09-30 23:00", "2026-11-23 10:05", "2026-11-03 12:00"],
        ["2026-09-30 23:00", "2026-11-03 12:00", "2026-11-23 09:15", "2026-11-23 10:05"],
    ),
}


@pytest.mark.parametrize("head", SORTED)
def test_numbers_within_words_are_sorted_by_their_value(fresh, runs, head):
    (_, home), (texts, expected) = runs, SORTED[head]
    with opened(fresh, f"{home}/index.html", home) as (page, _):
        button = page.locator("table.sortable th button", has_text=head)
        cells = button.evaluate(
            """(button, texts) => {
                const place = button.closest("th").cellIndex;
                const body = button.closest("table").tBodies[0];
                body.replaceChildren(...texts.map(text => {
                    const row = body.rows[0].cloneNode(true);
                    row.cells[place].textContent = text;
                    return row;
                }));
                return place + 1;
            }""",
            texts,
        )
        column = page.locator(f"table.sortable tbody tr :nth-child({cells})")
        for order in (expected, expected[::-1]):
            button.click()
            assert column.all_text_contents() == order


def test_the_name_of_the_edition_is_on_every_page(visit):
    page, _, folder, _ = visit
    said = "Edition " if folder == RENDERED else "Runs of one's own."
    assert said in page.locator(".bd-footer-content").text_content()


def test_who_gets_a_link_is_told_what_the_page_is_about(visit):
    page, *_ = visit
    title, about, text = page.evaluate(
        """() => [document.title, document.querySelector('meta[name=description]')?.content,
            document.querySelector('article').textContent]"""
    )
    own, *of_book = title.split(" — ")
    assert own and [own] != of_book, title
    if page.locator("article p:not([class])").count():
        assert len(about.split()) > 2 and len(about) <= 200, about
        assert " ".join(about.split()[:3]) in " ".join(text.split())


def test_every_page_of_the_contents_is_listed_once():
    assert len(PAGES) == len(set(PAGES)) > 3


@pytest.mark.parametrize("page", ["introduction", "rerunning"])
def test_examples_in_the_prose_run(page):
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    # A closing fence would count as output; an empty line ends it.
    text = text.replace("```", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, page, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(examples)
    assert runner.summarize().attempted >= 8
    assert runner.failures == 0
