"""Settings: worlds that meet what is asked for, and a sentence about what cannot be met."""

import numpy as np
import pandas as pd
import pytest

from lib.ccr import generate, tasks
from lib.ccr.tasks import Setting
from lib.errors import InputError


def leaf_share(world):
    """Return how often the leaf is true, from the states of all noise."""
    n = world.chain.n_nodes
    states = (np.arange(2**n) >> np.arange(n)[:, None]) & 1 == 1
    p = np.array(world.probabilities)[:, None]
    weight = np.where(states, p, 1 - p).prod(axis=0)
    return weight[world.values(states)[world.chain.leaf]].sum()


def test_a_floor_on_the_pns_and_a_balanced_leaf_are_met():
    made = generate("candy_party", n_tasks=6, n_samples=1, least_pns=0.1, balance=0.3, seed=1)
    free = generate("candy_party", n_tasks=6, n_samples=1, seed=1)
    assert any(task.attempts > 1 for task in made.tasks)
    for task, drawn in zip(made.tasks, free.tasks, strict=True):
        assert task.quantities["PNS"].loc[task.world.chain.global_quantity] >= 0.1
        assert 0.3 <= leaf_share(task.world) <= 0.7
        assert (task.attempts == 1) == (task.world == drawn.world)


def test_balance_counts_with_how_often_the_root_is_true():
    """A rare root over bridges of "and" and "or": the leaf's share depends on it."""
    rare = {"probabilities": [0.1, 0.25], "causal_functions": "or", "n_per_bcc": [2, 2]}
    made = generate("candy_party", n_tasks=20, n_samples=1, balance=0.4, **rare)
    assert all(0.4 <= leaf_share(task.world) <= 0.6 for task in made.tasks)


def test_mixed_kinds_are_both_drawn():
    made = generate("candy_party", [4] * 6, bcc_types="mixed", n_tasks=3, n_samples=1)
    kinds = made.contexts["bcc_types"].tolist()
    assert {kind for row in kinds for kind in row} == {"cycle", "wheel"}
    assert len({tuple(row) for row in kinds}) > 1


def test_wordings_take_turns():
    made = generate("candy_party", n_tasks=5, n_samples=1, n_wordings=3)
    assert made.contexts["wording"].tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"theme": "candy"}, "theme 'candy' is unknown: expected one of candy_party, "),
        (
            {"n_per_bcc": [3, 1]},
            "each of n_per_bcc must be a whole number of at least 2",
        ),
        ({"n_per_bcc": []}, "n_per_bcc must list the nodes of each component: found []"),
        ({"n_per_bcc": 3}, "n_per_bcc must list the nodes of each component: found 3"),
        ({"bcc_types": ["cycle"]}, "bcc_types must have one kind a component, 3: found 1"),
        ({"bcc_types": "ring"}, "bcc_types: kind 'ring' is unknown: expected one of cycle, wheel"),
        ({"causal_functions": "nor"}, "causal_functions 'nor' is unknown: expected one of and, or"),
        (
            {"probabilities": [0.5, 1.0]},
            "probabilities must lie between 0 and 1: found [0.5, 1.0]",
        ),
        (
            {"probabilities": [0.0]},
            "probabilities must lie between 0 and 1: found [0.0]",
        ),
        (
            {"probabilities": [float("nan")]},
            "probabilities must lie between 0 and 1: found [nan]",
        ),
        ({"probabilities": []}, "probabilities must lie between 0 and 1: found []"),
        ({"n_tasks": 0}, "n_tasks must be a whole number of at least 1: found 0"),
        ({"n_samples": 2.5}, "n_samples must be a whole number of at least 1: found 2.5"),
        ({"n_wordings": 4}, "n_wordings must be at most 3: found 4"),
        ({"n_wordings": 0}, "n_wordings must be a whole number of at least 1: found 0"),
        ({"first_task": -1}, "first_task must be a whole number of at least 0: found -1"),
        ({"seed": -1}, "seed must be a whole number of at least 0: found -1"),
        ({"least_pns": 1.0}, "least_pns must be at least 0 and below 1: found 1.0"),
        ({"balance": 0.5}, "balance must be at least 0 and below 0.5: found 0.5"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(InputError) as error:
        generate(**{"theme": "candy_party"} | arguments)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("functions", "rule"),
    [
        ("nor", "causal_functions 'nor' is unknown"),
        ("and", "of theme 'clinical_notes' must be 'or, and at the leaf': found 'and'"),
        ("random", "of theme 'clinical_notes' must be 'or, and at the leaf': found 'random'"),
    ],
)
def test_a_theme_that_insists_on_its_operators_refuses_others(functions, rule):
    with pytest.raises(InputError, match=rule):
        generate("clinical_notes", causal_functions=functions)


def test_what_a_theme_insists_on_may_be_asked_for():
    asked, not_asked = (
        generate("clinical_notes", [4, 3], n_samples=1, **functions).contexts
        for functions in ({"causal_functions": "or, and at the leaf"}, {})
    )
    pd.testing.assert_frame_equal(asked, not_asked)
    assert asked["operators"][0] == ["or"] * 5 + ["and"]


def test_an_unknown_parameter_is_refused():
    with pytest.raises(InputError) as error:
        generate("candy_party", n_nodes=3)
    assert str(error.value) == (
        "parameter 'n_nodes' is unknown: expected one of theme, n_per_bcc, bcc_types, "
        "causal_functions, n_samples, least_pns, balance, probabilities, n_wordings, asides, "
        "only_changed, n_tasks, seed, first_task"
    )


def test_a_setting_is_checked_before_anything_is_drawn():
    with pytest.raises(InputError, match=r"balance must be at least 0 and below 0\.5: found 0\.7"):
        Setting("candy_party", balance=0.7)


def test_a_floor_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(tasks, "MOST_ATTEMPTS", 30)
    with pytest.raises(InputError) as error:
        generate("candy_party", least_pns=0.9)
    assert str(error.value) == (
        "no world in 30 has a global PNS of at least 0.9 and a leaf that is true with a "
        "probability of 0.0 to 1.0"
    )
