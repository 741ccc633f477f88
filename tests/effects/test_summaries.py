"""Summaries over studies: against sums by hand, and their Monte-Carlo errors against chance."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.effects import over_studies
from lib.effects.summaries import (
    by_level,
    in_words,
    rank_agreement,
    rmse_of_resamples,
    spread,
)
from lib.errors import InputError


def errors(values, lower=np.nan, upper=np.nan, name="t", estimand="ATE"):
    values = np.asarray(values, dtype=float)
    table = pd.DataFrame({"study": range(len(values)), "estimator": name, "estimand": estimand})
    return table.assign(metric="error", value=values, lower=values + lower, upper=values + upper)


def of(summary, name="t", estimand="ATE"):
    rows = summary[(summary["estimator"] == name) & (summary["estimand"] == estimand)]
    return rows.set_index("metric")[["value", "standard error"]].T.to_dict("list")


def wilson(share, n):
    """The half-width of Wilson's interval as SciPy finds it, in standard errors of a normal."""
    interval = stats.binomtest(round(share * n), n).proportion_ci(method="wilson")
    return (interval.high - interval.low) / 2 / stats.norm.ppf(0.975)


def test_a_share_of_none_or_all_is_not_known_without_error():
    for width, share in ((0, 0), (1e9, 1)):
        found = of(over_studies(errors(np.arange(1.0, 101), -width, width)))["coverage"]
        assert found == pytest.approx([share, wilson(share, 100)])
        assert 0.009 < found[1] < 0.01


def test_by_hand_on_four_studies():
    found = of(over_studies(errors([1.0, 3.0, -2.0, 6.0], -2, 2)))
    assert found["bias"] == pytest.approx([2, (34 / 3) ** 0.5 / 2])
    assert found["standard deviation"][0] == pytest.approx((34 / 3) ** 0.5)
    assert found["RMSE"][0] == pytest.approx(12.5**0.5)
    # The squares 1, 9, 4, 36 have a variance of 769 / 3.
    assert found["RMSE"][1] == pytest.approx((769 / 3 / 4) ** 0.5 / (2 * 12.5**0.5))
    assert found["coverage"] == pytest.approx([0.5, wilson(0.5, 4)]), "of 1 and of −2, at its end"
    assert found["width"] == pytest.approx([4, 0])
    assert found["best"] == pytest.approx([1, wilson(1, 4)])


def test_who_is_never_wrong_has_errors_without_an_error():
    assert of(over_studies(errors([0.0, 0.0, 0.0], -2, 2)))["RMSE"] == [0, 0]


def test_two_studies_do_not_know_their_standard_deviation_exactly():
    found = of(over_studies(errors([1.0, 3.0], -2, 2)))
    assert found["standard deviation"] == pytest.approx([2**0.5, 1]), "as of two normal errors"


@pytest.mark.parametrize("skewed", [False, True])
def test_monte_carlo_errors_are_the_spread_of_repeated_benchmarks(skewed):
    rng = np.random.default_rng(0)
    draw = rng.exponential if skewed else rng.normal
    # Each run is an estimator of one table, which is summarised sooner than 300 tables.
    runs = [errors(1 + draw(size=300), -2, 2, f"run {k}") for k in range(300)]
    found = over_studies(pd.concat(runs)).set_index("metric")[["value", "standard error"]]
    for metric in ("bias", "standard deviation", "RMSE", "coverage"):
        values, said = found.loc[metric].to_numpy().T
        assert len(values) == 300
        # The spread of 300 runs is itself known to 4 %.
        assert said.mean() == pytest.approx(values.std(ddof=1), rel=0.15), metric


def test_the_best_of_a_study_is_nearest_to_what_it_estimates():
    table = pd.concat(
        [errors([1, -5, 2]), errors([-2, 1, 2], name="ipw", estimand="ATE, two arms")]
    )
    found = over_studies(table)
    assert found["estimator"].unique().tolist() == ["t", "ipw"], "as they came"
    assert of(found)["best"] == pytest.approx([2 / 3, wilson(2 / 3, 3)]), "one of them a tie"
    assert of(found, "ipw", "ATE, two arms")["best"][0] == pytest.approx(2 / 3)
    assert "coverage" not in of(found), "where no interval is stated, none covers"


def test_regimes_do_not_compete_and_who_is_absent_is_not_the_best():
    near, far = [1.0, -5, 2], [100.0, -300, 200]
    entrants = {"s": (2, 0.5), "t": (1, 1)}
    table = pd.concat(
        errors(np.multiply(values, by), name=name, estimand=estimand)
        for name, factors in entrants.items()
        for estimand, values, by in zip(["short", "long"], [near, far], factors, strict=True)
    )
    rare = errors([0.0, 0.0], name="rare", estimand="long").assign(study=[1, 2])
    found = over_studies(pd.concat([table, rare.head(1)]).assign(lower=np.nan))
    best = found[found["metric"] == "best"].set_index(["estimator", "estimand"])["value"]
    assert best["s"].to_dict() == {"short": 0, "long": pytest.approx(2 / 3)}
    assert best["t"].to_dict() == {"short": 1, "long": 0}
    assert best["rare", "long"] == pytest.approx(1 / 3)


