"""Two transactions that create the same path: both stay where their changes can be put together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.processes import CONTEXT
from tests.steward.wholeness import check_tables

import millpond as mp
from millpond.base.errors import WriteConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier

    from millpond.steward.committing.commit import Committed
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope

    Step = Callable[[WriteScope], object]

START = datetime(2024, 1, 1, tzinfo=UTC)


def rows(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"time": START + timedelta(minutes=n), "n": n, **more} for n in numbers]


def append(path: str, *numbers: int, **more: Any) -> Step:
    return lambda tx: tx.append_series(path, rows(*numbers, **more))


def append_bytes(path: str, data: bytes) -> Step:
    return lambda tx: tx.write_bytes(path, data, series=True)


def write(path: str, data: bytes) -> Step:
    return lambda tx: tx.write_bytes(path, data)


def table(path: str) -> Step:
    return lambda tx: tx.write_table(path, [{"n": 0}])


def mkdir(path: str, **how: bool) -> Step:
    return lambda tx: tx.make_directory(path, **how)


def all_of(*steps: Step) -> Step:
    return lambda tx: [step(tx) for step in steps]


def interleaved(pond: Pond, mine: Step, *theirs: Step) -> Committed:
    """Run a transaction whose commit comes after those of others that began later."""
    with pond.write("mine") as tx:
        mine(tx)
        for step in theirs:
            commit(mp.open(pond.location), step)
        return tx.commit()


def commit(pond: Pond, step: Step) -> None:
    with pond.write("theirs") as tx:
        step(tx)
        tx.commit()


def numbers(pond: Pond, path: str) -> list[int]:
    found: list[int] = pond.read().to_arrow(path)["n"].to_pylist()
    return found


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def table_directories(pond: Pond) -> list[str]:
    place = Path(pond.location) / "tables"
    return sorted(path.name for path in place.iterdir()) if place.exists() else []


# Both stay


def test_the_second_first_append_follows_the_first(pond: Pond) -> None:
    done = interleaved(pond, append("/s", 3, 1), append("/s", 7), append("/s", 8))
    assert (done.txn_seq, done.attempts) == (3, 2)
    assert numbers(pond, "/s") == [7, 8, 3, 1]
    assert numbers(pond, "/s@v3") == [3, 1]
    stat = pond.read().stat("/s")
    assert (stat.version, stat.time_column) == (3, "time")
    assert stat.max_event_time == START + timedelta(minutes=3)
    check_tables(pond)
    assert table_directories(pond) == [pond.read().row("/s").node_id]
    assert pond.fsck().findings == ()
    assert mp.open(pond.location).recover().is_clean


def test_the_columns_of_both_are_kept(pond: Pond) -> None:
    interleaved(pond, append("/s", 1, extra="x"), append("/s", 2, other=1.5))
    found = pond.read().to_arrow("/s").select(["n", "extra", "other"]).to_pylist()
    assert found == [
        {"n": 2, "extra": None, "other": 1.5},
        {"n": 1, "extra": "x", "other": None},
    ]
    check_tables(pond)


def test_columns_that_do_not_fit_are_an_error_that_names_them(pond: Pond) -> None:
    with pytest.raises(WriteConflictError, match=r"/s was changed meanwhile: /s: the column 'v'"):
        interleaved(pond, append("/s", 1, v="text"), append("/s", 2, v=3))
    assert numbers(pond, "/s") == [2]
    assert table_directories(pond) == [pond.read().row("/s").node_id]
    check_tables(pond)


def test_time_columns_that_differ_are_an_error(pond: Pond) -> None:
    mine = [{"at": START, "time": START, "n": 1}]
    with pytest.raises(WriteConflictError, match="the time column 'time' meanwhile, not 'at'"):
        interleaved(pond, lambda tx: tx.append_series("/s", mine, time_column="at"),
                    append("/s", 2))  # fmt: skip
    assert numbers(pond, "/s") == [2]


def test_overtaken_again_after_it_has_joined(pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that has joined the series of another one is an ordinary append from then on."""
    from millpond.steward.committing.race import Race

    inner, left = Race._rebase, [append("/s", 8), append("/s", 9)]

    def overtaken(race: Race, onto: Any) -> None:
        inner(race, onto)
        if left:
            with monkeypatch.context() as plain:
                plain.setattr(Race, "_rebase", inner)
                commit(mp.open(pond.location), left.pop(0))

    monkeypatch.setattr(Race, "_rebase", overtaken)
    interleaved(pond, append("/s", 1), append("/s", 7))
    assert sorted(numbers(pond, "/s")) == [1, 7, 8, 9]
    assert [numbers(pond, f"/s@v{version}") for version in (1, 2, 3, 4)] == [[7], [8], [9], [1]]
    assert table_directories(pond) == [pond.read().row("/s").node_id]
    check_tables(pond)


def test_series_of_bytes(pond: Pond) -> None:
    interleaved(pond, append_bytes("/log", b"mine\n"), append_bytes("/log", b"theirs\n"))
    assert pond.read().read_bytes("/log") == b"theirs\nmine\n"
    assert pond.read().read_bytes("/log@v2") == b"mine\n"
    large = bytes(300_000)
    interleaved(pond, append_bytes("/big", large), append_bytes("/big", large))
    assert pond.read().read_bytes("/big") == large * 2


