"""Specifications: a sequential structural causal model, written as data.

A specification names the variables of a model, the direct causes of each in the
first step and later, and the mechanism of each. It is the language of the
IncomeSCM paper (Section 4), so the files that people already have load as they
are:

.. code-block:: yaml

    variables:
      education:
        parents: [age, race, sex, native-country]     # causes in the first step
        sampler: LogisticSampler                      # mechanism of the first step
        seq_parents_curr: []                          # later: causes at the same step
        seq_parents_prev: [education, studies]        # later: causes a step earlier
        seq_sampler: {type: EducationTransition}      # mechanism of later steps

A sampler is a name or a mapping with ``type`` and the mechanism's parameters;
``'#init_sampler'`` stands for the variable's own initial mechanism, and the name
``None`` keeps the previous value. The names are those of
:data:`lib.scm.mechanisms.MECHANISMS` and of :data:`lib.income.mechanisms.MECHANISMS`,
and any that are passed along.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lib import ROOT
from lib.errors import InputError, one_of
from lib.scm import mechanisms as general
from lib.scm.mechanisms import CategoricalMechanism, Mechanism, parameter_names

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
        if isinstance(value, Mapping) and "parameters" not in value:
            parameters = {MISSPELT.get(key, key): value[key] for key in value if key != "type"}
            return {"type": value["type"], "parameters": parameters} if "type" in value else {}
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
        Mechanisms of your own, by the names that the specification gives them.

    Attributes
    ----------
    variables : dict of str to Variable

    Raises
    ------
    InputError
        For an unknown key, mechanism or parameter, a value of the wrong type, a
        parent that is not a variable, one that a mechanism reads and the
        specification does not declare, or a cycle.

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
    """

    def __init__(
        self,
        variables: Mapping[str, Mapping],
        source: str = "specification",
        types: Mapping[str, type[Mechanism]] | None = None,
    ):
        # Imported here: the general mechanisms know nothing of income.
        from lib.income.mechanisms import MECHANISMS as OF_INCOME

        self.source = source
        self.types = {**general.MECHANISMS, **OF_INCOME, **(types or {})}
        if not isinstance(variables, Mapping) or not variables:
            raise InputError(f"{source}: 'variables' must map names to variables: found none")
        self.variables = {
            str(name): self._variable(str(name), entry) for name, entry in variables.items()
        }
        self._check_parents()
        self.initial_order = self._order(self.initial_graph(), "parents")
        self.transition_order = self._order(self._same_step_graph(), "seq_parents_curr")
        for name in self.variables:  # parameters are checked by building every mechanism once
            self._check_reads(name, *self.build(name))

    @classmethod
    def from_yaml(
        cls, path: str | os.PathLike, types: Mapping[str, type[Mechanism]] | None = None
    ) -> "Specification":
        """Read a specification file.

        Parameters
        ----------
        path : path-like
            A YAML file. A relative path that does not exist here is looked for in
            the book's folder.
        types : mapping of str to type, optional
            Mechanisms of your own, by the names that the specification gives them.

        Raises
        ------
        InputError
            If there is no such file, it is not YAML, a key stands twice, or what it
            says breaks a rule.

        Warns
        -----
        UserWarning
            For each key that has no meaning here.

        Examples
        --------
        >>> specification = Specification.from_yaml("data/specs/income_scm_1.0.yml")
        >>> specification.variables["education"].parents
        ('age', 'race', 'sex', 'native-country')
        """
        path = Path(path)
        if not path.exists() and (ROOT / path).exists():
            path = ROOT / path
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"specification {path} cannot be read: {error}") from error
        return cls.from_text(text, str(path), types)

    @classmethod
    def from_text(
        cls,
        text: str,
        source: str = "specification",
        types: Mapping[str, type[Mechanism]] | None = None,
    ) -> "Specification":
        """Read a specification from YAML text; see :meth:`from_yaml`.

        Examples
        --------
        >>> Specification.from_text("variables: {age: {sampler: gaussian}}").initial_order
        ['age']
        """
        try:
            content = yaml.load(text, Loader=_NoDuplicates)
        except yaml.YAMLError as error:
            raise InputError(f"{source} is not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(content, Mapping) or "variables" not in content:
            raise InputError(f"{source}: the key 'variables' is missing")
        for key in content:
            if key in WITHOUT_MEANING["file"]:
                warnings.warn(f"{source}: key {key!r} has no meaning here", stacklevel=2)
            elif key not in ("variables", "title", "description"):
                raise InputError(f"{source}: key {key!r} is unknown: expected variables")
        return cls(content["variables"], source, types)

    def build(self, name: str, coupling: str = "gumbel") -> tuple[Mechanism, Mechanism]:
        """Make a variable's initial mechanism and its transition, neither of them fitted."""
        variable = self.variables[name]
        initial = self._mechanism(name, "sampler", variable.sampler, {})
        transition = self._mechanism(name, "seq_sampler", variable.seq_sampler, {INITIAL: initial})
        for mechanism in (initial, transition):
            if isinstance(mechanism, CategoricalMechanism):
                mechanism.coupling = coupling
        return initial, transition

    def previous_parents(self, name: str) -> tuple[str, ...]:
        """Return the causes a step earlier; a variable's own past always counts as one."""
        declared = self.variables[name].seq_parents_prev
        return declared if name in declared else (*declared, name)

    def initial_graph(self) -> nx.DiGraph:
        """Return the causal graph of the first step; its nodes are variables.

        Examples
        --------
        >>> specification = Specification({"age": {"sampler": "gaussian"}})
        >>> list(specification.initial_graph().nodes)
        ['age']
        """
        return self._graph({name: v.parents for name, v in self.variables.items()})

    def transition_graph(self) -> nx.DiGraph:
        """Return the causal graph of a transition; nodes are (variable, -1) and (variable, 0).

        Examples
        --------
        >>> specification = Specification({"age": {"sampler": "gaussian"}})
        >>> list(specification.transition_graph().edges)
        [(('age', -1), ('age', 0))]
        """
        graph = nx.DiGraph()
        graph.add_nodes_from((name, step) for step in (-1, 0) for name in self.variables)
        for name, variable in self.variables.items():
            graph.add_edges_from(((p, -1), (name, 0)) for p in self.previous_parents(name))
            graph.add_edges_from(((p, 0), (name, 0)) for p in variable.seq_parents_curr)
        return graph

    def _same_step_graph(self) -> nx.DiGraph:
        return self._graph({name: v.seq_parents_curr for name, v in self.variables.items()})

    def _graph(self, parents: Mapping[str, tuple[str, ...]]) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_nodes_from(self.variables)
        graph.add_edges_from((p, name) for name, causes in parents.items() for p in causes)
        return graph

    def _variable(self, name: str, entry: Mapping) -> Variable:
        where = f"{self.source}: variable {name!r}"
        if not isinstance(entry, Mapping):
            raise InputError(f"{where} must be a mapping of keys: found {entry!r}")
        kept = _with_meaning(entry, "variable", where)
        for key in ("sampler", "seq_sampler"):
            if isinstance(kept.get(key), Mapping):
                kept[key] = _with_meaning(kept[key], "sampler", f"{where}, {key}")
        try:
            return Variable(**kept)
        except ValidationError as error:
            raise InputError(f"{where}, {_first(error, Variable.model_fields)}") from error

    def _mechanism(
        self, name: str, key: str, sampler: Sampler, references: Mapping[str, Mechanism]
    ) -> Mechanism:
        where = f"{self.source}: variable {name!r}, {key}"
        if sampler.type not in self.types:
            allowed = one_of(self.types, limit=50)
            raise InputError(f"{where}: type {sampler.type!r} is unknown: {allowed}")
        kind = self.types[sampler.type]
        names, has_options = parameter_names(kind), "options" in kind.__dataclass_fields__
        given, options = {}, {}
        for parameter, value in sampler.parameters.items():
            if parameter in names or not has_options:
                given[parameter] = self._referred(where, parameter, value, references)
            else:
                options[parameter] = value
        if options:
            given["options"] = options
        try:
            return kind(variable=name, **given)
        except ValidationError as error:
            raise InputError(f"{where} ({sampler.type}), {_first(error, names)}") from error

    def _referred(
        self, where: str, parameter: str, value: Any, references: Mapping[str, Mechanism]
    ) -> Any:
        if not (isinstance(value, str) and value.startswith("#")):
            return value
        if value not in references:
            raise InputError(
                f"{where}, key {parameter!r}: reference {value!r} is unknown: {one_of(references)}"
            )
        return references[value]

    def _check_parents(self) -> None:
        for name, variable in self.variables.items():
            for key in ("parents", "seq_parents_curr", "seq_parents_prev"):
                for parent in getattr(variable, key):
                    if parent not in self.variables:
                        raise InputError(
                            f"{self.source}: variable {name!r}, {key}: parent {parent!r} is not a "
                            f"variable: {one_of(self.variables, limit=50)}"
                        )

    def _order(self, graph: nx.DiGraph, key: str) -> list[str]:
        try:
            return list(nx.lexicographical_topological_sort(graph, key=list(graph).index))
        except nx.NetworkXUnfeasible:
            cycle = [edge[0] for edge in nx.find_cycle(graph)]
            raise InputError(
                f"{self.source}: {key} form a cycle: {' → '.join([*cycle, cycle[0]])}"
            ) from None

    def _check_reads(self, name: str, initial: Mechanism, transition: Mechanism) -> None:
        variable = self.variables[name]
        if initial.continues or initial.reads_previous:
            raise InputError(
                f"{self.source}: variable {name!r}, sampler: {type(initial).__name__} reads the "
                "step before, which the first step does not have"
            )
        drawn_again = INITIAL in variable.seq_sampler.parameters.values()
        reads_now = (*transition.reads, *(variable.parents if drawn_again else ()))
        for key, mechanism, place, reads, declared in (
            ("sampler", initial, "parents", initial.reads, variable.parents),
            ("seq_sampler", transition, "seq_parents_curr", reads_now, variable.seq_parents_curr),
            (
                *("seq_sampler", transition, "seq_parents_prev"),
                *(transition.reads_previous, self.previous_parents(name)),
            ),
        ):
            reader = f"{self.source}: variable {name!r}, {key}: {type(mechanism).__name__}"
            if mechanism.learns_from_parents and not declared:
                raise InputError(f"{reader} learns from {place}: found none")
            for parent in reads:
                if parent not in declared:
                    raise InputError(
                        f"{reader} reads {parent!r}, which is missing from {place}: found "
                        f"{list(declared)}"
                    )


class _NoDuplicates(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is an error, not the last one wins."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        # A merge key (<<) may stand with others; what it brings does not count as twice.
        written = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=True) for key in written]
        for position, key in enumerate(keys):
            if key in keys[:position]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def _with_meaning(entry: Mapping, kind: str, where: str) -> dict:
    """Return the entry without the keys that steer other software; warn of each of them."""
    for key in entry:
        if key in WITHOUT_MEANING[kind]:
            warnings.warn(f"{where}: key {key!r} has no meaning here", stacklevel=5)
    return {key: value for key, value in entry.items() if key not in WITHOUT_MEANING[kind]}


def _first(error: ValidationError, allowed: Mapping | list[str]) -> str:
    """Say in one sentence what the first validation error found and what is allowed."""
    problem = error.errors()[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"key {key!r} is unknown: {one_of(allowed, limit=50)}"
    if problem["type"] in ("missing", "missing_argument"):
        return f"key {key!r} is missing"
    if problem["type"] == "dataclass_type":  # a mechanism within a mechanism
        kind, found = problem["ctx"]["class_name"], problem["input"]
        found = type(found).__name__ if isinstance(found, Mechanism) else repr(found)
        return f"key {key!r}: a {kind} is needed, found {found}"
    message = problem["msg"].removeprefix("Value error, ")
    if not key:  # a mechanism's own check, which says all there is to say
        return message
    return f"key {key!r}: {message[0].lower()}{message[1:]}, found {problem['input']!r}"
