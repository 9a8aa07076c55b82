"""Which asker asks what, and with which part of the limits: together they never ask more than a source bears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sources
from mediator.answering import verdicts_of
from mediator.assembly import Settings
from mediator.binding.counting import Known
from mediator.catalog.ceilings import NO_CEILINGS, Ceilings
from mediator.catalog.model import AccessMethod, Catalog, Field, Mirror, Relation, Source
from mediator.catalog.rate import burst
from mediator.engines import Job
from mediator.query.understand import understand
from pipeline.cells.envelopes import Lookup
from pipeline.spread.dealing import Dealing, dealt, most_askers
from pipeline.spread.engine import askers_of, laid_out
from pipeline.spread.errors import SpreadError
from pipeline.spread.plan import Plan, planned
from pipeline.spread.portion import whose

_NAMES = ("north", "south", "east", "west")
_FIELDS = (Field("k", pa.int64()),)
_LIMITS = st.builds(
    Ceilings, calls=st.sampled_from((None, None, 0, 7)), bytes=st.sampled_from((None, None, 99))
)


@st.composite
def _catalogs(draw: st.DrawFn) -> Catalog:
    drawn = {
        name: Source(
            name,
            rate=draw(st.sampled_from((None, None, 0.5, 9.0, 100.0))),
            concurrency=draw(st.sampled_from((1, 2, 3, 8, 17))),
            per_query=draw(
                st.sampled_from((NO_CEILINGS, NO_CEILINGS, Ceilings(calls=5), Ceilings(seconds=2.0)))
            ),
            daily=draw(st.sampled_from((None, None, 100))),
            robots=draw(st.sampled_from(("ignore", "ignore", "obey"))),
        )
        for name in _NAMES
    }
    mirrors = st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3, unique=True)
    relations = {}
    for number in range(draw(st.integers(1, 4))):
        methods = tuple(
            AccessMethod(f"m{n}", "index", tuple(Mirror(s, "") for s in draw(mirrors)), None, required=("k",))
            for n in range(draw(st.integers(1, 2)))
        )
        relations[f"r{number}"] = Relation(f"r{number}", _FIELDS, methods)
    return Catalog(relations, drawn)


def _said(calls: int | None, at: dict[str, Ceilings]) -> Settings:
    return Settings(max_calls=calls, per_source=at)


_SETTINGS = st.builds(
    _said,
    st.sampled_from((None, None, None, 9)),
    st.dictionaries(st.sampled_from(_NAMES), _LIMITS, max_size=2),
)


def _portions(dealing: Dealing, catalog: Catalog, name: str) -> dict[int, Source]:
    """What each asker has of a source, where it has any."""
    parts = {number: dealing.catalog(catalog, number) for number in range(dealing.askers)}
    return {number: part.sources[name] for number, part in parts.items() if name in part.sources}


@given(_catalogs(), _SETTINGS, st.integers(1, 6))
def test_portions_are_never_more_than_the_whole(catalog: Catalog, said: Settings, askers: int) -> None:
    dealing = dealt(catalog, catalog.relations.values(), said, askers)
    for name, whole in catalog.sources.items():
        parts = list(_portions(dealing, catalog, name).values())
        assert sum(part.concurrency for part in parts) == whole.concurrency
        assert all(part.concurrency > 0 for part in parts)
        if whole.rate is not None:
            assert sum(part.rate or 0.0 for part in parts) == pytest.approx(whole.rate)
            assert sum(burst(part.rate or 0.0) for part in parts) <= burst(whole.rate)
        ceilings = whole.per_query.lesser(said.per_source.get(name, NO_CEILINGS))
        if said.max_calls is not None or ceilings != NO_CEILINGS or whole.daily or whole.robots == "obey":
            assert parts == [whole], "one asker has all of a budget, and of a pace that the site asks for"


@given(_catalogs(), _SETTINGS, st.integers(1, 6))
def test_who_asks_a_source_has_a_part_of_its_limits_and_nobody_else(
    catalog: Catalog, said: Settings, askers: int
) -> None:
    dealing = dealt(catalog, catalog.relations.values(), said, askers)
    for name, relation in catalog.relations.items():
        for method in relation.methods:
            asking = dealing.askers_of(method)
            assert len(set(asking)) == len(asking) > 0
            for mirror in method.mirrors:
                assert set(_portions(dealing, catalog, mirror.source)) == set(asking)
            for number in range(askers):
                part = dealing.catalog(catalog, number).relations.get(name)
                assert (part is not None and method in part.methods) == (number in asking)
    if said.max_calls is not None:
        assert {n for r in catalog.relations.values() for m in r.methods for n in dealing.askers_of(m)} == {0}


@given(_catalogs(), st.integers(2, 6))
def test_nobody_stands_idle_who_could_ask(catalog: Catalog, askers: int) -> None:
    """Sources that are asked by one asker each are not all asked by the same."""
    most = most_askers(catalog, catalog.relations.values(), Settings())
    dealing = dealt(catalog, catalog.relations.values(), Settings(), min(askers, most))
    asking = {n for r in catalog.relations.values() for m in r.methods for n in dealing.askers_of(m)}
    assert asking == set(range(min(askers, most)))


def _plan(askers: int, **said: Any) -> Plan:
    catalog = sources.load_book_trade("http://site.test")
    query = understand(_SQL, catalog)
    return planned(
        catalog, query, verdicts_of(query, catalog), Settings(**said), lambda *_: 10.0, slots=1, askers=askers
    )


_SQL = "SELECT a.name, o.price FROM books b JOIN authors a ON a.id = b.author_id JOIN offers o ON o.isbn = b.isbn"


def _owners(plan: Plan, lookups: Sequence[Lookup]) -> set[int]:
    return {whose(plan, lookup) for lookup in lookups}


def test_lookups_are_dealt_among_those_that_may_ask_them() -> None:
    plan = _plan(3)
    offers = [Lookup("offers", "by_isbn", ("isbn",), (str(n),)) for n in range(100)]
    assert _owners(plan, offers) == {0, 1, 2}
    assert whose(plan, offers[0]) == whose(_plan(3), offers[0])
    assert len(_owners(plan, [Lookup("authors", "by_id", ("id",), (n,)) for n in range(9)])) == 1, (
        "it obeys robots.txt"
    )
    assert len(_owners(_plan(3, per_source={"prices_north": Ceilings(calls=50)}), offers)) == 1
    assert _owners(_plan(3, max_calls=50), offers) == {0}


def _job(**said: Any) -> Job:
    catalog = sources.load_book_trade("http://site.test")
    query = understand(_SQL, catalog)
    return Job(catalog, query, verdicts_of(query, catalog), Settings(**said), Known(), None, None)  # type: ignore[arg-type]


def _session(cores: int, master: str = "spark://driver:7077") -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=cores, master=master))


def test_a_cluster_has_one_asker_for_each_eight_cores() -> None:
    assert [askers_of(_job(), _session(cores)) for cores in (2, 15, 16, 64, 100)] == [1, 1, 2, 8, 12]
    plan = laid_out(_job(), {}, _session(24))
    assert (plan.askers, plan.slots) == (3, 21)


def test_here_there_is_one_unless_more_are_said() -> None:
    assert askers_of(_job(), None) == 1
    assert askers_of(_job(), _session(32, "local[32]")) == 1
    assert askers_of(_job(askers=3), None) == 3
    assert laid_out(_job(askers=3, slots=2), {}).askers == 3


def test_there_are_never_more_than_have_anything_to_ask() -> None:
    assert askers_of(_job(max_calls=10), _session(64)) == 1
    few = _job(askers=50)
    one = {name: replace(source, concurrency=1) for name, source in few.catalog.sources.items()}
    assert askers_of(replace(few, catalog=replace(few.catalog, sources=one)), _session(64)) == 3
    assert askers_of(few, _session(64)) == 8 + 8 + 1


def test_askers_that_would_leave_no_core_are_refused() -> None:
    with pytest.raises(
        SpreadError, match=r"runs 2 tasks at once, and 2 are to ask .* say fewer askers, or use local\[3\]"
    ):
        askers_of(_job(askers=2), _session(2, "local[2]"))
    with pytest.raises(SpreadError, match=r"runs 1 task at once, and a query needs two"):
        askers_of(_job(slots=4), _session(1))
    with pytest.raises(SpreadError, match="askers is 0: a query needs one task at least"):
        askers_of(_job(askers=0), None)
