"""What the course kit sends teachers to is there."""

import re

import pytest

from lib import ROOT
from lib.book.editions import BOOK
from lib.book.parameters import read_notebook, read_parameters
from lib.ccr import generate

COURSE = (ROOT / "book" / "course.md").read_text(encoding="utf-8")
SESSIONS = re.split(r"^## Session ", COURSE, flags=re.MULTILINE)[1:]
LINK = re.compile(r"\[[^\]]+\]\(executed/default/(\w+)\.ipynb\)([^\[]*)")


def cells(page):
    return read_notebook(BOOK.notebook(page))[0].cells


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session[0])
def test_figures_are_on_the_pages_that_are_named(session):
    told = re.search(r"^\*\*Figures\.\*\* (.*)", session, re.MULTILINE)[1]
    linked = r"\(executed/default/(\w+)\.ipynb#([^)]*)\)"
    shown = {page for page, _ in re.findall(linked, told)}
    assert shown and shown == {page for page, _ in LINK.findall(told)}
    for page, name in re.findall(linked, session):
        drawn = [cell.metadata.get("mystnb", {}).get("figure", {}) for cell in cells(page)]
        assert name in {figure.get("name") for figure in drawn}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session[0])
def test_exercises_of_a_sheet_are_of_the_kind_that_is_said(session):
    told = re.search(r"^\*\*Exercise sheet\.\*\* (.*)", session, re.MULTILINE)[1]
    for page, text in LINK.findall(told):
        text = text.split(".")[0]
        asked = "\n".join(cell.source for cell in cells(page) if cell.cell_type == "markdown")
        kinds = dict(re.findall(r"^\*\*(\d+)\.[^*]*\*\* \*\(([a-z-]+)\)\*", asked, re.MULTILINE))
        said = re.findall(r"(\d+)(?: (?:and|to) (\d+))?(?: \(([a-z-]+)\))?", text)
        assert said, f"no exercise of {page} is named"
        for first, last, kind in said:
            for number in range(int(first), int(last or first) + 1):
                assert str(number) in kinds, f"{page} has no exercise {number}"
                assert kind in ("", kinds[str(number)])


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session[0])
def test_what_is_solved_in_class_is_not_on_the_sheet(session):
    told = re.search(r"^\*\*Exercise sheet\.\*\* (.*)", session, re.MULTILINE)[1]
    solved = r"^\|.*\(executed/default/(\w+)\.ipynb\).*\(exercise (\d) of the page\)"
    for page, number in re.findall(solved, session, re.MULTILINE):
        assert number not in re.findall(r"\d", dict(LINK.findall(told))[page].split("(")[0])


def test_a_language_model_at_home_is_asked_as_many_prompts_as_are_said():
    names = ("theme", "n_per_bcc", "n_tasks", "n_samples", "least_pns", "seed")
    given = read_parameters(read_notebook(BOOK.notebook("evaluation"))[1].source)
    setting = {name: given[name].default for name in names}
    few = generate(**setting | {"n_tasks": 1, "n_samples": 5})
    all_of_them = len(few) * setting["n_tasks"] * setting["n_samples"] // 5
    said = f"make {all_of_them // 1_000}\u202f000 of them; with `-p n_tasks 1 -p n_samples 5` "
    assert said + f"there are {len(few)}." in COURSE


def test_students_who_run_a_program_in_class_have_a_computer():
    (row,) = re.findall(r"^\| a computer for each pair of students, ([^|]*)", COURSE, re.MULTILINE)
    for session in SESSIONS[:2]:
        runs = re.search(r"^\| \d+–\d+ \| In pairs: .*\brun\b", session, re.MULTILINE)
        assert bool(runs) == (f"in session {session[0]}," in row)
