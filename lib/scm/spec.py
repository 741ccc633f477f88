"""Specifications: a sequential structural causal model, written as data.

A specification names the variables of a model, the direct causes of each in the first step and
later, and the mechanism of each, in the language of the IncomeSCM paper (Section 4), so that the
files that people already have load as they are:

.. code-block:: yaml

    variables:
      education:
        parents: [age, race, sex, native-country]     # causes in the first step
        sampler: LogisticSampler                      # mechanism of the first step
        seq_parents_curr: []                          # later: causes at the same step
        seq_parents_prev: [education, studies]        # later: causes a step earlier
        seq_sampler: {type: EducationTransition}      # mechanism of later steps

A sampler is a name or a mapping with ``type`` and the mechanism's parameters; ``'#init_sampler'``
stands for the variable's own initial mechanism, and the name ``None`` keeps the previous value.
The names are those of :data:`lib.scm.mechanisms.MECHANISMS` and whatever is passed along.
"""

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lib import ROOT
from lib.errors import InputError, first_problem, one_of
from lib.files import parse_yaml, read_yaml
from lib.scm.mechanisms import MECHANISMS, FittedMechanism, Mechanism, parameter_names

#: Keys of public specification files that steer other software, not the model.
WITHOUT_MEANING = {
    "file": ("experiment", "data", "simulator", "samples", "figures"),
    "variable": ("transform_input", "seq_transform_input", "seq_fit"),
    # scikit-learn no longer has the first; the feature encoder is not a choice here.
    "sampler": ("multi_class", "transformation"),
}

#: A parameter that a public file misspells, and what it means.
MISSPELT = {"self.max_raise_frac": "max_raise_frac"}

INITIAL = "#init_sampler"

Vocabulary = Mapping[str, type[Mechanism]]


class Sampler(BaseModel):
    """The name of a mechanism and its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: str
    parameters: dict[str, Any] = Field(default_factory=dict)


class Variable(BaseModel):
    """One variable: its causes and mechanisms, in the first step and later."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sampler: Sampler
    parents: tuple[str, ...] = ()
    seq_sampler: Sampler = Sampler(type="None")
    seq_parents_curr: tuple[str, ...] = ()
    seq_parents_prev: tuple[str, ...] = ()
    label: str | None = None

    @field_validator("sampler", "seq_sampler", mode="before")
    @classmethod
    def _mapping(cls, value: Any) -> Any:
        if value is None or isinstance(value, str):
            return {"type": value or "None"}
        if isinstance(value, Mapping) and "type" in value and "parameters" not in value:
            parameters = {MISSPELT.get(key, key): value[key] for key in value if key != "type"}
            return {"type": value["type"], "parameters": parameters}
        return value


