"""Can a block be answered? Yes, with every way that serves; or no, with advice."""

from __future__ import annotations

from mediator.binding.advice import unanswerable
from mediator.binding.choice import choose, usable
from mediator.binding.model import Verdict
from mediator.binding.providers import providers_of
from mediator.catalog.model import Catalog
from mediator.query.model import Block


def verdict(block: Block, sql: str = "", catalog: Catalog | None = None) -> Verdict:
    """Who provides each alias of a block. Raises `Unanswerable`; a catalog lets its advice look beyond the
    query."""
    providers = [providers_of(block, alias.number) for alias in block.aliases]
    kept = usable(providers)
    choice = choose(kept)
    if choice is None and block.never:
        return Verdict(tuple(() for _ in providers), (), ())
    if choice is None:
        raise unanswerable(block, providers, sql, catalog)
    return Verdict(kept, *choice)
