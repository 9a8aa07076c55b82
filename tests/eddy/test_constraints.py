"""Where a batch may go, rule by rule."""

from __future__ import annotations

import pyarrow as pa

from mediator.binding.model import Provider
from mediator.binding.verdict import verdict
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.eddy.constraints import Graph, legal
from mediator.eddy.destinations import Destination, Hold, Leave, LookUp, Park, Probe
from mediator.flow.batch import Signature
from mediator.query.model import Block, BlockStage
from mediator.query.understand import understand

MIRROR = Mirror("site", "")
SCAN = AccessMethod("scan", "scan", (MIRROR,), None)


def _index(*fields: str) -> AccessMethod:
    return AccessMethod("by " + " and ".join(fields), "index", (MIRROR,), None, required=fields)


def _catalog(**methods: tuple[AccessMethod, ...]) -> Catalog:
    fields = tuple(Field(name, pa.int64()) for name in ("x", "y", "z"))
    relations = {name: Relation(name, fields, ways) for name, ways in methods.items()}
    return Catalog(relations, {"site": Source("site")})


def _laid_out(
    sql: str, catalog: Catalog
) -> tuple[Block, tuple[tuple[Provider, ...], ...], tuple[Provider, ...]]:
    (stage,) = understand(sql, catalog).stages
    assert isinstance(stage, BlockStage)
    found = verdict(stage.block)
    return stage.block, found.providers, found.chosen


def _legal(sql: str, catalog: Catalog, signature: Signature) -> set[Destination]:
    block, providers, chosen = _laid_out(sql, catalog)
    return set(legal(signature, Graph.of(block), providers, chosen))


CHAIN = "SELECT r.x FROM r, s, t WHERE r.x = s.x AND s.y = t.y"


def test_a_batch_goes_to_every_alias_that_a_predicate_ties_it_to() -> None:
    catalog = _catalog(r=(SCAN,), s=(SCAN,), t=(SCAN,))
    assert _legal(CHAIN, catalog, Signature(0b001)) == {Probe(1)}
    assert _legal(CHAIN, catalog, Signature(0b010)) == {Probe(0), Probe(2)}
    assert _legal(CHAIN, catalog, Signature(0b011)) == {Probe(2)}
    assert _legal(CHAIN, catalog, Signature(0b111)) == {Leave()}


def test_equal_columns_tie_all_aliases_of_their_class_so_no_spanning_tree_is_fixed() -> None:
    catalog = _catalog(r=(SCAN,), s=(SCAN,), t=(SCAN,))
    sql = "SELECT r.x FROM r, s, t WHERE r.x = s.x AND s.x = t.x"
    assert _legal(sql, catalog, Signature(0b001)) == {Probe(1), Probe(2)}


def test_a_blind_alias_is_for_when_nothing_else_is_left() -> None:
    catalog = _catalog(r=(SCAN,), s=(_index("x"),), t=(SCAN,))
    sql = "SELECT r.x FROM r, s, t WHERE r.x = s.x AND s.y = t.y AND t.z = r.z"
    assert _legal(sql, catalog, Signature(0b100)) == {Probe(0)}
    assert _legal(CHAIN, catalog, Signature(0b100)) == {Probe(1)}


def test_a_prior_prober_goes_to_access_modules_of_its_alias_only() -> None:
    catalog = _catalog(r=(SCAN,), s=(_index("x"),), t=(SCAN,))
    assert _legal(CHAIN, catalog, Signature(0b001, completing=1)) == {LookUp(1, 0), Hold(1)}
    assert _legal(CHAIN, catalog, Signature(0b100, completing=1)) == {Park(1)}


def test_where_a_scan_brings_the_rows_a_lookup_is_a_choice() -> None:
    catalog = _catalog(r=(SCAN,), s=(SCAN, _index("x")), t=(SCAN,))
    _, providers, _ = _laid_out(CHAIN, catalog)
    number = next(n for n, p in enumerate(providers[1]) if p.depends)
    assert _legal(CHAIN, catalog, Signature(0b001, completing=1)) == {Park(1), LookUp(1, number), Hold(1)}


def test_inputs_that_nothing_joins_are_crossed() -> None:
    catalog = _catalog(r=(SCAN,), s=(_index("x", "y"),), t=(SCAN,))
    assert _legal(CHAIN, catalog, Signature(0b001)) == {Probe(2)}
    assert _legal(CHAIN, catalog, Signature(0b100)) == {Probe(0)}
    assert _legal(CHAIN, catalog, Signature(0b101)) == {Probe(1)}


def test_what_nothing_joins_is_crossed_last() -> None:
    catalog = _catalog(r=(SCAN,), s=(SCAN,), t=(SCAN,))
    sql = "SELECT r.x FROM r, s, t WHERE r.x = s.x"
    assert _legal(sql, catalog, Signature(0b001)) == {Probe(1)}
    assert _legal(sql, catalog, Signature(0b011)) == {Probe(2)}
    assert _legal(sql, catalog, Signature(0b100)) == {Probe(0), Probe(1)}
