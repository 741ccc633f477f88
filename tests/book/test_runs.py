"""A sweep gives its whole grid, whatever happened on the way; a comparison says what differs."""

import base64
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from lib import ROOT
from lib.__main__ import commands
from lib.book import rendering, runs
from lib.book.editions import Run
from lib.book.running import execute, read_record, why_stale, write_record
from lib.book.runs import compare, curves, find_runs, show, sweep
from lib.errors import InputError

TOTAL = """\
import time
from lib.book.recorded import number
time.sleep(pause)
assert n != 13, "an unlucky number"
number("total", n * seed, "apples", standard_error=0.5)
number("root", n**0.5)
"""
PARAMETERS = "n: int = 3  # terms\nseed: int = 1\npause: float = 0.0\nnames: list[str] = []\n"
PARAMETERS += "most: int | None = None\nflag: bool = True"
OWN = ["number", "value", "unit", "standard_error"]


def with_totals(book, patch):
    """Give a tiny book a notebook that records two numbers."""
    book.add_notebook("totals", PARAMETERS, TOTAL)
    # The tiny book has a folder of the name lib, and its kernels start beside it.
    patch.setenv("PYTHONPATH", str(ROOT))
    return book


@pytest.fixture
def book(tiny_book, monkeypatch):
    return with_totals(tiny_book, monkeypatch)


def two_runs(book):
    values = [{"n": n, "seed": 2} for n in (100, 103)]
    return [Run(book.notebook("totals"), values=one, book=book) for one in values]


@pytest.fixture(scope="module")
def executed_pair(make_tiny_book, tmp_path_factory):
    """The folder of two runs, executed once for all of the tests that begin with them."""
    with pytest.MonkeyPatch.context() as patch:
        book = with_totals(make_tiny_book(tmp_path_factory.mktemp("pair")), patch)
        assert execute(two_runs(book)) == []
    return book.runs


@pytest.fixture
def pair(book, executed_pair):
    shutil.copytree(executed_pair, book.runs)
    return two_runs(book)


def test_a_sweep_tabulates_the_numbers_of_every_combination(book):
    folder, problems = sweep("totals", {"n": ["4", "9", "04"], "seed": ["1", "2"]}, book=book)
    assert problems == []
    table = pd.read_csv(folder / "numbers.csv")
    assert [*table] == ["n", "seed", *OWN]
    same = pd.read_parquet(folder / "numbers.parquet").drop(columns="unit")
    pd.testing.assert_frame_equal(table.drop(columns="unit"), same)
    totals = table[table["number"] == "total"]
    assert totals[["n", "seed", "value"]].to_numpy().tolist() == [
        [4, 1, 4],
        [4, 2, 8],
        [9, 1, 9],
        [9, 2, 18],
    ]
    assert set(totals["unit"]) == {"apples"} and set(totals["standard_error"]) == {0.5}
    page = (folder / "index.html").read_text()
    assert "was run 4 times" in page and "total" in page
    (command,) = BeautifulSoup(page, "html.parser").select("div.highlight-console pre")
    assert command.text.strip() == "$ python -m lib sweep totals -p n 4 9 04 -p seed 1 2"
    assert (folder / "sweep.svg").stat().st_size > 5_000
    listed = (book.runs / "index.html").read_text()
    assert listed.count("total: 4.00 ± 0.50 apples") == 1
    assert "sweep,totals" in listed
    assert sorted(find_runs(book)) == sorted(
        ["totals,n=4", "totals,n=4,seed=2", "totals,n=9", "totals,n=9,seed=2"]
    )


@pytest.fixture
def unrendered(monkeypatch):
    """Pages are not rendered, which takes seconds each."""
    monkeypatch.setattr(runs, "show", lambda *arguments, **options: [])


def test_what_fails_is_named_at_the_end_and_stops_nothing(book, unrendered):
    folder, problems = sweep("totals", {"n": ["13", "1"], "names": ["[a, b]"]}, book=book)
    (problem,) = problems
    assert problem.startswith("totals,n=13,names=")
    assert problem.endswith(": cell 2 of 2: AssertionError: an unlucky number")
    table = pd.read_csv(folder / "numbers.csv")
    assert set(table["n"]) == {1}
    assert set(table["names"]) == {'["a", "b"]'}


