"""What all tests share: one Spark session for the whole run, and Hypothesis profiles."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from millpond.base.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_SLOW_MACHINE = [HealthCheck.too_slow]
settings.register_profile(
    "default",
    max_examples=25,
    deadline=None,
    derandomize=True,  # the same cases in every run; `make test-all` looks for new ones
    suppress_health_check=_SLOW_MACHINE,
)
settings.register_profile(
    "thorough", max_examples=500, deadline=None, suppress_health_check=_SLOW_MACHINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all tests share; what needs a JVM of its own runs in a subprocess."""
    from millpond.engine.spark.session import spark_session, stop_session

    # Small queries gain more from a quick start than from the optimising compiler.
    conf = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    master = os.environ.get("TEST_SPARK_MASTER", "local[2]")
    chosen = Settings.load(env={}, spark_master=master, spark_driver_memory="2g", spark_conf=conf)
    yield spark_session(chosen)
    stop_session()
