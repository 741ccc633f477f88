"""A small world that the tests of interventions and of the simulator share."""

import numpy as np
import pandas as pd
import pytest

from lib.scm import Simulator, Specification

JOBS = ["clerk", "cook", "nurse"]


@pytest.fixture(scope="session")
def town_table():
    rng = np.random.default_rng(11)
    n = 400
    age = rng.integers(18, 70, n).astype(float)
    sex = rng.choice(["F", "M"], n)
    job = rng.choice(JOBS, n)
    pay = 20 + 0.5 * age + 10 * (job == "nurse") + rng.normal(0, 4, n)
    return pd.DataFrame({"age": age, "sex": sex, "job": job, "pay": pay, "unused": "x"})


@pytest.fixture(scope="session")
def town_specification():
    return Specification(
        {
            "age": {
                "sampler": {"type": "gaussian", "round_result": True, "bounds": [18, 90]},
                "seq_sampler": "IncrementSampler",
            },
            "sex": {"sampler": "multinomial"},
            "job": {
                "parents": ["age", "sex"],
                "sampler": "LogisticSampler",
                "seq_parents_curr": ["age", "sex"],
                "seq_parents_prev": ["job"],
                "seq_sampler": {"type": "LogisticTransitionSampler", "c_prev": 1, "p_stay": 0.5},
            },
            "pay": {
                "parents": ["age", "job"],
                "sampler": "LinearGaussianSampler",
                "seq_parents_curr": ["age", "job"],
                "seq_sampler": "LinearGaussianSampler",
            },
        }
    )


@pytest.fixture(scope="session", params=["gumbel", "inverse_cdf"])
def town(request, town_specification, town_table):
    return Simulator(town_specification, request.param).fit(town_table)
