"""Reading a study: what is encoded, and what is refused."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import lib.effects.study as study_module
from lib.effects.estimands import average_effects
from lib.effects.study import ADJUSTMENT_SETS, TrueEffects, read_study
from lib.errors import InputError

ARMS = ("no", "yes")


@pytest.fixture
def tables():
    seen = pd.DataFrame(
        {
            "age": [20.0, 40.0, 30.0, 99.0],
            "sex": ["F", "M", "F", "M"],
            "studies": ["no", "yes", "no", "evening"],
            "income": [1.0, 5.0, 3.0, 7.0],
        }
    )
    control = seen[["age", "sex"]].assign(income=[0.0, 1.0, 2.0, 3.0])
    return seen, control, control.assign(income=[10.0, 10.0, 10.0, 10.0])


def read(tables, **options):
    return read_study(*tables, **({"adjustment": ["age", "sex"], "arms": ARMS} | options))


def test_only_the_two_arms_are_used_and_numbers_are_standardised_on_them(tables):
    study = read(tables)
    assert study.arm.tolist() == [0, 1, 0]
    assert study.outcomes.tolist() == [1, 5, 3]
    sd = np.std([20, 40, 30])
    np.testing.assert_allclose(study.covariates["age"], (np.array([20, 40, 30]) - 30) / sd)
    assert study.test_covariates["age"][3] == pytest.approx((99 - 30) / sd)
    assert [*study.test_covariates] == [*study.covariates] == ["age", "sex = F", "sex = M"]
    assert study.covariates["sex = F"].tolist() == [1, 0, 1]
    assert study.difference.tolist() == [10, 9, 8, 7]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_say_the_same_as_frames(tables, tmp_path, ending):
    paths = [tmp_path / f"{k}.{ending}" for k in range(3)]
    for table, path in zip(tables, paths, strict=True):
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    read_back, direct = read(paths), read(tables)
    pd.testing.assert_frame_equal(read_back.covariates, direct.covariates, check_exact=True)
    np.testing.assert_array_equal(read_back.difference, direct.difference)


def test_who_is_seen_alone_can_be_estimated_and_not_marked(tables, tmp_path):
    tables[0].to_csv(tmp_path / "seen.csv", index=False)
    alone = read([tmp_path / "seen.csv"])
    assert str(alone) == ("Study(studies: no or yes → income; 3 seen in the arms, 4 test subjects)")
    assert str(read(tables[:1])) == str(alone) == str(read(tables))
    pd.testing.assert_frame_equal(alone.covariates, read(tables).covariates, check_exact=True)
    with pytest.raises(InputError, match="marking estimators needs control and treated tables"):
        average_effects(alone)
    # A treatment without an effect is no table read twice.
    assert average_effects(read((*tables[:2], tables[1]))).loc["ATE", "value"] == 0


def test_outcomes_that_trees_would_take_for_constant_are_refused(tables):
    for change, least in ((lambda y: y * 1e-9, "0.001"), (lambda y: y + 1e13, "1e+07")):
        units = [table.assign(income=change(table["income"])) for table in tables]
        rule = f"outcome 'income' must scatter by {least} or more; count it in other units"
        with pytest.raises(InputError, match=re.escape(rule)):
            read(units)
    read([table.assign(income=7.0) for table in tables])


def test_levels_that_nobody_in_the_arms_has_make_no_column(tables):
    seen = tables[0].assign(sex=pd.Categorical(["F", "M", "F", "X"], categories=["X", "M", "F"]))
    assert list(read((seen, *tables[1:])).covariates) == ["age", "sex = F", "sex = M"]


def broken(change):
    """Apply a change to (seen, control, treated) and return them."""

    def apply(tables):
        return change(*tables)

    return apply


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda s, c, t: (s.drop(columns="age"), c, t),
            {},
            "observational column 'age' is unknown",
        ),
        (
            lambda s, c, t: (s, c, t.drop(columns="income")),
            {},
            "treated column 'income' is unknown",
        ),
        (
            lambda s, c, t: (s, c.assign(studies="yes"), t.assign(studies="no")),
            {},
            r"control table must have subjects with 'no' alone: found \['yes'\]",
        ),
        (
            lambda s, c, t: (s, c.assign(studies=["yes"] + ["no"] * (len(c) - 1)), t),
            {},
            r"control table must have subjects with 'no' alone: found \['yes', 'no'\]",
        ),
        (
            lambda s, c, t: (s, c.assign(studies="no"), t.assign(studies="no")),
            {},
            r"treated table must have subjects with 'yes' alone: found \['no'\]",
        ),
        (
            lambda s, c, t: (s, c, t),
            {"adjustment": "minimal"},
            "'minimal' of IncomeSCM: column 'education-num' is unknown: expected one of age, sex",
        ),
        (lambda s, c, t: (s, c, None), {}, "a study needs one table or three; .*: found 2"),
        (
            lambda s, c, t: (s.drop(columns="studies"), c, t),
            {},
            "observational column 'studies' is unknown",
        ),
        (lambda s, c, t: (s.assign(studies="no"), c, t), {}, "arm 'yes' is unknown: expected no"),
        (
            lambda s, c, t: (s.assign(income="many"), c, t),
            {},
            r"finite numbers below 1e\+150, not (str|object): found \['many', 'many', 'many'\]",
        ),
        (
            lambda s, c, t: (s.assign(income=[1, 2, np.nan, 4]), c, t),
            {},
            r"must be finite numbers below 1e\+150: found \[nan\]",
        ),
        (
            lambda s, c, t: (s, c, t.assign(income=t["income"] * -1e160)),
            {},
            r"outcome 'income' must be finite numbers below 1e\+150: found \[-",
        ),
        (
            lambda s, c, t: (s.assign(studies=["no", "yes", None, "no"]), c, t),
            {},
            "'studies' must have no missing value: found 1",
        ),
        (lambda s, c, t: (s, c, t.head(3)), {}, r"the same subjects, row by row: found \[4, 3\]"),
        (lambda s, c, t: (s, c, t.assign(age=1, sex="X")), {}, "4 rows differ in 'age', 4 rows"),
        (
            lambda s, c, t: (s, c, t),
            {"probabilities": np.ones((4, 2))},
            "probabilities must be a data frame with a column per arm: found 'ndarray'",
        ),
        (lambda s, c, t: (s, c, t), {"truth": ["a"] * 4}, "true effects: could not convert"),
        (
            lambda s, c, t: (s, c, t),
            {"probabilities": pd.DataFrame({"no": [1.0]})},
            "probabilities column 'yes' is unknown: expected no",
        ),
        (
            lambda s, c, t: (s, c, t),
            {"probabilities": pd.DataFrame({"no": [0.5], "yes": [0.5]})},
            "one row per subject, 4: found 1",
        ),
        (lambda s, c, t: (s.head(0), c, t), {}, "observational table must have rows: found 0"),
        (lambda s, c, t: (s, c, t), {"adjustment": "some"}, "adjustment 'some' is unknown"),
        (lambda s, c, t: (s, c, t), {"adjustment": []}, r"at least one covariate: found \[\]"),
        (
            lambda s, c, t: (s, c, t),
            {"adjustment": ["income"]},
            r"must not hold the treatment or the outcome: found \['income'\]",
        ),
        (
            lambda s, c, t: (s, c, t),
            {"arms": ("no", "no")},
            r"two arms must differ: found \('no', 'no'\)",
        ),
        (
            lambda s, c, t: (s, c, t),
            {"truth": np.zeros(3)},
            r"one effect per test subject, 4: found \(3,\)",
        ),
        (
            lambda s, c, t: (pd.concat([s, s["age"]], axis=1), c, t),
            {},
            r"each observational column may be given only once: found 'age'",
        ),
        (
            lambda s, c, t: (s, pd.concat([c, c["income"]], axis=1), t),
            {},
            r"each control column may be given only once: found 'income'",
        ),
        (
            lambda s, c, t: (s, c, t),
            {"adjustment": ["age", "age"]},
            r"each covariate may be given only once: found 'age'",
        ),
        (lambda s, c, t: (s, c, t), {"adjustment": 3}, "name at least one covariate: found 3"),
        (
            lambda s, c, t: (s, c, t),
            {"adjustment": {"age", "sex"}},  # whose order is not that of the next process
            "must be a sequence, and name at least one covariate: found {'",
        ),
        (
            lambda s, c, t: (s.astype({"income": object}), c, t),
            {},
            r"'income' must be finite numbers below 1e\+150, not object: found \[1.0, 5.0, 3.0\]",
        ),
        (lambda s, c, t: (s, c, t), {"arms": "no"}, "the arms must be two levels: found 'no'"),
        (
            lambda s, c, t: (s.assign(age=[[1]] * 4), c, t),
            {},
            "'age' must hold only numbers, only text or only truth values, .*: found float, list",
        ),
        (lambda s, c, t: ("seen.pickle", c, t), {}, "ending '.pickle' is unknown"),
        (lambda s, c, t: ("seen.csv", c, t), {}, "does not exist"),
    ],
)
def test_what_is_refused(tables, change, options, message):
    with pytest.raises(InputError, match=message):
        read(change(*tables), **options)


def test_missing_covariates_are_counted_not_refused(tables):
    seen = tables[0].assign(age=[np.nan, 1.0, 2.0, np.nan], sex=["F", None, "M", "M"])
    study = read((seen, *tables[1:]))
    assert study.missing == {"age": 1, "sex": 1}
    assert [*study.covariates] == ["age", "sex = F", "sex = M"], "none says where"
    assert np.isnan(study.covariates["age"][0])
    assert study.covariates.loc[1, ["sex = F", "sex = M"]].isna().all()


def test_missing_covariates_can_be_filled_in(tables):
    seen = tables[0].assign(age=[np.nan, 1.0, 3.0, 99.0], sex=["F", None, "M", "M"])
    study = read((seen, *tables[1:]), impute=True)
    assert study.missing == {}
    assert study.covariates.columns.tolist() == [
        *("age missing", "age", "sex missing", "sex = F", "sex = M")
    ]
    assert study.covariates["age"].tolist() == [0, -1, 1]
    assert study.covariates["age missing"].tolist() == [1, 0, 0]
    assert study.covariates.loc[1].tolist() == [0, -1, 1, 0, 0]
    assert (study.test_covariates[["age missing", "sex missing"]] == 0).all(axis=None)
    assert [*read(tables, impute=True).covariates] == ["age", "sex = F", "sex = M"]


def test_one_covariate_that_differs_between_the_arms_is_a_warning(tables):
    seen, control, treated = tables
    with pytest.warns(UserWarning, match="2 rows differ in 'age'"):
        study = read((seen, control, treated.assign(age=[20.0, 40.0, 1.0, 2.0])))
    expected = read(tables).test_covariates
    pd.testing.assert_frame_equal(study.test_covariates, expected, check_exact=True)


def test_a_few_rows_in_another_order_are_refused(tables):
    seen, control, treated = tables
    moved = treated.loc[[2, 1, 0, 3]]
    with pytest.raises(InputError, match=r"in the order of the subjects: found \[2, 1, 0\]"):
        read((seen, control, moved))
    with pytest.raises(InputError, match="in the same order: 2 rows differ in 'age'"):
        read((seen, control, moved.reset_index(drop=True)))
    third = {"adjustment": ["age", "sex", "town"]}
    seen, control = (table.assign(town="Lund") for table in (seen, control))
    with pytest.raises(InputError, match="in the same order"):
        read((seen, control, moved.assign(town="Lund").reset_index(drop=True)), **third)


def test_a_column_of_groups_that_is_not_there_is_silent_only_if_nobody_asked(tables):
    assert read(tables).groups is None
    assert read(tables, group=None).groups is None
    assert read(tables, group="sex").groups.tolist() == ["F", "M", "F", "M"]
    with pytest.raises(InputError, match="group 'sexe' is unknown: expected one of age, sex"):
        read(tables, group="sexe")


@pytest.mark.parametrize(
    ("seen", "test", "message"),
    [
        ([True, False] * 2, [0, 1, 0, 1], "alike in all tables: found bool, int"),
        (["0", "1"] * 2, [0, 1, 0, 1], "in all tables: found int, str"),
        (["0", "1", 1, "0"], ["0"] * 4, "in all tables: found int, str"),
        (
            ["yes", "no"] * 2,
            ["Yes", "no"] * 2,
            r"must spell each level alike: found \['yes', 'Yes'\]",
        ),
        (
            ["yes", "yes "] * 2,
            ["yes"] * 4,
            r"must spell each level alike: found \['yes', 'yes '\]",
        ),
        (["a b", "c"] * 2, ["a  b"] * 4, r"spell each level alike: found \['a b', 'a  b'\]"),
        (["0", "1"] * 2, ["0.0"] * 4, r"spell each level alike: found \['0', '0.0'\]"),
        (["00", "1"] * 2, ["0"] * 4, r"spell each level alike: found \['00', '0'\]"),
        (["1.5", "2", "?", "4"], ["1.5"] * 4, r"most levels, not all, are numbers: found \['\?'\]"),
        (
            ["1", "2", "3", "4"],
            ["1", "2", "3", "none"],
            r"most levels, not all, are numbers: found \['none'\]",
        ),
        ([1.0, 2.0, np.inf, 4.0], [1.0] * 4, r"'x' must be finite numbers below .*: found \[inf"),
        ([1.0, np.nan, 2.0, 4.0], [1e160] * 4, r"below 1e\+150: found \[1e\+160"),
        (pd.date_range("2026-01-01", periods=4), [1.0] * 4, "found Timestamp, float"),
    ],
)
def test_a_covariate_that_could_be_read_in_two_ways_is_refused(tables, seen, test, message):
    others = (table.assign(x=test) for table in tables[1:])
    with pytest.raises(InputError, match=message):
        read((tables[0].assign(x=seen), *others), adjustment=["age", "x"])


@pytest.mark.parametrize("values", [["1", "2", "3", "3+"], ["1", "2", "1", "2"]])
def test_levels_that_look_like_numbers_are_levels_if_they_say_so(tables, values):
    levels = pd.Categorical(values)
    study = read([table.assign(x=levels) for table in tables], adjustment=["x"])
    assert list(study.covariates) == [f"x = {k}" for k in sorted(set(values[:3]))]
    if set(values) == {"1", "2"}:  # text that is nothing but numbers says so, too
        text = read([table.assign(x=values) for table in tables], adjustment=["x"])
        pd.testing.assert_frame_equal(text.covariates, study.covariates, check_exact=True)


def test_numbers_in_a_column_of_objects_are_numbers(tables):
    mixed = [table.assign(age=table["age"].astype(object)) for table in tables]
    pd.testing.assert_frame_equal(read(mixed).covariates, read(tables).covariates, check_exact=True)


def test_test_subjects_are_encoded_once(tables, monkeypatch):
    real, lengths = study_module._encoded, []

    def encoded(column, *options):
        lengths.append(len(column))
        return real(column, *options)

    monkeypatch.setattr(study_module, "_encoded", encoded)
    seen, control, treated = tables
    once = read(tables)
    other = treated.assign(age=treated["age"].replace(20.0, 20.5))
    with pytest.warns(UserWarning, match="1 rows differ in 'age'"):
        twice = read((seen, control, other))
    assert {*lengths} == {len(once.arm) + len(control)}
    for name in ("covariates", "test_covariates"):
        pd.testing.assert_frame_equal(getattr(once, name), getattr(twice, name), check_exact=True)


def test_two_covariates_with_one_name_when_encoded_are_refused(tables):
    tables = [table.assign(**{"sex = F": 1.0}) for table in tables]
    message = "each name of an encoded covariate may be given only once: found 'sex = F'"
    with pytest.raises(InputError, match=message):
        read(tables, adjustment=["sex", "sex = F"])


def test_a_level_that_the_seen_lack_is_warned_of_if_that_is_no_chance(tables):
    seen, *others = (pd.concat([table] * 25) for table in tables)
    others = [table.assign(sex=["F", "M", "F", "woman"] * 25) for table in others]
    told = "covariate 'sex': 25 of 100 test subjects have 'woman', which no observed"
    with pytest.warns(UserWarning, match=told) as warned:
        study = read((seen, *others))
    assert warned[0].filename == __file__
    assert study.test_covariates.iloc[3].filter(like="sex").tolist() == [0.0, 0.0]
    # Of 1 in 100, it may be chance; who cannot be known is nobody's level.
    others = [table.assign(sex=["F", "M", "F", None] * 24 + ["woman"] * 4) for table in others]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read((seen, *others))


def test_a_constant_covariate_is_zero_although_its_numbers_differ_in_the_last_bit(tables):
    almost = [0.3, 0.1 + 0.2, 0.3, 0.3]
    study = read([table.assign(x=almost) for table in tables], adjustment=["x"])
    np.testing.assert_allclose(study.covariates["x"], 0, atol=1e-15)


def test_covariates_that_are_alike_in_all_do_not_hide_other_subjects(tables):
    seen, control, treated = (table.assign(a=1, b="c", d=0.5) for table in tables)
    covariates = {"adjustment": ["age", "sex", "a", "b", "d"]}
    other = treated.assign(age=treated["age"] + 1, sex=["F"] * 3 + ["M"])
    with pytest.raises(InputError, match="must hold the same subjects in the same order"):
        read((seen, control, other), **covariates)


def test_groups_that_nobody_has_are_refused(tables):
    seen, *others = (table.assign(town=None) for table in tables)
    with pytest.raises(InputError, match="'town' must tell the group of at least one test"):
        read((seen, *others), group="town")


def test_a_treatment_that_is_spelled_in_two_ways_is_refused(tables):
    seen = tables[0].assign(studies=["no", "yes", "No", "evening"])
    with pytest.raises(
        InputError, match=r"'studies' must spell each level alike: found \['no', 'No'\]"
    ):
        read((seen, *tables[1:]))


@pytest.mark.parametrize(
    ("no", "message"),
    [
        ([0.5, np.nan, 0.5, 0.5], r"lie between 0 and 1: found \[nan\]"),
        ([0.5, -0.1, 0.5, 0.5], r"lie between 0 and 1: found \[-0.1\]"),
        ([0.5, 1.1, 0.5, 0.5], r"lie between 0 and 1: found \[1.1\]"),
        ([0.5, 0.6, 0.5, 0.5], r"of both arms must sum to at most 1: found \[\[0.6, 0.5\]\]"),
        ([0.0, 0.5, 0.5, 0.5], "the arm that was taken must be above 0: found 0.0"),
    ],
)
def test_probabilities_that_cannot_be_are_refused(tables, no, message):
    with pytest.raises(InputError, match=message):
        read(tables, probabilities=pd.DataFrame({"no": no, "yes": 0.5}))


@pytest.mark.parametrize("control", [2 * np.float32(1 / 3), 0.67, 0.676])
def test_probabilities_that_are_rounded_may_sum_to_a_little_more_than_1(tables, control):
    third = np.float32(1 / 3)
    known = pd.DataFrame({"no": [control] * 4, "yes": [third] * 4}, dtype=float)
    assert (known.sum(axis=1) > 1).all()
    assert read(tables, probabilities=known, test_probabilities=known).arm_probability[1] == third


def test_who_could_not_have_done_otherwise_is_welcome(tables):
    known = pd.DataFrame({"no": [1.0, 0.0, 0.5, 0.5], "yes": [0.0, 1.0, 0.5, 0.5]})
    assert read(tables, probabilities=known).arm_probability.tolist() == [1, 1, 0.5]


def test_probabilities_of_test_subjects_are_checked_like_the_others(tables):
    known = pd.DataFrame({"no": [1.0, 0.0, 0.5, 0.5], "yes": [0.0, 1.0, 0.5, 0.5]})
    assert read(tables, test_probabilities=known).test_probabilities is known
    for wrong, message in [
        (known.assign(no=2), r"test_probabilities must lie between 0 and 1: found \[2.0, 2.0"),
        (known.assign(no=0.5), r"test_probabilities of both arms must sum to at most 1: found"),
        (known.head(2), "test_probabilities must have one row per subject, 4: found 2"),
        (known[["no"]], "test_probabilities column 'yes' is unknown: expected no"),
        (known[::-1], r"in the order of the subjects: found \[3, 2, 1\]"),
    ]:
        with pytest.raises(InputError, match=message):
            read(tables, test_probabilities=wrong)
    named = known[::-1].set_axis([*"abcd"])  # which says nothing of whose row it is
    assert read(tables, test_probabilities=named).test_probabilities is named


def test_arms_may_be_truth_values_also_where_probabilities_are_known(tables):
    seen, *worlds = tables
    chances = pd.DataFrame({False: [0.25] * 4, True: [0.75] * 4})
    known = {"probabilities": chances, "test_probabilities": chances, "arms": (False, True)}
    study = read((seen.assign(studies=seen["studies"] == "yes"), *worlds), **known)
    assert study.arm_probability.tolist() == [0.25, 0.75, 0.25, 0.25]
    assert average_effects(study).loc["ATT", "value"] == study.difference.mean()


def test_a_table_that_was_shuffled_takes_its_probabilities_with_it(tables):
    seen, *done = tables
    known = pd.DataFrame({"no": [0.2, 0.4, 0.6, 0.8], "yes": 0.2})
    expected = read(tables, probabilities=known).arm_probability[::-1]
    mixed = [seen[::-1], *done]
    with pytest.raises(InputError, match=r"probabilities must have .* order of the subjects"):
        read(mixed, probabilities=known)
    assert (read(mixed, probabilities=known[::-1]).arm_probability == expected).all()


def test_true_effects_in_another_order_than_the_subjects_are_refused(tables):
    known = pd.Series([1.0, 2.0, 3.0, 4.0])
    assert read(tables, truth=known).effects.tolist() == [1, 2, 3, 4]
    for moved in (known[::-1], TrueEffects(known[::-1], known, 2)):
        with pytest.raises(
            InputError, match=r"truth must .*, in the order of .*: found \[3, 2, 1\]"
        ):
            read(tables, truth=moved)
    named = known.set_axis([*"abcd"])  # which says nothing of whose effect it is
    assert read(tables, truth=named).effects.tolist() == [1, 2, 3, 4]


def test_rows_of_other_subjects_are_refused_where_tables_name_them(tables):
    seen, control, treated = (table.assign(subject=[7, 8, 9, 10]) for table in tables)
    known = pd.DataFrame({"subject": [7, 8, 9, 10], "no": 0.5, "yes": 0.5})
    both = {"probabilities": known, "test_probabilities": known}
    assert read((seen, control, treated), **both).arm_probability.tolist() == [0.5] * 3
    for which in both:
        moved = {which: known.assign(subject=[8, 7, 9, 10])}
        with pytest.raises(InputError, match=f"^{which} must have a row for every subject, in"):
            read((seen, control, treated), **both | moved)
    with pytest.raises(InputError, match=r"^treated must have a row .*: found \[1, 2, 3\]"):
        read((seen, control, treated.assign(subject=[1, 2, 3, 4])))


def test_another_question_of_the_same_tables(tables):
    study = read(tables)
    assert list(replace(study, adjustment=["age"]).covariates) == ["age"]
    assert set(ADJUSTMENT_SETS["minimal"]) < set(ADJUSTMENT_SETS["full"])


def test_true_effects_are_told_with_and_without_their_noise(tables):
    mean = np.array([9.0, 12.0, 9.0, 6.0])
    truth = TrueEffects(mean, np.full(4, 2.0), repeats=4)
    assert truth.variance_of_effects == pytest.approx(mean.var(ddof=1) - 0.5)
    assert truth.ceiling == pytest.approx(5.5 / 7.5)
    assert read(tables, truth=truth).effects.tolist() == mean.tolist()
    assert read(tables, truth=mean).effects.tolist() == mean.tolist()
    assert read(tables).effects is None


def test_the_error_of_the_ceiling_is_the_spread_over_other_subjects():
    rng, m, repeats = np.random.default_rng(0), 1_000, 8

    def drawn():
        effects, noise = rng.normal(0, 2, m), rng.choice([1, 4], m)
        futures = effects + noise * rng.standard_normal((repeats, m))
        return TrueEffects(futures.mean(axis=0), futures.var(axis=0, ddof=1), repeats)

    draws = [drawn() for _ in range(300)]
    spread = np.std([truth.ceiling for truth in draws], ddof=1)
    # Of 300 draws, a standard deviation is known to one part in 24.
    assert np.mean([truth.error_of_ceiling for truth in draws]) == pytest.approx(spread, rel=0.12)


def test_noise_that_is_larger_than_what_is_seen_leaves_no_variance():
    truth = TrueEffects(np.array([1.0, 2.0]), np.array([9.0, 9.0]), repeats=2)
    assert (truth.variance_of_effects, truth.ceiling) == (0, 0)
    assert np.isnan(TrueEffects(np.ones(2), np.zeros(2), repeats=2).ceiling)


def test_a_study_goes_into_files_and_comes_back(tables, tmp_path):
    known = pd.DataFrame({"evening": 0.1, "no": 0.5, "yes": [0.4] * 4})
    folder = read(tables, probabilities=known).to_parquet(tmp_path / "study")
    names = ("observational", "control", "treated")
    assert {path.stem for path in folder.iterdir()} == {*names, "propensities"}
    back = read([folder / f"{name}.parquet" for name in names])
    pd.testing.assert_frame_equal(back.covariates, read(tables).covariates, check_exact=True)
    assert not (back.to_parquet(tmp_path / "other") / "propensities.parquet").exists()


def test_a_folder_is_read_with_all_that_is_known(tables, tmp_path):
    known = pd.DataFrame({"evening": 0.1, "no": 0.5, "yes": [0.4] * 4})
    truth = TrueEffects(np.arange(4.0), np.full(4, 2.0), repeats=5)
    whole = {"probabilities": known, "test_probabilities": known, "truth": truth}
    asked = {"adjustment": ["age", "sex"], "arms": ARMS}
    back = read_study(read(tables, **whole).to_parquet(tmp_path / "whole"), **asked)
    pd.testing.assert_frame_equal(back.probabilities, known, check_exact=True)
    pd.testing.assert_frame_equal(back.test_probabilities, known, check_exact=True)
    assert (back.effects.tolist(), back.truth.repeats) == ([0, 1, 2, 3], 5)
    assert back.truth.ceiling == truth.ceiling
    # What is given counts, and what nobody knows is absent.
    assert read_study(tmp_path / "whole", **asked, truth=[5.0] * 4).effects.tolist() == [5.0] * 4
    bare = read_study(read(tables).to_parquet(tmp_path / "bare"), **asked)
    assert bare.truth is None and bare.probabilities is None
    with pytest.raises(InputError, match=r"observational.parquet does not exist"):
        read_study(tmp_path / "empty", **asked)


def test_effects_that_are_known_exactly_come_back(tables, tmp_path):
    folder = read(tables, truth=np.arange(4.0)).to_parquet(tmp_path / "exact")
    back = read_study(folder, adjustment=["age", "sex"], arms=ARMS)
    assert back.effects.tolist() == [0, 1, 2, 3]


def test_levels_that_are_numbers_keep_their_probabilities(tmp_path):
    seen = pd.DataFrame({"x": np.arange(8.0), "drug": [0, 1] * 4, "y": 1.0})
    arms = [seen[:3].drop(columns="drug")] * 2
    known = {"probabilities": pd.DataFrame(0.5, range(8), [0, 1])}
    known["test_probabilities"] = known["probabilities"][:3]
    asked = {"adjustment": ["x"], "treatment": "drug", "arms": (0, 1), "outcome": "y"}
    folder = read_study(seen, *arms, **asked, **known).to_parquet(tmp_path / "study")
    assert read_study(folder, **asked).arm_probability.tolist() == [0.5] * 8


def test_pairs_in_another_order_are_refused_if_their_rows_have_names():
    seen = pd.DataFrame({"x": [1.0, 2, 1, 2], "drug": list("abba"), "y": [1.0, 2, 3, 4]})
    control = pd.DataFrame({"x": [1.0, 1, 2, 2], "y": [1.0, 5, 2, 7]}, list("pqrs"))
    treated = control.assign(y=control["y"] + 1).loc[list("qpsr")]
    asked = {"adjustment": ["x"], "treatment": "drug", "arms": ("a", "b"), "outcome": "y"}
    with pytest.raises(InputError, match="treated must have a row for every subject, in the order"):
        read_study(seen, control, treated, **asked)
    again = read_study(seen, control, treated.loc[list("pqrs")], **asked)
    assert again.difference.tolist() == [1, 1, 1, 1]


def test_a_covariate_without_any_value_leaves_a_row_for_each_subject():
    seen = pd.DataFrame({"x": [None] * 4, "drug": list("abba"), "y": [1.0, 2, 3, 4]})
    asked = {"adjustment": ["x"], "treatment": "drug", "arms": ("a", "b"), "outcome": "y"}
    assert read_study(seen, **asked).covariates.shape == (4, 0)


def test_the_probability_of_what_was_taken(tables):
    table = pd.DataFrame({"evening": 0.1, "no": [0.6, 0.5, 0.4, 0.2], "yes": [0.3, 0.4, 0.5, 0.7]})
    assert read(tables, probabilities=table).arm_probability.tolist() == [0.6, 0.4, 0.4]
    assert read(tables).arm_probability is None


@pytest.mark.parametrize("kind", ["uint8", "int8", "int64"])
def test_effects_are_differences_whatever_integers_outcomes_are(tables, kind):
    seen, control, treated = (table.copy() for table in tables)
    control["income"] = np.array([100, 1, 2, 3], dtype=kind)
    treated["income"] = np.array([0, 100, 1, 3], dtype=kind)
    assert read((seen, control, treated)).difference.tolist() == [-100, 99, -1, 0]


def test_a_missing_integer_is_missing(tables):
    whole = [table.assign(age=[20, 40, None, 99]) for table in tables]
    nullable = [table.astype({"age": "Int64"}) for table in whole]
    for impute in (False, True):
        found = [read(each, impute=impute).covariates for each in (whole, nullable)]
        pd.testing.assert_frame_equal(*found, check_exact=True)


def test_a_constant_covariate_whose_mean_is_rounded_has_no_spread(tables):
    seen, *others = (table.assign(age=0.1) for table in tables)
    assert np.full(3, 0.1).std() > 0  # of nothing but rounding
    study = read((seen, *(table.assign(age=5.1) for table in others)))
    assert study.test_covariates["age"].tolist() == pytest.approx([5] * 4)


def test_a_file_that_is_not_there_is_no_folder(tmp_path):
    with pytest.raises(InputError, match=r"seen\.csv does not exist"):
        read_study(tmp_path / "seen.csv")
