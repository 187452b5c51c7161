"""The engines on 2 million nested events: ours against DuckDB and against hand-written Spark."""
