import itertools

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from lib.ccr import generate
from lib.ccr.answers import UNPARSEABLE
from lib.ccr.exact import COLUMNS
from lib.ccr.graphs import Chain
from lib.ccr.questions import ANSWERS, KINDS
from lib.ccr.reasoners import REASONERS, WITHHELD_REASONERS, noisy
from lib.ccr.scoring import CELLS, RUNGS, Scores, some_compositions
from lib.ccr.tasks import Tasks
from lib.errors import InputError


@pytest.fixture(scope="module")
def tasks():
    return generate("candy_party", [3, 3, 3], n_tasks=4, n_samples=150, seed=6, least_pns=0.05)


def scores_of(tasks, name, **options):
    return Scores(tasks, REASONERS[name].answers(tasks), **{"n_resamples": 200, **options})


def value(frame, rung, metric):
    (found,) = frame.query("rung == @rung and metric == @metric").to_dict("records")
    return found


def prompts_with(tasks, answers):
    """One row a prompt, with its question, its true answer and the one given."""
    frame = tasks.answers.rename(columns={"answer": "truth"})
    frame["given"] = np.concatenate([grid.ravel() for grid in answers]).astype(int)
    questions = tasks.questions.drop(columns="text")
    frame = frame.merge(questions, on=["task", "question"])
    facts = frame.query("cause == -1")[["task", "sample", "effect", "truth"]]
    return frame.merge(facts, on=["task", "sample", "effect"], suffixes=("", " before"))


@pytest.mark.parametrize("name", ["coin", "stops at the first cutpoint", "echoes the intervention"])
def test_accuracy_is_what_scikit_learn_counts(tasks, name):
    answers = REASONERS[name].answers(tasks)
    prompts = prompts_with(tasks, answers)
    changed = prompts["truth"] != prompts["truth before"]
    rows = {
        "factual": prompts["cause"] == -1,
        "cause made true": prompts["value"] == 1,
        "cause made false": prompts["value"] == 0,
        "changed": (prompts["cause"] >= 0) & changed,
        "unchanged": (prompts["cause"] >= 0) & ~changed,
    }
    assert tuple(rows) == RUNGS
    found = Scores(tasks, answers, n_resamples=10).accuracy
    for rung, chosen in rows.items():
        truth, given = prompts["truth"][chosen], prompts["given"][chosen] == 1
        assert value(found, rung, "accuracy")["prompts"] == chosen.sum()
        assert value(found, rung, "accuracy")["value"] == pytest.approx(
            accuracy_score(truth, given)
        )
        for metric, function in (("precision", precision_score), ("recall", recall_score)):
            expected = function(truth, given, zero_division=np.nan)
            assert value(found, rung, metric)["value"] == pytest.approx(expected, nan_ok=True)
        assert value(found, rung, "F1")["value"] == pytest.approx(f1_score(truth, given))


def test_an_unparseable_answer_counts_as_the_wrong_one_and_is_told(tasks):
    truth = [task.labels.astype(int) for task in tasks.tasks]
    lost = np.arange(truth[0].size).reshape(truth[0].shape) % 5 == 0
    unparseable, wrong = (
        Scores(tasks, [np.where(lost, spoilt(grid), grid) for grid in truth], n_resamples=20)
        for spoilt in (lambda grid: UNPARSEABLE, lambda grid: 1 - grid)
    )
    assert repr(wrong).startswith("Scores(tasks=Tasks(name='candy_party'), delta=0.1, ")
    rate = "metric == 'unparseable'"
    same = "metric != 'unparseable'"
    pd.testing.assert_frame_equal(
        unparseable.accuracy.query(same), wrong.accuracy.query(same), check_exact=True
    )
    pd.testing.assert_frame_equal(unparseable.compositions, wrong.compositions, check_exact=True)
    assert wrong.accuracy.query(rate)["value"].eq(0).all()
    told = unparseable.accuracy.query(rate).query("rung in ['factual', 'changed', 'unchanged']")
    assert (told["value"] * told["prompts"]).sum() == pytest.approx(4 * lost.sum())


