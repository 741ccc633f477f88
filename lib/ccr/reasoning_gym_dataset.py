"""The benchmark as a procedural data set of reasoning-gym, with a curriculum.

reasoning-gym (https://github.com/open-thought/reasoning-gym) makes entries when a trainer asks
for them. Importing this module registers the data set there, under the name *ccr*::

    import lib.ccr.reasoning_gym_dataset
    import reasoning_gym

    data = reasoning_gym.create_dataset("ccr", components=4, seed=0, size=1_000)
    data.score_answer("Yes", data[17])
"""

from dataclasses import dataclass

import reasoning_gym as rg

from lib.ccr.items import LEVELS, item, score


@dataclass
class CcrConfig:
    """The settings of the items, and their number; without a `seed`, reasoning-gym draws one."""

    theme: str = "candy_party"
    components: int = 3
    nodes: int = 3
    withheld: float = 0.0
    seed: int | None = None
    size: int = 500

    def validate(self) -> None:
        """Refuse settings that allow no item; reasoning-gym calls this before it makes entries."""
        item(0, seed=self.seed or 0, **{name: getattr(self, name) for name in ("theme", *LEVELS)})


class CcrDataset(rg.dataset.ProceduralDataset):
    """Items by index; an item does not depend on the size of the set."""

    def __init__(self, config: CcrConfig):
        super().__init__(config, config.seed, config.size)

    def __getitem__(self, idx: int) -> dict[str, object]:
        """Return an item in the form of reasoning-gym's entries: question, answer and metadata."""
        difficulty = {name: getattr(self.config, name) for name in LEVELS}
        one = item(idx, self.config.theme, seed=self.seed, **difficulty)
        place = {"source_dataset": "ccr", "source_index": idx, "difficulty": difficulty}
        return {"question": one["prompt"], "answer": one["answer"], "metadata": place}

    def score_answer(self, answer: str | None, entry: dict[str, object]) -> float:
        """Return 1 for the true answer, and 0 for any other; see :func:`lib.ccr.items.score`."""
        return score(answer, str(entry["answer"]))


class CcrCurriculum(rg.coaching.BaseCurriculum):
    """The levels of :data:`lib.ccr.items.LEVELS`."""

    def __init__(self) -> None:
        super().__init__("CcrCurriculum", CcrConfig)
        for name, levels in LEVELS.items():
            named = {"name": name, "field_name": name}
            self._define_attributes(rg.coaching.ScalarAttributeDefinition(**named, levels=levels))


rg.register_dataset("ccr", CcrDataset, CcrConfig, CcrCurriculum)
