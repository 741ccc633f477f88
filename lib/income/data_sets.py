"""IncomeSCM as data sets: drawn together with their truth, and read again in one line.

``data/income_data_sets.yml`` says how large each set is, and what people should know about it;
``lib.book.publishing`` writes that beside the tables. With the same code, versions and seeds, the
bytes are the same.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib import ROOT
from lib.effects.study import check_finite, check_subjects, read_study
from lib.errors import check_known, check_names, needed
from lib.files import AnyPath, read_table, read_yaml, write_parquet
from lib.income.study import draw_study
from lib.scm import Simulator

_FILE = read_yaml(ROOT / "data" / "income_data_sets.yml")

#: Name of a data set → its specification and horizon; and how the size of a set of a few rows
#: differs from the usual size.
DATA_SETS, SMALL = _FILE["sets"], _FILE["small"]

#: The part of the description that all data sets share.
DESCRIPTION = _FILE["description"]


def write_cate(folder: Path, name: str, simulator: Simulator, **changed: Any) -> dict[str, Any]:
    """Draw a data set from the simulator of its specification, and write its tables as Parquet.

    `changed` replaces parts of the size in the file: `n` subjects, seen and tested; `repeats`.
    The result has all fields of a ``lib.book.publishing.Description`` but the command.
    """
    check_known("data set", name, DATA_SETS)
    study = draw_study(simulator, horizon=DATA_SETS[name][1], **_FILE["size"] | changed)
    # The seen become test subjects, so that their truth is known; their futures have another seed.
    seen = study.redrawn(test_seed=study.drawn["seed"], truth_seed=3)
    for table, frame in (study.tables() | {"effects": seen.tables()["test_effects"]}).items():
        plain = frame.set_axis(frame.columns.astype(str), axis=1).rename_axis("subject")
        # Text, because not every reader of Parquet knows categories.
        plain = plain.reset_index().astype(dict.fromkeys(plain.select_dtypes("category"), str))
        write_parquet([(folder / f"{table}.parquet", plain)], compression="zstd")
    about = DESCRIPTION["about"].format(_FILE["differences"][name], **study.drawn)
    return {**DESCRIPTION, "name": name, "about": about}


def load_cate(folder: AnyPath, **fields: Any) -> tuple[pd.DataFrame, *tuple[np.ndarray, ...]]:
    r"""Read the seen subjects in the arms: covariates X, treatment t, outcome y, effect τ, and e.

    For n subjects, X, (n, d), has numbers standardised and categories one-hot; t is 1.0 for the
    treated; the income y and true effect τ are in US dollars; e is the propensity among the arms,

    .. math:: e(z) = \frac{P(A = 1 \mid z)}{P(A = 0 \mid z) + P(A = 1 \mid z)}.

    `fields` are those of a :class:`~lib.effects.study.Study`, such as ``adjustment="minimal"``.
    Test subjects and all else are in ``read_study(folder)``.
    """
    study = read_study(folder, **fields)
    used = study.observational[study.treatment].isin(study.arms).to_numpy()
    table = read_table(Path(folder, "effects.parquet"))
    check_names("column of the effects", ("subject", "mean"), table)
    check_subjects("effects", table, study.observational)
    effects = table["mean"].to_numpy()[used]
    check_finite("true effects", effects)
    known = needed("probabilities", study.probabilities).reindex(columns=[*study.arms])
    chances = known[used].to_numpy()
    return study.covariates, study.arm, study.outcomes, effects, chances[:, 1] / chances.sum(axis=1)
