"""Forests are evaluated as scikit-learn does, to the last bit."""

import pickle
import runpy

import numba
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from lib.scm import forests
from lib.scm.forests import MOST_QUESTIONS, WORDS, Forest

FORESTS = {
    "numbers": RandomForestRegressor(7, min_samples_leaf=3, random_state=0),
    "levels": RandomForestClassifier(7, max_depth=5, random_state=0),
    "best nodes first": RandomForestRegressor(7, max_leaf_nodes=12, random_state=0),
    "stumps": RandomForestRegressor(7, max_depth=1, random_state=0),
    "questions hardly repeat": RandomForestRegressor(7, random_state=0),
    "leaves alone": RandomForestRegressor(7, min_samples_leaf=10_000, random_state=0),
}


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Two features of whole numbers, a truth value, and one that is never the same."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(90, size=n), rng.integers(4, size=n), rng.random(n) < 0.1]
    return np.stack([*columns, rng.normal(size=n)], dtype=np.float32).T


def fitted(name: str):
    seen = rows(500)
    target = np.round(seen[:, 0] / 30 + seen[:, 1] * seen[:, 2] + seen[:, 3])
    return FORESTS[name].fit(seen, target)


def expected(forest, asked: np.ndarray) -> np.ndarray:
    """What scikit-learn predicts, shape (n, outputs)."""
    if isinstance(forest, RandomForestClassifier):
        return forest.predict_proba(asked)
    return forest.predict(asked)[:, None]


@pytest.mark.parametrize("n", [1, 64, 65, 64 * WORDS, 64 * WORDS + 1, 10_000])
@pytest.mark.parametrize("name", FORESTS)
def test_means_are_those_of_scikit_learn(name, n):
    forest, asked = fitted(name), rows(n, seed=1)
    found = Forest(forest).means(asked)
    assert (expected(forest, asked) == found.T).all()
    if n > 1 and name != "leaves alone":
        assert len(np.unique(found, axis=1).T) > 1, "there is something to tell apart"


def test_questions_that_hardly_repeat_are_asked_row_by_row(monkeypatch):
    monkeypatch.setattr(forests, "_sums", lambda *_: pytest.fail("all rows are asked at once"))
    for name in FORESTS:
        forest = Forest(fitted(name))
        if len(forest.questions) > 7 * MOST_QUESTIONS:
            assert name == "questions hardly repeat" and forest.means(rows(10)).shape == (1, 10)
        else:
            assert name != "questions hardly repeat"


def test_a_row_is_alike_in_whatever_company():
    forest, asked = Forest(fitted("numbers")), rows(5_000)
    assert (forest.means(asked[1_234:1_240]) == forest.means(asked)[:, 1_234:1_240]).all()


def test_nobody_is_asked():
    assert Forest(fitted("levels")).means(rows(0)).shape[1] == 0


def test_a_threshold_between_two_numbers_of_single_precision_parts_them():
    one = np.float32(1_000.1)
    above = np.nextafter(one, np.float32(2_000))
    asked = np.array([[one], [above]])
    forest = RandomForestRegressor(1, bootstrap=False).fit(
        asked.repeat(5, axis=0), [0] * 5 + [1] * 5
    )
    (threshold,) = {*forest.estimators_[0].tree_.threshold} - {-2.0}
    assert one < threshold < above
    assert Forest(forest).means(asked).tolist() == [[0.0, 1.0]]


def test_it_survives_a_copy_by_bytes():
    forest, asked = Forest(fitted("numbers")), rows(100)
    again = pickle.loads(pickle.dumps(forest))
    assert (again.means(asked) == forest.means(asked)).all()


def test_loops_are_the_same_before_they_are_compiled(monkeypatch):
    forest, asked = Forest(fitted("levels")), rows(70)
    compiled = forest.means(asked)
    monkeypatch.setattr(forests, "_sums", forests._sums.__wrapped__)
    assert (forest.means(asked) == compiled).all()


@pytest.mark.parametrize(
    ("made", "called"),
    [
        (RuntimeError("cannot cache function: no locator available"), None),
        (None, EOFError("Ran out of input")),
        (None, OSError(28, "No space left on device")),
    ],
    ids=repr,
)
def test_loops_are_compiled_all_the_same_where_nothing_can_be_kept(monkeypatch, made, called):
    def njit(cache=False, **options):
        def compiled(loops):
            return broken if cache else lambda number: -number

        if cache and made:
            raise made
        return compiled

    def broken(number):
        raise called

    monkeypatch.setattr(numba, "njit", njit)
    assert forests._compiled(abs)(3) == -3


def test_what_is_kept_may_be_damaged(tmp_path, monkeypatch):
    """An empty index, as a loss of power may leave it, ends no computation."""
    # Loops that compile ten times as fast as those of forests.
    loops = tmp_path / "loops.py"
    loops.write_text(
        "from lib.scm.forests import _compiled\n\n\n@_compiled\ndef doubled(x):\n    return 2 * x\n"
    )
    kept = tmp_path / "kept"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(kept))
    for _ in range(2):
        # Compiled anew, as in another process: nothing but the folder is shared by the two.
        assert runpy.run_path(str(loops))["doubled"](21) == 42
        indices = list(kept.rglob("*.nbi"))
        assert indices
        for index in indices:
            index.write_bytes(b"")
