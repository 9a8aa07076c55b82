"""What clients send, and what is checked of it before anything else."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mediator.assembly import POLICIES

_MOST = 1 << 53  # the largest whole number that every client's JSON has
_Condition = Annotated[str, Field(min_length=1, max_length=2_000)]
_Weight = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Goal = Literal["all_rows", "first_rows", "fewest_calls"]
Engine = Literal["local", "spark", "auto"]
OnDisconnect = Literal["cancel", "keep"]


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Budget(_Said):
    """What one query may spend. What would need more is missing in its answer."""

    calls: Annotated[int, Field(ge=0, le=_MOST, description="requests that may be sent")] | None = None
    seconds: Annotated[float, Field(gt=0, le=1e9, description="that it may take")] | None = None
    rows: Annotated[int, Field(ge=1, le=_MOST, description="of its answer")] | None = None
    bytes: Annotated[int, Field(ge=0, le=_MOST, description="that may be read of the sources")] | None = None


class Options(_Said):
    """How a query is to be run."""

    parameters: dict[str, Any] | list[Any] | None = Field(
        None,
        description="values for `$name`, as an object, or for `?`, as an array",
        examples=[{"year": 2020}],
    )
    goal: Goal | None = Field(None, description="the dial between calls and time")
    policy: str | None = Field(None, description="who decides where rows go next", examples=["foresight"])
    prefer: dict[_Condition, _Weight] | None = Field(
        None,
        description="conditions and weights: rows that meet one come first",
        examples=[{"price < 10": 5.0}],
    )
    pause: list[_Name] | None = Field(None, description="sources that are left alone at first")
    boost: dict[_Name, _Weight] | None = Field(None, description="sources that are asked rather than others")
    budget: Budget | None = None
    max_age: _Seconds | None = Field(None, description="seconds; what is held for longer is asked again")
    partials: bool | None = Field(None, description="tell answers of which not all is known")
    stalled_after: _Seconds | None = Field(
        None, description="seconds of silence before partial answers begin"
    )
    engine: Engine | None = Field(
        None,
        description="where the rows are joined: in the server, in cells on Spark, or there when it grows too large",
    )
    on_disconnect: OnDisconnect | None = Field(
        None, description="what becomes of the query when its last reader leaves"
    )

    @field_validator("parameters")
    @classmethod
    def _of_json(cls, said: Any) -> Any:
        for value in said.values() if isinstance(said, dict) else said or ():
            if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
                raise ValueError(
                    "a whole number of more than 64 bits: give it as text, and cast it: $n::hugeint"
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError("JSON has no such number: give it as text, and cast it: $n::double")
            if isinstance(value, dict | list):
                raise ValueError("a value is a text, a number, true, false or null")
        return said

    @model_validator(mode="after")
    def _sound(self) -> Options:
        if self.policy is not None and self.policy not in POLICIES:
            raise ValueError(f"policy: there is no {self.policy!r}; there are {', '.join(POLICIES)}")
        if self.stalled_after is not None and not self.partials:
            raise ValueError("stalled_after says when partial answers begin: it goes with partials")
        if self.engine in ("spark", "auto") and self.partials:
            raise ValueError("partials are found in the server's own process: leave out engine, or partials")
        if self.engine == "spark" and self.prefer:
            raise ValueError("prefer says in which order one process works: leave out engine, or prefer")
        return self


class Asked(Options):
    """A query."""

    sql: str = Field(
        min_length=1,
        description="the query, in DuckDB's dialect",
        examples=["SELECT title, year FROM books WHERE year > 2010 LIMIT 10"],
    )

    @property
    def values(self) -> dict[str, Any] | list[Any] | tuple[()]:
        """Of its parameters."""
        return self.parameters if self.parameters is not None else ()


class Steer(_Said):
    """A change to a query in mid-run."""

    prefer: dict[_Condition, _Weight] | None = Field(
        None, description="takes the place of all that was preferred", examples=[{"price < 10": 5.0}]
    )
    pause: list[_Name] = Field(default_factory=list)
    resume: list[_Name] = Field(default_factory=list)
    boost: dict[_Name, _Weight] = Field(default_factory=dict, description="1 is none")
    stop: Literal["enough"] | None = Field(None, description="end with what was found so far")
