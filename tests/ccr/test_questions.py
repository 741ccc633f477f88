"""Answers by enumeration, against worlds small enough for a person, and against other oracles."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from lib.ccr import generate, questions
from lib.ccr.graphs import Chain
from lib.ccr.questions import ANSWERS, KINDS, UNKNOWN, Claim, Question, decide, every_question
from lib.ccr.worlds import World

NO, YES = 0, 1
LINK = {operator: World(Chain([2]), ["and", operator], [0.5, 0.5]) for operator in ("and", "or")}
HUGO = {value: (Claim(1, value),) for value in (True, False)}
INES, WITHOUT = (Claim(0),), (Claim(1, True, ((0, False),)),)


@pytest.mark.parametrize(
    ("operator", "told", "known", "claims", "answer"),
    [
        ("or", (-1, 0), (), INES, UNKNOWN),
        ("or", (-1, 0), HUGO[True], INES, YES),
        ("or", (-1, 0), HUGO[False], INES, NO),
        ("or", (-1, 0), HUGO[True], WITHOUT, NO),
        ("or", (-1, -1), HUGO[True], INES, UNKNOWN),
        ("or", (-1, -1), HUGO[True], WITHOUT, UNKNOWN),
        ("or", (-1, -1), HUGO[False], WITHOUT, NO),
        ("and", (-1, -1), HUGO[True], INES, YES),
        ("and", (-1, -1), HUGO[False], INES, UNKNOWN),
        ("and", (-1, -1), (), WITHOUT, NO),
        ("and", (-1, 1), HUGO[False], INES, NO),
        ("or", (1, -1), (), HUGO[True], YES),
    ],
)
def test_two_friends_are_answered_as_by_hand(operator, told, known, claims, answer):
    asked = [Question("by hand", claims, known)]
    assert decide(LINK[operator], asked, np.array(told)[:, None]).tolist() == [[answer]]


def test_a_nested_claim_keeps_the_mediator_of_another_world():
    """0 → 1 → 2 and 0 → 2: with node 1 kept as without 0, an "and" at node 2 stays false."""
    world = World(Chain([3]), ["and", "and", "and"], [0.5] * 3)
    nested = Claim(2, True, ((0, True), (1, ((0, False),))))
    joint = Claim(2, True, ((0, True), (1, True)))
    all_true = np.ones((3, 1), dtype=int)
    assert decide(world, [Question("", (nested,)), Question("", (joint,))], all_true).tolist() == [
        [NO],
        [YES],
    ]


def one_by_one(task, question, sample):
    """Answer from the definition: every completion of the noise, one world at a time."""
    told, found = task.told[:, sample], set()
    for noise in itertools.product(*([0, 1] if fact < 0 else [fact] for fact in told)):
        column = np.array(noise, dtype=bool)[:, None]

        def value(claim, column=column):
            done = {}
            for node, kept in claim.actions:
                done[node] = value(Claim(node, True, kept)) if isinstance(kept, tuple) else kept
            return bool(task.world.values(column, done)[claim.node, 0]) == claim.value

        if all(map(value, question.given)):
            found.add(all(map(value, question.claims)))
    return UNKNOWN if len(found) == 2 else int(True in found)


@pytest.mark.parametrize("bcc_types", ["cycle", "wheel"])
def test_every_question_is_answered_as_one_world_at_a_time(bcc_types):
    (task,) = generate(
        "candy_party", [4, 3], bcc_types=bcc_types, n_samples=6, seed=3, withheld=0.5
    ).tasks
    for number, sample in np.argwhere(task.asked):
        assert task.labels[number, sample] == one_by_one(task, task.asks[number], sample)


@pytest.mark.parametrize("bcc_types", ["cycle", "wheel"])
def test_questions_about_any_node_are_answered_as_one_world_at_a_time(bcc_types):
    """Which worlds may be left out depends on the nodes that are asked about."""
    setting = {"bcc_types": bcc_types, "withheld": 0.7}
    (task,) = generate("candy_party", [5, 3], n_samples=5, seed=4, **setting).tasks
    both, leaf, nodes = (True, False), task.world.chain.leaf, range(task.world.chain.n_nodes)
    for known in ((), (Claim(leaf),), (Claim(leaf - 1, False),)):
        for node in nodes:
            asked = [Question("", (Claim(node),), known)]
            asked += [Question("", (Claim(y, True, ((node, False),)),), known) for y in nodes]
            nested = [((0, v), (node, ((0, not v),))) for v in both if node > 0]
            asked += [Question("", (Claim(leaf, True, actions),), known) for actions in nested]
            for one in asked:  # alone, so that no other question keeps its worlds
                answers = decide(task.world, [one], task.told)
                assert answers.tolist() == [[one_by_one(task, one, k) for k in range(5)]], one


def test_of_worlds_that_differ_in_what_moves_nothing_one_is_evaluated():
    """0 → … → 5 and 0 → 5: what is asked about 5 hears of 4 if noise of 5 is false, and so on."""
    world, told = World(Chain([6]), ["and"] * 5 + ["or"], [0.5] * 6), np.full((6, 1), -1)

    def n_bytes(*nodes):
        asked = [Question("", (Claim(node),)) for node in nodes]
        ((noise, begins),) = questions._worlds(world, asked, told)
        assert begins.tolist() == [0]
        return noise.shape[1]

    # A byte holds eight worlds, those of the facts of 0, 1 and 2; each fact could double bytes.
    assert [n_bytes(5), n_bytes(4, 5), n_bytes(3, 4, 5)] == [4, 6, 8]
    (task,) = generate("candy_party", [5] * 6, n_samples=4, seed=1, withheld=16 / 25).tasks
    parts = questions._worlds(task.world, task.asks, task.told)
    assert sum(noise.shape[1] for noise, _ in parts) < 4 * 2 ** (16 - 3) / 8


def test_every_kind_asks_what_its_row_of_the_table_says():
    """0 → 1 → 2 and 0 → 2 → 3: node 1 is a mediator in the first component, and in all."""
    both, pairs, mediated = (True, False), [(0, 2), (0, 3), (2, 3)], [(0, 1, 2), (0, 1, 3)]
    expected = [("factual", (Claim(y),), ()) for y in (0, 2, 3)]
    for x, y in pairs:
        on, off = Claim(y, True, ((x, True),)), Claim(y, False, ((x, False),))
        expected += [
            *(("interventional", (Claim(y, True, ((x, v),)),), ()) for v in both),
            ("necessity", (off,), (Claim(x, True), Claim(y, True))),
            ("sufficiency", (on,), (Claim(x, False), Claim(y, False))),
            ("dependence", (on, off), ()),
        ]
    for known in ((Claim(3, True),), (Claim(3, False),)):
        expected += [("abduction", (Claim(x),), known) for x in (0, 2)]
        for v in both:
            expected += [("counterfactual", (Claim(y, True, ((x, v),)),), known) for x, y in pairs]
            for x, m, y in mediated:
                joint = [Claim(y, True, ((x, v), (m, kept))) for kept in both]
                nested = Claim(y, True, ((x, v), (m, ((x, not v),))))
                expected += [("joint", (claim,), known) for claim in joint]
                expected.append(("nested", (nested,), known))
    asked = every_question(Chain([3, 2]))
    assert {one.kind for one in asked} == set(KINDS) and len(asked) == len(expected)
    assert set(asked) == {Question(*one) for one in expected}


def test_told_facts_leave_nothing_unknown():
    (task,) = generate("candy_party", n_samples=30, withheld=0.3).tasks
    assert (decide(task.world, task.asks, task.noise)[task.asked] != UNKNOWN).all()
    told = every_question(task.world.chain, withheld=False)
    assert told == task.asks[: len(told)]


def test_without_mediators_there_is_nothing_to_keep():
    assert {one.kind for one in every_question(Chain([2, 2]))} == set(KINDS) - {"joint", "nested"}


def test_more_withheld_never_answers_what_could_not_be_known():
    (task,) = generate("flu_vaccine", [4, 4], n_samples=50, withheld=0.2).tasks
    labels = [replace(task, n_untold=k).labels[task.asked] for k in range(1, 7)]
    for fewer, more in itertools.pairwise(labels):
        assert ((more == fewer) | (more == UNKNOWN)).all()
    assert (labels[0] == UNKNOWN).mean() < (labels[-1] == UNKNOWN).mean()


def test_dependence_is_the_pns_of_a_case():
    (task,) = generate("candy_party", [3, 3], n_samples=4_000, withheld=0.2, seed=1).tasks
    for one in task.asks:
        if one.kind == "dependence":
            (follows,) = decide(task.world, [one], task.noise)
            pns = task.quantities["PNS"].loc[one.claims[0].actions[0][0], one.claims[0].node]
            assert abs(follows.mean() - pns) < 5 * (pns * (1 - pns) / 4_000) ** 0.5 + 1e-12


def test_answers_stand_at_their_numbers():
    assert ANSWERS[UNKNOWN] == "Cannot be known" and ANSWERS[YES] == "Yes" and ANSWERS[NO] == "No"
    assert questions.MOST_UNTOLD == 16


def test_sixteen_facts_may_be_untold_in_samples_enough_for_several_blocks(monkeypatch):
    """What all worlds at once give is what each sample alone gives, and what more facts leave."""
    (task,) = generate("candy_party", [5, 5, 5, 5], n_samples=11, withheld=16 / 17, seed=1).tasks
    assert task.n_untold == questions.MOST_UNTOLD
    monkeypatch.setattr(questions, "MOST_BYTES", 1_000)
    blocks = [begins.size for _, begins in questions._worlds(task.world, task.asks, task.told)]
    assert sum(blocks) == 11 and len(blocks) > 2 and max(blocks) > 1
    alone = [decide(task.world, task.asks[::9], one) for one in task.told.T[:, :, None]]
    assert (task.labels[::9] == np.hstack(alone)).all()
    fewer = replace(task, n_untold=4).labels
    assert ((task.labels == fewer) | (task.labels == UNKNOWN))[task.asked].all()


def test_with_ten_facts_untold_a_question_is_answered_as_one_world_at_a_time():
    (task,) = generate("candy_party", [4, 4, 5], n_samples=8, seed=2, withheld=10 / 11).tasks
    asked = np.argwhere(task.asked & (np.arange(len(task.asks)) % 25 == 7)[:, None])
    assert len(asked) > 10
    for number, sample in asked:
        assert task.labels[number, sample] == one_by_one(task, task.asks[number], sample)
