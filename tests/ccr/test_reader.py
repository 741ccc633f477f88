"""The reader against prompts written and answered by hand, and against spoilt ones."""

import itertools
import re
import time

import pytest

from lib.ccr import generate
from lib.ccr.reader import read
from lib.ccr.stories import FORMS
from lib.ccr.tasks import Tasks
from lib.ccr.theme import Friends, Node, Theme, find_theme, only, themes
from lib.errors import InputError

RULES = {
    "if and only if": (
        "At a party, every friend draws a paper bag, which may hold many candies, few or none. "
        "Ines is happy if and only if Ines gets at least 4 candies. "
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
OF_FRIENDS = [name for name, theme in themes().items() if isinstance(theme, Friends)]
CANDIES = "Ines gets 1 candy. Hugo gets 1 candy. Rosa gets 0 candies."
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
    with pytest.raises(
        InputError,
        match="say whether each condition holds: found 'the patient carries allele A100'",
    ):
        told = "does not carry allele A1001. The patient never underwent procedure"
        read(context.format(told), question)
    painless = DO[0].format("the pain is not significant") + question
    assert read(context.format("carries allele"), painless) == 0


def test_thousands_of_parts_of_a_question_are_refused_in_a_sentence():
    task = generate("candy_party", [3, 3], n_samples=1, withheld=0.3).tasks[0]
    question = next(text for text in task.texts if " is kept as it would be" in text)
    part = re.search(r", but whether .* is kept .* saw to it that [^,]*", question)[0]
    context = f"{task.story.context}\n\n{task.samples[0]}"
    assert read(context, question.replace(part, part * 3)) in (0, 1, 2)
    with pytest.raises(InputError, match="no theme recognises the question"):
        read(context, question.replace(part, part * 3_000))


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
        (
            f"{RULES['exactly when']}\n\n{CANDIES}",
            "Is Emil happy?",
            "the context must have a rule for what is asked or set: found 'Emil is happy'",
        ),
        (
            f"{RULES['exactly when']}\n\n{CANDIES}",
            DO[1].format("Emil is happy") + "Is Rosa happy?",
            "the context must have a rule for what is asked or set: found 'Emil is happy'",
        ),
        (
            RULES["exactly when"] + "\n\nInes gets 1 candy. Rosa gets 2 candies.",
            "Is Rosa happy?",
            "the context must say whether each condition holds: "
            "found 'Hugo gets at least 2 candies'",
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


ROSA = "Rosa is happy if and only if Rosa gets at least 3 candies."


@pytest.mark.parametrize(
    ("context", "question", "message"),
    [
        (
            f"{ROSA} Hugo is a friend.\n\nRosa gets 1 candy.",
            "Is Rosa happy?",
            "'Hugo is a friend.'",
        ),
        (f"{ROSA}\n\nRosa gets 1 candy. Rosa is happy.", "Is Rosa happy?", "'Rosa is happy.'"),
        (
            f"{ROSA}\n\nRosa gets 1 candy. Rosa arrives with 2 botles of lemonade.",
            "Is Rosa happy?",
            "must know every sentence: found 'Rosa arrives with 2 botles of lemonade.'",
        ),
        (
            f"{ROSA} {ROSA}\n\nRosa gets 1 candy.",
            "Is Rosa happy?",
            "must not tell a rule twice: found 'Rosa is happy'",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy. Rosa gets 4 candies.",
            "Is Rosa happy?",
            "a fact must not be told twice: found ['Rosa gets 1 candy.', 'Rosa gets 4 candies.']",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy. Rosa gets 1 candy.",
            "Is Rosa happy?",
            "a fact must not be told twice: found ['Rosa gets 1 candy.', 'Rosa gets 1 candy.']",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy.",
            "Now imagine an intervntion: Rosa is happy, whatever the rules say. Is Rosa happy?",
            "no theme recognises the question 'Now imagine an intervntion",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy.",
            DO[1].format("Rosa is happy and Rosa is not happy") + "Is Rosa happy?",
            "no theme recognises the question",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy.",
            "Rosa is made happy. Is Rosa happy?",
            "no theme recognises the question 'Rosa is made happy. ",
        ),
        (
            f"{ROSA}\n\nRosa gets 1 candy.",
            "Is Rosa happy? Or is Rosa not happy?",
            "no theme recognises the question 'Is Rosa happy? Or",
        ),
        (
            "Rosa is happy if and only if (a) Rosa gets at least 3 candies; (b) Rosa gets at least "
            "5 candies.\n\nRosa gets 4 candies.",
            "Is Rosa happy?",
            "must know every sentence: found 'Rosa is happy if and only if (a)",
        ),
    ],
)
def test_what_the_reader_does_not_understand_it_refuses(context, question, message):
    with pytest.raises(InputError) as error:
        read(context, question, "candy_party")
    assert message in str(error.value)


def test_blanks_around_a_text_do_not_matter():
    assert read(f" {ROSA}\n\nRosa gets 4 candies.\n", " Is Rosa happy?\n") == 1


# With facts withheld, an entry with another code is an aside: no rule names its code.
@pytest.mark.parametrize(
    ("theme", "withheld"),
    [*itertools.product(sorted(themes()), [0]), *itertools.product(OF_FRIENDS, [0.5])],
)
@pytest.mark.parametrize("spoil", ["doubled", "swapped", "left out"])
def test_a_typo_is_refused_or_changes_nothing(theme, withheld, spoil):
    """Every third letter of prompts in each wording; numbers may say something else in earnest."""
    told = {"n_samples": 1, "n_tasks": 3, "n_wordings": 3, "seed": 5, "withheld": withheld}
    refused = 0
    for task in generate(theme, [3, 2], **told).tasks:
        prompts = list(Tasks([task]).prompts())
        for prompt in (prompts[0], prompts[-1]):
            text = f"{prompt['context']}\n\n{prompt['text']}"
            right = task.labels[prompt["question"], prompt["sample"]]
            assert read(prompt["context"], prompt["text"], theme) == right
            for place in range(0, len(text) - 1, 3):
                one, two = text[place : place + 2]
                if not (one.isalpha() and two.isalpha()):
                    continue
                changed = {"doubled": one + one + two, "swapped": two + one, "left out": two}[spoil]
                spoilt = text[:place] + changed + text[place + 2 :]
                try:
                    answer = read(*spoilt.rsplit("\n\n", 1), theme)
                except InputError:
                    refused += 1
                else:
                    assert answer == right, spoilt
    assert refused > 100


def test_of_others_it_may_only_tell_if_no_fact_is_missed():
    question, told = "Is Rosa happy?", f"{ROSA}\n\nRosa gets 4 candies. Roza gets 1 candy."
    assert read(told, question) == 1
    with pytest.raises(InputError, match="must name each of whom is told: found 'Roza'"):
        read(f"{told} {FORMS['untold']}", question)


@pytest.mark.parametrize("words", ["if and only if ", "It is the case that ", "whenever ", "(a) "])
def test_reading_takes_time_in_proportion_to_the_length(words):
    long = words * (300_000 // len(words))
    for context in (long, f"Rosa is happy if and only if {long}.", f"{ROSA}\n\n{long}"):
        begun = time.process_time()
        with pytest.raises(InputError):
            read(context, "Is Rosa happy?", "candy_party")
        assert time.process_time() - begun < 1
    for question in (
        long,
        f"Now imagine an intervention: {long} Is Rosa happy?",
        "Is Rosa " * 40_000,
    ):
        begun = time.process_time()
        with pytest.raises(InputError):
            read(ROSA, question)
        assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "words", [", but whether Hugo", " is kept as it would be", " after the one, and that Hugo"]
)
def test_reading_nested_questions_takes_time_in_proportion_to_the_length(words):
    long = words * (300_000 // len(words))
    asked = "is Rosa happy?"
    for question in (
        f"Now imagine an intervention: Rosa{long}, whatever the rules say. {asked}",
        f"Now imagine an intervention: Rosa, but whether {long}, whatever the rules say. {asked}",
        "Compare two interventions, while every other rule and every fact stays as told: after the "
        f"one, Rosa is happy; after the other, Rosa is not happy. Is it so that Rosa{long}?",
    ):
        begun = time.process_time()
        with pytest.raises(InputError):
            read(ROSA, question)
        assert time.process_time() - begun < 1


TWO = (
    "Rosa is happy if and only if Rosa gets at least 3 candies. Hugo is happy if and only if at "
    "least one of the following holds: (a) Hugo gets at least 5 candies; (b) Rosa is happy.\n\n"
)
OPEN = (
    "Not every fact is told: each of the others may hold or not, and stays as it is whatever is "
    "supposed."
)
UNDONE = (
    "if an intervention undid the first, while every other rule and every fact stays as told, "
    "would the second be undone?"
)
ENDS = (
    "Compare two interventions, while every other rule and every fact stays as told: after the "
    "one, Rosa is happy; after the other, Rosa is not happy. Is it so that Hugo is happy after the "
    "one, and that Hugo is not happy after the other?"
)


@pytest.mark.parametrize(
    ("facts", "question", "answer"),
    [
        ("Hugo gets 1 candy.", "Is Rosa happy?", 2),
        (
            "Hugo gets 1 candy.",
            "As things are before any change, it is known that Hugo is happy. Is Rosa happy?",
            1,
        ),
        (
            "Hugo gets 1 candy.",
            "As things are before any change, it is known that Hugo is not happy. Is Rosa happy?",
            0,
        ),
        ("Hugo gets 1 candy.", ENDS, 1),
        ("Hugo gets 7 candies.", ENDS, 0),
        ("Rosa gets 1 candy.", ENDS, 2),
        (
            "Rosa gets 4 candies.",
            "As things are before any change, it is known that Rosa is happy and that Hugo is "
            f"happy. Was the first necessary for the second: {UNDONE}",
            2,
        ),
        (
            "Rosa gets 1 candy.",
            "As things are before any change, it is known that Rosa is not happy and that Hugo is "
            "not happy. Would the contrary of the first be sufficient for the contrary of the "
            f"second: {UNDONE}",
            1,
        ),
        (
            "Rosa gets 1 candy.",
            DO[0].format(
                "Rosa is happy, but whether Hugo is happy is kept as it would be if an "
                "intervention saw to it that Rosa is not happy"
            )
            + "Is Hugo happy?",
            2,
        ),
        (
            "Rosa gets 1 candy.",
            DO[2].format("Rosa is happy and Hugo is not happy") + "Is Hugo happy?",
            0,
        ),
    ],
)
def test_what_is_not_told_is_open_until_something_known_decides_it(facts, question, answer):
    assert read(f"{TWO}{facts} {OPEN}", question) == answer


def test_what_is_known_must_be_possible_and_said_by_the_rules():
    known = "As things are before any change, it is known that {} is not happy. Is Rosa happy?"
    with pytest.raises(InputError, match="the context must not contradict what is known"):
        read(f"{TWO}Hugo gets 7 candies. {OPEN}", known.format("Hugo"))
    for question in (known.format("Emil"), DO[0].format("Emil is happy") + "Is Rosa happy?"):
        with pytest.raises(
            InputError, match="must have a rule for what is asked or set: found 'Emil is"
        ):
            read(f"{TWO}Hugo gets 7 candies. {OPEN}", question)


def test_a_fact_may_be_missing_only_where_the_text_says_so():
    with pytest.raises(InputError, match="the context must say whether each condition holds"):
        read(f"{TWO}Hugo gets 7 candies.", "Is Rosa happy?")


class Glocken(Theme):
    """A theme whose clauses begin with a small letter, but for neither *the*, *a* nor *an*."""

    name, openings, closing = "glocken", ("Glocken läuten.",), "Sonst zählt nichts."
    clauses = (("die Glocke {} läutet", "die Glocke {} läutet nicht", "Läutet die Glocke {}?"),)
    sentences = (r"An \w+ zogen \d Leute\.",)

    def nodes(self, n, draw):
        return [self._bell(tower) for tower in ("Nord", "Ost", "West")[:n]]

    def _bell(self, tower):
        clauses = (clause.format(tower) for clause in self.clauses[0])
        true, false = ([f"An {tower} zogen {k} Leute." for k in ks] for ks in ((3, 4), (0, 1, 2)))
        return Node(tower, *clauses, f"an {tower} zogen mindestens 3 Leute", true, false)

    def holds(self, own, text):
        _, tower, _, _, enough, _ = own.split()
        return int(only(rf"An {tower} zogen (\d) Leute\.", text)[1]) >= int(enough)


def test_a_clause_may_begin_with_any_word():
    tasks = generate(Glocken(), [3], n_samples=4, n_tasks=3, n_wordings=3)
    assert all(read(p["context"], p["text"], Glocken()) == p["answer"] for p in tasks.prompts())


class Silent(Glocken):
    """A theme that denies by a word that could belong to a name of several words."""

    clauses = (("{} läutet", "{} niemals läutet", "Läutet {}?"),)
    sentences = (r"An (?P<name>[\w ]+) zogen \d Leute\.",)

    def nodes(self, n, draw):
        return [self._bell(tower) for tower in ("Alt Nord", "Neu Ost", "Neu Nord")[:n]]

    def holds(self, own, text):
        tower = re.fullmatch(r"an ([\w ]+) zogen mindestens 3 Leute", own)[1]
        told = only(rf"An {tower} zogen (\d) Leute\.", text)
        return told and int(told[1]) >= 3


def test_a_denial_is_tried_before_a_longer_name():
    tasks = generate(Silent(), [3], n_samples=4, n_tasks=3, n_wordings=3)
    assert all(read(p["context"], p["text"], Silent()) == p["answer"] for p in tasks.prompts())


@pytest.mark.parametrize("name", ["Alt Ost", "Ost Neu"])
def test_a_name_of_words_of_others_is_refused_where_facts_are_withheld(name):
    tasks = generate(Silent(), [3], n_samples=4, n_tasks=1, withheld=1.0)
    prompt = next(iter(tasks.prompts()))
    told = prompt["context"].replace(FORMS["untold"], f"An {name} zogen 1 Leute. {FORMS['untold']}")
    with pytest.raises(InputError, match=f"must name each of whom is told: found {name!r}"):
        read(told, prompt["text"], Silent())


def test_a_theme_that_fails_at_a_condition_is_named():
    class Careless(Glocken):
        def holds(self, own, text):
            return int(own) > 3

    prompt = next(generate(Careless(), [2]).prompts())
    with pytest.raises(InputError, match=r"^theme 'glocken', holds\('an \w+ zogen .*', …\): inval"):
        read(prompt["context"], prompt["text"], Careless())
    unpaired = type("Unpaired", (Glocken,), {"sentences": (*Glocken.sentences, "(a")})()
    with pytest.raises(InputError, match=r"^the sentences of theme 'glocken': missing \)"):
        read(prompt["context"], prompt["text"], unpaired)


@pytest.mark.parametrize(
    ("theme", "right", "wrong"),
    [
        ("candy_party", "gets at least", "gts at least"),
        ("flu_vaccine", "for at least", "for at last"),
        ("flower_garden", "bloom in a shade of", "bloom in the shade of"),
        ("clinical_notes", "the patient", "the patent"),
    ],
)
def test_a_condition_that_the_theme_does_not_know_is_no_fact_withheld(theme, right, wrong):
    tasks = generate(theme, [3, 3], n_samples=4, withheld=0.4, seed=3)
    prompt = next(tasks.prompts())
    context, told = prompt["context"].split("\n\n", 1)
    assert right in context
    read(f"{context}\n\n{told}", prompt["text"], theme=theme)
    # In the rules alone, and in the last of them.
    spoilt = wrong.join(context.rsplit(right, 1))
    with pytest.raises(InputError, match=r"must know every condition: found|unknown|must rule"):
        read(f"{spoilt}\n\n{told}", prompt["text"], theme=theme)
