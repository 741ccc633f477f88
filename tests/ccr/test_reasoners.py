import numpy as np
import pytest

from lib.ccr import generate
from lib.ccr.answers import checked
from lib.ccr.questions import UNKNOWN
from lib.ccr.reasoners import REASONERS, WITHHELD_REASONERS, noisy
from lib.ccr.tasks import Tasks
from lib.errors import InputError


@pytest.fixture(scope="module")
def tasks():
    return generate("candy_party", n_per_bcc=[3, 3, 3], n_tasks=3, n_samples=200, seed=2)


def flat(answers):
    """All answers, task by task."""
    return np.concatenate([grid.ravel() for grid in answers])


@pytest.fixture(scope="module")
def truth(tasks):
    return flat([task.labels for task in tasks.tasks])


def rows(task, **wanted):
    """The numbers of the questions of a task with these values."""
    questions = task.questions
    for column, value in wanted.items():
        questions = questions[questions[column] == value]
    return questions["question"].tolist()


def test_names_are_the_keys_and_every_reasoner_teaches_one_sentence():
    for name, reasoner in REASONERS.items():
        assert reasoner.name == name
        assert reasoner.teaches.endswith(".")
        assert ". " not in reasoner.teaches


@pytest.mark.parametrize("name", REASONERS)
def test_a_seed_gives_the_same_answers_one_a_prompt(tasks, name):
    answers = REASONERS[name].answers(tasks, seed=5)
    assert [grid.shape for grid in answers] == [task.labels.shape for task in tasks.tasks]
    assert flat(answers).size == len(tasks)
    assert set(flat(answers).tolist()) <= {0, 1}
    assert (flat(answers) == flat(REASONERS[name].answers(tasks, seed=5))).all()


def test_only_chance_depends_on_the_seed(tasks):
    differing = {
        name
        for name, reasoner in REASONERS.items()
        if (flat(reasoner.answers(tasks, seed=0)) != flat(reasoner.answers(tasks, seed=1))).any()
    }
    assert differing == {"coin", "noisy at rate 0.05"}


def test_the_perfect_one_tells_the_truth(tasks, truth):
    assert (flat(REASONERS["perfect"].answers(tasks)) == truth).all()


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0])
def test_noise_errs_at_its_rate(tasks, truth, rate):
    wrong = (flat(noisy(rate).answers(tasks)) != truth).mean()
    # Five standard errors of a share of independent errors.
    assert abs(wrong - rate) <= 5 * np.sqrt(rate * (1 - rate) / len(truth))


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_a_rate_is_a_probability(rate):
    with pytest.raises(InputError, match="rate must lie between 0 and 1"):
        noisy(rate)


def test_facts_that_are_withheld_are_no_task_for_a_noisy_one():
    with pytest.raises(InputError, match=r"all facts must be told .* found '3 untold facts'"):
        noisy(0.1).answers(generate("candy_party", [3, 3], n_samples=2, withheld=0.6))


def test_ignoring_the_intervention_is_answering_the_factual_question(tasks):
    answers = REASONERS["ignores the intervention"].answers(tasks)
    for task, grid in zip(tasks.tasks, answers, strict=True):
        for effect in task.world.chain.cut_tree:
            (factual,) = rows(task, cause=-1, effect=effect)
            assert (grid[rows(task, effect=effect)] == task.labels[factual]).all()


def test_an_echo_is_right_wherever_the_intervention_matters(tasks):
    answers = REASONERS["echoes the intervention"].answers(tasks)
    for task, grid in zip(tasks.tasks, answers, strict=True):
        assert (grid[rows(task, value=1)] == 1).all()
        assert (grid[rows(task, value=0)] == 0).all()
        assert (grid[rows(task, value=-1)] == task.labels[rows(task, value=-1)]).all()


def test_stopping_at_the_first_cutpoint_takes_it_for_what_lies_beyond(tasks):
    answers = REASONERS["stops at the first cutpoint"].answers(tasks)
    for task, grid in zip(tasks.tasks, answers, strict=True):
        root, first, second, _ = task.world.chain.cut_tree
        facts = rows(task, cause=-1)
        assert (grid[facts] == task.labels[facts]).all()
        for cause, end in ((root, first), (first, second)):
            for value in (0, 1):
                (near,) = rows(task, cause=cause, value=value, effect=end)
                assert (grid[rows(task, cause=cause, value=value)] == task.labels[near]).all()


def test_more_samples_leave_the_answers_to_the_first_alone():
    few, many = (generate("candy_party", [3, 3], n_samples=n) for n in (10, 30))
    (short,), (long,) = (REASONERS["coin"].answers(t) for t in (few, many))
    assert (short == long[:, :10]).all()


@pytest.fixture(scope="module")
def withheld():
    return generate("candy_party", n_tasks=3, n_samples=60, seed=2, withheld=0.4)


def test_reasoners_about_withheld_facts_have_one_fault_each(withheld):
    answers = {name: one.answers(withheld) for name, one in WITHHELD_REASONERS.items()}
    for number, task in enumerate(withheld.tasks):
        asked, truth = task.asked, task.labels
        given = {name: grids[number] for name, grids in answers.items()}
        assert (given["perfect"] == truth).all()
        assert (given["always says it cannot be known"] == UNKNOWN).all()
        ignoring = given["ignores what is known"]
        assert ((ignoring == truth) | (ignoring == UNKNOWN))[asked].all()
        assert (ignoring != truth)[asked].any()
        assuming = given["assumes untold facts are false"]
        assert (assuming != UNKNOWN).all()


def test_assuming_is_right_where_what_is_untold_is_indeed_false(withheld):
    for task in withheld.tasks:
        (grid,) = WITHHELD_REASONERS["assumes untold facts are false"].answers(Tasks([task]))
        false = ~((task.told < 0) & task.noise).any(axis=0)
        known = task.asked & (task.labels != UNKNOWN) & false
        assert (grid == task.labels)[known].all() and known.any()
        # What is known of the outcome, even if it is impossible then, changes nothing.
        values = task.world.values(np.maximum(task.told, 0).astype(bool))
        for answers, one in zip(grid, task.asks, strict=True):
            if one.kind == "abduction":
                assert (answers == values[one.claims[0].node]).all()


def test_what_cannot_be_known_is_no_answer_where_every_fact_is_told():
    told = generate("candy_party", [3], n_samples=3)
    grids = WITHHELD_REASONERS["always says it cannot be known"].answers(told)
    with pytest.raises(InputError, match="an answer must be"):
        checked(told, grids)
