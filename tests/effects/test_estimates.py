"""The whole way: tables in, metrics out; kept, resumed, extended by a class of one's own."""

import importlib
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import Ridge

import lib.effects
from lib import ROOT
from lib.effects import benchmark, benchmarks, estimate, labels, read_experiment, read_study
from lib.effects.estimates import with_settings_of
from lib.effects.estimator_files import read_estimators
from lib.effects.estimators import SLearner, TLearner
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

class NoNumber(Difference):
    def effect(self, covariates):
        return np.append(super().effect(covariates[1:]), np.nan)

class Silent:
    def fit(self, covariates, treatment, outcome):
        return self

class Odd(Difference):
    estimand = "ATE of all"

class Meddler(Difference):
    def __init__(self, place):
        self.place = place

    def fit(self, *data):
        super().fit(*data)
        data[self.place][::3] = 0.0
        return self
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


def wide(table, values="value"):
    return table.pivot_table(index="estimator", columns="metric", values=values)


def test_table_says_who_is_right(tables):
    names = list(GRIDS["estimators"])
    found = benchmark(*tables, estimators=names, grids=GRIDS, **OPTIONS)
    assert list(found) == ["study", "estimator", "estimand", "metric", "value", "lower", "upper"]
    assert list(found["estimator"].unique()) == names
    table = wide(found).loc[names]
    assert table.loc["t", "R²"] > 0.9
    assert labels(GRIDS)["t"] == "T"
    ends = [wide(found, end).loc["t", "R²"] for end in ("lower", "value", "upper")]
    assert sorted(ends) == ends
    assert (table["AE"] < [6, 2, 1, 0.5, 3]).all()
    assert table.loc[["ipw", "ipww", "match"], "R²"].isna().all()
    assert table.loc["ipw", "cross-validation"] == table.loc["ipww", "cross-validation"]
    assert "R², truth" not in table


def test_what_was_chosen_is_said(tables):
    options = {k: v for k, v in OPTIONS.items() if k not in ("bootstraps", "progress")}
    study = read_study(*tables, **options)
    found = estimate(study, list(GRIDS["estimators"]), grids=GRIDS, progress=False)
    assert found["t"].settings == "control: Ridge; treated: Ridge"


def test_estimators_that_are_made_already_do_as_well_as_names(tables, capsys):
    study = read_study(*tables, adjustment=["age", "sex"], group="level")
    by_name = estimate(study, ["t"], grids=GRIDS)["t"]
    said = capsys.readouterr()
    assert (said.out, said.err[:10]) == ("", "1 of 1: t,")
    own = {"mine": TLearner(Ridge(), Ridge())}
    made = estimate(study, own, progress=False)["mine"]
    assert (made.ate, made.settings) == (by_name.ate, by_name.settings)
    with_settings_of(study, own)
    assert capsys.readouterr() == ("", ""), "who has not been asked says nothing"
    table = benchmark([study] * 2, estimators=own, bootstraps=0)
    # The order in which a processor sums decides the last bit.
    assert table.query("metric == 'ATE'")["value"].to_list() == pytest.approx([made.ate] * 2, 1e-14)
    first, second = capsys.readouterr().err.splitlines()
    assert (first.endswith(" CPU s"), second.endswith(" CPU s, study 1")) == (True, True)
    with pytest.raises(
        InputError, match="names, or a dict of names and estimators: found TLearner"
    ):
        benchmark(study, estimators=[*own.values()])
    with pytest.raises(InputError, match="names, or a dict of names and estimators: found 5"):
        benchmark(study, estimators=5)

    class Turned:
        def fit(self, Y, T, X):
            raise AssertionError

    for wrong, found in ((Turned(), "'Y', 'T', 'X'"), (TLearner, "'self', .*"), ("t", "''")):
        with pytest.raises(InputError, match=rf"in this order: found \[{found}\]"):
            estimate(study, {"wrong": wrong})


