"""Static data sets: fixed samples of tasks, for those who want to compare, not to generate.

A configuration says what a set is made of; :func:`build` makes it, with card and
Croissant metadata, in a folder of its own. Same configuration and seed, same bytes.

Two configurations are those of the sets published with CCR.GB, in the stories of
this project: ClinicalNotes and FluVaccine. Of the latter, only the largest
graph is stated there; the smaller ones are our choice.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lib.book.publishing import Description, publish
from lib.ccr.exact import COLUMNS
from lib.ccr.tasks import Tasks, generate
from lib.errors import InputError, one_of


@dataclass(frozen=True)
class Configuration:
    """What a static data set is made of.

    Parameters
    ----------
    theme : str
    graphs : sequence of sequences of int
        The nodes of each component, of one graph after another.
    bcc_types, causal_functions : str
        See :func:`lib.ccr.tasks.generate`.
    n_samples : int
        Of each task.
    n_replicates : int
        Tasks of each graph.
    least_pns : float
        The floor on the global PNS.
    published : bool
        Whether the set was published with CCR.GB.
    """

    theme: str
    graphs: Sequence[Sequence[int]]
    bcc_types: str
    causal_functions: str
    n_samples: int
    n_replicates: int = 5
    least_pns: float = 0.0
    published: bool = False


_SMALL = ((3, 3, 3), (4, 4, 4))

#: By name; the first two as published, without a floor.
CONFIGURATIONS = {
    "clinical_notes_v0": Configuration(
        "clinical_notes", _SMALL, "wheel", "or, and at the leaf", 5_000, published=True
    ),
    "flu_vaccine_v0": Configuration(
        "flu_vaccine", (*_SMALL, (6, 6, 6), (8, 6, 8)), "cycle", "random", 2_000, published=True
    ),
    "candy_party_v0": Configuration(
        "candy_party", _SMALL, "mixed", "random", 2_000, least_pns=0.02
    ),
    "flower_garden_v0": Configuration(
        "flower_garden", _SMALL, "mixed", "random", 2_000, least_pns=0.02
    ),
}

_TASK, _SAMPLE, _QUESTION = "number of the task", "number of the sample", "number of the question"
_MEANINGS = {
    "contexts": {
        "task": _TASK,
        "theme": "the situation of the story",
        "wording": "which of three ways to say the same, from 0",
        "n_per_bcc": "nodes of each biconnected component; neighbours share one",
        "bcc_types": "kind of each component: cycle or wheel",
        "nodes": "what each node is called in the story, in topological order",
        "edges": "pairs of cause and effect, as node numbers",
        "cut_tree": "root, cutpoints and leaf, as node numbers",
        "operators": "how each node joins its noise and its causes: and, or",
        "probabilities": "probability that the noise of each node is true",
        "attempts": "how many worlds were drawn until one met the requirements",
        "text": "the causal context",
    },
    "samples": {"task": _TASK, "sample": _SAMPLE, "text": "what happened in this sample"},
    "questions": {
        "task": _TASK,
        "question": _QUESTION,
        "cause": "node that is set; -1 in a factual question",
        "value": "what it is set to, 1 or 0; -1 in a factual question",
        "effect": "node that is asked for",
        "text": "the question",
    },
    "answers": {
        "task": _TASK,
        "sample": _SAMPLE,
        "question": _QUESTION,
        "answer": "true if the true answer is yes",
    },
    "quantities": {
        "task": _TASK,
        "cause": "node of the cut tree; x says that it is true",
        "effect": "a later node; y says that it is true",
        **{name: f"exact {name}" for name in COLUMNS},
    },
}
_KEYS = {
    "contexts": ["task"],
    "samples": ["task", "sample"],
    "questions": ["task", "question"],
    "answers": ["task", "sample", "question"],
    "quantities": ["task", "cause", "effect"],
}
_CITE = """\
@inproceedings{maasch2025compositional,
  author    = {Maasch, Jacqueline R. M. A. and H{\\"u}y{\\"u}k, Alihan and Xu, Xinnuo and
               Nori, Aditya V. and Gonzalez, Javier},
  title     = {Compositional Causal Reasoning Evaluation in Language Models},
  booktitle = {Proceedings of the 42nd International Conference on Machine Learning},
  year      = {2025},
}"""


def static_tasks(
    name: str, n_samples: int | None = None, n_replicates: int | None = None, seed: int = 0
) -> Tasks:
    """Generate the tasks of a static data set.

    Parameters
    ----------
    name : str
        One of `CONFIGURATIONS`.
    n_samples, n_replicates : int, optional
        Other numbers than those of the configuration, for a smaller or larger set.
    seed : int

    Returns
    -------
    Tasks
        All replicates of the first graph, then those of the next.

    Raises
    ------
    InputError
        If there is no such configuration or a number is not positive.

    Examples
    --------
    >>> tasks = static_tasks("flu_vaccine_v0", n_samples=2, n_replicates=1)
    >>> [len(task.world.chain.cut_tree) for task in tasks.tasks]
    [4, 4, 4, 4]
    """
    if name not in CONFIGURATIONS:
        raise InputError(f"data set {name!r} is unknown: {one_of(CONFIGURATIONS)}")
    configuration = CONFIGURATIONS[name]
    n_replicates = configuration.n_replicates if n_replicates is None else n_replicates
    tasks = []
    for position, graph in enumerate(configuration.graphs):
        tasks += generate(
            configuration.theme,
            n_per_bcc=graph,
            bcc_types=configuration.bcc_types,
            causal_functions=configuration.causal_functions,
            n_tasks=n_replicates,
            n_samples=configuration.n_samples if n_samples is None else n_samples,
            seed=seed,
            first_task=position * n_replicates,
            least_pns=configuration.least_pns,
        ).tasks
    return Tasks(tasks, name=name)


def build(tasks: Tasks, folder: str | os.PathLike, date: str) -> Path:
    """Write the tasks of a static data set, with card and Croissant metadata.

    Parameters
    ----------
    tasks : Tasks
        As :func:`static_tasks` returns them.
    folder : path-like
        For this set alone.
    date : str
        Of publication, as 2026-01-31.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    description = Description(
        name=tasks.name,
        version="0.1.0",
        about=_about(tasks),
        license="MIT",
        columns=_MEANINGS,
        keys=_KEYS,
        cite=_CITE,
        creator="The Causal Benchmark Book",
        date=date,
        tags=["causal reasoning", "compositional reasoning", "synthetic"],
    )
    return publish(tasks.to_parquet(folder), description)


