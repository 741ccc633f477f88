"""The page for people who train and evaluate: its programs and its tables."""

import contextlib
import io
import re
import runpy

import pandas as pd
import pytest

from lib import ROOT
from lib.ccr.answers import prompt_text
from lib.ccr.items import LEVELS, item, score
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


def test_items_of_an_index_have_people_and_noise_in_common_and_of_other_seeds_not():
    def right(components, seed):
        """Say where a model that only hears a *not* is right, as that of the page does."""
        each = [item(index, components=components, seed=seed) for index in range(100)]
        texts = [one["text"] for one in each]
        said = ["No" if " not " in text else "Yes" for text in texts]
        return pd.Series([s == one["answer"] for s, one in zip(said, each, strict=True)]) * 1.0

    levels = [right(components, seed=1) for components in (1, 2, 4)]
    pairs = [(levels[0], levels[1]), (levels[0], levels[2]), (levels[1], levels[2])]
    assert [one.mean() for one in levels] == [0.62, 0.75, 0.63]
    assert all((one - other).sem() == pytest.approx(0.06, abs=0.005) for one, other in pairs)
    assert all(one.corr(other) > 0.15 for one, other in pairs)
    assert abs(levels[0].corr(right(2, seed=2))) < 0.2


def test_small_worlds_withhold_one_fact_at_each_level():
    for sizes in ((1, 2), (1, 3), (2, 2), (1, 4)):
        told = {
            item(5, "candy_party", *sizes, withheld=w)["prompt"] for w in LEVELS["withheld"][1:]
        }
        assert (len(told) == 1) == (sizes != (1, 4))


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
