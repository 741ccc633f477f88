"""Stories: a Boolean world told in words, without a second reading.

A prompt has three parts. The *causal context* tells the rules, one sentence a node:
what is true *if and only if* what holds, alternatives as a lettered list under
*at least one* or *all*, and, at the end, that nothing else matters. The *sample
context* tells what happened this time: the noise of every node, among details that
do not matter. The *question* asks for one node, as things are or after an
intervention that holds regardless of the rules.

Whoever reads a prompt needs nothing but the prompt; :mod:`lib.ccr.reader` does so.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lib.ccr.theme import Draw, Node, Theme, lettered
from lib.ccr.worlds import World
from lib.noise import uniforms

#: Ways to say the same: of one condition, of "or", of "and", of an intervention.
WORDINGS = (
    {
        "one": "{effect} if and only if {causes}.",
        "or": "{effect} if and only if at least one of the following holds: {causes}.",
        "and": "{effect} if and only if all of the following hold: {causes}.",
        "do": "Suppose that, regardless of all other circumstances, {cause}, while every other "
        "rule and every fact stays as told. In that case: {question}",
    },
    {
        "one": "{effect} exactly when {causes}.",
        "or": "{effect} exactly when one or more of these statements are true: {causes}.",
        "and": "{effect} exactly when every one of these statements is true: {causes}.",
        "do": "Now imagine an intervention: {cause}, whatever the rules say. All other rules "
        "still apply, and the facts are those told. After the intervention: {question}",
    },
    {
        "one": "It is the case that {effect} whenever {causes}, and only then.",
        "or": "It is the case that {effect} whenever any of these conditions is met, and only "
        "then: {causes}.",
        "and": "It is the case that {effect} whenever all of these conditions are met together, "
        "and only then: {causes}.",
        "do": "Someone steps in and sees to it that {cause}, no matter what. The rule for this is "
        "set aside; all others decide as ever, by the facts told. With that done: {question}",
    },
)

#: What every question ends with.
ANSWER = "Answer Yes or No."


@dataclass(frozen=True)
class Story:
    """A world told with the vocabulary of a theme.

    Parameters
    ----------
    theme : Theme
    world : World
    seed : int
    name : str
        Names the story among those of the seed.
    wording : int
        Which of the ways to say the same, from 0.
    asides : bool
        Tell details that do not matter.

    Examples
    --------
    >>> from lib.ccr.graphs import Chain
    >>> from lib.ccr.theme import find_theme
    >>> world = World(Chain([2]), ["and", "or"], [0.5, 0.5])
    >>> story = Story(find_theme("candy_party"), world, seed=0, name="a party")
    >>> story.question(1).endswith("happy? Answer Yes or No.")
    True
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
        return self.theme.nodes(self.world.chain.n_nodes, Draw(self.seed, f"{self.name}, nodes"))

    @property
    def context(self) -> str:
        """The causal context: the situation, a rule for every node, a closed world."""
        wording = WORDINGS[self.wording % len(WORDINGS)]
        sentences = [self.theme.openings[self.wording % len(self.theme.openings)]]
        for node, causes, operator in zip(
            self.nodes, self.world.chain.parents, self.world.operators, strict=True
        ):
            clauses = [node.own, *(self.nodes[cause].true for cause in causes)]
            rule = wording[operator] if causes else wording["one"]
            told = lettered(clauses) if causes else clauses[0]
            sentence = rule.format(effect=node.true, causes=told)
            sentences.append(sentence[0].upper() + sentence[1:])
        return " ".join([*sentences, self.theme.closing])

    def samples(self, noise: np.ndarray, first: int = 0) -> list[str]:
        """Tell samples of the noise, shape (nodes, n), as n sample contexts.

        `first` is the first sample, of which the details depend.
        """
        n = noise.shape[1]
        details = uniforms(self.seed, f"{self.name}, details", 0, n, 2 * len(self.nodes), first)
        columns = []
        for position, node in enumerate(self.nodes):
            # Alternatives that tell "true" stand first; the choice among each is even.
            told = np.array([*node.when_true, *node.when_false], dtype=object)
            k = len(node.when_true)
            low, size = np.where(noise[position], 0, k), np.where(noise[position], k, len(told) - k)
            columns.append(told[low + (details[2 * position] * size).astype(int)])
            if self.asides and node.asides:
                asides = np.array(node.asides, dtype=object)
                columns.append(asides[(details[2 * position + 1] * len(asides)).astype(int)])
        return [" ".join(sentences) for sentences in zip(*columns, strict=True)]

    def question(self, effect: int, cause: int | None = None, value: bool = True) -> str:
        """Ask for a node, as things are, or after a cause is set to a value."""
        question = self.nodes[effect].question
        if cause is not None:
            clause = self.nodes[cause].true if value else self.nodes[cause].false
            form = WORDINGS[self.wording % len(WORDINGS)]["do"]
            question = form.format(cause=clause, question=question)
        return f"{question} {ANSWER}"
