"""Check what the chapter on other people's truths says of them, and write corrected values.

Run it from the project's folder::

    .venv/bin/python benchmarks/audit.py                    # data/cladder/corrected.csv, 4 seconds
    .venv/bin/python benchmarks/audit.py corrected.parquet  # another file, by its ending

A claim is a line. Exit status 1 says that one does not hold.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from measuring import Finding, finish, shown

from lib.ccr.cladder import MODELS, ROUNDING, Model, audit, enumerated, published_models
from lib.errors import InputError, check_known
from lib.files import atomic_write, write_parquet

#: Families with a loop among Y and what comes before it; that of the last does not need X.
LOOPS = ["mediation", "confounding", "IV", "diamond", "diamondcut", "frontdoor", "arrowhead"]

EFFECTS = ["ATE", "ETT", "NDE", "NIE"]
GIVEN = ["P(Y=1 | X=0)", "P(Y=1 | X=1)"]

#: What decides the answers to questions: whether these are above one half, or above zero.
BORDERS = {"P(Y=1)": 0.5} | dict.fromkeys(EFFECTS, 0.0)

#: Nearer to zero than this, CLadder's answer is no; an ATE or ETT of zero is unknown.
NEAR = 0.005

#: Effects that are the same in all models of a family, and effects that are zero there.
EQUAL: dict[str, tuple[list[str], list[str]]] = {
    "chain": (["ATE", "ETT", "NIE"], ["NDE"]),
    "diamond": (["ATE", "ETT", "NIE"], ["NDE"]),
    "fork": (["ATE", "ETT", "NDE"], ["NIE"]),
    "collision": ([], EFFECTS),
    "confounding": (["ATE", "NDE"], ["NIE"]),
    "diamondcut": (["ATE", "NDE"], ["NIE"]),
    "IV": (["ATE", "NDE"], ["NIE"]),
    "frontdoor": (["ATE", "NIE"], ["NDE"]),
    "mediation": (["ATE", "ETT"], []),
    "arrowhead": (["ATE", "ETT"], []),
}

#: A number of a model, and what it is by hand, from the chances of variables without parents.
BY_HAND: dict[tuple[int, str], Callable[[dict[str, float]], float]] = {
    (148, "P(Y=1)"): lambda p: p["X"],
    (202, "P(Y=1)"): lambda p: p["V1"],
    (154, "P(Y=1)"): lambda p: p["X"],
    (153, "P(Y=1)"): lambda p: p["V1"],
    (212, "P(Y=1)"): lambda p: 1.0,
    (177, "P(Y=1)"): lambda p: p["V1"] * p["V2"],
    (197, "P(Y=1)"): lambda p: p["X"] * p["V2"],
    (216, "P(Y=1)"): lambda p: p["X"],
    (150, "P(Y=1)"): lambda p: 1 - (1 - p["X"]) * (1 - p["V2"]),
    (170, "P(Y=1)"): lambda p: p["Y"],
    (197, "ATE"): lambda p: p["V2"],
    (197, "ETT"): lambda p: p["V2"],
    (184, "NDE"): lambda p: p["V2"],
    (185, "NIE"): lambda p: 0.0,
}

COLUMNS = ["model_id", "story_id", "graph_id", "equation_type", "quantity", "published"]
COLUMNS += ["enumerated", "contracted"]


def claims(models: list[Model], table: pd.DataFrame) -> Iterator[Finding]:
    """Yield the claims of the chapter, each with what was found."""
    wrong = table[table["wrong"]]
    apart = (table["enumerated"] - table["contracted"]).abs().max()
    yield "two oracles, largest difference (at most 1e-12)", f"{apart:.0e}", apart <= 1e-12
    error = (table["published"] - table["enumerated"]).abs()
    least, most = error[table["wrong"]].min(), error[~table["wrong"]].max()
    found = f"{len(table) - len(wrong)} agree to {most:.0e}, {len(wrong)} differ by {least:.0e}"
    yield f"of {len(table)} numbers (none between)", found, most < 1e-12 < 1e-8 < least
    for quantity, expected in {"P(Y=1)": 278, "ATE": 50, "ETT": 50, "NDE": 53, "NIE": 51}.items():
        rows = wrong[wrong["quantity"] == quantity]
        largest = (rows["published"] - rows["enumerated"]).abs().max()
        found = f"{len(rows)}, by up to {largest:.3f}, in {', '.join(rows['graph_id'].unique())}"
        families = LOOPS if quantity == "P(Y=1)" else ["arrowhead"]
        met = len(rows) == expected and set(rows["graph_id"]) == set(families)
        yield f"models with a wrong {quantity} ({expected})", found, met
    size = (wrong["published"] - wrong["enumerated"]).abs()
    met = round(size.median(), 4) == 0.0024
    yield "median error of what is wrong (0.0024)", f"{size.median():.4f}", met
    tiny = int(((wrong["quantity"] == "P(Y=1)") & (size < 1e-6)).sum())
    yield "wrong P(Y=1) by less than a millionth (2)", f"{tiny}", tiny == 2
    yield from _effects_of_families(table)
    yield from _loops(table)
    yield from _explained(models)
    yield from _by_hand(models, table)
    yield from _total_probability(models, table)
    yield from _sides(models, table)
    yield from _ratios(models)
    yield from _exact_coins(models, table)


def _effects_of_families(table: pd.DataFrame) -> Iterator[Finding]:
    """Compare the effects that a family is said to have alike, or not to have."""
    apart = 0.0
    for family, (same, nothing) in EQUAL.items():
        rows = table[table["graph_id"] == family]
        rows = rows.pivot_table("enumerated", "model_id", "quantity")
        apart = max(apart, rows[nothing].abs().max(axis=None) if nothing else 0.0)
        apart = max(apart, np.ptp(rows[same], axis=1).max() if same else 0.0)
    what = "effects that are alike or zero in a family, farthest (at most 1e-12)"
    yield what, f"{apart:.0e}", apart <= 1e-12 and set(EQUAL) == set(table["graph_id"])


def _loops(table: pd.DataFrame) -> Iterator[Finding]:
    """Ask the structure alone which numbers are wrong."""
    for quantities, held in ((["P(Y=1)"], ()), (EFFECTS, ("X",)), (GIVEN, ("X",))):
        rows = table[table["quantity"].isin(quantities)]
        wrong = set(rows.loc[rows["wrong"], "graph_id"])
        structures = rows.groupby("graph_id")["structure"].first()
        looped = {family for family, one in structures.items() if _has_loop(one, held)}
        what = f"families with a wrong {' or '.join(quantities)} (those with a loop"
        what += f"{', if X is held' * bool(held)}: {len(looped)})"
        yield what, f"{len(wrong)}", wrong == looped


def _has_loop(structure: str, held: Collection[str]) -> bool:
    graph = nx.DiGraph(arrow.split("->") for arrow in structure.split(","))
    before = ({"Y"} | nx.ancestors(graph, "Y")) - set(held)
    return not nx.is_forest(graph.subgraph(before).to_undirected())


def _by_hand(models: list[Model], table: pd.DataFrame) -> Iterator[Finding]:
    """Set beside the oracles what needs no program, and beside the published numbers."""
    published = {model.about["model_id"]: model.published for model in models}
    rows = table.set_index(["model_id", "quantity"])
    farthest, off = 0.0, set()
    for (model, quantity), meaning in BY_HAND.items():
        chances = {v: published[model].get(f"P({v}=1)", np.nan) for v in ("X", "Y", "V1", "V2")}
        truth, row = meaning(chances), rows.loc[(model, quantity)]
        farthest = max(farthest, abs(truth - row["enumerated"]))
        if abs(truth - row["published"]) > ROUNDING:
            off.add((row["graph_id"], quantity))
    expected = {(family, "P(Y=1)") for family in LOOPS} | {("arrowhead", e) for e in EFFECTS}
    what = "numbers by hand, farthest from the oracles (at most 1e-12)"
    yield what, f"{farthest:.0e}", farthest <= 1e-12
    yield f"of these, published otherwise ({len(expected)})", f"{len(off)}", off == expected


def _sides(models: list[Model], table: pd.DataFrame) -> Iterator[Finding]:
    """Count what changes with the corrected values: sides of a border, and answers by the rule."""
    rows = table[table["quantity"].isin(BORDERS)]
    side, answer = (
        rows[["published", "enumerated"]].apply(
            lambda values, of=of: [*map(of, rows["quantity"], values)]
        )
        for of in (_side, _answer)
    )
    moved = rows[side["published"] != side["enumerated"]]
    counts = _with_chance(moved).groupby("quantity").size().to_dict()
    found = f"{len(moved)}, with chance {_listed(counts)}"
    met = len(moved) == 18 and counts == {"ATE": 2, "ETT": 2, "NIE": 4, "P(Y=1)": 4}
    yield "numbers on the other side (18, with chance 4 each, 2 of the ATE and ETT)", found, met
    changed = rows[answer["published"] != answer["enumerated"]]
    counts = _with_chance(changed).groupby("quantity").size().to_dict()
    found = f"{len(changed)}, with chance {_listed(counts)}"
    met = len(changed) == 27 and counts == {"NIE": 4, "P(Y=1)": 4}
    yield "answers that change by the rule (27, with chance 4 each)", found, met
    changed = _with_chance(changed[changed["quantity"] == "P(Y=1)"])
    published = {model.about["model_id"]: model.published for model in models}
    opposite = [
        _side("P(Y=1)", one.published) == -_side("P(Y=1)", _total(published[one.model_id]))
        for one in changed.itertuples()
    ]
    found = f"{sum(opposite)} of {len(opposite)}"
    yield "of these P(Y=1), opposite by total probability (all)", found, all(opposite) and met
    effects = rows[rows["wrong"] & rows["quantity"].isin(["ATE", "ETT"])]
    zero = (effects[["published", "enumerated"]].abs() <= ROUNDING).to_numpy().sum()
    yield "wrong ATE and ETT, or corrected ones, of zero (0)", f"{zero}", zero == 0


def _with_chance(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["equation_type"] == "bernoulli"]


def _side(quantity: str, value: float) -> float:
    return float(np.sign(round(value - BORDERS[quantity], 9)))


def _answer(quantity: str, value: float) -> float | str:
    """Return what CLadder's rule makes of a number: its side, or what the answer is near zero."""
    if quantity in ("ATE", "ETT") and abs(value) <= ROUNDING:
        return "unknown"
    return _side(quantity, value) or "no" if abs(value) >= NEAR else "no"


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{quantity} {count}" for quantity, count in counts.items())


