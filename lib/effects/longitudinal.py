r"""Treatments over time: panels, regimes, and estimators of what following a regime is worth.

A regime d says at each decision :math:`k = 1, \dots, K` which level to take, given the history
:math:`H_k`, all that was seen before. Its value :math:`V(d)` is the mean outcome if everybody
follows it. If nothing else moves both decisions and outcome, and every level that d says has a
chance, the value is known: by regressions of regressions from the last decision back [1]_ [2]_,

.. math:: Q_{K+1} = Y, \qquad Q_k(h) = E[Q_{k+1} \mid H_k = h, A_k = d_k(h)], \qquad
    V(d) = E[Q_1],

by weighting those who followed the regime, and by both together [2]_ [3]_,

.. math:: W_k = \prod_{j \le k} \frac{1\{A_j = d_j(H_j)\}}{P(A_j \mid H_j)}, \qquad
    V(d) = E[W_K Y] = E\Bigl[Q_1 + \sum_{k=1}^K W_k\,(Q_{k+1} - Q_k)\Bigr].

The influence function of the last is a subject's term less the mean; that of a weighted mean is
:math:`W_K (Y - V) / E[W_K]`. If propensities are estimated, its projection on the scores of their
models is taken off, which makes the variance no larger if the models are right [4]_. The influence
function of iterated regressions has, in place of :math:`W_k`, the weights that the regressions
imply. A standard error is the standard deviation of the influences over √n.

References
----------
.. [1] Robins, J. (1986). A new approach to causal inference in mortality studies with a sustained
   exposure period. Mathematical Modelling 7(9-12).
.. [2] Bang, H. and Robins, J. M. (2005). Doubly robust estimation in missing data and causal
   inference models. Biometrics 61(4).
.. [3] van der Laan, M. J. and Robins, J. M. (2003). Unified methods for censored longitudinal data
   and causality. Springer.
.. [4] Robins, J. M., Rotnitzky, A. and Zhao, L. P. (1995). Analysis of semiparametric regression
   models for repeated outcomes in the presence of missing data. JASA 90(429).
.. [5] Robins, J. M., Hernán, M. A. and Brumback, B. (2000). Marginal structural models and causal
   inference in epidemiology. Epidemiology 11(5).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from lib.effects.adapter import adapted
from lib.effects.intervals import NORMAL
from lib.effects.learners import FOLDS, dealt
from lib.effects.study import MINIMAL_ADJUSTMENT, Matrix, Vector, check_finite
from lib.errors import check, check_known, check_names, one_of, told
from lib.workers import one_thread

#: The value of a regime, and how much each subject moves that value.
Worth: TypeAlias = tuple[float, Vector]

#: Regime → its gain over the first regime, and the standard error of the gain. An entrant finds
#: the gains of all regimes of a panel.
Gains: TypeAlias = dict[str, tuple[float, float]]
Entrant: TypeAlias = Callable[["Panel"], Gains]

#: When weights are truncated, this share of them, the smallest, is left as it is.
KEPT = 0.99

#: The ridge penalty of the iterated regressions, since few subjects may be left to learn from.
PENALTY = 1.0

#: If fewer subjects than this take a level at a decision, one half of the subjects may lack it.
RARE = 12


def decided(regimes: Mapping[str, Any], decisions: Sequence[int]) -> dict[str, dict[int, Any]]:
    """Return what each regime says at each step with a decision: a level, or a rule."""
    found = {}
    rule = "a panel needs at least one regime and one decision"
    check(min(len(regimes), len(decisions)) > 0, rule, [[*regimes], [*decisions]])
    check([*decisions] == sorted({*decisions}), "decisions must be in rising order", [*decisions])
    for name, said in regimes.items():
        each = isinstance(said, Sequence | np.ndarray) and not isinstance(said, str)
        plan = list(said) if each else [said] * len(decisions)
        rule = f"regime {name!r} must be a level, a rule, or a sequence of one per decision"
        check(len(plan) == len(decisions), f"{rule}, {len(decisions)}", len(plan))
        found[name] = dict(zip(decisions, plan, strict=True))
    return found


@dataclass(frozen=True, eq=False)
class Panel:
    """Subjects observed at several steps, decisions about a treatment, and regimes to compare.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per subject and step, with columns `subject`, `t`, the treatment, and others. The
        outcome is read at the last step. If it is known, the true probability of the level that was
        taken is in the column `propensity`.
    decisions : sequence of int
        The steps at which regimes decide.
    regimes : mapping of str to level, rule, or a sequence of these, one a decision
        A rule is a function of two frames with the `adjustment`, at the step and at the step
        before, as in :mod:`lib.scm.interventions`. Gains are over the first regime.
    adjustment : sequence of str
        What decisions depend on: columns of the step or, with `_prev` added, of the step before.
    states, covariates, histories : list of numpy.ndarray, one a decision
        Derived, like all below: numbers, (n, p), of a decision; of all so far; with decisions, too.
    taken, said, outcomes, levels
        Codes of the levels taken, and said by each regime, (n, K) each; outcomes, (n,); all levels.
    """

    table: pd.DataFrame
    decisions: Sequence[int]
    regimes: Mapping[str, Any]
    adjustment: Sequence[str] = MINIMAL_ADJUSTMENT
    treatment: str = "studies"
    outcome: str = "income"
    levels: pd.Index = field(init=False, repr=False)
    states: list[np.ndarray] = field(init=False, repr=False)
    covariates: list[np.ndarray] = field(init=False, repr=False)
    histories: list[np.ndarray] = field(init=False, repr=False)
    taken: np.ndarray = field(init=False, repr=False)
    said: dict[str, np.ndarray] = field(init=False, repr=False)
    outcomes: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        today = [name for name in self.adjustment if not name.endswith("_prev")]
        past = [name.removesuffix("_prev") for name in self.adjustment if name not in today]
        named = ("subject", "t", self.treatment, self.outcome, *today, *past)
        check_names("column of the panel", named, self.table, limit=50)
        check(self.treatment not in today, "adjustment must not hold the treatment itself", today)
        plans = decided(self.regimes, self.decisions)
        rule = "a panel needs at least one row and one column of the adjustment"
        check(min(len(self.table), len(self.adjustment)) > 0, rule, named)
        table = self.table.infer_objects()
        # Levels are those of the whole table, so each has a column also at a step that lacks it.
        texts = table[[*today, *past]].select_dtypes(exclude=["number", "bool"]).astype("category")
        table = table.assign(**{k: one.cat.remove_unused_categories() for k, one in texts.items()})
        steps = dict(list(table.set_index("subject").groupby("t")))
        last = steps[max(steps)]
        met = self.outcome not in today or max(steps) not in self.decisions
        check(met, "adjustment must not hold the outcome of a decision at its own step", today)
        rule = "a panel must have every subject once at every step, in the same order"
        once = all(one.index.equals(last.index) for one in steps.values()) and last.index.is_unique
        check(once, rule, f"{len(self.table):,} rows")
        levels = self.table[self.treatment].astype("category").cat.categories
        states, others, taken = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        said = {name: list[np.ndarray]() for name in self.regimes}
        for t in self.decisions:
            check_names("step", (t - 1, t), steps)
            now, before = steps[t][today], steps[t - 1][past]
            state = now.join(before.add_suffix("_prev"))
            absent = pd.concat([state, steps[t][self.treatment]], axis=1).isna().any()
            rule = f"a panel must have no missing value at step {t}"
            check(not absent.any(), rule, absent.index[absent].tolist())
            states.append(_numbers(state))
            # A decision has a column of its own, which would share its coefficient with this one.
            known = f"{self.treatment}_prev" if t - 1 in self.decisions else None
            others.append(_numbers(state.drop(columns=known)) if known in state else states[-1])
            taken.append(levels.get_indexer(steps[t][self.treatment]))
            for name, plan in plans.items():
                with told(f"regime {name!r} at step {t}, from {', '.join(self.adjustment)}"):
                    what = plan[t](now, before) if callable(plan[t]) else plan[t]
                    subjects = what.index if isinstance(what, pd.Series) else pd.RangeIndex(0)
                    # Aligned by subject, as simulators do, unless pandas has numbered the rows.
                    if not isinstance(subjects, pd.RangeIndex) and {*subjects} == {*now.index}:
                        what = what.loc[now.index]
                    what = np.broadcast_to(np.asarray(what, dtype=object), len(last))
                said[name].append(levels.get_indexer(what))
                odd = what[said[name][-1] < 0].tolist()
                check(not odd, f"regime {name!r} must name levels: {one_of(levels)}", odd[:3])
        covariates = [np.hstack(others[: k + 1]) for k in range(len(others))]
        vars(self).update(levels=levels, states=states, covariates=covariates)
        vars(self).update(taken=np.array(taken).T, said={k: np.array(v).T for k, v in said.items()})
        histories = [self._with_decisions(x, self.taken[:, :k]) for k, x in enumerate(covariates)]
        vars(self).update(histories=histories)
        with told(f"outcome {self.outcome!r}"):
            vars(self).update(outcomes=last[self.outcome].to_numpy(float))
        check_finite(f"outcome {self.outcome!r}", self.outcomes)

    def is_static(self, regime: str) -> bool:
        """Say whether a regime tells every subject the same."""
        return bool((self.said[regime] == self.said[regime][0]).all())

    def static_regimes(self) -> list[str]:
        """Return the static regimes, or none if the first, the base of all gains, is not static."""
        names = [name for name in self.regimes if self.is_static(name)]
        return names if names[:1] == [*self.regimes][:1] else []

    def followed(self, regime: str) -> np.ndarray:
        """Return whether each subject did what a regime says, (n, K)."""
        return np.asarray(self.taken == self.said[regime])

    @property
    def even(self) -> tuple[np.ndarray, None]:
        """Pretend that all decisions were equally likely, (n, K)."""
        return np.ones(self.taken.shape), None

    @property
    def known(self) -> tuple[np.ndarray, None]:
        """The true probability of every level that was taken, (n, K)."""
        check_known("column of the panel", "propensity", self.table, limit=50)
        found = [self.table.loc[self.table["t"] == t, "propensity"] for t in self.decisions]
        with told("propensity"):
            chances = np.array(found, dtype=float).T
        wrong = chances[~((chances > 0) & (chances <= 1))].tolist()
        check(not wrong, "propensity must be above 0 and at most 1", wrong[:3])
        return chances, None

    def _with_decisions(self, x: Matrix, decisions: np.ndarray) -> np.ndarray:
        levels = np.eye(len(self.levels))[:, 1:]
        return np.hstack([x, levels[decisions].reshape(len(x), -1)])

    @cached_property
    def estimated(self) -> tuple[np.ndarray, np.ndarray]:
        """The same, estimated by scikit-learn's default logistic regressions; scores, (n, q)."""
        found, scores = [], []
        for t, x, taken in zip(self.decisions, self.states, self.taken.T, strict=True):
            check(np.ptp(taken) > 0, f"at least two levels must be taken at step {t}", 1)
            model = LogisticRegression(max_iter=1_000).fit(x[:, 1:], taken)
            each, here = model.predict_proba(x[:, 1:]), model.classes_ == taken[:, None]
            found.append(each[here])
            scores += [missed[:, None] * x for missed in (here - each).T[1:]]
        return np.array(found).T, np.hstack(scores)


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return ones, and standardised columns of the numbers and of all levels but the first."""
    found = pd.get_dummies(frame, drop_first=True, dtype=float) if len(frame.columns) else frame
    x = found.to_numpy(float)
    x = x if x.shape[1] else np.zeros((len(x), 1))  # a single level leaves no column
    check(bool(np.isfinite(x).all()), "columns of the adjustment must be finite", [*frame])
    return np.column_stack([np.ones(len(x)), StandardScaler().fit_transform(x)])


def _inverse(x: np.ndarray, weights: np.ndarray | float = 1.0, penalty: float = 0.0) -> np.ndarray:
    penalties = np.diag([0.0] + [penalty] * (x.shape[1] - 1))
    # A column that others determine, as age at the next step, has no coefficient of its own.
    return np.linalg.pinv((weights * x.T) @ x + penalties, rcond=1e-9, hermitian=True)


def _without(scores: np.ndarray | None, phi: np.ndarray) -> np.ndarray:
    """Subtract from influences what the scores of estimated propensities explain of them."""
    return phi if scores is None else phi - scores @ (_inverse(scores) @ (scores.T @ phi))


def _check_followed(panel: Panel, regime: str) -> None:
    # Where nobody follows it, no regression can learn.
    followers = panel.followed(regime).sum(axis=0)
    rule = f"regime {regime!r} must be followed by somebody at each decision"
    check(bool(followers.all()), rule, followers.tolist())


def weighting(panel: Panel, regime: str, chances: str = "estimated", kept: float = 1.0) -> Worth:
    """Weight those who followed a regime by the inverse probability of what they did.

    Like every function of a regime's worth, it returns the value and the influence of each subject,
    (n,). The standard deviation of the influences over √n is the standard error. `chances` are
    "estimated", or "known" from the panel's `propensity`.
    """
    of_taken, scores = getattr(panel, chances)
    weights = panel.followed(regime).all(axis=1) / of_taken.prod(axis=1)
    check(weights.any(), f"regime {regime!r} must be followed by somebody at all decisions", 0)
    weights = np.minimum(weights, np.quantile(weights[weights > 0], kept))
    value = np.average(panel.outcomes, weights=weights)
    return value, _without(scores, weights * (panel.outcomes - value) / weights.mean())


def _predicted(panel: Panel, regime: str, x: Matrix, weights: Vector) -> Worth:
    """Regress on x and all decisions, and average the predictions at a regime's decisions."""
    _check_followed(panel, regime)
    seen, there = (panel._with_decisions(x, each) for each in (panel.taken, panel.said[regime]))
    y, inverse = panel.outcomes, _inverse(seen, weights)
    beta = inverse @ (seen.T @ (weights * y))
    value, toward = (there @ beta).mean(), inverse @ there.mean(axis=0)
    return value, there @ beta - value + len(x) * weights * (y - seen @ beta) * (seen @ toward)


