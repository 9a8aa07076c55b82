"""Who goes next. The desk looks at all the queues whenever something has changed, and never waits itself."""

from __future__ import annotations

import asyncio
import heapq
import math

from mediator.access.queue import Queue, Rank


class Desk:
    """Serves queues in the order of rank, across all sources: a queue that cannot go holds up no other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queues: dict[Queue, None] = {}  # those that may have somebody waiting, in a repeatable order
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._closed = False

    def stir(self, queue: Queue | None = None) -> None:
        """Something may go now: somebody came, or left.

        Looked into on the loop's next turn, so that all that is asked within one can be packed together.
        """
        if queue is not None:
            self._queues[queue] = None
        if self._soon is None and not self._closed:
            self._soon = self._loop.call_soon(self._turn)

    def close(self) -> None:
        self._closed = True
        for handle in (self._soon, self._later):
            if handle is not None:
                handle.cancel()

    def _turn(self) -> None:
        self._soon = None
        waiting = self._ranked()
        held: list[Queue] = []
        while waiting:
            _, position, queue = heapq.heappop(waiting)
            if not queue.serve():
                # Within one turn places are only taken, so who cannot go now cannot go later in it.
                held.append(queue)
            elif (rank := queue.rank()) is not None:
                heapq.heappush(waiting, (rank, position, queue))
        self._wake_for(held)

    def _ranked(self) -> list[tuple[Rank, int, Queue]]:
        ranked: list[tuple[Rank, int, Queue]] = []
        for position, queue in enumerate(tuple(self._queues)):
            rank = queue.rank()
            if rank is None:
                del self._queues[queue]
            else:
                ranked.append((rank, position, queue))
        heapq.heapify(ranked)
        return ranked

    def _wake_for(self, held: list[Queue]) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        at = min((queue.ready_at() for queue in held), default=math.inf)
        if at < math.inf:
            self._later = self._loop.call_at(at, self.stir)
