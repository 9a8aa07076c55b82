"""Where everything of a spread lies. All of it is written once, appears whole, and does not change.

- `spread.json`: whose it is; `plan.pickle`: what is done where; `plan-1.pickle`, ...: as it was laid out anew;
- `log/STRAND/00000000.arrow`, ...: what the sites answered, in pieces; each writer has a strand of its own. A piece
  says how many pieces of others go before it;
- `asks/00000000.arrow`, ...: what cells ask for, after each batch that asks for anything;
- `shares/...json`: which asker asks for which pages of a scan, and which of them has done so;
- `answers/STAGE/...parquet`: answers, under names that no other file ever had. They count when they are named in
- `given/00000000.json`, ...: what has been given, in its order. What comes of a batch of the stream says which, and
  what was made early, of a query that was stopped, goes where that is resumed;
- `asking/STRAND.json`: how an asker stands, for whoever watches (the one thing that is written again and again);
- `stop.json`: somebody wants it to end; `end.json`: it has ended, and how much was given. Both go where it is resumed;
- `checkpoint`, `checkpoint-1`, ...: Spark's own, of each layout.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mediator.assembly import Settings
from mediator.catalog.model import Catalog
from mediator.query.model import Query
from mediator.query.parameters import Parameters
from pipeline.files import put_bytes, put_text
from pipeline.packages import version
from pipeline.spread.errors import SpreadError
from pipeline.spread.pieces import count, numbered
from pipeline.spread.plan import Plan
from sources.modules import folders, importable

# Settings on which it depends what is answered.
_BINDING = ("max_calls", "max_bytes", "per_source", "max_age", "pause")
FORMAT = 4
ENOUGH = "enough"  # why it is stopped when LIMIT is reached


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.asks = path / "asks"
        self.shares = path / "shares"
        self.given = path / "given"
        self.answers = path / "answers"
        self.asking = path / "asking"

    def strand(self, name: str) -> Path:
        return self.path / "log" / name

    def checkpoint(self, layout: int) -> Path:
        return self.path / _numbered("checkpoint", layout)

    def begin(self, plan: Plan) -> None:
        """Raises `SpreadError` where there is no writing."""
        try:
            here = (self.asks, self.shares, self.given, self.answers, self.asking)
            for folder in (self.path, *here, self.path / "log"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.lay(plan)
            about = {"format": FORMAT, "version": version(), "id": plan.id, "sql": plan.query.sql}
            about["folders"] = folders()
            put_text(self.path / "spread.json", json.dumps(about, indent=1))
        except OSError as error:
            raise SpreadError(
                f"{self.path}: a query on Spark keeps there what it has found, and nothing can be written there: "
                f"{error.strerror or error}. Name another folder"
            ) from None

    def lay(self, plan: Plan) -> None:
        """From now on it is laid out so."""
        from pyspark import cloudpickle  # here, as whoever asks for a folder may be without Spark

        content = cloudpickle.dumps(plan)  # type: ignore[no-untyped-call]
        put_bytes(self.path / f"{_numbered('plan', plan.layout)}.pickle", content)

    def plan(self, id_: str | None = None, layout: int | None = None) -> Plan:
        """The last, where no layout is named. Raises `SpreadError` where it is another's, or none."""
        try:
            about = json.loads((self.path / "spread.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise SpreadError(
                f"{self.path}: there is no query on Spark here that could go on. The folder must be one that the "
                "driver and every executor see by the same path"
            ) from None
        there = (about.get("format"), about.get("version"))
        if there != (FORMAT, version()):
            raise SpreadError(
                f"{self.path}: a query that was begun by another version ({there[1]}, this is {version()}). Begin it "
                "anew in another folder"
            )
        if id_ not in (None, about["id"]):
            raise SpreadError(f"{self.path}: another query is here: {about['sql']}")
        from pyspark import cloudpickle

        importable(about.get("folders", ()))
        try:
            which = len(list(self.path.glob("plan*.pickle"))) - 1 if layout is None else layout
            found: Plan = cloudpickle.loads((self.path / f"{_numbered('plan', which)}.pickle").read_bytes())
        except (ImportError, AttributeError) as error:
            raise SpreadError(
                f"{platform.node()}: what the catalog needs is not here: {error}. Every executor needs the packages "
                "and plugins that the driver has, and a catalog's Python files under the same path"
            ) from None
        return found

    @property
    def far(self) -> int:
        """How far it has got: steps that are not done again."""
        plans = list(self.path.glob("plan*.pickle"))
        steps = [self.asks, *(self.path / "log").glob("[!.]*")]
        spark = [self.checkpoint(n) / what for n in range(len(plans)) for what in ("offsets", "commits")]
        shares = len(list(self.shares.glob("[!.]*")))
        return shares + sum(map(count, steps)) + sum(len(list(folder.glob("[0-9]*"))) for folder in spark)

    @property
    def begun(self) -> bool:
        return (self.path / "spread.json").exists()

    def check_same(
        self, plan: Plan, catalog: Catalog, query: Query, settings: Settings | None = None
    ) -> None:
        """Raises `SpreadError` where what is here is not this query over these sites, or may spend something else."""
        if plan.query.sql != query.sql:
            raise SpreadError(
                f"{self.path}: another query was begun here: {plan.query.sql}\nAsk that one, and it goes on; or name "
                "another folder"
            )
        if _told_apart(plan.query.parameters) != _told_apart(query.parameters):
            raise SpreadError(
                f"{self.path}: this query was begun with other parameters: {plan.query.parameters!r}. Ask with those, "
                "and it goes on; or name another folder"
            )
        for name in _BINDING if settings is not None else ():
            before = getattr(plan.settings, name)
            if before != getattr(settings, name):
                raise SpreadError(
                    f"{self.path}: this query was begun with another {name}: {before!r}. Ask with that, and it goes "
                    "on; or name another folder"
                )
        if (plan.catalog.sources, plan.catalog.relations) != (catalog.sources, catalog.relations):
            raise SpreadError(
                f"{self.path}: this query was begun with another catalog: its sites or relations were declared "
                "otherwise. Name another folder"
            )

    @property
    def end(self) -> Mapping[str, Any] | None:
        return _read(self.path / "end.json")

    @end.setter
    def end(self, said: Mapping[str, Any]) -> None:
        put_text(self.path / "end.json", json.dumps(said, default=str))

    @property
    def over(self) -> bool:
        """Whether it has ended by itself, or because that was enough. One that was stopped may go on."""
        end = self.end
        return end is not None and end["stopped"] in ("", ENOUGH)

    def resume(self) -> None:
        """Where it was stopped, it goes on: what was made of a part alone, as it ended early, counts no more."""
        if self.over:
            return
        for number in reversed(range(count(self.given))):
            path = numbered(self.given, number, "json")
            if not read_json(path)["early"]:
                break
            path.unlink()
        for name in ("stop.json", "end.json"):
            (self.path / name).unlink(missing_ok=True)

    @property
    def stop(self) -> str | None:
        """Why it is to end, if it is."""
        said = _read(self.path / "stop.json")
        return None if said is None else str(said["why"])

    @stop.setter
    def stop(self, why: str) -> None:
        with suppress(FileNotFoundError):  # it has been cleared away already
            put_text(self.path / "stop.json", json.dumps({"why": why}))

    def clear(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _numbered(name: str, layout: int) -> str:
    return f"{name}-{layout}" if layout else name


def _told_apart(parameters: Parameters) -> str:
    """To Python 1, 1.0 and True are equal, and NaN is not; a list is no tuple."""
    return repr(sorted(parameters.items()) if isinstance(parameters, Mapping) else list(parameters))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = read_json(path)
    except FileNotFoundError:
        return None
    return found
