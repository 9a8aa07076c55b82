"""The engine's Spark face: its relations and queries as a data source of Spark, and a local session to use it in."""
