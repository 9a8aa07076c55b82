"""A block cut into cells: each has an eddy of its own over the rows that can meet there, and each answer is found in
one.

`hypercube.py` says which rows go to which cells. `cell.py` is one cell: it is fed envelopes, answers, and asks for what
its rows need; of the envelopes alone it can be made anew. None of them knows Spark.
"""
