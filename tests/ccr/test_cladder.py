"""Two oracles of published models: against worlds done by hand, each other, and planted errors."""

import hashlib
import inspect
import re

import numpy as np
import pandas as pd
import pytest

from lib.ccr import cladder
from lib.ccr.cladder import MODELS, Model, audit, contracted, enumerated, published_models
from lib.files import read_table

BOTH = pytest.mark.parametrize("oracle", [enumerated, contracted])
MEDIATION = {"X": 0.4, "V2 | X": [0.2, 0.8], "Y | X, V2": [[0.1, 0.5], [0.3, 0.9]]}
CONFOUNDING = {"V1": 0.5, "X | V1": [0.2, 0.8], "Y | V1, X": [[0.1, 0.3], [0.4, 0.9]]}
ARROWHEAD = {
    "V2": 0.5,
    "X": 0.25,
    "V3 | X, V2": [[0, 1], [1, 1]],
    "Y | X, V2, V3": [[[0, 0], [0, 0]], [[0, 0], [0, 1]]],
}


@pytest.fixture(scope="module")
def models():
    return published_models()


@pytest.fixture(scope="module")
def table(models):
    return audit(models)


def model(chances):
    tables = {}
    for name, entries in chances.items():
        variable, *parents = re.findall(r"\w+", name)
        tables[variable] = parents, np.array(entries, dtype=float)
    return Model({}, tables, {})


def any_model(seed):
    """A random graph of at most five variables, in which X comes before Y, with random tables."""
    rng = np.random.default_rng(seed)
    names = [f"V{i}" for i in range(rng.integers(4))] + ["X", "Y"]
    order = list(rng.permutation(names))
    if order.index("X") > order.index("Y"):
        order.reverse()
    tables = {}
    for i, name in enumerate(order):
        parents = [one for one in order[:i] if rng.random() < 0.7]
        entries = rng.random([2] * len(parents))
        if rng.random() < 0.3 and name != "X":  # one that follows from its parents
            entries = entries.round()
        tables[name] = parents, entries
    return Model({}, tables, {})


def differ(one, two, least=1e-9):
    """Say in which quantities two oracles differ."""
    return {name for name in one.keys() & two.keys() if not abs(one[name] - two[name]) <= least}


@BOTH
def test_a_mediator_by_hand(oracle):
    found = oracle(model(MEDIATION))
    by_hand = {
        "P(Y=1 | X=0)": 0.8 * 0.1 + 0.2 * 0.5,
        "P(Y=1 | X=1)": 0.2 * 0.3 + 0.8 * 0.9,
        "P(Y=1)": 0.6 * 0.18 + 0.4 * 0.78,
        "ATE": 0.78 - 0.18,
        "ETT": 0.78 - 0.18,
        "NDE": 0.8 * (0.3 - 0.1) + 0.2 * (0.9 - 0.5),
        "NIE": (0.8 - 0.2) * (0.5 - 0.1),
    }
    assert {name: found[name] for name in by_hand} == pytest.approx(by_hand, abs=1e-12)


@BOTH
def test_a_common_cause_by_hand(oracle):
    found = oracle(model(CONFOUNDING))
    assert found["ATE"] == pytest.approx(0.5 * 0.2 + 0.5 * 0.5)
    # Of the treated, 8 in 10 have the common cause.
    assert found["ETT"] == pytest.approx(0.2 * 0.2 + 0.8 * 0.5)
    assert found["P(Y=1 | X=1)"] == pytest.approx(0.2 * 0.3 + 0.8 * 0.9)
    assert found["NDE"] == pytest.approx(found["ATE"])
    assert found["NIE"] == pytest.approx(0)


@BOTH
def test_a_common_cause_of_mediator_and_outcome_by_hand(oracle):
    """V3 is X or V2, and Y is all three: without V3's reaction, Y is V2 under X."""
    found = oracle(model(ARROWHEAD))
    assert found["NDE"] == pytest.approx(0.5)
    assert found["NIE"] == pytest.approx(0)
    assert found["P(Y=1)"] == pytest.approx(0.25 * 0.5)


@pytest.mark.parametrize("seed", range(150))
def test_the_oracles_agree_on_any_model(seed):
    some = any_model(seed)
    assert differ(enumerated(some), contracted(some), 1e-12) == set()


@pytest.mark.parametrize("oracle", [enumerated, contracted])
@pytest.mark.parametrize("chances", [MEDIATION, CONFOUNDING])
def test_an_error_of_a_millionth_in_any_entry_is_found(chances, oracle):
    """One oracle is told an entry that is wrong, the other the right ones."""
    told = model(chances)
    (other,) = {enumerated, contracted} - {oracle}
    for variable, (parents, entries) in told.tables.items():
        for entry in np.ndindex(entries.shape):
            spoilt = entries.copy()
            spoilt[entry] += 1e-6
            wrong = told._replace(tables=told.tables | {variable: (parents, spoilt)})
            assert differ(oracle(wrong), other(told)) != set()


