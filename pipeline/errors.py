"""What can go wrong between the engine and Spark. Each message says what to do.

MediatorError
└── PipelineError
    ├── NoSpark       Java, PySpark, or a package that it needs is missing, or of the wrong version
    │   └── NotStarted    all is there, and Spark did not start all the same
    ├── BadOption     what was said with `option` cannot be used
    ├── NoSuchType    a column of a type that Spark has not
    ├── Incomplete    some of the answer is missing; the message is the completeness report
    ├── HarvestError  a harvest's relation, bindings or folder cannot be used
    ├── ProfileError  there is nothing to make a profile of, or no place for it
    └── LogError      a stream's log is another query's, was changed, or cannot be written
"""

from __future__ import annotations

from mediator.errors import MediatorError


class PipelineError(MediatorError):
    """Everything that is raised on purpose here."""


class NoSpark(PipelineError):
    """Spark cannot run here, as something that it needs is missing."""


class NotStarted(NoSpark):
    """Spark's Java ended while it was started: somebody killed it, or there was no room for it."""


class BadOption(PipelineError):
    """An option of the data source that cannot be used."""


class NoSuchType(PipelineError):
    """A column, or a value in it, that Spark has no type for."""


class Incomplete(PipelineError):
    """Not all of the answer was found, and nobody said that a part of it will do."""


class HarvestError(PipelineError):
    """What is to be harvested, or where it is to go, cannot be."""


class ProfileError(PipelineError):
    """A profile that cannot be made."""


class LogError(PipelineError):
    """A log that a stream cannot go by."""
