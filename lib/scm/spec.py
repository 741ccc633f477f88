"""Specifications: a sequential structural causal model, written as data.

A specification names the variables of a model, and the direct causes and the mechanism of each, in
the first step and later. It is written in the language of the IncomeSCM paper (Section 4), so that
existing files load unchanged:

.. code-block:: yaml

    variables:
      education:
        parents: [age, race, sex, native-country]  # causes in the first step
        sampler: LogisticSampler                   # mechanism of the first step
        seq_parents_curr: []                       # later: causes at the same step
        seq_parents_prev: [education, studies]     # later: causes a step earlier
        seq_sampler: {type: EducationTransition}   # mechanism of later steps

A sampler is a name, or a mapping with ``type`` and the mechanism's parameters. As a parameter,
``'#init_sampler'`` stands for the variable's own initial mechanism; the name ``None`` keeps the
previous value. Names are those of :data:`lib.scm.mechanisms.MECHANISMS` and of `types`, if passed.
"""

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import networkx as nx
from pydantic import BaseModel, BeforeValidator

from lib import ROOT
from lib.errors import InputError, check, check_known, check_names, told
from lib.files import AnyPath, read_yaml
from lib.scm.mechanisms import MECHANISMS, FittedMechanism, Mechanism, parameter_names

#: Keys of public specification files that steer other software, not the model.
WITHOUT_MEANING = {
    "file": ("experiment", "data", "simulator", "samples", "figures"),
    "variable": ("label", "transform_input", "seq_transform_input", "seq_fit"),
    # scikit-learn no longer has the first; the second is a feature encoder, which is fixed here.
    "sampler": ("multi_class", "transformation"),
}

#: Keys of a file that have a meaning.
WITH_MEANING = ("variables", "title", "description")

INITIAL = "#init_sampler"

Vocabulary = Mapping[str, type[Mechanism]]


class Sampler(BaseModel, extra="allow", frozen=True):
    """The name of a mechanism, `type`; all other keys are its parameters."""

    type: str


def _by_name(value: Any) -> Any:
    return {"type": value or "None"} if value is None or isinstance(value, str) else value


SamplerOrName = Annotated[Sampler, BeforeValidator(_by_name)]


