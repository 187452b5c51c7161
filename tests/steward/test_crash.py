"""A process is killed at each place of a commit: the transaction is there whole, or not at all."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.deeds import after_deed, deed, seen
from tests.steward.places import At, is_after_the_moment
from tests.steward.processes import die, run
from tests.steward.wholeness import check_whole

import millpond as mp
from millpond.base.errors import PondNotFoundError
from millpond.base.store.local import LocalStore
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from millpond.steward.pond import Pond


def places() -> list[tuple[str, int]]:
    """Each place; those that are passed several times in the middle, too."""
    found = []
    for name in (*steps.STEPS, *steps.INSIDE):
        times = {"write": (1, 8), "stage_table": (2,), "publish_table": (2,)}
        for time in times.get(name, (1,)):
            found += [(f"before:{name}", time), (f"after:{name}", time)]
    return found


def killed_at(location: str, place: str, time: int) -> None:
    pond = mp.open(location)
    steps.observe(At(place, time, die))
    deed(pond)


@pytest.mark.parametrize(("where", "time"), places())
def test_killed_at_each_place(place: str, where: str, time: int) -> None:
    before = seen(mp.open(place).read())
    assert run(killed_at, place, where, time) == -signal.SIGKILL
    stands = is_after_the_moment(where)
    expected = after_deed(before) if stands else before
    pond = mp.open(place)
    assert seen(pond.read()) == expected
    check_recovery(place, where, stands=stands)
    check_whole(place, expected)


def check_recovery(place: str, where: str, *, stands: bool) -> None:
    """It is told what had to be done, and there is nothing to be done afterwards."""
    found = mp.open(place).recover()
    assert found.completed == ((2,) if stands and where != "after:completed" else ())
    began = where != "before:begin"
    assert len(found.failed) == (1 if began and not stands else 0)
    assert found.running == ()
    again = mp.open(place).recover()
    assert again.is_clean
    last = [row for row in mp.open(place).control.records() if row["txn_id"]][-1]
    assert last["record_type"] == ("completed" if stands or not began else "failed")


class Counted:
    """Every change of a local store, by all its instances, is a place."""

    def __init__(self, time: int, when: str) -> None:
        self.left, self.when = time, when

    def install(self) -> None:
        for name in ("put", "delete"):
            self._wrap(name, getattr(LocalStore, name))

    def _wrap(self, name: str, inner: Any) -> None:
        def wrapped(store: LocalStore, *args: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left == 0 and self.when == "before":
                die()
            found = inner(store, *args, **named)
            if self.left == 0 and self.when == "after":
                die()
            return found

        setattr(LocalStore, name, wrapped)


def killed_at_change(location: str, time: int, when: str) -> None:
    pond = mp.open(location)
    Counted(time, when).install()
    deed(pond)


def sweep_changes(place: str, prepared: Path, times: range) -> None:
    """Kill it at some of its changes of the store, until there are no more."""
    before = seen(mp.open(place).read())
    outcomes: list[bool] = []
    for number in times:
        for when in ("before", "after"):
            shutil.rmtree(place)
            shutil.copytree(prepared, place)
            code = run(killed_at_change, place, number, when)
            if code == 0:
                assert outcomes == sorted(outcomes), "once it stands it stands"
                assert set(outcomes) == {False, True}
                return
            assert code == -signal.SIGKILL
            found = seen(mp.open(place).read())
            outcomes.append(found == after_deed(before))
            assert outcomes[-1] or found == before
            mp.open(place).recover()
            assert mp.open(place).recover().is_clean
            check_whole(place, found)
    pytest.fail("there are more changes than were tried")


def test_killed_at_some_changes_of_the_store(place: str, prepared: Path) -> None:
    sweep_changes(place, prepared, range(3, 200, 13))


@pytest.mark.slow
def test_killed_at_every_change_of_the_store(place: str, prepared: Path) -> None:
    sweep_changes(place, prepared, range(1, 200))


SETTINGS = {"fs.inline_bytes": 10, "control.record_reads": True}


def killed_when_it_rebuilds(location: str, time: int, when: str) -> None:
    pond = mp.open(location)
    Counted(time, when).install()
    pond.rebuild_control()


def recorded(pond: Pond) -> list[dict[str, Any]]:
    """Everything that the control table has of transactions."""
    return [row for row in pond.control.records() if row["txn_id"]]


def break_control(place: str, broken: str) -> None:
    """Damage the control table so that its log can't be read, or remove it."""
    control = Path(place, "control")
    if broken == "log":
        (control / "_delta_log" / f"{1:020}.json").write_bytes(b"")
    elif broken == "log and settings":
        (control / "_delta_log" / f"{0:020}.json").unlink()
        shutil.rmtree(control / "_settings")
    elif broken == "no log":
        shutil.rmtree(control / "_delta_log")


def sweep_rebuild(place: str, broken: str, times: range) -> None:
    """Kill a rebuild at some of its changes of the store: nothing of the pond is lost."""
    pond = mp.open(place)
    pond.control.set(SETTINGS)
    records, identity = recorded(pond), pond.identity()
    break_control(place, broken)
    source = f"{place}-broken"
    shutil.copytree(place, source)
    for number in times:
        for when in ("before", "after"):
            shutil.rmtree(place)
            shutil.copytree(source, place)
            code = run(killed_when_it_rebuilds, place, number, when)
            assert code in (0, -signal.SIGKILL)
            pond = mp.open(place)
            if broken == "":
                assert recorded(pond) == records
            if broken != "log and settings":
                assert {key: pond.control.setting(key) for key in SETTINGS} == SETTINGS
            if code != 0:
                pond.rebuild_control()
            pond = mp.open(place)
            assert pond.recover().is_clean
            assert recorded(pond) == records
            assert pond.identity() == identity
            assert {key: pond.control.setting(key) for key in SETTINGS} == SETTINGS
            assert mp.open(place).sync().is_clean
            assert mp.open(place).fsck().is_sound
            if code == 0:
                return
    pytest.fail("there are more changes than were tried")


BROKEN = ("", "log", "log and settings", "no log")


@pytest.mark.parametrize("broken", BROKEN)
def test_killed_at_some_changes_of_a_rebuild(place: str, broken: str) -> None:
    sweep_rebuild(place, broken, range(2, 200, 5))


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_killed_at_every_change_of_a_rebuild(place: str, broken: str) -> None:
    sweep_rebuild(place, broken, range(1, 200))


def killed_when_it_makes_a_pond(location: str, time: int, when: str) -> None:
    Counted(time, when).install()
    mp.create(location)


def test_killed_while_a_pond_is_made(tmp_path: Path) -> None:
    """There is no pond, and one can be made; or there is one, and what is missing is mended."""
    made: list[bool] = []
    for number in range(1, 30):
        for when in ("before", "after"):
            place = str(tmp_path / f"{number}-{when}")
            if run(killed_when_it_makes_a_pond, place, number, when) == 0:
                assert made == sorted(made)
                assert set(made) == {False, True}
                return
            try:
                pond = mp.open(place)
                pond.recover()
                made.append(True)
            except PondNotFoundError:
                pond = mp.create(place)
                made.append(False)
            assert mp.open(place).recover().is_clean
            assert len(pond.identity()["pond.id"]) == 36
            with pond.write() as tx:
                tx.write_bytes("/file", b"1")
                tx.commit()
            assert mp.open(place)["/file"].read_bytes() == b"1"
            kinds = [row["record_type"] for row in pond.control.records() if row["txn_id"]]
            assert kinds == ["begin", "data_committed", "completed"]
    pytest.fail("there are more changes than were tried")
