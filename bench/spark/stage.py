"""What all parts share: a warm Spark session, a folder, and the turns that contestants take."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.spark import checking, rivals
from bench.spark.ours import Ran, spread
from bench.spark.scale import Scale
from bench.spark.trade import Laid, lay
from pipeline.session import local_session
from pipeline.spread.stream import Pace

_WARM = 20_000  # rows on which kernels are compiled, and Java's warm up


class Stage:
    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self._stack = ExitStack()
        self._runs = 0
        self._laid: dict[tuple[str, int], Laid] = {}
        self._truths: dict[str, checking.Sum] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mediator-bench-")))
            memory = {"spark.driver.memory": self.scale.memory}
            self.session = stack.enter_context(local_session(self.scale.cores, memory))
            warm = lay("uniform", min(_WARM, self.scale.rows), self.folder / "warm")
            self.ours(warm)
            self.batch(warm, rivals.tunings(self.scale.cores)["adaptive"])
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def setting(self) -> dict[str, Any]:
        return {
            "cores": self.scale.cores,
            "memory_of_java": self.scale.memory,
            "rows": self.scale.rows,
            "taken": f"the best of {self.scale.rounds} rounds, contestants in turns, after one that is not counted",
            "clock": "from SQL text to all answers as Parquet on the disk",
        }

    def lay(self, name: str, rows: int) -> Laid:
        if (name, rows) not in self._laid:
            self._laid[name, rows] = lay(name, rows, self.folder / f"{name}-{rows}")
        return self._laid[name, rows]

    def ours(
        self, laid: Laid, *, slots: int | None = None, cells: int | None = None, pace: Pace | None = None
    ) -> Ran:
        """Run ours, check it, and clear it away."""
        path = self._new()
        ran = spread(self.session, laid, path, slots=slots or self.scale.cores, cells=cells, pace=pace)
        self._check("ours", laid, checking.found(ran.files))
        shutil.rmtree(path)
        return ran

    def batch(self, laid: Laid, tuning: rivals.Tuning) -> float:
        path = self._new()
        seconds = rivals.batch(self.session, laid, path, tuning)
        self._check("Spark SQL", laid, checking.found(sorted(path.glob("*.parquet"))))
        shutil.rmtree(path)
        return seconds

    def streams(self, laid: Laid) -> float:
        path = self._new()
        seconds = rivals.streams(self.session, laid, path, self.scale.cores)
        self._check("Spark's streams", laid, checking.found(sorted((path / "rows").glob("*.parquet"))))
        shutil.rmtree(path)
        return seconds

    def turns(self, contestants: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
        """Seconds of each round, in which everybody has a turn. The first round of all counts for nobody."""
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for number in range(self.scale.rounds + 1):
            for name, run in contestants.items():
                took = run()
                if number or not self.scale.rounds:
                    seconds[name].append(took)
        return seconds

    def _new(self) -> Path:
        self._runs += 1
        return self.folder / f"run-{self._runs}"

    def _check(self, who: str, laid: Laid, said: checking.Sum) -> None:
        key = str(sorted(laid.files.items())) + laid.sql
        if key not in self._truths:
            self._truths[key] = checking.truth(laid)
        checking.check(who, said, self._truths[key])
