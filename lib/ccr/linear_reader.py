"""The third oracle of linear worlds: a reader of the text alone, in decimal arithmetic.

It rebuilds the program of a prompt and runs it step by step. An effect is the difference between
two runs; to set or to hold a variable is to change its line. The reader shares nothing with the
code that wrote the prompt, knows neither matrices nor paths, and refuses what it cannot read.
"""

import re
from decimal import Decimal
from typing import Any

from lib import ROOT
from lib.errors import InputError, told
from lib.files import read_yaml

#: Patterns that recognise contexts, their rules and facts, and questions, for each wording.
KNOWN: list[dict[str, Any]] = read_yaml(ROOT / "data" / "cell_bio_patterns.yml")


@told("the prompt cannot be read")
def read_volume(context: str, question: str) -> float:
    """Answer a question from the text alone; see :func:`lib.ccr.linear.prompts`."""
    for known in KNOWN:
        said = re.fullmatch(known["context"], context)
        asked = [*filter(None, (re.fullmatch(form, question) for form in known["questions"]))]
        if said and asked:
            break
    else:
        raise InputError(f"every sentence must be known: found {f'{context} {question}'!r}")
    rules = re.findall(known["rule"], said["rules"])
    numbers = {node: Decimal(volume) for node, volume in re.findall(known["fact"], said["facts"])}
    # If volumes are given, a node's noise is the part of its volume that its rule does not explain.
    seen = numbers if said["form"] == "volume" else {}

    def run(do: dict[str | None, Any]) -> dict[str, Decimal]:
        now: dict[str, Decimal] = {}
        for node, terms in rules:
            causes = re.findall(known["term"], terms)
            made = sum(Decimal(b.replace(" ", "")) * (now[v] - seen.get(v, 0)) for b, v in causes)
            now[node] = do.get(node, numbers[node] + made)
        return now

    words = asked[0].groupdict()
    x, y = words.get("cause"), words["effect"]
    if "value" in words or not x:
        return float(run({x: Decimal(words.get("value", 0))})[y])
    low, high = run({x: 0}), run({x: 1})
    if "held" in words:
        high = run({**{node: low[node] for node in low if node != y}, x: 1})
    if "through" in words:
        through = re.findall(r"[\w-]+(?=\)|, | and |$)", words["through"])
        high = run({node: high[node] for node in through} | {x: 0})
    return float(high[y] - low[y])


def number_in(text: str) -> float:
    r"""Return the last number in an answer, or NaN if there is none or it has two readings.

    Commas and narrow spaces separate thousands, and a point begins the decimals. A minus that
    stands apart, or right behind something, may mean subtraction; a normal space may separate two
    numbers; and powers of ten are not multiplied out. Text that is ambiguous in this way is NaN,
    because taking a part of it for the whole would make an answer up.

    Examples
    --------
    >>> number_in("1.5 − 1.6 makes **−0.1 pL**."), number_in("1,234.5"), number_in("1\u202f234")
    (-0.1, 1234.5, 1234.0)
    >>> [number_in(text) for text in ("3,5", "0,500", "5*2", "1e-3", "5-3", "minus 3", "1 234")]
    [nan, nan, nan, nan, nan, nan, nan]
    """
    # TeX, as in \frac{7}{2} and 1{,}234; and signs that look like a minus, as a hyphen does.
    plain = re.sub(r"[\u2010-\u2013\u2212\ufe63\uff0d\u207b]|&minus;|\{-\}", "-", text)
    plain = re.sub(r"\\(?:times|cdot) *|\*\*(?=\d)|[⋅∙]", "*", plain)
    plain = plain.replace("}{", "/").replace("{,}", ",")
    thousands = r"(?<![\d.,])[1-9]\d{0,2}(?:(?:[,\u202f\u2009\xa0]|\\,)\d{3})+(?!\d)"
    plain = re.sub(thousands, lambda found: re.sub(r"\D", "", found[0]), plain)
    # With everything that could belong to the number, so that it is refused, not cut short.
    within = r"[\w.,/^·⁄]|(?<=[eE^{])[-+{]| (?=\d{3}(?!\d))|(?<=\d)['’](?=\d{3})| ?[/×÷·*±] ?(?=\d)"
    # Without a bound, the time would grow with the square of a long run.
    apart = r"[\w.,)]{1,999}+-|(?i:minus|negative)[\s*$({]+|-(?:[^\S\n]+|[*$({]+)"
    apart += r"|(?<=[^\n])-(?:[^\S\n]|[*$({_`\"'\\])+"  # a bullet has nothing before it
    last = re.findall(rf"(?<![\w.,/])(?:{apart})?-?\d(?:(?:{within})*[\d⁰¹²³⁴-⁹¼½¾])?", plain)[-1:]
    return next((float(one) for one in last if re.fullmatch(r"-?\d+(\.\d+)?", one)), float("nan"))


def is_right(said: Any, truth: Any, tolerance: float = 0.005) -> Any:
    """Say which numbers are within half a unit of the last digit of the truth; NaN never is."""
    return abs(said - truth) <= tolerance + 1e-9  # in binary, half a unit may come out larger
