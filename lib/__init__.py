"""Two causal benchmarks, built from nothing: effect estimators and reasoners.

The package is the only place with logic; the notebooks of the book call it.
One idea holds it together: every value is ``mechanism(parents, its own noise)``,
so observation, intervention and counterfactual are one program run again.
"""

from pathlib import Path

#: The folder that holds the book: `notebooks`, `book`, `data` and this package.
ROOT = Path(__file__).resolve().parent.parent

if not (ROOT / "data").is_dir():  # of which a package that is not editable is a copy without
    raise ImportError("lib needs the data beside it: clone the book, and `pip install -e .` there")
