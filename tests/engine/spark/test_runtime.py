"""What `pond engine status` says about Spark, without starting it."""

from __future__ import annotations

import pytest

from millpond.base.errors import EngineUnavailableError
from millpond.base.settings import Settings
from millpond.engine.spark.runtime import describe_runtime


def configured(master: str) -> Settings:
    return Settings.load(None, {}, spark_master=master)


def test_a_local_spark_names_its_java_and_master() -> None:
    text = describe_runtime(configured("local[1]"))
    assert "pyspark 4." in text
    assert "Java" in text
    assert "local[1]" in text


def test_a_token_is_not_shown() -> None:
    text = describe_runtime(configured("sc://pond.example:15002/;token=hush"))
    assert "sc://pond.example:15002" in text
    assert "hush" not in text


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nonexistent")
    with pytest.raises(EngineUnavailableError, match="JAVA_HOME"):
        describe_runtime(configured("local[1]"))


def test_capabilities_are_what_is_compiled() -> None:
    from millpond.engine.spark import SparkEngine
    from millpond.engine.spark.compile import _COMPILERS
    from millpond.engine.spark.expressions.calls import FUNCTIONS

    known = SparkEngine().capabilities
    assert known.nodes == {node.__name__ for node in _COMPILERS}
    assert known.functions == FUNCTIONS
