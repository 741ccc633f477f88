"""Running pages: papermill executes notebooks, with a record of what went in.

A page is a pair of files: the executed notebook and its *run record* (JSON), which
holds digests of all that went in, times, versions and the command that repeats the
run. A page is up to date if every digest in its record is still the same. A notebook
that fails never replaces a good page: it is kept beside it as `<page>.failed.ipynb`,
so that one can open it and look.
"""

import contextlib
import datetime
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import nbformat

from lib import ROOT
from lib.cache import folder_digest, versions
from lib.editions import Book, Page, parameters_cell, read_notebook
from lib.errors import InputError
from lib.parameters import Parameter, as_source, checked, read_parameters, with_values

#: Seconds between two lines about the same page, where progress is a log and no live line.
_LINE_EVERY = 15

#: Seconds a page may take to put its kernel to rest when it is interrupted.
_PATIENCE = 15

#: The longest path of a Unix socket, on the systems that allow the least (macOS: 104 bytes).
_SOCKET_PATH = 103


class PageFailed(Exception):
    """A notebook raised an error; the message says which page, which cell, and what."""


# --- Run records ------------------------------------------------------------------------------


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _shared_digests(book: Book) -> dict[str, str]:
    """Return the digests of what all pages depend on."""
    return {
        "lib": folder_digest(book.root / "lib"),
        "data": folder_digest(book.root / "data"),
        "versions": _sha256(json.dumps(versions()).encode()),
    }


def _page_digests(notebook: Path, values: Mapping[str, Any]) -> dict[str, str]:
    return {
        "notebook": _sha256(notebook.read_bytes()),
        "parameters": _sha256(json.dumps(values, sort_keys=True).encode()),
    }


def _record_path(output: Path) -> Path:
    return output.with_suffix(".json")


def failed_path(output: Path) -> Path:
    """Return where a notebook is kept that failed on its way to be a page.

    Examples
    --------
    >>> failed_path(Path("worlds.ipynb")).name
    'worlds.failed.ipynb'
    """
    return output.with_suffix(".failed.ipynb")


def read_record(output: Path) -> dict[str, Any] | None:
    """Return the run record of an executed notebook, or None if there is no whole one.

    Parameters
    ----------
    output : Path
        The executed notebook; its record is beside it.

    Examples
    --------
    >>> read_record(Path("nowhere.ipynb")) is None
    True
    """
    try:
        record = json.loads(_record_path(output).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("digests"), dict) else None


def why_stale(page: Page, book: Book | None = None) -> str | None:
    """Say why a page has to be run, or None if it is up to date.

    Parameters
    ----------
    page : Page
        A page of an edition.
    book : Book, optional
        Whose page; this project's if not given.

    Returns
    -------
    str or None
        For example `lib has changed`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     why_stale(Page(page="worlds", notebook="worlds"), Book(Path(folder)))
    'not run yet'
    """
    book = book or Book()
    output = book.executed / f"{page.page}.ipynb"
    record = read_record(output)
    if failed_path(output).exists():
        return "failed last time"
    if record is None or not output.is_file():
        return "not run yet"
    recorded = record["digests"]
    if recorded.get("output") != _sha256(output.read_bytes()):
        return "its executed notebook is damaged"
    source = book.notebook(page.notebook)
    now = _page_digests(source, page.parameters) | _shared_digests(book)
    changed = [name for name, digest in now.items() if recorded.get(name) != digest]
    return f"{changed[0]} changed" if changed else None


def command_for(
    notebook: str, values: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> str:
    r"""Return the command that repeats a run: the parameters that are not at their defaults.

    Parameters
    ----------
    notebook : str
        Name of the notebook.
    values : mapping of str to object
        What it is run with.
    parameters : mapping of str to Parameter
        What it has.

    Examples
    --------
    >>> parameters = read_parameters("n_samples: int = 10_000\nseed: int = 0")
    >>> command_for("worlds", {"n_samples": 500, "seed": 0}, parameters)
    'python -m lib run worlds -p n_samples 500'
    """
    words = ["python", "-m", "lib", "run", notebook]
    for name, value in values.items():
        if value != parameters[name].default:
            words += ["-p", name, value if isinstance(value, str) else as_source(value)]
    return shlex.join(words)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all: beside, then renamed into place.

    Parameters
    ----------
    path : Path
        Where the text goes.
    text : str
        What the file holds afterwards.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "status.md", "All is well.")
    ...     print((Path(folder) / "status.md").read_text())
    All is well.
    """
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def writable(folder: Path) -> None:
    """Make a folder, and make sure that files can be written there.

    Raises
    ------
    InputError
        If they cannot.

    Examples
    --------
    >>> writable(ROOT / "LICENSE" / "pages")
    Traceback (most recent call last):
    lib.errors.InputError: cannot write to ...pages: Not a directory
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asking for permission is not enough: root has it even where the disk is read-only.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None


