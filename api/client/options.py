"""What can be said beside the SQL, as `docs/http.md` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from api.client.parameters import Parameters, sent


class Budget(TypedDict, total=False):
    """What one query may spend. What would need more is missing in its answer."""

    calls: int
    seconds: float
    rows: int
    bytes: int


class Options(TypedDict, total=False):
    """How a query is to be run."""

    goal: Literal["all_rows", "first_rows", "fewest_calls"]
    policy: str
    prefer: Mapping[str, float]
    pause: Sequence[str]
    boost: Mapping[str, float]
    budget: Budget
    max_age: float
    partials: bool
    stalled_after: float
    engine: Literal["local", "spark", "auto"]
    on_disconnect: Literal["cancel", "keep"]


def request(sql: str | None, parameters: Parameters | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The document that asks for a query."""
    unknown = options.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"a query has no option {', '.join(sorted(unknown))}")
    said = {name: _plain(value) for name, value in options.items() if value is not None}
    if sql is not None:
        said["sql"] = sql
    if parameters:
        said["parameters"] = sent(parameters)
    return said


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return (
        list(value) if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str) else value
    )
