"""Base learners by name, and the choice of their settings by cross-validation."""

import copy
import inspect
import itertools
from collections.abc import Callable
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, ParameterGrid, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.random import sample_without_replacement
from xgboost import XGBClassifier, XGBRegressor

from lib.cache import cached
from lib.effects.study import Matrix, Vector, varies
from lib.errors import InputError, check, check_known, check_names

#: A regressor or a classifier like scikit-learn's.
Learner: TypeAlias = BaseEstimator

#: The data that cross-validation needs, see :func:`rows_of`.
Rows: TypeAlias = tuple[np.ndarray, ...]

#: Base learners by the names that estimator files use.
LEARNERS = {
    "ridge": Ridge,
    "lr": LogisticRegression,
    "rfr": RandomForestRegressor,
    "rfc": RandomForestClassifier,
    "xgbr": XGBRegressor,
    "xgbc": XGBClassifier,
}

#: Regressor → the classifier of its kind. If one name fills all slots, it means this classifier in
#: a slot that needs one.
CLASSIFIER = {"ridge": "lr", "rfr": "rfc", "xgbr": "xgbc"}

#: XGBoost accepts any keyword. These names of its own are not among scikit-learn's parameters.
XGBOOST_ALIASES = {"eta", "lambda", "alpha"}

#: Folds of cross-validation and of cross-fitting (paper, Section 5).
FOLDS = 5

#: A setting is ruled out if, on the folds or the trees so far, it is more than so many standard
#: errors worse than the best; and how many subjects or trees it takes to know a standard error.
CLEARLY_WORSE, FEWEST = 2, 10


def learner(name: str, seed: int = 0, **parameters: Any) -> Learner:
    """Return an unfitted base learner with library defaults, one thread and a seed."""
    check_known("base estimator", name, LEARNERS)
    made = LEARNERS[name]()
    known = {*made.get_params(), *(XGBOOST_ALIASES if name.startswith("xgb") else ())}
    check_names(f"{name} parameter", parameters, sorted(known), 40)
    usual = {"random_state": seed} | ({} if name in ("ridge", "lr") else {"n_jobs": 1})
    return made.set_params(**usual | parameters)


