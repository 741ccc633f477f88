"""Estimator files: ours, public ones, and broken ones."""

import warnings

import pytest

from lib.effects.estimator_files import (
    PAPER,
    every_setting,
    labels,
    read_estimators,
    read_experiment,
)
from lib.effects.estimators import ESTIMATORS
from lib.errors import InputError


def build(name, entry, **options):
    """Return the estimator that an entry describes."""
    return read_estimators({"estimators": {name: entry}}, **options)[name]


def test_our_file_reads_without_a_warning_and_has_the_papers_eleven():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entries = read_estimators()
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
    assert len(getattr(read_estimators()[name], slot).settings()) == settings


def test_hajek_and_horvitz_thompson_are_told_apart():
    entries = read_estimators()
    assert entries["ipww-lr"].weighted is True
    assert entries["ipw-lr"].weighted is False


def test_one_name_fills_every_slot_and_a_slot_can_differ():
    entry = {
        "estimator": "T-learner",
        "base_estimator1__alpha": [7],
        "base_estimator": ["ridge"],
        "base_estimator__alpha": [1, 2],
    }
    made = build("t", entry)
    assert [s.alpha for s in made.control.settings()] == [1, 2]
    assert [s.alpha for s in made.treated.settings()] == [7]
    two = build("s", {"estimator": "S-learner", "base_estimator": ["ridge", "rfr"]}).outcome
    assert [type(s).__name__ for s in two.settings()] == ["Ridge", "RandomForestRegressor"]


def test_seed_and_selection_reach_every_search():
    every = read_estimators(seed=9)["t-rfr"].treated
    assert (every.settings()[0].random_state, every.n_settings) == (9, None)
    drawn = read_estimators(estimators="t-rfr", selection="random", n_settings=7, seed=9)
    assert list(drawn) == ["t-rfr"]
    assert (drawn["t-rfr"].control.n_settings, drawn["t-rfr"].control.seed) == (7, 9)
    usual = read_estimators(estimators="t-rfr", selection="random")["t-rfr"].control
    assert usual.n_settings == 20, "as in the paper"


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
        read_estimators(content)
    text = " ".join(str(w.message) for w in warned)
    assert all(key in text for key in ("'figures'", "'metric'", "'colour'"))


def test_one_name_for_all_of_dml_means_a_classifier_where_one_is_needed():
    entry = {"estimator": "DMLCATEEstimator", "base_estimator": ["xgbr"]}
    made = build("dml", entry)
    assert type(made.propensity.settings()[0]).__name__ == "XGBClassifier"
    assert type(made.outcome.settings()[0]).__name__ == "XGBRegressor"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"estimator": "No-learner"}, "class 'No-learner' is unknown: expected one of IPW"),
        ({"estimator": "S-learner"}, r"slot 'outcome' .* such as base_estimator: \[ridge\]"),
        ({"estimator": "IPWEstimator"}, r"slot 'propensity' .* such as base_estimator: \[lr\]"),
        (
            {"estimator": "DMLCATEEstimator", "y_estimator": ["xgbr"]},
            "slot 'propensity' has no base estimator",
        ),
        ({"estimator": "S-learner", "base_estimator": ["svm"]}, "base estimator 'svm' is unknown"),
        (
            {"estimator": "S-learner", "base_estimator": ["lr"]},
            "outcome regressor 'lr' is unknown: expected one of ridge",
        ),
        (
            {"estimator": "IPWEstimator", "base_estimator": ["rfr"]},
            "propensity classifier 'rfr' is unknown: expected one of lr",
        ),
        (
            {"estimator": "S-learner", "base_estimator": ["rfr"], "base_estimator__depth": [1]},
            "rfr parameter 'depth' is unknown",
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
        ({"label": "nameless"}, "must be a mapping with text as keys, one of them 'estimator'"),
        ({"estimator": "no_such_module:Mine"}, "cannot be loaded"),
        ({"estimator": "lib.effects.study:NoSuch"}, "cannot be loaded"),
        ({"estimator": "lib.errors:InputError"}, "must have a method fit"),
        ({"estimator": ":"}, "cannot be loaded"),
        ({"estimator": "sklearn.linear_model:Ridge", "beta": 1}, "cannot be made"),
        (
            {"estimator": "S-learner", "base_estimator": "ridge", 3: 4},
            "with text as keys, .*: found",
        ),
    ],
)
def test_what_is_refused(entry, message):
    with pytest.raises(InputError, match=message):
        read_estimators({"estimators": {"mine": entry}})


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_estimators(tmp_path / "none.yml")
    for text, message in (("a: [", "is not YAML"), ("a: 1", "under the key 'estimators'")):
        (tmp_path / "bad.yml").write_text(text)
        with pytest.raises(InputError, match=message):
            read_estimators(tmp_path / "bad.yml")


