"""Estimators of other modules, by name: those of EconML, or classes of your own.

An entry of an estimator file names the class and then the options of its constructor. The name of
a base learner stands for the learner, and `option__parameter` for one of its parameters::

    forests:
      label: X-learner of EconML
      estimator: econml.metalearners:XLearner
      models: rfr
      models__min_samples_leaf: 20

An entry of EconML has intervals if it sets `inference: auto`, or another value that its class
knows. A class of your own needs `fit(covariates, treatment, outcome)`, which gets arrays in this
order, and either `effect(covariates)` or, after `fit`, `ate_`. To state an interval of the average,
it sets `standard_error_` in `fit`. To state intervals of single effects, it has
`effect_interval(covariates)`, which returns the lower and the upper ends.

Options are passed on as they are, a list as a list, because the book cannot choose among settings
of a class that it does not know. :func:`~lib.effects.estimator_files.every_setting` makes an entry
of each setting; or the class searches in its own `fit`.
"""

import copy
import inspect
import pkgutil
import warnings
from collections.abc import Collection
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from lib.effects.learners import CLASSIFIER, LEARNERS, demanded, learner
from lib.effects.study import Matrix, Vector
from lib.errors import InputError, check, told

#: Models that EconML can choose itself. Any other model that a constructor demands is a forest.
CHOSEN = ("model_y", "model_t")

#: Options of EconML for models of the treatment, which therefore are classifiers.
OF_TREATMENT = ("model_t", "model_T", "model_propensity", "propensity_model")


class EconML(BaseEstimator):
    """An estimator of EconML, whose own `fit` takes the outcome first and calls covariates X."""

    def __init__(self, estimator: Any, inference: Any = None):
        self.estimator, self.inference = estimator, inference

    def fit(self, covariates: Matrix, treatment: Vector, outcome: Vector) -> Self:
        """Fit a copy of EconML's estimator to covariates, treatment and outcome."""
        self.estimator_, x = copy.deepcopy(self.estimator), np.asarray(covariates, dtype=float)
        with warnings.catch_warnings():
            # EconML calls scikit-learn in ways that will change, which a reader cannot mend.
            warnings.simplefilter("ignore", FutureWarning)
            self.estimator_.fit(outcome, treatment.astype(int), X=x, inference=self.inference)
        return self

    def effect(self, covariates: Matrix) -> Vector:
        """Return the effects at the covariates, shape (m,)."""
        return np.ravel(self.estimator_.effect(np.asarray(covariates, dtype=float)))

    @available_if(lambda self: self.inference is not None)
    def effect_interval(self, covariates: Matrix) -> list[Vector]:
        """Return both ends of the intervals that EconML states for effects, (m,) each."""
        return [np.ravel(end) for end in self.estimator_.effect_interval(covariates, alpha=0.05)]

    @available_if(lambda self: self.inference is not None)
    def average_interval(self, covariates: Matrix) -> Vector:
        """Return both ends of the interval that EconML states for the average effect."""
        return np.ravel(self.estimator_.ate_interval(covariates, alpha=0.05))

    def takes_missing(self) -> bool:
        """Return False: EconML accepts missing values only if it is asked to."""
        return False


def of_econml(kind: Any) -> bool:
    """Say whether a class is one of EconML's, or inherits from one."""
    return any(base.__module__.startswith("econml.") for base in getattr(kind, "__mro__", ()))


def adapted(name: str, options: dict[str, Any], seed: int = 0, given: Collection[str] = ()) -> Any:
    """Return an unfitted estimator of another module, by `module:Class`.

    `seed` is that of base learners, and the default of a `random_state`. A class of EconML is
    refused if its `fit` demands more than covariates, treatment, outcome and what is `given`.
    """
    with told(f"{name} cannot be loaded"):
        found = pkgutil.resolve_name(name)
    econml = of_econml(found)
    for method in ("fit(covariates, treatment, outcome)", *["effect(covariates)"] * econml):
        if not callable(getattr(found, method.partition("(")[0], None)):
            raise InputError(f"{name} must have a method {method}")
    taken, usual = inspect.signature(found).parameters, dict[str, Any](random_state=seed)
    if econml:
        more = [key for key in demanded(found.fit) if key not in ("self", "Y", "T", "X", *given)]
        check(not more, f"fit of {name} must need covariates, treatment and outcome only", more)
        usual |= {"n_jobs": 1, "verbose": 0, "discrete_treatment": True}
        models = [key for key in demanded(found) if "model" in key]
        usual |= {key: "auto" if key in CHOSEN else "rfr" for key in models}
    usual = {key: value for key, value in usual.items() if key in taken}
    if name == "econml.dml:DML":  # it adds an intercept, and a second one makes it wrong
        usual |= {"model_final": "ridge", "model_final__fit_intercept": False}
    options = usual | options
    inference = options.pop("inference", None) if econml else None
    of_arms = OF_TREATMENT if options.get("discrete_treatment", True) else ()
    for key in [key for key, value in options.items() if value in tuple(LEARNERS)]:
        base = CLASSIFIER.get(options[key], options[key]) if key in of_arms else options[key]
        parameters = [other for other in options if other.startswith(f"{key}__")]
        own = {other.removeprefix(f"{key}__"): options.pop(other) for other in parameters}
        options[key] = learner(base, seed, **own)
    with told(f"{name} cannot be made"):
        estimator = found(**options)
    return EconML(estimator, inference) if econml else estimator
