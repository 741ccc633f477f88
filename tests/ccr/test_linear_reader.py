"""The reader of numbers: prompts answered by hand, spoilt ones, and answers in many forms."""

import math

import pytest

from lib.ccr.linear_reader import number_in, read_volume
from lib.errors import InputError

RULES = (
    "A laboratory follows the transcripts of one kind of cell, and has named them after its "
    "members. The volume of each is given in picolitres (pL) above its volume in a resting cell, "
    "so a negative number lies below that. Each transcript has an enzyme of its own. The volume of "
    "Ana is the sum of these: the volume of its own enzyme. The volume of Bo-Li is the sum of "
    "these: the volume of its own enzyme; -2 times the volume of Ana. The volume of Cy is the sum "
    "of these: the volume of its own enzyme; 0.5 times the volume of Ana; 1.5 times the volume of "
    "Bo-Li. Nothing else has any influence on these volumes.\n\n"
)
ENZYMES = (
    "The enzyme of Ana is at 3 pL. The enzyme of Bo-Li is at -1 pL. The enzyme of Cy is at 0 pL."
)
VOLUMES = (
    "The volume of Ana is at 3 pL. The volume of Bo-Li is at -7 pL. The volume of Cy is at -9 pL."
)
SUFFIX = " Answer with one number, in pL."
RAISES = "An intervention raises the volume of Ana by 1 pL, whatever its rule says, and "
CHANGE = "By how much does the volume of Cy change?" + SUFFIX
SETS = (
    "An intervention sets the volume of {} to {} pL, whatever its rule says, while every enzyme "
    "stays as told and all others follow their rules. What is the volume of {} then?" + SUFFIX
)
HAD = (
    "Had an intervention set the volume of {} to {} pL in this very cell, whatever its rule says, "
    "what would the volume of {} have been?" + SUFFIX
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (f"{RAISES}all others follow their rules. {CHANGE}", 0.5 - 3),
        (f"{RAISES}holds all others but Cy where they are. {CHANGE}", 0.5),
        (
            "An intervention leaves Ana where it is, and gives Bo-Li the volume that it would have "
            "if the volume of Ana were raised by 1 pL, while all others follow their rules. "
            + CHANGE,
            -3,
        ),
        ("What is the volume of Bo-Li in this cell?" + SUFFIX, -7),
        ("What is the volume of Cy in this cell?" + SUFFIX, -9),
        (SETS.format("Ana", 0, "Cy"), -1.5),
        (SETS.format("Bo-Li", 2, "Cy"), 4.5),
        (SETS.format("Bo-Li", 2, "Ana"), 3),
    ],
)
@pytest.mark.parametrize("told", [ENZYMES, VOLUMES])
def test_answers_by_hand(question, answer, told):
    assert read_volume(RULES + told, question) == answer


def test_a_counterfactual_keeps_the_noise_that_was_not_told():
    told = VOLUMES.replace("-9", "-8")  # so the enzyme of Cy is at 1
    assert read_volume(RULES + told, HAD.format("Ana", 0, "Cy")) == -0.5
    assert read_volume(RULES + told, HAD.format("Ana", 3, "Cy")) == -8


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Nothing else has any influence", "Little else has any influence"),
        ("is the sum of these", "is the product of these"),
        ("-2 times", "-2 or 3 times"),
        ("is at 3 pL", "is at 3 mL"),
        ("is at 3 pL.", "is at 3 pL. It is late."),
        ("-2 times", "-2.1.1 times"),
        ("The enzyme of Ana is at 3 pL.", "The volume of Ana is at 3 pL."),
        ("The enzyme of Bo-Li", "The enzyme of Ana"),
        ("The volume of Bo-Li is the sum", "The volume of Ana is the sum"),
    ],
)
def test_what_is_not_known_is_refused(old, new):
    spoilt = (RULES + ENZYMES).replace(old, new, 1)
    assert spoilt != RULES + ENZYMES
    with pytest.raises(InputError, match="every sentence must be known"):
        read_volume(spoilt, "What is the volume of Cy in this cell?" + SUFFIX)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The enzyme of Ana is at 3 pL. ", ""),
        ("-2 times the volume of Ana", "-2 times the volume of Cy"),
        ("-2 times the volume of Ana", "-2 times the volume of Dan"),
    ],
)
def test_a_fact_that_is_missing_or_told_too_late_is_refused(old, new):
    with pytest.raises(InputError, match="the prompt cannot be read"):
        read_volume(
            (RULES + ENZYMES).replace(old, new),
            "What is the volume of Cy in this cell?" + SUFFIX,
        )


@pytest.mark.parametrize("question", ["What is the volume of Cy?", "Is Cy high?", CHANGE])
def test_other_questions_are_refused(question):
    with pytest.raises(InputError, match="every sentence must be known"):
        read_volume(RULES + ENZYMES, question)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("-1.5", -1.5),
        ("The answer is 12.", 12),
        ("First 3, then 4: **−0.25 pL**", -0.25),
        ("\N{EN DASH}7.25pL", -7.25),
        ("1,234,567.8 pL", 1234567.8),
        ("12\u202f345", 12345),
        (r"$\boxed{-3.2}$", -3.2),
        ("10 - 3 = 7", 7),
        ("from 3-5", math.nan),
        ("1.5\N{MINUS SIGN}1.6 pL", math.nan),
        ("First 3, then V-1.5", math.nan),
        ("3,5 pL", math.nan),
        ("3/4", math.nan),
        ("1.2e3", math.nan),
        ("1e-3 pL", math.nan),
        (r"1.2 \times 10^{-3}", math.nan),
        ("It is minus 1.25 pL.", math.nan),
        ("The volume falls: - 1.25 pL", math.nan),
        ("The volume falls: \N{MINUS SIGN}\N{NO-BREAK SPACE}1.25 pL", math.nan),
        ("It is negative 1.25 pL.", math.nan),
        ("MINUS 1.25 pL", math.nan),
        (r"$\boxed{\frac{7}{2}}$", math.nan),
        ("12 345 pL", math.nan),
        ("12\N{NO-BREAK SPACE}345", 12345),
        ("Of 3 cells 0.5 pL", 0.5),
        ("none", math.nan),
        ("", math.nan),
    ],
)
def test_the_last_number_of_an_answer(text, number):
    assert number_in(text) == pytest.approx(number, nan_ok=True)
