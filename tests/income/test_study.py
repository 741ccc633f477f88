"""A study is drawn with its truth, and the two belong together."""

import copy
import dataclasses
import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest

from lib import ROOT
from lib.effects.study import ADJUSTMENT_SETS, ARMS, FULL_ADJUSTMENT
from lib.errors import InputError
from lib.income import draw_studies, draw_study, fitted_simulator, study
from lib.income.characteristics import cohort
from lib.income.study import true_effects
from lib.scm import Simulator, Specification
from lib.scm.mechanisms import Mechanism


@pytest.fixture(scope="module")
def simulator():
    return fitted_simulator()


@pytest.fixture(scope="module")
def drawn(simulator):
    return draw_study(simulator, 2_000, horizon=3, repeats=12)


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUSAL_BENCHMARK_BOOK_CACHE", str(tmp_path))


def test_the_truth_is_that_of_the_test_subjects_in_their_order(drawn):
    # Whoever knows the true effects explains the share of single differences that the ceiling
    # says, and as much as nothing if they are those of other subjects.
    assert 0.85 < drawn.truth.ceiling < 1
    for order, low, high in ((slice(None), -0.05, 0.05), (slice(None, None, -1), -3, -1)):
        squares = np.mean((drawn.difference - drawn.effects[order]) ** 2)
        assert low < 1 - squares / drawn.difference.var() - drawn.truth.ceiling < high
    error = drawn.truth.variance.mean() / len(drawn.difference)
    assert abs((drawn.difference - drawn.effects).mean()) < 4 * error**0.5


def test_the_truth_is_the_same_whatever_was_done_to_the_subjects(drawn, simulator):
    natural = simulator.sample(2_000, horizon=2, seed=1)
    again = true_effects(simulator, natural, 12, horizon=3)
    np.testing.assert_array_equal(again.mean, drawn.truth.mean)
    np.testing.assert_array_equal(again.variance, drawn.truth.variance)


