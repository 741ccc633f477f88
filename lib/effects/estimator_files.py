"""Estimators and their grids, read from YAML in the format of the public estimation files.

An entry names a class of estimator, the base learners of its slots, and the values to search::

    t-ridge:
      label: T-learner (Ridge)
      estimator: T-learner
      base_estimator: [ridge]
      base_estimator__alpha: [0.1, 1, 10]

`base_estimator` fills every slot. `base_estimator0` is the first slot, here `control`;
a slot can also be called by its own name, such as `propensity`. `bootstrap: 200` wraps the
estimator in a :class:`~lib.effects.intervals.Bootstrap` with 200 resamples. Once read, an entry
is an estimator with a :class:`~lib.effects.learners.Search` in every slot. Its keys are then
scikit-learn's: `base_estimator0__alpha` is `learner__alpha` in the grid of `control`.
"""

import os
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

from sklearn.model_selection import ParameterGrid

from lib import ROOT
from lib.effects.adapter import adapted
from lib.effects.estimands import TILTS
from lib.effects.estimators import ESTIMATORS, EffectEstimator
from lib.effects.intervals import Bootstrap
from lib.effects.learners import CLASSIFIER, FOLDS, Search, learner
from lib.errors import InputError, check, check_count, check_known, check_names, one_of
from lib.files import AnyPath, read_yaml

#: Keys and values, such as those of an entry; and an estimator file, or its content.
Options: TypeAlias = dict[str, Any]
Grids: TypeAlias = AnyPath | Options

#: The file of the paper's estimators and those added since.
GRIDS = ROOT / "data" / "estimators" / "income_scm.yml"

#: Estimators that state intervals, with fixed settings.
COVERAGE = ROOT / "data" / "estimators" / "coverage.yml"

#: The candidates of the book.
CANDIDATES = ROOT / "data" / "estimators" / "candidates.yml"

#: Estimators of several families, with fixed settings.
STRESS_GRIDS = ROOT / "data" / "estimators" / "stress.yml"

#: The paper's eleven, in the order of its Table 2.
PAPER = (
    *("ipw-lr", "ipw-rfc", "ipww-lr", "ipww-rfc", "match-nn-eu"),
    *("s-ridge", "s-xgbr", "s-rfr", "t-ridge", "t-xgbr", "t-rfr"),
)

#: What a file says about its study: key of `experiment` or `selection` → argument of `benchmark`.
SAID = {
    "outcome": "outcome",
    "intervention": "treatment",
    "covariates": "adjustment",
    "seed": "seed",
    "type": "selection",
    "n_iter": "n_settings",
}

#: Sections with a meaning here. A section `data`, as beside an experiment, is ignored.
SECTIONS = ("experiment", "selection", "estimators")

#: The role that stands for every slot.
ALL = "base_estimator"

#: Slots by the names that those of DML have in the files of the paper's author.
AUTHORS = {"y_estimator": "outcome", "t_estimator": "propensity", "e_estimator": "final"}


def read_estimators(
    grids: Grids = GRIDS,
    estimators: Iterable[str] | None = None,
    selection: str = "grid",
    n_settings: int = 20,
    seed: int = 0,
    scored: bool = True,
) -> Options:
    """Read an estimator file, check all of it, and make its estimators.

    `grids` is a YAML file, or its content. `estimators` are the entries to return, by default all;
    `module:Class` and the names of classes are entries without options. `selection` is "grid", for
    all settings, or "random", for `n_settings` of them. Unknown names are refused, and there is a
    warning for every key without a meaning here. To have entries of your own beside the book's,
    give both: `{"estimators": read_grids() | read_grids("mine.yml")}`.

    A `module` is imported, and thus its code is run, only for an entry that is returned. If you do
    not trust a file, name the `estimators` that you want.
    """
    check_known("selection", selection, ["grid", "random"])
    check_count("n_settings", n_settings, least=1)
    of_search = {"n_settings": n_settings if selection == "random" else None}
    of_search |= {"seed": seed, "scored": scored}
    entries, made = read_grids(grids), {}
    several = isinstance(estimators, Iterable) and not isinstance(estimators, str)
    names = list[Any](entries if estimators is None else estimators if several else [estimators])
    for name in names:
        rule = "estimators must be names, or a dict of names and estimators"
        check(isinstance(name, str), rule, name)
        if ":" not in name:
            check_known("estimator", name, [*entries, *ESTIMATORS, "module:Class"], 60)
        entries.setdefault(name, {"estimator": name})
    for name, entry in entries.items():
        own = ("estimator", "label", "bootstrap")
        options = {key: entry[key] for key in entry if key not in own}
        kind = str(entry["estimator"])
        try:
            if _is_ours(entry):
                made[name] = _made(name, kind, options, of_search)
            elif name in names:  # to import other libraries takes time
                made[name] = adapted(kind, options, seed)
            if "bootstrap" in entry and name in made:
                check_count("bootstrap", entry["bootstrap"], least=2)
                made[name] = Bootstrap(made[name], entry["bootstrap"], seed)
        except InputError as error:
            raise InputError(f"estimator {name!r}: {error}") from None
    return {name: made[name] for name in names}


def read_grids(source: Grids = GRIDS) -> dict[str, Options]:
    """Return the entries of an estimator file as they are written: name → keys and values."""
    return dict(_content(source)["estimators"])


def labels(source: Grids = GRIDS) -> dict[str, str]:
    """Return the label of every estimator in a file, such as `T-learner (RF)` for `t-rfr`."""
    return {name: entry.get("label", name) for name, entry in read_grids(source).items()}