def test_marks_against_the_true_effects_stand_beside(tables):
    truth = 10 + tables[1]["age"].to_numpy() / 10
    table = wide(benchmark(*tables, estimators=["t"], grids=GRIDS, truth=truth, **OPTIONS))
    assert table.loc["t", "R², truth"] == pytest.approx(table.loc["t", "R²"])


def test_studies_are_taken_one_at_a_time(tables):
    first = read_study(*tables, adjustment=["age", "sex"], group="level")
    alive = []

    def studies():
        for adjustment in (["age", "sex"], ["age"]):
            alive.append(adjustment)
            yield replace(first, adjustment=adjustment)

    options = {"estimators": ["t"], "grids": GRIDS, "bootstraps": 0, "progress": False}
    both = benchmark(studies(), **options)
    assert alive == [["age", "sex"], ["age"]]
    alone = benchmark(first, **options)
    assert (alone["study"] == 0).all()
    pd.testing.assert_frame_equal(both[both["study"] == 0], alone, check_exact=True)
    other = benchmark(first, adjustment=["age"], **options)
    pd.testing.assert_series_equal(
        both[both["study"] == 1]["value"].reset_index(drop=True), other["value"]
    )
    for nothing, message in (
        ([], r"needs at least one study: found \[\]"),
        ([tables[0]], "three tables: found 'DataFrame'"),
        (
            tables[0],
            "'full' of IncomeSCM: column 'capital-net' is unknown|marking estimators needs",
        ),
    ):
        for question in ({}, {"adjustment": ["age"]}):
            with pytest.raises(InputError, match=message):
                benchmark(nothing, **options, **question)
    for rest in ((["t"],), tables[1:2], (None, tables[2])):
        with pytest.raises(InputError, match=r"arguments, as in estimators=\['aipw'\]: found 2"):
            benchmark(first, *rest, **options)
    with pytest.raises(InputError, match="argument 'bootstrap' is unknown") as refused:
        benchmark(first, bootstrap=1)
    assert str(refused.value).count("seed") == 1


@pytest.fixture
def halves(tables):
    """Two studies of other people, whose best settings differ."""
    seen, control, treated = tables
    options = {"adjustment": ["age", "sex"], "group": "level"}
    noisy = seen.assign(income=seen["income"] + np.random.default_rng(1).normal(0, 300, len(seen)))
    return [read_study(one, control, treated, **options) for one in (seen, noisy)]


SEARCHED = {"estimator": "T-learner", "base_estimator": ["ridge"]}
SEARCHED |= {"base_estimator__alpha": [0.1, 1e4], "base_estimator__solver": ["cholesky"]}


def test_settings_are_chosen_in_each_study_or_once_for_all(halves):
    options = {"grids": {"estimators": {"t": SEARCHED}}, "bootstraps": 0, "progress": False}
    each, once = (benchmark(iter(halves), choose=choose, **options) for choose in ("each", "once"))
    fixed = {"estimators": {"t": SEARCHED | {"base_estimator__alpha": [0.1]}}}
    alone = benchmark(halves[1], **options | {"grids": fixed})
    of_second = [t[(t["study"] == t["study"].max())] for t in (each, once, alone)]
    found = [t.set_index("metric")["value"]["ATE"] for t in of_second]
    assert found[1] == found[2] != found[0]
    first = [t[t["study"] == 0].set_index("metric")["value"]["ATE"] for t in (each, once)]
    assert first[0] == first[1]
    with pytest.raises(InputError, match="choose 'twice' is unknown: expected one of each, once"):
        benchmark(halves, choose="twice", **options)


