"""What the user is told when the input breaks a rule."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any


class InputError(ValueError):
    """An input breaks a rule; the message states the rule and what was found.

    The command line prints the message alone and exits with status 2; in a
    notebook it is an ordinary :class:`ValueError`.
    """


def one_of(names: Iterable[str], limit: int = 20) -> str:
    """Say which names are allowed, in their own order.

    Examples
    --------
    >>> one_of(["No studies", "Full-time studies"])
    'expected one of No studies, Full-time studies'
    >>> one_of(["age"])
    'expected age'
    >>> one_of([])
    'none is allowed here'
    """
    names = [str(name) for name in names]
    if not names:
        return "none is allowed here"
    if len(names) == 1:
        return f"expected {names[0]}"
    shown = ", ".join(names[:limit])
    return f"expected one of {shown}" + (", …" if len(names) > limit else "")


def is_count(number: Any, least: int) -> bool:
    """Say whether something is a whole number of at least `least`; a truth value is none.

    Examples
    --------
    >>> is_count(3, least=1), is_count(3.0, least=1), is_count(True, least=1)
    (True, False, False)
    """
    return isinstance(number, Integral) and not isinstance(number, bool) and number >= least


def check_count(name: str, number: Any, least: int) -> None:
    """Refuse what is not a whole number of at least `least`.

    Examples
    --------
    >>> check_count("n", 0, least=1)
    Traceback (most recent call last):
    lib.errors.InputError: n must be a whole number of at least 1: found 0
    """
    if not is_count(number, least):
        raise InputError(f"{name} must be a whole number of at least {least}: found {number!r}")
