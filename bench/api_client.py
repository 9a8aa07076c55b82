"""The clients of the API's bench, in a process of their own: bare sockets, so that they cost next to nothing.

What came is looked at when the clock has stopped: a first row is there as soon as a client could have read it out of
what had come by then. Every query has a connection of its own, which is part of its time.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from time import monotonic
from typing import NamedTuple

from bench.api_reading import ACCEPT, check_end, pieces_of, rows_of, table_of
from bench.api_site import large

_PATIENCE = 60.0  # seconds without any byte
_TAIL = 1 << 14  # bytes of a response's end that are looked at
_SMALL = 1 << 14  # bytes that the system keeps for who reads no more
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing breaks the connection off


class Asked(NamedTuple):
    """A lookup: of this relation, by this key, in this format."""

    relation: str
    key: int
    format: str = "ndjson"


class Answered(NamedTuple):
    """Seconds since the query was begun."""

    first_row: float
    ended: float


def work(line: Connection) -> None:
    """Does what it is told to: the name of one of `_JOBS`, and what that needs."""
    while True:
        name, *arguments = line.recv()
        try:
            line.send(_JOBS[name](*arguments))
        except Exception as error:
            line.send(RuntimeError(f"{name}: {error!r}"))


def question(sql: str, format_: str, **parameters: object) -> bytes:
    """A request, after which the server is to close the connection."""
    body = json.dumps({"sql": sql, "parameters": parameters} if parameters else {"sql": sql}).encode()
    lines = (
        "POST /v1/queries HTTP/1.1", "Host: 127.0.0.1", f"Accept: {ACCEPT[format_]}",
        "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close",
    )  # fmt: skip
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + body


def crowd(port: int, clients: Sequence[Sequence[Asked]]) -> list[list[Answered]]:
    """All begin at once, and ask one query after the other. Raises where an answer is not what it should be."""
    with selectors.DefaultSelector() as selector:
        walkers = [_Walker(port, asked, selector) for asked in clients if asked]
        for walker in walkers:
            walker.begin()
        while selector.get_map():
            ready = selector.select(_PATIENCE)
            if not ready:
                raise RuntimeError("nothing comes any more")
            for key, _ in ready:
                key.data.readable()
    return [[answer.judged() for answer in walker.answers] for walker in walkers]


@dataclass
class _Answer:
    asked: Asked
    began: float
    pieces: list[tuple[float, bytes]] = field(default_factory=list)

    def judged(self) -> Answered:
        raw = b"".join(piece for _, piece in self.pieces)
        check_end(raw[-_TAIL:])
        rows = rows_of(self.asked.format, b"".join(pieces_of(raw)))
        if rows != [(self.asked.key, f"v{self.asked.key}")]:
            raise RuntimeError(f"{self.asked} was answered with {rows}")
        return Answered(self._first_row() - self.began, self.pieces[-1][0] - self.began)

    def _first_row(self) -> float:
        had = b""
        for at, piece in self.pieces:
            had += piece
            if b"\r\n\r\n" in had and rows_of(self.asked.format, b"".join(pieces_of(had))):
                return at
        raise AssertionError("there is a row, or it would not have been judged")


class _Walker:
    """One client."""

    def __init__(self, port: int, asked: Sequence[Asked], selector: selectors.BaseSelector) -> None:
        self._port, self._left, self._selector = port, list(reversed(asked)), selector
        self.answers: list[_Answer] = []

    def begin(self) -> None:
        asked = self._left.pop()
        self.answers.append(_Answer(asked, monotonic()))
        self._socket = _asking(self._port, lookup(asked))
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ, self)

    def readable(self) -> None:
        piece = self._socket.recv(1 << 16)
        if piece:
            self.answers[-1].pieces.append((monotonic(), piece))
            return
        self._selector.unregister(self._socket)
        self._socket.close()
        if self._left:
            self.begin()


def lookup(asked: Asked) -> bytes:
    return question(f"SELECT k, v FROM {asked.relation} WHERE k = $k", asked.format, k=asked.key)


def drain(port: int, sql: str, format_: str, rows: int, size: int = 0) -> float:
    """Seconds until all of a large answer has come, which is of so many bytes at least. What it says is not looked at,
    but for its end."""
    buffer = memoryview(bytearray(1 << 20))
    began, tail, came = monotonic(), b"", 0
    with _asking(port, question(sql, format_)) as sock:
        while count := sock.recv_into(buffer):
            tail = (tail + bytes(buffer[max(0, count - _TAIL) : count]))[-_TAIL:]
            came += count
    seconds = monotonic() - began
    check_end(tail, rows)
    if came < size:
        raise RuntimeError(f"{came} bytes are no answer that has {size}")
    return seconds


def verify(port: int, sql: str, format_: str, rows: int) -> list[bytes]:
    """The pieces of a large answer, which is compared with what the source has."""
    parts = []
    with _asking(port, question(sql, format_)) as sock:
        while part := sock.recv(1 << 20):
            parts.append(part)
    raw = b"".join(parts)
    check_end(raw[-_TAIL:], rows)
    pieces = pieces_of(raw)
    if not table_of(format_, b"".join(pieces)).sort_by("k").combine_chunks().equals(large(rows)):
        raise RuntimeError(f"the answer as {format_} is not what the source has")
    return pieces


def direct(port: int, address: str, times: int) -> list[float]:
    """Seconds that the source itself takes, each time over a connection of its own."""
    took = []
    for _ in range(times):
        began = monotonic()
        with _asking(port, f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()) as sock:
            sock.recv(_SMALL)
            took.append(monotonic() - began)
    return took


def hold(port: int, requests: Sequence[bytes]) -> None:
    """Ask all of it, and read no more of each answer than its first piece."""
    begun = [_asking(port, request, buffer=_SMALL) for request in requests]
    for sock in begun:
        had = b""
        while b"\r\n\r\n" not in had or not pieces_of(had):
            had += sock.recv(_SMALL)
        if not had.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"refused: {had!r}")
    _held.extend(begun)


def leave(count: int, reset: bool) -> list[float]:
    """When each of so many connections was closed, or broken off; those first that are held for the longest time."""
    left = []
    for _ in range(count):
        with _held.pop(0) as sock:
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            else:
                _read_up(sock)  # else the system would break it off
            left.append(monotonic())
    return left


def _read_up(sock: socket.socket) -> None:
    sock.setblocking(False)
    with suppress(BlockingIOError):
        while sock.recv(_SMALL):
            pass


_held: list[socket.socket] = []
_JOBS = {job.__name__: job for job in (crowd, direct, drain, verify, hold, leave)}


def _asking(port: int, request: bytes, buffer: int | None = None) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.settimeout(_PATIENCE)
    sock.connect(("127.0.0.1", port))
    sock.sendall(request)
    return sock
