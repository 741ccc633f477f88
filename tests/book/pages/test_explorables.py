"""Figures that a reader can move say what the library says, and stand still without a script."""

import itertools
import re

import numpy as np
import pytest

from lib import ROOT
from lib.ccr.brute_force import enumerated_quantities
from lib.ccr.graphs import Chain
from lib.ccr.worlds import World

ASSETS = ROOT / "book" / "assets"
FIGURES = {path.stem: path for path in sorted((ASSETS / "explorables").glob("*.svg"))}


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    figures = "".join(
        f'<figure class="explorable" data-explorable="{name}"><div class="drawn"></div></figure>'
        for name in FIGURES
    )
    script = (ASSETS / "explore.js").read_text(encoding="utf-8")
    page.set_content(f"<article>{figures}</article><script>{script}</script>")
    page.add_style_tag(path=ASSETS / "book.css")
    page.add_style_tag(content="body { font-family: sans-serif; }")
    page.wait_for_selector("output")
    yield page
    page.close()


def found(page, name):
    """What a figure computes for its values of now."""
    return page.eval_on_selector(f"[data-explorable={name}]", "figure => figure.found")


def move(page, name, slider, value):
    page.locator(f"[data-explorable={name}] input[name={slider}]").fill(f"{value:g}")


def said(page, name):
    return page.locator(f"[data-explorable={name}] output").inner_text()


@pytest.mark.parametrize("name", FIGURES)
def test_still_is_what_the_script_draws_first(page, name):
    drawn = page.evaluate("name => EXPLORABLES[name].draw(first(name)).drawn", name)
    assert FIGURES[name].read_text(encoding="utf-8") == drawn + "\n"
    assert "button" not in drawn, "without a script nothing can be clicked"


def test_every_figure_is_on_the_page():
    text = (ROOT / "book" / "explorables.md").read_text(encoding="utf-8")
    for name in FIGURES:
        assert f'data-explorable="{name}"' in text
        assert f":file: assets/explorables/{name}.svg" in text


@pytest.mark.parametrize("withsupport, without, support", [(0.8, 0.2, 8000), (0.3, 0.6, 5000)])
def test_confounding_is_that_of_the_introductions_world(page, withsupport, without, support):
    chances = {"withSupport": withsupport, "without": without, "support": support, "studies": 9000}
    for slider, value in chances.items():
        move(page, "confounding", slider, value)
    chance = np.random.default_rng(1)
    helped = chance.random(400_000) < 0.5
    studied = chance.random(400_000) < np.where(helped, withsupport, without)
    income = 9_000 * studied + support * helped
    seen = income[studied].mean() - income[~studied].mean()
    assert found(page, "confounding")["done"] == 9_000
    assert found(page, "confounding")["seen"] == pytest.approx(seen, abs=60)
    move(page, "confounding", "support", 0)
    assert found(page, "confounding")["seen"] == 9_000
    assert "seeing equals doing" in said(page, "confounding")


@pytest.mark.parametrize("name", ["confounding", "overlap"])
def test_every_label_is_in_the_drawing_whatever_is_moved(page, name):
    cut = """name => {
      const figure = document.querySelector(`[data-explorable=${name}]`);
      const width = figure.querySelector("svg").viewBox.baseVal.width;
      return [...figure.querySelectorAll("svg text")].filter(one => {
        const {x, width: own} = one.getBBox();
        return x < -0.5 || x + own > width + 0.5;
      }).map(one => one.textContent);
    }"""
    sliders = page.locator(f"[data-explorable={name}] input")
    ends = [(one.get_attribute("min"), one.get_attribute("max")) for one in sliders.all()]
    for values in itertools.product(*ends):
        for slider, value in zip(sliders.all(), values, strict=True):
            slider.fill(value)
        assert page.evaluate(cut, name) == [], values


def test_what_a_slider_says_is_heard_as_it_is_read(page):
    slider = page.locator("[data-explorable=overlap] input[name=size]")
    move(page, "overlap", "size", 4)
    assert slider.get_attribute("aria-valuetext") == "10\u202f000"


