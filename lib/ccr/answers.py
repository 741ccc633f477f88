"""Answers: what a reasoner says to the prompts of a set of tasks.

Everywhere in this book, the answers to a set of tasks are a list with one grid per task. A grid
holds a whole number for each question and sample: 1 for yes, 0 for no, 2 for "cannot be known"
where facts are withheld, and :data:`UNPARSEABLE` for a text that gives none of these answers, or
several. The value at a prompt that was not asked may be any of these.

Prompts are written and answers are read as plain lines of JSON, matched by their ids::

    {"id": "0-17-4", "prompt": "A group of friends …"}
    {"id": "0-17-4", "answer": "Yes, because …"}
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from lib.ccr.questions import ANSWERS
from lib.ccr.tasks import Prompt, Tasks
from lib.errors import InputError, check, told
from lib.files import AnyPath, atomic_write, reading

#: The answer that stands for a text with none of the answers, or with several.
UNPARSEABLE = -1

_MARKS = re.compile(r"[#*_`~\"'“”‘’]+|^[ \t]*(?:[->+][ \t]+)+", re.MULTILINE)
# "No doubt she is" and "Yes or no?" begin with such a word but do not answer with it.
_ANSWER = "(?:(?:the |my )?(?:final )?answer(?:(?: is)?:| is) ?)?"
_SAID = _ANSWER + "(?:it (?=c))?(yes|no|cannot be known)"
_ENDS = r"$|\s*\n|[.,;:!)…—–]| because\b| since\b| [-—–] "
_FIRST = re.compile(f"{_SAID}(?={_ENDS})", re.IGNORECASE)
_LAST = re.compile(f"{_SAID}[.!]?", re.IGNORECASE)
_LABELLED = re.compile(f"(?=the|my|final|answer){_FIRST.pattern}", re.IGNORECASE)
_BETWEEN = rf"\W+(?:or )?(?:(?:it|this|that|the answer) )?{_ANSWER}(?!\1)"
_OTHER = f"(?:cannot be known|(?:yes|no)(?={_ENDS}| or ))"
_BOTH = re.compile(_SAID + _BETWEEN + _OTHER, re.IGNORECASE)


class _Line(BaseModel):
    id: str
    answer: str | None


def parse(text: str) -> int:
    r"""Return the number in `ANSWERS` of the answer that a text gives, or `UNPARSEABLE`.

    The answer begins the text, followed by punctuation, *because*, *since* or the end of a line, or
    is alone in a last line. *Answer:* may stand before it; then a reason may follow there, too.
    Case and Markdown do not matter. Other texts are unparseable: a guess gives unearned credit.

    Examples
    --------
    >>> parse("**Yes**, she is happy."), parse("NO"), parse("She gets 4.\n\nAnswer: No.")
    (1, 0, 0)
    >>> parse("Yes or no?"), parse("No doubt she is."), parse("It cannot be known, since …")
    (-1, -1, 2)
    >>> parse("No, it cannot be known."), parse("No.\n\nOn second thought:\n\n**Yes**")
    (-1, -1)
    """
    plain = _MARKS.sub("", text).strip()
    last = plain.rpartition("\n")[2].strip()
    places = _FIRST.match(plain), _LAST.fullmatch(last) or _LABELLED.match(last)
    said = {found[1].casefold().capitalize() for found in places if found}
    # "Yes, no" gives two answers, and "No, it cannot be known" does.
    one = len(said) == 1 and not (_BOTH.match(plain) or (places[1] and _BOTH.match(last)))
    return ANSWERS.index(said.pop()) if one else UNPARSEABLE


def prompt_text(prompt: Prompt) -> str:
    """Return one item of ``tasks.prompts()`` as the text that a reasoner is given."""
    return f"{prompt['context']}\n\n{prompt['text']}"


def answer_text(prompt: Prompt) -> str:
    """Return the true answer of one item of ``tasks.prompts()`` in words."""
    return prompt["answer"] if prompt["answer"] in ANSWERS else ANSWERS[prompt["answer"]]


def write_prompts(tasks: Tasks, path: AnyPath) -> Path:
    """Write one line of JSON per prompt, with its `id` and `prompt` but without its answer."""
    lines = ({"id": prompt["id"], "prompt": prompt_text(prompt)} for prompt in tasks.prompts())
    return _write_lines(lines, path)


def write_answers(tasks: Tasks, answers: Sequence[np.ndarray], path: AnyPath) -> Path:
    """Write one line of JSON per prompt, with `id` and `answer`; unparseable answers are empty."""
    words = dict(enumerate(ANSWERS)) | {UNPARSEABLE: ""}
    grids = list(zip(tasks.tasks, checked(tasks, answers), strict=True))
    times = max(grid.shape[1] // task.n_samples for task, grid in grids)
    check(times == 1, "answers to write must be one per prompt", times)
    said = (words[answer] for task, grid in grids for answer in grid[task.asked])
    asked = zip(tasks.prompts(), said, strict=True)
    return _write_lines(({"id": one["id"], "answer": answer} for one, answer in asked), path)


def read_answers(tasks: Tasks, path: AnyPath) -> list[np.ndarray]:
    """Read the answers to all prompts from lines of JSON, in any order.

    Other keys and empty lines are ignored. A missing, extra or second answer is refused.
    """
    path, said = Path(path), []
    with reading(path):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            with told(f"{path}, line {number}"):
                said.append(_Line.model_validate_json(line))
    return matched(tasks, ((one.id, one.answer) for one in said), str(path))


def matched(
    tasks: Tasks, said: Iterable[tuple[str, str | None]], source: str = "you"
) -> list[np.ndarray]:
    r"""Turn pairs of a prompt's id and a reply to it into answers, exactly one to every prompt.

    Error messages begin with `source`, such as the name of a file.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> tasks = generate("candy_party", [2], n_samples=3)
    >>> def model(prompt):
    ...     return "I think so.\n\nAnswer: yes" if "Suppose" in prompt else "I do not know."
    >>> (grid,) = matched(tasks, ((one["id"], model(prompt_text(one))) for one in tasks.prompts()))
    >>> grid.tolist()
    [[-1, -1, -1], [-1, -1, -1], [1, 1, 1], [1, 1, 1]]
    """
    ids, said = [prompt["id"] for prompt in tasks.prompts()], list(said)
    with told(f"{source} must give pairs of an id and a text"):  # some models return None
        replies = [(name, "" if words is None else words.strip()) for name, words in said]
    times = Counter(name for name, _ in replies)
    for what, names in (
        ("missing", [name for name in ids if not times[name]]),
        ("to unknown prompts", sorted(times.keys() - set(ids))),
        ("answered more than once", [name for name in times if times[name] > 1]),
    ):
        if names:
            found = f"{len(names):,} {what}, the first of them {names[0]!r}"
            raise InputError(f"{source} must answer all {len(ids):,} prompts once: {found}")
    grids = {one.number: np.zeros(one.labels.shape, dtype=np.int8) for one in tasks.tasks}
    for name, words in replies:
        task, sample, question = map(int, name.split("-"))
        grids[task][question, sample] = parse(words)
    # Where every fact is told, only yes and no are offered.
    offered = ((grids[one.number], len(one.answers)) for one in tasks.tasks)
    return [np.where(grid < n, grid, UNPARSEABLE) for grid, n in offered]


def checked(tasks: Tasks, answers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return answers as arrays; refuse what is not one grid per task of 2, 1, 0 and -1.

    A grid may hold several rounds of answers: each further round follows as more samples.
    """
    grids = [np.asarray(grid) for grid in answers]
    n = len(tasks.tasks)
    check(len(grids) == n, f"answers must be {n} grids, one per task (see `matched`)", len(grids))
    for task, grid in zip(tasks.tasks, grids, strict=True):
        shape = rows, columns = task.labels.shape
        met = grid.ndim == 2 and len(grid) == rows and grid.size > 0 and not grid.shape[1] % columns
        rule = f"answers to task {task.number} must have the shape of its questions and samples"
        check(met, f"{rule}, {shape}", grid.shape)
        *known, last = range(len(task.answers) - 1, UNPARSEABLE - 1, -1)
        others = np.setdiff1d(grid, (*known, last)).tolist()
        check(not others, f"an answer must be {', '.join(map(str, known))} or {last}", others)
    return grids


def _write_lines(lines: Iterable[dict[str, str]], path: AnyPath) -> Path:
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return Path(path)
