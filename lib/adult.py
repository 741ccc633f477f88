"""The Adult census table: verified bytes in, a tidy frame out.

Adult is an extract of the 1994 US Census database: 32 561 people (its training
part), 14 attributes, and whether a person earned more than $50 000 that year
[1]_. It is the base table of IncomeSCM [2]_, whose preparation is followed here
(paper, Section 3.1): drop records with a missing value, ignore the sampling
weight, and reduce gains and losses to one net result.

References
----------
.. [1] Becker, B. and Kohavi, R. (1996). Adult. UCI Machine Learning Repository.
   https://doi.org/10.24432/C5XW20 (CC BY 4.0).
.. [2] Johansson, F. D. (2024). IncomeSCM: From tabular data set to time-series
   simulator and causal estimation benchmark. arXiv:2405.16069.
"""

import gzip
import hashlib
import io
from pathlib import Path

import pandas as pd

from lib import ROOT
from lib.errors import check, told
from lib.files import AnyPath, read_yaml

#: The copy that ships with the book.
ADULT_PATH = ROOT / "data" / "adult" / "adult.data.gz"

#: Size and MD5 digest of the uncompressed `adult.data` of the UCI repository.
ADULT_BYTES = 3_974_305
ADULT_MD5 = "5d7c39d7b8804f071cdd1f2a7c460872"

_CODEBOOK = read_yaml(ADULT_PATH.with_name("codebook.yml"))

#: The fields of a record, in the order of the file.
FIELDS: list[str] = _CODEBOOK["fields"]

#: Levels of education, from the lowest (`education-num` 1) to the highest (16).
EDUCATION_LEVELS: list[str] = _CODEBOOK["education"]


def read_adult(path: AnyPath | None = None) -> pd.DataFrame:
    """Read the 32 561 records of UCI's `adult.data`, plain or gzipped, and verify its digest.

    Each row is a record, with the 15 columns of `FIELDS`; a missing value is NaN.
    """
    path = Path(ADULT_PATH if path is None else path)
    expected = f"expected the {ADULT_BYTES:,} bytes of UCI's adult.data with MD5 {ADULT_MD5}"
    with told(f"{path} cannot be read, {expected}"):
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":  # the mark of a gzip file
            content = gzip.decompress(content)
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    found = f"{len(content):,} bytes with MD5 {digest}"
    check(digest == ADULT_MD5, f"{path} is not the Adult table: {expected}", found)
    return pd.read_csv(io.BytesIO(content), names=FIELDS, skipinitialspace=True, na_values="?")


def load_adult(path: AnyPath | None = None) -> pd.DataFrame:
    """Read the Adult table as IncomeSCM uses it: 30 162 complete records, 13 variables.

    ``capital-net = capital-gain - capital-loss`` (US dollars), and three kinds of marriage become
    one. Text is categorical; the levels of `education` run from the lowest to the highest, and
    those of other variables are in alphabetical order. Numbers are floats.

    Examples
    --------
    >>> load_adult()["marital-status"].cat.categories.tolist()
    ['Divorced', 'Married', 'Never-married', 'Separated', 'Widowed']
    """
    complete = read_adult(path).dropna(ignore_index=True)
    complete["capital-net"] = complete["capital-gain"] - complete["capital-loss"]
    complete["marital-status"] = complete["marital-status"].replace(_CODEBOOK["married"], "Married")
    complete = complete.drop(columns=["fnlwgt", "capital-gain", "capital-loss"])
    numbers = complete.select_dtypes("number").columns
    kinds = {name: float if name in numbers else "category" for name in complete}
    return complete.astype(kinds | {"education": pd.CategoricalDtype(EDUCATION_LEVELS)})
