"""Queries of every kind of login fail in every way, at a site that repeats what it was shown: nothing here may."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from login_kit import Endpoint, Handler, packed, serving, spellings
from typer.testing import CliRunner

import sources
from api.cli import app
from mediator.access import HttpTransport
from mediator.answering import Mediator, explain
from mediator.catalog.model import Catalog, Mirror
from mediator.catalog.wrapper import Reply, Request
from mediator.errors import SourceError
from wrappers import DeclaredWrapper

SECRET = "s3cr/et+key=of & the-shop-0123456789"
SQL = "SELECT * FROM offers"
KINDS = {
    "key": "{kind: key, header: X-Api-Key, key_env: SHOP_SECRET}",
    "query": "{kind: key, query: api_key, key_env: SHOP_SECRET}",
    "basic": "{kind: basic, user: reader, password_env: SHOP_SECRET}",
    "basic key": "{kind: basic, user_env: SHOP_SECRET}",
    "bearer": "{kind: bearer, token_env: SHOP_SECRET}",
    "oauth2": "{kind: oauth2, token_url: '%s/token', client_id: me, client_secret_env: SHOP_SECRET}",
    "oauth2 body": "{kind: oauth2, token_url: '%s/token', client_id: me, client_secret_env: SHOP_SECRET, "
    "credentials: body}",
}
CATALOG = """\
sources:
  shop: {base: %s, allow_private: true, attempts: 2, deadline: 20, auth: %s}
relations:
  offers:
    fields: {isbn: string}
    methods:
      all:
        mirrors: [shop]
        request: {path: /offers}
        pages: {next: /next}
        reply: {kind: json, rows: /rows}
        errors:
          - {status: 418, says: "what: (.*)", means: fail}
          - {status: 420, at: /error, says: ".", means: fail}
"""


def shown(request: web.Request) -> str:
    """All that the site was shown, and where."""
    key = request.headers.get("X-Api-Key") or request.query.get("api_key")
    login = request.headers.get("Authorization", "")
    return f"{SECRET} {key or login} {login.partition(' ')[2]} {request.path_qs} {dict(request.headers)}"


async def says_no(request: web.Request) -> web.StreamResponse:
    return web.Response(
        status=401, text=shown(request), headers={"WWW-Authenticate": f'Basic realm="{SECRET}"'}
    )


async def forbids(request: web.Request) -> web.StreamResponse:
    return web.Response(status=403, text=shown(request), reason=f"Forbidden {SECRET}")


async def breaks(request: web.Request) -> web.StreamResponse:
    return web.Response(status=500, text=shown(request), reason=SECRET)


async def answers_garbage(request: web.Request) -> web.StreamResponse:
    return web.Response(text=f'{{"rows": "{shown(request)}"', content_type="application/json")


async def answers_another_shape(request: web.Request) -> web.StreamResponse:
    return web.json_response({"rows": [{"isbn": {shown(request): 1}}, {shown(request): SECRET}]})


async def answers_a_text_for_rows(request: web.Request) -> web.StreamResponse:
    return web.json_response({"rows": "." * 40 + shown(request)})


async def answers_an_error(request: web.Request) -> web.StreamResponse:
    return web.Response(status=418, text="what: " + "." * 70 + shown(request))


async def answers_an_error_in_json(request: web.Request) -> web.StreamResponse:
    return web.json_response({"error": shown(request)}, status=420)


async def leads_back(request: web.Request) -> web.StreamResponse:
    again = request.url.update_query(api_key=SECRET, other=SECRET)
    return web.json_response({"rows": [{"isbn": "1"}], "next": str(again)})


async def leads_elsewhere(request: web.Request) -> web.StreamResponse:
    return web.json_response({"rows": [], "next": f"http://elsewhere.test/{request.raw_path}/{SECRET}"})


async def gives_no_link(request: web.Request) -> web.StreamResponse:
    return web.json_response({"rows": [], "next": {"href": SECRET}})


async def redirects_in_a_circle(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound(request.url.with_path(f"/circle/{SECRET}"))


async def redirects_to_no_address(request: web.Request) -> web.StreamResponse:
    return web.Response(status=302, headers={"Location": f"http://[{SECRET}"})


async def redirects_to_another_scheme(request: web.Request) -> web.StreamResponse:
    return web.Response(
        status=302, headers={"Location": f"gopher://{request.host}/{SECRET}?{request.query_string}"}
    )


async def redirects_elsewhere(request: web.Request) -> web.StreamResponse:
    return web.Response(
        status=302, headers={"Location": f"http://localhost:9/{SECRET}?{request.query_string}"}
    )


async def is_packed_strangely(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"x", headers={"Content-Encoding": f"x-{SECRET}"})


async def hangs_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def speaks_no_http(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.write(f"HTTP/1.1 {SECRET}\r\n{SECRET}\r\n\r\n".encode())  # type: ignore[attr-defined]
    request.transport.close()
    return web.Response()


FAILURES: tuple[Handler, ...] = (
    says_no,
    forbids,
    breaks,
    answers_garbage,
    answers_another_shape,
    answers_a_text_for_rows,
    answers_an_error,
    answers_an_error_in_json,
    leads_back,
    leads_elsewhere,
    gives_no_link,
    redirects_in_a_circle,
    redirects_to_no_address,
    redirects_to_another_scheme,
    redirects_elsewhere,
    is_packed_strangely,
    hangs_up,
    speaks_no_http,
)


class Told:
    """Everything that anybody could read, with a name for each."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.secrets = [SECRET, packed("reader", SECRET)[6:], packed(SECRET, "")[6:]]

    def note(self, name: str, *things: object) -> None:
        self.texts[name] = "\n".join(f"{thing}\n{thing!r}" for thing in things)

    def leaks(self) -> list[str]:
        return [
            f"{name}: {text[max(0, text.find(spelt) - 60) : text.find(spelt) + 60]!r}"
            for name, text in self.texts.items()
            for secret in self.secrets
            for spelt in spellings(secret)
            if spelt in text
        ]


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """All that hangs on an exception, also what its traceback does not show."""
    if error is not None:
        yield error
        yield from chain(error.__cause__)
        yield from chain(error.__context__)


