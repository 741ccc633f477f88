"""The reader of numbers: prompts answered by hand, spoilt ones, and answers in many forms."""

import math
import time

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


# The same cell as instructions and as equations, and each kind of question with its answer.
INSTRUCTIONS = (
    "In one kind of cell, the transcripts bear the names of people. Every transcript has its own "
    "enzyme, and all volumes are counted in picolitres (pL) from those of a resting cell, so that "
    "they may be negative. To find the volume of Ana, take that of its own enzyme. To find the "
    "volume of Bo-Li, take that of its own enzyme, then add -2 times the volume of Ana. To find "
    "the volume of Cy, take that of its own enzyme, then add 0.5 times the volume of Ana, then add "
    "1.5 times the volume of Bo-Li. There are no other influences.\n\nAna has an enzyme of 3 pL. "
    "Bo-Li has an enzyme of -1 pL. Cy has an enzyme of 0 pL."
)
EQUATIONS = (
    "Here is a model of one kind of cell. For a transcript X, v(X) is its volume and e(X) that of "
    "its own enzyme, both in picolitres (pL) and counted from a resting cell, so that they may be "
    "negative. Nothing has any influence but what the equations name.\n\nv(Ana) = e(Ana)\n"
    "v(Bo-Li) = e(Bo-Li) - 2 v(Ana)\nv(Cy) = e(Cy) + 0.5 v(Ana) + 1.5 v(Bo-Li)\n\n"
    "The enzymes of this cell, in pL: Ana 3, Bo-Li -1, Cy 0."
)
MAKES = "Somebody makes the volume of Ana larger by 1 pL, against its rule, and "
ADDS = "How much does this add to the volume of Cy?"
RAISED = "An intervention raises v(Ana) by 1, whatever its equation says, and "
BY = "By how much does v(Cy) change?"
OTHER_WORDINGS = [
    (INSTRUCTIONS, f"{MAKES}every other volume still follows its own. {ADDS}", 0.5 - 3),
    (INSTRUCTIONS, f"{MAKES}keeps every other volume but that of Cy as it is. {ADDS}", 0.5),
    (
        INSTRUCTIONS,
        "Somebody keeps Ana as it is, but gives Bo-Li the volume that it would have if Ana were "
        f"larger by 1 pL, and every other volume still follows its rule. {ADDS}",
        -3,
    ),
    (INSTRUCTIONS, "Which volume does Cy have in this cell?", -9),
    (
        INSTRUCTIONS,
        "Somebody sets the volume of Bo-Li to 2 pL, against its rule. The enzymes stay as told, "
        "and every other volume still follows its rule. Which volume does Cy have then?",
        4.5,
    ),
    (
        INSTRUCTIONS.replace("an enzyme of 0", "a volume of -8")
        .replace("an enzyme of -1", "a volume of -7")
        .replace("an enzyme", "a volume"),
        "Imagine that somebody had set the volume of Ana to 0 pL in this very cell, against its "
        "rule. Which volume would Cy have had?",
        -0.5,
    ),
    (EQUATIONS, f"{RAISED}all other equations hold. {BY}", 0.5 - 3),
    (EQUATIONS, f"{RAISED}holds all other volumes but v(Cy) where they are. {BY}", 0.5),
    (
        EQUATIONS,
        "An intervention leaves v(Ana) where it is and sets v(Bo-Li) to what it would be if v(Ana) "
        f"were larger by 1, and all other equations hold. {BY}",
        -3,
    ),
    (EQUATIONS, "What is v(Cy) in this cell?", -9),
    (
        EQUATIONS,
        "An intervention sets v(Bo-Li) to 2, whatever its equation says, while every enzyme stays "
        "as told and all other equations hold. What is v(Cy) then?",
        4.5,
    ),
    (
        EQUATIONS.replace("The enzymes", "The volumes").replace(
            "Bo-Li -1, Cy 0", "Bo-Li -7, Cy -8"
        ),
        "Had an intervention set v(Ana) to 0 in this very cell, whatever its equation says, what "
        "would v(Cy) have been?",
        -0.5,
    ),
]


