"""What a visit of so many rows usually takes: `seconds = fixed + per_row * rows`, fitted to the visits so far.

A few rows cost more each than many do. So what a destination costs is told by how it compares with what is usual for
so many rows, and the little that a short visit shows is not much believed.
"""

from __future__ import annotations

_KEEP = 0.99  # what a visit's weight shrinks to with each later one
_DOUBT = (
    5e-4  # seconds of work after which the figures of a destination itself weigh as much as the usual ones
)
_LEAST = 1e-9


class Expectation:
    def __init__(self) -> None:
        self._n = self._rows = self._seconds = self._square = self._product = 0.0
        self._known: tuple[float, float] | None = 0.0, 0.0  # the line, until more is known

    def add(self, rows: int, seconds: float) -> None:
        self._n = _KEEP * self._n + 1.0
        self._rows = _KEEP * self._rows + rows
        self._seconds = _KEEP * self._seconds + seconds
        self._square = _KEEP * self._square + rows * rows
        self._product = _KEEP * self._product + rows * seconds
        self._known = None

    def expected(self, rows: float) -> float:
        """Seconds that a visit of so many rows usually takes."""
        fixed, per_row = self._known or self._line()
        return fixed + per_row * rows

    @property
    def fixed(self) -> float:
        """Seconds that a visit usually takes, however few the rows."""
        return (self._known or self._line())[0]

    @property
    def slope(self) -> float:
        """Seconds that each row more usually takes."""
        return (self._known or self._line())[1]

    def per_row(self, seconds: float, expected: float) -> float:
        """What a row costs where visits took so many seconds, and so many had been expected."""
        _, per_row = self._known or self._line()
        return max(per_row, _LEAST) * (seconds + _DOUBT) / (expected + _DOUBT)

    def _line(self) -> tuple[float, float]:
        self._known = self._fitted()
        return self._known

    def _fitted(self) -> tuple[float, float]:
        if not self._rows:
            return 0.0, 0.0
        spread = self._n * self._square - self._rows * self._rows
        through_zero = 0.0, self._seconds / self._rows
        if spread <= 1e-9 * self._n * self._square:
            return through_zero
        slope = (self._n * self._product - self._rows * self._seconds) / spread
        fixed = (self._seconds - slope * self._rows) / self._n
        return (fixed, slope) if fixed > 0.0 and slope > 0.0 else through_zero
