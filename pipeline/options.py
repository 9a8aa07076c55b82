"""What `spark.read.format("mediator")` is told by options, checked, and as the engine says it."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mediator.assembly import POLICIES
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.model import Catalog
from mediator.errors import CatalogError, MediatorError
from pipeline.errors import BadOption
from sources.chosen import VARIABLE, chosen_catalog
from sources.lengths import seconds_in
from sources.limits import size_of

T = TypeVar("T")

GOALS = ("first_rows", "all_rows", "fewest_calls")
INCOMPLETE = ("fail", "allow")
_NOTHING: dict[str, Any] = {}
# Between the files and plugins of one catalog, as in MEDIATOR_CATALOG.
_AND = os.pathsep
_ELSEWHERE = (
    "On a cluster it has to be there for the driver and for every executor, under the same name: "
    "`spark-submit --files`, a shared folder, or a plugin that is installed everywhere"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be read, and how. It travels to the executors: a secret is no part of it, nor is the catalog."""

    catalog: tuple[str, ...]
    variables: Mapping[str, str]
    relation: str = ""
    query: str = ""  # a whole statement; one of the two is given
    parameters: Any = ()
    bindings: Mapping[str, tuple[Any, ...]] = field(
        default_factory=dict
    )  # of the relation: the values of its columns
    pushdown: bool = False  # whether Spark's filters are taken as well
    settings: Mapping[str, Any] = field(default_factory=dict)  # the engine's, for this query
    partial: bool = False  # an answer that is not complete will do
    partitions: int | None = None
    log: str = ""
    pieces: int | None = None  # of a log, that one micro-batch takes at most

    def load(self) -> Catalog:
        """Here and now: each process reads the declarations itself, and the secrets when they are needed."""
        try:
            catalog = chosen_catalog(self.catalog, self.variables)
        except CatalogError as error:
            if all(os.path.exists(name) for name in self.catalog):
                raise
            raise CatalogError(f"{error}\n{_ELSEWHERE}") from None
        if catalog is None:
            raise BadOption(
                f"there is no catalog: name one with .option('catalog', PATH), or set {VARIABLE}. {_ELSEWHERE}"
            )
        return catalog


def wanted(options: Mapping[str, str]) -> Wanted:
    """Raises `BadOption`, which names the option and says what may stand there."""
    said = {name.lower(): value for name, value in options.items()}
    for name in said:
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(_NAMES))}"
            raise BadOption(f"there is no option {name!r}: {fix}")
    relation, query = said.get("relation", ""), said.get("query", "")
    if bool(relation) == bool(query):
        raise BadOption(
            "say what to read: either .option('relation', NAME), for one relation, or .option('query', SQL)"
        )
    if relation and "parameters" in said:
        raise BadOption("parameters are those of a query: with a relation say bindings")
    if query and ("bindings" in said or "pushdown" in said):
        raise BadOption("bindings and pushdown are those of a relation: a query says its own conditions")
    return Wanted(
        tuple(filter(None, _parted(said.get("catalog", "")))),
        {name: str(value) for name, value in _read(said, "variables", _object, _NOTHING).items()},
        relation,
        query,
        _read(said, "parameters", _parameters, ()),
        _read(said, "bindings", _bindings, {}),
        _read(said, "pushdown", _one_of(("true", "false")), "false") == "true",
        {name: _read(said, name, read, None) for name, read in _SETTINGS.items() if name in said},
        _read(said, "incomplete", _one_of(INCOMPLETE), "fail") == "allow",
        _read(said, "partitions", _count, None),
        said.get("log", ""),
        _read(said, "max_pieces", _count, None),
    )


def _parted(text: str) -> list[str]:
    """The colon of `plugin:NAME` parts nothing."""
    names: list[str] = []
    for name in text.split(_AND):
        if names and names[-1] == "plugin":
            names[-1] += f"{_AND}{name}"
        else:
            names.append(name)
    return names


def _read(said: Mapping[str, str], name: str, read: Callable[[str], T], otherwise: T) -> T:
    if name not in said:
        return otherwise
    try:
        return read(said[name])
    except (ValueError, TypeError, MediatorError) as error:
        raise BadOption(f"option {name}: {error}") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON: {error.msg} at character {error.pos + 1}") from None


def _object(text: str) -> dict[str, Any]:
    value = _json(text)
    if not isinstance(value, dict):
        raise ValueError('expected a JSON object, such as {"name": "value"}')
    return value


def _names(text: str) -> tuple[str, ...]:
    value = _json(text)
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError('expected a JSON array of names, such as ["readers"]')
    return tuple(value)


def _parameters(text: str) -> Any:
    value = _json(text)
    if not isinstance(value, dict | list):
        raise ValueError("expected a JSON object for $name, or a JSON array for ?")
    return value


def _bindings(text: str) -> dict[str, tuple[Any, ...]]:
    """`{"isbn": ["1", "2"], "stars": 5}`"""
    found = {}
    for column, said in _object(text).items():
        values = said if isinstance(said, list) else [said]
        if not all(isinstance(value, str | int | float | bool | None) for value in values):
            raise ValueError(f"expected a value for {column}, or an array of values")
        # A NULL is equal to nothing.
        found[column] = tuple(dict.fromkeys(value for value in values if value is not None))
    return found


def _weights(text: str) -> dict[str, float]:
    return {name: float(weight) for name, weight in _object(text).items()}


def _at_sources(text: str) -> dict[str, Ceilings]:
    """`{"readers": {"calls": 100}}`"""
    found = {}
    for source, limits in _object(text).items():
        if not isinstance(limits, dict) or not set(limits) <= {"calls", "bytes", "seconds"}:
            raise ValueError(f"expected calls, bytes or seconds of {source}, as numbers")
        found[source] = Ceilings(**limits)
    return found


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError("expected a number, 1 or more")
    return int(text)


def _calls(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected a number of requests, 0 or more")
    return int(text)


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"expected one of {', '.join(names)}")
        return text.lower()

    return read


# By the names that the engine's `Settings` have, too.
_SETTINGS: Mapping[str, Callable[[str], Any]] = {
    "policy": _one_of(POLICIES),
    "goal": _one_of(GOALS),
    "max_age": seconds_in,
    "max_calls": _calls,
    "max_bytes": size_of,
    "max_seconds": seconds_in,
    "per_source": _at_sources,
    "prefer": _weights,
    "boost": _weights,
    "pause": _names,
}
_NAMES = frozenset(
    {
        "catalog",
        "variables",
        "relation",
        "query",
        "parameters",
        "bindings",
        "pushdown",
        "incomplete",
        "partitions",
        "log",
        "max_pieces",
        *_SETTINGS,
    }
)
