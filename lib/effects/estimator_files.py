"""Estimators and their grids, read from YAML in the format of the public estimation files.

An entry names a class of estimator, the base learners of its slots, and the values
to search::

    t-ridge:
      label: T-learner (Ridge)
      estimator: T-learner
      base_estimator: [ridge]
      base_estimator__alpha: [0.1, 1, 10]

`base_estimator` fills every slot. `base_estimator0` and `base_estimator1` are the arms;
a slot can also be called by its own name, such as `propensity`.
"""

import importlib
import itertools
import os
import warnings
from pathlib import Path
from typing import Any

import yaml

from lib import ROOT
from lib.effects.estimators import DML, ESTIMATORS, Matching
from lib.effects.learners import FOLDS, LEARNERS, Search, learner
from lib.errors import InputError, one_of

#: The paper's estimators and those added since.
GRIDS = ROOT / "data" / "estimators" / "income_scm.yml"

#: The paper's eleven, in the order of its Table 2.
PAPER = (
    *("ipw-lr", "ipw-rfc", "ipww-lr", "ipww-rfc", "match-nn-eu"),
    *("s-ridge", "s-xgbr", "s-rfr", "t-ridge", "t-xgbr", "t-rfr"),
)

#: Sections of a public file; `data` is where its authors keep their tables.
SECTIONS = ("experiment", "selection", "data", "estimators")

#: Options of an estimator that are not learners, and what the only possible value is, if so.
OPTIONS = {"IPWEstimator": {"weighted"}}

#: The role that stands for every slot.
ALL = "base_estimator"

#: Slots of DML go by several names in the files that people have.
DML_WORDS = {
    "outcome": {"y", "outcome", "response", "outcomes"},
    "propensity": {"a", "t", "w", "e", "treatment", "intervention", "propensity"},
    "final": {"final", "effect", "effects", "cate", "tau"},
}

#: A slot of DML that a file names in yet another way gets a linear model, with a warning.
DML_DEFAULTS = {"outcome": "ridge", "propensity": "lr", "final": "ridge"}

#: One name for all slots means the classifier of the same kind where one is needed.
CLASSIFIER = {"ridge": "lr", "rfr": "rfc", "xgbr": "xgbc"}


def read_grids(source: str | os.PathLike | dict = GRIDS) -> dict[str, dict[str, Any]]:
    """Read the entries of an estimator file, and check all of them.

    Parameters
    ----------
    source : path or dict
        A YAML file, or what it holds.

    Returns
    -------
    dict of str to dict
        Name of an estimator → its entry.

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
    >>> read_grids()["match-nn-eu"]
    {'label': 'Match (EU-NN)', 'estimator': 'MatchingEstimator'}
    """
    content = _content(source)
    for section in content:
        if section not in SECTIONS:
            warnings.warn(f"section {section!r} has no meaning here and is ignored", stacklevel=2)
    for name, entry in content["estimators"].items():
        if not isinstance(entry, dict) or "estimator" not in entry:
            raise InputError(f"estimator {name!r} must be a mapping with a key 'estimator'")
        build(name, entry)
        for key in _without_meaning(name, entry):
            warnings.warn(f"{name}: {key!r} has no meaning here and is ignored", stacklevel=2)
        for slot in _unnamed(entry):
            linear = DML_DEFAULTS[slot]
            warnings.warn(f"{name}: no key names its {slot} model: {linear} is used", stacklevel=2)
    return content["estimators"]


