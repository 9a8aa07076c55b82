"""Who waits for what is counted anew when the user prefers something else than before.

What waits was not kept, only how much of it there is: the rows themselves are in the SteMs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mediator.eddy.asking import Asking
from mediator.eddy.constraints import Graph
from mediator.eddy.debts import inputs
from mediator.eddy.feeding import fed
from mediator.eddy.preferring import Weights
from mediator.eddy.run import Run
from mediator.flow.batch import Batch
from mediator.state.coverage import Known


def recount(run: Run, asking: Asking, graph: Graph, weigh: Callable[[Batch], Weights]) -> None:
    """Every row that could feed a lookup that is being asked for counts, as much as the user cares for it now."""
    asking.urging.anew()
    for alias, provider in enumerate(asking.chosen):
        relation, coverage = run.view(alias).stem.relation.name, run.view(alias).coverage
        if not provider.depends or not asking.urging.waits(relation, provider.bind_set):
            continue
        for batch in inputs(run, graph, provider.depends):
            numbers, weights = coverage.numbers(provider.bind_set, fed(run, batch, provider)), weigh(batch)
            rows = np.flatnonzero(coverage.states_of(provider.bind_set, numbers) == Known.ASKED)
            some = weights if isinstance(weights, float) else weights[rows]
            asking.urging.wait(relation, provider.bind_set, numbers[rows], some)
