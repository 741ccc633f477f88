"""A build runs what is stale, goes on after a failure, and ends with every problem named."""

import json
import subprocess
from pathlib import Path

import nbformat
import pytest

from lib.book import building, rendering
from lib.book.building import build, status_table
from lib.book.editions import load_edition
from lib.book.running import run_page, why_stale
from lib.errors import InputError
from lib.files import file_lock


def test_a_build_runs_what_is_stale_and_reports_what_failed(tiny_book, capfd):
    tiny_book.add_notebook("broken", "n: int = 1", "1 / 0")
    tiny_book.add_notebook("dies", "n: int = 1", "6 * 7", "import os\nos._exit(3)")
    tiny_book.add_edition("mixed", "about: x\npages: [broken, sums, dies]")
    # A process that was killed while it wrote has left this; its number is none that can be.
    leftover = tiny_book.executed / "mixed" / f".partial.{2**31 - 1}.12345678.sums.ipynb"
    leftover.parent.mkdir()
    leftover.write_text("{")

    outcome = build("mixed", render=False, book=tiny_book)
    assert outcome.ran == ["broken", "sums", "dies"]
    assert outcome.problems[0] == "broken: cell 2 of 2: ZeroDivisionError: division by zero"
    dies = "dies: cell 3 of 3: DeadKernelError: Kernel died, perhaps because memory ran out"
    assert outcome.problems[1] == dies
    assert len(outcome.problems) == 2
    assert not leftover.exists()
    failed = nbformat.read(tiny_book.executed / "mixed" / "dies.failed.ipynb", 4)
    assert failed.cells[2].outputs[0].data["text/plain"] == "42", "what came before the end"
    assert failed.cells[3].outputs == []
    shown = capfd.readouterr().err
    assert "broken: started, 1 of 3\n" in shown
    assert "broken: FAILED\n" in shown
    assert "sums: done in " in shown
    assert "\r" not in shown, "no live line where there is no terminal"

    table = (tiny_book.executed / "mixed" / "status_table.md").read_text()
    assert "| `broken` | **failed** |  |  | `broken` |" in table
    assert "| [`sums`](executed/default/sums.ipynb) | complete |" in table
    assert "$ python -m lib run sums\n" in table

    assert build("default", render=False, book=tiny_book).ran == ["small_sum"]
    again = build("default", render=False, book=tiny_book)
    assert (again.ran, again.unchanged) == ([], ["small_sum"])


@pytest.mark.parametrize("chosen", [None, "3"])
def test_a_page_takes_one_core_unless_the_user_says_otherwise(tiny_book, monkeypatch, chosen):
    monkeypatch.setenv("OMP_NUM_THREADS", chosen or "")
    if chosen is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    tiny_book.add_notebook("sums", "n: int = 1", "import os\nos.environ['OMP_NUM_THREADS']")
    build("default", render=False, book=tiny_book)
    (output,) = nbformat.read(tiny_book.page("small_sum"), 4).cells[2].outputs
    assert output.data["text/plain"] == repr(chosen or "1")


def test_two_builds_at_once_are_refused(tiny_book):
    with (
        file_lock(tiny_book.executed / "default" / ".lock"),
        pytest.raises(InputError, match="another build is running"),
    ):
        build("default", render=False, book=tiny_book)


def test_an_unwritable_folder_is_named_before_anything_runs(tiny_book):
    (tiny_book.executed / "default").rmdir()
    tiny_book.executed.rmdir()
    tiny_book.executed.write_text("a file in the way")
    with pytest.raises(InputError, match=r"executed/default cannot be written: Not a dir"):
        build("default", render=False, book=tiny_book)


@pytest.fixture
def summed(tiny_book):
    """An edition of one page, which was run."""
    values = "parameters: {title: a|b}"
    tiny_book.add_edition("bars", f"about: x\npages: [{{page: total, notebook: sums, {values}}}]")
    edition = load_edition("bars", tiny_book)
    edition.runs["total"].output.parent.mkdir()
    run_page(edition.runs["total"])
    return edition


def test_the_status_table_is_valid_where_values_hold_bars(summed):
    row = status_table(summed).splitlines()[2]
    assert row.replace("\\|", "").count("|") == 6
    record = json.loads(summed.runs["total"].output.with_suffix(".json").read_text())
    assert record["command"] == "python -m lib run sums -p title 'a|b'"


MARKUP = "a `` b | c\n```\n</script><script>alert(1)</script>\n\n<img src=x onerror=alert(1)> {n}"


def test_what_is_typed_is_text_on_the_page_its_box_and_the_status_page(tiny_book):
    text = json.dumps(MARKUP)
    tiny_book.add_notebook("sums", f"n: str = {text}\nm: int = 1  # ``` <b>terms</b>", "m")
    values = "parameters: {m: 2}"
    tiny_book.add_edition(
        "default", f"about: x\npages: [start, {{page: t, notebook: sums, {values}}}]"
    )
    included = "```{include} executed/default/status_table.md\n```\n"
    (tiny_book.prose / "start.md").write_text(f"# Start\n\n{included}")
    assert build(book=tiny_book).problems == []
    for page in ("index", "start", "t"):
        text = (tiny_book.built / "default" / f"{page}.html").read_text()
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b>terms" not in text
    page = (tiny_book.built / "default" / "t.html").read_text()
    _, _, box = page.partition('<details class="rerun">')
    assert 0 < box.index('value="2"') < box.index("</form>") < box.index("</details>")


