"""What is particular to IncomeSCM, the simulator built on the Adult table."""

from collections.abc import Collection
from pathlib import Path

import joblib
import pandas as pd

from lib import ROOT
from lib.adult import load_adult
from lib.cache import cached
from lib.errors import check_known, check_names
from lib.files import AnyPath, read_table
from lib.income.data_sets import load_cate
from lib.income.mechanisms import MECHANISMS
from lib.income.published import published_study
from lib.income.study import draw_studies, draw_study
from lib.scm import Simulator, Specification
from lib.scm.mechanisms import Column, Mechanism, Parents

#: The folder of the specifications that ship with the book.
SPECIFICATIONS = ROOT / "data" / "specs"

_kept = cached(Mechanism.fit)


def fitted_simulator(
    specification: str = "income_scm_1.0",
    seed: int = 0,
    coupling: str = "gumbel",
    table: AnyPath | pd.DataFrame | None = None,
    seeded: Collection[str] | None = None,
) -> Simulator:
    """Return a fitted simulator; each mechanism is fitted once, and its fit is kept on disk.

    Parameters
    ----------
    specification : str
        The path of a YAML file, or a file of `data/specs` without its ending: `income_scm_1.0`,
        faithful to the published data, or `income_scm_1.1`, faithful to what its program intends.
    table : path-like or DataFrame, optional
        A table with the columns that mechanisms learn from, or its file; Adult by default.
    seeded : collection of str, optional
        Variables whose fits follow the seed, by default all; other fits are those of seed 0.
    """
    shipped = {path.stem: path for path in sorted(SPECIFICATIONS.glob("*.yml"))}
    path = shipped.get(str(specification), Path(specification))
    if not path.is_file():
        check_known("specification", specification, [*shipped, "the path of a file"])
    frame = load_adult() if table is None else read_table(table)
    model = Specification.from_yaml(path, MECHANISMS)
    check_names("variable", seeded or (), model.variables, limit=50)

    def fit(mechanism: Mechanism, parents: Parents, values: Column | None, seed: int) -> Mechanism:
        follows = seeded is None or mechanism.variable in seeded
        # A mechanism that draws from another learns nothing itself, and what the other one has
        # learned cannot serve as a key.
        refers = any(isinstance(given, Mechanism) for given in vars(mechanism).values())
        learn = Mechanism.fit if refers else _kept
        return learn(mechanism, parents, values, seed if follows else 0)

    simulator = Simulator(model, coupling).fit(frame, seed, fit)
    # The recipe stands for the fit, because two loads of one simulator differ in their bytes.
    simulator.recipe_ = joblib.hash([path.read_text(encoding="utf-8"), frame, seed, seeded])
    return simulator
