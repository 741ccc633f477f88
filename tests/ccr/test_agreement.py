"""The checks of the error tests pass where they should, and fail where something is wrong."""

from dataclasses import replace

import numpy as np
import pytest

from lib.ccr import agreement, generate, read, reader
from lib.ccr.agreement import convergence, disagreements, golden_quantities, largest_errors
from lib.ccr.exact import exact_quantities
from lib.ccr.graphs import Chain
from lib.ccr.questions import decide
from lib.ccr.tasks import Tasks
from lib.ccr.worlds import random_world
from lib.errors import InputError


@pytest.fixture(scope="module")
def world():
    return random_world(Chain([3, 4, 3], "wheel"), "random", seed=22, name="pictured")


def test_labels_that_are_right_are_read_as_such():
    tasks = generate("candy_party", [3, 3], n_tasks=2, n_samples=4, n_wordings=2, seed=1)
    assert len(disagreements(tasks)) == 0


def test_every_spoilt_label_is_found(monkeypatch):
    (task,) = generate("candy_party", [3, 3], n_samples=20, seed=1).tasks
    spoilt = task.labels.copy()
    spoilt[4, 3] = ~spoilt[4, 3]
    spoilt[7, 19] = ~spoilt[7, 19]
    monkeypatch.setattr(type(task), "labels", spoilt)  # that of its copies, too
    found = disagreements(Tasks([task]))
    assert list(zip(found["question"], found["sample"], strict=True)) == [(4, 3), (7, 19)]
    assert (found["read"] != found["answer"]).all()


def test_exact_and_enumerated_quantities_agree_up_to_rounding(world):
    assert largest_errors(world)["exact"] < 1e-14
    assert largest_errors(world)["composition"] < 1e-14


def test_a_wrong_quantity_is_noticed(world, monkeypatch):
    def slightly_wrong(world):
        quantities = exact_quantities(world)
        quantities.iloc[2, 5] += 1e-6
        return quantities

    monkeypatch.setattr(agreement, "exact_quantities", slightly_wrong)
    assert largest_errors(world)["exact"] == pytest.approx(1e-6, rel=1e-6)
    assert largest_errors(world)["composition"] < 1e-14


def test_a_quantity_that_does_not_compose_is_noticed(world, monkeypatch):
    enumerated = exact_quantities(world)
    enumerated.loc[(0, 2), "PNS"] += 0.1
    monkeypatch.setattr(agreement, "enumerated_quantities", lambda world: enumerated)
    # 0 → 2 → 7 has the factor that is wrong, and PNS(2, 7) beside it.
    departure = 0.1 * enumerated["PNS"].loc[2, 7]
    assert largest_errors(world)["composition"] == pytest.approx(departure)


def test_a_single_component_has_nothing_to_compose():
    one = random_world(Chain([4]), "or", seed=0, name="one")
    assert largest_errors(one)["composition"] == 0


def test_golden_quantities_are_those_found_by_hand_and_both_oracles_agree():
    golden = golden_quantities()
    # An "and" lets a gain through if its noise is true, an "or" if it is false.
    by_hand = {
        ("one link", "PNS(0, 1)"): 0.8,
        ("two links", "PNS(0, 2)"): 0.8 * (1 - 0.5),
        # A node of the other operator than the sink's, next to the source, drops out.
        ("three cycles", "PNS(5, 7)"): 0.7,
        # On the cycle's long way, node 1 is true with the root; nodes 2 and 3 may stop that.
        ("both kinds", "PNS(0, 4)"): 0.4 * (1 - (1 - 0.7) * (1 - 0.6)),
        ("both kinds", "PNS(4, 7)"): 0.5 * 0.7,
        ("or only", "PNS(0, 9)"): 0.2**9,
    }
    for key, value in by_hand.items():
        assert golden["exact"][key] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(golden["enumerated"], golden["exact"], rtol=1e-9)
    assert len(golden) == 1 + 4 + 9 + 4 + 9


def test_every_product_of_a_golden_world_is_its_global_quantity():
    for _, world in golden_quantities().groupby(level="world"):
        products = world["exact"][world.index.get_level_values("quantity").str.contains("·")]
        whole = world["exact"].min()  # no part has a smaller effect
        assert products.to_numpy() == pytest.approx([whole] * len(products), rel=1e-12)


