"""Static data sets are what their configurations say, with all their columns described."""

import pandas as pd
import pytest

from lib.book.publishing import Description, publish
from lib.ccr.answers import prompt_text
from lib.ccr.graphs import Chain
from lib.ccr.static_data_sets import CONFIGURATIONS, described, static_tasks
from lib.ccr.theme import themes
from lib.errors import InputError


def build(tasks, folder):
    return publish(tasks.to_parquet(folder), Description(**described(tasks), command="make"))


def test_sets_are_of_themes_that_there_are_and_of_all_that_ship_with_the_book():
    told = {one["theme"] for one in CONFIGURATIONS.values()}
    assert {"candy_party", "clinical_notes", "flower_garden", "flu_vaccine"} <= told <= {*themes()}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_tasks_follow_their_configuration(name):
    configuration = CONFIGURATIONS[name]
    tasks = static_tasks(name, n_samples=3, n_replicates=2).tasks
    assert [task.number for task in tasks] == list(range(len(tasks)))
    graphs = [graph for graph in configuration["graphs"] for _ in range(2)]
    assert [list(task.world.chain.n_per_bcc) for task in tasks] == graphs
    for task in tasks:
        assert task.story.theme.name == configuration["theme"]
        pns = task.quantities["PNS"].loc[task.world.chain.global_quantity]
        assert pns >= configuration["least_pns"]


def test_published_configurations_are_those_published():
    notes, flu = CONFIGURATIONS["clinical_notes_v0"], CONFIGURATIONS["flu_vaccine_v0"]
    assert (notes["graphs"], notes["bcc_types"]) == ([[3, 3, 3], [4, 4, 4]], "wheel")
    assert (notes["n_samples"], notes["n_replicates"]) == (5_000, 5)
    assert (flu["graphs"], flu["bcc_types"]) == ([[6, 4, 6], [7, 5, 7], [8, 6, 8]], "cycle")
    assert flu["causal_functions"] == "random"
    assert (flu["n_samples"], flu["n_replicates"]) == (2_000, 5)
    assert max(Chain(graph).n_nodes for graph in flu["graphs"]) == 20


def test_a_set_is_the_same_however_often_it_is_built(tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        build(static_tasks("candy_party_v0", n_samples=4, n_replicates=1), folder)
    one, two = ({path.name: path.read_bytes() for path in f.iterdir()} for f in folders)
    assert one == two
    assert len(one) == 8


def test_the_merges_that_the_card_shows_make_the_prompts(tmp_path):
    tasks = static_tasks("flower_garden_v0", n_samples=2, n_replicates=1)
    folder = build(tasks, tmp_path)
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names = {"folder": folder}
    exec(code.replace('f"{name}.parquet"', 'f"{folder}/{name}.parquet"'), names)
    told = names["prompts"]
    assert len(told) == len(tasks)
    expected = pd.DataFrame(tasks.prompts())
    texts = [prompt_text(prompt) for prompt in tasks.prompts()]
    assert set(zip(told["prompt"], told["answer"], strict=True)) == set(
        zip(texts, expected["answer"], strict=True)
    )
    assert len(set(texts)) == len(texts)


def test_an_unknown_set_is_an_error():
    with pytest.raises(InputError, match="data set 'candy' is unknown: expected one of"):
        static_tasks("candy")


def test_what_is_no_entry_of_a_configuration_is_refused():
    with pytest.raises(InputError, match=r"entry 'n_sampels' is unknown: expected .*n_samples"):
        static_tasks("candy_party_v0", n_sampels=3)


def test_a_changed_set_is_described_as_it_is():
    changed = {"n_samples": 2, "n_replicates": 1, "graphs": [[2, 5]], "least_pns": 0.01}
    about = described(static_tasks("candy_party_v0", **changed), **changed)["about"]
    assert "chains of components with [2, 5] nodes (" in about
    assert "least global PNS: 0.01)" in about
