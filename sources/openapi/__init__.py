"""From an OpenAPI document to a drafted declaration. Nothing here does I/O, and nothing in a document is believed."""

from sources.openapi.drafting import Draft, drafted
from sources.openapi.reading import Document, read
from sources.openapi.writing import skipped, written

__all__ = ["Document", "Draft", "drafted", "read", "skipped", "written"]
