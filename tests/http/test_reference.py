"""The page of the reference: every route is on it, nothing in it runs, and what it says can be done."""

from __future__ import annotations

import json
import re
from html import unescape

from api.http.reference import POLICY
from fixtures import book_trade
from tests.http.asking import Client
from tests.http.serving import serving


async def test_the_page_shows_every_route_and_loads_nothing() -> None:
    with book_trade(10) as web, serving(web.catalog) as served:
        async with Client(served) as client:
            document = (await client.call("GET", "/openapi.json")).json
            reply = await client.call("GET", "/docs")
            assert reply.status == 200
            assert reply.headers["content-type"].startswith("text/html")
            assert reply.headers["content-security-policy"] == POLICY
            shown = reply.body.decode()
            for path, methods in document["paths"].items():
                for method, route in methods.items():
                    assert f"<h3><b>{method.upper()}</b> {path}</h3>" in shown
                    assert route["summary"] in unescape(shown)
            assert "<script" not in shown
            assert not re.search(r"(src|href)=.https?:", shown)
            assert "/docs" not in document["paths"]

            calls = [unescape(call) for call in re.findall(r"<pre>(.*?)</pre>", shown, re.DOTALL)]
            assert len(calls) == sum(len(methods) for methods in document["paths"].values())
            (asked,) = [c for c in calls if re.match(r"curl http://[^ ]*/v1/queries --json", c)]
            said = json.loads(asked.partition("--json ")[2].strip("'"))
            assert (await client.call("POST", "/v1/queries", said)).status == 201
