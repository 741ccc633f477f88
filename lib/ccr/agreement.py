"""Check whether the oracles agree on tasks and worlds, for the error tests of the book.

Every published truth has two oracles: the labels and :mod:`lib.ccr.reader`, the exact quantities
and :mod:`lib.ccr.brute_force`, and the two sides of the composition theorem.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import chi2

from lib import ROOT
from lib.ccr.brute_force import enumerated_quantities
from lib.ccr.exact import composed, exact_quantities
from lib.ccr.graphs import Chain
from lib.ccr.reader import read
from lib.ccr.tasks import Tasks
from lib.ccr.worlds import World
from lib.errors import check, check_count
from lib.files import read_yaml


def disagreements(tasks: Tasks) -> pd.DataFrame:
    """Return the prompts whose label the reader contradicts, with the reader's answer as `read`."""
    rows = []
    for task in map(replace, tasks.tasks):  # copies, whose computed values are freed with them
        # Sample by sample, because the reader remembers the rules of only a few contexts.
        for prompt in sorted(Tasks([task]).prompts(), key=lambda prompt: prompt["sample"]):
            answer = read(prompt["context"], prompt["text"], task.story.theme)
            if answer != task.labels[prompt["question"], prompt["sample"]]:
                rows.append(prompt | {"read": answer})
    return pd.DataFrame(rows)


def largest_errors(world: World) -> dict[str, float]:
    """Return how far the exact quantities, and the composition theorem, are from enumeration.

    `exact` is the largest difference in any quantity of any pair. `composition` is the largest
    difference between the global PNS and the product along a path, both from
    :mod:`lib.ccr.brute_force`, which does not know the theorem.
    """
    enumerated = enumerated_quantities(world)
    difference = (exact_quantities(world) - enumerated).abs().to_numpy().max()
    whole = composed(enumerated, world.chain.global_quantity)
    products = (composed(enumerated, path) for path in world.chain.compositions())
    departure = max((abs(product - whole) for product in products), default=0.0)
    return {"exact": float(difference), "composition": departure}


def golden_quantities() -> pd.DataFrame:
    """Return each PNS of the golden worlds, and each product for a global PNS, by both oracles."""
    rows = {}
    for name, one in read_yaml(ROOT / "data" / "golden_worlds.yml").items():
        world = World(Chain(**one["chain"]), one["operators"], one["probabilities"])
        exact, enumerated = exact_quantities(world), enumerated_quantities(world)
        for path in (*world.chain.quantities, *world.chain.compositions()):
            factors = [f"PNS({cause}, {effect})" for cause, effect in itertools.pairwise(path)]
            found = {"exact": composed(exact, path), "enumerated": composed(enumerated, path)}
            rows[name, " · ".join(factors)] = found
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["world", "quantity"])


def convergence(
    world: World, sizes: list[int], repetitions: int, seed: int, confidence: float = 0.99
) -> pd.DataFrame:
    r"""Compare the error of estimates of the global PNS with what chance explains.

    An estimate from n samples is the share of them in which the cause decides the effect, and so a
    mean of n Bernoulli variables. Over R repetitions

    .. math::
        \mathrm{RMSE} \approx \sqrt{\frac{\mathrm{PNS}(1 - \mathrm{PNS})}{n}
        \cdot \frac{\chi^2_R}{R}},

    which gives the band. If n PNS (1 − PNS) is large, chance leaves it with probability
    1 − `confidence`. Each `n` of `sizes` has a row: `error` is the root mean squared error of its
    estimates, `expected` the formula without its last factor, and `low` and `high` are the band.
    """
    for number in (*sizes, repetitions):
        check_count("each size and the number of repetitions", number, least=1)
    check(0 < confidence < 1, "confidence must be above 0 and below 1", confidence)
    root, leaf = world.chain.global_quantity
    pns = exact_quantities(world)["PNS"].loc[root, leaf]
    band = np.sqrt(np.array(chi2.interval(confidence, repetitions)) / repetitions)
    rows = []
    for n in sizes:
        noise = world.noise(seed, f"convergence, {n}", n * repetitions)
        treated, control = (world.values(noise, do={root: x})[leaf] for x in (True, False))
        estimates = (treated & ~control).reshape(repetitions, n).mean(axis=1)
        expected = np.sqrt(pns * (1 - pns) / n)
        low, high = expected * band
        error = np.sqrt(np.mean((estimates - pns) ** 2))
        rows.append({"n": n, "error": error, "expected": expected, "low": low, "high": high})
    return pd.DataFrame(rows).set_index("n")