def by_definition(prompts, cause, effect):
    """The quantities of a pair from the answers of one task, sample by sample."""
    told = {
        (row.sample, row.cause, row.value, row.effect): row.given == 1
        for row in prompts.itertuples()
    }
    factual, set_on, set_off = (-1, -1), (cause, 1), (cause, 0)
    asked = [(*factual, cause), (*factual, effect), (*set_on, effect), (*set_off, effect)]
    cases = [[told[s, *key] for key in asked] for s in sorted(set(prompts["sample"]))]

    def share(event, among=lambda *case: True):
        chosen = [case for case in cases if among(*case)]
        return np.mean([event(*case) for case in chosen]) if chosen else np.nan

    on, off = share(lambda x, y, y1, y0: y1), share(lambda x, y, y1, y0: y0)
    return {
        "P(y | x)": share(lambda x, y, y1, y0: y, lambda x, y, y1, y0: x),
        "P(y | not x)": share(lambda x, y, y1, y0: y, lambda x, y, y1, y0: not x),
        "P(y | do x)": on,
        "P(y | do not x)": off,
        "ATE": on - off,
        "PNS": share(lambda x, y, y1, y0: y1 and not y0),
        "PN": share(lambda x, y, y1, y0: not y0, lambda x, y, y1, y0: x and y),
        "PS": share(lambda x, y, y1, y0: y1, lambda x, y, y1, y0: not x and not y),
    }


@pytest.mark.parametrize("luck", [False, True])
def test_quantities_are_estimated_by_their_definitions(tasks, luck):
    answers = noisy(0.2).answers(tasks)
    found = Scores(tasks, answers, n_resamples=10, luck=luck).quantities
    assert found["quantity"].unique().tolist() == COLUMNS
    found = found.set_index(["task", "cause", "effect", "quantity"])
    prompts = prompts_with(tasks, answers)
    for task in tasks.tasks:
        mine = prompts[prompts["task"] == task.number]
        for cause, effect in itertools.combinations(task.world.chain.cut_tree, 2):
            given = by_definition(mine, cause, effect)
            true = by_definition(mine.assign(given=mine["truth"].astype(int)), cause, effect)
            for name in COLUMNS:
                row = found.loc[(task.number, cause, effect, name)]
                exact = task.quantities[name].loc[(cause, effect)]
                assert row["exact"] == exact
                assert row["answers"] == pytest.approx(given[name], nan_ok=True)
                assert row["labels"] == pytest.approx(true[name], nan_ok=True)
                error = given[name] - (exact if luck else true[name])
                rae = abs(error) / exact if exact else np.nan
                assert row["RAE"] == pytest.approx(rae, nan_ok=True)
                assert pd.isna(row["valid"]) if np.isnan(rae) else row["valid"] == (rae <= 0.1)


@pytest.mark.parametrize("measure", ["ATE", "PNS"])
def test_compositions_multiply_along_their_path(tasks, measure):
    scores = Scores(tasks, noisy(0.02).answers(tasks), n_resamples=10, measure=measure)
    estimates = scores.quantities.query("quantity == @measure")
    estimates = estimates.set_index(["task", "cause", "effect"])
    assert len(scores.compositions) == 3 * len(tasks.tasks)
    for row in scores.compositions.to_dict("records"):
        mine = estimates.loc[row["task"]]
        steps = mine.loc[list(itertools.pairwise(row["path"]))]
        whole = mine.loc[(row["path"][0], row["path"][-1])]
        product, true_product = steps["answers"].prod(), steps["labels"].prod()
        compared = (steps["exact"] + steps["answers"] - steps["labels"]).prod()
        external = abs(row["exact"] - compared) / row["exact"]
        internal = abs(whole["answers"] - product) / whole["answers"]
        threshold = 1.1 * abs(whole["labels"] - true_product) / whole["labels"]
        assert row["exact"] == whole["exact"] == pytest.approx(steps["exact"].prod(), rel=1e-12)
        assert row["product"] == pytest.approx(product)
        assert row["external RAE"] == pytest.approx(external)
        assert row["internal RAE"] == pytest.approx(internal)
        assert row["threshold"] == pytest.approx(threshold)
        assert row["external"] == ("valid" if external <= 0.1 else "invalid")
        assert row["internal"] == ("consistent" if internal <= threshold else "inconsistent")


def cell_of(scores):
    """The shares of the table of four, those that are not zero."""
    table = scores.table.set_index(["external", "internal"])["share"]
    assert tuple(table.index) == CELLS
    assert table.sum() == pytest.approx(1)
    return table[table > 0].to_dict()


