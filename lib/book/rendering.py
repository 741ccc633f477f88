"""Rendering: pages get their box, and Jupyter Book turns them into HTML.

Executed notebooks and prose are staged in a folder of their own, beside the assets and settings of
the book, so editions and runs do not get into each other's way. Links are resolved by the name of
the page. A link becomes text if its page is missing, as does a term without a glossary or a
citation without a bibliography.
"""

import html
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2
import nbformat
import yaml
from markdown_it import MarkdownIt

from lib import ROOT
from lib.book.editions import BOOK, Book, Run
from lib.book.parameters import as_source, read_notebook
from lib.book.reading import TERM, cited, plain, student
from lib.book.recorded import Number
from lib.book.running import read_record
from lib.errors import InputError
from lib.files import DISK_ERRORS, writable, write_bytes
from lib.tables import number_text, typeset


def _fence(text: str, least: int) -> str:
    """Return backticks that can enclose a text: more than any run in it, and at least `least`."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


def code(text: str) -> str:
    """Write a text as code in a line of Markdown; nothing in the text can end the code."""
    fence, text = _fence(text, 1), " ".join(text.split())
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def fenced(text: str, kind: str) -> str:
    """Write a text as a fenced block of Markdown; nothing in the text can end the block."""
    fence = _fence(text, 3)
    return f"{fence}{kind}\n{text}\n{fence}"


#: Templates of the texts on pages, filled with what a run gives; in HTML, values are escaped.
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(ROOT / "book" / "templates"),
    autoescape=jinja2.select_autoescape(["html"]),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters |= {"source": as_source, "number": lambda one: Number(**one)}
TEMPLATES.filters |= {"code": code, "fenced": fenced, "shell": shlex.join}
TEMPLATES.globals |= {"number_text": number_text, "typeset": typeset}

#: Tag of a folded cell → the label that is shown on it.
FOLDED = {"imports": "Imports", "checks": "Checks of the parameters"}

#: Settings of a book without the whole reference: its docstrings name objects on missing pages.
SOME_NAMES = {"nitpick_ignore_regex": [["py:.*", ".*"]]}

#: A link to a notebook or to prose: its text, the name of the page, and a figure or label on it.
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?:[\w./-]*/)?(\w+)\.(ipynb|md)(#[^)\s]*)?\)")


@dataclass
class Site:
    """Pages that are rendered together, and what stands on all of them."""

    staging: Path
    footer: str
    title: str = ""  # by default, that of the book
    searched: bool = True  # whether there is a search over these pages
    book: Book = BOOK
    pages: dict[str, str] = field(default_factory=dict)  # by file: Markdown, or a notebook as JSON
    files: dict[str, bytes] = field(default_factory=dict)  # by path, beside the pages

    def add(self, name: str, run: Run, made_by: str) -> None:
        """Add an executed page, with a box below its parameters, and the downloads of the box."""
        executed, parameters = read_notebook(run.output)
        text = "\n\n".join(cell.source for cell in executed.cells if cell.cell_type == "markdown")
        read = {one.type for one in MarkdownIt().parse(text)}
        if "heading_open" not in read:  # without one, no list could name the page
            executed.cells.insert(0, nbformat.v4.new_markdown_cell(f"# {run.page}", id="heading"))
        first = executed.cells[0]
        if run.title and first.cell_type == "markdown":
            first.source = re.sub(r"^# .*", lambda _: f"# {run.title}", first.source)
        source, _ = read_notebook(run.notebook)
        downloads = {"": plain(executed), "-source": source, "-student": plain(student(executed))}
        folder = PurePosixPath(name).parent / "downloads"
        for kind, notebook in downloads.items():
            if notebook is not source:
                needs = TEMPLATES.get_template("needs.md").render()
                notebook.cells.insert(1, nbformat.v4.new_markdown_cell(needs, id="needs"))
            self.files[f"{folder}/{run.page}{kind}.ipynb"] = nbformat.writes(notebook).encode()
        box = TEMPLATES.get_template("box.html").render(
            run=run,
            record=read_record(run.record),
            made_by=made_by,
            repository=self.settings().get("repository"),  # for Jupyter Book: url and branch
        )
        cell = nbformat.v4.new_markdown_cell(fenced(box, "{raw} html"), id="rerun")
        place = executed.cells.index(parameters) + 1 if parameters in executed.cells else 1
        executed.cells.insert(place, cell)
        for one in executed.cells:
            for tag in FOLDED.keys() & {*one.metadata.get("tags", [])}:
                said = {"code_prompt_show": FOLDED[tag], "code_prompt_hide": FOLDED[tag]}
                one.metadata |= {"tags": ["hide-input"], "mystnb": said}
        self.pages[f"{name}.ipynb"] = nbformat.writes(executed)

    def settings(self) -> dict[str, Any]:
        """Return the settings of the book in `_config.yml`, adapted to these pages."""
        text = (self.book.root / "_config.yml").read_text(encoding="utf-8")
        settings: dict[str, Any] = yaml.safe_load(text.replace("book/assets", "assets"))
        more = settings["sphinx"]["config"]
        more["html_extra_path"] = ["files"] if self.files else []
        title = self.title or settings["title"]
        # The theme writes both into a page without escaping them.
        footer, alt = map(html.escape, (self.footer, f"{title} - Home"))
        more["html_theme_options"] |= {"extra_footer": footer, "logo": {"alt_text": alt}}
        reference = {page.name for page in self.book.prose.glob("reference_*.md")}
        more |= {} if reference <= self.pages.keys() else SOME_NAMES
        if not self.searched:
            more["html_sidebars"] = {"**": ["navbar-logo.html", "sbt-sidebar-nav.html"]}
        return settings | {"title": title}

    def render(self, contents: Mapping[str, Any] | None = None) -> tuple[Path, list[str]]:
        """Render the pages; return the folder of HTML, and the warnings as one sentence each.

        `contents` is the content of `_toc.yml`; by default, it lists the pages in the order in
        which they were added. Warnings count as errors, but all pages are rendered nevertheless.
        """
        root, *others = ({"file": str(PurePosixPath(name).with_suffix(""))} for name in self.pages)
        chapters = {"chapters": others} if others else {}
        contents = contents or {"format": "jb-book", "root": root["file"]} | chapters
        shutil.rmtree(self.staging, ignore_errors=True)
        told = {"_config.yml": self.settings(), "_toc.yml": contents}
        staged = {name: yaml.safe_dump(content).encode() for name, content in told.items()}
        staged |= {name: self._linked(name).encode() for name in self.pages}
        staged |= {f"files/{name}": content for name, content in self.files.items()}
        staged["references.bib"] = (self.book.root / "references.bib").read_bytes()
        for file in filter(Path.is_file, (self.book.prose / "assets").rglob("*")):
            staged[str(file.relative_to(self.book.prose))] = file.read_bytes()
        for name, content in staged.items():
            writable((self.staging / name).parent)
            write_bytes(self.staging / name, content)
        print("rendering", file=sys.stderr, flush=True)
        options = ["build", "-n", "-W", "--keep-going", str(self.staging)]
        # Trees of documents become garbage all at once: collecting it as often as usual takes a
        # fifth of the time.
        main = "import gc; gc.set_threshold(50_000, 50, 1_000); import lib.book; "
        main += "from jupyter_book.cli.main import main; main()"
        ends: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True}
        ends |= {"encoding": "utf-8", "errors": "replace"}
        finished = subprocess.run([sys.executable, "-c", main, *options], **ends)
        rendered = self.staging / "_build" / "html"
        if finished.returncode == 0:
            return rendered, []
        said = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout + finished.stderr)
        for cause in map(os.strerror, DISK_ERRORS):
            if cause in said:
                raise InputError(f"{self.staging} cannot be written: {cause}")
        lines = said.strip().splitlines()
        telling = r"WARNING|ERROR|CRITICAL|^[\w.]+(Error|Exception)\b"
        warnings = [line for line in lines if re.search(telling, line)]
        return rendered, [f"rendering: {line.strip()}" for line in warnings or lines[-15:]]

    def publish(self, output: Path, contents: Mapping[str, Any] | None = None) -> list[str]:
        """Render the pages, replace a folder of earlier pages with them, and return warnings."""
        html, problems = self.render(contents)
        if (html / "index.html").is_file():
            # Renamed into place, so that no reader meets half a book.
            if output.exists():
                os.replace(output, self.staging / "before")
            os.replace(html, output)
        elif output.exists():
            problems.append(f"{output} is as it was before, because nothing was rendered")
        return problems

    def _linked(self, name: str) -> str:
        """Return the text of a page, with links and citations that work among these pages."""
        files = {Path(one).stem: one for one in self.pages}

        def resolved(link: re.Match[str]) -> str:
            words, page, _, place = link.groups(default="")
            return f"[{words}]({place[1:] or '/' + files[page]})" if page in files else words

        def linked(text: str) -> str:
            text = _LINK.sub(resolved, text)
            text = text if "glossary" in files else TERM.sub(r"\1", text)
            return text if "bibliography" in files else cited(text)

        if name.endswith(".md"):
            return linked(self.pages[name])
        notebook = nbformat.reads(self.pages[name], as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = linked(cell.source)
        return str(nbformat.writes(notebook))
