"""The names by which other programs find the benchmark, and what their communities ask of them."""

import os
import runpy
import shutil
import subprocess
import sys
from importlib.metadata import entry_points

import importing
import pytest
import yaml
from inspect_evals_lint import LintConfig, lint_package, lint_task_files

import causal_benchmark_book
from lib import ROOT

PACKAGE = ROOT / "causal_benchmark_book"
LISTED = yaml.safe_load((PACKAGE / "eval.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def inspect():
    """Import it where it is used: all workers collect all tests, and this takes two seconds."""
    global read_eval_log, ccr, from_log
    with importing.much():
        from inspect_ai.log import read_eval_log

        from causal_benchmark_book.tasks import ccr
        from lib.ccr.inspect_task import from_log


#: As people run it: from another folder, by the name of the installed package.
BY_NAME = """
import sys

# Who has only Inspect has no programs of vendors, and Inspect imports those that it finds.
sys.modules |= dict.fromkeys(["anthropic", "openai"])
from inspect_ai import eval as evaluate
from inspect_ai.model import ModelOutput, ModelUsage, get_model

# With its usage told, Inspect does not count tokens with a vocabulary from the network.
usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
output = ModelOutput.from_content("mockllm/model", "Yes").model_copy(update={"usage": usage})
model = get_model("mockllm/model", custom_outputs=lambda *asked: output)
arguments = {"n_per_bcc": [2, 2], "n_samples": 2, "seed": 1}
called = {"task_args": arguments, "model": model, "log_dir": "logs", "display": "none"}
evaluate("causal_benchmark_book/ccr", **called)
"""


def test_inspect_finds_the_task_by_its_name(tmp_path):
    (found,) = entry_points(group="inspect_ai", name="causal_benchmark_book")
    assert found.value == "causal_benchmark_book.tasks"
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    call = [sys.executable, "-c", BY_NAME]
    done = subprocess.run(call, cwd=tmp_path, env=outside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (log,) = tmp_path.glob("logs/*.eval")
    tasks, answers = from_log(log)
    assert len(tasks) == 18 and all((grid == 1).all() for grid in answers)
    assert read_eval_log(str(log), header_only=True).eval.task == "causal_benchmark_book/ccr"


def test_verifiers_finds_the_taskset_by_its_name():
    from verifiers.v1 import task_type

    assert task_type("causal-benchmark-book").__name__ == "CcrTask"


def test_the_package_has_each_name_that_it_states():
    assert causal_benchmark_book.ccr is ccr
    assert causal_benchmark_book.CcrTaskset.__name__ == "CcrTaskset"


def test_who_has_one_program_does_not_need_the_other(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    assert causal_benchmark_book.CcrTaskset.INFINITE
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        causal_benchmark_book.other  # noqa: B018


def failures(package):
    """What the lint refuses in a package, rule by rule."""
    found = [one for one in package.diagnostics if one.status == "fail"]
    return [f"{one.rule.name}: {one.message}" for one in found]


def test_the_lint_of_the_register_finds_nothing_to_refuse():
    """As the register lints a task of another repository: by its file, without our settings."""
    (package,) = lint_task_files(ROOT, ["causal_benchmark_book/tasks.py"]).packages
    assert failures(package) == [] and package.passed()
    passed = {one.rule.name for one in package.rule_statuses() if one.status == "pass"}
    assert {"registry", "eval_yaml", "readme", "readme_dependency_groups", "e2e_test"} <= passed


def test_the_lint_finds_nothing_to_refuse_in_what_the_task_is_made_of():
    # It reads no dependencies from requirements.txt; tests/test_requirements.py does.
    ccr_of_lib = {"source_root": "lib", "import_prefix": "lib", "helper_dirs": frozenset({"ccr"})}
    settings = {"tests_layout": "flat", "ignore": ("external_dependencies",)}
    package = lint_package(ROOT, "ccr", LintConfig(**ccr_of_lib, **settings))
    assert failures(package) == [] and package.passed()


def test_the_lint_would_refuse_an_evaluation_without_its_list_entry(tmp_path):
    copy = tmp_path / "causal_benchmark_book"
    copy.mkdir()
    for path in PACKAGE.glob("*.py"):
        (copy / path.name).write_bytes(path.read_bytes())
    (package,) = lint_task_files(tmp_path, ["causal_benchmark_book/tasks.py"]).packages
    refused = {one.partition(":")[0] for one in failures(package)}
    assert {"readme", "tests_exist", "e2e_test"} <= refused


def test_the_list_entry_says_what_is_so():
    (task,) = LISTED["tasks"]
    assert task["name"] == "ccr"
    assert task["dataset_samples"] == len(ccr().dataset)
    assert "\n" not in LISTED["description"].strip()
    assert len(LISTED["description"].split()) <= 80
    bibliography = (ROOT / "references.bib").read_text(encoding="utf-8")
    assert LISTED["arxiv"].rpartition("/")[2] in bibliography


def test_a_copy_without_the_data_says_how_to_install_it(tmp_path):
    # As a package that is not editable leaves it among other packages.
    (tmp_path / "lib").mkdir()
    copied = shutil.copy(ROOT / "lib" / "__init__.py", tmp_path / "lib")
    with pytest.raises(ImportError, match=r"clone the book and run `pip install -e \.` in it"):
        runpy.run_path(copied)
