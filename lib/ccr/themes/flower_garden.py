"""FlowerGarden: friends sow seeds without labels and wish for a colour of their own."""

import re
from functools import lru_cache

from lib.ccr.theme import Draw, Node, Theme, only
from lib.errors import check_once


class FlowerGarden(Theme, name="flower_garden"):
    """Noise is true if a friend's flowers bloom in a shade of the colour that is wished for.

    The shade is drawn evenly among those that tell the same, so it does not betray how likely a
    wish comes true.
    """

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw) for name in draw.people(n)]

    def _friend(self, name: str, draw: Draw) -> Node:
        catalogue = _catalogue(self.openings[0])
        wish = draw.one(list(catalogue))
        shades = [shade for some in catalogue.values() for shade in some]
        gloves, can = draw.some(shades, 2)
        others = [shade for shade in shades if shade not in catalogue[wish]]
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name}'s flowers bloom in a shade of {wish}",
            when_true=[f"{name}'s flowers bloom in {shade}." for shade in catalogue[wish]],
            when_false=[f"{name}'s flowers bloom in {shade}." for shade in others],
            asides=[
                f"{name} wears {gloves} gloves.",
                f"{name} carries the water in a can painted {can}.",
                f"{name} weeds the bed {draw.integer(2, 6)} times before summer.",
            ],
        )

    def holds(self, own: str, text: str) -> bool | None:
        """Look the shade of the flowers up in the catalogue that the text tells."""
        wish = re.fullmatch(r"([\w-]+)'s flowers bloom in a shade of (\w+)", own)
        bloom = wish and only(rf"(?<![\w-]){wish[1]}'s flowers bloom in (\w+)\.", text)
        catalogue = _catalogue(text)
        if not bloom or not any(bloom[1] in shades for shades in catalogue.values()):
            return None
        return bloom[1] in catalogue[wish[2]] if wish[2] in catalogue else None


@lru_cache(maxsize=64)
def _catalogue(text: str) -> dict[str, list[str]]:
    """Return the shades of every colour that a text tells."""
    told = re.findall(r"shades of (\w+) are ([\w, ]+)[;.]", text)
    check_once("colour of the catalogue", [color for color, _ in told])
    return {color: re.split(", | and ", shades) for color, shades in told}


THEME = FlowerGarden()
