"""Choosing among estimators of effects when nobody knows the effects.

A candidate is fitted to one half of the observed subjects. A *criterion* scores it on the
other half, the validation subjects, by what was observed of them. A lower score is better.

References
----------
.. [1] Nie, X. and Wager, S. (2021). Quasi-oracle estimation of heterogeneous treatment effects.
.. [2] Alaa, A. and van der Schaar, M. (2019). Validating causal inference models via influence
   functions. ICML, Theorem 2.
.. [3] Mahajan, D. et al. (2024). Empirical analysis of model selection for heterogeneous causal
   effect estimation. ICLR.
"""

import copy
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lib.cache import cached
from lib.effects.estimator_files import CANDIDATES, read_estimators
from lib.effects.estimators import HIGHEST, LOWEST
from lib.effects.learners import Learner, dealt, learner, out_of_fold
from lib.effects.metrics import compare, t_interval
from lib.effects.study import Matrix, Study, Vector
from lib.errors import check, needed
from lib.workers import one_thread


class Nuisances(NamedTuple):
    """Outcomes expected of n validation subjects, in each arm and over both; and propensities."""

    control: Vector
    treated: Vector
    mean: Vector
    propensity: Vector


def nuisances(
    covariates: Matrix, treatment: Vector, outcome: Vector, outcome_model: Learner | None = None
) -> Nuisances:
    """Fit :class:`Nuisances` in five folds: no subject is predicted from its own outcome.

    By default, the outcome model is a random forest with leaves of at least 20 subjects.
    Propensities come from a logistic regression and are kept between 0.01 and 0.99.
    """
    forest: dict[str, Any] = {"n_estimators": 50, "min_samples_leaf": 20, "max_features": 0.5}
    outcome_model = outcome_model or learner("rfr", **forest)
    covariates, arms = np.asarray(covariates, dtype=float), (treatment == 0, treatment == 1, True)
    outcomes = (out_of_fold(outcome_model, covariates, outcome, rows) for rows in arms)
    propensity = out_of_fold(learner("lr"), covariates, treatment)
    return Nuisances._make([*outcomes, np.clip(propensity, LOWEST, HIGHEST)])


def criteria(
    known: Nuisances, treatment: Vector, outcome: Vector, effects: pd.DataFrame, factual: Any = None
) -> pd.DataFrame:
    r"""Score candidates by what can be seen.

    .. math::
        \text{factual fit} &= \operatorname{mean}\,(y - \hat\mu_a)^2 \\
        \text{plug-in} &= \operatorname{mean}\,(\tilde\tau - \hat\tau)^2, \qquad
            \tilde\tau = \tilde\mu_1 - \tilde\mu_0 \\
        \text{R-loss} &= \operatorname{mean}\,
            \bigl((y - \tilde m) - (a - \tilde e)\,\hat\tau\bigr)^2 \\
        \text{DR-loss} &= \operatorname{mean}\,(\tilde\psi - \hat\tau)^2, \qquad \tilde\psi =
            \tilde\tau + \frac{a - \tilde e}{\tilde e(1 - \tilde e)}\,(y - \tilde\mu_a) \\
        \text{influence function} &= \operatorname{mean}\,\bigl[(1 - B)\,\tilde\tau^2
            + B\,y\,(\tilde\tau - \hat\tau) - A\,(\tilde\tau - \hat\tau)^2 + \hat\tau^2\bigr]

    with :math:`A = a - \tilde e` and :math:`B = 2a(a - \tilde e) / (\tilde e (1 - \tilde e))`.
    A hat marks a candidate's estimate, a tilde a nuisance. The R-loss is from [1]_, the influence
    function follows [2]_, and [3]_ compares the others. With true nuisances, the loss of [2]_ has
    expectation :math:`\operatorname{mean}\,[(\tau - \hat\tau)^2 + 2\mu_0(\tau - \hat\tau)]`, least
    at :math:`\hat\tau = \mu_1`.

    `effects` and `factual`, the outcomes predicted in the arm that was taken, have a column per
    candidate. The table has a row per candidate, in the squared unit of the outcome. Factual fit is
    missing for candidates that do not model outcomes.
    """
    control, treated, mean, e = (column[:, None] for column in known)
    a, y = np.asarray(treatment, dtype=float)[:, None], np.asarray(outcome)[:, None]
    tau = effects.to_numpy(dtype=float)
    wrong = effects.columns[~np.isfinite(tau).all(axis=0)].tolist()
    check(not wrong, "effects of all candidates must be finite", wrong)
    plugin = treated - control
    scores = plugin + (a - e) / (e * (1 - e)) * (y - np.where(a == 1, treated, control))
    b = 2 * a * (a - e) / (e * (1 - e))
    influence = (1 - b) * plugin**2 + b * y * (plugin - tau) - (a - e) * (plugin - tau) ** 2
    losses = {
        "plug-in": (plugin - tau) ** 2,
        "R-loss": ((y - mean) - (a - e) * tau) ** 2,
        "DR-loss": (scores - tau) ** 2,
        "influence function": influence + tau**2,
    }
    table = pd.DataFrame({k: v.mean(axis=0) for k, v in losses.items()}, index=effects.columns)
    table.insert(0, "factual fit", np.nan if factual is None else ((factual - y) ** 2).mean())
    return table.rename_axis("candidate")


