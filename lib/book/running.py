"""Running pages: papermill executes notebooks, with a record of what went in.

A page is a pair of files: the executed notebook and its *run record* (JSON), which holds digests of
all that went in, times, versions and the command that repeats the run. A page is up to date if
every digest is still the same. A notebook that fails never replaces a good page: it is kept
beside the page, as `<page>.failed.ipynb`.
"""

import contextlib
import datetime
import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import joblib
import nbformat
import psutil
from nbformat import NotebookNode

from lib import ROOT
from lib.book.editions import Run
from lib.book.parameters import marked, read_notebook, with_values
from lib.cache import versions
from lib.errors import InputError, check, check_count, check_once
from lib.files import atomic_write, digest, read_yaml, remove_left, writable, write_text

#: Tables of `data` that measurements write and pages of prose read.
MEASURED = ("scaling.csv", "speed.json", "training.csv")

_MATPLOTLIB = "m.rcdefaults(); m.rcParams['backend'] = 'module://matplotlib_inline.backend_inline'"

#: Options of all kernels. With them, a kernel shows the same to everyone, however a user has set up
#: Python, IPython or Matplotlib, and it is silent about problems of its own when it ends.
ALONE = ["--log-level=CRITICAL", "--InteractiveShellApp.exec_PYTHONSTARTUP=False"]
ALONE += ["--HistoryManager.enabled=False"]
ALONE += [f"--InteractiveShellApp.exec_lines=import matplotlib as m; {_MATPLOTLIB}; del m"]


#: An event that an interrupt of this process sets, and the pages that its threads are executing.
_interrupted, _at_work = threading.Event(), set[Path]()


class PageFailed(Exception):
    """A notebook raised an error; the message says which page, which cell and which error."""


# --- Run records ------------------------------------------------------------------------------


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of the last good run of a page, or None if no intact one exists."""
    with contextlib.suppress(Exception):  # another run mends what is missing or damaged
        record: dict[str, Any] = json.loads(path.read_bytes())
        if record.pop("seal") == _seal(record) and path.with_suffix(".ipynb").is_file():
            return record
    return None


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a record with a digest of itself, by which a damaged one or another file is noticed."""
    write_text(path, json.dumps(record | {"seal": _seal(record)}, indent=1))


def _seal(record: dict[str, Any]) -> str:
    return str(joblib.hash(json.dumps(record)))


def why_stale(run: Run, but: Collection[str] = ()) -> str | None:
    """Return why a page has to be run, such as `lib changed`, or None if it is up to date.

    Changes of the inputs in `but` do not count.

    Examples
    --------
    >>> from lib.book.editions import BOOK
    >>> why_stale(Run(BOOK.notebook("worlds"), Path("moon.ipynb")))
    'not run yet'
    """
    record = read_record(run.record)
    if run.failed.exists():
        return "failed last time"
    if record is None:
        return "not run yet"
    before, now = record["digests"], _digests(run) | {"page": digest(run.output)}
    changed = [what for what in now | before if now.get(what) != before.get(what)]
    return next((f"{what} changed" for what in changed if what not in but), None)


def _digests(run: Run) -> dict[str, str]:
    named = {f"file of {name}": _named(value, run, {}) for name, value in run.values.items()}
    data = run.book.root / "data"
    # Recording an edition changes kept tables, which matter only to notebooks that read them.
    reads_kept = b"recorded(" in run.notebook.read_bytes()
    return {
        "notebook": digest(run.notebook),
        "parameters": joblib.hash(run.values),
        "lib": digest(run.book.root / "lib"),
        "data": digest(data, without=["recorded", *MEASURED]),
        "kept tables": digest(data / "recorded") if reads_kept else "not read",
        "versions": joblib.hash(versions()),
        **{name: joblib.hash(files) for name, files in named.items() if files},
    }