def test_the_truth_is_that_of_all_futures_however_many_are_run_at_a_time(simulator, monkeypatch):
    world = simulator.sample(100, horizon=2, seed=1)
    worlds = study._futures(simulator, world, 3, 2, ARMS, range(5))
    control, treated = (one["income"].to_numpy().reshape(5, 100, 3)[..., -1] for one in worlds)
    found = []
    for block in (1, 250):
        monkeypatch.setattr(study, "BLOCK", block)
        found.append(true_effects(simulator, world, 5, horizon=3))
    np.testing.assert_array_equal(found[0].mean, found[1].mean)
    np.testing.assert_array_equal(found[0].variance, found[1].variance)
    np.testing.assert_allclose(found[0].mean, (treated - control).mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(found[0].variance, (treated - control).var(axis=0, ddof=1))


def test_test_subjects_are_others_than_the_seen_and_the_same_in_both_arms(drawn, simulator):
    before = list(FULL_ADJUSTMENT)
    pd.testing.assert_frame_equal(drawn.control[before], drawn.treated[before], check_exact=True)
    assert set(drawn.control["studies"]) == {"No studies"}
    assert set(drawn.treated["studies"]) == {"Full-time studies"}
    assert not drawn.control[before].equals(drawn.observational[before])
    seen = draw_study(simulator, 100, horizon=3, test_seed=0)
    pd.testing.assert_frame_equal(
        seen.control[before], seen.observational[before], check_exact=True
    )
    one = draw_study(simulator, 100, horizon=3, seed=1)
    pd.testing.assert_frame_equal(one.control, seen.control, check_exact=True)
    assert not one.control[before].equals(one.observational[before])


def test_true_probabilities_are_those_of_what_was_taken(drawn):
    expected = drawn.probabilities.sum()
    spread = (drawn.probabilities * (1 - drawn.probabilities)).sum() ** 0.5
    counts = drawn.observational["studies"].value_counts()[expected.index]
    assert (abs(counts - expected) < 4 * spread + 1).all()
    np.testing.assert_allclose(drawn.probabilities.sum(axis=1), 1)


def test_both_adjustment_sets_hold_what_decides_the_chances(simulator):
    """So the same people have some chance of each arm, given either set."""
    studies = simulator.specification.variables["studies"]
    causes = {*studies.seq_parents_curr, *(f"{name}_prev" for name in studies.seq_parents_prev)}
    causes -= {"time", "education"}  # the same for all; and told by its rank, education-num
    assert causes == set(ADJUSTMENT_SETS["minimal"]) < set(ADJUSTMENT_SETS["full"])


def test_arms_may_be_others(simulator):
    arms = ("No studies", "Evening course")
    evening = draw_study(simulator, 300, horizon=3, repeats=2, arms=arms)
    assert set(evening.treated["studies"]) == {"Evening course"}
    # An evening course is no year without pay: it costs nothing like full-time studies do.
    assert abs(evening.effects.mean()) < 3_000
    assert evening.redrawn(n=200).arms == arms


def test_fewer_test_subjects_are_the_first_ones(drawn, simulator):
    few = draw_study(simulator, 500, horizon=3, n_test=50)
    pd.testing.assert_frame_equal(few.control, drawn.control.head(50), check_exact=True)
    pd.testing.assert_frame_equal(
        few.observational, drawn.observational.head(500), check_exact=True
    )
    assert few.truth is None and few.effects is None


def test_a_study_is_drawn_again_with_one_thing_changed(drawn):
    smaller = drawn.redrawn(n=300)
    pd.testing.assert_frame_equal(
        smaller.observational, drawn.observational.head(300), check_exact=True
    )
    np.testing.assert_array_equal(smaller.effects, drawn.effects)
    later = drawn.redrawn(horizon=4, n_test=20)
    before = list(FULL_ADJUSTMENT)
    pd.testing.assert_frame_equal(
        later.observational[before], drawn.observational[before], check_exact=True
    )
    assert (later.observational["income"] != drawn.observational["income"]).mean() > 0.5
    # What was replaced is asked of the new draw, too.
    minimal = dataclasses.replace(drawn, adjustment="minimal", group=None)
    fewer = minimal.redrawn(n=200)
    assert [*fewer.covariates] == [*minimal.covariates] and fewer.groups is None
    full = minimal.redrawn(adjustment="full")
    assert len(full.covariates.columns) > len(fewer.covariates.columns)
    with pytest.raises(InputError, match=r"subjects, unless test_seed is given, too: found 1$"):
        drawn.redrawn(seed=1)
    other = drawn.redrawn(seed=1, test_seed=0)
    pd.testing.assert_frame_equal(
        other.control[before], drawn.observational[before], check_exact=True
    )


def test_studies_share_test_subjects_and_more_leave_the_first_as_they_are(simulator):
    options = {"horizon": 3, "n_test": 60, "repeats": 2}
    two = list(draw_studies(simulator, 200, [5, 0], **options))
    three = list(draw_studies(simulator, 200, [5, 0, 1], **options))
    for few, more in zip(two, three[:2], strict=True):
        pd.testing.assert_frame_equal(few.observational, more.observational, check_exact=True)
    assert len({one.observational["income"].sum() for one in three}) == 3
    for one in three[1:]:
        pd.testing.assert_frame_equal(one.control, three[0].control, check_exact=True)
        np.testing.assert_array_equal(one.effects, three[0].effects)
        # Each knows its own seed.
        again = one.redrawn()
        pd.testing.assert_frame_equal(again.observational, one.observational, check_exact=True)
        pd.testing.assert_frame_equal(again.probabilities, one.probabilities, check_exact=True)
        np.testing.assert_array_equal(again.effects, one.effects)


def test_studies_carry_the_truth_unless_none_is_wanted(simulator):
    one = next(draw_studies(simulator, 40, [5], horizon=3))
    assert one.truth.repeats == 10 and one.effects.shape == (40,)
    assert next(draw_studies(simulator, 40, [5], horizon=3, repeats=0)).truth is None


def test_the_truth_is_computed_once_for_all_loads_of_one_fit(simulator, empty_cache, monkeypatch):
    first = draw_study(simulator, 100, horizon=3, repeats=2)
    monkeypatch.setattr(study, "true_effects", None)  # whoever computes it again, fails
    again = draw_study(copy.deepcopy(simulator), 200, horizon=3, n_test=100, repeats=2)
    np.testing.assert_array_equal(again.effects, first.effects)
    pd.testing.assert_frame_equal(again.treated, first.treated, check_exact=True)
    other = copy.deepcopy(simulator).set_params(coupling="inverse_cdf")
    for changes in (
        *({"horizon": 4}, {"n_test": 99}, {"repeats": 3}, {"test_seed": 7}, {"truth_seed": 8}),
        *({"arms": ("No studies", "Day course")}, {"simulator": other}),
    ):
        with pytest.raises(TypeError):
            first.redrawn(**changes)
    for changes in ({"n": 99}, {"seed": 7}, {"simulator": other}):
        anew = first.redrawn(repeats=0, **changes)
        assert not anew.observational.equals(first.observational)


def test_studies_of_a_fit_that_is_not_kept_find_the_truth_once(simulator, monkeypatch):
    mine, found = copy.deepcopy(simulator), []
    mine.recipe_ = None

    def find(*asked):
        found.append(true_effects(*asked))
        return found[-1]

    monkeypatch.setattr(study, "true_effects", find)
    three = list(draw_studies(mine, 60, range(3), horizon=3, n_test=30, repeats=2))
    assert len(found) == 1 and all(one.truth is found[0] for one in three)


def test_a_fit_of_ones_own_is_never_mistaken_for_the_books(simulator, few_of_adult, empty_cache):
    names = {"n": 60, "n_test": 30, "horizon": 3, "repeats": 2}
    of_book = draw_study(simulator, **names)
    mine = copy.deepcopy(simulator).fit(few_of_adult)
    assert mine.recipe_ is None
    assert not np.array_equal(draw_study(mine, **names).effects, of_book.effects)
    mine.fit(few_of_adult, seed=1)
    assert not np.array_equal(draw_study(mine, **names).effects, of_book.effects)


def test_nothing_is_kept_of_a_fit_under_the_name_of_another(simulator, empty_cache):
    class Poor(Mechanism):
        def evaluate(self, parents, noise):
            return np.zeros(noise.shape[1])

    names = {"n": 60, "n_test": 30, "horizon": 3}
    changed, older, schooled, replaced, capped, wider = (copy.deepcopy(simulator) for _ in range(6))
    forest, nested, listed, scaled = (copy.deepcopy(simulator) for _ in range(4))
    grown = forest.initial_["relationship"].model_
    grown.estimator.estimators_[1:] = grown.estimator.estimators_[:1] * 19
    vars(grown).pop("forest", None)  # which has been made of the other trees
    nested.transition_["occupation"].sampler = copy.deepcopy(simulator.initial_["occupation"])
    nested.transition_["occupation"].sampler.model_.estimator.coef_[:] = 0
    listed.initial_["studies"].AT_25 = [7.0, -5.0, 9.0, 3.0]
    scaled.initial_["education"].model_.features.scales["age"] = (0.0, 1.0)
    changed.transition_["income"].prev_weight = 0.0
    capped.initial_["income"].largest_, wider.initial_["income"].largest_ = 300_000, 600_000
    older.initial_["age"].mean_ += 1
    schooled.initial_["education"].model_.estimator.coef_[:] = 0
    replaced.transition_["income"] = Poor("income")
    # The book's own fit comes last, so that it would find what the others had left.
    simulators = [changed, older, schooled, replaced, capped, wider, forest, nested, listed, scaled]
    simulators.append(simulator)
    found = [draw_study(one, **names).observational for one in simulators]
    for one, table in zip(simulators, found, strict=True):
        assert table.equals(cohort(one.sample(60, 3)))
    assert not any(table.equals(found[-1]) for table in found[:-1])


def test_the_effect_may_lead_through_what_studies_change_in_their_own_year():
    rng, n = np.random.default_rng(0), 400
    studies, age = rng.permuted(np.repeat(ARMS, n // 2)), rng.normal(size=n)
    hours = 40.0 - 20 * (studies == ARMS[1]) + rng.normal(size=n)
    table = pd.DataFrame({"age": age, "studies": studies, "hours": hours, "income": 1_000 * hours})
    line = {"sampler": "LinearGaussianSampler", "seq_sampler": "LinearGaussianSampler"}
    world = {
        "age": {"sampler": "gaussian", "seq_sampler": "None"},
        "studies": {"sampler": "multinomial", "seq_sampler": "multinomial"},
        "hours": line | {"parents": ["studies"], "seq_parents_curr": ["studies"]},
        "income": line | {"parents": ["hours"], "seq_parents_curr": ["hours"]},
    }
    small = Simulator(Specification(world)).fit(table)
    drawn = draw_study(small, 200, horizon=2, repeats=4, adjustment=["age"])
    control, treated = (small.sample(200, 2, 1, {"studies": {1: arm}}) for arm in ARMS)
    effect = (treated["income"] - control["income"])[treated["t"] == 1].mean()
    assert effect == pytest.approx(-20_000, rel=0.05)
    assert drawn.difference.mean() == pytest.approx(effect, rel=0.01)
    assert drawn.truth.mean.mean() == pytest.approx(effect, rel=0.01)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 1}, "horizon must be a whole number of at least 2: found 1"),
        ({"repeats": 1}, "repeats must be a whole number of at least 2: found 1"),
        ({"arms": ("No studies", "Sabbatical")}, "Sabbatical"),
        ({"adjustment": "some"}, "adjustment 'some' is unknown"),
        ({"n": 0}, "n must be"),
        (
            {"repeats": 2, "test_seed": 2},
            "truth_seed must not be the seed of the test subjects: found",
        ),
    ],
)
def test_what_is_refused(simulator, changes, message):
    with pytest.raises(InputError, match=message):
        draw_study(simulator, **{"n": 50, "horizon": 3} | changes)


