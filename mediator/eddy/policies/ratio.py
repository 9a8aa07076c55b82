"""How much of one thing comes of another, remembered over a long, a short and a very short time.

Which memory is believed is not a matter of settings: each foretells what comes next, and the one that has been least
wrong of late is asked. Where nothing changes that is the long one, which noise moves least; where something has just
changed it is the shortest.
"""

from __future__ import annotations

_KEEP = (1.0, 0.7, 0.15)  # what earlier visits weigh when the next has come
_MEMORIES = (0, 1, 2)
_LATE = 0.7  # what an earlier error weighs
_SURPRISE = 0.4  # share by which what comes may differ from what was foretold
_ALIKE = 1e-3  # errors that are no more apart are alike
_BELIEVED = 16.0  # results: the weight of what was said beforehand
_IN_VAIN = 1e5  # pairs, where it is said that none are equal
_LEAST = 0.5  # what nothing is taken for: less than one would have been seen as none


class Ratio:
    """`out` for each `of`: rows found for each pair, say, or seconds for each that were expected."""

    __slots__ = ("_errors", "_of", "_out", "_pending_of", "_pending_out", "known", "value")

    def __init__(self) -> None:
        self._of: list[float] | None = None  # by memory, from the first visit on
        self._out: list[float] = []
        self._errors: list[float] = []
        self._pending_of = self._pending_out = 0.0
        self.known = False
        self.value = 0.0

    def believe(self, value: float) -> None:
        """Before anything was seen: as much as a few results are believed that were."""
        of = _BELIEVED / value if value > 0.0 else _IN_VAIN
        self._of, self._out, self._errors = [of] * 3, [of * value] * 3, [0.0] * 3
        self.known, self.value = True, max(of * value, _LEAST) / of

    def add(self, of: float, out: float) -> bool:
        """So much was seen; it counts when next settled. Whether that is far from what was foretold."""
        self._pending_of += of
        self._pending_out += out
        foretold = of * self.value
        return self.known and abs(out - foretold) > _SURPRISE * (out + foretold) + 30.0

    def settle(self) -> None:
        """Take in what was seen since last time, all of it as one visit."""
        of, out = self._pending_of, self._pending_out
        if of <= 0.0:
            return
        self._pending_of = self._pending_out = 0.0
        if self._of is None:
            self._of, self._out, self._errors = [of] * 3, [out] * 3, [0.0] * 3
            self.known, self.value = True, max(out, _LEAST) / of
            return
        ofs, outs, errors = self._of, self._out, self._errors
        for n in _MEMORIES:
            known_of, known_out = ofs[n], outs[n]
            foretold = of * (known_out if known_out > _LEAST else _LEAST) / known_of
            error = (out - foretold) / (out + foretold + 1.0)
            errors[n] = _LATE * errors[n] + error * error
            ofs[n] = _KEEP[n] * known_of + of
            outs[n] = _KEEP[n] * known_out + out
        best = (
            2  # of those that were as wrong as each other the shortest: what all were wrong about has changed
        )
        for n in (1, 0):
            if errors[n] < errors[best] - _ALIKE:
                best = n
        self.value = max(outs[best], _LEAST) / ofs[best]
