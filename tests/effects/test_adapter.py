"""Estimators from elsewhere: all of EconML that fits, and what does not; options by name."""

import importlib
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from lib import ROOT
from lib.effects import estimate, evaluate, read_study
from lib.effects.adapter import adapted
from lib.effects.estimator_files import read_estimators
from lib.errors import InputError

FOREST = {"n_estimators": 40}
FASTER = {"n_trees": 4, "model_Y": "ridge"}
ECONML = {
    "econml.dml:DML": {},
    "econml.dml:LinearDML": {},
    "econml.dml:SparseLinearDML": {},
    "econml.dml:KernelDML": {},
    "econml.dml:NonParamDML": {"model_final": "ridge"},
    "econml.dml:CausalForestDML": FOREST | {"model_t": "rfr", "model_t__min_samples_leaf": 20},
    "econml.dr:DRLearner": {},
    "econml.dr:LinearDRLearner": {},
    "econml.dr:SparseLinearDRLearner": {},
    "econml.dr:ForestDRLearner": FOREST,
    "econml.metalearners:SLearner": {},
    "econml.metalearners:TLearner": {"models": "ridge"},
    "econml.metalearners:XLearner": {"models": "rfr", "models__min_samples_leaf": 5},
    "econml.metalearners:DomainAdaptationLearner": {},
    "econml.orf:DMLOrthoForest": FASTER | {"model_T": "lr"},
    "econml.orf:DROrthoForest": FASTER | {"propensity_model": "lr"},
}