def _total(published: dict[str, float]) -> float:
    """Return P(Y=1) by total probability, from what was published beside it."""
    p, given = published["P(X=1)"], [published[name] for name in GIVEN]
    return float(np.average(given, weights=[1 - p, p]))


def _explained(models: list[Model]) -> Iterator[Finding]:
    """Compare with models in which a coin takes the place of each arrow into a parent of Y."""
    apart = {"P(Y=1)": 0.0, "effects in arrowhead": 0.0}
    for model in models:
        found = enumerated(_loop_cut(model))["P(Y=1)"]
        apart["P(Y=1)"] = max(apart["P(Y=1)"], abs(found - model.published["P(Y=1)"]))
        if model.about["graph_id"] == "arrowhead":
            found = enumerated(model.without("V2", "V3"))
            differences = [abs(found[effect] - model.published[effect]) for effect in EFFECTS]
            apart["effects in arrowhead"] = max(apart["effects in arrowhead"], *differences)
    for quantity, most in apart.items():
        what = f"published {quantity} with independent parents, farthest (at most 1e-12)"
        yield what, f"{most:.0e}", most <= 1e-12


def _loop_cut(model: Model) -> Model:
    for parent in model.tables["Y"][0]:
        for cause in model.tables[parent][0]:
            model = model.without(cause, parent)
    return model


