"""A server from its parts: catalog, keys, limits, where it listens; and how it comes to its end."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from api.exits import Mistake
from api.http.app import application
from api.http.desk import Desk
from api.http.guard import Guard
from api.http.history import History
from api.http.keys import Keyring, Meter
from api.http.limits import Limits
from api.http.metrics import Metrics
from mediator.answering import Mediator
from mediator.assembly import Settings
from mediator.catalog.model import Catalog
from mediator.errors import MediatorError
from mediator.query import duck

# Rows: what a reader who stalls leaves lying about.
_BATCH, _BUFFERED = 1 << 12, 1 << 13
# Queries leave next to no cycles: to look for them after every few hundred objects took a third of the time.
_SELDOM = 50_000, 20, 50
# Seconds that a thread has the interpreter before another may: the event loop waits so long for each that works.
_SWITCH = 0.001

log = logging.getLogger("mediator.http")


@dataclass(frozen=True)
class House:
    """What a server is made of."""

    catalog: Catalog
    keyring: Keyring = field(default_factory=Keyring.open_to_all)
    limits: Limits = field(default_factory=Limits)
    history: Path | None = None  # a file; else it is forgotten with the process
    store: Path | None = None  # where what the sites gave outlives the process
    hosts: Sequence[str] | None = ()  # names of the server beside loopback's; None: any
    origins: Sequence[str] = ()  # whose pages may ask
    threads: int | None = None
    devoted: bool = False


class Server(uvicorn.Server):
    """Says that it ends before it waits for its streams, so that each of them has its last record."""

    desk: Desk | None = None
    trouble: MediatorError | None = None  # why it could not be started

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second signal ends at once."""
        if self.desk is not None and not self.should_exit:
            self.desk.close()
        super().handle_exit(sig, frame)


def server(house: House, host: str, port: int) -> Server:
    """One that has not been started. Its requests are served by `serve`, or by `serve(sockets=...)`."""

    metrics = Metrics()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Desk]:
        try:
            async with _opened(house, metrics) as desk:
                made.desk = desk
                yield desk
        except MediatorError as error:
            made.trouble = error
            raise

    guarded: ASGIApp = Guard(
        application(opened),
        house.keyring,
        hosts=house.hosts,
        origins=house.origins,
        most_body=house.limits.body,
        answered=metrics.requested,
    )
    config = uvicorn.Config(
        guarded,
        http="h11",  # which holds back headers without an end
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on",
        timeout_graceful_shutdown=max(1, round(house.limits.grace)),
        timeout_keep_alive=30,
        ws="none",
    )
    made = Server(config)
    return made


@asynccontextmanager
async def _opened(house: House, metrics: Metrics) -> AsyncIterator[Desk]:
    settings = Settings(largest_batch=_BATCH, buffered=_BUFFERED, room=_BUFFERED)
    mediator = Mediator(
        house.catalog, settings, store=house.store, threads=house.threads, devoted=house.devoted
    )
    async with (
        mediator,
        History.opened(house.history) as history,
        Desk(mediator, house.limits, history, metrics, Meter()) as desk,
    ):
        yield desk


def listening(host: str, port: int) -> socket.socket:
    """A socket there, or a `Mistake` that says why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Said in full: asyncio turns Nagle's algorithm off for sockets that it knows to be TCP, and else a reply waits.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        reason = error.strerror or str(error)
        raise Mistake(f"cannot listen on {host} port {port}: {reason}; choose another with --port") from None
    found.listen(1024)
    return found


def settle_in() -> None:
    """What a process that is a server is set to."""
    gc.set_threshold(*_SELDOM)
    sys.setswitchinterval(_SWITCH)


async def serve(house: House, sock: socket.socket) -> None:
    """Until a signal says that it is enough."""
    settle_in()
    host, port = sock.getsockname()[:2]
    made = server(house, host, port)
    with duck.apart(house.limits.memory):
        await made.serve(sockets=[sock])
    if made.trouble is not None:
        raise made.trouble


def run(house: House, sock: socket.socket) -> None:
    """The same, for a command."""
    asyncio.run(serve(house, sock))