def test_estimates_converge_at_the_rate_of_chance(world):
    errors = convergence(world, [200, 800, 3_200], 300, seed=5, confidence=0.9999)
    assert errors["error"].between(errors["low"], errors["high"]).all()
    assert np.allclose(
        errors["expected"] / errors["expected"].shift(), [np.nan, 0.5, 0.5], equal_nan=True
    )
    pns = exact_quantities(world)["PNS"].loc[world.chain.global_quantity]
    assert errors["expected"].iloc[0] == pytest.approx((pns * (1 - pns) / 200) ** 0.5)
    # One in a hundred of 40 repetitions lies without the 0.5 and 99.5 per cent points of a table.
    band = convergence(world, [1], 40, seed=5).loc[1]
    assert 40 * (band[["low", "high"]] / band["expected"]).to_numpy() ** 2 == pytest.approx(
        [20.707, 66.766], rel=1e-4
    )


def test_a_biased_quantity_leaves_the_band(world, monkeypatch):
    def biased(world):
        quantities = exact_quantities(world)
        quantities["PNS"] *= 1.1
        return quantities

    monkeypatch.setattr(agreement, "exact_quantities", biased)
    errors = convergence(world, [10_000], 200, seed=5, confidence=1 - 1e-6)
    assert (errors["error"] > errors["high"]).all()


def test_the_band_has_its_confidence(world):
    # 400 repetitions of one size: the share inside is binomial, 0.5 ± 0.1 at four deviations.
    inside = [
        convergence(world, [50], 40, seed=seed, confidence=0.5).eval("low <= error <= high").item()
        for seed in range(400)
    ]
    assert 0.4 < np.mean(inside) < 0.6


def test_counts_must_be_positive(world):
    with pytest.raises(InputError, match="must be a whole number of at least 1: found 0"):
        convergence(world, [100, 0], 10, seed=0)


@pytest.mark.parametrize("confidence", [0, 1, 2, float("nan"), True])
def test_a_confidence_must_leave_chance_on_both_sides(world, confidence):
    with pytest.raises(InputError, match="confidence must be above 0 and below 1: found"):
        convergence(world, [100], 10, seed=0, confidence=confidence)


def withheld(**more):
    told = {"n_tasks": 3, "n_samples": 4, "n_wordings": 3, "withheld": 0.4, "seed": 7}
    return generate("flu_vaccine", [3, 4], **told | more)


def test_enumeration_and_reader_agree_where_facts_are_withheld():
    assert len(disagreements(withheld())) == 0


def test_enumeration_and_reader_agree_where_twelve_facts_are_withheld():
    tasks = generate("candy_party", [5, 5, 5], n_samples=1, withheld=12 / 13, seed=3)
    assert tasks.tasks[0].n_untold == 12 and len(tasks) > 100
    assert len(disagreements(tasks)) == 0


def test_a_fault_of_the_enumeration_is_found_by_the_reader():
    """It forgets what is known, takes what is not told for false, or keeps no mediator."""

    def without_evidence(world, asked, told):
        return decide(world, [replace(one, given=()) for one in asked], told)

    def false_if_untold(world, asked, told):
        return decide(world, asked, np.maximum(told, 0))

    def unkept(world, asked, told):
        claims = [
            tuple(claim._replace(actions=claim.actions[:1]) for claim in one.claims)
            for one in asked
        ]
        asked = [replace(one, claims=of_it) for one, of_it in zip(asked, claims, strict=True)]
        return decide(world, asked, told)

    for wrong in (without_evidence, false_if_untold, unkept):
        found = 0
        for task in withheld(n_samples=15).tasks:
            labels = wrong(task.world, task.asks, task.told)
            prompts = {prompt["id"]: prompt for prompt in Tasks([task]).prompts()}
            for question, sample in np.argwhere((labels != task.labels) & task.asked):
                prompt = prompts[f"{task.number}-{sample}-{question}"]
                said = read(prompt["context"], prompt["text"], "flu_vaccine")
                assert said == task.labels[question, sample] != labels[question, sample]
                found += 1
        assert found > 10, wrong.__name__


def test_a_fault_of_the_reader_is_found_by_the_enumeration(monkeypatch):
    """It does not listen to what is known."""
    right = reader._question

    def deaf(question, known):
        theme, (_, claims) = right(question, known)
        return theme, ([], claims)

    monkeypatch.setattr(reader, "_question", deaf)
    found = disagreements(withheld())
    assert len(found) > 0 and (found["read"] == 2).all()
    assert found["text"].str.startswith("As things are before any change, it is known").all()
