"""What the course kit sends teachers to is there."""

import re
import shlex

import numpy as np
import pytest

from lib import ROOT
from lib.book.editions import BOOK, Run
from lib.book.parameters import read_notebook, read_parameters
from lib.book.recorded import recorded
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
    "worlds -p n_samples": {"average_effect": (-15_000, 1_500, "about −15 000 dollars")},
    "theory -p heterogeneity": {
        name: (12_000, 0.5, "all four averages are 12 000") for name in ("ate", "att", "atu", "ato")
    },
    "theory -p chance_without": {
        "ate": (12_000, 0.5, "over everybody stays at 12 000"),
        "att": (14_854, 0.5, "on the treated rises to 14 854"),
        "ato": (14_345, 0.5, "in the overlap rises to 14 345"),
        "atu": (10_017, 0.5, "on the untreated falls from 10 200 to 10 017"),
    },
    "effect_data -p horizon": {"ceiling_of_r2": (0.5, 0.05, "the ceiling of R² is about one half")},
    "coverage -p overlaps": {
        # To one study of the forty, which the last digits of another machine may move.
        "coverage_ipw_true": (40, 2.6, "hold the truth in about 40 % of the studies"),
        "coverage_aipw": (32.5, 2.6, "for everybody in the two arms, hold it in about a third"),
        "coverage_ipww_ato": (
            85,
            2.6,
            "for *their* average, in about 85 %. From 40 studies one knows",
        ),
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


def test_the_boards_of_the_written_session_follow_from_its_table():
    session = next(one for one in SESSIONS if one.startswith("2:"))
    rows = re.findall(r"^\| with\w*(?: support)?((?: \| \d+){4}) \|$", session, re.MULTILINE)
    cells = np.array([re.findall(r"\d+", row) for row in rows], float).reshape(2, 2, 2)
    people, income = cells[:, ::-1, 0], cells[:, ::-1, 1]  # by support, and by studies: no, yes
    effects, chances = np.diff(income)[:, 0], people[:, 1] / people.sum(axis=1)
    seen = np.subtract(*np.average(income, axis=0, weights=people)[::-1])
    averages = {
        name: np.average(effects, weights=weights)
        for name, weights in {
            "ATE": [1, 1],
            "ATT": people[:, 1],
            "ATU": people[:, 0],
            "ATO": chances * (1 - chances),
        }.items()
    }
    with_a_hole = income[0, 1] - income[:, 0].mean()  # nobody without support studies
    found = [seen, seen - averages["ATT"], *averages.values(), with_a_hole]
    assert found == pytest.approx([18.6, 4.8, 12, 13.8, 10.2, 12, 19])
    for told in (
        "The difference is 18.6.",
        "a difference of 4.8 is still seen",
        "The average effect is 12. The average over those who studied is 13.8.",
        "/50 = 10.2$",
        r"so the ATO is $\tfrac12 \cdot 15 + \tfrac12 \cdot 9 = 12$",
        "So it finds $63 - 44 = 19$.",
    ):
        assert told in session


def test_minutes_of_a_session_follow_each_other_and_end_at_90():
    for session in SESSIONS:
        spans = re.findall(r"^\| (\d+)–(\d+) \|", session, re.MULTILINE)
        starts, ends = zip(*spans, strict=True)
        assert (starts[0], ends[-1]) == ("0", "90") and starts[1:] == ends[:-1]


def test_what_is_shown_in_the_written_session_is_in_the_order_of_its_minutes():
    session = next(one for one in SESSIONS if one.startswith("2:"))
    minutes, rest = session.split("**The hundred people.**")
    shown = re.findall(r"#(fig-[\w-]+)", minutes)
    assert shown == [name for name in re.findall(r"#(fig-[\w-]+)", rest) if name in shown]
    heads = ["Board 1", "Board 2", "question for the room", "Four averages", "Board 3"]
    heads += ["votes", "a job and a club", "worlds"]
    for text in (minutes, re.sub(r"^[^*\n].*", "", rest, flags=re.MULTILINE)):
        places = [text.lower().index(head.lower()) for head in heads]
        assert places == sorted(places)


def test_prompts_on_paper_are_changed_by_their_intervention_as_often_as_is_said():
    notebook, cell = read_notebook(BOOK.notebook("error_test"))
    (golden,) = (one.source for one in notebook.cells if "golden = generate" in one.source)
    changed = {}
    for theme in ("candy_party", "flower_garden", "flu_vaccine", "clinical_notes"):
        named = {"theme": theme, "seed": read_parameters(cell.source)["seed"].default}
        exec(golden.partition("\nfor task")[0], names := {"generate": generate, **named})
        changed[theme] = []
        for task in names["golden"].tasks:
            place = -task.number - 1
            effect = task.questions["effect"].iloc[place]
            seen = task.world.values(task.noise)[effect]
            changed[theme].append(bool(task.labels[place, 0] != seen[0]))
    assert changed["flower_garden"] == [True] * 3
    assert changed["clinical_notes"] == [True, False, False]
    assert not any(changed["candy_party"] + changed["flu_vaccine"])


def test_a_language_model_at_home_is_asked_as_many_prompts_as_are_said():
    names = ("theme", "n_per_bcc", "n_tasks", "n_samples", "least_pns", "seed")
    given = read_parameters(read_notebook(BOOK.notebook("evaluation"))[1].source)
    setting = {name: given[name].default for name in names}
    few = generate(**setting | {"n_tasks": 1, "n_samples": 5})
    all_of_them = len(few) * setting["n_tasks"] * setting["n_samples"] // 5
    said = f"make {all_of_them // 1_000}\u202f000 of them; with `-p n_tasks 1 -p n_samples 5` "
    assert said + f"there are {len(few)}." in COURSE


def test_the_answers_to_the_votes_are_on_every_trouble_of_the_chapter():
    session = next(one for one in SESSIONS if one.startswith("4:"))
    table = session.split("| trouble |")[1].split("\n\n")[0]
    asked = "\n".join(cell.source for cell in cells("stress_tests"))
    sections = re.findall(r"^## (.+)$", asked, re.MULTILINE)
    troubles = sections[1 : sections.index("All of it in one table")]
    assert re.findall(r"^\| ([A-Z][^|]+) \|", table, re.MULTILINE) == troubles


def test_figures_of_troubles_are_from_as_many_studies_as_is_said():
    n_studies = read_parameters(read_notebook(BOOK.notebook("stress_tests"))[1].source)["n_studies"]
    (kept,) = recorded("stress_tests", "changes").values()
    assert (n_studies.default, kept.attrs["parameters"]["n_studies"]) == (6, 60)
    assert "figures are from six studies" in COURSE and "is from sixty larger studies" in COURSE


def test_shares_of_six_hundred_studies_are_those_that_were_recorded():
    (kept,) = recorded("coverage", "averages").values()
    assert kept.attrs["parameters"]["n_studies"] == 600
    named = kept[kept["γ"] == 1].set_index("estimator")
    shares = named.loc[["ipw-true", "aipw", "ipww-ato"], "coverage"]
    assert "The 600 studies of the chapter's recorded run" in COURSE
    assert "have {:.0f} %, {:.0f} % and {:.0f} %: the forty".format(*100 * shares) in COURSE


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