def _total_probability(models: list[Model], table: pd.DataFrame) -> Iterator[Finding]:
    """Ask of the published numbers alone whether they fit together."""
    truths = table[table["quantity"] == "P(Y=1)"].set_index("model_id")["enumerated"]
    torn, count, outside = set(), 0, 0
    mended = dict[str, bool]()
    for model in models:
        one, family = model.published, str(model.about["graph_id"])
        total = _total(one)
        if abs(total - one["P(Y=1)"]) > ROUNDING:
            count += 1
            torn.add(family)
        mends = abs(total - truths[model.about["model_id"]]) <= ROUNDING
        mended[family] = mended.get(family, True) and mends
        low, high = sorted(one[name] for name in GIVEN)
        outside += not low - ROUNDING <= one["P(Y=1)"] <= high + ROUNDING
    met = torn == set(LOOPS)
    found = f"{count} models, all of families with a loop" if met else f"{count} models"
    yield "published numbers that total probability contradicts (in every such family)", found, met
    not_mended = [family for family, mends in mended.items() if not mends]
    what = "families in which total probability does not mend P(Y=1) (arrowhead)"
    yield what, ", ".join(not_mended), not_mended == ["arrowhead"]
    what = "published P(Y=1) that do not lie between the two groups (24)"
    yield what, f"{outside} of {len(models)}", outside == 24


