r"""Estimands: averages of the effect over all, over the treated, or over those who may do either.

With :math:`p_0(z), p_1(z)` the true probabilities of the two arms, and :math:`\tau(z)` the
conditional effect, an estimand is a weighting :math:`h` of subjects,

.. math:: \tau_h = \frac{E[h(p_0, p_1)\,\tau(Z)]}{E[h(p_0, p_1)]} \quad \text{[1]_}.

References
----------
.. [1] Li, F., Morgan, K. L. and Zaslavsky, A. M. (2018). Balancing covariates via propensity
   score weighting. Journal of the American Statistical Association 113(521).
.. [2] Crump, R. K. et al. (2009). Dealing with limited overlap in estimation of average
   treatment effects. Biometrika 96(1).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from lib.effects.study import Study
from lib.errors import check, check_known

#: Name → the weight of a subject among those in the two arms, as a function of its propensity. The
#: average is over all alike; over those who take either arm with a probability of 0.1 or more [2]_;
#: over the treated; and over the overlap, where subjects count more, the harder it is to say which
#: arm they will take [1]_.
TILTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ATE, two arms": np.ones_like,
    "ATE, trimmed": lambda e: np.where(np.abs(np.real(e) - 0.5) <= 0.4, 1.0, 0.0),
    "ATT": lambda e: e,
    "ATO": lambda e: e * (1 - e),
}


def weights_of(control: np.ndarray, treated: np.ndarray) -> dict[str, np.ndarray]:
    """Return each estimand's weights, (m,), from the probabilities of the two arms, (m,) each.

    If there are no other arms, "ATE" and "ATE, two arms" are the same.
    """
    both = control + treated
    e = treated / np.maximum(both, np.finfo(float).tiny)
    return {"ATE": np.ones(len(both))} | {k: both * tilt(e) for k, tilt in TILTS.items()}


def tilted(name: str, propensities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an estimand's tilts of propensities, and their derivatives by a complex step."""
    check_known("estimand", name, TILTS)
    found = TILTS[name](propensities + 1e-20j)
    return found.real, found.imag / 1e-20


def average_effects(study: Study) -> pd.DataFrame:
    r"""Average the effects of the test subjects as each estimand does.

    The table has one row per estimand, with `value` and `standard error`, which are missing if no
    subject has a weight. Without `test_probabilities` there is only "ATE" and, if nobody took other
    arms, "ATE, two arms". Effects are true or else sampled, and subjects count as a sample of all,

    .. math:: \Bigl( \sum_i (h_i\,(\tau_i - \hat\tau_h))^2 \Bigr)^{1/2} \Big/ \sum_i h_i.

    A study read from one table alone is refused, because the other outcomes are unknown.
    """
    rule = "marking estimators needs control and treated tables; with one table, use `estimate`"
    check(not study.alone, rule, "1 table")
    effects = study.difference if study.effects is None else study.effects
    weights = {"ATE": np.ones(len(effects))}
    if study.test_probabilities is not None:
        chances = study.test_probabilities.reindex(columns=[*study.arms])
        weights = weights_of(*chances.to_numpy(float).T)
    elif len(study.arm) == len(study.observational):  # nobody takes another arm
        weights["ATE, two arms"] = weights["ATE"]
    rows = {}
    for name, h in weights.items():
        value = np.average(effects, weights=h) if h.any() else np.nan
        error = np.linalg.norm(h * (effects - value)) / h.sum()
        rows[name] = {"value": value, "standard error": error}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("estimand")
