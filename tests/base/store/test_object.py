"""The object store against a real S3 HTTP server."""

from __future__ import annotations

import traceback
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import obstore
import obstore.store
import pytest
from hypothesis import settings as hypothesis_settings

from millpond.base.errors import ConfigError, StoreError
from millpond.base.settings import Settings
from millpond.base.store import TEMP_PREFIX, Store, open_store
from millpond.base.store.object import ObjectStore
from millpond.testing.store import StoreConformance, StoreStateMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millpond.testing.s3 import S3Server

pytestmark = pytest.mark.s3

BUCKETS = count()
SECRET = "do-not-show-me"


def fresh(server: S3Server, *, prefix: str = "/pond/one") -> Store:
    url = server.create_bucket(f"bucket-{next(BUCKETS)}")
    return open_store(url + prefix, settings=server.settings())


class TestObjectStore(StoreConformance):
    @pytest.fixture
    def store(self, s3_server: S3Server) -> Store:
        return fresh(s3_server)


@pytest.fixture(scope="module")
def machine_server(s3_server: S3Server) -> Iterator[S3Server]:
    ObjectMachine.server = s3_server
    yield s3_server
    ObjectMachine.server = None


class ObjectMachine(StoreStateMachine):
    server: S3Server | None = None

    def make_store(self) -> Store:
        assert self.server is not None
        return fresh(self.server, prefix="")


TestObjectMachine = pytest.mark.usefixtures("machine_server")(ObjectMachine.TestCase)
TestObjectMachine.settings = hypothesis_settings(
    max_examples=15, stateful_step_count=20, deadline=None
)


def test_prefixes_keep_ponds_apart(s3_server: S3Server) -> None:
    bucket = s3_server.create_bucket("two-ponds")
    settings = s3_server.settings()
    one, two = (open_store(f"{bucket}/{name}", settings=settings) for name in ("p", "p-2"))
    one.put("a", b"1")
    two.put("a", b"2")
    assert (one.get("a"), two.get("a")) == (b"1", b"2")
    whole = open_store(bucket, settings=settings)
    assert [meta.path for meta in whole.list()] == ["p-2/a", "p/a"]
    assert (one.url, repr(one)) == ("s3://two-ponds/p", "ObjectStore('s3://two-ponds/p')")


def test_more_objects_than_a_page(s3_server: S3Server) -> None:
    store = fresh(s3_server)
    names = [f"log/{number:020}.json" for number in range(1010)]
    for name in names:
        store.put(name, b"{}")
    assert [meta.path for meta in store.list("log/")] == names
    assert [m.path for m in store.list("log/", start_after=names[1005])] == names[1006:]
    assert [m.path for m in store.list("log/0000000000000000100")] == names[1000:]


def test_leftovers_are_not_listed_and_are_swept(s3_server: S3Server) -> None:
    store = fresh(s3_server)
    assert isinstance(store, ObjectStore)
    store.put("d/a", b"1")
    obstore.put(store._raw, f"d/{TEMP_PREFIX}dead", b"2")
    assert [meta.path for meta in store.list()] == ["d/a"]
    assert store.sweep(before=datetime(2000, 1, 1, tzinfo=UTC)) == 0
    assert store.sweep(before=datetime.now(UTC) + timedelta(days=1)) == 1
    assert [row["path"] for page in obstore.list(store._raw) for row in page] == ["d/a"]


def test_what_makes_folders_visible_is_no_object(s3_server: S3Server) -> None:
    """Consoles put empty objects whose names end with `/`."""
    store = fresh(s3_server)
    assert isinstance(store, ObjectStore)
    for name in ("d", "d-x", "e/a", "empty"):
        store.put(name, b"")
    bucket = store.url.removeprefix("s3://").partition("/")[0]
    for name in ("", "d/", "e/", "f/", "f/g/"):
        url = f"{s3_server.endpoint}/{bucket}/pond/one/{name}"
        with urlopen(Request(url, method="PUT", data=b"")) as answer:
            assert answer.status == 200
    assert [meta.path for meta in store.list()] == ["d", "d-x", "e/a", "empty"]
    assert [meta.path for meta in store.list("f/")] == []
    assert [meta.path for meta in store.list(start_after="d")] == ["d-x", "e/a", "empty"]


def test_missing_bucket_is_named(s3_server: S3Server) -> None:
    settings = s3_server.settings()
    store = open_store("s3://no-such-bucket/p", settings=settings)
    for operation in (
        lambda: store.put("a", b""),
        lambda: store.get("a"),
        lambda: list(store.list()),
    ):
        with pytest.raises(StoreError, match="bucket of s3://no-such-bucket/p does not exist"):
            operation()


def test_secrets_are_in_no_repr_and_no_traceback(s3_server: S3Server) -> None:
    settings = s3_server.settings().with_overrides(
        store_secret_access_key=SECRET, store_session_token=SECRET
    )
    store = open_store("s3://no-such-bucket/p", settings=settings)
    with pytest.raises(StoreError) as caught:
        list(store.list())
    shown = [repr(store), repr(vars(store)), repr(settings), str(settings.describe())]
    shown += traceback.format_exception(caught.value)
    assert SECRET not in "".join(shown)
    assert "Debug source" not in "".join(shown)


def test_nobody_listens() -> None:
    raw = obstore.store.S3Store(
        "b",
        endpoint="http://127.0.0.1:1",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
        skip_signature=True,
    )
    with pytest.raises(StoreError, match=r"(?s)error sending request.*store\.endpoint"):
        ObjectStore(raw, url="s3://b").get("a")


def test_plain_http_must_be_meant() -> None:
    settings = Settings.load(env={}, store_endpoint="http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="allow_http"):
        open_store("s3://bucket", settings=settings)
