"""Choosing settings: shared, independent by arm, and the same as an exhaustive search."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold, ParameterSampler, StratifiedKFold

from lib.effects import learners
from lib.effects.estimators import RLearner, TLearner
from lib.effects.learners import (
    Search,
    cross_validated,
    fit,
    fold_of,
    learner,
    rows_of,
)
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


@pytest.mark.parametrize("splitter", [KFold, StratifiedKFold])
def test_folds_are_those_of_scikit_learn(data, splitter):
    arm = data[1][:103]
    found = fold_of(arm, stratified=splitter is StratifiedKFold)
    for fold, (_, test) in enumerate(splitter(5).split(arm, arm)):
        assert np.flatnonzero(found == fold).tolist() == test.tolist()


def test_search_agrees_with_grid_search(data):
    x, a, y = data
    alphas, penalties = [0.1, 10.0, 100.0], [0.001, 0.1, 10.0]
    theirs = GridSearchCV(Ridge(), {"alpha": alphas}, cv=KFold(5)).fit(x, y)
    ours = Search(Ridge(), {"learner__alpha": alphas}).fit(x, y)
    assert ours.best_estimator_.alpha == theirs.best_params_["alpha"]
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    model = LogisticRegression()
    theirs = GridSearchCV(model, {"C": penalties}, cv=5, scoring="roc_auc").fit(x, a)
    ours = Search(model, {"learner__C": penalties}).fit(x, a)
    assert theirs.best_params_["C"] == ours.best_estimator_.C
    assert ours.best_score_ == pytest.approx(theirs.best_score_)


def test_weights_count_in_fits_and_in_scores(data):
    x, a, y = data
    w, folds = 1 + 4 * a, []
    for train, test in KFold(5).split(x):
        said = Ridge().fit(x[train], y[train], w[train]).predict(x[test])
        folds.append(r2_score(y[test], said, sample_weight=w[test]))
    found = Search(Ridge()).fit(x, y, w)
    assert found.best_score_ == pytest.approx(np.mean(folds))
    np.testing.assert_allclose(found.best_estimator_.coef_, Ridge().fit(x, y, w).coef_)


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


def chosen(fitted):
    return tuple(search.best_estimator_.alpha for search in (fitted.control_, fitted.treated_))


def test_arms_searched_independently_are_the_joint_grid(data):
    alphas = [0.01, 3.0, 30.0, 300.0]
    scores = joint_scores(data, alphas)
    search = Search(Ridge(), {"learner__alpha": alphas})
    found = TLearner(search, search).fit(*data)
    best = max(scores, key=scores.get)
    assert chosen(found) == best
    assert found.score_ == pytest.approx(scores[best])


def test_random_search_picks_the_best_of_the_pairs_it_drew(data):
    alphas = [0.01, 3.0, 30.0, 300.0]
    scores = joint_scores(data, alphas)
    search = Search(Ridge(), {"learner__alpha": alphas}, n_settings=5, seed=4)
    found = TLearner(search, search).fit(*data)
    # As scikit-learn's own search would have drawn them.
    grid = {"base_estimator0": alphas, "base_estimator1": alphas}
    drawn = ParameterSampler(grid, 5, random_state=4)
    best = max((tuple(s[key] for key in grid) for s in drawn), key=scores.get)
    assert chosen(found) == best


def forests(leaves):
    return Search(RandomForestRegressor(60, random_state=0), {"learner__min_samples_leaf": leaves})


@pytest.fixture
def steep():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(400, 3))
    return x, (rng.random(400) < 0.5).astype(float), x[:, 0] * 3 + rng.normal(size=400)


def test_a_race_chooses_and_scores_as_an_exhaustive_search(steep, monkeypatch):
    x, _, y = steep
    leaves, forest = [1, 5, 60], RandomForestRegressor(60, random_state=0)
    theirs = GridSearchCV(forest, {"min_samples_leaf": leaves}, cv=KFold(5)).fit(x, y)
    every = cross_validated(forests(leaves).settings(), rows_of(x, y))
    assert 1 + every == pytest.approx(theirs.cv_results_["mean_test_score"], abs=1e-6)
    fitted = []
    monkeypatch.setattr(learners, "fit", lambda *rows: fitted.append(rows[0]) or fit(*rows))
    ours = forests(leaves).fit(x, y)
    assert ours.best_estimator_.min_samples_leaf == theirs.best_params_["min_samples_leaf"]
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-6)
    of_60 = [model.n_estimators for model in fitted if model.min_samples_leaf == 60]
    assert of_60 == [10] * 5, "ruled out by its first trees"
    fitted.clear()
    rounds = Search(
        learner("xgbr", n_estimators=20),
        {"learner__max_depth": [2, 3], "learner__eta": [0.3, 1.0, 1.5]},
    )
    exhaustive = cross_validated(rounds.settings(), rows_of(x, y))
    fitted.clear()
    rounds.fit(x, y)
    assert rounds.best_score_ == 1 + exhaustive.max()
    assert len(fitted) < 5 * 6, "some are ruled out by the first folds"


def test_first_trees_foretell_the_loss_of_the_forest(steep):
    """And each tree tells how the loss would change with it."""
    x, _, y = steep
    train, test = slice(300), slice(300, 400)
    forest = RandomForestRegressor(400, min_samples_leaf=2, random_state=1).fit(x[train], y[train])
    trees = np.stack([tree.predict(x[test]) for tree in forest.estimators_])
    of_all, last = learners._losses(trees, 400, y[test], np.full(100, 0.01))
    assert of_all == pytest.approx(np.mean((forest.predict(x[test]) - y[test]) ** 2))
    assert last.sum() == pytest.approx(of_all), "nothing is left to chance"
    of_ten, foretold = learners._losses(trees[:10], 400, y[test], np.full(100, 0.01))
    chance = foretold.std(ddof=1) * 10**0.5
    assert abs(foretold.sum() - of_all) < 2 * chance < 0.1
    assert of_ten > of_all + 0.05, "ten trees are worse than four hundred"


def test_a_race_is_lost_by_two_standard_errors():
    rng = np.random.default_rng(0)
    best, chance = rng.exponential(size=10_000), rng.normal(size=10_000)
    chance = (chance - chance.mean()) / chance.std()  # a standard error of 0.01
    losses = np.stack([best + 0.021 + chance, best + 0.019 + chance, best, best * 0])
    assert learners._still_racing(np.array([0, 1, 2]), losses).tolist() == [1, 2]
    assert learners._still_racing(np.array([2]), losses).tolist() == [2]
    # With three quarters of the trees known, chance has half of its reach.
    assert learners._still_racing(np.array([1, 2]), losses, 0.25).tolist() == [2]
    losses[0] -= 0.012
    assert learners._still_racing(np.array([0, 2]), losses, 0.25).tolist() == [0, 2]


def test_a_few_subjects_rule_nobody_out(steep):
    losses = np.array([[0.5, 0.5001, 0.5], [0.1, 0.1, 0.1001]])
    for few in (1, 2, 3):
        assert learners._still_racing(np.array([0, 1]), losses[:, :few]).tolist() == [0, 1]
    x, _, y = steep
    a = np.arange(400) % 2.0
    a[:79] = 0  # of the others, one is in the first fold
    found = TLearner(forests([1]), learner("xgbr", n_estimators=2, max_depth=2)).fit(x, a, y)
    assert np.isfinite(found.score_)
    both = Search(learner("xgbr", n_estimators=2), {"learner__max_depth": [1, 2]})
    assert np.isfinite(TLearner(both, both).fit(x, a, y).score_)


def test_a_draw_is_no_race(steep, monkeypatch):
    """A forest that a race rules out may be the best of the pairs that a draw has left."""
    monkeypatch.setattr("lib.effects.learners._still_racing", None)
    search = forests([1, 5, 60]).set_params(n_settings=2, seed=1)
    found = TLearner(search, search).fit(*steep)
    folds = []
    for train, test in KFold(5).split(steep[0]):
        arms, expected = steep[1], np.empty(len(test))
        for arm, fitted in enumerate((found.control_, found.treated_)):
            rows = train[arms[train] == arm]
            model = clone(fitted.best_estimator_).fit(steep[0][rows], steep[2][rows])
            expected[arms[test] == arm] = model.predict(steep[0][test][arms[test] == arm])
        folds.append(r2_score(steep[2][test], expected))
    assert found.score_ == pytest.approx(np.mean(folds), abs=1e-9)


def test_an_arm_that_a_fold_lacks_keeps_the_scale_and_the_number_of_folds(steep):
    """Sorted by treatment, as many tables are: the joint R² is still that of all rows."""
    x, a, y = steep
    order = np.argsort(a, kind="stable")
    x, a, y = x[order], a[order], y[order] + 3 * a[order]
    for model in (Ridge(), RandomForestRegressor(60, random_state=0)):
        search = Search(model, {"learner__random_state": [0, 1]})
        found = TLearner(search, search).fit(x, a, y)
        folds = []
        for train, test in KFold(5).split(x):
            expected = np.empty(len(test))
            for arm, fitted in enumerate((found.control_, found.treated_)):
                if (a[test] == arm).any():
                    rows = train[a[train] == arm]
                    model = clone(fitted.best_estimator_).fit(x[rows], y[rows])
                    expected[a[test] == arm] = model.predict(x[test][a[test] == arm])
            folds.append(r2_score(y[test], expected))
        assert found.score_ == pytest.approx(np.mean(folds), abs=1e-9)


def test_an_arm_in_one_fold_is_refused(data):
    x, _, y = data
    last = (np.arange(103) > 95).astype(float)
    with pytest.raises(
        InputError, match=r"least two folds \(in both halves, for DML\): found all in one"
    ):
        TLearner(Ridge(), Ridge()).fit(x, last, y)
    unscored = [Search(model, scored=False) for model in (Ridge(), LogisticRegression(), Ridge())]
    alone = (np.arange(103) == 50).astype(float)
    with pytest.raises(
        InputError, match=r"least two folds \(in both halves, for DML\): found all in one"
    ):
        RLearner(*unscored).fit(x, alone, y)
    # Cross-fitted rows are shuffled, so that an arm in the last rows is in all folds.
    assert np.isfinite(RLearner(*unscored).fit(x, last, y).effect(x)).all()


def test_a_fold_without_variation_is_left_out(data):
    x, _, y = data
    y = np.where(fold_of(y) == 2, 0.1, y)
    alphas = [1e6, 0.1, 10.0]
    found = Search(Ridge(), {"learner__alpha": alphas}).fit(x, y)
    scores = {
        alpha: np.mean(
            [
                r2_score(y[test], Ridge(alpha=alpha).fit(x[train], y[train]).predict(x[test]))
                for fold, (train, test) in enumerate(KFold(5).split(x))
                if fold != 2
            ]
        )
        for alpha in alphas
    }
    assert found.best_estimator_.alpha == max(scores, key=scores.get) != 1e6
    assert found.best_score_ == pytest.approx(max(scores.values()))


def test_an_outcome_without_variation_leaves_no_choice(data):
    x, y = data[0], np.repeat([3.0, 4.0, 5.0, 6.0, 7.0], [21, 21, 21, 20, 20])
    with pytest.raises(InputError, match="outcomes must vary in a fold: found 'none'"):
        Search(Ridge(), {"learner__alpha": [1, 2]}).fit(x, y)
    assert np.isnan(Search(Ridge()).fit(x, y).best_score_), "nothing to choose, nothing to say"


def test_a_search_is_of_scikit_learns_kind(data):
    search = Search(Ridge(), {"learner__alpha": [0.1, 10.0]}, seed=3)
    before = repr(search)
    search.fit(data[0], data[2])
    assert repr(search) == before
    again = clone(search)
    assert not hasattr(again, "best_estimator_")
    assert again.set_params(learner__fit_intercept=False, seed=5).get_params()["seed"] == 5
    assert [setting.fit_intercept for setting in again.settings()] == [False, False]


def test_one_search_can_have_learners_of_two_kinds(data):
    grid = [{"learner": [Ridge()], "learner__alpha": [1, 2]}, {"learner": [LinearRegression()]}]
    search = Search(Ridge(), grid)
    assert [type(setting).__name__ for setting in search.settings()] == [
        *("Ridge", "Ridge", "LinearRegression")
    ]
    assert [setting.alpha for setting in search.settings()[:2]] == [1, 2]
    assert grid[0]["learner"][0].alpha == 1.0, "what was given stays as it was"
    assert "learner Ridge" in search.fit(data[0], data[2]).in_words()


def test_no_fold_is_predicted_by_what_another_one_has_left_in_a_learner(data):
    cold = RandomForestRegressor(5, random_state=0)
    warm = clone(cold).set_params(warm_start=True)
    np.testing.assert_array_equal(
        *(learners.out_of_fold(one, data[0], data[2]) for one in (cold, warm))
    )


class Mine(Ridge):
    """Somebody's own learner, whose code may change from one day to the next."""

    bias = 0.0

    def predict(self, features):
        """Add what is thought fit today."""
        return super().predict(features) + self.bias


