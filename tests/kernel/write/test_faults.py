"""What goes wrong while a transaction runs: nothing is lost, there twice, or left over."""

from __future__ import annotations

import logging
import resource
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.write.faults import FaultyStore, broken_line, is_commit, lost_answer, only
from tests.kernel.write.tables import (
    FEED,
    MARKS,
    append,
    data_files,
    id_list,
    ids,
    known_files,
    new_table,
    ours,
    theirs,
)

import millpond as mp
from millpond.base.errors import CommitError, StoreAccessError, StoreError
from millpond.base.store import open_store
from millpond.kernel.write import write_checkpoint
from millpond.kernel.write.commit import Waiter, check_not_cleaned
from millpond.plan.types import STRING, Struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.kernel.table import DeltaTable
    from millpond.kernel.write import Transaction


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    return append(new_table(tmp_path), ids(3))


def begun(table: DeltaTable, **faults: Any) -> tuple[Transaction, FaultyStore]:
    tx = table.transaction()
    store = FaultyStore(tx.store, **faults)
    tx.store = store
    return tx, store


def whole(table: DeltaTable, path: Path, expected: list[int]) -> None:
    after = table.update()
    assert id_list(ours(after)) == id_list(theirs(path)) == expected
    assert data_files(path) == known_files(after)


@pytest.mark.parametrize("fault", [lost_answer, broken_line])
def test_a_lost_answer_is_no_lost_commit(
    table: DeltaTable, tmp_path: Path, fault: Callable[[str], None]
) -> None:
    tx, _ = begun(table, after=only(is_commit, fault))
    tx.append(ids(2, 10))
    assert tx.commit().version == 2
    whole(table, tmp_path, [0, 1, 2, 10, 11])


def test_a_lost_answer_to_a_data_file(table: DeltaTable, tmp_path: Path) -> None:
    tx, _ = begun(table, after=only(lambda path: path.endswith(".parquet"), lost_answer))
    tx.append(ids(2, 10))
    assert tx.commit().version == 2
    whole(table, tmp_path, [0, 1, 2, 10, 11])


def test_a_put_that_fails_leaves_nothing(table: DeltaTable, tmp_path: Path) -> None:
    tx, _ = begun(table, before=only(is_commit, broken_line))
    tx.append(ids(2, 10))
    with pytest.raises(StoreError, match="connection"):
        tx.commit()
    whole(table, tmp_path, [0, 1, 2])


