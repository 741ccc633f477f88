"""What `lib` imports is what its installation asks for."""

import ast
import re
import sys
from importlib import metadata

from lib import ROOT

#: Imported only where a language model takes the benchmark: see the extra of `pyproject.toml`.
OPTIONAL = {"inspect-ai"}


def imports() -> set[str]:
    """The packages that some module of `lib` imports, anywhere in it."""
    found = set()
    for path in (ROOT / "lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"lib"}


def test_every_import_is_declared_with_bounds():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    stated = [line for line in lines if line and not line.startswith("#")]
    assert all(re.match(r"[A-Za-z0-9-]+>=[0-9.]+,<[0-9.]+", line) for line in stated)
    declared = {re.match(r"[A-Za-z0-9-]+", line)[0].lower() for line in stated} | OPTIONAL
    sources = metadata.packages_distributions()
    for package in imports():
        names = {name.lower().replace("_", "-") for name in sources[package]}
        assert names & declared, f"{package} is imported, and {names} are not in requirements.txt"
