"""The second oracle: a reader that sees the text of a prompt and nothing else.

It takes the rules and facts from the sentences, rebuilds the world that they tell,
and answers the question. It shares no code with what wrote the prompt, save the
patterns by which a theme recognises its own words.
"""

import re
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
        rf"(?:^|(?<=\. ))(?P<effect>[^.]+?) (?:if and only if|exactly when) "
        rf"(?:(?:(?P<all>{_ALL})|(?:{_ANY})): )?(?P<conditions>[^.]+)\."
    ),
    re.compile(
        r"It is the case that (?P<effect>[^.]+?) whenever (?:(?P<all>all of these conditions are "
        r"met together)|any of these conditions is met), and only then: (?P<conditions>[^.]+)\."
    ),
    re.compile(
        r"It is the case that (?P<effect>[^.]+?) whenever (?P<conditions>[^.]+), and only then\."
        r"(?P<all>)"  # a single condition: any is all
    ),
)
_DO = (
    re.compile(r"Suppose that, regardless of all other circumstances, (?P<cause>[^.]+?), while"),
    re.compile(r"Now imagine an intervention: (?P<cause>[^.]+), whatever the rules say\."),
    re.compile(r"Someone steps in and sees to it that (?P<cause>[^.]+), no matter what\."),
)


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
        If no theme recognises the question, a clause has no rule, no fact decides a
        condition, or the rules form a cycle.

    Examples
    --------
    >>> context = (
    ...     "Rosa is happy if and only if Rosa gets at least 3 candies. Hugo is happy if and only "
    ...     "if at least one of the following holds: (a) Hugo gets at least 5 candies; (b) Rosa is "
    ...     "happy. Rosa gets 4 candies. Hugo gets 1 candy."
    ... )
    >>> read(context, "Is Hugo happy?")
    1
    >>> imagined = "Now imagine an intervention: Rosa is not happy, whatever the rules say."
    >>> read(context, f"{imagined} Is Hugo happy?")
    0
    """
    known = tuple(themes().values()) if theme is None else (find_theme(theme),)
    theme, asked, set_clause, set_value = _question(question, known)
    rules, order = _rules(context.split("\n\n", 1)[0])
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
    for theme in known:
        if asked := theme.asked(question):
            break
    else:
        raise InputError(f"no theme recognises the question {question!r}")
    for form in _DO:
        if found := form.search(question):
            clause = found["cause"]
            for negative, positive in theme.negations:
                if negative in clause:
                    return theme, asked, clause.replace(negative, positive, 1), False
            return theme, asked, clause, True
    return theme, asked, None, True


@lru_cache(maxsize=64)
def _facts(theme: Theme, context: str) -> dict[str, bool]:
    """Say of every condition that no rule decides whether it holds, by the facts told."""
    rules, _ = _rules(context.split("\n\n", 1)[0])
    facts = {}
    for rule in rules.values():
        for own in rule.conditions:
            if own not in rules:
                facts[own] = theme.holds(own, context)
                if facts[own] is None:
                    raise InputError(f"no fact and no rule of the context decides {own!r}")
    return facts


@lru_cache(maxsize=64)
def _rules(context: str) -> tuple[dict[str, Rule], tuple[str, ...]]:
    """Return the rule of every clause, and these clauses, those that decide others first."""
    rules: dict[str, Rule] = {}
    for form in _FORMS:
        for found in form.finditer(context):
            listed = re.split(r"(?:^|; )\([a-z]\) ", found["conditions"])
            conditions = tuple(condition for condition in listed if condition)
            rules[_clause(found["effect"])] = Rule(bool(found["all"]), conditions)
    sorter = TopologicalSorter({clause: rule.conditions for clause, rule in rules.items()})
    try:
        return rules, tuple(clause for clause in sorter.static_order() if clause in rules)
    except CycleError as error:
        raise InputError(f"the rules form a cycle: {' → '.join(error.args[1])}") from None


def _clause(text: str) -> str:
    """Return a clause as it stands within a sentence, not at its beginning."""
    return text[0].lower() + text[1:] if text.startswith(("The ", "A ", "An ")) else text
