"""One FROM clause, fetched: which blocks bring its rows, and how DuckDB joins what they bring.

- The inner-joined part becomes a block, with every condition on it that has no sub-query.
- A LEFT JOIN's right side becomes a block that joins the distinct values of what is there already (a
  *frame*) with the right side's relations, under the conditions that tie them. What it brings holds every
  row that can match, each once (row ids tell), and DuckDB does the outer join over it.
- A correlated sub-query's FROM is fetched in the same way: its frames are the FROM clauses around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from mediator.errors import Unsupported
from mediator.query.blocks import engine_relation, output_name, write_block
from mediator.query.drafts import Unit
from mediator.query.joins import Full, Inner, Leaf, Left, Tree, Widen, sources_of, steps_of
from mediator.query.model import SqlStage
from mediator.query.pieces import Part, Piece
from mediator.query.semijoins import semi_join
from mediator.query.subqueries import free_names
from mediator.query.trees import Name, has_subquery, is_volatile, names_in, sources_in

if TYPE_CHECKING:
    from mediator.query.plan import Planner


class Fetch:
    """Fetches one tree. After `run`, `left` holds the conditions that are still to be applied above."""

    def __init__(
        self,
        planner: Planner,
        node: exp.Expr,
        tree: Tree,
        where: Sequence[exp.Expr],
        frames: Sequence[Piece] = (),
        ties: Sequence[exp.Expr] = (),
        read: Sequence[Name] = (),
    ) -> None:
        self.planner = planner
        self.names = planner.names
        self.frames = list(frames)
        self.own = sources_of(tree)
        self._fulls: dict[Full, Piece] = {}
        self.steps = steps_of(tree)
        self.open: list[exp.Expr] = []  # conditions that a block may take over
        self.kept: list[exp.Expr] = []  # conditions that stay: they have sub-queries, or read the frames
        for conjunct in [*where, *self.steps.filters]:
            mine = not has_subquery(conjunct) and sources_in(conjunct) <= self.own
            (self.open if mine else self.kept).append(conjunct)
        self.ties = [*ties, *(c for c in self.kept if not has_subquery(c) and self.own & sources_in(c))]
        self.read = {
            *read,
            *free_names(self.names, node),
            *self._read_by_joins(tree),
            *self._read_by_laterals(),
        }

    @property
    def left(self) -> list[exp.Expr]:
        return [*self.open, *self.kept]

    def run(self) -> Piece:
        early, late = self._order()
        units = {leaf: self._unit(leaf) for leaf in early}
        ready = [u for u in units.values() if u is not None]
        piece = self._block(ready) if ready else Piece()
        for leaf in early:
            if units[leaf] is None:
                piece = self._inline(piece, leaf)
        for step in late:
            piece = self._widen(piece, step) if isinstance(step, Widen) else self._later(piece, step)
        return piece

    # What is read above, and in which order things are fetched

    def _read_by_joins(self, tree: Tree) -> set[Name]:
        if isinstance(tree, Leaf):
            return set()
        read = self._read_by_joins(tree.left) | self._read_by_joins(tree.right)
        if isinstance(tree, Inner):
            return read
        right = sources_of(tree.right) if isinstance(tree, Left) else set[str]()
        cross = [c for c in tree.on if not _local(c, right)]
        return read | self._read_by(cross)

    def _read_by(self, conjuncts: Sequence[exp.Expr]) -> set[Name]:
        return {n for c in conjuncts for n in free_names(self.names, c)}

    def _read_by_laterals(self) -> set[Name]:
        return {n for s in self.own for n in self._read_by_lateral(s)}

    def _read_by_lateral(self, source: str) -> dict[Name, None]:
        body = self.names.sources[source].body
        return free_names(self.names, body) if body is not None else {}

    def _order(self) -> tuple[list[Leaf | Full], list[Leaf | Full | Widen]]:
        """Inner items go first where what joins them does not need an outer join's columns."""
        items = self.steps.items
        first = next((n for n, i in enumerate(items) if isinstance(i, Widen)), len(items))
        early = [i for i in items[:first] if not isinstance(i, Widen)]
        late: list[Leaf | Full | Widen] = []
        nullable = {s for i in items if isinstance(i, Widen) for s in sources_of(i.tree)}
        for item in items[first:]:
            if isinstance(item, Widen) or self._needs(item, early, nullable):
                late.append(item)
                nullable |= set() if isinstance(item, Widen) else sources_of(item)
            else:
                early.append(item)
        return early, late

    def _needs(self, item: Leaf | Full, early: list[Leaf | Full], nullable: set[str]) -> bool:
        mine, there = sources_of(item), {s for e in early for s in sources_of(e)}
        about = [sources_in(c) for c in self.open if sources_in(c) & mine]
        if any(n[0] in nullable for s in mine for n in self._read_by_lateral(s)):
            return True
        tied = any(s <= mine | there and s & there for s in about)
        return not tied and any(s & nullable for s in about)

    # Units

    def _unit(self, item: Leaf | Full) -> Unit | None:
        if isinstance(item, Full):
            piece = self._fulls[item] = self._full(item)
            return None if self._is_open(piece) else self._as_unit(piece)
        source = self.names.sources[item.source]
        if source.relation is None:
            return self.planner.derived(source)
        columns = {(source.id, c): c for c in source.columns}
        return Unit(source.id, source.relation, columns, source.position)

    def _as_unit(self, piece: Piece) -> Unit:
        """What is there already, as one table to be joined in a block."""
        live = self.read | self._read_by(self.left)
        wanted = [n for n in piece.columns if n in live]
        stage = piece.stage()
        if stage is None:
            stage = self.planner.stages.add_sql(piece.everything(wanted)).name
            columns = {n: output_name(n) for n in wanted}
        else:
            columns = {n: piece.columns[n][1] for n in piece.columns}
        return Unit(stage, engine_relation(stage, self.planner.stages.schema(stage)), columns)

    def _full(self, item: Full) -> Piece:
        left, right = self._side_of_full(item, item.left), self._side_of_full(item, item.right)
        for conjunct in item.on:
            self.planner.nested(conjunct, [])
        return left.widened("FULL", right, item.on)

    def _side_of_full(self, item: Full, tree: Tree) -> Piece:
        """One side, whole: what filters it must do so before the join."""
        read = self.read | self._read_by([*item.on, *self.left])
        fetch = Fetch(self.planner, exp.null(), tree, [], self.frames, [], list(read))
        piece = fetch.run()
        if not fetch.left:
            return piece
        for conjunct in fetch.left:
            self.planner.nested(conjunct, [*self.frames, piece])
        return piece.filtered(self.names.fresh("side"), [n for n in piece.columns if n in read], fetch.left)

    # Blocks

    def _block(self, units: list[Unit]) -> Piece:
        covered = {n[0] for u in units for n in u.columns}
        taken = [c for c in self.open if sources_in(c) <= covered]
        self.open = [c for c in self.open if c not in taken]
        extra, joined = self._semi_joins(units, taken)
        frames, tied = self._framed(units, covered)
        wanted = self._wanted(units)
        rows = range(len(units)) if frames else ()
        block = write_block([*units, *extra, *frames], [*taken, *joined, *tied], wanted, rows, self.names.sql)
        stage = self.planner.stages.add_block(block).name
        if frames:
            stage = self._once(stage)
        return Piece([Part("", _table(stage), [])], {n: (stage, output_name(n)) for n in wanted})

    def _wanted(self, units: list[Unit]) -> list[Name]:
        live = self.read | self._read_by(self.left)
        return [n for u in units for n in u.columns if n in live]

    def _once(self, stage: str) -> str:
        """Each row that several bindings brought, once: row ids, which are among the columns, tell."""
        stages = self.planner.stages
        return stages.add(
            SqlStage(stages.fresh("step"), "", (stage,), stages.schema(stage), rowwise=True, distinct=True)
        ).name

    # Frames: what is known already, to fetch by

    def _framed(self, units: list[Unit], covered: set[str]) -> tuple[list[Unit], list[exp.Expr]]:
        """The frames to join with, and the conditions to join them under."""
        usable = [c for c in self.ties if covered & sources_in(c) and self._in_reach(c, covered)]
        alone = [c for c in usable if sources_in(c) <= covered]
        tied = [c for c in usable if c not in alone]
        indexed = any(m.kind == "index" for u in units for m in u.relation.methods)
        if not indexed or not any(isinstance(c, exp.EQ) for c in tied):
            return [], alone
        needed = {n for c in tied for n in names_in(c) if n[0] not in covered}
        found = [u for f in self.frames if (u := self._frame(f, needed)) is not None]
        return found, [*alone, *tied]

    def _in_reach(self, conjunct: exp.Expr, covered: set[str]) -> bool:
        known = {n for f in self.frames if not self._is_open(f) for n in f.columns}
        simple = not (is_volatile(conjunct) or has_subquery(conjunct))
        return simple and all(n[0] in covered or n in known for n in names_in(conjunct))

    def _is_open(self, frame: Piece) -> bool:
        """Whether a frame itself reads from outside, and so cannot be a stage."""
        inside = {n[0] for n in frame.columns}
        if any(isinstance(p.item, exp.Table) and p.item.args.get("alias") for p in frame.parts):
            return True  # a recursive WITH, in the middle of it
        return any(n[0] not in inside for n in self._read_by(frame.expressions()))

    def _frame(self, frame: Piece, needed: set[Name]) -> Unit | None:
        wanted = [n for n in frame.columns if n in needed]
        if not wanted:
            return None
        stage = self.planner.frame(frame, wanted)
        columns = {n: output_name(n) for n in wanted}
        return Unit(stage, engine_relation(stage, self.planner.stages.schema(stage)), columns)

    # IN (SELECT ...), and rows in a list: joined, so that what it finds can be looked up

    def _semi_joins(self, units: list[Unit], taken: list[exp.Expr]) -> tuple[list[Unit], list[exp.Expr]]:
        extra: list[Unit] = []
        joined: list[exp.Expr] = []
        indexed = any(m.kind == "index" for u in units for m in u.relation.methods)
        for conjuncts in (self.kept, taken if indexed else []):
            for conjunct in list(conjuncts):
                found = semi_join(self.planner, units, conjunct)
                if found is not None:
                    conjuncts.remove(conjunct)
                    extra.append(found[0])
                    joined += found[1]
        return extra, joined

    # What cannot be part of a block

    def _inline(
        self, piece: Piece, item: Leaf | Full, kind: str = "INNER", on: Sequence[exp.Expr] = ()
    ) -> Piece:
        """A derived table that needs what is there already: it stays a sub-query, fetched by that."""
        if isinstance(item, Full):
            other = self._fulls[item]
            return piece.widened("INNER", other, []) if piece.parts else other
        source = self.names.sources[item.source]
        if source.cte is not None and source.cte.recursive and source.cte not in self.planner.looping:
            message = f"WITH RECURSIVE {source.cte.name} may not read what is around it"
            raise Unsupported(message, sql=self.names.sql, position=source.position)
        alias = exp.TableAlias(
            this=exp.to_identifier(source.id, quoted=True),
            columns=[exp.to_identifier(c, quoted=True) for c in source.columns],
        )
        if source.cte is not None and source.cte in self.planner.looping:
            table: exp.Expr = exp.Table(this=exp.to_identifier(source.cte.name, quoted=True), alias=alias)
        else:
            table = exp.Subquery(this=self._fetched_body(piece, item.source), alias=alias)
        here = {(source.id, c): (source.id, c) for c in source.columns}
        part = Part(kind if piece.parts else "", table, list(on))
        return Piece([*piece.parts, part], {**piece.columns, **here})

    def _fetched_body(self, piece: Piece, id: str) -> exp.Expr:
        source = self.names.sources[id]
        body = self.planner.body(source)
        about = [c for c in [*self.open, *self.ties] if id in sources_in(c)]
        frames = [*self.frames, piece] if piece.parts else self.frames
        self.planner.tied(body, [(id, c) for c in source.columns], about, frames)
        return body

    def _widen(self, piece: Piece, step: Widen) -> Piece:
        right = sources_of(step.tree)
        inner = [c for c in step.on if _local(c, right)]
        cross = [c for c in step.on if not _local(c, right)]
        ties = [c for c in cross if not has_subquery(c)]
        read = self.read | self._read_by([*cross, *self.left])
        fetch = Fetch(self.planner, exp.null(), step.tree, inner, [*self.frames, piece], ties, list(read))
        other = fetch.run()
        on = [*cross, *fetch.left]
        for conjunct in on:
            self.planner.nested(conjunct, [])
        return piece.widened("LEFT", other, on)

    def _later(self, piece: Piece, item: Leaf | Full) -> Piece:
        unit = self._unit(item)
        if unit is None:
            return self._inline(piece, item)
        if self._is_open(piece):
            return piece.widened("INNER", self._block([unit]), [])
        return self._block([self._as_unit(piece), unit])


def _local(conjunct: exp.Expr, sources: set[str]) -> bool:
    return not has_subquery(conjunct) and sources_in(conjunct) <= sources


def _table(stage: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(stage, quoted=True))
