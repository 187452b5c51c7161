"""The Spark engine: plans become DataFrames. Nothing here imports pyspark before it is used."""

from __future__ import annotations

from millpond.engine.spark.engine import SparkEngine

__all__ = ["SparkEngine"]
