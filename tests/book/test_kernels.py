"""A kernel that is a fork does what a kernel of its own does, and leaves nothing behind."""

import ast
import os
import signal
import subprocess
import sys

import nbformat
import psutil
import pytest

from lib import ROOT
from lib.book import kernels
from lib.book.editions import Run
from lib.book.running import run_page

pytestmark = pytest.mark.skipif(not kernels.CAN_FORK, reason="kernels are not forked here")


@pytest.fixture
def outputs(tiny_book):
    """Run a notebook of these cells; return the outputs of each."""

    def run(name: str, *cells: str) -> list[list]:
        made = Run(tiny_book.add_notebook(name, "", *cells), book=tiny_book)
        made.output.parent.mkdir(parents=True)
        record = run_page(made)
        assert record["stderr"] == []
        code = [cell for cell in nbformat.read(made.output, 4).cells if cell.cell_type == "code"]
        return [cell.outputs for cell in code[-len(cells) :]]

    return run


def test_a_fork_shows_what_a_kernel_of_its_own_shows_to_any_user(outputs, tmp_path, monkeypatch):
    cells = (
        "import pandas as pd\npd.DataFrame([range(30)])",
        "{'wide': pd.DataFrame([[0.123456789] * 9] * 3)}",
        "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])",
        "import sys\nsys.path, __name__",
        "import numpy as np\nnp.random.default_rng(1).normal()",
        "!echo from the shell",
        "import subprocess\nsubprocess.run(['false']).returncode",
    )
    forked = outputs("forked", *cells)
    monkeypatch.setattr(kernels, "CAN_FORK", False)
    startup = tmp_path / "profile_default" / "startup" / "mine.py"
    startup.parent.mkdir(parents=True)
    startup.write_text("import pandas\npandas.set_option('display.precision', 2)")
    (tmp_path / "python.py").write_text("import pandas\npandas.set_option('display.max_rows', 2)")
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 9")
    for name, path in {"IPYTHONDIR": "", "PYTHONSTARTUP": "python.py", "MATPLOTLIBRC": ""}.items():
        monkeypatch.setenv(name, str(tmp_path / path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert outputs("alone", *cells) == forked


def test_every_fork_imports_lib_itself_and_nothing_of_another(outputs):
    ours = "import sys\nsorted(name for name in sys.modules if name.split('.')[0] == 'lib')"
    changes = "import math, pandas, lib.noise\nmath.pi = pandas.met = 3"
    ((shown,), _) = outputs("first", ours, changes)
    assert shown.data["text/plain"] == "[]"
    (_, (shown,)) = outputs("second", "import math, pandas", "math.pi, hasattr(pandas, 'met')")
    assert shown.data["text/plain"] == "(3.141592653589793, False)"


def test_what_chapters_import_is_there_before_they_do(outputs):
    wanted = ("lib.effects", "lib.income", "lib.ccr", "lib.plots", "lib.book.recorded")
    count = "len({name.partition('.')[0] for name in set(sys.modules) - before} - {'lib'})"
    cell = f"import sys\nbefore = set(sys.modules)\nimport {', '.join(wanted)}\n{count}"
    ours = "import pandas as pd\nlib.plots.heat_map(pd.DataFrame({'n': [1]}), 'Ours').svg();"
    theirs = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    (shown,), _, (plot,) = outputs("imports", cell, ours, theirs)
    assert int(shown.data["text/plain"]) < 10, "packages of which some part is imported late"
    assert "image/png" in plot.data, "after a figure of ours, those of the user are shown"


def test_a_fork_does_at_its_end_what_it_was_asked_to(outputs, tmp_path):
    end = tmp_path / "end"
    outputs(
        "ends", f"import atexit, pathlib\n_ = atexit.register(pathlib.Path({str(end)!r}).touch)"
    )
    assert end.exists()


def test_a_fork_waits_for_its_threads_and_writes_what_is_in_open_files(outputs, tmp_path):
    late, kept = tmp_path / "late", tmp_path / "kept"
    thread = f"lambda: (time.sleep(0.3), pathlib.Path({str(late)!r}).touch())"
    start = f"import pathlib, threading, time\nthreading.Thread(target={thread}).start()"
    ring = "class Ring: pass\nring = Ring()\nring.itself = ring"
    file = f"ring.file = open({str(kept)!r}, 'w')\n_ = ring.file.write('all')"
    outputs("open", start, f"{ring}\n{file}")
    assert late.exists() and kept.read_text() == "all"


def test_nothing_is_closed_while_a_fork_still_says_that_it_ends(outputs, tmp_path):
    end = tmp_path / "end"
    cell = f"""
def watch(kernel, usual, end=open({str(end)!r}, "w")):
    def publish(status, channel, *others):
        if kernel._shutdown_message is not None:
            kernel.iopub_thread.thread.join(0.5)
            print(kernel.iopub_thread.thread.is_alive(), file=end, flush=True)
        usual(status, channel, *others)
    kernel._publish_status = publish
watch(get_ipython().kernel, get_ipython().kernel._publish_status)
"""
    outputs("farewell", cell)
    assert set(end.read_text().split()) == {"True"}


def test_a_fork_has_the_folder_and_the_variables_of_its_own_start(outputs, tiny_book, monkeypatch):
    monkeypatch.setenv("SAID_LATE", "yes")
    monkeypatch.setenv("PYTHONPATH", str(tiny_book.root))
    monkeypatch.chdir(tiny_book.root)
    alone = "os.getpgid(0) == os.getpid()"
    cell = f"import os, sys\nos.getcwd(), os.environ['SAID_LATE'], sys.path[0], {alone}"
    ((shown,),) = outputs("place", cell)
    expected = (str(tiny_book.root), "yes", str(tiny_book.root), True)
    assert ast.literal_eval(shown.data["text/plain"]) == expected


def test_the_time_of_a_fork_counts_as_that_of_the_processes_it_comes_from(outputs):
    outputs("before")  # starts the server
    server = psutil.Process(kernels._server.pid)
    before, busy = server.cpu_times(), "import time\nwhile time.process_time() < 0.7: pass"
    outputs("busy", busy)
    assert psutil.wait_procs(server.children(), timeout=5)[1] == []
    after = server.cpu_times()
    used = after.children_user + after.children_system
    assert used - before.children_user - before.children_system >= 0.7


def test_what_has_ended_is_started_anew_and_outlives_a_broken_library(
    outputs, tmp_path, monkeypatch, capfd
):
    tried = f"open({str(tmp_path / 'tried')!r}, 'w').close()\n"
    (tmp_path / "xgboost.py").write_text(f"{tried}raise TypeError('it cannot be imported')")
    (tmp_path / "yaml.py").touch()  # as a cluster may say where its packages are
    some = ("ipykernel.kernelapp", "ipykernel.debugger", "pandas", "pyarrow.parquet")
    monkeypatch.setattr(kernels, "IMPORTED", (*some, "xgboost", "yaml"))
    cell = "import os\nos.getppid()"
    (((before,),), _) = outputs("before", cell), kernels._server.kill()
    kernels._server.wait()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (after,), (library,) = outputs("after", cell, "import yaml\nyaml.__file__")
    assert (tmp_path / "tried").exists()
    assert str(tmp_path) in library.data["text/plain"]
    assert after.data["text/plain"] == str(kernels._server.pid) != before.data["text/plain"]
    # What libzmq says of a kernel at its end, seldom and after its last answer, is none of ours.
    said = [one for one in capfd.readouterr().err.splitlines() if "src/signaler.cpp" not in one]
    assert said == [], "such as a warning of Python 3.12 of forks, or of the debugger"
    kernels._server.kill()  # the next one is as the others are
    kernels._server.wait()


@pytest.mark.parametrize("program", ["input()", "import os; os.close(0); os._exit(0)"])
def test_a_server_that_ends_before_it_answers_says_so(monkeypatch, program):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as server:
        monkeypatch.setattr(kernels, "_server", server)
        monkeypatch.setattr(server, "poll", lambda: None)  # it ends just after it was looked at
        with pytest.raises(ChildProcessError, match="kernels gave no answer"):
            kernels._forked("order")


def test_what_an_import_prints_is_no_answer():
    program = "from lib.book import kernels; kernels.serve()"
    streams = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    server = subprocess.run([sys.executable, "-c", program, "this"], cwd=ROOT, **streams)
    assert server.stdout == "" and "The Zen of Python" in server.stderr


def test_a_kernel_that_has_ended_runs_no_more_and_takes_signals():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        kernel = kernels.Kernel(process.pid)
        assert kernel.poll() is None
        process.communicate(b"end")
    assert kernel.poll() == 0
    kernel.send_signal(signal.SIGTERM)


def test_a_kernel_whose_end_nobody_takes_notice_of_has_ended():
    process = subprocess.Popen([sys.executable, "-c", ""])
    kernel = kernels.Kernel(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # and leave it a zombie
    assert kernel.status() == psutil.STATUS_ZOMBIE
    assert (kernel.poll(), kernel.wait()) == (0, 0)
    process.wait()
