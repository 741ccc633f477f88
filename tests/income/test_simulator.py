"""The simulator of IncomeSCM, fitted to Adult: its published shares and its structural facts."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

from lib import ROOT
from lib.adult import EDUCATION_LEVELS, load_adult
from lib.errors import InputError
from lib.files import read_yaml
from lib.income import MECHANISMS, SPECIFICATIONS, fitted_simulator, published_study
from lib.scm import Simulator, Specification
from lib.scm.mechanisms import GaussianRegressionSampler, LogisticSampler

N, HORIZON = 20_000, 7

FULL = "Full-time studies"


@pytest.fixture(scope="module")
def simulator():
    return fitted_simulator()


@pytest.fixture(scope="module")
def world(simulator):
    return simulator.sample(n=N, horizon=HORIZON, seed=0)


@pytest.fixture(scope="module")
def steps(world):
    """Pairs of rows of one subject: a year, and the year before."""
    before = world[world["t"] < HORIZON - 1].reset_index(drop=True)
    now = world[world["t"] > 0].reset_index(drop=True)
    assert (now["subject"] == before["subject"]).all()
    assert (now["t"] == before["t"] + 1).all()
    return before, now


# Issue and reference: 50 000 published subjects, steps 0 (studies_prev) and 1 (studies).
PUBLISHED = {
    0: {"No studies": 50.5, "Evening course": 35.0, FULL: 13.2, "Day course": 1.4},
    1: {"No studies": 52.6, "Evening course": 37.3, FULL: 8.9, "Day course": 1.2},
}


@pytest.mark.parametrize("t", PUBLISHED)
def test_shares_of_studies_are_the_published_ones(world, t):
    found = world.loc[world["t"] == t, "studies"].value_counts(normalize=True)
    for level, percent in PUBLISHED[t].items():
        p = percent / 100
        # One percentage point of true difference, the sampling error of both samples (false
        # alarm in a million for each of eight), and the rounding of what was printed.
        error = np.sqrt(p * (1 - p) * (1 / N + 1 / 50_000))
        assert abs(found[level] - p) < 0.01 + -ndtri(1e-6 / 2 / 8) * error + 0.0005, level


def test_what_nobody_can_change_stays(steps):
    before, now = steps
    for name in ("race", "sex", "native-country"):
        assert now[name].equals(before[name]), name
    assert now["age"].equals(before["age"] + 1)


def test_age_begins_at_18(world):
    first = world.loc[world["t"] == 0, "age"]
    assert first.min() >= 18 and (first == first.round()).all()


def test_education_never_falls_and_rises_one_level_after_studies_only(world, steps):
    before, now = steps
    rise = now["education-num"] - before["education-num"]
    assert set(rise) == {0, 1}
    assert (before.loc[rise == 1, "studies"] != "No studies").all()
    ranks = world["education"].map({level: i + 1 for i, level in enumerate(EDUCATION_LEVELS)})
    assert (world["education-num"] == ranks.astype(float)).all()
    assert (now.loc[before["education"] == "Doctorate", "education"] == "Doctorate").all()


def test_full_time_students_and_those_without_pay_earn_nothing(world):
    assert (world.loc[world["studies"] == FULL, "income"] == 0).all()
    assert (world.loc[world["workclass"] == "Without-pay", "income"] == 0).all()
    assert (world["income"] >= 0).all() and (world["income"] == world["income"].round()).all()


def test_after_full_time_studies_everybody_is_without_pay(steps):
    before, now = steps
    students = before["studies"] == FULL
    assert students.sum() > 1_000
    assert (now.loc[students, "workclass"] == "Without-pay").all()
    # Nobody without pay stays so: what is left is the table's own share, well below 1 %.
    unpaid = (before["workclass"] == "Without-pay") & ~students
    share = (load_adult()["workclass"] == "Without-pay").mean()
    error = np.sqrt(share * (1 - share) / unpaid.sum())
    stayed = (now.loc[unpaid, "workclass"] == "Without-pay").mean()
    assert abs(stayed - share) < -ndtri(1e-6 / 2) * error + 1 / unpaid.sum()


def test_marital_status_makes_allowed_moves_only(steps):
    before, now = steps
    moved = before["marital-status"].astype(str) + " → " + now["marital-status"].astype(str)
    moved = set(moved[before["marital-status"] != now["marital-status"]])
    assert moved == {
        "Never-married → Married",
        "Married → Divorced",
        "Married → Separated",
        "Married → Widowed",
        "Divorced → Married",
        "Separated → Married",
        "Separated → Divorced",
        "Separated → Widowed",
        "Widowed → Married",
    }


def test_hours_and_raises_are_bounded(steps):
    before, now = steps
    assert before["hours-per-week"].between(0, 100).all()
    assert now["hours-per-week"].between(0, 168).all()
    kept = (before["income"] >= 5_000) & (before["studies"] != FULL)
    kept &= (now["studies"] != FULL) & (now["workclass"] != "Without-pay")
    least = np.where(now["studies"] == "Day course", 0.8, 1.0) * 0.95 * before["income"]
    assert (now["income"] >= np.round(least) - 1)[kept].all()


def test_doctors_are_not_full_time_students_later(steps):
    _, now = steps
    assert not ((now["education"] == "Doctorate") & (now["studies"] == FULL)).any()


def test_treatment_changes_nothing_before_it(simulator, world):
    done = simulator.sample(n=N, horizon=HORIZON, seed=0, do={"studies": {1: FULL}})
    early = world["t"] < 1
    assert done[early].equals(world[early])
    at_once = world["t"] == 1
    same = world.columns.difference(["studies", "income"])  # nothing else follows within the year
    assert done.loc[at_once, same].equals(world.loc[at_once, same])
    assert (done.loc[at_once, "studies"] == FULL).all()
    assert (done.loc[at_once, "income"] == 0).all()
    treated = world.loc[at_once].set_index("subject")["studies"] == FULL
    alike = world["subject"].map(treated)
    assert done[alike].equals(world[alike])  # who was treated anyway lives the same life


def test_propensities_are_calibrated(simulator, world):
    stated = simulator.probabilities("studies", world, 1)
    drawn = world.loc[world["t"] == 1, "studies"].to_numpy()
    for level in stated:
        p = stated[level].to_numpy()
        for tenth in np.array_split(np.argsort(p), 10):
            error = np.sqrt((p * (1 - p))[tenth].sum())
            difference = (drawn[tenth] == level).sum() - p[tenth].sum()
            # 40 comparisons share a false alarm in a million; the normal approximation needs
            # some counts, so a handful is allowed where next to none are expected.
            assert abs(difference) < -ndtri(1e-6 / 2 / 40) * error + 3, level


def test_who_studies_depends_on_what_the_card_of_the_data_sets_says(simulator, world):
    early = world[(world["t"] < 2) & (world["subject"] < 2_000)]
    stated, moved = simulator.probabilities("studies", early, 1), []
    for name in ["age", "sex", "education-num", "relationship", "income", "studies"]:
        place = early["t"] == (0 if name in ("income", "studies") else 1)
        other = early.copy()
        other.loc[place, name] = early.loc[place, name].to_numpy()[::-1]
        moved += [] if simulator.probabilities("studies", other, 1).equals(stated) else [name]
    assert moved == ["age", "education-num", "relationship", "income", "studies"], "sex moves none"
    about = read_yaml(ROOT / "data" / "income_data_sets.yml")["description"]["about"]
    said = (
        "it depends on age, education, relationship, and the studies and income of the year before"
    )
    assert said in about


#: The direct causes of each variable in the paper's Table 5: of the first step; later, of the same
#: step and of the one before.
TABLE_5 = {
    "age": "; ; age",
    "sex": "; ; sex",
    "rac": "; ; rac",
    "nat": "; ; nat",
    "edu": "age rac sex nat; ; edu stu",
    "wor": "age edu rac sex nat; ; wor",
    "mar": "age edu wor rac nat; age; mar stu",
    "occ": "age edu wor rac sex nat; age edu wor rac sex nat; occ stu",
    "rel": "age edu wor mar rac sex; age edu wor mar rac sex; rel",
    "hou": "age edu wor mar occ rac rel sex; age edu wor mar occ rac rel sex; hou",
    "cap": "age edu wor occ mar rac rel sex; age edu wor occ mar rac rel sex; cap",
    "stu": "age sex edu rel; age sex edu rel; inc stu",
    "inc": "age edu wor occ mar hou rac sex cap stu; age edu wor occ mar hou rac sex cap stu;"
    "inc stu",
}


def test_the_graph_is_that_of_table_5_and_one_arrow_more(simulator):
    found = {}
    for name, one in simulator.specification.variables.items():
        causes = (one.parents, one.seq_parents_curr, one.seq_parents_prev)
        places = [{cause[:3] for cause in some} for some in causes]
        # The paper has one variable of education; its number follows from the word.
        if name != "education-num":
            found[name[:3]] = places
    expected = {k: [{*part.split()} for part in v.split(";")] for k, v in TABLE_5.items()}
    expected["wor"][2].add("stu")
    assert found == expected
    (text,) = re.findall(
        "description: >(.*)variables:",
        (SPECIFICATIONS / "income_scm_1.0.yml").read_text(),
        re.DOTALL,
    )
    said = "the paper's Table 5 and one arrow more, from last year's studies to workclass"
    assert said in " ".join(text.split())
    sample = published_study().observational.groupby("studies_prev")["workclass"].unique()
    assert sample[FULL].tolist() == ["Without-pay"]


def test_the_first_subjects_are_those_of_a_larger_world(simulator, world):
    few = simulator.sample(n=100, horizon=HORIZON, seed=0)
    assert few.equals(world.head(100 * HORIZON))


@pytest.fixture(scope="module")
def few(few_of_adult, tmp_path_factory):
    """A file with a small part of Adult."""
    path = tmp_path_factory.mktemp("few") / "few.parquet"
    few_of_adult.to_parquet(path, index=False)
    return path


def test_version_1_1_differs_where_it_should(few):
    one, other = (
        fitted_simulator(f"income_scm_{version}", table=few).sample(n=N, horizon=2, seed=0)
        for version in ("1.0", "1.1")
    )
    assert one[one["t"] == 0].equals(other[other["t"] == 0])
    pairs = one[one["t"] == 1].reset_index(drop=True), other[other["t"] == 1].reset_index(drop=True)
    students = (one.loc[one["t"] == 0, "studies"] == FULL).to_numpy()
    for name in one:
        differs = (pairs[0][name] != pairs[1][name]).to_numpy()
        assert not differs[~students].any(), name
    kept = one.loc[one["t"] == 0, "occupation"].to_numpy() == pairs[1]["occupation"].to_numpy()
    # A quarter of 0.9 stay by rule, and some draw the occupation they had.
    assert 0.225 < kept[students].mean() < 0.5 < kept[~students].mean()


def test_an_unknown_specification():
    with pytest.raises(
        InputError, match=r"'2\.0' is unknown: expected one of income_scm_1\.0, inc"
    ):
        fitted_simulator("2.0")


def test_a_mechanism_is_fitted_once_for_all_who_want_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(40, 10, 90), "job": rng.permutation(["a", "b"] * 45)})
    table["pay"] = table["age"] + rng.normal(size=90)
    table.to_csv(tmp_path / "table.csv", index=False)
    table = pd.read_csv(tmp_path / "table.csv")  # whose last digits are pandas' own
    (tmp_path / "model.yml").write_text(
        """
