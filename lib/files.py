"""Read the files that users hand in, and write files that are either whole or not there at all."""

import contextlib
import errno
import glob
import hashlib
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import joblib
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from filelock import FileLock

from lib.errors import InputError, check, check_known, check_once, told

#: The path of a file or a folder.
AnyPath: TypeAlias = str | os.PathLike[str]

#: The endings of files that hold a table.
ENDINGS = (".csv", ".gz", ".zip", ".parquet")

#: Errors of a disk that accepts no more data; such an error names no file.
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@contextlib.contextmanager
def atomic_write(path: AnyPath, files: Collection[str] = ()) -> Iterator[Path]:
    """Yield a path to write to; when the block ends, what is written there becomes `path`.

    If the block raises an error, `path` stays as it was and nothing is left beside it. If two
    processes write a file at once, the whole file of the later one counts; if they write a folder,
    one is refused. The next write removes what a killed process left, or puts it back where it was.

    If `files` has names, `path` is a folder of these files. It is replaced as a whole, and refused
    if it holds anything else. Errors about other files, such as a missing input, pass unchanged.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "status.md") as beside:
    ...         _ = beside.write_text("All is well.", encoding="utf-8")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['status.md']
    """
    path = Path(path).resolve()
    kind, met = ("folder", path.is_dir()) if files else ("file", path.is_file())
    if path.exists() and not met:  # a rename would replace even a device
        raise InputError(f"{path} cannot be written: it exists and is not a {kind}")
    others = sorted({one.name for one in path.glob("*")} - {*files})  # in a file, there are none
    check(not others, f"folder {path} will be replaced and must not hold anything else", others)
    name = f".partial.{os.getpid()}.{secrets.token_hex(4)}.{{}}{path.name}"
    beside, before = (path.with_name(name.format(part)) for part in ("", "before."))
    remove_left(path)
    try:
        # Made first, so that a file that is missing from here on must be another one.
        writable(beside) if files else beside.touch(exist_ok=False)
        yield beside
        if files and path.exists():  # a rename does not replace a folder
            os.replace(path, before)
        os.replace(beside, path)
    except OSError as error:
        name = error.filename
        named = Path(os.fsdecode(name)) if isinstance(name, str | bytes | os.PathLike) else None
        own = named == path or (named and beside in (named, *named.parents))
        if not own and (named or error.errno not in DISK_ERRORS):
            raise
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        for left in (before, beside):
            _clear(left, path)


def remove_left(path: Path) -> None:
    """Remove what processes that have ended left beside a path, as `.partial.PROCESS.….NAME`."""
    for left in path.parent.glob(f".partial.*.{glob.escape(path.name)}"):
        writer = left.name.split(".")[2]
        if not (writer.isdecimal() and psutil.pid_exists(int(writer))):
            _clear(left, path)


def _clear(left: Path, path: Path) -> None:
    with contextlib.suppress(OSError):  # such as if nothing is left
        if left.name.endswith(f".before.{path.name}") and not path.exists():
            os.rename(left, path)  # it had moved for a new one, which never came
        shutil.rmtree(left) if left.is_dir() else left.unlink()


