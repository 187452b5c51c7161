"""Fixtures of the kernel's tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _shared_session(request: pytest.FixtureRequest) -> None:
    """Tests on Spark use the session that all share: whoever starts one decides its settings."""
    if request.node.get_closest_marker("spark") is not None:
        request.getfixturevalue("spark")
