"""Estimators from elsewhere, by name: EconML's, or a class of your own.

EconML calls covariates X, and wants the outcome first; everything else is alike. A class of
your own needs `fit(covariates, treatment, outcome)`, and `effect(covariates)` or `ate_`.
"""

import inspect

import numpy as np

from lib.effects.grids import load
from lib.effects.learners import LEARNERS, learner
from lib.errors import InputError


class EconML:
    """Any estimator of EconML that models effects of a binary treatment.

    Parameters
    ----------
    name : str
        Such as `econml.dml:CausalForestDML`.
    **options
        Of its constructor.
    """

    def __init__(self, name: str, **options):
        self.estimator = load(name)(**options)

    def fit(self, covariates, treatment, outcome):
        """Fit outcome and treatment given the covariates."""
        self.estimator.fit(outcome, treatment.astype(int), X=np.asarray(covariates, dtype=float))
        return self

    def effect(self, covariates):
        """Return the effect at covariates, shape (m,)."""
        return np.ravel(self.estimator.effect(np.asarray(covariates, dtype=float)))


def adapted(name: str, options: dict, seed: int = 0):
    """Return an unfitted estimator of another module.

    Parameters
    ----------
    name : str
        `module:Class`.
    options : dict
        Of its constructor; the name of a base learner, such as `rfr`, stands for the learner.
    seed : int
        Given to a constructor of EconML that takes a `random_state`.

    Raises
    ------
    InputError
        If it cannot be loaded, has no such option, or has no method `fit`.
    """
    found = load(name)
    options = {
        key: learner(value, seed) if isinstance(value, str) and value in LEARNERS else value
        for key, value in options.items()
    }
    econml = name.split(".")[0] == "econml"
    try:
        if econml:
            if "random_state" in inspect.signature(found).parameters:
                options.setdefault("random_state", seed)
            return EconML(name, **options)
        estimator = found(**options)
    except TypeError as error:
        raise InputError(f"estimator {name!r} cannot be made: {error}") from error
    if not callable(getattr(estimator, "fit", None)):
        raise InputError(
            f"estimator {name!r} must have a method fit(covariates, treatment, outcome)"
        )
    return estimator
