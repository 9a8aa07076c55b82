"""A draft as the text of a YAML file, with a comment at everything that its author is to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from sources.complaint import Where
from sources.openapi.drafting import Draft
from sources.openapi.operations import Skipped
from sources.openapi.words import one_line

_WIDTH = 110
_MOST_TOLD = 60


class _Dumper(yaml.SafeDumper):
    """One line for every text, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        plain = data.isprintable() and "{" not in data
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else '"')


_Dumper.add_representer(str, _Dumper.represent_str)


def written(draft: Draft) -> str:
    """What `sources.load` reads."""
    lines = [
        f"# Drafted from {draft.title}.",
        '# What could not be decided is marked "check:". Look at it, then remove the mark.',
        *_Writing(draft.notes).lines(draft.content, ()),
    ]
    if told := skipped(draft.skipped):
        lines += ["", "# Not drafted:", *(f"#   {line}" for line in told)]
    return "\n".join(lines) + "\n"


def skipped(found: list[Skipped]) -> list[str]:
    """What is not in a draft, a line for each; writes are only counted."""
    told = [f"{one_line(s.label)}: {one_line(s.why, 200)}" for s in found if s.why]
    lines = told[:_MOST_TOLD]
    if len(told) > _MOST_TOLD:
        reasons = Counter(one_line(s.why, 80) for s in found if s.why)
        lines.append(f"and {len(told) - _MOST_TOLD:,} more, most of them: {reasons.most_common(1)[0][0]}")
    if writes := sum(not s.why for s in found):
        lines.append(f"{writes:,} operation{'s' if writes > 1 else ''} that would change something")
    return lines


class _Writing:
    def __init__(self, notes: Mapping[Where, list[str]]) -> None:
        self._notes = notes
        self._above = {place[:steps] for place in notes for steps in range(1, len(place))}

    def lines(self, content: Mapping[str, Any], where: Where) -> Iterator[str]:
        """What fits on one line is on one, unless there is something to say of a part of it."""
        indent = "  " * len(where)
        for name, value in content.items():
            here = (*where, name)
            yield from (f"{indent}# check: {one_line(note, 300)}" for note in self._notes.get(here, ()))
            key = f"{indent}{_flow(name)}:"
            spread = len(here) < 3 or "methods" in here[-2:] or here in self._above
            inline = "" if spread and isinstance(value, dict) and value else f"{key} {_flow(value)}"
            if inline and (len(inline) <= _WIDTH or not isinstance(value, dict | list)):
                yield inline
            elif isinstance(value, dict):
                yield key
                yield from self.lines(value, here)
            else:
                yield key
                yield from (f"{indent}  - {_flow(part)}" for part in value)


def _flow(value: Any) -> str:
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=True,
        width=float("inf"),
        allow_unicode=True,
        sort_keys=False,
    )
    return text.removesuffix("...\n").strip()
