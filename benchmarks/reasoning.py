"""Measure the reasoning benchmark: agreement of its oracles, exact quantities, time and memory.

Run it from the project's folder::

    .venv/bin/python benchmarks/reasoning.py                # everything, about five minutes
    .venv/bin/python benchmarks/reasoning.py exact parquet  # some of it
    .venv/bin/python benchmarks/reasoning.py oracles 50000  # fewer prompts than 1 000 000
    .venv/bin/python benchmarks/reasoning.py withheld       # 1 000 000 with facts withheld
    .venv/bin/python benchmarks/reasoning.py many_withheld  # 50 000 with 5 to 16 facts withheld
    .venv/bin/python benchmarks/reasoning.py every_graph    # of 9 to 12 nodes, three minutes
    .venv/bin/python benchmarks/reasoning.py volumes        # 1 000 000 with numbers, five minutes

Each measurement runs in a process of its own, so that its peak memory is its own.
The bounds are those that the project has set itself; exit status 1 says that one is missed.
"""

import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from measuring import Finding, finish, missed_by, named, peak, shown

from lib.ccr import generate
from lib.ccr.agreement import disagreements, largest_errors
from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import KINDS, Chain
from lib.ccr.linear import by_paths, linear_world, noise, prompts, questions
from lib.ccr.linear_reader import read_volume
from lib.ccr.questions import ANSWERS, MOST_UNTOLD
from lib.ccr.theme import Draw, themes
from lib.ccr.worlds import CAUSAL_FUNCTIONS, random_world

#: Prompts of [3, 4, 3] with text that the reference implementation of CCR.GB puts into frames in a
#: CPU second, on the Intel Xeon of benchmarks/README.md.
REFERENCE = 3_600

#: How many prompts the oracles answer, unless the command line says another number.
PROMPTS = 1_000_000