variables:
  age: {sampler: gaussian}
  job: {parents: [age], sampler: LogisticSampler, seq_parents_curr: [age],
        seq_sampler: {type: RelationshipTransition, sampler: '#init_sampler', p_stay: 0.5}}
  pay: {parents: [age, job], sampler: {type: GaussianRandomForestSampler, n_estimators: 3},
        seq_parents_curr: [age, job],
        seq_sampler: {type: HoursPerWeekTransition, sampler: '#init_sampler'}}
"""
    )
    fitted = []
    for kind in (LogisticSampler, GaussianRegressionSampler):

        def learn(self, *arguments, learn=kind.learn):
            fitted.append(self.variable)
            learn(self, *arguments)

        monkeypatch.setattr(kind, "learn", learn)

    def found(**options):
        fitted.clear()
        simulator = fitted_simulator(
            str(tmp_path / "model.yml"), table=tmp_path / "table.csv", **options
        )
        return simulator, list(fitted)

    first, were_fitted = found()
    assert were_fitted == ["job", "pay"]
    again, were_fitted = found(coupling="inverse_cdf")
    assert were_fitted == [] and again.coupling == "inverse_cdf"
    assert again.transition_["pay"].sampler is again.initial_["pay"]
    options = {"n": 50, "horizon": 3, "seed": 1}
    assert again.set_params(coupling="gumbel").sample(**options).equals(first.sample(**options))
    other, were_fitted = found(seed=1)
    assert were_fitted == ["pay"]  # a logistic regression is the same with every seed
    direct = Simulator(Specification.from_yaml(tmp_path / "model.yml", MECHANISMS)).fit(
        table, seed=1
    )
    assert other.sample(**options).equals(direct.sample(**options))
    (tmp_path / "table.csv").write_text((tmp_path / "table.csv").read_text() + "40,a,40\n")
    assert found()[1] == ["job", "pay"]


def test_a_table_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"file people\.xls: ending '\.xls' is unknown"):
        fitted_simulator(table=tmp_path / "people.xls")


def test_a_table_may_be_a_frame(tmp_path):
    table = pd.DataFrame({"age": [30.0, 40.0, 50.0]})
    path = tmp_path / "ages.yml"
    path.write_text("variables:\n  age: {sampler: gaussian}\n")
    table.to_csv(tmp_path / "table.csv", index=False)
    of_frame, of_file = (
        fitted_simulator(path, table=one) for one in (table, tmp_path / "table.csv")
    )
    assert of_frame.sample(20).equals(of_file.sample(20))


def test_every_column_has_a_value(world):
    assert not world.isna().any().any()
    assert isinstance(world["studies"].dtype, pd.CategoricalDtype)


def test_the_seed_of_a_fit_may_be_that_of_some_variables_alone(few):
    one, some, other = (
        fitted_simulator(table=few, **options)
        for options in ({}, {"seed": 1, "seeded": ["relationship"]}, {"seed": 1})
    )
    of = {"n": 400, "seed": 3}
    first, second, third = (simulator.sample(**of) for simulator in (one, some, other))
    before = ["age", "education", "occupation"]
    assert first[before].equals(second[before])
    assert not first["relationship"].equals(second["relationship"])
    assert second["relationship"].equals(third["relationship"])
    incomes = [simulator.initial_["income"].largest_ for simulator in (one, some, other)]
    assert incomes[0] == incomes[1] != incomes[2]
    assert one.recipe_ != some.recipe_ != other.recipe_
    with pytest.raises(InputError, match="variable 'kinship' is unknown: expected one of age, "):
        fitted_simulator(seeded=["kinship"])
