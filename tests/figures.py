"""What is written in a figure, and whether it can be read."""

import contextlib
from collections.abc import Iterator
from itertools import combinations
from unittest import mock

from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def message(figure: Figure) -> str:
    """Return the title of a figure, which stands above its legend."""
    return figure.legends[0].get_title().get_text()


@contextlib.contextmanager
def noted() -> Iterator[dict[Text, Bbox]]:
    """Note what texts are drawn, and where, in pixels."""
    places, draw = {}, Text.draw

    def noting(text, renderer, *more, **options):
        if text.get_visible() and text.get_text().strip():
            places[text] = text.get_window_extent(renderer)
        return draw(text, renderer, *more, **options)

    with mock.patch.object(Text, "draw", noting):
        yield places


def places(figure: Figure) -> dict[Text, Bbox]:
    """Say what is written in a figure, and where, in pixels."""
    with noted() as found:
        figure.draw_without_rendering()
    return found


def crowded(figure: Figure, written: dict[Text, Bbox] | None = None) -> list[str]:
    """Say what is cut off at the edge of a figure, and what touches other words."""
    written, page = places(figure) if written is None else written, figure.bbox.padded(1)
    told = [(text.get_text(), box) for text, box in written.items()]
    cut = [text for text, box in told if not (page.contains(*box.min) and page.contains(*box.max))]
    pairs = combinations(told, 2)
    return cut + [f"{one} on {two}" for (one, a), (two, b) in pairs if a.overlaps(b)]