def regression(panel: Panel, regime: str, history: int = -1) -> Worth:
    """Regress on all decisions and a history at once, as if no decision changed the history."""
    return _predicted(panel, regime, panel.covariates[history], np.ones(len(panel.taken)))


def structural_model(
    panel: Panel, regime: str, chances: str = "estimated", kept: float = 1.0
) -> Worth:
    r"""Fit a marginal structural model, in which each decision adds its own part [5]_.

    .. math:: E[Y(a_1, \dots, a_K)] = \beta_0 + \sum_k \beta_{k, a_k}, \qquad
        w = \frac{P(A_1, \dots, A_K)}{\prod_k P(A_k \mid H_k)},

    It is fitted by weighted least squares, for static regimes only.
    """
    of_taken, scores = getattr(panel, chances)
    sequences = pd.DataFrame(panel.taken)
    alike = sequences.groupby([*sequences])[0].transform("size").to_numpy()
    weights = alike / len(alike) / of_taken.prod(axis=1)
    weights = np.minimum(weights, np.quantile(weights, kept))
    value, phi = _predicted(panel, regime, np.ones((len(weights), 1)), weights)
    return value, _without(scores, phi)


def iterated(panel: Panel, regime: str, learned_from: np.ndarray | bool = True) -> Matrix:
    """Return the iterated regressions of a regime, followed by the outcome, (K + 1, n)."""
    _check_followed(panel, regime)
    found = [panel.outcomes]
    for x, here in zip(panel.histories[::-1], panel.followed(regime).T[::-1], strict=True):
        weights = 1.0 * (here & learned_from)
        rule = f"regime {regime!r} must be followed at each decision in at least two of the folds"
        check(weights.any(), rule, "one")
        found.append(x @ (_inverse(x, weights, PENALTY) @ (x.T @ (weights * found[-1]))))
    return np.array(found[::-1])


