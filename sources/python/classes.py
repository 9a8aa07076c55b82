"""What an author derives from: `Relation` for a table, `Source` for a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, dataclass_transform

from pydantic import Field

from sources.declaration import DatabaseSpec, SourceSpec

Int32 = Annotated[int, "int32"]  # an `int` is 64 bits wide


class Source(SourceSpec):
    """A site, with all that may be declared of one. `base` may have `${name}` in it, or `${name:-default}`."""

    name: str = Field(min_length=1)
    base: str  # its form is checked when the variables have their values


@dataclass(frozen=True)
class Declared:
    """What a class statement says beside its body."""

    name: str
    key: str | Sequence[str]
    fields: Mapping[str, str]
    abstract: bool
    more: Mapping[str, Any]  # what is as it would be in YAML


@dataclass_transform(kw_only_default=True)
class Relation:
    """A table: annotations are its fields, and `index` and `scan` its ways in. An instance is a row.

    `key` names the fields that tell rows apart. The name of the table is that of the class in lower case, with
    underscores, unless `name` says otherwise. A field with a value is one that a row may leave out. `fields` are
    those whose names Python keeps for itself, with their types as YAML names them; `rows` and `database` are as in
    YAML too. A class that is `abstract` is no table but is there to be derived from.
    """

    _declared: ClassVar[Declared] = Declared("", (), {}, True, {})

    def __init_subclass__(
        cls,
        *,
        name: str = "",
        key: str | Sequence[str] = (),
        fields: Mapping[str, str] | None = None,
        abstract: bool = False,
        rows: int | None = None,
        database: DatabaseSpec | None = None,
    ) -> None:
        super().__init_subclass__()
        cls._declared = Declared(name, key, fields or {}, abstract, {"rows": rows, "database": database})

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"
