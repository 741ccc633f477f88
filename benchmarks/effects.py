"""Measure the benchmark of estimators: agreement with the paper, time and memory.

Run it from the project's folder::

    .venv/bin/python benchmarks/effects.py             # everything, 90 minutes
    .venv/bin/python benchmarks/effects.py truth       # some of it

The results of estimators are computed anew, in a folder of their own. The bounds are those that
the project has set itself; exit status 1 says that one is missed.
"""

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import Finding, finish, missed_by, named, peak

from lib.effects import benchmark, benchmarks, estimate, evaluate, labels, over_studies, read_study
from lib.effects.estimator_files import COVERAGE
from lib.effects.intervals import NORMAL, lotteries
from lib.effects.longitudinal import ENTRANTS, marked
from lib.effects.study import ADJUSTMENT_SETS, ARMS
from lib.effects.summaries import in_words
from lib.income import draw_studies, draw_study, fitted_simulator
from lib.income.oracles import three_ways
from lib.income.published import (
    beside_the_paper,
    published_metrics,
)
from lib.income.regimes import LOW, draw_panels, true_values

#: Subjects of the lottery in which the average effect is found again, and a planted mistake.
LOTTERY, MISTAKE = 100_000, 1_000

#: Studies, and panels, over which coverage is counted.
STUDIES, PANELS = 600, 2_000

NONE, FULL, EVENING = "No studies", "Full-time studies", "Evening course"

#: The regimes of the chapter on treatments over time.
REGIMES = {
    "never study": NONE,
    "always full-time": FULL,
    "until the Bachelor's": lambda now, _: np.where(now["education-num"] < 13, FULL, NONE),
    "evening if low": lambda _, before: np.where(before["income"] < LOW, EVENING, NONE),
}

#: Entrants of panels that adjust in one step, and those whose probabilities are right.
NAIVE = ("followers", "regression-first", "regression-all")
RIGHT = ("ipw", "ipw-true", "aipw", "aipw-true")


def truth(folder: Path) -> Iterator[Finding]:
    halves = dict.fromkeys(ARMS, 0.5)
    study = draw_study(fitted_simulator(), LOTTERY, seed=1, test_seed=1, lottery=halves)
    found = three_ways(study)
    for way in ("weighting", "regression"):
        effect, apart, error = found.loc[way]
        yield (
            f"ATE in a lottery of {LOTTERY:,}, from pairs and from {way}, standard errors apart "
            "(at most 3)",
            f"{effect - apart:,.0f} and {effect:,.0f} ± {error:,.0f}: {abs(apart) / error:.1f}",
            abs(apart) <= 3 * error,
        )
    incomes = study.treated["income"] + MISTAKE
    wrong = three_ways(replace(study, treated=study.treated.assign(income=incomes)))
    _, apart, error = wrong.loc["regression"]
    rule = f"pairs wrong by {MISTAKE:,} dollars, standard errors from regression (at least 4)"
    yield rule, f"{abs(apart) / error:.1f}", abs(apart) >= 4 * error


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
            if pd.notna(estimated.score):
                yield (
                    f"{adjustment}: cross-validation of {names[name]} "
                    f"(paper {paper[name]:.2f}, within 0.02)",
                    f"{estimated.score:.3f}",
                    abs(estimated.score - paper[name]) <= 0.02,
                )
    yield from within("both sets, eleven estimators", seconds, 300)


def studies(folder: Path) -> Iterator[Finding]:
    simulator, begun = fitted_simulator(), time.process_time()
    drawn = draw_studies(simulator, 5_000, seeds=range(100))
    table = pd.concat(benchmarks(drawn, choose="once", bootstraps=0, progress=False))
    seconds = time.process_time() - begun
    with pd.option_context("display.width", 200, "display.max_columns", None):
        print(in_words(over_studies(table), labels()).to_string())
    yield from within("100 studies of 5 000, eleven estimators, drawn and run", seconds, 300)


def within(what: str, seconds: float, most: float) -> Iterator[Finding]:
    megabytes = peak()
    yield f"{what}, CPU seconds (at most {most})", f"{seconds:.0f}", seconds <= most
    yield f"{what}, peak MB (at most 1 000)", f"{megabytes:.0f}", megabytes <= 1_000


def coverage(folder: Path) -> Iterator[Finding]:
    people = draw_study(fitted_simulator(), 1_000, n_test=20_000, adjustment="minimal")
    studies = lotteries(people, 1_000, range(STUDIES), power=0.0)
    # The bootstrap of matching is known to be wrong; the chapter says so.
    names = {name: label for name, label in labels(COVERAGE).items() if name != "match-boot"}
    options = {"grids": COVERAGE, "scored": False, "bootstraps": 0, "keep": False}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Co-variance matrix is underdetermined")
        found = over_studies(benchmark(studies, estimators=[*names], progress=False, **options))
    for row in found[found["metric"] == "coverage"].itertuples():
        error = NORMAL * found.loc[row.Index, "standard error"]
        yield (
            f"{names[row.estimator]}: coverage of 95 % intervals of the {row.estimand} in "
            f"{STUDIES} lotteries (0.93 to 0.97, known to 0.02)",
            f"{row.value:.3f} ± {error:.3f}",
            0.93 <= row.value <= 0.97 and error <= 0.02,
        )


def regimes(folder: Path) -> Iterator[Finding]:
    simulator, begun = fitted_simulator(), time.process_time()
    panel = next(draw_panels(simulator, REGIMES, 10_000))
    for entrant in ENTRANTS.values():
        entrant(panel)
    seconds = time.process_time() - begun
    yield from within("a panel of 10 000 × 7, drawn, all entrants", seconds, 60)
    truth = true_values(simulator, REGIMES, 200_000)
    error = 100 * truth[["standard error", "error of gain"]].max(axis=None) / panel.outcomes.std()
    rule = "standard errors of truths, % of the deviation of income (at most 1)"
    yield rule, f"{error:.2f}", error <= 1
    panels = draw_panels(simulator, REGIMES, 5_000, PANELS, seed=1)
    found = over_studies(marked(panels, truth["gain"], [*NAIVE, *RIGHT]))
    with pd.option_context("display.width", 200, "display.max_columns", None):
        print(in_words(found).drop(columns="best").to_string())
    found = found[found["metric"] == "coverage"]
    for row in found[found["estimator"].isin(RIGHT)].itertuples():
        yield (
            f"{row.estimator}: coverage of 95 % intervals of the gain of {row.estimand!r} in "
            f"{PANELS:,} panels of 5 000, three decisions (0.93 to 0.97)",
            f"{row.value:.3f} ± {NORMAL * row._5:.3f}",
            0.93 <= row.value <= 0.97,
        )
    for row in found.query("estimator in @NAIVE and estimand == 'always full-time'").itertuples():
        yield f"{row.estimator}: the same (below 0.9)", f"{row.value:.3f}", row.value < 0.9


MEASUREMENTS = {
    "truth": truth,
    "regimes": regimes,
    "coverage": coverage,
    "tables": tables,
    "studies": studies,
}


if __name__ == "__main__":
    chosen, missed = named(sys.argv[1:] or list(MEASUREMENTS), MEASUREMENTS), 0
    with tempfile.TemporaryDirectory() as temporary:
        if "tables" in chosen:
            draw_study(fitted_simulator()).to_parquet(temporary)
        fitted_simulator()
        for name in chosen:
            if name != "truth":
                os.environ["CAUSAL_BENCHMARK_BOOK_CACHE"] = temporary
            missed += missed_by(MEASUREMENTS[name], Path(temporary))
    finish(missed)
