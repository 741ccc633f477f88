"""Estimators and their grids, read from YAML in the format of the public estimation files.

An entry names a class of estimator, the base learners of its slots, and the values
to search::

    t-ridge:
      label: T-learner (Ridge)
      estimator: T-learner
      base_estimator: [ridge]
      base_estimator__alpha: [0.1, 1, 10]

`base_estimator` fills every slot. `base_estimator0` and `base_estimator1` are the arms;
a slot can also be called by its own name, such as `propensity`. Once read, an entry is an
estimator with a :class:`~lib.effects.learners.Search` in every slot, and its keys are
scikit-learn's: `base_estimator0__alpha` is `learner__alpha` in the grid of `control`.
"""

import os
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from sklearn.base import is_classifier

from lib import ROOT
from lib.effects.adapter import adapted
from lib.effects.estimators import DML, ESTIMATORS, Matching
from lib.effects.learners import CLASSIFIER, FOLDS, LEARNERS, Search, learner
from lib.errors import InputError, one_of
from lib.files import read_yaml

#: The paper's estimators and those added since.
GRIDS = ROOT / "data" / "estimators" / "income_scm.yml"

#: The paper's eleven, in the order of its Table 2.
PAPER = (
    *("ipw-lr", "ipw-rfc", "ipww-lr", "ipww-rfc", "match-nn-eu"),
    *("s-ridge", "s-xgbr", "s-rfr", "t-ridge", "t-xgbr", "t-rfr"),
)

#: Sections that mean something here, and those that public files have besides.
SECTIONS = ("experiment", "selection", "estimators")
OTHER_SECTIONS = ("data", "simulator", "samples", "figures", "variables")

#: The role that stands for every slot.
ALL = "base_estimator"

#: Slots of DML go by several names in the files that people have: `y_estimator`, `t_estimator`
#: and `e_estimator` are outcome, treatment and effect in the authors'.
DML_WORDS = {
    "outcome": {"y", "outcome", "response", "outcomes"},
    "propensity": {"a", "t", "w", "treatment", "intervention", "propensity"},
    "final": {"e", "final", "effect", "effects", "cate", "tau"},
}

#: A slot of DML that a file names in yet another way gets a linear model, with a warning.
DML_DEFAULTS = {"outcome": "ridge", "propensity": "lr", "final": "ridge"}


class Entrant(NamedTuple):
    """An estimator that is ready to be fitted, and what tables call it."""

    label: str
    estimator: Any


def read_estimators(
    source: str | os.PathLike | dict = GRIDS,
    names: Iterable[str] | None = None,
    n_settings: int | None = None,
    seed: int = 0,
    scored: bool = True,
) -> dict[str, Entrant]:
    """Read an estimator file, check all of it, and make its estimators.

    `source` is a YAML file, or what it holds. `names` are the entries to return, all by default;
    `module:Class` and the names of classes are entries without options. `n_settings`, `seed` and
    `scored` are those of every :class:`~lib.effects.learners.Search`; learners have the seed, too.
    What is unknown is refused, and there is a warning for every key that has no meaning here.

    Examples
    --------
    >>> read_estimators()["match-nn-eu"]
    Entrant(label='Match (EU-NN)', estimator=Matching())
    """
    entries = dict(read_grids(source))
    names = list(entries if names is None else names)
    for name in names:
        if name not in entries and name not in ESTIMATORS and ":" not in name:
            known = one_of([*entries, "module:Class"], 40)
            raise InputError(f"estimator {name!r} is unknown: {known}")
        entries.setdefault(name, {"estimator": name})
    entrants, of_search = {}, {"n_settings": n_settings, "seed": seed, "scored": scored}
    for name, entry in entries.items():
        if not isinstance(entry, dict) or "estimator" not in entry:
            raise InputError(f"estimator {name!r} must be a mapping with a key 'estimator'")
        kind, label = str(entry["estimator"]), entry.get("label", name)
        options = {key: entry[key] for key in entry if key not in ("estimator", "label")}
        if ":" in kind and name not in names:
            continue  # other libraries take their time to import
        try:
            made = (
                adapted(kind, options, seed)
                if ":" in kind
                else _made(name, kind, options, of_search)
            )
        except InputError as error:
            raise InputError(f"estimator {name!r}: {error}") from None
        entrants[name] = Entrant(label, made)
    return {name: entrants[name] for name in names}


def read_grids(source: str | os.PathLike | dict = GRIDS) -> dict[str, dict[str, Any]]:
    """Return the entries of an estimator file as they are written: name → keys and values."""
    content = _content(source)
    for section in [name for name in content if name not in (*SECTIONS, "data")]:
        warnings.warn(f"section {section!r} has no meaning here and is ignored", stacklevel=3)
    return content["estimators"]


