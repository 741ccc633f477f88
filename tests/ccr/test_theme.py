import dataclasses
import sys

import pytest

import lib.ccr.themes
from lib.ccr import generate, read
from lib.ccr.theme import FRIENDS, Draw, Node, Theme, counted, find_theme, themes
from lib.errors import InputError

NEW_THEME = '''
"""Lamps that light one another, a theme for this test."""

from lib.ccr.theme import Theme


class Lamps(Theme):
    name = "lamps_of_a_test"
    openings = ("Some lamps hang on one cable.",)
    closing = "Nothing else lights a lamp."

    def nodes(self, n, draw):
        return []

    def holds(self, own, text):
        return None


THEME = Lamps()
'''


def test_the_themes_of_the_benchmark_are_found():
    assert {"candy_party", "clinical_notes", "flower_garden", "flu_vaccine"} <= set(themes())
    assert find_theme("flu_vaccine") is find_theme(themes()["flu_vaccine"])


def test_one_more_file_is_one_more_theme(tmp_path, monkeypatch):
    (tmp_path / "lamps_of_a_test.py").write_text(NEW_THEME)
    monkeypatch.setattr(lib.ccr.themes, "__path__", [*lib.ccr.themes.__path__, str(tmp_path)])
    themes.cache_clear()
    try:
        assert find_theme("lamps_of_a_test").closing == "Nothing else lights a lamp."
    finally:
        themes.cache_clear()
        sys.modules.pop("lib.ccr.themes.lamps_of_a_test", None)


@pytest.mark.parametrize("last", ["THEME = Lamps", "THEMES = [Lamps()]"])
def test_a_file_without_a_theme_of_its_name_is_named(tmp_path, monkeypatch, last):
    (tmp_path / "lights.py").write_text(NEW_THEME.replace("THEME = Lamps()", last))
    monkeypatch.setattr(lib.ccr.themes, "__path__", [*lib.ccr.themes.__path__, str(tmp_path)])
    themes.cache_clear()
    try:
        with pytest.raises(InputError, match=r"lights\.py must be a theme with the name 'light"):
            themes()
    finally:
        themes.cache_clear()
        sys.modules.pop("lib.ccr.themes.lights", None)


def test_an_unknown_theme_is_refused():
    with pytest.raises(InputError, match=r"theme 'candy' is unknown: expected .*candy_party, "):
        find_theme("candy")
    with pytest.raises(InputError, match="a theme must be an object, not a class: found"):
        find_theme(type(find_theme("candy_party")))


@pytest.mark.parametrize("missing", ["name", "openings", "closing"])
def test_a_theme_must_state_its_attributes(missing):
    stated = {"name": "lamps", "openings": ("Some lamps hang on one cable.",), "closing": "So."}
    lamps = {"nodes": lambda self, n, draw: [], "holds": lambda self, own, text: None}
    theme = type("Lamps", (Theme,), {**stated, **lamps, missing: ""})()
    found = str([attribute for attribute in stated if attribute != missing])
    for use in (find_theme, generate, lambda theme: read("A rule.", "Is it?", theme)):
        with pytest.raises(InputError) as error:
            use(theme)
        assert (
            str(error.value) == f"theme Lamps must state its name, openings, closing: found {found}"
        )
    delattr(type(theme), missing)
    with pytest.raises(InputError, match="theme Lamps must state its name, openings, closing"):
        find_theme(theme)


def test_a_theme_that_tells_too_few_nodes_is_refused():
    class Lamps(type(find_theme("candy_party"))):
        def nodes(self, n, draw):
            return super().nodes(min(n, 4), draw)

    assert generate(Lamps(), [4], n_samples=1).contexts["text"].item()
    with pytest.raises(InputError, match="theme 'candy_party' must return 5 nodes: found 4"):
        _ = generate(Lamps(), [5], n_samples=1).contexts


