"""A trace, replayed: its policies are made anew and told exactly what they were told.

The same policy must then say the same, since it looks at nothing else: neither clock nor rows, and its chance comes
from the seed. Another policy says where it would have sent the rows instead. It is told what came of the recorded
choices, not of its own: what it says is a second opinion, and no second run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from mediator.assembly import POLICIES, Settings, policy_of
from mediator.binding.model import Verdict
from mediator.eddy.destinations import Destination
from mediator.eddy.policies.prior import Prior
from mediator.eddy.policy import Policy, Visit
from mediator.eddy.wording import Wording
from mediator.errors import MediatorError
from mediator.flow.batch import Signature
from mediator.query.model import Block
from mediator.tracing.ground import block_of, prior_in, settings_of, verdict_of
from mediator.tracing.reading import Header, TraceError, understanding
from mediator.tracing.recording import UNHEARD
from mediator.tracing.terms import heard, told

_FIRST = 10  # differences that are told one by one


@dataclass(frozen=True, slots=True)
class Difference:
    """The policy says something else than on record."""

    line: int  # of the trace
    at: float
    block: str
    verb: str
    recorded: str  # in words, as is what is said now
    now: str
    where: str = ""  # the signature in words, where there is one

    def __str__(self) -> str:
        what = f"{self.where}: {self.recorded}" if self.where else f"{self.verb}: {self.recorded}"
        return f"line {self.line}, after {self.at:.3f} s, {self.block}: {what}, and now {self.now}"


@dataclass
class Replay:
    """What came of it. Rows are those of the batches that followed a choice."""

    policy: str
    recorded: str  # the policy on record
    told: int = 0
    choices: int = 0
    rows: int = 0
    differences: int = 0
    first: list[Difference] = field(default_factory=list)
    elsewhere: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # rows: signature, then, now
    rows_elsewhere: int = 0

    @property
    def same(self) -> bool:
        return not self.differences

    @property
    def share(self) -> float:
        """Of the rows that a choice was made for, those that would have gone elsewhere."""
        return self.rows_elsewhere / self.rows if self.rows else 0.0


class Record(Protocol):
    """A trace, wherever it is kept."""

    path: Path
    header: Header

    def lines(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Numbered, without the header and the last."""
        ...


def replay(record: Record, policy: str | None = None) -> Replay:
    """With the recorded policy, or with another. Raises `TraceError` where that cannot be."""
    header = record.header
    found = Replay(policy or header.policy, header.policy)
    blocks = {name: _Block(name, said, record, found) for name, said in header.blocks.items()}
    for number, line in record.lines():
        if "verb" in line:
            block = blocks.get(str(line.get("block", "")))
            if block is None:
                raise TraceError(f"{record.path}: line {number}: of a block that the header does not have")
            with understanding(record.path, number):
                block.tell(number, line)
    for block in blocks.values():
        block.settle()
    return found


class _Block:
    """One block's policy, made anew."""

    def __init__(self, name: str, said: Mapping[str, Any], record: Record, found: Replay) -> None:
        self._name = name
        self._path = record.path
        self._found = found
        self._other = found.policy != found.recorded
        try:
            self._block, verdict, prior = block_of(said), verdict_of(said), prior_in(said)
            settings = replace(settings_of(record.header.settings), policy=found.policy)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise TraceError(
                f"{record.path}: line 1: the header of {name} cannot be understood: {error}"
            ) from None
        self._policy = _made(settings, self._block, verdict, prior, record)
        self._words = Wording(self._block, lambda: verdict.providers)
        self._standing: dict[Signature, _Choice] = {}

    def tell(self, number: int, line: Mapping[str, Any]) -> None:
        """One line of the trace, and whether the policy still says the same."""
        if "lost" in line:
            raise TraceError(
                f"{self._path}: line {number}: the policy was told something that a trace cannot hold "
                f"({line['verb']}: {line['lost']}), so it cannot be replayed"
            )
        verb, arguments, recorded = str(line["verb"]), heard(line["told"]), line["said"]
        said = self._said(number, verb, arguments)
        self._found.told += 1
        if verb == "choose":
            self._chose(number, line, arguments, heard(recorded), said)
        else:
            if verb == "learn":
                self._went(arguments[0])
            elif verb == "sample" and recorded:
                self._standing.pop(arguments[0], None)  # a trial with a few rows: the choice comes after it
            if not self._other and verb not in UNHEARD and told(said) != recorded:
                self._differs(number, line, str(recorded), str(told(said)))

    def settle(self) -> None:
        """Count the choices that stand at the end."""
        for choice in self._standing.values():
            self._count(choice)
        self._standing.clear()

    def _said(self, number: int, verb: str, arguments: tuple[Any, ...]) -> Any:
        method = getattr(self._policy, verb, None)
        if not callable(method) or verb.startswith("_"):
            raise TraceError(f"{self._path}: line {number}: no policy here knows the verb {verb!r}")
        try:
            return method(*arguments)
        except MediatorError:
            raise
        except Exception as error:
            what = f"{self._found.policy} cannot be told what was told here ({verb}): {error!r}"
            raise TraceError(f"{self._path}: line {number}: {what}") from error

    def _chose(
        self, number: int, line: Mapping[str, Any], arguments: tuple[Any, ...], recorded: Any, said: Any
    ) -> None:
        signature, _, situation = arguments[:3]
        if (before := self._standing.pop(signature, None)) is not None:
            self._count(before)
        self._standing[signature] = _Choice(signature, recorded, said, situation.rows)
        self._found.choices += 1
        if said != recorded:
            words = self._words
            where = words.signature(signature)
            self._differs(number, line, words.destination(recorded), words.destination(said), where)

    def _went(self, visit: Visit) -> None:
        choice = self._standing.get(visit.signature)
        if choice is not None and choice.recorded == visit.destination:
            choice.went += visit.rows_in

    def _count(self, choice: _Choice) -> None:
        rows = max(choice.rows, choice.went)
        self._found.rows += rows
        if choice.said != choice.recorded:
            self._found.rows_elsewhere += rows
            words = self._words
            where = words.signature(choice.signature)
            then, now = words.destination(choice.recorded), words.destination(choice.said)
            self._found.elsewhere[where, then, now] += rows

    def _differs(
        self, number: int, line: Mapping[str, Any], recorded: str, now: str, where: str = ""
    ) -> None:
        self._found.differences += 1
        if len(self._found.first) < _FIRST:
            at, verb = float(line.get("at", 0.0)), str(line["verb"])
            self._found.first.append(Difference(number, at, self._name, verb, recorded, now, where))


@dataclass(slots=True)
class _Choice:
    """One that stands until the next for its signature."""

    signature: Signature
    recorded: Destination
    said: Destination
    rows: int  # of the batch that it was made for
    went: int = 0  # rows of the visits that followed it


def _made(settings: Settings, block: Block, verdict: Verdict, prior: Prior, record: Record) -> Policy:
    if settings.policy not in POLICIES:
        known = ", ".join(POLICIES)
        raise TraceError(f"{record.path}: there is no policy {settings.policy!r} here; there are {known}")
    return policy_of(settings, block, verdict, prior)