def declared(tmp_path: Path, base: str, kind: str, login_at: str) -> tuple[Path, Catalog]:
    path = tmp_path / "shop.yaml"
    path.write_text(CATALOG % (base, KINDS[kind] % login_at if "%s" in KINDS[kind] else KINDS[kind]))
    return path, sources.load(path)


async def query(catalog: Catalog, told: Told) -> None:
    async with Mediator(catalog, threads=1) as mediator:
        async with mediator.answering(SQL) as answers:
            rows = [batch async for batch in answers]
        report = answers.report
        assert not report.complete, "else there would be nothing to look at"
        told.note("report", *report.lines(), report.as_dict(), report)
        told.note("statistics", mediator.statistics())
        told.note("objects", mediator, answers, mediator.__dict__, answers.__dict__)
        told.note("rows", sum(batch.num_rows for batch in rows))
    told.note("catalog", catalog, *catalog.sources.values(), *explain(SQL, catalog))


async def ask_directly(catalog: Catalog, base: str, told: Told) -> None:
    """As a recorder or a check would, without an engine around it."""
    async with HttpTransport(catalog.sources) as transport:
        try:
            reply = await transport.send(Mirror("shop", base), Request("/offers"))
        except SourceError as error:
            told.note("raised", *traceback.format_exception(error), *chain(error))
        else:
            told.note("scrubbed", transport.redaction.clean_bytes(reply.body).decode("utf-8", "replace"))
            told.note("its headers", *map(transport.redaction.clean, reply.headers.values()))
        told.note("transport", transport, transport.redaction, transport.__dict__, transport._logins.__dict__)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)
