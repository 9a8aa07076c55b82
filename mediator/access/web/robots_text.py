"""What a robots.txt says (RFC 9309). Pure: bytes in, rules out.

The group that names us counts, else the one for everybody; several groups of one name are one. Of the rules that match
a path the longest decides, and where two are as long the one that allows. Whatever cannot be read is passed over, and
what is not forbidden is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from mediator.catalog.wrapper import Request

ROBOTS_TXT = Request("/robots.txt", rooted=True)
AGENT = "mediator"
READ = 500 << 10  # bytes; what stands after them is not looked at
SLOWEST = 60.0  # seconds between two requests: a site that asks for more is not waited for any longer

_EVERYBODY = "*"
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"[A-Za-z_-]+")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line. `*` stands for anything, `$` at the end for the end of the path."""

    allows: bool
    pattern: str  # written as `_canonical` has it
    start: str  # what stands before the first `*`: by it most rules are told not to match

    def matches(self, path: str) -> bool:
        return path.startswith(self.start) and self._goes_on(path)

    def _goes_on(self, path: str) -> bool:
        bound = self.pattern.endswith("$")
        _, *rest = self.pattern.removesuffix("$").split("*")
        if not rest:
            return not bound or len(path) == len(self.start)
        last = rest.pop() if bound else ""
        at = len(self.start)
        for piece in rest:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return not bound or (path.endswith(last) and len(path) - len(last) >= at)

    def __str__(self) -> str:
        return f"{'Allow' if self.allows else 'Disallow'}: {self.pattern}"


@dataclass(frozen=True)
class Robots:
    """The rules that hold for us, the one that decides before the others, and the seconds between two requests."""

    rules: tuple[Rule, ...] = ()
    delay: float = 0.0

    def forbidding(self, path: str) -> Rule | None:
        """The rule that forbids a path (with its query); none where it may be asked."""
        path = _literal(path)
        if path == ROBOTS_TXT.path:
            return None
        decides = next((rule for rule in self.rules if rule.matches(path)), None)
        return decides if decides is not None and not decides.allows else None


@dataclass
class _Group:
    named: bool = False
    rules: list[Rule] = field(default_factory=list)
    delay: float | None = None


def parse(body: bytes, agent: str = AGENT) -> Robots:
    """The rules for this agent."""
    groups = {agent.lower(): _Group(), _EVERYBODY: _Group()}
    current: list[_Group] = []
    naming = False  # the lines before this one named who the rules that follow are for
    for key, value in _lines(body):
        if key == "user-agent":
            if not naming:
                current = []
            naming = True
            group = groups.get(_name(value))
            if group is not None:
                group.named = True
                current.append(group)
        elif key in ("allow", "disallow"):
            naming = False
            for group in current if value else ():
                group.rules.append(_rule(key == "allow", value))
        elif key == "crawl-delay" and _NUMBER.fullmatch(value):
            # No part of the standard: it must not end a group, and is for those who are named before it.
            for group in current:
                group.delay = min(float(value), SLOWEST) if group.delay is None else group.delay
    ours = groups[agent.lower()]
    chosen = ours if ours.named else groups[_EVERYBODY]
    ordered = sorted(dict.fromkeys(chosen.rules), key=lambda rule: (-len(rule.pattern), not rule.allows))
    return Robots(tuple(ordered), chosen.delay or 0.0)


def _lines(body: bytes) -> Iterator[tuple[str, str]]:
    """Each line's key in small letters, and its value."""
    read = body[:READ]
    text = read.decode("utf-8", "surrogateescape").removeprefix(_MARK)
    lines = _LINE_ENDS.split(text)
    if len(body) > READ:
        lines.pop()  # half a line might say something else than the whole
    for line in lines:
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


def _name(value: str) -> str:
    if value == _EVERYBODY or value.startswith("* "):
        return _EVERYBODY
    token = _TOKEN.match(value)
    return token[0].lower() if token else ""


def _rule(allows: bool, value: str) -> Rule:
    """A `$` that is not at the end is a letter like any other."""
    body, end = (value[:-1], "$") if value.endswith("$") else (value, "")
    pattern = re.sub(r"\*+", "*", _canonical(body)).replace("$", "%24")
    return Rule(allows, pattern + end, pattern.partition("*")[0])


def _literal(path: str) -> str:
    """A path that is asked for: nothing in it stands for anything else."""
    return _canonical(path).replace("*", "%2A").replace("$", "%24")


def _canonical(path: str) -> str:
    """Equal for paths that mean the same: escapes where they are needed, and only there."""
    octets = path.encode("utf-8", "surrogateescape")
    escaped = "".join(chr(o) if 0x20 < o < 0x7F else f"%{o:02X}" for o in octets)
    return _ESCAPED.sub(_as_needed, escaped)


def _as_needed(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if _UNRESERVED.fullmatch(char) else f"%{match[1].upper()}"
