"""Specifications: what is read, and what is said when it cannot be."""

import re
import warnings

import pandas as pd
import pytest
import yaml

from lib import ROOT
from lib.errors import InputError
from lib.income import MECHANISMS
from lib.scm import Simulator, Specification
from lib.scm.mechanisms import ConstantSampler, GaussianVariable, KeepPrevious

AGE = {"sampler": "gaussian", "seq_sampler": "IncrementSampler"}
PAY = {"parents": ["age"], "sampler": "LinearGaussianSampler"}


def two(**changes) -> dict:
    """A valid pair of variables, with changes to the second."""
    return {"age": AGE, "pay": {**PAY, **changes}}


def test_a_valid_specification_is_understood():
    specification = Specification(two())
    assert specification.orders[0] == ["age", "pay"]
    assert set(specification.graph(step=0).edges) == {("age", "pay")}
    assert set(specification.transition_graph().edges) == {
        (("age", -1), ("age", 0)),
        (("pay", -1), ("pay", 0)),
    }
    initial = specification.initial("age")
    assert isinstance(initial, GaussianVariable)
    assert specification.transition("age", initial).increment == 1
    assert isinstance(specification.transition("pay", specification.initial("pay")), KeepPrevious)


def test_the_transition_graph_has_both_kinds_of_causes():
    specification = Specification.from_yaml("data/specs/income_scm_1.0.yml", MECHANISMS)
    into_status = specification.transition_graph().pred["marital-status", 0]
    assert set(into_status) == {("age", 0), ("studies", -1), ("marital-status", -1)}


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"a": {"parents": ["b"], "sampler": "Ridge"}, "b": AGE},
            "model.yml: variable 'a', sampler: type 'Ridge' is unknown: expected one of None, "
            "gaussian, multinomial",
        ),
        (
            two(parents=["age", "sex"]),
            "model.yml: variable 'pay', parents: parent 'sex' is unknown: expected one of age, pay",
        ),
        (
            two(seq_parents_prev=["sex"]),
            "model.yml: variable 'pay', seq_parents_prev: parent 'sex' is unknown",
        ),
        (
            {"age": {**AGE, "parents": ["pay"]}, "pay": PAY},
            "model.yml: causes at step 0 form a cycle: age → pay → age",
        ),
        (two(parents=["age", "pay"]), "model.yml: causes at step 0 form a cycle: pay → pay"),
        (
            {
                "age": {**AGE, "seq_parents_curr": ["pay"]},
                "pay": {**PAY, "seq_parents_curr": ["age"]},
            },
            "model.yml: causes at step 1 form a cycle: age → pay → age",
        ),
        (
            two(sampler={"type": "LinearGaussianSampler", "leafs": 3}),
            "model.yml: variable 'pay', sampler (LinearGaussianSampler): key 'leafs' is unknown: "
            "expected one of estimator, round_result, bounds, std_mod, copy",
        ),
        (
            {"age": {"sampler": {"type": "gaussian", "mean": 3}}},
            "model.yml: variable 'age', sampler (gaussian): key 'mean' is unknown: expected one of "
            "round_result, bounds",
        ),
        (
            {"age": {"sampler": {"type": "gaussian", "noise_terms": 3}}},
            "model.yml: variable 'age', sampler (gaussian): key 'noise_terms' is unknown",
        ),
        (
            two(sampler={"type": "LinearGaussianSampler", "std_mod": "wide"}),
            "variable 'pay', sampler (LinearGaussianSampler): key 'std_mod': input should be a "
            "valid number, unable to parse string as a number, found 'wide'",
        ),
        (
            two(sampler={"type": "LinearGaussianSampler", "bounds": [3, 2]}),
            "key 'bounds': the lower bound must be below the upper bound, found [3, 2]",
        ),
        (
            two(sampler={"type": "LinearGaussianSampler", "std_mod": -1}),
            "key 'std_mod': input should be greater than or equal to 0, found -1",
        ),
        (
            two(parent=["age"]),
            "model.yml: variable 'pay': key 'parent' is unknown: expected one of sampler, parents",
        ),
        (
            two(parents="age"),
            "model.yml: variable 'pay': key 'parents': input should be a valid tuple, found 'age'",
        ),
        ({"age": {}}, "model.yml: variable 'age': key 'sampler' is missing"),
        ({"age": {"sampler": {"bounds": [1, 2]}}}, "variable 'age': key 'sampler.type' is missing"),
        ({"time": {"sampler": "ConstantSampler"}}, "(ConstantSampler): key 'value' is missing"),
        ({"age": "gaussian"}, "variable 'age' must be a mapping of keys: found 'gaussian'"),
        *(
            (two() | {name: AGE}, f"variable '{name}' needs another name; samples already have c")
            for name in ("subject", "t")
        ),
        ({}, "model.yml: 'variables' must map names to variables: found {}"),
        *(
            (
                {name: {"sampler": "gaussian"}},
                f"variable {name} must have text as its name, in YAML",
            )
            for name in (1, True)  # YAML reads 1 and yes so, of which the second would be lost
        ),
        (
            two(seq_sampler={"type": "HoursPerWeekTransition", "sampler": "#init_sampler"}),
            "model.yml: variable 'pay': HoursPerWeekTransition needs 'age' in "
            "seq_parents_curr: found []",
        ),
        (
            two(seq_sampler={"type": "HoursPerWeekTransition", "sampler": "#first"}),
            "model.yml: variable 'pay', seq_sampler, key 'sampler': reference '#first' is unknown: "
            "expected #init_sampler",
        ),
        (
            two(sampler={"type": "HoursPerWeekTransition", "sampler": "#init_sampler"}),
            "key 'sampler': reference '#init_sampler' is unknown: none is allowed here",
        ),
        (
            two(
                seq_sampler={"type": "RelationshipTransition", "sampler": "#init_sampler"},
                seq_parents_curr=["age"],
            ),
            "variable 'pay', seq_sampler (RelationshipTransition): key 'sampler': a "
            "CategoricalMechanism is needed, found 'LinearGaussianSampler'",
        ),
        (
            two(sampler="EducationNumSampler"),
            "model.yml: variable 'pay': EducationNumSampler needs 'education' in "
            "parents: found ['age']",
        ),
        (
            two(seq_sampler="WorkclassTransition"),
            "variable 'pay': WorkclassTransition needs 'studies' in "
            "seq_parents_prev: found ['pay']",
        ),
        (
            {"age": {"sampler": "LinearGaussianSampler"}},
            "variable 'age': LinearGaussianSampler needs parents to learn from: found []",
        ),
        *(
            (
                two(sampler=sampler),
                f"model.yml: variable 'pay': {kind} takes no parents: found ['age']",
            )
            for sampler, kind in [
                ("gaussian", "GaussianVariable"),
                ("multinomial", "MultinomialVariable"),
                ("bernoulli", "BernoulliVariable"),
                ("EmpiricalVariable", "EmpiricalVariable"),
                ({"type": "ConstantSampler", "value": 1}, "ConstantSampler"),
            ]
        ),
        *(
            (
                two(seq_sampler=sampler, **{f"seq_parents_{when}": ["age"]}),
                f"model.yml: variable 'pay': {kind} takes no seq_parents_{when}: found ['age']",
            )
            for sampler, kind in [
                ("None", "KeepPrevious"),
                ("IncrementSampler", "IncrementSampler"),
                ("gaussian", "GaussianVariable"),
                ({"type": "ConstantSampler", "value": 1}, "ConstantSampler"),
            ]
            for when in ("curr", "prev")
        ),
        *(
            (
                two(seq_sampler=kind, seq_parents_curr=["age"], seq_parents_prev=["age"]),
                f"model.yml: variable 'pay': {kind} takes no seq_parents_prev: found ['age']",
            )
            for kind in ("LinearGaussianSampler", "LogisticTransitionSampler")
        ),
        (
            two(seq_sampler="LinearGaussianSampler", seq_parents_prev=["age"]),
            "'pay': LinearGaussianSampler needs seq_parents_curr to learn from: found []",
        ),
        *(
            (
                {"age": {"sampler": sampler}},
                "variable 'age', sampler: no mechanism of the first step may read a step before: "
                f"found '{kind}'",
            )
            for sampler, kind in [
                ("None", "KeepPrevious"),
                ("IncrementSampler", "IncrementSampler"),
                ("EducationTransition", "EducationTransition"),
                ("LogisticTransitionSampler", "LogisticTransitionSampler"),
            ]
        ),
    ],
)
def test_a_broken_rule_is_one_sentence(tmp_path, variables, sentence):
    path = tmp_path / "model.yml"
    path.write_text(yaml.safe_dump({"variables": variables}, sort_keys=False), encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(sentence)) as raised:
        Specification.from_yaml(path, MECHANISMS)
    message = str(raised.value)
    assert "\n" not in message and str(path) in message
    with pytest.raises(InputError, match=re.escape(sentence)):
        Specification(variables, "model.yml", MECHANISMS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("variables: {age: {sampler: gaussian}, age: {sampler: None}}", "key 'age' occurs twice"),
        ("variables:\n  age: {sampler: gaussian, sampler: None}", "key 'sampler' occurs twice"),
        ("variables: [", "is not YAML"),
        ("variables: {age: !!python/object:os.system {}}", "is not YAML"),
        ("just text", "the key 'variables' is missing"),
        ("", "the key 'variables' is missing"),
        ("variables: 3", "'variables' must map names to variables"),
        ("variables: {age: {sampler: gaussian}}\nvariable: 3", "key 'variable' is unknown"),
    ],
)
def test_a_file_that_is_no_specification_is_refused_in_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "model.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(sentence)) as raised:
        Specification.from_yaml(path)
    assert path.name in str(raised.value) and "\n" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin.yml").write_bytes("title: caf\xe9".encode("latin-1"))
    with pytest.raises(InputError, match=r"file nowhere.yml does not exist"):
        Specification.from_yaml("nowhere.yml")
    for path in (tmp_path / "nowhere.yml", tmp_path, tmp_path / "latin.yml"):
        sentence = "does not exist" if "nowhere" in path.name else "cannot be read: "
        with pytest.raises(InputError, match=re.escape(f"file {path} {sentence}")):
            Specification.from_yaml(path)


