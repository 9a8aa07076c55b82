"""Cassettes: what sites answered, in a file that people can read, without secrets and without what changes daily.

`Recording` writes one while it passes requests on, `Replaying` answers from one and from nothing else.
"""

from wrappers.cassettes.cassette import Asked, Cassette, CassetteError, Exchange
from wrappers.cassettes.recording import Recording
from wrappers.cassettes.replaying import NotRecorded, Replaying, offline

__all__ = [
    "Asked",
    "Cassette",
    "CassetteError",
    "Exchange",
    "NotRecorded",
    "Recording",
    "Replaying",
    "offline",
]
