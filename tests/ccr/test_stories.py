import contextlib
import io
import itertools
import re

import numpy as np
import pytest

from lib.ccr import generate
from lib.ccr.graphs import Chain
from lib.ccr.questions import Claim, Question
from lib.ccr.stories import WORDINGS, Story
from lib.ccr.theme import find_theme, themes
from lib.ccr.worlds import World, random_world
from lib.errors import InputError

CHAIN = Chain([3, 4, 2], ["cycle", "wheel", "cycle"])
FORMS = list(itertools.product(range(len(WORDINGS)), sorted(themes())))


def a_story(theme="candy_party", wording=0, seed=0, world=None, **details):
    world = world or random_world(CHAIN, "random", seed, "a world")
    return Story(find_theme(theme), world, seed, "a story", wording, **details)


@pytest.mark.parametrize(("wording", "theme"), FORMS)
def test_a_context_has_one_closed_rule_a_node_and_names_exactly_its_causes(wording, theme):
    story = a_story(theme, wording)
    context = story.context
    assert context.startswith(story.theme.openings[wording])
    assert context.endswith(story.theme.closing)
    told = context.removeprefix(story.theme.openings[wording]).removesuffix(story.theme.closing)
    rules = [sentence for sentence in told.strip().split(". ") if sentence]
    assert len(rules) == CHAIN.n_nodes
    for rule, node, causes, operator in zip(
        rules, story.nodes, CHAIN.parents, story.world.operators, strict=True
    ):
        assert node.true.lower() in rule.lower()
        assert re.search("if and only if|exactly when|and only then", rule)
        conditions = re.findall(r"\([a-z]\) ([^;]+)", rule.rstrip("."))
        assert "abcd".startswith("".join(re.findall(r"\(([a-z])\)", rule)))
        if causes:
            assert conditions == [node.own, *(story.nodes[cause].true for cause in causes)]
            assert bool(re.search(r"\ball\b|\bevery one\b", rule)) == (operator == "and")
            assert bool(re.search(r"\bany\b|\bone or|\bat least one\b", rule)) == (operator == "or")
        else:
            assert not conditions and rule.count(node.own) == 1


@pytest.mark.parametrize("theme", sorted(themes()))
def test_no_probability_leaks(theme):
    """With other probabilities of the same noise, not one letter changes."""
    n, noise = CHAIN.n_nodes, np.random.default_rng(0).random((CHAIN.n_nodes, 30)) < 0.5
    likely, unlikely = (
        a_story(theme, world=World(CHAIN, ["or"] * n, [p] * n)) for p in (0.95, 0.05)
    )
    assert likely.context == unlikely.context
    assert likely.samples(noise) == unlikely.samples(noise)


def test_facts_that_tell_the_same_are_told_equally_often():
    story = a_story(world=World(Chain([2]), ["and", "or"], [0.5, 0.5]), asides=False)
    samples = story.samples(np.ones((2, 20_000), dtype=bool))
    first = [text.split(". ")[0] for text in samples]
    known = [sentence.removesuffix(".") for sentence in story.nodes[0].when_true]
    expected = len(samples) / len(known)
    for sentence in known:
        assert abs(first.count(sentence) - expected) < 5 * expected**0.5
    assert sum(map(first.count, known)) == len(samples)


def test_each_sample_tells_its_own_noise_however_many_are_drawn():
    story = a_story("flu_vaccine")
    noise = story.world.noise(0, "a story", 50)
    samples = story.samples(noise)
    assert story.samples(noise[:, :30]) == samples[:30]
    for told, sample in zip(samples, noise.T, strict=True):
        for node, value in zip(story.nodes, sample, strict=True):
            sentences = node.when_true if value else node.when_false
            others = node.when_false if value else node.when_true
            assert sum(sentence in told for sentence in sentences) == 1
            assert not any(sentence in told for sentence in others)


def test_asides_are_told_or_not():
    noise = np.ones((CHAIN.n_nodes, 5), dtype=bool)
    told, plain = (a_story(asides=asides).samples(noise) for asides in (True, False))
    assert all(text.count(". ") == 2 * CHAIN.n_nodes - 1 for text in told)
    assert all(text.count(". ") == CHAIN.n_nodes - 1 for text in plain)


