"""Results kept on disk: a costly step runs once, and again only when its result could differ.

:func:`cached` keeps what a function returns, by the values of its arguments, in `.cache/results`
or in the folder that the environment variable `CAUSAL_BENCHMARK_BOOK_CACHE` names. Results lie in
a *generation* there, a folder named after every file of `lib` that a result may need and the
versions of all direct dependencies. The generation in use and the one before it stay, and older
ones are deleted. One that another user may write to is refused, because results are pickled.
"""

import contextlib
import contextvars
import functools
import inspect
import os
import pickle
import platform
import re
import shutil
import sys
import zlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import joblib
from joblib.hashing import Hasher, NumpyHasher

from lib import ROOT
from lib.errors import InputError
from lib.files import digest, file_lock, writable, write_bytes

#: The parameters and the result of a function whose results are kept.
Given = ParamSpec("Given")
Result = TypeVar("Result")

#: Generations of results that stay on disk, so that going back one change costs nothing.
GENERATIONS = 2

#: Whether results are kept; False where keeping them takes longer than computing them.
KEEPING = contextvars.ContextVar("keeping", default=True)

#: Packages whose code, or version, is part of the name of a result.
WATCHED = {"lib", "sklearn", "xgboost", "econml", "numpy", "scipy", "pandas", "pyarrow", "joblib"}
WATCHED |= sys.stdlib_module_names

#: Files and folders that no other module of `lib` imports, so that no result depends on them.
APART = ("plots.py", "book", "__main__.py")


@functools.cache
def versions() -> dict[str, str]:
    """Return the version of Python and of every direct dependency; a missing one is `absent`."""
    found = {"python": platform.python_version()}
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^[\w.-]+", requirements, flags=re.MULTILINE):
        found[name] = "absent"  # such as a package for another platform
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _generation() -> str:
    """Return the name of the generation that this code and these versions make."""
    return str(joblib.hash([digest(ROOT / "lib", APART), versions()]))[:16]


# Computed on import: if a file of `lib` is edited while this process runs, the results of the
# older code, already in memory, must not get the name of the new code.
_GENERATION = _generation()


def _opened(folder: Path) -> Path:
    """Return the folder of the generation in use, after deleting all but the last generations."""
    generation = folder / _GENERATION
    remedy = "set CAUSAL_BENCHMARK_BOOK_CACHE to keep results in another folder"
    writable(generation, f"; {remedy}", mode=0o700)
    # Reading a result runs any code that its writer put there. Windows has other rules for folders.
    found = generation.stat()
    if os.name == "posix" and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        raise InputError(f"{generation} must belong to you, and be writable by you alone; {remedy}")
    os.utime(generation)  # the time of last use decides which are deleted
    # Only folders named like a generation are ours to delete.
    ours = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", path.name)]
    with contextlib.suppress(FileNotFoundError):  # another process deletes them, too
        for old in sorted(ours, key=lambda path: path.stat().st_mtime)[:-GENERATIONS]:
            shutil.rmtree(old, ignore_errors=True)
    return generation


class _Namer(NumpyHasher):
    """Hash arguments by value or by their `made_by()`; refuse those with code outside `WATCHED`."""

    def save(self, obj: Any) -> None:
        if hasattr(type(obj), "made_by"):
            obj = obj.made_by()
        if (getattr(obj, "__module__", None) or "lib").partition(".")[0] not in WATCHED:
            raise pickle.PicklingError
        super().save(obj)

    def _batch_setitems(self, *items: Any) -> None:
        # In their own order, while joblib sorts them: a forest draws parents by their position.
        super(Hasher, self)._batch_setitems(*items)


def cached(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Keep on disk what a function of `lib` returns; its arguments and code must determine it.

    Pass it values rather than paths: a path stays the same when its file changes. Nothing is kept
    if an argument contains a user's own code. A damaged entry is computed again. If several
    processes want the same missing result at once, one of them computes it.

    Examples
    --------
    >>> @cached
    ... def load_squares(n: int) -> list[int]:
    ...     return [i**2 for i in range(n)]
    >>> load_squares.__wrapped__(4)  # the bare function
    [0, 1, 4, 9]
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def remembered(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if not KEEPING.get():
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        try:  # on large tables, SHA-1 is twice as fast as MD5
            key = _Namer("sha1").hash([function.__module__, function.__qualname__, given.arguments])
        except pickle.PicklingError:
            return function(*args, **kwargs)
        chosen = os.environ.get("CAUSAL_BENCHMARK_BOOK_CACHE") or ROOT / ".cache" / "results"
        # Subfolders hold few entries each, since a write lists its folder, see `atomic_write`.
        entry = _opened(Path(chosen)) / key[:2] / f"{key}.pkl"
        with file_lock(entry.with_suffix(".lock")):
            # Whatever a missing or damaged entry raises, the remedy is to compute the result. An
            # entry is decompressed whole, so that its checksum is verified before it is unpickled.
            with contextlib.suppress(Exception):
                kept: Result = pickle.loads(zlib.decompress(entry.read_bytes()))
                return kept
            result = function(*args, **kwargs)
            content = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
            _opened(Path(chosen))  # other code may have been used since, and deleted it
            writable(entry.parent)
            write_bytes(entry, zlib.compress(content, 1))
        return result

    return remembered
