"""One query's trace: a header, then a line for whatever happened, and a last line that says how it ended.

    {"trace": 1, "sql": ..., "policy": ..., "seed": ..., "settings": ..., "blocks": {NAME: {"aliases": ..., ...}}}
    {"at": S, "block": NAME, "verb": "choose", "told": [...], "said": ...}     what a policy was asked or told
    {"at": S, "decision": {...}}                                               with its reason
    {"at": S, "ask": N, "relation": ..., "method": ..., "bind_fields": [...], "bindings": COUNT}
    {"at": S, "arrived": N, "rows": COUNT}
    {"at": S, "ended": N, "how": "answered" | "failed" | "cancelled", "bindings": COUNT, "cause": KIND}
    {"at": S, "over": "complete" | "partial", "why": ..., "rows": COUNT, "lines": COUNT}

Seconds are counted from the query's start.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from mediator.assembly import Settings
from mediator.binding.model import Verdict
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.clock import Clock
from mediator.eddy.decisions import Decision, Watch
from mediator.eddy.policy import Policy
from mediator.flow.events import Arrived, Ask, Cancel, Event, Failed
from mediator.output.report import Report
from mediator.query.model import BlockStage, Query
from mediator.tracing.ground import of_block, of_settings
from mediator.tracing.recording import recorded
from mediator.tracing.terms import Json
from mediator.tracing.writing import Writer

VERSION = 1

Tell = Callable[[Decision], None]


class Trace:
    """Where it is kept, and of which query. `clean` takes secrets out of a text."""

    def __init__(
        self,
        path: Path,
        query: Query,
        verdicts: Mapping[str, Verdict],
        settings: Settings,
        clean: Callable[[str], str],
        profile: Profile = NO_PROFILE,
    ) -> None:
        self.path = path
        self._header = header_of(query, verdicts, settings, profile)
        self._clean = clean
        self._lines = 0
        self._rows = 0
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._closed = False

    def open(self, clock: Clock) -> None:
        """Raises `MediatorError` where the file cannot be written. Nothing is, once it has been closed: whoever opens
        it in a thread may have gone meanwhile."""
        writer, header = Writer(self.path), _spelt(self._header, self._clean)
        with self._lock:
            if not self._closed:
                self._clock, self._began = clock, clock()
                self._lines, self._writer = 1, writer
                writer.put(header)
                return
        writer.close()

    @property
    def behind(self) -> bool:
        """Whether the query is to rest until `caught_up`."""
        return self._writer is not None and self._writer.behind

    def caught_up(self) -> None:
        """Wait for the disk."""
        if self._writer is not None:
            self._writer.caught_up()

    @property
    def error(self) -> str:
        """Why it is not whole; nothing where it is."""
        said = self._writer.error if self._writer is not None else ""
        return f"the trace {self.path} is not whole: {said}" if said else ""

    def recorded(self, block: str, policy: Policy) -> Policy:
        """The policy, with a note of all that it is told."""
        return recorded(policy, partial(self._noted, block))

    def decided(self, decision: Decision) -> None:
        self._note({"decision": decision.to_dict()}, clean=True)

    def asked(self, command: Ask | Cancel) -> None:
        if isinstance(command, Cancel):
            count = len(command.bindings) or None  # none: all that is left of it
            self._note({"ended": command.ask, "how": "cancelled", "bindings": count})
            return
        said = {"ask": command.number, "relation": command.relation, "method": command.method}
        self._note({**said, "bind_fields": list(command.bind_set), "bindings": len(command.bindings)})

    def happened(self, event: Event) -> None:
        match event:
            case Arrived():
                self._note({"arrived": event.ask, "rows": event.landing.rows.num_rows})
            case Failed():
                count = len(event.bindings)
                self._note(
                    {"ended": event.ask, "how": "failed", "bindings": count, "cause": event.cause.kind}
                )
            case _:
                self._note({"ended": event.ask, "how": "answered", "bindings": len(event.bindings)})

    def answered(self, rows: int) -> None:
        self._rows += rows

    def close(self, report: Report) -> None:
        """The last line, and all that waited is in the file. What is noted later is not."""
        how, why = "complete" if report.complete else "partial", self._clean(report.stopped)
        with self._lock:
            writer, over, self._closed = self._writer, self._closed, True
            if writer is not None and not over:
                last = {"at": self._now(), "over": how, "why": why, "rows": self._rows}
                writer.put(_spelt({**last, "lines": self._lines + 1}))
        if writer is not None:
            writer.close()

    def _noted(self, block: str, verb: str, told: Json, said: Json, lost: str) -> None:
        line = {"block": block, "verb": verb}
        self._note({**line, "lost": lost} if lost else {**line, "told": told, "said": said})

    def _note(self, line: Mapping[str, Json], clean: bool = False) -> None:
        if self._writer is not None:
            self._put({"at": self._now(), **line}, clean)

    def _put(self, line: Mapping[str, Json], clean: bool = False) -> None:
        data = _spelt(line, self._clean if clean else str)
        with self._lock:
            if self._writer is not None and not self._closed:
                self._lines += 1
                self._writer.put(data)

    def _now(self) -> float:
        return round(self._clock() - self._began, 6)


def _spelt(line: Mapping[str, Json], clean: Callable[[str], str] = str) -> bytes:
    text = json.dumps(line, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return clean(text).encode("utf-8", "backslashreplace") + b"\n"


def watched(block: str, trace: Trace | None, tell: Tell | None) -> Watch | None:
    """Who looks on at a block: a trace, somebody who is told, both or nobody."""
    if trace is None:
        return None if tell is None else Watch(block, tell)

    def decided(decision: Decision) -> None:
        trace.decided(decision)
        if tell is not None:
            tell(decision)

    return Watch(block, decided, partial(trace.recorded, block))


def header_of(
    query: Query, verdicts: Mapping[str, Verdict], settings: Settings, profile: Profile = NO_PROFILE
) -> dict[str, Json]:
    """The first line."""
    blocks = [stage for stage in query.stages if isinstance(stage, BlockStage)]
    return {
        "trace": VERSION,
        "sql": query.sql,
        "policy": settings.policy,
        "seed": settings.seed,
        "settings": of_settings(settings),
        "blocks": {stage.name: of_block(stage.block, verdicts[stage.name], profile) for stage in blocks},
    }