def _about(tasks: Tasks) -> str:
    configuration = CONFIGURATIONS[tasks.name]
    graphs = ", ".join(str(list(graph)) for graph in configuration.graphs)
    origin = (
        "The configuration is that of a set published with CCR.GB; stories and samples are new. "
    )
    origin = origin if configuration.published else ""
    return (
        f"{len(tasks):,} prompts about {len(tasks.tasks)} random worlds of true and false, told as "
        f"stories of the theme `{configuration.theme}`, with questions to be answered by yes or "
        f"no and their true answers, and the exact causal quantities of every world. {origin}"
        f"All of it is invented.\n\n"
        f"The graphs are chains of components with {graphs} nodes (kind: "
        f"{configuration.bcc_types}; operators: {configuration.causal_functions}; least global "
        f"PNS: {configuration.least_pns:g}). A prompt is the text of a context, that of a sample "
        f"and that of a question, in this order:\n\n"
        "```python\n"
        "import pandas as pd\n\n"
        "contexts, samples, questions, answers = (\n"
        '    pd.read_parquet(f"{name}.parquet")\n'
        '    for name in ("contexts", "samples", "questions", "answers")\n'
        ")\n"
        "prompts = (\n"
        '    answers.merge(contexts[["task", "text"]], on="task")\n'
        '    .merge(samples, on=["task", "sample"], suffixes=("_context", "_sample"))\n'
        '    .merge(questions, on=["task", "question"])\n'
        ")\n"
        "```"
    )