def test_conditional_effects_have_an_r2_and_the_coverage_of_their_intervals():
    table = pd.DataFrame({"study": [0, 1] * 2, "estimator": [*"sstt"], "estimand": "CATE"})
    r2 = table.assign(metric="R²", value=[0.1, 0.5, 0.2, 0.3], lower=0.0, upper=1.0)
    share = table.assign(metric="coverage", value=[0.8, 0.9, 0.5, 0.5], lower=np.nan, upper=np.nan)
    found = of(over_studies(pd.concat([r2, share])), "s", "CATE")
    assert found["R²"] == pytest.approx([0.3, 0.2])
    assert found["coverage"] == pytest.approx([0.85, 0.05])
    assert found["best"] == pytest.approx([0.5, wilson(0.5, 2)])
    true = r2.assign(metric="R², truth", value=[0.9, 0.9, 0.8, 0.8])
    both = over_studies(pd.concat([r2, true]))
    assert list(of(both, "s", "CATE")) == ["R², truth", "best"]
    assert of(both, "s", "CATE")["R², truth"] == [0.9, 0.0]
    assert of(both, "s", "CATE")["best"] == pytest.approx([1, wilson(1, 2)])


def test_nobody_is_best_where_no_r2_is_defined():
    table = pd.DataFrame({"study": [0, 1], "estimator": "s", "estimand": "CATE", "metric": "R²"})
    found = of(over_studies(table.assign(value=np.nan, lower=0, upper=1)), "s", "CATE")
    assert list(found) == ["R²"]


def test_who_failed_in_a_study_has_no_mean_over_the_others():
    table = pd.concat([errors([8.0, 9, 10, 9]), errors([1.0, np.nan, 1, 3], name="fails")])
    found = of(over_studies(table), "fails")
    for metric in ("bias", "standard deviation", "RMSE"):
        assert np.isnan(found[metric]).all()
    assert found["best"][0] == 0.75
    assert of(over_studies(table))["bias"][0] == 9
    assert in_words(over_studies(table)).loc[("fails", "ATE"), "bias"] == "—"


def test_studies_of_several_tables_need_numbers_of_their_own():
    one, other = errors([1.0, 3.0]), errors([-2.0, 6.0])
    with pytest.raises(InputError, match="numbers of their own: found '2 twice'"):
        over_studies(pd.concat([one, other]))
    together = over_studies(pd.concat([one, other.assign(study=[2, 3])]))
    pd.testing.assert_frame_equal(together, over_studies(errors([1.0, 3.0, -2.0, 6.0])))


def test_one_study_has_no_summary():
    with pytest.raises(InputError, match="at least two studies: found 1"):
        over_studies(errors([1.0]))


def test_the_spread_of_a_metric_stays_within_what_is_possible():
    rng = np.random.default_rng(0)
    table = errors(1 - rng.exponential(size=1_000)).assign(metric="R²", estimand="CATE")
    both = spread(pd.concat([table, table.assign(estimator="s")]))
    assert both["estimator"].tolist() == ["t", "s"], "as they came"
    found = both.iloc[0]
    assert found["value"] == pytest.approx(1 - np.log(2), abs=0.1)
    assert found["lower"] == pytest.approx(1 + np.log(0.025), abs=0.4)
    assert found["value"] < found["upper"] < 1


def test_levels_are_summarised_apart_and_stand_as_they_came():
    runs = {2.0: errors([1.0, 3.0], -2, 2), 0.5: errors([0.0, 9.0, 1.0], -1, 1)}
    table = by_level(pd.concat(runs, names=["power"]), "power")
    assert table["power"].tolist() == [2.0, 0.5]
    for (_, row), run in zip(table.iterrows(), runs.values(), strict=True):
        alone = of(over_studies(run))
        assert [row["coverage"], row["error of coverage"]] == alone["coverage"]
        assert [row["bias"], row["error of bias"]] == alone["bias"]
        assert row["width"] == alone["width"][0]


def test_words_have_two_digits_of_the_error():
    table = errors([1.0, 3.0, -2.0, 6.0], -2, 2)
    runs = [table, table.assign(lower=np.nan, estimator="ipw")]
    found = in_words(over_studies(pd.concat(runs)), {"t": "T-learner"})
    assert found.index.tolist() == [("T-learner", "ATE"), ("ipw", "ATE")], "as they came"
    assert found.loc[("T-learner", "ATE"), "bias"] == "2.0 ± 1.7"
    assert found["best"].tolist() == ["1.00 ± 0.12"] * 2
    assert found["width"].tolist() == ["4.00 ± 0.00", ""]
    rule = r"each metric in words may be given only once: found \('T-learner', 'ATE', "
    with pytest.raises(InputError, match=rule):
        in_words(over_studies(pd.concat(runs)), {"t": "T-learner", "ipw": "T-learner"})