def read_experiment(source: str | os.PathLike | dict = GRIDS) -> dict[str, Any]:
    """Read what an estimator file says of its study, as arguments of `benchmark`.

    `benchmark(observational, control, treated, **read_experiment("theirs.yml"))` repeats the
    experiment of a public file: its estimators, covariates, arms, selection and seed.

    Examples
    --------
    >>> said = read_experiment()
    >>> said["arms"], said["selection"], said["outcome"]
    (('No studies', 'Full-time studies'), 'grid', 'income')
    """
    content = _content(source)
    experiment, selection = (content.get(part) or {} for part in ("experiment", "selection"))
    said: dict[str, Any] = {"grids": source, "estimators": list(read_estimators(source))}
    words = {"outcome": "outcome", "seed": "seed"}
    words |= {"adjustment": "covariates", "treatment": "intervention"}
    said |= {k: experiment[word] for k, word in words.items() if experiment.get(word) is not None}
    words = {"selection": "type", "n_settings": "n_iter"}
    said |= {k: selection[word] for k, word in words.items() if word in selection}
    if {"intervention0", "intervention1"} <= set(experiment):
        said["arms"] = (experiment["intervention0"], experiment["intervention1"])
    if selection.get("folds", FOLDS) != FOLDS:
        raise InputError(f"selection has {FOLDS} folds, as the paper's: found {selection['folds']}")
    return said


def _content(source: str | os.PathLike | dict) -> dict[str, Any]:
    content = source if isinstance(source, dict) else read_yaml(source, OTHER_SECTIONS)
    if not isinstance(content, dict) or not isinstance(content.get("estimators"), dict):
        raise InputError("an estimator file must have a mapping under the key 'estimators'")
    return content


def _made(name: str, kind: str, keys: dict[str, Any], of_search: dict[str, Any]):
    """Translate the keys of an entry into parameters of the estimator and of its searches."""
    if kind not in ESTIMATORS:
        raise InputError(f"class {kind!r} is unknown: {one_of([*ESTIMATORS, 'module:Class'])}")
    chosen, seed = ESTIMATORS[kind], of_search["seed"]
    bases: dict[str, list] = {slot: [] for slot in chosen.slots()}
    grids: dict[str, dict[str, list]] = {slot: {} for slot in bases}
    options = chosen.options() | {k: seed for k in chosen.options() if k == "random_state"}
    # What is said of one slot outweighs what `base_estimator` says of all.
    for key in sorted(keys, key=lambda key: (key.partition("__")[0] != ALL, key)):
        values = keys[key] if isinstance(keys[key], list) else [keys[key]]
        role, _, parameter = key.partition("__")
        slots = _slots(role, chosen)
        if not values:
            raise InputError(f"{key!r} must have at least one value")
        if key in options:
            options[key] = _option(key, values, options[key])
        elif not slots and parameter and chosen not in (DML, Matching):
            raise InputError(f"key {role!r} is unknown: {one_of([ALL, *bases])}")
        elif not slots:
            warnings.warn(f"{name}: {key!r} has no meaning here and is ignored", stacklevel=4)
        for slot in slots:
            if parameter:
                grids[slot][parameter] = values
            elif role == ALL and len(bases) > 1 and slot == "propensity":
                bases[slot] = [CLASSIFIER.get(value, value) for value in values]
            else:
                bases[slot] = values
    for slot in bases:
        if not bases[slot] and chosen is not DML:
            raise InputError(f"there is no base estimator for its slot {slot!r}")
        if not bases[slot]:
            bases[slot] = [DML_DEFAULTS[slot]]
            said = f"no key names its {slot} model: {bases[slot][0]} is used"
            warnings.warn(f"{name}: {said}", stacklevel=4)
        options[slot] = _search(slot, bases[slot], grids[slot], of_search)
    return chosen(**options)


def _option(key: str, values: list, default: Any) -> Any:
    """Return the one value of an option that is no learner."""
    truth = isinstance(default, bool)
    if len(values) != 1 or (truth and not isinstance(values[0], bool)):
        raise InputError(f"{key!r} must be {'[true] or [false]' if truth else 'one value'}")
    return values[0]


def _slots(role: str, chosen: type) -> list[str]:
    """Say which slots a key speaks of; none if it is not known."""
    slots, said = chosen.slots(), set(role.split("_"))
    known = {ALL: slots} | {f"{ALL}{k}": [slot] for k, slot in enumerate(slots)}
    known |= {slot: [slot] for slot in slots}
    words = DML_WORDS if chosen is DML else {}
    return known.get(role) or [slot for slot in words if words[slot] & said][:1]


def _search(slot: str, bases: list, grid: dict[str, list], of_search: dict) -> Search:
    """Return a search of the settings of one base learner, or of several."""
    learners, settings, treatment = [], [], slot == "propensity"
    for base in bases:
        # Table 6 calls the penalty of ridge regression so.
        of_base = {"alpha" if (base, k) == ("ridge", "C") else k: v for k, v in grid.items()}
        first = {parameter: values[0] for parameter, values in of_base.items()}
        learners.append(learner(base, of_search["seed"], **first))
        if is_classifier(learners[-1]) != treatment:
            wants = "classifier" if treatment else "regressor"
            fitting = one_of([known for known in LEARNERS if (known in CLASSIFIER) != treatment])
            raise InputError(f"slot {slot!r} needs a {wants}: found {base!r}, {fitting}")
        varied = {f"learner__{k}": values for k, values in of_base.items() if len(values) > 1}
        settings.append(varied if len(bases) == 1 else {"learner": [learners[-1]], **varied})
    return Search(learners[0], settings, **of_search)