def test_what_may_have_been_committed_is_kept(
    table: DeltaTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tx, store = begun(table, after=only(is_commit, broken_line))
    tx.append(ids(2, 10))
    store.is_down = True
    with caplog.at_level(logging.WARNING), pytest.raises(StoreError, match="connection"):
        tx.commit()
    assert "it is not known whether version 2" in caplog.text
    whole(table, tmp_path, [0, 1, 2, 10, 11])
    with pytest.raises(CommitError, match="is over"):
        tx.commit()


def test_a_request_on_its_way_to_another_machine_is_waited_for(
    table: DeltaTable, tmp_path: Path
) -> None:
    """The put fails here, and takes effect when the transaction has long given up."""
    from millpond.base.store import Capabilities

    tx, store = begun(table, before=only(is_commit, broken_line))
    capabilities = Capabilities(is_durable=True, is_shared=True, has_flat_names=True)
    store.capabilities = capabilities  # type: ignore[attr-defined]
    tx.append(ids(2, 10))
    with pytest.raises(StoreError, match="connection"):
        tx.commit()
    content = tx._content(2, None)
    (tmp_path / "_delta_log" / f"{2:020d}.json").write_bytes(content)
    whole(table, tmp_path, [0, 1, 2, 10, 11])


def test_who_may_not_write_leaves_nothing(table: DeltaTable, tmp_path: Path) -> None:
    def forbidden(path: str) -> None:
        raise StoreAccessError("not allowed", path=path)

    tx, _ = begun(table, before=only(is_commit, forbidden))
    tx.append(ids(2, 10))
    with pytest.raises(StoreAccessError):
        tx.commit()
    whole(table, tmp_path, [0, 1, 2])


class Interruption:
    """Ctrl-C at the n-th put, before or after it."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, path: str) -> None:
        del path
        self.seen += 1
        if self.seen == self.at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("configuration", [MARKS, FEED], ids=["marking", "rewriting"])
def test_interrupts_at_every_put(tmp_path: Path, when: str, configuration: dict[str, str]) -> None:
    """The commit stands or not; either way the table is whole, and holds no file in vain."""
    table = append(new_table(tmp_path, configuration=configuration), ids(6))
    for at in range(1, 10):
        base = table.version
        live = id_list(ours(table))
        interruption = Interruption(at)
        tx, _ = begun(table, **{when: interruption})
        try:
            with tx:
                tx.append(ids(2, 10 * at))
                tx.delete(mp.col("id") == live[0])
        except KeyboardInterrupt:
            pass
        after = table.update()
        stands = after.version > base
        assert (tx.result is not None) is stands
        expected = sorted([*live[1:], 10 * at, 10 * at + 1]) if stands else live
        whole(table, tmp_path, expected)
        table = after
        if interruption.seen < at:
            break
    else:
        pytest.fail("there are more puts than were tried")


def test_an_interrupt_of_the_upkeep_takes_nothing_back(table: DeltaTable, tmp_path: Path) -> None:
    def interrupt(path: str) -> None:
        raise KeyboardInterrupt

    tx, _ = begun(table, before=only(lambda path: path.endswith(".crc"), interrupt))
    with pytest.raises(KeyboardInterrupt), tx:
        tx.append(ids(1, 10))
    whole(table, tmp_path, [0, 1, 2, 10])


def test_a_failing_upkeep_is_told_and_no_error(
    table: DeltaTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tx, _ = begun(table, before=only(lambda path: path.endswith(".crc"), broken_line))
    tx.append(ids(1, 10))
    with caplog.at_level(logging.WARNING):
        assert tx.commit().version == 2
    assert "the upkeep after version 2" in caplog.text
    whole(table, tmp_path, [0, 1, 2, 10])


def test_a_new_tables_checksum_that_fails_is_told_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = only(lambda path: path.endswith(".crc"), broken_line)
    store = FaultyStore(open_store(tmp_path / "new"), before=fault)
    monkeypatch.setattr("millpond.kernel.write.create.open_store", lambda *_, **__: store)
    with caplog.at_level(logging.WARNING):
        assert new_table(tmp_path / "new").version == 0
    assert "the checksum of the new table" in caplog.text


def test_no_place_for_temporary_files(
    table: DeltaTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with (
        pytest.raises(StoreError, match="could not be put together on this machine"),
        table.transaction() as tx,
    ):
        tx.append(ids(1, 10))
    with pytest.raises(StoreError, match="could not be put together on this machine"):
        write_checkpoint(table)
    whole(table, tmp_path, [0, 1, 2])


def test_no_space_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path / "t", partition_by=["site"])
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(StoreError, match="File too large"), table.transaction() as tx:
            tx.append([*ids(9, site="a"), *ids(9, site="b")])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not list((tmp_path / "scratch").iterdir())
    whole(table, tmp_path / "t", [])


def test_a_rollback_goes_on_where_a_file_can_not_be_removed(
    table: DeltaTable, caplog: pytest.LogCaptureFixture
) -> None:
    class Sticky(FaultyStore):
        def delete(self, path: str) -> None:
            raise StoreError("busy", path=path)

    tx = table.transaction()
    tx.store = Sticky(tx.store)
    tx.append(ids(1))
    with caplog.at_level(logging.WARNING), pytest.raises(ZeroDivisionError), tx:
        1 / 0  # noqa: B018
    assert "could not be removed: busy" in caplog.text


def test_too_many_lost_races(
    table: DeltaTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("millpond.kernel.write.commit.time.sleep", waits.append)
    number = [100]

    def overtake(path: str) -> None:
        del path
        number[0] += 1
        other = table.update().transaction()
        other.append(ids(1, number[0]))
        other.commit()

    tx, _ = begun(table, before=only(is_commit, overtake))
    tx.append(ids(1, 50))
    with pytest.raises(CommitError, match="4 attempts to commit were overtaken"):
        tx.commit(max_retries=3)
    assert len(waits) == 3
    assert all(0 <= wait <= 0.01 * 2**number for number, wait in enumerate(waits))
    whole(table, tmp_path, [0, 1, 2, 101, 102, 103, 104])


def test_waits_grow_to_a_limit_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def uniform(low: float, high: float) -> float:
        assert low == 0
        limits.append(high)
        return 0.0

    monkeypatch.setattr("millpond.kernel.write.commit.random.uniform", uniform)
    waiter = Waiter(retries=10, table="t")
    for _ in range(10):
        waiter.again()
    assert limits == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]
    with pytest.raises(CommitError, match="11 attempts"):
        waiter.again()


def test_versions_whose_numbers_are_free_again(table: DeltaTable, tmp_path: Path) -> None:
    """The commits after the base were cleaned up: to take their place would lose the commit."""
    import datetime as dt

    from millpond.kernel.write import clean_log, write_checkpoint

    latest = table
    for number in range(3):
        latest = append(latest, ids(1, 10 + number))
    write_checkpoint(latest)
    removed = clean_log(latest, now=dt.datetime.now(dt.UTC) + dt.timedelta(days=40))
    assert removed.oldest_version == 4
    tx = table.transaction()
    tx.append(ids(1, 50))
    with pytest.raises(CommitError, match="cleaned up beyond version 1"):
        tx.commit()
    assert not (tmp_path / "_delta_log" / f"{2:020d}.json").exists()
    append(latest, ids(1, 60))
    # Where only the base's own commit is gone, nothing is lost.
    (tmp_path / "_delta_log" / f"{4:020d}.json").unlink()
    check_not_cleaned(tx.store, 4, "t")
    check_not_cleaned(tx.store, 5, "t")


@pytest.mark.parametrize("versions", [None, 0, 1, 4])
def test_a_table_that_was_removed_or_made_anew(
    table: DeltaTable, tmp_path: Path, versions: int | None
) -> None:
    shutil.rmtree(tmp_path / "_delta_log")
    if versions is not None:
        other = new_table(tmp_path, Struct.of(key=STRING))
        for _ in range(versions):
            other = append(other, [{"key": "a"}])
    before = {file.name for file in tmp_path.rglob("*")}
    reason = "no longer reaches version 1" if not versions else "another table at"
    with pytest.raises(CommitError, match=reason), table.transaction() as tx:
        tx.append(ids(1, 50))
    assert {file.name for file in tmp_path.rglob("*")} == before
    if versions is not None:
        assert ours(table.update()) == [{"key": "a"}] * versions
