"""Measure the simulator: fit quality, agreement with the published sample, time and memory.

Run it from the project's folder::

    .venv/bin/python benchmarks/simulator.py             # everything, about six minutes
    .venv/bin/python benchmarks/simulator.py fit shares  # some of it

Each measurement runs in a process of its own, so that its peak memory is its own.
The bounds are those that the project has set itself; exit status 1 says that one is missed.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from measuring import Finding, finish, missed_by, named, peak

from lib.adult import load_adult
from lib.income import MECHANISMS, SPECIFICATIONS, fitted_simulator
from lib.income.characteristics import (
    baseline_characteristics,
    cohort,
    compare,
    read_published,
)
from lib.scm import Simulator, Specification
from lib.scm.comparison import average_effect


def fit() -> Iterator[Finding]:
    adult = load_adult()
    begun = time.process_time()
    path = SPECIFICATIONS / "income_scm_1.0.yml"
    simulator = Simulator(Specification.from_yaml(path, MECHANISMS)).fit(adult, seed=0)
    seconds = time.process_time() - begun
    yield "fitting, CPU seconds (at most 45)", f"{seconds:.1f}", seconds <= 45
    paper = read_published("fit", source="paper, Table 1")
    quality = simulator.fit_quality(adult).set_index("variable")["value"]
    for name, measure, value in paper.itertuples(index=False):
        yield (
            f"{measure} of {name} (paper {value:.2f}, within 0.02)",
            f"{quality[name]:.3f}",
            abs(quality[name] - value) <= 0.02,
        )


def published() -> Iterator[Finding]:
    seen = fitted_simulator().sample(n=50_000, horizon=7, seed=0)
    ours = baseline_characteristics(cohort(seen))
    for source in ("paper, Table 1", "published files"):
        table = compare(
            ours, read_published("characteristics", cohort="IncomeSCM-1.0", source=source)
        )
        for row in table.itertuples(index=False):
            if row.statistic in ("share", "mean"):
                bound = 1.0 if row.statistic == "share" else 3.0
                yield (
                    f"{source}: {row.statistic} of {row.variable} {row.level} "
                    f"{row.published:,.2f}, within {bound:.0f} {row.unit}",
                    f"{row.ours:,.2f}, {row.difference:+.2f}",
                    abs(row.difference) <= bound,
                )


def effect() -> Iterator[Finding]:
    simulator, worlds = fitted_simulator(), {}
    for treatment in ("Full-time studies", "No studies"):
        worlds[treatment] = simulator.sample(50_000, 7, seed=1, do={"studies": {1: treatment}})
    found = average_effect(*worlds.values(), outcome="income", step=6)
    effects = read_published("effect", source="published files").set_index("quantity")["value"]
    released = effects["average effect"]
    yield (
        f"ATE in US dollars (published {released:,.0f}, within 900)",
        f"{found['average effect']:,.0f} ± {found['standard error']:.0f}",
        abs(found["average effect"] - released) <= 900,
    )


def sampling() -> Iterator[Finding]:
    simulator = fitted_simulator()
    simulator.sample(n=1_000, horizon=2)  # what is done once, such as imports
    begun = time.process_time()
    simulator.sample(n=50_000, horizon=7, seed=0)
    seconds = time.process_time() - begun
    yield "50 000 × 7, CPU seconds (at most 4)", f"{seconds:.2f}", seconds <= 4
    yield "50 000 × 7, peak MB (at most 600)", f"{peak():.0f}", peak() <= 600


def streaming() -> Iterator[Finding]:
    simulator = fitted_simulator()
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in (250_000, 1_000_000):
            begun = time.process_time()
            path = simulator.to_parquet(Path(folder) / "world.parquet", n=n, horizon=7, seed=0)
            seconds[n] = time.process_time() - begun
        size = path.stat().st_size / 2**20
    ratio = seconds[1_000_000] / (4 * seconds[250_000])
    yield "1 000 000 × 7 to Parquet, peak MB (at most 1 000)", f"{peak():.0f}", peak() <= 1_000
    yield "1 000 000 × 7 to Parquet, CPU seconds", f"{seconds[1_000_000]:.0f}", True
    yield "1 000 000 × 7 to Parquet, MB on disk", f"{size:.0f}", True
    yield "time of 1 000 000 by 4 × 250 000 (0.9 to 1.1)", f"{ratio:.2f}", 0.9 <= ratio <= 1.1


def ten_millions() -> Iterator[Finding]:
    simulator, begun = fitted_simulator(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = simulator.to_parquet(Path(folder) / "world.parquet", n=10_000_000, horizon=7, seed=0)
        size = path.stat().st_size / 2**20
    yield "10 000 000 × 7 to Parquet, peak MB (at most 1 000)", f"{peak():.0f}", peak() <= 1_000
    yield "10 000 000 × 7 to Parquet, CPU seconds", f"{time.process_time() - begun:.0f}", True
    yield "10 000 000 × 7 to Parquet, MB on disk", f"{size:.0f}", True


def bytes_alike() -> Iterator[Finding]:
    simulator = fitted_simulator()
    whole = simulator.sample(n=50_000, horizon=7, seed=3)
    part = simulator.sample(n=1_000, horizon=7, seed=3)
    alike = part.equals(whole.head(7_000))
    yield "the first 1 000 of 50 000, and 1 000", _alike(alike), alike
    for block in (777, 16_384):
        blocks = simulator.blocks(50_000, 7, seed=3, block=block)
        alike = pd.concat(blocks, ignore_index=True).equals(whole)
        yield f"blocks of {block:,}", _alike(alike), alike
    alike = simulator.sample(n=50_000, horizon=7, seed=3, n_jobs=2).equals(whole)
    yield "two workers", _alike(alike), alike
    digests = {
        subprocess.run(
            [sys.executable, "-c", _DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    yield "two processes with other PYTHONHASHSEED", _alike(len(digests) == 1), len(digests) == 1


_DIGEST = """
from pandas.util import hash_pandas_object
from lib.income import fitted_simulator
print(hash_pandas_object(fitted_simulator().sample(n=1_000, horizon=7, seed=3)).sum())
"""


def _alike(alike: bool) -> str:
    return "identical" if alike else "differ"


MEASUREMENTS = {
    measurement.__name__: measurement
    for measurement in (fit, published, effect, sampling, streaming, ten_millions, bytes_alike)
}


if __name__ == "__main__":
    chosen = named(sys.argv[1:] or list(MEASUREMENTS), MEASUREMENTS)
    fitted_simulator()
    finish(sum(missed_by(MEASUREMENTS[name]) for name in chosen))
