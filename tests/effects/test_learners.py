"""Choosing settings: shared, independent by arm, and the same as an exhaustive search."""

import itertools

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterSampler

from lib.effects.estimators import TLearner
from lib.effects.learners import Search, fold_of, learner
from lib.errors import InputError


@pytest.fixture(autouse=True)
def own_results(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(103, 8))
    a = (rng.random(103) < 0.3).astype(float)
    return x, a, x[:, 0] * (1 + a) + 2 * rng.normal(size=103)


def test_folds_are_those_of_scikit_learn():
    for fold, (_, test) in enumerate(KFold(5).split(np.zeros(103))):
        assert np.flatnonzero(fold_of(103) == fold).tolist() == test.tolist()


def test_search_agrees_with_grid_search(data):
    x, a, y = data
    alphas, penalties = [0.1, 10.0, 100.0], [0.001, 0.1, 10.0]
    theirs = GridSearchCV(Ridge(), {"alpha": alphas}, cv=KFold(5)).fit(x, y)
    ours = Search([Ridge(alpha) for alpha in alphas]).fit(x, y)
    assert ours.model_.alpha == theirs.best_params_["alpha"]
    assert ours.score_ == pytest.approx(theirs.best_score_)
    model = LogisticRegression()
    theirs = GridSearchCV(model, {"C": penalties}, cv=KFold(5), scoring="roc_auc").fit(x, a)
    ours = Search([LogisticRegression(C=penalty) for penalty in penalties]).fit(x, a)
    assert theirs.best_params_["C"] == ours.model_.C
    assert ours.score_ == pytest.approx(theirs.best_score_)


def joint_scores(data, alphas):
    """R² of every pair of settings, by fitting every pair."""
    x, a, y = data
    scores = {}
    for pair in itertools.product(alphas, repeat=2):
        folds = []
        for train, test in KFold(5).split(x):
            found = np.empty(len(test))
            for arm, alpha in enumerate(pair):
                rows = train[a[train] == arm]
                found[a[test] == arm] = (
                    Ridge(alpha).fit(x[rows], y[rows]).predict(x[test][a[test] == arm])
                )
            folds.append(r2_score(y[test], found))
        scores[pair] = np.mean(folds)
    return scores


def test_arms_searched_independently_are_the_joint_grid(data):
    alphas = [0.01, 3.0, 30.0, 300.0]
    scores = joint_scores(data, alphas)
    searches = [Search([Ridge(alpha) for alpha in alphas]) for _ in range(2)]
    found = TLearner(control=searches[0], treated=searches[1]).fit(*data)
    best = max(scores, key=scores.get)
    assert (found.control.model_.alpha, found.treated.model_.alpha) == best
    assert found.score_ == pytest.approx(scores[best])


def test_random_search_picks_the_best_of_the_pairs_it_drew(data):
    alphas = [0.01, 3.0, 30.0, 300.0]
    scores = joint_scores(data, alphas)
    searches = [Search([Ridge(alpha) for alpha in alphas], 5, seed=4) for _ in range(2)]
    found = TLearner(control=searches[0], treated=searches[1]).fit(*data)
    # As scikit-learn's own search would have drawn them.
    grid = {"base_estimator0": alphas, "base_estimator1": alphas}
    drawn = ParameterSampler(grid, 5, random_state=4)
    best = max((tuple(s[key] for key in grid) for s in drawn), key=scores.get)
    assert (found.control.model_.alpha, found.treated.model_.alpha) == best


def test_raced_forests_choose_and_score_as_whole_ones():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3))
    y = x[:, 0] * 3 + rng.normal(size=400)
    leaves = [1, 5, 60]
    forests = [RandomForestRegressor(60, min_samples_leaf=k, random_state=0) for k in leaves]
    theirs = GridSearchCV(forests[0], {"min_samples_leaf": leaves}, cv=KFold(5)).fit(x, y)
    ours = Search(forests).fit(x, y)
    assert ours.model_.min_samples_leaf == theirs.best_params_["min_samples_leaf"]
    assert ours.score_ == pytest.approx(theirs.best_score_, abs=1e-6)


def test_xgboost_takes_the_names_of_its_own():
    assert learner("xgbr", eta=0.3, max_depth=3).get_params()["eta"] == 0.3


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="5 folds need at least 5 rows: found 3"):
        fold_of(3)


def test_a_fold_of_one_arm_is_refused():
    with pytest.raises(InputError, match="a fold with one only"):
        Search(LogisticRegression()).fit(np.zeros((10, 1)), np.repeat([0.0, 1.0], 5))


def test_what_is_neither_chosen_nor_scored_is_not_cross_validated():
    x, a = np.arange(10.0)[:, None], np.repeat([0.0, 1.0], 5)
    search = Search(LogisticRegression(), scored=False).fit(x, a)  # no fold has both arms
    assert np.isnan(search.score_)
    assert search.predict(x) == pytest.approx(LogisticRegression().fit(x, a).predict_proba(x)[:, 1])
    two = Search([Ridge(1), Ridge(100)], scored=False).fit(x, x[:, 0])
    assert two.score_ > 0, "a choice needs scores"
