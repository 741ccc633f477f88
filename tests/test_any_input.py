"""Whatever is handed in is read, or refused by an InputError: no other error, and no silent NaN.

With ``EXAMPLES=10000``, as many inputs of each kind are tried, and others each time.
"""

import ast
import contextlib
import io
import json
import math
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from lib.__main__ import main
from lib.book.parameters import Parameter, read_parameters
from lib.ccr import generate
from lib.ccr.answers import UNPARSEABLE, parse, read_answers, write_answers
from lib.ccr.questions import ANSWERS
from lib.effects import benchmark
from lib.effects.estimator_files import read_estimators, read_experiment
from lib.effects.estimators import SLearner
from lib.effects.study import Study
from lib.errors import InputError
from lib.files import read_table, read_yaml
from lib.income.mechanisms import MECHANISMS
from lib.scm import Specification

EXAMPLES = int(os.environ.get("EXAMPLES", "0"))

tried = settings(
    max_examples=EXAMPLES or 200,
    derandomize=not EXAMPLES,
    database=None,
    deadline=5_000 if EXAMPLES else None,
    suppress_health_check=[*HealthCheck],
)

# What may be read from words: "cannot be known", too, where no fact is withheld.
SAID = (*range(len(ANSWERS)), UNPARSEABLE)


@contextlib.contextmanager
def refused_in_one_sentence():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except InputError as error:
            assert str(error)


def mostly(*usual) -> st.SearchStrategy:
    """Draw what is usual at a place or, now and then, anything that YAML may hold."""
    odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    anything = st.recursive(
        odd,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(odd, inner, max_size=3),
        max_leaves=5,
    )
    return st.one_of(*[st.sampled_from(usual)] * 4, anything)


def mapping(**usual) -> st.SearchStrategy:
    """Draw a mapping with some of these keys, and now and then another."""
    return st.builds(
        lambda some, other: some | other,
        st.fixed_dictionaries({}, optional=usual),
        st.one_of(*[st.just({})] * 4, st.dictionaries(st.text(max_size=3), mostly(1))),
    )


# --- specifications --------------------------------------------------------------------------

NAMES = ["age", "sex", "pay"]
parents = st.lists(st.sampled_from(NAMES), max_size=2) | mostly([], ["age"])
sampler = mostly("gaussian", "multinomial", None, "LinearGaussianSampler") | mapping(
    type=mostly(*MECHANISMS, "gaussian", "ConstantSampler", "LogisticSampler", "IncrementSampler"),
    bounds=mostly([0, 1], [1, 0], [math.nan, 1]),
    value=mostly(1, "a"),
    increment=mostly(1.0, math.inf),
    sampler=mostly("#init_sampler"),
)
variable = mapping(
    sampler=sampler,
    parents=parents,
    seq_sampler=sampler,
    seq_parents_curr=parents,
    seq_parents_prev=parents,
)
variables = st.dictionaries(
    mostly(*NAMES).filter(lambda name: not isinstance(name, list | dict)),
    variable | mostly(None),
    max_size=3,
)


@tried
@given(variables | mostly(None))
def test_specifications(content):
    with refused_in_one_sentence():
        Specification(content, types=MECHANISMS)


# --- YAML and tables ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("any")


@tried
@given(st.binary(max_size=40) | st.text("{}[]:,&*a1-.!~|>\n \"'#%@`", max_size=40).map(str.encode))
@example(b"[" * 300)
@example(b"{a: " * 300)
@example(b"a: " + b"9" * 5_000)
@example(b"a: 2001-99-99")
@example(b"&a {*a : 1}")
def test_yaml_files(folder, content):
    (folder / "any.yml").write_bytes(content)
    with refused_in_one_sentence():
        read_yaml(folder / "any.yml")


@tried
@given(
    st.sampled_from([".csv", ".parquet", ".zip", ".gz"]),
    st.binary(max_size=60) | st.text("ab1,\n\"'; \t.e-", max_size=40).map(str.encode),
)
def test_table_files(folder, ending, content):
    path = folder / f"any{ending}"
    path.write_bytes(content)
    with refused_in_one_sentence():
        table = read_table(path)
        assert table.columns.is_unique


odd = (math.inf, math.nan, None, "a", "A", "1", True)
values = st.sampled_from([0, 1, 2.5, -1e308, 1e160, 1e140, *odd])
column = st.lists(values | st.just(1.0), min_size=4, max_size=4) | st.sampled_from(
    [[1.0, 2.0, 3.0, 4.0], ["no", "yes", "no", "yes"], ["a", "b", "a", "b"]]
)