@pytest.mark.parametrize(("context", "question", "answer"), OTHER_WORDINGS)
def test_other_wordings_have_the_same_answers(context, question, answer):
    assert read_volume(context, question + SUFFIX) == answer


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("There are no other", "There are a few other"),
        ("add -2 times", "add -2 or 3 times"),
        ("Bo-Li has an enzyme", "Ana has an enzyme"),
        ("Bo-Li has an enzyme", "Bo-Li has a volume"),
        ("To find the volume of Bo-Li", "To find the volume of Ana"),
        (" 3 pL.", " 3 mL."),
        ("e(Bo-Li) - 2", "e(Ana) - 2"),
        ("- 2 v(Ana)", "- 2 e(Ana)"),
        ("- 2 v(Ana)", "-2 v(Ana)"),
        ("v(Bo-Li) = e(Bo-Li)", "v(Ana) = e(Ana)"),
        ("Bo-Li -1", "Ana -1"),
        ("Cy 0.", "Cy 0. It is late."),
    ],
)
def test_what_is_not_known_of_other_wordings_is_refused(old, new):
    asked = {INSTRUCTIONS: "Which volume does Cy have", EQUATIONS: "What is v(Cy)"}
    told = [context for context in asked if old in context]
    for context in told:
        with pytest.raises(InputError, match="every sentence must be known"):
            read_volume(context.replace(old, new, 1), f"{asked[context]} in this cell?{SUFFIX}")
    assert len(told) == 1


def test_questions_of_another_wording_are_refused():
    with pytest.raises(InputError, match="every sentence must be known"):
        read_volume(EQUATIONS, f"Which volume does Cy have in this cell?{SUFFIX}")


@pytest.mark.parametrize("node", ["Dan", "Bo"])
def test_paths_through_somebody_unknown_are_refused(node):
    for context, question, _ in OTHER_WORDINGS:
        if "larger by 1" in question and "Bo-Li" in question:
            with pytest.raises(InputError, match="the prompt cannot be read"):
                read_volume(context, question.replace("Bo-Li", node) + SUFFIX)


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
        *(("0,500 pL", math.nan), ("-0,125", math.nan), ("1234,567", math.nan), ("5*2", math.nan)),
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
        ("12'345 pL", math.nan),
        ("1.2\N{MULTIPLICATION SIGN}10\N{SUPERSCRIPT THREE}", math.nan),
        ("2 \N{MULTIPLICATION SIGN} 3 = 6 pL", 6),
        ("10\N{SUPERSCRIPT TWO}", math.nan),
        ("3\N{VULGAR FRACTION ONE HALF} pL", math.nan),
        ("7 / 2", math.nan),
        ("the answer is '3'", 3),
        ("12\N{NO-BREAK SPACE}345", 12345),
        ("\N{NON-BREAKING HYPHEN}3.5 pL", -3.5),
        ("\N{HYPHEN}3.5 pL", -3.5),
        (r"$1{,}234.5$", 1234.5),
        (r"$-12\,345$", -12345),
        (r"$3{,}5$", math.nan),
        ("It is -**3.5 pL**.", math.nan),
        ("-$3.5$", math.nan),
        ("-(3.5) pL", math.nan),
        ("minus **3.5 pL**", math.nan),
        ("V(0.5)-3", math.nan),
        ("- **3.5 pL**", 3.5),
        ("It is - (3.5) pL.", math.nan),
        ("- $3.5$ and so - $3.5$", math.nan),
        ("It is \N{MINUS SIGN}\\(3.5\\) pL.", math.nan),
        ("It is \N{MINUS SIGN}`3.5` pL.", math.nan),
        (r"\boxed{{-}3.5} pL", -3.5),
        ("It is &minus;3.5 pL.", -3.5),
        ("\N{FULLWIDTH HYPHEN-MINUS}3.5", -3.5),
        ("\N{SMALL HYPHEN-MINUS}3.5", -3.5),
        (r"$3.5\times10^{2}$", math.nan),
        *(("3.5*10**2", math.nan), ("2**3", math.nan), (r"$7\cdot 0.5$", math.nan)),
        *(("7 \N{DOT OPERATOR} 0.5", math.nan), ("3.5 \N{PLUS-MINUS SIGN} 0.1", math.nan)),
        ("Of 3 cells 0.5 pL", 0.5),
        ("none", math.nan),
        ("", math.nan),
    ],
)
def test_the_last_number_of_an_answer(text, number):
    assert number_in(text) == pytest.approx(number, nan_ok=True)


@pytest.mark.parametrize("run", [")", ")a", "1)"])
def test_a_long_run_takes_time_in_proportion_to_its_length(run):
    def seconds(times):
        start = time.process_time()
        assert math.isnan(number_in(run * times + "-3"))
        return time.process_time() - start

    assert seconds(40_000) < 10 * max(seconds(10_000), 0.01)  # a square would be 16 times
