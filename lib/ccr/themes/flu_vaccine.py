"""FluVaccine: friends decide whether to get a flu shot, each by a symptom of last winter."""

import re

from lib.ccr.theme import Draw, Node, Theme, counted, only

#: None of these is part of another, so that the days of one are never days of another.
SYMPTOMS = (
    *("a fever", "a cough", "a sore throat", "a headache"),
    *("an earache", "a runny nose", "a rash", "a toothache"),
)

#: No symptom is told to last longer than this, in days.
MOST_DAYS = 14


class FluVaccine(Theme):
    """Noise is true if one symptom lasted at least a number of days, both a friend's own.

    Other symptoms lasted as long; they do not matter, and the story says so. The
    days are drawn evenly among those that tell the same.
    """

    name = "flu_vaccine"
    openings = (
        "A group of friends decides who gets the flu shot, thinking back to last winter.",
        "Autumn has come, and each of these friends either gets the flu shot or goes without. "
        "Last winter is still on their minds.",
        "The clinic round the corner offers flu shots to a group of friends, and last winter "
        "weighs on what each of them decides.",
    )
    closing = (
        "Nothing that these rules do not name weighs on a decision: of all symptoms of a friend "
        "only the one in that friend's rule counts, and days of others are never added to it."
    )
    clauses = (
        ("{} gets the flu shot", "{} does not get the flu shot", "Does {} get the flu shot?"),
    )
    sentences = (
        rf"Last winter, [\w-]+ (never had ({'|'.join(SYMPTOMS)})|had ({'|'.join(SYMPTOMS)}) for "
        r"(\d+ days|1 day))\.",
        r"[\w-]+ lives (\d+ streets|1 street) away from the clinic\.",
    )

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return one friend a node."""
        return [self._friend(name, draw.integer(3, 9), draw) for name in draw.people(n)]

    def _friend(self, name: str, least: int, draw: Draw) -> Node:
        def lasted(symptom: str, days: int) -> str:
            return f"Last winter, {name} had {symptom} for {counted(days, 'day')}."

        symptom, other, third = draw.some(SYMPTOMS, 3)
        return Node(
            name,
            *(form.format(name) for form in self.clauses[0]),
            own=f"{name} had {symptom} for at least {least} days last winter",
            when_true=[lasted(symptom, days) for days in range(least, MOST_DAYS + 1)],
            when_false=[
                f"Last winter, {name} never had {symptom}.",
                *(lasted(symptom, days) for days in range(1, least)),
            ],
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
