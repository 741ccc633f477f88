"""Two worlds side by side: what an intervention changes, and by how much on average.

Worlds sampled with one seed share all noise, so row `i` of both is the same
subject, and every difference between them is caused by the intervention.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.errors import InputError, one_of


class Effect(NamedTuple):
    """An average effect, its standard error and the standard deviation of individual effects."""

    average: float
    standard_error: float
    standard_deviation: float


def share_changed(world: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the share of subjects in which two worlds differ, variables × steps, from 0 to 1.

    Examples
    --------
    >>> seen = pd.DataFrame({"subject": [0, 0, 1, 1], "t": [0, 1, 0, 1], "age": [20, 21, 40, 41]})
    >>> share_changed(seen, seen.assign(age=[20, 21, 40, 99]))
    t      0    1
    age  0.0  0.5
    """
    _require_same_subjects(world, other)
    ours, theirs = list(world.columns), list(other.columns)
    if ours != theirs:
        raise InputError(f"worlds are compared on the same variables: found {ours} and {theirs}")
    differs = {
        # as objects, because categoricals compare only if their levels agree
        name: world[name].to_numpy(dtype=object) != other[name].to_numpy(dtype=object)
        for name in world.columns.drop(["subject", "t"])
    }
    return pd.DataFrame(differs).groupby(world["t"].to_numpy()).mean().rename_axis("t").T


def average_effect(treated: pd.DataFrame, control: pd.DataFrame, outcome: str, step: int) -> Effect:
    r"""Average the difference in an outcome at a step between two worlds, subject by subject.

    .. math::
        \hat\tau = \frac{1}{n} \sum_i d_i, \quad d_i = y_i - y'_i, \quad
        \widehat{\mathrm{se}}(\hat\tau) = \frac{s_d}{\sqrt{n}}

    Examples
    --------
    >>> control = pd.DataFrame({"subject": [0, 1, 2], "t": 5, "income": [10.0, 20.0, 30.0]})
    >>> treated = control.assign(income=[11.0, 22.0, 33.0])
    >>> average_effect(treated, control, "income", step=5).average
    2.0
    """
    _require_same_subjects(treated, control)
    for world in (treated, control):
        if outcome not in world.columns:
            raise InputError(f"variable {outcome!r} is unknown: {one_of(world.columns)}")
    at_step = (treated["t"] == step).to_numpy()
    if not at_step.any():
        raise InputError(f"step {step} was not sampled: {one_of(treated['t'].unique())}")
    difference = treated[outcome].to_numpy()[at_step] - control[outcome].to_numpy()[at_step]
    deviation = float(np.std(difference, ddof=1)) if len(difference) > 1 else float("nan")
    return Effect(float(difference.mean()), deviation / len(difference) ** 0.5, deviation)


def _require_same_subjects(world: pd.DataFrame, other: pd.DataFrame) -> None:
    if not all(
        np.array_equal(world[name].to_numpy(), other[name].to_numpy()) for name in ("subject", "t")
    ):
        raise InputError(
            "worlds are compared subject by subject and step by step: found "
            f"{world['subject'].nunique()} subjects × {world['t'].nunique()} steps and "
            f"{other['subject'].nunique()} × {other['t'].nunique()}"
        )
