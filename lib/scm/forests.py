"""Evaluate forests for many rows at once: bit for bit like scikit-learn, several times as fast.

For a single row, a tree is a chain of questions, and a processor that mispredicts an answer has to
start again. Here each question is asked of all rows at once, and its answers are stored as bits,
64 rows to a word. The rows that reach a node are bits, too, so one *and* passes 64 of them on. Many
nodes ask the same question, and the whole forest asks it only once. QuickScorer [1]_ uses such bits
for the leaves of a tree, one row at a time.

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

#: Words that pass through all trees together: the data of this many rows stay in a cache.
WORDS = 64

#: With more distinct questions per tree than this, nodes share so few of them that evaluating the
#: trees row by row is faster.
MOST_QUESTIONS = 40

NOBODY, EVERYBODY, ONE = np.array([0, 2**64 - 1, 1], dtype=np.uint64)


class Forest:
    """The trees of a fitted scikit-learn forest, as arrays over all their nodes.

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
        self.starts = np.cumsum([0, *(tree.node_count for tree in self.trees)])
        yes, no, features, thresholds, values = (
            np.concatenate([getattr(tree, name) for tree in self.trees])
            for name in ("children_left", "children_right", "feature", "threshold", "value")
        )
        self.values, self.yes, self.no = values[:, 0].T.copy(), yes, no
        # The largest single-precision number up to each threshold: for numbers of that precision,
        # a comparison with it has the same result as one with the threshold.
        most = thresholds.astype(np.float32)
        most = np.where(most > thresholds, np.nextafter(most, np.float32(-np.inf)), most)
        #: A question is a pair of a feature and a number: is the feature at most this number?
        asking, pairs = yes >= 0, np.array([features, most]).T
        self.questions, asked = np.unique(pairs[asking], axis=0, return_inverse=True)
        #: The question that each node asks, by position; leaves ask none.
        self.asked = np.zeros(len(yes), dtype=np.int32)
        self.asked[asking] = asked.ravel()

    def means(self, rows: np.ndarray) -> np.ndarray:
        """Return the means over trees, (outputs, n), for single-precision rows, (n, features)."""
        # Rows that share a leaf of one tree share most of their paths through the others. Placing
        # them side by side empties words sooner and lets a processor predict better.
        order = self.trees[0].apply(rows).argsort(kind="stable")
        means, columns = np.empty((len(self.values), len(rows))), np.take(rows.T, order, axis=1)
        if len(self.questions) <= MOST_QUESTIONS * len(self.trees):
            nodes = self.starts, self.yes, self.no, self.asked, self.values
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
    # Compiles the loops at their first call, and keeps the result on disk where that is possible.
    plain = kept = numba.njit(nogil=True)(loops)
    with contextlib.suppress(RuntimeError):  # no cache folder is writable
        kept = numba.njit(nogil=True, cache=True)(loops)

    @functools.wraps(loops)
    def call(*arguments: Any) -> Any:
        with contextlib.suppress(Exception):  # the cache may be damaged, or the disk full
            return kept(*arguments)
        return plain(*arguments)

    return call


@_compiled
def _sums(bits: Any, starts: Any, yes: Any, no: Any, asked: Any, values: Any) -> Any:
    """Sum, tree by tree, the values of the leaves that the rows reach; shape (outputs, rows)."""
    sums = np.zeros((len(values), 64 * bits.shape[1]))
    reached = np.empty((np.diff(starts).max(), WORDS), dtype=np.uint64)
    by_anybody = np.ones(len(reached), dtype=np.bool_)
    for begin in range(0, bits.shape[1], WORDS):
        answers, out = bits[:, begin : begin + WORDS].copy(), sums[:, 64 * begin :]
        width, reached[0] = answers.shape[1], EVERYBODY
        for tree in range(len(starts) - 1):
            by_anybody[1:] = False
            for node in range(starts[tree], starts[tree + 1]):
                place = node - starts[tree]
                if not by_anybody[place]:
                    continue
                here = reached[place]
                if yes[node] >= 0:
                    answer = answers[asked[node]]
                    # The *xor* of answers and `turn` marks the rows that move on to the child.
                    for child, turn in ((yes[node], NOBODY), (no[node], EVERYBODY)):
                        there, some = reached[child], NOBODY
                        for word in range(width):
                            there[word] = here[word] & (answer[word] ^ turn)
                            some |= there[word]
                        by_anybody[child] = some != NOBODY
                else:
                    for k in range(len(values)):
                        to, value = out[k], values[k, node]
                        for word in range(width):
                            if here[word] != NOBODY:
                                for bit in range(64):
                                    is_here = (here[word] >> np.uint64(bit)) & ONE
                                    to[64 * word + bit] += value * is_here
    return sums