@pytest.mark.parametrize("wording", range(len(WORDINGS)))
def test_questions_name_cause_and_effect(wording):
    story = a_story("clinical_notes", wording)
    pain, surgery = story.nodes[0], story.nodes[-1]
    assert story.ask(Question("factual", (Claim(0),))) == "Is the pain significant?"
    for value, clause in ((True, pain.true), (False, pain.false)):
        after = Claim(CHAIN.leaf, True, ((0, value),))
        question = story.ask(Question("interventional", (after,)))
        assert clause in question
        assert question.endswith(surgery.question)


@pytest.mark.parametrize(
    "question",
    [
        Question("mine", (Claim(0), Claim(1))),
        Question("mine", (Claim(1, False, ((0, True),)),)),
        Question("mine", (Claim(1),), given=(Claim(2, True, ((0, True),)),)),
    ],
)
def test_what_words_would_leave_out_is_refused(question):
    """Or the text would ask for something else than what is answered."""
    with pytest.raises(InputError, match=r"must claim that one node is true, and its .*: found Q"):
        a_story().ask(question)


@pytest.mark.parametrize(
    "question",
    [
        Question("dependence", (Claim(2, True, ((0, True),)),)),
        Question("necessity", (Claim(2, True, ((0, False),)),), (Claim(0), Claim(2))),
        Question("necessity", (Claim(0),)),
    ],
)
def test_words_of_causation_are_for_the_claims_that_they_stand_for(question):
    with pytest.raises(InputError, match="a question must claim that one node is true"):
        a_story().ask(question)


@pytest.mark.parametrize(
    "actions",
    [
        ((1, ((0, True),)), (0, False)),
        ((1, ((0, False),)),),
        ((0, True), (1, ())),
        ((0, True), (1, ((0, False), (2, ((0, True),))))),
    ],
)
def test_actions_that_keep_a_node_come_last(actions):
    with pytest.raises(InputError, match="only the last of several actions may keep a node"):
        a_story().ask(Question("mine", (Claim(CHAIN.leaf, True, actions),)))


def test_a_node_is_set_once():
    with pytest.raises(InputError, match="node that is set"):
        a_story().ask(Question("mine", (Claim(CHAIN.leaf, True, ((0, True), (0, False))),)))


def test_wordings_differ():
    assert len({a_story(wording=wording).context for wording in range(len(WORDINGS))}) == 3


def printed(program):
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(program, {})
    return told.getvalue().strip()


@pytest.mark.parametrize("theme", sorted(themes()))
def test_every_program_prints_the_answer_of_its_prompt(theme):
    tasks = generate(theme, [3, 4], bcc_types="wheel", n_tasks=2, n_samples=2, withheld=0.4, seed=6)
    for prompt in tasks.prompts():
        task = tasks.tasks[prompt["task"]]
        assert printed(task.program(prompt["question"], prompt["sample"])) == prompt["answer"]


def test_a_program_tells_rules_and_facts_and_nothing_of_what_is_untold():
    (task,) = generate("candy_party", [3], causal_functions="or", n_samples=1, withheld=0.3).tasks
    (untold,) = (task.told[:, 0] < 0).nonzero()[0]
    program, names = task.program(0, 0), [node.label for node in task.story.nodes]
    for node, name in enumerate(names):
        fact = None if node == untold else bool(task.noise[node, 0])
        assert f"    {name!r}: {fact},\n" in program
    assert f"own[{names[2]!r}] or now[{names[0]!r}] or now[{names[1]!r}]" in program


def test_a_spoilt_rule_is_noticed():
    tasks = generate("candy_party", [3, 3], causal_functions="or", n_samples=3, withheld=0.4)
    (task,) = tasks.tasks
    programs = [(task.program(p["question"], p["sample"]), p["answer"]) for p in tasks.prompts()]
    spoilt = [(program.replace(" or now", " and now"), answer) for program, answer in programs]
    assert all(printed(program) == answer for program, answer in programs)
    assert sum(printed(program) != answer for program, answer in spoilt) > len(spoilt) / 20
