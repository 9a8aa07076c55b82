"""Mirrors of one access method: how each has done, and which is asked."""
