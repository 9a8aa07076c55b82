"""Signatures, destinations and figures in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mediator.binding.model import Provider
from mediator.eddy.destinations import Destination, Hold, Leave, LookUp, Park, Probe, Select
from mediator.flow.batch import Signature
from mediator.query.model import Block, Column

Providers = Callable[[], Sequence[Sequence[Provider]]]


class Wording:
    """For one block. `providers` are those that lookups are numbered by as things stand."""

    def __init__(self, block: Block, providers: Providers) -> None:
        self._block = block
        self._providers = providers

    def aliases(self, spanned: int) -> tuple[str, ...]:
        return tuple(a.name for a in self._block.aliases if spanned >> a.number & 1)

    def predicates(self, passed: int) -> tuple[str, ...]:
        return tuple(p.text for p in self._block.predicates if passed >> p.number & 1)

    def completing(self, signature: Signature) -> str:
        """The alias that the batch bounced off; nothing where it did not."""
        return self.alias(signature.completing) if signature.completing >= 0 else ""

    def signature(self, signature: Signature) -> str:
        """`R × S, after S.b < 3, bounced off T, part 2`."""
        parts = [" × ".join(self.aliases(signature.spanned))]
        if signature.passed:
            parts.append(f"after {' and '.join(self.predicates(signature.passed))}")
        if signature.completing >= 0:
            parts.append(f"bounced off {self.completing(signature)}")
        if signature.part:
            parts.append(f"part {signature.part}")
        return ", ".join(parts)

    def destination(self, destination: Destination) -> str:
        match destination:
            case Probe():
                return self.alias(destination.alias)
            case Select():
                return self.predicate(destination.predicate)
            case LookUp():
                return f"lookup in {self.alias(destination.alias)}{self._by(destination)}"
            case Park():
                return f"parked for {self.alias(destination.alias)}"
            case Hold():
                return f"held for {self.alias(destination.alias)}"
            case Leave():
                return "answer"

    def subject(self, signature: Signature, destination: Destination) -> str:
        """What brings rows there: `S.b = T.b`, where it is a join."""
        if not isinstance(destination, Probe):
            return self.destination(destination)
        return (
            self._join(signature.spanned, destination.alias)
            or f"every row of {self.alias(destination.alias)}"
        )

    def alias(self, number: int) -> str:
        return self._block.aliases[number].name

    def predicate(self, number: int) -> str:
        return next(p.text for p in self._block.predicates if p.number == number)

    def _by(self, lookup: LookUp) -> str:
        """` by by_isbn(isbn of b)`; nothing where the provider has been given up since."""
        of = self._providers()[lookup.alias]
        if lookup.provider >= len(of):
            return ""
        provider = of[lookup.provider]
        given = [
            f"{i.field} of {self.alias(i.column.alias)}" if i.column else i.field for i in provider.inputs
        ]
        return f" by {provider.method.name}({', '.join(given)})"

    def _join(self, spanned: int, alias: int) -> str:
        bit = 1 << alias
        conditions = []
        for equal in self._block.classes:
            mine = next((c for c in equal.columns if c.alias == alias), None)
            other = next((c for c in equal.columns if spanned >> c.alias & 1), None)
            if mine is not None and other is not None:
                conditions.append(f"{self._column(other)} = {self._column(mine)}")
        for predicate in self._block.predicates:
            aliases = predicate.aliases
            if aliases & bit and aliases & spanned and not aliases & ~(spanned | bit):
                conditions.append(predicate.text)
        return " and ".join(conditions)

    def _column(self, column: Column) -> str:
        return f"{self.alias(column.alias)}.{column.field}"


def said(name: str, value: float) -> str:
    """A figure of a policy's in words, to follow what it is a figure of."""
    match name:
        case "fan-out":
            return f"brings {number(value)} {'row' if value == 1.0 else 'rows'} for each"
        case "us a row":
            return f"takes {number(value)} µs a row"
        case "ms to the end":
            return f"is expected to take {number(value)} ms to the end"
        case "benefit by cost":
            return f"is worth {number(value)} a second"
        case "odds":
            return f"is drawn with a chance of {number(value)}"
        case "tickets":
            return f"has {number(value)} tickets"
        case "seconds of lookups" | "seconds of scan":
            return f"is expected to take {number(value)} s"
        case "seconds busy":
            return f"has been busy for {number(value)} s"
        case _:
            return f"has the {name} {number(value)}"


def number(value: float) -> str:
    """Short, and as exact as anybody can use."""
    if value != value or value in (float("inf"), float("-inf")):
        return {float("inf"): "infinite", float("-inf"): "minus infinite"}.get(value, "unknown")
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1_000 else f"{value:.3g}"
