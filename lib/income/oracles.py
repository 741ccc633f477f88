r"""The average effect found a second time where it can be, and where chance hides it.

Pairs of worlds give every subject's two incomes, and so the effect. Who sees one income of each
can find the same number if the arms overlap, as in a lottery. In the world as it is, a few subjects
weigh so much that an estimate from true propensities says little, and its stated error even less.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge

from lib.effects.estimators import TruePropensityWeighting
from lib.effects.study import Study
from lib.errors import check, needed
from lib.income.study import draw_studies
from lib.scm import Simulator


def three_ways(study: Study) -> pd.DataFrame:
    r"""Find the average effect of a lottery's own subjects in pairs, by weighting, by regression.

    The study must be drawn with a `lottery` of its two arms, and with test subjects that are the
    seen ones (`test_seed` and `seed` are one). Weighting by the lottery's probabilities p, and a
    ridge regression in each arm, see one income of everybody, and must find the pairs' average but
    for the luck of the lottery. Its variance is known here,

    .. math:: \frac{1}{n^2} \sum_i \frac{e_i^2}{p_0 p_1}, \qquad
        e_i = p_0 \bigl(Y_i(1) - m_{1i}\bigr) + p_1 \bigl(Y_i(0) - m_{0i}\bigr),

    where m are the weighted means, or what the regressions predict. An experiment could not know
    it (Neyman 1923, translated in Statistical Science 5(4)).
    """
    n, incomes, treated = len(study.arm), study.outcomes, study.arm == 1
    m = len(study.difference)
    check(m == n, "the test subjects must be the seen ones", [m, n])
    weights, arms = 1 / needed("probabilities", study.arm_probability), (~treated, treated)
    means = [np.full(n, np.average(incomes[arm], weights=weights[arm])) for arm in arms]
    models = [Ridge().fit(study.covariates[arm], incomes[arm]) for arm in arms]
    lines = [model.predict(study.covariates) for model in models]
    chances = needed("test_probabilities", study.test_probabilities)[list(study.arms)].to_numpy().T
    both = [table[study.outcome].to_numpy() for table in (study.control, study.treated)]
    pairs = study.difference.mean()
    rows = {"pairs": [pairs, 0.0, 0.0]}
    for way, fitted in {"weighting": means, "regression": lines}.items():
        found = (fitted[1] - fitted[0]).mean()
        luck = chances[1] * (both[0] - fitted[0]) + chances[0] * (both[1] - fitted[1])
        error = np.linalg.norm(luck / chances.prod(axis=0) ** 0.5) / n
        rows[way] = [found, found - pairs, error]
    columns = ["average effect", "from pairs", "standard error"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def weighted_studies(
    simulator: Simulator, n: int, seeds: Iterable[int], horizon: int = 7
) -> pd.DataFrame:
    """Weight one study a seed by true probabilities: `average effect` and its `standard error`."""
    rows = {}
    # No covariate is read, and one is the least that a study may have.
    options = {"horizon": horizon, "n_test": 1, "adjustment": ["age"], "repeats": 0}
    for study in draw_studies(simulator, n, seeds, **options):
        weighted = TruePropensityWeighting(probabilities=study.arm_probability)
        weighted.fit(study.covariates, study.arm, study.outcomes)
        rows[study.drawn["seed"]] = [weighted.ate_, weighted.standard_error_]
    columns = ["average effect", "standard error"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("seed")
