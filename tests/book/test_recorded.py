"""A marked table goes from a notebook into files, and back onto a page, digit by digit."""

import hashlib
import json
import math
import re
import shutil

import nbformat
import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.__main__ import main
from lib.book import editions, recorded, running
from lib.book.building import build, keep
from lib.book.recorded import Number, number, record
from lib.errors import InputError
from lib.tables import typeset

TABLE = """\
import pandas as pd
from lib.book.recorded import record
table = pd.DataFrame(
    {"n": [n, 2], "share": [1 / 3, None], "level": ["None", "a, b"]},
    index=pd.Index(["x", "y"], name="who"),
)
record("shares", table, digits={"share": 2})
print("after")
"""


def marking(book, patch):
    """Give a tiny book a page that marks a table; notebooks read what was kept of it."""
    book.add_notebook("marks", "n: int = 10\nn_samples: int = 1_000", TABLE)
    book.add_edition(
        "paper",
        "about: x\npages:\n  - {page: small_sum, notebook: sums}\n"
        "  - {page: big, notebook: marks, parameters: {n_samples: 50_000}}\n",
    )
    patch.setattr(recorded, "RECORDED", book.recorded)
    # The tiny book has a folder of the same name, and its kernels start beside it.
    patch.setenv("PYTHONPATH", str(ROOT))
    return book


@pytest.fixture
def book(tiny_book, monkeypatch):
    return marking(tiny_book, monkeypatch)


@pytest.fixture(scope="module")
def kept_once(make_tiny_book, tmp_path_factory):
    """The folder of a book whose tables were kept, for all of the tests that begin with it."""
    with pytest.MonkeyPatch.context() as patch:
        book = marking(make_tiny_book(tmp_path_factory.mktemp("kept")), patch)
        build("paper", render=False, book=book)
        keep("paper", book=book)
    return book.root


@pytest.fixture
def kept(book, kept_once):
    shutil.copytree(kept_once, book.root, dirs_exist_ok=True)
    return book


def files(book) -> list[str]:
    return sorted(
        path.relative_to(book.recorded).as_posix() for path in book.recorded.glob("*/*/*")
    )


def test_a_mark_shows_the_table_and_holds_six_digits(kept):
    notebook = nbformat.read(kept.page("big", "paper"), 4)
    shown, after = notebook.cells[2].outputs
    text = 'who,n,share,level\nx,10,0.333333,None\ny,2,,"a, b"\n'
    assert shown.metadata == {"recorded": {"name": "shares", "text/csv": text}}
    assert set(shown.data) == {"text/html", "text/plain"}, "all that the renderer knows"
    assert '<td class="number">0.33</td>\n<td>None</td>' in shown.data["text/html"]
    assert shown.data["text/plain"].splitlines()[0].split() == ["who", "n", "share", "level"]
    assert after.text == "after\n"


def test_what_is_kept_is_table_and_run_record_and_nothing_of_this_machine(kept):
    assert files(kept) == ["paper/big/run.json", "paper/big/shares.csv"]
    run = json.loads((kept.recorded / "paper/big/run.json").read_text())
    text = (kept.recorded / "paper/big/shares.csv").read_text()
    assert text.startswith("who,n,share,level\n")
    assert run["command"] == "python -m lib run marks -p n_samples 50_000"
    assert run["parameters"] == {"n": 10, "n_samples": 50_000}
    assert run["tables"] == {"shares": hashlib.sha256(text.encode()).hexdigest()}
    big = editions.load_edition("paper", kept).runs["big"]
    assert run["date"] == running.read_record(big.record)["started"][:10]
    assert set(run) == {"command", "parameters", "seconds", "versions", "date", "tables"}
    assert str(kept.root) not in json.dumps(run)


def test_it_is_read_as_it_was_under_a_label_that_says_how_it_came_to_be(kept):
    found = recorded.recorded("big", "shares", index="who")
    ((label, table),) = found.items()
    assert label.startswith("n = 50\u202f000, recorded 20")
    expected = pd.DataFrame(
        {"n": [10, 2], "share": [0.333333, np.nan], "level": ["None", "a, b"]},
        index=pd.Index(["x", "y"], name="who"),
    )
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    said = found._repr_markdown_()
    assert said.startswith("A run kept with the book, n = 50\u202f000, recorded 20")
    assert re.search(r": `python -m lib run marks -p n_samples 50_000` repeats it, in \d+ s", said)
    both = pd.concat({"this run": table, **found}, axis=1)
    assert list(both.columns.get_level_values(0).unique()) == ["this run", label]