# --- One page ---------------------------------------------------------------------------------


def _kernel_settings() -> Any:
    """Have the kernel talk through files instead of network ports.

    Kernels that start together can take each other's ports, and one that listens on
    a port warns about it on the page.
    """
    from jupyter_core.paths import jupyter_runtime_dir
    from traitlets.config import Config

    folder = Path(jupyter_runtime_dir())
    file = folder / f"kernel-{uuid.uuid4().hex}.json"
    longest_socket = f"{file.with_suffix('')}-ipc-5"
    if os.name != "posix" or len(os.fsencode(longest_socket)) > _SOCKET_PATH:
        return Config()
    folder.mkdir(parents=True, exist_ok=True)
    return Config(KernelManager={"transport": "ipc", "connection_file": str(file)})


def run_page(
    notebook: Path,
    output: Path,
    values: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    book: Book | None = None,
    on_cell: Callable[[int, int], object] = lambda number, count: None,
) -> dict[str, Any]:
    """Execute a notebook, write the page, and write its run record beside it.

    The page shows the values it was run with, in the cell that states what they mean.
    What a cell wrote to its error stream goes into the record and not onto the page. The
    page holds no times: the same inputs give the same bytes.

    Parameters
    ----------
    notebook : Path
        The source.
    output : Path
        Where the executed notebook goes; the record is the `.json` beside it.
    values : mapping of str to object, optional
        Parameters that are not at their defaults.
    folder : Path, optional
        What relative paths in the notebook start from; the book's root if not given.
    book : Book, optional
        Whose `lib` and `data` the record states; this project's if not given.
    on_cell : callable, optional
        Called with (number, count) when a code cell starts.

    Returns
    -------
    dict
        The run record.

    Raises
    ------
    InputError
        If the notebook is none, or a parameter is unknown or of another type.
    PageFailed
        If a cell raises an error; what `output` held before is still there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, output = Path(folder) / "sums.ipynb", Path(folder) / "page.ipynb"
    ...     nbformat.write(nbformat.v4.new_notebook(), source)
    ...     run_page(source, output, {"seed": 1})
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'seed' of sums is unknown: none is allowed here
    """
    book = book or Book()
    source = read_notebook(notebook)
    cell = parameters_cell(source)
    parameters = read_parameters(cell.source, notebook.stem)
    values = checked(parameters, values or {}, notebook.stem)
    cell.source = with_values(cell.source, values)
    # The run changes to its folder; relative paths start from where we are.
    notebook, output = notebook.resolve(), output.resolve()
    if output == notebook:
        raise InputError(f"{output} is the notebook itself: choose another output")

    # Heavy, and needed by nothing that only reads editions and records.
    import papermill

    code = [index for index, cell in enumerate(source.cells) if cell.cell_type == "code"]
    reached = 0

    def cell_starts(cell: nbformat.NotebookNode, cell_index: int) -> None:
        nonlocal reached
        if cell_index in code:
            reached = code.index(cell_index) + 1
            on_cell(reached, len(code))

    ours = notebook.parent == book.notebooks.resolve()
    # What goes in is noted before the run, so that a change during it counts as a change.
    record = {
        "page": output.stem,
        "notebook": notebook.stem,
        "parameters": values,
        "status": "complete",
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "command": command_for(notebook.stem if ours else str(notebook), values, parameters),
        "versions": versions(),
        "digests": _page_digests(notebook, values) | _shared_digests(book),
    }
    started = time.monotonic()
    part = output.with_name(f".{output.stem}.part.ipynb")
    try:
        executed = papermill.execute_notebook(
            source,
            part,
            kernel_name="python3",
            cwd=folder or book.root,
            progress_bar=False,
            config=_kernel_settings(),
            on_cell_start=cell_starts,
            record_timing=False,
        )
        record["seconds"] = round(time.monotonic() - started, 1)
        record["stderr"] = _settle(executed)
        text = nbformat.writes(executed)
        record["digests"]["output"] = _sha256(text.encode())
        write_whole(output, text)
        write_whole(_record_path(output), json.dumps(record, indent=1))
        failed_path(output).unlink(missing_ok=True)
        return record
    except OSError:
        raise
    except Exception as error:  # a cell's error, or a kernel that died
        if part.exists():
            os.replace(part, failed_path(output))
        message = f"{output.stem}: cell {reached} of {len(code)}: {_one_line(error)}"
        raise PageFailed(message) from error
    finally:
        part.unlink(missing_ok=True)


