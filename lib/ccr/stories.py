"""Stories: a Boolean world told in words that can be read in only one way.

A prompt has three parts. The *causal context* tells the rules, one sentence per node: the node is
true *if and only if* its conditions hold, which form a lettered list under *at least one* or *all*.
At the end, it says that nothing else matters. The *sample context* tells what happened this time:
the noise of every node, or of some, among details that do not matter. The *question* asks about one
node, as things are or after an intervention that holds regardless of the rules. If some facts are
not told, it asks whatever :mod:`lib.ccr.questions` asks.

The paired form of a prompt is a Python program that tells the same rules, facts and question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Template, ascii_lowercase

import numpy as np

from lib import ROOT
from lib.ccr.questions import Claim, Question, of_causation
from lib.ccr.theme import Draw, Node, Theme
from lib.ccr.worlds import Actions, World
from lib.errors import check, check_once
from lib.files import read_yaml
from lib.noise import uniforms

#: Wordings that say the same: a rule with "one" condition, with "or" or with "and", and an
#: intervention, "do".
WORDINGS: list[dict[str, str]] = read_yaml(ROOT / "data" / "wordings.yml")

#: What is said where facts are not told, and the forms of questions that have words of their own.
FORMS: dict[str, str] = read_yaml(ROOT / "data" / "questions.yml")

_PROGRAM = Template((ROOT / "data" / "program.txt").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Story:
    """A world told with the vocabulary of a theme.

    `name` tells the story from others of the same `seed`. `wording` is the number of one of the
    `WORDINGS`, and `asides` says whether to tell details that do not matter.
    """

    theme: Theme
    world: World
    seed: int
    name: str
    wording: int = 0
    asides: bool = True

    @cached_property
    def nodes(self) -> list[Node]:
        """The nodes as they appear in this story."""
        n = self.world.chain.n_nodes
        nodes = self.theme.nodes(n, Draw(self.seed, f"{self.name}, nodes"))
        check(len(nodes) == n, f"theme {self.theme.name!r} must return {n} nodes", len(nodes))
        words = [text for one in nodes for text in (one.label, one.true, one.false, one.own)]
        words += [text for one in nodes for text in (*one.when_true, *one.when_false)]
        check_once(f"label, clause or sentence of theme {self.theme.name!r}", words)
        return nodes

    @property
    def rules(self) -> list[tuple[str, str]]:
        """The parts of the causal context, as (role, text): situation, rules and closed world."""
        wording = WORDINGS[self.wording]
        parts = [("situation", self.theme.openings[self.wording % len(self.theme.openings)])]
        chain, operators = self.world.chain, self.world.operators
        for number, (node, causes) in enumerate(zip(self.nodes, chain.parents, strict=True)):
            clauses = [node.own, *(self.nodes[cause].true for cause in causes)]
            rule = wording[operators[number] if causes else "one"]
            # With letters, a list can be read in only one way.
            lettered = (f"({ascii_lowercase[i]}) {one}" for i, one in enumerate(clauses))
            told = rule.format(effect=node.true, causes="; ".join(lettered) if causes else node.own)
            parts.append((f"rule of node {number}", told[0].upper() + told[1:]))
        return [*parts, ("closed world", self.theme.closing)]

    @property
    def context(self) -> str:
        """The causal context."""
        return " ".join(text for _, text in self.rules)

    def facts(self, noise: np.ndarray) -> list[tuple[int | None, np.ndarray]]:
        """Tell noise, shape (nodes, n), in parts: a node, or None for an aside, and n sentences.

        Noise of -1 is not told: its sentence is empty.
        """
        n = noise.shape[1]
        details = uniforms(self.seed, f"{self.name}, details", 0, n, 2 * len(self.nodes))

        def chosen(sentences: Sequence[str], term: int) -> np.ndarray:
            """Choose a sentence for every sample, all with equal chances."""
            which = (details[term] * len(sentences)).astype(int)
            return np.asarray(np.take(np.array(sentences, object), which))

        parts: list[tuple[int | None, np.ndarray]] = []
        for number, (node, so) in enumerate(zip(self.nodes, noise, strict=True)):
            true, false = (chosen(told, 2 * number) for told in (node.when_true, node.when_false))
            parts.append((number, np.where(so < 0, "", np.where(so, true, false))))
            if self.asides and node.asides:
                parts.append((None, chosen(node.asides, 2 * number + 1)))
        return [*parts, (None, np.where((noise < 0).any(axis=0), FORMS["untold"], ""))]

    def samples(self, noise: np.ndarray) -> list[str]:
        """Tell noise as n sample contexts; see :meth:`facts`."""
        columns = [sentences for _, sentences in self.facts(noise)]
        return [" ".join(filter(None, sentences)) for sentences in zip(*columns, strict=True)]

    def ask(self, question: Question) -> str:
        """Return a question in words, without saying which answers are allowed.

        It claims that one node is true, perhaps after some actions, and tells what is known of
        nodes as they are. *Necessity*, *sufficiency* and *dependence* have words of their own for
        the claims of :func:`~lib.ccr.questions.every_question`. Any other question is refused.

        Examples
        --------
        >>> from lib.ccr.questions import ANSWERS, Claim, decide
        >>> from lib.ccr.tasks import generate
        >>> task = generate("candy_party", [3, 3], n_samples=5, withheld=0.6).tasks[0]
        >>> mine = Question("mine", (Claim(2),), given=(Claim(4, False),))
        >>> task.story.ask(mine)
        'As things are before any change, it is known that Kaito is not happy. Is Elif happy?'
        >>> ANSWERS[decide(task.world, [mine], task.told)[0, 0]]
        'Cannot be known'
        """
        (effect, value, actions), *more = question.claims
        told = value and not more and not any(known.actions for known in question.given)
        if question.kind in FORMS:  # its words stand for certain claims
            told = bool(actions) and question in of_causation(actions[0][0], effect)
        rule = "a question must claim that one node is true, and its `given` must have no actions"
        check(bool(told), rule, question)
        asked = self.nodes[effect].question
        if question.kind in FORMS:
            cause = self.nodes[actions[0][0]]
            asked = FORMS[question.kind].format(cause=cause, effect=self.nodes[effect])
        elif actions:
            asked = WORDINGS[self.wording]["do"].format(cause=self._done(actions), question=asked)
        known = " and that ".join(self._clause(node, value) for node, value, _ in question.given)
        return FORMS["known"].format(known=known) + asked if known else asked

    def _done(self, actions: Actions) -> str:
        """Say in words what is done; a node that is kept as it would be otherwise comes last."""
        check_once("node that is set", [node for node, _ in actions])
        *first, (node, value) = actions
        kept = () if isinstance(value, bool) else value
        rule = "only the last of several actions may keep a node, after actions that keep none"
        met = all(isinstance(one, bool) for _, one in (*first, *kept))
        check(met and (isinstance(value, bool) or bool(first and kept)), rule, actions)
        if isinstance(value, bool):
            return " and ".join(self._clause(*action) for action in actions)
        told = {"node": self.nodes[node].true, "otherwise": self._done(value)}
        return FORMS["kept"].format(actions=self._done(actions[:-1]), **told)

    def _clause(self, node: int, value: bool | Actions) -> str:
        return self.nodes[node].true if value else self.nodes[node].false

    def program(self, question: Question, told: np.ndarray) -> str:
        """Return a program of one sample, whose noise is 1, 0 or, if untold, -1, and a question.

        The program goes through all worlds that fit and prints the answer that it finds.
        """
        names = [repr(node.label) for node in self.nodes]
        facts, rules = [], []
        for node, causes in enumerate(self.world.chain.parents):
            facts.append(f"    {names[node]}: {(False, True, None)[told[node]]},")
            values = [f"own[{names[node]}]", *(f"now[{names[cause]}]" for cause in causes)]
            rule = f" {self.world.operators[node]} ".join(values)
            rules.append(f"    now[{names[node]}] = do.get({names[node]}, {rule})")

        def after(node: int, actions: Actions) -> str:
            """Write the expression of a node's value after some actions."""
            kept = {one: after(one, v) if isinstance(v, tuple) else v for one, v in actions}
            done = ", ".join(f"{names[one]}: {value}" for one, value in kept.items())
            return f"world(own, {{{done}}})[{names[node]}]"

        def hold(claims: Sequence[Claim]) -> str:
            told = [f"{after(node, actions)} is {value}" for node, value, actions in claims]
            return " and ".join(told) or "True"

        parts = {"fits": hold(question.given), "claim": hold(question.claims)}
        return _PROGRAM.substitute(parts, told="\n".join(facts), rules="\n".join(rules))