class Specification:
    """A sequential structural causal model, validated and not yet fitted.

    Parameters
    ----------
    variables : mapping of str to mapping
        What the key ``variables`` of a specification file holds.
    source : str
        Where it came from, for messages.
    types : mapping of str to type, optional
        Mechanisms beside the general ones, by the names that the specification gives them.

    Examples
    --------
    >>> specification = Specification(
    ...     {
    ...         "age": {"sampler": "gaussian", "seq_sampler": "IncrementSampler"},
    ...         "pay": {"parents": ["age"], "sampler": "LinearGaussianSampler"},
    ...     }
    ... )
    >>> list(specification.initial_graph().edges)
    [('age', 'pay')]
    >>> list(specification.transition_graph().edges)
    [(('age', -1), ('age', 0)), (('pay', -1), ('pay', 0))]
    """

    def __init__(
        self,
        variables: Mapping[str, Mapping],
        source: str = "specification",
        types: Vocabulary | None = None,
    ):
        self.source, self.types = source, {**MECHANISMS, **(types or {})}
        if not isinstance(variables, Mapping) or not variables:
            raise InputError(f"{source}: 'variables' must map names to variables: found none")
        self.variables = {
            str(name): self._variable(str(name), variables[name]) for name in variables
        }
        self._check_parents()
        self._orders = {key: self._sorted(key) for key in ("parents", "seq_parents_curr")}
        self.initial_order = self.order("parents")
        for name in self.variables:  # parameters are checked by building every mechanism once
            self._check_reads(name)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike, types: Vocabulary | None = None) -> "Specification":
        """Read a YAML file, and warn of each key in it that has no meaning here.

        A relative path may also start in the book's folder.
        """
        path = Path(path)
        if not path.exists() and (ROOT / path).exists():
            path = ROOT / path
        return cls._of(read_yaml(path, WITHOUT_MEANING["file"]), str(path), types)

    @classmethod
    def from_text(
        cls, text: str, source: str = "specification", types: Vocabulary | None = None
    ) -> "Specification":
        """Read a specification from YAML text; see :meth:`from_yaml`."""
        return cls._of(parse_yaml(text, source, WITHOUT_MEANING["file"]), source, types)

    @classmethod
    def _of(cls, content: Any, source: str, types: Vocabulary | None) -> "Specification":
        if not isinstance(content, Mapping) or "variables" not in content:
            raise InputError(f"{source}: the key 'variables' is missing")
        for key in _with_meaning(content, "file", source):
            if key not in ("variables", "title", "description"):
                raise InputError(f"{source}: key {key!r} is unknown: expected variables")
        return cls(content["variables"], source, types)

    def initial(self, name: str) -> Mechanism:
        """Make a variable's mechanism of the first step, not fitted."""
        return self._mechanism(name, "sampler", {})

    def transition(self, name: str, initial: Mechanism) -> Mechanism:
        """Make a variable's mechanism of later steps, not fitted, given that of the first."""
        return self._mechanism(name, "seq_sampler", {INITIAL: initial})

    def initial_graph(self) -> nx.DiGraph:
        """Return the causal graph of the first step; its nodes are variables."""
        return self._graph("parents")

    def transition_graph(self) -> nx.DiGraph:
        """Return the causal graph of a transition; nodes are (variable, -1) and (variable, 0)."""
        graph = nx.DiGraph()
        graph.add_nodes_from((name, step) for step in (-1, 0) for name in self.variables)
        for name, variable in self.variables.items():
            graph.add_edges_from(((p, -1), (name, 0)) for p in variable.seq_parents_prev)
            graph.add_edges_from(((p, 0), (name, 0)) for p in variable.seq_parents_curr)
        return graph

    def order(self, key: str, late: Collection[str] = ()) -> list[str]:
        """Order the variables, causes first; those of `late` and their effects at the end.

        `key` says which causes: ``"parents"`` or ``"seq_parents_curr"``.
        """
        last = {*late}.union(*(nx.descendants(self._graph(key), name) for name in late))
        return sorted(self._orders[key], key=last.__contains__)

    def _sorted(self, key: str) -> list[str]:
        graph = self._graph(key)
        try:
            return list(nx.lexicographical_topological_sort(graph, key=list(graph).index))
        except nx.NetworkXUnfeasible:
            cycle = [edge[0] for edge in nx.find_cycle(graph)]
            cycle = " → ".join([*cycle, cycle[0]])
            raise InputError(f"{self.source}: {key} form a cycle: {cycle}") from None

    def _graph(self, key: str) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from(self.variables)
        for name, variable in self.variables.items():
            graph.add_edges_from((cause, name) for cause in getattr(variable, key))
        return graph

    def _variable(self, name: str, entry: Mapping) -> Variable:
        where = f"{self.source}: variable {name!r}"
        if not isinstance(entry, Mapping):
            raise InputError(f"{where} must be a mapping of keys: found {entry!r}")
        entry = _with_meaning(entry, "variable", where)
        for key in ("sampler", "seq_sampler"):
            if isinstance(entry.get(key), Mapping):
                entry[key] = _with_meaning(entry[key], "sampler", f"{where}, {key}")
        try:
            variable = Variable.model_validate(entry)
        except ValidationError as error:
            raise InputError(f"{where}, {first_problem(error, Variable.model_fields)}") from error
        earlier = dict.fromkeys((*variable.seq_parents_prev, name))  # its own past always counts
        return variable.model_copy(update={"seq_parents_prev": tuple(earlier)})

    def _check_parents(self) -> None:
        for name, variable in self.variables.items():
            for key in ("parents", "seq_parents_curr", "seq_parents_prev"):
                where, known = (
                    f"{self.source}: variable {name!r}, {key}",
                    one_of(self.variables, 50),
                )
                for parent in getattr(variable, key):
                    if parent not in self.variables:
                        raise InputError(f"{where}: parent {parent!r} is not a variable: {known}")

    def _mechanism(self, name: str, key: str, references: Mapping[str, Mechanism]) -> Mechanism:
        sampler = getattr(self.variables[name], key)
        where = f"{self.source}: variable {name!r}, {key}"
        if sampler.type not in self.types:
            known = one_of(self.types, limit=50)
            raise InputError(f"{where}: type {sampler.type!r} is unknown: {known}")
        kind = self.types[sampler.type]
        names, given, options = parameter_names(kind), {"variable": name}, {}
        for parameter, value in sampler.parameters.items():
            if isinstance(value, str) and value.startswith("#"):
                if value not in references:
                    known = f"reference {value!r} is unknown: {one_of(references)}"
                    raise InputError(f"{where}, key {parameter!r}: {known}")
                value = references[value]
            (given if parameter in names else options)[parameter] = value
        if issubclass(kind, FittedMechanism):
            given["options"] = options
        elif options:
            found, known = next(iter(options)), one_of(names, limit=50)
            raise InputError(f"{where} ({sampler.type}), key {found!r} is unknown: {known}")
        try:
            return kind(**given)
        except ValidationError as error:
            raise InputError(f"{where} ({sampler.type}), {first_problem(error, names)}") from error

    def _check_reads(self, name: str) -> None:
        variable, initial = self.variables[name], self.initial(name)
        transition = self.transition(name, initial)
        where = f"{self.source}: variable {name!r}"
        if initial.continues or initial.reads_previous:
            reads = "reads the step before, which the first step does not have"
            raise InputError(f"{where}, sampler: {type(initial).__name__} {reads}")
        drawn_again = INITIAL in variable.seq_sampler.parameters.values()
        reads_now = (*transition.reads, *(variable.parents if drawn_again else ()))
        for key, mechanism, place, reads in (
            ("sampler", initial, "parents", initial.reads),
            ("seq_sampler", transition, "seq_parents_curr", reads_now),
            ("seq_sampler", transition, "seq_parents_prev", transition.reads_previous),
        ):
            declared = list(getattr(variable, place))
            reader = f"{where}, {key}: {type(mechanism).__name__}"
            if mechanism.learns_from_parents and not declared:
                raise InputError(f"{reader} learns from {place}: found none")
            for parent in reads:
                if parent not in declared:
                    missing = f"{reader} reads {parent!r}, which is missing from {place}"
                    raise InputError(f"{missing}: found {declared}")


def _with_meaning(entry: Mapping, kind: str, where: str) -> dict:
    """Return the entry without the keys that steer other software; warn of each of them."""
    for key in entry:
        if key in WITHOUT_MEANING[kind]:
            warnings.warn(f"{where}: key {key!r} has no meaning here", stacklevel=5)
    return {key: value for key, value in entry.items() if key not in WITHOUT_MEANING[kind]}
