"""What the user is told when the input breaks a rule."""

from collections.abc import Iterable


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