@pytest.mark.parametrize(
    ("name", "needs"),
    [("t-rfr", False), ("s-xgbr", False), ("ipw-lr", True), ("match-nn-eu", True)],
)
def test_trees_have_a_way_to_take_missing_values(name, needs):
    assert read_estimators()[name].takes_missing() is not needs


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
    content["estimators"]["theirs"] = {"estimator": "no_such_module:Theirs"}
    with pytest.warns(UserWarning, match=r"of other modules are left out: \['theirs'\]"):
        assert read_experiment(content)["estimators"] == ["match-nn-eu"], "whose code would run"
    content["selection"]["folds"] = 10
    with pytest.raises(
        InputError, match="folds of the selection must be 5, as in the paper: found 10"
    ):
        read_experiment(content)
    content["selection"]["folds"] = 5
    del content["experiment"]["intervention1"]
    with pytest.raises(
        InputError, match=r"intervention0 and intervention1 .*: found .'No studies', None"
    ):
        read_experiment(content)


AUTHORS_DML = """
experiment: {label: theirs, seed: 1, outcome: income}
simulator:
  seed: 0
  path: ./simulator.pkl
  seed: 1
estimators:
  dml-lin:
    estimator: DMLCATEEstimator
    y_estimator: [ridge]
    t_estimator: [lr]
    e_estimator: [ridge]
    e_estimator__alpha: [0.1, 1, 10]
    t_estimator__C: [1, 10]
  dml-mix:
    estimator: DMLCATEEstimator
    y_estimator: [xgbr]
    y_estimator__max_depth: [3, 5]
    t_estimator: [lr]
    e_estimator: [ridge]
  dml-rf:
    estimator: DMLCATEEstimator
    y_estimator: [rfr]
    t_estimator: [rfc]
    t_estimator__min_samples_leaf: [5]
    e_estimator: [rfr]
    e_estimator__min_samples_leaf: [10, 20]
"""


def test_the_authors_names_of_outcome_treatment_and_effect(tmp_path):
    (tmp_path / "estimation_dml.yml").write_text(AUTHORS_DML)
    with pytest.warns(UserWarning) as warned:
        made = read_estimators(tmp_path / "estimation_dml.yml")
    said = " ".join(str(warning.message) for warning in warned)
    assert "line 6: the key 'seed' occurs twice, in a section that is not used here" in said
    assert "no key names" not in said
    linear, mixed, forests = made.values()
    assert [setting.alpha for setting in linear.final.settings()] == [0.1, 1, 10]
    assert [setting.C for setting in linear.propensity.settings()] == [1, 10]
    assert [setting.max_depth for setting in mixed.outcome.settings()] == [3, 5]
    kinds = [type(getattr(mixed, slot).learner).__name__ for slot in mixed.slots()]
    assert kinds == ["XGBRegressor", "LogisticRegression", "Ridge"]
    assert forests.propensity.settings()[0].min_samples_leaf == 5
    assert [setting.min_samples_leaf for setting in forests.final.settings()] == [10, 20]


def test_a_key_that_stands_twice_where_it_means_something_is_refused(tmp_path):
    text = "estimators: {m: {estimator: MatchingEstimator}, m: {estimator: S-learner}}"
    (tmp_path / "twice.yml").write_text(text)
    with pytest.raises(InputError, match="'m' occurs twice"):
        read_estimators(tmp_path / "twice.yml")


def test_a_key_may_stand_twice_in_a_section_that_nobody_here_knows(tmp_path):
    text = "estimators: {m: {estimator: MatchingEstimator}}\nmy_notes: {by: me, by: you}\n"
    (tmp_path / "notes.yml").write_text(text)
    with pytest.warns(UserWarning) as warned:
        assert [*read_estimators(tmp_path / "notes.yml")] == ["m"]
    said = [str(warning.message) for warning in warned]
    assert "line 2: the key 'by' occurs twice, in a section that is not used here" in said[0]
    assert "section 'my_notes' has no meaning here" in said[1]


