"""What is said of a broken rule is one plain sentence."""

import numpy as np
import pytest

from lib.errors import InputError, check_known, check_share, is_count, needed, one_of, told


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["age"], "expected age"),
        (["age", "sex"], "expected one of age, sex"),
        ([], "none is allowed here"),
        (["or", "or, then and"], "expected one of or, 'or, then and'"),
        (["0", "1", "old"], "expected one of '0', '1', old"),
        ([0, 1, 2.5], "expected one of 0, 1, 2.5"),
        (["a", "b", "c", "d"], "expected one of a, b, c, …"),
    ],
)
def test_allowed_names_are_listed(names, said):
    assert one_of(names, limit=3) == said


def test_what_was_meant_stands_first_in_a_list_that_is_cut():
    pages = [*"abcdefgh", "worlds", "words"]
    with pytest.raises(InputError, match=r"'worls' is unknown: expected one of worlds, words, a"):
        check_known("page", "worls", pages, limit=3)
    with pytest.raises(InputError, match=r"one of a, b, c, d, e, f, g, h, worlds, words$"):
        check_known("page", "worls", pages)


@pytest.mark.parametrize(("number", "is_one"), [(3, True), (0, False), (3.0, False), (True, False)])
def test_a_count_is_a_whole_number(number, is_one):
    assert is_count(number, least=1) == is_one


def test_an_error_without_words_is_told_by_its_kind():
    with (
        pytest.raises(InputError, match="variable 'age': ZeroDivisionError"),
        told("variable 'age'"),
    ):
        raise ZeroDivisionError


def test_what_is_needed_must_be_known():
    assert needed("truth", 0) == 0
    with pytest.raises(InputError, match="truth must be given: found None"):
        needed("truth", None)


@pytest.mark.parametrize("wrong", ["0.3", None, True, -0.1, 1.1, float("nan")])
def test_a_share_is_a_number_from_0_to_1(wrong):
    for share in (0, 1, 0.3, np.float32(0.3)):
        check_share("withheld", share)
    with pytest.raises(InputError, match="withheld must lie between 0 and 1: found"):
        check_share("withheld", wrong)
