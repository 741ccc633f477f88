"""Measure work a CPU second, beside what a user would otherwise write or install.

Run it from the project's folder, in an environment of its own::

    python -m venv .venv/compared
    .venv/compared/bin/pip install -e . -r benchmarks/requirements.txt
    .venv/compared/bin/python benchmarks/compare.py                 # or: make benchmarks
    .venv/compared/bin/python benchmarks/compare.py seeing doing    # print some of it, keep nothing
    .venv/compared/bin/python benchmarks/compare.py --page          # the page, from what was kept

What is not installed is left out and named. Each library has a process of its own. Each way to do
a piece of work is done once unmeasured; then all ways take turns. CPU seconds are those of user and
system, of the process and of those that it started and waited for. Where two ways do the same, what
they give is compared; exit status 1 says that it differs. All is kept in `data/speed.json`, from
which the page `book/speed.md` is made.
"""

import contextlib
import datetime
import functools
import itertools
import json
import multiprocessing
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pandas as pd
from measuring import finish, named, shown

from lib import ROOT
from lib.files import write_text
from lib.tables import number_text, typeset

#: What was measured, the page that shows it, and what stands on that page.
MEASURED = ROOT / "data" / "speed.json"
PAGE, TEMPLATE = ROOT / "book" / "speed.md", ROOT / "benchmarks" / "speed.md"

#: On what all of the ways stand.
BELOW = ["numpy", "pandas", "scipy", "scikit-learn", "numba", "joblib"]

#: How often each way is measured.
REPEATS = 5

#: How much was done; and a function, called after the clock has stopped, of what to look at.
Done = tuple[int, Callable[[], Any]]

#: What makes itself ready, and returns the work.
Way = Callable[[], Callable[[], Done]]

#: The way of this project, with which the others are compared.
OURS = "this book"


# --- The same work gives the same -----------------------------------------------------------------


class Agreement(NamedTuple):
    """What of two ways is compared, how far apart it is, and how far it may be."""

    of: str
    apart: float
    most: float


def same_numbers(ours: np.ndarray, theirs: np.ndarray) -> Agreement:
    """Compare numbers that are computed from the same data by the same formula."""
    apart = float(np.abs(ours - theirs).max())
    return Agreement(f"{number_text(ours.size)} numbers, the farthest apart", apart, 1e-6)


