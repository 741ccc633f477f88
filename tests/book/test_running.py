"""Pages show what was run, are stale when something changed, and never hide a failure."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from lib import ROOT
from lib.book import running
from lib.book.editions import Run, load_edition
from lib.book.parameters import read_notebook
from lib.book.running import PageFailed, execute, read_record, run_page, why_stale
from lib.errors import InputError


@pytest.fixture(scope="module")
def executed_sums(make_tiny_book, tmp_path_factory):
    """The page of the short notebook, executed once for all of the tests that begin with it."""
    run = sums(make_tiny_book(tmp_path_factory.mktemp("sums")), {"n": 5})
    return run.output.parent, run_page(run)


@pytest.fixture
def page_run(tiny_book, executed_sums):
    folder, record = executed_sums
    run = sums(tiny_book, {"n": 5})
    shutil.copytree(folder, run.output.parent, dirs_exist_ok=True)
    return tiny_book, run.output, record


def sums(book, values=None) -> Run:
    """The run of the short notebook, as it is now, that makes the page `small_sum`."""
    return Run(book.notebook("sums"), book.page("small_sum"), values or {}, book=book)


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
    assert notebook.cells[0].source == "# sums\n{n}"
    assert notebook.cells[1].source == "n: int = 5  # terms\ntitle: str = 'Sum'"
    assert cell_outputs(output)[0].text == "Sum 10\n"
    assert len(notebook.cells) == 3, "papermill added no cell of its own"


def test_its_record_says_what_was_run_and_how_to_repeat_it(page_run):
    book, _, record = page_run
    assert read_record(sums(book).record) == record
    assert record["parameters"] == {"n": 5, "title": "Sum"}
    assert record["command"] == "python -m lib run sums -p n 5"
    assert record["status"] == "complete"
    assert record["seconds"] > 0
    inputs = {"notebook", "parameters", "lib", "data", "kept tables", "versions"}
    assert set(record["digests"]) == inputs | {"page"}


def test_the_same_inputs_give_the_same_bytes(page_run):
    book, output, record = page_run
    before = output.read_bytes()
    again = run_page(sums(book, {"n": 5}))
    assert output.read_bytes() == before
    assert again["digests"] == record["digests"]


def test_a_relative_output_is_where_one_stands(tiny_book, monkeypatch):
    elsewhere = tiny_book.root / "else {where}"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    run_page(Run(tiny_book.notebook("sums"), Path("out.ipynb"), book=tiny_book))
    assert sorted(path.name for path in elsewhere.iterdir()) == ["out.ipynb", "out.json"]
    assert not list(tiny_book.root.glob("*out*"))


def test_a_page_is_stale_exactly_when_something_that_made_it_changed(page_run, monkeypatch):
    book, _, _ = page_run
    run = load_edition("default", book).runs["small_sum"]
    assert why_stale(run) is None
    assert why_stale(sums(book, {"n": 6})) == "parameters changed"

    code = book.root / "lib" / "code.py"
    code.write_text("one = 2\n")
    assert why_stale(run) == "lib changed"
    code.write_text("one = 1\n")
    assert why_stale(run) is None

    data = book.root / "data" / "table.csv"
    data.parent.mkdir()
    data.write_text("age\n")
    assert why_stale(run) == "data changed"
    data.rename(data.with_name("speed.json"))
    assert why_stale(run) is None, "what a measurement writes goes into no page"

    monkeypatch.setattr(running, "versions", lambda: {"numpy": "0"})
    assert why_stale(run) == "versions changed"
    monkeypatch.undo()

    book.add_notebook("sums", "n: int = 3  # terms\ntitle: str = 'Sum'", "print(n)")
    assert why_stale(run) == "notebook changed"


@pytest.fixture
def unexecuted(monkeypatch):
    """Pages as they are before their first cell: what goes in is noted by then."""
    monkeypatch.setattr(running, "_execute", lambda source, *_: source)


@pytest.mark.parametrize(
    ("parameters", "code", "file"),
    [
        (
            f"path: str = 'table.csv'\ntitle: str = {'long ' * 1_000!r}",
            "open(path).read()",
            "table.csv",
        ),
        ("path: list[str] = ['s-ridge', 'my.own:Mine']", "", "my/own.py"),
        ("path: list[str] = ['mine:Mine']", "", "mine.py"),
        ("path: str = 'my.own:Mine'", "", "my/__init__.py"),
        ("path: str = 'my/study'", "", "my/study/seen.csv"),
        ("path: dict = {'seen': ['table.csv']}", "", "table.csv"),
        ("path: str = 'grids.yml'", "", "mine.py"),
        ("path: str = '~/ages.csv'", "import pandas; pandas.read_csv(path)", "ages.csv"),
    ],
    ids=["file", "module", "class", "package", "folder", "within", "named in a file", "at home"],
)
def test_a_page_is_stale_when_a_file_that_a_parameter_names_changed(
    tiny_book, unexecuted, parameters, code, file, monkeypatch
):
    for home in ("HOME", "USERPROFILE"):  # on Windows, the second one
        monkeypatch.setenv(home, str(tiny_book.root))
    notebook = tiny_book.add_notebook("reads", parameters, code)
    named = tiny_book.root / file
    named.parent.mkdir(exist_ok=True, parents=True)
    named.write_text("age")
    grids = {"estimators": {"mine": {"estimator": "mine:Mine"}, "other": "grids.yml"}}
    (tiny_book.root / "grids.yml").write_text(json.dumps(grids))
    run = Run(notebook, tiny_book.page("reads"), book=tiny_book)
    run_page(run)
    assert why_stale(run) is None
    named.write_text("age\n17")
    assert why_stale(run) == "file of path changed"
    named.unlink()
    assert why_stale(run) == "file of path changed"


def test_a_page_is_stale_when_a_module_on_the_path_of_kernels_changed(
    tiny_book, unexecuted, monkeypatch, tmp_path
):
    (tmp_path / "mine.py").write_text("class Mine: ...")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["elsewhere", str(tmp_path)]))
    notebook = tiny_book.add_notebook("reads", "names: list[str] = ['mine:Mine']", "")
    run = Run(notebook, tiny_book.page("reads"), book=tiny_book)
    run_page(run)
    assert why_stale(run) is None
    (tmp_path / "mine.py").write_text("class Mine(int): ...")
    assert why_stale(run) == "file of names changed"
    values = {"names": [":Mine", ".mine:Mine"]}
    run = Run(notebook, tiny_book.page("odd"), values, book=tiny_book)
    run_page(run)
    (tmp_path / "other.py").touch()
    assert why_stale(run) is None, "a text without a module names no folder of them"


def test_a_file_that_names_itself_has_an_end(tiny_book, unexecuted):
    (tiny_book.root / "self.yml").write_text("age: &a {parents: [*a]}")
    notebook = tiny_book.add_notebook("reads", "path: str = 'self.yml'", "")
    run = Run(notebook, tiny_book.page("reads"), book=tiny_book)
    run_page(run)
    assert why_stale(run) is None


def test_a_change_while_a_page_is_begun_counts(tiny_book, unexecuted, monkeypatch):
    def read_and_change(path):
        notebook = read_notebook(path)
        path.write_text(path.read_text().replace("Sum", "All"))
        return notebook

    run = Run(tiny_book.notebook("sums"), tiny_book.page("sums"), book=tiny_book)
    monkeypatch.setattr(running, "read_notebook", read_and_change)
    run_page(run)
    assert why_stale(run) == "notebook changed"


@pytest.mark.parametrize("path", [".", "", "..", "/", "book", "\0"])
def test_a_folder_that_holds_the_page_is_not_among_what_goes_in(tiny_book, unexecuted, path):
    notebook = tiny_book.add_notebook("reads", f"path: str = {path!r}", "1")
    run = Run(notebook, tiny_book.page("reads"), book=tiny_book)
    run_page(run)
    (tiny_book.root / "book" / "more.md").write_text("more")
    assert why_stale(run) is None


def test_a_damaged_page_or_record_is_stale(page_run):
    book, output, _ = page_run
    run = load_edition("default", book).runs["small_sum"]
    whole = output.read_bytes()
    output.write_bytes(whole[:-10])
    assert why_stale(run) == "page changed"
    output.write_bytes(whole)
    record = output.with_suffix(".json")
    record.write_text(record.read_text()[:40])
    assert why_stale(run) == "not run yet"


def test_kernels_use_files_not_ports_and_the_error_stream_stays_off_the_page(tiny_book):
    notebook = tiny_book.add_notebook(
        "kernel",
        "",
        "from ipykernel.kernelapp import IPKernelApp\nprint(IPKernelApp.instance().transport)",
        "import sys, os\nprint('careful', file=sys.stderr)\nos.getcwd()",
        # Two pieces, as any output may come in, and something between them.
        "print('one', flush=True)\nprint('careful', file=sys.stderr, flush=True)\nprint('two')",
        "print('before')\ndisplay(1)\ndisplay(2)\nprint('after')",
    )
    output = tiny_book.executed / "kernel.ipynb"
    record = run_page(Run(notebook, output, book=tiny_book))
    transport, folder, counted, before, one, two, after = cell_outputs(output)
    assert transport.text == ("ipc\n" if os.name == "posix" else "tcp\n")
    assert folder.data["text/plain"] == repr(str(tiny_book.root))
    assert counted.text == "one\ntwo\n", "one output, however long it took"
    assert [before.text, one.data, two.data, after.text] == [
        *("before\n", {"text/plain": "1"}, {"text/plain": "2"}, "after\n")
    ], "in the order in which they were shown"
    assert record["stderr"] == [{"cell": n, "text": "careful\n"} for n in (3, 4)]


def test_a_failure_keeps_the_good_page_and_names_cell_and_error(page_run):
    book, output, _ = page_run
    before = output.read_bytes(), output.with_suffix(".json").read_bytes()
    book.add_notebook("sums", "n: int = 3  # terms", "n + 1", "raise ValueError('no\\nsum')")
    with pytest.raises(PageFailed) as failure:
        run_page(sums(book))
    assert str(failure.value) == "small_sum: cell 3 of 3: ValueError: no"
    assert (output.read_bytes(), output.with_suffix(".json").read_bytes()) == before
    failed = output.with_suffix(".failed.ipynb")
    assert cell_outputs(failed)[-1].ename == "ValueError"
    assert why_stale(sums(book)) == "failed last time"

    book.add_notebook("sums", "n: int = 3  # terms", "n + 1")
    run_page(sums(book))
    assert not failed.exists(), "a good run ends the failure"
    assert sorted(path.name for path in output.parent.iterdir()) == [
        "small_sum.ipynb",
        "small_sum.json",
    ]


def test_a_number_that_is_recorded_twice_fails_its_page(tiny_book, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the tiny book has a folder of the name lib
    code = "from lib.book.recorded import number\nnumber('Of n', 1)", "number('of_n', 2)"
    run = Run(tiny_book.add_notebook("twice", "n: int = 3", *code), book=tiny_book)
    run.output.parent.mkdir(parents=True)
    with pytest.raises(
        PageFailed, match="each recorded number may be given only once: found 'of_n'"
    ):
        run_page(run)
    assert run.failed.exists() and not run.output.exists() and not run.record.exists()


def test_the_text_of_a_figure_for_the_blind_begins_with_its_title(tiny_book, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    first = "import pandas as pd\nfrom lib.plots import heat_map\ntable = pd.DataFrame({'n': [n]})"
    drawn = "heat_map(table, f'{n} of 9 errors fall in this title of more than one line of text')"
    path = tiny_book.add_notebook("figures", "n: int = 3", first, drawn, drawn, "table")
    source = nbformat.read(path, 4)
    source.cells[3].metadata["mystnb"] = {"image": {"alt": "A map of colours."}}
    nbformat.write(source, path)
    run = Run(path, values={"n": 5}, book=tiny_book)
    run.output.parent.mkdir(parents=True)
    run_page(run)
    told, untold, table = nbformat.read(run.output, 4).cells[-3:]
    title = "5 of 9 errors fall in this title of more than one line of text."
    assert told.metadata["mystnb"]["image"]["alt"] == f"{title} A map of colours."
    assert untold.metadata["mystnb"]["image"]["alt"] == title
    assert "mystnb" not in table.metadata


def test_a_notebook_is_never_its_own_output(tiny_book):
    path = tiny_book.notebook("sums")
    with pytest.raises(InputError, match="must not replace the notebook that is run"):
        Run(path, path, book=tiny_book)


@pytest.fixture
def slow_run(tiny_book):
    """A command that runs pages of many minutes, and the file in which a kernel says its id."""
    mark = tiny_book.root / "kernel.pid"
    tiny_book.add_notebook(
        "slow",
        "n: int = 1",
        f"import os, pathlib, time\npathlib.Path({str(mark)!r}).write_text(str(os.getpid()))",
        "time.sleep(300)",
    )
    page = tiny_book.page("slow")
    page.write_text("good")
    program = (
        # To the tests, when they run in the background of a shell, an interrupt means nothing.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from pathlib import Path\nfrom lib.book import kernels\n"
        "from lib.book.editions import Book\nfrom lib.book.running import Run, execute\n"
        "kernels.IMPORTED = ()\n"  # of which the pages need nothing
        f"book = Book(Path({str(tiny_book.root)!r}))\n"
        "pages = ['slow', 'waits', 'waits_too']\n"
        "runs = [Run(book.notebook('slow'), book.page(page), book=book) for page in pages]\n"
        "try: execute(runs, workers=1)\n"
        "except KeyboardInterrupt: raise SystemExit(130)"
    )
    with (tiny_book.root / "said").open("w") as said:
        process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=said)
    yield process, mark, page.parent
    process.kill()


def kernel_at_work(mark: Path) -> psutil.Process:
    wait_for(lambda: mark.exists() and mark.read_text())
    return psutil.Process(int(mark.read_text()))


def test_there_is_one_worker_more_than_cores_unless_another_number_is_asked_for(monkeypatch):
    def parallel(n_jobs, pre_dispatch, **options):
        asked.append((n_jobs, pre_dispatch))
        return list

    asked = []
    monkeypatch.setattr(running.joblib, "cpu_count", lambda: 5)
    monkeypatch.setattr(running.joblib, "Parallel", parallel)
    assert [execute([], workers) for workers in (None, 1, 3)] == [[], [], []]
    assert asked == [(6, "n_jobs"), (1, 1), (3, 3)]
    for workers in (0, 1.5, "2"):
        with pytest.raises(InputError, match="workers must be a whole number of at least 1"):
            execute([], workers)


@pytest.fixture
def stand_ins(monkeypatch, tiny_book):
    """Runs of three pages, each of which is made by a function of the same name."""

    def made(**functions):
        def run_page(run):
            return functions[run.page]() or {"stderr": [], "seconds": 1}

        monkeypatch.setattr(running, "run_page", run_page)
        source = tiny_book.notebook("sums")
        return [Run(source, tiny_book.page(page), book=tiny_book) for page in functions]

    return made


@pytest.mark.parametrize("workers", [1, 3])
def test_problems_have_the_order_of_the_runs_and_each_page_is_told_of(stand_ins, capsys, workers):
    def late():
        time.sleep(0.3)
        raise PageFailed("late: why")

    def early():
        raise InputError("early: why")

    def warns():
        return {"stderr": [{"cell": 2, "text": "careful\n"}], "seconds": 2.7}

    assert execute(stand_ins(late=late, early=early, warns=warns), workers) == [
        "late: why",
        "early: why",
    ]
    said = capsys.readouterr().err.splitlines()
    one_by_one = [
        *("late: started, 1 of 3", "late: FAILED"),
        *("early: started, 2 of 3", "early: FAILED"),
        *("warns: started, 3 of 3", "warns: cell 2 warned: careful", "warns: done in 3 s"),
    ]
    if workers == 1:
        assert said == one_by_one
    assert sorted(said) == sorted(one_by_one)
    assert said[-1] == ("warns: done in 3 s" if workers == 1 else "late: FAILED")


def test_what_nobody_foresaw_starts_no_other_page_and_waits_for_those_at_work(stand_ins):
    done = []

    def broken():
        raise OSError("the net has gone")

    def slow():
        time.sleep(0.5)
        done.append("slow")

    runs = stand_ins(broken=broken, slow=slow, waits=lambda: done.append("waits"))
    with pytest.raises(OSError, match="the net has gone"):
        execute(runs, workers=2)
    assert done == ["slow"]


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


@pytest.mark.parametrize("interrupts", [1, 2])
def test_an_interrupt_starts_no_other_page_and_a_second_one_changes_nothing(slow_run, interrupts):
    process, mark, executed = slow_run
    kernel = kernel_at_work(mark)
    for _ in range(interrupts):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert process.wait(30) == 130
    assert ended(kernel)
    said = (executed.parents[2] / "said").read_text().splitlines()
    assert [line for line in said if line.strip()] == ["slow: started, 1 of 3"]


def test_nothing_goes_on_after_the_command_is_killed(slow_run):
    process, mark, executed = slow_run
    kernel = kernel_at_work(mark)
    process.kill()
    process.wait()
    wait_for(lambda: ended(kernel))
    assert (executed / "slow.ipynb").read_text() == "good"


@pytest.mark.skipif(os.name != "posix", reason="files of kernels stand elsewhere there")
def test_what_a_killed_command_leaves_of_its_kernel_goes_with_the_next(tiny_book, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tiny_book.root / "runtime"))
    seen = "from ipykernel.connect import get_connection_file\nget_connection_file()"
    run = Run(tiny_book.add_notebook("where", "", seen), book=tiny_book)
    run.output.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:  # sockets need short names
        monkeypatch.setattr(tempfile, "tempdir", folder)
        left = Path(folder) / f".partial.{2**31 - 1}.12345678.kernel"
        left.mkdir()
        (left / "kernel.json").write_text("{}")
        run_page(run)
        (found,) = cell_outputs(run.output)
        assert f"{folder}/.partial.{os.getpid()}." in found.data["text/plain"]
        assert os.listdir(folder) == []
    assert not list(tiny_book.root.glob("runtime/*"))


def ended(process: psutil.Process) -> bool:
    # Where nothing adopts orphans, one that has ended stays listed as a zombie.
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
