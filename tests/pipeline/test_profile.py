"""A profile: what is found, how it is kept, and what begins with it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bench import priming
from fixtures import Web
from mediator.answering import Mediator, verdicts_of
from mediator.assembly import Settings, policy_of
from mediator.binding.counting import Known
from mediator.catalog.profile import Profile
from mediator.eddy.policies.prior import prior_of
from mediator.engines import Job
from mediator.query.model import BlockStage
from mediator.query.understand import understand
from mediator.store import profile as kept
from mediator.store.notes import Unreadable
from pipeline.cells.hypercube import hypercube
from pipeline.errors import ProfileError
from pipeline.profiling.job import profile
from pipeline.spread.engine import sizes_of
from tests.cli.kit import at, called
from tests.harvest.kit import ISBNS, catalog_of, harvested, truth
from tests.pipeline.kit import SHARED

pytestmark = [SHARED, pytest.mark.timeout(400)]  # a job of a dozen stages, each compiled first


@pytest.fixture(scope="module")
def stored(calm: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with harvests of the book trade."""
    store = tmp_path_factory.mktemp("profile") / "store"
    for relation, bindings in (("books", None), ("prizes", None), ("offers", ISBNS), ("reviews", ISBNS)):
        assert harvested(calm, store, relation, bindings).report.complete
    return store


@pytest.fixture(scope="module")
def trace(calm: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("runs") / "one.trace"

    async def ask() -> None:
        sql = "SELECT b.title, o.price FROM books b JOIN offers o ON o.isbn = b.isbn"
        async with Mediator(catalog_of(calm)) as mediator, mediator.answering(sql, trace=file) as answers:
            async for _ in answers:
                pass

    asyncio.run(ask())
    return file


@pytest.fixture(scope="module")
def made(spark: SparkSession, calm: Web, stored: Path, trace: Path) -> Profile:
    done = profile(spark, catalog_of(calm), stored, runs=[trace.parent])
    assert done.path.stat().st_size < 200_000
    return kept.read(stored, catalog_of(calm).relations)


def held(web: Web, relation: str) -> list[dict[str, Any]]:
    """What was harvested of it."""
    known = {book["isbn"] for book in truth(web, "books")}
    return [r for r in truth(web, relation) if relation in ("books", "prizes") or r["isbn"] in known]


def test_counts_of_values_are_those_of_the_rows(made: Profile, calm: Web) -> None:
    for name, relation in made.relations.items():
        rows = held(calm, name)
        assert relation.rows == len(rows)
        for column, found in relation.columns.items():
            counts = Counter(row[column] for row in rows if row[column] is not None)
            assert (found.filled, found.distinct) == (counts.total(), len(counts))
            assert found.most == max(counts.values(), default=0)
            assert all(counts[type(next(iter(counts)))(value)] == n for value, n in found.heavy)
        for pair, distinct in relation.together.items():
            true = len({(r[pair[0]], r[pair[1]]) for r in rows if None not in (r[pair[0]], r[pair[1]])})
            assert abs(distinct - true) <= max(2, 0.1 * true)
    assert made.relations["books"].whole
    assert not made.relations["offers"].whole


def test_joins_are_those_of_the_rows(made: Profile, calm: Web) -> None:
    names = sorted(made.relations)
    for one, other in combinations(names, 2):
        left, right = held(calm, one), held(calm, other)
        pairs = sum(a["isbn"] == b["isbn"] for a in left for b in right)
        share = made.share((one, "isbn"), (other, "isbn"))
        assert share == made.share((other, "isbn"), (one, "isbn"))
        assert (share or 0.0) == pytest.approx(pairs / (len(left) * len(right)))
    with_offers = {row["isbn"] for row in held(calm, "offers")}
    assert made.relations["offers"].found("isbn") == pytest.approx(len(with_offers) / 60)


def test_what_was_measured_and_traced_is_in_it(made: Profile, stored: Path) -> None:
    measured = {place.relation: m for place, m in made.measured}
    assert set(measured) >= {"books", "prizes", "offers", "reviews"}
    assert all(m.requests > 0.5 and m.latency.quantile(0.5) > 0 for m in measured.values())
    runs = {(r["relation"], r["how"]): r for r in json.loads((stored / kept.FILE).read_text())["runs"]}
    assert runs["offers", "answered"]["lookups"] == 60
    assert runs["books", "answered"]["rows"] == 60


def test_the_default_policy_begins_with_it(made: Profile, calm: Web) -> None:
    sql = "SELECT * FROM books b JOIN offers o ON o.isbn = b.isbn JOIN prizes p ON p.isbn = b.isbn"
    query = understand(sql, catalog_of(calm))
    stage = next(s for s in query.stages if isinstance(s, BlockStage))
    prior = prior_of(stage.block, made)
    assert len(prior) == 3
    policy = policy_of(Settings(), stage.block, verdicts_of(query, catalog_of(calm))[stage.name], prior)
    aliases = {a.name: a.number for a in stage.block.aliases}
    link = policy._lattice.link(1 << aliases["b"], aliases["p"])  # type: ignore[attr-defined]
    share = made.share(("books", "isbn"), ("prizes", "isbn"))
    assert share is not None
    assert link.share == pytest.approx(share)


def test_cells_are_cut_by_it(made: Profile, calm: Web) -> None:
    sql = "SELECT * FROM books b JOIN offers o ON o.isbn = b.isbn JOIN authors a ON a.id = b.author_id"
    catalog = catalog_of(calm)
    query = understand(sql, catalog)
    stage = next(s for s in query.stages if isinstance(s, BlockStage))
    job = Job(
        catalog,
        query,
        verdicts_of(query, catalog),
        Settings(),
        Known(made.measured.of, profile=made),
        None,
        None,
    )  # type: ignore[arg-type]
    size = sizes_of(stage, job)
    sizes = {alias.name: size(alias) for alias in stage.block.aliases}
    assert sizes["b"] == pytest.approx(60, rel=0.1)
    assert hypercube(stage.block, list(sizes.values()), 4).cells == 4


def test_explain_says_what_selections_leave(made: Profile, calm: Web, stored: Path, tmp_path: Path) -> None:
    """In a store that has the profile, and no rows any more."""
    (tmp_path / "store").mkdir()
    called("harvest", "prizes", "--store", str(tmp_path / "store"), *at(calm))
    (tmp_path / "store" / kept.FILE).write_bytes((stored / kept.FILE).read_bytes())
    sql = "SELECT * FROM books b JOIN reviews r ON r.isbn = b.isbn WHERE b.publisher = b.publisher AND b.year > 1990"
    cold = called("explain", sql, *at(calm)).stdout
    primed = called("explain", sql, "--store", str(tmp_path / "store"), *at(calm)).stdout
    assert "selections unknown" in cold
    assert "selections unknown" not in primed
    assert "reviews (r)" in primed


def test_a_profile_of_relations_that_are_declared_otherwise_is_not_believed(
    made: Profile, calm: Web, stored: Path, tmp_path: Path
) -> None:
    said = json.loads((stored / kept.FILE).read_text())
    said["relations"]["books"]["declared"] = "otherwise"
    kept.save(tmp_path, said)
    found = kept.load(tmp_path, catalog_of(calm).relations)
    assert "books" not in found.relations
    assert found.share(("books", "isbn"), ("prizes", "isbn")) is None
    assert found.share(("offers", "isbn"), ("prizes", "isbn")) is not None


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"version": 9}', '{"version": 1, "at": 1, "relations": {"books": {}}}', "[]"]
)
def test_a_file_that_is_damaged_is_left_aside(
    calm: Web, tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / kept.FILE).write_text(text)
    with pytest.raises(Unreadable):
        kept.read(tmp_path, catalog_of(calm).relations)
    assert not kept.load(tmp_path, catalog_of(calm).relations).relations
    assert "`mediator profile` makes another" in caplog.text


