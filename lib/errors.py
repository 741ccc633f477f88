"""Messages that tell the user which rule an input breaks, and what was found."""

import contextlib
import difflib
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, TypeGuard


class InputError(ValueError):
    """An input breaks a rule; the message states the rule and what was found."""


@contextlib.contextmanager
def told(what: str, allowed: Iterable[str] = ()) -> Iterator[None]:
    """Say in one sentence what failed and why; of an unknown key, list those that are `allowed`.

    Examples
    --------
    >>> with told("variable 'age'"):
    ...     int("old")
    Traceback (most recent call last):
    lib.errors.InputError: variable 'age': invalid literal for int() with base 10: 'old'
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        said += " is not there" * isinstance(error, KeyError)
        if hasattr(error, "error_count"):  # as the errors of pydantic, which may not be imported
            said = _first_problem(error, allowed)
        raise InputError(f"{what}: {said}") from error


def one_of(names: Iterable[str], limit: int = 20) -> str:
    """Say which names are allowed, in the order given."""
    # Quotes mark a name that could be read as two names, or as a number.
    pairs = [(str(name), repr(name)) for name in names]
    names = [r if ", " in text or r[1:-1].isdecimal() else text for text, r in pairs]
    if not names:
        return "none is allowed here"
    shown = ", ".join(names[:limit] + (["…"] if len(names) > limit else []))
    return f"expected {'one of ' if len(names) > 1 else ''}{shown}"


def check_known(what: str, name: Any, allowed: Iterable[Any], limit: int = 20) -> None:
    """Refuse a name that is not allowed; the message lists at most `limit` of those allowed."""
    if name not in (allowed := list(allowed)):
        if len(allowed) > limit:  # what was meant is among those shown
            near = difflib.get_close_matches(str(name), map(str, allowed))
            allowed.sort(key=lambda one: str(one) not in near)
        raise InputError(f"{what} {name!r} is unknown: {one_of(allowed, limit)}")


def check_names(what: str, names: Iterable[Any], allowed: Iterable[Any], limit: int = 20) -> None:
    """Refuse names if one of them is not allowed."""
    for name in names:
        check_known(what, name, allowed, limit)


def check(met: bool, rule: str, found: Any) -> None:
    """Refuse what breaks a rule.

    Examples
    --------
    >>> check(0 < 1.5 < 1, "level must lie between 0 and 1", 1.5)
    Traceback (most recent call last):
    lib.errors.InputError: level must lie between 0 and 1: found 1.5
    """
    if not met:
        raise InputError(f"{rule}: found {found!r}")


def needed(what: str, value: Any) -> Any:
    """Return a value, and refuse None, which is allowed elsewhere but not here."""
    check(value is not None, f"{what} must be given", value)
    return value


def check_once(what: str, names: Iterable[Any]) -> None:
    """Refuse names if one of them occurs twice."""
    for name, times in Counter(names).items():
        check(times == 1, f"each {what} may be given only once", name)


def is_count(number: Any, least: int) -> bool:
    """Say whether something is a whole number of at least `least`; 3.0 and True are not."""
    return not isinstance(number, bool) and isinstance(number, Integral) and int(number) >= least


def check_count(name: str, number: Any, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    check(is_count(number, least), f"{name} must be a whole number of at least {least}", number)


def is_number(number: Any) -> TypeGuard[float]:
    """Say whether something is a finite number; True is not."""
    return not isinstance(number, bool) and isinstance(number, Real) and math.isfinite(number)


def check_share(name: str, number: Any) -> None:
    """Refuse what is not a number from 0 to 1."""
    check(is_number(number) and 0 <= number <= 1, f"{name} must lie between 0 and 1", number)


def _first_problem(error: Any, allowed: Iterable[str]) -> str:
    """Say what pydantic found first, such as a key that is not `allowed`."""
    problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    found = problem["input"]
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"key {key!r} is unknown: {one_of(allowed, limit=50)}"
    if problem["type"] in ("missing", "missing_argument"):
        return f"key {key!r} is missing"
    # The names of our classes are left out, because users who write a file do not know them.
    rule: str = problem["msg"].removeprefix("Value error, ").partition(" or instance of ")[0]
    if problem["type"] == "dataclass_type":  # an object nested in another
        rule = f"a {problem['ctx']['class_name']} is needed"
        found = found if isinstance(found, str | int | float) else type(found).__name__
    elif not key and problem["type"] == "value_error":  # about the whole object; complete as it is
        return rule
    where = f"key {key!r}: " if key else ""
    return f"{where}{rule[0].lower()}{rule[1:]}, found {found!r}"
