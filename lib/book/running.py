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
import logging
import os
import shlex
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from lib.book.editions import BOOK, Book, Page
from lib.book.parameters import (
    Parameter,
    as_source,
    checked,
    read_notebook,
    read_parameters,
    with_values,
)
from lib.cache import versions
from lib.errors import InputError
from lib.files import atomic_write, folder_digest, write_text

#: The longest path of a Unix socket, on the systems that allow the least (macOS: 104 bytes).
_SOCKET_PATH = 103


class PageFailed(Exception):
    """A notebook raised an error; the message says which page, which cell, and what."""


# --- Run records ------------------------------------------------------------------------------


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digests(notebook: Path, values: Mapping[str, Any], book: Book) -> dict[str, str]:
    """Return the digests of all that goes into a page."""
    return {
        "notebook": _sha256(notebook.read_bytes()),
        "parameters": _sha256(json.dumps(values, sort_keys=True).encode()),
        "lib": folder_digest(book.root / "lib"),
        "data": folder_digest(book.root / "data"),
        "versions": _sha256(json.dumps(versions()).encode()),
    }


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

    Examples
    --------
    >>> read_record(Path("nowhere.ipynb")) is None
    True
    """
    try:
        return json.loads(output.with_suffix(".json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def why_stale(page: Page, book: Book = BOOK) -> str | None:
    """Say why a page has to be run, such as `lib changed`, or None if it is up to date.

    Examples
    --------
    >>> why_stale(Page(page="moon", notebook="worlds"))
    'not run yet'
    """
    output = book.page(page.page)
    record = read_record(output)
    if failed_path(output).exists():
        return "failed last time"
    if record is None or not output.is_file():
        return "not run yet"
    recorded = record["digests"]
    if recorded.get("output") != _sha256(output.read_bytes()):
        return "its executed notebook is damaged"
    now = _digests(book.notebook(page.notebook), page.parameters, book)
    return next((f"{name} changed" for name in now if recorded.get(name) != now[name]), None)


def _command(notebook: str, values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> str:
    """Return the command that repeats a run, with the parameters that are not at their defaults."""
    words = ["python", "-m", "lib", "run", notebook]
    for name, value in values.items():
        if value != parameters[name].default:
            words += ["-p", name, value if isinstance(value, str) else as_source(value)]
    return shlex.join(words)


# --- One page ---------------------------------------------------------------------------------


def run_page(
    notebook: Path,
    output: Path,
    values: Mapping[str, Any] | None = None,
    *,
    folder: Path | None = None,
    book: Book = BOOK,
    on_cell: Callable[[int, int], object] = lambda number, count: None,
    stopping: threading.Event | None = None,
) -> dict[str, Any]:
    """Execute a notebook, write the page and its run record, and return the record.

    The page shows the values it was run with, in the cell that states what they mean, and in
    its title where that names a parameter in braces: `# Error test: {theme}`.
    What a cell wrote to its error stream goes into the record and not onto the page. The
    page holds no times: the same inputs give the same bytes.

    Parameters
    ----------
    notebook, output : Path
        The source, and where the page goes; the record is the `.json` beside it.
    values : mapping of str to object, optional
        Parameters that are not at their defaults.
    folder : Path, optional
        What relative paths in the notebook start from; the book's root if not given.
    book : Book
        Whose `lib` and `data` the record states.
    on_cell : callable
        Called with (number, count) when a code cell starts.
    stopping : threading.Event, optional
        Set while the user interrupts the run: the end of its kernel is then no failure.

    Raises
    ------
    InputError
        If the notebook is none, a parameter is unknown or of another type, or `output`
        cannot be written.
    PageFailed
        If a cell raises an error; what `output` held before is still there.

    Examples
    --------
    >>> run_page(BOOK.notebook("worlds"), Path("page.ipynb"), {"moon": 1})
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'moon' of worlds is unknown: expected one of ...
    """
    notebook, output = notebook.resolve(), output.resolve()
    if output == notebook:
        raise InputError(f"output {output} is the notebook itself: choose another name")
    source, cell = read_notebook(notebook)
    parameters = read_parameters(cell.source, notebook.stem)
    values = checked(parameters, values or {}, notebook.stem)
    cell.source = with_values(cell.source, values)
    if source.cells[0].cell_type == "markdown":
        source.cells[0].source = _titled(source.cells[0].source, values)

    # Heavy, and needed by nothing that only reads editions and records.
    import papermill

    papermill.log.logger.setLevel(logging.CRITICAL)  # what went wrong is in the error
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
        "command": _command(notebook.stem if ours else str(notebook), values, parameters),
        "versions": versions(),
        "digests": _digests(notebook, values, book),
    }
    started = time.monotonic()
    with atomic_write(output) as beside:
        try:
            executed = papermill.execute_notebook(
                source,
                beside,
                kernel_name="python3",
                progress_bar=False,
                on_cell_start=cell_starts,
                record_timing=False,
                # For the client below papermill, whose own `cwd` would move this whole process.
                resources={"metadata": {"path": str(folder or book.root)}},
                config=_kernel_settings(),
                extra_arguments=["--log-level=CRITICAL"],  # a kernel's own worries at its end
            )
        except OSError:
            raise
        except Exception as error:  # a cell's error, or a kernel that died
            if stopping is not None and stopping.is_set():
                raise KeyboardInterrupt from None
            if beside.exists():
                os.replace(beside, failed_path(output))
            message = f"{output.stem}: cell {reached} of {len(code)}: {_one_line(error)}"
            raise PageFailed(message) from error
        record["seconds"] = round(time.monotonic() - started, 1)
        record["stderr"] = _settle(executed)
        nbformat.write(executed, beside)
        record["digests"]["output"] = _sha256(beside.read_bytes())
    write_text(output.with_suffix(".json"), json.dumps(record, indent=1))
    failed_path(output).unlink(missing_ok=True)
    return record


def _titled(text: str, values: Mapping[str, Any]) -> str:
    """Put values into the first line of a text, so that pages of one notebook differ in it."""
    title, *rest = text.split("\n")
    for name, value in values.items():
        title = title.replace(f"{{{name}}}", str(value))
    return "\n".join([title, *rest])


def _kernel_settings() -> Any:
    """Have a kernel talk through files: those that start together can take each other's ports."""
    from jupyter_core.paths import jupyter_runtime_dir
    from traitlets.config import Config

    folder = Path(jupyter_runtime_dir())
    file = folder / f"kernel-{uuid.uuid4().hex}.json"
    longest_socket = f"{file.with_suffix('')}-ipc-5"
    if os.name != "posix" or len(os.fsencode(longest_socket)) > _SOCKET_PATH:
        return Config()
    folder.mkdir(parents=True, exist_ok=True)
    return Config(KernelManager={"transport": "ipc", "connection_file": str(file)})