def test_nothing_to_go_by_is_told(spark: SparkSession, calm: Web, tmp_path: Path) -> None:
    harvested(calm, tmp_path / "store", "prizes")
    for path in (tmp_path / "store" / "harvest").rglob("*.json"):
        path.unlink()
    (tmp_path / "store" / "statistics.json").unlink()
    with pytest.raises(ProfileError, match="mediator harvest RELATION --store"):
        profile(spark, catalog_of(calm), tmp_path / "store")
    with pytest.raises(ProfileError, match="there is no such trace"):
        profile(spark, catalog_of(calm), tmp_path / "store", runs=[tmp_path / "nowhere"])


def test_the_command(
    spark: SparkSession, made: Profile, calm: Web, stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def session() -> Iterator[SparkSession]:
        yield spark

    import pipeline.session

    monkeypatch.setattr(pipeline.session, "local_session", session)
    result = called("profile", "--store", str(stored), *at(calm))
    assert result.exit_code == 0, result.output
    assert "books: 60 rows, all of it; 60 isbn" in result.stderr
    assert "reviews.by_isbn at readers" in result.stderr
    assert called("profile", *at(calm)).exit_code == 2
    nowhere = called("profile", "--store", str(stored / "nowhere"), *at(calm))
    assert (nowhere.exit_code, "is no store" in nowhere.stderr) == (2, True)


def test_a_run_that_began_with_it_is_replayed_as_it_was(
    made: Profile, calm: Web, stored: Path, tmp_path: Path
) -> None:
    file = tmp_path / "primed.trace"
    harvested(calm, tmp_path / "store", "prizes")
    (tmp_path / "store" / kept.FILE).write_bytes((stored / kept.FILE).read_bytes())
    sql = "SELECT b.title FROM books b JOIN offers o ON o.isbn = b.isbn JOIN prizes p ON p.isbn = b.isbn"
    arguments = ["--store", str(tmp_path / "store"), "--trace", str(file), "--format", "csv", *at(calm)]
    assert called("query", sql, *arguments).exit_code == 0
    header = json.loads(file.read_text().splitlines()[0])
    (block,) = (b for b in header["blocks"].values() if len(b["aliases"]) == 3)
    assert len(block["prior"]) == 3
    replayed = called("trace", "replay", str(file))
    assert replayed.exit_code == 0, replayed.output


def test_a_primed_run_asks_for_less(spark: SparkSession) -> None:
    figure, detail = priming.measured(spark, rounds=1)
    assert figure < 1.05
    least = detail["least requests"]
    assert least <= detail["primed, fewest_calls"]["requests"] <= detail["cold, fewest_calls"]["requests"]
    assert detail["primed, all_rows"]["requests"] >= least
