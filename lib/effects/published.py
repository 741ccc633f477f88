"""The paper's Tables 2 and 3, to set a run beside."""

import pandas as pd

from lib import ROOT
from lib.effects.study import ADJUSTMENT_SETS
from lib.errors import InputError, one_of

#: As printed; `data/published/README.md` describes the columns.
PUBLISHED = ROOT / "data" / "published" / "income_scm_estimators.csv"


def published_marks(adjustment: str = "full") -> pd.DataFrame:
    """Read the marks that the paper prints, in the layout of a run of ours.

    Parameters
    ----------
    adjustment : {"full", "minimal"}

    Returns
    -------
    pandas.DataFrame
        Indexed by estimator: `AE` (US dollars), `cross-validation`, `R²`, and for the full
        set `R² by group`; each with `… lower` and `… upper`, where it has an interval.

    Raises
    ------
    InputError
        If nothing was published for this adjustment set.

    Examples
    --------
    >>> published_marks("full").loc["ipw-lr", ["AE", "cross-validation"]].tolist()
    [18645.0, 0.98]
    """
    if adjustment not in ADJUSTMENT_SETS:
        raise InputError(f"adjustment {adjustment!r} is unknown: {one_of(ADJUSTMENT_SETS)}")
    facts = pd.read_csv(PUBLISHED).query("adjustment == @adjustment")
    ends = {"value": "", "lower": " lower", "upper": " upper"}
    columns = {
        f"{mark}{suffix}": facts[facts["mark"] == mark].set_index("estimator")[end]
        for mark in facts["mark"].unique()
        for end, suffix in ends.items()
    }
    return pd.DataFrame(columns).dropna(axis="columns", how="all")


def beside_the_paper(ours: pd.DataFrame, adjustment: str = "full") -> pd.DataFrame:
    """Lay a run out as the paper's Table 2, with the paper's own numbers beside it.

    Parameters
    ----------
    ours : pandas.DataFrame
        What :func:`~lib.effects.benchmark.benchmark` returned.
    adjustment : {"full", "minimal"}

    Returns
    -------
    pandas.DataFrame
        One row an estimator of ours; text, with 95 % intervals in brackets.
    """
    paper = published_marks(adjustment).reindex(ours.index)
    table = {}
    for mark, digits, title in (
        ("cross-validation", 2, "AUC or R² of the fit"),
        ("AE", 0, "error of the ATE, $"),
        ("R²", 2, "R² of the CATE"),
    ):
        for name, marks in (("ours", ours), ("paper", paper)):
            table[title, name] = [_in_words(row, mark, digits) for _, row in marks.iterrows()]
    return pd.DataFrame(table, index=ours["label"].rename("estimator"))


def _in_words(row: pd.Series, mark: str, digits: int) -> str:
    if pd.isna(row[mark]):
        return ""
    text = f"{row[mark]:,.{digits}f}"
    if f"{mark} lower" in row and pd.notna(row[f"{mark} lower"]):
        text += f" ({row[f'{mark} lower']:,.{digits}f}, {row[f'{mark} upper']:,.{digits}f})"
    return text
