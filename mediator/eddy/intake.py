"""What has come and does not float yet: rows are built and delivered, ends and failures are noted, in their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from mediator.clock import Clock
from mediator.eddy.asking import Asking
from mediator.eddy.floating import Floating
from mediator.eddy.run import Run
from mediator.eddy.unbuilt import Unbuilt
from mediator.flow.batch import Rows, joined
from mediator.flow.events import Arrived, Event, Exhausted, Failed
from mediator.state.hands import Hands
from mediator.state.stem import updates

_MANY = 4_096  # rows that landed together; from here on indexes are brought up to date side by side


class Intake:
    def __init__(
        self,
        run: Run,
        asking: Asking,
        unbuilt: Unbuilt,
        floating: Floating,
        hands: Hands,
        clock: Clock,
        changed: Callable[[], None],  # called when something failed, and other routes are legal
    ) -> None:
        self._run = run
        self._asking = asking
        self._unbuilt = unbuilt
        self._floating = floating
        self._hands = hands
        self._clock = clock
        self._changed = changed
        self._inbox: list[Event] = []

    def admit(self, event: Event) -> None:
        """Something happened. Other queries may profit from it at once, this one when it is taken in."""
        if not isinstance(event, Arrived):
            self._decide()
            self._asking.share(event)
            self._inbox.append(event)
            return
        relation = self._asking.relation_of(event.ask)
        if relation is not None:
            self._unbuilt.came(relation, event.landing.rows.num_rows)
            if not self._unbuilt.puts_off(relation, event):
                self._place(event, relation)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to take in."""
        return not (self._inbox or self._unbuilt.landed or self._asking.delivered)

    @property
    def rows(self) -> int:
        """That have come and do not float yet."""
        landed: int = sum(e.landing.rows.num_rows for e in self._inbox if isinstance(e, Arrived))
        delivered = sum(len(ids) for _, ids in self._asking.delivered)
        return landed + self._unbuilt.landed + self._unbuilt.waiting + delivered

    def take_in(self) -> None:
        """Build what landed, all rows of a relation in one step, before the ends that came after them count."""
        if self._inbox or self._asking.delivered:
            self._decide()
        landed: dict[str, list[Arrived]] = {}
        for event in self._inbox:
            if isinstance(event, Arrived):
                relation = self._asking.relation_of(event.ask)
                if relation is not None:
                    landed.setdefault(relation, []).append(event)
            else:
                self._land(landed)
                self._note(event)
        self._inbox.clear()
        self._land(landed)
        for relation, ids in self._asking.delivered:
            self._deliver(relation, ids)
        self._asking.delivered.clear()
        for batch in self._unbuilt.batches():
            self._floating.push(batch)

    def _decide(self) -> None:
        """Deal with what was put off, now that there is more to go by."""
        for event in self._unbuilt.decided():
            relation = self._asking.relation_of(event.ask)
            if relation is not None:
                self._place(event, relation)

    def _place(self, event: Arrived, relation: str) -> None:
        unbuilt = self._unbuilt.takes(relation, event.landing)
        self._asking.share(event, built=not unbuilt)
        if not unbuilt:
            self._inbox.append(event)

    def _land(self, landed: dict[str, list[Arrived]]) -> None:
        if not landed:
            return
        rows = sum(e.landing.rows.num_rows for events in landed.values() for e in events)
        parts = self._hands.each([partial(self._build, r, events) for r, events in landed.items()], rows)
        if rows >= _MANY:
            self._hands.each(updates(self._run.views[name].stem for name in landed), rows)
        for (relation, events), ids in zip(landed.items(), parts, strict=True):
            for event in events:
                self._asking.overtaken(event)
            self._deliver(relation, ids)
        landed.clear()

    def _build(self, relation: str, events: list[Arrived]) -> Rows:
        stem = self._run.views[relation].stem
        return joined([stem.build(e.landing, self._clock()) for e in events])

    def _deliver(self, relation: str, ids: Rows) -> None:
        for batch in self._run.deliver(relation, ids):
            self._floating.push(batch)

    def _note(self, event: Event) -> None:
        if isinstance(event, Exhausted):
            self._asking.exhausted(event)
        elif isinstance(event, Failed):
            self._asking.failed(event)
            self._changed()
