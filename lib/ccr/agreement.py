"""Do the oracles agree? What the error tests of the book ask of tasks and worlds.

Every published truth has two oracles: labels and :mod:`lib.ccr.reader`, exact quantities and
:mod:`lib.ccr.brute_force`, both sides of the composition theorem.
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
from lib.errors import check_count
from lib.files import read_yaml


def disagreements(tasks: Tasks) -> pd.DataFrame:
    """Return the prompts that the reader answers unlike the label, with its answer as `read`."""
    rows = []
    for task in map(replace, tasks.tasks):  # copies: what is computed of them goes with them
        # Sample by sample, because the reader remembers the rules of a few contexts only.
        for prompt in sorted(Tasks([task]).prompts(), key=lambda prompt: prompt["sample"]):
            answer = read(prompt["context"], prompt["text"], task.story.theme)
            if answer != task.labels[prompt["question"], prompt["sample"]]:
                rows.append(prompt | {"read": answer})
    return pd.DataFrame(rows)


def largest_errors(world: World) -> dict[str, float]:
    """Return how far the exact quantities, and the composition theorem, are from enumeration.

    The largest difference in any quantity of any pair is `exact`; `composition` is that of the
    global PNS and a product along a path, all from :mod:`lib.ccr.brute_force`, which does not know
    the theorem.
    """
    enumerated = enumerated_quantities(world)
    difference = (exact_quantities(world) - enumerated).abs().to_numpy().max()
    whole = composed(enumerated, world.chain.global_quantity)
    products = (composed(enumerated, path) for path in world.chain.compositions())
    departure = max((abs(product - whole) for product in products), default=0.0)
    return {"exact": float(difference), "composition": departure}


def golden_quantities() -> pd.DataFrame:
    """Find every PNS of the golden worlds, and every product that is a global one, twice."""
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

    An estimate from n samples, the share in which the cause decides the effect, is a mean of n
    Bernoulli variables. Over R repetitions

    .. math::
        \mathrm{RMSE} \approx \sqrt{\frac{\mathrm{PNS}(1 - \mathrm{PNS})}{n}
        \cdot \frac{\chi^2_R}{R}},

    which gives the band, left with a probability of one minus `confidence`. By `n`, one of `sizes`:
    `error`, the root mean squared error of the estimates; `expected`, without the last factor; and
    `low` and `high`, the band.
    """
    for number in (*sizes, repetitions):
        check_count("a size, or number of repetitions,", number, least=1)
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
