"""Measure how sampling and task generation scale, with sizes and with workers.

Run it from the project's folder, on a machine that does nothing else::

    .venv/bin/python benchmarks/scaling.py          # on one worker and on two, three minutes
    .venv/bin/python benchmarks/scaling.py 1 4 16   # on other numbers of workers

Work is cut into parts, and each part is a file, or a folder, that its worker writes. A line of the
table, which is written to `data/scaling.csv`, is a run in workers of its own: CPU seconds without
the start of workers, seconds on the clock with it, the peak memory of a worker, bytes on disk.
"""

import itertools
import resource
import sys
import tempfile
import time
from pathlib import Path

import joblib
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from lib import ROOT
from lib.ccr import generate
from lib.files import write_text
from lib.income import fitted_simulator

#: What a part holds: subjects, each for so many years; or tasks with 16 questions a sample.
SUBJECTS, YEARS, TASKS, SAMPLES = 25_000, 7, 28, 1_005


def subjects(simulator, folder: Path, part: int) -> None:
    path, first = folder / f"{part}.parquet", part * SUBJECTS
    simulator.to_parquet(path, n=SUBJECTS, horizon=YEARS, seed=1, first=first, n_jobs=1)


def prompts(_, folder: Path, part: int) -> None:
    sizes = {"n_tasks": TASKS, "n_samples": SAMPLES, "first_task": part * TASKS, "n_jobs": 1}
    generate("candy_party", [4, 4, 4], seed=1, **sizes).to_parquet(folder / f"{part}")


#: What is counted: the function that writes a part, and how many a part holds.
WORK = {
    "subject-years": (subjects, SUBJECTS * YEARS),
    "prompts": (prompts, TASKS * SAMPLES * 16),
}


def written(write, simulator, folder: Path, part: int) -> tuple[float, float]:
    """Write a part; return the CPU seconds that it took, and the worker's peak memory in MB."""
    begun = time.process_time()
    write(simulator, folder, part)
    seconds, peak = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return seconds, peak / 1024


def measured(what: str, parts: int, workers: int) -> dict[str, float | str]:
    write, size = WORK[what]
    simulator = fitted_simulator() if write is subjects else None
    get_reusable_executor(max_workers=workers).shutdown(wait=True)
    with tempfile.TemporaryDirectory() as folder, joblib.parallel_config("loky", n_jobs=workers):
        begun = time.perf_counter()
        rows = joblib.Parallel(batch_size=1)(
            joblib.delayed(written)(write, simulator, Path(folder), part) for part in range(parts)
        )
        seconds = time.perf_counter() - begun
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    cpu, peaks = zip(*rows, strict=True)
    return {
        "what": what,
        "workers": workers,
        "number": parts * size,
        "CPU seconds": round(sum(cpu), 2),
        "seconds": round(seconds, 1),
        "number a CPU second": round(parts * size / sum(cpu)),
        "peak MB of a worker": round(max(peaks)),
        "bytes each": round(disk / (parts * size), 2),
    }


if __name__ == "__main__":
    every = [int(word) for word in sys.argv[1:]] or [1, 2]
    runs = itertools.product(WORK, (4, 16), every)
    table = pd.DataFrame(measured(*run) for run in runs)
    write_text(ROOT / "data" / "scaling.csv", table.to_csv(index=False, lineterminator="\n"))
    print(table.to_string(index=False))
