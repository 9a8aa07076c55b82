"""What every experiment has to show: its figures, and what each may be at most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure, and what it is measured against."""

    figure: str
    most: float
    says: str  # what the figure is, for people

    def met(self, value: float) -> bool:
        """Whether a figure with four places is good enough."""
        return value <= self.most


_WORST_RATIO = Bar("default_worst_ratio", 1.10, "the default ÷ the best static order, at the worst point")

# In the order of the page. An experiment without bars shows a figure of a paper and promises nothing.
BARS: Mapping[str, tuple[Bar, ...]] = {
    "eddies-cost": (_WORST_RATIO,),
    "eddies-selectivity": (_WORST_RATIO,),
    "eddies-joins": (_WORST_RATIO,),
    "eddies-swap": (
        Bar("default_vs_best_static", 0.5, "figure 10: the default ÷ the best static order"),
        Bar("toggled_vs_best_static", 0.5, "figure 11: the same"),
    ),
    "eddies-delay": (Bar("default_vs_informed", 1.10, "the default ÷ the plan that knew of the delay"),),
    "overheads": (
        Bar("default_frequency", 1.02, "deciding as often as by default ÷ a fixed route"),
        Bar("every_batch", 1.3, "deciding for every batch ÷ a fixed route"),
    ),
    "stems-q1": (
        Bar("mean_arrival_vs_bound", 1.15, "mean arrival of an answer ÷ that of who knows every row in advance"),
    ),
    "stems-q4": (),
    "stems-competition": (
        Bar("vs_oracle", 1.1, "time ÷ that of a run with only the good mirror at each moment"),
        Bar("redundant", 0.05, "requests beyond those that were needed, those called back among them, as a share"),
    ),
    "stems-spanning-tree": (
        Bar("vs_best_tree", 1.0, "time ÷ that of the best fixed spanning tree"),
        Bar("first_partial_vs_latency", 1.0, "wait of the first partial answers for being told ÷ a page's latency"),
    ),
    "stems-priority": (
        Bar("preferred_vs_plain", 0.3, "time to 90 % of the preferred answers ÷ the same without preference"),
    ),
    "calls": (
        Bar("median", 1.0, "lookups ÷ the least that any choice of providers could have issued, in the middle"),
        Bar("worst", 1.2, "the same, of the worst query"),
    ),
    "regret": (
        Bar("median", 1.0, "the default ÷ the best fixed order with hindsight, in the middle"),
        Bar("p99", 1.15, "the same, of the worst query but one in a hundred"),
        Bar("worst", 1.3, "the same, of the worst query"),
    ),
    "partitions": (
        Bar("by_arrival", 0.6, "the default ÷ the best static plan, halves one after the other"),
        Bar("by_content", 0.6, "the same, halves shuffled together, told apart by a column"),
    ),
}  # fmt: skip
