r"""The data set IncomeSCM-1.0.CATE, and the truth that it hides.

The question of the paper (Section 4.1): what does a year of full-time studies do
to the income of a subject five years later, compared to a year without studies,
when the subject is free before and after? One world is *seen*: subjects study as
they wish, and estimators learn from it. Two worlds are *done*: the same subjects,
other than the seen ones, all study, or none does. The difference of their incomes
is one noisy draw of each subject's effect.

The simulator knows more. From a subject's state it can be run again and again, in
both arms with shared noise, and the mean difference tends to the conditional
average treatment effect itself,

.. math::
    \tau(z) = \mathbb E[Y(1) - Y(0) \mid Z = z]
    \approx \frac1K \sum_{k=1}^K \bigl(Y^{(k)}(1) - Y^{(k)}(0)\bigr).

The covariates of the full adjustment set are all that the future depends on, so
:math:`\tau` is a function of them. Against single draws no estimator can reach an
R² above :math:`\mathrm{Var}(\tau) / \mathrm{Var}(Y(1) - Y(0))`, the *ceiling*.

Steps are counted from 0; the paper's t is one higher.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.files import atomic_write, write_parquet
from lib.income.characteristics import cohort
from lib.income.mechanisms import FULL_TIME, NO_STUDIES
from lib.scm import Simulator

#: What an estimator may adjust for (paper, Section 4.1): everything before the treatment …
FULL_ADJUSTMENT = (
    *("native-country", "sex", "race", "age", "education", "workclass", "occupation"),
    *("marital-status", "relationship", "capital-net", "hours-per-week", "education-num"),
    *("income_prev", "studies_prev"),
)
#: … or the direct causes of the treatment alone.
MINIMAL_ADJUSTMENT = ("age", "education-num", "sex", "relationship", "income_prev", "studies_prev")

#: The step of the treatment.
TREATED_STEP = 1

#: Name of a data set → specification and horizon; the second is the reference's short variant.
DATA_SETS = {
    "IncomeSCM-1.0.CATE": ("income_scm_1.0", 7),
    "IncomeSCM-1.0.CATE, short": ("income_scm_1.0", 4),
    "IncomeSCM-1.1.CATE": ("income_scm_1.1", 7),
}


class EffectData(NamedTuple):
    """What estimators see, and what they are marked against.

    Attributes
    ----------
    observational : pandas.DataFrame
        One row a subject of the seen world: covariates at step 1, `income_prev` and
        `studies_prev` of step 0, `studies` at step 1, `income` (US dollars) at the end.
    control, treated : pandas.DataFrame
        The same subjects, one row each, without and with the treatment.
    propensities : pandas.DataFrame
        The true probability of every level of `studies`, of the observational subjects.
    """

    observational: pd.DataFrame
    control: pd.DataFrame
    treated: pd.DataFrame
    propensities: pd.DataFrame

    def to_parquet(self, folder: str | os.PathLike) -> Path:
        """Write one file a table into a folder, which is made if need be, and return it.

        Examples
        --------
        >>> import tempfile
        >>> data = EffectData(*[pd.DataFrame({"income": [1.0]})] * 4)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(path.stem for path in data.to_parquet(folder).iterdir())
        ['control', 'observational', 'propensities', 'treated']
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self._asdict().items():
            with atomic_write(folder / f"{name}.parquet") as beside:
                write_parquet(beside, iter([table]))
        return folder


