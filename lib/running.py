"""Running the book: papermill executes the pages, Jupyter Book renders them.

An *edition* is a YAML file that lists pages: a notebook, the name of its page and
the parameters it is run with. :func:`build` executes those pages of an edition that
are not up to date, each in a process of its own, and renders the book from them.

A page is a pair of files in `book/executed`: the executed notebook and its *run record*
(JSON), which holds digests of all that went in, times, versions and the command that
repeats the run. A page is up to date if every digest in its record is still the same.
A notebook that fails never replaces a good page: it is kept beside it as
`<page>.failed.ipynb`, so that one can open it and look.
"""

import contextlib
import datetime
import hashlib
import json
import os
import re
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lib import ROOT
from lib.cache import alone, folder_digest, versions
from lib.errors import InputError, one_of
from lib.parameters import Parameter, checked, read_parameters, with_values

#: Seconds between two lines about the same page, where progress is a log and no live line.
_LINE_EVERY = 15

#: Seconds a page may take to put its kernel to rest when it is interrupted.
_PATIENCE = 15

#: The longest path of a Unix socket, on the systems that allow the least (macOS: 104 bytes).
_SOCKET_PATH = 103


class PageFailed(Exception):
    """A notebook raised an error; the message says which page, which cell, and what."""


@dataclass(frozen=True)
class Book:
    """Where the parts of a book are.

    Parameters
    ----------
    root : Path
        The folder that holds `notebooks`, `book`, `lib` and `data`.

    Examples
    --------
    >>> Book().executed.relative_to(ROOT).as_posix()
    'book/executed'
    """

    root: Path = ROOT

    @property
    def notebooks(self) -> Path:
        """The sources."""
        return self.root / "notebooks"

    @property
    def editions(self) -> Path:
        """Which notebook runs with which parameters."""
        return self.root / "book" / "editions"

    @property
    def executed(self) -> Path:
        """What papermill wrote, and the run records."""
        return self.root / "book" / "executed"

    @property
    def index(self) -> Path:
        """The first page of the rendered book."""
        return self.root / "_build" / "html" / "index.html"

    def notebook(self, name: str) -> Path:
        """Return the source of a notebook, by name or path.

        Raises
        ------
        InputError
            If there is no such notebook.

        Examples
        --------
        >>> Book().notebook("weather")
        Traceback (most recent call last):
        lib.errors.InputError: notebook 'weather' is unknown: ...
        """
        if name.endswith(".ipynb"):
            path = Path(name)
            if not path.is_file():
                raise InputError(f"notebook {name} does not exist")
            return path.resolve()
        known = sorted(path.stem for path in self.notebooks.glob("*.ipynb"))
        if name not in known:
            raise InputError(f"notebook {name!r} is unknown: {one_of(known)}")
        return self.notebooks / f"{name}.ipynb"


class Page(BaseModel):
    """One page of an edition: its name, its notebook, and the values it is run with.

    Examples
    --------
    >>> Page(page="worlds", notebook="worlds", parameters={"n_samples": 500}).page
    'worlds'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    page: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    notebook: str
    parameters: dict[str, Any] = {}


class Edition(BaseModel):
    """What the book consists of and how much of it is computed.

    Examples
    --------
    >>> Edition(about="A page.", pages=[Page(page="worlds", notebook="worlds")]).pages[0].parameters
    {}
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    about: str
    pages: list[Page] = Field(min_length=1)


# --- Editions ---------------------------------------------------------------------------------


