"""A small shop on real sockets, that does everything right, or one thing wrong: the fault that it is given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Row = dict[str, Any]
KINDS = ("Tea", "Cup")
SECRET = "k-8317-quince"


def items() -> list[Row]:
    return [
        {
            "sku": f"Ab-{n:02}",
            "title": f"Thing number {n} é",
            "price": 1.5 + n,
            "kind": KINDS[n % 2],
            "stock": None if n == 3 else n,
        }
        for n in range(12)
    ]


class Shop:
    """`fault` names what is wrong. The handlers read like an honest shop's, but for one line each."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.requests = 0
        self.rows = items()
        if fault == "two rows with one key":
            self.rows[1] = {**self.rows[0], "title": "Another thing"}
        if fault == "a field is always null":
            self.rows = [{**row, "stock": None} for row in self.rows]
        if fault == "a row repeats the key of the visitor":
            self.rows[0]["title"] = f"made for {SECRET}"
        if fault == "a key is null":
            self.rows[2]["sku"] = None

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._counted])
        for mirror in ("north", "south"):
            app.router.add_get(f"/{mirror}/items", self._items)
            app.router.add_get(f"/{mirror}/find", self._find)
            app.router.add_get(f"/{mirror}/kinds", self._kinds)
            app.router.add_get(f"/{mirror}/shelves", self._shelves)
        app.router.add_get("/wiki/notes/{sku}", self._notes)
        app.router.add_get("/wiki/rates.csv", self._rates)
        return app

    def has(self, *faults: str) -> bool:
        return self.fault in faults

    @web.middleware
    async def _counted(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests += 1
        if self.has("too many requests are a 403") and self.requests > 9:
            return web.Response(status=403, text="Quota exceeded: come back tomorrow")
        if self.has("the declared pace is too fast") and self.requests % 4 == 0:
            return web.Response(status=429, headers={"Retry-After": "0"})
        if self.has("the site is down") and "/find" in request.path:
            return web.Response(status=500, text="Something went wrong")
        response: web.StreamResponse = await handler(request)
        return response

    def _here(self, request: web.Request) -> list[Row]:
        """What this mirror has."""
        if request.path.startswith("/south"):
            if self.has("a mirror is stale"):
                return self.rows[:-1]
            if self.has("mirrors differ in a row"):
                return [*self.rows[:-1], {**self.rows[-1], "price": 99.0}]
        return self.rows

    async def _items(self, request: web.Request) -> web.Response:
        rows = self._here(request)
        if kind := request.query.get("kind"):
            wanted = kind.lower() if self.has("an optional field loses rows") else kind
            rows = [row for row in rows if row["kind"] == wanted]
        offset, limit = int(request.query.get("offset", 0)), int(request.query.get("limit", 5))
        if self.has("pages overlap") and offset:
            offset -= 1
        if self.has("a page is smaller than asked for"):
            limit = min(limit, 4)
        if self.has("the size of a page is ignored"):
            limit = 8
        total = len(rows)
        if self.has("the total is too high"):
            total += 3
        if self.has("the last page is lost"):
            total -= total % 5
        shown = rows[offset : offset + limit]
        if self.has("a later page has another type") and offset >= 5:
            shown = [{**row, "price": f"{row['price']} EUR"} for row in shown]
        return web.json_response({"items": shown, "related": [], "total": total})

    async def _find(self, request: web.Request) -> web.Response:
        wanted = request.query["sku"].split(",")
        if self.has("one of a batch is dropped") and len(wanted) > 1:
            wanted = wanted[1:]
        if self.has("a full batch is cut short"):
            wanted = wanted[:3]
        found = [row for row in self._here(request) if row["sku"] in wanted]
        if self.has("the binding is ignored"):
            found = self._here(request)
        if self.has("case is ignored"):
            lower = [sku.lower() for sku in wanted]
            found = [row for row in self._here(request) if (row["sku"] or "").lower() in lower]
        if not found and self.has("no rows is a 404"):
            return web.Response(status=404, text="no such item")
        if not found and self.has("no rows is an error page"):
            return web.Response(text="<html><body>Sorry!</body></html>", content_type="text/html")
        if self.has("an error with status 200") and len(wanted) == 1:
            return web.json_response({"items": [], "error": "backend not available"})
        if self.has("a field is renamed"):
            found = [{("cost" if k == "price" else k): v for k, v in row.items()} for row in found]
        if self.has("NaN in JSON"):
            found = [{**row, "price": float("nan")} for row in found]
        return web.json_response({"items": found, "related": []})

    async def _kinds(self, request: web.Request) -> web.Response:
        kind, start = request.query["kind"], int(request.query.get("from", 0))
        rows = [row for row in self.rows if row["kind"] == kind]
        if self.has("an index has fewer rows"):
            rows = rows[:-1]
        end = start + 4
        further = f"?kind={kind}&from={end}" if end < len(rows) else None
        if self.has("the last page repeats for ever") and rows:
            shown = rows[start:end] or rows[-2:]
            return web.json_response({"items": shown, "next": f"?kind={kind}&from={end}"})
        if self.has("the last page leads back") and rows:
            further = f"?kind={kind}&from={0 if end >= len(rows) else end}"
        beside = {"count": len(rows)} if self.has("a listing is capped") else {"next": further}
        return web.json_response({"items": rows[start:end], **beside})

    async def _shelves(self, request: web.Request) -> web.Response:
        page = int(request.query["page"])
        rows = [{"number": n, "place": f"aisle {n}"} for n in range(7)]
        return web.json_response({"shelves": rows[3 * page - 3 : 3 * page] if page > 0 else []})

    async def _notes(self, request: web.Request) -> web.Response:
        sku = request.match_info["sku"]
        known = [row["sku"] for row in self.rows]
        if self.has("case is ignored, and rows do not say so"):
            sku = next((k for k in known if k.lower() == sku.lower()), sku)
        lines = [(n, f"note {n} on {sku}") for n in range(1, 4)] if sku in known else []
        if self.has("the binding is ignored, and rows do not say so"):
            lines = [(n, f"note {n}") for n in range(1, 4)]
        cells = "".join(f"<tr><td>{n}</td><td>{text}</td></tr>" for n, text in lines)
        table = f'<table id="notes"><tr><th>No.</th><th>Note</th></tr>{cells}</table>'
        body = table if lines else '<p id="none">There are none.</p>'
        return web.Response(text=f"<html><body>{body}</body></html>", content_type="text/html")

    async def _rates(self, request: web.Request) -> web.Response:
        text = "currency,country,rate\nEUR,Österreich,1.0\nCHF,Zürich,0.95\nDKK,Ærø,7.46\n"
        if self.has("NaN in CSV"):
            text = text.replace("0.95", "NaN")
        charset = "iso-8859-1" if self.has("the charset is wrong") else "utf-8"
        return web.Response(body=text.encode(), headers={"Content-Type": f"text/csv; charset={charset}"})


@asynccontextmanager
async def served(shop: Shop) -> AsyncIterator[str]:
    """The address of the shop, for as long as the block lasts."""
    runner = web.AppRunner(shop.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
