"""A verdict in words, one line per alias and more where there is a choice."""

from __future__ import annotations

from mediator.binding.advice import called
from mediator.binding.model import Input, Provider, Verdict
from mediator.catalog.bindfields import shown
from mediator.query.model import Block


def explain(block: Block, verdict: Verdict) -> list[str]:
    """Lines for people: who provides each alias, what else could, and what will cost many calls."""
    if block.never:
        return ["a condition is never true: no answers, and nothing is asked"]
    lines = []
    for number in verdict.order:
        chosen = verdict.chosen[number]
        lines.append(f"{called(block.aliases[number])}: {described(block, chosen)}")
        lines += [f"  or {described(block, p)}" for p in verdict.providers[number] if p != chosen]
        lines += _warning(block, chosen)
    return [*lines, *_modules(block), *_crossing(block)]


def _modules(block: Block) -> list[str]:
    """The conditions that batches are routed to, and why they are modules of their own."""
    return [f"{p.text}: a module of its own, as {p.why_costly}" for p in block.predicates if p.costly]


def described(block: Block, provider: Provider) -> str:
    """`index by_isbn, isbn from b.isbn, 20 bindings per request`."""
    method = provider.method
    if method.wrapper is None and not method.mirrors and method.kind == "scan":
        return (
            "given" if block.aliases[provider.alias].relation.literal is not None else "from an earlier stage"
        )
    parts = [f"{method.kind} {method.name}", *(_input(block, i) for i in provider.inputs)]
    if method.batch_size > 1:
        parts.append(f"{method.batch_size} bindings per request")
    if method.proves != "all":
        parts.append("which may not bring all rows")
    if method.at_most is not None:
        parts.append(f"{method.at_most:,} rows at most")
    if len(method.mirrors) > 1:
        parts.append(f"{len(method.mirrors)} mirrors")
    return ", ".join(parts)


def _input(block: Block, given: Input) -> str:
    if given.column is None:
        return shown(given.field, repr(given.constant))
    return f"{given.field} from {block.aliases[given.column.alias].name}.{given.column.field}"


def _warning(block: Block, provider: Provider) -> list[str]:
    """Inputs from tables that nothing else joins: all their pairs will be asked."""
    sources = [a.number for a in block.aliases if provider.depends >> a.number & 1]
    groups = _groups(block, provider.alias)
    apart = {groups[s] for s in sources}
    if len(apart) < 2:
        return []
    names = " and ".join(called(block.aliases[s]) for s in sources)
    return [f"  warning: nothing joins {names}, so every combination of their rows will be asked for"]


def _crossing(block: Block) -> list[str]:
    """Relations of sites that nothing joins: the answer has all combinations of their rows."""
    groups: dict[int, list[str]] = {}
    for alias, group in zip(block.aliases, _groups(block, without=-1), strict=True):
        if any(method.mirrors for method in alias.relation.methods):
            groups.setdefault(group, []).append(called(alias))
    if len(groups) < 2:
        return []
    names = " and ".join(" with ".join(group) for group in groups.values())
    return [f"warning: nothing joins {names}, so every combination of their rows is an answer"]


def _groups(block: Block, without: int) -> list[int]:
    """Per alias the least alias that it is connected with, not counting connections through one of them."""
    group = list(range(len(block.aliases)))

    def connect(aliases: set[int]) -> None:
        joined = {group[a] for a in aliases - {without}}
        for number, mine in enumerate(group):
            if mine in joined:
                group[number] = min(joined)

    for equal in block.classes:
        if equal.constant is None:
            connect({c.alias for c in equal.columns})
    for predicate in block.predicates:
        connect({c.alias for c in predicate.reads})
    return group
