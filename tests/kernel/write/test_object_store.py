"""Tables in an object store: the same steps through a real S3 server, settings given once."""

from __future__ import annotations

import threading
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.write.tables import FEED, MARKS, PLAIN, append, id_list, ids, ours, theirs
from tests.kernel.write.worker import GROUP
from tests.kernel.write.writers import Writer

import millpond as mp
from millpond.base.errors import ConflictError, TableNotFoundError
from millpond.base.store import open_store
from millpond.kernel.table import delta_table
from millpond.kernel.write import (
    clean_log,
    compact_log,
    create_table,
    publish_commit,
    write_checkpoint,
    write_checksum,
)

if TYPE_CHECKING:
    from millpond.kernel.table import DeltaTable
    from millpond.testing.s3 import S3Server

pytestmark = pytest.mark.s3
BUCKETS = count()


@pytest.fixture
def place(s3_server: S3Server) -> str:
    return s3_server.create_bucket(f"lake-{next(BUCKETS)}") + "/tables/one"


def storage(server: S3Server) -> dict[str, str]:
    """How `deltalake` reaches the server."""
    return {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_REGION": server.region,
        "AWS_ACCESS_KEY_ID": server.access_key_id,
        "AWS_SECRET_ACCESS_KEY": server.secret_access_key,
        "AWS_ALLOW_HTTP": "true",
    }


def environment(server: S3Server) -> dict[str, str]:
    """How this package reaches the server without settings."""
    return {
        "MILLPOND_STORE_ENDPOINT": server.endpoint,
        "MILLPOND_STORE_REGION": server.region,
        "MILLPOND_STORE_ALLOW_HTTP": "true",
        "MILLPOND_STORE_ACCESS_KEY_ID": server.access_key_id,
        "MILLPOND_STORE_SECRET_ACCESS_KEY": server.secret_access_key,
    }


def both(table: DeltaTable, server: S3Server) -> list[int]:
    found = id_list(ours(table))
    assert id_list(theirs(table.location, storage_options=storage(server))) == found
    return found


@pytest.mark.parametrize("policy", [{}, {"delta.checkpointPolicy": "v2"}], ids=["classic", "v2"])
def test_the_life_of_a_table(s3_server: S3Server, place: str, policy: dict[str, str]) -> None:
    settings = s3_server.settings()
    with pytest.raises(TableNotFoundError):
        delta_table(place, settings=settings)
    table = create_table(
        place,
        PLAIN,
        partition_by=["site"],
        configuration={**MARKS, **FEED, **policy},
        settings=settings,
    )
    table = append(append(table, ids(5, site="a b")), ids(5, 10, site="ü/%"))
    with table.transaction() as tx:
        assert tx.delete((mp.col("id") == 3) | (mp.col("id") > 12)) == 3
        tx.app_transaction("job", 1)
    table = table.update()
    expected = [0, 1, 2, 4, 10, 11, 12]
    assert both(table, s3_server) == expected
    assert table.history(1, engine="arrow")[0]["operation"] == "DELETE"
    changes = table.changes(3).to_arrow().to_pylist()
    assert sorted(row["id"] for row in changes) == [3, 13, 14]
    compact_log(table, 1, 3)
    write_checkpoint(table, sidecar_files=1)
    write_checksum(table)
    fresh = delta_table(place, settings=settings)
    assert fresh.snapshot.segment.commits == ()
    assert both(fresh, s3_server) == expected
    assert fresh.app_transactions["job"].version == 1
    assert len(fresh.files(mp.col("site") == "a b")) == 1
    assert fresh.scan(["id"], mp.col("id") == 11).to_arrow().num_rows == 1
    assert "Scan" in fresh.scan().explain()
    past = delta_table(place, version=1, settings=settings)
    assert id_list(ours(past)) == [0, 1, 2, 3, 4]
    with fresh.transaction() as tx:
        tx.overwrite(ids(1, 99))
    assert both(fresh.update(), s3_server) == [99]
    assert clean_log(fresh.update()).paths == ()


def test_failures_leave_nothing(s3_server: S3Server, place: str) -> None:
    settings = s3_server.settings()
    table = append(create_table(place, PLAIN, settings=settings), ids(3))
    store = open_store(place, settings=settings)
    before = {meta.path for meta in store.list()}
    tx = table.transaction()
    tx.append(ids(3, 10))
    tx.rollback()
    assert {meta.path for meta in store.list()} == before
    one, other = table.transaction(), table.transaction()
    one.delete(mp.col("id") == 1)
    other.delete(mp.col("id") == 2)
    one.commit()
    after = {meta.path for meta in store.list()}
    other_put = set(other.pending.put)
    with pytest.raises(ConflictError):
        other.commit()
    assert {meta.path for meta in store.list()} == after - other_put
    staged = table.update().transaction()
    staged.append(ids(1, 20))
    publish_commit(store, staged.stage())
    assert both(table.update(), s3_server) == [0, 2, 20]


def test_threads_race(s3_server: S3Server, place: str) -> None:
    table = create_table(place, PLAIN, settings=s3_server.settings())
    errors: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for number in range(2):
                with table.update().transaction() as tx:
                    tx.append(ids(2, first + 2 * number))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=write, args=(100 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    table = table.update()
    assert table.version == 12
    assert both(table, s3_server) == sorted(100 * n + i for n in range(6) for i in range(4))
    assert both(delta_table(place, settings=s3_server.settings()), s3_server)


def test_processes_race(s3_server: S3Server, place: str) -> None:
    """They get along without settings: the environment tells them."""
    table = create_table(place, PLAIN, partition_by=["site"], settings=s3_server.settings())
    known: dict[str, Any] = environment(s3_server)
    writers = [Writer("appending", place, 1000 * n, 3, **known) for n in range(3)]
    for writer in writers:
        writer.join()
    expected = sorted(id_ for writer in writers for id_ in writer.came)
    assert len(expected) == 3 * 3 * GROUP
    table = table.update()
    assert table.version == 9
    assert both(table, s3_server) == expected
