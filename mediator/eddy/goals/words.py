"""What a goal changes about a query, in words, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mediator.binding.advice import called
from mediator.binding.choice import choose
from mediator.binding.counting import Counting, Known
from mediator.binding.explain import described
from mediator.binding.model import Provider, Verdict
from mediator.binding.ranges import Range
from mediator.eddy.goals.goal import Goal
from mediator.eddy.goals.thrift import Release
from mediator.query.model import Block

_MEANS: dict[Goal, str] = {
    "first_rows": "lookups go at once, also while a scan may bring the same rows; what is late is sent to a second "
    "mirror sooner",
    "all_rows": "lookups go at once; beside a scan, unless it is expected to end before they are answered",
    "fewest_calls": "lookups wait until nothing else can move; then the access goes first that is likely to leave the "
    "least to be asked in all; what is late is not sent twice",
}


def meant(goal: Goal) -> str:
    """What it comes to for every query."""
    return f"goal {goal}: {_MEANS[goal]}"


def provided(goal: Goal, block: Block, verdict: Verdict, known: Known) -> Iterator[str]:
    """What it comes to for the aliases that several ways lead to: what each would be asked, by all that is known."""
    if block.never:
        return
    for alias in block.aliases:
        ways = verdict.providers[alias.number]
        indexes, scanned = [p for p in ways if p.depends], any(p.method.kind == "scan" for p in ways)
        if scanned and indexes:
            yield f"{called(alias)}: {_beside_a_scan(goal)}"
        elif goal == "fewest_calls" and len(ways) > 1:
            costs = [(p, _lookups(block, verdict, p, known)) for p in ways]
            said = "; ".join(f"{described(block, p)}: {_shown(n)}" for p, n in costs if n is not None)
            yield f"{called(alias)}: provided by the cheapest, once the bindings can be counted: {said}"


def released(block: Block, release: Release) -> str:
    """`s by a: 3 of 43 bindings; foreseen: 55 requests in all if s by a comes first, 111 if u by b does`."""
    some = f"{release.bindings:,} of {release.of:,}" if release.bindings < release.of else f"{release.of:,}"
    first, *others = sorted(release.expected, key=lambda foreseen: foreseen[0] != release.provider)
    said = [f"{first[1]:,.0f} requests in all if {_way(block, first[0])} comes first"]
    said += [f"{requests:,.0f} if {_way(block, provider)} does" for provider, requests in others]
    bindings = "binding" if some == "1" else "bindings"
    return f"{_way(block, release.provider)}: {some} {bindings}; foreseen: {', '.join(said)}"


def _way(block: Block, provider: Provider) -> str:
    return f"{called(block.aliases[provider.alias])} by {' and '.join(provider.bind_set)}"


def _beside_a_scan(goal: Goal) -> str:
    match goal:
        case "first_rows":
            return "looked up at once, while the scan goes on"
        case "all_rows":
            return "looked up while the scan goes on, as long as that is expected to be sooner"
        case _:
            return "scanned, and looked up only where the scan fails"


def _lookups(block: Block, verdict: Verdict, provider: Provider, known: Known) -> Range | None:
    """That an alias would be asked if this were its provider."""
    ways = [list(of) for of in verdict.providers]
    ways[provider.alias] = [provider]
    again = choose(ways)
    if again is None:
        return None
    counting = Counting(block, replace(verdict, chosen=again[0], order=again[1]), known)
    counting.count()
    return counting.counts[provider.alias].lookups


def _shown(lookups: Range) -> str:
    low, high = f"{lookups.low:,.0f}", f"{lookups.high:,.0f}"
    return f"{high} lookup{'s' * (high != '1')}" if low == high else f"{low} to {high} lookups"
