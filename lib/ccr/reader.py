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
    re.compile(r"Suppose that, regardless of all other circumstances, (?P<cause>[^.]+?), and that"),
    re.compile(r"Now imagine an intervention: (?P<cause>[^.]+), whatever the rules say\."),
    re.compile(r"Someone steps in and sees to it that (?P<cause>[^.]+), no matter what;"),
)


def read(context: str, question: str, theme: str | Theme | None = None) -> int:
    """Answer a question from the text alone.

    Parameters
    ----------
    context : str
        Causal context and sample context.
    question : str
        Factual or interventional.
    theme : str or Theme, optional
        Whose words these are; if not given, all of :mod:`lib.ccr.themes` are tried.

    Returns
    -------
    int
        1 for yes, 0 for no.

    Raises
    ------
    InputError
        If no theme recognises the question, a clause has no rule, or the rules
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
    >>> imagined = "Now imagine an intervention: Rosa is not happy, whatever the rules say."
    >>> read(context, f"{imagined} Is Hugo happy?")
    0
    """
    for known in themes().values() if theme is None else [find_theme(theme)]:
        if asked := known.asked(question):
            theme = known
            break
    else:
        raise InputError(f"no theme recognises the question {question!r}")
    rules, order = _rules(context)
    if asked not in rules:
        raise InputError(f"the context has no rule for {asked!r}")
    set_clause, set_value = _intervention(theme, question)
    if set_clause is not None and set_clause not in rules:
        raise InputError(f"the context has no rule for {set_clause!r}, which is set")
    truth: dict[str, bool] = {}
    for clause in order:
        if clause == set_clause:
            truth[clause] = set_value
        elif clause in rules:
            told = [truth[condition] for condition in rules[clause].conditions]
            truth[clause] = all(told) if rules[clause].needs_all else any(told)
        else:
            truth[clause] = _holds(theme, clause, context)
    return int(truth[asked])


def _intervention(theme: Theme, question: str) -> tuple[str | None, bool]:
    """Return the clause that a question sets, and whether to true; none if it sets none."""
    for form in _DO:
        if found := form.search(question):
            clause = found["cause"]
            for negative, positive in theme.negations:
                if negative in clause:
                    return clause.replace(negative, positive, 1), False
            return clause, True
    return None, True


def _holds(theme: Theme, own: str, context: str) -> bool:
    """Say whether a condition that no rule decides holds, by the facts told."""
    held = theme.holds(own, context)
    if held is None:
        raise InputError(f"no fact and no rule of the context decides {own!r}")
    return held


@lru_cache(maxsize=64)
def _rules(context: str) -> tuple[dict[str, Rule], tuple[str, ...]]:
    """Return the rule of every clause, and all clauses, those that decide others first."""
    rules: dict[str, Rule] = {}
    for form in _FORMS:
        for found in form.finditer(context):
            listed = re.split(r"(?:^|; )\([a-z]\) ", found["conditions"])
            conditions = tuple(condition for condition in listed if condition)
            rules[_clause(found["effect"])] = Rule(bool(found["all"]), conditions)
    sorter = TopologicalSorter({clause: rule.conditions for clause, rule in rules.items()})
    try:
        return rules, tuple(sorter.static_order())
    except CycleError as error:
        raise InputError(f"the rules form a cycle: {' → '.join(error.args[1])}") from None


def _clause(text: str) -> str:
    """Return a clause as it stands within a sentence, not at its beginning."""
    return text[0].lower() + text[1:] if text.startswith(("The ", "A ", "An ")) else text