def moments(frame: pd.DataFrame) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the number of rows, the means and the covariances of the columns."""
    return len(frame), frame.mean().to_numpy(), frame.cov().to_numpy()


def same_distribution(ours: tuple, theirs: tuple) -> Agreement:
    """Compare means and covariances of two draws of a normal distribution, in standard errors."""
    (n, mean, covariance), (m, other_mean, other_covariance) = ours, theirs
    variances = np.diag(covariance)
    # Of normal variables, the covariance of i and j has the variance (s_ii s_jj + s_ij²) / n.
    squares = [variances, np.outer(variances, variances) + covariance**2]
    differences = [mean - other_mean, covariance - other_covariance]
    apart = 0.0
    for difference, square in zip(differences, squares, strict=True):
        # What is set to a value is that value, but for rounding.
        errors = np.sqrt(square * (1 / n + 1 / m)) + 1e-9
        apart = max(apart, float((np.abs(difference) / errors).max()))
    return Agreement("means and covariances, standard errors apart", apart, 5)


class Piece(NamedTuple):
    """A piece of work: what it is counted in, the ways to do it, and what they have in common."""

    title: str
    unit: str
    about: str
    ways: dict[str, Way]
    same: Callable[[Any, Any], Agreement] | None = None


# --- A linear model -------------------------------------------------------------------------------

#: Ten variables, each caused by the three before it.
VARIABLES = [f"x{k}" for k in range(10)]
CAUSES = {name: VARIABLES[max(0, k - 3) : k] for k, name in enumerate(VARIABLES)}

#: What an intervention sets.
SET = {"x3": 2.0}

#: Rows to fit to, rows that are drawn at once, and rows that a loop draws one by one.
TABLE, ROWS, FEW = 100_000, 350_000, 4_000


def linear_table() -> pd.DataFrame:
    rng, table = np.random.default_rng(0), {}
    for name, causes in CAUSES.items():
        table[name] = sum((0.4 * table[cause] for cause in causes), 1.0) + rng.normal(size=TABLE)
    return pd.DataFrame(table)


def our_model():
    from lib.scm import Simulator, Specification

    kinds = {True: "LinearGaussianSampler", False: "gaussian"}
    model = {name: {"parents": of, "sampler": kinds[bool(of)]} for name, of in CAUSES.items()}
    return Simulator(Specification(model))


def our_fit() -> Callable[[], Done]:
    from lib.scm.mechanisms import Parents

    table, middle = linear_table(), np.full((1, 100), 0.5)
    few = {name: table[name].to_numpy()[:100] for name in VARIABLES}

    def work() -> Done:
        fitted = our_model().fit(table).initial_

        def means(name: str) -> np.ndarray:
            return fitted[name].evaluate(
                Parents({cause: few[cause] for cause in CAUSES[name]}), middle
            )

        return TABLE, lambda: np.array([means(name) for name in VARIABLES[1:]])

    return work


def dowhy_model():
    import networkx as nx
    import scipy.stats
    from dowhy import gcm

    gcm.config.disable_progress_bars()
    arrows = [(cause, name) for name, causes in CAUSES.items() for cause in causes]
    model = gcm.StructuralCausalModel(nx.DiGraph(arrows))
    for name, causes in CAUSES.items():
        normal = gcm.ScipyDistribution(scipy.stats.norm)
        learned = gcm.AdditiveNoiseModel(gcm.ml.create_linear_regressor(), normal)
        model.set_causal_mechanism(name, learned if causes else normal)
    return gcm, model


def dowhy_fit() -> Callable[[], Done]:
    table = linear_table()

    def work() -> Done:
        gcm, model = dowhy_model()
        gcm.fit(model, table)

        def means(name: str) -> np.ndarray:
            learned = model.causal_mechanism(name).prediction_model
            return learned.predict(table[CAUSES[name]].to_numpy()[:100]).ravel()

        return TABLE, lambda: np.array([means(name) for name in VARIABLES[1:]])

    return work


def our_draw(do: Mapping[str, float]) -> Callable[[], Done]:
    simulator = our_model().fit(linear_table())
    done = {name: {0: value} for name, value in do.items()}

    def work() -> Done:
        drawn = simulator.sample(ROWS, seed=1, do=done)
        return ROWS, lambda: moments(drawn[VARIABLES])

    return work


def dowhy_draw(do: Mapping[str, float]) -> Callable[[], Done]:
    gcm, model = dowhy_model()
    gcm.fit(model, linear_table())
    done = {name: lambda _, value=value: value for name, value in do.items()}

    def work() -> Done:
        if done:
            drawn = gcm.interventional_samples(model, done, num_samples_to_draw=ROWS)
        else:
            drawn = gcm.draw_samples(model, ROWS)
        return ROWS, lambda: moments(drawn[VARIABLES])

    return work


def least_squares() -> list[tuple[list[int], np.ndarray, float, float]]:
    """Return what a program of one's own needs: causes, slopes, intercept and spread of each."""
    table, model = linear_table().to_numpy(), []
    for k, causes in enumerate(CAUSES.values()):
        places = [VARIABLES.index(cause) for cause in causes]
        design = np.column_stack([table[:, places], np.ones(len(table))])
        found, *_ = np.linalg.lstsq(design, table[:, k])
        model.append((places, found[:-1], found[-1], (table[:, k] - design @ found).std()))
    return model


def row_by_row(do: Mapping[str, float]) -> Callable[[], Done]:
    model, done = least_squares(), {VARIABLES.index(name): value for name, value in do.items()}

    def work() -> Done:
        rng, rows = np.random.default_rng(1), np.empty((FEW, len(model)))
        for row in rows:
            for k, (causes, slopes, intercept, spread) in enumerate(model):
                if k in done:
                    row[k] = done[k]
                else:
                    row[k] = intercept + slopes @ row[causes] + spread * rng.normal()
        return FEW, lambda: moments(pd.DataFrame(rows))

    return work


def column_by_column(do: Mapping[str, float]) -> Callable[[], Done]:
    model, done = least_squares(), {VARIABLES.index(name): value for name, value in do.items()}

    def work() -> Done:
        rng, columns = np.random.default_rng(1), np.empty((len(model), ROWS))
        for k, (causes, slopes, intercept, spread) in enumerate(model):
            if k in done:
                columns[k] = done[k]
            else:
                columns[k] = intercept + slopes @ columns[causes] + spread * rng.normal(size=ROWS)
        return ROWS, lambda: moments(pd.DataFrame(columns.T))

    return work


