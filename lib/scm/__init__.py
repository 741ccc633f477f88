"""Any table and a specification make a sequential simulator."""

from lib.scm.interventions import StochasticPolicy
from lib.scm.simulator import Simulator
from lib.scm.spec import Specification

__all__ = ["Simulator", "Specification", "StochasticPolicy"]
