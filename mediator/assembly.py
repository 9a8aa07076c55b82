"""Block + verdict -> eddy: which SteMs it shares, which it has for itself, and the policy that routes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

from mediator.binding.model import Verdict
from mediator.catalog.ceilings import Ceilings
from mediator.catalog.measured import Measurements
from mediator.catalog.model import Relation
from mediator.catalog.profile import NO_PROFILE, Profile
from mediator.clock import Clock
from mediator.eddy.backlog import BACKLOG, EVERYTHING
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.decisions import Watch
from mediator.eddy.eddy import ROOM, Eddy
from mediator.eddy.floating import Floating, WidestFirst
from mediator.eddy.goals.aiming import Aim
from mediator.eddy.goals.goal import Goal
from mediator.eddy.policies.benefit import Benefit
from mediator.eddy.policies.fixed import Fixed
from mediator.eddy.policies.foresight import HELD, Foresight
from mediator.eddy.policies.lottery import Lottery
from mediator.eddy.policies.naive import Naive
from mediator.eddy.policies.prior import NO_PRIOR, Prior, prior_of, supposed
from mediator.eddy.policies.random import AtRandom
from mediator.eddy.policies.rank import Rank
from mediator.eddy.policies.windowed import WINDOW, WindowedLottery
from mediator.eddy.policy import Policy
from mediator.eddy.run import Run
from mediator.eddy.selecting import SLICE
from mediator.errors import MediatorError
from mediator.flow.events import Landing
from mediator.query.model import Block, Preference
from mediator.state.columns import TextColumn
from mediator.state.coverage import FOREVER, Entry, Known
from mediator.state.hands import Hands
from mediator.state.stem import SteM
from mediator.state.vocabulary import share

LARGEST_BATCH = 1 << 16

POLICIES = ("foresight", "rank", "benefit", "windowed", "lottery", "naive", "random", "fixed")


@dataclass(slots=True)
class Settings:
    """What may be said about how a query is run."""

    policy: str = "foresight"
    goal: Goal = "all_rows"  # the dial between calls and time: first_rows, all_rows or fewest_calls
    order: tuple[int, ...] = ()  # of aliases, for the fixed policy
    seed: int = 0
    window: int = WINDOW  # rows after which the windowed lottery forgets
    revisit: int = 64  # batches of a signature that follow one routing decision at most
    held: float = HELD  # seconds of work for which the default policy does not think a choice over
    largest_batch: int = LARGEST_BATCH
    room: int = ROOM
    backlog: int = BACKLOG  # lookups that are sent where others might be better, however slow the site
    slice: float = SLICE  # seconds that testing a costly predicate may take at once; 0: row by row
    buffered: int = 200_000  # answers that may wait for their reader: when there are more the query rests
    kept: int = 1 << 23  # rows of a relation that are kept for other queries, where this one has no need to
    max_age: float = float("inf")  # seconds; what a SteM has held for longer is asked again
    max_calls: int | None = None  # requests that the query may send; what needs more is missing in its answer
    max_bytes: int | None = None  # that it may read
    max_seconds: float | None = None  # that it may take
    per_source: Mapping[str, Ceilings] = field(default_factory=dict)  # what it may spend at single sources
    prefer: Mapping[str, float] = field(default_factory=dict)  # conditions: rows that meet one weigh so much
    pause: Collection[str] = ()  # sources that are left alone at first
    boost: Mapping[str, float] = field(
        default_factory=dict
    )  # sources that are asked rather than others, by how much
    urgent: bool = (
        True  # lookups that more rows wait for go first; else in the order in which they were asked
    )
    partials: bool = False  # whether answers of which not all is known are told meanwhile
    stalled_after: float | None = None  # seconds of silence; else as long as a site's requests mostly take
    most_partials: int = 10_000  # that may be open at once
    engine: str = "local"  # where it runs (`engines.py`); what follows is for those that are elsewhere
    memory: int | None = (
        None  # bytes that a query's SteMs may take here before it moves, where it may; else a quarter
    )
    slots: int | None = None  # cells that are worked on at once; else as many as there are processors
    askers: int | None = None  # tasks that ask the sites; else as many as a cluster is large, and one here
    checkpoint: str | None = (
        None  # a folder that outlives the query, so that it can go on where it was killed
    )


class Stems:
    """The SteMs that queries share, one per relation."""

    def __init__(self, empty: Callable[[Relation], SteM] = SteM) -> None:
        self._stems: dict[str, SteM] = {}
        self._empty = empty  # makes a site's SteM; one whose news is kept, where anything is

    def put(self, stem: SteM) -> None:
        """What an earlier process left of a relation: where its queries start from."""
        self._stems[stem.relation.name] = stem

    def of(self, relation: Relation, now: float, max_age: float) -> SteM:
        """The relation's SteM. One that belongs to a single query, if its rows are no site's.

        A bag can't be added to twice, since equal rows are not told apart: where its rows are too old, or a scan was
        broken off, it starts anew, and queries that still look at the old rows keep them.
        """
        if not _lasts(relation):
            return SteM(relation) if relation.literal is None else _literal(relation, now)
        stem = self._stems.get(relation.name)
        if stem is not None:
            stem.catch_up(now)
        usable = stem is not None and (
            relation.repeats or stem.scanning or not stem.store.n or stem.covered((), (), now, max_age)
        )
        if stem is None or not usable:
            stem = self._stems[relation.name] = self._empty(relation)
        return stem

    def held(self) -> dict[str, SteM]:
        """Every relation's SteM, for a look at what is stored."""
        return dict(self._stems)


