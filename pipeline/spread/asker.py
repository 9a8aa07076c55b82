"""An asker: carries out its portion of all lookups, within its portion of every limit, and writes what comes to the log
before anybody uses it.

Which lookups are its own follows from the lookup. So each is asked once, whatever cell wants it, and what an asker may
ask of a site is counted in one place for as long as the query lasts. One that is begun anew goes by its own strand:
what has ended there is not asked again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from mediator.access import Access, Ceilings
from mediator.access.visit import Visit
from mediator.answering import HEDGED
from mediator.clock import wall
from mediator.flow.events import Event
from pipeline.files import new_of
from pipeline.spread.folder import Folder
from pipeline.spread.plan import Plan
from pipeline.spread.portion import Portion
from pipeline.spread.sharing import Sharing
from pipeline.spread.strands import strand_of
from pipeline.spread.watching import standing

_LOOK = 0.02  # seconds between two looks for new asks
_FLUSH = 0.05  # that an envelope may wait for others before a piece is written
_TELL = 0.5  # between two words on how it stands


def run_asker(folder: Path, number: int) -> None:
    """In a task: until the spread ends."""
    there = Folder(folder)
    asyncio.run(Asker(there.plan(), there, number).run())


class Asker:
    """Number `number` of the plan's askers."""

    def __init__(self, plan: Plan, folder: Folder, number: int) -> None:
        self._plan, self._folder, self._number = plan, folder, number
        self._portion: Portion | None = None

    async def run(self) -> None:
        """Until the spread ends."""
        plan, settings = self._plan, self._plan.settings
        sharing = Sharing(plan, self._number)
        catalog = sharing.catalog(plan.dealing.catalog(plan.catalog, self._number))
        # Whatever has a ceiling is asked by one asker, which has all of it.
        ceilings = Ceilings(settings.max_calls, settings.max_bytes)
        at = {name: said for name, said in settings.per_source.items() if name in catalog.sources}
        async with Access(catalog) as access:
            sharing.hides = access.redaction.holds
            visit = access.visit(self._deliver, ceilings, at)
            visit.hedge(HEDGED[plan.settings.goal])
            visit.steer(plan.settings.pause, plan.settings.boost)
            try:
                await self._serve(access, visit, sharing)
            finally:
                visit.close()
                if self._portion is not None:
                    self._portion.close()

    async def _serve(self, access: Access, visit: Visit, sharing: Sharing) -> None:
        loop = asyncio.get_running_loop()
        offset = wall() - loop.time()
        self._portion = portion = await asyncio.to_thread(
            Portion, self._plan, self._folder, self._number, visit.ask, offset, sharing
        )
        told = flushed = 0.0
        while not await asyncio.to_thread(self._over):
            portion.take(await asyncio.to_thread(portion.look))
            if loop.time() - flushed >= _FLUSH:
                flushed = loop.time()
                await asyncio.to_thread(portion.write, portion.due())
            if loop.time() - told >= _TELL:
                told = loop.time()
                await asyncio.to_thread(self._tell, standing(access.statistics(), portion.helped))
            await asyncio.sleep(_LOOK)

    def _deliver(self, event: Event) -> None:
        assert self._portion is not None
        self._portion.deliver(event)

    def _over(self) -> bool:
        return self._folder.end is not None or not self._folder.path.exists()

    def _tell(self, standing: str) -> None:
        target = self._folder.asking / f"{strand_of(self._number)}.json"
        new = new_of(target)
        new.write_text(standing, encoding="utf-8")
        new.replace(target)