PLANTED = [
    (enumerated, "nested(1, control)", "nested(1, treated)", "NDE"),
    (enumerated, "nested(0, treated)", "nested(1, treated)", "NIE"),
    (enumerated, 'control["Y"], seen["X"])', 'control["Y"])', "ETT"),
    (enumerated, 'mean(seen["Y"], seen["X"] == x)', 'mean((run(X=x))["Y"])', "P(Y=1 | X=1)"),
    (enumerated, "np.diff, edges", "np.ones_like, (one[1:] for one in edges)", "ATE"),
    (contracted, '"NDE": done[1, 0]', '"NDE": done[0, 1]', "NDE"),
    (contracted, 'by_y if v == "Y" else by_others', 'by_others if v == "Y" else by_y', "NIE"),
    (contracted, "chance[1, 0, 0, 1])", "chance[0, 0, 0, 1])", "ETT"),
    (contracted, '"xxxy->xy"', '"xyyz->xz"', "P(Y=1)"),
    (contracted, "[1 - table, table]", "[table, 1 - table]", "ATE"),
]


@pytest.mark.parametrize(("oracle", "right", "wrong", "quantity"), PLANTED)
def test_each_oracle_finds_an_error_in_the_program_of_the_other(oracle, right, wrong, quantity):
    program = inspect.getsource(oracle)
    assert program.count(right) == 1
    namespace = vars(cladder) | {}
    exec(program.replace(right, wrong), namespace)
    (other,) = {enumerated, contracted} - {oracle}
    found = set()
    for seed in range(20):
        found |= differ(namespace[oracle.__name__](any_model(seed)), other(any_model(seed)))
    assert quantity in found


def test_an_arrow_that_is_taken_away_is_noticed_where_there_is_a_loop(models):
    noticed = {}
    for one in models:
        for parent in one.tables["Y"][0]:
            for cause in one.tables[parent][0]:
                found = differ(enumerated(one), contracted(one.without(cause, parent)))
                noticed.setdefault(one.about["graph_id"], set()).update(found)
    assert "P(Y=1)" not in noticed.pop("chain"), "nothing to notice: the other answer is right"
    assert {"fork", "collision"}.isdisjoint(noticed), "there is no such arrow"
    assert len(noticed) == 7
    assert all("P(Y=1)" in found for found in noticed.values())


def test_without_an_arrow_a_coin_takes_its_place():
    told = model(MEDIATION)._replace(published={"P(X=1)": 0.4, "P(V2=1)": 0.44})
    parents, entries = told.without("X", "Y").tables["Y"]
    assert parents == ["V2"]
    assert entries == pytest.approx([0.6 * 0.1 + 0.4 * 0.3, 0.6 * 0.5 + 0.4 * 0.9])
    parents, entries = told.without("V2", "Y").tables["Y"]
    assert parents == ["X"]
    assert entries == pytest.approx([0.56 * 0.1 + 0.44 * 0.5, 0.56 * 0.3 + 0.44 * 0.9])
    assert told.tables["Y"][0] == ["X", "V2"], "the model itself stays as it was"


def test_tables_are_read_as_their_authors_meant_them(models):
    assert len(models) == 396
    for one in models:
        arrows = {f"{p}->{v}" for v, (parents, _) in one.tables.items() for p in parents}
        assert arrows == set(one.about["structure"].split(","))
        found = enumerated(one)
        for variable in set(one.tables) - {"Y"}:
            name = f"P({variable}=1)"
            assert found[name] == pytest.approx(one.published[name], abs=1e-12)


def test_the_audit_finds_what_the_readers_are_told(table):
    assert len(table) == 396 * 8
    about = {"model_id", "story_id", "graph_id", "equation_type", "structure"}
    assert set(table) == about | {"quantity", "published", "enumerated", "contracted", "wrong"}
    counts = table[table["wrong"]].groupby("quantity").size().to_dict()
    given = {"P(Y=1 | X=0)": 48, "P(Y=1 | X=1)": 48}
    assert counts == {"P(Y=1)": 278, "ATE": 50, "ETT": 50, "NDE": 53, "NIE": 51} | given
    error = (table["published"] - table["enumerated"]).abs()
    assert error[~table["wrong"]].max() < 1e-12 < 1e-8 < error[table["wrong"]].min()


@pytest.mark.parametrize("spoilt", ["published", "enumerated", "contracted"])
def test_the_audit_notices_one_wrong_number_wherever_it_is(models, monkeypatch, spoilt):
    chain = next(one for one in models if one.about["graph_id"] == "chain")
    assert not audit([chain])["wrong"].any()
    if spoilt == "published":
        chain = chain._replace(published=chain.published | {"NIE": chain.published["NIE"] + 1e-6})
    else:
        oracle = getattr(cladder, spoilt)
        wrong = {"NIE": chain.published["NIE"] - 1e-6}
        monkeypatch.setattr(cladder, spoilt, lambda model: oracle(model) | wrong)
    found = audit([chain])
    assert found.loc[found["wrong"], "quantity"].tolist() == ["NIE"]


