"""FlowerGarden: friends sow seeds without labels and wish for a colour of their own."""

import re
from functools import lru_cache

from lib.ccr.theme import Draw, Node, Theme, only

#: The shades of every colour. The story tells them too: nobody has to know what cobalt is.
SHADES = {
    "red": ("crimson", "scarlet", "ruby", "cherry"),
    "yellow": ("lemon", "canary", "saffron", "amber"),
    "blue": ("azure", "cobalt", "indigo", "navy"),
    "purple": ("lilac", "plum", "mauve", "lavender"),
}

_CATALOGUE = "; ".join(
    f"shades of {color} are {', '.join(shades[:-1])} and {shades[-1]}"
    for color, shades in SHADES.items()
)


class FlowerGarden(Theme):
    """Noise is true if a friend's flowers bloom in a shade of the colour that is wished for.

    The shade is drawn evenly among those that tell the same, so it does not betray
    how likely a wish comes true.
    """

    name = "flower_garden"
    openings = tuple(
        f"{situation} The catalogue leaves no doubt: {_CATALOGUE}."
        for situation in (
            "A group of friends sows seeds from packets that have lost their labels.",
            "In spring, friends swap seeds that nobody can tell apart, and each sows a bed.",
            "Each of these friends has sown mystery seeds and now waits for them to bloom.",
        )
    )
    clauses = (("{} is delighted", "{} is not delighted", "Is {} delighted?"),)
    sentences = (
        r"[\w-]+'s flowers bloom in \w+\.",
        r"[\w-]+ wears \w+ gloves\.",
        r"[\w-]+ carries the water in a can painted \w+\.",
        r"[\w-]+ weeds the bed \d+ times before summer\.",
        r"The catalogue[\w ]*: shades of \w+ are [\w, ]+(; shades of \w+ are [\w, ]+)*\.",
    )
    closing = "Nothing else decides whether any of these friends is delighted."

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw) for name in draw.people(n)]

    def _friend(self, name: str, draw: Draw) -> Node:
        wish = draw.one(list(SHADES))
        bloom = {
            color: [f"{name}'s flowers bloom in {shade}." for shade in shades]
            for color, shades in SHADES.items()
        }
        gloves, can = draw.some([shade for shades in SHADES.values() for shade in shades], 2)
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name}'s flowers bloom in a shade of {wish}",
            when_true=bloom.pop(wish),
            when_false=[sentence for sentences in bloom.values() for sentence in sentences],
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
        told = bloom and only(rf"shades of {wish[2]} are ([\w, ]+)[;.]", text)
        if not told or bloom[1] not in _shades(text):
            return None
        return bloom[1] in re.split(", | and ", told[1])


@lru_cache(maxsize=64)
def _shades(text: str) -> list[str]:
    """Return all shades of the catalogue that the text tells."""
    lists = re.findall(r"shades of \w+ are ([\w, ]+)[;.]", text)
    return re.split(", | and ", ", ".join(lists))


THEME = FlowerGarden()
