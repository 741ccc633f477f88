"""ClinicalNotes: from a patient's pain, through labs and vitals, to a surgeon's recommendation."""

import re
from collections.abc import Sequence
from typing import ClassVar

from lib.ccr.theme import Draw, Node, Theme, only, understood

#: The letters of codes; none of them can be taken for a digit.
LETTERS = "ACEFHJKLMNPRTUVWXY"


class ClinicalNotes(Theme, name="clinical_notes"):
    """The noise of pain is told by its rating, all other noise by coded entries of the history.

    No two codes of a story are the same. Codes that no rule names are told, too.
    """

    measures: ClassVar[list[str]]
    history: ClassVar[dict[str, str]]
    circumstances: ClassVar[list[str]]

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return the nodes of the pain, of labs and vitals, and of the recommendation."""
        numbers = draw.some(range(5_000 + 3 * n), 3 * n)
        codes = iter([f"{LETTERS[i % len(LETTERS)]}{100 + i // len(LETTERS)}" for i in numbers])
        entries = ["takes medication", *self.history, *self.history.values()]

        def entry(label: str, clause: Sequence[str]) -> Node:
            """Return a node that a coded entry of the history decides, with another as an aside."""
            code, other = next(codes), next(codes)
            had = draw.one(list(self.history))
            yes, no, asked = (form.format(label) for form in clause)
            true, false = (f"The patient {told} {code}." for told in (had, self.history[had]))
            asides = [f"The patient {told} {other}." for told in entries]
            return Node(label, yes, no, asked, f"the patient {had} {code}", [true], [false], asides)

        (yes, no, asked), *findings, surgery = self.clauses
        measures = draw.some(self.measures, min(n - 2, len(self.measures)))
        measures += [f"level of marker {next(codes)}" for _ in range(n - 2 - len(measures))]
        after = [entry(measure, draw.one(findings)) for measure in measures]
        after.append(entry("surgery", surgery))
        threshold, age = draw.integer(4, 8), draw.integer(30, 80)
        own = f"the pain rating is at least {threshold} out of 10"
        ratings = [f"The pain rating is {rating} out of 10." for rating in range(11)]
        asides = [aside.format(age=age) for aside in self.circumstances]
        root = Node("pain", yes, no, asked, own, ratings[threshold:], ratings[:threshold], asides)
        return [root, *after]

    def holds(self, own: str, text: str) -> bool | None:
        """Find the entry of the history, or compare the rating with the threshold."""
        if threshold := re.fullmatch(r"the pain rating is at least (\d+) out of 10", own):
            rating = only(r"The pain rating is (\d+) out of 10\.", text)
            return rating and int(rating[1]) >= int(threshold[1])
        had, code = understood(rf"the patient ({'|'.join(self.history)}) (\w+)", own).groups()
        told = only(rf"The patient ({had}|{self.history[had]}) {code}\.", text)
        return told and told[1] == had


THEME = ClinicalNotes()
