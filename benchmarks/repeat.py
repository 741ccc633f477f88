"""Check that two builds of the book give the same: the same text, tables, figures and numbers.

Run it from the project's folder::

    .venv/bin/python benchmarks/repeat.py                       # the edition quick, 5 minutes
    .venv/bin/python benchmarks/repeat.py worlds evaluation     # some of its pages
    .venv/bin/python benchmarks/repeat.py --edition paper --keep builds

The sources are copied twice, and what may not matter differs between the copies: where they are,
the seed of Python's hashes, how many subjects are simulated at a time, workers, time zone, and
the order of pages; each has an empty cache. Then the executed pages are compared byte for byte.
``--beside FOLDER`` takes pages that were executed before in place of the first copy. With
``--older``, the second does without the newest instructions of the processor, as an older one
would: iterations that stop by a tolerance may then differ in their last digits. Exit status 1 says
that a page differs, and each cell that does is named.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import click
from measuring import Finding, finish, shown

from lib import ROOT
from lib.book.editions import load_edition
from lib.book.parameters import read_notebook
from lib.errors import InputError, check_known

#: What runs made, or Git keeps: no sources.
MADE = {".git", ".venv", ".cache", "_build", "runs", "executed", "__pycache__"}

#: What a copy does in its own folder.
EXECUTE = """
import sys
from lib.book.editions import load_edition
from lib.book.running import execute
edition, workers, *pages = sys.argv[1:]
runs = load_edition(edition).runs
sys.exit("\\n".join(execute([runs[page] for page in pages], int(workers))) or 0)
"""


class Build(NamedTuple):
    """How one of the builds is made; `block` is how many subjects are simulated at a time."""

    name: str
    hash_seed: int
    workers: int
    time_zone: str
    block: int | None = None
    backwards: bool = False


#: As if the processor were an older one: instructions that numpy, and its linear algebra, leave.
OLDER = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL", "OPENBLAS_CORETYPE": "Haswell"}

BUILDS = [
    Build("one", hash_seed=1, workers=3, time_zone="UTC"),
    Build("two", 2, workers=2, time_zone="Asia/Tokyo", block=173, backwards=True),
]


def executed(
    build: Build, folder: Path, edition: str, pages: list[str], processor: Mapping[str, str] = {}
) -> Path:
    """Copy the sources into a folder, execute the pages there, and return where they are."""
    copy = folder / build.name / "book"
    shutil.copytree(ROOT, copy, ignore=lambda _, names: MADE.intersection(names))
    if build.block:
        # In the copy, because no user has a reason to set it.
        simulator = copy / "lib" / "scm" / "simulator.py"
        stated = re.compile(r"^BLOCK = [\d_]+$", flags=re.MULTILINE)
        text, found = stated.subn(f"BLOCK = {build.block}", simulator.read_text(encoding="utf-8"))
        assert found == 1, f"{simulator} states BLOCK {found} times"
        simulator.write_text(text, encoding="utf-8")
    environment = {
        "PYTHONPATH": str(copy),
        "PYTHONHASHSEED": str(build.hash_seed),
        "TZ": build.time_zone,
        "CAUSAL_BENCHMARK_BOOK_CACHE": str(folder / build.name / "results"),
        **processor,
    }
    if Path(edition).is_file():
        edition = shutil.copy(edition, copy / "book" / "editions")
    words = [edition, str(build.workers), *(pages[::-1] if build.backwards else pages)]
    command = [sys.executable, "-c", EXECUTE, *words]
    # A page that fails is missing in the comparison; it stops no other.
    subprocess.run(command, cwd=copy, env=os.environ | environment)
    return copy / "book" / "executed" / Path(edition).stem


def differences(one: Path, two: Path) -> list[str]:
    """Name the cells in which two executed notebooks differ, and the first line that does."""
    if missing := [str(path) for path in (one, two) if not path.is_file()]:
        return [f"{path} does not exist" for path in missing]
    numbers = [recorded_numbers(path) for path in (one, two)]
    odd = [name for name in numbers[0] | numbers[1] if _differ(name, *numbers)]
    said = [f"recorded numbers {', '.join(odd)}"] if odd else []
    if one.read_bytes() == two.read_bytes():
        return said
    cells = [read_notebook(path)[0].cells for path in (one, two)]
    for number, pair in enumerate(zip(*cells, strict=False), start=1):
        if pair[0] != pair[1]:
            parts = [dict(_parts(cell)) for cell in pair]
            odd = [name for name in parts[0] | parts[1] if _differ(name, *parts)]
            lines = zip(*(part.get(odd[0], "").splitlines() for part in parts), strict=False)
            first = next((f": {a[:80]!r} and {b[:80]!r}" for a, b in lines if a != b), "")
            said.append(f"cell {number} ({pair[0].get('id')}), {', '.join(odd)}{first}")
    return said or ["the notebooks differ outside of what their cells have in common"]


def recorded_numbers(page: Path) -> dict[str, dict]:
    """Return the numbers of a page, as its run record has them."""
    return json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["numbers"]


def _differ(name: str, one: dict, two: dict) -> bool:
    return one.get(name) != two.get(name)


def _parts(cell: dict) -> Iterator[tuple[str, str]]:
    """Yield the source and every output of a cell as text, with a name."""
    yield "source", cell["source"]
    yield "metadata", json.dumps(cell["metadata"], indent=1)
    for place, output in enumerate(cell.get("outputs", []), start=1):
        for kind, value in output.get("data", {}).items():
            text = value if isinstance(value, str) else json.dumps(value, indent=1)
            yield f"output {place} as {kind}", text
        rest = {what: value for what, value in output.items() if what != "data"}
        yield f"output {place}, {output['output_type']}", json.dumps(rest, indent=1)


def contents(page: Path) -> str:
    """Count what was compared in a page."""
    outputs = [one for cell in read_notebook(page)[0].cells for one in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    counted = {
        "outputs": len(outputs),
        "tables": kinds.count("text/html"),
        "figures": sum(kind.startswith("image/") for kind in kinds),
        "recorded numbers": len(recorded_numbers(page)),
    }
    return ", ".join(f"{count} {what}" for what, count in counted.items())


def compared(one: Path, two: Path, pages: list[str]) -> Iterator[Finding]:
    """Yield a finding a page: that it is the same, or which cells differ."""
    for page in pages:
        paths = [folder / f"{page}.ipynb" for folder in (one, two)]
        said = differences(*paths)
        yield page, "; ".join(said) or f"the same, {contents(paths[0])}", not said


@click.command(help=__doc__.replace("::\n\n", "\n\n\b\n"))
@click.argument("pages", nargs=-1)
@click.option("--edition", default="quick", show_default=True, help="Its name, or a file.")
@click.option("--beside", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--older", is_flag=True, help="The second copy is made as by an older processor.")
@click.option("--keep", type=click.Path(path_type=Path), help="Leave the copies in this folder.")
def main(
    pages: tuple[str, ...], edition: str, beside: Path | None, older: bool, keep: Path | None
) -> None:
    try:
        known = load_edition(edition).runs
        for page in pages:
            check_known("page", page, known)
    except InputError as error:
        raise click.UsageError(str(error)) from None
    chosen = list(pages or known)
    builds = BUILDS[1:] if beside else BUILDS
    with tempfile.TemporaryDirectory() as elsewhere:
        folder = (keep or Path(elsewhere)).resolve()
        *first, second = builds
        made = [executed(build, folder, edition, chosen) for build in first]
        made.append(executed(second, folder, edition, chosen, OLDER if older else {}))
        one, two = ([beside] if beside else []) + made
        missed = shown(compared(one, two, chosen))
    finish(missed)


if __name__ == "__main__":
    main()