def test_reasoners_fall_into_the_cells_they_were_made_for(tasks):
    assert cell_of(scores_of(tasks, "perfect")) == {("valid", "consistent"): 1}
    assert cell_of(scores_of(tasks, "echoes the intervention")) == {("invalid", "consistent"): 1}
    for name in ("ignores the intervention", "always yes"):
        assert cell_of(scores_of(tasks, name)) == {("invalid", "undefined"): 1}
    # Through all cutpoints its links are right; its global quantity is that of the first link.
    first = scores_of(tasks, "stops at the first cutpoint").compositions
    first = first[first["path"].map(len) == 4]
    assert (first["external"] == "valid").all()
    assert (first["internal"] == "inconsistent").all()


def test_rounding_alone_makes_no_composition_inconsistent():
    """Here all true effects are 1, so that nothing is allowed; 0.1 × 0.7 is nearly 0.07."""
    always = {"probabilities": [1 - 1e-9], "causal_functions": "and"}
    tasks = generate("candy_party", [2, 2], n_samples=100, **always)
    keys, answers = tasks.tasks[0].keys.tolist(), np.zeros((9, 100), dtype=int)
    for cause, effect, per_cent in ((0, 1, 10), (1, 2, 70), (0, 2, 7)):
        answers[keys.index([cause, 1, effect]), :per_cent] = 1
    (row,) = Scores(tasks, [answers], n_resamples=1).compositions.to_dict("records")
    assert row["threshold"] == 0 < row["internal RAE"] < 1e-12
    assert row["internal"] == "consistent"


def test_rounding_alone_makes_no_error_larger_than_delta():
    """A true effect of 0.4, two answers of 50 too high: an error of exactly a tenth of it."""
    world = {"probabilities": [0.4], "causal_functions": "and"}
    tasks = generate("candy_party", [2, 2], n_samples=50, seed=1, **world)
    (task,) = tasks.tasks
    made_true, answers = task.keys.tolist().index([0, 1, 1]), task.labels.astype(int)
    answers[made_true, np.flatnonzero(answers[made_true] == 0)[:2]] = 1
    scores = Scores(tasks, [answers], n_resamples=1)
    off = scores.quantities.query("quantity == 'ATE' and RAE > 0.01")
    assert off["RAE"].tolist() == pytest.approx([0.1], abs=1e-12) and off["valid"].all()
    (row,) = scores.compositions.to_dict("records")
    assert row["external RAE"] == pytest.approx(0.1, abs=1e-12) and row["external"] == "valid"


def test_luck_is_what_even_the_perfect_reasoner_has():
    # Small samples of small effects: the reference finds most perfect answers invalid.
    tasks = generate("candy_party", [3, 3, 3], n_tasks=8, n_samples=40, seed=1)
    fair = scores_of(tasks, "perfect").compositions
    lucky = scores_of(tasks, "perfect", luck=True).compositions
    assert (fair["external RAE"] < 1e-12).all()
    assert (fair["external"] == "valid").all()
    assert (lucky["external"] == "invalid").mean() > 0.5


def test_to_who_sees_no_effect_the_correction_brings_luck_in():
    """As it is, its RAE is 1 by construction; corrected, it is what the true answers estimate."""
    tasks = generate("candy_party", [3, 3], n_tasks=4, n_samples=100, seed=1, least_pns=0.05)
    for luck in (True, False):
        found = scores_of(tasks, "always yes", luck=luck, n_resamples=1).quantities
        found = found.query("quantity == 'ATE'")
        expected = 1 if luck else found["labels"] / found["exact"]
        assert found["RAE"].to_numpy() == pytest.approx(np.broadcast_to(expected, len(found)))


def test_the_correction_lowers_the_variance_of_who_goes_along_with_the_true_answers():
    told = {"n_tasks": 40, "n_samples": 100, "seed": 3, "least_pns": 0.2}
    tasks = generate("candy_party", [3, 3], **told)
    mean = {}
    for luck in (True, False):
        scores = scores_of(tasks, "noisy at rate 0.05", luck=luck, n_resamples=1)
        mean[luck] = scores.quantities.query("quantity == 'ATE'")["RAE"].mean()
    assert mean[False] < 0.9 * mean[True]


