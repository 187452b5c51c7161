"""A pond in an object store, as people hold it: handles with settings, `pond://` by variables."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa
import pytest

import millpond as mp

if TYPE_CHECKING:
    from millpond.testing.s3 import S3Server

pytestmark = pytest.mark.s3
BUCKETS = count()


@pytest.fixture
def location(s3_server: S3Server) -> str:
    return s3_server.create_bucket(f"surfaces-{next(BUCKETS)}") + "/pond"


def test_handles_read_with_the_settings_of_their_pond(s3_server: S3Server, location: str) -> None:
    pond = mp.create(location, settings=s3_server.settings())
    with pond.write() as tx:
        tx.append_series("/s", [{"time": datetime(2024, 5, 30, tzinfo=UTC), "v": 1.5}])
        tx.write_bytes("/large", b"0123456789" * 10_000)
        tx.commit()
    handle = mp.open(location, settings=s3_server.settings())["/s"]
    assert handle.to_arrow()["v"].to_pylist() == [1.5]
    assert handle.to_pandas()["v"].tolist() == [1.5]
    assert pa.table(handle).num_rows == 1
    assert "1.5" in handle._repr_html_()
    with pond["/large"].open() as file:
        file.seek(99_995)
        assert file.read() == b"56789"


def test_a_filesystem_over_it(
    s3_server: S3Server, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLPOND_STORE_ENDPOINT", s3_server.endpoint)
    monkeypatch.setenv("MILLPOND_STORE_REGION", s3_server.region)
    monkeypatch.setenv("MILLPOND_STORE_ALLOW_HTTP", "true")
    monkeypatch.setenv("MILLPOND_STORE_ACCESS_KEY_ID", s3_server.access_key_id)
    monkeypatch.setenv("MILLPOND_STORE_SECRET_ACCESS_KEY", s3_server.secret_access_key)
    mp.create(location, settings=s3_server.settings())
    fs: Any = fsspec.filesystem("pond", location=location)
    with fs.transaction:
        fs.mkdir("/a")
        fs.pipe("/a/small", b"small")
        fs.pipe("/a/large", b"0123456789" * 10_000)
    assert fs.cat_ranges(["/a/large", "/a/small"], [50_001, 0], [50_004, 2]) == [b"123", b"sm"]
    assert fs.find("/") == ["/a/large", "/a/small"]
    with fs.open("/a/small", "ab") as file:
        file.write(b"er")
    assert fs.cat("/a/small") == b"smaller"
    assert fs.cat("/a/small@v1") == b"small"
