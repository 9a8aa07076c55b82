"""Statements as stages: which rows eddies fetch, and what DuckDB does with them above.

Every FROM clause is replaced by finished stages (`fetch.py`); the rest of each SELECT stays as it was
written, over them. So a statement, sub-queries and all, becomes blocks and one SQL text that reads their
answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mediator.query.blocks import engine_relation
from mediator.query.clones import cloned
from mediator.query.conjuncts import split, together
from mediator.query.drafts import Unit
from mediator.query.fetch import Fetch
from mediator.query.flatten import flatten
from mediator.query.joins import Tree, sources_of, tree_of
from mediator.query.names import Names
from mediator.query.pieces import Piece
from mediator.query.rowwise import settle
from mediator.query.scope import Cte, Source, column_of
from mediator.query.semijoins import sides_of
from mediator.query.stages import Stages
from mediator.query.standing import all_stand
from mediator.query.subqueries import all_of, as_compared, as_in, free_names, is_cut, pushed, reachable
from mediator.query.trees import Name, name_of, names_in, subqueries
from mediator.statements.patience import go_on


class Planner:
    """Plans one statement; `stages.done` is the result."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.stages = Stages(names)
        self.looping: set[Cte] = set()  # recursive WITH entries whose bodies are being planned
        self._stage_of: dict[Cte | str, str | None] = {}
        self._kept: list[Piece] = []  # so that no other piece gets the id of one that has frames
        self._frames: dict[tuple[int, tuple[Name, ...]], str] = {}

    def query(self, node: exp.Expr, frames: Sequence[Piece] = (), ties: Sequence[exp.Expr] = ()) -> None:
        """Rewrites a query in place so that all its FROM clauses read stages.

        `frames` are the FROM clauses around it, already done. `ties` are conditions, over its own columns and
        those of the frames, that any row it needs must meet; they may be used to fetch less.
        """
        go_on()
        if isinstance(node, exp.Select):
            self._select(node, frames, ties)
        elif isinstance(node, exp.Subquery):
            self.query(node.this, frames, ties)
        elif isinstance(node, exp.SetOperation):
            self.query(node.left, frames)
            self.query(node.right, frames)
        else:
            self.nested(node, frames)

    def tied(
        self, node: exp.Expr, outputs: Sequence[Name], conjuncts: Sequence[exp.Expr], frames: Sequence[Piece]
    ) -> None:
        """Rewrites a query of which only such rows are needed as meet these conditions on its outputs."""
        if isinstance(node, exp.Subquery) and not is_cut(node):
            self.tied(node.this, outputs, conjuncts, frames)
        elif isinstance(node, exp.SetOperation) and not is_cut(node) and not node.args.get("by_name"):
            # A side may have other types than the whole: what is equal is so there too, but may be ordered otherwise.
            equal = [c for c in conjuncts if isinstance(c, (exp.EQ, exp.In))]
            self.tied(node.left, outputs, equal, frames)
            self.tied(node.right, outputs, equal, frames)
        else:
            pairs = zip(outputs, reachable(node), strict=False)
            values = {name: value for name, value in pairs if value is not None}
            known = [c for c in conjuncts if {n for n in names_in(c) if n in outputs} <= values.keys()]
            self.query(node, frames, [pushed(c, values) for c in known])

    def nested(self, node: exp.Expr, frames: Sequence[Piece]) -> None:
        """Rewrites the sub-queries inside an expression."""
        for query in list(subqueries(node)):
            self.query(query, frames)

    def _select(self, node: exp.Select, frames: Sequence[Piece], ties: Sequence[exp.Expr]) -> None:
        clause = node.args.get("from_")
        if clause is None or not _names_sources(clause.this):
            self.nested(node, frames)
            return
        flatten(self.names, node)
        tree = tree_of(node, self.names.sql)
        self._keep_types(node, tree)
        where = split(node.args["where"].this) if node.args.get("where") else []
        for key in ("from_", "joins", "where"):
            node.set(key, None)
        fetch = Fetch(self, node, tree, [as_in(self.names, c) for c in where], frames, ties)
        piece = fetch.run()
        around = [*frames, piece]
        for conjunct in fetch.left:
            self._conjunct(conjunct, around)
        self.nested(node, around)
        rest = together([as_compared(c) for c in fetch.left])
        node.set("where", exp.Where(this=rest) if rest is not None else None)
        piece.put_into(node)
        piece.put_columns(node)

    def _keep_types(self, node: exp.Select, tree: Tree) -> None:
        """What is read of a stage is of the type that DuckDB gave it, also where Arrow has another for it, and is
        compared by its collation."""
        kinds: dict[Name, str] = {}
        collations: dict[Name, str] = {}
        for id in sources_of(tree):
            source = self.names.sources[id]
            unit = self.derived(source) if source.relation is None else None
            if unit is not None:
                lost = self.stages.lost_types(unit.relation.name)
                kinds.update({name: lost[f] for name, f in unit.columns.items() if f in lost})
                collated = self.stages.collations(unit.relation.name)
                collations.update({name: collated[f] for name, f in unit.columns.items() if f in collated})
        if not (kinds or collations):
            return
        columns = [c for part in all_of(self.names, node) for c in part.find_all(exp.Column)]
        for column in columns:
            name = name_of(column)
            if "typed" in column.meta or not (name in kinds or name in collations):
                continue
            column.meta["typed"] = True
            if name in kinds:
                type_ = exp.DataType.build(kinds[name], dialect="duckdb")
                column.replace(exp.Cast(this=column.copy(), to=type_))
            else:
                column.replace(exp.Collate(this=column.copy(), expression=exp.Var(this=collations[name])))

    def _conjunct(self, conjunct: exp.Expr, frames: Sequence[Piece]) -> None:
        """A WHERE condition's sub-queries; of those of an IN only rows are needed that can be equal."""
        query = conjunct.args.get("query") if isinstance(conjunct, exp.In) else None
        if query is None:
            self.nested(conjunct, frames)
            return
        self.nested(conjunct.this, frames)
        outputs = [("found", f"v{n}") for n in range(len(sides_of(conjunct.this)))]
        pairs = zip(sides_of(conjunct.this), outputs, strict=True)
        equal: list[exp.Expr] = [exp.EQ(this=s.copy(), expression=column_of(*o)) for s, o in pairs]
        self.tied(query, outputs, equal, frames)

    def frame(self, piece: Piece, wanted: Sequence[Name]) -> str:
        """The distinct values of some columns of a FROM clause, to fetch others by."""
        key = (id(piece), tuple(wanted))
        if key not in self._frames:
            self._kept.append(piece)
            self._frames[key] = settle(self.stages, piece.distinct(wanted), "frame", own=False)
        return self._frames[key]

    # Derived tables and WITH entries

    def derived(self, source: Source) -> Unit | None:
        """A derived table as a stage of its own, to be joined in a block; none if it cannot stand alone."""
        key: Cte | str = source.cte or source.id
        if source.cte in self.looping or (source.body is not None and free_names(self.names, source.body)):
            return None
        if key not in self._stage_of:
            self._stage_of[key] = self._own_stage(source)
        name = self._stage_of[key]
        if name is None:
            return None
        schema = self.stages.schema(name)
        columns = {(source.id, c): f for c, f in zip(source.columns, schema.names, strict=True)}
        return Unit(source.id, engine_relation(name, schema), columns, source.position)

    def _own_stage(self, source: Source) -> str | None:
        mark = len(self.stages.done)
        body = self.body(source)
        if source.cte is not None and source.cte.recursive:
            body = self._loop(source.cte, body)
        else:
            self.query(body)
        name = settle(self.stages, body, "step")
        # A loop stands alone or not at all: what it lacks is found out, and told, when it is asked who provides it.
        loops = source.cte is not None and source.cte.recursive
        if loops or all_stand(self.stages.done[mark:]):
            return name
        self.forget(mark)
        return None

    def body(self, source: Source) -> exp.Expr:
        """The query behind a source, to be rewritten freely."""
        assert source.body is not None
        return cloned(self.names, source.body)

    def forget(self, mark: int) -> None:
        """Takes back the stages that were added since there were `mark` of them."""
        gone = {s.name for s in self.stages.done[mark:]}
        self.names.release(gone)
        self.stages.drop(mark)
        self._stage_of = {k: n for k, n in self._stage_of.items() if n not in gone}
        self._frames = {k: s for k, s in self._frames.items() if s not in gone}

    def _loop(self, cte: Cte, body: exp.Expr) -> exp.Expr:
        """A recursive WITH entry: DuckDB runs the loop over what was fetched before it."""
        self.looping.add(cte)
        self.query(body)
        self.looping.discard(cte)
        columns = [exp.to_identifier(c, quoted=True) for c in cte.columns]
        alias = exp.TableAlias(this=exp.to_identifier(cte.name, quoted=True), columns=columns)
        entry = exp.With(recursive=True, expressions=[exp.CTE(this=body, alias=alias)])
        table = exp.Table(this=exp.to_identifier(cte.name, quoted=True))
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), with_=entry)


def _names_sources(item: exp.Expr) -> bool:
    """Whether a FROM item is one that names were resolved for, and not a table function's own call."""
    while isinstance(item, exp.Subquery):
        item = item.this
    return isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier)