def _named(value: Any, run: Run, found: dict[str, str]) -> dict[str, str]:
    """Add the digests of all files, folders and modules that the texts in a value name.

    Names within a YAML file among them count, too. The current folder of the run and the folders
    around it and around the page do not count, because they hold all sorts of things.
    """
    if isinstance(value, dict | list | tuple):
        for part in (*value, *(value.values() if isinstance(value, dict) else ())):
            _named(part, run, found)
    text = os.path.expanduser(value) if isinstance(value, str) else ""  # as pandas does
    module = text.partition(":")[0].partition(".")[0]  # or package, in `my_estimators:MyLearner`
    ends = [module, f"{module}.py"] if module and ":" in text else []
    places = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    modules = (os.path.join(place, end) for place in places for end in ends)
    for name in filter(None, (text, *modules)):
        # `os.path.exists` accepts any text, unlike that of Path.
        if name in found or not os.path.exists(os.path.join(run.folder, name)):
            continue
        path = Path(run.folder, name).resolve()
        if path in (run.folder, *run.folder.parents, *run.output.parents):
            continue
        found[name] = digest(path)
        if path.suffix in (".yml", ".yaml"):
            with contextlib.suppress(InputError, RecursionError):  # the run reports it
                _named(read_yaml(path), run, found)
    return found


# --- One page ---------------------------------------------------------------------------------


def run_page(run: Run) -> dict[str, Any]:
    """Execute a notebook, write the page and its run record, and return the record.

    Times and error streams go into the record, so that the same inputs give the same page.
    """
    # Inputs are noted before they are read, so that a change from here on counts as a change.
    digests = _digests(run)
    source, cell = read_notebook(run.notebook)
    cell.source = with_values(cell.source, run.values)
    record: dict[str, Any] = {
        "notebook": run.notebook.stem,
        "parameters": run.values,
        "changes": run.changes,
        "status": "complete",
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": run.command,
        "versions": versions(),
        "digests": digests,
    }
    reached: list[NotebookNode] = []
    started = time.monotonic()
    with atomic_write(run.output) as beside:
        try:
            executed = _execute(source, run.folder, reached)
            numbers = []
            for mark, output in marked(executed, "scrapbook"):
                if number := output.data.get(f"{mark.mime_prefix}application/json"):
                    numbers.append((mark.name, json.loads(number)))
            check_once("recorded number", (name for name, _ in numbers))
        except Exception as error:  # a cell's error, or a kernel that died
            if _interrupted.is_set():  # which ends kernels
                raise KeyboardInterrupt from None
            source.cells[: len(reached)] = reached
            write_text(run.failed, nbformat.writes(source))
            kind = getattr(error, "ename", type(error).__name__)
            said = str(getattr(error, "evalue", error)).strip().split("\n")[0]
            said += ", perhaps because memory ran out" * (kind == "DeadKernelError")
            where = f"{run.page}: cell {len(_code(reached))} of {len(_code(source.cells))}"
            raise PageFailed(f"{where}: {kind}: {said}".removesuffix(": ")) from error
        record["seconds"] = round(time.monotonic() - started, 1)
        record |= {"stderr": _settle(executed), "numbers": dict(numbers)}
        nbformat.write(executed, beside)
        record["digests"]["page"] = digest(beside)
    run.output.with_name("index.html").unlink(missing_ok=True)  # it shows the run before
    write_record(run.record, record)
    run.failed.unlink(missing_ok=True)
    return record


def _execute(source: NotebookNode, folder: Path, reached: list[Any]) -> Any:
    """Have papermill execute a notebook in a folder; add the cells that it starts to `reached`."""
    # These imports are heavy, and reading editions and records does not need them.
    import papermill
    from traitlets.config import Config

    from lib.book.kernels import CAN_FORK, ForkedKernel

    papermill.log.logger.setLevel(logging.CRITICAL)  # what went wrong is in the error
    remove_left(Path(tempfile.gettempdir()) / "kernel")
    name: Any = {"prefix": f".partial.{os.getpid()}.", "suffix": ".kernel"}
    with tempfile.TemporaryDirectory(**name, ignore_cleanup_errors=True) as sockets:
        settings = {"transport": "ipc", "connection_file": f"{sockets}/kernel.json"}
        # Kernels talk through files: those that start together can take each other's ports. With
        # the names of the sockets, the folder must stay below 104 bytes, as some systems require.
        through_files = os.name == "posix" and len(os.fsencode(sockets)) < 90
        return papermill.execute_notebook(
            source,
            None,  # it writes no file
            kernel_name="python3",
            progress_bar=False,
            on_cell_start=lambda cell, cell_index: reached.append(cell),
            record_timing=False,
            # For the client below papermill: papermill's own `cwd` would move this whole process.
            resources={"metadata": {"path": str(folder)}},
            config=Config(KernelManager=settings if through_files else {}),
            extra_arguments=[*ALONE, f"--profile-dir={sockets}"],
            **({"kernel_manager_class": ForkedKernel} if CAN_FORK else {}),
        )


