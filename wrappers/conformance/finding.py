"""What a check is, and what it can find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mediator.access.web.redaction import Redaction
from mediator.catalog.wrapper import Request
from wrappers.conformance.asking import shown

if TYPE_CHECKING:
    from wrappers.conformance.evidence import Evidence

Outcome = Literal["pass", "fail", "skip", "does not apply"]


@dataclass(frozen=True, slots=True)
class Look:
    """What a check saw. `request` is the one that showed it; `remedy` goes before the check's own."""

    outcome: Outcome
    why: str = ""
    request: Request | None = None
    remedy: str = ""


PASSED = Look("pass")


def failed(why: str, request: Request | None = None, remedy: str = "") -> Look:
    return Look("fail", why, request, remedy)


def skipped(why: str, remedy: str = "") -> Look:
    """It could not be told. The reason is shown: a check that was not made has not passed."""
    return Look("skip", why, remedy=remedy)


def not_for(why: str) -> Look:
    """There is nothing to check: the method has no pages, no mirrors, no batches."""
    return Look("does not apply", why)


@dataclass(frozen=True, slots=True)
class Check:
    """One promise of an access method. It says nothing while one of `after` fails, and is then skipped.

    One that compares `ways` says nothing either while another way into the relation fails in one of them.
    """

    name: str
    promise: str
    remedy: str
    look: Callable[[Evidence], Look]
    after: tuple[str, ...] = ()
    ways: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found out about one access method."""

    relation: str
    method: str
    check: str
    promise: str
    outcome: Outcome
    why: str = ""
    request: str = ""
    remedy: str = ""

    @property
    def place(self) -> str:
        return f"{self.relation}.{self.method}" if self.method else self.relation

    def cleaned(self, redaction: Redaction) -> Finding:
        """Without secrets: a site may repeat them, in its rows and in its links."""
        clean = redaction.clean
        return replace(self, why=clean(self.why), request=clean(self.request), remedy=clean(self.remedy))

    def as_dict(self) -> dict[str, object]:
        return {
            "relation": self.relation,
            "method": self.method,
            "check": self.check,
            "promise": self.promise,
            "outcome": self.outcome,
            "why": self.why,
            "request": self.request,
            "remedy": self.remedy,
        }

    def told(self) -> str:
        """Everything, for people: what was found, what showed it, what to change."""
        lines = [f"{self.place}: {self.check}: {self.why}"]
        lines += [f"  promised: {self.promise}"]
        lines += [f"  shown by: {self.request}"] if self.request else []
        lines += [f"  to do:    {self.remedy}"] if self.remedy else []
        return "\n".join(lines)


def found(relation: str, method: str, check: Check, look: Look, redaction: Redaction) -> Finding:
    """The look in words, without secrets."""
    remedy = look.remedy or (check.remedy if look.outcome == "fail" else "")
    request = "" if look.request is None else redaction.clean(shown(look.request))
    why = redaction.clean(look.why)
    return Finding(relation, method, check.name, check.promise, look.outcome, why, request, remedy)