def test_compositions_of_a_noisy_reasoner_fit_by_the_formula():
    """The external RAE approaches 1 - (1 - 2r)^m, the internal one 1 - (1 - 2r)^(m - 1)."""
    rate, n = 0.1, 100_000
    tasks = generate("candy_party", [3, 3, 3], n_samples=n, seed=3, least_pns=0.2)
    found = Scores(tasks, noisy(rate).answers(tasks), n_resamples=1).compositions
    m = found["path"].map(len) - 1
    expected = 1 - (1 - 2 * rate) ** np.array([m, m - 1]).T
    # Four standard errors of a share, for every factor, relative to the smallest effect.
    close = 4 * 4 * np.sqrt(0.25 / n) / 0.2
    assert found[["external RAE", "internal RAE"]].to_numpy() == pytest.approx(expected, abs=close)


def test_a_noisy_reasoner_shrinks_its_effects_by_the_formula():
    tasks = generate("candy_party", [3, 3], n_samples=20_000, seed=3, least_pns=0.2)
    rate = 0.1
    found = Scores(tasks, noisy(rate).answers(tasks), n_resamples=200).quantities
    for row in found.query("quantity == 'ATE'").to_dict("records"):
        # The interval of the RAE holds |ATE - (1 - 2r) ATE| / ATE = 2r, give or take its width.
        width = row["RAE, high"] - row["RAE, low"]
        assert row["RAE, low"] - width <= 2 * rate <= row["RAE, high"] + width
        assert width < 0.1


def test_intervals_have_the_width_that_theory_gives():
    n = 2_000
    tasks = generate("candy_party", [3, 3], n_samples=n, seed=3)
    scores = scores_of(tasks, "coin", n_resamples=2_000)
    p = scores.quantities.query("quantity == 'P(y | do x)'")
    expected = 2 * 1.96 * np.sqrt(p["answers"] * (1 - p["answers"]) / n)
    # The percentiles of 2 000 resamples vary by about 3 %; five times that.
    assert ((p["high"] - p["low"]) / expected - 1).abs().max() < 0.15
    assert (p["low"] < p["answers"]).all()
    assert (p["answers"] < p["high"]).all()
    half = Scores(tasks, scores.answers, n_resamples=2_000, seed=1, level=0.5).quantities
    narrower = half.query("quantity == 'P(y | do x)'").eval("high - low").to_numpy()
    assert (p["high"] - p["low"]).to_numpy() * 0.674 / 1.96 == pytest.approx(narrower, rel=0.15)


def test_questions_of_a_sample_are_resampled_together():
    tasks = generate("candy_party", [3, 3], n_samples=400, seed=3)
    # One sample in ten is all wrong: as dependent as answers can be.
    answers = [task.labels ^ (np.arange(400) % 10 == 0) for task in tasks.tasks]
    found = value(Scores(tasks, answers).accuracy, "factual", "accuracy")
    assert found["value"] == pytest.approx(0.9)
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * np.sqrt(0.09 / 400), rel=0.15)


def test_the_interval_of_a_single_sample_has_no_width():
    found = scores_of(generate("candy_party", n_tasks=5, n_samples=1), "coin").accuracy.dropna()
    assert found["value"].between(0.1, 0.9).any() and (found["low"] == found["high"]).all()


def test_every_sample_is_drawn():
    tasks = generate("candy_party", [3, 3], n_samples=2)
    for right in (0, 1):
        answers = [task.labels ^ (np.arange(2) != right) for task in tasks.tasks]
        found = value(Scores(tasks, answers).accuracy, "factual", "accuracy")
        assert (found["low"], found["value"], found["high"]) == (0, 0.5, 1)


