"""Work is shared out by joblib: on a cluster of Dask, too, nothing changes and nothing is lost."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import dask
import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.utils import get_mp_context

from lib import ROOT
from lib.book import kernels, running, runs
from lib.book.editions import Run
from lib.ccr import generate
from lib.effects import benchmark
from lib.effects.study import ARMS
from lib.income.study import true_effects
from lib.scm import Simulator, Specification

IMPORTED = ["lib.ccr", "lib.effects", "lib.income", "sklearn.ensemble", "pyarrow.parquet"]
IMPORTED += ["lib.book.kernels", "lib.book.running", "papermill"]


@pytest.fixture(scope="module")
def two_workers():
    # Workers that are forks of one process need not import what they need, each for itself. Python
    # warns of forks from 3.12 on, and with 3.13 one that was killed did not always come back.
    forks = sys.version_info < (3, 12) and "forkserver" in multiprocessing.get_all_start_methods()
    way = {"distributed.worker.multiprocessing-method": "forkserver" if forks else "spawn"}
    with dask.config.set(way):
        if forks:
            get_mp_context().set_forkserver_preload(["distributed", *IMPORTED])
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as two,
            Client(two) as client,
        ):
            yield client


@pytest.fixture
def cluster(two_workers):
    # One that was killed is started again. With a single one, joblib would work in this process.
    two_workers.wait_for_workers(2, timeout=60)
    return two_workers


@pytest.fixture(scope="module")
def simulator():
    rng = np.random.default_rng(5)
    age, studies = rng.integers(18, 70, 300).astype(float), rng.choice(ARMS, 300)
    forest = {"type": "GaussianRandomForestSampler", "n_estimators": 5}
    later = {"seq_parents_curr": ["age", "studies"], "seq_sampler": forest}
    model = {
        "age": {"sampler": "gaussian", "seq_sampler": "IncrementSampler"},
        "studies": {"sampler": "multinomial"},
        "income": {"parents": ["age", "studies"], "sampler": forest, **later},
    }
    income = 20 + age * (1 + (studies == ARMS[1])) + rng.normal(0, 4, 300)
    table = pd.DataFrame({"age": age, "studies": studies, "income": income})
    return Simulator(Specification(model)).fit(table)


def test_a_cluster_samples_the_same_rows_in_other_processes(cluster, simulator, tmp_path):
    def noted(now, before):
        (tmp_path / str(os.getpid())).touch()
        return now["income"] + 1

    world = {"n": 900, "horizon": 3, "seed": 4, "do": {"income": {1: noted}}}
    alone = pd.concat(simulator.blocks(**world, block=100), ignore_index=True)
    (mine,) = tmp_path.iterdir()
    assert mine.name == str(os.getpid())
    mine.unlink()
    with joblib.parallel_config(backend="dask"):
        shared = simulator.sample(**world)
    assert shared.equals(alone)
    drew = {int(path.name) for path in tmp_path.iterdir()}
    assert drew and drew <= set(cluster_processes(cluster))


def test_backends_that_return_results_all_at_once_are_asked_in_rounds(simulator, monkeypatch):
    """As those of Ray and of Spark, of which joblib's own for `multiprocessing` is the base."""
    asked, parallel = [], joblib.Parallel.__call__

    def noting(self, work):
        asked.append(list(work))
        return parallel(self, asked[-1])

    alone = simulator.sample(100, 3, seed=1)
    monkeypatch.setattr(joblib.Parallel, "__call__", noting)
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        frames = [*simulator.blocks(100, 3, seed=1, block=20)]
    pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), alone, check_exact=True)
    assert [len(work) for work in asked] == [2, 2, 1]


def test_a_killed_worker_loses_no_block(cluster, simulator, tmp_path):
    def deadly(now, before):
        # In one block of nine, the first time that it is drawn.
        if 400 in now.index and os.getpid() != here:
            try:
                (tmp_path / "killed").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return now["income"] + 1

    world, here = {"n": 900, "horizon": 3, "seed": 4, "block": 100}, os.getpid()
    before = cluster_processes(cluster)
    with joblib.parallel_config(backend="dask"):
        shared = list(simulator.blocks(**world, do={"income": {1: deadly}}))
    assert (tmp_path / "killed").exists()
    assert cluster_processes(cluster) != before
    harmless = {"income": {1: lambda now, before: now["income"] + 1}}
    alone = list(simulator.blocks(**world, do=harmless))
    assert pd.concat(shared).equals(pd.concat(alone))


