"""A query's stages, run as one state machine: events in, asks and answers out. It never awaits.

Each block has an eddy, each SQL stage a finisher. What a stage gives goes to the stages that read it: a
finisher is fed, an eddy that joins with it receives it like the rows of any scan. A stage ends when all that
it reads has ended, or earlier when it has enough; then what only it was reading is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from mediator.assembly import House, Settings, assemble
from mediator.binding.model import Verdict
from mediator.eddy.decisions import Watch
from mediator.eddy.eddy import Eddy
from mediator.eddy.emitting import projected
from mediator.eddy.floating import Floating
from mediator.flow.batch import heaped
from mediator.flow.events import SEED, Arrived, Ask, Cancel, Command, Emit, Event, Exhausted, Landing, Urge
from mediator.live import Live, block_live
from mediator.output.finish import Finisher, Streaming, finisher
from mediator.output.records import Rows
from mediator.output.report import Report, merged
from mediator.output.top import TopRun
from mediator.output.work import Completes
from mediator.output.work import Work as Work
from mediator.partials.beside import Beside
from mediator.partials.running import News, PartialRun, why_none
from mediator.query.model import BlockStage, Query, SqlStage, Stage
from mediator.query.preferences import Preferences, preferred
from mediator.reporting import report_of
from mediator.statements.patience import Interrupted


@dataclass(slots=True)
class _Running:
    """A stage under way."""

    stage: Stage
    eddy: Eddy | None = None
    finisher: Finisher | None = None
    unread: set[str] = field(default_factory=set)  # stages that it reads and that go on
    readers: list[str] = field(default_factory=list)  # SQL stages that read it
    joiners: list[str] = field(default_factory=list)  # blocks that join with it
    joined: list[int] = field(default_factory=list)  # the asks of those of them that have asked
    given: list[pa.RecordBatch] = field(default_factory=list)  # for those that have not
    held: int = 0  # rows that its finisher keeps until the end
    top: TopRun | None = None  # of an ORDER BY ... LIMIT k that may be certain before all rows have come
    ended: bool = False


class Stages:
    def __init__(
        self,
        query: Query,
        verdicts: Mapping[str, Verdict],
        house: House,
        settings: Settings,
        floating: Floating | None = None,
        watch: Callable[[str], Watch | None] | None = None,
        ahead: bool = True,
    ) -> None:
        """`watch` finds who looks on at a block, by its name. `ahead` allows lookups for partial answers alone."""
        self.query = query
        self._house = house
        self._policy = settings.policy
        self._work = Work()
        self._stopped = ""
        self._enough = False
        self._asked_by: dict[int, Eddy | Beside] = {}
        self._tops: dict[str, TopRun] = {}  # by the name of the block below
        self._stages: dict[str, _Running] = {}
        numbers = count()
        preferences = preferred(query, settings.prefer)
        self._weighs = any(p.computes for of in preferences.values() for p in of)
        for stage in query.stages:
            running = self._stages[stage.name] = _Running(stage)
            if isinstance(stage, BlockStage):
                running.eddy = assemble(
                    stage.block,
                    verdicts[stage.name],
                    house,
                    settings,
                    numbers,
                    floating,
                    watch(stage.name) if watch is not None else None,
                    preferences.get(stage.name, ()),
                )
                for name in {a.relation.name: None for a in stage.block.aliases}:
                    if name in self._stages:
                        self._stages[name].joiners.append(stage.name)
            else:
                self._prepare(running, stage)
        self._why_no_partials = why_none(query) if settings.partials else ""
        self._partials: PartialRun | None = None
        first = self._stages[query.stages[0].name].eddy
        if settings.partials and not self._why_no_partials and first is not None:
            self._partials = PartialRun(query, first, house, settings, numbers, ahead)

    def start(self) -> Work:
        """Ask everything that needs no row's help."""
        for running in self._stages.values():
            if running.finisher is not None and running.finisher.done:
                self._suffice(running)
        for running in self._stages.values():
            if running.ended:
                continue
            if running.eddy is not None:
                self._obey(running, running.eddy.start())
            elif not running.unread:
                self._end(running)
        self._look_beside()
        return self._drain()

    def admit(self, event: Event) -> None:
        eddy = self._asked_by.get(event.ask)
        if self._partials is not None:
            self._partials.heard(event)
        if eddy is not None and not eddy.finished:
            if isinstance(event, Arrived):
                for top in self._tops.values():
                    top.came(event.ask, event.landing)
            eddy.admit(event)

    def turn(self, hops: int = 1, most: float = float("inf")) -> Work:
        """Let every eddy that has anything to do move up to `hops` batches, and find about `most` answers."""
        for running in self._stages.values():
            if running.eddy is not None and not running.ended:
                self._obey(running, running.eddy.turn(hops, most))
        self._end_if_certain()
        self._look_beside()
        return self._drain()

    def reconsidered(self, work: Work) -> Work:
        """What a turn came to, less what was answered to other queries while it was being taken."""
        commands: list[Ask | Cancel] = []
        for command in work.commands:
            if isinstance(command, Ask):
                wanted = self._asked_by[command.number].asking.still_wanted(command)
                commands += [] if wanted is None else [wanted]
            else:
                commands.append(command)
        return Work(commands, work.answers, work.told, work.urges)

    @property
    def finished(self) -> bool:
        return all(running.ended for running in self._stages.values())

    @property
    def idle(self) -> bool:
        """Whether a turn would do nothing until something is admitted."""
        return all(e.idle for e in self._eddies()) and (self._partials is None or self._partials.idle)

    @property
    def computes(self) -> bool:
        """Whether a turn may run SQL, which may take any time however few rows there are."""
        return self._weighs or any(_computes(r.stage) and not r.ended for r in self._stages.values())

    @property
    def starts_with_sql(self) -> bool:
        """Whether there is SQL that reads nothing, and is run as soon as the query starts."""
        return any(isinstance(r.stage, SqlStage) and not r.stage.reads for r in self._stages.values())

    @property
    def due(self) -> float | None:
        """When a turn would do something even if nothing is admitted, by the clock."""
        return self._partials.due if self._partials is not None else None

    @property
    def load(self) -> int:
        """Rows that wait for a turn, or that one may have to go through because it may be the last."""
        held = sum(r.held for r in self._stages.values() if not r.ended)
        beside = self._partials.load if self._partials is not None else 0
        return held + beside + sum(e.load for e in self._eddies())

    def stop(self, why: str) -> Work:
        """End early: all that is under way is cancelled. What was found so far is answered, and the report
        says why it is not all."""
        if not self.finished:
            self._stopped = why
            for running in self._stages.values():
                if running.eddy is not None and not running.ended:
                    self._work.commands += _cancels(running.eddy.stop())
                self._end(running)
            self._look_beside()
        return self._drain()

    def abandon(self, why: str) -> None:
        """End at once and without a word: nobody wants the answers, or they cannot be had."""
        if not self.finished:
            self._stopped = self._stopped or why
            for running in self._stages.values():
                self._halt(running)
            self._look_beside()
        self._drain()

    def prefer(self, preferences: Preferences) -> None:
        """From now on rows that satisfy these come first."""
        self._weighs = any(p.computes for of in preferences.values() for p in of)
        for name, eddy in self.eddies().items():
            eddy.prefer(preferences.get(name, ()))

    def snapshot(self) -> pa.Table | None:
        """The answer as it stands, where it is one that later rows may still change."""
        last = self._stages[self.query.stages[-1].name]
        return last.finisher.snapshot() if last.finisher is not None and not last.ended else None

    def report(self) -> Report:
        blocks = [report_of(r.eddy, self._is_site) for r in self._stages.values() if r.eddy is not None]
        whole = merged(blocks)
        remarks = tuple(complaint for top in self._tops.values() for complaint in top.complaints)
        if self._partials is not None:
            remarks += self._partials.remarks
        elif self._why_no_partials:
            remarks += (f"no partial answers: {self._why_no_partials}",)
        partials = self._partials.report() if self._partials is not None else None
        return Report(whole.relations, self._stopped, self._enough, remarks, partials)

    def live(self) -> Live:
        """How each block stands; of the sources only their names are known here."""
        return Live(
            tuple(block_live(name, self._policy, eddy) for name, eddy in self.eddies().items()),
            finished=self.finished,
        )

    @property
    def size(self) -> int:
        """Bytes that the SteMs of the query's relations hold, about."""
        stems = {id(v.stem): v.stem for e in self.eddies().values() for v in e.run.views.values()}
        return sum(stem.size for stem in stems.values())

    def eddies(self) -> dict[str, Eddy]:
        """Each block's eddy, by the name of its stage."""
        return {name: r.eddy for name, r in self._stages.items() if r.eddy is not None}

    def _prepare(self, running: _Running, stage: SqlStage) -> None:
        schemas = {name: self._stages[name].stage.schema for name in stage.reads}
        running.finisher = finisher(stage, schemas)
        running.unread = set(stage.reads)
        for name in running.unread:
            self._stages[name].readers.append(stage.name)
        below = self._stages[stage.reads[0]].stage if stage.reads else None
        if stage.top is not None and isinstance(below, BlockStage) and len(below.block.aliases) == 1:
            running.top = self._tops[below.name] = TopRun(stage.top, below)

    def _eddies(self) -> Iterator[Eddy]:
        return (r.eddy for r in self._stages.values() if r.eddy is not None and not r.ended)

    def _is_site(self, relation: str) -> bool:
        return relation not in self._stages

    def _obey(self, running: _Running, commands: list[Command]) -> None:
        eddy, stage = running.eddy, running.stage
        assert eddy is not None
        assert isinstance(stage, BlockStage)
        emitted = [c.batch for c in commands if isinstance(c, Emit)]
        heaps = list(heaped(emitted, eddy.run.largest_batch))
        for heap, answers in zip(heaps, projected(eddy.run, stage, heaps, self._house.hands), strict=True):
            self._give(
                running, answers, self._partials.completes(heap) if self._partials is not None else None
            )
        for command in commands:
            match command:
                case Ask() if running.ended:
                    pass  # what it gave just now was enough for those who read it
                case Ask():
                    self._asked_by[command.number] = eddy
                    self._watch(stage, command)
                    if command.relation in self._stages:
                        self._join(running, command)
                    else:
                        self._work.commands.append(command)
                        if self._partials is not None:
                            self._take(
                                News(commands=self._partials.block.beside.leave(command)), self._partials
                            )
                case Cancel():
                    self._work.commands.append(command)
                case Urge():
                    self._work.urges.append(command)
        if eddy.finished:
            self._end(running)

    def _join(self, running: _Running, ask: Ask) -> None:
        """A block asks for the rows of an earlier stage."""
        source = self._stages[ask.relation]
        source.joined.append(ask.number)
        for batch in source.given:
            self.admit(Arrived(ask.number, Landing(batch)))
        if len(source.joined) == len(source.joiners):
            source.given.clear()
        if source.ended:
            self.admit(Exhausted(ask.number, SEED, self._house.clock(), landings=()))

    def _give(self, running: _Running, batch: pa.RecordBatch, completes: Completes | None = None) -> None:
        """Pass rows of a stage on to whoever reads it."""
        if running.ended:
            return
        if running.stage is self.query.stages[-1]:
            self._answer(batch, completes or {})
            return
        if len(running.joined) < len(running.joiners):
            running.given.append(batch)
        for ask in running.joined:
            # Each has a SteM of its own for these rows, and a landing knows where one SteM has put it.
            self.admit(Arrived(ask, Landing(batch)))
        for name in running.readers:
            self._feed(self._stages[name], running.stage.name, batch, completes)

    def _answer(self, batch: pa.RecordBatch, completes: Completes) -> None:
        self._work.answers.append(batch)
        if self._partials is not None:
            self._work.told.append(Rows(batch, completes))
            self._partials.completed(completes)

    def _look_beside(self) -> None:
        """Partial answers, when no full ones can be found meanwhile."""
        partials = self._partials
        if partials is None:
            return
        if self.finished:
            complete = all(r.eddy is None or not r.eddy.asking.missing() for r in self._stages.values())
            news = partials.end(complete and not self._stopped, self._enough, bool(self._stopped))
        elif all(e.idle for e in self._eddies()):
            news = partials.turn()
        else:
            return
        self._take(news, partials)

    def _take(self, news: News, partials: PartialRun) -> None:
        self._asked_by |= {c.number: partials.block.beside for c in news.commands if isinstance(c, Ask)}
        self._work.commands += [c for c in news.commands if isinstance(c, Ask | Cancel)]
        self._work.told += news.records

    def _feed(
        self, reader: _Running, name: str, batch: pa.RecordBatch, completes: Completes | None = None
    ) -> None:
        if reader.ended:
            return
        finisher = reader.finisher
        assert finisher is not None
        if reader.top is not None:
            reader.top.feed(batch)
        if completes and isinstance(finisher, Streaming):
            for out, places in finisher.feed_placed(name, batch):
                self._give(reader, out, {n: completes[at] for n, at in enumerate(places) if at in completes})
        else:
            for out in finisher.feed(name, batch):
                self._give(reader, out)
        if isinstance(reader.stage, SqlStage) and not reader.stage.rowwise:
            reader.held += batch.num_rows
        if finisher.done:
            self._suffice(reader)

    def _watch(self, stage: BlockStage, ask: Ask) -> None:
        """A block of one alias asked for its rows; where it needs no more than one lookup, their order may tell."""
        top = self._tops.get(stage.name)
        if top is not None and len(ask.bindings) == 1:
            relation = stage.block.aliases[0].relation
            top.watch(ask.number, relation.name, relation.method(ask.method))

    def _end_if_certain(self) -> None:
        """An answer that rows still to come cannot change is given now."""
        for running in self._stages.values():
            if running.top is None or running.ended:
                continue
            (below,) = (self._stages[name] for name in running.unread)
            if below.eddy is not None and below.eddy.idle and running.top.certain:
                running.unread.clear()
                self._suffice(running)

    def _suffice(self, running: _Running) -> None:
        """A stage has given all that its LIMIT lets it give."""
        if not running.ended:
            self._enough |= running.stage is self.query.stages[-1]
            self._end(running)

    def _end(self, running: _Running) -> None:
        """No more rows will come of a stage, or none are wanted."""
        if running.ended:
            return
        if running.finisher is not None and (self._stopped or not running.unread):
            for out in self._last_of(running.finisher):
                self._give(running, out)
        running.ended = True
        for ask in running.joined:
            self.admit(Exhausted(ask, SEED, self._house.clock(), landings=()))
        for name in running.readers:
            reader = self._stages[name]
            reader.unread.discard(running.stage.name)
            if not reader.unread:
                self._end(reader)
        self._halt_unread()

    def _last_of(self, finisher: Finisher) -> list[pa.RecordBatch]:
        """What a stage still owes; nothing where that would take longer than there is time for."""
        try:
            return finisher.end()
        except Interrupted:
            if not self._stopped:
                raise
            return []

    def _halt_unread(self) -> None:
        """Stop stages that nobody reads any more; those that come later in the query are halted first."""
        for running in reversed(self._stages.values()):
            last = running.stage is self.query.stages[-1]
            if not last and all(self._stages[n].ended for n in (*running.readers, *running.joiners)):
                self._halt(running)

    def _halt(self, running: _Running) -> None:
        if running.eddy is not None and not running.ended:
            self._work.commands += _cancels(running.eddy.stop())
        running.ended = True

    def _drain(self) -> Work:
        work, self._work = self._work, Work()
        return work


def _computes(stage: Stage) -> bool:
    return bool(stage.sql) if isinstance(stage, SqlStage) else stage.block.computes


def _cancels(commands: list[Command]) -> list[Ask | Cancel]:
    return [c for c in commands if isinstance(c, Cancel)]
