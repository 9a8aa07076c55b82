"""What a trace has, and what it never has."""

from __future__ import annotations

import asyncio
import json
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from fixtures import Behaviour, Fault
from mediator.assembly import POLICIES, Settings
from mediator.errors import MediatorError
from mediator.flow.events import Cancel
from mediator.output.report import Report
from mediator.query.understand import understand
from mediator.tracing.reading import Reader
from mediator.tracing.trace import Trace
from mediator.tracing.writing import Writer
from tests.answering.kit import in_virtual_time, mediating
from tests.tracing.kit import SQL, lines, traced, web

STATEMENTS = (
    SQL,
    "SELECT title FROM books WHERE isbn IN (SELECT isbn FROM prizes)",
    "SELECT b.title, count(*) AS n FROM books b LEFT JOIN reviews r ON r.isbn = b.isbn "
    "GROUP BY 1 ORDER BY n DESC LIMIT 3",
)


@pytest.mark.parametrize("policy", POLICIES)
def test_it_begins_with_what_was_asked_and_ends_with_how_it_went(tmp_path: Path, policy: str) -> None:
    path = tmp_path / "trace"
    rows, report = traced(path, policy=policy, seed=7)
    header, *middle, over = lines(path)
    assert (header["trace"], header["sql"], header["policy"], header["seed"]) == (1, SQL, policy, 7)
    (block,) = header["blocks"].values()
    assert [a["alias"] for a in block["aliases"]] == ["b", "o", "p"]
    assert over["over"] == "complete"
    assert over["rows"] == rows > 0
    assert over["lines"] == len(lines(path))
    assert all(0.0 <= a["at"] <= b["at"] for a, b in pairwise(middle))
    assert report.complete


@pytest.mark.parametrize("sql", STATEMENTS)
def test_every_choice_has_what_was_legal_and_every_ask_ends(tmp_path: Path, sql: str) -> None:
    path = tmp_path / "trace"
    traced(path, sql)
    found = lines(path)
    for line in found:
        if line.get("verb") == "choose":
            _, legal, situation = line["told"]
            assert line["said"] in legal
            assert "Situation" in situation
    asked = {line["ask"]: line["bindings"] for line in found if "ask" in line}
    ended = {line["ended"] for line in found if "ended" in line}
    assert asked.keys() == ended
    assert all(count > 0 for count in asked.values())


def test_no_value_of_a_row_is_in_it(tmp_path: Path) -> None:
    path, over = tmp_path / "trace", web()
    traced(path, over=over, policy="random", seed=3)
    text = path.read_text()
    values = {
        v for name in ("books", "offers", "prizes") for v in over.tables[name].column("isbn").to_pylist()
    }
    titles = set(over.tables["books"].column("title").to_pylist())
    assert values
    assert not [value for value in values | titles if value in text]


def test_a_failure_is_told_by_its_kind_alone(tmp_path: Path) -> None:
    path, over = tmp_path / "trace", web()
    over.behave("prizes", Behaviour(faults=(Fault("error", probability=1.0, status=403),)))
    _, report = traced(path, over=over)
    assert not report.complete
    failed = [line for line in lines(path) if line.get("how") == "failed"]
    assert failed
    assert all(line["cause"] == "refused" for line in failed)
    assert "403" not in path.read_text()
    assert lines(path)[-1]["over"] == "partial"


def test_secrets_are_blotted_out(tmp_path: Path) -> None:
    path, secret = tmp_path / "trace", "tell-nobody-of-this"

    async def run() -> None:
        async with mediating(web()) as mediator:
            mediator._access.redaction.add(secret)
            async with mediator.answering(
                f"SELECT isbn FROM books WHERE title = '{secret}'", trace=path
            ) as answers:
                async for _ in answers:
                    pass

    in_virtual_time(run())
    assert secret not in path.read_text()
    assert "***" in lines(path)[0]["sql"]


def test_it_is_whole_where_its_query_is_left_in_the_middle(tmp_path: Path) -> None:
    path = tmp_path / "trace"

    async def run() -> None:
        async with mediating(web()) as mediator, mediator.answering(SQL, trace=path) as answers:
            await anext(answers)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_virtual_time(run())
    over = lines(path)[-1]
    assert over["over"] == "partial"
    assert over["why"] == "cancelled"


def test_a_file_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    over = web()
    with pytest.raises(MediatorError, match=r"nowhere/trace: the trace cannot be written: No such file"):
        traced(tmp_path / "nowhere" / "trace", over=over)
    assert over.requests == 0


def test_a_query_that_is_cancelled_while_its_trace_is_opened_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    writers: list[Writer] = []

    def slow(path: Path) -> Writer:
        begun.set()
        go_on.wait()
        writers.append(Writer(path))
        return writers[0]

    monkeypatch.setattr("mediator.tracing.trace.Writer", slow)

    async def run() -> None:
        async with mediating(web()) as mediator, asyncio.TaskGroup() as group:
            answers = mediator.answering(SQL, trace=tmp_path / "trace")
            starting = group.create_task(answers.__aenter__())
            await asyncio.to_thread(begun.wait)
            starting.cancel()
            await asyncio.wait([starting])
        go_on.set()

    asyncio.run(run())  # which waits for the thread
    assert writers[0]._file.closed


def test_what_is_noted_while_it_is_closed_is_counted_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace"
    header = {"trace": 1, "sql": "", "policy": "rank", "seed": 0, "settings": {}, "blocks": {}}
    monkeypatch.setattr("mediator.tracing.trace.header_of", lambda *_: header)

    def clean(text: str) -> str:
        if "enough" in text:
            trace.asked(Cancel(1))  # as another thread may, at any moment
        return text

    trace = Trace(path, understand(SQL, web().catalog), {}, Settings(), clean)
    trace.open(lambda: 0.0)
    trace.close(Report(stopped="enough"))
    trace.close(Report())
    trace.asked(Cancel(1))
    assert len(list(Reader(path).lines())) > 0
    assert lines(path)[-1]["lines"] == len(lines(path))


def test_a_disk_that_is_full_ends_the_trace_and_not_the_query() -> None:
    path = Path("/dev/full")
    if not path.exists():
        pytest.skip("there is no /dev/full")
    rows, report = traced(path)
    assert rows > 0
    assert report.complete
    assert report.remarks == (f"the trace {path} is not whole: No space left on device",)


def test_a_query_rests_while_its_trace_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rested: list[int] = []
    monkeypatch.setattr("mediator.tracing.writing.MOST", 100)
    caught_up = Trace.caught_up
    monkeypatch.setattr(Trace, "caught_up", lambda self: (rested.append(1), caught_up(self))[1])
    path = tmp_path / "trace"
    _, report = traced(path)
    assert report.complete
    assert lines(path)[-1]["lines"] == len(lines(path))
    assert rested


def test_what_is_put_by_many_is_there_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    writer = Writer(path)
    for number in range(20_000):
        writer.put(f"{number}\n".encode())
    writer.close()
    writer.put(b"too late\n")
    assert path.read_text().splitlines() == [str(n) for n in range(20_000)]
    assert not writer.error


def test_without_a_trace_nothing_is_recorded() -> None:
    async def run() -> bool:
        async with mediating(web()) as mediator, mediator.answering(SQL) as answers:
            async for _ in answers:
                pass
            assert answers._stages is not None
            return all(e.routing.decisions is None for e in answers._stages.eddies().values())

    assert in_virtual_time(run())


def test_every_line_is_one_json_object(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    traced(path, "SELECT isbn FROM books WHERE title <> 'a\nb'")
    for text in path.read_text().splitlines():
        assert isinstance(json.loads(text), dict)
