"""Copies of notebooks: for any Jupyter, without the Markdown of the book, and for students.

Chapters are written in MyST Markdown, whose directives and roles Jupyter does not know.
"""

import ast
import contextlib
import copy
import functools
import re
from collections.abc import Mapping

from nbformat import NotebookNode, v4
from pybtex.database import parse_file

from lib import ROOT
from lib.book.parameters import marked

_DIRECTIVE = re.compile(r"^:::\{(admonition|dropdown)\} (.*)\n((?:.*\n)*?):::$", re.MULTILINE)
#: A link to the glossary: its words and, if these are inflected, the term itself.
TERM = re.compile(r"\{term\}`([^`<]+?)(?: <[^`]+>)?`")
#: A role that becomes text, and the name in it.
_ROLE = re.compile(r"(\{(?:cite:[pt]|numref|glue:text)\})`([^`]+)`")
#: A number that no run has recorded, or a link to a page of prose.
_UNREAD = re.compile(r"\{glue:text\}(`[^`]+`)|(?<!!)\[([^\]]+)\]\([\w./-]+\.md(?:#[^)\s]*)?\)")
_SOLUTION = re.compile(r"^:::\{dropdown\} Solution.*\n(?:.*\n)*?:::$", re.MULTILINE)
#: Directive → its HTML. Text within HTML is read as Markdown only after an empty line.
_HTML = {
    "admonition": '<div class="alert alert-info">\n\n**{}**\n\n{}\n</div>',
    "dropdown": "<details>\n<summary><b>{}</b></summary>\n\n{}\n</details>",
}


def plain(notebook: NotebookNode) -> NotebookNode:
    """Return a copy that reads well in any Jupyter: directives as HTML, roles as text.

    Figures are numbered in order, and each has its caption in a cell below it. If a notebook was
    not executed, its recorded numbers become their names. A link to prose, which Jupyter cannot
    find, becomes its words.
    """
    result, texts = copy.deepcopy(notebook), {}
    drawn = [cell for cell in result.cells if "figure" in cell.metadata.get("mystnb", {})]
    for number, cell in enumerate(drawn, start=1):
        figure, label = cell.metadata.mystnb.figure, f"Figure {number}"
        texts[f"{{numref}}`{figure.get('name')}`"] = label
        told = f"**{label}.** {figure.get('caption', '')}"
        caption = v4.new_markdown_cell(told, id=f"{cell.id}-caption")
        result.cells.insert(result.cells.index(cell) + 1, caption)
    for mark, output in marked(result, "scrapbook"):
        with contextlib.suppress(KeyError, ValueError, SyntaxError):  # glued by others, as a figure
            text = ast.literal_eval(output.data[f"{mark.mime_prefix}text/plain"])
            texts[f"{{glue:text}}`{mark.name}`"] = str(text)

    for cell in (one for one in result.cells if one.cell_type == "markdown"):
        boxed = _DIRECTIVE.sub(lambda box: _HTML[box[1]].format(box[2], box[3]), cell.source)
        told = cited(TERM.sub(r"\1", boxed), texts)
        cell.source = _UNREAD.sub(r"\1\2", told)
    return result


def cited(text: str, others: Mapping[str, str] = {}) -> str:
    """Return a text in which words replace citations, and `others` replace further roles."""
    texts = {**_citations(), **others}

    def read(role: re.Match[str]) -> str:
        names = re.split(r",\s*", role[2])  # a role may cite several works
        return " ".join(texts.get(f"{role[1]}`{name}`", role[0]) for name in names)

    return _ROLE.sub(read, text)


def student(notebook: NotebookNode) -> NotebookNode:
    """Return a copy in which an empty cell replaces every dropdown titled *Solution*.

    Cells with the tag *solution* are left out.
    """
    result = copy.deepcopy(notebook)
    told, result.cells = result.cells, []
    for cell in (one for one in told if "solution" not in one.metadata.get("tags", [])):
        cell.source, *others = map(str.strip, _SOLUTION.split(cell.source))
        result.cells.append(cell)
        for number, text in enumerate(others, start=1):
            result.cells.append(v4.new_code_cell(id=f"{cell.id}-answer-{number}"))
            result.cells.append(v4.new_markdown_cell(text, id=f"{cell.id}-{number}"))
    return result


def exercises(notebook: NotebookNode) -> NotebookNode:
    """Return a copy with only the section *Exercises*; without one, the copy has no cells."""
    result, heading = copy.deepcopy(notebook), ""
    told, result.cells = result.cells, []
    for cell in told:
        if cell.cell_type == "markdown":
            begun = f"## {heading}\n{cell.source}"
            _, *parts = re.split(r"^## (.*)\n?", begun, flags=re.MULTILINE)
            heading, texts = parts[-2], zip(parts[::2], parts[1::2], strict=True)
            cell.source = "".join(text.strip() for name, text in texts if name == "Exercises")
        if cell.source if cell.cell_type == "markdown" else heading == "Exercises":
            result.cells.append(cell)
    return result


@functools.cache
def _citations() -> dict[str, str]:
    texts = {}
    for key, work in parse_file(ROOT / "references.bib").entries.items():
        parts = [one.rich_prelast_names + one.rich_last_names for one in work.persons["author"]]
        names = [" ".join(map(str, part)) for part in parts]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        year, preprint = work.fields["year"], work.fields.get("eprint")
        doi = work.fields.get("doi", preprint and f"10.48550/arXiv.{preprint}")
        for role, text in {"t": f"{who} ({year})", "p": f"({who}, {year})"}.items():
            texts[f"{{cite:{role}}}`{key}`"] = f"[{text}](https://doi.org/{doi})" if doi else text
    return texts
