"""A process that drives nothing: it notes that it was started, and does what `how.json` in the folder says."""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

import pyarrow as pa

from pipeline.spread.above import written
from pipeline.spread.folder import Folder
from pipeline.spread.given import Given, Giving


def main() -> int:
    folder = Folder(Path(sys.argv[1]))
    (folder.path / f"started-{uuid.uuid4().hex}").touch()
    how = json.loads((folder.path / "how.json").read_text())
    sys.stderr.write(how.get("noise", ""))
    print(how.get("words", ""))
    if how.get("answers"):
        answer(folder, how["answers"])
    if how.get("waits"):
        sys.stdin.buffer.read()
    return int(how.get("code", 0))


def answer(folder: Folder, rows: int) -> None:
    """So many rows without a value, and the end."""
    plan = folder.plan()
    stage = plan.results[0]
    schema = plan.stages[stage].schema
    table = pa.Table.from_pylist([dict.fromkeys(schema.names)] * rows, schema)
    Giving(folder.given).give(Given(None, tuple(written(folder, stage, table)), ended=(stage,)))
    folder.end = {"given": 1, "stopped": ""}


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
