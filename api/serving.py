"""`mediator serve`: queries are answered over HTTP until a signal says that it is enough."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.exits import Mistake, told
from api.options import CatalogPaths, Variables, WithDemo, pairs

if TYPE_CHECKING:
    from api.http.keys import Keyring

_LOCAL_NAMES = frozenset({"localhost", ""})
_LIMITS = "What the server allows"

Keys = Annotated[
    Path | None,
    typer.Option(
        "--keys", metavar="FILE", help="Who may ask: `mediator keys add NAME --keys FILE` makes one."
    ),
]
Open = Annotated[
    bool, typer.Option("--open", help="Let everybody ask who can reach it, also from elsewhere. No keys.")
]
State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="A folder where the history and saved queries outlive the server. Default: they end with it.",
    ),
]
Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="A folder where rows of the sites outlive the server."),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A name by which the server is reached; may be repeated."),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin",
        metavar="URL",
        help="Whose web pages may ask, such as https://app.example; may be repeated.",
    ),
]


def serve(
    catalog: CatalogPaths = None,
    variable: Variables = None,
    demo: WithDemo = False,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8080,
    keys: Keys = None,
    open_: Open = False,
    state: State = None,
    store: Store = None,
    name: Names = None,
    origin: Origins = None,
    max_queries: Annotated[
        int, typer.Option(min=1, metavar="N", help="Queries at once.", rich_help_panel=_LIMITS)
    ] = 256,
    max_spark: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Queries on Spark at once; 0: none.", rich_help_panel=_LIMITS),
    ] = 1,
    max_seconds: Annotated[
        str, typer.Option(metavar="TIME", help="That a query may take.", rich_help_panel=_LIMITS)
    ] = "5m",
    max_statement: Annotated[
        int, typer.Option(min=1, metavar="N", help="Characters of a query.", rich_help_panel=_LIMITS)
    ] = 32_768,
    max_body: Annotated[
        str, typer.Option(metavar="SIZE", help="Of a request.", rich_help_panel=_LIMITS)
    ] = "1MB",
    max_results: Annotated[
        str, typer.Option(metavar="SIZE", help="That are kept of one query.", rich_help_panel=_LIMITS)
    ] = "1GB",
    keep: Annotated[
        str, typer.Option(metavar="TIME", help="Results are kept after the end.", rich_help_panel=_LIMITS)
    ] = "15m",
    stalled: Annotated[
        str,
        typer.Option(metavar="TIME", help="A reader that takes nothing is dropped.", rich_help_panel=_LIMITS),
    ] = "30",
) -> None:
    """Answer queries over HTTP. Open on loopback; elsewhere with keys.

    Ctrl-C brings the queries that run to their ends, each with what was found so far; a second one ends at once.
    """
    with told():
        from dataclasses import replace

        from api.catalogs import to_ask
        from api.durations import seconds_of
        from api.http.limits import Limits
        from api.http.serving import House, listening, run
        from api.terminal import stderr

        limits = replace(
            Limits(),
            queries=max_queries,
            spark=max_spark,
            seconds=seconds_of("--max-seconds", max_seconds),
            statement=max_statement,
            body=_size("--max-body", max_body),
            result_bytes=_size("--max-results", max_results),
            kept_seconds=seconds_of("--keep", keep),
            stalled=seconds_of("--stalled", stalled),
        )
        loopback = _is_loopback(host)
        keyring = _keyring(keys, open_, loopback, host)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        with to_ask(catalog or [], pairs("--set", variable), demo) as asked:
            house = House(
                asked,
                keyring,
                limits,
                _history(state),
                store,
                hosts=tuple(name or ()) if name or (loopback and keyring.everybody is not None) else None,
                origins=tuple(origin or ()),
                devoted=True,
            )
            with listening(host, port) as sock:
                everybody = keyring.everybody is not None
                for line in _greeting(host, sock.getsockname()[1], asked.relations, everybody):
                    stderr().print(line, soft_wrap=True, highlight=False)
                run(house, sock)


def _keyring(keys: Path | None, open_: bool, loopback: bool, host: str) -> Keyring:
    """Who may ask. Raises `Mistake` where nobody said so, and others than this machine can reach it."""
    from api.http.keys import Keyring

    if keys is not None and open_:
        raise Mistake("--open lets everybody in, --keys some: leave one of them out")
    if keys is not None:
        return Keyring.load(keys)
    if not loopback and not open_:
        raise Mistake(
            f"{host} can be reached from elsewhere: say who may ask with --keys FILE (`mediator keys add NAME --keys "
            "FILE` makes one), or that everybody may, with --open"
        )
    return Keyring.open_to_all()


def _history(state: Path | None) -> Path | None:
    if state is None:
        return None
    try:
        state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{state}: cannot be made a folder: {error.strerror}") from None
    return state / "history.sqlite"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() in _LOCAL_NAMES


def _size(option: str, text: str) -> int:
    from sources.limits import size_of

    try:
        return size_of(text)
    except ValueError as error:
        raise Mistake(f"{option} {text}: {error}") from None


def _greeting(host: str, port: int, names: Collection[str], everybody: bool) -> Iterator[str]:
    """Where it listens, and what to try first."""
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    yield f"Answering queries over {len(names)} relations on {url} ({url}/docs says how)"
    if everybody:
        yield f"Try: curl -s {url}/v1/relations"
    else:
        yield f"Try: curl -s -H 'Authorization: Bearer KEY' {url}/v1/relations"
