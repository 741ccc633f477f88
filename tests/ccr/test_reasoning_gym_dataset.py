"""The data set within the real reasoning-gym: made by name, scored, made harder, mixed."""

import pytest

from lib.ccr import read
from lib.ccr.items import item
from lib.errors import InputError


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Import it where it is used: all workers collect all tests, and this takes a second."""
    global reasoning_gym, reasoning_gym_dataset
    global DatasetSpec, ReseedingDataset, DATASETS, create_curriculum
    reasoning_gym = pytest.importorskip(
        "reasoning_gym", reason="reasoning-gym needs a C compiler: pip install -e '.[training]'"
    )
    from reasoning_gym.composite import DatasetSpec
    from reasoning_gym.dataset import ReseedingDataset
    from reasoning_gym.factory import DATASETS, create_curriculum

    from lib.ccr import reasoning_gym_dataset


def data(**config):
    return reasoning_gym.create_dataset("ccr", **config)


def test_the_data_set_is_registered_with_its_configuration():
    registered = reasoning_gym_dataset.CcrDataset, reasoning_gym_dataset.CcrConfig
    assert DATASETS["ccr"] == registered


def test_entries_are_the_items_by_their_index():
    harder = {"components": 2, "nodes": 4, "withheld": 0.2}
    entries = list(data(seed=3, size=6, theme="flower_garden", **harder))
    assert len(entries) == 6
    for index, entry in enumerate(entries):
        one = item(index, "flower_garden", seed=3, **harder)
        assert (entry["question"], entry["answer"]) == (one["prompt"], one["answer"])
        place = {"source_dataset": "ccr", "source_index": index, "difficulty": harder}
        assert entry["metadata"] == place


def test_an_entry_does_not_depend_on_the_size_or_on_those_before():
    assert (
        data(seed=3, size=10)[7]
        == data(seed=3, size=10_000_000)[7]
        == list(data(seed=3, size=8))[7]
    )
    assert data(seed=3)[0] != data(seed=4)[0]
    assert data(seed=3, size=10_000_000)[9_999_999]["answer"] in ("Yes", "No")


def test_the_score_is_one_for_the_true_answer_alone():
    some = data(seed=0, size=10)
    assert len({entry["answer"] for entry in some}) == 2
    for entry in some:
        other = "No" if entry["answer"] == "Yes" else "Yes"
        context, _, question = entry["question"].rpartition("\n\n")
        assert some.score_answer("Yes" if read(context, question) else "No.", entry) == 1
        assert some.score_answer(f"Let me see.\n\nAnswer: {entry['answer']}", entry) == 1
        for wrong in (other, "Yes No", "", None):
            assert some.score_answer(wrong, entry) == 0


def test_without_a_seed_one_is_drawn_and_kept():
    some = data()
    assert some[3] == some[3]
    assert some[3] == data(seed=some.seed)[3]


def test_the_curriculum_makes_worlds_larger():
    course = create_curriculum("ccr")
    sizes = []
    for _ in range(3):
        config = course.generate_configuration({"seed": 1, "size": 5})
        sizes.append(len(reasoning_gym.create_dataset("ccr", **vars(config))[0]["question"]))
        assert course.increment_global_level()
    assert sizes == sorted(sizes) and len(set(sizes)) == 3
    course.set_global_level(99)
    hardest = course.generate_configuration({"seed": 1})
    assert (hardest.components, hardest.nodes, hardest.withheld) == (4, 4, 0.45)


def test_it_goes_on_without_an_end_by_other_seeds():
    endless = iter(ReseedingDataset(data(seed=1, size=2, components=1), chunk_size=2))
    drawn = [next(endless)["question"] for _ in range(6)]
    assert len(set(drawn)) == 6


def test_it_can_be_mixed_with_others():
    parts = [DatasetSpec("ccr", 1, {"components": 2}), DatasetSpec("leg_counting", 1, {})]
    mixed = reasoning_gym.create_dataset("composite", datasets=parts, seed=0, size=20)
    of = [entry for entry in mixed if entry["metadata"]["source_dataset"] == "ccr"]
    assert 0 < len(of) < 20
    assert mixed.score_answer(of[0]["answer"], of[0]) == 1


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"theme": "candy"}, "theme 'candy' is unknown"),
        ({"components": 0}, "components must be a whole number of at least 1: found 0"),
        ({"nodes": 1}, "at least 2"),
        ({"seed": -1}, "seed must be a whole number of at least 0: found -1"),
    ],
)
def test_what_is_out_of_range_is_refused(config, rule):
    with pytest.raises(InputError, match=rule):
        data(**config)  # before an entry is asked for
