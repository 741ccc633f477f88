"""Two worlds side by side: what an intervention changes, and by how much on average.

Worlds sampled with one seed share all noise, so row `i` of both is the same
subject, and every difference between them is caused by the intervention.
"""

import numpy as np
import pandas as pd

from lib.errors import InputError, check, check_known


def share_changed(world: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the share of subjects in which two worlds differ, variables × steps, from 0 to 1.

    Examples
    --------
    >>> seen = pd.DataFrame({"subject": [0, 0, 1, 1], "t": [0, 1, 0, 1], "age": [20, 21, 40, 41]})
    >>> share_changed(seen, seen.assign(age=[20, 21, 40, 99]))
    t      0    1
    age  0.0  0.5
    """
    _check_same_rows(world, other)
    ours, theirs = (frame.drop(columns=["subject", "t"]) for frame in (world, other))
    found = list(ours), list(theirs)
    check(found[0] == found[1], "worlds are compared on the same variables", found)
    # As objects, because categoricals compare only if their levels agree.
    differs = ours.astype(object).ne(theirs.astype(object).to_numpy())
    return differs.groupby(world["t"]).mean().T


def average_effect(
    treated: pd.DataFrame, control: pd.DataFrame, outcome: str, step: int
) -> pd.Series:
    r"""Average the difference in an outcome at a step between two worlds, subject by subject.

    .. math::
        \hat\tau = \frac{1}{n} \sum_i d_i, \quad d_i = y_i - y'_i, \quad
        \widehat{\mathrm{se}}(\hat\tau) = \frac{s_d}{\sqrt{n}}

    Its standard deviation is that of the individual effects.

    Examples
    --------
    >>> control = pd.DataFrame({"subject": [0, 1, 2], "t": 5, "income": [10.0, 20.0, 30.0]})
    >>> treated = control.assign(income=[11.0, 22.0, 33.0])
    >>> average_effect(treated, control, "income", step=5)
    average effect        2.00000
    standard error        0.57735
    standard deviation    1.00000
    Name: income, dtype: float64
    """
    _check_same_rows(treated, control)
    for world in (treated, control):
        check_known("variable", outcome, world)
    check_known("step", step, treated["t"].unique())
    difference = (treated[outcome] - control[outcome].to_numpy())[treated["t"] == step]
    names = ["average effect", "standard error", "standard deviation"]
    return difference.agg(["mean", "sem", "std"]).set_axis(names)


def _check_same_rows(world: pd.DataFrame, other: pd.DataFrame) -> None:
    rows = [frame[["subject", "t"]] for frame in (world, other)]
    if not np.array_equal(*rows):
        sizes = " and ".join(" × ".join(map(str, frame.nunique())) for frame in rows)
        rule = "worlds are compared subject by subject and step by step"
        raise InputError(f"{rule}: found subjects × steps {sizes}")
