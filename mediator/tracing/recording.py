"""A policy that notes whatever it is asked and told, and what it says; it decides as the one behind it does.

Any verb of the protocol goes this way, those that are added to it too: what `terms` can tell of arguments and result
is noted. Of `why`, which is for people, only that it was asked: nothing is decided by what it says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mediator.eddy.policy import Policy
from mediator.tracing.terms import Json, Untellable, told

UNHEARD = ("why",)  # verbs whose result is left out

# A verb, its arguments, its result; instead of the last two what could not be told.
Note = Callable[[str, Json, Json, str], None]


def recorded(policy: Policy, note: Note) -> Policy:
    """One that decides the same, and is noted."""
    return cast(Policy, _Recorded(policy, note))


class _Recorded:
    """Stands before one policy."""

    def __init__(self, policy: Policy, note: Note) -> None:
        self._policy = policy
        self._note = note

    def __getattr__(self, verb: str) -> Any:
        """Found once for each verb."""
        method = getattr(self._policy, verb)
        if not callable(method):
            return method
        found = self._noted(verb, method)
        setattr(self, verb, found)
        return found

    def _noted(self, verb: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            try:
                said, lost = told(arguments), ""
            except Untellable as error:
                said, lost = None, str(error)
            result = method(*arguments)
            try:
                self._note(verb, said, None if lost or verb in UNHEARD else told(result), lost)
            except Untellable as error:
                self._note(verb, None, None, str(error))
            return result

        return noted