def load_edition(name: str, book: Book | None = None) -> Edition:
    """Read and check an edition: its keys, its notebooks, and every parameter.

    Parameters
    ----------
    name : str
        A file of `book/editions`, without `.yml`; or the path of a YAML file.
    book : Book, optional
        Whose edition; this project's if not given.

    Returns
    -------
    Edition
        Its pages, with a value for every parameter of their notebooks.

    Raises
    ------
    InputError
        If the edition, a key, a notebook or a parameter is unknown or of the wrong type.

    Examples
    --------
    >>> load_edition("pocket")
    Traceback (most recent call last):
    lib.errors.InputError: edition 'pocket' is unknown: expected one of default, paper, quick
    """
    book = book or Book()
    if name.endswith((".yml", ".yaml")):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"edition {name} does not exist")
    else:
        known = sorted(path.stem for path in book.editions.glob("*.yml"))
        if name not in known:
            raise InputError(f"edition {name!r} is unknown: {one_of(known)}")
        path = book.editions / f"{name}.yml"
    try:
        edition = Edition.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except yaml.YAMLError as error:
        raise InputError(f"{path.name} is no YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise InputError(f"{path.name}{_first_problem(error)}") from None

    pages = []
    for page in edition.pages:
        if page.page in [earlier.page for earlier in pages]:
            raise InputError(f"{path.name}: page {page.page!r} is listed twice")
        try:
            source = book.notebook(page.notebook)
            values = checked(parameters_of(source), page.parameters, page.notebook)
        except InputError as error:
            raise InputError(f"{path.name}, page {page.page}: {error}") from None
        pages.append(page.model_copy(update={"parameters": values}))
    return edition.model_copy(update={"pages": pages})


def _first_problem(error: ValidationError) -> str:
    """Say in one sentence what pydantic found first, from the place on: `, page 2: key …`."""
    problem = error.errors()[0]
    location = list(problem["loc"])
    in_page = len(location) > 1 and location[0] == "pages"
    where = f", page {location[1] + 1}" if in_page else ""
    key = ".".join(str(part) for part in (location[2:] if in_page else location))
    if not key:
        return f"{where} is {problem['input']!r}: expected a mapping of keys to values"
    if problem["type"] == "extra_forbidden":
        model = Page if in_page else Edition
        return f"{where}: key {key!r} is unknown: {one_of(model.model_fields)}"
    if problem["type"] == "missing":
        return f"{where}: key {key!r} is missing"
    rule = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{where}: key {key!r} is {problem['input']!r}: {rule}"


def _read_notebook(path: Path) -> nbformat.NotebookNode:
    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, KeyError, AttributeError):
        raise InputError(f"{path.name} is damaged: expected a notebook of format 4") from None
    return notebook