def from_text(folder, text: str) -> Specification:
    """Read a specification from a file that says this."""
    path = folder / "model.yml"
    path.write_text(text, encoding="utf-8")
    return Specification.from_yaml(path, MECHANISMS)


def test_yaml_anchors_and_merges_are_read(tmp_path):
    text = """
    variables:
      age: &number {sampler: gaussian, seq_sampler: IncrementSampler}
      pay: {<<: *number, seq_sampler: None}
    """
    variables = from_text(tmp_path, text).variables
    assert variables["pay"].sampler.type == "gaussian"
    assert variables["pay"].seq_sampler.type == "None"


def test_mechanisms_of_your_own():
    class Seven(ConstantSampler):
        """Always seven."""

    specification = Specification(
        {"x": {"sampler": {"type": "Seven", "value": 7}}}, types={"Seven": Seven}
    )
    drawn = Simulator(specification).fit(pd.DataFrame({"y": [1.0]})).sample(n=2)
    assert drawn["x"].tolist() == [7.0, 7.0]


@pytest.mark.parametrize("folder", ["/", "."])
def test_the_books_own_files_are_found_from_any_folder(monkeypatch, tmp_path, folder):
    monkeypatch.chdir(tmp_path / folder)
    specification = Specification.from_yaml("data/specs/income_scm_1.0.yml", MECHANISMS)
    assert len(specification.variables) == 14


