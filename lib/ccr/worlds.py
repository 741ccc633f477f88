r"""Boolean worlds: a structural causal model that can be told as a story.

Every node is true or false. It has its own noise :math:`U_V`, which is true with probability
:math:`p_V`, and one operator that combines this noise with all its causes:

.. math::
    V := U_V \land \bigwedge_{C \in \mathrm{pa}(V)} C
    \qquad\text{or}\qquad
    V := U_V \lor \bigvee_{C \in \mathrm{pa}(V)} C.

Observation, intervention and counterfactual use the same function of the same noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from lib.ccr.graphs import Chain
from lib.errors import check, check_known, check_names
from lib.noise import uniforms

#: What is done: pairs of a node and its value. Where actions stand in place of a value, the node is
#: kept at the value that it has after these actions.
Actions = tuple[tuple[int, "bool | Actions"], ...]

#: The probabilities that noise may have of being true (reference implementation of CCR.GB).
PROBABILITIES = (0.4, 0.5, 0.6, 0.7, 0.8)

#: How the operators of a world may be chosen.
CAUSAL_FUNCTIONS = ("and", "or", "random", "or, and at the leaf")


@dataclass(frozen=True)
class World:
    """A chain with an operator ('and', 'or') and a noise probability for every node."""

    chain: Chain
    operators: Sequence[str]
    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        for name, kind in (("operators", str), ("probabilities", float)):
            each, n = tuple(map(kind, getattr(self, name))), self.chain.n_nodes
            check(len(each) == n, f"{name} must be one per node, {n}", len(each))
            object.__setattr__(self, name, each)
        check_names("operator", self.operators, ("and", "or"))
        for p in self.probabilities:
            check(0 < p < 1, "each of probabilities must be above 0 and below 1", p)

    def noise(self, seed: int, name: str, n: int) -> np.ndarray:
        """Draw the noise of `n` samples, (nodes, n); `name` distinguishes worlds with one seed."""
        drawn = uniforms(seed, name, n=n, terms=self.chain.n_nodes)
        return drawn < np.array(self.probabilities)[:, None]

    def value(self, node: int, do: Actions, noise: np.ndarray, found: dict[Any, Any]) -> Any:
        """Return a node's value after actions, shape (n,), and keep in `found` what is computed.

        The noise, shape (nodes, n), may also be signed numbers, each with many samples as its bits.
        """
        # Actions on later nodes change nothing. Without them, more questions share a value.
        key = node, do = node, tuple(one for one in do if one[0] <= node)
        if key not in found:
            kept = dict(do).get(node)
            if isinstance(kept, tuple):
                found[key] = self.value(node, kept, noise, found)
            elif kept is not None:  # true is minus one, in which every bit is set
                found[key] = np.full_like(noise[node], -int(kept))
            else:
                combine = np.bitwise_and if self.operators[node] == "and" else np.bitwise_or
                causes = self.chain.parents[node]
                values = (self.value(cause, do, noise, found) for cause in causes)
                found[key] = reduce(combine, values, noise[node])
        return found[key]

    def values(self, noise: np.ndarray, do: Mapping[int, Any] = {}) -> np.ndarray:
        """Return every node's value, shape (nodes, n), for noise of this shape; `do` sets nodes."""
        check_names("do: node", do, range(self.chain.n_nodes))
        done, found = tuple(do.items()), dict[Any, Any]()
        return np.array([self.value(node, done, noise, found) for node in range(len(noise))])


def random_world(
    chain: Chain,
    causal_functions: str,
    seed: int,
    name: str,
    probabilities: Sequence[float] = PROBABILITIES,
) -> World:
    """Draw a chain's operators and noise probabilities; `name` distinguishes worlds with one seed.

    'random' gives a random half of the nodes, rounded up, 'and'; `probabilities` are drawn evenly.
    """
    check_known("causal_functions", causal_functions, CAUSAL_FUNCTIONS)
    n = chain.n_nodes
    if causal_functions == "random":
        # The half of the nodes with the smallest uniforms get "and": a shuffle without rejection.
        ranks = uniforms(seed, f"{name}, operators", terms=n)[:, 0].argsort().argsort()
        operators = ["and" if rank < n / 2 else "or" for rank in ranks]
    elif causal_functions == "or, and at the leaf":
        operators = ["or"] * (n - 1) + ["and"]
    else:
        operators = [causal_functions] * n
    chosen = uniforms(seed, f"{name}, probabilities", terms=n)[:, 0] * len(probabilities)
    return World(chain, operators, [probabilities[int(position)] for position in chosen])