def test_numbers_among_texts_are_numbers_again(monkeypatch, tmp_path):
    marks = []
    monkeypatch.setattr(recorded, "display", lambda _, metadata: marks.append(metadata))
    levels = pd.Series([10_000, 0.5, "age", "None", "1 or more"], dtype=object)
    table = pd.DataFrame({"level": levels, "share": [0.1, 0.2, None, 0.4, 0.5]})
    record("levels", table)
    text = marks[0]["recorded"]["text/csv"]
    run = {"date": "2031-02-03", "command": "", "seconds": 1.0}
    run["tables"] = {"levels": hashlib.sha256(text.encode()).hexdigest()}
    folder = tmp_path / "paper" / "page"
    folder.mkdir(parents=True)
    (folder / "levels.csv").write_text(text)
    (folder / "run.json").write_text(json.dumps(run))
    monkeypatch.setattr(recorded, "RECORDED", tmp_path)
    (found,) = recorded.recorded("page", "levels").values()
    pd.testing.assert_frame_equal(found, table)
    (found,) = recorded.recorded("page", "levels", ["level"]).values()
    assert found.index.tolist() == levels.tolist()
    assert "10\u202f000 0.100" in str(typeset(found))


def test_what_was_never_recorded_leaves_the_others_alone(kept):
    for page, name in [("big", "moons"), ("moon", "shares")]:
        found = recorded.recorded(page, name)
        assert found == {}
        assert found._repr_markdown_() == ""


def test_a_changed_or_damaged_file_is_refused(kept):
    path = kept.recorded / "paper/big/shares.csv"
    path.write_text(path.read_text().replace("10", "11"))
    with pytest.raises(InputError, match=r"shares.csv differs from what was recorded: record the"):
        recorded.recorded("big", "shares")
    run = path.with_name("run.json")
    for damaged in ('{"tables": ', "{}", None):  # none after a first recording that was interrupted
        run.write_text(damaged) if damaged else run.unlink()
        with pytest.raises(InputError, match=r"shares.csv differs .* record the edition 'paper'"):
            recorded.recorded("big", "shares")
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"shares.csv cannot be read: "):
        recorded.recorded("big", "shares")


def test_an_index_that_only_counts_rows_is_not_kept(monkeypatch):
    marks = []
    monkeypatch.setattr(recorded, "display", lambda _, metadata: marks.append(metadata))
    record("steps", pd.DataFrame({"n": [1]}))
    assert marks[0]["recorded"]["text/csv"] == "n\n1\n"


@pytest.mark.parametrize("name", ["Shares", "../shares", "a b", "", "shares\n"])
def test_a_name_that_is_no_file_name_is_refused(name):
    with pytest.raises(InputError, match="must start with a-z and hold only a-z, 0-9 and _: found"):
        record(name, pd.DataFrame())


@pytest.mark.parametrize("name", ["²", "", "2 arms", "±"])
def test_a_number_whose_name_does_not_begin_with_a_letter_is_refused(name):
    with pytest.raises(
        InputError, match="recorded number must start with a-z and hold only a-z, 0-9 and _: found"
    ):
        number(name, 1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_is_not_finite_is_refused(value):
    with pytest.raises(
        InputError, match=r"^recorded number 'x' must be finite: found -?(nan|inf)$"
    ):
        number("x", value)


def test_a_standard_error_may_be_missing_but_not_infinite(monkeypatch):
    found = {}
    monkeypatch.setattr(recorded, "glue", lambda name, one, display: found.update({name: one}))
    number("Error of ipw-lr", np.float32(2), "US dollars", pd.Series([2.0]).sem())
    number("b", 1 / 3, standard_error=2 / 3)
    twelve = Number(0.333333333333, standard_error=0.666666666667)
    assert found == {"error_of_ipw_lr": Number(2.0, "US dollars"), "b": twelve}
    with pytest.raises(InputError, match=r"^recorded number 'x' must be finite: found inf$"):
        number("x", 1.0, standard_error=math.inf)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(640.0), "640"),
        (Number(0.0), "0"),
        (Number(12_345.0, "US dollars"), "12\u202f345 US dollars"),
        (Number(0.123456), "0.123"),
        (Number(-4816.3, "US dollars", 61.2), "−4\u202f816 ± 61 US dollars"),
        (Number(3.0, standard_error=0.25), "3.00 ± 0.25"),
        (Number(100.0, "%", 0.0), "100 ± 0 %"),
        (Number(-0.0004, standard_error=0.01), "0.000 ± 0.010"),
    ],
)
def test_a_number_is_told_as_surely_as_it_is_known(number, text):
    assert str(number) == text


