r"""Noise that is addressed, not consumed.

A structural causal model draws each value from a mechanism and a noise of its
own, :math:`V := f(\mathrm{pa}(V), U_V)`. An ordinary generator hands out numbers
in the order in which they are asked for, so a world in which one more number is
asked for gets other noise from there on. Here every number has an address,

    seed · variable · step · term · subject,

and is computed from that address alone, by the counter-based generator Philox
[1]_. Seed and variable make its key; step, term and subject are its counter.
Four things follow, and the simulator rests on them:

- subjects 0 … 999 have the same noise whether 1 000 or 50 000 are drawn;
- neither blocks nor workers change a byte;
- two worlds with one seed share all noise, whatever is intervened on;
- noise that a mechanism does not use in one world is there for it in another.

A mechanism turns uniforms into what it needs by inverse distribution functions,
never by rejection, which would take a varying number of them.

References
----------
.. [1] Salmon, J. K. et al. (2011). Parallel random numbers: as easy as 1, 2, 3.
   SC '11. https://doi.org/10.1145/2063384.2063405
"""

import hashlib
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from lib.errors import check, is_count

#: Philox yields this many 64-bit words for one value of its counter.
WORDS_PER_BLOCK = 4

#: The bits of the number 1 as a float.
ONE = np.float64(1).view(np.uint64)


def uniforms(
    seed: int, variable: str, step: int = 0, n: int = 1, terms: int = 1, first: int = 0
) -> np.ndarray:
    r"""Return the uniform noise of `n` subjects, each number fixed by its address.

    .. math:: U_{ki} = \left(\lfloor w_{ki} / 2^{12} \rfloor + \tfrac12\right) 2^{-52},

    where :math:`w_{ki}` is the 64-bit word at the address of term `k` and subject
    `i`. The values lie strictly between 0 and 1, symmetric about ½.

    The array has one row for each term and one column for each subject. Its first column is that of
    subject `first`, and it equals a larger sample from that column on. `seed` names the noise of a
    world, and `variable` the noise within it, by convention after the variable that it drives.

    Examples
    --------
    >>> many = uniforms(seed=1, variable="age", step=0, n=1_000, terms=2)
    >>> few = uniforms(seed=1, variable="age", step=0, n=10, terms=1, first=7)
    >>> bool((few[0] == many[0, 7:17]).all())
    True
    """
    address = {"seed": seed, "step": step, "n": n, "terms": terms, "first": first}
    for name, number in address.items():
        check(is_count(number, least=0), f"{name} must be a whole number, not negative", number)
    key: Any = _Key(int(seed), variable)  # NumPy takes it, but its types do not say so
    block, skipped = divmod(int(first), WORDS_PER_BLOCK)
    noise = np.empty((terms, n))
    for term in range(terms):
        philox = np.random.Philox(key, counter=[block, term, int(step), 0])
        words = philox.random_raw(skipped + n)[skipped:]
        # 52 bits, not 53: with 53 the largest midpoint would round up to 1. As the bits after the
        # point of a float, they give a number from 1 to 2 without a conversion.
        words >>= 12
        words |= ONE
        np.subtract(words.view(float), 1 - 2.0**-53, out=noise[term])
    return noise


class _Key(ISeedSequence):
    """Digest seed and variable to Philox's 128-bit key, alike in every process.

    It is a source of seeds: for a bare key, Philox would ask the system for entropy and not use it.
    """

    def __init__(self, seed: int, variable: str):
        digest = hashlib.blake2b(f"{seed}/{variable}".encode(), digest_size=16).digest()
        self.words = np.frombuffer(digest, dtype="<u8")

    def generate_state(self, n_words: int, dtype: object = np.uint64) -> np.ndarray:
        return self.words
