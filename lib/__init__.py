"""Two causal benchmarks, built from nothing: effect estimators and reasoners.

The package is the only place with logic; the notebooks of the book call it.
One idea holds it together: every value is ``mechanism(parents, its own noise)``,
so observation, intervention and counterfactual are one program run again.
"""

from pathlib import Path

#: The folder that holds the book: `notebooks`, `book`, `data` and this package.
ROOT = Path(__file__).resolve().parent.parent