def _one_line(error: Exception) -> str:
    """Return the kind of an error in a notebook and the first line of what it says."""
    kind = getattr(error, "ename", type(error).__name__)
    text = str(getattr(error, "evalue", error)).strip()
    return f"{kind}: {text.splitlines()[0]}" if text else kind


def _settle(executed: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """Take from an executed notebook what differs from run to run; return its error streams."""
    executed.metadata.pop("papermill", None)
    streams = []
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    for cell in executed.cells:
        cell.metadata.pop("papermill", None)
    for number, cell in enumerate(code, start=1):
        is_stream = [output.get("name") == "stderr" for output in cell.outputs]
        text = "".join(o.text for o, stream in zip(cell.outputs, is_stream, strict=True) if stream)
        cell.outputs = [o for o, stream in zip(cell.outputs, is_stream, strict=True) if not stream]
        if text:
            streams.append({"cell": number, "text": text})
    return streams


# --- Many pages, each in a process of its own ---------------------------------------------------


@dataclass(frozen=True)
class Run:
    """A notebook to execute: source, output, values, and the folder to do it in.

    Examples
    --------
    >>> Run(Path("notebooks/worlds.ipynb"), Path("worlds.ipynb"), {}, Path(".")).output.stem
    'worlds'
    """

    notebook: Path
    output: Path
    values: dict[str, Any]
    folder: Path


def _execute_from_stdin() -> None:
    """Execute the run that comes as JSON on standard input; tell on standard output how it goes.

    This is what the processes that :func:`execute` starts do.
    """
    run = json.loads(sys.stdin.readline())
    # The kernel inherits standard output. What it prints must not mix with what we tell.
    telling = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=telling, flush=True)

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the kernel is being stopped
        raise KeyboardInterrupt

    def watch() -> None:
        # Our parent holds the other end; when it is gone, nobody waits for this page.
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=watch, daemon=True).start()
    try:
        record = run_page(
            Path(run["notebook"]),
            Path(run["output"]),
            run["values"],
            folder=Path(run["folder"]),
            book=Book(Path(run["root"])),
            on_cell=lambda number, count: tell(cell=number, count=count),
        )
        tell(done=record)
    except (InputError, PageFailed) as error:
        tell(failed=str(error))
    except OSError as error:
        tell(failed=f"{Path(run['output']).stem}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


class _Display:
    """What the user sees of runs: a live line on a terminal, else a plain line now and then."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._finished = 0
        self._running: dict[str, tuple[str, float]] = {}
        self._last_line: dict[str, float] = {}
        self._live = sys.stderr.isatty()
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        """Print a line that stays."""
        with self._lock:
            print(f"\r\x1b[K{text}" if self._live else text, file=sys.stderr, flush=True)
            self._show()

    def cell(self, page: str, number: int, count: int) -> None:
        """Note that a page has reached a cell."""
        with self._lock:
            now = time.monotonic()
            _, started = self._running.setdefault(page, ("", now))
            self._running[page] = (f"cell {number}/{count}", started)
            since = now - self._last_line.setdefault(page, now)
            if not self._live and since >= _LINE_EVERY:
                self._last_line[page] = now
                seconds = f"{now - started:.0f} s"
                print(f"{page}: cell {number}/{count}, {seconds}", file=sys.stderr, flush=True)
            self._show()

    def finish(self, page: str, text: str) -> None:
        """Note that a page has ended."""
        with self._lock:
            self._finished += 1
            self._running.pop(page, None)
        self.line(text)

    def _show(self) -> None:
        if self._live and self._running:
            now = time.monotonic()
            pages = [
                f"{page} {cell} {now - started:.0f} s"
                for page, (cell, started) in self._running.items()
            ]
            done = [f"{self._finished} of {self._count} pages"] if self._count > 1 else []
            text = " · ".join([*done, *pages])
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{text[: width - 1]}", end="", file=sys.stderr, flush=True)


def execute(runs: Iterable[Run], workers: int = 2, book: Book | None = None) -> list[str]:
    """Execute notebooks in parallel, each in a process of its own, and show progress.

    A notebook that fails does not stop the others. On an interrupt, the processes and
    their kernels are stopped before this function raises.

    Parameters
    ----------
    runs : iterable of Run
        What to execute.
    workers : int, default 2
        How many at a time.
    book : Book, optional
        Whose `lib` and `data` the records state; this project's if not given.

    Returns
    -------
    list of str
        One sentence for each notebook that failed, in the order given.

    Raises
    ------
    KeyboardInterrupt
        If the user stops the runs.

    Examples
    --------
    >>> execute([])
    []
    """
    runs, book = list(runs), book or Book()
    display = _Display(len(runs))
    processes: set[subprocess.Popen] = set()
    stopping = threading.Event()

    def execute_one(run: Run) -> str | None:
        page = run.output.stem
        if stopping.is_set():
            return None
        display.line(f"{page}: started")
        with tempfile.TemporaryFile() as chatter:
            process = _start(run, book, chatter)
            processes.add(process)
            if stopping.is_set():  # since we last looked
                process.terminate()
            end = _follow(process, lambda number, count: display.cell(page, number, count))
            processes.discard(process)
            if not end:
                chatter.seek(0)
                said = chatter.read().decode(errors="replace").strip().splitlines()
                reason = f": {said[-1]}" if said else ""
                end = {"failed": f"{page}: its process ended with {process.returncode}{reason}"}
        if stopping.is_set():
            return None
        if "failed" in end:
            display.finish(page, f"{page}: FAILED")
            return end["failed"]
        for stream in end["done"]["stderr"]:
            display.line(f"{page}: cell {stream['cell']} warned: {stream['text'].strip()}")
        display.finish(page, f"{page}: done in {end['done']['seconds']:.0f} s")
        return None

    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        futures = [pool.submit(execute_one, run) for run in runs]
        for future in as_completed(futures):
            future.result()
    except KeyboardInterrupt:
        stopping.set()
        _stop(list(processes))
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures if future.result() is not None]


def _start(run: Run, book: Book, chatter: IO[bytes]) -> subprocess.Popen:
    """Start the process of a run and hand it the run; its errors go to `chatter`."""
    environment = {
        # The kernel finds this very `lib`, wherever it starts.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        # Debugger advice that no reader of a page needs.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", "from lib.running import _execute_from_stdin as f; f()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=chatter,
        cwd=ROOT,
        env=os.environ | environment,
        text=True,
        encoding="utf-8",
        start_new_session=True,  # Ctrl-C reaches us alone, and we stop the process in good order
    )
    job = {
        "notebook": str(run.notebook),
        "output": str(run.output),
        "values": run.values,
        "folder": str(run.folder),
        "root": str(book.root),
    }
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(job), file=process.stdin, flush=True)
    return process


def _follow(process: subprocess.Popen, on_cell: Callable[[int, int], object]) -> dict[str, Any]:
    """Read what a process tells until it ends; return the last word, `done` or `failed`."""
    end = {}
    for line in process.stdout:
        event = json.loads(line)
        if "cell" in event:
            on_cell(event["cell"], event["count"])
        else:
            end = event
    process.wait()
    process.stdout.close()
    # Only now: a process whose input ends stops. What it never read is still in our buffer.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    return end


def _stop(processes: Iterable[subprocess.Popen]) -> None:
    """Ask processes to stop their kernels and end; end those that do not."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _PATIENCE
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