def test_a_number_that_an_oracle_does_not_have_is_not_right(models, monkeypatch):
    monkeypatch.setattr(cladder, "enumerated", lambda model: {"ATE": 0.0})
    found = audit(models[:1])
    assert found["wrong"].all()


def test_the_models_are_those_of_their_authors():
    readme = (MODELS.parent / "README.md").read_text(encoding="utf-8")
    digests = dict(re.findall(r"`([\w.]+)` \|.*`([0-9a-f]{64})`", readme))
    assert set(digests) == {"models.json", "LICENSE"}
    for name, digest in digests.items():
        assert hashlib.sha256((MODELS.parent / name).read_bytes()).hexdigest() == digest


def test_the_corrected_values_are_those_of_the_audit(table):
    kept = read_table(MODELS.with_name("corrected.csv"))
    found = table.loc[table["wrong"], list(kept)].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, found, rtol=0, atol=1e-11)
    assert (kept["published"] - kept["enumerated"]).abs().min() > 1e-8


@pytest.fixture
def missed(monkeypatch):
    """The claims of the one command that do not hold."""
    monkeypatch.syspath_prepend(cladder.ROOT / "benchmarks")
    from audit import claims

    return lambda *of: [what for what, _, met in claims(*of) if not met]


def test_the_one_command_says_that_every_claim_holds(missed, models, table):
    assert missed(models, table) == []


@pytest.mark.parametrize(
    ("number", "quantity", "column", "value", "claims"),
    [
        (37, "ATE", "wrong", False, ["of 3168 numbers", "models with a wrong ATE"]),
        (37, "ATE", "published", 0.0, ["wrong ATE and ETT, or corrected"]),
        (148, "P(Y=1)", "enumerated", 0.1, ["numbers by hand", "families in which total"]),
        (197, "ETT", "published", lambda one: one["enumerated"], ["of these, published otherwise"]),
        (302, "NIE", "published", -0.001, ["numbers on the other side"]),
        (392, "NIE", "published", 0.02, ["answers that change by the rule"]),
        ("chain", "ETT", "enumerated", 0.001, ["effects that are alike or zero"]),
        ("fork", "NDE", "wrong", True, ["families with a wrong ATE or"]),
        ("IV", "P(Y=1 | X=1)", "wrong", True, ["families with a wrong P(Y=1 | X=0)"]),
        ("chain", "P(Y=1)", "wrong", True, ["families with a wrong P(Y=1) (those"]),
    ],
)
def test_the_one_command_notices_a_number_that_is_not_as_it_says(
    missed, models, table, number, quantity, column, value, claims
):
    of_model = (
        table["model_id"] == number if isinstance(number, int) else table["graph_id"] == number
    )
    row = table.index[of_model & (table["quantity"] == quantity)][0]
    spoilt = table.copy()
    spoilt.loc[row, column] = value(table.loc[row]) if callable(value) else value
    found = missed(models, spoilt)
    for claim in claims:
        assert any(what.startswith(claim) for what in found), found


def test_the_one_command_notices_a_model_that_is_not_as_it_says(missed, models, table):
    told = {one.about["model_id"]: one for one in models}
    low, high = (told[368].published[f"P(Y=1 | X={x})"] for x in (0, 1))
    iv = next(one for one in models if one.about["graph_id"] == "IV" and one.published["ATE"] > 0)
    for number, published, claim in (
        (328, {"P(Y=1 | X=0)": 0.9, "P(Y=1 | X=1)": 0.9}, "of these P(Y=1), opposite by total"),
        (368, {"P(Y=1)": (low + high) / 2}, "published P(Y=1) that do not lie between"),
        (iv.about["model_id"], {"ATE": -0.5}, "ATE of IV that are not the ratio"),
    ):
        one = told[number]
        one = one._replace(published=one.published | published)
        found = missed((told | {number: one}).values(), table)
        assert any(what.startswith(claim) for what in found), found


def test_the_one_command_notices_if_coins_with_exact_chances_are_right(missed, models, table):
    """Where V3 does not read V2, nothing is lost if a coin takes its place."""
    place = next(i for i, one in enumerate(models) if one.about["model_id"] == 362)
    parents, entries = models[place].tables["V3"]
    alike = parents, np.repeat(entries[:, :1], 2, axis=1)
    one = models[place]._replace(tables=models[place].tables | {"V3": alike})
    rows = (table["model_id"] == 362) & (table["quantity"] == "NDE")
    truths = table.assign(enumerated=table["enumerated"].mask(rows, contracted(one)["NDE"]))
    found = missed([*models[:place], one, *models[place + 1 :]], truths)
    assert any(what.startswith("NDE and NIE that an exact library") for what in found), found
