"""The any-route search: random queries over random sources, stepped with interleaving, against DuckDB.

`drawing` makes a case from a seed, `sources` answers its asks in virtual time, `search` steps it and
compares.
"""
