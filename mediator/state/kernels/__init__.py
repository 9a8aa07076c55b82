"""Loops over plain arrays, compiled by Numba. They hold no lock, know no class, and call nothing but each other.

Every kernel releases the GIL and is cached on disk, so that only the first run on a machine compiles. Flags that do
not change inside a loop are arguments: LLVM lifts them out.
"""
