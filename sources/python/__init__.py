"""Declarations as Python classes. They become what a YAML file becomes: the same model, with the same checks."""

from sources.python.classes import Int32, Relation, Source
from sources.python.ways import Way, index, scan

__all__ = ["Int32", "Relation", "Source", "Way", "index", "scan"]
