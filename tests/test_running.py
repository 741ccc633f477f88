"""Pages are run when something changed, in good order, and never hide a failure."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from lib import ROOT, running
from lib.cache import alone
from lib.errors import InputError
from lib.running import (
    Page,
    PageFailed,
    Run,
    build,
    execute,
    load_edition,
    read_record,
    run_page,
    status_table,
    why_stale,
)

# --- Editions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["quick", "default", "paper"])
def test_the_editions_of_the_book_are_valid_and_make_what_the_contents_list(name):
    pages = [page.page for page in load_edition(name).pages]
    listed = running.re.findall(r"book/executed/(\w+)", (ROOT / "_toc.yml").read_text())
    assert sorted(pages) == sorted(listed)


def test_an_edition_gives_every_parameter_a_value(tiny_book):
    (page,) = load_edition("default", tiny_book).pages
    assert page == Page(page="small_sum", notebook="sums", parameters={"n": 5, "title": "Sum"})


PAGE = "about: x\npages:\n  - "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: x", "draft.yml: key 'pages' is missing"),
        ("about: x\npages: []", "draft.yml: key 'pages' is []: list should have at least 1 item"),
        ("- 1", "draft.yml is [1]: expected a mapping of keys to values"),
        ("about: x\npages: [1]\n", "draft.yml, page 1 is 1: expected a mapping of keys to values"),
        ("page: x", "draft.yml: key 'about' is missing"),
        ("a: [", "draft.yml is no YAML: "),
        (
            PAGE + "{page: a, notebook: sums}\nextra: 1",
            "key 'extra' is unknown: expected one of about",
        ),
        (
            PAGE + "{page: a, notebook: sums, parametrs: {}}",
            "draft.yml, page 1: key 'parametrs' is unknown: expected one of page, notebook, param",
        ),
        (PAGE + "{page: a}", "draft.yml, page 1: key 'notebook' is missing"),
        (PAGE + "{page: ../a, notebook: sums}", "draft.yml, page 1: key 'page' is '../a': string"),
        (PAGE + "{page: 5, notebook: sums}", "draft.yml, page 1: key 'page' is 5: input should be"),
        (
            PAGE + "{page: a, notebook: sum}",
            "draft.yml, page a: notebook 'sum' is unknown: expected sums",
        ),
        (
            PAGE + "{page: a, notebook: sums, parameters: {m: 1}}",
            "draft.yml, page a: parameter 'm' of sums is unknown: expected one of n, title",
        ),
        (
            PAGE + "{page: a, notebook: sums, parameters: {n: five}}",
            "draft.yml, page a: parameter 'n' of sums is 'five': expected int",
        ),
        (
            PAGE + "{page: a, notebook: sums}\n  - {page: a, notebook: sums}",
            "draft.yml: page 'a' is listed twice",
        ),
    ],
)
def test_an_edition_that_breaks_a_rule_is_refused_in_one_sentence(tiny_book, text, message):
    tiny_book.add_edition("draft", text)
    with pytest.raises(InputError) as refusal:
        load_edition("draft", tiny_book)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_damaged_notebook_is_refused(tiny_book):
    path = tiny_book.notebook("sums")
    path.write_text(path.read_text()[:50])
    with pytest.raises(InputError, match=r"sums.ipynb is damaged: expected a notebook of format 4"):
        load_edition("default", tiny_book)


# --- One page ---------------------------------------------------------------------------------


@pytest.fixture
def page_run(tiny_book):
    output = tiny_book.executed / "small_sum.ipynb"
    record = run_page(tiny_book.notebook("sums"), output, {"n": 5}, book=tiny_book)
    return tiny_book, output, record


def cell_outputs(path: Path) -> list:
    return [
        output
        for cell in nbformat.read(path, 4).cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def test_a_page_shows_its_values_and_results(page_run):
    _, output, _ = page_run
    notebook = nbformat.read(output, 4)
    assert notebook.cells[1].source == "n: int = 5  # terms\ntitle: str = 'Sum'"
    assert cell_outputs(output)[0].text == "Sum 10\n"
    assert len(notebook.cells) == 3, "papermill added no cell of its own"


def test_its_record_says_what_was_run_and_how_to_repeat_it(page_run):
    _, output, record = page_run
    assert read_record(output) == record
    assert record["parameters"] == {"n": 5, "title": "Sum"}
    assert record["command"] == "python -m lib run sums -p n 5"
    assert record["status"] == "complete"
    assert record["seconds"] > 0
    assert set(record["digests"]) == {"notebook", "parameters", "lib", "data", "versions", "output"}


def test_the_same_inputs_give_the_same_bytes(page_run):
    book, output, record = page_run
    before = output.read_bytes()
    again = run_page(book.notebook("sums"), output, {"n": 5}, book=book)
    assert output.read_bytes() == before
    assert again["digests"] == record["digests"]


def test_a_page_is_stale_exactly_when_something_that_made_it_changed(page_run, monkeypatch):
    book, _, _ = page_run
    (page,) = load_edition("default", book).pages
    assert why_stale(page, book) is None

    more = page.model_copy(update={"parameters": {"n": 6, "title": "Sum"}})
    assert why_stale(more, book) == "parameters changed"

    code = book.root / "lib" / "code.py"
    code.write_text("one = 2\n")
    assert why_stale(page, book) == "lib changed"
    code.write_text("one = 1\n")
    assert why_stale(page, book) is None

    data = book.root / "data" / "table.csv"
    data.parent.mkdir()
    data.write_text("age\n")
    assert why_stale(page, book) == "data changed"
    data.unlink()

    monkeypatch.setattr(running, "versions", lambda: {"numpy": "0"})
    assert why_stale(page, book) == "versions changed"
    monkeypatch.undo()

    book.add_notebook("sums", "n: int = 3  # terms\ntitle: str = 'Sum'", "print(n)")
    assert why_stale(page, book) == "notebook changed"


def test_a_damaged_page_or_record_is_stale(page_run):
    book, output, _ = page_run
    (page,) = load_edition("default", book).pages
    whole = output.read_bytes()
    output.write_bytes(whole[:-10])
    assert why_stale(page, book) == "its executed notebook is damaged"
    output.write_bytes(whole)
    record = output.with_suffix(".json")
    record.write_text(record.read_text()[:40])
    assert why_stale(page, book) == "not run yet"


def test_kernels_use_files_not_ports_and_the_error_stream_stays_off_the_page(tiny_book):
    notebook = tiny_book.add_notebook(
        "kernel",
        "",
        "from ipykernel.kernelapp import IPKernelApp\nprint(IPKernelApp.instance().transport)",
        "import sys, os\nprint('careful', file=sys.stderr)\nos.getcwd()",
    )
    output = tiny_book.executed / "kernel.ipynb"
    reached = []
    record = run_page(
        notebook,
        output,
        book=tiny_book,
        on_cell=lambda number, count: reached.append((number, count)),
    )
    transport, folder = cell_outputs(output)
    assert transport.text == ("ipc\n" if os.name == "posix" else "tcp\n")
    assert folder.data["text/plain"] == repr(str(tiny_book.root))
    assert record["stderr"] == [{"cell": 3, "text": "careful\n"}]
    assert reached == [(1, 3), (2, 3), (3, 3)]


def test_a_failure_keeps_the_good_page_and_names_cell_and_error(page_run):
    book, output, _ = page_run
    before = output.read_bytes(), output.with_suffix(".json").read_bytes()
    book.add_notebook("sums", "n: int = 3  # terms", "n + 1", "raise ValueError('no\\nsum')")
    with pytest.raises(PageFailed) as failure:
        run_page(book.notebook("sums"), output, book=book)
    assert str(failure.value) == "small_sum: cell 3 of 3: ValueError: no"
    assert (output.read_bytes(), output.with_suffix(".json").read_bytes()) == before
    failed = output.with_suffix(".failed.ipynb")
    assert cell_outputs(failed)[-1].ename == "ValueError"
    assert why_stale(Page(page="small_sum", notebook="sums"), book) == "failed last time"
    assert "**failed since**" in status_table([Page(page="small_sum", notebook="sums")], book)

    book.add_notebook("sums", "n: int = 3  # terms", "n + 1")
    run_page(book.notebook("sums"), output, book=book)
    assert not failed.exists(), "a good run ends the failure"
    assert sorted(path.name for path in book.executed.iterdir()) == [
        "small_sum.ipynb",
        "small_sum.json",
    ]


def test_a_notebook_is_never_its_own_output(tiny_book):
    path = tiny_book.notebook("sums")
    with pytest.raises(InputError, match="is the notebook itself"):
        run_page(path, path, book=tiny_book)


# --- Many pages -------------------------------------------------------------------------------


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
    # A run that was killed while it wrote has left this.
    leftover = tiny_book.executed / ".small_sum.part.ipynb"
    leftover.write_text("{")

    outcome = build("mixed", render=False, book=tiny_book)
    assert outcome.ran == ["broken", "small_sum", "dies"]
    assert outcome.problems[0] == "broken: cell 2 of 2: ZeroDivisionError: division by zero"
    assert outcome.problems[1].startswith("dies: cell 2 of 2: DeadKernelError")
    assert outcome.problems[2].startswith("_toc.yml lists book/executed/broken, and there is no")
    assert len(outcome.problems) == 3
    assert not leftover.exists()
    shown = capfd.readouterr().err
    assert "broken: FAILED\n" in shown
    assert "small_sum: done in " in shown
    assert "\r" not in shown, "no live line where there is no terminal"

    table = (tiny_book.executed / "status_table.md").read_text()
    assert "| `broken` | `broken` | | | | **failed** |" in table
    assert "{doc}`/book/executed/small_sum`" in table
    assert "$ python -m lib run sums\n" in table

    tiny_book.add_edition("default", f"about: x\npages:\n{edition.splitlines()[0]}\n")
    again = build("default", render=False, book=tiny_book)
    assert (again.ran, again.unchanged) == ([], ["small_sum"])


@pytest.fixture
def slow_run(tiny_book):
    """A command that runs a page of many minutes; the process, its kernel and its folder."""
    mark = tiny_book.root / "kernel.pid"
    tiny_book.add_notebook(
        "slow",
        "n: int = 1",
        f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))",
        "time.sleep(300)",
    )
    (tiny_book.executed / "slow.ipynb").write_text("good")
    program = (
        "from pathlib import Path; from lib.running import Book, Run, execute\n"
        f"book = Book(Path({str(tiny_book.root)!r}))\n"
        "run = Run(book.notebook('slow'), book.executed / 'slow.ipynb', {}, book.root)\n"
        "try: execute([run], book=book)\n"
        "except KeyboardInterrupt: raise SystemExit(130)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    wait_for(lambda: mark.exists() and mark.read_text())
    yield process, psutil.Process(int(mark.read_text())), tiny_book.executed
    process.kill()


def test_an_interrupt_stops_kernels_and_leaves_the_good_page(slow_run):
    process, kernel, executed = slow_run
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    wait_for(lambda: ended(kernel))
    assert [path.name for path in executed.iterdir()] == ["slow.ipynb"]
    assert (executed / "slow.ipynb").read_text() == "good"


def test_nothing_goes_on_after_the_command_is_killed(slow_run):
    process, kernel, executed = slow_run
    process.kill()
    process.wait()
    wait_for(lambda: ended(kernel))
    assert (executed / "slow.ipynb").read_text() == "good"


def ended(process: psutil.Process) -> bool:
    # Where nothing adopts orphans, one that has ended stays listed as a zombie.
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def test_a_process_that_ends_without_a_word_is_a_failure(tiny_book, monkeypatch):
    monkeypatch.setattr(running.sys, "executable", "/bin/false")
    run = Run(tiny_book.notebook("sums"), tiny_book.executed / "a.ipynb", {}, tiny_book.root)
    assert execute([run], book=tiny_book) == ["a: its process ended with status 1"]


def test_two_builds_at_once_are_refused(tiny_book):
    with (
        alone(tiny_book.executed / ".lock"),
        pytest.raises(InputError, match="another build is at work"),
    ):
        build("default", render=False, book=tiny_book)


def test_an_unwritable_folder_is_named_before_anything_runs(tiny_book):
    tiny_book.executed.rmdir()
    tiny_book.executed.write_text("a file in the way")
    with pytest.raises(InputError, match=r"cannot write to .*executed: File exists"):
        build("default", render=False, book=tiny_book)


def test_the_status_table_is_valid_where_values_hold_bars(tiny_book):
    output = tiny_book.executed / "small_sum.ipynb"
    run_page(tiny_book.notebook("sums"), output, {"title": "a|b"}, book=tiny_book)
    row = status_table([Page(page="small_sum", notebook="sums")], tiny_book).splitlines()[2]
    assert row.replace("\\|", "").count("|") == 7
    record = json.loads(output.with_suffix(".json").read_text())
    assert record["command"] == "python -m lib run sums -p title 'a|b'"


# --- Rendering --------------------------------------------------------------------------------


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
    status = outcome.index.with_name("start.html").read_text()
    assert "The commands that repeat them" in status
    assert 'href="book/executed/total.html"' in status
    page = outcome.index.parent / "book" / "executed" / "total.html"
    assert "Sum 3" in page.read_text()