def test_the_command_on_its_page_repeats_a_sweep(book, monkeypatch):
    pages, swept = {}, []
    monkeypatch.setattr(runs, "show", lambda *_, **options: pages.update(options["pages"]) or [])
    # Whole numbers in a row become a range, others do not; words are quoted as a shell wants them.
    grid = {"seed": ["-1", "0", "1"], "n": ["1", "2"], "names": ["[it's]", "[a, b]"]}
    folder, problems = sweep("totals", grid | {"pause": ["0.01"]}, book=book)
    assert problems == []
    (command,) = re.findall(r"^\$ python -m lib (sweep .*)", pages[folder.name], re.MULTILINE)
    assert command.startswith("sweep totals -p seed -1..1 -p n 1 2 -p names ")
    monkeypatch.setattr(runs, "sweep", lambda *given: swept.append(given) or (None, []))
    commands(shlex.split(command), standalone_mode=False)
    assert swept == [("totals", grid | {"pause": ["0.01"]}, None)]


def test_values_of_several_kinds_are_a_column_of_texts(book, unrendered):
    grid = {"n": ["1", "2"], "most": ["5", "None"], "flag": ["False", "false"]}
    large = str(2**70)
    folder, problems = sweep("totals", grid | {"seed": [large]}, book=book)
    assert problems == []
    table = pd.read_parquet(folder / "numbers.parquet")
    totals = table[table["number"] == "total"]
    assert totals["most"].tolist() == ["5", "None", "5", "None"]
    assert totals["n"].tolist() == [1, 1, 2, 2]
    assert totals["seed"].tolist() == [large] * 4, "which Parquet has no integers for"
    assert totals["flag"].tolist() == ["False"] * 4, "which is no number on an axis"


def test_values_that_are_others_in_json_are_in_the_table_as_they_were_typed(book, unrendered):
    code = "from lib.book.recorded import number\nnumber('first', [*pair][0])"
    book.add_notebook("totals", "pair: tuple[int, int] | dict[int, str] = (1, 2)", code)
    folder, problems = sweep("totals", {"pair": ["(1, 2)", "{3: 'a'}"]}, book=book)
    assert problems == []
    table = pd.read_parquet(folder / "numbers.parquet")
    assert table["pair"].tolist() == ["(1, 2)", "{3: 'a'}"]
    assert table["value"].tolist() == [1, 3]


@pytest.mark.parametrize("name", [*OWN, "lower", "upper", "panel", "series"])
def test_a_parameter_that_a_column_would_hide_is_refused_before_anything_runs(book, name):
    book.add_notebook("totals", f"{name}: int = 1\nn: int = 2", TOTAL)
    with pytest.raises(InputError) as refusal:
        sweep("totals", {"n": ["1"], name: ["1", "2"]}, book=book)
    rule = "a swept parameter must not have the name of a column"
    assert str(refusal.value) == f"{rule}: found {name!r}"
    assert not book.runs.exists()


def test_sweeps_of_other_values_have_other_folders(book, unrendered):
    code = "from lib.book.recorded import number\nnumber('length', len(word))"
    book.add_notebook("totals", "word: str = 'a'", code)
    grids = [["a+b"], ["a", "b"], ["a+", "b"], ["a", "+b"]]
    found = [sweep("totals", {"word": words}, book=book)[0].name for words in grids]
    assert len({*found}) == 4 and found[1] == "sweep,totals,word=a+b"


def test_bad_input_is_refused_in_one_sentence(book, unrendered):
    for grid, message in [
        ({"n": []}, "parameter 'n' needs at least one value"),
        ({"n": ["1"] * 101, "seed": ["1"] * 100}, "at most 10,000 runs: found 10100"),
        ({"moon": ["1"]}, "parameter 'moon' is unknown"),
    ]:
        with pytest.raises(InputError, match=message):
            sweep("totals", grid, book=book)
    assert not book.runs.exists()
    assert sweep("sums", {"n": ["1"]}, book=book) == (
        None,
        ["no run of sums.ipynb has recorded a number"],
    )