def worlds(scales, n_studies=40, seed=0, shared=0.0):
    """Errors of four estimators, as large as the scales of a world say, and some luck in common."""
    rng = np.random.default_rng(seed)
    luck = rng.normal(size=(n_studies, 4))
    rows = []
    for world, scale in scales.items():
        errors = (shared * luck + rng.normal(size=(n_studies, 4))) * scale
        rows += [
            (world, study, name, errors[study, k])
            for study in range(n_studies)
            for k, name in enumerate("badc")
        ]
    return pd.DataFrame(rows, columns=["world", "study", "estimator", "error"])


def test_rankings_agree_as_far_as_scales_do():
    same, turned = np.array([1.0, 3, 9, 27]), np.array([27.0, 9, 3, 1])
    found, error = rank_agreement(worlds({"v": same, "w": 5 * same, "u": turned}))
    assert found.loc["v", "w"] == pytest.approx(1)
    assert found.loc["v", "u"] == pytest.approx(-1)
    assert (np.diag(found) == pytest.approx(1)) and found.equals(found.T)
    assert found.index.name == found.columns.name == "world"
    assert error.index.equals(found.index) and error.columns.equals(found.columns)
    for n_studies in (2, 3):
        found, error = rank_agreement(worlds({"v": same}, n_studies))
        assert np.isfinite(found).all(axis=None) and error.isna().all(axis=None)
    with pytest.raises(InputError, match="rank agreement needs at least two studies: found 1"):
        rank_agreement(worlds({"v": same}, 1))


def test_luck_that_worlds_share_does_not_make_their_rankings_agree():
    """With equal scales every ranking is luck, and by the same studies it would look the same."""
    found = [
        rank_agreement(worlds({"v": np.ones(4), "w": np.ones(4)}, 8, seed, shared=10), splits=20)[0]
        for seed in range(200)
    ]
    between = np.array([one.loc["v", "w"] for one in found])
    assert between.mean() < 4 * between.std() / 200**0.5


def test_the_error_of_an_agreement_is_that_of_other_studies_or_larger():
    """By Efron and Stein, the jackknife states too much on average; here by less than half."""
    scales = {"v": np.linspace(1, 2, 4), "w": np.linspace(1, 3, 4), "u": np.linspace(2, 1, 4)}
    drawn = [rank_agreement(worlds(scales, 12, seed, 0.5), splits=20) for seed in range(150)]
    found, errors = (np.array(part) for part in zip(*drawn, strict=True))
    stated = (errors**2).mean(axis=0) ** 0.5 / found.std(axis=0)
    assert stated.min() > 1 and stated.max() < 1.5


def test_an_error_is_that_of_leaving_out_each_study():
    """Found again from the halves of one split, study by study, with SciPy's own correlation."""
    table = worlds({"v": np.array([1.0, 2, 3, 4])}, 6)
    squares = table.pivot_table("error", "study", "estimator", sort=False).to_numpy() ** 2
    halves = np.array_split(np.random.default_rng(3).permutation(6), 2)
    without = []
    for study in range(6):
        means = [squares[half[half != study]].mean(axis=0) for half in halves]
        without.append(stats.spearmanr(*means).statistic)
    _, error = rank_agreement(table, splits=1, seed=3)
    spread = ((np.array(without) - np.mean(without)) ** 2).sum()
    assert error.iloc[0, 0] == pytest.approx((5 / 6 * spread) ** 0.5)


def test_resamples_are_of_the_same_studies_in_all_worlds():
    table = worlds({"v": np.arange(1.0, 5)})
    twice = pd.concat([table, table.assign(world="w")])
    found = rmse_of_resamples(twice, 50, seed=1)
    np.testing.assert_array_equal(found.loc["v"], found.loc["w"])
    assert [*found] == [*"badc"], "as they came"
    squares = table.assign(error=table["error"] ** 2).groupby("estimator")["error"].mean()
    assert found.mean().to_dict() == pytest.approx((squares**0.5).to_dict(), rel=0.1)
    for table in (twice.iloc[1:], pd.concat([twice, twice.iloc[:1]])):
        with pytest.raises(InputError, match="must have every study and estimator once"):
            rmse_of_resamples(table)


def test_the_order_of_rows_does_not_matter():
    table = worlds({"v": np.array([1.0, 3, 9, 27]), "w": np.array([27.0, 9, 3, 1])}, 6)
    by_study = table.sort_values("study", kind="stable")
    for one, other in zip(rank_agreement(by_study), rank_agreement(table), strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(rmse_of_resamples(by_study), rmse_of_resamples(table))


def test_worlds_with_as_many_studies_that_are_not_the_same_are_refused():
    table = worlds({"v": np.ones(4), "w": np.ones(4)}, 3)
    first, last = (table["world"] == "v") & (table["study"] == 0), (table["study"] == 2)
    others = table[~first & ~((table["world"] == "w") & last)]
    with pytest.raises(InputError, match="every world must have every study and estimator"):
        rank_agreement(others)