def test_the_same_seed_gives_the_same_intervals_and_another_others(tasks):
    one, same, other = (scores_of(tasks, "coin", seed=seed).accuracy for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(one, same, check_exact=True)
    assert (one["value"].dropna() == other["value"].dropna()).all()
    assert (one["low"].dropna() != other["low"].dropna()).any()


def test_the_table_holds_shares_of_the_compositions_of_a_task():
    """Tasks with few and with many compositions count alike."""
    few, many = generate("candy_party", [3, 3]), generate("candy_party", [3] * 4, first_task=1)
    tasks = Tasks([*few.tasks, *many.tasks])
    scores = scores_of(tasks, "stops at the first cutpoint")
    assert scores.compositions.groupby("task").size().tolist() == [1, 7]
    cells = scores.compositions.groupby("task")[["external", "internal"]]
    shares = cells.value_counts(normalize=True)
    assert shares.groupby("task").sum().tolist() == pytest.approx([1, 1])
    mean = shares.groupby(["external", "internal"]).sum() / 2
    assert len(mean) > 1
    for row in scores.table.itertuples():
        assert row.share == pytest.approx(mean.get((row.external, row.internal), 0))
        assert row.low <= row.share <= row.high


def test_a_single_component_has_no_compositions():
    tasks = generate("candy_party", [4], n_samples=20)
    scores = scores_of(tasks, "perfect")
    assert len(scores.compositions) == 0
    assert scores.table["share"].isna().all()
    assert scores.quantities["valid"].all()


def test_tasks_without_compositions_do_not_count_in_the_table():
    short, long = generate("candy_party", [4]), generate("candy_party", [3, 3], first_task=1)
    scores = scores_of(Tasks([*short.tasks, *long.tasks]), "perfect")
    assert scores.compositions["task"].tolist() == [1]
    assert cell_of(scores) == {("valid", "consistent"): 1}


def test_tasks_that_keep_only_changed_prompts_have_accuracy_but_no_quantities():
    tasks = generate("candy_party", [3, 3], n_samples=50, only_changed=True)
    scores = scores_of(tasks, "echoes the intervention")
    assert value(scores.accuracy, "changed", "accuracy")["value"] == 1
    assert value(scores.accuracy, "unchanged", "accuracy")["prompts"] == 0
    with pytest.raises(InputError, match="quantities need both prompts of every pair"):
        _ = scores.quantities


def test_scores_are_computed_in_one_thread(tasks, monkeypatch):
    """Products of small matrices: more threads wait for each other longer than they work."""
    seen, resamples = [], Scores._resamples

    def observed(self, task):
        seen.extend(pool["num_threads"] for pool in threadpoolctl.threadpool_info())
        return resamples(self, task)

    monkeypatch.setattr(Scores, "_resamples", observed)
    scores = scores_of(tasks, "perfect")
    assert len(scores.accuracy) and len(scores.quantities)
    assert set(seen) == {1}


def test_answering_twice_alike_changes_nothing(tasks):
    once = REASONERS["coin"].answers(tasks)
    one, two = (
        Scores(tasks, answers, n_resamples=20)
        for answers in (once, [np.hstack([grid, grid]) for grid in once])
    )
    for table in ("accuracy", "quantities", "compositions", "table"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(two, table), check_exact=True)


def test_several_answers_to_a_prompt_are_averaged(tasks):
    truth = [task.labels for task in tasks.tasks]
    both = [np.hstack([grid, ~grid, grid]) for grid in truth]
    scores = Scores(tasks, both, n_resamples=20)
    accuracy = scores.accuracy.query("metric == 'accuracy'")
    assert accuracy["value"].tolist() == pytest.approx([2 / 3] * len(RUNGS))
    assert accuracy["prompts"][0] == 4 * 4 * 150
    # Errors that hit whole answers shrink an average difference like noise of the same rate.
    effects = scores.quantities.query("quantity == 'ATE'")
    assert effects["answers"].to_numpy() == pytest.approx(effects["labels"].to_numpy() / 3)


@pytest.mark.parametrize("most", [1, 7, 31, 100])
def test_compositions_are_capped_and_distinct(most):
    chain = Chain([3] * 6)
    every = set(chain.compositions())
    for seed in range(20):
        found = some_compositions(chain, most, seed, name="a task")
        assert len(found) == len(set(found)) <= min(most, 31)
        assert set(found) <= every
        assert chain.cut_tree in found
        assert found == some_compositions(chain, most, seed, name="a task")
        if most >= 31:
            assert set(found) == every


def test_long_chains_are_scored_on_some_of_their_compositions():
    tasks = generate("candy_party", [2] * 12, n_samples=30)
    scores = scores_of(tasks, "perfect", most_compositions=20, n_resamples=20)
    assert 10 < len(scores.compositions) <= 20
    assert (scores.compositions["external"] == "valid").all()


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"measure": "PN"}, "measure 'PN' is unknown: expected one of ATE, PNS"),
        ({"delta": -0.1}, "delta must be at least 0: found -0.1"),
        ({"multiplier": 0.9}, "multiplier must be at least 1: found 0.9"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1: found 0"),
        ({"most_compositions": 2.5}, "most_compositions must be a whole number"),
        ({"level": 1.0}, "level must lie between 0 and 1: found 1.0"),
    ],
)
def test_parameters_out_of_range_are_refused(tasks, options, rule):
    with pytest.raises(InputError, match=rule):
        Scores(tasks, [task.labels for task in tasks.tasks], **options)