def test_a_sweep_that_was_killed_goes_on_and_ends_as_if_nothing_had_been(book, unrendered):
    grid = {"n": ["1", "2"], "pause": ["0.3"]}
    program = (
        "from pathlib import Path\nfrom lib.book import kernels\n"
        "from lib.book.editions import Book\nfrom lib.book.runs import sweep\n"
        "kernels.IMPORTED = ()\n"  # of which the pages need nothing
        f"sweep('totals', {grid!r}, workers=1, book=Book(Path({str(book.root)!r})))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        done = 0
        for line in process.stderr:
            done += "done in" in line
            if done == 1:
                process.send_signal(signal.SIGKILL)
                break
    before = {path: path.stat().st_mtime_ns for path in book.runs.glob("*/totals.ipynb")}
    assert len(before) == 1
    folder, problems = sweep("totals", grid, book=book)
    assert problems == []
    assert all(path.stat().st_mtime_ns == time for path, time in before.items()), "run once"
    found = (folder / "numbers.csv").read_bytes(), (folder / "numbers.parquet").read_bytes()
    book.runs = book.root / "elsewhere"
    folder, _ = sweep("totals", grid, book=book)
    assert found == (
        (folder / "numbers.csv").read_bytes(),
        (folder / "numbers.parquet").read_bytes(),
    )


def test_curves_average_over_seeds_and_state_intervals_of_95_per_cent():
    table = pd.DataFrame(
        {
            "seed": [1, 2, 1],
            "n": [10, 10, 20],
            "number": "total",
            "value": [1.0, 3.0, 5.0],
            "unit": "apples",
            "standard_error": [0.1, 0.1, 0.5],
        }
    )
    (axes,) = curves(table, ["seed", "n"]).axes
    assert axes.get_ylabel() == "apples"
    (bars,) = (one for one in axes.collections)
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    # The standard error of the mean of 1 and 3 is 1, with one degree of freedom.
    assert ends == [
        pytest.approx([2 - 12.706, 2 + 12.706], abs=1e-3),
        pytest.approx([5 - 1.96 * 0.5, 5 + 1.96 * 0.5]),
    ]


def test_where_seeds_alone_differ_each_is_a_point_of_its_own():
    table = pd.DataFrame({"n": 10, "seed": [1, 2, 3], "number": "total", "unit": ""})
    table = table.assign(value=[1.0, 3.0, 2.0], standard_error=None)
    (axes,) = curves(table, ["n", "seed"]).axes
    (points,) = (one[0] for one in axes.containers)
    assert points.get_xydata().tolist() == [[1, 1], [2, 3], [3, 2]]
    assert points.get_linestyle() == "None", "one seed leads to no other"
    assert axes.get_xlabel() == "seed"


def test_curves_of_words_have_rows_and_a_colour_for_each_other_value():
    table = pd.DataFrame({"arm": [*"abab"], "n": [1, 1, 2, 2], "most": 9, "number": "a_sum"})
    table = table.assign(value=[1.0, 2.0, 3.0, 4.0], unit="", standard_error=None)
    figure = curves(table, ["arm", "n", "most"])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert axes.get_title("left") == "a sum"
    drawn = {one.get_label(): one[0].get_xdata().tolist() for one in axes.containers}
    assert drawn == {"n = 1": [1, 2], "n = 2": [3, 4]}
    (axes,) = curves(table.replace({"arm": {"a": "many words " * 20 + "more"}}), ["arm"]).axes
    assert axes.get_yticklabels()[0].get_text() == "many words many words ma … y words more"
    assert axes.get_position().width > 0.4, "there is room for the values"


def test_a_comparison_says_what_differs_in_and_out(book, pair):
    folder, problems = compare([run.page for run in pair], book)
    assert problems == []
    page = (folder / "index.html").read_text()
    assert "<code>n</code>" in page and "<code>seed</code>" not in page
    assert "200.00 ± 0.50 apples" in page and "206.00 ± 0.50 apples" in page
    # 6 / sqrt(0.5² + 0.5²) = 8.5
    assert "<td>+6</td>" in page and "<td>+8.5</td>" in page
    assert "the runs differ in" not in page
    record = read_record(pair[0].record)
    write_record(pair[0].record, record | {"digests": record["digests"] | {"lib": "before"}})
    folder, _ = compare([run.page for run in pair], book)
    assert "the runs differ in lib, too" in (folder / "index.html").read_text()
    write_record(pair[0].record, record)
    record = read_record(pair[1].record)
    of_one = record["digests"] | {"file of n": "of the second run alone"}
    write_record(pair[1].record, record | {"digests": of_one})
    folder, _ = compare([run.page for run in pair], book)
    assert "the runs differ in file of n, too" in (folder / "index.html").read_text()
    with pytest.raises(InputError, match=r"run 'moon' is unknown: expected one of totals,n=10[03]"):
        compare(["totals,n=100,seed=2", "moon"], book)
    with pytest.raises(InputError, match="at least two different runs"):
        compare([pair[0].page, str(pair[0].output.parent)], book)


def test_a_path_to_somewhere_else_is_no_run(book, pair, unrendered, monkeypatch):
    names = [run.page for run in pair]
    with pytest.raises(InputError, match=r"^run '/nowhere/else/totals,n=100,seed=2' is unknown"):
        compare([f"/nowhere/else/{names[0]}", f"/some/where/{names[1]}"], book)
    monkeypatch.chdir(book.root)
    folder, _ = compare(names, book)
    assert compare([f"runs/{names[0]}", str(book.runs / names[1])], book) == (folder, [])


def test_what_has_failed_since_is_called_so(book, pair, monkeypatch):
    made = {}
    monkeypatch.setattr(
        rendering.Site, "render", lambda site: made.update(site.pages) or (book.root / "x", [])
    )
    pair[1].failed.touch()
    folder, _ = compare([run.page for run in pair], book)
    said = ", whose notebook has failed since"
    lines = made[f"{folder.name}/index.md"].splitlines()
    assert [line.endswith(" UTC" + said) for line in lines if line[:3] in ("1. ", "2. ")] == [
        False,
        True,
    ]
    assert made["index.md"].count(f"totals{said}</th>") == 1


def test_what_another_notebook_has_not_is_blank_and_units_are_not_mixed():
    runs = [
        {
            "started": "2026-11-23T09:00",
            "failed": False,
            "numbers": {"mean": {"value": value, "unit": unit}},
        }
        for value, unit in ((1.0, "kg"), (3.0, "$"))
    ]
    given = {"n": ["1", ""], "unvaried": ["2", "2"]}
    about = {"names": ["a", "b"], "runs": runs, "given": given, "figures": {}, "pages": []}
    about["apart"] = ["notebook", "page"]
    page = rendering.TEMPLATES.get_template("comparison.md").render(about)
    assert "<td><code>1</code></td><td></td>" in page and "unvaried" not in page
    assert "3 $" in page and "+2" not in page and "the runs differ in notebook, too" in page


def test_a_comparison_has_figures_of_either_kind(book, pair, monkeypatch):
    drawing, image = "<svg>α</svg>", base64.b64encode(b"points").decode()
    both = {"image/svg+xml": drawing, "image/png": image}
    for run, data in zip(pair, [both, {"image/png": image}], strict=True):
        executed = nbformat.read(run.output, 4)
        shown = nbformat.v4.new_output("execute_result", data)
        told = {"figure": {"name": "fig-total", "caption": "Totals."}, "image": {"alt": "A line."}}
        for figure, about in (("fig", {"mystnb": told}), ("bare", {"mystnb": {"figure": {}}})):
            cell = nbformat.v4.new_code_cell(outputs=[shown], metadata=about, id=figure)
            executed.cells.append(cell)
        nbformat.write(executed, run.output)
    given = {}
    monkeypatch.setattr(runs, "show", lambda *_, **options: given.update(options) or [])
    (pair[1].output.parent / "index.html").touch()
    folder, _ = compare([run.page for run in pair], book)
    assert f"1. {pair[0].page}, begun" in given["pages"][folder.name]
    assert '2. <a href="../totals%2Cn%3D103%2Cseed%3D2/index.html">' in given["pages"][folder.name]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "fig-total-1.svg": drawing.encode(),
        "fig-total-2.png": b"points",
        "bare-1.svg": drawing.encode(),
        "bare-2.png": b"points",
    }
    shown = 'src="fig-total-1.svg" alt="A line."><figcaption>Run 1. Totals.</figcaption>'
    assert shown in given["pages"][folder.name]


