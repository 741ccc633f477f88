"""Tables as books set them: one row of headings, text on the left and numbers on the right."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
import pandas as pd

from lib import ROOT
from lib.errors import check_known, check_names, is_number

_HTML = jinja2.Template((ROOT / "lib/table.html").read_text("utf-8"), autoescape=True)

#: A text that is a number, a dash or empty; after a number, ± 61, (1, 2) or % may follow.
_NUMBER = re.compile(r"([+−]?\d[\d.\u202f]*(·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|e[-+]\d+)?(\s[±(%].*)?|—|)")

#: A number that needs more digits behind the point than these is written with a power of ten.
MOST_DIGITS = 8

_POWER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number_text(value: float, error: float | None = None, digits: int | str | None = None) -> str:
    r"""Write a number, with its standard error if it has one.

    The number is rounded to two digits of the error or, without one, to three digits of its own.
    A whole number stays whole, a tiny one gets a power of ten, and a missing one is a dash. If
    `digits` are given, they are the digits behind the point, or a format such as `"+.1e"`.

    Examples
    --------
    >>> number_text(4816.3, 61.2), number_text(-0.00042, digits=".0e")
    ('4\u202f816 ± 61', '−4·10⁻⁴')
    """
    if not math.isfinite(value):
        return {"nan": "—", "inf": "∞"}.get(str(value), "−∞")
    if digits is None:
        whole = not error and float(value).is_integer()
        # An error that is only rounding noise would ask for far too many digits.
        least = max(error, 1e-6 * abs(value)) if error else abs(value)
        more = 1 if error else 2
        least = float(f"{least:.{more}e}")  # rounded, because 9.996 is 10.0, with a digit less
        digits = 0 if whole else max(0, more - math.floor(math.log10(least)))
    if not isinstance(digits, str) and digits > MOST_DIGITS:
        digits = ".1e" if error else ".2e"
    form = digits if isinstance(digits, str) else f"z,.{digits}f"
    text = " ± ".join(format(one, form) for one in (value, error) if one is not None)
    text = re.sub(r"e([+-]\d+)", lambda e: "·10" + str(int(e[1])).translate(_POWER), text)
    return text.replace(",", "\u202f").replace("-", "−")


@dataclass(frozen=True)
class Typeset:
    """A table of texts, whose first columns are labels of the rows."""

    texts: pd.DataFrame
    labels: int

    def _repr_html_(self) -> str:
        names, rows = list(self.texts), self.texts.to_numpy().tolist()
        numbers = [_are_numbers(texts) for texts in zip(*rows, strict=True)]
        return str(_HTML.render(names=names, rows=rows, labels=self.labels, numbers=numbers))

    def __repr__(self) -> str:
        return str(self.texts.to_string(index=False))


def typeset(
    frame: pd.DataFrame,
    digits: int | str | Mapping[Any, int | str] | None = None,
    error: Mapping[str, str] = {},
    unit: str | Mapping[str, str] = "",
    by_row: bool = False,
) -> Typeset:
    """Set a frame as a table to read; its index comes first, unless it only counts the rows.

    The numbers of a column (with `by_row`, of a row) have as many digits behind the point as the
    largest one needs to show three. `digits` overrides this for all but integers, or for the names
    that it maps, see :func:`number_text`. `error` maps a column to that of its standard errors;
    they follow its numbers after a ±. The heading drops ` of value` from the name of the errors.

    Examples
    --------
    >>> effects = pd.DataFrame({"value": [816.3, 411.3], "se": [2.72, 0.6]}, ["ATE", "ATT"])
    >>> typeset(effects, error={"value": "se"}, unit="$")
         value ± se, $
    ATE    816.3 ± 2.7
    ATT  411.30 ± 0.60
    """

    def texts(values: pd.Series) -> pd.Series:
        asis = values.name in titles or pd.api.types.is_integer_dtype(values)
        form = digits.get(values.name) if isinstance(digits, Mapping) else None if asis else digits
        sizes = [abs(one) for one in values if is_number(one)]
        if form is None and values.name not in error and any(one % 1 for one in sizes):
            form = ",g" if asis else max(0, 2 - math.floor(math.log10(max(sizes))))
        errors = frame.get(error.get(values.name), [None] * len(values))
        return pd.Series(map(_text, values, errors, [form] * len(values)), values.index)

    levels = [name if isinstance(name, tuple) else (str(name),) for name in frame]
    names = [": ".join(_text(level, None, ",g") for level in name) for name in levels]
    check_names("column", [*error, *error.values()], names)
    frame = frame.set_axis(names, axis="columns")
    titles = [name or " " for name in frame.index.names]  # a column may be called ""
    labels = 0 if only_counts(frame) else len(titles)
    found = frame.apply(texts, axis="columns") if by_row else frame
    found = found.reset_index(drop=not labels, names=titles, allow_duplicates=True).apply(texts)
    headings = {k: f"{k} ± {se.removesuffix(f' of {k}')}" for k, se in error.items()} | {" ": ""}
    units = unit if isinstance(unit, Mapping) else dict.fromkeys(frame, unit)
    for name, of in units.items():
        check_known("column", name, found)
        if of and _are_numbers(found[name]):
            headings[name] = f"{headings.get(name, name)}, {of}"
    return Typeset(found.drop(columns=error.values()).rename(columns=headings), labels)


def only_counts(frame: pd.DataFrame) -> bool:
    """Say whether the index of a frame only numbers the rows: integers without a name."""
    return frame.index.name is None and pd.api.types.is_integer_dtype(frame.index)


def _are_numbers(texts: Iterable[str]) -> bool:
    return all(map(_NUMBER.fullmatch, texts))


def _text(value: Any, error: Any, digits: int | str | None) -> str:
    if is_number(value):
        return number_text(value, error if is_number(error) else None, digits)
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    return "—" if pd.api.types.is_scalar(value) and pd.isna(value) else str(value)
