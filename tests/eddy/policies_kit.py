"""A stage for policies: two or more modules of a scripted cost and selectivity, and batches that pass through all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mediator.eddy.destinations import Destination, Select
from mediator.eddy.policy import Policy, Situation, Visit
from mediator.flow.batch import Signature

S1, S2 = Select(0), Select(1)
HERE = Signature(1)
NOWHERE = Situation(100, (0, 0))


@dataclass(frozen=True)
class Module:
    """What a row costs there, and how many come back for each."""

    seconds: float
    fan_out: float


Modules = Mapping[Destination, Module]


def selections(first: Module, second: Module) -> Modules:
    return {S1: first, S2: second}


def visit(
    destination: Destination, module: Module, rows: int = 100, signature: Signature = HERE, visible: int = 0
) -> Visit:
    """A batch's stay at a module."""
    out = round(rows * module.fan_out)
    return Visit(signature, destination, rows, out, rows * module.seconds, visible)


def passed(signature: Signature, destination: Destination) -> Signature:
    assert isinstance(destination, Select)
    return signature._replace(passed=signature.passed | 1 << destination.predicate)


def run(policy: Policy, modules: Modules, batches: int, rows: int = 100) -> list[Destination]:
    """So many batches go through all modules as the policy says; to which each of them went first."""
    firsts = []
    for _ in range(batches):
        signature, left, size = HERE, list(modules), rows
        while left and size:
            situation = Situation(size, (0, 0))
            where = policy.choose(signature, left, situation) if len(left) > 1 else left[0]
            if len(left) == len(modules):
                firsts.append(where)
            stay = visit(where, modules[where], size, signature)
            policy.learn(stay)
            left.remove(where)
            signature, size = passed(signature, where), stay.rows_out
    return firsts


def share(firsts: Sequence[Destination], of: Destination) -> float:
    return firsts.count(of) / len(firsts)


Made = Callable[[], Policy]
