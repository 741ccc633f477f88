"""What the course kit sends teachers to is there."""

import re
import shlex

import pytest

from lib import ROOT
from lib.book.editions import BOOK, Run
from lib.book.parameters import read_notebook, read_parameters
from lib.ccr import generate

COURSE = (ROOT / "book" / "course.md").read_text(encoding="utf-8")
SESSIONS = re.split(r"^## Session ", COURSE, flags=re.MULTILINE)[1:]
LINK = re.compile(r"\[[^\]]+\]\(executed/default/(\w+)\.ipynb\)([^\[]*)")

#: Commands of the homework.
ONE_LINE = COURSE.replace("\\\n", "")
HOMEWORK = re.findall(r"^\$ python -m lib run (.*)$", ONE_LINE, re.MULTILINE)

#: A command's first words → a recorded number of its page → what it is, how far that may be from
#: it, and how the answer to the homework says so.
ANSWERS = {
    "worlds -p n_samples": {"effect_at_the_end": (-15_000, 1_500, "about −15 000 dollars")},
    "theory -p heterogeneity": {
        name: (12_000, 0.5, "all four averages are 12 000") for name in ("ate", "att", "atu", "ato")
    },
    "theory -p chance_without": {
        "ate": (12_000, 0.5, "over everybody stays at 12 000"),
        "att": (14_854, 0.5, "on the treated rises to 14 854"),
    },
    "effect_data -p horizon": {"ceiling_of_r2": (0.5, 0.05, "the ceiling of R² is about one half")},
    "coverage -p overlaps": {
        "coverage_ipw_true": (40, 7, "hold the truth in about 40 % of the studies"),
        "coverage_aipw": (40, 7, "hold the truth in about 40 % of the studies"),
        "coverage_ipww_ato": (85, 7, "for *their* average in about 85 %, each ± 7"),
    },
    "exact_quantities -p n_per_bcc": {"global_pns": (0.000415, 5e-7, "and leaf is 0.000415;")},
    "task_generation -p theme": {
        "accuracy_ignores_the_intervention": (
            90,
            0.5,
            "ignores every intervention is right on 90 %",
        )
    },
    "evaluation -p rate": {
        "mean_rae_noisy": (0.2, 0.03, "error of the global effect is about 0.2")
    },
}


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


def test_all_homework_has_an_answer_that_is_tried():
    assert [" ".join(shlex.split(command)[:3]) for command in HOMEWORK] == [*ANSWERS]


@pytest.mark.parametrize("command", HOMEWORK, ids=lambda command: " ".join(command.split()[:3]))
def test_answers_to_homework_are_what_its_commands_give(executed, command):
    name, *words = shlex.split(command)
    typed = dict(zip(words[1::3], words[2::3], strict=True))
    values = Run(BOOK.notebook(name), values=typed, as_text=True).values
    record, _ = executed(BOOK.notebook(name), values)
    for number, (value, reach, said) in ANSWERS[" ".join([name, *words[:2]])].items():
        assert record["numbers"][number]["value"] == pytest.approx(value, abs=reach), number
        assert said in COURSE.replace("\u202f", " ").replace("\n", " "), said
