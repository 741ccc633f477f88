"""Marks: how far estimates are from the truth, with intervals; and how much the arms overlap."""

import numpy as np
import pandas as pd

from lib.effects.estimators import inverse_propensity_weights
from lib.effects.study import Study

#: Resamples of the test subjects whose counts are held at a time.
BLOCK = 50


def bootstrap_counts(n: int, resamples: int, seed: int):
    """Yield blocks of how often each subject is in a resample, shape (block, n).

    A resample of n subjects with replacement enters every mean only through these counts,
    so a block of them times a matrix of columns is a block of resampled sums.

    Examples
    --------
    >>> [counts.sum(axis=1).tolist() for counts in bootstrap_counts(5, 2, seed=0)]
    [[5.0, 5.0]]
    """
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - start)
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)


def marks(effects: np.ndarray, truth: np.ndarray, groups=None, bootstraps=1_000, seed=0):
    r"""Mark estimated effects against the truth, with bootstrap intervals.

    .. math::
        R^2 = 1 - \frac{\sum_i (\tau_i - \hat\tau_i)^2}{\sum_i (\tau_i - \bar\tau)^2}, \qquad
        \mathrm{AE} = \Bigl| \frac1m \sum_i (\hat\tau_i - \tau_i) \Bigr|

    Parameters
    ----------
    effects : array of shape (m, k)
        Column j holds the estimates of estimator j.
    truth : array of shape (m,)
    groups : array of shape (m,), optional
        If given, `R² by group` compares the mean effects of the groups, each counted once.
    bootstraps : int
        Resamples of the test subjects; the intervals are their 2.5 and 97.5 percentiles.
    seed : int

    Returns
    -------
    dict of str to numpy.ndarray, shape (3, k)
        `R²`, `MSE`, `RMSE`, `ATE`, `AE`, and `R² by group`: value, lower and upper end.
    """
    codes = np.zeros(len(truth), dtype=int)
    if groups is not None:
        codes = pd.factorize(np.asarray(groups), sort=True)[0]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    k, centre = effects.shape[1], truth.mean()
    # Centred, so that a sum of squares is not a difference of two much larger numbers.
    tau = (truth - centre)[order]
    found = (effects - centre)[order]
    columns = np.column_stack([np.ones(len(tau)), tau, tau**2, found, (found - tau[:, None]) ** 2])
    segments = list(zip(starts, [*starts[1:], len(tau)], strict=True))

    def summed(counts):
        return np.stack([counts[:, a:b] @ columns[a:b] for a, b in segments], axis=1)

    def statistics(sums):
        total = sums.sum(axis=1)
        n, mean = total[:, :1], total[:, 1:2] / total[:, :1]
        mse = total[:, 3 + k :] / n
        average = total[:, 3 : 3 + k] / n
        found = {
            "R²": 1 - mse / (total[:, 2:3] / n - mean**2),
            "MSE": mse,
            "RMSE": np.sqrt(mse),
            "ATE": average + centre,
            "AE": np.abs(average - mean),
        }
        if groups is not None:
            size = sums[:, :, :1]
            with np.errstate(invalid="ignore"):
                true, of_group = sums[:, :, 1:2] / size, sums[:, :, 3 : 3 + k] / size
            # A small group may be absent from a resample: it is then left out.
            spread = np.nansum((true - np.nanmean(true, axis=1, keepdims=True)) ** 2, axis=1)
            found["R² by group"] = 1 - np.nansum((true - of_group) ** 2, axis=1) / spread
        return found

    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistics(summed(np.ones((1, len(tau)))))
        drawn = [statistics(summed(c)) for c in bootstrap_counts(len(tau), bootstraps, seed)]
    result = {}
    for name in value:
        ends = np.full((2, k), np.nan)
        if drawn:
            ends = np.percentile(np.vstack([block[name] for block in drawn]), [2.5, 97.5], axis=0)
        result[name] = np.vstack([value[name], ends])
    return result


def effects_by_group(study: Study, effects: dict[str, np.ndarray]) -> pd.DataFrame:
    """Average sampled, true and estimated effects within each group (Task 3).

    Parameters
    ----------
    study : Study
        With groups.
    effects : dict of str to array of shape (m,)
        Name → estimates.

    Returns
    -------
    pandas.DataFrame
        One row a group: `subjects`, `sampled` with its `standard error`, `truth` if known, and
        a column an estimator.
    """
    grouped = pd.Series(study.difference).groupby(study.groups)
    table = pd.DataFrame(
        {"subjects": grouped.size(), "sampled": grouped.mean(), "standard error": grouped.sem()}
    )
    known = {} if study.truth is None else {"truth": study.truth}
    for name, values in (known | effects).items():
        table[name] = pd.Series(values).groupby(study.groups).mean()
    return table


def balance(study: Study, propensities: np.ndarray) -> pd.DataFrame:
    r"""Compare the arms before and after weighting by the inverse propensity.

    .. math:: d = \frac{\bar z_1 - \bar z_0}{\sqrt{(s_1^2 + s_0^2) / 2}}

    is the standardised mean difference; the denominator is that before weighting.

    Parameters
    ----------
    study : Study
    propensities : array of shape (n,)
        Of the treatment, strictly between 0 and 1.

    Returns
    -------
    pandas.DataFrame
        Indexed by encoded covariate: columns `before` and `after`.
    """
    arms = [study.treatment == arm for arm in (0, 1)]
    z = study.covariates.to_numpy()
    spread = np.sqrt(sum(z[arm].var(axis=0) for arm in arms) / 2)
    weights = inverse_propensity_weights(study.treatment, propensities)
    means = {
        "before": [z[arm].mean(axis=0) for arm in arms],
        "after": [np.average(z[arm], axis=0, weights=weights[arm]) for arm in arms],
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {name: (treated - control) / spread for name, (control, treated) in means.items()}
    return pd.DataFrame(columns, index=study.covariates.columns)


def effective_sample_size(treatment: np.ndarray, propensities: np.ndarray) -> pd.DataFrame:
    r"""Say how many equally weighted subjects the weighted ones of an arm are worth.

    .. math:: n_{\text{eff}} = \frac{(\sum_i w_i)^2}{\sum_i w_i^2}

    Examples
    --------
    >>> effective_sample_size(np.array([0, 0, 1, 1]), np.array([0.5, 0.5, 0.5, 0.9]))
             subjects  effective
    control         2   2.000000
    treated         2   1.849057
    """
    weights = inverse_propensity_weights(treatment, propensities)
    parts = {"control": weights[treatment == 0], "treated": weights[treatment == 1]}
    return pd.DataFrame(
        {
            arm: {"subjects": len(w), "effective": w.sum() ** 2 / (w**2).sum()}
            for arm, w in parts.items()
        }
    ).T.astype({"subjects": int})
