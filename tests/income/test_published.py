"""The paper's numbers, and what chance makes of the difference to ours."""

import hashlib
import re

import numpy as np
import pandas as pd
import pytest

from lib.effects import estimate, evaluate
from lib.effects.study import FULL_ADJUSTMENT
from lib.errors import InputError
from lib.income import draw_study, fitted_simulator
from lib.income.characteristics import read_published
from lib.income.published import (
    SAMPLE,
    beside_other_samples,
    beside_the_paper,
    other_samples,
    published_metrics,
    published_study,
)


def frame(errors, r2, name="t-ridge"):
    found = [
        {"sample": k, "estimator": name, "metric": metric, "value": value}
        for k, (e, r) in enumerate(zip(errors, r2, strict=True))
        for metric, value in {"error": e, "R²": r, "R² by group": r - 0.2}.items()
    ]
    return pd.DataFrame(found)


def test_a_number_of_the_paper_is_inside_if_one_more_sample_might_give_it():
    # The paper: an error of 1 696 of either sign, and an R² of 0.24.
    samples = frame([-2_000, -1_500, -1_000], [0.231, 0.232, 0.230])
    spread = beside_other_samples(samples).loc["T-learner (Ridge)"]
    error, r2 = spread.loc["error of the ATE, $"], spread.loc["R² of the CATE"]
    # Mean and standard deviation are -1 500 and 500; t with two degrees of freedom is 4.303.
    assert error["to"] == pytest.approx(-1_500 + 4.3027 * 500 * (4 / 3) ** 0.5, rel=1e-4)
    assert error["inside"]
    assert r2["to"] == pytest.approx(0.231 + 4.3027 * 0.001 * (4 / 3) ** 0.5, rel=1e-4)
    assert r2["inside"], "0.24 may be 0.2351 before rounding"
    assert spread.loc["R² by education", "paper"] == 0.02
    assert spread.loc["R² by education", "to"] == pytest.approx(r2["to"] - 0.2)
    far = beside_other_samples(frame([-100, 0, 100], [0.2, 0.2001, 0.1999]))
    assert not far["inside"].any()
    assert set(far.index.get_level_values("estimator")) == {"T-learner (Ridge)"}


def test_what_the_paper_does_not_have_is_left_out():
    of_minimal = beside_other_samples(frame([1, 2], [0.1, 0.2]), "minimal")
    assert "R² by education" not in of_minimal.index.unique("metric")
    assert beside_other_samples(frame([1, 2], [0.1, 0.2], "aipw")).empty
    assert list(beside_other_samples(frame([1, 2], [np.nan] * 2, "ipw-lr")).index) == [
        ("IPW (LR)", "error of the ATE, $")
    ]
    assert beside_other_samples(frame([1], [0.1])).empty, "one sample has no spread"


def test_other_samples_are_other_subjects_and_the_same_again():
    simulator = fitted_simulator()
    options = {"adjustment": "minimal", "estimators": ["match-nn-eu", "s-ridge"], "seed": 1}
    found = other_samples([simulator] * 2, 300, **options)
    errors = found[found["metric"] == "error"].set_index(["sample", "estimator"])["value"]
    assert errors.nunique() == 4
    assert set(found.query("estimator == 'match-nn-eu'")["metric"]) == {"error"}
    assert set(found["metric"]) == {"error", "R²", "R² by group"}
    # One sample more leaves the first ones as they were.
    more = other_samples([simulator] * 3, 300, **options)
    pd.testing.assert_frame_equal(found, more[more["sample"] < 2])
    seeds = np.random.SeedSequence(1).spawn(2)[1].generate_state(2).tolist()
    study = draw_study(simulator, 300, seed=seeds[0], test_seed=seeds[1], adjustment="minimal")
    again = estimate(study, ["match-nn-eu"], progress=False)["match-nn-eu"].ate
    assert errors[1, "match-nn-eu"] == pytest.approx(again - study.difference.mean())
    with pytest.raises(InputError, match=r"needs a simulator: found \[\]"):
        other_samples([], 300)


def test_the_table_has_both_and_brackets():
    names = ["estimator", "metric", "value", "lower", "upper"]
    rows = [("R²", 0.5, np.nan, np.nan), ("cross-validation", 0.9, np.nan, np.nan)]
    rows += [("AE", 3.0, 1.0, 1_234.5), ("R² by group", -0.5, np.nan, np.nan)]
    ours = pd.DataFrame([("t-ridge", *row) for row in rows], columns=names)
    row = beside_the_paper(ours).loc["T-learner (Ridge)"]
    assert row["error of the ATE, $", "ours"] == "3 (1, 1,234)"
    assert row["error of the ATE, $", "paper"] == "1,696 (1,213, 2,164)"
    assert row["R² of the CATE", "ours"] == "0.50"
    row = beside_the_paper(ours, table_of_paper="Table 3").loc["T-learner (Ridge)"]
    assert row.tolist() == ["-0.50", "0.02 (-0.30, 0.27)"]
    assert ("R² of the CATE, of at most 0.40", "ours") in beside_the_paper(ours, ceiling=0.4)
    assert ("R² of the CATE", "ours") in beside_the_paper(ours, ceiling=np.nan)
    alone = beside_the_paper(ours.assign(estimator="mine"), "minimal", table_of_paper="Table 3")
    assert alone.loc["mine"].tolist() == ["-0.50", ""], "the paper does not have it"


def test_a_table_that_the_paper_does_not_have_is_refused_in_a_sentence():
    nothing = pd.DataFrame(columns=["estimator", "metric", "value", "lower", "upper"])
    with pytest.raises(InputError, match="paper 'Table 9' is unknown: expected one of Tab"):
        beside_the_paper(nothing, table_of_paper="Table 9")


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
