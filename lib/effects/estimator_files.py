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
from inspect import signature
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

    Parameters
    ----------
    source : path or dict
        A YAML file, or what it holds.
    names : iterable of str, optional
        Which entries to return, all by default; `module:Class` and the names of classes are
        entries without options.
    n_settings, seed, scored
        Of every :class:`~lib.effects.learners.Search`; the seed is that of learners, too.

    Raises
    ------
    InputError
        If the file is no YAML, or an estimator, learner or parameter is unknown.

    Warns
    -----
    UserWarning
        For every key that has no meaning here.

    Examples
    --------
    >>> read_estimators()["match-nn-eu"]
    Entrant(label='Match (EU-NN)', estimator=Matching())
    """
    entries = dict(read_grids(source))
    names = list(entries if names is None else names)
    for name in names:
        if name not in entries and name not in ESTIMATORS and ":" not in name:
            known = [*entries, "module:Class"]
            raise InputError(f"estimator {name!r} is unknown: {one_of(known, 40)}")
        entries.setdefault(name, {"estimator": name})
    entrants = {}
    for name, entry in entries.items():
        kind = str(entry["estimator"])
        label = entry.get("label", name)
        keys = {k: v for k, v in entry.items() if k not in ("label", "estimator")}
        if kind in ESTIMATORS:
            entrants[name] = Entrant(label, _made(name, kind, keys, n_settings, seed, scored))
        elif ":" not in kind:
            known = [*ESTIMATORS, "module:Class"]
            raise InputError(f"estimator {name!r}: class {kind!r} is unknown: {one_of(known)}")
        elif name in names:  # other libraries take their time to import
            entrants[name] = Entrant(label, adapted(kind, keys, seed))
    return {name: entrants[name] for name in names}


def read_grids(source: str | os.PathLike | dict = GRIDS) -> dict[str, dict[str, Any]]:
    """Return the entries of an estimator file as they are written: name → keys and values."""
    content = _content(source)
    for section in set(content) - {*SECTIONS, "data"}:
        warnings.warn(f"section {section!r} has no meaning here and is ignored", stacklevel=3)
    for name, entry in content["estimators"].items():
        if not isinstance(entry, dict) or "estimator" not in entry:
            raise InputError(f"estimator {name!r} must be a mapping with a key 'estimator'")
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
    words = {"adjustment": "covariates", "treatment": "intervention"}
    for argument in ("adjustment", "treatment", "outcome", "seed"):
        if (value := experiment.get(words.get(argument, argument))) is not None:
            said[argument] = value
    if {"intervention0", "intervention1"} <= set(experiment):
        said["arms"] = (experiment["intervention0"], experiment["intervention1"])
    for argument, key in {"selection": "type", "n_settings": "n_iter"}.items():
        if key in selection:
            said[argument] = selection[key]
    if selection.get("folds", FOLDS) != FOLDS:
        raise InputError(f"selection has {FOLDS} folds, as the paper's: found {selection['folds']}")
    return said


def _content(source: str | os.PathLike | dict) -> dict[str, Any]:
    content = source if isinstance(source, dict) else read_yaml(source, OTHER_SECTIONS)
    if not isinstance(content, dict) or not isinstance(content.get("estimators"), dict):
        raise InputError("an estimator file must have a mapping under the key 'estimators'")
    return content


def _made(name: str, kind: str, keys: dict[str, Any], n_settings, seed: int, scored: bool):
    """Translate the keys of an entry into parameters of the estimator and of its searches."""
    chosen = ESTIMATORS[kind]
    bases: dict[str, list] = {slot: [] for slot in chosen.slots()}
    grids: dict[str, dict[str, list]] = {slot: {} for slot in bases}
    parameters = signature(chosen).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.name not in bases}
    options = {"random_state": seed} if "random_state" in defaults else {}
    # What is said of one slot outweighs what `base_estimator` says of all.
    for key in sorted(keys, key=lambda key: (key.partition("__")[0] != ALL, key)):
        values = keys[key] if isinstance(keys[key], list) else [keys[key]]
        if not values:
            raise InputError(f"estimator {name!r}: {key!r} must have at least one value")
        role, _, parameter = key.partition("__")
        slots = _slots(role, chosen)
        if key in defaults:
            truth = isinstance(defaults[key], bool)
            if len(values) != 1 or (truth and not isinstance(values[0], bool)):
                rule = "[true] or [false]" if truth else "one value"
                raise InputError(f"estimator {name!r}: {key!r} must be {rule}")
            options[key] = values[0]
        elif not slots and parameter and chosen not in (DML, Matching):
            allowed = one_of([ALL, *bases])
            raise InputError(f"estimator {name!r}: key {role!r} is unknown: {allowed}")
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
        if not bases[slot]:
            if chosen is not DML:
                raise InputError(
                    f"estimator {name!r} names no base estimator for its slot {slot!r}"
                )
            bases[slot] = [DML_DEFAULTS[slot]]
            warnings.warn(
                f"{name}: no key names its {slot} model: {bases[slot][0]} is used", stacklevel=4
            )
        try:
            learners, settings = _settings(slot, bases[slot], grids[slot], seed)
        except InputError as error:
            raise InputError(f"estimator {name!r}: {error}") from None
        options[slot] = Search(learners[0], settings, n_settings, seed, scored)
    return chosen(**options)


def _slots(role: str, chosen: type) -> list[str]:
    """Say which slots a key speaks of; none if it is not known."""
    slots = chosen.slots()
    known = {ALL: slots} | {f"{ALL}{k}": [slot] for k, slot in enumerate(slots)}
    if role in slots:
        return [role]
    if role not in known and chosen is DML:
        said = set(role.split("_"))
        return [slot for slot, words in DML_WORDS.items() if words & said][:1]
    return known.get(role, [])


def _settings(slot: str, bases: list, grid: dict[str, list], seed: int) -> tuple[list, list[dict]]:
    """Return the base learners of a slot, and the grid that a search has of each."""
    wants, learners, settings = "classifier" if slot == "propensity" else "regressor", [], []
    for base in bases:
        # Table 6 calls the penalty of ridge regression so.
        of_base = {"alpha" if (base, k) == ("ridge", "C") else k: v for k, v in grid.items()}
        learners.append(learner(base, seed, **{k: values[0] for k, values in of_base.items()}))
        if is_classifier(learners[-1]) != (slot == "propensity"):
            fitting = [
                known for known in LEARNERS if (known in CLASSIFIER) != (slot == "propensity")
            ]
            raise InputError(f"slot {slot!r} needs a {wants}: found {base!r}, {one_of(fitting)}")
        varied = {f"learner__{k}": values for k, values in of_base.items() if len(values) > 1}
        settings.append(varied if len(bases) == 1 else {"learner": [learners[-1]], **varied})
    return learners, settings
