"""The house is as its page draws it: rooms, arrows, and not one circle."""

import ast
import re
from graphlib import TopologicalSorter

import pytest

from lib import ROOT

PAGE = (ROOT / "book" / "architecture.md").read_text(encoding="utf-8")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "lib").rglob("*.py"))
}


def imports(path) -> set[str]:
    """Every module of `lib` that a file imports, at its top or within a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in names}
    return {name for name in found if name.split(".")[0] == "lib" and name != "lib"}


def room(module: str) -> str:
    """Say in which folder of `lib` a module is; `root` for those beside the folders."""
    parts = module.split(".")
    return parts[1] if len(parts) > 2 or MODULES[module].name == "__init__.py" else "root"


IMPORTS = {module: imports(path) for module, path in MODULES.items() if module != "lib"}


def test_arrows_are_those_of_the_page():
    drawn = re.search(r"```text\n(room .*?)```", PAGE, flags=re.DOTALL)[1].splitlines()[1:]
    said = {
        name: set(re.findall(r"\w+", others)) - {"nothing"}
        for name, others in (line.split("→") for line in drawn if "→" in line)
    }
    said = {name.strip(): others for name, others in said.items()}
    found = {name: set() for name in said}
    for module, others in IMPORTS.items():
        if module != "lib.__main__":  # the door, from which one sees every room
            found[room(module)] |= {room(other) for other in others} - {room(module)}
    assert found == said


@pytest.mark.parametrize("module", [name for name in MODULES if name != "lib"])
def test_every_module_imports_what_is_there(module):
    assert IMPORTS[module] <= set(MODULES)


def test_no_module_imports_itself_by_a_detour():
    graph = {
        # A package's face imports its modules for users; whoever is within must not look at it.
        module: {other for other in others if other != module}
        for module, others in IMPORTS.items()
    }
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)


def test_every_module_is_named_on_the_page():
    named = set(re.findall(r"`([\w/]+)`", PAGE))
    missing = [
        module
        for module, path in MODULES.items()
        if path.name != "__init__.py"
        and not {module.split(".")[-1]} & named
        and ".themes." not in module
    ]
    assert missing == []
