"""Baseline characteristics: what a table of subjects looks like, variable by variable.

The layout is that of Tables 1 and 4 of the paper (Johansson 2024, arXiv:2405.16069). Published
numbers are kept in `data/published`, in the same long form.
"""

import contextlib

import pandas as pd

from lib import ROOT
from lib.errors import check, check_known, check_names, check_once
from lib.tables import number_text

#: The columns that name a fact; its value is in the column `value`.
NAMES = ["variable", "level", "statistic"]

#: Formats of a cell in the paper's Table 1; a cell has the first whose numbers are all known.
CELLS = (
    *("{mean} ({lower quartile} to {upper quartile})", "{mean}"),
    *("{count} ({share}\u00a0%)", "{count}", "{share}\u00a0%"),
)


def baseline_characteristics(frame: pd.DataFrame) -> pd.DataFrame:
    r"""Describe every column: counts and shares of levels, mean and quartiles of numbers.

    A share, :math:`100 \cdot \frac{1}{n} \sum_i [x_i = v]`, is in per cent; quartiles
    interpolate linearly. The first row is the size of the cohort.
    """
    check(len(frame) > 0, "a cohort needs at least one subject", len(frame))
    facts = [("", "", "count", float(len(frame)))]
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            for level, count in column.value_counts(sort=False).items():
                share = 100.0 * count / len(frame)
                facts += [(name, str(level), "count", count), (name, str(level), "share", share)]
        else:
            rule = f"column {name!r} must be categorical or numeric"
            check(column.dtype.kind in "iuf", rule, str(column.dtype))  # truth values have no mean
            facts.append((name, "", "mean", column.mean()))
            facts.append((name, "", "lower quartile", column.quantile(0.25)))
            facts.append((name, "", "upper quartile", column.quantile(0.75)))
    return pd.DataFrame(facts, columns=[*NAMES, "value"])


def cohort(world: pd.DataFrame) -> pd.DataFrame:
    """Read a world as a study would: what subjects were at baseline, what they earned later.

    This is the layout of IncomeSCM-1.0.CATE (paper, Section 4.1, whose t = 2 is step 1 here):
    one row per subject at step 1, with `income_prev` and `studies_prev` from the step before, and
    `income` from the last step, in US dollars.
    """
    steps = world["t"].unique()
    check_names("step", (0, 1), steps)
    before, now, last = (
        world[world["t"] == t].set_index("subject").drop(columns="t") for t in (0, 1, steps.max())
    )
    previous = {f"{name}_prev": before[name] for name in ("studies", "income")}
    check_once("column of a cohort", [*now, *previous])
    # An income of two levels, 0 and 1, is a number, too.
    return now.assign(income=last["income"].astype(float, errors="ignore"), **previous)


def read_published(what: str, **chosen: str) -> pd.DataFrame:
    """Read those facts of a file in `data/published` whose columns have the chosen values.

    The files are `characteristics` of cohorts, the `fit` of the initial mechanisms to Adult (in
    sample), the `effect` of Full-time studies on the last income (US dollars), and `estimators`.
    """
    numbers = dict.fromkeys(["value", "lower", "upper"], "")
    path = ROOT / "data" / "published" / f"income_scm_{what}.csv"
    facts = pd.read_csv(path, keep_default_na=False, na_values=numbers)
    for column, value in chosen.items():
        check_known(column, value, facts[column].unique())
        facts = facts[facts[column] == value]
    return facts.drop(columns=list(chosen)).reset_index(drop=True)


def side_by_side(cohorts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Lay cohorts out as in the paper's Table 1: a row per level or number, a column per cohort.

    The rows are those of the first cohort's characteristics; a cell is text: `1 (25.0 %)`.
    """
    columns = []
    for name, facts in cohorts.items():
        wide = facts.pivot_table(index=NAMES[:2], columns="statistic", values="value", sort=False)
        columns.append(wide.apply(_cell, axis="columns").rename(name))
    table = pd.concat(columns, axis="columns").reindex(columns[0].index).fillna("")
    return table.rename(index={"": "subjects"}, level=0)


def compare(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Say how far our characteristics are from the published ones, marked by a prime.

    Shares differ by percentage points, :math:`s - s'`; every other statistic by per cent,
    :math:`100 (x - x') / |x'|`. Two zeros do not differ. Only facts in both tables are compared.
    """
    both = published.merge(ours, on=NAMES).set_axis([*NAMES, "published", "ours"], axis="columns")
    difference, share = both["ours"] - both["published"], both["statistic"] == "share"
    relative = 100 * difference / both["published"].abs()
    both["difference"] = difference.where(share | (difference == 0), relative)
    both["unit"] = share.map({True: "percentage points", False: "%"})
    return both[[*NAMES, "ours", "published", "difference", "unit"]]


def _cell(facts: pd.Series) -> str:
    """Write the facts of one row as the paper does: thousands and counts without decimals."""
    known = {
        name: number_text(value, digits=0 if name == "count" or abs(value) >= 1000 else 1)
        for name, value in facts.dropna().items()
    }
    for cell in CELLS:
        with contextlib.suppress(KeyError):  # a number of this format is not known
            return cell.format_map(known)
    return ""