def test_files_of_parts_are_the_same_wherever_they_are_written(cluster, simulator, tmp_path):
    def part(folder, first):
        if first == 20 and os.getpid() != here and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        simulator.to_parquet(folder / f"{first}.parquet", 10, 3, first=first, n_jobs=1)
        tasks = generate("candy_party", n_tasks=2, n_samples=5, first_task=first, n_jobs=1)
        tasks.to_parquet(folder / f"tasks {first}")

    found, here = {}, os.getpid()
    for name, backend in (("here", "sequential"), ("there", "dask")):
        (tmp_path / name).mkdir()
        with joblib.parallel_config(backend=backend):
            parts = range(0, 50, 10)
            joblib.Parallel()(joblib.delayed(part)(tmp_path / name, first) for first in parts)
        files = (tmp_path / name).rglob("*.parquet")
        found[name] = {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in files}
    assert (tmp_path / "there" / "killed").exists()
    assert found["there"] == found["here"]
    assert len(found["here"]) == 5 * (1 + 5)
    whole = simulator.sample(50, 3)
    parts = [pd.read_parquet(tmp_path / "there" / f"{k}.parquet") for k in range(0, 50, 10)]
    assert pd.concat(parts, ignore_index=True).equals(whole)


def test_tasks_truth_and_estimates_are_the_same_on_a_cluster(cluster, simulator):
    rng = np.random.default_rng(7)
    seen = pd.DataFrame({"x": rng.normal(size=200), "studies": [0, 1] * 100})
    seen["income"] = seen["x"] * seen["studies"] + rng.normal(size=200)
    arms = [seen.assign(studies=arm, income=seen["x"] * arm) for arm in (0, 1)]
    options = {"estimators": ["s-ridge", "match-nn-eu"], "bootstraps": 5, "keep": False}
    found = []
    for backend in ("sequential", "dask"):
        with joblib.parallel_config(backend=backend):
            tasks = generate("flu_vaccine", [2, 2], n_tasks=6, least_pns=0.1, n_samples=3)
            truth = true_effects(simulator, simulator.sample(60, 2), repeats=4, horizon=3)
            study = {"adjustment": ["x"], "arms": (0, 1), "progress": False}
            table = benchmark(seen, *arms, **study, **options)
        found.append([tasks.samples, tasks.answers, pd.DataFrame(vars(truth)), table])
    for here, there in zip(*found, strict=True):
        pd.testing.assert_frame_equal(here, there, check_exact=True)


def test_a_killed_worker_loses_no_estimate_and_no_table(cluster, tmp_path):
    """Of tables that Dask would otherwise leave with the one worker that has them."""
    mark, here = tmp_path / "killed", os.getpid()

    class Deadly:
        def fit(self, covariates, treatment, outcome):
            if os.getpid() != here and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            self.ate_ = float(outcome[treatment == 1].mean() - outcome[treatment == 0].mean())
            return self

    rng = np.random.default_rng(7)
    seen = pd.DataFrame({"x": rng.normal(size=40_000), "studies": [0, 1] * 20_000})
    seen["income"] = seen["x"] * seen["studies"] + rng.normal(size=40_000)
    arms = [seen.assign(studies=arm, income=seen["x"] * arm) for arm in (0, 1)]
    study = {"adjustment": ["x"], "arms": (0, 1), "progress": False}
    estimators = {name: Deadly() for name in "abc"}
    found = {}
    for backend in ("dask", "sequential"):
        with joblib.parallel_config(backend=backend):
            found[backend] = benchmark(seen, *arms, **study, estimators=estimators, bootstraps=0)
    assert mark.exists()
    pd.testing.assert_frame_equal(*found.values(), check_exact=True)


