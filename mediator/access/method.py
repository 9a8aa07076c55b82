"""An access method that runs: its declaration, its mirrors, its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from mediator.access.mirrors.race import Race
from mediator.catalog.model import AccessMethod, Relation
from mediator.catalog.wrapper import Wrapper


@dataclass(slots=True)
class MethodCounts:
    """What became of bindings, each counted once whatever its requests went through."""

    asked: int = 0  # left the line
    joined: int = 0  # were waiting or under way already when somebody else asked for them
    answered: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True)
class Method:
    """One way into one relation, shared by every query."""

    relation: Relation
    declared: AccessMethod
    wrapper: Wrapper
    race: Race
    counts: MethodCounts = field(default_factory=MethodCounts)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The sources that answer it."""
        return tuple(runner.mirror.source for runner in self.race.runners)

    @property
    def name(self) -> str:
        return f"{self.relation.name}.{self.declared.name}"
