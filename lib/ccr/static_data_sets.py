"""Static data sets: fixed samples of tasks, for those who want to compare, not to generate.

``data/static_data_sets.yml`` says what each set is made of, and what people should know of it;
``lib.book.publishing`` writes that beside the tables. Same configuration and seed, same bytes.
"""

from typing import Any

from lib import ROOT
from lib.ccr.tasks import Setting, Tasks
from lib.errors import check_count, check_known
from lib.files import read_yaml

_FILE = read_yaml(ROOT / "data" / "static_data_sets.yml")

#: By name; what the keys mean is told in the file.
CONFIGURATIONS = _FILE["configurations"]

#: What differs from them in a set of a few rows.
SMALL = _FILE["small"]

#: What is the same of all of them.
DESCRIPTION = _FILE["description"]


def static_tasks(name: str, seed: int = 0, **changed: Any) -> Tasks:
    """Generate the tasks of a static data set: all of the first graph, then those of the next.

    `changed` differs from its configuration, such as `n_samples` or `n_replicates`.
    """
    check_known("data set", name, CONFIGURATIONS)
    one = CONFIGURATIONS[name] | changed
    check_count("n_replicates", one["n_replicates"], least=1)
    graphs = [graph for graph in one["graphs"] for _ in range(one["n_replicates"])]
    shared = {key: one[key] for key in one if key not in ("graphs", "n_replicates", "published")}
    settings = [Setting(n_per_bcc=graph, **shared) for graph in graphs]
    return Tasks([setting.task(number, seed) for number, setting in enumerate(settings)], name)


def described(tasks: Tasks) -> dict[str, Any]:
    """Return the fields of a ``lib.book.publishing.Description`` of a set, but for its command."""
    one = CONFIGURATIONS[tasks.name]
    told = {
        "n_prompts": len(tasks),
        "n_tasks": len(tasks.tasks),
        "shapes": ", ".join(map(str, one["graphs"])),
        "origin": _FILE["origin"] if one["published"] else "",
    }
    about = DESCRIPTION["about"].format(**one, **told)
    return {**DESCRIPTION, "name": tasks.name, "about": about}
