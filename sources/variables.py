"""What `${name}` stands for: a value that was given, or the default that is written, `${name:-default}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sources.complaint import Complaint, Where

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^{}]*))?\}")


class Unset(Complaint):
    """A variable that has neither."""


def filled(value: Any, variables: Mapping[str, str], where: Where = ()) -> Any:
    """The content with its variables replaced."""
    if isinstance(value, dict):
        return {k: filled(v, variables, (*where, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v, variables, (*where, i)) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def said(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name in variables:
            return variables[name]
        if default is not None:
            return str(default)
        known = ", ".join(sorted(variables)) or "none"
        raise Unset(
            where,
            f"variable {name!r} has no value: give it one, with --set or in load() (given: {known})",
        )

    return _VARIABLE.sub(said, value)
