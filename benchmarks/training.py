"""Measure what an item costs, and who is right how often, up the ladder of difficulty.

Run it from the project's folder::

    .venv/bin/python benchmarks/training.py    # two minutes

A line of the table, which is written to `data/training.csv`, is a rung: its difficulty, the CPU
milliseconds and the words of an item, and the accuracy of the reference reasoners of
:mod:`lib.ccr.reasoners` on the same items.
"""

import itertools
import time

import numpy as np
import pandas as pd

from lib import ROOT
from lib.ccr import generate
from lib.ccr.items import LEVELS, item
from lib.ccr.reasoners import REASONERS, WITHHELD_REASONERS
from lib.files import write_text

#: Items on each rung.
N = 1_000

#: Of every fact told, larger and larger; of facts withheld, more and more.
SIZES = [(1, 2), (1, 4), (2, 3), (3, 3), (4, 3), (4, 4)]
RUNGS = [(*size, 0.0) for size in SIZES]
RUNGS += [(3, 3, share) for share in LEVELS["withheld"][1:]] + [(4, 4, LEVELS["withheld"][-1])]


def right(one: dict, nodes: list[int], share: float) -> dict[str, bool]:
    """Say which reference reasoners are right on an item."""
    sizes = {"n_samples": 1, "first_task": one["task"], "n_jobs": 1}
    tasks = generate("candy_party", nodes, withheld=share, **sizes)
    truth, question = tasks.tasks[0].labels[:, 0], one["question"]
    reasoners = WITHHELD_REASONERS if share else REASONERS
    said = {name: reasoner.answers(tasks)[0][:, 0] for name, reasoner in reasoners.items()}
    return {name: bool(answers[question] == truth[question]) for name, answers in said.items()}


def rung(components: int, nodes: int, share: float, n: int = N) -> dict[str, float]:
    """Return a line of the table, from the first items of seed 0."""
    difficulty = {"components": components, "nodes": nodes, "withheld": share}
    begun = time.process_time()
    items = [item(index, **difficulty) for index in range(n)]
    costs = {
        "ms": round(1000 * (time.process_time() - begun) / n, 1),
        "words": round(np.mean([len(one["prompt"].split()) for one in items])),
    }
    accuracy = pd.DataFrame([right(one, [nodes] * components, share) for one in items]).mean()
    return difficulty | costs | accuracy.round(3).to_dict()


if __name__ == "__main__":
    table = pd.DataFrame(itertools.starmap(rung, RUNGS))
    write_text(ROOT / "data" / "training.csv", table.to_csv(index=False, lineterminator="\n"))
    print(table.to_string(index=False))
