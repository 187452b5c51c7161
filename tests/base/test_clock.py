"""Clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from millpond.base.clock import Clock, ManualClock, SystemClock


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
def test_clocks_tell_utc_and_never_go_back(clock: Clock) -> None:
    assert isinstance(clock, Clock)
    assert clock.now().tzinfo is UTC
    first = clock.monotonic()
    assert clock.monotonic() >= first


def test_a_manual_clock_moves_when_told() -> None:
    clock = ManualClock(datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    assert clock.now() == datetime(2024, 1, 1, tzinfo=UTC)
    clock.advance(timedelta(microseconds=1))
    assert clock.now() == datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
    assert clock.monotonic() == 1e-6
    clock.set(datetime(2020, 1, 1, tzinfo=UTC))
    assert clock.now().year == 2020
    assert clock.monotonic() == 1e-6


def test_time_needs_a_zone_and_a_direction() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        ManualClock(datetime(2024, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="can't advance"):
        ManualClock().advance(timedelta(seconds=-1))
