"""Results kept on disk: a costly step runs once, and again only when it could differ.

:func:`cached` keeps what a function returned in `.cache/results` (or in the folder that the
environment variable `CAUSAL_BENCHMARK_BOOK_CACHE` names), by the values of its arguments. Every
file of `lib` that a result may need and the versions of all direct dependencies name a folder in
it, a *generation*. The one in use and the one before it stay, older ones are deleted, and one
that another user may write to is refused, because results are pickled.
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

#: What a function that is kept takes and returns.
Given = ParamSpec("Given")
Result = TypeVar("Result")

#: Generations of results that stay on disk, so that going back one change costs nothing.
GENERATIONS = 2

#: Whether anything is kept: not where it would take longer than to find it again.
KEEPING = contextvars.ContextVar("keeping", default=True)

#: Packages whose code, or version, is part of the name of a result.
WATCHED = {"lib", "sklearn", "xgboost", "econml", "numpy", "scipy", "pandas", "pyarrow", "joblib"}
WATCHED |= sys.stdlib_module_names

#: Files and folders that no other module of `lib` imports, so that no result depends on them.
APART = ("plots.py", "book", "__main__.py")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of every direct dependency; `absent` is one, too."""
    found = {"python": platform.python_version()}
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^[\w.-]+", requirements, flags=re.MULTILINE):
        found[name] = "absent"  # such as one of another platform
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _generation() -> str:
    """Name the results that this code and these versions make."""
    return str(joblib.hash([digest(ROOT / "lib", APART), versions()]))[:16]


# Taken on import: a file of `lib` that is edited while this process runs must not lend its
# name to what the older code, already in memory, returns.
_GENERATION = _generation()


def _opened(folder: Path) -> Path:
    """Return the folder of the generation in use, after deleting all but the last generations."""
    generation = folder / _GENERATION
    remedy = "CAUSAL_BENCHMARK_BOOK_CACHE may name another folder for results"
    writable(generation, f"; {remedy}", mode=0o700)
    # To read a result is to run what its writer put there. Windows has its own rules for folders.
    found = generation.stat()
    if os.name == "posix" and (found.st_uid != os.getuid() or found.st_mode & 0o022):
        raise InputError(f"{generation} must belong to you, and be writable by you alone; {remedy}")
    os.utime(generation)  # the time of last use decides who is deleted
    # Only folders named like a generation are ours to delete.
    ours = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", path.name)]
    for old in sorted(ours, key=lambda path: path.stat().st_mtime)[:-GENERATIONS]:
        shutil.rmtree(old, ignore_errors=True)
    return generation


class _Namer(NumpyHasher):
    """Name arguments by value, or by their `made_by()`; refuse those with somebody's own code."""

    def save(self, obj: Any) -> None:
        if hasattr(type(obj), "made_by"):
            obj = obj.made_by()
        if (getattr(obj, "__module__", None) or "lib").partition(".")[0] not in WATCHED:
            raise pickle.PicklingError
        super().save(obj)

    def _batch_setitems(self, *items: Any) -> None:
        # In their order, by which joblib does not go: a forest's draws are of places of parents.
        super(Hasher, self)._batch_setitems(*items)


def cached(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Keep on disk what a function of `lib` returns, which its arguments and the code determine.

    Hand it values rather than paths, which stay the same when a file changes. If somebody's own
    code is among the arguments, nothing is kept. A damaged entry is computed again. Of several
    processes that want the same missing result at once, one computes it.

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
        try:  # SHA-1 is on large tables twice as fast as MD5
            key = _Namer("sha1").hash([function.__module__, function.__qualname__, given.arguments])
        except pickle.PicklingError:
            return function(*args, **kwargs)
        chosen = os.environ.get("CAUSAL_BENCHMARK_BOOK_CACHE") or ROOT / ".cache" / "results"
        # In folders of few: a write looks at its neighbours, see `atomic_write`.
        entry = _opened(Path(chosen)) / key[:2] / f"{key}.pkl"
        with file_lock(entry.with_suffix(".lock")):
            # Whatever a missing or damaged entry raises, the remedy is to compute it. At once,
            # because a stream ends with a checksum, which is looked at before anything is read.
            with contextlib.suppress(Exception):
                kept: Result = pickle.loads(zlib.decompress(entry.read_bytes()))
                return kept
            result = function(*args, **kwargs)
            content = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
            write_bytes(entry, zlib.compress(content, 1))
        return result

    return remembered
