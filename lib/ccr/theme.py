"""What a theme is: the vocabulary of a story, and how a reader recognises it.

A theme knows nothing of graphs, operators or truth. It says what the nodes of a story are called,
what makes each node true of its own accord, how this is told, and which details that do not matter
are told with it. Every module of :mod:`lib.ccr.themes` holds one theme, in the variable ``THEME``.
"""

import itertools
import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, TypeAlias

from lib import ROOT
from lib.errors import InputError, check, check_known
from lib.files import read_yaml
from lib.noise import uniforms

#: First names from several languages; none is the beginning of another.
FRIENDS: list[str] = read_yaml(ROOT / "data" / "friends.yml")


@dataclass(frozen=True)
class Node:
    """How a node appears in a story; where several sentences are listed, each sample uses one.

    The clauses `true` and `false` begin as they do within a sentence: with a small letter, unless
    they begin with a name. The story makes this letter a capital where a sentence begins.
    """

    label: str  # in tables
    true: str  # a clause that says that it is true
    false: str  # a clause that says that it is not
    question: str  # the yes-or-no question about it
    own: str  # a clause for what makes its noise true
    when_true: Sequence[str]  # sentences that tell that the noise is true
    when_false: Sequence[str]  # sentences that tell that it is false
    asides: Sequence[str] = ()  # sentences that do not matter

    def __post_init__(self) -> None:
        for name, least in (("when_true", 1), ("when_false", 1), ("asides", 0)):
            listed = getattr(self, name)
            met = not isinstance(listed, str) and len(listed) >= least
            check(met, f"node {self.label!r} must list its sentences in {name}", listed)


