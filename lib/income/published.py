"""The paper's Tables 2 and 3, to set a run beside, and what chance makes of the difference."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import t as student

from lib import ROOT
from lib.effects.estimates import estimate
from lib.effects.estimator_files import labels
from lib.effects.metrics import evaluate
from lib.effects.study import Study
from lib.errors import check, check_known
from lib.files import read_table
from lib.income.characteristics import read_published
from lib.income.study import draw_study
from lib.scm import Simulator

#: The sample that accompanies the paper; its README says whose it is.
SAMPLE = ROOT / "data" / "income_scm_1.0_cate"

#: A metric of the paper, or its error with a sign → digits, and what its column says.
METRICS = {
    "cross-validation": (2, "AUC or R² of the fit"),
    "AE": (0, "error of the ATE, $"),
    "error": (0, "error of the ATE, $"),
    "R²": (2, "R² of the CATE"),
    "R² by group": (2, "R² by education"),
}

#: A table of the paper → its metrics.
TABLES = {"Table 2": ("cross-validation", "AE", "R²"), "Table 3": ("R² by group",)}


def published_study(adjustment: str = "full", **fields) -> Study:
    """Read the sample that the paper's authors published; nobody knows its subjects' true effects.

    Examples
    --------
    >>> round(float(published_study("minimal").difference.mean()), 2)
    4614.09
    """
    names = ("observational", "control", "treated")
    seen, control, treated = (read_table(SAMPLE / f"{name}.parquet") for name in names)
    # The bins of education in the reference's code put its two lowest levels into one.
    control["level of education"] = control["education-num"].clip(lower=2)
    usual = {"adjustment": adjustment, "group": "level of education"}
    return Study(seen, control, treated, **usual | fields)


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

    One row an estimator of ours; text, with 95 % intervals in brackets. Named beside the R² of
    estimators is the `ceiling`, that of the true effects in this run.
    """
    check_known("table of the paper", table_of_paper, TABLES)
    columns, estimators = {}, table["estimator"].unique()
    for metric in TABLES[table_of_paper]:
        digits, title = METRICS[metric]
        if metric == "R²" and pd.notna(ceiling):
            title += f", of at most {ceiling:.2f}"
        for whose, run in (("ours", table), ("paper", published_metrics(adjustment))):
            rows = run[run["metric"] == metric].set_index("estimator").reindex(estimators)
            rows = rows[["value", "lower", "upper"]].to_numpy()
            columns[title, whose] = [_in_words(*row, digits) for row in rows]
    return pd.DataFrame(columns, pd.Index(estimators, name="estimator")).rename(index=labels())


def other_samples(
    simulators: Iterable[Simulator], n: int, adjustment: str = "full", seed: int = 0, **options
) -> pd.DataFrame:
    """Repeat the experiment on further samples, each with `n` subjects of its own in each world.

    There is one simulator a sample. The same one again and again varies the subjects alone; those
    fitted with other seeds vary the chance of their fit, too. `seed` is that of learners, and
    those of the worlds are drawn from it; `options` are others of
    :func:`~lib.effects.estimates.estimate`.

    Returns
    -------
    pandas.DataFrame
        Tidy: `sample`, `estimator`, `metric` and `value`. The metrics are `error`, that of the
        average effect (US dollars, with its sign), `R²`, and `R² by group`.
    """
    tables, root = {}, np.random.SeedSequence(seed)
    for k, simulator in enumerate(simulators):
        world, done_worlds = root.spawn(1)[0].generate_state(2).tolist()
        study = draw_study(simulator, n, seed=world, test_seed=done_worlds, adjustment=adjustment)
        found = estimate(study, seed=seed, progress=False, scored=False, **options)
        table = evaluate(study, found, bootstraps=0)[["estimator", "metric", "value"]]
        table = table[table["metric"] != "error"]  # the paper's is that of everybody's average
        table["value"] -= study.difference.mean() * (table["metric"] == "ATE")
        table = table.replace({"metric": {"ATE": "error"}})
        tables[k] = table[table["metric"].isin(["error", "R²", "R² by group"])]
    check(len(tables) > 0, "a further sample needs a simulator", list(tables))
    return pd.concat(tables, names=["sample"]).reset_index("sample").reset_index(drop=True)


def beside_other_samples(more: pd.DataFrame, adjustment: str = "full") -> pd.DataFrame:
    r"""Say for every number of the paper whether one more sample might well have given it.

    .. math:: \bar x \pm t_{k-1}\, s \sqrt{1 + 1/k}

    holds the number of one more sample with 95 % probability, if they are normal; `more` is what
    :func:`other_samples` found in k of them. The paper prints the error of the average effect
    without its sign: it is inside if either sign is. Columns are `paper`, the ends `from` and `to`,
    and `inside`.
    """
    samples = more.dropna().groupby(["estimator", "metric"], sort=False)["value"]
    spread = samples.agg(["mean", "std", "size"]).query("size >= 2").reset_index()
    paper = published_metrics(adjustment).replace({"metric": {"AE": "error"}})
    both = spread.merge(paper, on=["estimator", "metric"])
    reach = student.ppf(0.975, both["size"] - 1) * both["std"] * (1 + 1 / both["size"]) ** 0.5
    low, high = both["mean"] - reach, both["mean"] + reach
    digits = np.array([METRICS[metric][0] for metric in both["metric"]], dtype=float)
    half, inside = 0.5 * 10.0**-digits, False  # of the last digit that is printed
    for value in (both["value"], both["value"].where(both["metric"] != "error", -both["value"])):
        inside |= value.between(low - half, high + half)
    both = both.assign(**{"paper": both["value"], "from": low, "to": high, "inside": inside})
    both = both.set_index(["estimator", "metric"])[["paper", "from", "to", "inside"]]
    return both.rename(labels() | {metric: title for metric, (_, title) in METRICS.items()})


def spread_in_words(spread: pd.DataFrame) -> pd.DataFrame:
    """Lay out what :func:`beside_other_samples` found, as text.

    Examples
    --------
    >>> index = pd.MultiIndex.from_tuples([("IPW", "error of the ATE, $"), ("T", "R² of the CATE")])
    >>> found = [[18_645.0, -84_443.9, -5_327.4, True], [0.24, 0.1, 0.19, False]]
    >>> spread = pd.DataFrame(found, index, ["paper", "from", "to", "inside"])
    >>> spread_in_words(spread).to_numpy().tolist()
    [['±18,645', '-84,444 to -5,327', 'yes'], ['0.24', '0.10 to 0.19', 'no']]
    """
    rows = []
    for (_, metric), (value, low, high, inside) in spread.iterrows():
        sign, digits = ("±", 0) if "$" in metric else ("", 2)
        texts = [f"{number:,.{digits}f}" for number in (value, low, high)]
        rows.append([sign + texts[0], f"{texts[1]} to {texts[2]}", "yes" if inside else "no"])
    return pd.DataFrame(rows, spread.index, ["paper", "95 % of samples", "inside"])


def _in_words(value: float, lower: float, upper: float, digits: int) -> str:
    if pd.isna(value):
        return ""
    ends = "" if pd.isna(lower) else f" ({lower:,.{digits}f}, {upper:,.{digits}f})"
    return f"{value:,.{digits}f}{ends}"
