"""Estimator files: ours, public ones, and broken ones."""

import warnings

import pytest

from lib.effects.adapter import EconML
from lib.effects.estimator_files import (
    PAPER,
    build,
    needs_complete_covariates,
    read_experiment,
    read_grids,
)
from lib.errors import InputError


def test_our_file_reads_without_a_warning_and_has_the_papers_eleven():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entries = read_grids()
    assert set(PAPER) <= set(entries)
    assert {"dml-lin", "dml-rf", "dml-xgb", "dml-mix", "aipw"} <= set(entries)


@pytest.mark.parametrize(
    ("name", "slot", "settings"),
    [
        ("ipw-lr", "propensity", 10),
        ("ipww-rfc", "propensity", 5),
        ("s-ridge", "outcome", 11),
        ("s-xgbr", "outcome", 16),
        ("t-xgbr", "treated", 16),
        ("t-rfr", "control", 5),
    ],
)
def test_grids_are_those_of_table_6(name, slot, settings):
    assert len(getattr(build(name, read_grids()[name]), slot).settings) == settings


def test_hajek_and_horvitz_thompson_are_told_apart():
    entries = read_grids()
    assert build("ipww-lr", entries["ipww-lr"]).weighted is True
    assert build("ipw-lr", entries["ipw-lr"]).weighted is False


def test_one_name_fills_every_slot_and_a_slot_can_differ():
    entry = {
        "estimator": "T-learner",
        "base_estimator1__alpha": [7],
        "base_estimator": ["ridge"],
        "base_estimator__alpha": [1, 2],
    }
    made = build("t", entry)
    assert [s.alpha for s in made.control.settings] == [1, 2]
    assert [s.alpha for s in made.treated.settings] == [7]


def test_table_6_calls_the_penalty_of_ridge_c():
    entry = {"estimator": "S-learner", "base_estimator": ["ridge"], "base_estimator__C": [5]}
    assert build("s", entry).outcome.settings[0].alpha == 5


def test_seed_reaches_every_learner_that_draws():
    assert build("t-rfr", read_grids()["t-rfr"], seed=9).treated.settings[0].random_state == 9


def test_keys_without_a_meaning_are_named_in_a_warning():
    content = {
        "experiment": {},
        "figures": {},
        "estimators": {
            "match-nn-eu": {"estimator": "MatchingEstimator", "metric": ["euclidean"]},
            "dml-lin": {
                "estimator": "DMLCATEEstimator",
                "base_estimator": ["ridge"],
                "colour": "blue",
            },
        },
    }
    with pytest.warns(UserWarning) as warned:
        read_grids(content)
    text = " ".join(str(w.message) for w in warned)
    assert all(key in text for key in ("'figures'", "'metric'", "'colour'"))


def test_one_name_for_all_of_dml_means_a_classifier_where_one_is_needed():
    entry = {"estimator": "DMLCATEEstimator", "base_estimator": ["xgbr"]}
    made = build("dml", entry)
    assert type(made.propensity.settings[0]).__name__ == "XGBClassifier"
    assert type(made.outcome.settings[0]).__name__ == "XGBRegressor"


def test_a_slot_of_dml_that_has_an_unknown_name_is_linear_and_said_so():
    entry = {"estimator": "DMLCATEEstimator", "model_y": ["xgbr"], "nuisance": ["rfc"]}
    with pytest.warns(UserWarning, match="no key names its propensity model: lr is used"):
        made = build("dml", read_grids({"estimators": {"dml": entry}})["dml"])
    assert type(made.outcome.settings[0]).__name__ == "XGBRegressor"
    assert type(made.propensity.settings[0]).__name__ == "LogisticRegression"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"estimator": "U-learner"}, "class 'U-learner' is unknown: expected one of IPWEstimator"),
        ({"estimator": "S-learner"}, "no base estimator for its slot 'outcome'"),
        ({"estimator": "S-learner", "base_estimator": ["svm"]}, "base estimator 'svm' is unknown"),
        ({"estimator": "S-learner", "base_estimator": ["lr"]}, "needs a regressor: found 'lr'"),
        ({"estimator": "IPWEstimator", "base_estimator": ["rfr"]}, "needs a classifier"),
        (
            {"estimator": "S-learner", "base_estimator": ["rfr"], "base_estimator__depth": [1]},
            "parameter 'depth' of rfr is unknown",
        ),
        (
            {"estimator": "S-learner", "base_estimator": ["rfr"], "base_learner__x": [1]},
            "key 'base_learner' is unknown",
        ),
        ({"estimator": "S-learner", "base_estimator": []}, "at least one value"),
        (
            {"estimator": "IPWEstimator", "base_estimator": ["lr"], "weighted": ["often"]},
            r"must be \[true\] or \[false\]",
        ),
        ({"label": "nameless"}, "must be a mapping with a key 'estimator'"),
        ({"estimator": "no_such_module:Mine"}, "cannot be loaded"),
        ({"estimator": "lib.effects.study:NoSuch"}, "cannot be loaded"),
        ({"estimator": "lib.errors:InputError"}, "must have a method fit"),
    ],
)
def test_what_is_refused(entry, message):
    with pytest.raises(InputError, match=message):
        read_grids({"estimators": {"mine": entry}})


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_grids(tmp_path / "none.yml")
    for text, message in (("a: [", "is not YAML"), ("a: 1", "under the key 'estimators'")):
        (tmp_path / "bad.yml").write_text(text)
        with pytest.raises(InputError, match=message):
            read_grids(tmp_path / "bad.yml")


@pytest.mark.parametrize(("name", "needs"), [("t-rfr", False), ("s-xgbr", False), ("ipw-lr", True)])
def test_trees_have_a_way_to_take_missing_values(name, needs):
    assert needs_complete_covariates(build(name, read_grids()[name])) is needs


def test_a_public_file_says_what_it_wants_of_its_study():
    content = {
        "experiment": {
            "label": "theirs",
            "seed": 3,
            "outcome": "income",
            "intervention": "studies",
            "intervention0": "No studies",
            "intervention1": "Day course",
            "covariates": ["age", "sex"],
        },
        "selection": {"type": "random", "n_iter": 7, "folds": 5},
        "data": {"label": "theirs", "path": "./data"},
        "estimators": {"match-nn-eu": {"label": "M", "estimator": "MatchingEstimator"}},
    }
    assert read_experiment(content) == {
        "grids": content,
        "estimators": ["match-nn-eu"],
        "adjustment": ["age", "sex"],
        "treatment": "studies",
        "outcome": "income",
        "seed": 3,
        "arms": ("No studies", "Day course"),
        "selection": "random",
        "n_settings": 7,
    }
    content["selection"]["folds"] = 10
    with pytest.raises(InputError, match="selection has 5 folds, as the paper's: found 10"):
        read_experiment(content)


def test_estimators_of_other_libraries_get_complete_covariates():
    assert needs_complete_covariates(EconML(None))
