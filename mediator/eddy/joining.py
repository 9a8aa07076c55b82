"""How a batch meets a SteM: by an equality key, by sorted runs, or pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from mediator.eddy.run import Run, read
from mediator.flow.batch import Batch, Signature, as_ids, coalesced, taken
from mediator.query.model import Block, Column, Predicate
from mediator.state.columns import FixedColumn
from mediator.state.index import Found, Visible
from mediator.state.keys import Keys, Part, keys_of
from mediator.state.sorted import MIRRORED, sortable

Positions = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Join:
    """How batches that span some aliases are widened by one more. Made once per span and alias."""

    alias: int
    sources: tuple[Column, ...]  # equality keys: the batch's side ...
    fields: tuple[str, ...]  # ... and the SteM's
    bounds: tuple[tuple[str, Column], ...]  # inequalities on one field: `ranged op column`
    ranged: str
    checks: tuple[Predicate, ...]  # what is still to be tested on each pair
    single: (
        bool  # the fields include the relation's declared key: a row that found a match has found them all
    )

    @classmethod
    def of(cls, block: Block, spanned: int, alias: int) -> Join:
        key = _equalities(block, spanned, alias)
        bit = 1 << alias
        rest = [
            p
            for p in block.predicates
            if not p.costly and p.aliases & bit and p.aliases & spanned and not p.aliases & ~(spanned | bit)
        ]
        ranged, used = ("", []) if key else _band(block, rest, alias)
        bounds = tuple(_facing(p, alias) for p in used)
        return cls(
            alias,
            tuple(s for _, s in key),
            tuple(f for f, _ in key),
            bounds,
            ranged,
            tuple(p for p in rest if p not in used),
            _includes_key(block, alias, key),
        )


@dataclass(slots=True, eq=False)
class Met:
    """What a probe found, and how much of the batch it got through."""

    wider: Batch | None
    at: Positions  # the batch's row behind each row of `wider`
    done: int  # rows of the batch that are finished with
    rest: Batch | None  # the others, when the probe was cut short


def prepare(run: Run, join: Join, batch: Batch) -> None:
    """Bring up to date what the probe will read, so that several may read at once."""
    compared = (column for _, column in join.bounds)
    run.prepare(batch, (*join.sources, *compared, *(c for p in join.checks for c in p.reads)))
    for source in join.sources:
        run.store(batch, source.alias).column(source.field).keyed().settle(alone=len(join.sources) == 1)
    view = run.aliases[join.alias]
    view.visible(batch.seen[join.alias])
    if join.fields:
        view.view.stem.index(join.fields).extend()
    elif join.bounds:
        view.view.stem.runs(join.ranged).extend()


def meet(run: Run, join: Join, batch: Batch, room: int) -> Met:
    """Probe the alias's SteM with the batch; find at most about `room` matches."""
    found = _find(run, join, batch, room)
    at, rows = found.at, found.rows
    for predicate in join.checks:
        if not len(at):
            break
        columns = {
            c: read(run.store(batch, c.alias), c.field, rows)
            if c.alias == join.alias
            else run.gather(batch, c, at)
            for c in predicate.reads
        }
        keep = predicate.test(columns)
        if not keep.all():
            at, rows = at[keep], rows[keep]
    wider = _widened(batch, join.alias, at, rows) if len(at) else None
    if found.next >= len(batch):
        return Met(wider, at, len(batch), None)
    rest = batch.take(slice(found.next, None))
    rest = rest.with_(cut=join.alias, taken=found.taken, since=batch.since)
    return Met(wider, at, found.next, rest)


def rejoined(batch: Batch, parts: Sequence[Batch], met: Sequence[Met]) -> list[tuple[Batch, Met]]:
    """What the parts of a batch found, as if the batch had never been parted. Part by part, where one was cut short, or
    where they found enough to stay apart."""
    if len(parts) == 1 or any(m.rest is not None for m in met) or sum(len(m.at) for m in met) > len(parts[0]):
        return list(zip(parts, met, strict=True))
    starts = accumulate((len(part) for part in parts), initial=0)
    at = np.concatenate([m.at + np.int32(start) for m, start in zip(met, starts, strict=False)])
    wider = coalesced([m.wider for m in met if m.wider is not None], len(at))
    return [(batch, Met(wider[0] if wider else None, at, len(batch), None))]


