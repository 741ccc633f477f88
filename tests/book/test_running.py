"""Pages show what was run, are stale when something changed, and never hide a failure."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from lib import ROOT
from lib.book import running
from lib.book.editions import Page, load_edition
from lib.book.running import PageFailed, read_record, run_page, why_stale
from lib.errors import InputError


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
    assert notebook.cells[0].source == "# sums of 5\n{n}", "the title alone takes values"
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


def test_a_relative_output_is_where_one_stands(tiny_book, monkeypatch):
    elsewhere = tiny_book.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run_page(tiny_book.notebook("sums"), Path("out.ipynb"), book=tiny_book)
    assert sorted(path.name for path in elsewhere.iterdir()) == ["out.ipynb", "out.json"]
    assert not list(tiny_book.root.glob("*out*"))


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


@pytest.fixture
def slow_run(tiny_book):
    """A command that runs a page of many minutes, and the file in which its kernel says its id."""
    mark = tiny_book.root / "kernel.pid"
    tiny_book.add_notebook(
        "slow",
        "n: int = 1",
        f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))",
        "time.sleep(300)",
    )
    (tiny_book.executed / "slow.ipynb").write_text("good")
    program = (
        "from pathlib import Path\nfrom lib.book.editions import Book\n"
        "from lib.book.running import Run, execute\n"
        f"book = Book(Path({str(tiny_book.root)!r}))\n"
        "run = Run(book.notebook('slow'), book.executed / 'slow.ipynb', {})\n"
        "try: execute([run], book=book)\n"
        "except KeyboardInterrupt: raise SystemExit(130)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    yield process, mark, tiny_book.executed
    process.kill()


def kernel_at_work(mark: Path) -> psutil.Process:
    wait_for(lambda: mark.exists() and mark.read_text())
    return psutil.Process(int(mark.read_text()))


@pytest.mark.parametrize("at_work", [True, False], ids=["at work", "about to start"])
def test_an_interrupt_stops_kernels_and_leaves_the_good_page(slow_run, at_work):
    process, mark, executed = slow_run
    children = psutil.Process(process.pid).children
    wait_for(children)
    kernels = [kernel_at_work(mark)] if at_work else children()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert all(ended(kernel) for kernel in kernels)
    assert [path.name for path in executed.iterdir()] == ["slow.ipynb"]
    assert (executed / "slow.ipynb").read_text() == "good"


def test_nothing_goes_on_after_the_command_is_killed(slow_run):
    process, mark, executed = slow_run
    kernel = kernel_at_work(mark)
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
