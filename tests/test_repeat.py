"""The comparison of two builds sees what differs, and where."""

import json
import sys

import nbformat
import pytest

from lib import ROOT


@pytest.fixture
def repeat(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import repeat

    yield repeat
    for name in ("repeat", "measuring"):
        sys.modules.pop(name, None)


def page(path, text="a table", data=None, number=1.0):
    """Write an executed page of two cells, with its run record."""
    output = nbformat.v4.new_output("display_data", data or {"text/html": text})
    cells = [
        nbformat.v4.new_markdown_cell("# Title", id="title"),
        nbformat.v4.new_code_cell("table", id="shown", outputs=[output]),
    ]
    path.parent.mkdir(exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    record = {"numbers": {"mean": number}, "seconds": 1}
    path.with_suffix(".json").write_text(json.dumps(record))
    return path


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": "another table"}, "cell 2 (shown), output 1 as text/html"),
        ({"data": {"image/png": "iVBORw0KGgo="}}, "image/png"),
    ],
)
def test_names_the_page_and_the_cell_that_differs(repeat, tmp_path, changed, said):
    page(tmp_path / "one" / "worlds.ipynb")
    page(tmp_path / "two" / "worlds.ipynb", **changed)
    ((name, found, same),) = repeat.compared(tmp_path / "one", tmp_path / "two", ["worlds"])
    assert (name, same) == ("worlds", False)
    assert said in found


def test_sees_a_missing_page_and_a_number_that_no_output_has(repeat, tmp_path):
    one, two = (page(tmp_path / name / "worlds.ipynb") for name in ("one", "two"))
    assert repeat.differences(one, two) == []
    page(two, number=1.0000000000000002)
    assert "recorded numbers" in repeat.differences(one, two)[0]
    two.unlink()
    assert repeat.differences(one, two) == [f"{two} does not exist"]


def test_builds_differ_in_all_that_may_not_matter(repeat):
    one, two = repeat.BUILDS
    assert [field for field in one._fields if getattr(one, field) == getattr(two, field)] == []


def test_a_copy_executes_its_own_code_with_blocks_of_another_size(repeat, tmp_path):
    edition = tmp_path / "small.yml"
    notebook = tmp_path / "block.ipynb"
    code = "from lib import ROOT\nfrom lib.scm.simulator import BLOCK\nprint(BLOCK, ROOT)"
    cells = [nbformat.v4.new_code_cell(code, id="block")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)
    edition.write_text(f"about: One page.\npages: [{{page: block, notebook: {notebook}}}]\n")
    folder = repeat.executed(repeat.BUILDS[1], tmp_path, str(edition), ["block"])
    (output,) = nbformat.read(folder / "block.ipynb", 4).cells[0].outputs
    assert output.text.split() == ["173", str(tmp_path / "two" / "book")]