@pytest.mark.parametrize("kind", KINDS)
async def test_no_secret_is_repeated_anywhere(
    kind: str,
    failure: Handler,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    endpoint, told = Endpoint(("me", SECRET)), Told()
    async with serving(endpoint) as login_at, serving(failure) as base:
        _, catalog = declared(tmp_path, base, kind, login_at)
        await query(catalog, told)
        await ask_directly(catalog, base, told)
    told.note("log", caplog.text, [record.__dict__ for record in caplog.records])
    told.secrets += endpoint.given
    assert told.leaks() == []


def refuses(status: int) -> Handler:
    async def no_token(request: web.Request) -> web.StreamResponse:
        said = f"{await request.text()} {dict(request.headers)} {SECRET}"
        return web.json_response({"error": said, "error_description": said}, status=status, reason=SECRET)

    return no_token


async def gives_another_type(request: web.Request) -> web.StreamResponse:
    return web.json_response({"access_token": SECRET + "2", "token_type": SECRET, "expires_in": SECRET})


async def gives_no_life(request: web.Request) -> web.StreamResponse:
    return web.json_response({"access_token": SECRET.replace(" ", ""), "expires_in": SECRET})


@pytest.mark.parametrize(
    "endpoint",
    [
        refuses(401),
        refuses(400),
        refuses(503),
        refuses(404),
        gives_another_type,
        gives_no_life,
        redirects_elsewhere,
    ],
)
@pytest.mark.parametrize("kind", ["oauth2", "oauth2 body"])
async def test_nor_by_a_token_endpoint_that_repeats_it(
    kind: str,
    endpoint: Callable[[web.Request], Awaitable[web.StreamResponse]],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    told = Told()
    async with serving(endpoint) as login_at, serving(says_no) as base:
        _, catalog = declared(tmp_path, base, kind, login_at)
        await query(catalog, told)
        await ask_directly(catalog, base, told)
    told.note("log", caplog.text)
    assert "its token endpoint" in told.texts["report"]
    assert told.leaks() == []


async def test_nor_by_a_fault_of_the_engine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback in the log is cleaned as well, whatever raised it."""
    monkeypatch.setenv("SHOP_SECRET", SECRET)

    async def faulty(*given: object) -> None:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise RuntimeError(f"about {SECRET}") from error

    monkeypatch.setattr("mediator.access.walk.Walk._finish", faulty)
    told = Told()
    async with serving(leads_back) as base:
        _, catalog = declared(tmp_path, base, "key", "")
        await query(catalog, told)
    told.note("log", caplog.text)
    assert "a fault of the engine: RuntimeError('about ***')" in told.texts["report"]
    assert "KeyError: '***'" in told.texts["log"]
    assert told.leaks() == []


async def test_nor_by_a_wrapper_that_stumbles_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SHOP_SECRET", SECRET)

    def stumbles(
        self: DeclaredWrapper, request: object, bind_set: object, bindings: object, reply: Reply
    ) -> None:
        raise ValueError(f"{reply.body!r} and {reply.headers!r}")

    async def fine(request: web.Request) -> web.StreamResponse:
        return web.Response(text=shown(request), headers={"X-Said": SECRET})

    monkeypatch.setattr(DeclaredWrapper, "read", stumbles)
    told = Told()
    async with serving(fine) as base:
        _, catalog = declared(tmp_path, base, "key", "")
        await query(catalog, told)
    told.note("log", caplog.text)
    assert "cannot read the reply" in told.texts["report"]
    assert told.leaks() == []


@pytest.mark.parametrize("failure", [says_no, leads_back, answers_a_text_for_rows], ids=lambda f: f.__name__)
async def test_nor_on_the_command_line(
    failure: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", SECRET)
    monkeypatch.setenv("MEDIATOR_DEBUG", "1")
    endpoint, told = Endpoint(("me", SECRET)), Told()
    cassette = tmp_path / "cassette"
    commands = {
        "query": ["query", SQL],
        "explain": ["explain", SQL],
        "sources": ["sources"],
        "try": ["wrapper", "try", "offers"],
        "check": ["wrapper", "check", "--all"],
        "record": ["wrapper", "record", "--output", str(cassette), "--sql", SQL],
    }
    async with serving(failure) as base, serving(endpoint) as login_at:
        for kind in ("query", "basic", "oauth2"):
            path, _ = declared(tmp_path, base, kind, login_at)
            for name, command in commands.items():
                given = [*command, "--catalog", str(path)]
                result = await asyncio.to_thread(CliRunner().invoke, app, given)
                told.note(f"{kind}, {name}", result.output, result.stderr)
                # A console folds its lines, perhaps in the middle of a secret.
                told.note(
                    f"{kind}, {name}, unfolded",
                    *(t.replace("\n", "") for t in (result.output, result.stderr)),
                )
            told.note(f"{kind}, cassette", cassette.read_text())
            assert "in the environment variable SHOP_SECRET)" in told.texts[f"{kind}, sources"]
            assert "offers" in told.texts[f"{kind}, query"]
    told.secrets += endpoint.given
    assert told.leaks() == []
