"""The paper's numbers, and what chance makes of the difference to ours."""

import hashlib
import re

import numpy as np
import pandas as pd
import pytest

from lib.effects import estimate, evaluate
from lib.effects.study import FULL_ADJUSTMENT
from lib.errors import InputError
from lib.income import fitted_simulator
from lib.income.characteristics import read_published
from lib.income.published import (
    SAMPLE,
    beside_the_paper,
    lottery_of_fits,
    place_of_draw,
    published_metrics,
    published_study,
)


def test_the_sample_is_what_its_page_says():
    study = published_study()
    assert [len(study.observational), len(study.arm), study.arm.sum()] == [50_000, 30_753, 4_439]
    assert np.unique(study.groups).tolist() == [*range(2, 17)], "two lowest levels are one group"
    found = pd.Series(study.difference).agg(["size", "mean", "sem"]).round()
    assert found.tolist() == [50_000, 4_614, 276]
    folds = np.array_split(study.outcomes, 5)
    assert np.mean([1 - np.mean(y**2) / y.var() for y in folds]) == pytest.approx(-1.56, abs=0.005)


def test_fits_are_set_beside_the_authors_draw():
    one = fitted_simulator()
    other = fitted_simulator(seed=1, seeded=["relationship"])
    found = lottery_of_fits([one, other], 400)
    theirs = found[found["source"] == "the author's draw"].set_index("fact")
    ours = found[found["source"] == "one of our fits"]
    assert found["source"].is_monotonic_increasing, "ours stand first"
    sample = published_study()
    assert theirs.loc["average effect, $", "value"] == pytest.approx(4_614.09, abs=0.01)
    half = 1.96 * sample.difference.std(ddof=1) / len(sample.difference) ** 0.5
    assert theirs.loc["average effect, $", "upper"] == pytest.approx(4_614.09 + half, abs=0.1)
    assert theirs.loc["mean income, $", "value"] == sample.observational["income"].mean()
    wives = sample.observational.query("`marital-status` == 'Married' and sex == 'Female'")
    share = 100 * (wives["relationship"] == "Wife").mean()
    assert theirs.loc["wives among married women, %", "value"] == pytest.approx(share)
    assert "constant b, $" not in theirs.index
    largest = ours.set_index("fact").loc["constant b, $", "value"]
    assert (largest == one.initial_["income"].largest_).all(), "the forest of income is the same"
    # The subjects are the same: what differs between the fits is far less than their intervals.
    effects = ours.set_index("fact").loc["average effect, $"]
    assert 0 < np.ptp(effects["value"]) < 0.2 * (effects["upper"] - effects["lower"]).min()


def test_the_place_of_the_authors_draw_counts_fits_and_subjects():
    rng = np.random.default_rng(0)
    distances = []
    for _ in range(300):
        # A world in which the author's draw is one of ours: fits differ by 3, samples by 2 and 1.
        subjects = 2 * rng.standard_normal()
        fits = 50 + subjects + 3 * rng.standard_normal(20)
        author = 50 + 3 * rng.standard_normal() + rng.standard_normal()
        error = {"one of our fits": 2.0, "the author's draw": 1.0}
        values = [(value, "one of our fits") for value in fits] + [(author, "the author's draw")]
        rows = [("a", one, error[of], of) for one, of in values]
        rows += [("b", 7.0, 0.0, "one of our fits")] * 20
        lottery = pd.DataFrame(rows, columns=["fact", "value", "standard error", "source"])
        place = place_of_draw(lottery)
        distances.append(place.loc["a", "distance"])
    assert np.std(distances) == pytest.approx(1, abs=0.1)
    assert np.mean(np.abs(distances) < 1.96) == pytest.approx(0.95, abs=0.03)
    assert distances[-1] == pytest.approx(
        (author - fits.mean()) / np.sqrt(fits.var(ddof=1) * 21 / 20 + 2**2 + 1)
    )
    assert place.loc["a", "fits"] == 20
    assert place.loc["a", ["standard error", "its error"]].tolist() == pytest.approx([2, 1])
    means = place.loc["a", ["mean of fits", "author's draw"]].tolist()
    assert means == pytest.approx([fits.mean(), author])
    assert place.loc["b"].isna()[["author's draw", "distance"]].all()