#: How to draw from the model, with and without an intervention.
DRAWS = {
    OURS: our_draw,
    "DoWhy": dowhy_draw,
    "numpy (by columns)": column_by_column,
    "numpy (by rows)": row_by_row,
}


# --- IncomeSCM ------------------------------------------------------------------------------------

#: Subjects and years that are drawn; every which row of Adult a fit sees.
SUBJECTS, YEARS, EVERY = 10_000, 7, 5


def income_model():
    from lib.adult import load_adult
    from lib.income import MECHANISMS, SPECIFICATIONS
    from lib.scm import Simulator, Specification

    specification = Specification.from_yaml(SPECIFICATIONS / "income_scm_1.0.yml", MECHANISMS)
    return Simulator(specification), load_adult().iloc[::EVERY]


def income_fit() -> Callable[[], Done]:
    simulator, table = income_model()
    return lambda: (len(table), functools.partial(list, simulator.fit(table, seed=0).initial_))


def income_draw() -> Callable[[], Done]:
    simulator, table = income_model()
    simulator.fit(table, seed=0)

    def work() -> Done:
        drawn = simulator.sample(SUBJECTS, YEARS, seed=1)
        return len(drawn), lambda: len(drawn)

    return work


# --- Estimators of effects ------------------------------------------------------------------------

#: Subjects and covariates.
STUDIED, COVARIATES = 50_000, 20


def study() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(STUDIED, COVARIATES))
    treatment = (rng.uniform(size=STUDIED) < 1 / (1 + np.exp(-covariates[:, 0]))).astype(int)
    outcome = covariates @ rng.normal(size=COVARIATES) + treatment * (1 + covariates[:, 1])
    return covariates, treatment, outcome + rng.normal(size=STUDIED)