def test_chosen_settings_of_every_slot_are_kept_where_they_are_known(halves):
    alphas = {"control__alpha": [0.1, 1e4], "treated__alpha": [0.1, 1e4], "final__alpha": [1, 2]}
    slots = {slot: ["ridge"] for slot in ("control", "treated", "final")} | {"propensity": ["lr"]}
    grids = {name: {"estimator": f"{name}-learner", **slots, **alphas} for name in ("X", "DR")}
    grids["match"] = {"estimator": "MatchingEstimator"}
    made = read_estimators({"estimators": grids})
    fixed = with_settings_of(halves[0], made)
    assert fixed["match"].get_params() == made["match"].get_params()
    sizes = {slot: len(getattr(fixed["DR"], slot).settings()) for slot in fixed["DR"].slots()}
    assert sizes == {"control": 1, "treated": 1, "propensity": 1, "final": 1}
    assert fixed["X"].control.settings()[0].alpha == 0.1
    assert len(fixed["X"].final.settings()) == 1, "one setting for both arms"
    assert len(made["X"].control.settings()) == 2, "what was given stays as it was"


def test_a_table_is_there_before_the_next_study_is_drawn(halves):
    drawn = []

    def studies():
        for study in halves:
            drawn.append(study)
            yield study

    for choose in ("each", "once"):
        drawn.clear()
        stream = benchmarks(studies(), ["s-ridge"], choose, bootstraps=0, progress=False)
        assert (next(stream)["study"] == 0).all()
        assert len(drawn) == 1
        assert (next(stream)["study"] == 1).all()
    assert list(benchmarks([], ["s-ridge"], "once")) == []


def test_studies_in_parallel_are_those_in_sequence(halves, tmp_path, monkeypatch):
    options = {"estimators": ["s-ridge", "match-nn-eu"], "bootstraps": 0, "progress": False}
    one = benchmark([*halves, halves[0]], **options)
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "other"))
    two = benchmark([*halves, halves[0]], n_jobs=2, **options)
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_benchmark_is_a_function_and_hides_no_module():
    assert callable(lib.effects.benchmark)
    assert "lib.effects.benchmark" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("lib.effects.benchmark")


def test_results_are_kept_as_they_finish(tables, monkeypatch):
    class Interrupted(KeyboardInterrupt):
        pass

    fitted, fit_s, fit_t = [], SLearner.fit, TLearner.fit

    def fit(self, *data):
        fitted.append("t")
        return fit_t(self, *data)

    def stop(self, *data):
        raise Interrupted

    monkeypatch.setattr(TLearner, "fit", fit)
    monkeypatch.setattr(SLearner, "fit", stop)
    with pytest.raises(Interrupted):
        benchmark(*tables, estimators=["t", "s-trees"], grids=GRIDS, **OPTIONS)
    monkeypatch.setattr(SLearner, "fit", fit_s)
    resumed = benchmark(*tables, estimators=["t", "s-trees"], grids=GRIDS, **OPTIONS)
    assert fitted == ["t"]
    assert wide(resumed)["R²"].notna().all()


def test_small_results_need_not_be_kept(tables, tmp_path):
    once = benchmark(*tables, estimators=["ipw-lr", "match-nn-eu"], keep=False, **OPTIONS)
    options = OPTIONS | {"choose": "once", "keep": False}
    benchmark(*tables, estimators=["ipw-lr", "match-nn-eu"], **options)
    assert not [*tmp_path.rglob("*.pkl")]
    again = benchmark(*tables, estimators=["ipw-lr", "match-nn-eu"], **OPTIONS)
    assert (
        len([*tmp_path.rglob("*.pkl")]) == 4
    )  # two estimates; and propensities, in and out of sample
    pd.testing.assert_frame_equal(once, again, check_exact=True)


def test_random_selection_is_reproducible(tables, tmp_path, monkeypatch):
    entry = GRIDS["estimators"]["t"] | {"base_estimator__alpha": [*range(1, 10)]}
    options = OPTIONS | {"grids": {"estimators": {"t": entry}}, "selection": "random"}
    runs = []
    for folder in ("one", "other"):  # computed twice, not remembered
        monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / folder))
        runs.append(benchmark(*tables, estimators=["t"], **options))
    pd.testing.assert_frame_equal(*runs, check_exact=True)


