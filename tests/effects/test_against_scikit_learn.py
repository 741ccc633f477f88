"""The deterministic estimators of the paper, written again with scikit-learn alone.

Nothing here comes from `lib.effects` but the function under test: the tables are encoded by a
column transformer, settings chosen by `GridSearchCV`, estimates made in a line or two each.
"""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lib.effects import benchmark
from lib.income import draw_study, fitted_simulator

NUMBERS = ["age", "education-num", "income_prev", "hours-per-week", "capital-net"]
CATEGORIES = [
    "sex",
    "relationship",
    "studies_prev",
    "native-country",
    "race",
    "education",
    "workclass",
    "occupation",
    "marital-status",
]
COVARIATES = {"full": (NUMBERS, CATEGORIES), "minimal": (NUMBERS[:3], CATEGORIES[:3])}
PENALTIES = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100]  # of Table 6, as are the next
ALPHAS = [0.01, 0.02, 0.1, 0.2, 1, 2, 10, 20, 100, 200, 1000]


class TwoRidges(RegressorMixin, BaseEstimator):
    """A ridge regression in each arm; the arm is the last column."""

    def __init__(self, alpha0=1.0, alpha1=1.0):
        self.alpha0, self.alpha1 = alpha0, alpha1

    def fit(self, x, y):
        self.arms_ = [
            Ridge(alpha=alpha).fit(x[x[:, -1] == arm, :-1], y[x[:, -1] == arm])
            for arm, alpha in enumerate([self.alpha0, self.alpha1])
        ]
        return self

    def predict(self, x):
        return np.where(x[:, -1] == 1, *(self.arms_[arm].predict(x[:, :-1]) for arm in (1, 0)))


def by_scikit_learn(observational, control, treated, adjustment):
    """Return the absolute error of the average effect by estimator, and the T-learner's R²."""
    arms, folds = ["No studies", "Full-time studies"], KFold(5)
    seen = observational[observational["studies"].isin(arms)]
    numbers, categories = COVARIATES[adjustment]
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = ColumnTransformer([("0", StandardScaler(), numbers), ("1", one_hot, categories)])
    encoder.fit(seen)
    z, tests = encoder.transform(seen), encoder.transform(control)
    a, y = (seen["studies"] == arms[1]).to_numpy(float), seen["income"].to_numpy(float)
    gain = (treated["income"] - control["income"]).to_numpy(float)
    found = {}

    search = GridSearchCV(LogisticRegression(), {"C": PENALTIES}, cv=5, scoring="roc_auc")
    e = search.fit(z, a).predict_proba(z)[:, 1]
    found["ipw-lr"] = np.mean(a * y / e) - np.mean((1 - a) * y / (1 - e))
    found["ipww-lr"] = np.average(y, weights=a / e) - np.average(y, weights=(1 - a) / (1 - e))

    gains = []
    for i in range(len(y)):
        other = a != a[i]
        nearest = np.sqrt(((z[other] - z[i]) ** 2).sum(axis=1)).round(12).argmin()
        gains.append((2 * a[i] - 1) * (y[i] - y[other][nearest]))
    found["match-nn-eu"] = np.mean(gains)

    za = np.column_stack([z, a])
    ridge = GridSearchCV(Ridge(), {"alpha": ALPHAS}, cv=folds).fit(za, y).best_estimator_
    found["s-ridge"] = ridge.coef_[-1]
    grid = {"alpha0": ALPHAS, "alpha1": ALPHAS}
    both = GridSearchCV(TwoRidges(), grid, cv=folds).fit(za, y).best_estimator_
    effects = both.arms_[1].predict(tests) - both.arms_[0].predict(tests)
    found["t-ridge"] = effects.mean()
    errors = {name: abs(ate - gain.mean()) for name, ate in found.items()}
    return errors, r2_score(gain, effects)


@pytest.fixture(scope="module")
def study():
    return draw_study(fitted_simulator(), 1_200)


@pytest.mark.parametrize("adjustment", COVARIATES)
def test_deterministic_estimators_give_what_scikit_learn_gives(study, adjustment):
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        errors, r2 = by_scikit_learn(study.observational, study.control, study.treated, adjustment)
    options = {"adjustment": adjustment, "estimators": list(errors), "progress": False}
    ours = benchmark(study, bootstraps=0, **options)
    ours = ours.pivot_table(index="estimator", columns="metric", values="value")
    assert ours["AE"].to_dict() == pytest.approx(errors, abs=0.5), "to the dollar"
    assert ours.loc["t-ridge", "R²"] == pytest.approx(r2, abs=5e-5)
