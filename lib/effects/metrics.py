"""Metrics: how far estimates are from the truth, with intervals; and how much the arms overlap."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from lib.effects.estimands import average_effects
from lib.effects.estimators import inverse_propensity_weights
from lib.effects.study import Matrix, Study, Vector, varies
from lib.errors import needed
from lib.workers import one_thread

#: How many resamples of the test subjects have their counts in memory at a time.
BLOCK = 50


def bootstrap_counts(n: int, resamples: int, seed: int | None) -> Iterator[Matrix]:
    """Yield blocks of counts, shape (block, n): how often each subject is in each resample.

    A block of counts times a matrix of columns is a block of resampled sums. Without a seed, the
    resamples are those of the paper: resample i is scikit-learn's `resample(random_state=i)`.
    """
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, BLOCK):
        numbers = range(resamples)[start : start + BLOCK]
        if seed is None:
            drawn = np.stack([np.random.RandomState(i).randint(n, size=n) for i in numbers])
        else:
            drawn = rng.integers(n, size=(len(numbers), n))
        drawn += n * np.arange(len(drawn))[:, None]
        yield np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape).astype(float)


def _r2_by_group(sample: SimpleNamespace) -> Matrix:
    # A group that is absent from a resample counts for nothing; a missing estimate leaves no score.
    here = ~np.isnan(sample.group_truth)
    truth = np.where(here, sample.group_truth, 0)
    mean = truth.sum(axis=1, keepdims=True) / here.sum(axis=1, keepdims=True)
    errors = np.where(here, truth - sample.group_effect, 0)
    spread = np.where(here, truth - mean, 0) ** 2
    return np.asarray(1 - (errors**2).sum(axis=1) / _known(spread.sum(axis=1), sample.variance))


# Return a variance, or nan where it is no more than the rounding errors of another one.
def _known(variance: Matrix, other: Matrix) -> Matrix:
    return np.where(variance > 1e-12 * other, variance, np.nan)


#: Name → the metric of a sample, shape (B, k); one more line is one more metric. A sample holds
#: means for k estimators, over the test subjects or over each of B resamples of them. For the true
#: effects, these are the mean `truth` and the `variance`, shape (B, 1). For the estimates, they are
#: the mean `effect` and the mean `squared_error`, shape (B, k). For each of G groups, they are
#: `group_truth`, shape (B, G, 1), and `group_effect`, (B, G, k), which are missing if the group is
#: absent from a resample. `centre` has been subtracted from all effects, so that a sum of squares
#: is not a difference of much larger numbers.
METRICS: dict[str, Callable[[SimpleNamespace], np.ndarray]] = {
    "ATE": lambda sample: sample.effect + sample.centre,
    "AE": lambda sample: np.abs(sample.effect - sample.truth),
    "R²": lambda sample: 1 - sample.squared_error / sample.variance,
    "MSE": lambda sample: sample.squared_error,
    "RMSE": lambda sample: np.sqrt(sample.squared_error),
    "R² by group": _r2_by_group,
}

#: Metrics of averages, which estimators of the average alone have, too; metrics that need groups;
#: and metrics that do not involve the truth: for these, an estimator of the average alone has the
#: interval that it states.
OF_AVERAGES, OF_GROUPS, OF_ESTIMATES = ("ATE", "AE"), ("R² by group",), ("ATE",)


def compare(
    effects: Matrix, truth: Vector, groups: Any = None, bootstraps: int = 1000, seed: int | None = 0
) -> dict[str, Matrix]:
    r"""Compare estimated effects with the truth, with bootstrap intervals.

    .. math::
        R^2 = 1 - \frac{\sum_i (\tau_i - \hat\tau_i)^2}{\sum_i (\tau_i - \bar\tau)^2}, \qquad
        \mathrm{AE} = \Bigl| \frac1m \sum_i (\hat\tau_i - \tau_i) \Bigr|

    Column j of `effects`, shape (m, k), is estimator j's; `truth` and `groups` have shape (m,).
    `R² by group` compares the mean effects of the groups, each counted once, and leaves out
    subjects without a group. All other metrics are of all subjects. Either R² is nan if the truth
    varies by no more than rounding. The result maps each of `METRICS` to an array of shape (3, k):
    the value, and the 2.5 and 97.5 percentiles over resamples of the subjects in which it is known.
    Without a `seed`, the value is the one that the paper prints, the mean over its own resamples.
    """
    codes = pd.factorize(np.zeros(len(truth)) if groups is None else groups, sort=True)[0]
    names = np.unique(codes)
    members = [np.flatnonzero(codes == name) for name in names]
    k, centre = effects.shape[1], truth.mean()
    tau, found = truth - centre, effects - centre
    spread = 1.0 if varies(truth) else np.nan
    columns = np.column_stack([np.ones(len(tau)), tau, tau**2, found, (found - tau[:, None]) ** 2])
    wanted = {k: f for k, f in METRICS.items() if groups is not None or k not in OF_GROUPS}

    def computed(counts: np.ndarray) -> dict[str, np.ndarray]:
        sums = np.stack([counts[:, rows] @ columns[rows] for rows in members], axis=1)
        total, known = sums.sum(axis=1), sums[:, names >= 0]  # -1 is the code of a missing group
        means, of_group = total / total[:, :1], known / known[:, :, :1]
        _, truth, square, effect, error = np.split(means, [1, 2, 3, 3 + k], axis=1)
        sample = SimpleNamespace(truth=truth, effect=effect, squared_error=error, centre=centre)
        sample.variance = spread * _known(square - truth**2, square)
        sample.group_truth, sample.group_effect = of_group[:, :, 1:2], of_group[:, :, 3 : 3 + k]
        return {name: metric(sample) for name, metric in wanted.items()}

    # Threads would split the sums, and the number of threads would show in the last digits.
    with np.errstate(divide="ignore", invalid="ignore"), one_thread():
        value = computed(np.ones((1, len(tau))))
        drawn = [computed(counts) for counts in bootstrap_counts(len(tau), bootstraps, seed)]
    result = {}
    for name in value:
        every = np.vstack([block[name] for block in drawn] or [np.full((1, k), np.nan)])
        middle = value[name] if seed is not None else every.mean(axis=0, keepdims=True)
        result[name] = np.vstack([middle, pd.DataFrame(every).quantile([0.025, 0.975])])
    return result


def evaluate(
    study: Study, estimates: dict[str, Any], bootstraps: int = 1_000, seed: int | None = 0
) -> pd.DataFrame:
    """Compare estimates with the sampled effects, and with the true ones if these are known.

    The table has one row per estimator and metric, with columns

    - `estimator`, its name;
    - `estimand`, what the `value` estimates or is compared with: "ATE", the average over all test
      subjects, "CATE", the effect on each of them, or one of
      :data:`~lib.effects.estimands.TILTS`, such as "ATE, two arms", the average over those who
      take one of the two arms, which IPW, AIPW and matching estimate;
    - `metric`, `value`, and the ends `lower` and `upper` of a 95 % interval.

    The metrics, in units of the outcome unless stated otherwise, are

    - `cross-validation`, the AUC or R² by which settings were chosen; it involves no effect;
    - `ATE`, the estimate itself, whichever average it estimates;
    - `AE`, its distance from the "ATE"; `R²` (a number up to 1), `MSE` (units squared), `RMSE` and
      `R² by group` of the effects, see :func:`compare`: against differences of single outcomes;
    - the same with `, truth` after the name: against Monte-Carlo effects, if these are known;
    - `error`, the estimate less the average that it estimates, true or else sampled, if known;
    - `width` and `coverage` of an estimator's intervals for single effects: their mean width, and
      the share of them that holds the true effect, if this is known.

    The interval of an `error` is the estimator's own, less the truth, so it covers if it holds 0.
    `cross-validation`, `width` and `coverage` have none. All others are over resamples of the test
    subjects, with fits unchanged; an `ATE` that is no mean over them has its estimator's interval.
    """
    averages = average_effects(study)["value"]
    # An average alone is marked as if it were the effect on every subject.
    m, marks = len(study.difference), dict[str, np.ndarray]()
    found = [np.ones(m) * (e.ate if e.effects is None else e.effects) for e in estimates.values()]
    for suffix, target in (("", study.difference), (", truth", study.effects)):
        if target is not None:
            table = compare(np.column_stack(found), target, study.groups, bootstraps, seed)
            marks |= {metric + suffix: values for metric, values in table.items()}
    rows = []
    for j, (name, each) in enumerate(estimates.items()):
        stated = SimpleNamespace(effect=np.array([each.ate, each.lower, each.upper]), centre=0.0)
        if np.isfinite(each.score):
            rows.append((name, "", "cross-validation", each.score, np.nan, np.nan))
        for metric, values in marks.items():
            average = (plain := metric.removesuffix(", truth")) in OF_AVERAGES
            if plain in OF_ESTIMATES and each.effects is None:  # the same over all resamples
                values[:, j] = METRICS[plain](stated)
            if average or each.effects is not None:
                rows.append((name, "ATE" if average else "CATE", metric, *values[:, j]))
        if each.estimand in averages:
            rows.append((name, each.estimand, "error", *(stated.effect - averages[each.estimand])))
        if each.effect_interval is not None:
            low, high = each.effect_interval
            rows.append((name, "CATE", "width", (high - low).mean(), np.nan, np.nan))
            if study.effects is not None:
                within = (low <= study.effects) & (study.effects <= high)
                share = np.where(np.isnan(high - low), np.nan, within).mean()
                rows.append((name, "CATE", "coverage", share, np.nan, np.nan))
    columns = ["estimator", "estimand", "metric", "value", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)


def t_interval(groups: pd.api.typing.SeriesGroupBy, outside: float = 0.05) -> pd.DataFrame:
    r"""Average grouped values, `mean`, with an interval, `lower` to `upper`, of 95 % by default.

    .. math:: \bar x \pm t_{1 - \alpha / 2,k-1}\,s / \sqrt k, \qquad \alpha = \text{outside}
    """
    mean, half = groups.mean(), groups.sem() * stdtrit(groups.count() - 1, 1 - outside / 2)
    return pd.DataFrame({"mean": mean, "lower": mean - half, "upper": mean + half})


def effects_by_group(study: Study, effects: dict[str, np.ndarray]) -> pd.DataFrame:
    """Average sampled, true and estimated effects within each group (Task 3).

    The table has one row per group: `subjects`, `sampled` with its `standard error`, `truth` if it
    is known, and a column for each of `effects`, name → shape (m,).
    """
    known = {} if study.effects is None else {"truth": study.effects}
    columns = pd.DataFrame({"sampled": study.difference, **known, **effects})
    grouped = columns.groupby(needed("groups of the study", study.groups))
    table = grouped.mean()
    table.insert(0, "subjects", grouped.size())
    table.insert(2, "standard error", grouped["sampled"].sem())
    return table


def balance(study: Study, propensities: np.ndarray) -> pd.DataFrame:
    r"""Compare the arms before and after weighting by the inverse propensity.

    .. math:: d = \frac{\bar z_1 - \bar z_0}{\sqrt{(s_1^2 + s_0^2) / 2}}

    is the standardised mean difference, always with the denominator before weighting. The table has
    one row per encoded covariate, `before` and `after`. `propensities` of treatment are (n,).
    """
    weights = inverse_propensity_weights(study.arm, propensities)
    weighted = study.covariates.mul(weights, axis=0).groupby(study.arm).sum()
    of_known = study.covariates.notna().mul(weights, axis=0)
    arms, totals = study.covariates.groupby(study.arm), of_known.groupby(study.arm).sum()
    means = {"before": arms.mean(), "after": weighted / totals}
    differences = pd.DataFrame({name: mean.loc[1] - mean.loc[0] for name, mean in means.items()})
    return differences.div(np.sqrt(arms.var(ddof=0).mean()), axis=0)


def effective_sample_size(treatment: np.ndarray, propensities: np.ndarray) -> pd.DataFrame:
    r"""Say how many equally weighted subjects the weighted subjects of each arm are worth.

    .. math:: n_{\text{eff}} = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Examples
    --------
    >>> effective_sample_size(np.array([0, 0, 1, 1]), np.array([0.5, 0.5, 0.5, 0.9]))
             subjects  effective
    control         2   2.000000
    treated         2   1.849057
    """
    weights = pd.Series(inverse_propensity_weights(treatment, propensities))
    arms = weights.groupby(np.where(treatment == 1, "treated", "control"))
    return arms.agg(subjects="size", effective=lambda w: w.sum() ** 2 / (w**2).sum())
