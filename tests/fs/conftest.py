"""Fixtures of the filesystem's tests."""

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
