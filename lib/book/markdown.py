"""Tables of Markdown, for the status page and for the cards of data sets."""

from collections.abc import Iterable, Sequence


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Return a table; a bar in a cell is escaped, because it would end the cell even in code.

    Examples
    --------
    >>> print(markdown_table(["column", "meaning"], [["`P(y | x)`", "a probability"]]))
    | column | meaning |
    | --- | --- |
    | `P(y \| x)` | a probability |
    """
    lines = [head, ["---"] * len(head), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
