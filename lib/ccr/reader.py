"""The second oracle: a reader that sees the text of a prompt and nothing else.

It takes the rules and facts from the sentences, rebuilds the world that they tell, and answers the
question. What it does not understand, it refuses. It shares no code with what wrote the prompt,
save the patterns by which a theme recognises its own words.
"""

import itertools
import re
import string
from collections.abc import Callable, Iterable
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from lib.ccr.theme import Theme, find_theme, themes
from lib.errors import InputError, check

#: When a clause is true: if all, or any, of its conditions are.
Rule = tuple[Callable[[Iterable[bool]], bool], tuple[str, ...]]


#: How a rule joins its conditions, by what is said before their list; "" if there is but one.
_JOINED = {
    "": all,
    "all of the following hold": all,
    "every one of these statements is true": all,
    "all of these conditions are met together": all,
    "at least one of the following holds": any,
    "one or more of these statements are true": any,
    "any of these conditions is met": any,
}
_FORMS = (
    r"(?P<effect>[^.]+?) (?:if and only if|exactly when) "
    r"(?:(?P<joined>[^.:]+): )?(?P<conditions>[^.:]+)\.",
    r"It is the case that (?P<effect>[^.]+?) whenever (?P<joined>[^.:]+), and only then: "
    r"(?P<conditions>[^.:]+)\.",
    r"It is the case that (?P<effect>[^.]+?) whenever (?P<conditions>[^.:]+), and only then\."
    r"(?P<joined>)",
)
# With one link in a sentence, no form looks at any of its words more than a few times.
_LINK = r" (?:if and only if|exactly when|whenever) "
_DO = (
    r"Suppose that, regardless of all other circumstances, (?P<cause>[^.]+), while every other "
    r"rule and every fact stays as told\. In that case: ",
    r"Now imagine an intervention: (?P<cause>[^.]+), whatever the rules say\."
    r"(?: All other rules still apply, and the facts are those told\.)?"
    r"(?: After the intervention:)? ",
    r"Someone steps in and sees to it that (?P<cause>[^.]+), no matter what\."
    r"(?: The rule for this is set aside; all others decide as ever, by the facts told\.)?"
    r"(?: With that done:)? ",
    r"(?P<cause>)",  # things as they are
)
_QUESTIONS = [rf"{do}(?P<asked>[^.:?]+\?)(?: Answer Yes or No\.)?" for do in _DO]


def read(context: str, question: str, theme: str | Theme | None = None) -> int:
    """Answer a question from the text alone: 1 for yes, 0 for no.

    Of the context, the causal and the sample one, the rules stand in the first paragraph. Without a
    theme, all of :mod:`lib.ccr.themes` are tried. Refused are a sentence that is not known, a rule
    or a fact that is told twice or missing, and rules that form a cycle.

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
    rules = _rules(theme, context.partition("\n\n")[0])
    for clause in (asked, set_clause or asked):
        check(clause in rules, "the context must rule what is asked or set", clause)
    truth = dict(_facts(theme, context))
    for clause, (joined, conditions) in rules.items():
        told = joined(truth[condition] for condition in conditions)
        truth[clause] = set_value if clause == set_clause else told
    return int(truth[asked])


# A prompt's question, rules and facts return in many others: each is understood once.


@lru_cache(maxsize=4_096)
def _question(question: str, known: tuple[Theme, ...]) -> tuple[Theme, str, str | None, bool]:
    """Return the theme, the clause asked for, and the clause that is set and its value, if any."""
    found = _first(_QUESTIONS, question.strip())
    for theme in known:
        if found and (asked := theme.affirmed(found["asked"], form=2)):
            break
    else:
        raise InputError(f"no theme recognises the question {question!r}")
    denied = theme.affirmed(found["cause"], form=1)
    return theme, asked, denied or found["cause"] or None, denied is None


@lru_cache(maxsize=64)
def _facts(theme: Theme, context: str) -> dict[str, bool]:
    """Say of every condition that no rule decides whether it holds, by the facts told."""
    first, _, told = context.partition("\n\n")
    _refuse_unknown(theme, _sentences(told))
    rules, facts = _rules(theme, first), {}
    for own in itertools.chain.from_iterable(conditions for _, conditions in rules.values()):
        if own not in rules:
            facts[own] = theme.holds(own, context)
            check(facts[own] is not None, "the context must decide every condition", own)
    return facts


@lru_cache(maxsize=64)
def _rules(theme: Theme, context: str) -> dict[str, Rule]:
    """Return the rule of every clause, those of clauses that decide others first."""
    rules: dict[str, Rule] = {}
    for sentence in _sentences(context):
        if rule := _rule(sentence):
            check(rule[0] not in rules, "the context may not tell a rule twice", rule[0])
            rules[rule[0]] = rule[1]
        else:
            _refuse_unknown(theme, [sentence])
    sorter = TopologicalSorter({clause: conditions for clause, (_, conditions) in rules.items()})
    try:
        return {clause: rules[clause] for clause in sorter.static_order() if clause in rules}
    except CycleError as error:
        raise InputError(f"the rules form a cycle: {' → '.join(error.args[1])}") from None


def _rule(sentence: str) -> tuple[str, Rule] | None:
    """Return the clause that a sentence rules and when it is true; None if it is no rule."""
    found = _first(_FORMS, sentence) if len(re.findall(_LINK, sentence)) == 1 else None
    if not found:
        return None
    told, joined = found["conditions"], found["joined"] or ""
    conditions, listed = [told], told.partition(";")[0]
    if joined:
        conditions = [condition[4:] for condition in told.split("; ")]
        letters = zip(string.ascii_lowercase, conditions, strict=False)
        listed = "; ".join(f"({letter}) {condition}" for letter, condition in letters)
    if told != listed or joined not in _JOINED:
        return None
    effect = found["effect"]
    if effect.startswith(("The ", "A ", "An ")):  # at the beginning of a sentence only
        effect = effect[0].lower() + effect[1:]
    return effect, (_JOINED[joined], tuple(conditions))


def _first(forms: Iterable[str], text: str) -> re.Match | None:
    return next((found for form in forms if (found := re.fullmatch(form, text))), None)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text.strip()) if text else []


def _refuse_unknown(theme: Theme, sentences: list[str]) -> None:
    for sentence in sentences:
        met = _known(theme).fullmatch(sentence)
        check(met is not None, f"theme {theme.name!r} must know every sentence", sentence)


@lru_cache
def _known(theme: Theme) -> re.Pattern:
    """Match the sentences that open and close a context, and those of a sample."""
    frame = [one for text in (*theme.openings, theme.closing) for one in _sentences(text)]
    return re.compile("|".join([*map(re.escape, frame), *theme.sentences]))
