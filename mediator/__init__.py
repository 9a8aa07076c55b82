"""The engine: no site, no web framework, no Spark."""