# --- the files that people already have -------------------------------------------------

#: Keys of such a file that steer other software: with how many warnings, each once.
PUBLIC_KEYS = {
    "experiment": {"label": "income"},
    "data": {"label": "adult", "path": "./data/adult.data", "download": True},
    "simulator": {"seed": 0, "path": "./simulator.pkl", "label": "income"},
    "samples": [
        {"label": "obs", "seed": 0, "path": "./obs", "policy": "default", "n_samples": 50_000},
        {"label": "int", "seed": [1, 2], "policy": ["full", "no"], "horizon": 7, "csv": True},
    ],
    "figures": {"path": "./figures"},
}


def public_file() -> str:
    """Write IncomeSCM-1.0 in the dialect of the public files, from the book's own file."""
    content = yaml.safe_load((ROOT / "data/specs/income_scm_1.0.yml").read_text(encoding="utf-8"))
    variables = content["variables"]
    time = {
        "parents": [],
        "sampler": {"type": "ConstantSampler", "value": 0},
        "seq_parents_curr": [],
        "seq_parents_prev": ["time"],
        "seq_sampler": {"type": "IncrementSampler", "increment": 1},
    }
    variables = {"time": time, **variables}
    for key in ("parents", "seq_parents_curr"):
        variables["studies"][key] = ["time", *variables["studies"][key]]
    variables["age"]["label"] = "Age (years)"
    variables["age"]["seq_fit"] = False
    variables["education"]["sampler"] = {"type": "LogisticSampler", "multi_class": "multinomial"}
    variables["education"]["transform_input"] = True
    variables["education"]["seq_transform_input"] = False
    for name in ("hours-per-week", "capital-net"):
        variables[name]["seq_sampler"]["transformation"] = "#transformation"
    del variables["capital-net"]["seq_sampler"]["p_stay"]
    raising = variables["income"]["seq_sampler"]
    raising["self.max_raise_frac"] = raising.pop("max_raise_frac")
    return yaml.safe_dump({**PUBLIC_KEYS, "variables": variables}, sort_keys=False)


