"""The command line answers plainly, with the right exit status, and never with a traceback."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.__main__ import main
from lib.book import building, running, runs
from lib.errors import InputError
from lib.scm import Simulator, Specification

RECORDS = """\
from lib.book.recorded import number
number("total", n * step, "apples", standard_error=0.5)
"""


@pytest.fixture
def book(tiny_book, monkeypatch):
    """The tiny book, in the place of the real one, seen from an empty folder."""
    elsewhere = tiny_book.root / "elsewhere"
    elsewhere.mkdir()
    tiny_book.stand_in(monkeypatch)
    monkeypatch.chdir(elsewhere)
    # The tiny book has a folder of the name lib, and its kernels may start beside it.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tiny_book


@pytest.fixture
def unrendered(monkeypatch):
    """Pages are not rendered, which takes seconds each."""
    monkeypatch.setattr(runs, "show", lambda *arguments, **options: [])


def test_help_answers_at_once_and_names_every_command():
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lib", "--help"], capture_output=True, text=True
    )
    assert shown.returncode == 0
    for word in ["book", "run", "pages", "record", "examples:", "exit status"]:
        assert word in shown.stdout
    for heavy in ["papermill", "numpy", "pandas", "pydantic"]:
        assert heavy not in shown.stderr, "imported, and not needed to answer"


def test_a_notebook_that_is_unknown_is_refused_without_what_draws_and_renders():
    command = [sys.executable, "-X", "importtime", "-m", "lib", "run", "moon"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2 and "error: notebook 'moon' is unknown" in refused.stderr
    for heavy in ["scipy.stats", "matplotlib", "lib.book.rendering"]:
        assert heavy not in refused.stderr, "imported, and not needed to refuse"


@pytest.mark.parametrize(
    "command", ["book", "run", "sweep", "compare", "sample", "pages", "record", "export"]
)
def test_each_command_has_help(command, capsys):
    assert main([command, "--help"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "sum"], "error: notebook 'sum' is unknown: expected sums"),
        (["run", "none/sums.ipynb"], "error: notebook none/sums.ipynb does not exist"),
        (
            ["run", "sums", "-p", "m", "1"],
            "error: parameter 'm' is unknown: expected one of n, title",
        ),
        (
            ["run", "sums", "-p", "n", "five"],
            "error: parameter 'n' is 'five': expected int",
        ),
        (["run", "sums", "-p", "n", "5.0"], "error: parameter 'n' is '5.0': expected int"),
        (
            ["run", "sums", "-p", "n", "1", "-p", "n", "2"],
            "error: each parameter may be given only once: found 'n'",
        ),
        (
            ["sweep", "sums", "-p", "n", "1", "-p", "n", "2"],
            "error: each parameter may be given only once: found 'n'",
        ),
        (
            ["sweep", "sums", "-p", "n", "5..1"],
            "error: a range must not run backwards: found '5..1'",
        ),
        (["sweep", "sums", "-p", "n"], "error: parameter 'n' needs at least one value: found []"),
        (["sweep", "sums"], "error: a sweep needs a parameter, as in -p seed 1..20: found []"),
        (
            ["sweep", "sums", "-p", "n", "1", "-p"],
            "error: a sweep needs a parameter, as in -p seed 1..20: found ['-p', 'n', '1', '-p']",
        ),
        (
            ["sweep", "sums", "n", "1"],
            "error: a value must follow -p and the name of a parameter: found 'n'",
        ),
        (
            ["sweep", "sums", "-p", "n", "1..999999999999999"],
            "error: a sweep may have at most 10,000 runs: found 999999999999999",
        ),
        (
            ["sweep", "sums", "-p", "n", "1", "five"],
            "error: parameter 'n' is 'five': expected int",
        ),
        (
            ["compare", "sums"],
            "error: a comparison needs at least two different runs: found ['sums']",
        ),
        (["compare", "sums", "moon"], "error: run 'sums' is unknown: none is allowed here"),
        (["book", "--edition", "pocket"], "error: edition 'pocket' is unknown: expected default"),
        (
            ["book", "--workers", "0"],
            "error: Invalid value for '--workers': 0 is not in the range x>=1.",
        ),
        (
            ["sweep", "sums", "-p", "n", "1", "--workers", "0"],
            "error: Invalid value for '--workers': 0 is not in the range x>=1.",
        ),
        (["pages", "--edition", "my.yml"], "error: edition my.yml does not exist"),
        (["record", "pocket"], "error: edition 'pocket' is unknown: expected default"),
    ],
)
def test_what_breaks_a_rule_is_told_in_one_line_and_nothing_is_written(
    book, arguments, message, capsys
):
    before = sorted(book.root.rglob("*"))
    assert main(arguments) == 2
    assert capsys.readouterr().err == message.format(root=book.root.resolve()) + "\n"
    assert sorted(book.root.rglob("*")) == before


def test_a_sample_does_not_replace_its_table(garden, capsys):
    pd.read_csv("plants.csv").to_parquet("plants.parquet")
    before = Path("plants.parquet").read_bytes()
    arguments = ["--table", "plants.parquet", "-n", "5", "-o", "./plants.parquet"]
    assert main(["sample", "garden.yml", *arguments]) == 2
    assert "must have another name than the table" in capsys.readouterr().err
    assert Path("plants.parquet").read_bytes() == before


def test_an_unwritable_folder_is_named(book, capsys):
    book.runs.write_text("a file in the way")
    assert main(["run", "sums"]) == 2
    assert capsys.readouterr().err.endswith("/runs/sums cannot be written: Not a directory\n")


def test_run_writes_a_notebook_and_its_record(book, unrendered):
    assert main(["run", "sums", "-p", "n", "1_000", "-p", "title", "1_000"]) == 0
    folder = book.runs / "sums,n=1000,title=1_000"
    assert sorted(path.name for path in folder.iterdir()) == ["sums.ipynb", "sums.json"]
    notebook = nbformat.read(folder / "sums.ipynb", 4)
    assert notebook.cells[2].outputs[0].text == "1_000 499500\n"
    record = json.loads((folder / "sums.json").read_text())
    assert record["parameters"] == {"n": 1000, "title": "1_000"}
    assert not any((book.root / "elsewhere").iterdir())


def test_run_makes_a_page_and_the_same_again_answers_from_it(book, capsys, monkeypatch):
    page = book.runs / "sums,n=1000" / "index.html"
    assert main(["run", "sums", "-p", "n", "1_000"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"the page is {page}\n"
    assert "sums,n=1000: done in " in shown.err and shown.err.endswith(" s\nrendering\n")
    assert "Sum 499500" in page.read_text()
    assert 'href="sums%2Cn%3D1000/index.html"' in (book.runs / "index.html").read_text()
    assert main(["run", "sums", "-p", "n", "1000"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (f"the page is {page}\n", "")
    os.utime(page, (0, 0))  # older than the run, which was interrupted before its page was made
    monkeypatch.setattr(runs, "show", lambda *_: page.touch() or ["it was rendered"])
    assert main(["run", "sums", "-p", "n", "1000"]) == 1
    assert main(["run", "sums", "-p", "n", "1000"]) == 1, "what is wrong with a page is told again"
    monkeypatch.setattr(running, "why_stale", lambda *_: "lib changed")
    monkeypatch.setattr(running, "execute", lambda *_: page.unlink() or [])  # as a run does
    assert main(["run", "sums", "-p", "n", "1000"]) == 1
    assert capsys.readouterr().err == "error: it was rendered\n" * 3


def test_a_sweep_and_a_comparison_say_where_their_page_is(book, monkeypatch, capsys):
    def rendered(book, pages):
        for name, text in pages.items():
            (book.runs / name / "index.html").write_text(text)
        return []

    monkeypatch.setattr(runs, "show", rendered)
    book.add_notebook("sums", "n: int = 3\nstep: int = 1", RECORDS)
    assert main(["sweep", "sums", "-p", "n", "4", "7", "-p", "step", "-1..0"]) == 0
    (folder,) = book.runs.glob("sweep*")
    assert capsys.readouterr().out == f"the page is {folder / 'index.html'}\n"
    assert len(pd.read_csv(folder / "numbers.csv")) == 4
    run_folders = ["sums,n=4,step=0", str(book.runs / "sums,n=7,step=-1")]
    assert main(["compare", *run_folders]) == 0
    folder = book.runs / "comparison,sums,n=4,step=0,sums,n=7,step=-1"
    assert capsys.readouterr().out == f"the page is {folder / 'index.html'}\n"
    # After a crash of the renderer there is none.
    monkeypatch.setattr(runs, "show", lambda *_, **__: ["it crashed"])
    values = ["sums", "-p", "n", "4", "-p", "step", "0"]
    for command in (["run", *values], ["sweep", *values], ["compare", *run_folders]):
        assert main(command) == 1
        assert capsys.readouterr() == ("", "error: it crashed\n")


def test_relative_paths_of_a_run_start_where_one_stands(book, unrendered):
    book.add_notebook("reads", "path: str = 'a.csv'", "print(open(path).read())")
    (book.root / "elsewhere" / "mine.csv").write_text("age")
    assert main(["run", "reads", "-p", "path", "mine.csv"]) == 0
    notebook = nbformat.read(book.runs / "reads,path=mine.csv" / "reads.ipynb", 4)
    assert notebook.cells[2].outputs[0].text == "age\n"


def test_a_failed_run_exits_with_one_and_shows_where_to_look(book, capsys):
    book.add_notebook("broken", "n: int = 1", "1 / n", "1 / 0")
    assert main(["run", "broken"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: broken: cell 3 of 3: ZeroDivisionError: division by zero\n" in shown.err
    failed = book.runs / "broken" / "broken.failed.ipynb"
    assert f"the failed notebook is {failed}\n" in shown.err
    assert failed.exists()


def test_where_no_notebook_was_written_none_is_shown(book, monkeypatch, capsys):
    def full(*_):
        raise InputError("the disk is full")

    monkeypatch.setattr(running, "run_page", full)
    assert main(["run", "sums"]) == 1
    said = "sums: started, 1 of 1\nsums: FAILED\nerror: the disk is full\n"
    assert capsys.readouterr().err == said


def test_book_says_what_it_did(book, capsys):
    assert main(["book", "--no-render"]) == 0
    assert capsys.readouterr().out.startswith("pages run: 1, up to date: 0, problems: 0; ")
    assert main(["book", "--no-render"]) == 0
    assert capsys.readouterr().out.startswith("pages run: 0, up to date: 1, problems: 0; ")
    assert main(["pages"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "edition default: A sum.",
        "",
        "small_sum  (notebooks/sums.ipynb; up to date)",
        "  n: int = 5  # terms (default: 3)",
        "  title: str = 'Sum'",
    ]


def test_book_and_sheets_say_where_they_are(book, monkeypatch, capsys):
    index = book.built / "default" / "index.html"
    outcome = building.Outcome(["a"], ["b", "c"], ["a: cell 1 of 1: Ouch"], index)
    monkeypatch.setattr(building, "build", lambda *_, **__: outcome)
    monkeypatch.setattr(building, "make_sheets", lambda edition: ([index.parent], []))
    assert main(["book"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "pages run: 1, up to date: 2, problems: 1; 0 s\n"
    assert shown.err == "error: a: cell 1 of 1: Ouch\n"
    assert main(["sheets"]) == 0
    assert capsys.readouterr().out == "", "there are none"
    index.parent.mkdir(parents=True)
    index.touch()
    assert main(["book"]) == 1
    assert capsys.readouterr().out.endswith(f"s\nthe book is at {index}\n")
    assert main(["sheets"]) == 0
    assert capsys.readouterr().out == f"the sheets are at {index}\n"


def test_an_interrupt_is_one_line(book, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "build", interrupted)
    assert main(["book"]) == 130
    assert (
        capsys.readouterr().err
        == "interrupted: finished work is kept; repeat the command to go on\n"
    )


@pytest.mark.parametrize("absent", ["click", "nbformat"])
def test_outside_of_the_environment_one_sentence_says_so(tmp_path, absent):
    (tmp_path / f"{absent}.py").write_text(f"raise ModuleNotFoundError('No module named {absent}')")
    shown = subprocess.run(
        [sys.executable, "-m", "lib", "pages"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert shown.returncode > 0
    said = f"error: No module named {absent}: is the book's environment activated?\n"
    assert shown.stderr == said


def test_from_any_folder_without_a_traceback(tmp_path):
    shown = subprocess.run(
        [sys.executable, "-m", "lib", "run", "weather"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: notebook 'weather' is unknown: ")
    assert shown.stderr.count("\n") == 1


def test_a_reader_that_has_read_enough_is_no_error():
    """As `python -m lib pages | head` is."""
    command = [sys.executable, "-m", "lib", "pages"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_stream_that_writes_few_letters_or_none_is_no_error(book, monkeypatch):
    book.add_edition("greek", "about: Of γ.\npages: [{page: small_sum, notebook: sums}]\n")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert main(["pages", "--edition", "greek"]) == 0
    assert sys.stdout.buffer.getvalue().startswith(rb"edition greek: Of \u03b3.")
    monkeypatch.setattr(sys, "stdout", None)  # as by `>&-`
    assert main(["pages", "--edition", "greek"]) == 0


MODEL = """\
variables:
  light: {sampler: {type: gaussian, round_result: true}}
  water: {sampler: multinomial}
  height: {parents: [light, water], sampler: LinearGaussianSampler}
