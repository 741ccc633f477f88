"""Static data sets: fixed samples of tasks, for comparing results without generating tasks.

``data/static_data_sets.yml`` says what each set is made of and what its users should know, which
``lib.book.publishing`` writes beside the tables. Equal configurations and seeds give equal bytes.
"""

from typing import Any

from lib import ROOT
from lib.ccr.tasks import Setting, Tasks
from lib.errors import check_count, check_known, check_names
from lib.files import read_yaml

_FILE = read_yaml(ROOT / "data" / "static_data_sets.yml")

#: The configuration of each set, by name; the file explains its keys.
CONFIGURATIONS = _FILE["configurations"]

#: The entries that differ from a configuration in a set of a few rows.
SMALL = _FILE["small"]

#: The fields of a description that are the same for all sets.
DESCRIPTION = _FILE["description"]


def static_tasks(name: str, seed: int = 0, **changed: Any) -> Tasks:
    """Generate the tasks of a static data set: all of the first graph, then those of the next.

    `changed` replaces entries of its configuration, such as `n_samples` or `n_replicates`.
    """
    check_known("data set", name, CONFIGURATIONS)
    check_names("entry", changed, CONFIGURATIONS[name])
    one = CONFIGURATIONS[name] | changed
    check_count("n_replicates", one["n_replicates"], least=1)
    graphs = [graph for graph in one["graphs"] for _ in range(one["n_replicates"])]
    shared = {key: one[key] for key in one if key not in ("graphs", "n_replicates", "published")}
    settings = [Setting(n_per_bcc=graph, **shared) for graph in graphs]
    return Tasks([setting.task(number, seed) for number, setting in enumerate(settings)], name)


def described(tasks: Tasks, **changed: Any) -> dict[str, Any]:
    """Return a set's ``lib.book.publishing.Description``, less its command, as it is `changed`."""
    one = CONFIGURATIONS[tasks.name] | changed
    told = {
        "n_prompts": len(tasks),
        "n_tasks": len(tasks.tasks),
        "seed": tasks.tasks[0].story.seed,
        "shapes": ", ".join(map(str, one["graphs"])),
        "origin": _FILE["origin"] if one["published"] else "",
    }
    return {**DESCRIPTION, "name": tasks.name, "about": DESCRIPTION["about"].format(**one, **told)}