def test_a_class_of_ones_own(tables, tmp_path, monkeypatch):
    (tmp_path / "my_estimators.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    table = benchmark(*tables, estimators=["my_estimators:Difference"], **OPTIONS)
    seen = tables[0].groupby("studies")["income"].mean()
    expected = seen["Full-time studies"] - seen["No studies"]
    assert wide(table)["ATE"].item() == pytest.approx(expected)
    with pytest.raises(InputError, match=r"one number per subject, 400: found \(\)"):
        benchmark(*tables, estimators=["my_estimators:Wrong"], **OPTIONS)
    # Who finds nothing, as where trimming leaves nobody, stops no other.
    names = ["my_estimators:NoNumber", "my_estimators:Difference"]
    found = benchmark(*tables, estimators=names, **OPTIONS).query("metric == 'ATE'")["value"]
    assert found.isna().tolist() == [True, False]
    with pytest.raises(InputError, match=r"Silent' must have effect\(covariates\), or ate_ after"):
        benchmark(*tables, estimators=["my_estimators:Silent"], **OPTIONS)
    with pytest.raises(InputError, match="Odd': estimand 'ATE of all' is unknown: expected one of"):
        benchmark(*tables, estimators=["my_estimators:Odd"], **OPTIONS)


@pytest.mark.parametrize("place", range(3))
def test_no_estimator_changes_what_the_next_one_sees(tables, tmp_path, monkeypatch, place):
    (tmp_path / "my_estimators.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    whole = [table.astype({"income": int}) for table in tables]
    study = read_study(*whole, adjustment=["age", "sex"], group="level")
    mine = {"mine": {"estimator": "my_estimators:Meddler", "place": place}}
    grids = {"estimators": mine | GRIDS["estimators"]}
    first = estimate(study, ["t"], grids=grids)["t"].ate
    assert estimate(study, ["mine", "t"], grids=grids)["t"].ate == first


class Stating:
    """An average, and the two ends of an interval of its own."""

    def fit(self, covariates, treatment, outcome):
        self.ate_ = 5.0
        return self

    def average_interval(self, covariates):
        return 1.0, 7.0


def test_an_interval_of_ones_own_is_stated_as_the_chapter_on_intervals_says(tables):
    chapter = (ROOT / "notebooks" / "coverage.ipynb").read_text(encoding="utf-8")
    assert "a method `average_interval(covariates)` that returns both ends" in chapter
    found = benchmark(*tables, estimators={"mine": Stating()}, **OPTIONS)
    error = found.set_index("metric").loc["error"]
    assert [error["lower"] - error["value"], error["upper"] - error["value"]] == [-4.0, 2.0]


class Single(Stating):
    """States intervals of single effects, as they are given to it."""

    def __init__(self, ends):
        self.ends = ends

    def effect_interval(self, covariates):
        return self.ends(np.ones(len(covariates)))


@pytest.mark.parametrize(
    ("ends", "refused"),
    [
        (lambda one: (one, 3 * one), False),
        (lambda one: np.column_stack([one, 3 * one]), True),
        (lambda one: (3 * one, one), True),
        (lambda one: (1.0, 3.0), True),
    ],
)
def test_intervals_of_single_effects_are_lower_and_upper_ends(tables, ends, refused):
    work = partial(benchmark, *tables, estimators={"mine": Single(ends)}, **OPTIONS)
    if refused:
        with pytest.raises(
            InputError, match=r"of 'mine' must return lower, then upper ends, \d+ e"
        ):
            work()
    else:
        assert work().set_index("metric").loc["width", "value"] == 2


def test_an_estimator_whose_second_argument_is_the_outcome_is_refused(tables):
    class Uplift:
        def fit(self, X, y, treatment):
            raise AssertionError("outcomes are read as treatments")

    with pytest.raises(InputError, match=r"in this order: found \['X', 'y', 'treatment'\]"):
        benchmark(*tables, estimators={"mine": Uplift()}, **OPTIONS)


def test_a_class_of_a_notebook_reaches_other_processes(monkeypatch):
    notebook = {"__name__": "__main__"}  # nothing that other processes could import
    exec(MINE, notebook)
    monkeypatch.setattr(
        sys.modules["__main__"], "Difference", notebook["Difference"], raising=False
    )
    seen = pd.DataFrame({"x": range(20), "studies": [0, 1] * 10, "income": [1.0, 4.0] * 10})
    test = seen.drop(columns="studies")
    options = {"adjustment": ["x"], "arms": (0, 1), "bootstraps": 0, "progress": False}
    names = ["__main__:Difference", "MatchingEstimator"]
    table = benchmark(seen, test, test, estimators=names, n_jobs=2, **options)
    assert table.query("metric == 'ATE'")["value"].tolist() == [3.0, 3.0]


def test_trees_take_missing_covariates_and_ridge_refuses_them(tables):
    seen = tables[0].assign(age=tables[0]["age"].mask(tables[0]["age"] < 30))
    options = OPTIONS | {"grids": GRIDS}
    found = wide(benchmark(seen, *tables[1:], estimators=["s-trees"], **options))
    assert found["R²"].notna().all()
    with pytest.raises(InputError, match=r"'t' cannot take missing values; .*: found {'age'"):
        benchmark(seen, *tables[1:], estimators=["s-trees", "t"], **options)


def test_true_propensities_are_an_estimator_by_name(tables):
    age = tables[0]["age"]
    chance = 1 / (1 + np.exp((age - 40) / 10))
    known = pd.DataFrame({"No studies": 1 - chance, "Full-time studies": chance})
    table = benchmark(*tables, estimators=["ipw-true"], probabilities=known, **OPTIONS)
    assert wide(table)["AE"].item() < 1
    assert set(table["metric"]) == {"ATE", "AE", "error"}


def test_an_experiment_is_repeated_from_its_file(tables):
    content = GRIDS | {
        "experiment": {"covariates": ["age", "sex"], "seed": 1},
        "selection": {"type": "random", "n_iter": 2},
    }
    said = read_experiment(content)
    table = benchmark(*tables, **said, bootstraps=20, group="level", progress=False)
    assert list(table["estimator"].unique()) == list(GRIDS["estimators"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": ["t-tree"]}, "estimator 't-tree' is unknown: expected one of ipw-lr"),
        ({"selection": "best"}, "selection 'best' is unknown: expected one of grid, random"),
        ({"n_settings": 0}, "n_settings must be a whole number of at least 1: found 0"),
        (
            {"estimators": ["ipw-true"]},
            "by which estimator 'ipw-true' weights, must be given: found None",
        ),
        (
            {"estimators": {"mine": SLearner(Ridge())}, "selection": "random"},
            "with a dict of estimators, argument 'selection' is unknown: expected seed",
        ),
        (
            {"estimators": {"mine": SLearner(Ridge())}, "grids": "nowhere.yml"},
            "with a dict of estimators, argument 'grids' is unknown: expected seed",
        ),
    ],
)
def test_what_is_refused(tables, options, message):
    with pytest.raises(InputError, match=message):
        benchmark(*tables, **(OPTIONS | options))


class Named(BaseEstimator):
    """A class of one's own, whose `probabilities` are no propensities."""

    def __init__(self, probabilities="logistic", error=0.5):
        self.probabilities, self.error = probabilities, error

    def fit(self, covariates, treatment, outcome):
        self.ate_, self.standard_error_ = 1.0, self.error
        self.said_ = self.probabilities
        return self

    def in_words(self):
        return self.said_


def test_a_parameter_of_ones_own_is_left_alone_whatever_its_name(tables):
    study = read_study(*tables, adjustment=["age"])
    assert estimate(study, {"mine": Named()}, progress=False)["mine"].settings == "logistic"


@pytest.mark.parametrize("error", [None, np.zeros(2)])
def test_what_is_no_standard_error_is_told_with_the_name_of_its_estimator(tables, error):
    study = read_study(*tables, adjustment=["age"])
    with pytest.raises(InputError, match="estimator 'mine': "):
        estimate(study, {"mine": Named(error=error)}, progress=False)


@pytest.mark.parametrize("studies", [3, None])
def test_what_is_no_study_is_refused(studies):
    with pytest.raises(InputError, match=f"or three tables: found {studies}"):
        benchmark(studies)


def test_estimators_of_a_file_of_ones_own_are_all_of_it(tables):
    grids = {"estimators": {name: GRIDS["estimators"][name] for name in ("t", "match")}}
    table = benchmark(*tables, grids=grids, **OPTIONS)
    assert list(table["estimator"].unique()) == ["t", "match"]


def test_a_misspelt_argument_is_refused_by_its_name(tables):
    with pytest.raises(InputError, match="argument 'adjustement' is unknown: expected"):
        benchmark(*tables, adjustement="full")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"base_estimator": "ridge", "base_estimator__alpha": -1},
            "The 'alpha' parameter of Ridge",
        ),
        (
            {"base_estimator": "ridge", "base_estimator__alpha": [1, "x"]},
            "The 'alpha' parameter of",
        ),
        (
            {"base_estimator": "ridge", "base_estimator__alpha": [np.nan]},
            "The 'alpha' parameter of",
        ),
        (
            {"base_estimator": "ridge", "base_estimator__alpha": {"a": 1}},
            "(float.. argument must be|The 'alpha' parameter of Ridge)",
        ),
        (
            {"base_estimator": "xgbr", "base_estimator__max_depth": "deep"},
            "Invalid Parameter format",
        ),
    ],
)
def test_a_setting_that_a_learner_refuses_names_the_estimator(tables, keys, message):
    file = {"estimators": {"s": {"estimator": "S-learner", **keys}}}
    for options in ({}, {"choose": "once"}):
        with pytest.raises(InputError, match=f"^estimator 's': {message}") as refused:
            benchmark(*tables, estimators=["s"], grids=file, **OPTIONS, **options)
        assert "\n" not in str(refused.value)