def g_computation(panel: Panel, regime: str) -> Worth:
    """Average the first iterated regression; each is a ridge among those who follow the regime."""
    q, weights = iterated(panel, regime), np.ones(len(panel.taken))
    phi = q[0] - q[0].mean()
    for k, (x, here) in enumerate(zip(panel.histories, panel.followed(regime).T, strict=True)):
        weights = here * (x @ (_inverse(x, here, PENALTY) @ (x.T @ weights)))
        phi += weights * (q[k + 1] - q[k])
    return q[0].mean(), phi


def doubly_robust(panel: Panel, regime: str, chances: str = "estimated") -> Worth:
    """Correct iterated regressions by the weighted residuals of subjects they have not seen."""
    of_taken, scores = getattr(panel, chances)
    folds, q = dealt(len(of_taken)), np.empty((of_taken.shape[1] + 1, len(of_taken)))
    for fold in range(FOLDS):
        q[:, folds == fold] = iterated(panel, regime, folds != fold)[:, folds == fold]
    weights = np.cumprod(panel.followed(regime) / of_taken, axis=1)
    terms = q[0] + (weights.T * np.diff(q, axis=0)).sum(axis=0)
    return terms.mean(), _without(scores, terms - terms.mean())


def _entrant(of_regime: Callable[..., Worth], static: bool = False, **options: Any) -> Entrant:
    def gains(panel: Panel) -> Gains:
        names = panel.static_regimes() if static else list(panel.regimes)
        if not names:
            return {}
        found = {name: of_regime(panel, name, **options) for name in names}
        base, moves = found.pop(names[0])
        error = {name: (phi - moves).std() / len(phi) ** 0.5 for name, (_, phi) in found.items()}
        return {name: (value - base, error[name]) for name, (value, _) in found.items()}

    return gains


