"""The JSON Schema of a declaration file: editors complete and check with it while one is written."""

from __future__ import annotations

from typing import Any

from sources.compiling import TYPES
from sources.declaration import Declaration
from sources.fresh import FOREVER

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """What may stand in a file, with the types that fields can have.

    A value that `${name}` stands for is a text in the file, whatever it becomes.
    """
    schema = Declaration.model_json_schema()
    fields = schema["$defs"]["RelationSpec"]["properties"]["fields"]
    fields["additionalProperties"] = {"enum": list(TYPES)}
    base = schema["$defs"]["SourceSpec"]["properties"]["base"]
    base["pattern"] = base["pattern"].replace("^(", r"^(\$\{\w+(:-[^{}]*)?\}|", 1)
    token_url = schema["$defs"]["Oauth2Auth"]["properties"]["token_url"]
    token_url["pattern"] = r"^(\$\{\w+(:-[^{}]*)?\}|https?://[^/])"
    for part in schema["$defs"].values():
        for field in part.get("properties", {}).values():
            if field.get("default") == FOREVER:  # which JSON has no word for
                del field["default"]
        if "const" in part.get("properties", {}).get("kind", {}):  # has a default for those who write Python
            part["required"] = sorted({"kind", *part.get("required", ())})
    return {"$schema": _DIALECT, **schema, "title": "A declaration of sources and relations"}