"""


@pytest.fixture
def garden(tmp_path, monkeypatch):
    """A folder with a specification and a table, in which one stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path / "results"))
    rng = np.random.default_rng(5)
    light = rng.normal(5, 2, 60)
    table = pd.DataFrame({"light": light, "water": rng.choice(["much", "none"], 60)})
    table["height"] = 2 * light + 3 * (table["water"] == "much") + rng.normal(0, 1, 60)
    table.to_csv("plants.csv", index=False)
    Path("garden.yml").write_text(MODEL)
    return tmp_path


SAMPLE = ["sample", "garden.yml", "--table", "plants.csv", "--horizon", "3", "-o", "out.parquet"]


def test_a_sample_on_disk_is_the_sample_in_memory(garden, capsys):
    options = ["-n", "1_000", "--seed", "4", "--fit-seed", "2", "--workers", "2"]
    done = ["--do", "light", "1", "-2.5", "--do", "water", "always", "none"]
    assert main([*SAMPLE, *options, *done]) == 0
    assert capsys.readouterr().out == "1,000 subjects × 3 steps: out.parquet\n"
    simulator = Simulator(Specification.from_yaml("garden.yml")).fit(
        pd.read_csv("plants.csv"), seed=2
    )
    expected = simulator.sample(
        1_000, horizon=3, seed=4, do={"light": {1: -2.5}, "water": {range(3): "none"}}
    )
    pd.testing.assert_frame_equal(pd.read_parquet("out.parquet"), expected)
    assert (expected.loc[expected["t"] == 1, "light"] == -2.5).all()


