"""A build runs what is stale, goes on after a failure, and ends with every problem named."""

import json

import nbformat
import pytest

from lib.book.building import build, status_table
from lib.book.editions import Run
from lib.book.running import run_page
from lib.errors import InputError
from lib.files import file_lock


def test_a_build_runs_what_is_stale_and_reports_what_failed(tiny_book, capfd):
    tiny_book.add_notebook("broken", "n: int = 1", "1 / 0")
    tiny_book.add_notebook("dies", "n: int = 1", "import os\nos._exit(3)")
    edition = "  - {page: small_sum, notebook: sums}\n  - {page: dies, notebook: dies}\n"
    tiny_book.add_edition(
        "mixed", f"about: x\npages:\n  - {{page: broken, notebook: broken}}\n{edition}"
    )
    (tiny_book.root / "_toc.yml").write_text(
        "root: book/executed/small_sum\nchapters:\n  - file: book/executed/broken\n"
    )
    # A process that was killed while it wrote has left this; its number is none that can be.
    leftover = tiny_book.executed / f".partial.{2**31 - 1}.12345678.small_sum.ipynb"
    leftover.write_text("{")

    outcome = build("mixed", render=False, book=tiny_book)
    assert outcome.ran == ["broken", "small_sum", "dies"]
    assert outcome.problems[0] == "broken: cell 2 of 2: ZeroDivisionError: division by zero"
    assert outcome.problems[1].startswith("dies: cell 2 of 2: DeadKernelError")
    assert outcome.problems[2].startswith("_toc.yml lists book/executed/broken, and there is no")
    assert len(outcome.problems) == 3
    assert not leftover.exists()
    shown = capfd.readouterr().err
    assert "broken: started, 1 of 3\n" in shown
    assert "broken: FAILED\n" in shown
    assert "small_sum: done in " in shown
    assert "\r" not in shown, "no live line where there is no terminal"

    table = (tiny_book.executed / "status_table.md").read_text()
    assert "| `broken` | **failed** |  |  | `broken` |" in table
    assert "{doc}`/book/executed/small_sum`" in table
    assert "| `dies` |" in table, "no link to a page that is not in the table of contents"
    assert "$ python -m lib run sums\n" in table

    tiny_book.add_edition("default", f"about: x\npages:\n{edition.splitlines()[0]}\n")
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


def test_the_page_that_took_longest_is_run_first(tiny_book):
    pages = [f"  - {{page: {page}, notebook: sums}}\n" for page in ("new", "short", "long")]
    tiny_book.add_edition("default", "about: x\npages:\n" + "".join(pages))
    for page, seconds in [("short", 0.5), ("long", 40)]:
        tiny_book.page(page).with_suffix(".json").write_text(json.dumps({"seconds": seconds}))
    assert build("default", render=False, book=tiny_book).ran == ["long", "short", "new"]


def test_two_builds_at_once_are_refused(tiny_book):
    with (
        file_lock(tiny_book.executed / ".lock"),
        pytest.raises(InputError, match="another build is at work"),
    ):
        build("default", render=False, book=tiny_book)


def test_an_unwritable_folder_is_named_before_anything_runs(tiny_book):
    tiny_book.executed.rmdir()
    tiny_book.executed.write_text("a file in the way")
    with pytest.raises(InputError, match=r"executed cannot be written: File exists"):
        build("default", render=False, book=tiny_book)


def test_the_status_table_is_valid_where_values_hold_bars(tiny_book):
    run = Run(
        tiny_book.notebook("sums"), tiny_book.page("small_sum"), {"title": "a|b"}, book=tiny_book
    )
    run_page(run)
    row = status_table([run], tiny_book).splitlines()[2]
    assert row.replace("\\|", "").count("|") == 6
    record = json.loads(run.output.with_suffix(".json").read_text())
    assert record["command"] == "python -m lib run sums -p title 'a|b'"


def test_the_status_table_shows_the_last_good_run_and_the_failure_since(tiny_book):
    run = Run(tiny_book.notebook("sums"), tiny_book.page("small_sum"), book=tiny_book)
    run_page(run)
    assert "| complete |" in status_table([run], tiny_book)
    run.failed.write_text("{}")
    assert "**failed since**; this is the last good run" in status_table([run], tiny_book)


def test_a_warning_of_the_renderer_is_a_problem_until_it_is_gone(tiny_book):
    """Also the second time, when the renderer would skip the page that has not changed."""
    tiny_book.add_edition("default", "about: x\npages:\n  - {page: total, notebook: sums}\n")
    config = "title: Sums\nonly_build_toc_files: true\nexecute: {execute_notebooks: 'off'}\n"
    (tiny_book.root / "_config.yml").write_text(config)
    (tiny_book.root / "_toc.yml").write_text(
        "format: jb-book\nroot: start\nchapters:\n  - file: book/executed/total\n"
    )
    start = tiny_book.root / "start.md"
    start.write_text("# Start\n\n[away](nowhere.md)\n")
    for _ in range(2):
        (problem,) = build(book=tiny_book).problems
        assert problem.startswith("rendering: ")
        assert "start.md:3: WARNING" in problem
        assert "nowhere.md" in problem

    start.write_text("# Start\n\n```{include} book/executed/status_table.md\n```\n")
    outcome = build(book=tiny_book)
    assert outcome.problems == []
    assert outcome.ran == []
    status = tiny_book.index.with_name("start.html").read_text()
    assert "The commands that repeat them" in status
    assert 'href="book/executed/total.html"' in status
    page = tiny_book.index.parent / "book" / "executed" / "total.html"
    assert "Sum 3" in page.read_text()