@pytest.fixture(scope="module")
def world():
    """Covariates, treatment, outcome, and the true effect 2 + z₁."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(400, 2))
    treatment = (rng.random(400) < 1 / (1 + np.exp(-z[:, 0]))).astype(float)
    effect = 2 + z[:, 1]
    outcome = z[:, 0] + effect * treatment + rng.normal(scale=0.3, size=400)
    return z, treatment, outcome, effect


@pytest.mark.filterwarnings("ignore:The number of features in the final model")
@pytest.mark.parametrize("name", ECONML)
def test_every_estimator_of_effects_finds_a_linear_effect(world, name):
    covariates, treatment, outcome, effect = world
    few = 20 if "orf" in name else 400  # these fit a model for every subject they are asked about
    found = adapted(name, ECONML[name]).fit(covariates, treatment, outcome).effect(covariates[:few])
    assert found.shape == (few,)
    assert np.mean((found - effect[:few]) ** 2) < 0.3 * effect.var()


def test_the_list_is_all_that_econml_has():
    modules = [importlib.import_module(f"econml.{part}") for part in ("dml", "dr", "metalearners")]
    modules.append(importlib.import_module("econml.orf"))
    has = {
        f"{module.__name__}:{name}"
        for module in modules
        for name in module.__all__
        if hasattr(getattr(module, name), "effect")
    }
    assert has == set(ECONML)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("econml.iv.dr:LinearDRIV", {}, r"outcome only: found \['Z'\]"),
        ("econml.panel.dml:DynamicDML", {}, r"outcome only: found \['groups'\]"),
        ("econml.policy:DRPolicyForest", {}, r"must have a method effect\(covariates\)"),
        ("econml.dml:NoSuch", {}, "cannot be loaded"),
        ("econml.dml:LinearDML", {"depth": 3}, "cannot be made: .*'depth'"),
        ("econml.dml:LinearDML", {"model_y__depth": 3}, "cannot be made: .*'model_y__depth'"),
        ("econml.dml:DML", {"model_final": "rfr"}, "rfr parameter 'fit_intercept' is unknown"),
    ],
)
def test_what_is_refused(name, options, message):
    with pytest.raises(InputError, match=message):
        adapted(name, options)


def test_what_is_made_of_econml_fits_as_econml_does(world, tmp_path, monkeypatch):
    lines = ["from econml.dml import LinearDML", "class Mine(LinearDML):", "    pass"]
    (tmp_path / "own_dml.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    options = {"model_y": "ridge", "model_t": "lr"}
    covariates, treatment, outcome, _ = world
    theirs = adapted("econml.dml:LinearDML", options).fit(covariates, treatment, outcome)
    mine = adapted("own_dml:Mine", options).fit(covariates, treatment, outcome)
    np.testing.assert_array_equal(mine.effect(covariates), theirs.effect(covariates))
    frame = pd.DataFrame(covariates, columns=["a", "b"]).assign(studies=treatment, income=outcome)
    study = read_study(frame, adjustment=["a", "b"], arms=(0, 1))
    by_name = {"estimators": {"name": {"estimator": "econml.dml:LinearDML"} | options}}
    name = estimate(study, ["name"], grids=by_name, progress=False)["name"]
    assert estimate(study, {"made": theirs.estimator}, progress=False)["made"].ate == name.ate


def test_names_of_learners_become_learners_with_parameters_and_the_seed():
    options = {"model_y": "rfr", "model_y__max_depth": 3, "model_t": "rfr"}
    made = adapted("econml.dml:LinearDML", options, seed=9).estimator
    assert isinstance(made.model_y, RandomForestRegressor)
    assert (made.model_y.max_depth, made.model_y.random_state) == (3, 9)
    assert isinstance(made.model_t, RandomForestClassifier), "a treatment wants a classifier"
    assert (made.random_state, made.discrete_treatment) == (9, True)


def test_an_option_outweighs_the_usual():
    made = adapted("econml.dml:LinearDML", {"random_state": 5, "discrete_treatment": False})
    assert (made.estimator.random_state, made.estimator.discrete_treatment) == (5, False)


def test_a_treatment_that_is_a_number_has_a_regression(world):
    options = {"model_y": "ridge", "model_t": "ridge", "discrete_treatment": False}
    found = clone(adapted("econml.dml:LinearDML", options)).fit(*world[:3]).effect(world[0])
    usual = clone(adapted("econml.dml:LinearDML", options | {"discrete_treatment": True}))
    assert found.mean() == pytest.approx(usual.fit(*world[:3]).effect(world[0]).mean(), abs=0.2)


def test_the_same_seed_gives_the_same_effects(world):
    runs = [
        adapted("econml.dml:CausalForestDML", FOREST, seed).fit(*world[:3]).effect(world[0])
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize(
    ("name", "more"), [("T", {}), ("X", {"propensity": ["lr"], "final": ["rfr"]})]
)
def test_the_book_and_econml_agree_on_what_a_learner_is(world, name, more):
    """Two programs that share no code but the base learners."""
    arms = {"control": ["rfr"], "treated": ["rfr"]}
    entry = {"estimator": f"{name}-learner", **arms, **more}
    ours = read_estimators({"estimators": {name: entry}}, seed=4)[name]
    theirs = adapted(f"econml.metalearners:{name}Learner", {"models": "rfr"}, seed=4)
    ours, theirs = (made.fit(*world[:3]).effect(world[0]) for made in (ours, theirs))
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_an_entry_of_an_estimator_file_reaches_the_table_and_is_kept(world, tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))
    z, treatment, outcome, effect = world
    control = pd.DataFrame({"a": z[:, 0], "b": z[:, 1], "y": z[:, 0]})
    seen = control.assign(t=treatment.astype(int), y=outcome)
    study = read_study(
        seen,
        control,
        control.assign(y=control["y"] + effect),
        **{"adjustment": ["a", "b"], "arms": (0, 1), "treatment": "t", "outcome": "y"},
    )
    entry = {"estimator": "econml.metalearners:SLearner", "overall_model": "ridge"}
    ask = {"grids": {"estimators": {"theirs": entry}}, "progress": False}
    found = estimate(study, ["theirs"], **ask)
    # Seconds are measured, so that only a kept result has the same ones again.
    assert estimate(study, ["theirs"], **ask)["theirs"].seconds == found["theirs"].seconds
    table = evaluate(study, found, bootstraps=10).set_index("metric")
    assert table.loc["ATE", "value"] == pytest.approx(effect.mean(), abs=0.2)


def test_fitting_leaves_an_estimator_of_econml_as_it_was(world):
    made = adapted("econml.dml:LinearDML", {"model_y": "ridge", "model_t": "lr"})
    again = clone(made)
    first, second = (each.fit(*world[:3]).effect(world[0]) for each in (made, again))
    assert made.estimator is not made.estimator_
    np.testing.assert_array_equal(first, second)


def test_econml_is_imported_when_it_is_asked_for():
    code = (
        "import sys; from lib.effects import labels, read_study; labels();"
        "assert not any(name.startswith('econml') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_what_a_class_needs_beside_a_study_is_given_by_whoever_asks_for_it():
    name = "econml.panel.dml:DynamicDML"
    with pytest.raises(InputError, match=r"outcome only: found \['groups'\]"):
        adapted(name, {})
    made = adapted(name, {"model_y": "ridge", "model_t": "lr"}, given=["groups"]).estimator
    assert made.discrete_treatment
    assert type(made.model_y).__name__ == "Ridge"
