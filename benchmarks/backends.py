"""See whether work that other backends of joblib do is the same, byte for byte.

Run it from the project's folder, in an environment that has the libraries of the backends::

    pip install ray pyspark joblibspark
    python benchmarks/backends.py            # loky, dask, ray and spark, as far as installed
    python benchmarks/backends.py ray        # one of them

Each backend has two workers on this machine. Nothing is kept on disk, so all of it is computed
anew. The last line says how many backends have missed a bound; exit status 1 says that one has.
"""

import contextlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from measuring import Finding, finish, named, shown

from lib import ROOT
from lib.book.editions import Book, Run
from lib.book.running import execute
from lib.cache import KEEPING
from lib.ccr import generate
from lib.effects import benchmark
from lib.income import draw_study, fitted_simulator
from lib.scm import Simulator

WORKERS = 2

#: Of a light chapter, which is run so many times.
VALUES = [{"n_samples": 500, "horizon": 3, "seed": seed} for seed in range(4)]


@contextlib.contextmanager
def dask() -> Iterator[None]:
    from distributed import Client, LocalCluster

    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield


@contextlib.contextmanager
def ray() -> Iterator[None]:
    import ray
    from ray.util.joblib import register_ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@contextlib.contextmanager
def spark() -> Iterator[None]:
    from joblibspark import register_spark
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master(f"local[{WORKERS}]").getOrCreate()
    register_spark()
    yield
    session.stop()


#: One process, with which the others are compared.
ALONE = "sequential"

#: Backend → the module that it needs, and what starts its workers.
BACKENDS = {
    ALONE: ("joblib", contextlib.nullcontext),
    "loky": ("joblib", contextlib.nullcontext),
    "dask": ("distributed", dask),
    "ray": ("ray", ray),
    "spark": ("joblibspark", spark),
}


def work(simulator: Simulator, book: Book) -> dict[str, Any]:
    """Do each kind of work that is shared out, and return what comes of it."""
    study = draw_study(simulator, n=1_000, repeats=4)
    options = {"bootstraps": 10, "keep": False, "progress": False}
    tasks = generate("candy_party", n_tasks=8, n_samples=20, least_pns=0.1)
    runs = [Run(book.notebook("worlds"), values=one, book=book) for one in VALUES]
    if problems := execute(runs, WORKERS):
        sys.exit("\n".join(problems))
    return {
        "subjects": simulator.sample(3_000, horizon=7, seed=1),
        "a study": study.observational,
        "true effects": study.tables()["test_effects"],
        "estimates": benchmark(study, estimators=["ipw-lr", "s-ridge", "t-xgbr"], **options),
        "texts of tasks": tasks.samples,
        "answers": tasks.answers,
        "executed pages": pd.Series([run.output.read_bytes() for run in runs]),
    }


def done(backend: str, simulator: Simulator) -> dict[str, Any]:
    """Start the workers of a backend, and let them do all work, with runs in a folder of theirs."""
    start, book = BACKENDS[backend][1], Book()
    with tempfile.TemporaryDirectory() as folder, start():
        book.runs = Path(folder)
        with joblib.parallel_config(backend, n_jobs=WORKERS):
            return work(simulator, book)


def findings(backend: str, simulator: Simulator, alone: dict[str, Any]) -> Iterator[Finding]:
    for what, table in done(backend, simulator).items():
        same = table.equals(alone[what])
        yield f"{backend}, {what}", "the same" if same else "not the same", same


def main() -> None:
    offered = [name for name in BACKENDS if name != ALONE]
    installed = [name for name in offered if importlib.util.find_spec(BACKENDS[name][0])]
    chosen = named(sys.argv[1:], offered) or installed
    os.environ["PYTHONPATH"] = str(ROOT)  # of workers, which import this project
    simulator = fitted_simulator()
    KEEPING.set(False)
    alone = done(ALONE, simulator)
    finish(sum(shown(findings(backend, simulator, alone)) for backend in chosen))


if __name__ == "__main__":
    main()
