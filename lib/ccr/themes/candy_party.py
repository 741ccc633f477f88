"""CandyParty: friends at a party, each content with a number of candies of her own."""

import re

from lib.ccr.theme import Draw, Node, Theme, counted, only

#: Nobody gets more candies than this.
MOST = 12


class CandyParty(Theme):
    """Noise is true if a friend gets at least the number of candies that she wishes for.

    How many candies make content is drawn apart from how likely that is, and the
    number that a friend gets is drawn evenly among those that tell the same: neither
    betrays the probability.
    """

    name = "candy_party"
    openings = (
        "A group of friends meets at a party, where a machine hands out candies at random.",
        "At a party, every friend draws a paper bag, which may hold many candies, few or none.",
        "A piñata bursts at a party, and every friend picks up whatever candies land nearby.",
    )
    closing = "Nothing else makes any of these friends happy or unhappy."
    clauses = (("{} is happy", "{} is not happy", "Is {} happy?"),)
    sentences = (
        r"[\w-]+ gets (\d+ candies|1 candy)\.",
        r"[\w-]+ likes the \w+ wrappers best\.",
        r"[\w-]+ trades a \w+ balloon for a \w+ one\.",
        r"[\w-]+ arrives with (\d+ bottles|1 bottle) of lemonade\.",
    )

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw.integer(3, 9), draw) for name in draw.people(n)]

    def _friend(self, name: str, wish: int, draw: Draw) -> Node:
        def gets(number: int) -> str:
            return f"{name} gets {counted(number, 'candy', 'candies')}."

        color, other = draw.some(("red", "yellow", "green", "blue", "purple", "white"), 2)
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name} gets at least {wish} candies",
            when_true=[gets(number) for number in range(wish, MOST + 1)],
            when_false=[gets(number) for number in range(wish)],
            asides=[
                f"{name} likes the {color} wrappers best.",
                f"{name} trades a {color} balloon for a {other} one.",
                f"{name} arrives with {counted(draw.integer(1, 4), 'bottle')} of lemonade.",
            ],
        )

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the number of candies with the wish."""
        wish = re.fullmatch(r"([\w-]+) gets at least (\d+) candies", own)
        if not wish:
            return None
        got = only(rf"(?<![\w-]){wish[1]} gets (\d+) cand(?:y|ies)\.", text)
        return got and int(got[1]) >= int(wish[2])


THEME = CandyParty()
