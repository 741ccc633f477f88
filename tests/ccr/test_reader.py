"""The reader against prompts written and answered by hand: no generator takes part."""

import pytest

from lib.ccr.reader import read
from lib.ccr.theme import find_theme
from lib.errors import InputError

RULES = {
    "if and only if": (
        "Ines and her guests meet. Ines is happy if and only if Ines gets at least 4 candies. "
        "Hugo is happy if and only if all of the following hold: (a) Hugo gets at least 2 candies; "
        "(b) Ines is happy. Rosa is happy if and only if at least one of the following holds: "
        "(a) Rosa gets at least 6 candies; (b) Ines is happy; (c) Hugo is happy."
    ),
    "exactly when": (
        "Ines is happy exactly when Ines gets at least 4 candies. Hugo is happy exactly when every "
        "one of these statements is true: (a) Hugo gets at least 2 candies; (b) Ines is happy. "
        "Rosa is happy exactly when one or more of these statements are true: (a) Rosa gets at "
        "least 6 candies; (b) Ines is happy; (c) Hugo is happy."
    ),
    "whenever, and only then": (
        "It is the case that Ines is happy whenever Ines gets at least 4 candies, and only then. "
        "It is the case that Hugo is happy whenever all of these conditions are met together, and "
        "only then: (a) Hugo gets at least 2 candies; (b) Ines is happy. It is the case that Rosa "
        "is happy whenever any of these conditions is met, and only then: (a) Rosa gets at least 6 "
        "candies; (b) Ines is happy; (c) Hugo is happy."
    ),
}
DO = (
    "Suppose that, regardless of all other circumstances, {}, while every other rule and every "
    "fact stays as told. In that case: ",
    "Now imagine an intervention: {}, whatever the rules say. After the intervention: ",
    "Someone steps in and sees to it that {}, no matter what. With that done: ",
)


@pytest.mark.parametrize("form", RULES)
@pytest.mark.parametrize(
    ("candies", "happy"),
    [
        ((4, 2, 0), (1, 1, 1)),
        ((3, 2, 0), (0, 0, 0)),
        ((4, 1, 0), (1, 0, 1)),
        ((0, 0, 6), (0, 0, 1)),
    ],
)
def test_things_as_they_are(form, candies, happy):
    got = zip(("Ines", "Hugo", "Rosa"), candies, strict=True)
    told = " ".join(f"{name} gets {number} candies." for name, number in got)
    context = f"{RULES[form]}\n\n{told}"
    answers = tuple(read(context, f"Is {name} happy?") for name in ("Ines", "Hugo", "Rosa"))
    assert answers == happy


@pytest.mark.parametrize("form", RULES)
@pytest.mark.parametrize("do", DO)
def test_things_as_they_would_be(form, do):
    context = f"{RULES[form]}\n\nInes gets 1 candy. Hugo gets 1 candy. Rosa gets 0 candies."
    assert read(context, do.format("Ines is happy") + "Is Rosa happy?") == 1
    assert read(context, do.format("Ines is happy") + "Is Hugo happy?") == 0
    assert read(context, do.format("Hugo is happy") + "Is Rosa happy?") == 1
    assert read(context, do.format("Hugo is happy") + "Is Ines happy?") == 0
    assert read(context, do.format("Rosa is not happy") + "Is Rosa happy?") == 0


def test_rules_in_any_order_and_a_name_within_another():
    context = (
        "Rosa is happy if and only if Ines-Rosa is happy. Ines-Rosa is happy if and only if "
        "Ines-Rosa gets at least 5 candies.\n\nInes-Rosa gets 5 candies. Rosa gets 0 candies."
    )
    assert read(context, "Is Rosa happy?") == 1


def test_the_catalogue_of_the_text_decides():
    """Here cobalt is a red."""
    context = (
        "The catalogue: shades of red are cobalt and ruby; shades of blue are azure and navy. "
        "Rosa is delighted if and only if Rosa's flowers bloom in a shade of {}.\n\n"
        "Rosa wears navy gloves. Rosa's flowers bloom in cobalt."
    )
    assert read(context.format("red"), "Is Rosa delighted?") == 1
    assert read(context.format("blue"), "Is Rosa delighted?") == 0


def test_days_of_other_symptoms_and_of_other_people_do_not_count():
    context = (
        "Hugo gets the flu shot exactly when Hugo had a fever for at least 3 days last winter.\n\n"
        "Last winter, Hugo had a rash for 9 days. Last winter, Rosa had a fever for 9 days. {}"
    )
    question = "Does Hugo get the flu shot?"
    assert read(context.format("Last winter, Hugo never had a fever."), question) == 0
    assert read(context.format("Last winter, Hugo had a fever for 1 day."), question) == 0
    assert read(context.format("Last winter, Hugo had a fever for 3 days."), question) == 1


def test_a_code_counts_only_in_its_own_kind_of_entry():
    context = (
        "The pain is significant if and only if the pain rating is at least 5 out of 10. The "
        "surgeon recommends surgery if and only if all of the following hold: (a) the patient "
        "carries allele A100; (b) the pain is significant.\n\nThe pain rating is 5 out of 10. "
        "The patient {} A100. The patient once underwent procedure A100. "
        "The patient carries allele A1000."
    )
    question = "Does the surgeon recommend surgery?"
    assert read(context.format("carries allele"), question) == 1
    assert read(context.format("does not carry allele"), question) == 0
    with pytest.raises(InputError, match="decides 'the patient carries allele A100'"):
        read(context.format("does not carry allele A1001. The patient has"), question)
    painless = DO[0].format("the pain is not significant") + question
    assert read(context.format("carries allele"), painless) == 0


def test_a_theme_can_be_named():
    context = "Rosa is happy if and only if Rosa gets at least 1 candies. Rosa gets 1 candy."
    assert read(context, "Is Rosa happy?", "candy_party") == 1
    assert read(context, "Is Rosa happy?", find_theme("candy_party")) == 1
    with pytest.raises(InputError, match="no theme recognises the question 'Is Rosa happy\\?'"):
        read(context, "Is Rosa happy?", "flu_vaccine")


@pytest.mark.parametrize(
    ("context", "question", "message"),
    [
        ("", "Is it raining?", "no theme recognises the question 'Is it raining?'"),
        (RULES["exactly when"], "Is Emil happy?", "the context has no rule for 'Emil is happy'"),
        (
            RULES["exactly when"],
            DO[1].format("Emil is happy") + "Is Rosa happy?",
            "the context has no rule for 'Emil is happy'",
        ),
        (
            RULES["exactly when"] + "\n\nInes gets 1 candy. Rosa gets 2 candies.",
            "Is Rosa happy?",
            "no fact and no rule of the context decides 'Hugo gets at least 2 candies'",
        ),
        (
            "Ines is happy exactly when Hugo is happy. Hugo is happy exactly when Ines is happy.",
            "Is Hugo happy?",
            "the rules form a cycle: ",
        ),
    ],
)
def test_a_prompt_that_cannot_be_answered_is_refused(context, question, message):
    with pytest.raises(InputError) as error:
        read(context, question)
    assert str(error.value).startswith(message)
