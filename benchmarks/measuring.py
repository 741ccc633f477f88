"""What the benchmarks share: how a measurement is run, and how its findings are printed.

Each runs in a process of its own, so that its peak memory is its own.
"""

import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

#: What is measured, what was found, and whether it is within its bound.
Finding = tuple[str, str, bool]

Measurement = Callable[..., Iterator[Finding]]


def named(words: list[str], measurements: Iterable[str]) -> list[str]:
    """Return the words if all of them name a measurement; end the program otherwise."""
    measurements = list(measurements)
    if unknown := [word for word in words if word not in measurements]:
        sys.exit(
            f"measurement {unknown[0]!r} is unknown: expected one of {', '.join(measurements)}"
        )
    return words


def missed_by(measurement: Measurement, *arguments) -> int:
    """Run a measurement in a process of its own; return how many bounds it misses."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return shown(process.submit(_findings, measurement, *arguments).result())


def shown(findings: Iterable[Finding]) -> int:
    """Print findings beside their bounds, and return how many of these are missed."""
    missed = 0
    for what, found, within in findings:
        print(f"{'ok    ' if within else 'MISSED'}  {what}: {found}", flush=True)
        missed += not within
    return missed


def finish(missed: int) -> None:
    """Say how many bounds were missed, and end with status 1 if any was."""
    print(f"{missed} bounds missed")
    sys.exit(missed > 0)


def peak() -> float:
    """Return this process's peak memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _findings(measurement: Measurement, *arguments) -> list[Finding]:
    return list(measurement(*arguments))
