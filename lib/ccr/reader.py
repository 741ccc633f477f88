"""The second oracle: a reader that sees the text of a prompt and nothing else.

It takes the rules and facts from the sentences, rebuilds the world that they tell, and answers the
question. It refuses what it does not understand. It shares no code with the modules that write
prompts, except the patterns by which a theme recognises its own words.

A statement is true, false or open here. Where untold facts leave the question or what is known
open, the reader supposes a fact true, then false, one by one, until it has found both answers.
"""

import itertools
import re
import string
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from lib import ROOT, errors
from lib.ccr.theme import Theme, find_theme, themes
from lib.errors import InputError, check, check_once
from lib.files import read_yaml

#: Whether each fact is true, false or open, which is None.
Facts = dict[str, bool | None]

#: A rule is the word that joins its conditions, "and" or "or", and the conditions. Rules are stored
#: by the clause that they decide.
Rule = tuple[str, tuple[str, ...]]
Rules = dict[str, Rule]

#: A claim is what is done, a clause, and the value that the clause then has. What is done maps a
#: clause to its value or, if the clause is kept as it would be otherwise, to what is done in that
#: other case.
Claim = tuple[dict[str, Any], str, bool]

#: A question is the claims that are known, and the claims that must hold for a yes.
Question = tuple[list[Claim], list[Claim]]

#: The patterns of all that the reader understands.
_FORMS = read_yaml(ROOT / "data" / "readings.yml")
_QUESTIONS = [_FORMS["question"].replace("{question}", form) for form in _FORMS["questions"]]


def read(context: str, question: str, theme: str | Theme | None = None) -> int:
    """Answer a question from the text alone: 1 for yes, 0 for no, 2 if it cannot be known.

    The context is the causal context and then the sample context; its first paragraph has the
    rules. Without a `theme`, all of :mod:`lib.ccr.themes` are tried. Unknown sentences, rules or
    facts that are missing or told twice, and rules that form a cycle are refused.

    Examples
    --------
    >>> context = (
    ...     "Rosa is happy if and only if Rosa gets at least 3 candies. Hugo is happy if and only "
    ...     "if at least one of the following holds: (a) Hugo gets at least 5 candies; (b) Rosa is "
    ...     "happy. Rosa gets 4 candies. Hugo gets 1 candy."
    ... )
    >>> read(context, "Is Hugo happy?")
    1
    """
    known = tuple(themes().values()) if theme is None else (find_theme(theme),)
    theme, asked = _question(question, known)
    rules = _rules(theme, context.partition("\n\n")[0])
    found = _answers(rules, _facts(theme, context), asked)
    check(len(found) > 0, "the context must not contradict what is known", question)
    return 2 if len(found) == 2 else int(found.pop())


def _answers(rules: Rules, facts: Facts, asked: Question) -> set[bool]:
    """Return the truth values that the claims can have where what is known holds; perhaps none."""
    fits, yes = (_join("and", [_holds(rules, facts, one) for one in claims]) for claims in asked)
    if fits is False:
        return set()
    if fits and yes is not None:
        return {yes}
    # Suppose the last open fact first: it is nearest to the outcome and most often decides it.
    fact = next(fact for fact, value in reversed(facts.items()) if value is None)
    found = _answers(rules, facts | {fact: True}, asked)
    return found if len(found) == 2 else found | _answers(rules, facts | {fact: False}, asked)


def _holds(rules: Rules, facts: Facts, claim: Claim) -> bool | None:
    """Say whether a claim about a clause holds after what is done, or None if that is open."""
    done, asked, value = claim
    for clause in (asked, *done):
        check(clause in rules, "the context must have a rule for what is asked or set", clause)
    truth = dict(facts)
    for clause, (joined, conditions) in rules.items():
        truth[clause] = done.get(clause)
        if isinstance(truth[clause], dict):
            truth[clause] = _holds(rules, facts, (done[clause], clause, True))
        elif truth[clause] is None:
            truth[clause] = _join(joined, [truth[condition] for condition in conditions])
    return None if truth[asked] is None else truth[asked] == value


def _join(joined: str, values: list[bool | None]) -> bool | None:
    """Join values: false decides an "and", true an "or"; else one open value leaves all open."""
    decisive = joined == "or"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


# Many prompts share a question, rules or facts: each of these is parsed only once.


@lru_cache(maxsize=4_096)
def _question(question: str, known: tuple[Theme, ...]) -> tuple[Theme, Question]:
    """Return the theme that recognises a question, and what is asked."""
    if found := _first(_QUESTIONS, question.strip()):
        for theme in known:
            with suppress(InputError), errors.told("what is asked"):  # of thousands of parts, say
                return theme, _claims(theme, found.groupdict())
    raise InputError(f"no theme recognises the question {question!r}")


