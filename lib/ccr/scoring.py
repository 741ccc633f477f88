r"""Scores: how right a reasoner is, rung by rung, and whether its answers fit together.

**Accuracy** is counted rung by rung, and also separately for interventional prompts whose answer
the intervention changes and for those whose answer it does not. A reasoner that ignores
interventions is right on the latter, and one that merely echoes what the cause is set to is right
on the former. A good reasoner must be right on both.

**Quantities.** The answers to a task with n samples are :math:`\hat y_i` to the factual question,
and :math:`\hat y_{x,i}` and :math:`\hat y_{\lnot x,i}` to the pair of interventional questions.
From them, every quantity is estimated by its definition, for instance

.. math::
    \widehat{\mathrm{ATE}} = \frac1n \sum_i (\hat y_{x,i} - \hat y_{\lnot x,i}), \qquad
    \widehat{\mathrm{PNS}} = \frac1n \sum_i \hat y_{x,i} (1 - \hat y_{\lnot x,i}).

The two agree if no answer turns from yes to no when the cause is made true, and no true answer
does. For a careless reasoner, the second adds errors up. The benchmark's PNS is the first [1]_.

**External validity** [1]_ compares an estimate with the truth. The *relative absolute error*

.. math:: \mathrm{RAE}(q, \hat q) = |q - \hat q| / |q|

must be at most δ. The truth is exact here, while the samples have luck of their own. But the
true answers to the very same samples are known, so this luck can be taken out. The estimate

.. math:: \tilde q = q + (\hat q - \hat q_{\text{true answers}})

has the same expectation as :math:`\hat q`, has no variance at all for a reasoner without fault, and
is compared with the truth. The ATE of a reasoner that always says yes is 0 in all samples; to this
ATE, the correction adds their luck. (``luck=True`` leaves the estimate as it is, as the reference
implementation does, whose truth is an estimate, too.)

**Internal consistency** [1]_ compares a reasoner only with itself. A composition is consistent if
the RAE between the reasoner's global quantity and its product along a path of the cut tree is at
most `multiplier` times the RAE that the true answers to these samples have. Where the reasoner's
global quantity, or that of the true answers, is estimated as zero, the composition is *undefined*.

**Refusals.** Where facts are withheld, a third answer is that the answer cannot be known. This
refusal is scored on its own: how often it is right where it is given, how often it is given where
it is right, and how often a definite answer is given there instead, which is *overconfident*.

**Intervals** are percentiles of the bootstrap over samples [2]_: with few samples a world they are
too narrow, and with one they have no width. Nor has that of a share of exactly 0 or 1: read it as
"less than about 3 in n". An unparseable answer counts as the wrong one of *yes* and *no*.

References
----------
.. [1] Maasch, J. R. M. A. et al. (2025). Compositional causal reasoning evaluation in language
   models. ICML 2025, arXiv:2503.04556.
.. [2] Efron, B. and Tibshirani, R. J. (1993). An introduction to the bootstrap. Chapter 13.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from lib.ccr.answers import UNPARSEABLE, checked
from lib.ccr.brute_force import defined
from lib.ccr.exact import COLUMNS
from lib.ccr.graphs import Chain
from lib.ccr.questions import ANSWERS, KINDS
from lib.ccr.tasks import Task, Tasks
from lib.errors import check, check_count, check_known
from lib.noise import uniforms
from lib.workers import one_thread

#: The rungs on which accuracy is counted. Every interventional prompt is on two of them: one by the
#: value that the cause is set to, and one by whether this changes the answer.
RUNGS = ("factual", "cause made true", "cause made false", "changed", "unchanged")

#: A metric is a function of the number of prompts by their true answer (first axis) and the answer
#: that was given (second axis), of which the unparseable one is last.
Metric = Callable[[np.ndarray], np.ndarray]

#: The metrics of the answers on a rung; "yes" is the positive answer.
METRICS: dict[str, Metric] = {
    "accuracy": lambda n: (n[0, 0] + n[1, 1]) / n.sum((0, 1)),
    "precision": lambda n: n[1, 1] / (n[1, 1] + n[0, 1] + n[0, -1]),
    "recall": lambda n: n[1, 1] / n[1].sum(0),
    "F1": lambda n: 2 * n[1, 1] / (n[1].sum(0) + n[1, 1] + n[0, 1] + n[0, -1]),
    "unparseable": lambda n: n[:, -1].sum(0) / n.sum((0, 1)),
}

#: The metrics where facts are withheld; a refusal is the answer "Cannot be known".
REFUSALS: dict[str, Metric] = {
    "accuracy": lambda n: (n[0, 0] + n[1, 1] + n[2, 2]) / n.sum((0, 1)),
    "accuracy when answering": lambda n: (n[0, 0] + n[1, 1]) / n[:, :2].sum((0, 1)),
    "precision of refusals": lambda n: n[2, 2] / n[:, 2].sum(0),
    "recall of refusals": lambda n: n[2, 2] / n[2].sum(0),
    "overconfidence": lambda n: n[2, :2].sum(0) / n[2].sum(0),
    "unparseable": METRICS["unparseable"],
}

#: Rounding alone must not make an error larger than a bound, as between a product and the same in
#: another order.
ROUNDING = 1e-12

#: The cells of the taxonomy: external validity combined with internal consistency.
CELLS = tuple(itertools.product(("valid", "invalid"), ("consistent", "inconsistent", "undefined")))


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of one reasoner, as tidy tables.

    Parameters
    ----------
    answers : sequence of numpy.ndarray, shape (questions, samples), one per task
        1, 0, :data:`~lib.ccr.answers.UNPARSEABLE` or, where facts are withheld, 2. Several rounds
        of answers follow one another, shape (questions, times x samples), and are averaged.
    delta : float
        The largest RAE that is externally valid; 0.1 in the paper.
    multiplier : float
        The largest internally consistent RAE, as a multiple of the true answers'; 1.1 to 1.25.
    measure : {'ATE', 'PNS'}
        The quantity that is composed, from average differences or from pairs of yes and no.
    luck : bool
        Whether estimates that are compared with the truth keep the luck of the samples.
    most_compositions, n_resamples, seed : int
        How many compositions at most (:func:`some_compositions`), how many resamples; their seed.
    level : float
        The share of resamples that lie within an interval.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> from lib.ccr.reasoners import REASONERS
    >>> tasks = generate("candy_party", [3, 3], n_tasks=5, n_samples=50)
    >>> scores = Scores(tasks, REASONERS["perfect"].answers(tasks))
    >>> scores.accuracy.query("metric == 'accuracy'")["value"].tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    tasks: Tasks
    answers: Sequence[np.ndarray] = field(repr=False)
    delta: float = 0.1
    multiplier: float = 1.1
    measure: str = "ATE"
    luck: bool = False
    most_compositions: int = 100
    level: float = 0.95
    n_resamples: int = 1_000
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "answers", checked(self.tasks, self.answers))
        check_known("measure", self.measure, ("ATE", "PNS"))
        check(self.delta >= 0, "delta must be at least 0", self.delta)
        check(self.multiplier >= 1, "multiplier must be at least 1", self.multiplier)
        check_count("most_compositions", self.most_compositions, least=1)
        check_count("n_resamples", self.n_resamples, least=1)
        check(0 < self.level < 1, "level must lie between 0 and 1", self.level)

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """One row per rung and metric: `value`, `low`, `high`, and the number of `prompts`.

        The rungs are those of :func:`rungs`. `prompts` counts all prompts on the rung, even if a
        metric, such as precision, uses only some. A quotient with a denominator of zero is NaN.
        """
        on = [rungs(task) for task in self.tasks.tasks]
        metrics = REFUSALS if len(self._counts) == 3 else METRICS
        with np.errstate(invalid="ignore"):
            values = np.stack([metric(self._counts) for metric in metrics.values()], axis=-1)
        frame = pd.DataFrame(itertools.product(on[0], metrics), columns=["rung", "metric"])
        prompts = [sum(task[rung].sum() for task in on) for rung in frame["rung"]]
        return frame.assign(**self._interval(values, "value"), prompts=prompts)

    @property
    def confusion(self) -> pd.DataFrame:
        """The number of prompts by their true answer (row) and the answer given (column)."""
        n = len(self._counts)
        every = 1 if n == 3 else 3  # the first so many rungs together hold every prompt once
        counts = self._counts[:, :, 0, :every].sum(axis=-1).astype(int)
        return pd.DataFrame(counts, ANSWERS[:n], [*ANSWERS[:n], "unparseable"])

    @cached_property
    @one_thread()
    def _counts(self) -> np.ndarray:
        """The number of prompts by true answer, given answer, resample and rung."""
        counts = np.zeros(())
        for task, grid in zip(self.tasks.tasks, self.answers, strict=True):
            given, truth = grid.reshape(len(grid), -1, task.n_samples), task.labels[:, None]
            answers, on = range(len(task.answers)), np.array([*rungs(task).values()])[:, :, None]
            pairs = [(truth == a) & (given == b) for a in answers for b in (*answers, UNPARSEABLE)]
            # Sums over the questions, and over the rounds of answers to each.
            by_sample = np.array([(on & pair).sum((1, 2)) for pair in pairs], np.float32)
            counts = counts + (self._resamples(task) @ by_sample.transpose(0, 2, 1)).astype(float)
        return counts.reshape(len(answers), len(answers) + 1, *counts.shape[1:])

    @cached_property
    def quantities(self) -> pd.DataFrame:
        """One row per task, pair and quantity: truth, estimates, RAE, and whether the RAE is valid.

        `exact` is the truth. `labels` is estimated from the true answers to the samples, `answers`
        from the reasoner's. A value conditional on what no answer says or relative to zero is NaN.
        """
        frames = []
        for task, answers, labels, compared in self._estimated:
            keys = {"var_name": "quantity", "value_name": "exact", "ignore_index": False}
            frame = task.quantities.melt(**keys).reset_index()
            frame.insert(0, "task", task.number)
            rae = _rae(task.quantities.to_numpy().T, compared)
            columns = self._interval(answers, "answers") | self._interval(rae, "RAE", "RAE, ")
            frames.append(frame.assign(labels=labels[0].ravel(), **columns))
        frame = pd.concat(frames, ignore_index=True)
        valid = (frame["RAE"] <= self.delta + ROUNDING).astype("boolean")
        return frame.assign(valid=valid.mask(frame["RAE"].isna()))

    @property
    def compositions(self) -> pd.DataFrame:
        """One row per task and composition: its product, RAEs, and cell of the taxonomy.

        `exact` is the true global quantity; `global` and `product` are the reasoner's estimates.
        `external RAE` compares the product with the truth, `internal RAE` compares it with the
        reasoner's own global quantity, and `threshold` is the largest consistent internal RAE.
        """
        return pd.concat([frame for frame, _ in self._composed], ignore_index=True)

    @property
    def table(self) -> pd.DataFrame:
        """One row per cell of the taxonomy: its mean share over tasks, with `low` and `high`."""
        cells = [cells for _, cells in self._composed if cells.shape[1]]
        shares = [(task[..., None] == range(len(CELLS))).mean(axis=1) for task in cells]
        none = np.zeros((self.n_resamples + 1, len(CELLS)))
        frame = pd.DataFrame(CELLS, columns=["external", "internal"])
        return frame.assign(**self._interval(sum(shares, none) / (len(shares) or np.nan), "share"))

    def _resamples(self, task: Task) -> np.ndarray:
        """Return how often samples occur, (1 + resamples, samples); in the first row, each once."""
        n, b = task.n_samples, self.n_resamples
        drawn = (uniforms(self.seed, f"resamples, task {task.number}", n=b * n)[0] * n).astype(int)
        places = np.arange(b).repeat(n) * n + drawn
        counts = np.bincount(places, minlength=b * n).reshape(b, n)
        # Single precision is exact for whole numbers up to 2^24, and twice as fast.
        return np.vstack([np.ones((1, n)), counts]).astype(np.float32)

    def _interval(self, values: np.ndarray, name: str, prefix: str = "") -> dict[str, np.ndarray]:
        """Return the first of `values`, and `low` and `high` of all others, which are resamples."""
        values = values.reshape(len(values), -1)
        ends = [(1 - self.level) / 2, (1 + self.level) / 2]
        low, high = pd.DataFrame(values[1:]).quantile(ends).to_numpy()
        return {name: values[0], f"{prefix}low": low, f"{prefix}high": high}

    @cached_property
    @one_thread()
    def _estimated(self) -> list[tuple[Task, np.ndarray, np.ndarray, np.ndarray]]:
        """Every task with its estimates from answers, from labels, and to compare with the truth.

        All estimates have the shape (resamples, quantities, pairs).
        """
        found = []
        for task, grid in zip(self.tasks.tasks, self.answers, strict=True):
            rule = "quantities need both prompts of every pair, and all facts told"
            check(not task.only_changed, rule, "only the prompts that an intervention changes")
            check(not task.n_untold, rule, f"{task.n_untold} untold facts")
            counts = self._resamples(task)
            given = grid.reshape(len(grid), -1, task.n_samples)
            yes = np.where(given == UNPARSEABLE, ~task.labels[:, None], given == 1)
            answers = _estimates(task, yes, counts)
            labels = _estimates(task, task.labels[:, None], counts)
            fair = task.quantities.to_numpy().T + (answers - labels)
            found.append((task, answers, labels, answers if self.luck else fair))
        return found

    @cached_property
    def _composed(self) -> list[tuple[pd.DataFrame, np.ndarray]]:
        """The compositions of every task, and their cells, shape (resamples, compositions)."""
        found, measured = [], COLUMNS.index(self.measure)
        for task, *estimates in self._estimated:
            chain = task.world.chain
            answers, labels, compared = (each[:, measured] for each in estimates)
            name = f"{task.story.name}, compositions"
            paths = some_compositions(chain, self.most_compositions, self.seed, name)
            place = {pair: i for i, pair in enumerate(task.quantities.index)}
            steps = [[place[step] for step in itertools.pairwise(path)] for path in paths]
            whole = place[chain.global_quantity]
            exact = task.quantities[self.measure].loc[chain.global_quantity]
            product = _products(answers, steps)
            external = _rae(exact, _products(compared, steps))
            internal = _rae(answers[:, [whole]], product)
            threshold = self.multiplier * _rae(labels[:, [whole]], _products(labels, steps))
            inconsistent = internal > threshold + ROUNDING
            undefined = np.isnan(internal) | np.isnan(threshold)
            cells = 3 * ~(external <= self.delta + ROUNDING) + np.where(undefined, 2, inconsistent)
            told = {"task": task.number, "path": paths, "exact": exact}
            told |= {"global": answers[0, whole], "product": product[0], "threshold": threshold[0]}
            for name, errors in (("external RAE", external), ("internal RAE", internal)):
                told |= self._interval(errors, name, f"{name}, ")
            frame = pd.DataFrame(told)
            frame[["external", "internal"]] = np.array(CELLS)[cells[0]]
            found.append((frame, cells))
        return found


def some_compositions(chain: Chain, most: int, seed: int, name: str) -> list[tuple[int, ...]]:
    """Return all compositions of a chain, or at most `most` of them.

    Their number doubles with every component. If there are more than `most`, the composition
    through all cutpoints is kept, and others are drawn. Each cutpoint is on a drawn path with
    probability ½; duplicates and the empty path are dropped.
    """
    first = list(itertools.islice(chain.compositions(), most + 1))
    if len(first) <= most:
        return first
    root, *between, leaf = chain.cut_tree
    drawn = uniforms(seed, name, n=most - 1, terms=len(between)).T < 0.5
    stops = [between, *(itertools.compress(between, row) for row in drawn if row.any())]
    return list(dict.fromkeys((root, *stop, leaf) for stop in stops))


def rungs(task: Task) -> dict[str, np.ndarray]:
    """Return which prompts are on each rung, by name, each of shape (questions, samples).

    Where facts are withheld, the first rungs are *all* prompts and those whose answer is *inferred*
    from what is known. The others are the kinds of question.
    """
    asked, changed = task.asked, task.labels != task.before  # a factual answer never changes
    if task.n_untold:
        kind = np.array([[one.kind] for one in task.asks])
        on = {"all": True, "inferred": changed} | {name: kind == name for name in KINDS}
    else:
        value = task.keys[:, [1]]
        each = value == -1, value == 1, value == 0, changed, (value != -1) & ~changed
        on = dict(zip(RUNGS, each, strict=True))
    return {name: asked & prompts for name, prompts in on.items()}


def _estimates(task: Task, given: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Estimate quantities of all pairs by definition, shape (resamples, quantities, pairs)."""
    tree = task.world.chain.cut_tree
    x, y = (given[nodes] for nodes in np.triu_indices(len(tree), 1))  # factual: one per node
    y1, y0 = given[len(tree) :: 2], given[len(tree) + 1 :: 2]  # then two per pair

    def n(event: np.ndarray) -> np.ndarray:
        return np.asarray(counts @ event.sum(axis=1, dtype=np.float32).T, dtype=float)

    with np.errstate(invalid="ignore"):  # 0 / 0: nothing to condition on
        estimates = defined(x, y, y1, y0, n, of=n(x | True))
    return np.stack([estimates[name] for name in COLUMNS], axis=1)


def _rae(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return the relative absolute error, which is NaN where the truth is zero."""
    return np.asarray(np.abs(truth - found) / np.abs(np.where(truth == 0, np.nan, truth)))


def _products(of: np.ndarray, paths: list[list[int]]) -> np.ndarray:
    """Return the product of the columns on every path, shape (resamples, paths)."""
    return np.array([of[:, path].prod(axis=1) for path in paths]).reshape(len(paths), len(of)).T
