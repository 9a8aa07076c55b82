"""The JSON Schema of a declaration file: editors complete and check with it while one is written."""

from __future__ import annotations

from typing import Any

from sources.compiling import TYPES
from sources.declaration import Declaration

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """What may stand in a file, with the types that fields can have.

    A value that `${name}` stands for is a text in the file, whatever it becomes.
    """
    schema = Declaration.model_json_schema()
    fields = schema["$defs"]["RelationSpec"]["properties"]["fields"]
    fields["additionalProperties"] = {"enum": list(TYPES)}
    base = schema["$defs"]["SourceSpec"]["properties"]["base"]
    base["pattern"] = base["pattern"].replace("^(", r"^(\$\{\w+\}|", 1)
    return {"$schema": _DIALECT, **schema, "title": "A declaration of sources and relations"}
