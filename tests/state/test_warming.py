"""Once warm, a query compiles and loads nothing more."""

from __future__ import annotations

import importlib
import pkgutil

import mediator.state.kernels as kernels
from mediator.state.warming import warm
from tests.any_route.search import Effort, search


def _compiled() -> dict[str, int]:
    """How many specializations each kernel has by now."""
    found = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        loaded = importlib.import_module(f"{kernels.__name__}.{module.name}")
        for name, kernel in vars(loaded).items():
            if hasattr(kernel, "signatures"):
                found[f"{module.name}.{name}"] = len(kernel.signatures)
    return found


def test_queries_need_no_kernel_that_is_not_warm() -> None:
    warm()
    before = _compiled()
    never_called_from_python = {"mixed", "_packed", "_low_bytes"}
    assert {
        k for k, n in before.items() if not n and k.split(".")[1] not in never_called_from_python
    } == set()
    for seed in range(40):
        search(seed, Effort())
    assert _compiled() == before
