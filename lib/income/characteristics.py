"""Baseline characteristics: what a table of subjects looks like, variable by variable.

The layout is that of the paper's Table 1 [1]_: the count and share of every level
of a categorical variable, the mean and quartiles of a number. The numbers that
others have published are kept in `data/published`, in the same long form, so that
a run of ours can be set beside them.

References
----------
.. [1] Johansson, F. D. (2024). IncomeSCM: From tabular data set to time-series
   simulator and causal estimation benchmark. arXiv:2405.16069, Tables 1 and 4.
"""

from pathlib import Path

import pandas as pd

from lib import ROOT
from lib.errors import InputError, one_of

#: What others have printed or released; `data/published/README.md` describes the columns.
PUBLISHED_CHARACTERISTICS = ROOT / "data" / "published" / "income_scm_characteristics.csv"
PUBLISHED_EFFECT = ROOT / "data" / "published" / "income_scm_effect.csv"

#: One fact has these three names; its value stands in the column `value`.
NAMES = ["variable", "level", "statistic"]

#: How the fit of a mechanism is measured: not a characteristic of a cohort.
FIT_MEASURES = ["AUC", "R²"]


def baseline_characteristics(frame: pd.DataFrame) -> pd.DataFrame:
    r"""Describe every column: counts and shares of levels, mean and quartiles of numbers.

    The share of a level :math:`v` among :math:`n` subjects is
    :math:`100 \cdot \frac{1}{n} \sum_i [x_i = v]`, in per cent. Quartiles
    interpolate linearly between neighbouring values.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row a subject. Columns are categorical or numeric.

    Returns
    -------
    pandas.DataFrame
        Columns `variable`, `level`, `statistic` and `value`, in the order of the
        columns and levels of `frame`. The first row is the size of the cohort;
        its `variable` and `level` are empty, as is the `level` of a number. The
        statistics are `count` and `share` (%) of a level, and `mean`, `lower
        quartile` and `upper quartile` of a number, in its own unit.

    Raises
    ------
    InputError
        If `frame` has no rows, or a column is neither categorical nor numeric.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": pd.Categorical(list("FMMM"))})
    >>> baseline_characteristics(people)
      variable level       statistic  value
    0                          count    4.0
    1      age                  mean   35.0
    2      age        lower quartile   27.5
    3      age        upper quartile   42.5
    4      sex     F           count    1.0
    5      sex     F           share   25.0
    6      sex     M           count    3.0
    7      sex     M           share   75.0
    """
    if len(frame) == 0:
        raise InputError("a cohort needs at least one subject: found a table without rows")
    facts = [("", "", "count", float(len(frame)))]
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            for level, count in column.value_counts(sort=False).items():
                facts.append((name, str(level), "count", float(count)))
                facts.append((name, str(level), "share", 100.0 * count / len(frame)))
        elif pd.api.types.is_numeric_dtype(column):
            facts.append((name, "", "mean", float(column.mean())))
            facts.append((name, "", "lower quartile", float(column.quantile(0.25))))
            facts.append((name, "", "upper quartile", float(column.quantile(0.75))))
        else:
            raise InputError(
                f"column {name!r} is of type {column.dtype}: expected categorical or numeric"
            )
    return pd.DataFrame(facts, columns=[*NAMES, "value"])


def cohort(world: pd.DataFrame, step: int = 1, outcome_step: int = 6) -> pd.DataFrame:
    """Read a world as a study would: who they were at baseline, what they earned later.

    This is the layout of the data set IncomeSCM-1.0.CATE (paper, Section 4.1, whose
    t = 2 and T = 7 are steps 1 and 6 here).

    Parameters
    ----------
    world : pandas.DataFrame
        Long frame with columns `subject`, `t`, `studies`, `income` and others.
    step : int
        The baseline, at which studies are chosen and all variables are read.
    outcome_step : int
        When `income` is read.

    Returns
    -------
    pandas.DataFrame
        One row a subject. `income_prev` (US dollars) and `studies_prev` are those of
        the step before the baseline, `income` (US dollars) that of the outcome step.

    Raises
    ------
    InputError
        If the world lacks one of the three steps.

    Examples
    --------
    >>> world = pd.DataFrame({"subject": 0, "t": [0, 1, 2], "age": [20, 21, 22]})
    >>> world = world.assign(studies=["Day", "No", "No"], income=[10, 20, 30])
    >>> cohort(world, step=1, outcome_step=2)
             age studies  income studies_prev  income_prev
    subject
    0         21      No      30          Day           10
    """
    at = {}
    for t in (step - 1, step, outcome_step):
        at[t] = world[world["t"] == t].set_index("subject").drop(columns="t")
        if at[t].empty:
            raise InputError(f"step {t} was not sampled: {one_of(world['t'].unique())}")
    return at[step].assign(
        income=at[outcome_step]["income"],
        studies_prev=at[step - 1]["studies"],
        income_prev=at[step - 1]["income"],
    )


def published_characteristics(cohort: str, source: str) -> pd.DataFrame:
    """Read what was published about a cohort, in the form of `baseline_characteristics`.

    Parameters
    ----------
    cohort : {"Adult", "IncomeSCM-1.0"}
        The base table, or the simulated benchmark.
    source : {"paper, Table 1", "paper, Table 4", "published files"}
        Where the numbers stand. `published files` is the data set that the paper
        released; it describes `IncomeSCM-1.0` only.

    Returns
    -------
    pandas.DataFrame
        Columns `variable`, `level`, `statistic`, `value`: rounded, as published.

    Raises
    ------
    InputError
        If nothing was published about this cohort in this source.

    Examples
    --------
    >>> table = published_characteristics("Adult", "paper, Table 1")
    >>> table[table["variable"] == "age"]
      variable level       statistic  value
    9      age                  mean   38.4
    10     age        lower quartile   28.0
    11     age        upper quartile   47.0
    """
    published = _published(PUBLISHED_CHARACTERISTICS, cohort=cohort, source=source)
    published = published[~published["statistic"].isin(FIT_MEASURES)]
    return published[[*NAMES, "value"]].reset_index(drop=True)


