from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.processes import die, run

import millpond as mp
from millpond.fs import edit
from millpond.fs.entry import EntryType
from millpond.kernel.write.checkpoint import write_checkpoint
from millpond.steward.committing import steps
from millpond.steward.keeping.fsck import Finding, Report, fsck
from millpond.steward.keeping.root import content_root
from millpond.steward.pond import Pond
from millpond.steward.tables.pending import PendingTable

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2024, 1, 1, tzinfo=UTC)
BLOB = bytes(range(256)) * 800


def measured(*hours: int) -> list[dict[str, Any]]:
    return [{"timestamp": START + timedelta(hours=n), "level": n / 2} for n in hours]


def with_vectors(pond: Pond, path: str) -> None:
    """Delete rows of a table by marking them."""
    with pond.write() as tx:
        row = tx.row(path)
        pending = tx.pending[row.node_id] = PendingTable(pond.tables.open(row), path, is_new=False)
        changing = pending.transaction()
        changing.set_metadata(configuration={"delta.enableDeletionVectors": "true"})
        assert changing.delete(mp.col("id") == 2) == 1
        edit.write(tx.work, path, EntryType.TABLE, size=1)
        tx.commit()


def prepare(place: Path) -> Pond:
    """A pond with a bit of everything."""
    pond = mp.create(place)
    with pond.write("first") as tx:
        tx.make_directory("/a/b", parents=True)
        tx.write_bytes("/a/file", b"one")
        tx.write_bytes("/a/blob", BLOB)
        tx.write_bytes("/log", b"one\n", series=True)
        tx.write_table("/a/t", [{"id": n, "name": f"n{n}"} for n in range(4)])
        tx.append_series("/a/b/s", measured(0, 1))
        tx.make_link("/link", "a/file")
        tx.commit()
    with_vectors(pond, "/a/t")
    for number in range(2, 12):
        with pond.write() as tx:
            tx.append_series("/a/b/s", measured(number))
            tx.commit()
    with pond.write("more") as tx:
        tx.write_bytes("/a/file", b"two")
        tx.write_bytes("/a/blob", BLOB + b"more")
        tx.write_bytes("/log", b"two\n", series=True)
        tx.write_bytes("/gone", BLOB + b"gone")
        tx.write_table("/old", [{"x": 1}])
        tx.commit()
    with pond.write("less") as tx:
        tx.remove("/gone")
        tx.move("/old", "/a/b/old")
        tx.commit()
    pond.control.set({"fs.inline_bytes": 1000})
    write_checkpoint(pond.oplog.log.table())
    write_checkpoint(pond.control.log.table())
    return pond


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fsck") / "pond"
    prepare(place)
    return place


@pytest.fixture
def pond(prepared: Path, tmp_path: Path) -> Pond:
    shutil.copytree(prepared, tmp_path / "pond")
    return mp.open(tmp_path / "pond")


def files(pond: Pond, pattern: str = "*") -> list[Path]:
    found = [file for file in Path(pond.location).rglob(pattern) if file.is_file()]
    return sorted(file for file in found if "cache" not in file.parts)


def flip(file: Path, place: int, bit: int = 0) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << bit
    file.write_bytes(content)


def only(report: Report) -> Finding:
    (found,) = report.findings
    return found


def at(found: Finding) -> tuple[str, int | None]:
    return found.path, found.version


# A sound pond


def test_a_sound_pond_has_no_findings(pond: Pond) -> None:
    report = pond.fsck()
    assert report.findings == ()
    assert report.is_sound
    assert report.root == content_root(pond.read())
    assert report.objects == len(files(pond))
    # All that there is was read, but for what follows from it.
    assert report.bytes_read > 0.8 * sum(file.stat().st_size for file in files(pond))
    assert report.nodes == 10
    assert report.last_txn_seq == pond.read().txn_seq
    assert report.counts() == {}


