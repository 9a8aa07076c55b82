"""The whole suite: ask, then look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mediator.access.web.redaction import Redaction
from mediator.catalog.model import Relation
from mediator.errors import CatalogError
from wrappers.conformance.asking import Asker
from wrappers.conformance.checks import CHECKS
from wrappers.conformance.evidence import Evidence
from wrappers.conformance.finding import Check, Finding, Look, found, not_for, skipped
from wrappers.conformance.gathering import gathered

_ALWAYS = ("recorded",)  # what is not on the cassette says nothing of the site

DECLARATION = Check(
    "declaration-valid",
    "the declaration says something that can be meant",
    "put right what is named",
    lambda _: not_for("it is looked at before anything is asked"),
)


async def findings_of(asker: Asker, relations: Iterable[Relation]) -> list[Finding]:
    """Asks the sites of these relations, and gives a finding for each check of each access method."""
    findings = examined(await gathered(asker, relations))
    return [finding.cleaned(asker.redaction) for finding in findings]


def examined(evidence: Sequence[Evidence]) -> list[Finding]:
    """What the checks see. One that is only a consequence of another one's failure is skipped."""
    looks = [{check.name: _seen(check, e) for check in CHECKS} for e in evidence]
    failing = [{name for name, look in seen.items() if look.outcome == "fail"} for seen in looks]
    findings = []
    for e, seen, here in zip(evidence, looks, failing, strict=True):
        redaction = Redaction()
        for secret in e.secrets:
            redaction.add(secret)
        beside = [
            f for other, f in zip(evidence, failing, strict=True) if other.relation.name == e.relation.name
        ]
        for check in CHECKS:
            look = seen[check.name]
            names = set().union(*beside) if check.ways else here
            cause = next(
                (name for name in (*_ALWAYS, *check.after) if name in names and name != check.name), None
            )
            if cause is not None and look.outcome in ("fail", "skip"):
                look = skipped(f"says nothing while {cause} fails")
            findings.append(found(e.relation.name, e.method.name, check, look, redaction))
    return findings


def invalid(error: CatalogError) -> Finding:
    """The finding of a declaration that cannot be used. Nothing else can be said of it."""
    return found("", "", DECLARATION, Look("fail", str(error)), Redaction())


def _seen(check: Check, evidence: Evidence) -> Look:
    try:
        return check.look(evidence)
    except Exception as error:
        # A wrapper's own code runs inside of some checks: what it raises is its fault, and not the suite's end.
        return Look("fail", f"the wrapper fails: {error!r}", None)