def test_studies_are_drawn_as_they_are_needed_from_simulators_in_turn(simulator):
    other = fitted_simulator(seed=1, seeded=["relationship"])
    options = {"horizon": 3, "n_test": 40}
    seeds = [7, 8, 9, 2**32 - 1]  # up to the largest that numpy spawns
    endless = itertools.chain(seeds, itertools.count())
    drawn = draw_studies([simulator, other], 100, endless, **options)
    studies = list(itertools.islice(drawn, 4))
    assert [study.drawn["seed"] for study in studies] == seeds
    assert [study.drawn["simulator"] for study in studies] == [simulator, other] * 2
    for k, one in enumerate(studies):
        alone = draw_study((simulator, other)[k % 2], 100, seed=seeds[k], horizon=3)
        pd.testing.assert_frame_equal(one.observational, alone.observational, check_exact=True)
        pd.testing.assert_frame_equal(one.control, studies[k % 2].control, check_exact=True)
    assert not studies[0].control.equals(studies[1].control)
    # No study has the people, or the luck, of its test subjects.
    for wrong in (5, 6):
        seeds = {"test_seed": 5, "truth_seed": 6}
        with pytest.raises(
            InputError, match=f"differ from test_seed and truth_seed: found {wrong}"
        ):
            list(draw_studies(simulator, 50, [4, wrong], **options, **seeds))
    with pytest.raises(InputError, match="differ from test_seed and truth_seed: found 1"):
        list(draw_studies(simulator, 50, [4, 1], **options, test_seed=None))  # which is 1 then
    twice = draw_studies([simulator, other], 50, [7, 7, 8, 7], **options)
    with pytest.raises(InputError, match="studies of one simulator need different seeds: found 7"):
        assert len([next(twice) for _ in range(3)]) == 3 and next(twice)
    for wrong, found in (([], r"\[\]"), ("income_scm_1.0", r"\['i', 'n', 'c'\]")):
        with pytest.raises(
            InputError, match=f"simulators must be one Simulator or several: found {found}"
        ):
            next(draw_studies(wrong, 10, [0]))
    with pytest.raises(InputError, match=r"seeds must be an iterable, such as range\(3\): found 3"):
        next(draw_studies(simulator, 10, 3))
    garden = Simulator(Specification({"light": {"sampler": "gaussian"}}))
    garden.fit(pd.DataFrame({"light": [2.0, 4.0]}))
    with pytest.raises(InputError, match=r"use lib.effects.Study: found \['light'\]"):
        next(draw_studies(garden, 10, [0]))


