"""Estimators of causal effects, and the benchmark that marks them."""

from lib.effects.estimates import benchmark, estimate, marked
from lib.effects.estimator_files import read_experiment
from lib.effects.study import Study, read_study

__all__ = ["Study", "benchmark", "estimate", "marked", "read_experiment", "read_study"]
