"""A log alone: who may write it, whose it is, and what becomes of it when its writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pipeline.errors import LogError
from pipeline.log import Log, read_piece

WHOSE = {"query": "SELECT 1", "parameters": [], "catalog": ["a.yaml"], "columns": "struct<x:int>"}
SCHEMA = pa.schema({"x": pa.int64()})


def batch(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, pa.int64())}, schema=SCHEMA)


def test_pieces_are_numbered_and_read_again(tmp_path: Path) -> None:
    log = Log.of(str(tmp_path / "log"), WHOSE)
    with log.writing() as writer:
        assert writer is not None
        writer.write(SCHEMA, [batch(1), batch(2, 3)])
        writer.write(SCHEMA, [])
        assert (log.pieces(), log.end) == (2, None)
        writer.end({"complete": True})
    again = Log.of(f"file://{tmp_path}/log", WHOSE)
    assert (again.id, again.pieces()) == (log.id, 2)
    assert again.end is not None
    assert again.end.report == {"complete": True}
    assert [b.to_pydict() for b in read_piece(again.piece(0))] == [{"x": [1]}, {"x": [2, 3]}]
    assert list(read_piece(again.piece(1))) == []


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    log = Log.of(str(tmp_path), WHOSE)
    with log.writing() as one, log.writing() as other:
        assert one is not None
        assert other is None
    with log.writing() as one:
        assert one is not None


def test_a_log_of_another_query_is_refused(tmp_path: Path) -> None:
    Log.of(str(tmp_path), WHOSE)
    for name, value in (
        ("query", "SELECT 2"),
        ("parameters", [1]),
        ("catalog", []),
        ("columns", "struct<y:int>"),
    ):
        with pytest.raises(
            LogError, match=f"this log belongs to another query: its {name} is .*, not .*Name another folder"
        ):
            Log.of(str(tmp_path), {**WHOSE, name: value})


@pytest.mark.parametrize("folder", ["s3://bucket/log", "hdfs:/log"])
def test_it_is_a_folder_of_the_file_system(folder: str) -> None:
    with pytest.raises(LogError, match="a folder of the file system"):
        Log.of(folder, WHOSE)


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LogError, match="a log cannot be kept there"):
        Log.of(str(tmp_path / "file" / "log"), WHOSE)
    (tmp_path / "log.json").write_text("not json", encoding="utf-8")
    with pytest.raises(LogError, match="not what a log begins with"):
        Log.of(str(tmp_path), WHOSE)
    (tmp_path / "log.json").write_text('{"format": 7}', encoding="utf-8")
    with pytest.raises(LogError, match="another version"):
        Log.of(str(tmp_path), WHOSE)


def test_a_log_that_was_changed_is_noticed(tmp_path: Path) -> None:
    log = Log.of(str(tmp_path), WHOSE)
    with log.writing() as writer:
        assert writer is not None
        for number in range(3):
            writer.write(SCHEMA, [batch(number)])
    log.piece(1).unlink()
    with pytest.raises(LogError, match=r"00000001.arrow is missing"):
        log.pieces()
    log.piece(2).write_bytes(b"not arrow")
    with pytest.raises(LogError, match="cannot be read here"):
        list(read_piece(log.piece(2)))


KILLED = """
import pyarrow as pa, sys
from tests.pipeline.test_log import SCHEMA, WHOSE, batch
from pipeline.log import Log

with Log.of(sys.argv[1], WHOSE).writing() as writer:
    writer.write(SCHEMA, [batch(1)])
    def endless():
        print("writing", flush=True)
        while True:
            yield batch(*range(1000))
    writer.write(SCHEMA, endless())
"""


def test_a_writer_that_is_killed_leaves_whole_pieces_and_no_lock(tmp_path: Path) -> None:
    writing = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert writing.stdout is not None
        assert writing.stdout.readline() == b"writing\n"
    finally:
        os.kill(writing.pid, signal.SIGKILL)
        writing.communicate()
    log = Log.of(str(tmp_path), WHOSE)
    assert log.pieces() == 1
    with log.writing() as writer:
        assert writer is not None
        writer.write(SCHEMA, [batch(2)])
    assert [b.to_pydict() for n in range(2) for b in read_piece(log.piece(n))] == [{"x": [1]}, {"x": [2]}]
    assert not list(tmp_path.glob(".*.new"))