def test_directories_that_may_exist(pond: Pond) -> None:
    deep = mkdir("/a/b/c", parents=True)
    done = interleaved(
        pond, all_of(deep, write("/a/b/c/x", b"x")), all_of(deep, write("/a/y", b""))
    )
    assert done.txn_seq == 2
    assert sorted(pond.read().children("/a/b/c")) == ["x"]
    assert sorted(pond.read().children("/a")) == ["b", "y"]
    done = interleaved(pond, mkdir("/e", exist_ok=True), mkdir("/e"))
    assert done.is_empty
    assert done.txn_seq == 3
    assert pond.read().txn_seq == 3
    assert mp.open(pond.location).recover().is_clean


def test_series_in_new_directories(pond: Pond) -> None:
    both = [all_of(mkdir("/d/e", parents=True), append("/d/e/s", n)) for n in (1, 2)]
    interleaved(pond, *both)
    assert numbers(pond, "/d/e/s") == [2, 1]
    interleaved(
        pond,
        all_of(mkdir("/f", parents=True), lambda tx: tx.move("/d/e/s", "/f/s")),
        all_of(mkdir("/f", parents=True), write("/f/x", b"x")),
    )
    assert numbers(pond, "/f/s") == [2, 1]
    assert [each.version for each in pond.read().versions("/f/s")] == [1, 2]
    assert sorted(pond.read().children("/f")) == ["s", "x"]
    assert pond.fsck().findings == ()


def test_copies_into_one_new_directory(pond: Pond, tmp_path: Path) -> None:
    from millpond.steward.copying.into import copy_in
    from millpond.steward.places import parse_place

    def copied(name: str) -> Step:
        (tmp_path / name).write_text(name)
        place = parse_place(f"host://{tmp_path / name}")
        return lambda tx: copy_in(tx, [place], "/new/", make_parents=True).run(lambda count: None)

    interleaved(pond, copied("a"), copied("b"))
    assert sorted(pond.read().children("/new")) == ["a", "b"]
    with pytest.raises(WriteConflictError, match="has put a data at /new/c meanwhile"):
        interleaved(pond, copied("c"), copied("c"))


# One stays


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        (append("/x", 1), table("/x"), "has put a table at /x meanwhile"),
        (table("/x"), append("/x", 1), "has put a series at /x meanwhile"),
        (table("/x"), table("/x"), "has put a table at /x meanwhile"),
        (append("/x", 1), append_bytes("/x", b"1"), "has put a data:series at /x meanwhile"),
        (append_bytes("/x", b"1"), write("/x", b"1"), "has put a data at /x meanwhile"),
        (write("/x", b"1"), append_bytes("/x", b"1"), "has put a data:series at /x meanwhile"),
        (mkdir("/x"), mkdir("/x", parents=True), "has put a directory at /x meanwhile"),
        (mkdir("/x", parents=True), write("/x", b""), "has put a data at /x meanwhile"),
        (all_of(mkdir("/x", parents=True), lambda tx: tx.move("/x", "/y")),
         mkdir("/y"), "has put a directory at /y meanwhile"),
        (all_of(append("/x", 1), lambda tx: tx.set_bounds("/x", first=START)),
         append("/x", 2), "has put a series at /x meanwhile"),
    ],
)  # fmt: skip
def test_other_pairs_conflict(pond: Pond, mine: Step, theirs: Step, message: str) -> None:
    with pytest.raises(WriteConflictError, match=message):
        interleaved(pond, mine, theirs)
    kept = [row for stat in pond.read().children("/").values()
            if (row := pond.read().row(stat.path)).entry_type.is_table]  # fmt: skip
    assert table_directories(pond) == sorted(row.node_id for row in kept)
    assert mp.open(pond.location).recover().is_clean


# Real processes

WRITERS = 8


def first_writer(location: str, number: int, rounds: int, barrier: Barrier) -> None:
    """Append to series and make directories that all the others make at the same moment."""
    try:
        write_first(mp.open(location), number, rounds, barrier)
    except BaseException:
        barrier.abort()
        raise


def write_first(pond: Pond, number: int, rounds: int, barrier: Barrier) -> None:
    for turn in range(rounds):
        barrier.wait()
        with pond.write(f"{turn} {number}") as tx:
            tx.append_series(f"/s{turn}", rows(number, number + 100))
            tx.commit()
        barrier.wait()
        with pond.write(f"{turn} {number}") as tx:
            tx.make_directory(f"/d{turn}/deep", parents=True)
            tx.write_bytes(f"/d{turn}/deep/{number}", str(number).encode())
            tx.write_bytes(f"/d{turn}/log", f"{number}\n".encode(), series=True)
            tx.commit()


def test_eight_processes_create_what_the_others_create(pond: Pond) -> None:
    rounds = 3
    barrier = CONTEXT.Barrier(WRITERS)
    processes = [
        CONTEXT.Process(target=first_writer, args=(pond.location, number, rounds, barrier))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * WRITERS
    expected = list(map(str, range(WRITERS)))
    for turn in range(rounds):
        found = numbers(pond, f"/s{turn}")
        assert sorted(found) == [*range(WRITERS), *range(100, 100 + WRITERS)]
        assert found[1::2] == [number + 100 for number in found[::2]], "each version is whole"
        scope = pond.read()
        assert len(scope.versions(f"/s{turn}")) == WRITERS
        assert sorted(scope.children(f"/d{turn}/deep")) == expected
        assert sorted(scope.read_bytes(f"/d{turn}/log").decode().split()) == expected
    assert pond.read().txn_seq == 2 * rounds * WRITERS
    kept = [pond.read().row(f"/s{turn}").node_id for turn in range(rounds)]
    assert table_directories(pond) == sorted(kept)
    check_tables(pond)
    assert mp.open(pond.location).recover().is_clean
    assert pond.fsck().findings == ()
