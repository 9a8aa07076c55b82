"""A site in memory that has its rows on pages, turned in any of the ways that sites have."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode

import pyarrow as pa

from mediator.catalog.model import Field
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import Endless
from wrappers import DeclaredWrapper, JsonReader, Paging, Template

FIELD = Field("n", pa.int64())
Answer = Callable[[Request], Reply]


@dataclass
class PagedSite:
    """`count` rows, `size` of them on a page, whatever larger number is asked for."""

    count: int
    size: int
    requests: int = 0

    def by_number(self, request: Request) -> Reply:
        number = int(_said(request)["page"])
        return self._page((number - 1) * self.size, pages=-(-self.count // self.size) or 1)

    def by_offset(self, request: Request) -> Reply:
        said = _said(request)
        return self._page(int(said["offset"]), int(said.get("limit", self.size)), total=self.count)

    def by_cursor(self, request: Request) -> Reply:
        start = int(_said(request).get("after", "c0")[1:])
        end = start + self.size
        return self._page(start, more=end < self.count, cursor=f"c{end}" if end < self.count else None)

    def by_link(self, request: Request) -> Reply:
        start = int(_said(request).get("from", 0))
        reply = self._page(start, next=f"?from={start + self.size}")
        return reply if start + self.size < self.count else self._page(start)

    def by_header(self, request: Request) -> Reply:
        start = int(_said(request).get("from", 0))
        link = f'</first>; rel="first", <?from={start + self.size}>; title="a, b; c"; REL="last Next"'
        return replace(self._page(start), headers={"link": link if start + self.size < self.count else ""})

    def _page(self, start: int, limit: int | None = None, **beside: object) -> Reply:
        self.requests += 1
        end = min(start + min(limit or self.size, self.size), self.count)
        return answer([{"n": n} for n in range(start, end)], **beside)


def answer(rows: list[dict[str, int]], **beside: object) -> Reply:
    return Reply(200, {}, json.dumps({"rows": rows, **beside}).encode())


def wrapper(paging: Paging, template: dict[str, object] | None = None, most: int = 10_000) -> DeclaredWrapper:
    return DeclaredWrapper(
        relation="numbers",
        fields=(FIELD,),
        template=Template.model_validate({"path": "/n", **(template or {})}),
        reader=JsonReader(kind="json", rows="/rows"),
        paging=paging,
        max_pages=most,
    )


def read_all(asked: DeclaredWrapper, ask: Answer) -> list[int]:
    """All rows, in the way of `mediator.access.pages`: no request twice, and no more of them than allowed."""
    first = asked.request((), [()])
    due, made, found = [first], {first}, list[int]()
    while due:
        request = due.pop(0)
        page = asked.read(request, (), [()], ask(request))
        found += page.rows.column(0).to_pylist()
        if page.astray is not None:
            raise page.astray
        for following in page.then:
            if following in made or len(made) >= asked.max_pages:
                raise Endless("its pages lead back, or are too many")
            made.add(following)
            due.append(following)
    return found


def _said(request: Request) -> dict[str, str]:
    """All parameters, wherever they are."""
    body = (request.body or b"").decode()
    told = json.loads(body)["page"] if body.startswith("{") else dict(parse_qsl(body))
    link = dict(parse_qsl(urlencode(request.query)))
    return {**link, **{name: str(value) for name, value in told.items()}}
