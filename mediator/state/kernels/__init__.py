"""Loops over plain arrays, compiled by Numba. They hold no lock, know no class, and call nothing but each other.

Every kernel releases the GIL and is cached on disk, so that only the first run on a machine compiles. Flags that do
not change inside a loop are arguments: LLVM lifts them out.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

KERNELS = Path(__file__).parent


def forget_stale(folder: Path, *called: Path) -> None:
    """Remove what was compiled of other kernels than those of this folder and of those whose kernels they call. Numba
    notices when the file of a kernel has changed, but not when that of one which it calls has: two kernels would then
    differ on what a string's hash is."""
    compiled = folder / "__pycache__"
    note = compiled / "kernels.digest"
    texts = [file.read_bytes() for place in (folder, *called) for file in sorted(place.glob("*.py"))]
    digest = blake2b(b"\0".join(texts), digest_size=16).hexdigest()
    with suppress(OSError):  # where nobody may write, Numba keeps nothing either
        if note.exists() and note.read_text(encoding="ascii") == digest:
            return
        for stale in compiled.glob("*.nb[ci]"):
            stale.unlink(missing_ok=True)
        compiled.mkdir(exist_ok=True)
        note.write_text(digest, encoding="ascii")


forget_stale(KERNELS)
