"""Two worlds side by side: what an intervention changes, and by how much on average.

Worlds sampled with the same seed share all noise, so row `i` of both is the same subject, and every
difference between them is caused by the intervention.
"""

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from xgboost import XGBClassifier

from lib.errors import check, check_known
from lib.scm.mechanisms import columns_of


def share_changed(world: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Return the share of subjects (0 to 1) for which two worlds differ, variables × steps."""
    _check_same_rows(world, other)
    ours, theirs = (frame.drop(columns=["subject", "t"]) for frame in (world, other))
    found = list(ours), list(theirs)
    check(found[0] == found[1], "worlds must have the same variables in the same order", found)
    # Compared as objects, because categoricals can be compared only if their levels agree.
    differs = ours.astype(object).ne(theirs.astype(object).to_numpy())
    return differs.groupby(world["t"]).mean().T


def average_effect(
    treated: pd.DataFrame, control: pd.DataFrame, outcome: str, step: int
) -> pd.Series:
    r"""Average, over subjects, the difference between two worlds in an outcome at one step.

    .. math::
        \hat\tau = \frac{1}{n} \sum_i d_i, \quad d_i = y_i - y'_i, \quad
        \widehat{\mathrm{se}}(\hat\tau) = \frac{s_d}{\sqrt{n}}

    The standard deviation in the result is that of the individual effects.

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
    # Levels have a difference if they are numbers.
    ours, theirs = (columns_of(one, {outcome: None}, "variable") for one in (treated, control))
    check_known("step", step, treated["t"].unique())
    difference = pd.Series(ours[outcome] - theirs[outcome], treated["t"], name=outcome).loc[[step]]
    names = ["average effect", "standard error", "standard deviation"]
    return difference.agg(["mean", "sem", "std"]).set_axis(names)


def two_sample_auc(one: pd.DataFrame, other: pd.DataFrame, seed: int = 0) -> pd.Series:
    r"""Return how well boosted trees tell two tables apart (a classifier two-sample test [1]_).

    .. math::
        \mathrm{AUC} = P(s(X) > s(X')), \qquad
        \widehat{\mathrm{se}}^2 = 2 \Bigl( \frac{s_{10}^2}{n} + \frac{s_{01}^2}{m} \Bigr),

    where s scores how likely a row is to come from the first table, by trees that did not see it
    (five folds, split by the seed). Each row is ranked above a share of the other table's rows, and
    :math:`s_{10}, s_{01}` are the standard deviations of this share over the n and the m rows. 0.5
    means that the trees find no difference. All rows must be independent; worlds with one seed are
    not. The sum in brackets is the variance for given trees [2]_. It is doubled: rows in different
    folds help to score each other, so chance counts up to twice if the tables hardly differ.

    References
    ----------
    .. [1] Lopez-Paz, D. and Oquab, M. (2017). Revisiting classifier two-sample tests. ICLR.
    .. [2] DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under
       two or more correlated receiver operating characteristic curves. Biometrics 44(3).
    """
    found = sorted(one), sorted(other)
    check(found[0] == found[1], "tables must have the same variables", found)
    folds, sizes = StratifiedKFold(5, shuffle=True, random_state=seed), [len(one), len(other)]
    check(min(sizes) >= folds.n_splits, "each table must have a row per fold, five", sizes)
    both = pd.concat([one, other], ignore_index=True)
    for name in both.select_dtypes(exclude="number"):
        # Levels become numbers, because the trees do not accept truth values.
        levels = both[name].astype("category").cat
        both[name] = levels.rename_categories(range(len(levels.categories)))
    both.columns = range(both.shape[1])  # the trees do not accept brackets in a name
    first = np.arange(len(both)) < len(one)
    trees = XGBClassifier(max_depth=4, learning_rate=0.1, enable_categorical=True, n_jobs=1)
    scores = cross_val_predict(trees, both, first, cv=folds, method="predict_proba")[:, 1]
    ranks = rankdata(scores)
    above = [(ranks[of] - rankdata(scores[of])) / (~of).sum() for of in (first, ~first)]
    error = sum(2 * shares.var(ddof=1) / len(shares) for shares in above) ** 0.5
    return pd.Series({"AUC": above[0].mean(), "standard error": error})


def _check_same_rows(world: pd.DataFrame, other: pd.DataFrame) -> None:
    rows = [frame[["subject", "t"]] for frame in (world, other)]
    rule = "worlds must have the same subjects and steps, row by row"
    if not np.array_equal(*rows):  # only then is it worth the time to count
        check(False, rule, [frame.nunique().to_dict() for frame in rows])
