"""Answers: what a reasoner says to the prompts of a set of tasks.

Everywhere in this book the answers to a set of tasks are one array of whole numbers,
a number a prompt, in the order of ``tasks.prompts()``: 1 for yes, 0 for no, and
:data:`UNPARSEABLE` for words that say neither. The words of a language model become
such numbers by :func:`parse`, which is strict: a guess at what was meant would be
credit, or blame, that the model did not earn.

Prompts leave, and answers come back, as plain lines of JSON::

    {"id": "0-17-4", "prompt": "A group of friends …"}
    {"id": "0-17-4", "answer": "Yes, because …"}
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lib.ccr.tasks import Task, Tasks
from lib.errors import InputError
from lib.files import atomic_write

#: The answer of a text that says neither yes nor no, or both.
UNPARSEABLE = -1

#: In a grid of questions and samples: a prompt that is not among those asked.
NOT_ASKED = -2

_EMPHASIS = re.compile(r"[*_`\"'“”‘’]+")
# "No doubt she is" and "Yes or no?" begin with the word and do not give it as the answer.
_FIRST = re.compile(r"(yes|no)(?=$|[.,;:!)\n—–]| because\b| since\b| - )", re.IGNORECASE)
_LAST = re.compile(r"(?:the |my )?(?:final )?answer(?:(?: is)?:| is) ?(yes|no)[.!]?", re.IGNORECASE)


def parse(text: str) -> int:
    r"""Read yes or no from the words of a reasoner.

    A text answers with its first word, if punctuation, *because*, *since* or the end
    follows it, or with a last line such as *Answer: no*. Case and the marks of
    Markdown do not matter. All else is unparseable, and so is a text whose first word
    and last line disagree.

    Parameters
    ----------
    text : str

    Returns
    -------
    int
        1 for yes, 0 for no, else `UNPARSEABLE`.

    Examples
    --------
    >>> parse("**Yes**, she is happy."), parse("NO"), parse("She gets 4.\n\nAnswer: No.")
    (1, 0, 0)
    >>> parse("Yes or no?"), parse("No doubt she is."), parse("Yes.\nAnswer: No")
    (-1, -1, -1)
    """
    plain = _EMPHASIS.sub("", text).strip()
    last = plain.rpartition("\n")[2].strip().lstrip("# ")
    said = {found[1].lower() for found in (_FIRST.match(plain), _LAST.fullmatch(last)) if found}
    return int(said.pop() == "yes") if len(said) == 1 else UNPARSEABLE


def prompt_text(prompt: Mapping) -> str:
    """Return one item of ``tasks.prompts()`` as the text that a reasoner is given."""
    return f"{prompt['context']}\n\n{prompt['text']}"


def write_prompts(tasks: Tasks, path: str | os.PathLike) -> Path:
    """Write one line of JSON a prompt, with its `id` and `prompt`, and without its answer.

    Returns
    -------
    pathlib.Path
        The file, which appears, or is replaced, when it is complete.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    lines = ({"id": prompt["id"], "prompt": prompt_text(prompt)} for prompt in tasks.prompts())
    return _write_lines(lines, path)


def write_answers(tasks: Tasks, answers: Sequence[int], path: str | os.PathLike) -> Path:
    """Write one line of JSON a prompt, with its `id` and `answer`, as :func:`read_answers` reads.

    An unparseable answer is written as the empty text.

    Returns
    -------
    pathlib.Path
        The file, which appears, or is replaced, when it is complete.

    Raises
    ------
    InputError
        If there is not one answer a prompt, or the file cannot be written.
    """
    words = {1: "Yes", 0: "No", UNPARSEABLE: ""}
    answers = checked(tasks, answers)
    lines = (
        {"id": prompt["id"], "answer": words[int(answer)]}
        for prompt, answer in zip(tasks.prompts(), answers, strict=True)
    )
    return _write_lines(lines, path)


def read_answers(tasks: Tasks, path: str | os.PathLike) -> np.ndarray:
    """Read the answers to all prompts from lines of JSON, in any order.

    Parameters
    ----------
    tasks : Tasks
        What was asked.
    path : path-like
        One object a line, with the `id` of a prompt and the words of its `answer`;
        other keys are ignored, and so are empty lines.

    Returns
    -------
    numpy.ndarray of int8, shape (prompts,)

    Raises
    ------
    InputError
        If the file cannot be read, a line is not such an object, or an answer is
        missing, of no prompt, or there twice.
    """
    path = Path(path)
    said: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                try:
                    found = json.loads(line)
                except json.JSONDecodeError as error:
                    raise InputError(f"{where} is not JSON: {error.msg}") from None
                if not isinstance(found, dict) or not all(
                    isinstance(found.get(key), str) for key in ("id", "answer")
                ):
                    raise InputError(
                        f"{where} must be an object with the texts 'id' and 'answer': "
                        f"found {line.strip()[:80]}"
                    )
                if found["id"] in said:
                    raise InputError(f"{where} answers prompt {found['id']!r} a second time")
                said[found["id"]] = found["answer"]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read: {reason}") from error
    return matched(tasks, said, str(path))


