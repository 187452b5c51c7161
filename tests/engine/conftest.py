"""What tests of both engines share: each of them in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.plan.run import engine_named

if TYPE_CHECKING:
    from millpond.plan.executor import Executor


@pytest.fixture(params=["arrow", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Executor:
    """The Arrow engine, then the Spark engine."""
    if request.param == "arrow":
        return engine_named("arrow")
    from millpond.engine.spark import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))
