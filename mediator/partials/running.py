"""One query's partial answers while it runs: from the clock's word that a source is silent to records for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mediator.assembly import House, Settings
from mediator.catalog.ceilings import NO_CEILINGS
from mediator.catalog.model import Source
from mediator.eddy.eddy import Eddy
from mediator.errors import MediatorError
from mediator.flow.batch import Batch
from mediator.flow.events import Command, Event, Exhausted, Failed
from mediator.output.records import Partial, PartialReport, Record, Withdrawn
from mediator.partials.block import BlockPartials
from mediator.partials.showing import Showing, names_of
from mediator.partials.silence import Silence
from mediator.query.model import BlockStage, Query, SqlStage

_SWEPT = 256  # of so many open ones at a time is looked over what the end of one lookup may settle

NEVER_FOUND = "no answer has these rows"
LIMIT_REACHED = "the answers are as many as were wanted"


@dataclass(slots=True)
class News:
    """What a turn came to."""

    records: list[Record] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)


def why_none(query: Query) -> str:
    """Why a query has no partial answers; nothing where it may have some."""
    first, *above = query.stages
    if not isinstance(first, BlockStage) or any(isinstance(stage, BlockStage) for stage in above):
        return "its answers are made of the rows of several blocks"
    if not above:
        return "" if len(first.block.aliases) > 1 else "it joins nothing"
    (last, *more) = above
    assert isinstance(last, SqlStage)
    if more or not last.rowwise:
        return "its answer is known only when all rows are, and what is said of it before is provisional"
    if last.sql and last.parts is None:
        return "one row of its joins may give several answers"
    return "" if len(first.block.aliases) > 1 else "it joins nothing"


def may_ask(settings: Settings, sources: Mapping[str, Source], query: Query) -> bool:
    """Whether lookups may be sent for partial answers alone. Not where an answer might have to do without one for it:
    where calls, bytes or seconds are counted, by the query or by a source; nor where as few as possible are wanted."""
    limits = (settings.max_calls, settings.max_bytes, settings.max_seconds)
    if any(limit is not None for limit in limits) or settings.per_source or settings.goal == "fewest_calls":
        return False
    blocks = [stage.block for stage in query.stages if isinstance(stage, BlockStage)]
    asked = {m.source for b in blocks for a in b.aliases for w in a.relation.methods for m in w.mirrors}
    known = [sources[name] for name in asked if name in sources]
    return not any(source.daily is not None or source.per_query != NO_CEILINGS for source in known)


class PartialRun:
    def __init__(
        self, query: Query, eddy: Eddy, house: House, settings: Settings, numbers: Iterator[int], asks: bool
    ) -> None:
        stage, *above = query.stages
        assert isinstance(stage, BlockStage)
        last = above[-1] if above else None
        assert last is None or isinstance(last, SqlStage)
        self._house = house
        self._stage = stage
        self.block = BlockPartials(
            eddy,
            numbers,
            house.clock,
            house.hands,
            max_age=settings.max_age,
            most=settings.most_partials,
            may_ask=asks,
        )
        self._showing = Showing(self.block.beside.run, stage, last)
        relations = {a.relation.name: a.relation for a in stage.block.aliases if a.relation.literal is None}
        self._sites = sum(1 << a.number for a in stage.block.aliases if a.relation.literal is None)
        self._silence = Silence(relations, house.measured, settings.stalled_after)
        self._ends = 0  # of lookups and scans
        self._swept = 0
        self._over = False
        self._given_up = False  # nothing more is looked for
        self._failures = 0  # of what the query asked
        self._without = 0  # what was out of reach when it was last looked at
        self.remarks: tuple[str, ...] = ()

    def heard(self, event: Event) -> None:
        """Something came of what was asked, by the query or on its partial answers' account."""
        for asking in (self.block.eddy.asking, self.block.beside.asking):
            relation = asking.relation_of(event.ask)
            if relation is not None:
                self._silence.heard(relation, self._house.clock())
                self._ends += isinstance(event, Exhausted | Failed)
                self._failures += isinstance(event, Failed)

    @property
    def due(self) -> float | None:
        """When to look again by the clock."""
        return None if self._over or self._given_up else self._silence.next

    @property
    def idle(self) -> bool:
        """Whether a turn would do nothing, now that the eddy is at rest."""
        if self._over or self._to_sweep:
            return self._over
        return self._given_up or (self.block.idle and self._missing() == self._without)

    @property
    def load(self) -> int:
        """Rows that wait for a turn; and all there are, where one that ends may join them for the last time."""
        if self._over or self._given_up:
            return 0
        views = self.block.eddy.run.views.values() if self._failures else ()
        return self.block.beside.load + sum(view.count for view in views)

    def completes(self, heap: Sequence[Batch]) -> dict[int, tuple[int, ...]]:
        """Which answers of the block, these one after the other, extend which partial answers."""
        register, before = self.block.register, 0
        found: dict[int, tuple[int, ...]] = {}
        for batch in heap:
            found |= {before + at: ids for at, ids in register.extended_by(batch).items()}
            before += len(batch)
        return found

    def completed(self, completes: Mapping[int, tuple[int, ...]]) -> None:
        """Answers were given that complete these."""
        for ids in completes.values():
            self.block.register.complete(ids)

    def turn(self, hops: int = 1) -> News:
        """When the eddy is at rest: look for partial answers, and over those that are open."""
        news = News()
        if self._over:
            return news
        with self._unharmed(news):
            if self._to_sweep:
                self._sweep(news)
            if self._given_up:
                return news
            missing = self._missing()
            if missing != self._without:
                self._without = missing
                news.commands += self.block.do_without(missing)
            self._look(news, hops)
        return news

    def end(self, complete: bool, enough: bool, stopped: bool) -> News:
        """The query has given its last answer. Where it is complete nothing stays open. Where something failed, that
        is done without once more, now that no more will come of it. Where it was stopped, all stays as it is."""
        news = News()
        if self._over:
            return news
        with self._unharmed(news):
            news.commands += self.block.stop()
        if complete or enough:
            self._withdraw(news, [i for ids, _ in self.block.register.opened() for i in ids], enough)
        elif not stopped:
            with self._unharmed(news):
                self._last_look(news)
        self._over = True
        return news

    def report(self) -> PartialReport:
        register = self.block.register
        names = [a.relation.name for a in self._stage.block.aliases]
        waiting = 0
        for _, batch in register.opened():
            waiting |= self._sites & ~batch.signature.spanned
        return PartialReport(
            register.given,
            register.completed,
            register.withdrawn,
            register.open,
            register.left_out,
            register.most,
            sum(tally.asked for tally in self.block.beside.asking.tallies.values()),
            names_of(waiting, names),
        )

    def _last_look(self, news: News) -> None:
        self._sweep(news)
        if self._given_up:
            return
        self.block.do_without(self.block.failed(lookups=True))
        while self.block.parts and not self.block.idle:
            self._look(news, 1)
        self.block.stop()

    @contextmanager
    def _unharmed(self, news: News) -> Iterator[None]:
        """A condition that fails on rows which no answer may have is no reason to end the query: it may end what is
        looked for here."""
        try:
            yield
        except MediatorError as error:
            self._remark(error)
            self._given_up = True
            news.commands += self.block.beside.give_up()

    def _remark(self, error: MediatorError) -> None:
        self.remarks = (f"some partial answers could not be shown: {error}",)

    @property
    def _to_sweep(self) -> bool:
        opened = self.block.register.open
        return opened > 0 and self._ends - self._swept > opened // _SWEPT

    def _missing(self) -> int:
        """The aliases whose sources are silent, or have failed."""
        asking, now = self.block.eddy.asking, self._house.clock()
        self._silence.under_way({*asking.under_way, *self.block.beside.asking.under_way}, now)
        silent = set(self._silence.silent(now))
        found = self.block.failed()
        for alias in self._stage.block.aliases:
            if alias.relation.name in silent:
                found |= 1 << alias.number
        return found

    def _look(self, news: News, hops: int) -> None:
        found, commands = self.block.turn(hops)
        if self.block.fate.failure is not None:
            self._remark(self.block.fate.failure)
        news.commands += commands
        for batch in found:
            self._open(batch, news)

    def _open(self, batch: Batch, news: News) -> None:
        mask = batch.signature.spanned
        if not self._showing.says(mask):
            return
        try:
            rows, places = self._showing.rows(batch)
        except MediatorError as error:
            self._remark(error)
            return
        ids = self.block.register.admit(batch.take(places))
        if ids:
            aliases = self._stage.block.aliases
            without = self._sites & ~mask
            news.records.append(
                Partial(
                    ids,
                    rows.slice(0, len(ids)),
                    self._showing.sight(mask).unknown,
                    names_of(without, [a.name for a in aliases]),
                    names_of(without, [a.relation.name for a in aliases]),
                )
            )

    def _sweep(self, news: News) -> None:
        self._swept = self._ends
        self._withdraw(news, self.block.dead())

    def _withdraw(self, news: News, ids: Sequence[int], enough: bool = False) -> None:
        if ids:
            self.block.register.withdraw(ids)
            news.records.append(Withdrawn(tuple(sorted(ids)), LIMIT_REACHED if enough else NEVER_FOUND))
