"""Once warm, a query compiles and loads nothing more."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

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


def test_what_was_compiled_is_forgotten_with_any_kernel_that_changes(tmp_path: Path) -> None:
    """Also by those that only call it, whose own files are as they were."""
    (tmp_path / "called.py").write_text("1")
    (tmp_path / "calling.py").write_text("2")
    compiled = tmp_path / "__pycache__" / "calling.kernel-7.py311.nbi"

    def kept() -> bool:
        compiled.parent.mkdir(exist_ok=True)
        compiled.write_text("machine code")
        kernels.forget_stale(tmp_path)
        return compiled.exists()

    assert not kept(), "nobody knows of what it was compiled"
    assert kept()
    (tmp_path / "called.py").write_text("3")
    assert not kept()
    assert kept()


def test_so_is_what_calls_the_kernels_of_another_folder(tmp_path: Path) -> None:
    calling, called = tmp_path / "calling", tmp_path / "called"
    for folder in (calling, called):
        folder.mkdir()
        (folder / "kernel.py").write_text("1")

    def kept() -> bool:
        compiled = calling / "__pycache__" / "kernel-7.py311.nbi"
        compiled.parent.mkdir(exist_ok=True)
        compiled.write_text("machine code")
        kernels.forget_stale(calling, called)
        return compiled.exists()

    assert [kept(), kept()] == [False, True]
    (called / "kernel.py").write_text("2")
    assert [kept(), kept()] == [False, True]
    assert not (called / "__pycache__").exists(), "it is for that folder to look after"


def test_where_nothing_can_be_written_nothing_is_forgotten(tmp_path: Path) -> None:
    kernels.forget_stale(tmp_path / "inside of an archive")
    (tmp_path / "__pycache__").write_text("no folder")
    kernels.forget_stale(tmp_path)
