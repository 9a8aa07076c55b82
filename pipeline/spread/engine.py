"""The engine `spark`: how a query is laid out for Spark, as the local engine knows it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mediator.binding.counting import Counting
from mediator.binding.holding import Holding
from mediator.clock import wall
from mediator.engines import AnswerStream, Explained, Job, Stock, Understood
from mediator.query.model import Alias, BlockStage, Query
from mediator.state.stem import SteM
from pipeline.files import put_text
from pipeline.java import find_java
from pipeline.leftovers import sweep
from pipeline.packages import check_spark
from pipeline.spread.dealing import most_askers
from pipeline.spread.driving import Driving, Nothing, Process, Thread
from pipeline.spread.errors import SpreadError
from pipeline.spread.explaining import explained
from pipeline.spread.folder import Folder
from pipeline.spread.passing import Passing
from pipeline.spread.plan import Plan, planned
from pipeline.spread.registering import wait_for_executors
from pipeline.spread.relaying import found_again
from pipeline.spread.running import SpreadAnswers
from pipeline.spread.seeding import Stored, seed
from pipeline.spread.skew import heavy, held
from pipeline.spread.strands import SEEDS
from pipeline.spread.tail import Before

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLOTS = 8  # at most, where nobody says
_PROBE = 1 << 16  # bytes that there must be room for, at least
_CORES = 8  # of a cluster for which there is one asker, where nobody says


class SparkEngine:
    def answering(self, job: Job, before: Before | None = None) -> AnswerStream:
        """Raises `NoSpark` where Spark is not there, `SpreadError` where the folder is not one that it can use."""
        check_spark()
        if why := only_here(job.query):
            raise SpreadError(why)
        session = _session()
        said = job.settings.checkpoint
        folder = Folder(Path(said).absolute()) if said else Passing()
        if session is None and not has_ended(folder):
            find_java()
        if session is not None and not said and not _is_local(session):
            raise SpreadError(
                "on a cluster a query keeps what it finds in a folder that the driver and every executor see by the "
                "same path: name one (checkpoint)"
            )

        def lay(stock: Stock) -> Plan:
            sweep()
            if session is not None and not has_ended(folder):
                wait_for_executors(session)
            # What was given before is left out of one layout only.
            return laid(folder, job, stock, session, fixed=before is not None)

        def driving(plan: Plan) -> Driving:
            if has_ended(folder):
                return Nothing()
            return Process(folder) if session is None else Thread(folder, plan, session)

        return SpreadAnswers(job, folder, lay, driving, bool(said), before)

    def explained(self, query: Understood) -> Explained:
        check_spark()
        if why := only_here(query.query):
            raise SpreadError(why)
        # One that runs is laid out by what was measured, and by rows that are held, not by how many those are.
        asked = replace(query, known=replace(query.known, held={}))
        return explained(asked, laid_out(asked, query.known.held, _session()), held(query.known.held))


def laid(
    folder: Folder, job: Job, stock: Stock, session: SparkSession | None = None, *, fixed: bool = False
) -> Plan:
    """The query that was begun in this folder, or a new one where there is none. What this process holds goes along."""
    if folder.begun:
        plan = folder.plan()
        folder.check_same(plan, job.catalog, job.query, job.settings)
        if has_ended(folder):
            return plan
        check_writable(folder)
        folder.resume()
        if session is not None:
            slots_in(session, plan.askers)
    else:
        plan = laid_out(job, stock.stems, session, fixed=fixed)
        folder.begin(plan)
    if not folder.strand(SEEDS).exists():
        seed(plan, folder, (), Stored(stock.stems, stock.now, wall() - stock.now, job.settings.max_age))
    return plan


def only_here(query: Query) -> str:
    """Why a query cannot be asked on Spark; nothing where it can."""
    if not query.functions:
        return ""
    names = ", ".join(function.name for function in query.functions)
    are = "is a function" if len(query.functions) == 1 else "are functions"
    return f"{names} {are} of this process, and on Spark others are at work: ask this with engine local"


def has_ended(folder: Folder) -> bool:
    """All that was found is there, and needs no Spark."""
    return folder.begun and folder.over


def check_writable(folder: Folder) -> None:
    """Raises `SpreadError` where a query that was begun cannot go on, before anything is started for it."""
    probe = folder.path / ".probe"
    try:
        put_text(probe, " " * _PROBE)
        probe.unlink()
    except OSError as error:
        raise SpreadError(
            f"{folder.path}: the query that was begun here goes on only where its folder can be written: "
            f"{error.strerror or error}"
        ) from None


def _session() -> SparkSession | None:
    """The one that this process has already, if it has."""
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession()
    if found is not None and not hasattr(found, "_jsc"):
        raise SpreadError(
            "this process has a Spark Connect session, which runs no query of the mediator's: ask in a process without "
            "one, or with .format('mediator')"
        )
    return found


def engine() -> SparkEngine:
    return SparkEngine()


def laid_out(
    job: Understood,
    stems: Mapping[str, SteM | Holding],
    session: SparkSession | None = None,
    *,
    fixed: bool = False,
) -> Plan:
    """`fixed`: it is not to be laid out anew."""
    askers = askers_of(job, session)
    slots = job.settings.slots or min(_SLOTS, os.cpu_count() or 1)
    if session is not None:
        slots = job.settings.slots or slots_in(session, askers)
    sizes = {stage.name: sizes_of(stage, job) for stage in job.query.stages if isinstance(stage, BlockStage)}
    return planned(
        job.catalog,
        job.query,
        job.verdicts,
        job.settings,
        lambda name, alias: sizes[name](alias),
        slots=slots,
        askers=askers,
        heavy=lambda cube, sizes: heavy(cube, sizes, held(stems), job.known.profile),
        profile=job.known.profile,
        fixed=fixed or not found_again(job.query),
        workers=slots if session is None or _is_local(session) else 1,
    )


def askers_of(job: Understood, session: SparkSession | None) -> int:
    """As many as were said, or as the cluster is large; never more than have anything to ask. Raises `SpreadError`
    where they would leave no core to the cells."""
    said = job.settings.askers
    if said is not None and said < 1:
        raise SpreadError(f"askers is {said}: a query needs one task at least that asks the sites")
    cores = None if session is None else session.sparkContext.defaultParallelism
    cluster = session is not None and not _is_local(session)
    wanted = said or (max(1, cores // _CORES) if cores is not None and cluster else 1)
    blocks = [stage.block for stage in job.query.stages if isinstance(stage, BlockStage)]
    relations = {alias.relation.name: alias.relation for block in blocks for alias in block.aliases}
    askers = min(wanted, most_askers(job.catalog, relations.values(), job.settings))
    if session is not None:
        slots_in(session, askers)
    return askers


def slots_in(session: SparkSession, askers: int = 1) -> int:
    """The cores that are left: an asker has one, and waits for sites as long as the query lasts."""
    cores = session.sparkContext.defaultParallelism
    if cores > askers:
        return cores - askers
    tasks = "1 task" if cores == 1 else f"{cores} tasks"
    if askers == 1:
        raise SpreadError(
            f"this Spark session runs {tasks} at once, and a query needs two: one that asks the sites as long as "
            "it lasts, and one for the rest. Use local[2] or more"
        )
    raise SpreadError(
        f"this Spark session runs {tasks} at once, and {askers} are to ask the sites as long as the query lasts, "
        f"which leaves none for the rest: say fewer askers, or use local[{askers + 1}] or more"
    )


def _is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")


def sizes_of(stage: BlockStage, job: Understood) -> Callable[[Alias], float]:
    """Rows that each alias may have, by all that is known now."""
    if stage.block.never:  # nothing is asked, and nobody need be there to be asked
        return lambda _: 0.0
    counts = Counting(stage.block, job.verdicts[stage.name], job.known).count()
    rows = {c.provider.alias: math.sqrt(max(1.0, c.rows.low) * max(1.0, c.rows.high)) for c in counts}
    return lambda alias: rows[alias.number]