def test_keys_become_nested_parameters_of_scikit_learns():
    made = read_estimators()["t-ridge"]
    assert made.get_params()["control__grid"][0].keys() == {"learner__alpha"}
    made.set_params(treated__learner__fit_intercept=False, control__n_settings=3)
    assert made.treated.settings()[0].fit_intercept is False


def test_every_setting_is_an_entry_of_its_own():
    (search,) = read_estimators()["s-xgbr"].get_params(deep=False).values()
    alone = read_estimators(every_setting("s-xgbr"))
    assert [repr(setting) for setting in search.settings()] == [
        repr(made.outcome.learner) for made in alone.values()
    ]
    assert len(every_setting("t-rfr")["estimators"]) == 25, "of both arms"
    labelled = [*labels(every_setting("s-xgbr")).values()]
    assert labelled[0] == "S-learner (XGB), eta 0.1, max_depth 3", labelled[0]
    assert len({*labelled}) == len(labelled)
    with pytest.raises(InputError, match="estimator 's-xgb' is unknown: expected one of"):
        every_setting("s-xgb")
    mine = {"estimator": "sklearn.linear_model:Ridge", "alpha": [1, 10], "solver": "svd"}
    apart = read_estimators(every_setting("mine", {"estimators": {"mine": mine}}))
    assert {name: one.alpha for name, one in apart.items()} == {"alpha 1": 1, "alpha 10": 10}


@pytest.mark.parametrize(
    "file",
    [
        *(None, 3, [], {}, {"estimators": []}, {"estimators": {"s": None}}),
        *({"estimators": {}, "selection": [1]}, {"estimators": {}, "experiment": "x"}),
    ],
)
def test_what_is_no_estimator_file_is_refused_in_one_sentence(file):
    for read in (read_estimators, read_experiment):
        with pytest.raises(InputError, match=r"must (have|be) a mapping"):
            read(file)


def test_other_libraries_are_imported_only_if_they_are_asked_for():
    theirs = {"estimator": "nowhere:At", "bootstrap": 20}
    entries = {"mine": {"estimator": "MatchingEstimator"}, "theirs": theirs}
    assert list(read_estimators({"estimators": entries}, ["mine"])) == ["mine"]
    with pytest.raises(InputError, match="'theirs': nowhere:At cannot be loaded"):
        read_estimators({"estimators": entries}, ["theirs"])


def test_an_unknown_estimand_is_refused_when_the_file_is_read():
    for kind, slots in (("IPWEstimator", "propensity"), ("AIPW", "control treated propensity")):
        entry = {"estimator": kind, "estimand": "ATU"} | dict.fromkeys(slots.split(), "lr")
        entry |= dict.fromkeys({"control", "treated"} & entry.keys(), "ridge")
        rule = "estimator 'w': estimand 'ATU' is unknown: expected one of 'ATE, two arms'"
        with pytest.raises(InputError, match=rule):
            read_estimators({"estimators": {"w": entry}})
        made = read_estimators({"estimators": {"w": entry | {"estimand": ["ATO"]}}})
        assert made["w"].estimand == "ATO"


def test_a_class_is_an_entry_by_its_own_name():
    names = ["MatchingEstimator", "TruePropensityWeighting"]
    found = read_estimators(estimators=names)
    assert [type(made).__name__ for made in found.values()] == ["Matching", names[1]]
    assert list(found) == names
    with pytest.raises(InputError, match="'T-learner': slot 'control' has no base estim"):
        read_estimators(estimators=["T-learner"])


NEW = """
from lib.effects.estimators import EffectEstimator
from lib.effects.learners import as_search

class Half(EffectEstimator, name="half"):
    def __init__(self, outcome, share=0.5):
        self.outcome, self.share = outcome, share

    def fit(self, covariates, treatment, outcome):
        self.outcome_ = as_search(self.outcome).fit(covariates, outcome)
        return self

    def effect(self, covariates):
        return self.share * self.outcome_.predict(covariates)
"""


def test_a_class_of_lib_enters_itself():
    space = {"__name__": "lib.effects.half"}
    exec(NEW, space)
    try:
        made = build("h", {"estimator": "half", "outcome": ["ridge"], "share": [0.25]})
        assert (made.share, type(made.outcome.learner).__name__) == (0.25, "Ridge")
        with pytest.raises(InputError, match="'share' must be one value"):
            build("h", {"estimator": "half", "outcome": ["ridge"], "share": [0.25, 0.5]})
    finally:
        ESTIMATORS.pop("half")