@pytest.mark.parametrize("part", ["label", "true", "false", "own", "when_true", "when_false"])
def test_what_two_nodes_share_or_says_both_yes_and_no_is_refused(part):
    class Lamps(type(find_theme("candy_party"))):
        def nodes(self, n, draw):
            one, *others = super().nodes(n, draw)
            shared = {name: getattr(others[0], name) for name in ("label", "own", "when_true")}
            both = {"true": one.false, "false": one.true, "when_false": one.when_true}
            words = (shared | both)[part]
            return [dataclasses.replace(one, **{part: words}), *others]

    with pytest.raises(InputError, match="each label, clause or sentence of theme 'candy_"):
        _ = generate(Lamps(), [4], n_samples=1).contexts


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"openings": "A town."}, "openings of theme 'candy_party' must be a tuple; .*'A town.'"),
        ({"asides": "It rains."}, "asides of theme 'candy_party' must be a tuple"),
        ({"sentences": r"\w+\."}, "sentences of theme 'candy_party' must be a tuple"),
        (
            {"clauses": ("{} is", "{} is not", "Is {}?")},
            "clauses of .* must have 3 texts each: found '{} is'",
        ),
        ({"clauses": (("{} is", "{} is not"),)}, "clauses of .* must have 3 texts each"),
    ],
)
def test_a_mistake_in_a_theme_is_named(changed, rule):
    with pytest.raises(InputError, match=rule):
        generate(type("Parties", (type(find_theme("candy_party")),), changed)())


@pytest.mark.parametrize("part", ["when_true", "when_false", "asides"])
def test_a_node_must_list_its_sentences(part):
    lists = {"when_true": ["It rings."], "when_false": ["It does not."], "asides": ()}
    assert Node("Ash", "it rings", "it does not ring", "Does it ring?", "so", **lists)
    for wrong in ("It rings.", *([()] if part != "asides" else [])):
        with pytest.raises(InputError, match=f"node 'Ash' must list its sentences in {part}"):
            Node("Ash", "it rings", "it does not ring", "Does it?", "so", **lists | {part: wrong})


def test_what_is_drawn_is_fixed_by_seed_name_and_order():
    def drawn(seed, name):
        draw = Draw(seed, name)
        return [draw.integer(0, 999), draw.some(range(50), 5), draw.people(4), draw.one("abcdef")]

    assert drawn(1, "a story") == drawn(1, "a story")
    assert drawn(1, "a story") != drawn(2, "a story")
    assert drawn(1, "a story") != drawn(1, "another story")


def test_every_number_of_a_range_is_drawn_and_no_other():
    draw = Draw(0, "dice")
    rolls = [draw.integer(1, 6) for _ in range(600)]
    assert set(rolls) == {1, 2, 3, 4, 5, 6}
    # 100 ± 5 standard deviations of a binomial with n = 600, p = 1/6
    assert all(abs(rolls.count(face) - 100) < 46 for face in range(1, 7))


def test_some_are_different_and_as_many_as_asked_for():
    draw = Draw(0, "cards")
    for _ in range(20):
        hand = draw.some(range(52), 7)
        assert len(set(hand)) == 7 and set(hand) <= set(range(52))


@pytest.mark.parametrize("n", [1, 40, 41, 1_600, 5_000])
def test_every_friend_has_a_name_of_their_own(n):
    assert len(set(Draw(0, "friends").people(n))) == n


def test_no_first_name_begins_another():
    assert not [(a, b) for a in FRIENDS for b in FRIENDS if a != b and b.startswith(a)]


def test_too_many_people_are_refused():
    with pytest.raises(InputError, match="a story must have at most 60,880 people: found 60881"):
        Draw(0, "a crowd").people(60_881)


def test_numbers_and_nouns_agree():
    assert [counted(n, "day") for n in (0, 1, 2)] == ["0 days", "1 day", "2 days"]
    assert counted(2, "candy", "candies") == "2 candies"