def read_experiment(source: str | os.PathLike | dict = GRIDS) -> dict[str, Any]:
    """Read what an estimator file says of its study, as arguments of `benchmark`.

    `benchmark(observational, control, treated, **read_experiment("theirs.yml"))` repeats the
    experiment of a public file: its estimators, covariates, arms, selection and seed.

    Parameters
    ----------
    source : path or dict

    Returns
    -------
    dict
        `grids` and `estimators`, and what else the file states.

    Raises
    ------
    InputError
        As for :func:`read_grids`, or if the selection is of a kind that is not there.

    Examples
    --------
    >>> said = read_experiment()
    >>> said["arms"], said["selection"], said["outcome"]
    (('No studies', 'Full-time studies'), 'grid', 'income')
    """
    content = _content(source)
    experiment, selection = (content.get(part) or {} for part in ("experiment", "selection"))
    said: dict[str, Any] = {"grids": source, "estimators": list(read_grids(source))}
    words = {"adjustment": "covariates", "treatment": "intervention"}
    for argument in ("adjustment", "treatment", "outcome", "seed"):
        if (value := experiment.get(words.get(argument, argument))) is not None:
            said[argument] = value
    if {"intervention0", "intervention1"} <= set(experiment):
        said["arms"] = (experiment["intervention0"], experiment["intervention1"])
    if "type" in selection:
        said["selection"] = selection["type"]
    if "n_iter" in selection:
        said["n_settings"] = selection["n_iter"]
    if selection.get("folds", FOLDS) != FOLDS:
        raise InputError(f"selection has {FOLDS} folds, as the paper's: found {selection['folds']}")
    return said


def build(
    name: str,
    entry: dict[str, Any],
    n_settings: int | None = None,
    seed: int = 0,
    scored: bool = True,
):
    """Return an unfitted estimator: an entry of a grid, with a search in every slot.

    Parameters
    ----------
    name : str
        For messages.
    entry : dict
    n_settings : int, optional
        Of a random search; the full grid by default.
    seed : int
        Of learners and of the draw of settings.
    scored : bool
        Cross-validate learners that have a single setting, too, for their score.

    Raises
    ------
    InputError
        If the entry breaks a rule.
    """
    kind = entry["estimator"]
    if ":" in str(kind):
        from lib.effects.adapter import adapted

        return adapted(
            kind, {k: v for k, v in entry.items() if k not in ("label", "estimator")}, seed
        )
    if kind not in ESTIMATORS:
        known = [*ESTIMATORS, "module:Class"]
        raise InputError(f"estimator {name!r}: class {kind!r} is unknown: {one_of(known)}")
    chosen = ESTIMATORS[kind]
    names: dict[str, list] = {slot: [] for slot in chosen.slots}
    grids: dict[str, dict[str, list]] = {slot: {} for slot in chosen.slots}
    options = {}
    ignored = {"label", "estimator", *_without_meaning(name, entry)}
    # What is said of one slot outweighs what `base_estimator` says of all.
    for key in sorted(set(entry) - ignored, key=lambda k: (k.partition("__")[0] != ALL, k)):
        values = entry[key] if isinstance(entry[key], list) else [entry[key]]
        if not values:
            raise InputError(f"estimator {name!r}: {key!r} must have at least one value")
        if key in OPTIONS.get(kind, ()):
            if len(values) != 1 or not isinstance(values[0], bool):
                raise InputError(f"estimator {name!r}: {key!r} must be [true] or [false]")
            options[key] = values[0]
            continue
        role, _, parameter = key.partition("__")
        for slot in _slots(role, kind):
            if parameter:
                grids[slot][parameter] = values
            elif role == ALL and len(chosen.slots) > 1 and slot == "propensity":
                names[slot] = [CLASSIFIER.get(value, value) for value in values]
            else:
                names[slot] = values
    for slot in chosen.slots:
        if not names[slot] and chosen is not DML:
            raise InputError(f"estimator {name!r} names no base estimator for its slot {slot!r}")
        names[slot] = names[slot] or [DML_DEFAULTS[slot]]
        settings = _settings(name, slot, names[slot], grids[slot], seed)
        options[slot] = Search(settings, n_settings, seed, scored)
    return chosen(**options)


def load(name: str):
    """Return what `module:Name` names.

    Raises
    ------
    InputError
        If the module cannot be imported, or has no such name.
    """
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"estimator {name!r} cannot be loaded: {error}") from error
    return found