def oracles(n: int = PROMPTS, withheld: bool = False, most: int = 5) -> Iterator[Finding]:
    begun, seen, disagreed, configurations = time.monotonic(), Counter(), 0, 0
    # Themes take turns, and every set holds at least a thousand prompts, or some 5 000 with facts
    # withheld.
    sets = (
        delayed(_compared)(number, withheld, most)
        for number in range(n // (500 if most > 5 else 6_000 if withheld else 1_000) + 1)
    )
    running = Parallel(n_jobs=2, return_as="generator", batch_size=8)(sets)
    answers, seconds = Counter(), 0.0
    for theme, said, unlike, took in running:
        seen[theme] += said.total()
        answers += said
        disagreed += unlike
        seconds += took
        configurations += 1
        if configurations % 50 == 0 or unlike:
            done = f"{seen.total():,} of {n:,} prompts, {disagreed} disagreements"
            print(f"\r        {done}, {time.monotonic() - begun:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)
    for theme, asked in sorted(seen.items()):
        yield f"prompts of {theme}", f"{asked:,}", asked > 0
    for answer, times in sorted(answers.items()) if withheld else ():
        yield f"prompts whose answer is {answer!r}", f"{times:,}", times > 0
    yield f"prompts read (at least {n:,})", f"{seen.total():,}", seen.total() >= n
    yield "CPU seconds for labels, text and reading", f"{seconds:.0f}", seconds > 0
    yield f"disagreements in {configurations:,} configurations (0)", f"{disagreed}", disagreed == 0
    minutes = (time.monotonic() - begun) / 60
    yield "minutes on two cores (at most 10)", f"{minutes:.1f}", minutes <= 10 * max(n / 1e6, 1)


def withheld(n: int = PROMPTS) -> Iterator[Finding]:
    yield from oracles(n, withheld=True)


def many_withheld(n: int = 50_000) -> Iterator[Finding]:
    yield from oracles(n, withheld=True, most=MOST_UNTOLD)


def _compared(number: int, withheld: bool, most: int) -> tuple[str, Counter, int, float]:
    """Read every prompt of a random configuration: theme, answers, disagreements, CPU seconds.

    At most `most` of the facts of a sample are withheld; if that is above 5, at least 6 of them, or
    all, in larger worlds with one sample each.
    """
    begun, draw = time.process_time(), Draw(number, "configuration of the benchmark")
    theme = list(themes())[number % len(themes())]
    many = most > 5
    sizes = [draw.integer(2, 6) for _ in range(draw.integer(4 if many else 1, 5))]
    per_sample = (len(sizes) + 1) ** 2
    n_facts = sum(sizes) - len(sizes) + 1
    least = min(6, n_facts) if many else 1
    untold = {"withheld": draw.integer(least, min(most, n_facts)) / n_facts} if withheld else {}
    tasks = generate(
        theme,
        n_per_bcc=sizes,
        bcc_types=draw.one([*KINDS, "mixed"]),
        causal_functions=themes()[theme].causal_functions or draw.one(CAUSAL_FUNCTIONS),
        n_tasks=3,  # one for each wording
        n_samples=1 if many else 1_000 // (3 * per_sample) + 1,
        seed=draw.integer(0, 2**31),
        n_wordings=3,
        asides=draw.one([True, False]),
        **untold,
    )
    said = Counter(str(prompt["answer"]) for prompt in tasks.prompts())
    return theme, said, len(disagreements(tasks)), time.process_time() - begun


def withheld_rate() -> Iterator[Finding]:
    generate("candy_party")  # what is done once, such as imports
    few = [([size] * 3, 0.3, unknown) for size in (3, 4) for unknown in (None, 0.33)]
    all_untold = [(n_per_bcc, 1.0, None) for n_per_bcc in ([5] * 3, [5, 5, 5, 3], [5, 5, 5, 4])]
    # Where several facts are told beside, hardly any sample is told as another one is.
    some_told = [([5, 5, 5, 4], 14 / 16, None), ([5, 5, 5, 5, 4], 0.8, None), ([5] * 6, 0.64, None)]
    for n_per_bcc, share, unknown in few + all_untold + some_told:
        begun = time.process_time()
        told = {"n_tasks": 5, "n_samples": 500, "withheld": share, "unknown": unknown}
        tasks = generate("candy_party", n_per_bcc, **told)
        prompts = sum(1 for _ in tasks.prompts())
        rate = prompts / (time.process_time() - begun)
        facts = f"{tasks.tasks[0].n_untold} facts withheld"
        what = (
            f"{prompts:,} prompts of {n_per_bcc}, {facts}, unknown={unknown}, a CPU second (50 000)"
        )
        yield what, f"{rate:,.0f}", rate >= 5e4


def unknown_share() -> Iterator[Finding]:
    for unknown in (0.0, 0.1, 0.33, 0.5, 0.9, 1.0):
        told = {"n_tasks": 20, "n_samples": 200, "withheld": 0.3, "unknown": unknown}
        tasks = generate("candy_party", [3, 3, 3], **told)
        prompts = [(prompt["kind"], prompt["answer"] == ANSWERS[2]) for prompt in tasks.prompts()]
        asked, open_ = (
            Counter(kind for kind, _ in prompts),
            Counter(k for k, is_so in prompts if is_so),
        )
        worst = max(abs(open_[kind] / asked[kind] - unknown) for kind in asked)
        what = f"unknown={unknown}, {len(prompts):,} prompts: furthest share of a kind (0.01)"
        yield what, f"{worst:.4f}", worst <= 0.01


def exact() -> Iterator[Finding]:
    chain = Chain([4] * 1_000, ["cycle", "wheel"] * 500)
    world = random_world(chain, "random", seed=0, name="long")
    exact_quantities(random_world(Chain([3, 3]), "random", seed=0, name="what is done once"))
    begun = time.perf_counter()
    quantities = exact_quantities(world)
    seconds = time.perf_counter() - begun
    what = f"{len(quantities):,} pairs of 1 000 components, seconds (below 1)"
    yield what, f"{seconds:.2f}", seconds < 1


def brute_force() -> Iterator[Finding]:
    small = [Chain(sizes, kinds) for n in range(2, 9) for sizes, kinds in _graphs(n)]
    draw = Draw(0, "graphs of the benchmark")
    large = []
    for n in (9, 10, 11, 12, 13, 14):
        large += [Chain(*draw.one(list(_graphs(n)))) for _ in range(25)]
    composed = 0.0
    for name, chains in (("every graph of 2 to 8", small), ("random graphs of 9 to 14", large)):
        worst = 0.0
        for number, chain in enumerate(chains):
            for causal_functions in CAUSAL_FUNCTIONS:
                world = random_world(chain, causal_functions, number, "benchmark")
                errors = largest_errors(world)
                worst = max(worst, errors["exact"])
                composed = max(composed, errors["composition"])
        what = f"{name} nodes, {len(chains)} graphs: largest difference (1e-12)"
        yield what, f"{worst:.0e}", worst <= 1e-12
    yield "compositions from the global PNS (1e-12)", f"{composed:.0e}", composed <= 1e-12


def every_graph() -> Iterator[Finding]:
    for n in range(9, 13):
        batches = np.array_split(np.arange(sum(1 for _ in _graphs(n))), 64)
        worst = Parallel(n_jobs=2)(delayed(_worst_of)(n, set(batch.tolist())) for batch in batches)
        count, error = sum(map(len, batches)), max(worst)
        what = f"every graph of {n} nodes, {count:,} graphs: largest difference (1e-12)"
        yield what, f"{error:.0e}", error <= 1e-12


def _worst_of(n: int, numbers: set[int]) -> float:
    """Return the largest difference between the computations, a world for each numbered graph."""
    worst = 0.0
    for number, (sizes, kinds) in enumerate(_graphs(n)):
        if number in numbers:
            functions = CAUSAL_FUNCTIONS[number % len(CAUSAL_FUNCTIONS)]
            world = random_world(Chain(sizes, kinds), functions, number, f"graph of {n}")
            worst = max(worst, largest_errors(world)["exact"])
    return worst


def _graphs(n: int) -> Iterator[tuple[tuple[int, ...], tuple[str, ...]]]:
    """Yield sizes and kinds of every chain of `n` nodes; up to three nodes, kinds are alike."""
    if n == 1:
        yield (), ()
    for size in range(2, n + 1):
        for kind in KINDS[: 1 if size <= 3 else 2]:
            for sizes, kinds in _graphs(n - size + 1):
                yield (size, *sizes), (kind, *kinds)


def parquet() -> Iterator[Finding]:
    generate("candy_party")  # what is done once, such as imports
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        tasks = generate("candy_party", [4, 4, 4], n_tasks=28, n_samples=1_005, seed=0)
        tasks.to_parquet(folder)
        seconds = time.process_time() - begun
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
    n, megabytes = len(tasks), peak()
    rate = n / seconds
    yield f"{n:,} prompts to Parquet, a CPU second (at least 400 000)", f"{rate:,.0f}", rate >= 4e5
    yield f"{n:,} prompts, peak MB (below 300)", f"{megabytes:.0f}", megabytes < 300
    yield f"{n:,} prompts, MB of disk (below 60)", f"{size:.1f}", size < 60


def frames() -> Iterator[Finding]:
    generate("candy_party")  # what is done once, such as imports
    for n_tasks, n_samples in ((200, 100), (20, 1_000)):
        told, begun = {"n_tasks": n_tasks, "n_samples": n_samples}, time.process_time()
        tasks = generate("candy_party", [3, 4, 3], **told)
        prompts = len(tasks.factual) + 2 * len(tasks.interventional)  # of which a row has a pair
        rate = prompts / (time.process_time() - begun)
        what = f"{prompts:,} prompts of {n_tasks} tasks in flat frames with text, a CPU second"
        yield f"{what} (40 × {REFERENCE:,})", f"{rate:,.0f}", rate >= 40 * REFERENCE
        with tempfile.TemporaryDirectory() as folder:
            begun = time.process_time()
            generate("candy_party", [3, 4, 3], **told).to_parquet(folder)
            rate = prompts / (time.process_time() - begun)
        what = f"{prompts:,} prompts of {n_tasks} tasks as Parquet, a CPU second"
        yield f"{what} (100 × {REFERENCE:,})", f"{rate:,.0f}", rate >= 100 * REFERENCE


def linear() -> Iterator[Finding]:
    seconds = {}
    for k, repetition in itertools.product((20, 40, 80), range(3)):
        begun = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            tasks = generate("flu_vaccine", [3] * k, n_samples=100, seed=repetition)
            tasks.to_parquet(folder)
            took = (time.process_time() - begun) / len(tasks)
        seconds[k] = min(took, seconds.get(k, took))
    for k, took in seconds.items():
        times = took / seconds[20]
        what = f"{k} components, CPU time of a prompt by that at 20 (at most 1.2)"
        yield what, f"{times:.2f}, {took * 1e6:.2f} µs", times <= 1.2


def volumes(n: int = PROMPTS) -> Iterator[Finding]:
    total, kinds = np.zeros(5), Counter()
    running = Parallel(n_jobs=2, return_as="generator", batch_size=8)
    for counts, kind in running(delayed(_answered_three_times)(i) for i in range(n // 1_000 + 1)):
        total += counts
        kinds += kind
    asked, paths, reader, making, reading = total
    for kind, times in sorted(kinds.items()):
        yield f"prompts with numbers, {kind}", f"{times:,}", times > 0
    yield f"prompts with numbers (at least {n:,})", f"{asked:,.0f}", asked >= n
    yield "of which enumeration of paths answers otherwise (0)", f"{paths:.0f}", paths == 0
    yield "of which the reader of the text answers otherwise (0)", f"{reader:.0f}", reader == 0
    rate = asked / making
    yield "prompts with numbers made a CPU second (at least 20 000)", f"{rate:,.0f}", rate >= 2e4
    yield "and read a CPU second", f"{asked / reading:,.0f}", True


def _answered_three_times(number: int) -> tuple[list[float], Counter]:
    """Count the prompts of a random world, disagreements of two oracles, and CPU seconds."""
    draw = Draw(number, "linear configuration of the benchmark")
    arms = [Chain([2])] * draw.integer(0, 1)
    for _ in range(draw.integer(1, 4)):
        sizes = [draw.integer(2, 4) for _ in range(draw.integer(1, 3))]
        arms.append(Chain(sizes, draw.one(KINDS)))
    begun = time.process_time()
    world = linear_world(arms, seed=number, wording=number % 3)
    n_samples = 1_000 // len(questions(world)) + 1
    asked = list(prompts(world, n_samples))
    made = time.process_time()
    read = [read_volume(prompt["context"], prompt["text"]) for prompt in asked]
    after = time.process_time()
    cells = noise(world, n_samples)
    counted = np.ravel([by_paths(world, question, cells) for question in questions(world)])
    answers = np.array([prompt["answer"] for prompt in asked])
    unlike = [(answers != counted).sum(), (answers != read).sum()]
    kinds = Counter(prompt["question"].kind for prompt in asked)
    return [len(asked), *unlike, made - begun, after - made], kinds


MEASUREMENTS = {
    measurement.__name__: measurement
    for measurement in (
        *(oracles, withheld, exact, brute_force, parquet, frames, linear, every_graph),
        *(withheld_rate, unknown_share, volumes, many_withheld),
    )
}


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    words = [word for word in sys.argv[1:] if not word.isdecimal()]
    long = ("every_graph", "volumes", "many_withheld")
    words = words or [name for name in MEASUREMENTS if name not in long]
    missed = 0
    for name in named(words, MEASUREMENTS):
        if name in ("oracles", "withheld", "many_withheld"):  # start processes, as the next
            missed += shown(MEASUREMENTS[name](*numbers))
        elif name == "every_graph":
            missed += shown(every_graph())
        elif name == "volumes":
            missed += shown(volumes(*numbers))
        else:
            missed += missed_by(MEASUREMENTS[name])
    finish(missed)