@tried
@given(
    st.lists(st.sampled_from(["age", "sex", "studies", "income"]), min_size=3, max_size=5),
    st.lists(column, min_size=15, max_size=15),
    mostly(["age", "sex"], ["age"], "minimal", []),
    mostly(("no", "yes"), ("a", "b")),
)
def test_studies(names, columns, adjustment, arms):
    tables = []
    for first in (0, 5, 10):
        found = [pd.Series(columns[first + k], name=name) for k, name in enumerate(names)]
        tables.append(pd.concat(found, axis=1))
    with refused_in_one_sentence():
        study = Study(*tables, adjustment, arms, group=None)
        assert np.isfinite(study.outcomes).all()
        found = study.covariates.to_numpy(float)
        assert not np.isinf(found).any()
        assert np.isfinite(found).all() or study.missing
        mine = {"mine": SLearner(Ridge())}
        table = benchmark(study, estimators=mine, bootstraps=0, progress=False, keep=False)
        assert not np.isinf(table["value"]).any()
        # Nothing is explained of what does not vary.
        assert table["value"][~table["metric"].str.startswith("R²")].notna().all()


# --- estimator files, parameters, answers, the command line -----------------------------------

entry = mapping(
    label=mostly("A"),
    estimator=mostly(
        "S-learner", "T-learner", "IPWEstimator", "DMLCATEEstimator", "AIPW", ":", "os:x"
    ),
    base_estimator=mostly(["ridge"], "lr", ["rfr", "xgbr"], []),
    base_estimator__alpha=mostly([0.1, 1], -1, math.nan),
    base_estimator0=mostly("ridge"),
    weighted=mostly([True], "x"),
    estimand=mostly("ATE", "ATO"),
    bootstrap=mostly(2, 0),
)
file = mapping(
    estimators=st.dictionaries(st.sampled_from(["a", "b"]), entry | mostly(None), max_size=2),
    experiment=mostly({"covariates": "full"}),
    selection=mostly({"type": "random"}, {"folds": 5}),
)


@tried
@given(file | mostly(None).filter(lambda content: not isinstance(content, str)))
@example({"estimators": {"a": {"estimator": "DMLCATEEstimator", "base_estimator": {"lr": 1}}}})
def test_estimator_files(content):
    for read in (read_estimators, read_experiment):
        with refused_in_one_sentence():
            read(content)


annotation = st.sampled_from(
    ["int", "float", "bool", "str", "list[float]", "dict", "Any", "int | None", "Literal['a', 1]"]
)
typed = st.text(max_size=20) | st.text("0123456789e._-+[]{}(),:'\"nai ", max_size=20)


@tried
@given(annotation | st.text("intfloa[]|,. ()'", max_size=12), typed | st.floats().map(str))
@example("float", ".nan")
@example("float", "1e999")
@example("int", "[" * 300)
@example("int", "2001-99-99")
def test_parameters(kind, text):
    with refused_in_one_sentence():
        value = Parameter("seed", kind, None).parse(text)
        assert ast.literal_eval(repr(value)) == value
    with refused_in_one_sentence():
        read_parameters(f"seed: {kind} = {text}")


@tried
@given(st.text() | st.text("yesno YESNO*_\n.:answer", max_size=30))
@example("CANNOT BE KNOWN")
def test_words(text):
    assert parse(text) in SAID


@tried
@given(
    st.integers(0, 60), st.binary(max_size=8) | typed.map(lambda text: json.dumps(text).encode())
)
def test_answer_files(folder, place, inserted):
    tasks = generate("candy_party", [2], n_samples=1)
    path = folder / "any.jsonl"
    if not (folder / "whole.jsonl").exists():
        write_answers(
            tasks, [task.labels.astype(int) for task in tasks.tasks], folder / "whole.jsonl"
        )
    whole = (folder / "whole.jsonl").read_bytes()
    path.write_bytes(whole[:place] + inserted + whole[place:])
    with refused_in_one_sentence():
        (grid,) = read_answers(tasks, path)
        assert np.isin(grid, SAID).all()


word = st.sampled_from(
    [
        *("run", "sweep", "pages", "sample", "record", "compare", "book", "worlds", "none.csv"),
        *("-p", "-n", "-o", "--workers", "--edition", "--do", "--check", "--help", "--", "--table"),
        *("seed", "n_samples", "x.ipynb", "x.parquet", "none.yml", "0", "-1", "1..3", "1e999"),
    ]
)


UNKNOWN = {
    "run": ["run", "nowhere"],
    "run a page": ["run", "worlds", "-p", "horizon", "0"],
    "sweep": ["sweep", "nowhere"],
    "sweep a page": ["sweep", "worlds", "-p", "horizon", "0"],
    "sample": ["sample", "nowhere"],
    "record": ["record", "nowhere"],
    "book": ["book", "--edition", "nowhere"],
    "sheets": ["sheets", "--edition", "nowhere"],
    "export": ["export", "sets", "nowhere"],
}


@tried
@given(
    st.sampled_from([*UNKNOWN, "compare", "pages", "--help"]),
    # No system hands a program an argument that holds a zero byte.
    st.lists(word | st.text(st.characters(exclude_characters="\0"), max_size=4), max_size=6),
)
def test_commands(folder, command, words):
    """Of commands that would start some work, none is complete: a name or value is refused."""
    typed = [*UNKNOWN.get(command, [command]), *words]
    out, error = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        status = main(typed)
    assert status in (0, 1, 2)
    assert "Traceback" not in error.getvalue()
    assert bool(error.getvalue()) == (status != 0)
    assert not list(Path(folder).glob("x.*"))
