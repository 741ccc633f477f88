"""Items: single questions by index, for training or evaluation on a stream of them.

An item is one prompt about one sample of one world. A seed, an index and a difficulty determine it,
whichever other items are drawn, so a stream of items has no end and needs no storage.
"""

from dataclasses import fields
from typing import Any

from lib.ccr.answers import answer_text, parse, prompt_text
from lib.ccr.questions import ANSWERS
from lib.ccr.tasks import Prompt, Setting, generate
from lib.ccr.theme import Draw
from lib.errors import check, check_count, check_known, check_names

#: Levels from easy to hard: the number of components, the number of nodes of each, and the share of
#: facts that are not told, at least one if above 0: worlds of up to three nodes withhold one.
LEVELS = {"components": [1, 2, 3, 4], "nodes": [2, 3, 4], "withheld": [0.0, 0.15, 0.3, 0.45]}


def item(
    index: int, theme: str = "candy_party", components: int = 3, nodes: int = 3, **setting: Any
) -> Prompt:
    """Return one prompt of a world, always the same for an index, a seed and a difficulty.

    A world on a chain of so many `components`, with so many `nodes` each, is drawn and told. Then
    the answer, the kind of question and the question are drawn in turn, each evenly among those
    that occur, so a model that always gives the same answer is right about as often as by chance.
    `setting` takes the `seed`, the share of the facts that is `withheld`, and other parameters of
    :class:`~lib.ccr.tasks.Setting`; `unknown` may leave a small world no prompt, which is refused.

    Returns
    -------
    dict
        An item of :meth:`~lib.ccr.tasks.Tasks.prompts`, with its whole text as `prompt`, and with
        its `answer` in words, one of :data:`~lib.ccr.questions.ANSWERS`.

    Examples
    --------
    >>> one = item(17, components=2)
    >>> one["text"][-32:], one["answer"]
    ('Is Noor happy? Answer Yes or No.', 'Yes')
    """
    others = sorted({field.name for field in fields(Setting)} - {"n_per_bcc", "n_samples"})
    check_names("parameter", setting, ["components", "nodes", "seed", *others])
    check_count("index", index, least=0)
    check_count("components", components, least=1)
    one_sample = {"n_samples": 1, "first_task": index, "n_jobs": 1}
    tasks = generate(theme, [nodes] * components, **one_sample, **setting)
    story, prompts = tasks.tasks[0].story, list(tasks.prompts())
    check(len(prompts) > 0, f"the setting must leave at least one prompt of item {index}", setting)
    draw = Draw(story.seed, f"{story.name}, item")
    for key in ("answer", "kind"):
        chosen = draw.one(sorted({prompt.get(key) for prompt in prompts}))
        prompts = [prompt for prompt in prompts if prompt.get(key) == chosen]
    one: Prompt = draw.one(prompts)
    return one | {"prompt": prompt_text(one), "answer": answer_text(one)}


def score(said: object, answer: str) -> float:
    """Return 1 if a reply gives the true answer, and 0 if it gives another, several or none."""
    check_known("answer", answer, ANSWERS)
    return float(parse(said if isinstance(said, str) else "") == ANSWERS.index(answer))
