"""Results kept on disk: a costly step runs once, and again only when it could differ.

Fitting a simulator takes most of a minute, and three chapters want the same fit.
:func:`kept` keeps what a function returned in `.cache/results` (or in the folder
that the environment variable `CAUSAL_BENCHMARK_BOOK_CACHE` names). A result comes
back only if nothing that made it has changed:

- the arguments, by value;
- every file of `lib`, by :func:`code_digest`;
- the versions of Python and of all direct dependencies, by :func:`versions`.

The last two name a folder, a *generation* of results. The generation in use and
the one before it stay; older ones are deleted, so that the folder does not grow
without bound.
"""

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import ParamSpec, TypeVar

import joblib

from lib import ROOT
from lib.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no flock: there, two processes may do the same work twice
    fcntl = None

P = ParamSpec("P")
R = TypeVar("R")

#: Generations of results that stay on disk, so that going back one change costs nothing.
GENERATIONS = 2


def folder_digest(folder: Path) -> str:
    """Return the SHA-256 of all files below a folder, their names included.

    Hidden files and compiled Python (`__pycache__`) do not count. A folder that
    does not exist has the digest of an empty one.

    Parameters
    ----------
    folder : Path
        Where to look, at any depth.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> len(folder_digest(ROOT / "data"))
    64
    """
    digest = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    for name, path in sorted(files.items()):
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.split("/"))
        if hidden or not path.is_file():
            continue
        content = path.read_bytes()
        # The lengths keep (name, content) pairs apart: "ab" + "c" is not "a" + "bc".
        digest.update(f"{len(name)} {len(content)} {name}".encode() + content)
    return digest.hexdigest()


def code_digest() -> str:
    """Return the SHA-256 of every file of `lib`: its identity as a program.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> code_digest() == code_digest()
    True
    """
    return folder_digest(ROOT / "lib")


@functools.cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if name := re.match(r"[A-Za-z0-9._-]+", line):
            # A dependency of another platform is listed, but not installed here.
            with contextlib.suppress(metadata.PackageNotFoundError):
                found[name[0]] = metadata.version(name[0])
    return found


def versions() -> dict[str, str]:
    """Return the versions of Python and of every direct dependency, as installed here.

    Returns
    -------
    dict of str to str
        Name to version, `python` first, then in the order of `requirements.txt`.

    Examples
    --------
    >>> list(versions())[0]
    'python'
    """
    return dict(_versions())


def _generation() -> str:
    """Name the results that this code and these versions make."""
    made_by = json.dumps([code_digest(), versions()])
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


# Taken on import: a file of `lib` that is edited while this process runs must not lend its
# name to what the older code, already in memory, returns.
_GENERATION = _generation()


@contextlib.contextmanager
def alone(path: Path, wait: bool = True) -> Iterator[None]:
    """Hold a lock file, so that one process at a time does what follows.

    The operating system lets go of the lock when its holder ends, however it ends.

    Parameters
    ----------
    path : Path
        The lock file; made if it does not exist.
    wait : bool, default True
        Wait for the holder to finish. Otherwise raise `BlockingIOError` at once.

    Raises
    ------
    BlockingIOError
        If another process holds the lock and `wait` is false.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone(Path(folder) / "lock"):
    ...     print("nobody else is here")
    nobody else is here
    """
    with open(path, "a") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def results_folder() -> Path:
    """Return the folder that results are kept in.

    Examples
    --------
    >>> isinstance(results_folder(), Path)
    True
    """
    return Path(os.environ.get("CAUSAL_BENCHMARK_BOOK_CACHE") or ROOT / ".cache" / "results")


@functools.cache
def _memory(folder: Path) -> joblib.Memory:
    generation = folder / _GENERATION
    try:
        (generation / "locks").mkdir(parents=True, exist_ok=True)
        os.utime(generation)  # the time of last use decides who is deleted
    except OSError as error:
        raise InputError(
            f"results cannot be kept in {folder}: {error.strerror or error}; set "
            "CAUSAL_BENCHMARK_BOOK_CACHE to a folder that can be written"
        ) from error
    # Only folders named like a generation are ours to delete.
    ours = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", path.name)]
    ours.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in [path for path in ours if path != generation][GENERATIONS - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    # Compressed, because zlib ends a stream with a checksum: damage is noticed, not returned.
    return joblib.Memory(generation, verbose=0, compress=("zlib", 1))


def kept(function: Callable[P, R]) -> Callable[P, R]:
    """Keep on disk what a function returns; the signature stays as it is.

    The function must be a pure one: what it returns depends on its arguments
    and the code alone. Hand it values rather than the path of a file, because a
    path stays the same when the file changes. An entry that is damaged or was
    only half written is computed again. If several processes want the same
    missing result at once, one computes it and the others wait for it.

    Parameters
    ----------
    function : callable
        A function of a module of `lib`, with arguments that pickle.

    Returns
    -------
    callable
        The same function, remembered; `__wrapped__` is the bare one.

    Raises
    ------
    InputError
        When called, if the folder of results cannot be written.

    Notes
    -----
    The work is done by `joblib.Memory` [1]_.

    References
    ----------
    .. [1] https://joblib.readthedocs.io/en/stable/memory.html

    Examples
    --------
    >>> @kept
    ... def load_squares(n: int) -> list[int]:
    ...     return [i**2 for i in range(n)]
    >>> load_squares.__wrapped__(4)
    [0, 1, 4, 9]
    """

    @functools.wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        memory = _memory(results_folder())
        cached = memory.cache(function)

        if cached.check_call_in_cache(*args, **kwargs):
            entry = cached.call_and_shelve(*args, **kwargs)
            # Whatever a damaged entry raises, the remedy is to compute it again.
            with contextlib.suppress(Exception):
                return entry.get()
            entry.clear()
        key = joblib.hash([function.__module__, function.__qualname__, args, kwargs])
        with alone(Path(memory.location) / "locks" / key):
            return cached(*args, **kwargs)

    return remembered
