"""CandyParty: friends at a party, each content with a number of candies of her own."""

import re

from lib.ccr.theme import Draw, Node, Theme, counted, only

#: Nobody gets more candies than this.
MOST = 12


class CandyParty(Theme, name="candy_party"):
    """Noise is true if a friend gets at least the number of candies that she wishes for.

    How many candies make content is drawn apart from how likely that is, and the number that a
    friend gets is drawn evenly among those that tell the same: neither betrays the probability.
    """

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw.integer(3, 9), draw) for name in draw.people(n)]

    def _friend(self, name: str, wish: int, draw: Draw) -> Node:
        candies = [counted(number, "candy", "candies") for number in range(MOST + 1)]
        gets = [f"{name} gets {some}." for some in candies]
        color, other = draw.some(("red", "yellow", "green", "blue", "purple", "white"), 2)
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name} gets at least {wish} candies",
            when_true=gets[wish:],
            when_false=gets[:wish],
            asides=[
                f"{name} likes the {color} wrappers best.",
                f"{name} trades a {color} balloon for a {other} one.",
                f"{name} arrives with {counted(draw.integer(1, 4), 'bottle')} of lemonade.",
            ],
        )

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the number of candies with the wish."""
        wish = re.fullmatch(r"([\w-]+) gets at least (\d+) candies", own)
        got = wish and only(rf"(?<![\w-]){wish[1]} gets (\d+) cand(?:y|ies)\.", text)
        return got and int(got[1]) >= int(wish[2])


THEME = CandyParty()
