"""The page on speed shows what was measured, and the ways that are compared do the same work."""

import contextvars
import json
import re
import sys
from concurrent.futures import Executor, Future

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from lib import ROOT
from lib.__main__ import commands


@pytest.fixture(scope="module")
def compare():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        import compare

        yield compare
        for name in ("compare", "measuring"):
            sys.modules.pop(name, None)


@pytest.fixture
def kept(compare):
    return json.loads(compare.MEASURED.read_text(encoding="utf-8"))


@pytest.fixture
def small(compare, monkeypatch):
    """The same work, but for its size."""
    for name, size in {"TABLE": 2_000, "ROWS": 20_000, "FEW": 500, "STUDIED": 400}.items():
        monkeypatch.setattr(compare, name, size)
    return compare


class Here(Executor):
    """A process of its own, in this one."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def test_the_page_is_made_of_what_was_kept(compare, kept):
    assert compare.PAGE.read_text(encoding="utf-8") == compare.rendered(kept)


def test_every_way_that_is_installed_was_measured_and_did_the_same(compare, kept):
    wanted = {
        (name, way)
        for name, piece in compare.PIECES.items()
        for way in piece.ways
        if compare.library(way) not in kept["left out"]
    }
    assert {(row["piece"], row["way"]) for row in kept["rows"]} == wanted
    for row in kept["rows"]:
        assert len(row["CPU seconds"]) == kept["repeats"] >= 5
        assert all(seconds > 0.01 for seconds in row["CPU seconds"]), "too short to measure"
        comparable = compare.PIECES[row["piece"]].same and row["way"] != compare.OURS
        assert ("same" in row) == bool(comparable)
        if comparable:
            assert row["same"]["apart"] <= row["same"]["most"]
    packages = {compare.PACKAGES[name] for name in compare.PACKAGES.keys() - kept["left out"]}
    assert packages < kept["versions"].keys()


def test_what_was_kept_names_no_place_and_no_machine(compare):
    text = compare.MEASURED.read_text(encoding="utf-8")
    assert not re.search(r"(?<!\w)/\w+/", text)
    assert len(text) < 20_000


def test_numbers_of_the_page_are_those_of_the_rows(compare, kept):
    kept["rows"] = [row for row in kept["rows"] if row["piece"] == "doing"]
    kept["rows"][0] |= {"amount": 1_000, "CPU seconds": [1.0, 2.0, 4.0, 5.0, 8.0]}
    kept["rows"][1] |= {"amount": 1_000, "CPU seconds": [2.0, 4.0, 8.0, 15.0, 16.0]}
    page = compare.rendered(kept)
    cells = [
        [cell.get_text() for cell in row.select("th, td")]
        for row in BeautifulSoup(page, "html.parser").select("tr")
    ]
    assert cells[1][1:] == ["this book", "250", "125", "1\u202f000"]
    assert "2.0 times as fast as DoWhy, 2.0 to 3.0 in single turns." in page
    kept["rows"][1]["CPU seconds"][0] = 0.5
    said = "0.50 to 3.0 times as fast as DoWhy, depending on the turn."
    assert said in compare.rendered(kept)


def test_what_is_not_installed_is_left_out_and_named(compare, kept, monkeypatch):
    monkeypatch.setitem(compare.PACKAGES, "DoWhy", "a-package-that-nobody-has")
    assert "DoWhy" in compare.left_out() and "EconML" not in compare.left_out()
    way = lambda: lambda: (10, lambda: None)  # noqa: E731
    ways = {compare.OURS: way, "DoWhy": way, "numpy (by rows)": way}
    monkeypatch.setitem(compare.PIECES, "light", compare.Piece("A", "b", "C.", ways))
    pools = dict.fromkeys(compare.libraries(), Here())
    rows = list(compare.measured("light", pools, 3))
    assert [row["way"] for row in rows] == [compare.OURS, "numpy (by rows)"]
    kept["rows"] = [row for row in kept["rows"] if row["way"] != "DoWhy"]
    kept["left out"] = ["DoWhy"]
    page = compare.rendered(kept)
    assert "Not installed, and therefore left out: DoWhy." in page
    assert "as fast as DoWhy" not in page


def test_ways_take_turns_after_each_was_tried_once(compare, monkeypatch):
    done = []

    def way(name):
        def work():
            done.append(name)
            return 1, lambda: np.array([float(len(name))])

        return lambda: work

    ways = {compare.OURS: way("one"), "EconML": way("three")}
    piece = compare.Piece("A", "b", "C.", ways, compare.same_numbers)
    monkeypatch.setitem(compare.PIECES, "light", piece)
    mine, theirs = compare.measured("light", dict.fromkeys(compare.libraries(), Here()), 3)
    assert done == ["one", "three"] * 4
    assert len(mine["CPU seconds"]) == len(theirs["CPU seconds"]) == 3
    assert theirs["same"]["apart"] == 2 > theirs["same"]["most"], "another result was not seen"


@pytest.mark.parametrize("do", [{}, {"x3": 2.0}], ids=["seen", "done"])
def test_programs_of_ones_own_draw_from_the_same_distribution(small, do):
    ours = small.our_draw(do)()[1]()
    for way in (small.row_by_row, small.column_by_column):
        found = small.same_distribution(ours, way(do)()[1]())
        assert found.apart <= found.most
    if do:
        assert ours[1][3] == 2.0 and ours[2][3, 3] == 0


@pytest.mark.parametrize("wrong", ["mean", "spread", "slope"])
def test_another_distribution_is_seen(compare, wrong):
    rng = np.random.default_rng(4)

    def drawn(n, **changed):
        given = {"mean": 0.0, "spread": 1.0, "slope": 0.5} | changed
        cause = rng.normal(given["mean"], given["spread"], n)
        return pd.DataFrame({"x": cause, "y": given["slope"] * cause + rng.normal(size=n)})

    ours = compare.moments(drawn(50_000))
    same = compare.same_distribution(ours, compare.moments(drawn(20_000)))
    assert same.apart <= same.most
    changed = {wrong: {"mean": 0.1, "spread": 1.1, "slope": 0.6}[wrong]}
    other = compare.same_distribution(ours, compare.moments(drawn(20_000, **changed)))
    assert other.apart > other.most


@pytest.mark.parametrize("kind", ["TLearner", "XLearner"])
def test_learners_are_those_of_econml(small, kind):
    # In a context of its own, because here nothing is to be read from disk.
    ours, theirs = (
        contextvars.copy_context().run(lambda way=way: way(kind, "ridge")()[1]())
        for way in (small.our_learner, small.econml_learner)
    )
    assert ours.shape == (400,) and ours.std() > 0.5
    found = small.same_numbers(ours, theirs)
    assert found.apart <= found.most
    assert small.same_numbers(ours, theirs * 1.001).apart > found.most


def test_prompts_without_an_answer_do_not_count(compare):
    amount, length = compare.told([("four", 1), ("to", "no"), ("a prompt", None)])
    assert (amount, length()) == (2, 3.0)
    amount, length = compare.our_prompts(2, 1)()
    assert amount > 4 and length() > 500


def test_the_page_is_built_by_a_command_that_there_is(compare, monkeypatch, tmp_path):
    typed = []
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(compare.subprocess, "run", lambda words, **_: typed.extend(words))
    compare.page()()
    _, _, _, name, *options = map(str, typed)  # python -m lib book …
    assert commands.commands[name].make_context(name, options).params["edition"].endswith(".yml")
