r"""What a benchmark over many studies says about an estimator, and how surely.

For R studies with errors :math:`e_r`, estimates less what they estimate, the summaries are

.. math::
    \text{bias} = \bar e, \qquad
    \text{standard deviation} = \Bigl(\tfrac{1}{R-1} \sum_r (e_r - \bar e)^2\Bigr)^{1/2}, \qquad
    \text{RMSE} = \Bigl(\tfrac1R \sum_r e_r^2\Bigr)^{1/2},

the share of 95 % intervals that hold the truth, their mean width, and the share of studies in which
an estimator was the best of all. R studies leave a Monte-Carlo standard error in each [1]_. It is
:math:`s_x / \sqrt R` for a mean :math:`\bar x` and, by the delta method,
:math:`s_x / (2 \sqrt{R \bar x})` for :math:`\sqrt{\bar x}`; errors need not be normal for that.
(Two studies deviate equally from their mean, so their standard deviation s is given the standard
error for normal errors, :math:`s / \sqrt 2`.) For a share p, it is from Wilson's interval [2]_,
which reaches :math:`z = 1.96` of these standard errors to either side of its middle,

.. math::
    \Bigl(\frac{p (1 - p)}{R} + \frac{z^2}{4 R^2}\Bigr)^{1/2} \Big/ \Bigl(1 + \frac{z^2}{R}\Bigr),

which is above 0 even if the share is 0 or 1.

References
----------
.. [1] Morris, T. P., White, I. R. and Crowther, M. J. (2019). Using simulation studies to evaluate
   statistical methods. Statistics in Medicine 38(11), Table 6.
.. [2] Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
   Journal of the American Statistical Association 22(158).
.. [3] Efron, B. and Stein, C. (1981). The jackknife estimate of variance. The Annals of
   Statistics 9(3).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from lib.effects.estimands import TILTS
from lib.effects.intervals import NORMAL
from lib.errors import check, check_once
from lib.tables import number_text


def over_studies(table: pd.DataFrame) -> pd.DataFrame:
    """Summarise the table of a benchmark over studies.

    One row per `estimator`, `estimand` and `metric`, with `value` and `standard error`. Averages
    have `bias`, `standard deviation` and `RMSE`; the `coverage` and `width` of intervals, if some
    are stated; and `best`, the share of studies with the least absolute error. Conditional effects,
    "CATE", have the mean `R²`, or `R², truth` if the true effects are known; `best`, the share with
    the largest; and the mean `coverage` and `width`. In a tie, all are best.
    """
    studies = table["study"].unique()
    check(len(studies) > 1, "a summary needs at least two studies", len(studies))
    twice = table.duplicated(["study", "estimator", "estimand", "metric"]).sum()
    check(twice == 0, "studies of several tables must have numbers of their own", f"{twice} twice")
    known = "R², truth" if (table["metric"] == "R², truth").any() else "R²"
    table = table[table["metric"].isin(["error", "coverage", "width", known])].copy()
    missed = table["value"].abs().where(table["metric"] == "error", -table["value"])
    # Averages of different people compete with each other, and regimes do not.
    rivals = table["estimand"].mask(table["estimand"].isin(["ATE", *TILTS]), "average")
    ranks = missed.groupby([table["metric"], table["study"], rivals]).rank(method="min")
    table["best"] = ranks == 1
    rows = []
    for (*who, metric), one in table.groupby(["estimator", "estimand", "metric"], sort=False):
        value, stated = one["value"], one.dropna(subset=["lower", "upper"])
        found = {metric: _mean(value)}
        if metric == "error":
            squares = (value - value.mean()) ** 2 * len(value) / (len(value) - 1)
            found = {"bias": _mean(value), "standard deviation": _root(squares)}
            if len(value) == 2:  # their squared deviations are equal
                found["standard deviation"] = value.std(), value.std() / 2**0.5
            found["RMSE"] = _root(value**2)
        if metric in ("error", known) and value.notna().any():
            best = one.set_index("study")["best"]
            found["best"] = _share(best.reindex(studies, fill_value=False))
        if metric == "error" and len(stated):
            found["coverage"] = _share((stated["lower"] <= 0) & (stated["upper"] >= 0))
            found["width"] = _mean(stated["upper"] - stated["lower"])
        rows += [(*who, name, *numbers) for name, numbers in found.items()]
    columns = ["estimator", "estimand", "metric", "value", "standard error"]
    return pd.DataFrame(rows, columns=columns)


def by_level(table: pd.DataFrame, level: str) -> pd.DataFrame:
    """Summarise studies by a level of the index, a column per metric, and its `error of METRIC`."""
    found = table.groupby(level=level, sort=False).apply(over_studies).reset_index(level)
    key, numbers = [level, "estimator", "estimand"], ["value", "standard error"]
    wide = found.pivot_table(numbers, key, "metric", sort=False)
    errors = wide["standard error"].add_prefix("error of ")
    return wide["value"].join(errors).reset_index().rename_axis(columns=None)


def spread(table: pd.DataFrame) -> pd.DataFrame:
    """Return each metric's median `value` over studies, and the ends of the middle 95 % of them."""
    metrics = table.groupby(["estimator", "estimand", "metric"], sort=False)["value"]
    ends = {"value": 0.5, "lower": 0.025, "upper": 0.975}
    return pd.DataFrame({end: metrics.quantile(q) for end, q in ends.items()}).reset_index()