def demanded(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters that have no default."""
    return [k for k, p in inspect.signature(function).parameters.items() if p.default is p.empty]


def fold_of(target: Vector, stratified: bool = False) -> np.ndarray:
    """Return the fold of each of n rows: five blocks of consecutive rows, of all or of each arm."""
    n = np.unique(target, return_counts=True)[1].max().item() if stratified else len(target)
    rule = f"{FOLDS} folds need at least {FOLDS} rows{' of one arm' * stratified}"
    check(n >= FOLDS, rule, n)
    found = np.empty(len(target), dtype=int)
    splits = (StratifiedKFold if stratified else KFold)(FOLDS).split(target, target)
    for fold, (_, rows) in enumerate(splits):
        found[rows] = fold
    return found


def dealt(n: int, folds: int = FOLDS) -> np.ndarray:
    """Return the fold of each of n rows, shuffled so that folds are alike in any order of rows."""
    # By a seed of its own, so that all that cross-fits the same rows has the same folds.
    return np.random.default_rng(0).permutation(n) % folds


def predict(model: Learner, features: Matrix) -> Vector:
    """Return a regressor's means, or a classifier's probabilities of the treatment."""
    found = model.predict_proba(features)[:, 1] if is_classifier(model) else model.predict(features)
    return np.asarray(found, dtype=float)


def fit(model: Learner, features: Matrix, target: Vector, weights: Vector | int = 1) -> Learner:
    """Fit a learner, and pass weights only if one of them differs from 1."""
    if len(target) == 0 or (is_classifier(model) and (target == target[0]).all()):
        rule = "each arm must have subjects in at least two folds (in both halves, for DML)"
        raise InputError(f"{rule}: found all in one")
    weighted = {"sample_weight": weights} if np.any(weights != 1) else {}
    return model.fit(features, target, **weighted)


@cached
def in_sample(model: Learner, covariates: Matrix, target: Vector) -> Vector:
    """Predict rows with a model that is fitted to all of them."""
    return predict(fit(clone(model), covariates, target), covariates)


@cached
def out_of_fold(
    model: Learner, covariates: Matrix, target: Vector, learned_from: Vector | bool = True
) -> Vector:
    """Predict each of n rows with a model fitted to the `learned_from` rows of the other folds."""
    folds, found = dealt(len(target)), np.empty(len(target))
    for fold in np.unique(folds):
        train, test = (folds != fold) & learned_from, folds == fold
        found[test] = predict(fit(clone(model), covariates[train], target[train]), covariates[test])
    return found


class Search(BaseEstimator):
    r"""A learner whose settings cross-validation chooses, like scikit-learn's searches.

    A classifier is scored by the mean AUC of the folds, a regressor by the mean R²,

    .. math:: 1 - \frac{\sum_{i \in f} (y_i - \hat y_i)^2}{S_f},

    where :math:`S_f` is the total sum of squares of fold `f`: of both arms in a T-learner, so that
    the arms can be searched independently. A fold in which the outcome does not vary is left out.

    Parameters
    ----------
    grid : dict or sequence of dict
        As for a `ParameterGrid`. Keys are parameters of this object: `learner__alpha`, `learner`.
    n_settings, seed : int, optional
        How many settings to draw, by default all (the paper: 20), and the seed of the draw.
    scored : bool
        Score even a single setting, although there is nothing to choose.
    """

    def __init__(
        self,
        learner: Learner,
        grid: Any = ({},),
        n_settings: int | None = None,
        seed: int = 0,
        scored: bool = True,
    ):
        self.learner, self.grid = learner, grid
        self.n_settings, self.seed, self.scored = n_settings, seed, scored

    def settings(self) -> list[Learner]:
        """Return an unfitted learner for every setting of the grid."""
        # Values in the grid are copied, too: settings that share a learner would equal the last.
        every = map(copy.deepcopy, ParameterGrid(self.grid))
        return [Search(clone(self.learner)).set_params(**one).learner for one in every]

    def fit(
        self, features: Matrix, target: Vector, sample_weight: Vector | int = 1, refit: bool = True
    ) -> Self:
        """Choose a setting and, if `refit` is true, fit it to all rows."""
        # Arms have the same shares in every fold as in all rows, as in scikit-learn's searches.
        rows = rows_of(features, target, sample_weight, is_classifier(self.learner))
        self.best_score_ = fit_jointly([self], [rows], refit)
        return self

    def predict(self, features: Matrix) -> Vector:
        """Return means, or probabilities of the treatment."""
        return predict(self.best_estimator_, features)

    def takes_missing(self) -> bool:
        """Say whether all settings accept missing features."""
        return all(get_tags(setting).input_tags.allow_nan for setting in self.settings())

    def in_words(self) -> str:
        """Describe the chosen setting, or name the learner if there was no choice."""
        if len(ParameterGrid(self.grid)) == 1 or not hasattr(self, "best_params_"):
            return type(self.learner).__name__
        chosen = self.best_params_.items()
        return ", ".join(f"{key.removeprefix('learner__')} {value}" for key, value in chosen)


def as_search(given: Learner, scored: bool = True) -> Search:
    """Return a copy of a search (its shared parts are never fitted), or a search of one setting."""
    search = copy.copy(given) if isinstance(given, Search) else Search(given)
    search.scored &= scored
    return search


def rows_of(
    features: Matrix, target: Vector, weights: Vector | int = 1, stratified: bool = False
) -> Rows:
    """Return the total sum of squares of each fold, and the data of the rows.

    Sums are about the mean of the fold. The rows have features, a target, a fold and a weight each.
    """
    folds = fold_of(target, stratified)
    weights = np.ones(len(target)) * weights
    parts = [(target[folds == fold], weights[folds == fold]) for fold in range(FOLDS)]
    scale = [w @ (y - np.average(y, weights=w)) ** 2 if varies(y) else 0.0 for y, w in parts]
    return np.array(scale), features, target, folds, weights


def fit_jointly(searches: list[Search], rows: list[Rows], refit: bool = True) -> float:
    """Choose the settings that are best together, fit them if asked to, and return their score.

    A random search draws settings from the joint grid, so that the choice of one search restricts
    the choice of the other. The score is nan if nothing is chosen or scored.
    """
    settings, score = [search.settings() for search in searches], np.nan
    sizes, first = [len(each) for each in settings], searches[0]
    best = [0] * len(sizes)
    if max(sizes) > 1 or any(search.scored for search in searches):
        joint = np.arange(np.prod(sizes))
        if drawn := first.n_settings is not None and first.n_settings < len(joint):
            # This is how scikit-learn's ParameterSampler draws, so its users get the same settings.
            seed = {"random_state": first.seed}
            joint = np.sort(sample_without_replacement(len(joint), first.n_settings, **seed))
        places, total = np.unravel_index(joint, sizes), np.zeros(len(joint))
        for each, own, which in zip(settings, rows, places, strict=True):
            used, place = np.unique(which, return_inverse=True)
            # No race in a draw: one search's best setting may only occur with a bad one of another.
            total = total + cross_validated([each[k] for k in used], own, not drawn)[place]
        best = [which[total.argmax()] for which in places]
        score = float(total.max()) + (not is_classifier(settings[0][0]))
    for search, each, k, own in zip(searches, settings, best, rows, strict=True):
        _, features, target, _, weights = own
        search.best_params_ = list(ParameterGrid(search.grid))[k]
        search.best_estimator_ = fit(each[k], features, target, weights) if refit else each[k]
    return score


def fit_arms(
    searches: list[Search], covariates: Matrix, treatment: Vector, outcome: Vector, *, refit: bool
) -> float:
    """Choose settings of the outcome models of both arms by their joint R², and fit them."""
    scale, *rows = rows_of(covariates, outcome)
    arms = [(scale, *(column[treatment == arm] for column in rows)) for arm in (0, 1)]
    return fit_jointly(searches, arms, refit)


@cached
def cross_validated(settings: list[Learner], rows: Rows, race: bool = False) -> Vector:
    """Return the AUC of every setting, or its R² less 1.

    In a race of regression trees (Maron and Moore 1994, *Hoeffding races*, NeurIPS 6), a setting
    that is ruled out early has a score of minus infinity. Large forests of one size are ruled out
    by their trees so far, other models of trees fold by fold. Other learners do not race: their
    settings differ by little in most rows, and by the same amount in all rows of a fold.
    """
    scale, features, target, folds, weights = rows
    features, classes = np.asarray(features), is_classifier(settings[0])
    race = race and all(isinstance(one, RandomForestRegressor | XGBRegressor) for one in settings)
    racing = np.arange(len(settings))
    used = [fold for fold in np.unique(folds) if classes or scale[fold]]
    if classes and any(len(np.unique(target[folds == fold])) < 2 for fold in used):
        raise InputError("every fold needs subjects of both arms: found a fold with one only")
    if not used:
        check(len(settings) == 1, "to choose settings by R², outcomes must vary in a fold", "none")
        return np.array([np.nan])
    scores, losses = np.zeros(len(settings)), np.zeros((len(settings), len(target)))
    sizes = {type(each) is RandomForestRegressor and each.n_estimators for each in settings}
    if grow := race and len(sizes) == 1 and max(sizes) > 2 * FEWEST:
        scores, racing = _grown(settings, used, (scale, features, target, folds, weights))
    for fold in [] if grow else used:
        train, test = folds != fold, folds == fold
        seen = features[train], target[train], weights[train]
        for i in racing:
            found = predict(fit(clone(settings[i]), *seen), features[test])
            if classes:
                scores[i] += roc_auc_score(target[test], found)
            else:
                squares = (target[test] - found) ** 2
                scores[i] -= weights[test] @ squares / scale[fold]
                losses[i, test] = weights[test] * squares / scale[fold]
        if race:
            racing = _still_racing(racing, losses[:, folds <= fold])
    scores[np.setdiff1d(np.arange(len(settings)), racing)] = -np.inf
    # All folds that vary in either arm count, also if one arm is absent from a fold.
    return scores / np.count_nonzero(scale)


def _grown(settings: list[Learner], used: list[int], rows: Rows) -> tuple[np.ndarray, ...]:
    """Grow forests of one size while they may be the best; return scores and settings left."""
    scale, features, target, folds, weights = rows
    features = features.astype(np.float32)  # as every tree would convert them
    size, racing = settings[0].n_estimators, np.arange(len(settings))
    forests = {
        at: (clone(settings[at[0]]), list[Vector]()) for at in itertools.product(racing, used)
    }
    for total in [*range(FEWEST, size, size // 4), size]:
        scores, by_tree = np.zeros(len(settings)), np.zeros((len(settings), total))
        for i, fold in itertools.product(racing, used):
            train, test = folds != fold, folds == fold
            forest, trees = forests[i, fold]
            unseen = features[test]
            forest.set_params(n_estimators=total, warm_start=True)
            fit(forest, features[train], target[train], weights[train])
            trees += [tree.predict(unseen) for tree in forest.estimators_[len(trees) :]]
            loss, each = _losses(np.array(trees), size, target[test], weights[test])
            scores[i] -= loss / scale[fold]
            by_tree[i] += each / scale[fold]
        if total < size:
            racing = _still_racing(racing, by_tree, 1 - total / size)
    return scores, racing


def _losses(trees: Matrix, size: int, target: Vector, weights: Vector) -> tuple[float, Vector]:
    r"""Return the loss of a forest's first B trees, and what each adds to the whole forest's loss.

    The expected squared error of B trees is :math:`E_\infty + V / B`, with V the variance between
    trees. The derivative of this error by each tree's prediction tells how it depends on chance.
    """
    n, mean = len(trees), trees.mean(axis=0)
    apart, error = trees - mean, target - mean
    gain = trees.var(axis=0, ddof=1) * (1 / n - 1 / size)
    return float(weights @ error**2), (error**2 - gain - 2 * apart * error) @ weights / n


def _still_racing(racing: np.ndarray, losses: np.ndarray, left: float = 1.0) -> np.ndarray:
    """Rule out settings whose losses, one row each, exceed the best setting's by more than chance.

    The share `left` of the variance of a sum of losses is still undecided.
    """
    losses = losses[racing]
    if losses.shape[1] < FEWEST:
        return racing
    behind = losses - losses[losses.sum(axis=1).argmin()]
    chance = behind.std(axis=1, ddof=1) * (losses.shape[1] * left) ** 0.5
    return racing[np.flatnonzero(behind.sum(axis=1) <= CLEARLY_WORSE * chance)]