@dataclass(slots=True)
class House:
    """What all queries of a process share below the driver."""

    clock: Clock
    # What a step cost, as policies see it; by the clock, where there is nothing better.
    effort: Clock | None = None
    stems: Stems = field(default_factory=Stems)
    hands: Hands = field(default_factory=Hands)
    measured: Measurements = field(
        default_factory=Measurements
    )  # of the sites, by this process and earlier ones
    profile: Profile = NO_PROFILE  # of what was harvested


def assemble(
    block: Block,
    verdict: Verdict,
    house: House,
    settings: Settings,
    numbers: Iterator[int] | None = None,
    floating: Floating | None = None,
    watch: Watch | None = None,
    preferences: Sequence[Preference] = (),
) -> Eddy:
    """An eddy that has asked nothing yet. `watch` is who looks on."""
    now = house.clock()
    stems = {a.relation.name: house.stems.of(a.relation, now, settings.max_age) for a in block.aliases}
    _share_vocabularies(block, stems)
    run = Run(block, stems, settings.largest_batch)
    policy = policy_of(settings, block, verdict, prior_of(block, house.profile))
    policy = policy if watch is None else watch.around(policy)
    aim = Aim(
        settings.goal,
        block,
        house.measured,
        settings.max_calls,
        settings.per_source,
        settings.seed,
        house.profile,
    )
    toward = None if settings.policy == "random" else aim.toward(policy)  # else whatever is legal is tried
    eddy = Eddy(
        run,
        verdict,
        toward or policy,
        floating if floating is not None else WidestFirst(len(block.aliases)),
        house.clock,
        effort=house.effort,
        numbers=numbers,
        max_age=settings.max_age,
        revisit=settings.revisit,
        room=settings.room,
        slice=settings.slice,
        # What is only held, or waits for a scan, stands in nobody's way.
        backlog=settings.backlog if settings.goal != "fewest_calls" else EVERYTHING,
        hands=house.hands,
        watch=watch,
        thrift=aim.thrift(),
        preferences=preferences,
        urgent=settings.urgent,
    )
    for relation, looked in supposed(block, verdict, house.measured, house.profile):
        eddy.asking.pace.suppose(relation, looked)
    if toward is not None:
        toward.facts.asking = eddy.asking
    return eddy


def _share_vocabularies(block: Block, stems: Mapping[str, SteM]) -> None:
    """Columns of text that are to be equal number their strings together: those that outlive the query among each
    other, and those that do not."""
    for group in block.classes:
        for lasting in (True, False):
            relations = [(block.aliases[c.alias].relation, c.field) for c in group.columns]
            columns = [
                stems[relation.name].store.bare(field)
                for relation, field in relations
                if _lasts(relation) == lasting and field in relation.schema.names
            ]
            share([c for c in columns if isinstance(c, TextColumn)])


def _lasts(relation: Relation) -> bool:
    """Whether its SteM is there for other queries too."""
    return relation.literal is None and bool(relation.methods[0].mirrors)


def policy_of(settings: Settings, block: Block, verdict: Verdict, prior: Prior = NO_PRIOR) -> Policy:
    match settings.policy:
        case "foresight":
            graph = Graph.of(block)
            rules = partial(legal, graph=graph, providers=verdict.providers, chosen=verdict.chosen)
            return Foresight(graph, rules, settings.kept, settings.held, prior)
        case "rank":
            return Rank(settings.kept)
        case "benefit":
            return Benefit(settings.kept)
        case "windowed":
            return WindowedLottery(Random(settings.seed), settings.window, settings.kept)
        case "lottery":
            return Lottery(Random(settings.seed), settings.kept)
        case "naive":
            return Naive(settings.kept)
        case "random":
            return AtRandom(Random(settings.seed))
        case "fixed":
            return Fixed(settings.order or range(len(verdict.providers)), settings.kept)
        case other:
            raise MediatorError(f"There is no policy {other!r}; there are {', '.join(POLICIES)}")


def _literal(relation: Relation, now: float) -> SteM:
    """A SteM that holds all there is from the start."""
    assert relation.literal is not None
    stem = SteM(relation)
    stem.build(Landing(relation.literal), now)
    stem.coverage.note((), (), Entry(Known.COMPLETE, at=FOREVER))  # never too old, whatever `max_age` says
    return stem