def test_a_public_file_loads_with_one_warning_for_each_key_without_meaning(tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        specification = from_text(tmp_path, public_file())
        loaded = [str(warning.message) for warning in caught]
        specification.initial("capital-net")  # as fitting does: says nothing again
        assert len(caught) == len(loaded)
    places = [
        *PUBLIC_KEYS,
        "label",
        "seq_fit",
        "multi_class",
        "transform_input",
        "seq_transform_input",
    ]
    places += ["transformation"] * 2
    keys = [
        re.fullmatch(r".*key '(\S+)' has no meaning here and is ignored", text)[1]
        for text in loaded
    ]
    assert sorted(keys) == sorted(places)
    assert any("variable 'hours-per-week', seq_sampler: key 'transf" in text for text in loaded)


@pytest.mark.filterwarnings("ignore:.*has no meaning here and is ignored")
def test_keys_that_stand_twice_are_refused_only_where_they_mean_something(tmp_path):
    # The authors' own file says so, in a section that steers other software.
    twice = public_file().replace("simulator:\n  seed: 0\n", "simulator:\n  seed: 0\n  seed: 1\n")
    with pytest.warns(UserWarning, match="the key 'seed' occurs twice, in a section that is not u"):
        specification = from_text(tmp_path, twice)
    assert len(specification.variables) == 15
    with pytest.raises(InputError, match="the key 'p_stay' occurs twice"):
        once = public_file()
        from_text(tmp_path, once.replace("p_stay: 0.95", "p_stay: 1\n      p_stay: 0"))


def test_a_parameter_cannot_pretend_to_be_the_variable():
    for sampler, rule in (
        ("gaussian", "got multiple values"),
        ("LogisticSampler", "expected one of C, "),
    ):
        entry = {"sampler": {"type": sampler, "variable": "pay"}, "parents": ["pay"]}
        with pytest.raises(InputError, match=rf"key 'variable'.*{rule}"):
            Specification({"age": entry, "pay": {"sampler": "gaussian"}})


def test_a_public_file_means_the_same_as_ours(few_of_adult, tmp_path):
    ours = Simulator(Specification.from_yaml("data/specs/income_scm_1.0.yml", MECHANISMS)).fit(
        few_of_adult, seed=3
    )
    with pytest.warns(UserWarning, match="has no meaning here and is ignored"):
        public = Simulator(from_text(tmp_path, public_file()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        public.fit(few_of_adult, seed=3)
    left = ours.sample(n=300, horizon=4, seed=1)
    right = public.sample(n=300, horizon=4, seed=1)
    assert right["time"].equals(right["t"].astype(float).rename("time"))
    pd.testing.assert_frame_equal(left, right.drop(columns="time"), check_exact=True)
