"""The command line answers plainly, with the right exit status, and never with a traceback."""

import json
import subprocess
import sys

import nbformat
import pytest

from lib import building, editions
from lib.__main__ import main


@pytest.fixture
def book(tiny_book, monkeypatch):
    """The tiny book, in the place of the real one, seen from an empty folder."""
    elsewhere = tiny_book.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(editions, "Book", lambda: tiny_book)
    monkeypatch.chdir(elsewhere)
    return tiny_book


def test_help_answers_at_once_and_names_every_command():
    shown = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "lib", "--help"], capture_output=True, text=True
    )
    assert shown.returncode == 0
    for word in ["book", "run", "pages", "examples:", "exit status"]:
        assert word in shown.stdout
    for heavy in ["papermill", "numpy", "pandas", "pydantic"]:
        assert heavy not in shown.stderr, "imported, and not needed to answer"


@pytest.mark.parametrize("command", ["book", "run", "sample", "pages"])
def test_each_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "sum"], "error: notebook 'sum' is unknown: expected sums"),
        (["run", "none/sums.ipynb"], "error: notebook none/sums.ipynb does not exist"),
        (
            ["run", "sums", "-p", "m", "1"],
            "error: parameter 'm' of sums is unknown: expected one of n, title",
        ),
        (
            ["run", "sums", "-p", "n", "five"],
            "error: parameter 'n' of sums is 'five': expected int",
        ),
        (["run", "sums", "-p", "n", "5.0"], "error: parameter 'n' of sums is '5.0': expected int"),
        (
            ["run", "sums", "-o", "out.html"],
            "error: output out.html is no notebook: expected a name that ends with .ipynb",
        ),
        (
            ["run", "sums", "-o", "../notebooks/sums.ipynb"],
            "error: output ../notebooks/sums.ipynb is the notebook itself: choose another name",
        ),
        (["book", "--edition", "pocket"], "error: edition 'pocket' is unknown: expected default"),
        (["book", "--workers", "0"], "error: workers is 0: expected at least 1"),
        (["pages", "--edition", "my.yml"], "error: edition my.yml does not exist"),
    ],
)
def test_what_breaks_a_rule_is_told_in_one_line_and_nothing_is_written(
    book, arguments, message, capsys
):
    before = sorted(book.root.rglob("*"))
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{message}\n"
    assert sorted(book.root.rglob("*")) == before


def test_an_unwritable_folder_is_named(book, capsys):
    (book.root / "file").write_text("")
    assert main(["run", "sums", "-o", "../file/out.ipynb"]) == 2
    assert capsys.readouterr().err.endswith("/file cannot be written: File exists\n")


def test_run_writes_a_notebook_and_its_record_where_one_stands(book, capsys):
    assert main(["run", "sums", "-p", "n", "1_000", "-p", "title", "1_000"]) == 0
    assert capsys.readouterr().out == ("sums_run.ipynb, with its run record in sums_run.json\n")
    elsewhere = book.root / "elsewhere"
    assert sorted(path.name for path in elsewhere.iterdir()) == ["sums_run.ipynb", "sums_run.json"]
    notebook = nbformat.read(elsewhere / "sums_run.ipynb", 4)
    assert notebook.cells[2].outputs[0].text == "1_000 499500\n"
    record = json.loads((elsewhere / "sums_run.json").read_text())
    assert record["parameters"] == {"n": 1000, "title": "1_000"}


def test_relative_paths_of_a_run_start_where_one_stands(book):
    book.add_notebook("reads", "path: str = 'a.csv'", "print(open(path).read())")
    (book.root / "elsewhere" / "mine.csv").write_text("age")
    assert main(["run", "reads", "-p", "path", "mine.csv", "-o", "out.ipynb"]) == 0
    notebook = nbformat.read("out.ipynb", 4)
    assert notebook.cells[2].outputs[0].text == "age\n"


def test_a_failed_run_exits_with_one_and_shows_where_to_look(book, capsys):
    book.add_notebook("broken", "n: int = 1", "1 / n", "1 / 0")
    assert main(["run", "broken"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: broken_run: cell 3 of 3: ZeroDivisionError: division by zero\n" in shown.err
    assert "the notebook as it failed is broken_run.failed.ipynb\n" in shown.err


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


def test_an_interrupt_is_one_line(book, monkeypatch, capsys):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "build", interrupted)
    assert main(["book"]) == 130
    assert capsys.readouterr().err == "interrupted: what was finished is kept; repeat the command\n"


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