def _ratios(models: list[Model]) -> Iterator[Finding]:
    """Compare the ATE of IV with the ratio that its questions allow to compute."""
    away, signs = [], []
    for model in models:
        if model.about["graph_id"] == "IV":
            p = model.published["P(V1=1)"]
            x, y = model.tables["X"][1], model.tables["Y"][1]  # by V1, V2; by V1, X
            outcome = x * y[:, [1]] + (1 - x) * y[:, [0]]
            shifts = [np.diff(np.average(one, 0, [1 - p, p])).item() for one in (outcome, x)]
            ratio, ate = shifts[0] / shifts[1], model.published["ATE"]
            away.append(abs(ate - ratio) > ROUNDING)
            signs.append(np.sign(round(ratio, 9)) * np.sign(ate))
    other, zero = signs.count(-1), signs.count(0)
    found = f"{sum(away)} of {len(away)}, {other} of the other sign, {zero} zero"
    met = sum(away) == len(away) == 50 and (other, zero) == (1, 3)
    yield "ATE of IV that are not the ratio (50 of 50, 1 of the other sign, 3 zero)", found, met


def _exact_coins(models: list[Model], table: pd.DataFrame) -> Iterator[Finding]:
    """Find natural effects with exact chances, and V3 set by a coin, as the published code does."""
    truths = table.set_index(["model_id", "quantity"])["enumerated"]
    right, chances = {"NDE": 0, "NIE": 0}, 0
    for model in models:
        if (model.about["graph_id"], model.about["equation_type"]) == ("arrowhead", "bernoulli"):
            chances += 1
            p, one = model.published["P(V2=1)"], model.about["model_id"]
            coins = np.average(model.tables["V3"][1], 1, [1 - p, p])
            worlds = [model._replace(tables=model.tables | {"V3": ([], coin)}) for coin in coins]
            y = [[enumerated(world)[name] for name in GIVEN] for world in worlds]
            found = {"NDE": y[0][1] - y[0][0], "NIE": y[1][0] - y[0][0]}
            for effect, value in found.items():
                right[effect] += abs(value - truths[one, effect]) <= ROUNDING
    what = "NDE and NIE that an exact library would mend, of models with chance (none)"
    yield what, f"{_listed(right)}, of {chances}", not any(right.values()) and chances > 0


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else MODELS.with_name("corrected.csv")
    try:
        check_known(f"file {target.name}: ending", target.suffix, [".csv", ".parquet"])
    except InputError as error:
        sys.exit(str(error))
    models = published_models()
    table = audit(models)
    missed = shown(claims(models, table))
    corrected = table.loc[table["wrong"], COLUMNS]
    with atomic_write(target) as beside:
        if target.suffix == ".csv":
            corrected.round(12).to_csv(beside, index=False, lineterminator="\n")
        else:
            write_parquet([(beside, corrected)])
    seconds = time.process_time()
    written = [
        ("corrected values", f"{len(corrected)} in {target}", True),
        ("all of it, CPU seconds (at most 10)", f"{seconds:.1f}", seconds <= 10),
    ]
    finish(missed + shown(written))


if __name__ == "__main__":
    main()