def trial(
    study: Study, candidates: Any = CANDIDATES, seed: int = 0, outcome_model: Learner | None = None
) -> pd.DataFrame:
    """Fit candidates to one half of the observational subjects, and score them on the other.

    The study must have a truth. Candidates take the `seed`, :func:`nuisances` the `outcome_model`.
    The table has the columns of :func:`criteria`, and the `R²` against the true effects, which
    nobody knows in practice.
    """
    truth = needed("truth", study.effects)
    candidates = read_estimators(candidates, seed=seed, scored=False)
    averages = [name for name, one in candidates.items() if not hasattr(one, "effect")]
    check(not averages, "candidates must estimate effects of single subjects", averages)
    data = (study.covariates.to_numpy(), study.arm, study.outcomes)
    rest, test = dealt(len(study.arm), 2) == 1, study.test_covariates.to_numpy()
    x, arm, y = (part[rest] for part in data)
    with one_thread():
        halves = [_halves(*copy.deepcopy([one, *data, test])) for one in candidates.values()]
        known = nuisances(x, arm, y, outcome_model)
    parts = (np.column_stack(part) for part in zip(*halves, strict=True))
    effects, factual, answers = (pd.DataFrame(part, columns=[*candidates]) for part in parts)
    r2 = compare(answers.to_numpy(), truth, bootstraps=0)["R²"][0]
    return criteria(known, arm, y, effects, factual).assign(**{"R²": r2})


@cached
def _halves(
    candidate: Any, covariates: Matrix, treatment: Vector, outcome: Vector, of_test: Matrix
) -> tuple[Vector, Vector, Vector]:
    """Return effects and factual outcomes of validation subjects, and effects of test subjects."""
    first, rest = (dealt(len(outcome), 2) == half for half in (0, 1))
    candidate.fit(covariates[first], treatment[first], outcome[first])
    factual = np.full(rest.sum(), np.nan)
    if hasattr(candidate, "factual"):
        factual = candidate.factual(covariates[rest], treatment[rest])
    return candidate.effect(covariates[rest]), factual, candidate.effect(of_test)


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Say how well each criterion chose in a :func:`trial`, against the truth it could not see.

    Each criterion that can score a candidate has a row: the candidate `picked`; Spearman's `rank
    correlation` of the criterion with the true squared error, over the candidates that it can
    score; and the `regret`, the R² of the best candidate less that of the picked one. The last row
    is for a candidate drawn at random.
    """
    r2, criteria = table["R²"], table.drop(columns="R²").dropna(axis=1, how="all")
    found = pd.DataFrame({"picked": criteria.idxmin()}).rename_axis("criterion")
    found["rank correlation"] = criteria.corrwith(-r2, method="spearman")
    found["regret"] = r2.max() - r2[found["picked"]].to_numpy()
    found.loc["at random"] = ["", 0.0, r2.max() - r2.mean()]
    return found


def mean_verdicts(found: list[pd.DataFrame]) -> pd.DataFrame:
    """Average the :func:`verdicts` of independent studies, with 95 % intervals (Student's t).

    The intervals end where regrets and correlations must end, at 0 and at ±1.
    """
    marks = pd.concat(found).groupby(level=0, sort=False)
    possible = {"regret": (0.0, np.inf), "rank correlation": (-1.0, 1.0)}
    means = {name: t_interval(marks[name]).clip(*ends) for name, ends in possible.items()}
    table = pd.concat(means, axis=1)
    return table.set_axis(table.columns.map(" ".join).str.removesuffix(" mean"), axis=1)
