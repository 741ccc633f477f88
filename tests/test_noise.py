"""Addressed noise: against a second implementation of Philox, and as a source of chance."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import ks_1samp, uniform

from lib.errors import InputError
from lib.noise import uniforms

#: How often a statistical test of this file would fail, were its seed another one.
FALSE_ALARMS = 1e-6


def philox(counter: list[int], key: list[int]) -> list[int]:
    """Philox-4x64-10 as Salmon et al. (2011) define it: ten rounds, Weyl keys, two products."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * c0, 2**64)
        high1, low1 = divmod(0xCA5A826395121157 * c2, 2**64)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) % 2**64, (k1 + 0xBB67AE8584CAA73B) % 2**64
    return [c0, c1, c2, c3]


def by_hand(seed: int, variable: str, step: int, term: int, subject: int) -> float:
    """One number of the noise, computed from its address in plain Python."""
    digest = hashlib.blake2b(f"{seed}/{variable}".encode(), digest_size=16).digest()
    key = [int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")]
    block, word = divmod(subject, 4)
    # numpy raises the counter before it draws, so the first block is number 1.
    drawn = philox([block + 1, term, step, 0], key)[word]
    return ((drawn >> 12) + 0.5) / 2**52


def test_the_second_implementation_gives_the_known_answer_of_its_authors():
    # Random123, tests/kat_vectors: philox4x64 10, counter and key all ones.
    ones = 2**64 - 1
    assert philox([ones] * 4, [ones] * 2) == [
        0x87B092C3013FE90B,
        0x438C3C67BE8D0224,
        0x9CC7D7C69CD777B6,
        0xA09CAEBF594F0BA0,
    ]


@given(
    seed=st.integers(0, 2**200),
    variable=st.text(max_size=20),
    step=st.integers(0, 1000),
    term=st.integers(0, 5),
    first=st.integers(0, 10**12),
    n=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_every_number_is_the_one_that_its_address_gives(seed, variable, step, term, first, n):
    found = uniforms(seed, variable, step, n=n, terms=term + 1, first=first)
    assert found.shape == (term + 1, n)
    expected = [by_hand(seed, variable, step, term, first + i) for i in range(n)]
    assert found[term].tolist() == expected


@given(
    first=st.integers(0, 300),
    n=st.integers(1, 100),
    terms=st.integers(1, 3),
)
@settings(max_examples=50, deadline=None)
def test_a_part_is_what_the_whole_has_there(first, n, terms):
    whole = uniforms(3, "age", 2, n=400, terms=3)
    part = uniforms(3, "age", 2, n=n, terms=terms, first=first)
    assert part.tobytes() == whole[:terms, first : first + n].tobytes()


def test_the_first_number_stands_at_zeros():
    assert uniforms(3, "age").tolist() == [[by_hand(3, "age", step=0, term=0, subject=0)]]


def test_no_subjects_or_no_terms_are_empty():
    assert uniforms(1, "age", n=0).shape == (1, 0)
    assert uniforms(1, "age", n=5, terms=0).shape == (0, 5)


@pytest.mark.parametrize("seed", [0, 1, 2**64, 10**80])
def test_the_numbers_are_uniform(seed):
    for row in uniforms(seed, "age", step=3, n=100_000, terms=2):
        assert row.min() > 0 and row.max() < 1
        assert ks_1samp(row, uniform.cdf).pvalue > FALSE_ALARMS / 8  # eight such tests


def test_the_interval_is_open_at_both_ends(monkeypatch):
    class Extreme:
        def __init__(self, key, counter): ...

        def random_raw(self, n):
            return np.array([0, 2**64 - 1], dtype=np.uint64)[:n]

    monkeypatch.setattr(np.random, "Philox", Extreme)
    low, high = uniforms(0, "age", n=2)[0]
    assert 0 < low < high < 1
    assert low == 1 - high
    assert np.isfinite(ndtri([low, high])).all()


def test_numbers_of_different_addresses_are_independent():
    n = 100_000
    base = uniforms(1, "age", step=1, n=n + 1, terms=2)
    others = {
        "seed": uniforms(2, "age", step=1, n=n)[0],
        "variable": uniforms(1, "agf", step=1, n=n)[0],
        "seed and variable that look alike": uniforms(11, "age", step=1, n=n)[0],
        "step": uniforms(1, "age", step=2, n=n)[0],
        "term": base[1, :n],
        "subject": base[0, 1:],
    }
    # The correlation of n independent pairs has standard deviation 1/√n; two-sided,
    # shared among the tests.
    limit = -ndtri(FALSE_ALARMS / len(others) / 2) / np.sqrt(n)
    for what, other in others.items():
        correlation = np.corrcoef(base[0, :n], other)[0, 1]
        assert abs(correlation) < limit, f"another {what}: correlation {correlation:.4f}"
        assert not np.isin(other[:1000], base[0, :n]).any() or what == "subject"


def test_the_global_generators_are_left_alone():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    uniforms(1, "age", n=100)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_every_process_computes_the_same_numbers():
    program = (
        "import sys; from lib.noise import uniforms; "
        "sys.stdout.write(uniforms(7, 'hours-per-week', 2, 50, 3, 5).tobytes().hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert found == {uniforms(7, "hours-per-week", 2, 50, 3, 5).tobytes().hex()}


@pytest.mark.parametrize("name", ["seed", "step", "n", "terms", "first"])
@pytest.mark.parametrize("number", [-1, 1.5, 2.0, True, "1", None])
def test_an_address_is_made_of_whole_numbers(name, number):
    arguments = {"seed": 1, "variable": "age", name: number}
    with pytest.raises(InputError, match=rf"^{name} must be a whole number, not negative: found"):
        uniforms(**arguments)


def test_whole_numbers_of_numpy_are_whole_numbers():
    assert uniforms(np.int64(3), "age", np.int32(1), np.int64(4)).tobytes() == (
        uniforms(3, "age", 1, 4).tobytes()
    )
