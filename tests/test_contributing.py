"""What CONTRIBUTING.md says of adding something is true: its examples, added to a copy, run."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from lib import ROOT

BLOCKS = re.findall(
    r"```python\n# (lib/[\w/.]+)(?:, ([^\n]*))?\n(.*?)```",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
    flags=re.DOTALL,
)

#: Where a block goes, by the words behind the name of its file; None is its end.
ABOVE = {
    "at the end": None,
    "above MECHANISMS": "#: The names that a specification may use",
    "in METRICS": '    "ATE": lambda',
    "": None,
}

USE = """
import numpy as np, pandas as pd
from lib.ccr import generate
from lib.ccr.agreement import disagreements
from lib.effects import Study, benchmark
from lib.scm import Simulator, Specification

waits = pd.DataFrame({"wait": np.arange(1.0, 20.0), "pay": np.arange(19.0)})
model = Specification({"wait": {"sampler": "ExponentialVariable"}, "pay": {"sampler": "gaussian"}})
drawn = Simulator(model).fit(waits).sample(n=20_000, seed=1)
assert abs(drawn["wait"].mean() - 10) < 0.3 and abs(drawn["wait"].std() - 10) < 0.5

tasks = generate("bells", n_per_bcc=[3, 3], n_tasks=4, n_samples=10, seed=0)
assert len(disagreements(tasks)) == 0

rng = np.random.default_rng(0)
studies, age = rng.choice(["no", "yes"], 500), rng.normal(size=500)
seen = pd.DataFrame({"age": age, "studies": studies, "income": 3.0 * (studies == "yes") + age})
arms = ("no", "yes")
control, treated = (seen.assign(studies=arm, income=3.0 * (arm == "yes") + age) for arm in arms)
study = Study(seen, control, treated, adjustment=["age"], arms=arms)
table = benchmark(study, estimators=["DifferenceOfMeans", "s-ridge"], bootstraps=0)
assert "DifferenceOfMeans" in set(table["estimator"])
found = table[table["estimator"] == "s-ridge"].set_index("metric")["value"]
assert np.isclose(found["bias"], found["ATE"] - 3)

import sys, pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_examples_run_in_a_copy(tmp_path):
    assert len(BLOCKS) == 4
    shutil.copytree(ROOT / "lib", tmp_path / "lib")
    shutil.copytree(ROOT / "data", tmp_path / "data")
    shutil.copy(ROOT / "requirements.txt", tmp_path)
    for name, where, block in BLOCKS:
        path, anchor = tmp_path / name, ABOVE[where]
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        place = text.index(anchor) if anchor else len(text)
        path.write_text(text[:place] + block + "\n\n" + text[place:], encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    environment["CAUSAL_BENCHMARK_BOOK_CACHE"] = str(tmp_path / "results")
    theme = [str(ROOT / "tests" / "ccr" / "test_themes.py"), "-k", "bells"]
    command = [sys.executable, "-c", USE, *theme, "-p", "no:cacheprovider"]
    said = {"capture_output": True, "text": True}
    done = subprocess.run(command, cwd=tmp_path, env=environment, **said)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_of_pages_beside_the_book_name_files(page):
    path = ROOT / page
    links = re.findall(r"\]\(([^)#:]+)\)|src=\"([^\"]+)\"", path.read_text(encoding="utf-8"))
    named = [one or other for one, other in links]
    assert named and [one for one in named if not (path.parent / one).exists()] == []


def test_line_ends_are_those_of_git_for_whoever_clones_it():
    attributes = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert [line for line in attributes if not line.startswith("#")] == ["* -text"]
    for name in ("Makefile", ".ci/run"):
        assert b"\r" not in (ROOT / name).read_bytes(), f"{name} is read by what takes no such end"
