"""For how long answers may be used again, as a declaration says it: seconds, `site`, or the site within limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    NonNegativeFloat,
    PositiveFloat,
    Tag,
    model_validator,
)

FOREVER = float("inf")


class SiteFreshness(BaseModel):
    """What the headers of the site's replies say, but no more than `most` seconds; `unsaid` where they say nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    most: PositiveFloat = FOREVER
    unsaid: NonNegativeFloat = 0.0

    @model_validator(mode="after")
    def _within_limits(self) -> SiteFreshness:
        if self.unsaid > self.most:
            raise ValueError(f"unsaid is longer than most: write at most {self.most:g}, or a larger most")
        return self


def _form(said: Any) -> str:
    if isinstance(said, dict | SiteFreshness):
        return "SiteFreshness"
    # A text that is a number is left to the seconds, whose complaint is the clearer one.
    return "site" if isinstance(said, str) and not said[:1].isdigit() else "seconds"


Fresh = Annotated[
    Annotated[PositiveFloat, Tag("seconds")]
    | Annotated[Literal["site"], Tag("site")]
    | Annotated[SiteFreshness, Tag("SiteFreshness")],
    Discriminator(_form),
]


def bounds(said: float | str | SiteFreshness) -> tuple[float, float | None]:
    """The longest that it may be, and what holds where the site says nothing; none where the site is not believed."""
    if isinstance(said, SiteFreshness):
        return said.most, said.unsaid
    return (FOREVER, 0.0) if isinstance(said, str) else (said, None)