def test_a_penalty_below_zero_is_refused_in_one_sentence(tables):
    ipw = {"estimator": "IPWEstimator", "base_estimator": "lr", "base_estimator__C": -1}
    with pytest.raises(InputError, match=r"^estimator 'ipw': The 'C' parameter of Logistic"):
        benchmark(*tables, estimators=["ipw"], grids={"estimators": {"ipw": ipw}}, **OPTIONS)


def test_an_arm_of_four_is_estimated_or_refused_in_one_sentence(tables):
    seen, *others = tables
    arms = sorted(seen["studies"].unique())
    few = pd.concat([seen[seen["studies"] == arms[0]], seen[seen["studies"] == arms[1]].head(4)])
    for name in ("ipw", "match", "t", "s-trees"):
        try:
            table = benchmark(few, *others, estimators=[name], grids=GRIDS, **OPTIONS)
        except InputError as error:
            assert "found" in str(error)
        else:
            assert table.query("metric == 'ATE'")["value"].notna().all()


@pytest.mark.parametrize("options", [{"estimators": []}, {"grids": {"estimators": {}}}])
def test_a_benchmark_of_no_estimator_is_refused(tables, options):
    with pytest.raises(InputError, match=r"a benchmark needs at least one estimator: found \[\]"):
        benchmark(*tables, **OPTIONS, **options)
    with pytest.raises(InputError, match=r"a benchmark needs at least one estimator: found \[\]"):
        estimate(read_study(*tables, adjustment=["age"]), [])


@pytest.mark.parametrize("options", [{"seed": -1}, {"seed": 0.5}, {"bootstraps": -1}])
def test_what_is_no_count_is_refused(tables, options):
    with pytest.raises(InputError, match="must be a whole number of at least 0"):
        benchmark(*tables, estimators=["t"], grids=GRIDS, **OPTIONS | options)
