"""FluVaccine: friends decide whether to get a flu shot, each by a symptom of last winter."""

from typing import ClassVar

from lib.ccr.theme import Draw, Drawn, Friends, counted, only, understood

#: No story tells of a symptom that lasted longer than this, in days.
MOST_DAYS = 14


class FluVaccine(Friends, name="flu_vaccine"):
    """Noise is true if a friend's own symptom lasted at least a number of days of her own.

    Other symptoms are told, too; they do not matter, and the story says so. The days are drawn
    evenly among those that tell the same.
    """

    symptoms: ClassVar[list[str]]

    def drawn(self, name: str, draw: Draw) -> Drawn:
        """Return sentences with enough days, sentences with too few, and what else is drawn."""
        least, (symptom, *others) = draw.integer(3, 9), draw.some(self.symptoms, 3)
        days = [f"had {symptom} for {counted(number, 'day')}" for number in range(1, MOST_DAYS + 1)]
        told = [f"Last winter, {name} {some}." for some in (f"never had {symptom}", *days)]
        words = {"symptom": symptom, "least": least}
        for place, other in zip(("second", "third"), others, strict=True):
            words[place] = f"{other} for {counted(draw.integer(1, MOST_DAYS), 'day')}"
        words["streets"] = counted(draw.integer(1, 9), "street")
        return told[least:], told[:least], words

    def holds(self, own: str, text: str) -> bool | None:
        """Compare the days of the friend's own symptom with the number required."""
        symptoms = "|".join(self.symptoms)
        least = rf"([\w-]+) had ({symptoms}) for at least (\d+) days last winter"
        name, symptom, days = understood(least, own).groups()
        told = rf"Last winter, {name} (?:never had {symptom}|had {symptom} for (\d+) days?)\."
        found = only(told, text)
        return found and int(found[1] or 0) >= int(days)


THEME = FluVaccine()
