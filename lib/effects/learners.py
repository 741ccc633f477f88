"""Base learners by name, and the choice of their settings by cross-validation.

A learner is any regressor or classifier with scikit-learn's interface. A
:class:`Search` holds the settings it may take and fits the best of them.
"""

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.utils.random import sample_without_replacement
from xgboost import XGBClassifier, XGBRegressor

from lib.cache import cached
from lib.errors import InputError, one_of

#: The names that grids use.
LEARNERS = {
    "ridge": Ridge,
    "lr": LogisticRegression,
    "rfr": RandomForestRegressor,
    "rfc": RandomForestClassifier,
    "xgbr": XGBRegressor,
    "xgbc": XGBClassifier,
}

#: Trees store numbers in single precision anyhow; converting once spares every fit from it.
TREES = (RandomForestRegressor, RandomForestClassifier, XGBRegressor, XGBClassifier)

#: XGBoost takes any keyword; these names of its own are not among scikit-learn's parameters.
XGBOOST_ALIASES = {"eta", "lambda", "alpha"}

#: Folds of cross-validation and of cross-fitting (paper, Section 5).
FOLDS = 5

#: A forest's first trees, by which settings are ruled out, and how much worse (in R², after
#: extrapolation to the full forest) a setting must be to be ruled out.
FIRST_TREES, CLEARLY_WORSE = 25, 0.0005


def learner(name: str, seed: int = 0, **parameters) -> BaseEstimator:
    """Return an unfitted base learner: library defaults, one thread, seeded.

    Parameters
    ----------
    name : {"ridge", "lr", "rfr", "rfc", "xgbr", "xgbc"}
    seed : int
        Of a learner that draws.
    **parameters
        Of the library's class.

    Raises
    ------
    InputError
        If the name or a parameter is unknown.

    Examples
    --------
    >>> learner("ridge", alpha=2)
    Ridge(alpha=2)
    >>> learner("ridge", depth=2)
    Traceback (most recent call last):
    lib.errors.InputError: parameter 'depth' of ridge is unknown: expected one of alpha, ...
    """
    if name not in LEARNERS:
        raise InputError(f"base estimator {name!r} is unknown: {one_of(LEARNERS)}")
    known = set(LEARNERS[name]().get_params())
    aliases = XGBOOST_ALIASES if name.startswith("xgb") else set()
    for parameter in parameters:
        if parameter not in known | aliases:
            raise InputError(
                f"parameter {parameter!r} of {name} is unknown: {one_of(sorted(known), 40)}"
            )
    if name not in ("ridge", "lr"):
        parameters = {"random_state": seed, "n_jobs": 1} | parameters
    return LEARNERS[name](**parameters)


def fold_of(n: int, folds: int = FOLDS) -> np.ndarray:
    """Return the fold of each of n rows: blocks of neighbours, not shuffled.

    Examples
    --------
    >>> fold_of(7, 3)
    array([0, 0, 0, 1, 1, 2, 2])
    """
    if n < folds:
        raise InputError(f"{folds} folds need at least {folds} rows: found {n}")
    return np.repeat(np.arange(folds), [len(part) for part in np.array_split(np.arange(n), folds)])


def predict(model: BaseEstimator, features: np.ndarray) -> np.ndarray:
    """Return means of a regressor, probabilities of the treatment of a classifier."""
    features = _for(model, features)
    if not is_classifier(model):
        return np.asarray(model.predict(features), dtype=float)
    return np.asarray(model.predict_proba(features)[:, 1], dtype=float)


def fitted(model, features, target, weights=None) -> BaseEstimator:
    """Fit a copy of a learner."""
    options = {} if weights is None else {"sample_weight": weights}
    return clone(model).fit(_for(model, features), target, **options)


