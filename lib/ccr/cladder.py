r"""Models of CLadder [1]_: their quantities, computed in two ways, beside the published ones.

A model is a small causal graph of variables that are 0 or 1. Each has its own noise and a table of
the chances :math:`P(V = 1 \mid \mathrm{pa}(V))`. If :math:`M_x` stands for all other variables as
they would be under x, the effects of X on Y are

.. math::
    \mathrm{ATE} = E[Y_1 - Y_0], \quad \mathrm{ETT} = E[Y_1 - Y_0 \mid X = 1], \quad
    \mathrm{NDE} = E[Y_{1, M_0} - Y_0], \quad \mathrm{NIE} = E[Y_{0, M_1} - Y_0].

:func:`enumerated` runs a model in every state of its noise, while :func:`contracted` sums a product
of its tables. They share no code, but both read the tables of a :class:`Model`.

References
----------
.. [1] Jin, Z. et al. (2023). CLadder: Assessing causal reasoning in language models. NeurIPS 2023,
   arXiv:2312.04350.
"""

import json
import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lib import ROOT

#: The published file; the README beside it names its authors.
MODELS = ROOT / "data" / "cladder" / "models.json"

#: Values further apart than this differ by more than rounding.
ROUNDING = 1e-9


class Model(NamedTuple):
    """A model: the parents and the table of each variable, listed with parents before children."""

    about: dict[str, str | int]
    tables: dict[str, tuple[list[str], np.ndarray]]
    published: dict[str, float]

    def without(self, cause: str, effect: str) -> "Model":
        """Return the model without an arrow: a coin with the cause's chance replaces the cause."""
        (parents, table), p = self.tables[effect], self.published[f"P({cause}=1)"]
        table = np.average(table, parents.index(cause), [1 - p, p])
        others = [parent for parent in parents if parent != cause]
        return self._replace(tables=self.tables | {effect: (others, table)})


def published_models() -> list[Model]:
    """Read the 396 models of CLadder's `data/test-model-meta.json`, with the published values.

    Examples
    --------
    >>> model = published_models()[0]
    >>> model.about["structure"], model.tables["Y"][0], round(model.published["ATE"], 4)
    ('X->V2,X->Y,V2->Y', ['X', 'V2'], 0.5925)
    """
    return [_model(one) for one in json.loads(MODELS.read_text(encoding="utf-8"))]


def _model(one: dict[str, Any]) -> Model:
    tables = {}
    for name, chances in one["params"].items():
        variable, *parents = re.findall(r"[VXY]\d?", name)
        # Some chances of variables without parents are wrapped in a list.
        tables[variable] = parents, np.reshape(chances, [2] * len(parents)).astype(float)
    published = {name.removesuffix("(Y | X)"): value for name, value in one["groundtruth"].items()}
    return Model({k: v for k, v in one.items() if isinstance(v, str | int)}, tables, published)


def enumerated(model: Model) -> dict[str, float]:
    r"""Add up chances over all states of the noise, in the worlds seen, done and imagined.

    The noise of each variable is uniform, :math:`V := [U_V < P(V = 1 \mid \mathrm{pa}(V))]`. All
    that matters is between which two entries of the table it lies.
    """
    edges = [np.unique([0, *table.flat, 1]) for _, table in model.tables.values()]
    noise = np.meshgrid(*(one[:-1] for one in edges), indexing="ij")
    weight = np.prod(np.meshgrid(*map(np.diff, edges), indexing="ij"), axis=0)

    def run(**values: Any) -> dict[str, np.ndarray]:
        for (v, (parents, table)), u in zip(model.tables.items(), noise, strict=True):
            if v not in values:
                values[v] = (u < table[*(values[parent] for parent in parents)]).astype(int)
        return values

    def mean(values: np.ndarray, among: np.ndarray | int = 1) -> float:
        return float((weight * among * values).sum() / (weight * among).sum())

    def nested(x: int, heard: dict[str, np.ndarray]) -> np.ndarray:
        return run(X=x, **{v: heard[v] for v in heard if v not in ("X", "Y")})["Y"]

    seen, treated, control = run(), run(X=1), run(X=0)
    found = {f"P({v}=1)": mean(values) for v, values in seen.items()}
    found |= {f"P(Y=1 | X={x})": mean(seen["Y"], seen["X"] == x) for x in (0, 1)}
    return found | {
        "ATE": mean(treated["Y"] - control["Y"]),
        "ETT": mean(treated["Y"] - control["Y"], seen["X"]),
        "NDE": mean(nested(1, control) - control["Y"]),
        "NIE": mean(nested(0, treated) - control["Y"]),
    }


def contracted(model: Model) -> dict[str, float]:
    r"""Sum the product of a model's tables, where Y may read another X than the other variables.

    .. math::
        P_{x, x'}(W, y) = P(W \mid \mathrm{pa}(X)) \; P(y \mid \mathrm{pa}(Y))\big|_{X = x}
        \prod_{M \ne X, Y} P(m \mid \mathrm{pa}(M))\big|_{X = x'}, \text{ summed over the } M.

    With :math:`W = x = x'` this is the observed distribution. Summed over W, it is the truncated
    factorisation and, for :math:`x \ne x'`, the mediation formula.
    """
    axis = {v: i for i, v in enumerate(model.tables)}
    by_y, by_others = len(axis), len(axis) + 1
    factors: list[Any] = [np.ones(2), [by_y], np.ones(2), [by_others]]
    for v, (parents, table) in model.tables.items():
        heard = axis | {"X": by_y if v == "Y" else by_others}
        factors += [np.stack([1 - table, table], -1), [*map(heard.get, parents), axis[v]]]
    chance = np.einsum(*factors, [axis["X"], by_y, by_others, axis["Y"]])
    seen, done = np.einsum("xxxy->xy", chance), chance.sum(0)[..., 1]
    given = {f"P(Y=1 | X={x})": seen[x, 1] / seen[x].sum() for x in (0, 1)}
    return given | {
        "P(X=1)": seen[1].sum(),
        "P(Y=1)": seen[:, 1].sum(),
        "ATE": done[1, 1] - done[0, 0],
        "ETT": (chance[1, 1, 1, 1] - chance[1, 0, 0, 1]) / seen[1].sum(),
        "NDE": done[1, 0] - done[0, 0],
        "NIE": done[0, 1] - done[0, 0],
    }


def audit(models: list[Model]) -> pd.DataFrame:
    """Compare each published value with those of both oracles, a row per model and quantity.

    The published value is `wrong` if the three values differ by more than rounding.
    """
    parts = []
    for model in models:
        one, two = enumerated(model), contracted(model)
        values = {"published": model.published, "enumerated": one, "contracted": two}
        parts.append(pd.DataFrame(values, index=[*two]).assign(**model.about))
    table = pd.concat(parts).rename_axis("quantity").reset_index()
    spread = np.ptp(table[["published", "enumerated", "contracted"]], axis=1)
    return table.assign(wrong=~(spread <= ROUNDING))
