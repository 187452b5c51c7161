"""Damage to the OpLog and to logs of tables: errors on stored and on computed paths alike."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.fuzz.ponds import readings, small_pond

import millpond as mp
from millpond.base.errors import CorruptLogError, IntegrityError, MillpondError
from millpond.base.seals import mark_in, tail_of
from millpond.steward.exporting import Asked, export
from millpond.steward.places import parse_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond

COMPUTED = ("/joined", "/reduced/s/res=1h.series")


def rows(place: str, path: str) -> Any:
    """The rows of a path of a pond that was opened for them alone."""
    return sorted(map(str, mp.open(place)[path].to_arrow().to_pylist()))


def exported(place: str, directory: Path) -> list[bytes]:
    """A computed path as files."""
    asked = Asked(str(directory), format="csv")
    export(mp.open(place).read(), [parse_place("/joined")], asked).run(lambda _count: None)
    return [file.read_bytes() for file in sorted(directory.rglob("*")) if file.is_file()]


def listing(place: str) -> Any:
    """What is in the directories of a pond."""
    scope = mp.open(place).read()
    return [
        [(s.path, s.version, s.size, s.target) for s in scope.children(directory).values()]
        for directory in ("/", "/in")
    ]


def without_cache(place: str) -> None:
    """What is computed is computed again."""
    shutil.rmtree(Path(place, "cache"), ignore_errors=True)


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    """A pond with a series of two versions, a join and a reduction of it."""
    made = small_pond(str(tmp_path / "pond"))
    with made.write() as tx:
        tx.append_series("/in/s", readings(30, 10))
        tx.commit()
    return made


def cut_line(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:-1])


@pytest.mark.parametrize(
    "damage",
    [lambda c: c.replace(b'"add"', b'"`dd"'), cut_line, lambda _: b"", lambda c: c[:-1]],
    ids=["name", "line", "emptied", "newline"],
)
def test_a_damaged_commit_is_an_error_on_computed_paths(
    pond: Pond, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    place = pond.location
    truth = [rows(place, path) for path in COMPUTED]
    log = Path(place, "tables", pond.read().row("/in/s").node_id, "_delta_log")
    file = log / f"{2:020}.json"
    content = file.read_bytes()
    assert damage(content) != content
    file.write_bytes(damage(content))
    without_cache(place)
    ways: list[Callable[[], Any]] = [
        lambda: rows(place, "/in/s"),
        lambda: rows(place, "/in/s@v2"),
        *(lambda path=path: rows(place, path) for path in COMPUTED),
        lambda: exported(place, tmp_path / "out"),
    ]
    for way in ways:
        with pytest.raises(CorruptLogError, match=r"0002\.json"):
            way()
    assert not pond.fsck().is_sound
    file.write_bytes(content)
    without_cache(place)
    assert [rows(place, path) for path in COMPUTED] == truth


def test_a_commit_that_the_oplog_does_not_name_is_an_error(pond: Pond) -> None:
    """A whole commit, sealed and all, in the place of the one that was ratified."""
    import json

    from millpond.kernel.write.commit import encode_commit

    log = Path(pond.location, "tables", pond.read().row("/in/s").node_id, "_delta_log")
    file = log / f"{2:020}.json"
    actions = [next(iter(json.loads(line).items())) for line in file.read_text().splitlines()]
    actions[0][1]["timestamp"] = 1
    file.write_bytes(encode_commit(actions, 2))
    with pytest.raises(CorruptLogError, match="not the one that the OpLog names"):
        rows(pond.location, "/in/s@v2")
    report = mp.open(pond.location).fsck()
    assert [d.message for d in report.damage] == [
        "the commit of version 2 is not the one that the OpLog names"
    ]


def test_flipped_bits_of_the_oplog_are_errors_or_harmless(pond: Pond) -> None:
    pond.maintain()
    with pond.write() as tx:
        tx.write_bytes("/late", b"late")
        tx.commit()
    without_cache(pond.location)
    truth, found = listing(pond.location), 0
    for number, file in enumerate(sorted(Path(pond.location, "data").rglob("*.*"))):
        content = file.read_bytes()
        for place in range(number % 200, len(content), 500):
            flipped = content[place] ^ (1 << (place % 8))
            file.write_bytes(content[:place] + bytes([flipped]) + content[place + 1 :])
            without_cache(pond.location)
            try:
                assert listing(pond.location) == truth, f"{file} at {place}"
            except MillpondError:
                found += 1
        file.write_bytes(content)
    without_cache(pond.location)
    assert listing(pond.location) == truth
    assert found > 10


def test_files_of_the_oplog_and_checkpoints_are_sealed(pond: Pond) -> None:
    pond.maintain()
    data = Path(pond.location, "data")
    files = sorted(data.rglob("*.parquet"))
    assert any("checkpoint" in file.name for file in files)
    for file in files:
        content = file.read_bytes()
        tail = tail_of(pa.BufferReader(content).read_at, len(content))
        assert tail is not None
        assert tail.seal is not None
        if "checkpoint" not in file.name:
            assert mark_in(file.name) == tail.seal.mark


def test_another_sealed_file_in_place_of_one_of_the_oplog_is_an_error(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_directory("/other")
        tx.commit()
    without_cache(pond.location)
    files = [f for f in Path(pond.location, "data").rglob("*.parquet") if "_delta" not in str(f)]
    same = [f for f in files if f.parent == files[0].parent]
    assert len(same) > 1
    same[0].write_bytes(same[1].read_bytes())
    with pytest.raises(IntegrityError, match="it is another file"):
        [listing(pond.location), mp.open(pond.location).read().exists("/other")]