def base(name: str):
    """Return an unfitted base learner, the same for both sides, on one thread."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge

    forest = {"n_estimators": 10, "min_samples_leaf": 50, "max_features": 0.5, "random_state": 0}
    forests = RandomForestRegressor(**forest, n_jobs=1)
    return {"ridge": Ridge(), "forest": forests, "logistic": LogisticRegression()}[name]


def our_learner(kind: str, name: str) -> Callable[[], Done]:
    from lib.cache import KEEPING
    from lib.effects import estimators
    from lib.effects.learners import Search

    def fixed(learner):
        return Search(learner, scored=False)  # the others do not cross-validate either

    KEEPING.set(False)  # nor is anything read from disk
    data = study()

    def work() -> Done:
        arms = [fixed(base(name)), fixed(base(name))]
        more = [fixed(base("logistic")), fixed(base(name))] if kind == "XLearner" else []
        effect = getattr(estimators, kind)(*arms, *more).fit(*data).effect(data[0])
        return STUDIED, lambda: effect

    return work


def econml_learner(kind: str, name: str) -> Callable[[], Done]:
    import warnings

    from econml import metalearners

    warnings.simplefilter("ignore", FutureWarning)  # its calls of scikit-learn will change
    covariates, treatment, outcome = study()

    def work() -> Done:
        more = {"propensity_model": base("logistic")} if kind == "XLearner" else {}
        learner = getattr(metalearners, kind)(models=base(name), **more)
        learner.fit(outcome, treatment, X=covariates)
        effect = learner.effect(covariates)
        return STUDIED, lambda: np.ravel(effect)

    return work


def both(*what: str) -> dict[str, Way]:
    return {
        OURS: functools.partial(our_learner, *what),
        "EconML": functools.partial(econml_learner, *what),
    }


# --- Word problems --------------------------------------------------------------------------------


def told(prompts: Iterable[tuple[str, Any]]) -> Done:
    """Count prompts, each with its answer, and look at how long they are."""
    length = [len(text) for text, answer in prompts if answer is not None]
    return len(length), lambda: statistics.fmean(length)


def our_prompts(n_tasks: int, n_samples: int) -> Callable[[], Done]:
    from lib.ccr import generate

    def work() -> Done:
        tasks = generate("candy_party", [3, 3], n_tasks=n_tasks, n_samples=n_samples, n_jobs=1)
        made = tasks.prompts()
        return told((f"{one['context']}\n\n{one['text']}", one["answer"]) for one in made)

    return work


def their_prompts(name: str, size: int, **options) -> Callable[[], Done]:
    import reasoning_gym

    def work() -> Done:
        made = reasoning_gym.create_dataset(name, size=size, seed=0, **options)
        return told((one["question"], one["answer"]) for one in made)

    return work


PROMPTS: dict[str, Way] = {
    OURS: functools.partial(our_prompts, 200, 1),
    f"{OURS} (every world told 1 000 times)": functools.partial(our_prompts, 50, 1_000),
    "reasoning-gym (circuit_logic)": functools.partial(
        their_prompts, "circuit_logic", 500, min_terms=3, max_terms=6
    ),
    "reasoning-gym (knights_knaves)": functools.partial(
        their_prompts, "knights_knaves", 50, n_people=5, depth_constraint=4, width_constraint=4
    ),
    "reasoning-gym (zebra_puzzles)": functools.partial(their_prompts, "zebra_puzzles", 10),
}


# --- A page of the book ---------------------------------------------------------------------------

#: The page of the quick edition that is built, with prose beside it.
LIGHT, PROSE = "adding_a_theme", "notation"


def page() -> Callable[[], Done]:
    from repeat import MADE

    from lib.book.editions import load_edition

    folder = Path(tempfile.mkdtemp(dir=os.environ["CAUSAL_BENCHMARK_BOOK_CACHE"]))
    copy = folder / "book"
    shutil.copytree(ROOT, copy, ignore=lambda _, names: MADE.intersection(names))
    quick = vars(load_edition("quick").runs[LIGHT])
    pages = [PROSE, {"page": LIGHT, "notebook": LIGHT, "parameters": quick["values"]}]
    edition = {"about": "A light page.", "pages": pages}
    write_text(folder / "light.yml", json.dumps(edition))
    command = [sys.executable, "-m", "lib", "book", "--edition", folder / "light.yml"]
    environment = os.environ | {"PYTHONPATH": str(copy)}

    def work() -> Done:
        shutil.rmtree(copy / "book" / "executed", ignore_errors=True)
        subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
        return 1, (copy / "_build" / "light" / f"{LIGHT}.html").read_text

    return work


# --- All of it ------------------------------------------------------------------------------------

PIECES = {
    "fitting": Piece(
        "Fitting a linear model",
        "rows",
        f"A model of {len(VARIABLES)} variables, each caused by the three before it, or by as many "
        f"as there are, is fitted by least squares to {number_text(TABLE)} rows.",
        {OURS: our_fit, "DoWhy": dowhy_fit},
        same_numbers,
    ),
    "fitting_income": Piece(
        "Fitting IncomeSCM",
        "rows",
        f"All mechanisms of IncomeSCM-1.0 are fitted to every {EVERY}th complete record of Adult.",
        {OURS: income_fit},
    ),
    "seeing": Piece(
        "Sampling a linear model",
        "rows",
        f"{number_text(ROWS)} rows are drawn from the model that was fitted above. Two programs of "
        "one's own in NumPy do so, too. The first draws a variable at a time, for all rows (by "
        f"columns). The other one draws row after row in a loop (by rows), and only "
        f"{number_text(FEW)} of them.",
        {name: functools.partial(way, {}) for name, way in DRAWS.items()},
        same_distribution,
    ),
    "doing": Piece(
        "Sampling a linear model with an intervention",
        "rows",
        "The same, while the fourth variable is set to a value.",
        {name: functools.partial(way, SET) for name, way in DRAWS.items()},
        same_distribution,
    ),
    "sampling_income": Piece(
        "Sampling IncomeSCM",
        "subject-years",
        f"{number_text(SUBJECTS)} subjects are followed through {YEARS} years.",
        {OURS: income_draw},
    ),
    "t_ridge": Piece(
        "T-learner with ridge regressions",
        "subjects",
        f"It is fitted to {number_text(STUDIED)} subjects with {COVARIATES} covariates, and "
        "returns the effect of each.",
        both("TLearner", "ridge"),
        same_numbers,
    ),
    "x_ridge": Piece(
        "X-learner with ridge regressions",
        "subjects",
        "The same subjects; propensities by logistic regression.",
        both("XLearner", "ridge"),
        same_numbers,
    ),
    "t_forest": Piece(
        "T-learner with random forests",
        "subjects",
        "The same subjects; ten trees an arm.",
        both("TLearner", "forest"),
        same_numbers,
    ),
    "prompts": Piece(
        "Generating word problems",
        "prompts",
        "Whole prompts as text, each with its answer, not of one kind: this book tells a Boolean "
        "world once, or many times, and asks every question about causes and effects in it each "
        "time; each prompt of reasoning-gym is a puzzle of its own, a logic circuit to evaluate, "
        "knights and knaves to tell apart, or a zebra puzzle to solve.",
        PROMPTS,
    ),
    "page": Piece(
        "Building a page",
        "pages",
        f"The page {LIGHT} of the quick edition is executed and rendered, beside one of prose. All "
        "of its processes count, with their imports.",
        {OURS: page},
    ),
}

#: In the process of a library: the ways to do the piece of work that is measured now.
WORK: dict[str, Callable[[], Done]] = {}


def forget() -> None:
    WORK.clear()


def begin(piece: str, way: str) -> None:
    """Make a way ready, and do the work once, because the first time takes longer."""
    WORK[way] = PIECES[piece].ways[way]()
    WORK[way]()


def once(way: str, look: bool) -> tuple[int, float, Any]:
    """Do the work; return how much it was, the CPU seconds, and what there is to look at."""
    begun = cpu()
    amount, seen = WORK[way]()
    return amount, cpu() - begun, seen() if look else None


def cpu() -> float:
    """Return the CPU seconds of this process, and of those whose end was waited for."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def library(way: str) -> str:
    """Return the library of a way: what stands before the parenthesis."""
    return way.partition(" (")[0]


