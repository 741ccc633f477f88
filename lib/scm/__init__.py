"""Sequential simulators, made from any table and a specification."""

from lib.scm.interventions import StochasticPolicy
from lib.scm.simulator import Simulator
from lib.scm.spec import Specification

__all__ = ["Simulator", "Specification", "StochasticPolicy"]
