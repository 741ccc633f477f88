"""The names by which other programs find the benchmark of reasoners; all logic is in `lib`.

Inspect finds its task as ``causal_benchmark_book/ccr``, and verifiers its taskset as
``causal-benchmark-book``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from causal_benchmark_book.tasks import ccr as ccr
    from lib.ccr.verifiers_taskset import CcrTaskset

# Among these names verifiers looks for a taskset.
__all__ = ["CcrTaskset"]


def __getattr__(name: str) -> Any:
    # Only now, so that who has one of the programs does not need the other.
    if name == "CcrTaskset":
        from lib.ccr.verifiers_taskset import CcrTaskset

        return CcrTaskset
    if name == "ccr":
        from causal_benchmark_book.tasks import ccr

        return ccr
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
