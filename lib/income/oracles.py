r"""The average effect found a second time where this is possible, and where chance hides it.

Pairs of worlds give every subject's two incomes, and so the effect. One income each is enough to
find the same number if the arms overlap, as in a lottery. In the world as it is, a few subjects
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
    r"""Find the average effect on a lottery's own subjects from pairs, by weighting, by regression.

    The study must be drawn with a `lottery` of its two arms, and its test subjects must be the seen
    ones (`test_seed` and `seed` are equal). Weighting by the lottery's probabilities p, and a ridge
    regression in each arm, see one income of each subject. They must find the average of the pairs,
    but for the luck of the lottery. The variance of that luck is known here,

    .. math:: \frac{1}{n^2} \sum_i \frac{e_i^2}{p_0 p_1}, \qquad
        e_i = p_0 \bigl(Y_i(1) - m_{1i}\bigr) + p_1 \bigl(Y_i(0) - m_{0i}\bigr),

    where m are the weighted means, or what the regressions predict. An experiment could not know
    this variance (Neyman 1923, translated in Statistical Science 5(4)).
    """
    n, incomes, treated = len(study.arm), study.outcomes, study.arm == 1
    m = len(study.difference)
    check(m == n, "the test subjects must be the observed subjects", [m, n])
    weights, arms = 1 / needed("probabilities", study.arm_probability), (~treated, treated)
    means = [np.full(n, np.average(incomes[arm], weights=weights[arm])) for arm in arms]
    models = [Ridge().fit(study.covariates[arm], incomes[arm]) for arm in arms]
    lines = [model.predict(study.covariates) for model in models]
    known = needed("test_probabilities", study.test_probabilities)
    chances = known.reindex(columns=[*study.arms]).to_numpy().T
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
    """Weight one study per seed by true probabilities: `average effect` and `standard error`."""
    rows = {}
    # No covariate is used, but a study must have at least one.
    options = {"horizon": horizon, "n_test": 1, "adjustment": ["age"], "repeats": 0}
    for study in draw_studies(simulator, n, seeds, **options):
        weighted = TruePropensityWeighting(probabilities=study.arm_probability)
        weighted.fit(study.covariates, study.arm, study.outcomes)
        rows[study.drawn["seed"]] = [weighted.ate_, weighted.standard_error_]
    columns = ["average effect", "standard error"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("seed")
