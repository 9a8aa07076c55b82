"""What a site's replies mean beyond their status, as data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, field_validator, model_validator

from mediator.catalog.wrapper import Meaning, Reply
from wrappers.columns import ABSENT
from wrappers.parsed import Reader

_READ = 64 << 10  # of a body that is searched for words: what a site has to say stands at its beginning
_MEANINGS = {
    "retry": "to be asked again",
    "empty": "no rows",
    "fail": "a failure",
    "rate_limited": "too many requests",
}


class Rule(BaseModel):
    """`means` is what a reply means to which all that is given here applies.

    `status` is a number or a class such as `5xx`, or a list of them. `header` names a header that is there, `at` a
    place of the body where something stands; `says` is a pattern for what the header or the place (or, with
    neither, the beginning of the body) says. `after` are seconds to wait where the reply names none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    means: Literal["retry", "empty", "fail", "rate_limited"]
    status: tuple[int | str, ...] = ()
    header: str = ""
    at: str = ""
    says: str = Field(default="", max_length=500)
    after: NonNegativeFloat | None = None

    @field_validator("status", mode="before")
    @classmethod
    def _is_a_list(cls, status: object) -> object:
        return (status,) if isinstance(status, int | str) else status

    @field_validator("status")
    @classmethod
    def _are_statuses(cls, statuses: tuple[int | str, ...]) -> tuple[int | str, ...]:
        for status in statuses:
            if not re.fullmatch("[1-5](xx|[0-9]{2})", str(status)):
                raise ValueError(f"{status!r} is not a status: write one such as 404, or a class such as 5xx")
        return statuses

    @field_validator("says")
    @classmethod
    def _is_a_pattern(cls, says: str) -> str:
        try:
            re.compile(says)
        except re.error as error:
            raise ValueError(f"{says!r} is not a pattern: {error}") from None
        return says

    @model_validator(mode="after")
    def _applies_to_something(self) -> Rule:
        if self.header and self.at:
            raise ValueError("a rule looks at one thing: give header or at, and another rule for the other")
        if not (self.status or self.header or self.at or self.says):
            raise ValueError("this applies to every reply: give status, header, at or says")
        if self.after is not None and self.means not in ("retry", "rate_limited"):
            raise ValueError(f"{self.means!r} is for good: leave out after, or write retry or rate_limited")
        return self

    def meaning(self, reply: Reply, look: Callable[[str], object]) -> Meaning | None:
        """The meaning of a reply to which this applies to. `look` reads one place of its body."""
        if self.status and not {reply.status, str(reply.status), f"{reply.status // 100}xx"} & {*self.status}:
            return None
        said = self._said(reply, look)
        if said is None or not re.search(self.says, said):
            return None
        words = " ".join(said.split())[:100] if self.header or self.at else ""
        return Meaning(
            self.means,
            f"{reply.status}, declared to mean {_MEANINGS[self.means]}" + (f": {words}" if words else ""),
            self.after,
        )

    def _said(self, reply: Reply, look: Callable[[str], object]) -> str | None:
        """What stands where this rule looks; None where nothing does."""
        if self.header:
            named = [value for name, value in reply.headers.items() if name.lower() == self.header.lower()]
            return ", ".join(named) if named else None
        if self.at:
            found = look(self.at)
            return None if found is ABSENT or found is None or found is False else str(found)[:_READ]
        return reply.body[:_READ].decode("utf-8", "replace") if self.says else ""


def meaning_of(rules: tuple[Rule, ...], reader: Reader, reply: Reply) -> Meaning | None:
    """The meaning of the first rule that applies. The body is read at most once for each place."""
    seen: dict[str, object] = {}

    def look(place: str) -> object:
        if place not in seen:
            seen[place] = reader.look(reply, place)
        return seen[place]

    return next((meaning for rule in rules if (meaning := rule.meaning(reply, look)) is not None), None)