def test_what_somebodys_own_learner_gave_is_not_remembered(data, monkeypatch):
    for search in (
        Search(Mine(), {"learner__alpha": [1, 2]}),
        Search(Ridge(), {"learner": [Mine(1), Mine(2)]}),
    ):
        scores = []
        for bias in (0.0, 100.0):
            monkeypatch.setattr(Mine, "bias", bias)
            scores.append(search.fit(data[0], data[2]).best_score_)
        assert scores[1] < scores[0] - 100


def test_xgboost_takes_the_names_of_its_own_and_one_thread(data):
    made = learner("xgbr", eta=0.3, max_depth=3, n_estimators=2)
    assert (made.get_params()["eta"], made.n_jobs) == (0.3, 1)
    assert learners.predict(fit(made, data[0], data[2]), data[0]).dtype == float, "not float32"


def test_too_few_rows_are_refused():
    with pytest.raises(InputError, match="5 folds need at least 5 rows: found 3"):
        fold_of(np.zeros(3))
    with pytest.raises(InputError, match="5 folds need at least 5 rows of one arm: found 4"):
        fold_of(np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0]), stratified=True)


def test_tables_sorted_by_treatment_have_both_arms_in_every_fold(data):
    x, a, _ = data
    order = np.argsort(a, kind="stable")
    theirs = GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=5, scoring="roc_auc")
    ours = Search(LogisticRegression()).fit(x[order], a[order])
    assert ours.best_score_ == pytest.approx(theirs.fit(x[order], a[order]).best_score_, abs=1e-9)


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_fold_of_one_arm_is_refused():
    with pytest.raises(InputError, match="a fold with one only"):
        Search(LogisticRegression()).fit(np.zeros((10, 1)), np.repeat([0.0, 1.0], [7, 3]))


def test_what_is_neither_chosen_nor_scored_is_not_cross_validated():
    x, a = np.arange(10.0)[:, None], np.repeat([0.0, 1.0], 5)
    search = Search(LogisticRegression(), scored=False).fit(x, a)  # no fold has both arms
    assert np.isnan(search.best_score_)
    assert search.predict(x) == pytest.approx(LogisticRegression().fit(x, a).predict_proba(x)[:, 1])
    two = Search(Ridge(), {"learner__alpha": [1, 100]}, scored=False).fit(x, x[:, 0])
    assert two.best_score_ > 0, "a choice needs scores"


def test_a_fold_that_varies_in_the_last_bit_only_decides_nothing():
    target = np.r_[np.full(9, 0.3), 0.1 + 0.2, np.arange(40.0)]
    scale, *_ = rows_of(np.zeros((50, 1)), target)
    assert scale[0] == 0
    assert (scale[1:] > 0).all()