def test_no_line_ends_between_a_number_and_its_error_or_unit():
    shown = Number(41.68, "%", 2.31)._repr_mimebundle_()["text/plain"]
    assert shown == repr("41.7\u00a0±\u00a02.3\u00a0%")


def test_a_name_stands_for_one_table(book):
    book.add_notebook("marks", "n: int = 1\nn_samples: int = 1", TABLE, 'record("shares", table)')
    build("paper", render=False, book=book)
    with pytest.raises(InputError, match="page big may record each name only once: found 'shares'"):
        keep("paper", book=book)
    assert files(book) == []


def test_a_fresh_run_is_compared_table_by_table(kept):
    left = f"paper/big/.partial.{2**31 - 1}.12345678.shares.csv"  # by a process that was killed
    (kept.recorded / left).write_text("who,")
    assert keep("paper", write=False, book=kept) == ({"big/shares": None}, [])
    # The seventh digit does not count.
    kept.add_notebook(
        "marks", "n: int = 10\nn_samples: int = 1_000", TABLE.replace("1 / 3", "1 / 3 + 1e-8")
    )
    build("paper", render=False, book=kept)
    assert keep("paper", write=False, book=kept) == ({"big/shares": None}, [])
    other = TABLE.replace("1 / 3", "1 / 3 + 1e-5").replace('"shares"', '"moons"')
    kept.add_notebook(
        "marks", "n: int = 10\nn_samples: int = 1_000", TABLE.replace("1 / 3", "0.25") + other
    )
    build("paper", render=False, book=kept)
    before = files(kept)
    differences = {
        "big/moons": "kept '', found 'who,n,share,level'",
        "big/shares": "kept 'x,10,0.333333,None', found 'x,10,0.25,None'",
    }
    assert keep("paper", write=False, book=kept) == (differences, [])
    assert files(kept) == before, "to compare writes nothing"
    assert keep("paper", book=kept) == (differences, [])
    assert keep("paper", book=kept) == (dict.fromkeys(differences), [])


def test_what_is_no_longer_marked_is_no_longer_kept(kept):
    kept.add_notebook("marks", "n: int = 10\nn_samples: int = 1_000", "1 + 1")
    build("paper", render=False, book=kept)
    gone = {"big/shares": "kept 'who,n,share,level', found ''"}
    assert keep("paper", write=False, book=kept) == (gone, [])
    assert keep("paper", book=kept) == (gone, [])
    assert files(kept) == []


def test_a_page_that_is_not_up_to_date_is_named_and_its_tables_stay(kept):
    text = (kept.editions / "paper.yml").read_text()
    kept.add_edition("paper", text.replace("notebook: sums", "notebook: sums, parameters: {n: 7}"))
    (kept.root / "lib" / "code.py").write_text("two = 2\n")
    before = {path: path.read_text() for path in kept.recorded.glob("*/*/*")}
    stale = [
        "small_sum is not up to date: parameters changed",
        "big is not up to date: lib changed",
    ]
    assert keep("paper", book=kept) == ({}, stale)
    assert {path: path.read_text() for path in kept.recorded.glob("*/*/*")} == before


def test_only_a_page_that_reads_kept_tables_is_stale_when_they_change(kept):
    kept.add_notebook(
        "reads", "n: int = 1", "from lib.book.recorded import recorded", "recorded('a', 'b')"
    )
    kept.add_edition(
        "paper",
        "about: x\npages:\n  - {page: reads, notebook: reads}\n"
        "  - {page: big, notebook: marks, parameters: {n_samples: 50_000}}\n",
    )
    build("paper", render=False, book=kept)
    (kept.recorded / "paper/big/shares.csv").write_text("changed")
    reads, marks = editions.load_edition("paper", kept).runs.values()
    assert running.why_stale(marks) is None
    assert running.why_stale(reads) == "kept tables changed"
    assert running.why_stale(reads, but=["kept tables"]) is None, "so that it can be recorded"


