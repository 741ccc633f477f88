"""The reference is made of docstrings, as they are written for a terminal.

A Sphinx extension. On a page, a footnote's number may occur once, and here every docstring begins
at 1, so that footnotes become lists. What a comment says of a constant is read as a type, as far as
its first colon, unless it begins on the second line.
"""

import re

from sphinx.application import Sphinx


def _adapt(app: Sphinx, what: str, name: str, found, options, lines: list[str]) -> None:
    cited = (re.sub(r"\[(\d+)\]_", r"[\1]", line) for line in lines)
    listed = [re.sub(r"^\.\. \[(\d+)\]", r"\1.", line) for line in cited]
    lines[:] = [""] * (what in ("data", "attribute")) + listed


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension with Sphinx."""
    app.connect("autodoc-process-docstring", _adapt, priority=400)  # before numpydoc's kind is read
    return {"parallel_read_safe": True, "parallel_write_safe": True}
