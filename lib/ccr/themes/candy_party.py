"""CandyParty: friends at a party, each happy with a number of candies of her own."""

from lib.ccr.theme import Draw, Drawn, Friends, counted, only, understood

#: Nobody gets more candies than this.
MOST = 12


class CandyParty(Friends, name="candy_party"):
    """Noise is true if a friend gets at least the number of candies that she wishes for.

    The number that she wishes for is drawn independently of the probability, and the number that
    she gets is drawn evenly among those that tell the same, so neither betrays the probability.
    """

    def drawn(self, name: str, draw: Draw) -> Drawn:
        """Return sentences with enough candies, sentences with too few, and what else is drawn."""
        wish = draw.integer(3, 9)
        candies = [counted(number, "candy", "candies") for number in range(MOST + 1)]
        gets = [f"{name} gets {some}." for some in candies]
        color, other = draw.some(("red", "yellow", "green", "blue", "purple", "white"), 2)
        words = {"wish": wish, "color": color, "other": other}
        return gets[wish:], gets[:wish], words | {"bottles": counted(draw.integer(1, 4), "bottle")}

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the number of candies that a friend gets with her wish."""
        wish = understood(r"([\w-]+) gets at least (\d+) candies", own)
        got = only(rf"(?<![\w-]){wish[1]} gets (\d+) cand(?:y|ies)\.", text)
        return got and int(got[1]) >= int(wish[2])


THEME = CandyParty()
