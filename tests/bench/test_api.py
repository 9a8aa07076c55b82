"""The bench of the HTTP API at a tiny size: its answers are verified, and its shape is what is promised. No speeds."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import api
from bench.__main__ import main
from bench.api_client import Asked, crowd, drain, hold, leave, lookup, verify
from bench.api_reading import ACCEPT, check_end, pieces_of, rows_of
from bench.api_site import PAGE, SCHEMA, large
from bench.api_stage import Scale, Stage

FIGURES = {
    "ttfr_overhead_ms",
    "rows_per_s_ndjson",
    "rows_per_s_arrow",
    "ndjson_vs_bare",
    "arrow_vs_bare",
    "concurrent_queries",
    "rss_per_query_kb",
    "cancel_ms_p99",
    "event_loop_stall_ms_p99",
}
SMALL = ["--rows", "70000", "--clients", "4", "--samples", "2", "--rounds", "1", "--stalled", "3"]
SQL = "SELECT k, price, title FROM large"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(Scale(rows=PAGE + 500, clients=4)) as found:
        yield found


def test_it_tells_every_figure_and_draws(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(api, "Scale", partial(Scale, each=2, alone=2, quick=0.01, slow=0.02))
    file = tmp_path / "api.png"
    assert main(["api", "--json", *SMALL, "--plot", str(file)]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["bench"] == "api"
    assert set(told["figures"]) == FIGURES
    detail = told["detail"]
    assert detail["rss_per_query"]["queries"] == 4
    assert detail["ttfr_overhead"]["lookups"] == 2 * len(ACCEPT)
    assert set(detail["ttfr_overhead"]["over_ms"]) == set(ACCEPT)
    assert detail["concurrent_queries"]["queries"] == 4 * 2
    for format_ in ("ndjson", "arrow"):
        assert detail[format_]["rows"] == 70_000
        assert len(detail[format_]["seconds"]) == len(detail[format_]["bare_seconds"]) == 1
        assert told["figures"][f"rows_per_s_{format_}"] > 0
    assert detail["stalled_readers"]["readers"] == 3
    assert file.stat().st_size > 10_000


def test_its_own_sizes_are_those_that_are_promised() -> None:
    scale = Scale()
    assert (scale.rows, scale.clients, scale.stalled) == (1_000_000, 200, 100)
    assert (scale.quick, scale.slow) == (0.05, 0.2)


def test_every_format_answers_with_the_source_s_row(stage: Stage) -> None:
    stage.site.ask("anew")
    asked = [Asked("quick", 10 + n, f) for n, f in enumerate(ACCEPT)]
    (answers,) = crowd(stage.port, [asked])
    assert stage.site.ask("look").came.keys() == {10, 11, 12}
    for answer in answers:
        assert 0.05 <= answer.first_row <= answer.ended


@pytest.mark.parametrize("format_", ["ndjson", "arrow"])
def test_a_large_answer_is_verified_row_by_row(stage: Stage, format_: str) -> None:
    rows = PAGE + 500
    pieces = verify(stage.port, SQL, format_, rows)
    assert sum(map(len, pieces)) > 16 * rows
    assert drain(stage.port, SQL, format_, rows) > 0
    with pytest.raises(RuntimeError, match="not a whole answer"):
        drain(stage.port, SQL, format_, rows + 1)
    with pytest.raises(RuntimeError, match="are no answer"):
        drain(stage.port, SQL, format_, rows, 10 * sum(map(len, pieces)))
    with pytest.raises(RuntimeError, match="is not what the source has"):
        verify(stage.port, SQL.replace("price", "price + 1 AS price"), format_, rows)


def test_a_source_sees_that_its_client_has_left(stage: Stage) -> None:
    stage.site.ask("anew")
    hold(stage.port, [lookup(Asked("held", key)) for key in (1, 2)])
    stage.until(lambda: len(stage.site.ask("look").came) == 2, "both have come")
    left = leave(1, reset=True) + leave(1, reset=False)
    stage.until(lambda: len(stage.site.ask("look").left) == 2, "both are abandoned")
    known = stage.site.ask("look").left
    assert known[1] >= left[0]
    assert known[2] >= left[1]


def test_ticks_are_told(stage: Stage) -> None:
    with stage.ticking() as late:
        crowd(stage.port, [[Asked("quick", 50)]])
    assert len(late) > 5


def test_an_answer_that_is_wrong_is_no_figure(stage: Stage) -> None:
    with pytest.raises(RuntimeError, match="not a whole answer"):
        crowd(stage.port, [[Asked("nowhere", 1)]])


def test_what_has_come_so_far_is_read() -> None:
    record = json.dumps({"type": "rows", "rows": [{"k": 1, "v": "v1"}]}).encode() + b"\n"
    raw = b"HTTP/1.1 200 OK\r\n\r\n" + b"%x\r\n%b\r\n" % (len(record), record)
    assert pieces_of(raw) == [record]
    assert pieces_of(raw[:-1]) == []
    assert rows_of("ndjson", record) == [(1, "v1")]
    assert rows_of("ndjson", record[:-1]) == []
    assert rows_of("sse", b"event: rows\nid: 1\ndata: " + record + b"\n") == [(1, "v1")]
    assert rows_of("arrow", b"") == []
    with pytest.raises(RuntimeError, match="not a whole answer"):
        check_end(raw)


def test_the_large_relation_is_the_same_each_time() -> None:
    assert large(100).equals(large(100))
    assert large(100).schema == SCHEMA


def test_children_end_with_their_block() -> None:
    with Stage(Scale(rows=10)) as stage:
        ports = [stage.port, stage.site_port]
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
