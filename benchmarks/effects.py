"""Measure the benchmark of estimators: agreement with the paper, time and memory.

Run it from the project's folder::

    .venv/bin/python benchmarks/effects.py             # everything, 80 minutes
    .venv/bin/python benchmarks/effects.py truth       # some of it

The results of estimators are computed anew, in a folder of their own. The bounds are those that
the project has set itself; exit status 1 says that one is missed.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from measuring import Finding, finish, missed_by, named, peak

from lib.effects import estimate, evaluate, labels, read_study
from lib.effects.estimators import TruePropensityWeighting
from lib.effects.study import ADJUSTMENT_SETS
from lib.income import draw_study, fitted_simulator
from lib.income.published import (
    beside_the_paper,
    published_metrics,
)


def truth(folder: Path) -> Iterator[Finding]:
    study = draw_study(fitted_simulator())
    pairs = (study.difference.mean(), study.difference.std() / len(study.difference) ** 0.5)
    known = TruePropensityWeighting(study.arm_probability)
    known.fit(study.covariates, study.arm, study.outcomes)
    weights = (known.ate_, known.standard_error_)
    distance = abs(pairs[0] - weights[0]) / (pairs[1] ** 2 + weights[1] ** 2) ** 0.5
    yield (
        "ATE from pairs and from the true propensities, standard errors apart (at most 3)",
        f"{pairs[0]:,.0f} ± {pairs[1]:,.0f} and {weights[0]:,.0f} ± {weights[1]:,.0f}: "
        f"{distance:.1f}",
        distance <= 3,
    )


def tables(folder: Path) -> Iterator[Finding]:
    paths = [folder / f"{name}.parquet" for name in ("observational", "control", "treated")]
    begun = time.process_time()
    found, runs = {}, {}
    for adjustment in ADJUSTMENT_SETS:
        study = read_study(*paths, adjustment=adjustment)
        runs[adjustment] = estimate(study)
        found[adjustment] = evaluate(study, runs[adjustment])
    seconds, names = time.process_time() - begun, labels()
    with pd.option_context("display.width", 200, "display.max_columns", None):
        for adjustment, table in found.items():
            print(f"\n{adjustment} adjustment set\n{beside_the_paper(table, adjustment)}\n")
            print(beside_the_paper(table, adjustment, table_of_paper="Table 3"))
            for name, run in runs[adjustment].items():
                print(f"{names[name]:24} {run.seconds:8.1f} CPU s  {run.settings}")
    for adjustment, run in runs.items():
        paper = published_metrics(adjustment).query("metric == 'cross-validation'")
        paper = paper.set_index("estimator")["value"]
        for name, estimated in run.items():
            if estimated.criterion:
                yield (
                    f"{adjustment}: {estimated.criterion} of {names[name]} "
                    f"(paper {paper[name]:.2f}, within 0.02)",
                    f"{estimated.score:.3f}",
                    abs(estimated.score - paper[name]) <= 0.02,
                )
    megabytes = peak()
    yield (
        "both sets, eleven estimators, CPU seconds (at most 600)",
        f"{seconds:.0f}",
        seconds <= 600,
    )
    yield (
        "both sets, eleven estimators, peak MB (at most 2 000)",
        f"{megabytes:.0f}",
        megabytes <= 2_000,
    )


MEASUREMENTS = {
    "truth": truth,
    "tables": tables,
}


if __name__ == "__main__":
    chosen, missed = named(sys.argv[1:] or list(MEASUREMENTS), MEASUREMENTS), 0
    with tempfile.TemporaryDirectory() as temporary:
        if "tables" in chosen:
            draw_study(fitted_simulator()).to_parquet(temporary)
        fitted_simulator()
        for name in chosen:
            if name == "tables":
                os.environ["CAUSAL_BENCHMARK_BOOK_CACHE"] = temporary
            missed += missed_by(MEASUREMENTS[name], Path(temporary))
    finish(missed)