@pytest.mark.parametrize("gamma, size", [(0, 3), (1.0, 3.5)])
def test_overlap_is_worth_what_a_simulation_finds(page, gamma, size):
    move(page, "overlap", "gamma", gamma)
    move(page, "overlap", "size", size)
    n, chance = round(10**size), np.random.default_rng(1)
    e = 1 / (1 + np.exp(-gamma * chance.standard_normal((600, n))))
    studied = chance.random(e.shape) < e
    income = 20_000 * chance.standard_normal(e.shape)
    weights = studied / e, (1 - studied) / (1 - e)
    means = [(w * income).sum(axis=1) / w.sum(axis=1) for w in weights]
    worth = weights[0].sum(axis=1).mean() ** 2 / (weights[0] ** 2).sum(axis=1).mean()
    assert found(page, "overlap")["error"] == pytest.approx((means[0] - means[1]).std(), rel=0.1)
    assert found(page, "overlap")["worth"] == pytest.approx(worth, rel=0.05)
    assert found(page, "overlap")["lottery"] == pytest.approx(40_000 / n**0.5, rel=1e-3)


def test_the_question_on_overlap_is_answered_by_the_formula_that_is_drawn(page):
    text = (ROOT / "book" / "explorables.md").read_text(encoding="utf-8").replace("\u202f", "")
    needed = int(re.search(r"times as many people, about (\d+)\.", text)[1])
    move(page, "overlap", "gamma", 2)
    move(page, "overlap", "size", 3)
    one = found(page, "overlap")
    # Four times the people halve an error.
    assert needed == pytest.approx(1_000 * (one["error"] / one["lottery"]) ** 2, rel=0.01)


def test_formulas_of_overlap_are_limits_for_many_people(page):
    move(page, "overlap", "gamma", 3)
    move(page, "overlap", "size", 3)
    chance = np.random.default_rng(1)
    e = 1 / (1 + np.exp(-3 * chance.standard_normal((600, 1_000))))
    weights = (chance.random(e.shape) < e) / e
    worth = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1)
    assert np.median(worth) > 5 * found(page, "overlap")["worth"]
    means = (weights * 20_000 * chance.standard_normal(e.shape)).sum(axis=1) / weights.sum(axis=1)
    assert np.median(20_000 / np.sqrt(worth)) < 0.8 * means.std(), "an interval is too short"


def test_rungs_agree_with_brute_force(page):
    world = World(
        Chain([3, 3], ["cycle", "cycle"]),
        ["or", "or", "and", "or", "and"],
        [0.5, 0.4, 0.8, 0.4, 0.7],
    )
    exact = enumerated_quantities(world)["ATE"]
    states = np.array(list(itertools.product([False, True], repeat=5))).T
    p = np.array(world.probabilities)[:, None]
    weights = np.where(states, p, 1 - p).prod(axis=0)
    for cause in range(4):
        page.locator(f"[data-cause='{cause}']").press("Enter")
        assert page.evaluate("document.activeElement.dataset.cause") == str(cause)
        one = found(page, "rungs")
        arms = (world.values(states, do={cause: value})[4] for value in (True, False))
        expected = np.subtract(*(weights @ arm for arm in arms))
        assert one["done"] == pytest.approx(expected)
        assert expected == pytest.approx(exact.get((cause, 4), expected))
        here = [bool(node) for node in one["here"]]
        noise = page.evaluate("first('rungs').noise")
        column = np.array(noise)[:, None]
        assert world.values(column)[:, 0].tolist() == here
        there = world.values(column, do={cause: not here[cause]})[:, 0]
        assert [bool(node) for node in one["there"]] == there.tolist()
    gaps, of = {}, {}
    for cause in (0, 2, 3, 1):
        page.locator(f"[data-cause='{cause}']").click()
        of[cause] = found(page, "rungs")["done"]
        gaps[cause] = found(page, "rungs")["seen"] - of[cause]
    assert (gaps[0], gaps[2]) == pytest.approx((0, 0)), "nothing confounds the root or a cutpoint"
    assert min(gaps[1], gaps[3]) > 0.1
    assert of[0] / of[2] == pytest.approx(exact[0, 2])
    page.get_by_role("button", name="Another subject").click()
    assert "Imagined: with B" in said(page, "rungs")
