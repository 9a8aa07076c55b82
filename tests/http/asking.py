"""A client for tests: requests over real sockets, and what came back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import aiohttp

from tests.http.serving import Served


class Client:
    """One that knows where the server is. `async with client:` first."""

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.url = served.url
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def __aenter__(self) -> Client:
        self._session = aiohttp.ClientSession(self.url, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def call(
        self, method: str, path: str, said: object = None, *, accept: str = "*/*", headers: Mapping[str, str] = {}
    ) -> Reply:  # fmt: skip
        """One request, and all of its response."""
        more = {"Accept": accept, **headers}
        body = {} if said is None else {"json": said}
        async with self._session.request(method, path, headers=more, **body) as response:  # type: ignore[arg-type]
            return Reply(response.status, dict(response.headers), await response.read())

    async def ask(self, sql: str, **said: Any) -> Reply:
        """A query that runs on its own."""
        return await self.call("POST", "/v1/queries", {"sql": sql, **said}, accept="application/json")

    async def records(self, sql: str, **said: Any) -> list[dict[str, Any]]:
        """All records of a query that is streamed at once."""
        reply = await self.call("POST", "/v1/queries", {"sql": sql, **said}, accept="application/x-ndjson")
        assert reply.status == 200, reply.body
        return reply.lines

    async def ended(self, id_: str) -> dict[str, Any]:
        """The status of a query, once it has ended."""
        reply = await self.call("GET", f"/v1/queries/{id_}/results", accept="application/x-ndjson")
        assert reply.lines[-1]["type"] == "end"
        return (await self.call("GET", f"/v1/queries/{id_}")).json


class Reply:
    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Of NDJSON."""
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def events(self) -> list[Event]:
        """Of an event stream; comments left out."""
        return events(self.body.decode())


class Event:
    def __init__(self, kind: str, id_: str | None, data: dict[str, Any]) -> None:
        self.kind = kind
        self.id = id_
        self.data = data


def events(text: str) -> list[Event]:
    """The whole events of a stream, or of a part of one from its beginning."""
    found = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            found.append(Event(fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def rows_of(records: list[dict[str, Any]]) -> list[Any]:
    """All answers among these records."""
    return [row for record in records if record["type"] == "rows" for row in record["rows"]]