def test_a_level_may_be_a_number(garden):
    table = pd.read_csv("plants.csv")
    table.assign(water=(table["water"] == "much").astype(int)).to_csv("plants.csv", index=False)
    assert main([*SAMPLE, "-n", "9", "--do", "water", "always", "1"]) == 0
    assert (pd.read_parquet("out.parquet")["water"] == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0"], "Invalid value for '-n': 0 is not in the range x>=1."),
        (["-n", "many"], "Invalid value for '-n': 'many' is not a valid integer range."),
        (["-n", "5", "--horizon", "0"], "Invalid value for '--horizon': 0 is not in the range"),
        (["-n", "5", "--seed", "-1"], "Invalid value for '--seed': -1 is not in the range x>=0."),
        (["-n", "5", "--fit-seed", "-1"], "Invalid value for '--fit-seed': -1 is not in the range"),
        ([], "Missing option '-n'."),
        (["-n", "5", "-o", "none/out.parquet"], "folder of the output must exist: found '/"),
        (["-n", "5", "-o", "out.csv"], "output must end with .parquet: found 'out.csv'"),
        (["-n", "5", "--table", "none.csv"], "file none.csv does not exist"),
        (["-n", "5", "--do", "moon", "1", "3"], "do: variable 'moon' is unknown: expected one of"),
        (
            ["-n", "5", "--do", "light", "1", "3", "--do", "light", "01", "4"],
            "each --do may be given only once: found 'light 1'",
        ),
        (
            ["-n", "5", "--do", "light", "1", "3", "--do", "light", "always", "4"],
            "do: 'light' may be set only once at each step: found 1",
        ),
        (
            ["-n", "5", "--do", "water", "1", "some"],
            "do: 'water' at step 1: level 'some' is unknown",
        ),
        (
            ["-n", "5", "--do", "light", "1", "much"],
            "do: 'light' at step 1: finite numbers are needed: found 'much'",
        ),
        (
            ["-n", "5", "--do", "light", "3", "1"],
            "do: 'light' at step 3: step must be a number from",
        ),
        (
            ["-n", "5", "--do", "light", "-1", "1"],
            "--do light: STEP must be a whole number or the word always: found '-1'",
        ),
    ],
)
def test_a_sample_that_breaks_a_rule_is_refused_in_one_sentence(garden, arguments, message, capsys):
    assert main([*SAMPLE, *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(f"error: {message}")
    assert shown.count("\n") == 1
    assert not list(garden.rglob("*.parquet"))
    assert not list(garden.rglob(".partial*"))


def test_a_sample_of_an_unknown_specification_is_refused(garden, capsys):
    assert main(["sample", "income_scm_9", "-n", "5", "-o", "out.parquet"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: specification 'income_scm_9' is unknown: expected one of ")
    assert shown.count("\n") == 1
    assert not list(garden.glob("out*"))