def test_what_a_renderer_says_that_crashes_is_told(book, monkeypatch):
    page = book.runs / "totals" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("of another time")
    crashed = subprocess.CompletedProcess(
        [], 1, "", "Traceback:\na.B.Error: why\n" + "look above\n" * 20
    )
    monkeypatch.setattr(rendering.subprocess, "run", lambda *_, **__: crashed)
    problems = show(book, pages={"totals": "# Totals"})
    assert problems == ["rendering: a.B.Error: why"], "and not what stands last"
    assert not page.exists()


def spoiled(record: dict) -> list:
    """Return what is JSON and no run record."""
    read = record.keys() - {"stderr"}
    fields = [{name: record[name] for name in record if name != field} for field in read]
    typed = [record | {field: [[record[field]]]} for field in read]
    odd = [{"n": 3}, {"n": {"unit": ""}}, {"n": {"value": None}}]
    numbers = [record | {"numbers": each} for each in odd]
    return [{}, [], [record], None, 3, "a", *fields, *typed, *numbers]


def test_a_damaged_record_is_as_none(book, unrendered):
    run = Run(book.notebook("totals"), book=book)
    assert execute([run]) == []
    path = run.output.with_suffix(".json")
    whole = path.read_text()
    damaged = ["{", "\ud800", "[" * 100_000, '{"seconds": ' + "9" * 5_000 + "}"]
    for text in [*damaged, *map(json.dumps, spoiled(json.loads(whole)))]:
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        assert find_runs(book) == {}, text
        assert why_stale(run) == "not run yet"
    path.write_text(whole)
    (path.parent / "zzz.json").write_text("{}")
    assert list(find_runs(book)) == ["totals"]


