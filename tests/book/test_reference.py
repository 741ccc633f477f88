"""The reference names every module of the library, and reads docstrings as they are meant."""

import re

import pytest
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import NumpyDocstring

from lib import ROOT
from lib.book import extension
from lib.effects.estimates import Estimate

PAGES = sorted((ROOT / "book").glob("reference_*.md"))

#: What needs an extra is not there when the book is made; what is of the book itself is no library.
LEFT_OUT = re.compile(
    r"lib(\.__main__|\.book(\..*)?|\.ccr\.(inspect_task|reasoning_gym_dataset|verifiers_taskset)"
    r"|\.ccr\.themes\..*)?"
)


def modules():
    for path in sorted((ROOT / "lib").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_every_module_is_on_one_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = re.findall(r"^\.\. automodule:: (\S+)$", text, re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(named) - {"lib.book.recorded"} == {
        name for name in modules() if not LEFT_OUT.fullmatch(name)
    }


class App:
    """What an extension needs of Sphinx."""

    def __init__(self):
        self.connected = {}

    def connect(self, event, function, priority=500):
        self.connected[event] = function

    def setup_extension(self, name):
        pass


@pytest.mark.parametrize("what, first", [("function", []), ("data", ["..", ""])])
def test_footnotes_become_a_list(what, first):
    app, lines = App(), ["By [2]_.", "", ".. [2] Nie, X.", "   Title."]
    extension.setup(app)
    app.connected["autodoc-process-docstring"](app, what, "lib.x", None, None, lines)
    assert lines == [*first, "By [2].", "", "2. Nie, X.", "   Title."]


def test_fields_of_named_tuples_are_left_to_the_signature():
    app = App()
    extension.setup(app)
    skip = app.connected["autodoc-skip-member"]
    members = {"score": Estimate.score, "_replace": Estimate._replace}
    assert {name: skip(app, "class", name, one, False, None) for name, one in members.items()} == {
        "score": True,
        "_replace": False,
    }
    assert skip(app, "class", "__len__", Estimate.__len__, True, None)


@pytest.mark.parametrize("what", ["data", "attribute", "property"])
def test_what_stands_before_a_colon_is_no_type(what):
    app, lines = App(), ["The arms of the paper: without and with the treatment."]
    extension.setup(app)
    app.connected["autodoc-process-docstring"](app, what, "lib.x", None, None, lines)
    read = NumpyDocstring(lines, Config(), None, what, "lib.x").lines()
    assert read == ["..", "", "The arms of the paper: without and with the treatment."]
