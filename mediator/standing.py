"""How a query stands, for whoever looks while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mediator.live import Live
from mediator.output.report import Report
from mediator.stages import Stages


class Standing:
    """While a thread has the query's stages nobody else may look at them: then this is how it stood before, and from
    the second time on that somebody looks, just before."""

    def __init__(self) -> None:
        self._stages: Stages | None = None
        self.lent = False  # to a thread
        self._report, self._live = Report(), Live()
        self._report_wanted = self._live_wanted = False

    def begin(self, stages: Stages) -> None:
        self._stages = stages

    def report(self) -> Report:
        if self.lent:
            self._report_wanted = True
        elif self._stages is not None:
            self._report = self._stages.report()
        return self._report

    def live(self) -> Live:
        if self.lent:
            self._live_wanted = True
        elif self._stages is not None:
            self._live = self._stages.live()
        return self._live

    @contextmanager
    def lend(self) -> Iterator[None]:
        """A thread has the stages until the end of the block."""
        if self._report_wanted:
            self.report()
        if self._live_wanted:
            self.live()
        self.lent = True
        try:
            yield
        finally:
            self.lent = False
