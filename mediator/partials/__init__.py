"""Partial answers: what can be said while a source is silent.

The eddy goes on as it would. Beside it `beside.py` joins what the query has seen of the aliases whose sources do
answer, and `ahead.py` sends what lookups that takes. What is found is an answer but for the columns of the others:
`register.py` gives it an id and knows which answers complete it, `fate.py` says whether any still can; `block.py` is
these together. `silence.py` tells by the clock which sources are silent, `showing.py` makes rows of what was found, and
`running.py` is all of that for one query.
"""