def effect_data(
    simulator: Simulator,
    n: int = 50_000,
    horizon: int = 7,
    seed: int = 0,
    test_seed: int = 1,
    treatment: str = FULL_TIME,
    control: str = NO_STUDIES,
) -> EffectData:
    """Sample the observational and the two interventional data sets.

    Parameters
    ----------
    simulator : Simulator
        Fitted to a specification of IncomeSCM.
    n : int
        Subjects of each data set.
    horizon : int
        Steps; income is read at the last. 7 in the paper, 4 in its short variant.
    seed, test_seed : int
        Of the seen world, and of the two done ones, which share it.
    treatment, control : str
        Levels of `studies`.

    Raises
    ------
    InputError
        If the horizon ends before the effect can begin, or as
        :meth:`~lib.scm.simulator.Simulator.sample` does.
    """
    if horizon <= TREATED_STEP:
        raise InputError(f"horizon must be at least {TREATED_STEP + 1}: found {horizon}")
    last = horizon - 1
    seen = simulator.sample(n, horizon, seed)
    arms = [
        cohort(
            simulator.sample(n, horizon, test_seed, do={"studies": {TREATED_STEP: arm}}),
            TREATED_STEP,
            last,
        )
        for arm in (control, treatment)
    ]
    propensities = simulator.probabilities("studies", seen, TREATED_STEP)
    return EffectData(cohort(seen, TREATED_STEP, last), *arms, propensities)


class TrueEffects(NamedTuple):
    """Monte-Carlo effects of subjects.

    Attributes
    ----------
    mean : numpy.ndarray, shape (n,)
        The mean difference of each subject, US dollars.
    variance : numpy.ndarray, shape (n,)
        The variance of a single difference of each subject.
    repeats : int
        How often each subject's future was run.
    """

    mean: np.ndarray
    variance: np.ndarray
    repeats: int

    @property
    def variance_of_effects(self) -> float:
        r"""Return Var(τ), cleared of the noise that K repeats leave in the means.

        .. math::
            \widehat{\mathrm{Var}}(\tau)
            = \widehat{\mathrm{Var}}(\bar d_i) - \frac1K \overline{s_i^2}
        """
        return float(self.mean.var(ddof=1) - self.variance.mean() / self.repeats)

    @property
    def ceiling(self) -> float:
        """Return the R² that the true effects have against single differences."""
        return self.variance_of_effects / (self.variance_of_effects + float(self.variance.mean()))


def true_effects(
    simulator: Simulator,
    world: pd.DataFrame,
    repeats: int,
    horizon: int = 7,
    seed: int = 2,
    treatment: str = FULL_TIME,
    control: str = NO_STUDIES,
) -> TrueEffects:
    """Run the future of subjects many times in both arms, with shared noise.

    Parameters
    ----------
    simulator : Simulator
    world : pandas.DataFrame
        What :meth:`~lib.scm.simulator.Simulator.sample` returned, with steps 0 and 1;
        what is done to `studies` at step 1 does not matter.
    repeats : int
        K, at least 2.
    horizon : int
    seed : int
        Of the futures; other than that of the world, or the first repeat is its own future.
    treatment, control : str
        Levels of `studies`.

    Returns
    -------
    TrueEffects
        In the order of the subjects of `world`.

    Raises
    ------
    InputError
        If `repeats` is below 2, or the world lacks a step.
    """
    if repeats < 2:
        raise InputError(f"repeats must be at least 2: found {repeats}")
    before, now = (world[world["t"] == t].reset_index(drop=True) for t in (0, TREATED_STEP))
    if len(before) != len(now) or now.empty:
        raise InputError(f"the world must have every subject at steps 0 and {TREATED_STEP}")
    n = len(now)
    # All that comes before studies stays as it was; income of step 1 already depends on them.
    past = {
        name: {TREATED_STEP: now[name].array}
        for name in simulator.kinds_
        if name not in ("studies", "income")
    }
    mean, squares = np.zeros(n), np.zeros(n)
    for k in range(repeats):
        incomes = []
        for arm in (control, treatment):
            future = simulator.sample(
                horizon=horizon,
                seed=seed,
                start=before,
                do=past | {"studies": {TREATED_STEP: arm}},
                first=k * n,
            )
            incomes.append(future.loc[future["t"] == horizon - 1, "income"].to_numpy())
        difference = incomes[1] - incomes[0]
        # Welford's recurrence: exact means and variances without keeping every difference.
        step = difference - mean
        mean += step / (k + 1)
        squares += step * (difference - mean)
    return TrueEffects(mean, squares / (repeats - 1), repeats)
