"""Once warm, a query compiles and loads nothing more."""

from __future__ import annotations

import importlib
import pkgutil

import mediator.state.kernels as kernels
from mediator.state.warming import warm
from tests.any_route.search import Effort, search

_CALLED_BY_KERNELS_ONLY = {"_looked_up", "_low_bytes", "_packed", "long_code", "same_bytes"}


def _compiled() -> dict[str, int]:
    """How many specializations each kernel that Python calls has by now."""
    found = {}
    for module in pkgutil.iter_modules(kernels.__path__):
        loaded = importlib.import_module(f"{kernels.__name__}.{module.name}")
        for name, kernel in vars(loaded).items():
            inlined = getattr(kernel, "targetoptions", {}).get("inline") == "always"
            if hasattr(kernel, "signatures") and not inlined and name not in _CALLED_BY_KERNELS_ONLY:
                found[f"{module.name}.{name}"] = len(kernel.signatures)
    return found


def test_queries_need_no_kernel_that_is_not_warm() -> None:
    warm()
    before = _compiled()
    assert {kernel for kernel, number in before.items() if not number} == set()
    for seed in range(40):
        search(seed, Effort())
    assert _compiled() == before
