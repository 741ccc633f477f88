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
    sentences = (
        r"The pain rating is (\d|10) out of 10\.",
        r"The patient is \d+ years old\.",
        r"The patient (arrives by bus|had breakfast at seven)\.",
        rf"The patient (takes medication|{'|'.join((*HISTORY, *HISTORY.values()))}) [A-Z]\d+\.",
    )
    negations = ((" is not ", " is "), (" does not recommend ", " recommends "))
    causal_functions = "or, and at the leaf"

    def nodes(self, n: int, draw: Draw) -> list[Node]:
        """Return the pain, labs and vitals, and the recommendation."""
        numbers = draw.some(range(5_000 + 3 * n), 3 * n)
        codes = iter([f"{LETTERS[i % len(LETTERS)]}{100 + i // len(LETTERS)}" for i in numbers])

        def entry(label: str, true: str, false: str, question: str) -> Node:
            """Let a coded entry of the history decide, with one that does not matter beside it."""
            code, other = next(codes), next(codes)
            had = draw.one(list(HISTORY))
            return Node(
                label=label,
                true=true,
                false=false,
                question=question,
                own=f"the patient {had} {code}",
                when_true=[f"The patient {had} {code}."],
                when_false=[f"The patient {HISTORY[had]} {code}."],
                asides=[
                    f"The patient takes medication {other}.",
                    *(f"The patient {told} {other}." for told in (*HISTORY, *HISTORY.values())),
                ],
            )

        measures = draw.some(MEASURES, min(n - 2, len(MEASURES)))
        measures += [f"level of marker {next(codes)}" for _ in range(n - 2 - len(measures))]
        between = []
        for measure in measures:
            is_so = f"the {measure} is", draw.one(("elevated", "low"))
            true, false = " ".join(is_so), " not ".join(is_so)
            between.append(entry(measure, true, false, f"Is the {measure} {is_so[1]}?"))
        recommendation = entry(
            "surgery",
            "the surgeon recommends surgery",
            "the surgeon does not recommend surgery",
            "Does the surgeon recommend surgery?",
        )
        return [self._pain(draw.integer(4, 8), draw.integer(30, 80)), *between, recommendation]

    def _pain(self, threshold: int, age: int) -> Node:
        ratings = [f"The pain rating is {rating} out of 10." for rating in range(11)]
        return Node(
            label="pain",
            true="the pain is significant",
            false="the pain is not significant",
            question="Is the pain significant?",
            own=f"the pain rating is at least {threshold} out of 10",
            when_true=ratings[threshold:],
            when_false=ratings[:threshold],
            asides=[
                f"The patient is {age} years old.",
                "The patient arrives by bus.",
                "The patient had breakfast at seven.",
            ],
        )

    def asked(self, question: str) -> str | None:
        """Read which finding, or whether the recommendation, a question is about."""
        if question == "Does the surgeon recommend surgery?":
            return "the surgeon recommends surgery"
        found = re.fullmatch(r"Is (the [\w ]+) (elevated|low|significant)\?", question)
        return found and f"{found[1]} is {found[2]}"

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
