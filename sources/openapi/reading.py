"""From a text to an OpenAPI document. It is somebody else's: nothing in it is believed, nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import orjson
import yaml

from mediator.errors import CatalogError

LARGEST = 32 << 20  # bytes
_MOST_PARTS = 2_000_000
_DEEPEST = 200
_VERSIONS = ("2.", "3.0", "3.1", "3.2")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.SafeLoader("")


class Unclear(Exception):
    """Why a part of a document cannot be used, as it is told to the author."""


def read(name: str, text: bytes) -> Document:
    """The document. Raises `CatalogError`, which begins with `name`, for what is none."""
    if len(text) > LARGEST:
        raise CatalogError(
            f"{name}: {len(text):,} bytes, where {LARGEST:,} are the most for an OpenAPI document"
        )
    content = _parsed(name, text.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(content, dict):
        raise CatalogError(
            f"{name}: not an OpenAPI document: expected 'openapi', 'info' and 'paths' at the top"
        )
    version = str(content.get("openapi") or content.get("swagger") or "")
    if not version.startswith(_VERSIONS):
        said = f"version {version[:20]!r}" if version else "neither 'openapi' nor 'swagger'"
        raise CatalogError(f"{name}: {said} at the top: expected openapi 3.0 or 3.1, or swagger 2.0")
    if not isinstance(content.get("paths"), dict):
        raise CatalogError(f"{name}: there are no 'paths': nothing can be asked")
    return Document(content, version)


class Document:
    """The content of a document, and a way to what its references mean."""

    def __init__(self, content: dict[str, Any], version: str) -> None:
        self.content = content
        self.version = version
        self.old = version.startswith("2.")  # Swagger

    def part(self, *names: str) -> dict[str, Any]:
        """What is there under these names; empty where there is no such mapping."""
        found: Any = self.content
        for name in names:
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def meant(self, value: Any) -> dict[str, Any]:
        """A mapping, or the one that it refers to. Raises `Unclear` for what is none."""
        for _ in range(_DEEPEST):
            if not isinstance(value, dict):
                raise Unclear("a part that is no mapping")
            if not isinstance(reference := value.get("$ref"), str):
                return value
            value = self.at(reference)
        raise Unclear("a $ref that leads round to itself")

    def at(self, reference: str) -> Any:
        """What is at a place of this document. Raises `Unclear` for a place outside it."""
        if not reference.startswith("#/"):
            raise Unclear(f"$ref {reference[:80]!r} is outside the document, and is not fetched")
        found: Any = self.content
        for step in reference[2:].split("/"):
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 7:
                found = found[int(step)] if int(step) < len(found) else None
            else:
                found = found.get(step) if isinstance(found, dict) else None
            if found is None:
                raise Unclear(f"$ref {reference[:80]!r} leads nowhere")
        return found


def _parsed(name: str, text: bytes) -> Any:
    try:
        content = orjson.loads(text) if text.lstrip()[:1] in (b"{", b"[") else _from_yaml(name, text)
    except orjson.JSONDecodeError as error:
        try:  # YAML may begin with a brace, too
            content = _from_yaml(name, text)
        except CatalogError:
            raise CatalogError(f"{name}: not JSON: {error}") from None
    return content


def _from_yaml(name: str, text: bytes) -> Any:
    """YAML, with every key as a text, and without the types that JSON does not have."""
    try:
        return _Building(name).value(yaml.parse(text.decode(), Loader=_Loader))
    except UnicodeDecodeError:
        raise CatalogError(f"{name}: not UTF-8") from None
    except (yaml.YAMLError, ValueError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CatalogError(f"{name}: neither JSON nor YAML: {said}") from None


class _Building:
    """Values made of events one by one: whoever nests too deep is stopped before anything has to call itself.

    An alias stands for the very same value, however often, so that aliases cannot multiply what there is.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[
            tuple[Any, str | None, str]
        ] = []  # a list or mapping, the key that waits there, its anchor
        self._known: dict[str, Any] = {}
        self._top: list[Any] = []

    def value(self, events: Iterator[Any]) -> Any:
        for number, event in enumerate(events):
            if number > _MOST_PARTS or len(self._open) > _DEEPEST:
                raise self._too_large()
            if isinstance(event, yaml.MappingStartEvent):
                self._open.append(({}, None, event.anchor or ""))
            elif isinstance(event, yaml.SequenceStartEvent):
                self._open.append(([], None, event.anchor or ""))
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                made, _, anchor = self._open.pop()
                self._put(made, anchor)
            elif isinstance(event, yaml.ScalarEvent):
                self._put(event if self._wants_key() else _scalar(event), event.anchor or "")
            elif isinstance(event, yaml.AliasEvent):
                if event.anchor not in self._known:
                    raise self._too_large()  # of something that it stands in
                self._put(self._known[event.anchor])
        return self._top[0] if self._top else None

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1][0], dict) and self._open[-1][1] is None

    def _put(self, value: Any, anchor: str = "") -> None:
        """The value at the place that is open: as a key, as what belongs to the last key, or in a list."""
        if anchor:
            self._known[anchor] = value.value if isinstance(value, yaml.ScalarEvent) else value
        if not self._open:
            self._top.append(value)
            return
        within, key, name = self._open[-1]
        if isinstance(within, list):
            within.append(value)
        elif key is None:
            text = value.value if isinstance(value, yaml.ScalarEvent) else str(value)[:100]
            self._open[-1] = (within, str(text), name)
        else:
            within[key] = value
            self._open[-1] = (within, None, name)

    def _too_large(self) -> CatalogError:
        return CatalogError(f"{self._name}: too large or too deep: write it as JSON, without aliases")


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = str(event.value)
    tag = event.tag or _RESOLVER.resolve(yaml.ScalarNode, text, event.implicit)
    kind = tag.rsplit(":", 1)[-1]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on", "y")
    try:
        if kind == "int" and len(text) < 20:
            return int(text)
        if kind == "float":
            return float(text)
    except ValueError:
        return text
    return text
