"""FlowerGarden: friends sow seeds without labels and wish for a colour of their own."""

import itertools
import re
from typing import ClassVar

from lib.ccr.theme import Draw, Drawn, Friends, only, understood
from lib.errors import check_known, check_once


class FlowerGarden(Friends, name="flower_garden"):
    """Noise is true if a friend's flowers bloom in a shade of the colour that she wishes for.

    The shade is drawn evenly among those that tell the same, so it does not betray how likely her
    wish is to come true.
    """

    shades: ClassVar[dict[str, list[str]]]

    def drawn(self, name: str, draw: Draw) -> Drawn:
        """Return sentences with a wished-for shade, those with others, and what else is drawn."""
        wish, shades = draw.one(list(self.shades)), itertools.chain(*self.shades.values())
        told = {shade: f"{name}'s flowers bloom in {shade}." for shade in shades}
        gloves, can = draw.some(list(told), 2)
        wished = [told.pop(shade) for shade in self.shades[wish]]
        words = {"wish": wish, "gloves": gloves, "can": can, "times": draw.integer(2, 6)}
        return wished, list(told.values()), words

    def holds(self, own: str, text: str) -> bool | None:
        """Look up the shade of the flowers in the catalogue that the text tells."""
        wish = understood(r"([\w-]+)'s flowers bloom in a shade of (\w+)", own)
        bloom = only(rf"(?<![\w-]){wish[1]}'s flowers bloom in (\w+)\.", text)
        told = re.findall(r"shades of (\w+) are ([\w, ]+)[;.]", text)
        check_once("colour of the catalogue", [color for color, _ in told])
        catalogue = {color: re.split(", | and ", shades) for color, shades in told}
        check_known("colour of the catalogue", wish[2], catalogue)
        if bloom:
            check_known("shade of the catalogue", bloom[1], itertools.chain(*catalogue.values()))
        return bloom and bloom[1] in catalogue[wish[2]]


THEME = FlowerGarden()