def _dynamic_dml(panel: Panel) -> Gains:
    """Let EconML add up effects of single decisions; rare levels and rules have no result."""
    n, k = panel.taken.shape
    here = np.unique(panel.taken)
    rare = len(here) < 2 or (panel.taken[..., None] == here).sum(axis=0).min() < RARE
    if rare or not (names := panel.static_regimes()):
        return {}
    models = {"model_y": "ridge", "model_t": "lr", "model_t__max_iter": 1_000}
    model = adapted("econml.panel.dml:DynamicDML", models, given=("groups",)).estimator
    seen = {"W": np.hstack(panel.states).reshape(n * k, -1), "groups": np.arange(n).repeat(k)}
    model.fit(panel.outcomes.repeat(k), panel.taken.ravel(), **seen)
    first, *others = names
    arms = {name: {"T0": panel.said[first][:1], "T1": panel.said[name][:1]} for name in others}
    ends = {name: model.effect_interval(**of, alpha=0.05) for name, of in arms.items()}
    return {name: (np.mean(end), np.ptp(end) / 2 / NORMAL) for name, end in ends.items()}


#: Name → the function from a panel to each regime's gain over the first, with its standard error.
ENTRANTS: dict[str, Entrant] = {
    "followers": _entrant(weighting, chances="even"),
    "regression-first": _entrant(regression, history=0),
    "regression-all": _entrant(regression),
    "g-computation": _entrant(g_computation),
    "ipw": _entrant(weighting),
    "ipw-truncated": _entrant(weighting, kept=KEPT),
    "ipw-true": _entrant(weighting, chances="known"),
    "msm": _entrant(structural_model, static=True),
    "msm-truncated": _entrant(structural_model, static=True, kept=KEPT),
    "msm-true": _entrant(structural_model, static=True, chances="known"),
    "aipw": _entrant(doubly_robust),
    "aipw-true": _entrant(doubly_robust, chances="known"),
    "dynamic-dml": _dynamic_dml,
}


def marked(
    panels: Iterable[Panel], truth: Mapping[str, float], entrants: Iterable[str] = ENTRANTS
) -> pd.DataFrame:
    """Mark entrants on panels against the true gains, in the columns of the benchmark."""
    rows, entrants = [], list(entrants)
    check_names("entrant", entrants, ENTRANTS)
    for k, panel in enumerate(panels):  # one at a time in memory
        check_names("true gain of regime", [*panel.regimes][1:], truth.keys())
        with one_thread():
            found = {name: ENTRANTS[name](panel) for name in entrants}
        for name, gains in found.items():
            for regime, (gain, error) in gains.items():
                missed, half = gain - truth[regime], NORMAL * error
                rows.append((k, name, regime, "error", missed, missed - half, missed + half))
    columns = ["study", "estimator", "estimand", "metric", "value", "lower", "upper"]
    return pd.DataFrame(rows, columns=columns)
