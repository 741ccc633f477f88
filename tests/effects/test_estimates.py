"""The whole way: tables in, marks out; kept, resumed, extended by a class of one's own."""

import sys

import numpy as np
import pandas as pd
import pytest

from lib.effects import benchmark, read_experiment
from lib.errors import InputError

OPTIONS = {"adjustment": ["age", "sex"], "bootstraps": 20, "group": "level", "progress": False}

GRIDS = {
    "estimators": {
        "ipw": {"estimator": "IPWEstimator", "base_estimator": ["lr"]},
        "ipww": {"estimator": "IPWEstimator", "base_estimator": ["lr"], "weighted": [True]},
        "match": {"estimator": "MatchingEstimator"},
        "t": {"label": "T", "estimator": "T-learner", "base_estimator": ["ridge"]},
        "s-trees": {
            "estimator": "S-learner",
            "base_estimator": ["xgbr"],
            "base_estimator__n_estimators": [20],
        },
    }
}

MINE = '''
import numpy as np

class Difference:
    """The difference of the means of both arms, for everybody."""

    def fit(self, covariates, treatment, outcome):
        self.gain = outcome[treatment == 1].mean() - outcome[treatment == 0].mean()
        return self

    def effect(self, covariates):
        return np.full(len(covariates), self.gain)

class Wrong(Difference):
    def effect(self, covariates):
        return self.gain
'''


@pytest.fixture(autouse=True)
def own_results(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "results"))


@pytest.fixture
def tables():
    """A linear world: effect 10 + age / 10, older people study less."""
    rng = np.random.default_rng(0)

    def people(n):
        age = rng.integers(20, 60, size=n).astype(float)
        sex = np.where(rng.random(n) < 0.5, "F", "M")
        return pd.DataFrame({"age": age, "sex": sex, "level": (age // 10).astype(int)})

    seen, test = people(600), people(400)
    treated = rng.random(600) < 1 / (1 + np.exp((seen["age"] - 40) / 10))
    seen["studies"] = np.where(treated, "Full-time studies", "No studies")
    seen["income"] = seen["age"] + treated * (10 + seen["age"] / 10) + rng.normal(size=600)
    control = test.assign(income=test["age"])
    return seen, control, test.assign(income=1.1 * test["age"] + 10)


def test_table_says_who_is_right(tables):
    table = benchmark(*tables, estimators=list(GRIDS["estimators"]), grids=GRIDS, **OPTIONS)
    assert list(table.index) == list(GRIDS["estimators"])
    assert table.loc["t", "R²"] > 0.9
    assert table.loc["t", "label"] == "T"
    assert table.loc["t", "R² lower"] <= table.loc["t", "R²"] <= table.loc["t", "R² upper"]
    assert (table["AE"] < [6, 2, 1, 0.5, 3]).all()
    assert table.loc[["ipw", "ipww", "match"], "R²"].isna().all()
    assert table["criterion"].tolist() == ["AUC", "AUC", "", "R²", "R²"]
    assert table.loc["ipw", "cross-validation"] == table.loc["ipww", "cross-validation"]
    assert "R², truth" not in table


def test_marks_against_the_true_effects_stand_beside(tables):
    truth = 10 + tables[1]["age"].to_numpy() / 10
    table = benchmark(*tables, estimators=["t"], grids=GRIDS, truth=truth, **OPTIONS)
    assert table.loc["t", "R², truth"] == pytest.approx(table.loc["t", "R²"])


def test_results_are_kept_as_they_finish(tables, monkeypatch):
    class Interrupted(Exception):
        pass

    module = sys.modules["lib.effects.estimates"]
    build, built = module.build, []

    def stopping(name, *arguments):
        built.append(name)
        if name == "s-trees" and built.count(name) == 2:  # the first time is the check
            raise Interrupted
        return build(name, *arguments)

    monkeypatch.setattr(module, "build", stopping)
    with pytest.raises(Interrupted):
        benchmark(*tables, estimators=["t", "s-trees"], grids=GRIDS, **OPTIONS)
    before = built.count("t")
    resumed = benchmark(*tables, estimators=["t", "s-trees"], grids=GRIDS, **OPTIONS)
    assert (before, built.count("t")) == (2, 3)  # checked again, not fitted again
    assert resumed["R²"].notna().all()


def test_random_selection_is_reproducible(tables, tmp_path, monkeypatch):
    entry = GRIDS["estimators"]["t"] | {"base_estimator__alpha": [*range(1, 10)]}
    options = OPTIONS | {"grids": {"estimators": {"t": entry}}, "selection": "random"}
    runs = []
    for folder in ("one", "other"):  # computed twice, not remembered
        monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / folder))
        runs.append(benchmark(*tables, estimators=["t"], **options).drop(columns="seconds"))
    pd.testing.assert_frame_equal(*runs)


def test_a_class_of_ones_own(tables, tmp_path, monkeypatch):
    (tmp_path / "my_estimators.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    table = benchmark(*tables, estimators=["my_estimators:Difference"], **OPTIONS)
    seen = tables[0].groupby("studies")["income"].mean()
    expected = seen["Full-time studies"] - seen["No studies"]
    assert table["ATE"].item() == pytest.approx(expected)
    with pytest.raises(InputError, match=r"one number a subject, 400: found shape \(\)"):
        benchmark(*tables, estimators=["my_estimators:Wrong"], **OPTIONS)


def test_trees_take_missing_covariates_and_ridge_refuses_them(tables):
    seen = tables[0].assign(age=tables[0]["age"].mask(tables[0]["age"] < 30))
    options = OPTIONS | {"grids": GRIDS}
    assert benchmark(seen, *tables[1:], estimators=["s-trees"], **options)["R²"].notna().all()
    with pytest.raises(InputError, match="'t' has no way to take missing values: column 'age'"):
        benchmark(seen, *tables[1:], estimators=["s-trees", "t"], **options)


def test_true_propensities_are_an_estimator_by_name(tables):
    age = tables[0]["age"]
    chance = 1 / (1 + np.exp((age - 40) / 10))
    known = pd.DataFrame({"No studies": 1 - chance, "Full-time studies": chance})
    table = benchmark(*tables, estimators=["ipw-true"], probabilities=known, **OPTIONS)
    assert table["AE"].item() < 1
    assert table[["R²", "cross-validation"]].isna().all(axis=None)


def test_an_experiment_is_repeated_from_its_file(tables):
    content = GRIDS | {
        "experiment": {"covariates": ["age", "sex"], "seed": 1},
        "selection": {"type": "random", "n_iter": 2},
    }
    said = read_experiment(content)
    table = benchmark(*tables, **said, bootstraps=20, group="level", progress=False)
    assert list(table.index) == list(GRIDS["estimators"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": ["t-tree"]}, "estimator 't-tree' is unknown: expected one of ipw-lr"),
        ({"selection": "best"}, "selection 'best' is unknown: expected one of grid, random"),
        ({"n_settings": 0}, "n_settings must be a whole number of at least 1: found 0"),
        ({"estimators": ["ipw-true"]}, "'ipw-true' needs the true propensities"),
    ],
)
def test_what_is_refused(tables, options, message):
    with pytest.raises(InputError, match=message):
        benchmark(*tables, **(OPTIONS | options))
