"""What was published: a sample, and the tables of the paper, to compare a run with."""

from collections.abc import Iterable, Sequence

import pandas as pd

from lib import ROOT
from lib.effects.estimator_files import labels
from lib.effects.intervals import NORMAL
from lib.effects.study import TABLES, Study
from lib.errors import check, check_known
from lib.files import read_table
from lib.income.characteristics import read_published
from lib.income.study import draw_study
from lib.scm import Simulator
from lib.tables import number_text

#: The sample that accompanies the paper; its README says whose it is.
SAMPLE = ROOT / "data" / "income_scm_1.0_cate"

#: A table of the paper → its metrics → digits, and what the column says.
TABLES_OF_PAPER = {
    "Table 2": {
        "cross-validation": (2, "AUC or R² of the fit"),
        "AE": (0, "error of the ATE, $"),
        "R²": (2, "R² of the CATE"),
    },
    "Table 3": {"R² by group": (2, "R² by education")},
}


def published_study(adjustment: str | Sequence[str] = "full") -> Study:
    """Read the sample that the paper's author published; nobody knows its true effects."""
    seen, control, treated = (read_table(SAMPLE / f"{name}.parquet") for name in TABLES)
    # The code of the reference puts the two lowest levels of education into one bin.
    control["level of education"] = control["education-num"].clip(lower=2)
    return Study(seen, control, treated, adjustment, group="level of education")


def published_metrics(adjustment: str = "full") -> pd.DataFrame:
    """Read the metrics that the paper prints, as a tidy table with 95 % intervals."""
    return read_published("estimators", adjustment=adjustment).drop(columns="source")


def beside_the_paper(
    table: pd.DataFrame,
    adjustment: str = "full",
    ceiling: float | None = None,
    table_of_paper: str = "Table 2",
) -> pd.DataFrame:
    """Lay a tidy run out as a table of the paper, with the paper's own numbers beside it.

    Each of our estimators has a row of text, with 95 % intervals in brackets. Our column of the R²
    names the `ceiling`, which is the R² of the true effects in this run.
    """
    check_known("table of the paper", table_of_paper, TABLES_OF_PAPER)
    once = not table.duplicated(["estimator", "metric"]).any()
    check(once, "a table of the paper must show a single study", "several")
    columns, estimators = {}, table["estimator"].unique()
    runs = {"ours": table, "paper": published_metrics(adjustment)}
    for metric, (digits, title) in TABLES_OF_PAPER[table_of_paper].items():
        most = f", of at most {ceiling:.2f}" if metric == "R²" and pd.notna(ceiling) else ""
        for whose, run in runs.items():
            rows = run[run["metric"] == metric].set_index("estimator").reindex(estimators)
            rows = rows[["value", "lower", "upper"]].to_numpy()
            said = title + most * (whose == "ours")
            columns[whose, said] = [_in_words(*row, digits=digits) for row in rows]
    return pd.DataFrame(columns, pd.Index(estimators, name="estimator")).rename(index=labels())


def lottery_of_fits(simulators: Iterable[Simulator], n: int) -> pd.DataFrame:
    """Compare what several fits imply, on n subjects each, with the draw that the author published.

    All fits share the noise of their worlds, so only the fit differs. The table is tidy: `source`,
    `fact`, `value`, and the `standard error` and the ends of the 95 % interval, which come from the
    sampling of subjects. The constant b of the income mechanism is known for our fits alone.
    """
    tables = [_facts(published_study(["age"])).assign(source="the author's draw")]
    for simulator in simulators:
        facts = _facts(draw_study(simulator, n))
        facts.loc["constant b, $"] = [0.0, *[simulator.initial_["income"].largest_] * 3]
        tables.append(facts.assign(source="one of our fits"))
    return pd.concat(tables[::-1]).rename_axis("fact").reset_index()


def place_of_draw(lottery: pd.DataFrame) -> pd.DataFrame:
    r"""Say how far the author's draw is from our fits in :func:`lottery_of_fits`, for each fact.

    .. math:: z = (a - m) \Big/ \sqrt{s^2 (1 + 1/k) + e_m^2 + e_a^2},

    with the mean m and the standard deviation s of k fits, the author's value a, and the standard
    errors from the sampling of subjects: :math:`e_m`, which all fits share, and :math:`e_a`.
    """
    sources = lottery.groupby(["source", "fact"], sort=False)
    table = sources["value"].agg(["size", "mean", "std"]).join(sources["standard error"].mean())
    theirs = table.loc["the author's draw", ["mean", "standard error"]].add_prefix("author's ")
    found = table.loc["one of our fits"].join(theirs)
    k, mean, deviation, error, author, its_error = (found[name] for name in found)
    apart = deviation * (1 + 1 / k) ** 0.5
    found["distance"] = (author - mean) / (apart**2 + error**2 + its_error**2) ** 0.5
    names = ["fits", "mean of fits", "standard deviation", "standard error", "author's draw"]
    return found.set_axis([*names, "its error", "distance"], axis=1)


def _facts(study: Study) -> pd.DataFrame:
    seen = study.observational
    married_women = seen[(seen["marital-status"] == "Married") & (seen["sex"] == "Female")]
    facts = {
        "mean income, $": seen["income"],
        "wives among married women, %": 100 * (married_women["relationship"] == "Wife"),
        "average effect, $": pd.Series(study.difference),
    }
    table = pd.DataFrame({fact: values.agg(["mean", "sem"]) for fact, values in facts.items()}).T
    value, error = table["mean"], table["sem"]
    ends = {"value": value, "lower": value - NORMAL * error, "upper": value + NORMAL * error}
    return pd.DataFrame({"standard error": error, **ends})


def _in_words(value: float, lower: float, upper: float, *, digits: int) -> str:
    if pd.isna(value):
        return ""
    text, low, high = (number_text(one, digits=digits) for one in (value, lower, upper))
    return text if pd.isna(lower) else f"{text} ({low}, {high})"
