"""Statements that are run in processes of their own: what one takes, it takes from nobody else, and it can be ended.

`apart.py` is the side that asks. `nursery.py` is a process that has loaded what a worker needs, and becomes one
whenever one is wanted; `worker.py` is what it becomes. Both know DuckDB and Arrow, and of the mediator no more than
these files. `patience.py` says who waits, and for how long.
"""