def test_the_status_table_shows_the_last_good_run_and_the_failure_since(summed, monkeypatch):
    ours = building.versions()
    monkeypatch.setattr(building, "versions", lambda: ours | {"numpy": "0.1"})
    table = status_table(summed)
    assert "| complete |" in table
    assert f"| numpy | 0.1, {ours['numpy']} |\n" in table, "of now, and of the pages"
    summed.runs["total"].failed.write_text("{}")
    assert "**failed since**; this is the last good run" in status_table(summed)


def test_a_warning_of_the_renderer_is_a_problem_until_it_is_gone(tiny_book):
    """Also the second time, when the renderer would skip the page that has not changed."""
    total = "{page: total, notebook: sums}"
    tiny_book.add_edition("default", f"about: x\npages: [start, {total}]\n")
    start = tiny_book.prose / "start.md"
    start.write_text("# Start\n\n{ref}`nowhere`\n")
    for _ in range(2):
        (problem,) = build(book=tiny_book).problems
        assert problem.startswith("rendering: ")
        assert "start.md:3: WARNING" in problem
        assert "nowhere" in problem

    included = "```{include} executed/default/status_table.md\n```\n"
    start.write_text(f"# Start\n\n[the sum](executed/total.ipynb)\n\n{included}")
    outcome = build(book=tiny_book)
    assert (outcome.problems, outcome.ran) == ([], [])
    built = tiny_book.built / "default"
    status = (built / "index.html").read_text() + (built / "start.html").read_text()
    assert "The commands that repeat them" in status
    assert 'href="total.html"' in status
    assert "Sum 3" in (built / "total.html").read_text()


def test_editions_have_a_folder_each_and_a_page_that_failed_is_not_lost(tiny_book):
    tiny_book.add_notebook("broken", "n: int = 1", "1 / 0")
    tiny_book.add_edition(
        "course", "title: Two & more\nabout: A <lecture>.\npages: [sums, broken]\n"
    )
    assert len(build("course", book=tiny_book).problems) == 1
    assert build("default", book=tiny_book).problems == []
    course, default = (tiny_book.built / name for name in ("course", "default"))
    assert "Sum 3" in (course / "sums.html").read_text()
    assert "Sum 10" in (default / "small_sum.html").read_text()
    assert not (course / "small_sum.html").exists()
    assert "This page has failed" in (course / "broken.html").read_text()
    for page in ("sums", "broken"):
        text = (course / f"{page}.html").read_text()
        assert "Edition course. A &lt;lecture&gt;." in text
        assert "Two &amp; more" in text
    assert "Edition default. A sum." in (default / "small_sum.html").read_text()


def test_a_disk_that_is_full_is_named_and_the_earlier_book_stays(tiny_book, monkeypatch):
    def half_rendered(command, **_):
        half = tiny_book.built / ".staging" / "default" / "_build" / "html"
        half.mkdir(parents=True)
        (half / "index.html").write_text("half")
        said = "a\nWARNING: Failed to copy a file: OSError(28, 'No space left on device')\nb"
        return subprocess.CompletedProcess(command, 1, said, "")

    def written(path, content):
        if ".staging" in path.parts:
            raise OSError(28, "No space left on device", path)
        return len(content)

    page = tiny_book.built / "default" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("whole")
    build(render=False, book=tiny_book)
    for module, name, function in (
        (rendering.subprocess, "run", half_rendered),
        (Path, "write_bytes", written),
    ):
        monkeypatch.setattr(module, name, function)
        with pytest.raises(InputError) as refused:
            build(book=tiny_book)
        assert str(tiny_book.built / ".staging" / "default") in str(refused.value)
        assert str(refused.value).endswith(" cannot be written: No space left on device")
        assert page.read_text() == "whole"


def test_a_renderer_that_crashes_leaves_the_earlier_book_and_says_so(tiny_book, monkeypatch):
    def crashed(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "a.B.Error: why\n")

    build(render=False, book=tiny_book)
    monkeypatch.setattr(rendering.subprocess, "run", crashed)
    folder = tiny_book.built / "default"
    assert build(book=tiny_book).problems == ["rendering: a.B.Error: why"]
    folder.mkdir()
    said = f"{folder} is as it was before, because nothing was rendered"
    assert build(book=tiny_book).problems == ["rendering: a.B.Error: why", said]


def test_a_disk_that_is_full_leaves_the_earlier_page(tiny_book, monkeypatch):
    build(render=False, book=tiny_book)
    page, (run,) = tiny_book.page("small_sum"), load_edition("default", tiny_book).runs.values()
    before = page.read_bytes()
    tiny_book.add_notebook("sums", "n: int = 3\ntitle: str = 'Sum'", "print(title, n)")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(nbformat, "write", full)
    (problem,) = build(render=False, book=tiny_book).problems
    assert problem == f"{page} cannot be written: No space left on device"
    assert page.read_bytes() == before
    assert why_stale(run) == "notebook changed"
