"""What a second core brings: `python -m bench.spark.cores JSON`, a process that keeps to so many cores, Java and all.

It runs a query at each line of its stdin, and says how many seconds it took; it ends where its stdin does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.kept import Kept
from bench.result import Result
from bench.spark import checking
from bench.spark.ours import spread
from bench.spark.stage import Stage
from bench.spark.trade import Laid
from pipeline.session import local_session

_MORE = 3  # times as many rows


def cores(stage: Stage, result: Result) -> None:
    """One core with one slot, and as many as there are to be; each in a process of its own, in turns. Of as many rows
    as the other parts have, of which what is fixed takes a good part of the time, and of more."""
    most = stage.scale.cores
    if (have := len(os.sched_getaffinity(0))) < most:
        raise RuntimeError(f"this process may use {have} of the {most} cores that are to be compared")
    for name, rows in ("", _MORE * stage.scale.rows), ("_small", stage.scale.rows):
        there = stage.lay("uniform", rows)
        with _Process(there, 1, stage.scale.memory) as one, _Process(there, most, stage.scale.memory) as all_:
            seconds = stage.turns({"1": one.run, str(most): all_.run})
        best = {count: min(rounds) for count, rounds in seconds.items()}
        result.figures[f"cores_1_to_{most}{name}"] = best["1"] / best[str(most)]
        result.detail[f"cores{name}"] = {"rows": rows, "s": {count: round(s, 3) for count, s in best.items()}}
        result.curves[f"cores{name}"] = best


class _Process(Kept):
    """One that keeps to so many cores."""

    def __init__(self, laid: Laid, cores: int, memory: str) -> None:
        said = json.dumps({"laid": laid.as_dict(), "cores": cores, "memory": memory})
        super().__init__("bench.spark.cores", said)

    def run(self) -> float:
        line = self.ask()
        if not line:
            raise RuntimeError("the process that keeps to some cores has ended")
        return float(line)


def main(arguments: Sequence[str]) -> None:
    said = json.loads(arguments[0])
    laid, count = Laid(**said["laid"]), said["cores"]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    true = checking.truth(laid)
    memory = {"spark.driver.memory": said["memory"]}
    with (
        tempfile.TemporaryDirectory(prefix="mediator-bench-") as folder,
        local_session(count, memory) as session,
    ):
        for number, _ in enumerate(sys.stdin):
            path = Path(folder) / f"run-{number}"
            ran = spread(session, laid, path, slots=count)
            checking.check(f"{count} cores", checking.found(ran.files), true)
            shutil.rmtree(path)
            print(ran.seconds, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