def test_the_ends_of_ranges_are_allowed_and_who_makes_no_error_meets_them(tasks):
    least = {"delta": 0, "multiplier": 1, "most_compositions": 1}
    scores = scores_of(tasks, "perfect", n_resamples=1, **least)
    assert scores.quantities["valid"].dropna().all()
    assert scores.compositions["internal"].tolist() == ["consistent"] * len(tasks.tasks)


def test_answers_that_do_not_fit_are_refused(tasks):
    with pytest.raises(InputError, match=r"answers must be 4 grids, one per task .*: found 2"):
        Scores(tasks, [1, 0])


def refusals(scores):
    """The metrics of all prompts, by name."""
    return scores.accuracy.query("rung == 'all'").set_index("metric")["value"]


@pytest.fixture(scope="module")
def withheld():
    return generate("candy_party", n_tasks=2, n_samples=80, withheld=0.4, seed=5)


def test_refusals_are_counted_as_by_hand(withheld):
    rng = np.random.default_rng(0)
    answers = [rng.integers(-1, 3, task.labels.shape) for task in withheld.tasks]
    scores = Scores(withheld, answers, n_resamples=50)
    truth, said = (
        np.concatenate([grid[task.asked] for grid, task in zip(grids, withheld.tasks, strict=True)])
        for grids in ([task.labels for task in withheld.tasks], answers)
    )
    answered, right = (said == 0) | (said == 1), said == truth
    assert refusals(scores).to_dict() == pytest.approx(
        {
            "accuracy": right.mean(),
            "accuracy when answering": right[answered].mean(),
            "precision of refusals": (truth == 2)[said == 2].mean(),
            "recall of refusals": (said == 2)[truth == 2].mean(),
            "overconfidence": answered[truth == 2].mean(),
            "unparseable": (said == -1).mean(),
        }
    )
    for row, true in enumerate(ANSWERS):
        for column, given in enumerate((*ANSWERS, "unparseable")):
            number = column if column < 3 else -1
            assert scores.confusion.loc[true, given] == ((truth == row) & (said == number)).sum()
    table = scores.accuracy
    assert (table["low"] <= table["high"])[table["value"].notna()].all()
    assert table.query("rung == 'all'")["prompts"].unique().tolist() == [len(withheld)]
    kinds = table[table["rung"].isin(KINDS) & (table["metric"] == "accuracy")]
    assert kinds["prompts"].sum() == len(withheld)


def test_who_ignores_what_is_known_is_wrong_on_every_inferred_answer(withheld):
    answers = WITHHELD_REASONERS["ignores what is known"].answers(withheld)
    inferred = Scores(withheld, answers, n_resamples=5).accuracy.query(
        "rung == 'inferred' and metric == 'accuracy'"
    )
    assert inferred["value"].item() == 0 and inferred["prompts"].item() > 0


def test_a_refusal_twice_alike_changes_nothing(withheld):
    answers = WITHHELD_REASONERS["assumes untold facts are false"].answers(withheld)
    twice = [np.hstack([grid, grid]) for grid in answers]
    one, two = (Scores(withheld, grids, n_resamples=20) for grids in (answers, twice))
    pd.testing.assert_frame_equal(one.accuracy, two.accuracy, check_exact=True)


def test_confusion_of_two_answers_has_two_rows():
    tasks = generate("candy_party", [3], n_samples=10)
    confusion = Scores(tasks, [task.labels for task in tasks.tasks], n_resamples=1).confusion
    assert confusion.to_numpy().sum() == np.trace(confusion) == len(tasks)


def test_quantities_need_every_fact(withheld):
    scores = Scores(withheld, [task.labels for task in withheld.tasks], n_resamples=1)
    with pytest.raises(InputError, match="and all facts told: found '3 untold facts'"):
        _ = scores.quantities