class Variable(BaseModel, extra="forbid", frozen=True):
    """One variable: its causes and mechanisms, in the first step and later."""

    sampler: SamplerOrName
    parents: tuple[str, ...] = ()
    seq_sampler: SamplerOrName = Sampler(type="None")
    seq_parents_curr: tuple[str, ...] = ()
    seq_parents_prev: tuple[str, ...] = ()

    def causes(self, step: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the causes at this step, and the causes a step earlier."""
        return (self.parents, ()) if step == 0 else (self.seq_parents_curr, self.seq_parents_prev)


class Specification:
    """A sequential structural causal model, validated and not yet fitted.

    `variables` is the content of a file's key ``variables``; errors name the `source`. `types` adds
    mechanisms to the general ones, by the names that the specification gives them.
    """

    def __init__(
        self,
        variables: Mapping[str, Mapping[str, Any]],
        source: str = "specification",
        types: Vocabulary | None = None,
    ):
        self.source, self.types = source, {**MECHANISMS, **(types or {})}
        met = isinstance(variables, Mapping) and len(variables) > 0
        check(met, f"{source}: 'variables' must map names to variables", variables)
        self.variables = {name: self._variable(name, entry) for name, entry in variables.items()}
        self.orders = [self.order(step) for step in (0, 1)]  # first, as a cycle is worst
        for name in self.variables:  # parameters are checked by building every mechanism once
            self._check_parents(name)

    @classmethod
    def from_yaml(cls, path: AnyPath, types: Vocabulary | None = None) -> "Specification":
        """Read a YAML file, if need be from the book's folder; warn of keys without a meaning."""
        path = next((one for one in (Path(path), ROOT / path) if one.exists()), Path(path))
        content, source = read_yaml(path, WITH_MEANING), str(path)
        if not isinstance(content, Mapping) or "variables" not in content:
            raise InputError(f"{source}: the key 'variables' is missing")
        check_names(f"{source}: key", _with_meaning(content, "file", source), WITH_MEANING)
        return cls(content["variables"], source, types)

    def initial(self, name: str) -> Mechanism:
        """Make a variable's unfitted mechanism of the first step."""
        return self._mechanism(name, "sampler", {})

    def transition(self, name: str, initial: Mechanism) -> Mechanism:
        """Make a variable's unfitted mechanism of later steps, given that of the first step."""
        return self._mechanism(name, "seq_sampler", {INITIAL: initial})

    def graph(self, step: int) -> nx.DiGraph:
        """Return the causal graph within the first step (0) or a later one; nodes are variables."""
        causes = {name: variable.causes(step)[0] for name, variable in self.variables.items()}
        return nx.DiGraph(causes).reverse()

    def transition_graph(self) -> nx.DiGraph:
        """Return the causal graph of a transition; nodes are (variable, -1) and (variable, 0)."""
        graph = nx.DiGraph()
        graph.add_nodes_from((name, step) for step in (-1, 0) for name in self.variables)
        for name, variable in self.variables.items():
            graph.add_edges_from(((p, -1), (name, 0)) for p in variable.seq_parents_prev)
            graph.add_edges_from(((p, 0), (name, 0)) for p in variable.seq_parents_curr)
        return graph

    def order(self, step: int, late: Collection[str] = ()) -> list[str]:
        """Order the variables, causes before effects; those in `late` and their effects go last."""
        graph = self.graph(step)
        last = {*late}.union(*(nx.descendants(graph, name) for name in late))
        key = {name: (name in last, place) for place, name in enumerate(graph)}
        try:
            return list(nx.lexicographical_topological_sort(graph, key.get))
        except nx.NetworkXUnfeasible:
            cycle = [edge[0] for edge in nx.find_cycle(graph)]
            rule = f"{self.source}: causes at step {step} form a cycle"
            raise InputError(f"{rule}: {' → '.join([*cycle, cycle[0]])}") from None

    def _variable(self, name: str, entry: Mapping[str, Any]) -> Variable:
        where = f"{self.source}: variable {name!r}"
        check(isinstance(name, str), f"{where} must have text as its name, in YAML in quotes", name)
        rule = f"{where} needs another name; samples already have columns 'subject' and 't'"
        check(name not in ("subject", "t"), rule, name)
        check(isinstance(entry, Mapping), f"{where} must be a mapping of keys", entry)
        entry = _with_meaning(entry, "variable", where)
        for key in ("sampler", "seq_sampler"):
            if isinstance(entry.get(key), Mapping):
                entry[key] = _with_meaning(entry[key], "sampler", f"{where}, {key}")
        with told(where, Variable.model_fields):
            variable = Variable.model_validate(entry)
        earlier = dict.fromkeys((*variable.seq_parents_prev, name))  # its past is always a cause
        return variable.model_copy(update={"seq_parents_prev": tuple(earlier)})

    def _mechanism(self, name: str, key: str, references: Mapping[str, Mechanism]) -> Mechanism:
        sampler = getattr(self.variables[name], key)
        where = f"{self.source}: variable {name!r}, {key}"
        check_known(f"{where}: type", sampler.type, self.types, limit=50)
        kind: Any = self.types[sampler.type]
        names, given, options = parameter_names(kind), dict[str, Any](), dict[str, Any]()
        for parameter, value in sampler.model_extra.items():
            if isinstance(value, str) and value.startswith("#"):
                check_known(f"{where}, key {parameter!r}: reference", value, references)
                value = references[value]
            (given if parameter in names else options)[parameter] = value
        if issubclass(kind, FittedMechanism):
            options = {"options": options}
        with told(f"{where} ({sampler.type})", names):
            made: Mechanism = kind(name, **given, **options)
        return made

    def _check_parents(self, name: str) -> None:
        variable, initial = self.variables[name], self.initial(name)
        transition = self.transition(name, initial)
        where = f"{self.source}: variable {name!r}"
        rule = f"{where}, sampler: no mechanism of the first step may read a step before"
        check(not (initial.continues or initial.reads_previous), rule, type(initial).__name__)
        drawn_again = INITIAL in (variable.seq_sampler.model_extra or {}).values()
        reads_now = (*transition.reads, *(variable.parents if drawn_again else ()))
        for mechanism, place, reads in (
            (initial, "parents", initial.reads),
            (transition, "seq_parents_curr", reads_now),
            (transition, "seq_parents_prev", transition.reads_previous),
        ):
            declared, reader = list(getattr(variable, place)), type(mechanism).__name__
            check_names(f"{where}, {place}: parent", declared, self.variables, limit=50)
            fitted, rule = isinstance(mechanism, FittedMechanism), f"{where}: {reader}"
            check(bool(declared) or not fitted, f"{rule} needs {place} to learn from", declared)
            # A table shows each person once, so nothing can be fitted to causes a step earlier.
            alone = mechanism.stands_alone or (fitted and place == "seq_parents_prev")
            idle = sorted({*declared} - {name, *reads})
            check(not (alone and idle), f"{rule} takes no {place}", idle)
            for parent in reads:
                check(parent in declared, f"{rule} needs {parent!r} in {place}", declared)


def _with_meaning(entry: Mapping[str, Any], kind: str, where: str) -> dict[str, Any]:
    for key in entry:
        if key in WITHOUT_MEANING[kind]:
            warnings.warn(f"{where}: key {key!r} has no meaning here and is ignored", stacklevel=5)
    return {key: value for key, value in entry.items() if key not in WITHOUT_MEANING[kind]}
