"""Reading a study: what is encoded, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from lib.effects.study import read_study
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
    assert study.treatment.tolist() == [0, 1, 0]
    assert study.outcome.tolist() == [1, 5, 3]
    sd = np.std([20, 40, 30])
    np.testing.assert_allclose(study.covariates["age"], (np.array([20, 40, 30]) - 30) / sd)
    assert study.test_covariates["age"][3] == pytest.approx((99 - 30) / sd)
    assert study.covariates["sex = F"].tolist() == [1, 0, 1]
    assert study.difference.tolist() == [10, 9, 8, 7]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_say_the_same_as_frames(tables, tmp_path, ending):
    paths = [tmp_path / f"{k}.{ending}" for k in range(3)]
    for table, path in zip(tables, paths, strict=True):
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    read_back, direct = read(paths), read(tables)
    pd.testing.assert_frame_equal(read_back.covariates, direct.covariates)
    np.testing.assert_array_equal(read_back.difference, direct.difference)


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
            "observational table lacks column 'age'",
        ),
        (
            lambda s, c, t: (s, c, t.drop(columns="income")),
            {},
            "treated table lacks column 'income'",
        ),
        (lambda s, c, t: (s.drop(columns="studies"), c, t), {}, "lacks column 'studies'"),
        (lambda s, c, t: (s.assign(studies="no"), c, t), {}, "arm 'yes' of 'studies' has no rows"),
        (lambda s, c, t: (s.assign(income="many"), c, t), {}, "must be numbers: found 'many'"),
        (
            lambda s, c, t: (s.assign(income=[1, 2, np.nan, 4]), c, t),
            {},
            "1 values that are missing",
        ),
        (
            lambda s, c, t: (s.assign(studies=["no", "yes", None, "no"]), c, t),
            {},
            "'studies' has 1 missing values",
        ),
        (lambda s, c, t: (s, c, t.head(3)), {}, "the same subjects: found 4 and 3 rows"),
        (lambda s, c, t: (s, c, t.assign(age=1, sex="X")), {}, "4 rows differ in 'age', 4 rows"),
        (lambda s, c, t: (s, c, t), {"probabilities": pd.DataFrame({"no": [1.0]})}, "lack the arm"),
        (
            lambda s, c, t: (s, c, t),
            {"probabilities": pd.DataFrame({"no": [0.5], "yes": [0.5]})},
            "one row a seen subject, 4: found 1",
        ),
        (lambda s, c, t: (s.head(0), c, t), {}, "observational table has no rows"),
        (lambda s, c, t: (s, c, t), {"adjustment": "some"}, "adjustment 'some' is unknown"),
        (lambda s, c, t: (s, c, t), {"adjustment": []}, "at least one covariate"),
        (lambda s, c, t: (s, c, t), {"adjustment": ["income"]}, "must not hold 'income'"),
        (lambda s, c, t: (s, c, t), {"arms": ("no", "no")}, "two arms must differ"),
        (lambda s, c, t: (s, c, t), {"truth": np.zeros(3)}, r"found shape \(3,\)"),
        (lambda s, c, t: ("seen.pickle", c, t), {}, "not of a known kind"),
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


def test_one_covariate_that_differs_between_the_arms_is_a_warning(tables):
    seen, control, treated = tables
    with pytest.warns(UserWarning, match="2 rows differ in 'age'"):
        study = read((seen, control, treated.assign(age=[20.0, 40.0, 1.0, 2.0])))
    expected = read(tables).test_covariates
    pd.testing.assert_frame_equal(study.test_covariates, expected)


def test_the_probability_of_what_was_taken(tables):
    table = pd.DataFrame({"evening": 0.1, "no": [0.6, 0.5, 0.4, 0.2], "yes": [0.3, 0.4, 0.5, 0.7]})
    assert read(tables, probabilities=table).probabilities.tolist() == [0.6, 0.4, 0.4]
    assert read(tables).probabilities is None