def _code(cells: list[NotebookNode]) -> list[NotebookNode]:
    return [cell for cell in cells if cell.cell_type == "code"]


def _settle(executed: NotebookNode) -> list[dict[str, Any]]:
    """Remove from a notebook what differs from one run to another; return its error streams."""
    streams = []
    for part in [executed, *executed.cells]:
        part.metadata.pop("papermill", None)
    for number, cell in enumerate(_code(executed.cells), start=1):
        told, cell.outputs = cell.outputs, []
        said = "".join(output.text for output in told if output.get("name") == "stderr")
        streams += [{"cell": number, "text": said}] if said else []
        for output in (one for one in told if one.get("name") != "stderr"):
            last: Any = cell.outputs[-1] if cell.outputs else {}
            if output.get("name") == last.get("name") == "stdout":
                last.text += output.text  # the number of its pieces depends on timing
            else:
                cell.outputs.append(output)
            if title := output.get("metadata", {}).get("image/svg+xml", {}).get("title"):
                # For blind readers: what the figure of this run says, then what such figures show.
                image = cell.metadata.setdefault("mystnb", {}).setdefault("image", {})
                image["alt"] = f"{title}. {image.get('alt', '')}".strip()
    return streams


# --- Many pages ---------------------------------------------------------------------------------


def execute(runs: Sequence[Run], workers: int | None = None) -> list[str]:
    """Execute notebooks by `workers` of joblib, by default threads, and print their progress.

    By default there is one worker more than there are cores, or all workers of a cluster. Returns
    one sentence for each page that failed. After an interrupt, however often it comes, no other
    page starts, and every process that this one has started is ended. If this process is killed,
    the kernels notice and end themselves.
    """
    # One more, because light pages sometimes wait until their kernel has started or answered.
    n_jobs = joblib.cpu_count() + 1 if workers is None else workers
    check_count("workers", n_jobs, least=1)
    # Threads suffice, because the kernels do the work, and they are processes. No page is sent out
    # before a worker is free, because it could not be taken back.
    work = joblib.Parallel(n_jobs, pre_dispatch=workers or "n_jobs", batch_size=1, prefer="threads")
    for run in runs:
        writable(run.output.parent)
    _interrupted.clear()
    sent = (joblib.delayed(_attempt)(*each, len(runs), _installed()) for each in enumerate(runs, 1))
    with contextlib.ExitStack() as at_the_end, ThreadPoolExecutor(1) as beside:
        for one in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(one) is signal.default_int_handler:
                usual = signal.signal(one, lambda *_: _interrupted.set())
                at_the_end.callback(signal.signal, one, usual)
        # In another thread: in the main thread, Jupyter would handle the signals itself.
        problems = beside.submit(work, sent)
        while not problems.done() or _at_work:  # if joblib gives up, its threads go on
            if _interrupted.wait(0.05):
                work.timeout = 0  # from here on, it does not wait for work elsewhere
                # In every round, because a run may just be starting its kernel.
                for process in psutil.Process().children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
    if _interrupted.is_set():
        raise KeyboardInterrupt
    return [problem for problem in problems.result() if problem]


def _attempt(number: int, run: Run, of: int, asked: dict[str, str]) -> str | None:
    """Execute a page on any worker, print its progress, and return what failed, or None."""
    _at_work.add(run.output)
    try:
        if _interrupted.is_set():
            raise KeyboardInterrupt
        click.echo(f"{run.page}: started, {number} of {of}", err=True)
        rule = f"{run.page}: workers need the folder and versions of the process that started them"
        check(_installed() == asked, rule, dict(_installed().items() - asked.items()))
        # Kernels inherit this. A page takes one core, because others run beside it, and threads
        # that wait for a core double the time. Nor does any number depend on how many there are.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        record = run_page(run)
    except (InputError, PageFailed) as error:
        click.echo(f"{run.page}: FAILED", err=True)
        return str(error)
    finally:
        _at_work.discard(run.output)
    for stream in record["stderr"]:
        click.echo(f"{run.page}: cell {stream['cell']} warned: {stream['text'].strip()}", err=True)
    click.echo(f"{run.page}: done in {record['seconds']:.0f} s", err=True)
    return None


def _installed() -> dict[str, str]:
    return versions() | {"folder": str(ROOT)}