def matched(tasks: Tasks, said: Mapping[str, str], source: str) -> np.ndarray:
    """Parse the words said to every prompt, by id, and put them in the order of the prompts.

    Parameters
    ----------
    tasks : Tasks
    said : mapping of str to str
        Words by the id of their prompt.
    source : str
        Where they come from, for messages.

    Returns
    -------
    numpy.ndarray of int8, shape (prompts,)

    Raises
    ------
    InputError
        If an answer is missing or of no prompt.
    """
    ids = [prompt["id"] for prompt in tasks.prompts()]
    missing = [name for name in ids if name not in said]
    if missing:
        raise InputError(
            f"{source} must answer all {len(ids):,} prompts: {len(missing):,} missing, "
            f"the first of them {missing[0]!r}"
        )
    if len(said) > len(ids):
        known = set(ids)
        extra = next(name for name in said if name not in known)
        raise InputError(
            f"{source} must answer these {len(ids):,} prompts only: {len(said) - len(ids):,} "
            f"of no prompt, the first of them {extra!r}"
        )
    return np.array([parse(said[name]) for name in ids], dtype=np.int8)


def checked(tasks: Tasks, answers: Sequence[int]) -> np.ndarray:
    """Return answers as an array, one of 1, 0 and `UNPARSEABLE` a prompt.

    Raises
    ------
    InputError
        If they are something else, or not one a prompt.
    """
    answers = np.asarray(answers)
    if answers.shape != (len(tasks.answers),):
        raise InputError(
            f"answers must be one a prompt, {len(tasks.answers):,}: found shape {answers.shape}"
        )
    if not np.isin(answers, (1, 0, UNPARSEABLE)).all():
        raise InputError(f"an answer must be 1, 0 or {UNPARSEABLE}: found others")
    return answers.astype(np.int8)


def as_grids(tasks: Tasks, answers: Sequence[int]) -> list[np.ndarray]:
    """Return the answers of each task by question and sample.

    Parameters
    ----------
    tasks : Tasks
    answers : sequence of int, shape (prompts,)

    Returns
    -------
    list of numpy.ndarray of int8, shape (questions, samples)
        A prompt that the tasks leave out is `NOT_ASKED`.

    Raises
    ------
    InputError
        If the answers do not fit the tasks.

    Examples
    --------
    >>> from lib.ccr import generate
    >>> tasks = generate("candy_party", [3, 3], n_samples=5)
    >>> [grid.shape for grid in as_grids(tasks, tasks.answers["answer"])]
    [(9, 5)]
    """
    answers = checked(tasks, answers)
    grids = []
    for task, rows, cells in _places(tasks):
        grid = np.full(task.labels.shape, NOT_ASKED, dtype=np.int8)
        grid[cells] = answers[rows]
        grids.append(grid)
    return grids


def from_grids(tasks: Tasks, grids: Iterable[np.ndarray]) -> np.ndarray:
    """Return one answer a prompt from the answers of each task by question and sample.

    The inverse of :func:`as_grids`; what was not asked is left out.
    """
    answers = np.empty(len(tasks.answers), dtype=np.int8)
    for grid, (_, rows, cells) in zip(grids, _places(tasks), strict=True):
        answers[rows] = grid[cells]
    return answers


def _places(tasks: Tasks) -> Iterator[tuple[Task, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """Yield every task, the rows of its answers, and their cells in its grid.

    The rows of a task stand together, and there are some: no factual prompt is ever
    left out.
    """
    task, question, sample = (
        tasks.answers[key].to_numpy() for key in ("task", "question", "sample")
    )
    parts = np.split(np.arange(len(task)), np.flatnonzero(np.diff(task)) + 1)
    for one, rows in zip(tasks.tasks, parts, strict=True):
        yield one, rows, (question[rows], sample[rows])


def _write_lines(lines: Iterable[dict], path: str | os.PathLike) -> Path:
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    return Path(path)