class Search:
    r"""Settings of a learner, of which cross-validation picks one.

    A classifier is scored by the mean AUC of the folds, a regressor by the mean of

    .. math:: -\frac{\sum_{i \in f} (y_i - \hat y_i)^2}{S_f},

    where :math:`S_f` is the total sum of squares of fold `f`, so that 1 plus the score
    is R². The score of two arms, each divided by the :math:`S_f` of both, is therefore a
    sum, and the arms of a T-learner can be searched independently.

    Parameters
    ----------
    settings : list of scikit-learn learners, or one
        Unfitted.
    n_settings : int, optional
        How many settings to draw (paper: 20, of the joint grid of an estimator);
        by default all are tried.
    seed : int
        Of that draw.
    scored : bool
        Score a single setting, too, although there is nothing to choose.

    Attributes
    ----------
    model_ : scikit-learn learner
        Fitted to all rows with the best setting.
    score_ : float
        Its AUC or R²; missing if it was not scored.

    Examples
    --------
    >>> x = np.arange(20.0)[:, None]
    >>> search = Search([Ridge(0.1), Ridge(1e6)]).fit(x, 3 * x[:, 0])
    >>> search.model_
    Ridge(alpha=0.1)
    """

    def __init__(self, settings, n_settings: int | None = None, seed: int = 0, scored=True):
        self.settings = list(settings) if isinstance(settings, list | tuple) else [settings]
        self.n_settings, self.seed, self.scored = n_settings, seed, scored

    def scores(self, features, target, folds=None, scale=None, weights=None, only=None) -> dict:
        """Return index of a setting → its score.

        Parameters
        ----------
        features : array of shape (n, p)
        target : array of shape (n,)
        folds : array of shape (n,), optional
            The fold of each row.
        scale : array of shape (folds,), optional
            :math:`S_f`; by default of these rows.
        weights : array of shape (n,), optional
        only : collection of int, optional
            Indices of the settings to try.
        """
        folds = fold_of(len(target)) if folds is None else folds
        chosen = sorted(range(len(self.settings)) if only is None else set(only))
        settings = [self.settings[k] for k in chosen]
        if all(isinstance(setting, TREES) for setting in settings):
            features = np.asarray(features, dtype=np.float32)
        found = _cross_validated(settings, features, target, folds, scale, weights)
        return dict(zip(chosen, found, strict=True))

    def fit(self, features, target, weights=None) -> "Search":
        """Choose a setting and fit it to all rows."""
        (best,), score = best_jointly([self], [(features, target, None, None, weights)])
        self.score_ = score if is_classifier(self.settings[0]) else 1 + score
        self.model_ = fitted(self.settings[best], features, target, weights)
        return self

    def varied(self, setting) -> dict:
        """Return those parameters of a setting in which the settings differ.

        Examples
        --------
        >>> Search([Ridge(0.1), Ridge(10)]).varied(Ridge(10))
        {'alpha': 10}
        """
        all_of_them = [each.get_params() for each in self.settings]
        return {
            key: value
            for key, value in setting.get_params().items()
            if len({repr(parameters.get(key)) for parameters in all_of_them}) > 1
        }

    def predict(self, features) -> np.ndarray:
        """Return means, or probabilities of the treatment."""
        return predict(self.model_, features)


def best_jointly(searches: list[Search], problems: list[tuple]) -> tuple[tuple[int, ...], float]:
    """Return the settings with the largest sum of scores, and that sum.

    The sum is missing where nothing is to be chosen and nothing to be scored.

    Over the full grid the searches are independent. A random search draws settings of the
    joint grid without replacement, so that one search's choice restricts the other's.

    Parameters
    ----------
    searches : list of Search
    problems : list of tuple
        The arguments of :meth:`Search.scores`, one a search.
    """
    sizes = [len(search.settings) for search in searches]
    if max(sizes) == 1 and not any(search.scored for search in searches):
        return (0,) * len(sizes), float("nan")
    count = searches[0].n_settings
    joint = None
    if count is not None and count < np.prod(sizes):
        # The draw of scikit-learn's ParameterSampler, so that its users meet the same settings.
        drawn = sample_without_replacement(np.prod(sizes), count, random_state=searches[0].seed)
        joint = list(zip(*np.unravel_index(np.sort(drawn), sizes), strict=True))
    tables = []
    for k, (search, problem) in enumerate(zip(searches, problems, strict=True)):
        only = None if joint is None else [int(setting[k]) for setting in joint]
        tables.append(search.scores(*problem, only=only))
    if joint is None:
        best = tuple(max(table, key=table.get) for table in tables)
    else:
        best = max(joint, key=lambda s: sum(t[int(k)] for t, k in zip(tables, s, strict=True)))
    best = tuple(int(k) for k in best)
    return best, float(sum(table[k] for table, k in zip(tables, best, strict=True)))


