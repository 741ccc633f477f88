"""CandyParty: friends at a party, each content with a number of candies of her own."""

from lib.ccr.theme import Draw, Drawn, Friends, counted, only, understood

#: Nobody gets more candies than this.
MOST = 12


class CandyParty(Friends, name="candy_party"):
    """Noise is true if a friend gets at least the number of candies that she wishes for.

    How many candies make content is drawn apart from how likely that is, and the number that a
    friend gets is drawn evenly among those that tell the same: neither betrays the probability.
    """

    def drawn(self, name: str, draw: Draw) -> Drawn:
        """Return how many candies make happy, how many do not, and what else happens."""
        wish = draw.integer(3, 9)
        candies = [counted(number, "candy", "candies") for number in range(MOST + 1)]
        gets = [f"{name} gets {some}." for some in candies]
        color, other = draw.some(("red", "yellow", "green", "blue", "purple", "white"), 2)
        words = {"wish": wish, "color": color, "other": other}
        return gets[wish:], gets[:wish], words | {"bottles": counted(draw.integer(1, 4), "bottle")}

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the number of candies with the wish."""
        wish = understood(r"([\w-]+) gets at least (\d+) candies", own)
        got = only(rf"(?<![\w-]){wish[1]} gets (\d+) cand(?:y|ies)\.", text)
        return got and int(got[1]) >= int(wish[2])


THEME = CandyParty()
