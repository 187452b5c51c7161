"""Fixtures of the kernel's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millpond.testing.s3 import S3Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(autouse=True)
def _shared_session(request: pytest.FixtureRequest) -> None:
    """Tests on Spark use the session that all share: whoever starts one decides its settings."""
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")
