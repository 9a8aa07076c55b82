"""A trace, read back from its file, line by line."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mediator.errors import MediatorError
from mediator.tracing.trace import VERSION

_LONGEST = 1 << 26  # characters of a line: no trace has longer ones, and a foreign file may be one line


_HEADER = {"sql": str, "policy": str, "seed": int, "settings": dict, "blocks": dict}
_KINDS: Mapping[type, str] = {str: "text", int: "whole number", dict: "object"}
_SHORT = 60  # characters of what is wrong that are shown


class TraceError(MediatorError):
    """A file that is no trace, not a whole one, or none that can be replayed here."""


@contextmanager
def understanding(path: Path, number: int) -> Iterator[None]:
    """Whatever a line lacks, or has in a form that no trace has, is told with its number: a `TraceError`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        lacking = isinstance(error, KeyError)
        what = f"there is no {error}" if lacking else shortened(error) or type(error).__name__
        raise TraceError(f"{path}: line {number}: cannot be understood: {what}") from None


def shortened(what: object) -> str:
    """In one line, of which a foreign file does not say how long it is."""
    return textwrap.shorten(repr(what) if not isinstance(what, Exception) else str(what), _SHORT)


@dataclass(frozen=True)
class Header:
    """Of which query, and by which policy."""

    sql: str
    policy: str
    seed: int
    settings: Mapping[str, Any]
    blocks: Mapping[str, Mapping[str, Any]]


@dataclass
class Reader:
    """`header` is there at once; `over` is the last line, once `lines` has come to it."""

    path: Path
    header: Header = field(init=False)
    over: Mapping[str, Any] | None = None
    read: int = 0  # lines

    def __post_init__(self) -> None:
        """Raises `TraceError` for a file that is no trace, or of another version."""
        first = next(self._objects(), None)
        if first is None or "trace" not in first:
            raise TraceError(f"{self.path}: not a trace: `mediator query --trace FILE` writes one")
        if first["trace"] != VERSION:
            raise TraceError(
                f"{self.path}: a trace of version {first['trace']!r}, and this mediator reads version {VERSION}: "
                "read it with the one that wrote it, or record it anew"
            )
        self.header = Header(**{name: self._of_header(first, name, kind) for name, kind in _HEADER.items()})
        for name, block in self.header.blocks.items():
            self._of_header({name: block}, name, dict)

    def _of_header(self, said: Mapping[str, Any], name: str, kind: type) -> Any:
        if name not in said:
            raise TraceError(f"{self.path}: line 1: a trace's header without {name!r}")
        if not isinstance(said[name], kind):
            what = f"{name!r} is {shortened(said[name])}, and no {_KINDS[kind]}"
            raise TraceError(f"{self.path}: line 1: of a trace's header {what}")
        return said[name]

    def lines(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """All but the header and the last, with their numbers. Raises `TraceError` at the end if there is no last."""
        self.over = None
        for number, line in enumerate(self._objects(), 1):
            self.read = number
            if self.over is not None:
                raise TraceError(f"{self.path}: line {number}: a trace goes on after its last line")
            if "over" in line:
                self.over = line
            elif number > 1:
                yield number, line
        if self.over is None:
            raise self._cut_short()
        if self.over.get("lines") != self.read:
            said = self.over.get("lines")
            raise TraceError(f"{self.path}: it has {self.read} lines, and says that they are {said}")

    def _objects(self) -> Iterator[dict[str, Any]]:
        try:
            with self.path.open(encoding="utf-8") as file:
                for number, text in enumerate(iter(lambda: file.readline(_LONGEST), ""), 1):
                    yield self._object(number, text)
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TraceError(f"{self.path}: not a trace: not UTF-8 text") from None

    def _object(self, number: int, text: str) -> dict[str, Any]:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict):
            return line
        if number == 1:
            raise TraceError(f"{self.path}: not a trace: `mediator query --trace FILE` writes one")
        if not text.endswith("\n"):
            self.read = number - 1
            raise self._cut_short()
        raise TraceError(f"{self.path}: line {number}: no JSON object, as every line of a trace is")

    def _cut_short(self) -> TraceError:
        return TraceError(
            f"{self.path}: cut short after line {self.read}: the run was killed, or still goes on; "
            "a trace ends with a line that says how the query did"
        )
