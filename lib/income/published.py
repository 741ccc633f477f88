"""The paper's Tables 2 and 3, to set a run beside, and what chance makes of the difference."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import t as student

from lib import ROOT
from lib.effects.estimates import estimate, marked
from lib.effects.estimator_files import PAPER, build, read_grids
from lib.effects.estimators import SLearner
from lib.effects.learners import Search
from lib.effects.metrics import marks
from lib.effects.study import ADJUSTMENT_SETS, Study, read_study
from lib.errors import InputError, one_of
from lib.income.study import effect_data
from lib.scm import Simulator

#: As printed; `data/published/README.md` describes the columns.
PUBLISHED = ROOT / "data" / "published" / "income_scm_estimators.csv"

#: Table of the paper → its marks: name here, digits, and what the column says.
TABLES = {
    "Table 2": (
        ("cross-validation", 2, "AUC or R² of the fit"),
        ("AE", 0, "error of the ATE, $"),
        ("R²", 2, "R² of the CATE{ceiling}"),
    ),
    "Table 3": (("R² by group", 2, "R² of the CATE by education"),),
}


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


def beside_the_paper(
    ours: pd.DataFrame,
    adjustment: str = "full",
    ceiling: float | None = None,
    table: str = "Table 2",
) -> pd.DataFrame:
    """Lay a run out as a table of the paper, with the paper's own numbers beside it.

    Parameters
    ----------
    ours : pandas.DataFrame
        What :func:`~lib.effects.estimates.benchmark` returned.
    adjustment : {"full", "minimal"}
    ceiling : float, optional
        The R² of the true effects in this run, named beside that of the estimators.
    table : {"Table 2", "Table 3"}
        The latter is of the full set.

    Returns
    -------
    pandas.DataFrame
        One row an estimator of ours; text, with 95 % intervals in brackets.
    """
    paper = published_marks(adjustment).reindex(ours.index)
    limit = "" if ceiling is None else f", of at most {ceiling:.2f}"
    columns = {}
    for mark, digits, title in TABLES[table]:
        for name, run in (("ours", ours), ("paper", paper)):
            words = [_in_words(row, mark, digits) for _, row in run.iterrows()]
            columns[title.format(ceiling=limit), name] = words
    return pd.DataFrame(columns, index=ours["label"].rename("estimator"))


def other_samples(
    simulators: Iterable[Simulator],
    n: int,
    adjustment: str = "full",
    estimators: Iterable[str] = PAPER,
    selection: str = "grid",
    seed: int = 0,
) -> pd.DataFrame:
    """Repeat the experiment on further samples, each with subjects of its own.

    Parameters
    ----------
    simulators : iterable of Simulator
        One a sample. The same one again and again varies the subjects alone; simulators
        fitted with other seeds vary the chance of their fit, too.
    n : int
        Subjects of every world.
    adjustment, estimators, selection
        As for :func:`~lib.effects.estimates.benchmark`.
    seed : int
        Of learners; the seeds of the worlds are drawn from it.

    Returns
    -------
    pandas.DataFrame
        Indexed by sample and estimator: `error` of the average effect (US dollars, with its
        sign), `R²`, `R² by group`.
    """
    found, root = {}, np.random.SeedSequence(seed)
    for k, simulator in enumerate(simulators):
        world, done_worlds = root.spawn(1)[0].generate_state(2).tolist()
        data = effect_data(simulator, n, seed=world, test_seed=done_worlds)
        study = read_study(*data[:3], adjustment)
        options = {"selection": selection, "seed": seed, "progress": False, "scored": False}
        run = estimate(study, estimators, **options)
        table = marked(study, run, bootstraps=0)
        table["error"] = table["ATE"] - study.difference.mean()
        found[k] = table[["error", "R²", "R² by group"]]
    if not found:
        raise InputError("a further sample needs a simulator: found none")
    return pd.concat(found, names=["sample"])


def beside_other_samples(
    more: pd.DataFrame, adjustment: str = "full", names: dict[str, str] | None = None
) -> pd.DataFrame:
    r"""Say for every mark of the paper whether one more sample might well have given it.

    .. math:: \bar x \pm t_{k-1}\, s \sqrt{1 + 1/k}

    holds the mark of one more sample with 95 % probability, if marks are normal. The paper prints
    the error of the average effect without its sign: it is inside if either sign is.

    Parameters
    ----------
    more : pandas.DataFrame
        What :func:`other_samples` returned, from two samples or more.
    adjustment : {"full", "minimal"}
    names : dict of str to str, optional
        Name of an estimator → its label.

    Returns
    -------
    pandas.DataFrame
        Indexed by estimator and mark (`error of the ATE, $`, `R² of the CATE`, and for the full
        set `R² by education`): `paper`, the ends `from` and `to`, and `inside`.
    """
    paper, rows = published_marks(adjustment), {}
    for name in more.index.unique("estimator"):
        for mark, of_paper, title, rounding in (
            ("error", "AE", "error of the ATE, $", 0.5),
            ("R²", "R²", "R² of the CATE", 0.005),
            ("R² by group", "R² by group", "R² by education", 0.005),
        ):
            x = more.xs(name, level="estimator")[mark].dropna()
            value = paper[of_paper].get(name, np.nan) if of_paper in paper else np.nan
            if pd.isna(value) or len(x) < 2:
                continue
            reach = student.ppf(0.975, len(x) - 1) * x.std() * (1 + 1 / len(x)) ** 0.5
            low, high = x.mean() - reach, x.mean() + reach
            signs = (1, -1) if mark == "error" else (1,)
            inside = any(low - rounding <= sign * value <= high + rounding for sign in signs)
            rows[(names or {}).get(name, name), title] = [value, low, high, inside]
    index = pd.MultiIndex.from_tuples(rows, names=["estimator", "mark"])
    return pd.DataFrame([*rows.values()], index, columns=["paper", "from", "to", "inside"])


def spread_in_words(spread: pd.DataFrame) -> pd.DataFrame:
    """Lay out what :func:`beside_other_samples` found, as text.

    Examples
    --------
    >>> marks = pd.MultiIndex.from_tuples([("IPW", "error of the ATE, $"), ("T", "R² of the CATE")])
    >>> found = [[18_645.0, -84_443.9, -5_327.4, True], [0.24, 0.1, 0.19, False]]
    >>> spread = pd.DataFrame(found, marks, ["paper", "from", "to", "inside"])
    >>> spread_in_words(spread).to_numpy().tolist()
    [['±18,645', '-84,444 to -5,327', 'yes'], ['0.24', '0.10 to 0.19', 'no']]
    """
    rows = []
    for (_, mark), (value, low, high, inside) in spread.iterrows():
        sign, digits = ("±", 0) if "$" in mark else ("", 2)
        ends = f"{low:,.{digits}f} to {high:,.{digits}f}"
        rows.append([f"{sign}{value:,.{digits}f}", ends, "yes" if inside else "no"])
    return pd.DataFrame(rows, spread.index, ["paper", "95 % of samples", "inside"])


def every_setting(study: Study, name: str, seed: int = 0) -> pd.DataFrame:
    """Mark an S-learner at every setting of its grid, not only at the one that fits best.

    Parameters
    ----------
    study : Study
    name : str
        Of an S-learner in the book's own grids.
    seed : int
        Of the learner.

    Returns
    -------
    pandas.DataFrame
        One row a setting, the best fit first: its parameters, `cross-validation` (R² of the
        outcome), and `R²` of the conditional effects.
    """
    estimator = build(name, read_grids()[name], seed=seed)
    if not isinstance(estimator, SLearner):
        raise InputError(f"estimator {name!r} must be an S-learner: found {type(estimator)}")
    features = np.column_stack([study.covariates.to_numpy(), study.treatment])
    fits = estimator.outcome.scores(features, study.outcome)
    rows = []
    for k, setting in enumerate(estimator.outcome.settings):
        learner = SLearner(outcome=Search(setting, scored=False))
        learner.outcome.fit(features, study.outcome)
        effects = learner.effect(study.test_covariates.to_numpy())[:, None]
        rows.append(
            dict(sorted(estimator.outcome.varied(setting).items()))
            | {
                "cross-validation": 1 + fits[k],
                "R²": marks(effects, study.difference, bootstraps=0)["R²"][0, 0],
            }
        )
    return pd.DataFrame(rows).sort_values("cross-validation", ascending=False, ignore_index=True)


def _in_words(row: pd.Series, mark: str, digits: int) -> str:
    if pd.isna(row.get(mark)):
        return ""
    text = f"{row[mark]:,.{digits}f}"
    if f"{mark} lower" in row and pd.notna(row[f"{mark} lower"]):
        text += f" ({row[f'{mark} lower']:,.{digits}f}, {row[f'{mark} upper']:,.{digits}f})"
    return text
