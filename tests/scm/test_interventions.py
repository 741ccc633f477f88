"""What can be done in a world, and what cannot."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from sklearn.linear_model import LinearRegression

from lib.errors import InputError
from lib.scm import Simulator, Specification, StochasticPolicy

N, STEPS = 40, 3


def values(world: pd.DataFrame, variable: str, t: int) -> np.ndarray:
    return world.loc[world["t"] == t, variable].to_numpy()


@pytest.fixture(scope="module")
def seen(town):
    return town.sample(n=N, horizon=STEPS, seed=5)


def same_off(world, seen, variable, *steps):
    """Whether a variable is as it was at all but these steps."""
    rest = ~seen["t"].isin(steps)
    return world.loc[rest, variable].equals(seen.loc[rest, variable])


ONE_EACH = np.arange(N) * 1.5


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (40, np.full(N, 40.0)),
        (np.float32(2.5), np.full(N, 2.5)),
        (True, np.ones(N)),
        (ONE_EACH, ONE_EACH),
        (ONE_EACH.tolist(), ONE_EACH),
        (pd.Series(ONE_EACH), ONE_EACH),
        # Aligned by subject, not by position; others may be there too.
        (pd.Series(np.arange(90.0), index=np.arange(90)[::-1]), 89.0 - np.arange(N)),
        (lambda now, before: now["age"] * 2, None),
        (lambda now, before: 7, np.full(N, 7.0)),
    ],
)
def test_a_number_is_set_once_and_free_before_and_after(town, seen, action, expected):
    done = town.sample(n=N, horizon=STEPS, seed=5, do={"pay": {1: action}})
    expected = values(seen, "age", 1) * 2 if expected is None else expected
    assert values(done, "pay", 1).tolist() == expected.tolist()
    assert same_off(done, seen, "pay", 1)  # nothing follows from pay in this world
    assert done[["age", "sex", "job"]].equals(seen[["age", "sex", "job"]])


@pytest.mark.parametrize(
    "action",
    [
        "cook",
        ["cook"] * N,
        pd.Categorical(["cook"] * N, categories=["cook", "clerk", "other"]),
        pd.Series(["cook"] * N),
        lambda now, before: "cook",
        lambda now, before: np.where(now["age"] > 0, "cook", "nurse"),
        StochasticPolicy({"cook": 1.0}),
        StochasticPolicy(lambda now, before: {"cook": np.ones(len(now)), "nurse": 0}),
    ],
)
def test_a_level_is_set_by_every_kind_of_action(town, seen, action):
    done = town.sample(n=N, horizon=STEPS, seed=5, do={"job": {1: action}})
    assert (values(done, "job", 1) == "cook").all()
    assert values(done, "job", 0).tolist() == values(seen, "job", 0).tolist()
    assert done["job"].dtype == seen["job"].dtype
    assert same_off(done, seen, "pay", 1, 2)
    assert not same_off(done, seen, "pay", 0)


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        (lambda action: action, [0, 1, 2]),
        (lambda action: {range(3): action}, [0, 1, 2]),
        (lambda action: {range(1, 3): action}, [1, 2]),
        (lambda action: {0: action, 2: action}, [0, 2]),
        (lambda action: {np.int64(2): action}, [2]),
    ],
)
def test_held_always_at_a_range_or_at_single_steps(town, seen, when, steps):
    done = town.sample(n=N, horizon=STEPS, seed=5, do={"pay": when(-1)})
    assert (done.loc[done["t"].isin(steps), "pay"] == -1).all()
    assert same_off(done, seen, "pay", *steps)


def test_each_subject_keeps_its_own_value_in_every_block(town):
    of_pay = pd.Series(np.arange(100.0))
    everything = {
        "pay": {1: of_pay, 2: of_pay[:N].to_numpy()},
        "job": {1: lambda now, before, noise: np.where(noise < 0.5, "cook", now["job"])},
        "sex": {2: StochasticPolicy({"F": 0.3, "M": 0.7})},
    }
    whole = town.sample(n=N, horizon=STEPS, do=everything)
    assert values(whole, "pay", 1).tolist() == list(range(N))
    for block in (1, 7, 39):
        parts = pd.concat(town.blocks(n=N, horizon=STEPS, do=everything, block=block))
        assert parts.reset_index(drop=True).equals(whole)
    part = dict(everything, pay={1: of_pay, 2: of_pay[10:25].to_numpy()})
    some = town.sample(n=15, first=10, horizon=STEPS, do=part)
    assert some.equals(whole[whole["subject"].between(10, 24)].reset_index(drop=True))


def test_a_rule_sees_today_the_day_before_and_the_natural_value(town, seen):
    frames = []

    def rule(now, before):
        frames.append((now, before))
        return now["job"]

    done = town.sample(n=N, horizon=STEPS, seed=5, do={"job": {1: rule}})
    assert done.equals(seen)  # what would have been, is
    (now, before), *others = frames
    assert not others
    assert set(now) == {"age", "sex", "job"}  # not pay, which follows from job
    assert set(before) == {"age", "sex", "job", "pay"}
    assert now.index.tolist() == list(range(N)) and now.index.name == "subject"
    assert now["job"].tolist() == values(seen, "job", 1).tolist()
    assert before["pay"].tolist() == values(seen, "pay", 0).tolist()


def test_a_rule_reads_whatever_does_not_follow_from_its_variable(town, seen):
    # The order of the file has age first; nothing in it makes sex follow from job or pay.
    rule = {"sex": {1: lambda now, before: np.where(now["age"] > 40, "F", "M")}}
    done = town.sample(n=N, horizon=STEPS, seed=5, do=rule)
    assert (
        values(done, "sex", 1).tolist() == np.where(values(seen, "age", 1) > 40, "F", "M").tolist()
    )
    apart = {"age": {1: lambda now, before: np.where(now["sex"] == "F", 20, 60)}}
    done = town.sample(n=N, horizon=STEPS, seed=5, do=apart)
    assert (values(done, "age", 1) == np.where(values(seen, "sex", 1) == "F", 20, 60)).all()


@pytest.mark.parametrize("name", ["pay", "wealth"])
def test_a_rule_cannot_read_what_follows_from_its_variable(town, name):
    known = re.escape("the rule for 'job' at step 1, which may read age, sex, job, age (previous)")
    with pytest.raises(InputError, match=f"{known}.*: '{name}' is not there"):
        town.sample(n=3, horizon=2, do={"job": {1: lambda now, before: now[name]}})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda now: "clerk", "takes 1 positional argument but 2 were given"),
        (lambda now, before: "F" if now["age"] > 40 else "M", "truth value of a Series"),
    ],
)
def test_a_rule_that_fails_says_which_and_why(town, rule, message):
    with pytest.raises(InputError, match=f"the rule for 'job' at step 1, .*: .*{message}"):
        town.sample(n=3, horizon=2, do={"job": {1: rule}})


def test_the_noise_of_a_rule_is_uniform_and_its_own(town):
    n, noises = 50_000, []

    def rule(now, before, noise):
        noises.append(noise)
        return now["job"]

    town.sample(n=n, horizon=2, seed=5, do={"job": {1: rule}})
    town.sample(
        n=n, horizon=2, seed=5, do={"pay": {1: lambda now, before, u: noises.append(u) or u}}
    )
    job, pay = noises
    # Mean 1/2 and variance 1/12; |correlation| of n pairs has deviation 1/√n; two-sided at 1e-6.
    z = -ndtri(1e-6 / 2)
    assert abs(job.mean() - 0.5) < z * np.sqrt(1 / 12 / n)
    assert abs(np.corrcoef(job, pay)[0, 1]) < z / np.sqrt(n)


def test_what_a_rule_was_given_where_it_was_written_is_no_noise(town):
    for pay in (10.0, 20.0):
        done = town.sample(n=3, horizon=2, do={"pay": {1: lambda now, before, pay=pay: pay}})
        assert (done.loc[done["t"] == 1, "pay"] == pay).all()


def test_noise_is_for_a_third_argument_alone(town):
    ages = town.sample(n=3)["age"].tolist()
    for rule in (
        lambda now, before, **options: now["age"] if not options else None,
        lambda now, before, *rest: now["age"] if not rest else None,
        lambda *both: both[0]["age"] if len(both) == 2 else None,
    ):
        assert town.sample(n=3, do={"pay": rule})["pay"].tolist() == ages

    def with_both(now, before, noise, /, **options):
        return noise

    def with_one(now, before, *, noise):
        return noise

    assert town.sample(n=3, do={"pay": with_both})["pay"].between(0, 1).all()
    with pytest.raises(InputError, match="required keyword-only argument: 'noise'"):
        town.sample(n=3, do={"pay": with_one})


def test_a_policy_draws_its_distribution_and_leaves_other_noise_alone(town):
    n = 50_000
    seen = town.sample(n=n, horizon=2, seed=5)
    policy = StochasticPolicy({"clerk": 0.2, "cook": 0.5, "nurse": 0.3})
    done = town.sample(n=n, horizon=2, seed=5, do={"job": {1: policy}})
    drawn = pd.Series(values(done, "job", 1))
    z = -ndtri(1e-6 / 2 / 6)  # six comparisons, a false alarm in a million for all of them
    for level, p in policy.probabilities.items():
        assert abs((drawn == level).mean() - p) < z * np.sqrt(p * (1 - p) / n)
        # Whatever the mechanism would have drawn, the policy draws independently of it.
        natural = values(seen, "job", 1) == level
        error = np.sqrt(p * (1 - p) / natural.sum())
        assert abs((drawn[natural] == level).mean() - p) < z * error
    assert done[["age", "sex"]].equals(seen[["age", "sex"]])
    agrees = values(seen, "job", 1) == drawn.to_numpy()
    assert (values(seen, "pay", 1)[agrees] == values(done, "pay", 1)[agrees]).all()


def test_a_policy_may_follow_from_the_past(town):
    n = 50_000
    by_age = StochasticPolicy(
        lambda now, before: {
            "cook": np.where(now["age"] > 40, 0.9, 0.1),
            "nurse": np.where(now["age"] > 40, 0.1, 0.9),
        }
    )
    done = town.sample(n=n, horizon=1, do={"job": by_age})
    older = (done["age"] > 40).to_numpy()
    for group, p in ((older, 0.9), (~older, 0.1)):
        error = np.sqrt(p * (1 - p) / group.sum())
        assert abs((done["job"][group] == "cook").mean() - p) < -ndtri(1e-6 / 4) * error


def test_a_policy_may_know_more_subjects_than_it_is_asked_for(town):
    chance = pd.Series([1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    known = StochasticPolicy(lambda now, before: {"cook": chance, "nurse": 1 - chance})
    for n_jobs, first, expected in ((1, 0, "cncn"), (2, 0, "cncn"), (1, 2, "cnnn")):
        done = town.sample(4, do={"job": known}, n_jobs=n_jobs, first=first)
        assert "".join(level[0] for level in done["job"]) == expected


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_pandas_has_numbered_are_no_subjects(town, n_jobs):
    start = town.sample(n=4, seed=5).drop(columns="t").set_index("subject", drop=False)
    start = start.loc[[3, 1, 2, 0]].assign(age=[30.0, 10.0, 20.0, 0.0])

    def rule(now, before):
        return pd.Series(before["age"].to_numpy() * 100)

    old = StochasticPolicy(
        lambda now, before: {
            "cook": pd.Series(np.where(before["age"] == 30, 1.0, 0.0)),
            "nurse": pd.Series(np.where(before["age"] == 30, 0.0, 1.0)),
        }
    )
    do = {"pay": {1: rule}, "job": {1: old}}
    done = town.sample(horizon=2, seed=5, start=start, do=do, n_jobs=n_jobs)
    assert values(done, "pay", 1).tolist() == [3_000, 1_000, 2_000, 0]
    assert [*values(done, "job", 1)] == ["cook", "nurse", "nurse", "nurse"]


def test_another_worlds_values(town, seen):
    cooks = town.sample(n=N, horizon=STEPS, seed=5, do={"job": "cook"})
    mixed = town.sample(n=N, horizon=STEPS, seed=5, do={"pay": {range(1, 3): cooks}})
    assert mixed[["age", "sex", "job"]].equals(seen[["age", "sex", "job"]])
    for t, world in ((0, seen), (1, cooks), (2, cooks)):
        assert values(mixed, "pay", t).tolist() == values(world, "pay", t).tolist()
    shuffled = cooks.sample(frac=1, random_state=0)  # rows are found by subject and step
    assert town.sample(n=N, horizon=STEPS, seed=5, do={"pay": {range(1, 3): shuffled}}).equals(
        mixed
    )


def test_direct_and_indirect_effects_are_those_of_the_closed_form():
    rng = np.random.default_rng(2)
    a = rng.normal(size=500)
    m = 2 * a + rng.normal(size=500)
    y = 3 * a + 4 * m + rng.normal(size=500)
    table = pd.DataFrame({"a": a, "m": m, "y": y})
    linear = "LinearGaussianSampler"
    simulator = Simulator(
        Specification(
            {
                "a": {"sampler": "gaussian"},
                "m": {"parents": ["a"], "sampler": linear},
                "y": {"parents": ["a", "m"], "sampler": linear},
            }
        )
    ).fit(table)
    (of_a_on_m,) = LinearRegression().fit(table[["a"]], m).coef_
    of_a, of_m = LinearRegression().fit(table[["a", "m"]], y).coef_

    def world(**do):
        return simulator.sample(n=200, seed=1, do=do)

    without, treated = world(a=0), world(a=1)
    direct = world(a=1, m=without)["y"] - without["y"]
    indirect = world(a=0, m=treated)["y"] - without["y"]
    np.testing.assert_allclose(direct, of_a, atol=1e-9)
    np.testing.assert_allclose(indirect, of_m * of_a_on_m, atol=1e-9)
    np.testing.assert_allclose(treated["y"] - without["y"], of_a + of_m * of_a_on_m, atol=1e-9)


@pytest.mark.parametrize(
    ("do", "sentence"),
    [
        ({"wealth": 1}, "do: variable 'wealth' is unknown: expected one of age, sex, job, pay"),
        (["job"], "do must be a mapping from variables to actions: found ['job']"),
        (
            {"job": "king"},
            "do: 'job' at step 0: level 'king' is unknown: expected one of clerk, co",
        ),
        ({"job": {1: 3}}, "do: 'job' at step 1: level 3 is unknown"),
        ({"job": None}, "do: 'job' at step 0: level None is unknown"),
        ({"job": {1: ["cook", "king", "cook"]}}, "do: 'job' at step 1: level 'king' is unknown"),
        ({"job": {1: ["cook", np.nan, "cook"]}}, "do: 'job' at step 1: level nan is unknown"),
        ({"job": {2: "cook"}}, "do: 'job' at step 2: step must be a number from 0 to 1"),
        ({"job": {-1: "cook"}}, "do: 'job' at step -1: step must be a number from 0 to 1"),
        ({"job": {}}, "do: 'job' needs a step: found {}"),
        ({"job": {1: "cook", range(3, 1): "cook"}}, "do: 'job' needs a step: found {1: 'cook', ra"),
        ({"job": {True: "cook"}}, "do: 'job' at step True: step must be a number from 0 to 1"),
        ({"job": {"1": "cook"}}, "do: 'job' at step 1: step must be a number from 0 to 1"),
        ({"job": {range(1, 3): "cook"}}, "do: 'job' at step 2: step must be a number from 0 to 1"),
        ({"job": {"cook": 0.5}}, "do: 'job' at step cook: step must be a number from 0 to 1"),
        (
            {"job": {range(2): "cook", 1: "clerk"}},
            "do: 'job' may be set only once at each step: found 1",
        ),
        (
            {"job": {1: "cook", range(2): "cook"}},
            "do: 'job' may be set only once at each step: found 1",
        ),
        ({"pay": "much"}, "do: 'pay' at step 0: finite numbers are needed: found 'much'"),
        ({"pay": "40"}, "do: 'pay' at step 0: finite numbers are needed: found '40'"),
        ({"pay": None}, "do: 'pay' at step 0: finite numbers are needed: found None"),
        ({"pay": np.inf}, "do: 'pay' at step 0: finite numbers are needed: found inf"),
        ({"pay": [1.0, 2.0, np.nan]}, "'pay' at step 0: finite numbers are needed: found nan"),
        ({"pay": [1, 2, "3"]}, "'pay' at step 0: finite numbers are needed: found '3'"),
        ({"pay": [1.0, 2.0]}, "'pay' at step 0: one value per subject is needed, 3: found 2"),
        (
            {"pay": np.ones((3, 2))},
            "one value per subject is needed, in one dimension: found (3, 2)",
        ),
        ({"pay": pd.Series([1.0, 2.0])}, "'pay' at step 0: no value is given for subject 2"),
        (
            {"pay": pd.Series([1.0, 2.0], index=[0, "b"])},
            "'pay' at step 0: no value is given for subject 1",
        ),
        ({"pay": StochasticPolicy({"a": 1})}, "'pay' at step 0: a StochasticPolicy is for levels"),
        (
            {"job": {0: {"cook": 1.0}}},
            "'job' at step 0: the value must not be a mapping; use Sto",
        ),
        ({"job": StochasticPolicy({"king": 1})}, "'job' at step 0: level 'king' is unknown"),
        (
            {"job": StochasticPolicy(lambda now, before: {"king": 1})},
            "the policy: level 'king' is unknown",
        ),
        (
            {"job": StochasticPolicy(lambda now, before: {"cook": 0.7})},
            "the probabilities of a policy must be 0 or more and sum to 1",
        ),
        (
            {"job": lambda now, before: "king"},
            "the rule for 'job' at step 0: level 'king' is unknown",
        ),
        (
            {"pay": {1: pd.Series(np.arange(6.0))}},
            "'pay' at step 1: a column must have a row per subject; a world is given as a frame: "
            "found '6 rows for 3 subjects'",
        ),
        (
            {"pay": lambda now, before: [1.0]},
            "the rule for 'pay' at step 0: one value per subject is needed, 3: found 1",
        ),
        (
            {"pay": lambda now, before: now["age"] * np.nan},
            "the rule for 'pay' at step 0: finite numbers are needed: found ",
        ),
    ],
)
def test_a_broken_rule_is_one_sentence(town, do, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)) as raised:
        town.sample(n=3, horizon=2, do=do)
    assert "\n" not in str(raised.value)


def test_another_world_must_have_what_is_asked_of_it(town, seen):
    for world, sentence in [
        (seen[seen["t"] < 2], "'pay' at step 2: no value is given for subject 0"),
        (seen[seen["subject"] != 7], "'pay' at step 0: no value is given for subject 7"),
        (
            seen.drop(columns="pay"),
            "'pay' at step 0: column 'pay' is unknown: expected one of subject, t, age, sex, job",
        ),
        (
            seen.drop(columns="t"),
            "'pay' at step 0: column 't' is unknown: expected one of subject, age, sex, job, pay",
        ),
    ]:
        with pytest.raises(InputError, match=re.escape(sentence)):
            town.sample(n=N, horizon=STEPS, do={"pay": world})


@pytest.mark.parametrize("given", [{"a": 0.5}, {"a": 1.5, "b": -0.5}, {}, {"a": np.nan, "b": 1.0}])
def test_the_probabilities_of_a_policy_sum_to_one(given):
    with pytest.raises(InputError, match="must be 0 or more and sum to 1: found"):
        StochasticPolicy(given)


@pytest.mark.parametrize("given", [{"a": np.array([0.2, 0.8])}, {"a": "0.5", "b": "0.5"}, None, 1])
def test_what_is_no_distribution_is_one_sentence(given):
    with pytest.raises(InputError, match="a policy needs a mapping of levels to numbers, or"):
        StochasticPolicy(given)


def test_a_series_is_a_distribution(town):
    given = {"clerk": 0.5, "nurse": 0.5}
    one, other = (
        town.sample(n=20, do={"job": StochasticPolicy(of)}) for of in (given, pd.Series(given))
    )
    assert one.equals(other)


def test_what_a_rule_says_of_subjects_by_name_is_theirs_in_any_order(town):
    def by_age(now, before):
        return now.sort_values("age")["age"]

    def by_place(now, before):
        return pd.Series(now["age"].to_numpy())

    options = {"n": 50, "first": 20, "seed": 5}
    for rule in (by_age, by_place):
        done = town.sample(**options, do={"pay": rule})
        assert done["pay"].equals(done["age"].rename("pay"))


@pytest.mark.parametrize("t", [1.0, np.nan, "1"])
def test_the_step_of_start_is_a_whole_number(town, t):
    start = town.sample(3).assign(t=t)
    with pytest.raises(InputError, match="start must hold one step, below the horizon of 2"):
        town.sample(horizon=2, start=start)