def rank_agreement(
    table: pd.DataFrame, splits: int = 200, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    r"""Say how alike two worlds rank estimators: Spearman's correlation of their RMSE.

    .. math:: \rho_{vw} = \frac12 \operatorname{E}\bigl[r(v, A; w, B) + r(v, B; w, A)\bigr],

    where A and B are random halves of the studies, and r correlates the ranks in world v by one
    half with the ranks in world w by the other. So the luck of studies that worlds share cannot
    make the worlds alike, though an error of the truth that all studies share can. The diagonal
    says how far a ranking agrees with itself. Two worlds with the same true ranking are expected to
    agree by about the geometric mean of their entries on the diagonal (Spearman 1904).
    The second table holds standard errors by the jackknife, which leaves each study in turn out of
    its half: on average too large [3]_, and missing for fewer than four studies. The `table` has
    columns `world`, `study`, `estimator` and `error`, for the same ones in every world.
    """
    squares, worlds, _ = _squares(table)
    n, rng = squares.shape[1], np.random.default_rng(seed)
    check(n > 1, "rank agreement needs at least two studies", n)
    found, without = np.zeros((len(worlds),) * 2), np.zeros((n, len(worlds), len(worlds)))
    half = (np.arange(n) >= n - n // 2).astype(int)
    for _ in range(splits):
        order = rng.permutation(n)
        sums = np.array([squares[:, order[half == k]].sum(axis=1) for k in (0, 1)])
        fewer = sums[half] - squares[:, order].swapaxes(0, 1)
        ranks = _unit_ranks(np.concatenate([sums, fewer]))  # many in one call, as fast as few
        found += _correlation(*ranks[:2]) / splits
        without[order] += _correlation(ranks[2:], ranks[1 - half]) / splits
    error = ((n - 1) * without.var(axis=0)) ** 0.5
    return pd.DataFrame(found, worlds, worlds), pd.DataFrame(error, worlds, worlds)


def _unit_ranks(values: np.ndarray) -> np.ndarray:
    # Of estimators, the last axis, as vectors whose mean is 0 and whose length is 1.
    ranks = rankdata(values, axis=-1)
    apart = ranks - ranks.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):  # without a study, all ranks are equal
        return np.asarray(apart / np.linalg.norm(apart, axis=-1, keepdims=True))


def _correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Correlate unit ranks, (..., worlds, estimators), between worlds, in both orders."""
    between = one @ other.swapaxes(-1, -2)
    return np.asarray(between + between.swapaxes(-1, -2)) / 2


def rmse_of_resamples(table: pd.DataFrame, resamples: int = 500, seed: int = 0) -> pd.DataFrame:
    """Return a column of RMSEs per estimator, in resamples of studies that all worlds share."""
    squares, worlds, names = _squares(table)
    n = squares.shape[1]
    rows = np.random.default_rng(seed).integers(n, size=(resamples, n))
    found = squares[:, rows].mean(axis=2) ** 0.5
    index = pd.MultiIndex.from_product([worlds, range(resamples)], names=["world", "resample"])
    return pd.DataFrame(found.reshape(-1, len(names)), index, names)


def _squares(table: pd.DataFrame) -> tuple[np.ndarray, pd.Index, pd.Index]:
    """Return squared errors, (worlds, studies, estimators), and names of worlds and estimators."""
    wide = table.pivot_table("error", ["world", "study"], "estimator", sort=False)
    worlds, studies = (pd.Index(table[name].unique(), name=name) for name in ("world", "study"))
    wide = wide.reindex(pd.MultiIndex.from_product([worlds, studies]))
    rule = "every world must have every study and estimator once"
    check(wide.notna().all(axis=None) and len(table) == wide.size, rule, f"{len(table):,} rows")
    shape = len(worlds), len(studies), wide.shape[1]
    return wide.to_numpy().reshape(shape) ** 2, worlds, wide.columns


def in_words(summary: pd.DataFrame, names: Mapping[str, str] = {}) -> pd.DataFrame:
    """Lay a summary out as text, a row per estimator: `−412 ± 35`, to two digits of the error."""
    numbers = zip(summary["value"], summary["standard error"], strict=True)
    texts = [number_text(value, error, None if error > 0 else 2) for value, error in numbers]
    summary, rows = summary.replace({"estimator": names}), ["estimator", "estimand"]
    check_once("metric in words", summary[[*rows, "metric"]].itertuples(index=False, name=None))
    summary = summary.assign(text=texts)
    return summary.pivot_table("text", rows, "metric", "first", fill_value="", sort=False)


def _mean(values: pd.Series) -> tuple[float, float]:
    return values.mean(skipna=False), values.sem(skipna=False)


def _root(squares: pd.Series) -> tuple[float, float]:
    mean, error = _mean(squares)
    return mean**0.5, error / (2 * mean**0.5) if mean else 0.0


def _share(hits: pd.Series) -> tuple[float, float]:
    share, more = hits.mean(), NORMAL**2 / len(hits)
    return share, ((share * (1 - share) + more / 4) / len(hits)) ** 0.5 / (1 + more)
