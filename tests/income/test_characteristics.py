"""Characteristics of a cohort, and the numbers that others have published."""

import numpy as np
import pandas as pd
import pytest

from lib.adult import load_adult
from lib.errors import InputError
from lib.income.characteristics import (
    baseline_characteristics,
    cohort,
    compare,
    read_published,
    side_by_side,
)


@pytest.fixture(scope="module")
def adult():
    return baseline_characteristics(load_adult())


@pytest.mark.parametrize(("table", "facts"), [("Table 1", 36), ("Table 4", 209)])
def test_the_adult_column_of_the_paper_is_reproduced_to_the_last_digit(adult, table, facts):
    both = compare(
        adult, read_published("characteristics", cohort="Adult", source=f"paper, {table}")
    )
    assert len(both) == facts
    counts = both["statistic"] == "count"
    assert (both.loc[counts, "ours"] == both.loc[counts, "published"]).all()
    printed = both.loc[~counts]
    # One decimal is printed, so half of its last digit is what rounding explains.
    assert ((printed["ours"] - printed["published"]).abs() <= 0.05 + 1e-9).all()


def test_every_published_fact_about_adult_is_one_that_we_know(adult):
    published = read_published("characteristics", cohort="Adult", source="paper, Table 4")
    ours = set(adult[["variable", "level", "statistic"]].itertuples(index=False))
    assert set(published[["variable", "level", "statistic"]].itertuples(index=False)) == ours


def test_published_counts_add_up_to_the_cohort():
    for name, subjects in [("Adult", 30_162), ("IncomeSCM-1.0", 50_000)]:
        facts = read_published("characteristics", cohort=name, source="paper, Table 4")
        counts = facts[(facts["statistic"] == "count") & (facts["level"] != "")]
        assert (counts.groupby("variable")["value"].sum() == subjects).all()


def test_levels_stand_in_their_order_and_one_without_subjects_is_counted_as_none():
    frame = pd.DataFrame({"sex": pd.Categorical(["F", "F"], categories=["M", "F"])})
    facts = baseline_characteristics(frame).set_index(["level", "statistic"])["value"]
    assert facts.index.unique("level").tolist() == ["", "M", "F"]
    assert facts["M", "count"] == 0 and facts["M", "share"] == 0


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (pd.DataFrame({"age": []}), "at least one subject"),
        (
            pd.DataFrame({"name": ["Ada"]}),
            "column 'name' must be categorical or numeric: found '(str|object)'",
        ),
        (pd.DataFrame({"married": [True]}), "column 'married' .* numeric: found 'bool'"),
    ],
)
def test_what_cannot_be_described_is_refused(frame, rule):
    with pytest.raises(InputError, match=rule):
        baseline_characteristics(frame)


def test_unknown_cohorts_and_sources_are_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"'Eve' is unknown: expected one of IncomeSCM-1.0, Adult"):
        read_published("characteristics", cohort="Eve", source="paper, Table 1")
    with pytest.raises(InputError, match="files' is unknown: expected one of 'paper, Table 4'"):
        read_published("characteristics", cohort="Adult", source="published files")
    with pytest.raises(InputError, match="'hearsay' is unknown"):
        read_published("effect", source="hearsay")
    effect = read_published("effect", source="paper, caption of Table 2")
    assert effect.to_numpy().tolist() == [["average effect", 40_919.0]]


def test_fit_quality_is_kept_apart_from_characteristics():
    assert read_published("fit")["value"].tolist() == [
        0.68, 0.70, 0.81, 0.77, 0.92, 0.11, 0.28, 0.93,
    ]  # fmt: skip
    facts = read_published("characteristics", cohort="IncomeSCM-1.0", source="paper, Table 1")
    assert set(facts["statistic"]) == {"count", "share", "mean", "lower quartile", "upper quartile"}


def test_differences_are_points_for_shares_and_per_cent_for_the_rest():
    names = ["variable", "level", "statistic", "value"]
    published = pd.DataFrame(
        [
            ("sex", "F", "share", 20.0),
            ("sex", "F", "count", 200.0),
            ("loss", "", "mean", -50.0),
            ("gain", "", "mean", 0.0),
            ("debt", "", "mean", 0.0),
            ("only published", "", "mean", 1.0),
        ],
        columns=names,
    )
    ours = published.iloc[[4, 3, 2, 1, 0]].assign(value=[0.0, 3.0, -60.0, 190.0, 21.5])
    table = compare(ours, published)
    assert table["variable"].tolist() == ["sex", "sex", "loss", "gain", "debt"]
    assert table["difference"].tolist() == [1.5, -5.0, -20.0, np.inf, 0.0]
    assert table["unit"].tolist() == ["percentage points", "%", "%", "%", "%"]


def test_cells_show_what_is_known_and_rows_are_those_of_the_first_cohort():
    names = ["variable", "level", "statistic", "value"]
    first = pd.DataFrame(
        [
            ("", "", "count", 30_162.0),
            ("sex", "Male", "count", 20_380.0),
            ("sex", "Male", "share", 67.57),
            ("age", "", "mean", 38.44),
        ],
        columns=names,
    )
    second = pd.DataFrame(
        [
            ("income", "", "mean", 78_224.0),
            ("income", "", "lower quartile", 34_574.0),
            ("income", "", "upper quartile", 103_071.0),
            ("sex", "Male", "share", 67.6),
        ],
        columns=names,
    )
    table = side_by_side({"first": first, "second": second})
    assert table.index.tolist() == [("subjects", ""), ("sex", "Male"), ("age", "")]
    assert table["first"].tolist() == ["30\u202f162", "20\u202f380 (67.6\u00a0%)", "38.4"]
    assert table["second"].tolist() == ["", "67.6\u00a0%", ""]
    said = side_by_side({"second": second})["second"]["income", ""]
    assert said == "78\u202f224 (34\u202f574 to 103\u202f071)"


def test_a_cohort_takes_each_variable_from_its_own_step():
    world = pd.DataFrame(
        {
            "subject": np.repeat([4, 5], 3),
            "t": [0, 1, 2] * 2,
            "age": [20, 21, 22, 60, 61, 62],
            "studies": pd.Categorical(list("abcdef")),
            "income": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        }
    )
    table = cohort(world)
    assert table.index.tolist() == [4, 5]
    assert table["age"].tolist() == [21, 61]
    assert table["studies"].tolist() == ["b", "e"]
    assert table["studies_prev"].tolist() == ["a", "d"]
    assert table["income_prev"].tolist() == [1.0, 4.0]
    assert table["income"].tolist() == [3.0, 6.0]
    with pytest.raises(InputError, match="step 1 is unknown: expected 0"):
        cohort(world[world["t"] == 0])
    for name in ("income_prev", "studies_prev"):
        rule = f"each column of a cohort may be given only once: found '{name}'"
        with pytest.raises(InputError, match=rule):
            cohort(world.assign(**{name: 0.0}))
    of_levels = world.assign(income=pd.Categorical([0, 1, 1, 0, 1, 0]))
    assert cohort(of_levels)["income"].tolist() == [1.0, 0.0]
    of_text = world.assign(income=pd.Categorical(["low", "high"] * 3))
    assert cohort(of_text)["income"].tolist() == ["low", "high"]
