"""The benchmark as an endless taskset of verifiers.

verifiers (https://github.com/PrimeIntellect-ai/verifiers) lets a model act in an environment and
gives it a reward, for evaluation and for training. It finds the taskset by the name of the
installed package::

    vf-eval causal-benchmark-book -n 100 --env.taskset.components 4 --env.agent.harness.id null …
"""

import itertools
from collections.abc import Iterator

import verifiers.v1 as vf

from lib.ccr.items import LEVELS, item, score
from lib.ccr.questions import ANSWERS
from lib.ccr.reader import read


class CcrData(vf.TaskData):
    """An item: its prompt, and its true answer."""

    answer: str


class CcrTask(vf.Task[CcrData]):
    """An item, with a score for answers to it and a check of the item itself."""

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        """Return 1 for the true answer, and 0 for any other; see :func:`lib.ccr.items.score`."""
        return score(trace.last_reply, self.data.answer)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Say whether the second oracle, which sees only the prompt, finds the same answer."""
        context, _, question = self.data.prompt_text.rpartition("\n\n")
        return bool(self.data.answer == ANSWERS[read(context, question)])


class CcrConfig(vf.TasksetConfig):
    """The settings of the items."""

    theme: str = "candy_party"
    components: int = 3
    nodes: int = 3
    withheld: float = 0.0
    seed: int = 0


class CcrTaskset(vf.Taskset[CcrTask, CcrConfig]):
    """All items of a seed and a difficulty, one after another."""

    INFINITE = True

    def load(self) -> Iterator[CcrTask]:
        """Yield items one by one, as they are asked for."""
        made_of = self.config.model_dump(include={"seed", "theme", *LEVELS})
        for one in (item(index, **made_of) for index in itertools.count()):
            yield CcrTask(CcrData(prompt=one["prompt"], answer=one["answer"]), self.config.task)