def test_every_kind_of_file_is_there(pond: Pond) -> None:
    names = [str(file.relative_to(pond.location)) for file in files(pond)]
    for part in ("data/_delta_log", "data/part_id=", "tables/", "blobs/", "control/_settings"):
        assert any(name.startswith(part) for name in names)
    for part in (".crc", ".checkpoint.parquet", "_last_checkpoint", "deletion_vector", ".json"):
        assert any(part in name for name in names)
    assert sum("checkpoint.parquet" in name for name in names) == 3


# A flipped bit


def found_and_named(pond: Pond, file: Path, place: int, bit: int) -> None:
    flip(file, place, bit)
    report = fsck(Pond(pond.location))
    flip(file, place, bit)
    name = str(file.relative_to(pond.location))
    found = [finding for finding in report.damage if finding.object == name]
    assert found, f"bit {bit} of byte {place} of {name}"
    assert all(finding.path for finding in found)
    assert report.root is None


def test_a_flipped_bit_in_any_file_is_found_and_named(pond: Pond) -> None:
    chance = random.Random(1)
    for file in files(pond):
        found_and_named(pond, file, chance.randrange(file.stat().st_size), chance.randrange(8))
    assert pond.fsck().is_sound


@pytest.mark.slow
def test_flipped_bits_all_over_every_file_are_found_and_named(pond: Pond) -> None:
    chance = random.Random(2)
    for file in files(pond):
        size = file.stat().st_size
        for place in {0, size - 1, *(chance.randrange(size) for _ in range(10))}:
            found_and_named(pond, file, place, chance.randrange(8))


def test_a_damaged_blob_names_its_path_and_version(pond: Pond) -> None:
    first = pond.read().row("/a/blob@v1").blake3
    flip(files(pond, str(first))[0], 1000)
    found = only(pond.fsck())
    assert (found.kind, *at(found)) == ("damaged", "/a/blob", 1)
    assert "its hash is" in found.message


def test_a_damaged_blob_of_what_was_removed(pond: Pond) -> None:
    digest = pond.read(as_of=13).row("/gone").blake3
    files(pond, str(digest))[0].unlink()
    found = only(pond.fsck())
    assert (found.kind, *at(found)) == ("missing", "/gone (removed)", 1)


def test_a_damaged_data_file_names_the_versions_that_need_it(pond: Pond) -> None:
    row = pond.read().row("/a/b/s@v3")
    place = Path(pond.location, "tables", row.node_id)
    log = (place / "_delta_log" / f"{row.delta_version:020}.json").read_text()
    added = [json.loads(line)["add"]["path"] for line in log.splitlines() if '"add"' in line]
    flip(place / added[0], 50)
    found = only(pond.fsck())
    assert at(found) == ("/a/b/s", 3)
    assert "(versions 3 to 11 of /a/b/s)" in found.message
    (place / added[0]).unlink()
    found = only(pond.fsck())
    assert (found.kind, *at(found)) == ("missing", "/a/b/s", 3)


def test_a_damaged_deletion_vector_names_the_version_that_needs_it(pond: Pond) -> None:
    (file,) = files(pond, "deletion_vector*")
    flip(file, 8)
    found = only(pond.fsck())
    assert at(found) == ("/a/t", 2)
    assert "deletion vector" in found.message


def test_damaged_rows_name_their_directory(pond: Pond) -> None:
    node = pond.read().locate("/a/b").node_id
    flip(files(pond, f"part_id={node}/*")[0], 100)
    report = pond.fsck()
    assert {finding.path for finding in report.damage} == {"/a/b"}


def test_a_damaged_commit_names_what_its_transaction_wrote(pond: Pond) -> None:
    flip(Path(pond.location, "data", "_delta_log", f"{5:020}.json"), 30)
    report = fsck(Pond(pond.location))
    assert ("/a/b/s", None) in {at(finding) for finding in report.damage}