def test_a_page_of_an_earlier_run_does_not_stand_for_that_of_a_sweep(pair, book, unrendered):
    for run in pair:
        run.output.with_name("index.html").write_text("of this run")
    (book.root / "lib" / "code.py").write_text("one = 2\n")
    sweep("totals", {"n": ["100"], "seed": ["2"]}, book=book)
    assert [run.output.with_name("index.html").exists() for run in pair] == [False, True]


def test_the_latest_run_stands_first(book):
    for folder, day in {"a": 1, "c": 3, "b": 2}.items():
        path = book.runs / folder / "sums.json"
        path.parent.mkdir(parents=True)
        path.with_suffix(".ipynb").touch()
        write_record(path, {"started": f"2026-11-0{day}T10:00:00+00:00"})
    assert list(find_runs(book)) == ["c", "b", "a"]


def test_a_text_is_one_parameter_in_the_list_whatever_it_holds(book):
    words = {"n": 4, "title": "a -p b"}
    run = {"changes": Run(book.notebook("sums"), values=words, book=book).changes}
    run |= {
        "notebook": "sums",
        "started": "2026-11-23T09:00",
        "seconds": 1,
        "numbers": {},
        "failed": False,
    }
    about = {"runs": {"a": run}, "pages": [], "others": []}
    page = rendering.TEMPLATES.get_template("runs.md").render(about)
    assert "<td>n 4, title &#39;a -p b&#39;</td>" in page


def test_where_all_records_are_damaged_the_list_says_that_there_is_none(book):
    (book.runs / "totals").mkdir(parents=True)
    (book.runs / "totals" / "totals.json").write_text("{}")
    assert show(book) == []
    assert "There is none yet" in (book.runs / "index.html").read_text()


def test_a_page_of_a_run_has_its_box_and_downloads(book):
    run = Run(book.notebook("totals"), values={"names": ["<b>", "x'y"]}, book=book)
    assert execute([run]) == []
    assert show(book, run) == []
    page = (run.output.parent / "index.html").read_text()
    assert "&lt;b&gt;" in page and "<b>'" not in page, "names from data are no HTML"
    assert "by a run of its own" in page
    source = run.output.parent / "downloads" / f"{run.page}-source.ipynb"
    assert nbformat.read(source, 4) == nbformat.read(book.notebook("totals"), 4)
