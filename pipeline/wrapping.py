"""A wrapper around another one, which has the last word on what a reply means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mediator.catalog.wrapper import Meaning, Reply, Wrapper


@dataclass
class Around:
    inner: Wrapper

    @property
    def empty_statuses(self) -> frozenset[int]:
        return self.inner.empty_statuses

    @property
    def may_be_slow(self) -> bool:
        return bool(getattr(self.inner, "may_be_slow", False))

    def meaning(self, reply: Reply) -> Meaning | None:
        interpret: Callable[[Reply], Meaning | None] | None = getattr(self.inner, "meaning", None)
        return None if interpret is None else interpret(reply)