class Draw:
    """Random numbers and choices of one story, from noise addressed by a seed and a name."""

    def __init__(self, seed: int, name: str):
        self.seed, self.name, self.used = seed, name, 0

    def integer(self, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        self.used += 1
        return low + int(uniforms(self.seed, self.name, self.used)[0, 0] * (high - low + 1))

    def some(self, choices: Sequence[Any], k: int) -> list[Any]:
        """Return `k` different choices, in random order."""
        self.used += 1
        order = uniforms(self.seed, self.name, self.used, n=len(choices))[0].argsort()
        return [choices[position] for position in order[:k]]

    def one(self, choices: Sequence[Any]) -> Any:
        """Return one choice."""
        return choices[self.integer(0, len(choices) - 1)]

    def people(self, n: int) -> list[str]:
        """Return `n` different first names; if `n` is large, some are double or triple names."""
        names = list(FRIENDS)
        for parts in (2, 3):
            if n > len(names):
                names += ["-".join(name) for name in itertools.permutations(FRIENDS, parts)]
        check(n <= len(names), f"a story must have at most {len(names):,} people", n)
        return self.some(names, n)


class Theme(ABC):
    """The vocabulary of a story.

    A subclass implements `nodes` and `holds`. It states the attributes of this class or, with
    ``class CandyParty(Theme, name="candy_party")``, takes them from a file in ``data/themes``. No
    clause or label may hold a period, a colon, a semicolon, *and*, *whenever* or *exactly when*,
    because these tell the reader where a clause ends.
    """

    #: The name, as in ``generate("candy_party", ...)``; the module has the same name.
    name: ClassVar[str]

    #: Each opening introduces the situation, with all that must be known to judge a fact, such as
    #: a catalogue. The wordings of prompts take the openings in turn.
    openings: ClassVar[Sequence[str]]

    #: The text that closes the world: nothing but what is told decides.
    closing: ClassVar[str]

    #: Each entry says that a node is true, says that it is not, and asks whether it is; in it,
    #: ``{}`` stands for the name of the node.
    clauses: ClassVar[Sequence[Sequence[str]]] = ()

    #: Patterns of all sentences of a sample, facts and details; the reader refuses any other. If
    #: some facts are not told, it also refuses what a group ``name`` matches, if no condition does.
    sentences: ClassVar[Sequence[str]] = ()

    #: The operators that the theme insists on, if any.
    causal_functions: ClassVar[str | None] = None

    def __init_subclass__(cls, name: str = "") -> None:
        if name:
            for attribute, stated in read_yaml(ROOT / "data" / "themes" / f"{name}.yml").items():
                setattr(cls, attribute, stated)
            cls.name = name

    @abstractmethod
    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return the nodes of a story in topological order, with all that is drawn for it."""

    @abstractmethod
    def holds(self, own: str, text: str) -> bool | None:
        """Say whether a node's own condition holds according to a text; None if no fact tells."""

    def affirmed(self, text: str, form: int) -> str | None:
        """Return the clause that a text affirms (form 0), denies (1) or asks about (2), or None."""
        for clause in self.clauses:
            pattern = re.escape(clause[form]).replace(r"\{\}", r"([\w -]+)")
            if found := re.fullmatch(pattern, text):
                return clause[0].format(*found.groups())
        return None


#: Sentences for true noise, sentences for false noise, and the other words drawn, by name.
Drawn: TypeAlias = tuple[list[str], list[str], dict[str, Any]]


class Friends(Theme):
    """A theme whose nodes are friends, all told in the same words, with ``{}`` for drawn words.

    A subclass implements `drawn` instead of `nodes`.
    """

    #: The clause for what makes a friend's noise true, and sentences that do not matter.
    own: ClassVar[str]
    asides: ClassVar[Sequence[str]]

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend for each node."""
        return [self._friend(name, self.drawn(name, draw)) for name in draw.people(n)]

    def _friend(self, name: str, drawn: Drawn) -> Node:
        when_true, when_false, words = drawn
        own, *asides = (form.format(name=name, **words) for form in (self.own, *self.asides))
        true, false, question = (form.format(name) for form in self.clauses[0])
        return Node(name, true, false, question, own, when_true, when_false, asides)

    @abstractmethod
    def drawn(self, name: str, draw: Draw) -> Drawn:
        """Return sentences for true noise, those for false noise, and other drawn words by name."""


def understood(pattern: str, own: str) -> re.Match[str]:
    """Return the match of a condition that a rule tells; refuse a condition without a match."""
    if not (found := re.fullmatch(pattern, own)):
        raise InputError(f"the theme must know every condition: found {own!r}")
    return found


def only(pattern: str, text: str) -> re.Match[str] | None:
    """Return the only match of a fact's pattern, or None; refuse a fact that is told twice."""
    found = list(itertools.islice(re.finditer(pattern, text), 2))
    check(len(found) < 2, "a fact must not be told twice", [place[0] for place in found])
    return found[0] if found else None


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number and a noun that agree: 0 days, 1 candy."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


@cache
def themes() -> dict[str, Theme]:
    """Return all themes by name, found in :mod:`lib.ccr.themes`."""
    folders = pkgutil.resolve_name("lib.ccr.themes").__path__
    found: dict[str, Theme] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(folders)):
        theme: Any = getattr(pkgutil.resolve_name(f"lib.ccr.themes.{name}"), "THEME", None)
        rule = f"THEME of lib/ccr/themes/{name}.py must be a theme with the name {name!r}"
        check(isinstance(theme, Theme) and theme.name == name, rule, theme)
        found[name] = theme
    return found


def find_theme(name: str | Theme) -> Theme:
    """Return the theme of this name, or the given theme itself if it states all that it needs."""
    if not isinstance(name, Theme):
        check(not isinstance(name, type), "a theme must be an object, not a class", name)
        check_known("theme", name, themes())
        return themes()[name]
    needed = ("name", "openings", "closing")
    stated = [attribute for attribute in needed if getattr(name, attribute, None)]
    rule = f"theme {type(name).__name__} must state its {', '.join(needed)}"
    check(len(stated) == len(needed), rule, stated)
    for attribute in ("openings", "clauses", "sentences", "asides"):
        listed = getattr(name, attribute, ())
        rule = f"{attribute} of theme {name.name!r} must be a tuple; one entry needs a comma, (…,)"
        check(not isinstance(listed, str), rule, listed)
    for clause in name.clauses:
        check(len(clause) == 3, f"clauses of theme {name.name!r} must have 3 texts each", clause)
    return name