def test_the_table_has_both_and_brackets():
    names = ["estimator", "metric", "value", "lower", "upper"]
    rows = [("R²", 0.5, np.nan, np.nan), ("cross-validation", 0.9, np.nan, np.nan)]
    rows += [("AE", 3.0, 1.0, 1_234.5), ("R² by group", -0.5, np.nan, np.nan)]
    ours = pd.DataFrame([("t-ridge", *row) for row in rows], columns=names)
    table = beside_the_paper(ours)
    assert table.index.name == "estimator"
    row = table.loc["T-learner (Ridge)"]
    assert row["ours", "error of the ATE, $"] == "3 (1, 1\u202f234)"
    assert row["paper", "error of the ATE, $"] == "1\u202f696 (1\u202f213, 2\u202f164)"
    assert row["ours", "R² of the CATE"] == "0.50"
    assert row["ours", "AUC or R² of the fit"] == "0.90"
    row = beside_the_paper(ours, table_of_paper="Table 3").loc["T-learner (Ridge)"]
    assert row.tolist() == ["−0.50", "0.02 (−0.30, 0.27)"]
    limited = beside_the_paper(ours, ceiling=0.4)
    assert ("ours", "R² of the CATE, of at most 0.40") in limited
    assert ("paper", "R² of the CATE") in limited, "a ceiling of this run is none of the paper's"
    assert ("ours", "R² of the CATE") in beside_the_paper(ours, ceiling=np.nan)
    alone = beside_the_paper(ours.assign(estimator="mine"), "minimal", table_of_paper="Table 3")
    assert alone.loc["mine"].tolist() == ["−0.50", ""], "the paper does not have it"


def test_a_table_that_the_paper_does_not_have_is_refused_in_a_sentence():
    nothing = pd.DataFrame(columns=["estimator", "metric", "value", "lower", "upper"])
    with pytest.raises(InputError, match="paper 'Table 9' is unknown: expected one of Tab"):
        beside_the_paper(nothing, table_of_paper="Table 9")
    found = ["estimator", "metric", "value", "lower", "upper"]
    twice = pd.DataFrame([["t-ridge", "R²", 0.5, 0.4, 0.6]] * 2, columns=found)
    with pytest.raises(InputError, match="must show a single study"):
        beside_the_paper(twice)


def test_nothing_was_published_for_another_set():
    minimal = published_metrics("minimal").set_index(["estimator", "metric"])["value"]
    assert minimal["ipw-lr", "cross-validation"] == pytest.approx(0.97, abs=0.011)
    with pytest.raises(
        InputError, match="adjustment 'some' is unknown: expected one of full, minimal"
    ):
        published_metrics("some")


def test_the_sample_is_that_of_its_author():
    readme = (SAMPLE / "README.md").read_text(encoding="utf-8")
    digests = dict(re.findall(r"`(\w+\.parquet)` .*`([0-9a-f]{64})`", readme))
    files = {path.name: path.read_bytes() for path in SAMPLE.glob("*.parquet")}
    assert digests == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    study = published_study("minimal")
    facts = read_published("effect", source="published files").set_index("quantity")["value"]
    assert len(study.observational) == len(study.control) == 50_000
    assert round(study.difference.mean()) == facts["average effect"] == 4614
    assert round(study.difference.std()) == facts["standard deviation of the individual effect"]


@pytest.mark.parametrize("adjustment", ["full", "minimal"])
def test_on_its_sample_the_paper_is_repeated_to_the_dollar(adjustment):
    study = published_study(adjustment)
    names = ["ipw-lr", "ipww-lr", "s-ridge", "t-ridge", *["match-nn-eu"] * (adjustment == "full")]
    found = estimate(study, names, selection="random", progress=False)
    ours = evaluate(study, found, seed=None).set_index(["estimator", "metric"])
    paper = published_metrics(adjustment).set_index(["estimator", "metric"])
    columns, compared = ["value", "lower", "upper"], 0
    for (name, metric), printed in paper[columns].iterrows():
        # An R² of matching has no meaning that we know.
        if name in names and (name, metric) != ("match-nn-eu", "cross-validation"):
            digits = 0 if metric == "AE" else 2
            told = ours.loc[(name, metric), columns].astype(float)
            known = printed.notna()
            assert told[known].round(digits).tolist() == printed[known].tolist(), (name, metric)
            compared += 1
    assert compared == {"full": 12, "minimal": 10}[adjustment]
    if adjustment == "full":  # Table 3
        assert ours.loc[("t-ridge", "R² by group"), "value"].round(2) == 0.02


def test_boosted_trees_break_ties_by_the_order_of_columns_and_the_paper_by_its_own():
    entry = {"estimator": "S-learner", "base_estimator": "xgbr", "label": "S"}
    settings = {"base_estimator__eta": 0.1, "base_estimator__max_depth": 5}
    grids = {"estimators": {"s-xgbr": entry | settings}}
    paper = published_metrics().set_index(["estimator", "metric"]).loc[("s-xgbr", "AE")]
    found = {}
    for order, names in {"paper": FULL_ADJUSTMENT, "turned": FULL_ADJUSTMENT[::-1]}.items():
        study = published_study(names)
        estimates = estimate(study, ["s-xgbr"], grids=grids, scored=False, progress=False)
        ours = evaluate(study, estimates, seed=None).set_index("metric")
        found[order] = ours.loc["AE", ["value", "lower", "upper"]].astype(float).round().tolist()
    assert found["paper"] == paper[["value", "lower", "upper"]].tolist()
    assert abs(found["turned"][0] - paper["value"]) > 20
