"""Results kept on disk: a costly step runs once, and again only when it could differ.

Fitting a simulator takes most of a minute, and three chapters want the same fit.
:func:`cached` keeps what a function returned in `.cache/results` (or in the folder
that the environment variable `CAUSAL_BENCHMARK_BOOK_CACHE` names). A result comes
back only if nothing that made it has changed:

- the arguments, by value;
- every file of `lib`, but for figures, the book and the command line, which no result needs;
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
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import ParamSpec, TypeVar

import joblib

from lib import ROOT
from lib.errors import InputError
from lib.files import file_lock, folder_digest

P = ParamSpec("P")
R = TypeVar("R")

#: Generations of results that stay on disk, so that going back one change costs nothing.
GENERATIONS = 2

#: Files and folders that no other module of `lib` imports, so that no result depends on them.
APART = ("plots.py", "book", "__main__.py")


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of every direct dependency, as installed here.

    One that is not installed is named, too: what is installed later is a change.
    """
    found = {"python": platform.python_version()}
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines():
        if name := re.match(r"[A-Za-z0-9._-]+", line):
            try:
                found[name[0]] = metadata.version(name[0])
            except metadata.PackageNotFoundError:  # of another platform, for example
                found[name[0]] = "absent"
    return found


def _generation() -> str:
    """Name the results that this code and these versions make."""
    made_by = json.dumps([folder_digest(ROOT / "lib", APART), versions()])
    return hashlib.sha256(made_by.encode()).hexdigest()[:16]


# Taken on import: a file of `lib` that is edited while this process runs must not lend its
# name to what the older code, already in memory, returns.
_GENERATION = _generation()


@functools.cache
def _memory(folder: Path) -> joblib.Memory:
    """Open the generation in use, and delete those that are neither it nor the one before."""
    generation = folder / _GENERATION
    try:
        (generation / "locks").mkdir(parents=True, exist_ok=True)
        os.utime(generation)  # the time of last use decides who is deleted
    except OSError as error:
        raise InputError(
            f"results cannot be kept in {folder}: {error.strerror or error}; set "
            "CAUSAL_BENCHMARK_BOOK_CACHE to a folder that can be written"
        ) from None
    # Only folders named like a generation are ours to delete.
    ours = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16}", path.name)]
    ours.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in [path for path in ours if path != generation][GENERATIONS - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    # Compressed, because zlib ends a stream with a checksum: damage is noticed, not returned.
    return joblib.Memory(generation, verbose=0, compress=("zlib", 1))


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """Keep on disk, by `joblib.Memory`, what a function of `lib` returns.

    What it returns must depend on its arguments and the code alone. Hand it values rather
    than the path of a file, because a path stays the same when the file changes. An entry
    that is damaged or was only half written is computed again. If several processes want
    the same missing result at once, one computes it and the others wait for it.

    Examples
    --------
    >>> @cached
    ... def load_squares(n: int) -> list[int]:
    ...     return [i**2 for i in range(n)]
    >>> load_squares.__wrapped__(4)  # the bare function
    [0, 1, 4, 9]
    """

    @functools.wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = os.environ.get("CAUSAL_BENCHMARK_BOOK_CACHE")
        memory = _memory(Path(chosen) if chosen else ROOT / ".cache" / "results")
        cached = memory.cache(function)
        key = joblib.hash([function.__module__, function.__qualname__, args, kwargs])
        locks = Path(memory.location) / "locks"
        # Made again if newer generations have meanwhile pushed out the one of a long run.
        locks.mkdir(parents=True, exist_ok=True)
        with file_lock(locks / key):
            if cached.check_call_in_cache(*args, **kwargs):
                entry = cached.call_and_shelve(*args, **kwargs)
                # Whatever a damaged entry raises, the remedy is to compute it again.
                with contextlib.suppress(Exception):
                    return entry.get()
                entry.clear()
            return cached(*args, **kwargs)

    return remembered
