"""What DuckDB does with finished rows, done by Spark: SQL in DuckDB's dialect becomes Spark's, or a reason why not.

    stage.sql --sqlglot--> tree --selects, conditions, numbers, texts, gathering--> Spark's SQL
                                  anything that is on no list --> NotAgreed, and DuckDB does it

sqlglot reads the statement and no more: how a thing is written in Spark is said here, kind by kind, for those of which
the two engines are known to agree. Which type an expression has, and what a constant is worth, DuckDB is asked itself.
`agreed.py` is where to begin, `settings.py` has what Spark must be told for it to hold. Nothing else here needs Spark.
"""
