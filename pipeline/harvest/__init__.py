"""A whole site, or a list of bindings, walked within the site's limits: into the durable SteM, and from it to Parquet.

`way` says how a relation is asked, `bindings` reads what for, `local` asks it in this process and `tasks` in Spark's;
`parts` writes the Parquet. The store is where it is all true: what it does not cover is asked for, and nothing else.
"""
