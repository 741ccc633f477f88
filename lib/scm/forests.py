"""Forests evaluated for many rows at once: to the last bit scikit-learn's, several times as fast.

Row by row, a tree is a chain of questions, and a processor that guesses an answer wrong has to
begin again. Here each question is asked of all rows at once, and its answers are bits, 64 rows a
word. The rows that reach a node are bits, too, so that one *and* sends 64 of them on. Many nodes
ask the same question, which is asked once for the whole forest. QuickScorer [1]_ has such bits for
the leaves of a tree, row by row.

References
----------
.. [1] Lucchese, C. et al. (2015). QuickScorer: a fast algorithm to rank documents with additive
   ensembles of regression trees. SIGIR '15.
"""

import contextlib
import functools
from typing import Any

import numba
import numpy as np

#: Words that go through all trees together: what is known of so many rows stays in a cache.
WORDS = 64

#: Questions a tree, above which so few nodes ask the same that trees are sooner asked row by row.
MOST_QUESTIONS = 40

NOBODY, EVERYBODY, ONE = np.array([0, 2**64 - 1, 1], dtype=np.uint64)


class Forest:
    """The trees of a fitted forest of scikit-learn, as arrays of all their nodes.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> rows = np.arange(100, dtype=np.float32).reshape(50, 2)
    >>> fitted = RandomForestRegressor(n_estimators=10, random_state=0).fit(rows, rows[:, 0])
    >>> bool((Forest(fitted).means(rows)[0] == fitted.predict(rows)).all())
    True
    """

    def __init__(self, fitted: Any):
        self.trees = [one.tree_ for one in fitted.estimators_]
        sizes = [tree.node_count for tree in self.trees]
        self.starts = np.cumsum([0, *sizes])
        yes, no, features, thresholds, values = (
            np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("children_left", "children_right", "feature", "threshold", "value")
        )
        self.values, self.leaves = values[:, 0].T.copy(), yes < 0
        # A number of single precision is at most a threshold if it is at most this one.
        most = thresholds.astype(np.float32)
        most = np.where(most > thresholds, np.nextafter(most, np.float32(-np.inf)), most)
        asking, roots = np.flatnonzero(yes >= 0), self.starts[:-1].repeat(sizes)
        #: Pairs of a feature and a number: is the feature at most that?
        asked = np.array([features, most]).T[asking]
        self.questions, which = np.unique(asked, axis=0, return_inverse=True)
        #: Of each node its parent, by its place in the tree; the question asked there; and what
        #: turns the answers into those of whoever comes here.
        self.parents, self.asked = np.zeros((2, len(yes)), dtype=np.int32)
        self.turns = np.full(len(yes), NOBODY)
        for children, turn in ((yes, NOBODY), (no, EVERYBODY)):
            nodes = (children + roots)[asking]
            self.parents[nodes], self.asked[nodes] = asking - roots[asking], which.ravel()
            self.turns[nodes] = turn

    def means(self, rows: np.ndarray) -> np.ndarray:
        """Return the means over trees, (outputs, n), of rows in single precision, (n, features)."""
        # Rows that share a leaf of one tree share most of their way through the others: words are
        # empty sooner, and a processor guesses better.
        order = self.trees[0].apply(rows).argsort(kind="stable")
        means, columns = np.empty((len(self.values), len(rows))), np.take(rows.T, order, axis=1)
        if len(self.questions) <= MOST_QUESTIONS * len(self.trees):
            nodes = self.starts, self.parents, self.asked, self.turns, self.leaves, self.values
            sums = _sums(self._answers(columns), *nodes)[:, : len(rows)]
        else:
            sums = sum(tree.predict(columns.T) for tree in self.trees).T
        means[:, order] = sums / len(self.trees)
        return means

    def _answers(self, columns: np.ndarray) -> np.ndarray:
        """Return the answers to every question, (questions, words), for columns (features, n)."""
        n = columns.shape[1]
        answers = np.zeros((len(self.questions), -(-n // 64) * 64), dtype=bool)
        features, most = self.questions.T.astype(np.float32)
        for k in np.unique(features):
            answers[features == k, :n] = columns[int(k)] <= most[features == k, None]
        return np.packbits(answers, axis=1, bitorder="little").view(np.uint64)


def _compiled(loops: Any) -> Any:
    # When they are called first; and that is kept on disk where this can be.
    plain = kept = numba.njit(nogil=True)(loops)
    with contextlib.suppress(RuntimeError):  # no folder can be written
        kept = numba.njit(nogil=True, cache=True)(loops)

    @functools.wraps(loops)
    def call(*arguments: Any) -> Any:
        with contextlib.suppress(Exception):  # what is kept may be damaged, or the disk be full
            return kept(*arguments)
        return plain(*arguments)

    return call


@_compiled
def _sums(
    bits: Any, starts: Any, parents: Any, asked: Any, turns: Any, leaves: Any, values: Any
) -> Any:
    """Add up, tree by tree, the values of the leaves that rows reach, (outputs, rows)."""
    sums = np.zeros((len(values), 64 * bits.shape[1]))
    reached = np.empty((np.diff(starts).max(), WORDS), dtype=np.uint64)
    by_anybody = np.ones(len(reached), dtype=np.bool_)
    for begin in range(0, bits.shape[1], WORDS):
        answers, out = bits[:, begin : begin + WORDS].copy(), sums[:, 64 * begin :]
        width, reached[0] = answers.shape[1], EVERYBODY
        for tree in range(len(starts) - 1):
            for node in range(starts[tree], starts[tree + 1]):
                place, above = node - starts[tree], parents[node]
                by_anybody[place] = by_anybody[above]
                if not by_anybody[above]:
                    continue
                here = reached[place]
                if place > 0:
                    there, answer, some = reached[above], answers[asked[node]], NOBODY
                    for word in range(width):
                        here[word] = there[word] & (answer[word] ^ turns[node])
                        some |= here[word]
                    by_anybody[place] = some != NOBODY
                if leaves[node]:
                    for k in range(len(values)):
                        to, value = out[k], values[k, node]
                        for word in range(width):
                            if here[word] != NOBODY:
                                for bit in range(64):
                                    is_here = (here[word] >> np.uint64(bit)) & ONE
                                    to[64 * word + bit] += value * is_here
    return sums
