"""FluVaccine: friends decide whether to get a flu shot, each by a symptom of last winter."""

import re
from typing import ClassVar

from lib.ccr.theme import Draw, Node, Theme, counted, only

#: No symptom is told to last longer than this, in days.
MOST_DAYS = 14


class FluVaccine(Theme, name="flu_vaccine"):
    """Noise is true if one symptom lasted at least a number of days, both a friend's own.

    Other symptoms lasted as long; they do not matter, and the story says so. The days are drawn
    evenly among those that tell the same.
    """

    symptoms: ClassVar[list[str]]

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw.integer(3, 9), draw) for name in draw.people(n)]

    def _friend(self, name: str, least: int, draw: Draw) -> Node:
        def lasted(symptom: str, days: int) -> str:
            return f"Last winter, {name} had {symptom} for {counted(days, 'day')}."

        symptom, other, third = draw.some(self.symptoms, 3)
        days_told = [lasted(symptom, days) for days in range(1, MOST_DAYS + 1)]
        told = [f"Last winter, {name} never had {symptom}.", *days_told]
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name} had {symptom} for at least {least} days last winter",
            when_true=told[least:],
            when_false=told[:least],
            asides=[
                lasted(other, draw.integer(1, MOST_DAYS)),
                lasted(third, draw.integer(1, MOST_DAYS)),
                f"{name} lives {counted(draw.integer(1, 9), 'street')} away from the clinic.",
            ],
        )

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the days of the one symptom with the least number of them."""
        least = re.fullmatch(r"([\w-]+) had ([a-z ]+) for at least (\d+) days last winter", own)
        if not least:
            return None
        name, symptom, days = least.groups()
        told = rf"Last winter, {name} (?:never had {symptom}|had {symptom} for (\d+) days?)\."
        found = only(told, text)
        return found and int(found[1] or 0) >= int(days)


THEME = FluVaccine()