def _claims(theme: Theme, told: dict[str, str]) -> Question:
    """Return what is known and what is asked, from the named parts of a question."""
    known = [_said(theme, text) for text in (told["known"] or "").split(" and that ") if text]
    ends = [one for one in (("done", "asked"), ("other", "without")) if one[0] in told]
    claims = [(_done(theme, told[done]), *_said(theme, told[asked])) for done, asked in ends]
    if not ends:
        check(len(known) == 2, "a question about undoing must tell two facts", told["known"])
        (first, first_value), (second, value) = known
        claims = [({first: not first_value}, second, not value)]
    return [({}, *one) for one in known], claims


def _done(theme: Theme, text: str) -> dict[str, Any]:
    """Return what is done, as in a `Claim`, from the text of an intervention."""
    if found := re.fullmatch(_FORMS["kept"], text):
        kept, _ = _said(theme, found["kept"])
        return {**_done(theme, found["done"]), kept: _done(theme, found["otherwise"])}
    done = [_said(theme, clause) for clause in text.split(" and ") if clause]
    check_once("clause of an intervention", [clause for clause, _ in done])
    return dict(done)


def _said(theme: Theme, text: str) -> tuple[str, bool]:
    """Return the clause that a text affirms, denies or asks about, and its value."""
    # A denial first: "Adler never sleeps" would else affirm that somebody named Adler never sleeps.
    for form, value in ((1, False), (0, True), (2, True)):
        if clause := theme.affirmed(text, form):
            return clause, value
    raise InputError(f"theme {theme.name!r} does not know {text!r}")


@lru_cache(maxsize=64)
def _facts(theme: Theme, context: str) -> Facts:
    """Return, for each condition without a rule, whether it holds according to the facts told."""
    first, _, told = context.partition("\n\n")
    sentences = _sentences(told.removesuffix(_FORMS["open"]))
    names = [_known(theme, sentence).get("name") for sentence in sentences]
    rules, facts, all_told = _rules(theme, first), {}, not told.endswith(_FORMS["open"])
    for own in itertools.chain.from_iterable(conditions for _, conditions in rules.values()):
        if own not in rules:
            with errors.told(f"theme {theme.name!r}, holds({own!r}, …)"):
                facts[own] = theme.holds(own, context)
            decided = facts[own] is not None or not all_told
            check(decided, "the context must say whether each condition holds", own)
    if not all_told:  # nobody would miss a fact whose name has a typo
        for name in filter(None, names):
            whole = rf"(?<![\w-]){re.escape(name)}(?![\w-])"
            named = any(re.search(whole, own) for own in facts)
            check(named, "a condition must name each of whom is told", name)
    return facts


@lru_cache(maxsize=64)
def _rules(theme: Theme, context: str) -> Rules:
    """Return the rule of every clause, sorted so that a clause comes before those it decides."""
    rules: Rules = {}
    for sentence in _sentences(context):
        if rule := _rule(theme, sentence):
            check(rule[0] not in rules, "the context must not tell a rule twice", rule[0])
            rules[rule[0]] = rule[1]
        else:
            _known(theme, sentence)
    sorter = TopologicalSorter({clause: conditions for clause, (_, conditions) in rules.items()})
    try:
        return {clause: rules[clause] for clause in sorter.static_order() if clause in rules}
    except CycleError as error:
        raise InputError(f"the rules form a cycle: {' → '.join(error.args[1])}") from None


def _rule(theme: Theme, sentence: str) -> tuple[str, Rule] | None:
    """Return the clause that a sentence decides and its rule, or None if it states no rule."""
    linked = len(re.findall(_FORMS["link"], sentence)) == 1
    found = _first(_FORMS["rules"] if linked else [], sentence)
    if not found:
        return None
    told, joined = found["conditions"], found["joined"] or ""
    conditions, listed = [told], told.partition(";")[0]
    if joined:
        conditions = [condition[4:] for condition in told.split("; ")]
        letters = zip(string.ascii_lowercase, conditions, strict=False)
        listed = "; ".join(f"({letter}) {condition}" for letter, condition in letters)
    if told != listed or joined not in _FORMS["joined"]:
        return None
    effect = found["effect"]
    if not theme.affirmed(effect, 0):  # except for a capital at the beginning of a sentence
        effect = effect[0].lower() + effect[1:]
    return effect, (_FORMS["joined"][joined], tuple(conditions))


def _first(forms: Iterable[str | re.Pattern[str]], text: str) -> re.Match[str] | None:
    return next((found for form in forms if (found := re.fullmatch(form, text))), None)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text.strip()) if text else []


def _known(theme: Theme, sentence: str) -> dict[str, str]:
    """Return the named parts of a sentence that a theme knows, and refuse any other sentence."""
    if found := _first(_patterns(theme), sentence):
        return found.groupdict()
    raise InputError(f"theme {theme.name!r} must know every sentence: found {sentence!r}")


@lru_cache
def _patterns(theme: Theme) -> list[re.Pattern[str]]:
    # Of the sentences that open or close a context, and of those of a sample.
    frame = [one for text in (*theme.openings, theme.closing) for one in _sentences(text)]
    with errors.told(f"the sentences of theme {theme.name!r}"):
        return [re.compile(form) for form in (*map(re.escape, frame), *theme.sentences)]