def needs_complete_covariates(estimator) -> bool:
    """Say whether an estimator has no way to take missing covariates.

    Examples
    --------
    >>> needs_complete_covariates(build("match", {"estimator": "MatchingEstimator"}))
    True
    """
    from lib.effects.adapter import EconML

    linear = (LEARNERS["ridge"], LEARNERS["lr"])
    # Somebody's own has no slots, and may know a way; EconML wants to be asked for one.
    searches = [getattr(estimator, slot) for slot in getattr(estimator, "slots", ())]
    return isinstance(estimator, Matching | EconML) or any(
        isinstance(s, linear) for search in searches for s in search.settings
    )


def _content(source: str | os.PathLike | dict) -> dict[str, Any]:
    if isinstance(source, dict):
        content = source
    else:
        path = Path(source)
        if not path.is_file():
            raise InputError(f"file {path} does not exist")
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise InputError(
                f"file {path.name} is not YAML: {' '.join(str(error).split())}"
            ) from error
    if not isinstance(content, dict) or not isinstance(content.get("estimators"), dict):
        raise InputError("an estimator file must have a mapping under the key 'estimators'")
    return content


def _slots(role: str, kind: str) -> tuple[str, ...]:
    """Say which slots a key speaks of; none if it is not known."""
    slots = ESTIMATORS[kind].slots
    numbered = {f"{ALL}{k}": (slot,) for k, slot in enumerate(slots)}
    known = {ALL: slots} | numbered | {slot: (slot,) for slot in slots}
    if role not in known and ESTIMATORS[kind] is DML:
        said = set(role.split("_"))
        return tuple(slot for slot, words in DML_WORDS.items() if words & said)[:1]
    return known.get(role, ())


def _without_meaning(name: str, entry: dict[str, Any]) -> list[str]:
    """List the keys that change nothing; refuse a parameter of a learner that is not there."""
    kind = entry["estimator"]
    if kind not in ESTIMATORS:
        return []
    meaningless = []
    for key in entry:
        role, _, parameter = key.partition("__")
        if key in {"label", "estimator"} | OPTIONS.get(kind, set()) or _slots(role, kind):
            continue
        if parameter and ESTIMATORS[kind] not in (DML, Matching):
            allowed = [ALL, *ESTIMATORS[kind].slots]
            raise InputError(f"estimator {name!r}: key {role!r} is unknown: {one_of(allowed)}")
        meaningless.append(key)
    return meaningless


def _unnamed(entry: dict[str, Any]) -> list[str]:
    """List the slots of DML that no key names; any other estimator must name its own."""
    kind = entry["estimator"]
    if ESTIMATORS.get(kind) is not DML:
        return []
    named = {slot for key in entry if "__" not in key for slot in _slots(key, kind)}
    return [slot for slot in DML_DEFAULTS if slot not in named]


def _settings(name: str, slot: str, names: list, grid: dict[str, list], seed: int) -> list:
    wants = "classifier" if slot == "propensity" else "regressor"
    settings = []
    for base in names:
        if base not in LEARNERS:
            raise InputError(
                f"estimator {name!r}: base estimator {base!r} is unknown: {one_of(LEARNERS)}"
            )
        if not _is(base, wants):
            fitting = [known for known in LEARNERS if _is(known, wants)]
            raise InputError(
                f"estimator {name!r}: slot {slot!r} needs a {wants}: found {base!r}, "
                f"{one_of(fitting)}"
            )
        for values in itertools.product(*grid.values()):
            parameters = dict(zip(grid, values, strict=True))
            if base == "ridge" and "C" in parameters:  # Table 6 calls the penalty so
                parameters["alpha"] = parameters.pop("C")
            try:
                settings.append(learner(base, seed, **parameters))
            except InputError as error:
                raise InputError(f"estimator {name!r}: {error}") from None
    return settings


def _is(base: str, wants: str) -> bool:
    return (base in ("lr", "rfc", "xgbc")) == (wants == "classifier")