@cached
def _cross_validated(settings, features, target, folds, scale, weights) -> list[float]:
    """Return the score of every setting; kept on disk, because estimators share searches."""
    weights = np.ones(len(target)) if weights is None else weights
    parts = [(folds != fold, folds == fold) for fold in np.unique(folds)]
    scale = sums_of_squares(target, folds, weights) if scale is None else scale
    if len(settings) > 1 and all(
        type(s) is RandomForestRegressor and s.n_estimators > 2 * FIRST_TREES for s in settings
    ):
        return _raced(settings, features, target, parts, scale, weights)
    scores = np.zeros((len(settings), len(parts)))
    for i, setting in enumerate(settings):
        for j, (train, test) in enumerate(parts):
            model = fitted(setting, features[train], target[train], _unless_equal(weights[train]))
            found = predict(model, features[test])
            if is_classifier(setting):
                scores[i, j] = _auc(target[test], found)
            else:
                scores[i, j] = -weights[test] @ (target[test] - found) ** 2 / scale[j]
    return scores.mean(axis=1).tolist()


def _raced(settings, features, target, parts, scale, weights) -> list[float]:
    r"""Score forests, but grow in full only those whose first trees leave them a chance.

    The expected squared error of a forest of B trees is :math:`E_\infty + V / B`, with V
    the variance between its trees, which the first trees show. A forest grows on from
    its first trees, so the score of a finalist is that of the whole forest.
    """
    few, ahead = {}, np.zeros((len(settings), len(parts)))
    for i, setting in enumerate(settings):
        for j, (train, test) in enumerate(parts):
            start = clone(setting).set_params(n_estimators=FIRST_TREES, warm_start=True)
            few[i, j] = start.fit(
                features[train], target[train], sample_weight=_unless_equal(weights[train])
            )
            trees = np.stack([tree.predict(features[test]) for tree in start.estimators_])
            gain = trees.var(axis=0, ddof=1) * (1 / FIRST_TREES - 1 / setting.n_estimators)
            ahead[i, j] = -weights[test] @ ((target[test] - trees.mean(axis=0)) ** 2 - gain)
    scores = (ahead / scale).mean(axis=1)
    finalists = np.flatnonzero(scores >= scores.max() - CLEARLY_WORSE)
    for i in finalists:
        loss = np.zeros(len(parts))
        for j, (train, test) in enumerate(parts):
            forest = few.pop((i, j)).set_params(n_estimators=settings[i].n_estimators)
            forest.fit(features[train], target[train], sample_weight=_unless_equal(weights[train]))
            loss[j] = weights[test] @ (target[test] - forest.predict(features[test])) ** 2
        scores[i] = -(loss / scale).mean()
    # A setting that was ruled out must not win by its extrapolation.
    out = np.setdiff1d(np.arange(len(settings)), finalists)
    scores[out] = np.minimum(scores[out], scores[finalists].min() - CLEARLY_WORSE)
    return scores.tolist()


def sums_of_squares(target: np.ndarray, folds: np.ndarray, weights=None) -> np.ndarray:
    """Return the total sum of squares within each fold, about the fold's own mean.

    Examples
    --------
    >>> sums_of_squares(np.array([1.0, 3.0, 5.0, 5.0]), np.array([0, 0, 1, 1]))
    array([2., 0.])
    """
    weights = np.ones(len(target)) if weights is None else weights
    sums = []
    for fold in np.unique(folds):
        part, share = target[folds == fold], weights[folds == fold]
        sums.append(share @ (part - np.average(part, weights=share)) ** 2)
    return np.array(sums)


def _unless_equal(weights: np.ndarray) -> np.ndarray | None:
    return None if (weights == 1).all() else weights


def _auc(target: np.ndarray, found: np.ndarray) -> float:
    if len(np.unique(target)) < 2:
        raise InputError("every fold needs subjects of both arms: found a fold with one only")
    return float(roc_auc_score(target, found))


def _for(model: BaseEstimator, features) -> np.ndarray:
    return np.asarray(features, dtype=np.float32 if isinstance(model, TREES) else np.float64)
