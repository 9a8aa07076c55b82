"""The reference as a page, written from the OpenAPI document: no script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """\
:root { color-scheme: light dark; --line: #8884; --dim: #888; --soft: #8881 }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin-top: 3rem; text-transform: capitalize }
section { border: 1px solid var(--line); border-radius: 6px; padding: .5rem 1rem 1rem; margin: 1rem 0 }
section h3 { font: 600 1rem ui-monospace, monospace; overflow-wrap: anywhere }
h3 b { display: inline-block; min-width: 4.5rem }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-top: 1px solid var(--line) }
th { font-weight: 500; color: var(--dim) }
code, pre { font: .9em ui-monospace, monospace }
pre { background: var(--soft); padding: .75rem; border-radius: 6px; overflow-x: auto }
small { color: var(--dim) }
nav a { margin-right: 1rem; white-space: nowrap }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# What the page may do: look as it does, and nothing else.
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

Document = Mapping[str, Any]


def page(document: Document) -> str:
    """HTML."""
    info = document["info"]
    tags: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            tags.setdefault(route["tags"][0], []).append("".join(_route(document, path, method, route)))
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in tags)
    parts = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(routes)}' for tag, routes in tags.items()
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>"
        f'<p>{_prose(info["description"])}</p><p>The same for programs: <a href="openapi.json">openapi.json</a></p>'
        f"<nav>{links}</nav>{parts}</html>"
    )


def _route(document: Document, path: str, method: str, route: Document) -> Iterator[str]:
    yield f"<section><h3><b>{method.upper()}</b> {escape(path)}</h3><p>{escape(route['summary'])}. "
    yield f"{_prose(route.get('description', ''))}</p>"
    parameters = [
        (p["name"], p["in"], p["schema"], p.get("description", "")) for p in route.get("parameters", ())
    ]
    content = route.get("requestBody", {}).get("content", {})
    body = _resolved(document, content.get("application/json", {}).get("schema", {}))
    needed = body.get("required", ())
    fields = body.get("properties", {})
    for name, schema in sorted(fields.items(), key=lambda field: field[0] not in needed):
        where = "body, needed" if name in needed else "body"
        parameters.append((name, where, schema, _resolved(document, schema).get("description", "")))
    if parameters:
        yield f"<table>{''.join(_parameter(document, *p) for p in parameters)}</table>"
    yield f"<pre>{escape(_curl(document, path, method, content))}</pre><table>"
    for status, response in sorted(route["responses"].items()):
        kinds = "<br>".join(f"<code>{escape(kind)}</code>" for kind in response.get("content", ()))
        yield f"<tr><td><code>{escape(status)}</code><td>{escape(response['description'])}<td>{kinds}"
    yield "</table></section>"


def _parameter(document: Document, name: str, where: str, schema: Document, description: str) -> str:
    default = f" = {json.dumps(schema['default'])}" if schema.get("default") is not None else ""
    kind = escape(_kind(document, schema) + default)
    return f"<tr><td><code>{escape(name)}</code><th>{escape(where)}<td>{kind}<td>{_prose(description)}"


def _kind(document: Document, schema: Document) -> str:
    """What values there are, for people."""
    schema = _resolved(document, schema)
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if "anyOf" in schema:
        return " | ".join(_kind(document, s) for s in schema["anyOf"] if s.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    if "properties" in schema:
        return "{" + ", ".join(schema["properties"]) + "}"
    return str(schema.get("type", "anything"))


def _resolved(document: Document, schema: Document) -> Document:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _curl(document: Document, path: str, method: str, content: Document) -> str:
    """A call that can be tried."""
    verb = "" if method == "get" or (method == "post" and content) else f" -X {method.upper()}"
    said = ""
    if "application/json" in content:
        body = _resolved(document, content["application/json"]["schema"])
        fields = body.get("properties", {})
        shown = {name: schema["examples"][0] for name, schema in fields.items() if schema.get("examples")}
        given = {name: shown[name] for name in body.get("required", ()) if name in shown} or shown
        said = f" --json '{json.dumps(given)}'"
    return f"curl{verb} http://127.0.0.1:8080{path}{said}"


def _prose(text: str) -> str:
    """Paragraphs, and what stands between backticks as code."""
    parts = escape(text.strip()).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts)).replace(
        "\n\n", "<p>"
    )
