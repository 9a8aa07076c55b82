"""A wrapper around another one, which has the last word on what a reply means."""

from __future__ import annotations

from dataclasses import dataclass

from mediator.catalog.wrapper import Interprets, MayBeSlow, Meaning, Reply, Wrapper


@dataclass
class Around:
    inner: Wrapper

    @property
    def empty_statuses(self) -> frozenset[int]:
        return self.inner.empty_statuses

    @property
    def may_be_slow(self) -> bool:
        return isinstance(self.inner, MayBeSlow) and self.inner.may_be_slow

    def meaning(self, reply: Reply) -> Meaning | None:
        return self.inner.meaning(reply) if isinstance(self.inner, Interprets) else None
