"""`mediator doctor`: what is here of all that the mediator uses, what for, and what to do where it is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from api.exits import COMPLETE, told

LACKING = 4  # an exit code of its own: nothing is at fault, but something has to be installed

_PYTHON = (3, 11)
_EXTRAS = {
    "api": "`mediator serve`",
    "bench": "`python -m bench`",
    "dev": "the tests, and the checks of the code",
    "pandas": "`query.pandas()` of the client",
    "postgres": "sources that are PostgreSQL databases",
    "spark": "Spark, and format('mediator') in it",
    "sqlalchemy": "pandas and BI tools over HTTP",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked for."""

    name: str
    purpose: str
    found: str = ""  # what is there; nothing where it is missing
    missing: str = ""  # what is wrong
    fix: str = ""
    core: bool = False  # nothing works without it

    @property
    def ok(self) -> bool:
        return not self.missing

    def line(self) -> str:
        if self.ok:
            return f"ok       {self.name}: {self.found}"
        return f"missing  {self.name}, for {self.purpose}: {self.missing}. {self.fix}"


WithSpark = Annotated[
    bool, typer.Option("--spark", help="Also start Spark, and run a job in it. That takes some ten seconds.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")]
StoreFolder = Annotated[
    Path | None, typer.Option("--store", metavar="DIR", help="Also see whether this folder can be a store.")
]


def doctor(store: StoreFolder = None, spark: WithSpark = False, json: AsJson = False) -> None:
    """Say what is here, what is missing, what that is for, and what to do about it.

    Exit codes: 0 when all is there that the engine itself needs, 4 when it is not, or what an option asks for is not.
    """
    with told():
        from api.terminal import stdout

        found: list[Item] = []
        for item in looked_at(store, spark):
            found.append(item)
            if not json:
                stdout().print(item.line(), soft_wrap=True, highlight=False, markup=False)
        well = all(item.ok for item in found if item.core)
        if json:
            import orjson

            items = [{**asdict(item), "ok": item.ok} for item in found]
            stdout().print(
                orjson.dumps({"ok": well, "items": items}).decode(),
                soft_wrap=True,
                highlight=False,
                markup=False,
            )
        raise typer.Exit(COMPLETE if well else LACKING)


def looked_at(store: Path | None, spark: bool) -> Iterator[Item]:
    """Each thing as soon as it was looked at: what the engine needs, then what else it can use."""
    yield _python()
    yield from _packages()
    yield _duckdb()
    if store is not None:
        yield _store(store)
    yield _java()
    if spark:
        yield _spark()
    yield _postgresql()


def _python() -> Item:
    version = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < _PYTHON
    return Item(
        "Python",
        "everything",
        "" if old else version,
        f"{version} is too old" if old else "",
        "apt-get install python3, in a release that has 3.11 or newer",
        core=True,
    )


def _packages() -> Iterator[Item]:
    """The core's, then each extra's."""
    from pipeline.packages import Need, needs

    by_extra: dict[str, list[Need]] = {"": [], **{extra: [] for extra in _EXTRAS}}
    for need in needs():
        by_extra.setdefault(need.extra, []).append(need)
    for extra, needed in by_extra.items():
        faults = [need for need in needed if need.fault]
        name = f"the packages of mediator[{extra}]" if extra else "the packages of the engine"
        yield Item(
            name,
            _EXTRAS.get(extra, extra) if extra else "everything",
            "" if faults else ", ".join(f"{n.package} {n.installed}" for n in needed) or "none are needed",
            "; ".join(need.fault for need in faults),
            faults[0].fix if faults else "",
            core=not extra,
        )


def _duckdb() -> Item:
    """Not only whether it is there: whether it computes, and with Arrow."""
    purpose, fix = "SQL above the joins", "pip install --force-reinstall duckdb pyarrow"
    try:
        import duckdb

        with duckdb.connect() as connection:
            connection.sql("SELECT 6 * 7 AS answer").to_arrow_table()
        return Item("DuckDB", purpose, str(duckdb.__version__), core=True)
    except Exception as error:  # whatever it is that is broken in it
        return Item("DuckDB", purpose, missing=f"does not work ({error})", fix=fix, core=True)


def _store(folder: Path) -> Item:
    import tempfile

    purpose = "rows that outlive a run"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(b"written")
            file.flush()
        return Item("the store", purpose, f"{folder} can be written", core=True)
    except OSError as error:
        fix = "Make it writable, or name another folder"
        return Item("the store", purpose, missing=f"{folder}: {error.strerror}", fix=fix, core=True)


def _java() -> Item:
    from pipeline.errors import NoSpark
    from pipeline.java import FIX, LEAST, find_java

    try:
        return Item("Java", "Spark", str(find_java()))
    except NoSpark as error:
        said = str(error).partition(". Install one")[0].removeprefix(f"Spark needs Java {LEAST} or newer")
        return Item("Java", "Spark", missing=said.lstrip(":, ") or "there is none", fix=FIX)


def _spark() -> Item:
    """It starts, and a task of it runs Python: what is most often not so on a machine where all packages are there."""
    import time

    from mediator.errors import MediatorError

    purpose = "queries and relations in Spark"
    fix = "See the lines above"
    began = time.monotonic()
    try:
        from pipeline.session import local_session

        with local_session(cores=1) as session:
            rows = session.range(3).mapInArrow(_unchanged, "id long").count()
    except MediatorError as error:
        return Item("Spark", purpose, missing=str(error), fix=fix, core=True)
    except Exception as error:  # of Spark, of Java, or of the connection to it
        return Item("Spark", purpose, missing=f"a job failed: {error}", fix=fix, core=True)
    assert rows == 3
    return Item("Spark", purpose, f"ran a job in {time.monotonic() - began:.0f} s", core=True)


def _unchanged(batches: Iterator[object]) -> Iterator[object]:
    yield from batches


def _postgresql() -> Item:
    """Its server's programs, which only the tests need: they start one of their own."""
    import shutil

    place = shutil.which("initdb") or next(
        iter(sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), reverse=True)), None
    )
    purpose, fix = "the tests only", "apt-get install postgresql"
    if place is None:
        return Item("PostgreSQL's server", purpose, missing="there is no initdb", fix=fix)
    return Item("PostgreSQL's server", purpose, place)
