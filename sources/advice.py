"""What the model has against a declaration, as one sentence: what is wrong, and what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from sources.auth import looks_secret
from sources.complaint import Where
from sources.declaration import Declaration

_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^\s]*(@)")  # of an address
_KINDS = "json, ndjson, html, csv or parquet"
_AUTH_KINDS = "none, key, basic, bearer or oauth2"


def advice(error: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors."""
    where, type_, found = error["loc"], error["type"], error["input"]
    name = str(where[-1]) if where else ""
    if type_ == "extra_forbidden":
        if "auth" in where and (
            fields := [n for n in _names(where) if n.startswith(name) and n.endswith("_env")]
        ):
            return f"a secret is not written here: take {name!r} out, and name an environment variable in {fields[0]}"
        return f"unknown field {name!r}: {_instead(name, where)}"
    if type_ == "missing":
        return f"{name!r} is missing: add it"
    if type_ == "union_tag_not_found":
        return f"'kind' is missing: add kind: {_AUTH_KINDS if name == 'auth' else _KINDS}"
    if found is None:
        return f"{name!r} is empty: give it a value, or remove it"
    message = str(error["msg"]).removeprefix("Value error, ")
    if "auth" in where or looks_secret(name) or name.endswith("_env"):
        return message  # what was found there may be a secret
    return f"{message} (found {_shown(found)}){_fix(type_, found)}"


def _fix(type_: str, found: object) -> str:
    if type_ in ("tuple_type", "set_type", "frozen_set_type", "list_type") and isinstance(found, str | int):
        return f": write it as a list, [{found}]"
    if type_ == "tuple_type" and isinstance(found, dict) and all(isinstance(v, list) for v in found.values()):
        return f": write it as a list, [{', '.join(f'{name}{o}' for name, os in found.items() for o in os)}]"
    if type_ == "string_type" and isinstance(found, dict) and len(found) == 1:
        return f': put it in quotes, "{{{next(iter(found))}}}"'
    if type_ == "string_type" and isinstance(found, int | float):
        return f': put it in quotes, "{found}"'
    return ""


def _instead(name: str, where: Where) -> str:
    names = _names(where)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"remove it, or use one of: {', '.join(names)}" if names else "remove it"


def _shown(found: object) -> str:
    shown = _PASSWORD.sub(r"\1***\2", repr(found))
    return shown if len(shown) <= 100 else shown[:97] + "..."


@cache
def _schema() -> dict[str, Any]:
    return Declaration.model_json_schema()


def _names(where: Where) -> list[str]:
    """The fields that may stand beside the last step of `where`."""
    part = _schema()
    for step in where[:-1]:
        part = _below(part, step)
    choices = [_meant(p) for p in (_meant(part), *_meant(part).get("anyOf", ()))]
    return [name for choice in choices for name in choice.get("properties", ())]


def _below(part: dict[str, Any], step: str | int) -> dict[str, Any]:
    """The schema of one step further down. A step may also be the name by which a union tells its members."""
    part = _meant(part)
    for choice in [_meant(p) for p in (part, *part.get("anyOf", ()))]:
        if step in (named := choice.get("discriminator", {}).get("mapping", {})):
            return {"$ref": named[step]}
        if isinstance(step, str) and step in _schema()["$defs"]:
            return {"$ref": f"#/$defs/{step}"}
        found = (
            choice.get("properties", {}).get(step)
            or choice.get("additionalProperties")
            or choice.get("items")
        )
        if isinstance(found, dict):
            return found
    return {}


def _meant(part: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in part:
        part = _schema()["$defs"][part["$ref"].rsplit("/", 1)[-1]]
    return part
