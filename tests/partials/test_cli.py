"""`mediator query --partials`: what is told beside the answers, and in which formats."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from api.exits import Mistake
from api.partials import NdjsonRecords, TableRecords
from mediator.output.records import Partial
from tests.cli.kit import called

CATALOG = """
sources:
  here: {{base: "{url}", allow_private: true}}
relations:
  r:
    fields: {{a: int64, c: int64}}
    methods:
      scan: {{mirrors: [here], request: {{path: /r}}, reply: {{kind: json, rows: /rows}}}}
  s:
    fields: {{a: int64, b: int64}}
    methods:
      scan: {{mirrors: [here], request: {{path: /s}}, reply: {{kind: json, rows: /rows}}}}
"""
ROWS = {
    "/r": [{"a": 1, "c": 10}, {"a": 2, "c": 20}],
    "/s": [{"a": 1, "b": 100}, {"a": 1, "b": 101}],
}
SQL = "SELECT r.a, s.b, r.c FROM r, s WHERE r.a = s.a"


@contextmanager
def served(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """Options that name a catalog, and a file to write to: `s` answers when partial answers are there."""
    out, over = folder / "answers", threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            while (
                path == "/s" and not over.is_set() and b"2" not in (out.read_bytes() if out.exists() else b"")
            ):
                time.sleep(0.005)
            body = json.dumps({"rows": ROWS[path]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *said: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    catalog = folder / "here.yaml"
    catalog.write_text(CATALOG.format(url=f"http://127.0.0.1:{server.server_port}"))
    try:
        yield ["--catalog", str(catalog), "--output", str(out)], out
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def test_ndjson_marks_what_is_partial_and_what_became_of_it(tmp_path: Path) -> None:
    with served(tmp_path) as (options, out):
        result = called("query", SQL, *options, "--format", "ndjson", "--partials", "--stalled-after", "0.01")
    assert result.exit_code == 0
    told = [json.loads(line) for line in out.read_text().splitlines()]
    partial = {r["a"]: r for r in told if "partial" in r}
    assert partial[1] == {
        "partial": partial[1]["partial"],
        "missing": ["s"],
        "unknown": ["b"],
        "a": 1,
        "b": None,
        "c": 10,
    }
    answers = [r for r in told if "b" in r and "partial" not in r]
    assert sorted(r["b"] for r in answers) == [100, 101]
    assert all(r["completes"] == [partial[1]["partial"]] for r in answers)
    assert [r["withdrawn"] for r in told if "withdrawn" in r] == [partial[2]["partial"]]
    assert "partial answers: 2 given, 1 completed, 1 withdrawn" in result.stderr


def test_a_table_marks_them_too(tmp_path: Path) -> None:
    with served(tmp_path) as (options, out):
        result = called("query", SQL, *options, "--format", "table", "--partials", "--stalled-after", "0.01")
    assert result.exit_code == 0
    lines = out.read_text().splitlines()
    assert lines[0].split() == ["partial", "a", "b", "c"]
    waiting = [line.split() for line in lines if "without s" in line]
    assert sorted(line[3:] for line in waiting) == [["1", "…", "10"], ["2", "…", "20"]]
    assert sum("completes #" in line for line in lines) == 2
    assert sum("withdrawn: no answer has these rows" in line for line in lines) == 1


@pytest.mark.parametrize("format_", ["csv", "json", "arrow", "parquet"])
def test_other_formats_cannot_tell_them_apart(tmp_path: Path, format_: str) -> None:
    out = str(tmp_path / "out")
    result = called("query", SQL, "--demo", "--partials", "--format", format_, "--output", out)
    assert result.exit_code == 2
    assert f"--partials: {format_} cannot tell partial answers from others" in result.stderr
    assert "--format ndjson" in result.stderr


def test_a_time_of_silence_is_for_partial_answers() -> None:
    result = called("query", SQL, "--demo", "--stalled-after", "1", "--format", "ndjson")
    assert result.exit_code == 2
    assert "goes with --partials" in result.stderr
    result = called("query", SQL, "--demo", "--partials", "--stalled-after", "soon", "--format", "ndjson")
    assert result.exit_code == 2
    assert "expected a length of time" in result.stderr


def test_a_column_of_a_table_may_be_called_as_the_mark_is() -> None:
    schema = pa.schema([("partial", pa.int64()), ("b", pa.int64())])
    batch = pa.record_batch([pa.array([None]), pa.array([7])], schema=schema)
    said = TableRecords(schema).record(Partial((1,), batch, ("partial",), ("s",), ("s",))).decode()
    assert said.splitlines()[-1].split() == ["#1", "without", "s", "…", "7"]


def test_in_a_pipe_and_in_a_file_they_are_lines_of_json(tmp_path: Path) -> None:
    with served(tmp_path) as (options, out):
        result = called("query", SQL, *options, "--partials", "--stalled-after", "0.01")
    assert result.exit_code == 0
    assert any("partial" in json.loads(line) for line in out.read_text().splitlines())


def test_a_column_that_is_called_like_a_mark_is_refused() -> None:
    with pytest.raises(Mistake, match="a column is called 'completes'"):
        NdjsonRecords(pa.schema([("completes", pa.int64())]))
