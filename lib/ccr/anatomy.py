"""The anatomy of a prompt: every sentence, and what it is there for."""

import re

import pandas as pd

from lib.ccr.tasks import Task


def anatomy(task: Task, sample: int = 0) -> pd.DataFrame:
    """Take the context of a sample apart.

    Parameters
    ----------
    task : Task
    sample : int
        Which of the task's samples.

    Returns
    -------
    pandas.DataFrame
        One row a sentence, in order: `part` ('context' or 'sample'), `role` and `text`.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> parts = anatomy(generate("candy_party", n_per_bcc=[2], n_samples=1).tasks[0])
    >>> parts["role"].tolist()[:4]
    ['situation', 'rule of node 0', 'rule of node 1', 'closed world']
    """
    story = task.story
    opening = story.theme.openings[story.wording % len(story.theme.openings)]
    rules = story.context.removeprefix(opening).removesuffix(story.theme.closing).strip()
    rows = [("context", "situation", opening)]
    # A rule is one sentence, and has no full stop inside.
    for node, rule in enumerate(re.split(r"(?<=\.) ", rules)):
        rows.append(("context", f"rule of node {node}", rule))
    rows.append(("context", "closed world", story.theme.closing))
    told = task.samples[sample]
    for number, (node, noise) in enumerate(zip(story.nodes, task.noise[:, sample], strict=True)):
        facts = node.when_true if noise else node.when_false
        choices = [(facts, f"noise of node {number}: {'true' if noise else 'false'}")]
        if story.asides and node.asides:
            choices.append((node.asides, "does not matter"))
        for sentences, role in choices:
            # The longest that fits: one sentence may begin like another.
            text = max((s for s in sentences if f"{told} ".startswith(f"{s} ")), key=len)
            told = told.removeprefix(text).removeprefix(" ")
            rows.append(("sample", role, text))
    return pd.DataFrame(rows, columns=["part", "role", "text"])
