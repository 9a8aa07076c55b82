"""All processes of one measurement: the scripted source, the server that asks it, and the clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Any, Self
from urllib.request import Request, urlopen

from bench import api_client, api_server, api_site
from bench.api_child import Child
from mediator.access.mirrors.latency import nearest_rank

_PATIENCE = 60.0


@dataclass(frozen=True)
class Scale:
    """How much is asked; times in seconds."""

    rows: int = 1_000_000  # of the large answer
    clients: int = 200  # at once
    each: int = 5  # queries of each of them, one after another
    alone: int = 30  # queries of the one client that the crowd is compared with
    samples: int = 200  # queries in each format
    rounds: int = 5  # of the large answer, contestants in turns
    stalled: int = 100  # readers that read no more
    quick: float = 0.05  # a lookup's latency, where one client asks
    slow: float = 0.2  # where many do


class Stage:
    """`with Stage(scale) as stage`: a source, a server that has not been asked anything yet, and a client."""

    tick = api_server.TICK

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            scale = self._scale
            self.site = stack.enter_context(Child(api_site.serve, scale.rows))
            url = self.site.hear()
            self.site_port = int(url.rpartition(":")[2])
            latencies = {"quick": scale.quick, "slow": scale.slow}
            declared = api_site.catalog(url, latencies, scale.rows)
            self.server = stack.enter_context(Child(api_server.serve, declared))
            self.port: int = self.server.hear()
            self.client = stack.enter_context(Child(api_client.work))
            self.got("/readyz")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def got(self, path: str, body: bytes | None = None) -> str:
        """What the server says, beside all that is measured."""
        request = Request(f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=_PATIENCE) as response:
            text: str = response.read().decode()
        return text

    def gauge(self, name: str) -> float:
        """One of its metrics."""
        lines = self.got("/metrics").splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))

    def until(self, true: Callable[[], bool], what: str) -> None:
        by = monotonic() + _PATIENCE
        while not true():
            if monotonic() > by:
                raise RuntimeError(f"it should be so by now: {what}")
            sleep(0.02)

    @contextmanager
    def ticking(self) -> Iterator[list[float]]:
        """How late ticks on the server's event loop were; it is there after the block."""
        late: list[float] = []
        self.server.ask("tick")
        yield late
        late += self.server.ask("enough")


def quantile(values: Sequence[float], share: float) -> float:
    return nearest_rank(sorted(values), share)


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """In milliseconds."""
    return {name: round(1_000 * quantile(seconds, q), 2) for name, q in _QUANTILES.items()}


_QUANTILES: dict[str, Any] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