#: The package of a library, unless it is one of the book's own.
PACKAGES = {"DoWhy": "dowhy", "EconML": "econml", "reasoning-gym": "reasoning-gym"}


def installed(way: str) -> bool:
    """Say whether the library of a way is there."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return bool(metadata.version(PACKAGES.get(library(way), "numpy")))
    return False


def libraries() -> list[str]:
    """Return the libraries of all ways, each once."""
    return list(dict.fromkeys(library(way) for piece in PIECES.values() for way in piece.ways))


def left_out() -> list[str]:
    """Return the libraries that are not installed."""
    return [name for name in libraries() if not installed(name)]


def measured(name: str, pools: Mapping[str, Executor], repeats: int) -> Iterator[dict[str, Any]]:
    """Measure all ways of a piece of work that are installed, in turns; yield a row a way."""
    piece = PIECES[name]
    ways = {way: pools[library(way)] for way in piece.ways if installed(way)}
    for pool in set(ways.values()):
        pool.submit(forget).result()
    for way, pool in ways.items():
        pool.submit(begin, name, way).result()
    rounds = [
        {way: pool.submit(once, way, turn == repeats - 1).result() for way, pool in ways.items()}
        for turn in range(repeats)
    ]
    for way, (amount, _, seen) in rounds[-1].items():
        row = {"piece": name, "way": way, "amount": amount}
        row["CPU seconds"] = [round(one[way][1], 4) for one in rounds]
        if isinstance(seen, float):
            row["characters"] = round(seen)
        if piece.same and way != OURS:
            row["same"] = piece.same(rounds[-1][OURS][2], seen)._asdict()
        yield row


def processor() -> str:
    """Return the model of the processor, where the system tells it in a file, as Linux does."""
    with contextlib.suppress(OSError, IndexError):
        models = re.findall(r"(?m)^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text())
        return models[0].strip()
    return ""


def versions() -> dict[str, str]:
    """Return the versions of what is measured, and of what it stands on."""
    found = {"Python": platform.python_version()}
    for name in [*BELOW, *PACKAGES.values()]:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


# --- The page -------------------------------------------------------------------------------------


def rates(row: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the median, the lowest and the highest work a CPU second of the repetitions."""
    each = [row["amount"] / seconds for seconds in row["CPU seconds"]]
    return statistics.median(each), min(each), max(each)