@pytest.fixture
def book(cluster, tiny_book, monkeypatch):
    """A book whose runs need little, on the cluster and here."""
    needed = ("ipykernel.kernelapp", "myst_nb")

    class Light(WorkerPlugin):
        name = "light"

        def setup(self, worker):  # of one that is started again, too
            kernels.IMPORTED = needed
            os.environ.update(PYTHONPATH=str(ROOT), WORKER=str(os.getpid()))

    cluster.register_plugin(Light())
    monkeypatch.setattr(kernels, "IMPORTED", needed)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(runs, "show", lambda *_, **__: [])
    return tiny_book


def test_a_sweep_is_the_same_on_a_cluster_and_a_killed_worker_loses_no_run(book):
    mark = book.root / "killed"
    deadly = f"""
import os, pathlib, signal, time
from lib.book.recorded import number
mark, worker = pathlib.Path({str(mark)!r}), os.environ.get("WORKER")
if n == 2 and worker and not mark.exists():
    mark.write_text(str(os.getpid()))
    os.kill(int(worker), signal.SIGKILL)
    time.sleep(300)
number("total", n / 7, "apples", standard_error=0.5)
print(n)"""
    book.add_notebook("totals", "n: int = 9", deadly, "assert n != 3, 'unlucky'")
    found = []
    for folder, backend in (("here", "threading"), ("there", "dask")):
        book.runs = book.root / folder
        with joblib.parallel_config(backend):
            swept, problems = runs.sweep("totals", {"n": [*"1234"]}, book=book)
        assert problems == ["totals,n=3: cell 3 of 3: AssertionError: unlucky"]
        made = [*book.runs.glob("*/totals.ipynb"), *swept.iterdir()]
        found.append({str(path.relative_to(book.runs)): path.read_bytes() for path in made})
        assert mark.exists() == (backend == "dask")
    assert found[0] == found[1]
    assert {"sweep,totals,n=1+2+3+4/numbers.parquet", "totals,n=2/totals.ipynb"} < {*found[1]}
    wait_for(lambda: not at_work(int(mark.read_text())))  # the kernel of the killed worker
    assert not [*book.root.glob("*/*/.partial*")]


def test_an_interrupt_sends_no_other_run_to_a_cluster(book, cluster):
    go = book.root / "go"
    waits = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)"
    book.add_notebook("slow", "n: int = 1", waits)
    program = f"""
import signal, joblib
from pathlib import Path
from distributed import Client
from lib.book.editions import Book
from lib.book.runs import sweep
signal.signal(signal.SIGINT, signal.default_int_handler)
with Client({cluster.scheduler.address!r}), joblib.parallel_config("dask"):
    try: sweep("slow", {{"n": [*"123456"]}}, book=Book(Path({str(book.root)!r})))
    except KeyboardInterrupt: print("interrupted", flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as one:
        wait_for(lambda: len([*book.runs.glob("*/.partial*")]) == 2)
        one.send_signal(signal.SIGINT)
        assert one.stdout.readline() == b"interrupted\n"
        assert len([*book.runs.glob("*/.partial*")]) == 2, "nobody waits for what others execute"
        assert one.wait(30) == 0
    go.touch()
    wait_for(lambda: len([*book.runs.glob("*/slow.json")]) == 2)
    time.sleep(0.5)
    assert len([*book.runs.glob("*/*")]) == 2 * len(["notebook", "record"])


def test_a_worker_with_other_versions_runs_no_page(book, monkeypatch):
    asked = [Run(book.notebook("sums"), values={"n": n}, book=book) for n in (4, 5)]
    other = running.versions() | {"numpy": "0.1"}
    monkeypatch.setattr(running, "versions", lambda: other)
    with joblib.parallel_config("dask"):
        problems = running.execute(asked)
    assert not any(run.output.exists() for run in asked)
    rule = "workers need the folder and versions of the process that started them"
    found = {"numpy": np.__version__}
    assert problems == [f"sums,n={n}: {rule}: found {found}" for n in (4, 5)]


def at_work(process):
    # Where nothing adopts orphans, one that has ended stays listed as a zombie.
    found = psutil.pid_exists(process) and psutil.Process(process).status()
    return found not in (False, psutil.STATUS_ZOMBIE)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def cluster_processes(client):
    """Return the workers of a cluster."""
    return sorted(client.run(os.getpid).values())
