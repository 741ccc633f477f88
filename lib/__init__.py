"""Two causal benchmarks, built from nothing: one of effect estimators, one of reasoners.

All logic is in this package, and the notebooks of the book call it. One idea holds
it together: every value is ``mechanism(parents, its own noise)``, so observing,
intervening and asking a counterfactual all run one program again.
"""

from pathlib import Path

#: The folder that holds the book: `notebooks`, `book`, `data` and this package.
ROOT = Path(__file__).resolve().parent.parent

if not (ROOT / "data").is_dir():  # a package that is not editable is copied without it
    raise ImportError("lib needs the folder data: clone the book and run `pip install -e .` in it")
