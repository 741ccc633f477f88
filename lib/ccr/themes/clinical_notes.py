"""ClinicalNotes: from a patient's pain, over labs and vitals, to a surgeon's recommendation."""

import re

from lib.ccr.theme import Draw, Node, Theme, only

#: What is measured between the pain and the recommendation; markers with a code come after.
MEASURES = (
    *("heart rate", "blood pressure", "body temperature", "respiratory rate"),
    *("white cell count", "platelet count", "sodium level", "potassium level", "calcium level"),
    *("magnesium level", "phosphate level", "chloride level", "glucose level", "lactate level"),
    *("albumin level", "ferritin level", "creatinine level", "bilirubin level", "lipase level"),
    *("troponin level", "fibrinogen level", "hemoglobin level", "copper level", "zinc level"),
)

#: What may be in a patient's history, and how a note says that it is not.
HISTORY = {
    "carries allele": "does not carry allele",
    "has a family history of condition": "has no family history of condition",
    "once underwent procedure": "never underwent procedure",
}

#: Letters of codes: those that cannot be taken for digits.
LETTERS = "ACEFHJKLMNPRTUVWXY"


class ClinicalNotes(Theme):
    """The pain decides by its rating, all else by a coded entry of the patient's history.

    No two codes of a story are the same, and codes that no rule names are told too.
    """

    name = "clinical_notes"
    openings = (
        "This is the note of an invented patient, in a clinic with rules of its own. "
        "Pain is rated from 0 to 10.",
        "A surgeon reads the history and physical of an invented patient and goes by the rules "
        "below. Pain is rated from 0 to 10.",
        "An invented patient is seen on the ward, where pain is rated from 0 to 10 and everybody "
        "keeps to the rules told here.",
    )
    closing = (
        "Nothing else in the history has any influence: codes that these rules do not name, "
        "medications and circumstances play no part."
    )
    clauses = (
        ("the pain is significant", "the pain is not significant", "Is the pain significant?"),
        ("the {} is elevated", "the {} is not elevated", "Is the {} elevated?"),
        ("the {} is low", "the {} is not low", "Is the {} low?"),
        (
            "the surgeon recommends surgery",
            "the surgeon does not recommend surgery",
            "Does the surgeon recommend surgery?",
        ),
    )
    sentences = (
        r"The pain rating is (\d|10) out of 10\.",
        r"The patient is \d+ years old\.",
        r"The patient (arrives by bus|had breakfast at seven)\.",
        rf"The patient (takes medication|{'|'.join((*HISTORY, *HISTORY.values()))}) [A-Z]\d+\.",
    )
    causal_functions = "or, and at the leaf"

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return the pain, labs and vitals, and the recommendation."""
        numbers = draw.some(range(5_000 + 3 * n), 3 * n)
        codes = iter([f"{LETTERS[i % len(LETTERS)]}{100 + i // len(LETTERS)}" for i in numbers])

        def entry(label: str, clause: tuple[str, str, str]) -> Node:
            """Let a coded entry of the history decide, with one that does not matter beside it."""
            code, other = next(codes), next(codes)
            had = draw.one(list(HISTORY))
            return Node(
                label,
                *(form.format(label) for form in clause),
                own=f"the patient {had} {code}",
                when_true=[f"The patient {had} {code}."],
                when_false=[f"The patient {HISTORY[had]} {code}."],
                asides=[
                    f"The patient takes medication {other}.",
                    *(f"The patient {told} {other}." for told in (*HISTORY, *HISTORY.values())),
                ],
            )

        pain, *findings, surgery = self.clauses
        measures = draw.some(MEASURES, min(n - 2, len(MEASURES)))
        measures += [f"level of marker {next(codes)}" for _ in range(n - 2 - len(measures))]
        after = [entry(measure, draw.one(findings)) for measure in measures]
        after.append(entry("surgery", surgery))
        threshold, age = draw.integer(4, 8), draw.integer(30, 80)
        ratings = [f"The pain rating is {rating} out of 10." for rating in range(11)]
        root = Node(
            "pain",
            *pain,
            own=f"the pain rating is at least {threshold} out of 10",
            when_true=ratings[threshold:],
            when_false=ratings[:threshold],
            asides=[
                f"The patient is {age} years old.",
                "The patient arrives by bus.",
                "The patient had breakfast at seven.",
            ],
        )
        return [root, *after]

    def holds(self, own: str, text: str) -> bool | None:
        """Find the entry of the history, or compare the rating with the threshold."""
        if threshold := re.fullmatch(r"the pain rating is at least (\d+) out of 10", own):
            rating = only(r"The pain rating is (\d+) out of 10\.", text)
            return rating and int(rating[1]) >= int(threshold[1])
        entry = re.fullmatch(rf"the patient ({'|'.join(HISTORY)}) (\w+)", own)
        if not entry:
            return None
        had, code = entry.groups()
        told = only(rf"The patient ({had}|{HISTORY[had]}) {code}\.", text)
        return told and told[1] == had


THEME = ClinicalNotes()
