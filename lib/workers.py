"""Workers of joblib, which share work, return its results in order and use one thread each."""

import contextlib
import functools
import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import joblib
from threadpoolctl import ThreadpoolController

from lib.errors import check, is_count

#: Libraries with threads of their own. The search takes longer than to fit a small model, and is
#: repeated only if the number of modules has changed, since only an import brings another library.
_libraries = functools.lru_cache(1)(lambda n_modules: ThreadpoolController())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Limit numerical libraries to one thread, because how they split sums changes last digits."""
    # Besides, for small matrices, threads wait for each other longer than they work.
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


def worker_count(n_jobs: int | None) -> int:
    """Return how many workers joblib uses: one per core for -1, as configured for None."""
    met = n_jobs is None or (is_count(n_jobs, least=-1_000) and n_jobs != 0)
    check(met, "n_jobs must be a whole number other than 0, or None", n_jobs)
    return int(joblib.effective_n_jobs(n_jobs))


def in_order(work: Iterable[Any], n_jobs: int | None = None, **options: Any) -> Iterator[Any]:
    """Return the results of delayed calls in their order, each as soon as it is available.

    A backend that returns all results at once, such as Ray's, gets the calls in rounds of one per
    worker, so that memory holds one round only. `options` are those of :class:`joblib.Parallel`.

    Examples
    --------
    >>> list(in_order(joblib.delayed(abs)(number) for number in (-1, -2)))
    [1, 2]
    """
    workers = worker_count(n_jobs)
    try:
        shared = joblib.Parallel(n_jobs, return_as="generator", **options)
    except ValueError:  # the backend does not, says joblib
        shared, calls = joblib.Parallel(n_jobs, **options), iter(work)
        rounds = iter(lambda: list(itertools.islice(calls, workers)), [])
        return itertools.chain.from_iterable(map(shared, rounds))
    return iter(shared(work))