def _find(run: Run, join: Join, batch: Batch, room: int) -> Found:
    view = run.aliases[join.alias]
    visible = view.visible(batch.seen[join.alias], batch.since)
    if not visible.limit:
        return Found(np.zeros(0, np.int32), np.zeros(0, np.int32), len(batch), 0)
    if join.fields:
        return view.view.stem.index(join.fields).probe(_keys(run, join, batch), visible, 0, batch.taken, room)
    if join.bounds:
        return _find_in_runs(run, join, batch, visible, room)
    return _find_pairs(run, join, batch, visible, room)


def _keys(run: Run, join: Join, batch: Batch) -> Keys:
    parts = []
    for source in join.sources:
        rows = batch.rows[source.alias]
        assert rows is not None
        parts.append(Part(run.store(batch, source.alias).column(source.field).keyed(), rows))
    return keys_of(parts)


def _find_in_runs(run: Run, join: Join, batch: Batch, visible: Visible, room: int) -> Found:
    bounds, nulls = [], np.zeros(len(batch), np.bool_)
    for op, source in join.bounds:
        column, rows = run.store(batch, source.alias).column(source.field), batch.rows[source.alias]
        assert isinstance(column, FixedColumn)
        assert rows is not None
        values, valid = column.numbers(rows)
        bounds.append((op, values))
        if valid is not None:
            nulls |= ~valid
    return run.view(join.alias).stem.runs(join.ranged).probe(bounds, nulls, visible, 0, room)


def _find_pairs(run: Run, join: Join, batch: Batch, visible: Visible, room: int) -> Found:
    """Every visible row beside every row of the batch, for predicates that no index serves."""
    ids = as_ids(run.aliases[join.alias].ids(visible.limit, visible.since))
    width = len(ids)
    if not width:
        return Found(ids, ids, len(batch), 0)
    first, last = batch.taken, min(len(batch) * width, batch.taken + room)
    pairs = np.arange(first, last)
    return Found((pairs // width).astype(np.int32), ids[pairs % width], last // width, last % width)


def _widened(batch: Batch, alias: int, at: Positions, rows: Positions) -> Batch:
    vectors = [None if r is None else taken(r, at) for r in batch.rows]
    vectors[alias] = rows
    signature = batch.signature
    wider = Signature(signature.spanned | 1 << alias, signature.passed, part=signature.part)
    return Batch(wider, tuple(vectors), batch.seen, own=batch.own, favour=batch.favour)


def _equalities(block: Block, spanned: int, alias: int) -> list[tuple[str, Column]]:
    """The alias's fields that must equal something the batch has, each with one such column."""
    pairs = []
    for group in block.classes:
        source = next((c for c in group.columns if spanned >> c.alias & 1), None)
        if source is not None:
            pairs += [(c.field, source) for c in group.columns if c.alias == alias]
    return pairs


def _includes_key(block: Block, alias: int, key: list[tuple[str, Column]]) -> bool:
    declared = block.aliases[alias].relation.key
    return bool(declared) and set(declared) <= {field for field, _ in key}


def _facing(predicate: Predicate, alias: int) -> tuple[str, Column]:
    """The comparison as seen from the alias: `its field op the other column`."""
    comparison = predicate.comparison
    assert comparison is not None
    if comparison.left.alias == alias:
        return comparison.op, comparison.right
    return MIRRORED[comparison.op], comparison.left


def _band(block: Block, predicates: list[Predicate], alias: int) -> tuple[str, list[Predicate]]:
    """The alias's field on which most inequalities bear, and those."""
    fields: dict[str, list[Predicate]] = {}
    for predicate in predicates:
        if predicate.comparison:
            sides = (predicate.comparison.left, predicate.comparison.right)
            own = next(c for c in sides if c.alias == alias)
            if all(sortable(block.type_of(c)) for c in sides):
                fields.setdefault(own.field, []).append(predicate)
    if not fields:
        return "", []
    ranged = max(fields, key=lambda f: len(fields[f]))
    return ranged, fields[ranged]
