"""What several entrances take is refused by all of them, in one sentence, before work starts."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lib.ccr import generate
from lib.effects import Study, benchmark, estimate, read_study
from lib.effects.estimators import AIPW, IPW
from lib.effects.learners import Search
from lib.errors import InputError
from lib.files import read_table
from lib.income import draw_studies, draw_study, study
from lib.scm import Simulator, Specification
from lib.workers import worker_count

DATA = np.arange(40.0).reshape(20, 2), np.arange(20) % 2, np.arange(20.0)


@pytest.fixture
def simulator():
    table = pd.DataFrame({"age": [20.0, 30.0, 40.0], "studies": ["a", "b", "a"]})
    return Simulator(Specification({"age": {"sampler": "gaussian"}})).fit(table)


@pytest.fixture
def asked():
    people = pd.DataFrame({"age": DATA[2], "studies": ["no", "yes"] * 10, "income": DATA[2]})
    return Study(people, people, people, adjustment=["age"], arms=("no", "yes"))


@pytest.mark.parametrize("n_jobs", ["2", 0, 2.0, True])
def test_what_is_no_number_of_workers_is_refused(simulator, asked, n_jobs):
    draws = {
        "estimate": lambda: estimate(asked, ["s-ridge"], n_jobs=n_jobs),
        "sample": lambda: simulator.sample(10, n_jobs=n_jobs),
        "generate": lambda: generate("candy_party", n_per_bcc=[3, 3], n_samples=2, n_jobs=n_jobs),
    }
    for draw in draws.values():
        with pytest.raises(InputError, match="n_jobs must be a whole number other than 0, or None"):
            draw()


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, np.int64(3)])
def test_a_number_of_workers_is_taken(n_jobs):
    assert worker_count(n_jobs) >= 1


@pytest.mark.parametrize("wrong", [[1, 2], {"age": [1]}, 3])
def test_what_is_no_table_is_refused(asked, wrong):
    table = asked.observational
    for read in (
        lambda: read_table(wrong),
        lambda: read_study(wrong),
        lambda: read_study(table, wrong, table),
        lambda: benchmark(table, wrong, table),
        lambda: Study(wrong, table, table),
    ):
        rule = "a table must be a data frame or the path of a file: found '(list|dict|int)'"
        with pytest.raises(InputError, match=rule):
            read()


@pytest.mark.parametrize("made", [IPW(Ridge()), AIPW(Ridge(), Ridge(), Search(Ridge()))])
def test_a_regressor_is_no_propensity(made):
    with pytest.raises(
        InputError, match="the propensity must be estimated by a classifier: found Ridge"
    ):
        made.fit(*DATA)


def test_a_pipeline_that_ends_in_a_classifier_is_one():
    IPW(make_pipeline(StandardScaler(), LogisticRegression())).fit(*DATA)


def test_a_misspelt_adjustment_set_is_refused_before_anything_is_drawn(simulator, monkeypatch):
    monkeypatch.setattr(study, "_seen", lambda *drawn: pytest.fail("drawn"))
    simulator.kinds_ |= {"studies": None, "income": None}
    for draw in (draw_study, lambda *given, **more: list(draw_studies(*given, [0], **more))):
        with pytest.raises(InputError, match="adjustment 'ful' is unknown: expected one of full"):
            draw(simulator, 100, adjustment="ful")