def _parameters_cell(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            return cell
    # Without such a cell, a notebook has no parameters.
    return nbformat.v4.new_code_cell()


def parameters_of(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters of a notebook, by name.

    Parameters
    ----------
    notebook : Path
        The source.

    Raises
    ------
    InputError
        If the file is no notebook, or its `parameters` cell breaks the rules
        of :func:`lib.parameters.read_parameters`.

    Examples
    --------
    >>> import tempfile
    >>> cell = nbformat.v4.new_code_cell("seed: int = 0", metadata={"tags": ["parameters"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "worlds.ipynb"
    ...     nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)
    ...     parameters_of(path)
    {'seed': Parameter(name='seed', annotation='int', default=0, help='')}
    """
    return read_parameters(_parameters_cell(_read_notebook(notebook)).source, notebook.stem)


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


def _failed_path(output: Path) -> Path:
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
    if _failed_path(output).exists():
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
            words += ["-p", name, value if isinstance(value, str) else repr(value)]
    return shlex.join(words)


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


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
    source = _read_notebook(notebook)
    cell = _parameters_cell(source)
    parameters = read_parameters(cell.source, notebook.stem)
    values = checked(parameters, values or {}, notebook.stem)
    cell.source = with_values(cell.source, values)
    if output.resolve() == notebook.resolve():
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

    ours = notebook.resolve().parent == book.notebooks.resolve()
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
        _write(output, text)
        _write(_record_path(output), json.dumps(record, indent=1))
        _failed_path(output).unlink(missing_ok=True)
        return record
    except OSError:
        raise
    except Exception as error:  # a cell's error, or a kernel that died
        if part.exists():
            os.replace(part, _failed_path(output))
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
    environment = os.environ | {
        # The kernel finds this very `lib`, wherever it starts.
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        # Debugger advice that no reader of a page needs.
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }

    def execute_one(run: Run) -> str | None:
        page = run.output.stem
        if stopping.is_set():
            return None
        display.line(f"{page}: started")
        with tempfile.TemporaryFile() as chatter:
            process = subprocess.Popen(
                [sys.executable, "-c", "from lib.running import _execute_from_stdin as f; f()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=chatter,
                cwd=ROOT,
                env=environment,
                text=True,
                encoding="utf-8",
                # Ctrl-C reaches us alone, and we stop the process in good order.
                start_new_session=True,
            )
            processes.add(process)
            job = {
                "notebook": str(run.notebook),
                "output": str(run.output),
                "values": run.values,
                "folder": str(run.folder),
                "root": str(book.root),
            }
            failure = None
            done = None
            # The process sees its input end when we do; so this end stays open until it is done.
            with contextlib.suppress(BrokenPipeError):
                print(json.dumps(job), file=process.stdin, flush=True)
            for line in process.stdout:
                event = json.loads(line)
                if "cell" in event:
                    display.cell(page, event["cell"], event["count"])
                failure = event.get("failed", failure)
                done = event.get("done", done)
            process.wait()
            processes.discard(process)
            process.stdout.close()
            process.stdin.close()
            if stopping.is_set():
                return None
            if done is None and failure is None:
                chatter.seek(0)
                said = chatter.read().decode(errors="replace").strip().splitlines()
                reason = f": {said[-1]}" if said else ""
                failure = f"{page}: its process ended with status {process.returncode}{reason}"
        if failure:
            display.finish(page, f"{page}: FAILED")
            return failure
        for stream in done["stderr"]:
            display.line(f"{page}: cell {stream['cell']} warned: {stream['text'].strip()}")
        display.finish(page, f"{page}: done in {done['seconds']:.0f} s")
        return None

    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        futures = [pool.submit(execute_one, run) for run in runs]
        for future in as_completed(futures):
            future.result()
    except KeyboardInterrupt:
        stopping.set()
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(processes):
            process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for process in list(processes):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        raise
    finally:
        pool.shutdown(wait=True)
    return [future.result() for future in futures if future.result() is not None]


# --- The whole book -----------------------------------------------------------------------------


@dataclass
class Outcome:
    """What a build did, and what went wrong, one sentence each.

    Examples
    --------
    >>> Outcome(ran=["worlds"]).problems
    []
    """

    ran: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    index: Path | None = None


def build(
    edition: str = "default",
    workers: int = 2,
    *,
    render: bool = True,
    force: bool = False,
    book: Book | None = None,
) -> Outcome:
    """Bring the pages of an edition up to date, then render the book.

    Parameters
    ----------
    edition : str, default "default"
        A file of `book/editions`, without `.yml`.
    workers : int, default 2
        How many pages run at a time.
    render : bool, default True
        Whether to render the book.
    force : bool, default False
        Whether to run pages that are up to date, too.
    book : Book, optional
        Which book; this project's if not given.

    Returns
    -------
    Outcome
        Which pages ran, and a sentence for each problem: a page that failed, a page that the table
        of contents lists and nothing made, a warning of the renderer.

    Raises
    ------
    InputError
        If the edition breaks a rule, the folder for pages cannot be written, or another
        build is at work in it.

    Examples
    --------
    >>> build(workers=0)
    Traceback (most recent call last):
    lib.errors.InputError: workers is 0: expected at least 1
    """
    if workers < 1:
        raise InputError(f"workers is {workers}: expected at least 1")
    book = book or Book()
    pages = load_edition(edition, book).pages
    writable(book.executed)
    outcome = Outcome()
    try:
        with alone(book.executed / ".lock", wait=False):
            # What a killed run left behind; we are alone, so nobody is still writing it.
            for part in book.executed.glob(".*.part*"):
                part.unlink()
            stale = [page for page in pages if force or why_stale(page, book)]
            outcome.unchanged = [page.page for page in pages if page not in stale]
            outcome.ran = [page.page for page in stale]
            outcome.problems += execute([_run_for(page, book) for page in stale], workers, book)
            _write_if_changed(book.executed / "status_table.md", status_table(pages, book))
            outcome.problems += _missing_pages(book, edition)
            if render:
                outcome.problems += _render(book)
                outcome.index = book.index if book.index.exists() else None
    except BlockingIOError:
        raise InputError(f"another build is at work in {book.executed}: wait for it") from None
    return outcome


def _run_for(page: Page, book: Book) -> Run:
    output = book.executed / f"{page.page}.ipynb"
    return Run(book.notebook(page.notebook), output, page.parameters, book.root)


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


def _write_if_changed(path: Path, text: str) -> None:
    """Write a file only if it differs, because the renderer reads again what is newer."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        _write(path, text)


def _missing_pages(book: Book, edition: str) -> list[str]:
    toc = book.root / "_toc.yml"
    listed = re.findall(r"book/executed/(\w+)", toc.read_text() if toc.is_file() else "")
    return [
        f"_toc.yml lists book/executed/{name}, and there is no such page: edition {edition} "
        "does not make it, or it failed"
        for name in listed
        if not (book.executed / f"{name}.ipynb").is_file()
    ]


def status_table(pages: Iterable[Page], book: Book | None = None) -> str:
    """Return the state of every page as MyST Markdown: two tables and the commands.

    Parameters
    ----------
    pages : iterable of Page
        The pages of an edition.
    book : Book, optional
        Whose pages; this project's if not given.

    Returns
    -------
    str
        A table of pages, the command that repeats each, and a table of versions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = status_table([Page(page="worlds", notebook="worlds")], Book(Path(folder)))
    >>> print(table.splitlines()[2])
    | `worlds` | `worlds` | | | | **not run** |
    """
    book = book or Book()
    rows = ["| Page | Notebook | Parameters | Run (UTC) | Seconds | Status |", "|---" * 6 + "|"]
    commands = []
    seen_versions: dict[str, set[str]] = {name: {version} for name, version in versions().items()}
    for page in pages:
        output = book.executed / f"{page.page}.ipynb"
        record = read_record(output)
        failed = _failed_path(output).exists()
        if record is None:
            status = "**failed**" if failed else "**not run**"
            rows.append(f"| `{page.page}` | `{page.notebook}` | | | | {status} |")
            continue
        values = ", ".join(f"`{name}={value!r}`" for name, value in record["parameters"].items())
        when = record["started"][:16].replace("T", " ")
        status = "**failed since**; this is the last good run" if failed else record["status"]
        cells = [
            f"{{doc}}`/book/executed/{page.page}`",
            f"`{record['notebook']}`",
            values.replace("|", "\\|"),
            when,
            f"{record['seconds']:.0f}",
            status,
        ]
        rows.append(f"| {' | '.join(cells)} |")
        commands.append(record["command"])
        for name, version in record["versions"].items():
            seen_versions.setdefault(name, set()).add(version)
    return "\n".join(
        [
            *rows,
            "",
            "## The commands that repeat them",
            "",
            "```console",
            *[f"$ {command}" for command in commands],
            "```",
            "",
            "## Versions",
            "",
            "| Package | Version |",
            "|---|---|",
            *[f"| {name} | {', '.join(sorted(found))} |" for name, found in seen_versions.items()],
            "",
        ]
    )


def _render(book: Book) -> list[str]:
    """Render the book with warnings as errors; return the warnings."""
    build_folder = book.index.parent.parent
    writable(build_folder)
    unfinished = build_folder / ".unfinished"
    # After a render that failed or was interrupted, everything is rendered again: otherwise pages
    # that did not change would stay half-written, and their warnings would not come back.
    everything = ["--all"] if unfinished.exists() else []
    unfinished.touch()
    print("rendering the book", file=sys.stderr, flush=True)
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    options = ["build", "-n", "-W", "--keep-going", *everything]
    finished = subprocess.run(
        [*jupyter_book, *options, str(book.root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if finished.returncode == 0:
        unfinished.unlink()
        return []
    said = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout + finished.stderr)
    lines = said.strip().splitlines()
    warnings = [line for line in lines if re.search(r"WARNING|ERROR|CRITICAL", line)]
    return [f"rendering: {line.strip()}" for line in warnings or lines[-15:]]