def test_a_pond_that_can_not_be_opened_is_checked(pond: Pond) -> None:
    for version in (13, 14):
        Path(pond.location, "data", "_delta_log", f"{version:020}.json").write_bytes(b"{")
    for file in files(pond, "*.checkpoint.parquet"):
        file.write_bytes(b"")
    with pytest.raises(mp.errors.MillpondError):
        mp.open(pond.location)
    report = fsck(Pond(pond.location))
    names = {finding.object for finding in report.damage}
    assert {f"data/_delta_log/{v:020}.json" for v in (13, 14)} <= names
    assert sum("checkpoint" in name for name in names) == 3


# What is missing


def test_a_table_version_that_is_gone(pond: Pond) -> None:
    row = pond.read().row("/a/b/s")
    log = Path(pond.location, "tables", row.node_id, "_delta_log")
    (log / f"{row.delta_version:020}.json").unlink()
    report = pond.fsck()
    assert ("/a/b/s", 11) in {at(finding) for finding in report.damage}
    shutil.rmtree(log.parent)
    report = fsck(Pond(pond.location))
    assert {at(f) for f in report.damage} == {("/a/b/s", n) for n in range(1, 12)}


def test_a_transaction_that_the_oplog_has_lost(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_directory("/new")
        tx.commit()
    Path(pond.location, "data", "_delta_log", f"{pond.read().version:020}.json").unlink()
    found = fsck(Pond(pond.location)).damage
    assert [finding.message for finding in found] == [
        "transaction 15 was committed, but the OpLog ends with 14"
    ]


def test_a_directory_that_is_gone(pond: Pond) -> None:
    # Its own row is in the root's partition, which loses all its files.
    for file in files(pond, f"part_id={mp.open(pond.location).read().row('/a').part_id}/*"):
        file.unlink()
    report = fsck(Pond(pond.location))
    assert {finding.kind for finding in report.damage} == {"missing"}
    assert any(finding.path == "/" for finding in report.damage)


def test_a_control_table_that_is_gone(pond: Pond) -> None:
    shutil.rmtree(Path(pond.location, "control"))
    found = only(fsck(Pond(pond.location)))
    assert (found.kind, found.path) == ("missing", "control")
    assert "pond control rebuild" in found.message


# What nothing needs


def test_orphans_are_told_and_no_damage(pond: Pond) -> None:
    node = pond.read().row("/a/t").node_id
    orphans = ["blobs/ab/" + "ab" * 32, f"tables/{node}/part-1.parquet", "tables/none/x", "stray"]
    orphans += [f"tables/{node}/_delta_log/_staged_commits/{9:020}.x.json"]
    orphans += ["data/part_id=x/part-2.parquet"]
    for name in orphans:
        file = Path(pond.location, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"12345")
    report = pond.fsck()
    assert report.is_sound
    assert report.root is not None
    assert sorted(finding.object for finding in report.findings) == sorted(orphans)
    assert {finding.kind for finding in report.findings} == {"orphan"}
    assert {finding.size for finding in report.findings} == {5}
    assert report.counts() == {"orphan": 6}


def killed(location: str, where: str) -> None:
    pond = mp.open(location)
    steps.observe(_at(where))
    with pond.write() as tx:
        tx.append_series("/a/b/s", measured(100))
        tx.write_table("/new", [{"x": 1}])
        tx.write_bytes("/blob", BLOB + b"dead")
        tx.commit()


def _at(where: str) -> Callable[[str], None]:
    def observer(place: str) -> None:
        if place == where:
            die()

    return observer


@pytest.mark.parametrize("where", ["before:oplog", "after:oplog", "after:publish"])
def test_a_crash_leaves_a_sound_pond(pond: Pond, where: str) -> None:
    assert run(killed, pond.location, where) != 0
    report = fsck(Pond(pond.location))
    assert report.is_sound
    assert bool(report.counts()) == (where == "before:oplog")
    if where == "after:oplog":  # what is staged is part of it
        node = pond.read().row("/new").node_id
        data = next(Path(pond.location, "tables", node).glob("*.parquet"))
        flip(data, 20)
        assert ("/new", 1) in {at(finding) for finding in pond.fsck().damage}
