"""What is to be harvested, where to, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from mediator.access import Statistics
from mediator.gathering import Gathered
from mediator.output.report import Report
from pipeline.harvest.parts import Parts

Engine = Literal["local", "spark"]

SHELF, TASKS, PARTS = "shelf", "tasks", "harvest"  # folders in that of the store


@dataclass(frozen=True)
class Harvest:
    """`bindings` are a file, a query, or a table; without any, the whole site is walked."""

    relation: str
    store: Path
    bindings: Path | str | pa.Table | None = None
    output: Path | None = None  # for Parquet; else beside the store's segments
    max_age: float = float("inf")  # seconds; what is older is asked for again
    limits: Mapping[str, Any] = field(default_factory=dict)  # as `Settings` of a query have them

    @property
    def parts(self) -> Path:
        return self.output or self.store / PARTS

    @property
    def shelf(self) -> Path:
        return self.store / SHELF

    @property
    def tasks(self) -> Path:
        return self.store / TASKS


@dataclass(frozen=True)
class Harvested:
    """How it went."""

    report: Report
    gathered: Gathered
    statistics: Statistics
    parts: Parts | None  # none where nothing is covered
    nulls: int  # rows of the bindings that were left out
    seconds: float
    engine: Engine
    tasks: int = 1
    interrupted: bool = False