def test_true_probabilities_of_test_subjects_are_theirs(drawn, simulator):
    world = simulator.sample(2_000, horizon=2, seed=1)
    expected = simulator.probabilities("studies", world, 1)
    pd.testing.assert_frame_equal(drawn.test_probabilities, expected, check_exact=True)
    # Of one seed, seen and test subjects are the same people, and so are their chances.
    same = draw_study(simulator, 100, horizon=3, test_seed=0)
    pd.testing.assert_frame_equal(same.test_probabilities, same.probabilities, check_exact=True)


def test_in_a_lottery_the_treatment_is_drawn_and_nothing_else_changes(simulator):
    chances = {"No studies": 0.25, "Full-time studies": 0.75}
    lottery = draw_study(simulator, 3_000, horizon=3, n_test=20, lottery=chances)
    as_seen = draw_study(simulator, 3_000, horizon=3, n_test=20)
    before = list(FULL_ADJUSTMENT)
    pd.testing.assert_frame_equal(
        lottery.observational[before], as_seen.observational[before], check_exact=True
    )
    pd.testing.assert_frame_equal(lottery.treated, as_seen.treated, check_exact=True)
    for table in (lottery.probabilities, lottery.test_probabilities):
        assert table.drop_duplicates().to_numpy().tolist() == [[0.25, 0, 0, 0.75]]
    assert abs(lottery.arm.mean() - 0.75) < 4 * (0.25 * 0.75 / 3_000) ** 0.5
    assert len(lottery.arm) == 3_000
    again = list(draw_studies(simulator, 500, [3, 0], horizon=3, n_test=20, lottery=chances))[1]
    pd.testing.assert_frame_equal(
        again.observational, lottery.observational.head(500), check_exact=True
    )
    with pytest.raises(InputError, match="must be 0 or more and sum to 1"):
        draw_study(simulator, 50, horizon=3, lottery={"No studies": 0.5})