def every_setting(name: str, source: Grids = GRIDS) -> Options:
    """Return an estimator file in which every setting of an entry is an entry of its own.

    Examples
    --------
    >>> mine = {"estimator": "my_estimators:MyLearner", "depth": [2, 4]}
    >>> every_setting("mine", {"estimators": {"mine": mine}})["estimators"]["depth 4"]
    {'estimator': 'my_estimators:MyLearner', 'depth': 4}
    """
    entries = read_grids(source)
    check_known("estimator", name, entries)
    entry = entries[name]
    varied = {k: values for k, values in entry.items() if isinstance(values, list) and values[1:]}
    made = {}
    for setting in ParameterGrid(varied):
        words = ", ".join(f"{key.rpartition('__')[2]} {value}" for key, value in setting.items())
        label = {"label": f"{entry['label']}, {words}"} if "label" in entry else {}
        made[words] = entry | setting | label
    return {"estimators": made}


def read_experiment(source: Grids = GRIDS) -> Options:
    """Read what an estimator file says about its study, as arguments of `benchmark`.

    `benchmark(observational, control, treated, **read_experiment("theirs.yml"))` repeats the
    experiment of a public file: its covariates, arms, selection, seed and estimators. Estimators of
    other modules are left out, because their code would run; name them if you trust them.
    """
    content = _content(source)
    told = (content.get("experiment") or {}) | (content.get("selection") or {})
    folds = told.get("folds", FOLDS)
    check(folds == FOLDS, f"folds of the selection must be {FOLDS}, as in the paper", folds)
    said = {SAID[key]: told[key] for key in SAID if told.get(key) is not None}
    arms = told.get("intervention0"), told.get("intervention1")
    check(arms.count(None) != 1, "intervention0 and intervention1 must be given together", arms)
    if None not in arms:
        said["arms"] = arms
    ours = [name for name, entry in content["estimators"].items() if _is_ours(entry)]
    if others := sorted({*content["estimators"]} - {*ours}):
        warnings.warn(f"estimators of other modules are left out: {others}", stacklevel=2)
    return {"grids": source, "estimators": ours} | said


def _is_ours(entry: Options) -> bool:
    return ":" not in str(entry["estimator"])  # others are `module:Class`


def _content(source: Grids) -> Options:
    content = read_yaml(source, SECTIONS) if isinstance(source, str | os.PathLike) else source
    if not isinstance(content, dict) or not isinstance(content.get("estimators"), dict):
        raise InputError("an estimator file must have a mapping under the key 'estimators'")
    for section in ("experiment", "selection"):
        found = content.get(section) or {}
        check(isinstance(found, dict), f"section {section!r} must be a mapping", found)
    for section in [name for name in content if name not in (*SECTIONS, "data")]:
        warnings.warn(f"section {section!r} has no meaning here and is ignored", stacklevel=4)
    for name, entry in content["estimators"].items():
        rule = f"estimator {name!r} must be a mapping with text as keys, one of them 'estimator'"
        met = isinstance(entry, dict) and "estimator" in entry
        check(met and all(isinstance(key, str) for key in entry), rule, entry)
    return content


def _made(name: str, kind: str, keys: Options, of_search: Options) -> EffectEstimator:
    """Translate the keys of an entry into parameters of the estimator and of its searches."""
    check_known("class", kind, [*ESTIMATORS, "module:Class"])
    chosen, slots = ESTIMATORS[kind], ESTIMATORS[kind].slots()
    options = chosen(**dict.fromkeys(slots)).get_params()
    slot_of = AUTHORS | {f"{ALL}{k}": slot for k, slot in enumerate(slots)}
    # Role → parameter → values; the learners themselves are the values of an empty name.
    said: dict[str, dict[str, list[Any]]] = {role: {} for role in (ALL, *slots) if slots}
    for key, value in keys.items():
        role, _, parameter = key.partition("__")
        slot, values = slot_of.get(role, role), value if isinstance(value, list) else [value]
        check(len(values) > 0, f"{key!r} must have at least one value", value)
        if slot in said:
            said[slot][parameter] = values
        elif key in options:
            truth = isinstance(options[key], bool)
            if len(values) != 1 or (truth and not isinstance(values[0], bool)):
                raise InputError(f"{key!r} must be {'[true] or [false]' if truth else 'one value'}")
            options[key] = values[0]
        elif parameter:
            raise InputError(f"key {role!r} is unknown: {one_of(said)}")
        else:
            warnings.warn(f"{name}: {key!r} has no meaning here and is ignored", stacklevel=4)
    for slot in slots:
        grid = {"": []} | said[ALL]
        if slot == "propensity" and len(slots) > 1:
            grid[""] = [CLASSIFIER.get(str(base), base) for base in grid[""]]
        grid |= said[slot]  # keys of one slot override keys of all slots
        options[slot] = _search(slot, grid.pop(""), grid, of_search)
    check_known("estimand", options.get("estimand", "ATT"), TILTS)
    return chosen(**options)


def _search(slot: str, bases: list[str], grid: Options, of_search: Options) -> Search:
    kind = "classifier" if slot == "propensity" else "regressor"
    fitting = [*(CLASSIFIER.values() if kind == "classifier" else CLASSIFIER)]
    if not bases:
        rule = f"give one, such as base_estimator: [{fitting[0]}]"
        raise InputError(f"slot {slot!r} has no base estimator: {rule}")
    first = {parameter: values[0] for parameter, values in grid.items()}
    learners = [learner(base, of_search["seed"], **first) for base in bases]
    check_names(f"{slot} {kind}", bases, fitting)
    varied = {f"learner__{k}": values for k, values in grid.items() if len(values) > 1}
    each = [{"learner": [one]} | varied for one in learners]
    return Search(learners[0], each if len(bases) > 1 else [varied], **of_search)