def write_bytes(path: AnyPath, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with atomic_write(path) as beside:
        beside.write_bytes(content)


def write_text(path: AnyPath, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode())


def write_parquet(frames: Iterable[tuple[Path, pd.DataFrame]], compression: str = "snappy") -> None:
    """Write frames to the Parquet files at their paths, one at a time from a generator."""
    writers, schemas = dict[Path, pq.ParquetWriter](), dict[Path, pa.Schema]()
    with contextlib.ExitStack() as files:
        for path, frame in frames:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            schemas[path] = table.schema
            if table.num_rows:  # a column of text has no type before there is a row
                if path not in writers:
                    made = pq.ParquetWriter(path, table.schema, compression=compression)
                    writers[path] = files.enter_context(made)
                writers[path].write_table(table)
    for path in [one for one in schemas if one not in writers]:
        pq.write_table(schemas[path].empty_table(), path, compression=compression)


@contextlib.contextmanager
def reading(path: AnyPath) -> Iterator[None]:
    """Say in one sentence why a file cannot be read."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"file {path} does not exist") from None
    except Exception as error:  # each library raises errors of its own
        said = " ".join(str(error).split())
        raise InputError(f"file {path} cannot be read: {said}") from error


def read_table(path: AnyPath | pd.DataFrame) -> pd.DataFrame:
    """Read a CSV or Parquet file, by its ending, with named columns, or return a frame as it is."""
    if isinstance(path, pd.DataFrame):
        return path
    rule, kind = "a table must be a data frame or the path of a file", type(path).__name__
    check(isinstance(path, str | os.PathLike), rule, kind)
    path = Path(path)
    check_known(f"file {path.name}: ending", path.suffix, ENDINGS)
    with reading(path):
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        # If the first row is longer than the line of names, pandas alone would shift the names.
        check_once("column", pd.read_csv(path, header=None, nrows=2).iloc[0])
        table = pd.read_csv(path)
        # In a column of text, only an empty field is missing: a level may be called None or NA.
        texts = [*table.select_dtypes(exclude=["number", "bool"])]
        exact = pd.read_csv(path, keep_default_na=False, na_values=[""]) if texts else table
        return table.assign(**exact[texts])


def read_yaml(path: AnyPath, known: Collection[str] | None = None) -> Any:
    """Read a YAML file by the safe loader, and refuse a key that occurs twice in one mapping.

    It is only a warning if it says the same, or in a section (a top-level key) that is not `known`.
    """
    path = Path(path)
    with reading(path):
        text = path.read_text(encoding="utf-8")
    with told(f"{path.name} is not YAML"):
        loader = _Loader(text)
        loader.doubled = []
        root = loader.get_single_node()
        # Before the content is constructed, which writes merged keys into the nodes.
        sections = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
        content = None if root is None else loader.construct_document(root)
    for key, same in loader.doubled:
        found = f"{path.name}, line {key.start_mark.line + 1}: the key {key.value!r} occurs twice"
        above = [one.value for one in sections if one.start_mark.index <= key.start_mark.index]
        used = known is None or not above or above[-1] in known
        if used and not same:
            raise InputError(f"{found}, and says two things")
        why = "with the same content" if used else "in a section that is not used here"
        warnings.warn(f"{found}, {why}", stacklevel=2)
    return content


class PythonNumbers(yaml.SafeLoader):
    """Reads numbers as Python does; in YAML 1.1, 010 is 8, 1:30 is 90 and 1e-3 is a text."""


def _float(_: yaml.Loader, one: yaml.ScalarNode) -> float:
    return float(one.value.lower().replace(".inf", "inf").replace(".nan", "nan"))


PythonNumbers.add_constructor("tag:yaml.org,2002:int", lambda _, one: int(one.value))
PythonNumbers.add_constructor("tag:yaml.org,2002:float", _float)
_POWER_OF_TEN = re.compile(r"[-+]?\d[\d_]*[eE][-+]?\d+$")
PythonNumbers.add_implicit_resolver("tag:yaml.org,2002:float", _POWER_OF_TEN, [*"-+0123456789"])


class _Loader(PythonNumbers):
    """A safe loader that notes in `doubled` each key that occurs twice, and if it says the same."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        # A mapping may have several merge keys (<<), and the keys that they bring do not count.
        said = dict[tuple[str, str], yaml.Node]()
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:merge":
                name = (key.tag, str(key.value))
                if name in said:
                    same = yaml.serialize(said[name]) == yaml.serialize(value)
                    self.doubled.append((key, same))
                said[name] = value
        return node


def writable(folder: Path, remedy: str = "", mode: int = 0o777) -> None:
    """Make a folder if it does not exist; an :class:`InputError` says why it cannot be made."""
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}{remedy}") from None


def sha256(content: bytes) -> str:
    """Return the SHA-256 of some bytes, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def file_lock(path: Path, wait: bool = True) -> FileLock:
    """Return a file lock, which the system releases when its holder ends, however it ends.

    With ``wait=False``, acquiring a lock that is held elsewhere raises :class:`filelock.Timeout`.
    """
    writable(path.parent)
    return FileLock(path, timeout=-1 if wait else 0)


def digest(path: Path, without: Collection[str] = ()) -> str:
    """Digest a file, or the names and contents of all files below a folder; a missing one is empty.

    Hidden files and folders, compiled Python, and those with a name in `without` do not count.
    """
    apart, found = {"__pycache__", *without}, {}
    # Unlike that of pathlib, this glob follows links to folders; nor does it find what is hidden.
    for name in glob.glob("**", root_dir=path, recursive=True) or [""]:
        place = Path(name)
        if apart.isdisjoint(place.parts) and (path / place).is_file():
            with open(path / place, "rb") as file:
                found[place.as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return str(joblib.hash(found))