def test_the_command_says_what_is_the_same_and_fails_where_something_is_not(
    kept, monkeypatch, capsys
):
    kept.stand_in(monkeypatch)
    assert main(["record", "paper", "--check"]) == 0
    assert capsys.readouterr().out == "big/shares: the same\n"
    path = kept.recorded / "paper/big/shares.csv"
    path.write_text(path.read_text().replace("10", "11"))
    assert main(["record", "paper", "--check"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "big/shares: kept 'x,11,0.333333,None', found 'x,10,0.333333,None'\n"
    assert shown.err == "error: big/shares differs from the kept table\n"
    assert main(["record", "paper"]) == 0
    assert main(["record", "paper", "--check"]) == 0
    (kept.root / "lib" / "code.py").write_text("two = 2\n")
    assert main(["record", "paper"]) == 1
    assert "error: big is not up to date: lib changed\n" in capsys.readouterr().err
    assert main(["record", "pocket"]) == 2


def test_a_sixth_digit_may_be_rounded_to_either_side(kept):
    path = kept.recorded / "paper/big/shares.csv"
    made = path.read_text()
    for changed, same in {
        "x,10,0.333334,None": True,
        "x,10,0.333343,None": False,
        "x,10,-0.333333,None": False,
        "x,10,,None": False,
        "x,10,0.333333,none": False,
        "x,10.00001,0.333333,None": True,
        "x,11,0.333333,None": False,
        "": False,
    }.items():
        path.write_text(made.replace("x,10,0.333333,None", changed))
        differences, problems = keep("paper", write=False, book=kept)
        told = f"kept {changed!r}, found 'x,10,0.333333,None'"
        assert (differences, problems) == ({"big/shares": None if same else told}, [])


KEPT = sorted((ROOT / "data" / "recorded").glob("*/*/*.csv"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_kept_tables_of_the_book_are_those_that_were_recorded(path):
    page, edition = path.parent.name, path.parents[1].name
    assert page in editions.load_edition(edition).runs
    ((_, table),) = recorded.recorded(page, path.stem, edition=edition).items()
    assert len(table) > 0
    run = json.loads(path.with_name("run.json").read_text(encoding="utf-8"))
    assert set(run["tables"]) == {other.stem for other in path.parent.glob("*.csv")}


def test_the_kept_tables_of_the_book_are_small():
    assert sum(path.stat().st_size for path in recorded.RECORDED.rglob("*.*")) < 1_000_000


def test_notebooks_read_pages_and_tables_that_there_are():
    """A misspelt one would be taken for one that was never recorded."""
    notebooks = list(editions.BOOK.notebooks.glob("*.ipynb"))
    pages = set(editions.load_edition("paper").runs)
    pages |= {notebook.stem for notebook in notebooks}
    for notebook in notebooks:
        cells = nbformat.read(notebook, 4).cells
        source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        for page, name in re.findall(r'recorded\(\s*"(\w+)",\s*"(\w+)"', source):
            assert page in pages, notebook
            folder = recorded.RECORDED / "paper" / page
            assert (folder / f"{name}.csv").exists() or not folder.exists(), notebook


def test_nothing_is_kept_of_a_page_at_its_defaults(kept):
    edition = (
        "about: Two pages.\npages: [marks, {page: more, notebook: marks, parameters: {n: 7}}]\n"
    )
    kept.add_edition("own", edition)
    build("own", render=False, book=kept)
    differences, problems = keep("own", book=kept)
    assert not problems and differences
    assert {name.split("/")[0] for name in differences} == {"more"}
    assert [path.name for path in (kept.recorded / "own").iterdir()] == ["more"]


def test_a_page_reads_what_every_edition_has_recorded(kept):
    path = recorded.RECORDED / "paper" / "big"
    shutil.copytree(path, recorded.RECORDED / "later" / "big")
    (label, _), (other, _) = recorded.recorded("big", "shares").items()
    assert other == f"{label}, paper", "two that were recorded in a day"
    run = json.loads((path / "run.json").read_text())
    later = recorded.RECORDED / "later" / "big" / "run.json"
    later.write_text(json.dumps(run | {"date": "2031-02-03"}))
    assert len(recorded.recorded("big", "shares")) == 2
    (only,) = recorded.recorded("big", "shares", edition="later")
    assert only.endswith("recorded 2031-02-03")
