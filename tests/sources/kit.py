"""What the tests of sources share: a site on loopback whose replies a test writes, and a query over real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mediator.answering import Mediator
from mediator.catalog.model import Catalog
from mediator.output.report import Report


@dataclass(frozen=True)
class Answered:
    """All rows of a query, and its report."""

    rows: list[dict[str, Any]]
    report: Report

    @property
    def failures(self) -> str:
        """Every failure, as people see it."""
        return "\n".join(f.line() for relation in self.report.relations for f in relation.failures)

    @property
    def kinds(self) -> set[str]:
        return {f.cause.kind for relation in self.report.relations for f in relation.failures}


async def asked(catalog: Catalog, sql: str) -> Answered:
    """The answer to a query over real sockets."""
    async with Mediator(catalog, threads=1) as mediator, mediator.answering(sql) as answers:
        rows = [row async for batch in answers for row in batch.to_pylist()]
        return Answered(rows, answers.report)


@dataclass
class Site:
    """A site on loopback: `answer` is given method, path with query, and body, and returns status and text."""

    answer: Callable[[str, str, str], tuple[int, str]]
    url: str = ""
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[str, str, str], tuple[int, str]]) -> Iterator[Site]:
    site = Site(answer)

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            site.requests.append(f"{self.command} {self.path}")
            status, text = site.answer(self.command, self.path, self.rfile.read(size).decode())
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 (the name is http.server's)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
