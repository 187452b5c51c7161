"""What all tests share: one Spark session, one S3 server, and Hypothesis profiles."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from millpond.base import unsaid
from millpond.base.settings import Settings
from millpond.testing.s3 import S3Server

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

# Small queries gain more from a JVM that starts quickly than from one that computes quickly. It is
# in the environment for those that tests start in processes of their own.
os.environ["SPARK_SUBMIT_OPTS"] = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


@pytest.fixture(autouse=True)
def nothing_concealed() -> Iterator[None]:
    """What one test has concealed may be said by the next."""
    yield
    unsaid._taken.clear()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that all tests share; what needs a JVM of its own runs in a subprocess."""
    from millpond.engine.spark.session import spark_session, stop_session

    master = os.environ.get("TEST_SPARK_MASTER", "local[2]")
    yield spark_session(Settings.load(env={}, spark_master=master, spark_driver_memory="2g"))
    stop_session()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3 server that forgets everything at the end; who uses it makes buckets of their own."""
    with S3Server() as server:
        yield server


@pytest.fixture
def common() -> Iterator[Path]:
    """A directory that every user of this machine can reach."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
