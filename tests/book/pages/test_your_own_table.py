"""The truths of the chapter on another table, each found in another way than its own."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from statsmodels.datasets import randhie

from lib.book.editions import BOOK
from lib.book.recorded import Number

VALUES = {"n_samples": 600, "n_studies": 6, "strengths": [0.0, 2.0], "n_truth": 50_000}
VALUES |= {"estimators": ["ipw-true", "s-ridge"], "n_test": 4_000, "n_refits": 3, "seed": 5}


@pytest.fixture(scope="module")
def page(executed):
    """The executed notebook, and the numbers that it recorded."""
    record, notebook = executed(BOOK.notebook("your_own_table"), VALUES)
    numbers = {name: Number(**one) for name, one in record["numbers"].items()}
    return notebook, numbers


@pytest.fixture(scope="module")
def adults():
    """The people of the chapter, from the columns that statsmodels itself hands out."""
    both = randhie.load_pandas().data.join(
        pd.read_csv(randhie.__path__[0] + "/src/randhie.csv")[["year", "xage", "female", "income"]]
    )
    return both[(both["year"] == 1) & (both["xage"] >= 18)]


def test_pairs_and_the_g_formula_agree(page):
    _, numbers = page
    pairs, formula = numbers["average_effect"], numbers["average_effect_by_the_g_formula"]
    assert pairs.standard_error < 0.01
    assert pairs.value == pytest.approx(formula.value, abs=4 * pairs.standard_error)


def test_the_truth_is_that_of_a_poisson_regression_of_statsmodels(page, adults):
    """Over the people of the table, whose covariates the simulator has nearly, not exactly."""
    chronic = pd.cut(adults["disea"], [-1, 6, 14, 100], labels=["few", "some", "many"])
    design = pd.get_dummies(chronic, drop_first=True).assign(
        age=np.floor(adults["xage"]),
        female=adults["female"],
        income=adults["income"].round() / 10_000,
        limited=adults["physlm"] > 0.5,
        good=adults["hlthg"],
        fair=adults["hlthf"],
        poor=adults["hlthp"],
        free=(adults["lncoins"] == 0) & (adults["idp"] == 0),
    )
    design = sm.add_constant(design.astype(float))
    fitted = sm.GLM(adults["mdvis"], design, family=sm.families.Poisson()).fit()
    without, free = (fitted.predict(design.assign(free=arm)) for arm in (0.0, 1.0))
    _, numbers = page
    truth = numbers["average_effect_by_the_g_formula"].value
    assert truth == pytest.approx((free - without).mean(), abs=0.02)


def test_the_difference_in_the_table(page, adults):
    free = (adults["lncoins"] == 0) & (adults["idp"] == 0)
    arms = adults["mdvis"][free], adults["mdvis"][~free]
    found = page[1]["difference_in_the_table"]
    assert found.value == pytest.approx(arms[0].mean() - arms[1].mean())
    assert found.standard_error == pytest.approx(np.hypot(arms[0].sem(), arms[1].sem()))


def test_weighting_by_true_chances_finds_the_truth_of_a_lottery(page):
    bias = page[1]["bias_of_ipw_true_at_0"]
    assert abs(bias.value) < 4 * bias.standard_error < 0.6


def test_trees_blame_income(page):
    _, numbers = page
    auc = {name: one.value for name, one in numbers.items() if name.startswith("auc_of")}
    assert auc["auc_of_all_columns"] > 0.56 > auc["auc_of_all_but_income"]
    assert auc["auc_of_plan_and_visits"] < auc["auc_of_income_alone"]


def test_every_mistake_is_refused(page):
    notebook, _ = page
    [cell] = [cell for cell in notebook.cells if cell.id == "mistakes"]
    said = cell.outputs[0].text.strip().split("\n\n")
    assert len(said) == cell.source.count("tried(lambda")
    assert not any(one.startswith("nothing") for one in said)
    assert "form a cycle" in " ".join(said[1].split()), "which is worse than any other mistake"


def test_a_lot_predicts_itself_as_well_as_shuffled_plans_do(adults):
    """In the rows that it was fitted to, a regression beats an AUC of 0.5 even where nothing is."""
    causes = ["xage", "female", "income", "disea", "physlm", "hlthg", "hlthf", "hlthp"]
    design = StandardScaler().fit_transform(adults[causes])
    free = ((adults["lncoins"] == 0) & (adults["idp"] == 0)).to_numpy()

    def auc(plan):
        fitted = LogisticRegression().fit(design, plan)
        return roc_auc_score(plan, fitted.predict_proba(design)[:, 1])

    rng = np.random.default_rng(0)
    shuffled = [auc(rng.permutation(free)) for _ in range(100)]
    assert min(shuffled) > 0.5
    assert np.quantile(shuffled, 0.05) < auc(free) < np.quantile(shuffled, 0.95)