def beside(ours: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Say how many times the work of another way this book does, turn by turn.

    Both had the same machine in the same turn, so that what else it did matters less.
    """
    turns = zip(ours["CPU seconds"], other["CPU seconds"], strict=True)
    each = [ours["amount"] / other["amount"] * theirs / mine for mine, theirs in turns]
    middle, least, most = map(_rounded, (statistics.median(each), min(each), max(each)))
    if min(each) < 1 < max(each):
        return f"{least} to {most} times as fast as {other['way']}, depending on the turn."
    return f"{middle} times as fast as {other['way']}, {least} to {most} in single turns."


def _bound(apart: float) -> str:
    """Write a distance, by a power of ten if it is small."""
    return number_text(apart, digits=".0e" if 0 < apart < 0.01 else ".2g")


def _rounded(ratio: float) -> str:
    """Write a ratio with two significant digits, or near one, where it is a matter of per cent."""
    if 0.9 < ratio < 1.1:
        return number_text(ratio, digits=2 if ratio >= 0.995 else 3)
    ratio = float(f"{ratio:.2g}")
    return number_text(ratio, digits=0 if ratio >= 10 else 1 if ratio >= 1 else 2)


def rendered(kept: Mapping[str, Any]) -> str:
    """Write the page from what was kept, and from nothing else."""
    from lib.book.rendering import TEMPLATES

    rows = {name: [row for row in kept["rows"] if row["piece"] == name] for name in kept["pieces"]}
    speeds, agreements, compared = [], [], {}
    for name, ways in rows.items():
        piece, others = kept["pieces"][name], []
        for way in ways:
            found = [float(f"{rate:.3g}") for rate in rates(way)]
            of = dict(zip(["a CPU second", "lowest", "highest"], found, strict=True))
            speeds.append({"work": f"{piece['title']}: {piece['unit']}", "by": way["way"]} | of)
            if same := way.get("same"):
                told = {"work": piece["title"], "this book and": way["way"], "compared": same["of"]}
                bounds = {"apart": _bound(same["apart"]), "at most": _bound(same["most"])}
                agreements.append(told | bounds)
            if library(way["way"]) != OURS:
                others.append(beside(ways[0], way))
        compared[name] = " ".join(others)
    tables = {
        "speeds": typeset(pd.DataFrame(speeds).set_index(["work", "by"]), by_row=True),
        "agreements": typeset(pd.DataFrame(agreements).set_index(["work", "this book and"])),
    }
    template = TEMPLATES.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(kept=kept, rows=rows, compared=compared, **tables).strip() + "\n"


@click.command(help=__doc__.replace("::\n\n", "\n\n\b\n"))
@click.argument("pieces", nargs=-1)
@click.option("--repeats", default=REPEATS, show_default=True, help="Of each way.")
@click.option("--page", "only_page", is_flag=True, help="Measure nothing.")
def main(pieces: tuple[str, ...], repeats: int, only_page: bool) -> None:
    if only_page:
        write_text(PAGE, rendered(json.loads(MEASURED.read_text(encoding="utf-8"))))
        return
    chosen, rows, missed = named([*pieces] or list(PIECES), PIECES), [], 0
    if missing := left_out():
        print(f"left out, because not installed: {', '.join(missing)}", file=sys.stderr)
    os.environ["OMP_NUM_THREADS"] = "1"  # one core each, as on a page
    with contextlib.ExitStack() as at_the_end:
        folder = at_the_end.enter_context(tempfile.TemporaryDirectory())
        os.environ["CAUSAL_BENCHMARK_BOOK_CACHE"] = folder
        spawn = multiprocessing.get_context("spawn")
        pools = {
            name: at_the_end.enter_context(ProcessPoolExecutor(1, spawn)) for name in libraries()
        }
        for row in itertools.chain(*(measured(name, pools, repeats) for name in chosen)):
            rows.append(row)
            what = f"{row['piece']}, {row['way']}"
            median, lowest, highest = (f"{rate:,.4g}" for rate in rates(row))
            unit = PIECES[row["piece"]].unit
            print(
                f"        {what}: {median} {unit} a CPU second, {lowest} to {highest}", flush=True
            )
            if same := row.get("same"):
                bound = f"{what}: {same['of']} (at most {same['most']:g})"
                missed += shown([(bound, f"{same['apart']:.2g}", same["apart"] <= same["most"])])
    kept = {
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
        "processor": processor(),
        "repeats": repeats,
        "versions": versions(),
        "left out": missing,
        "pieces": {
            name: {"title": one.title, "unit": one.unit, "about": one.about}
            for name, one in PIECES.items()
        },
        "rows": rows,
    }
    if not pieces:
        write_text(MEASURED, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        write_text(PAGE, rendered(kept))
    finish(missed)


if __name__ == "__main__":
    main()
