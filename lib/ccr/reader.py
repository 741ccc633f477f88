"""The second oracle: a reader that sees the text of a prompt and nothing else.

It takes the rules and facts from the sentences, rebuilds the world that they tell,
and answers the question. What it does not understand, it refuses. It shares no code with
what wrote the prompt, save the patterns by which a theme recognises its own words.
"""

import re
import string
from collections.abc import Iterable
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from lib.ccr.theme import Theme, find_theme, themes
from lib.errors import InputError


class Rule(NamedTuple):
    """When a clause is true: if any, or all, of its conditions are."""

    needs_all: bool
    conditions: tuple[str, ...]


# "all", "every one" and "together" against "at least one", "one or more" and "any".
_ALL = r"all of the following hold|every one of these statements is true"
_ANY = r"at least one of the following holds|one or more of these statements are true"
_FORMS = (
    re.compile(
        rf"(?P<effect>[^.]+?) (?:if and only if|exactly when) "
        rf"(?:(?:(?P<all>{_ALL})|(?P<any>{_ANY})): )?(?P<conditions>[^.:]+)\."
    ),
    re.compile(
        r"It is the case that (?P<effect>[^.]+?) whenever (?:(?P<all>all of these conditions are "
        r"met together)|(?P<any>any of these conditions is met)), and only then: "
        r"(?P<conditions>[^.:]+)\."
    ),
    re.compile(
        r"It is the case that (?P<effect>[^.]+?) whenever (?P<conditions>[^.:]+), and only then\."
        r"(?P<all>)(?P<any>)"
    ),
)
# With one link in a sentence, no form looks at any of its words more than a few times.
_LINK = re.compile(r" (?:if and only if|exactly when|whenever) ")
_DO = (
    r"Suppose that, regardless of all other circumstances, (?P<cause>[^.]+), while every other "
    r"rule and every fact stays as told\. In that case: ",
    r"Now imagine an intervention: (?P<cause>[^.]+), whatever the rules say\."
    r"(?: All other rules still apply, and the facts are those told\.)?"
    r"(?: After the intervention:)? ",
    r"Someone steps in and sees to it that (?P<cause>[^.]+), no matter what\."
    r"(?: The rule for this is set aside; all others decide as ever, by the facts told\.)?"
    r"(?: With that done:)? ",
)
_QUESTIONS = [
    re.compile(rf"{do}(?P<asked>[^.:?]+\?)(?: Answer Yes or No\.)?") for do in (*_DO, "(?P<cause>)")
]


def read(context: str, question: str, theme: str | Theme | None = None) -> int:
    """Answer a question from the text alone: 1 for yes, 0 for no.

    Parameters
    ----------
    context : str
        Causal context and sample context; the rules stand in the first paragraph.
    question : str
        Factual or interventional.
    theme : str or Theme, optional
        Whose words these are; if not given, all of :mod:`lib.ccr.themes` are tried.

    Raises
    ------
    InputError
        If a sentence is not known, a rule or a fact is told twice or missing, or the rules
        form a cycle.

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
    theme, asked, set_clause, set_value = _question(question, known)
    rules, order = _rules(theme, context.partition("\n\n")[0])
    for clause in (asked, set_clause):
        if clause is not None and clause not in rules:
            raise InputError(f"the context has no rule for {clause!r}")
    truth = dict(_facts(theme, context))
    for clause in order:
        if clause == set_clause:
            truth[clause] = set_value
        else:
            told = [truth[condition] for condition in rules[clause].conditions]
            truth[clause] = all(told) if rules[clause].needs_all else any(told)
    return int(truth[asked])


# A prompt's question, rules and facts return in many others: each is understood once.


@lru_cache(maxsize=4_096)
def _question(question: str, known: tuple[Theme, ...]) -> tuple[Theme, str, str | None, bool]:
    """Return the theme, the clause asked for, and the clause that is set and its value, if any."""
    found = _first(_QUESTIONS, question.strip())
    for theme in known:
        if found and (asked := theme.asked(found["asked"])):
            break
    else:
        raise InputError(f"no theme recognises the question {question!r}")
    denied = theme.denied(found["cause"])
    return theme, asked, denied or found["cause"] or None, denied is None


@lru_cache(maxsize=64)
def _facts(theme: Theme, context: str) -> dict[str, bool]:
    """Say of every condition that no rule decides whether it holds, by the facts told."""
    first, _, told = context.partition("\n\n")
    _refuse_unknown(theme, _sentences(told))
    rules, _ = _rules(theme, first)
    facts = {}
    for rule in rules.values():
        for own in rule.conditions:
            if own not in rules:
                facts[own] = theme.holds(own, context)
                if facts[own] is None:
                    raise InputError(f"no fact and no rule of the context decides {own!r}")
    return facts


@lru_cache(maxsize=64)
def _rules(theme: Theme, context: str) -> tuple[dict[str, Rule], tuple[str, ...]]:
    """Return the rule of every clause, and these clauses, those that decide others first."""
    rules: dict[str, Rule] = {}
    for sentence in _sentences(context):
        if not (rule := _rule(sentence)):
            _refuse_unknown(theme, [sentence])
        elif rule[0] in rules:
            raise InputError(f"the context tells the rule for {rule[0]!r} twice")
        else:
            rules[rule[0]] = rule[1]
    sorter = TopologicalSorter({clause: rule.conditions for clause, rule in rules.items()})
    try:
        return rules, tuple(clause for clause in sorter.static_order() if clause in rules)
    except CycleError as error:
        raise InputError(f"the rules form a cycle: {' → '.join(error.args[1])}") from None


def _rule(sentence: str) -> tuple[str, Rule] | None:
    """Return the clause that a sentence rules and when it is true; None if it is no rule."""
    found = _first(_FORMS, sentence) if len(_LINK.findall(sentence)) == 1 else None
    if not found:
        return None
    told, conditions = found["conditions"], [found["conditions"]]
    if found["all"] or found["any"]:
        conditions = [condition[4:] for condition in told.split("; ")]
        letters = zip(string.ascii_lowercase, conditions, strict=False)
        if told != "; ".join(f"({letter}) {condition}" for letter, condition in letters):
            return None
    elif ";" in told:
        return None
    effect = found["effect"]
    if effect.startswith(("The ", "A ", "An ")):  # at the beginning of a sentence only
        effect = effect[0].lower() + effect[1:]
    return effect, Rule(bool(found["all"]), tuple(conditions))


def _first(forms: Iterable[re.Pattern], text: str) -> re.Match | None:
    return next((found for form in forms if (found := form.fullmatch(text))), None)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text.strip()) if text else []


def _refuse_unknown(theme: Theme, sentences: list[str]) -> None:
    for sentence in sentences:
        if not _known(theme).fullmatch(sentence):
            raise InputError(f"theme {theme.name!r} does not know the sentence {sentence!r}")


@lru_cache
def _known(theme: Theme) -> re.Pattern:
    """Match the sentences that open and close a context, and those of a sample."""
    frame = [one for text in (*theme.openings, theme.closing) for one in _sentences(text)]
    return re.compile("|".join([*map(re.escape, frame), *theme.sentences]))
