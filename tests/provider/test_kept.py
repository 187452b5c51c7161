"""Results that are kept: found again, kept elsewhere by who may only read, removed when unused."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.provider.ponds import append, at, make, rows_of
from tests.rights import without_rights

import millpond as mp
from millpond.base.errors import StoreAccessError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(common: Path) -> Pond:
    """A series, and its sums."""
    made = mp.create(common / "pond")
    append(made, "/s", [{"timestamp": at(n / 400), "x": n} for n in range(800)])
    make(made, "/r", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["1h"],
         aggregations=[{"type": "sum"}])  # fmt: skip
    return made


SUMS = [{"timestamp": at(0), "x.sum": 79800}, {"timestamp": at(1), "x.sum": 239800}]


@contextmanager
def guest(pond: Pond) -> Iterator[None]:
    """Who may read what is there, and write nothing of it."""
    place = Path(pond.location)
    for found in (place, *place.rglob("*")):
        found.chmod(0o555 if found.is_dir() else 0o444)
    try:
        with without_rights():
            yield
    finally:
        for found in (place, *place.rglob("*")):
            found.chmod(0o755)


def results(place: Path) -> list[Path]:
    return sorted(place.rglob("cache/**/*.parquet"))


def test_who_may_only_read_keeps_results_in_an_own_place(
    pond: Pond, common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = common / "own"
    own.mkdir()
    own.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.setattr("tempfile.tempdir", None)
    with guest(pond):
        assert rows_of(mp.open(pond.location), "/r/s/res=1h.series") == SUMS
        kept = results(own)
        assert kept
        with mp.collect_stats() as seen:
            assert rows_of(mp.open(pond.location), "/r/s/res=1h.series") == SUMS
        assert seen.rows_decoded < 100
    assert results(own) == kept
    assert not results(Path(pond.location))
    monkeypatch.setenv("XDG_CACHE_HOME", str(common / "owner"))
    assert rows_of(mp.open(pond.location), "/r/s/res=1h.series") == SUMS
    assert results(Path(pond.location))


def test_without_a_home_it_is_an_error(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", homeless)
    with (
        guest(pond),
        pytest.raises(StoreAccessError, match="cache"),
    ):
        rows_of(mp.open(pond.location), "/r/s/res=1h.series")


def test_what_is_not_used_is_removed_by_upkeep(pond: Pond) -> None:
    assert rows_of(pond, "/r/s/res=1h.series") == SUMS
    place = Path(pond.location)
    kept = results(place)
    make(pond, "/other", "temporal-reduce", in_pattern="/s", out_pattern="s", resolutions=["2h"],
         aggregations=[{"type": "max"}])  # fmt: skip
    assert rows_of(pond, "/other/s/res=2h.series") == [{"timestamp": at(0), "x.max": 799}]
    others = [file for file in results(place) if file not in kept]
    past = time.time() - 20 * 86400
    for file in place.rglob("cache/**/*"):
        if file.is_file():
            os.utime(file, (past, past))
    assert rows_of(mp.open(place), "/r/s/res=1h.series") == SUMS  # which says that it is used
    used = [file for file in kept if file.stat().st_mtime > past]
    assert used

    told = pond.maintain(retention=timedelta(days=7))
    assert {item.kind for item in told.garbage} == {"cache"}
    assert results(place) == sorted([*kept, *others])
    pond.maintain(retention=timedelta(days=7), dry_run=False)
    assert results(place) == used
    assert rows_of(mp.open(place), "/other/s/res=2h.series") == [{"timestamp": at(0), "x.max": 799}]


def test_nobody_else_can_read_what_was_computed(
    pond: Pond, common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = common / "private.csv"
    private.write_text("timestamp,level\n2026-01-01T00:00:00Z,42\n")
    private.chmod(0o600)
    make(pond, "/seen", "timeseries-join", inputs=[{"pattern": f"host+csv://{private}"}])
    assert [row["level"] for row in rows_of(pond, "/seen")] == [42]
    rows_of(pond, "/r/s/res=1h.series")

    kinds = [place for place in Path(pond.location, "cache").iterdir() if place.name != "index"]
    files = [file for kind in kinds for file in kind.rglob("*") if file.is_file()]
    assert {file.parent.name for file in files} >= {"images", "partials"}
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(common / "own"))
    (common / "own").mkdir()
    (common / "own").chmod(0o777)
    with without_rights():  # which then computes for itself
        assert rows_of(mp.open(pond.location), "/r/s/res=1h.series") == SUMS