def test_a_world_has_two_steps_of_the_same_subjects(simulator):
    world = simulator.sample(5, horizon=2)
    late, turned = world[world["t"] == 1], world.sort_values(["t", "subject"], ascending=[0, 0])
    rule = "the world must have every subject at steps 0 and 1, in the same order: found "
    # If the rows of one step are in another order, a subject would go on as somebody else.
    mixed = pd.concat([world[world["t"] == 0], turned[turned["t"] == 1]])
    for wrong, found in ((simulator.sample(5), [5, 0]), (late, [0, 5]), (mixed, [5, 5])):
        with pytest.raises(InputError, match=re.escape(f"{rule}{found}")):
            true_effects(simulator, wrong, 2, horizon=2)
    with pytest.raises(InputError, match="step 0 is unknown: expected 1"):
        cohort(late)


def test_the_chapter_records_a_ceiling_that_is_possible(simulator):
    # Two subjects and two futures: the variance of the effects is estimated as below zero.
    path = ROOT / "notebooks" / "effect_data.ipynb"
    cells = {cell["id"]: cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]}
    known = {"n_samples": 200, "horizon": 7, "n_truth": 2, "repeats": 2, "simulator": simulator}
    recorded = {}
    page = {"draw_study": draw_study, "pd": pd, **known, "typeset": lambda *_, **__: None}
    page["number"] = lambda name, value, unit="", error=0.0: recorded.setdefault(name, value)
    exec("".join(cells["code-16"]["source"]), page)
    assert page["truth"].ceiling == recorded["ceiling_of_r2"] == 0
    assert page["variances"]["true effects"] ** 0.5 == 0
