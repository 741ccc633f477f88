"""Taking a prompt apart loses nothing and says what each sentence is for."""

import pytest

from lib.ccr import generate
from lib.ccr.anatomy import anatomy
from lib.ccr.theme import themes


@pytest.mark.parametrize("theme", themes())
@pytest.mark.parametrize("asides", [True, False])
def test_the_parts_are_the_whole_prompt(theme, asides):
    tasks = generate(theme, [3, 4], n_tasks=3, n_samples=6, n_wordings=3, seed=4, asides=asides)
    for task in tasks.tasks:
        for sample in range(task.n_samples):
            parts = anatomy(task, sample)
            told = parts.groupby("part", sort=False)["text"].agg(" ".join)
            assert told["context"] == task.story.context
            assert told["sample"] == task.samples[sample]


def test_roles_follow_world_and_noise():
    (task,) = generate("candy_party", [3, 3], n_samples=4, seed=2).tasks
    roles = anatomy(task, 3)["role"].tolist()
    assert roles[:7] == ["situation", *(f"rule of node {i}" for i in range(5)), "closed world"]
    noises = [role for role in roles if role.startswith("noise")]
    expected = ["true" if noise else "false" for noise in task.noise[:, 3]]
    assert noises == [f"noise of node {i}: {value}" for i, value in enumerate(expected)]
    assert roles.count("does not matter") == 5