def _one_line(error: Exception) -> str:
    """Return the kind of an error in a notebook and the first line of what it says."""
    kind = getattr(error, "ename", type(error).__name__)
    text = str(getattr(error, "evalue", error)).strip()
    return f"{kind}: {text.splitlines()[0]}" if text else kind


def _settle(executed: nbformat.NotebookNode) -> list[dict[str, Any]]:
    """Take from an executed notebook what differs from run to run; return its error streams."""
    for part in [executed, *executed.cells]:
        part.metadata.pop("papermill", None)
    streams = []
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        errors = [output for output in cell.outputs if output.get("name") == "stderr"]
        cell.outputs = [output for output in cell.outputs if output not in errors]
        if errors:
            streams.append({"cell": number, "text": "".join(output.text for output in errors)})
    return streams


# --- Many pages ---------------------------------------------------------------------------------


class Run(NamedTuple):
    """A notebook to execute: its source, where the page goes, and its values."""

    notebook: Path
    output: Path
    values: Mapping[str, Any]


def execute(
    runs: Sequence[Run], workers: int = 2, *, folder: Path | None = None, book: Book = BOOK
) -> list[str]:
    """Execute notebooks, as many at a time as there are workers, and show progress.

    A notebook that fails does not stop the others; one sentence for each that did is returned.
    An interrupt ends every process that this one has started, before this function raises. If
    this process is killed, the kernels notice and end themselves.

    Examples
    --------
    >>> execute([])
    []
    """
    from tqdm import tqdm

    stopping = threading.Event()
    # On a terminal only; elsewhere, the lines below are all there is to see.
    bar = tqdm(
        total=len(runs),
        bar_format="{percentage:3.0f} % |{bar:20}| {elapsed}  {desc}",
        leave=False,
        disable=None,
    )

    def say(text: str) -> None:
        tqdm.write(text, file=sys.stderr)

    def execute_one(run: Run) -> str | None:
        page = run.output.stem

        def cell_starts(number: int, count: int) -> None:
            bar.set_description_str(f"{page}: cell {number} of {count}", refresh=False)
            bar.update(1 / count)

        say(f"{page}: started")
        try:
            record = run_page(
                *run, folder=folder, book=book, on_cell=cell_starts, stopping=stopping
            )
        except (InputError, PageFailed) as error:
            say(f"{page}: FAILED")
            return str(error)
        for stream in record["stderr"]:
            say(f"{page}: cell {stream['cell']} warned: {stream['text'].strip()}")
        say(f"{page}: done in {record['seconds']:.0f} s")
        return None

    # Threads do, because the work is done by the kernels, which are processes.
    with bar, ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(execute_one, run) for run in runs]
        try:
            # For a moment at a time: an interrupt that another thread receives ends no wait.
            while wait(futures, timeout=0.2).not_done:
                pass
        except KeyboardInterrupt:
            stopping.set()
            # Again and again: a run may be about to start its kernel just now.
            while not all(future.cancel() or future.done() for future in futures):
                _end_children()
                time.sleep(0.1)
            raise
    return [problem for future in futures if (problem := future.result())]


def _end_children() -> None:
    import psutil

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
