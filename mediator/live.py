"""A look at a running query, as plain data: how it routes, what floats, what is asked, what is stored and covered.

Made in between two turns, and never changed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mediator.access.statistics import SourceStatistics
from mediator.eddy.decisions import Decision, Figures, plain
from mediator.eddy.destinations import Destination
from mediator.eddy.eddy import Eddy
from mediator.eddy.flows import Flow
from mediator.eddy.goals.words import released
from mediator.flow.batch import Signature


@dataclass(frozen=True, slots=True)
class Share:
    """What of a signature's rows went to one destination, and what came of it."""

    destination: str
    chosen: bool  # the next batch goes there
    batches: int
    rows: int
    share: float  # of the signature's rows
    fan_out: float | None  # measured, as is the cost; none where nothing was
    us_a_row: float | None
    figures: Figures  # what the last decision went by; none where nobody looks on

    def to_dict(self) -> dict[str, object]:
        return {
            "destination": self.destination,
            "chosen": self.chosen,
            "batches": self.batches,
            "rows": self.rows,
            "share": self.share,
            "fan_out": self.fan_out,
            "us_a_row": self.us_a_row,
            "figures": plain(self.figures),
        }


@dataclass(frozen=True, slots=True)
class SignatureLive:
    signature: str  # in words
    rows: int
    shares: tuple[Share, ...]  # the largest first

    def to_dict(self) -> dict[str, object]:
        return {"signature": self.signature, "rows": self.rows, "shares": [s.to_dict() for s in self.shares]}


@dataclass(frozen=True, slots=True)
class StemLive:
    """One relation's. Counts are of lookups; a scan is one."""

    relation: str
    stored: int  # rows
    given: int  # of them to this query
    whole: bool  # everything has arrived
    scanning: int  # scans under way, this query's and others'
    asked: int
    answered: int
    failed: int
    served: int  # from what was stored already
    parked: int  # rows that wait without having asked

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class BlockLive:
    block: str
    policy: str
    batches: int  # that float between two steps, and their rows
    rows: int
    waiting: int  # rows that have come, and do not float yet
    signatures: tuple[SignatureLive, ...]
    stems: tuple[StemLive, ...]
    decisions: int  # that have changed so far; 0 where nobody looks on
    last: tuple[Decision, ...]  # the latest of them
    releases: tuple[str, ...] = ()  # what waited for all else and was asked then, in words

    def to_dict(self) -> dict[str, object]:
        return {
            "block": self.block,
            "policy": self.policy,
            "floating": {"batches": self.batches, "rows": self.rows, "waiting": self.waiting},
            "signatures": [s.to_dict() for s in self.signatures],
            "stems": [s.to_dict() for s in self.stems],
            "decisions": self.decisions,
            "last": [d.to_dict() for d in self.last],
            "releases": list(self.releases),
        }


@dataclass(frozen=True, slots=True)
class SourceLive:
    """One source's, by all queries of the process."""

    source: str
    asked: int  # bindings
    answered: int
    failed: int
    in_flight: int  # requests
    queued: int  # what waits for its turn; how much of it the limiter holds back
    waiting: int
    requests: int
    rows: int

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Live:
    blocks: tuple[BlockLive, ...] = ()
    sources: tuple[SourceLive, ...] = ()
    finished: bool = False

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "finished": self.finished,
            "blocks": [b.to_dict() for b in self.blocks],
            "sources": [s.to_dict() for s in self.sources],
        }

    def with_sources(self, statistics: Iterable[SourceStatistics]) -> Live:
        """With what is asked of these sources."""
        return replace(self, sources=tuple(_source(s) for s in statistics))


def block_live(name: str, policy: str, eddy: Eddy) -> BlockLive:
    """One block as it stands."""
    decisions = eddy.routing.decisions
    floating = eddy.floating
    return BlockLive(
        block=name,
        policy=policy,
        batches=len(floating),
        rows=floating.rows,
        waiting=max(0, eddy.load - floating.rows),
        signatures=tuple(_signatures(eddy)),
        stems=tuple(_stems(eddy)),
        decisions=decisions.count if decisions is not None else 0,
        last=tuple(decisions.recent) if decisions is not None else (),
        releases=tuple(released(eddy.run.block, release) for release in eddy.releases),
    )


def sources_of(eddy: Eddy) -> list[str]:
    """Whoever may be asked for the block's rows."""
    relations = [alias.relation for alias in eddy.run.block.aliases]
    return [mirror.source for r in relations for method in r.methods for mirror in method.mirrors]


def _signatures(eddy: Eddy) -> Iterable[SignatureLive]:
    routing, decisions = eddy.routing, eddy.routing.decisions
    arrays = routing.arrays()
    for signature in routing.flows.signatures():
        flows = routing.flows.of(signature)
        array = arrays.get(signature, ())
        figures = decisions.figures(signature) if decisions is not None else {}
        yield _signature(eddy, signature, flows, array, figures)


def _signature(
    eddy: Eddy,
    signature: Signature,
    flows: Mapping[Destination, Flow],
    array: tuple[Destination, ...],
    figures: Mapping[Destination, Figures],
) -> SignatureLive:
    rows = sum(flow.rows for flow in flows.values())
    shares = []
    for destination in dict.fromkeys([*flows, *array]):
        flow = flows.get(destination, Flow())
        shares.append(
            Share(
                destination=eddy.wording.destination(destination),
                chosen=array[:1] == (destination,),
                batches=flow.batches,
                rows=flow.rows,
                share=flow.rows / rows if rows else 0.0,
                fan_out=flow.fan_out,
                us_a_row=None if flow.cost is None else 1e6 * flow.cost,
                figures=dict(figures.get(destination, {})),
            )
        )
    shares.sort(key=lambda share: -share.rows)
    return SignatureLive(eddy.wording.signature(signature), rows, tuple(shares))


def _stems(eddy: Eddy) -> Iterable[StemLive]:
    for name, tally in eddy.asking.tallies.items():
        view = eddy.run.views[name]
        yield StemLive(
            relation=name,
            stored=view.stem.store.n,
            given=view.count,
            whole=view.coverage.whole,
            scanning=view.stem.scanning,
            asked=tally.asked,
            answered=tally.answered,
            failed=tally.failed,
            served=tally.served,
            parked=tally.parked,
        )


def _source(found: SourceStatistics) -> SourceLive:
    return SourceLive(
        found.source,
        found.asked,
        found.answered,
        found.failed,
        found.in_flight,
        found.queued,
        found.waiting,
        found.requests,
        found.rows,
    )
