"""Each rule of partial answers taken away in turn: the search must notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mediator.partials.ahead as ahead
from mediator.eddy.feeding import fed
from mediator.partials.ahead import Ahead
from mediator.partials.beside import Beside
from mediator.partials.block import BlockPartials
from mediator.partials.fate import Fate
from mediator.partials.register import Register, _Shape
from mediator.state.coverage import Known
from tests.any_route.drawing import draw
from tests.any_route.search import Wrong
from tests.partials.drawing import draw_fed
from tests.partials.search import Found, search

Patch = Callable[[pytest.MonkeyPatch], None]
SEEDS = range(150)


def _open_once(patch: pytest.MonkeyPatch) -> None:
    """What is open already is opened again when the parts change."""
    patch.setattr(Register, "unknown", lambda self, batch: np.ones(len(batch), np.bool_))


def _extended(patch: pytest.MonkeyPatch) -> None:
    """What an answer has extended already is opened all the same."""
    patch.setattr(Fate, "extended", lambda self, batch: np.zeros(len(batch), np.bool_))


def _settled(patch: pytest.MonkeyPatch) -> None:
    """Silence is taken for an end: what is open and has no match yet is withdrawn."""
    _dead_if(patch, lambda self, batch, alias: np.ones(len(batch), np.bool_))


def _asked_is_not_answered(patch: pytest.MonkeyPatch) -> None:
    """What is under way is taken to have been answered in vain."""
    settled = Fate._settled

    def early(self: Fate, batch: Any, alias: int) -> Any:
        found = settled(self, batch, alias)
        provider = self._asking.chosen[alias]
        if provider.depends and not provider.depends & ~batch.signature.spanned:
            keys = fed(self._run, batch, provider)
            found |= self._run.view(alias).coverage.states(provider.bind_set, keys) == Known.ASKED
        return found

    _dead_if(patch, early)


def _dead_if(patch: pytest.MonkeyPatch, settled: Callable[..., Any]) -> None:
    """Only what is withdrawn goes by this; what is opened goes by the rule."""
    dead, rule = BlockPartials.dead, Fate._settled

    def otherwise(self: BlockPartials) -> Any:
        Fate._settled = settled  # type: ignore[method-assign]
        try:
            return dead(self)
        finally:
            Fate._settled = rule  # type: ignore[method-assign]

    patch.setattr(BlockPartials, "dead", otherwise)


def _rows_are_told_apart(patch: pytest.MonkeyPatch) -> None:
    """A partial answer is known by its first row alone."""
    keys = _Shape.keys
    patch.setattr(
        _Shape, "keys", lambda self, batch: [k[:4] + b"\0" * (len(k) - 4) for k in keys(self, batch)]
    )


def _completed_is_not_open(patch: pytest.MonkeyPatch) -> None:
    """What an answer has completed stays open."""
    patch.setattr(Register, "complete", lambda self, ids: None)


def _ceiling(patch: pytest.MonkeyPatch) -> None:
    """As many may be open as there are."""
    patch.setattr(Register, "room", property(lambda self: self.most))


def _join_conditions(patch: pytest.MonkeyPatch) -> None:
    """A part is taken for joined when nothing but its rows is there."""
    step = Beside._step

    def unjoined(self: Beside, batch: Any, found: list[Any]) -> None:
        spanned = batch.signature.spanned
        part = next(p for p in self._parts if not spanned & ~p)
        if spanned != part and batch.cut < 0:
            rows = list(batch.rows)
            for alias in range(len(rows)):
                view = self.run.aliases[alias]
                if part >> alias & 1 and rows[alias] is None and view.selected:
                    rows[alias] = np.full(len(batch), np.asarray(view.ids(view.view.count))[0], np.int32)
            if all(rows[a] is not None for a in range(len(rows)) if part >> a & 1):
                found.append(type(batch)(batch.signature._replace(spanned=part), tuple(rows), batch.seen))
                return
        step(self, batch, found)

    patch.setattr(Beside, "_step", unjoined)


def _selections(patch: pytest.MonkeyPatch) -> None:
    """Rows that fail a selection can be found all the same."""
    patch.setattr(
        "mediator.state.view.AliasView.visible",
        lambda self, limit, since=0: self.view.visible(limit, since),
    )


def _nothing_is_asked(patch: pytest.MonkeyPatch) -> None:
    """Who may not ask asks all the same."""
    do_without = BlockPartials.do_without

    def asking(self: BlockPartials, aliases: int) -> Any:
        self._may_ask = True
        return do_without(self, aliases)

    patch.setattr(BlockPartials, "do_without", asking)


def _single_flight(patch: pytest.MonkeyPatch) -> None:
    """What the query has asked is asked ahead once more, and what was asked ahead again."""

    def everything(self: Ahead, batch: Any, provider: Any) -> Any:
        return np.flatnonzero(fed(self._run, batch, provider).whole())

    patch.setattr(Ahead, "_unasked", everything)
    patch.setattr(ahead.OwnAccount, "_serve", lambda self, view, bind_set, bindings: list(bindings))


RULES: list[Patch] = [
    _open_once,
    _extended,
    _settled,
    _asked_is_not_answered,
    _rows_are_told_apart,
    _completed_is_not_open,
    _ceiling,
    _join_conditions,
    _selections,
    _nothing_is_asked,
    _single_flight,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__.strip("_"))
def test_the_search_notices(rule: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    rule(monkeypatch)
    assert _noticed() >= 0, f"{len(SEEDS)} seeds pass without this rule: {rule.__doc__}"


def _noticed() -> int:
    """The first seed that fails; -1 if none does."""
    for seed in SEEDS:
        for drawn in (draw_fed, draw):
            try:
                search(seed, Found(), drawn)
            except (Wrong, AssertionError, KeyError):
                return seed
    return -1
