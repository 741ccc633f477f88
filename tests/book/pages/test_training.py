"""The page for people who train and evaluate: its programs and its tables."""

import contextlib
import io
import re
import runpy

import pandas as pd
import pytest

from lib import ROOT
from lib.ccr.answers import prompt_text
from lib.ccr.items import item, score
from lib.ccr.reasoners import REASONERS, WITHHELD_REASONERS
from lib.ccr.static_data_sets import static_tasks

PAGE = (ROOT / "book" / "training.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, flags=re.DOTALL)
DATA = pd.read_csv(ROOT / "data" / "training.csv")
MEASURE = runpy.run_path(str(ROOT / "benchmarks" / "training.py"), run_name="measured")


def test_no_program_of_the_page_is_left_out():
    assert len(BLOCKS) == PAGE.count("```python") == 11


def test_items_of_the_seed_of_the_static_data_sets_are_prompts_of_theirs():
    tasks = static_tasks("candy_party_v0", n_samples=1, n_replicates=1)
    asked = {prompt_text(prompt) for prompt in tasks.prompts()}
    assert item(0, "candy_party")["prompt"] in asked
    assert item(0, "candy_party", seed=1)["prompt"] not in asked


@pytest.mark.parametrize("said", ["\\boxed{Yes}", "<answer>Yes</answer>", '{"answer": "Yes"}'])
def test_answers_that_are_wrapped_are_not_looked_for(said):
    assert score(said, "Yes") == 0


def test_programs_print_what_is_shown():
    pytest.importorskip("reasoning_gym", reason="reasoning-gym needs a C compiler")
    names = {}
    for program, shown in BLOCKS:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, names)
        assert printed.getvalue().rstrip() == shown.rstrip()


def tables():
    """The tables of the page, a column a rung, as frames of numbers with a row a rung."""
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, flags=re.MULTILINE):
        rows = [
            [cell.strip() for cell in line.strip("|\n").split("|")] for line in table.split("\n")
        ]
        first, _, *cells = (row for row in rows if row != [""])
        yield pd.DataFrame({name: rung for name, *rung in [first, *cells]}).astype(float)


def test_its_tables_are_those_that_the_command_wrote():
    costs, untold = ["words", "ms"], DATA["withheld"] > 0
    first = ["components", "nodes", *costs, *REASONERS]
    second = ["components", "nodes", "withheld", *costs, *WITHHELD_REASONERS]
    for shown, rows, columns in zip(tables(), (~untold, untold), (first, second), strict=True):
        expected = DATA.loc[rows, columns].astype(float).reset_index(drop=True)
        pd.testing.assert_frame_equal(shown, expected, check_index_type=False)
        assert (shown["ms"] < 20).all()


def test_accuracies_are_found_again():
    """On the first hundred items: what the command wrote is of a thousand."""
    for line in (DATA.iloc[1], DATA.iloc[-1]):
        sizes = int(line["components"]), int(line["nodes"])
        again = MEASURE["rung"](*sizes, line["withheld"], n=100)
        for name in WITHHELD_REASONERS if line["withheld"] else REASONERS:
            assert abs(again[name] - line[name]) <= 4 * (0.25 / 100) ** 0.5
            assert name != "perfect" or again[name] == line[name] == 1


def test_what_it_says_of_the_ladder():
    told = DATA[(DATA["withheld"] == 0) & (DATA["nodes"] == 3)].set_index("components")
    stops = told["stops at the first cutpoint"]
    assert (DATA[DATA["components"] == 1]["stops at the first cutpoint"] == 1).all()
    assert stops.is_monotonic_decreasing
    ignores = told["ignores the intervention"]
    assert ignores.is_monotonic_increasing
    withheld = DATA[DATA["withheld"] > 0]
    always = DATA[["always yes", "always says it cannot be known"]].max(axis=None)
    assert always < 0.6 and (withheld["always says it cannot be known"] < 0.4).all()