def published_fit_quality() -> pd.DataFrame:
    """Read how well the paper's initial mechanisms fit Adult (Table 1, last column).

    `measure` is `AUC` or `R²`, both in sample.

    Examples
    --------
    >>> published_fit_quality().head(3)
        variable measure  value
    0  education     AUC   0.68
    1  workclass     AUC   0.70
    2 occupation     AUC   0.81
    """
    published = _published(PUBLISHED_CHARACTERISTICS)
    published = published[published["statistic"].isin(FIT_MEASURES)].reset_index(drop=True)
    return published.rename(columns={"statistic": "measure"})[["variable", "measure", "value"]]


def published_effect(source: str) -> dict[str, float]:
    """Read the published effect of Full-time studies, against No studies, on the last income.

    Parameters
    ----------
    source : {"paper, caption of Table 2", "published files"}
        Where the numbers stand.

    Returns
    -------
    dict of str to float
        In US dollars, by name.

    Raises
    ------
    InputError
        If `source` is unknown.

    Examples
    --------
    >>> published_effect("published files")["average effect"]
    4614.0
    >>> published_effect("paper, caption of Table 2")["average effect"]
    40919.0
    """
    published = _published(PUBLISHED_EFFECT, source=source)
    return dict(zip(published["quantity"], published["value"].astype(float), strict=True))


def side_by_side(cohorts: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Lay cohorts out as in the paper's Table 1: one row a level or number, one column a cohort.

    Parameters
    ----------
    cohorts : dict of str to pandas.DataFrame
        Name of a column → characteristics, ours or published. The rows are those
        of the first cohort.

    Returns
    -------
    pandas.DataFrame
        Indexed by variable and level. A cell is text: `count (share %)`, or
        `mean (lower quartile to upper quartile)`, as far as these are known.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": pd.Categorical(list("FMMM"))})
    >>> side_by_side({"People": baseline_characteristics(people)})
                                 People
    variable level
    subjects                          4
    age             35.0 (27.5 to 42.5)
    sex      F               1 (25.0 %)
             M               3 (75.0 %)
    """
    columns = []
    for name, facts in cohorts.items():
        wide = facts.pivot_table(index=NAMES[:2], columns="statistic", values="value", sort=False)
        columns.append(wide.apply(_cell, axis="columns").rename(name))
    table = pd.concat(columns, axis="columns").reindex(columns[0].index).fillna("")
    return table.rename(index={"": "subjects"}, level=0)


def compare(ours: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Say how far our characteristics are from the published ones, fact by fact.

    Shares differ by percentage points, :math:`s - s'`; every other statistic by
    per cent, :math:`100 (x - x') / |x'|`, where the prime marks the published value.

    Parameters
    ----------
    ours, published : pandas.DataFrame
        Characteristics: `variable`, `level`, `statistic`, `value`.

    Returns
    -------
    pandas.DataFrame
        One row a fact that both know, in the published order, with columns
        `variable`, `level`, `statistic`, `ours`, `published`, `difference` and
        `unit` (`percentage points` or `%`). Two zeros do not differ; a number is
        infinitely far, in per cent, from a published zero.

    Examples
    --------
    >>> facts = [("age", "", "mean", 38.4), ("sex", "Female", "share", 32.4)]
    >>> ours = [("age", "", "mean", 40.32), ("sex", "Female", "share", 32.9)]
    >>> names = ["variable", "level", "statistic", "value"]
    >>> table = compare(pd.DataFrame(ours, columns=names), pd.DataFrame(facts, columns=names))
    >>> table[["variable", "difference", "unit"]].round(2)
      variable  difference               unit
    0      age         5.0                  %
    1      sex         0.5  percentage points
    """
    both = published.merge(ours, on=NAMES, suffixes=("_published", "_ours"))
    both = both.rename(columns={"value_ours": "ours", "value_published": "published"})
    difference = both["ours"] - both["published"]
    relative = 100 * difference / both["published"].abs()
    share = both["statistic"] == "share"
    both["difference"] = difference.where(share | (difference == 0), relative)
    both["unit"] = share.map({True: "percentage points", False: "%"})
    return both[[*NAMES, "ours", "published", "difference", "unit"]]


def _published(path: Path, **chosen: str) -> pd.DataFrame:
    """Read the published facts in which each of these columns has the value chosen."""
    facts = pd.read_csv(path, keep_default_na=False)
    for column, value in chosen.items():
        if value not in set(facts[column]):
            raise InputError(f"{column} {value!r} is unknown: {one_of(facts[column].unique())}")
        facts = facts[facts[column] == value]
    return facts


def _cell(facts: pd.Series) -> str:
    """Write the facts of one row as the paper does."""
    known = facts.dropna()
    if "mean" in known:
        text = _number(known["mean"])
        if "lower quartile" in known:
            text += f" ({_number(known['lower quartile'])} to {_number(known['upper quartile'])})"
        return text
    count = [f"{known['count']:,.0f}"] if "count" in known else []
    share = f"{known['share']:.1f} %" if "share" in known else None
    return " ".join([*count, f"({share})" if count else share] if share else count)


def _number(value: float) -> str:
    """Write thousands without decimals, smaller numbers with one."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}"
