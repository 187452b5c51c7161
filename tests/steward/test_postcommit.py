from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest
from tests.steward.processes import die, run

import millpond as mp
from millpond.base.errors import ConfigError, PluginError
from millpond.fs.command import NodeCommand
from millpond.fs.entry import EntryType
from millpond.fs.factory import FACTORIES, Executable, Run
from millpond.steward.committing import steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from millpond.steward.control.records import Transaction
    from millpond.steward.pond import Pond


class Diary:
    """Appends a line to a file of the pond, or does what else its configuration says."""

    commands = (NodeCommand("push"), NodeCommand("pull"))

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        if "line" not in config:
            raise ConfigError("a diary needs a line", setting="line")
        return {"file": "/diary", **config}

    def run(self, run: Run) -> None:
        if run.config.get("fails"):
            raise ValueError(run.config["fails"])
        assert run.read().exists("/etc/system.d")
        with run.write() as tx:
            line = f"{run.config['line']} {run.command} after {run.parent_txn_seq}\n"
            tx.write_bytes(run.config["file"], line.encode(), series=True)
            tx.commit()


class Killer(Diary):
    def run(self, run: Run) -> None:
        die()


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    register()


def register() -> None:
    FACTORIES.register("diary", Diary)
    FACTORIES.register("killer", Killer)
    FACTORIES.register("words", "no factory")


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.make_directory("/etc/system.d", parents=True)
        tx.commit()
    return pond


def place(pond: Pond, **nodes: Mapping[str, Any]) -> int:
    """Make diaries; the transaction that makes them is the first that they follow."""
    with pond.write() as tx:
        for name, config in nodes.items():
            tx.make_factory(f"/etc/system.d/{name}", "diary", config)
        return tx.commit().txn_seq


def write(pond: Pond, path: str = "/file") -> int:
    with pond.write() as tx:
        tx.write_bytes(path, b"x")
        return tx.commit().txn_seq


def diary(pond: Pond) -> list[str]:
    scope = pond.read()
    return scope.read_bytes("/diary").decode().splitlines() if scope.exists("/diary") else []


def runs(pond: Pond, parent: int) -> list[Transaction]:
    """The lifecycles of what ran after a transaction, without its own writes."""
    found = pond.control.detail(parent).followers
    return [each for each in found if each.state.startswith("post_commit")]


def test_nodes_run_after_each_write_in_the_order_of_their_paths(pond: Pond) -> None:
    first = place(pond, b={"line": "second"}, a={"line": "first"})
    assert first == 2
    assert diary(pond) == ["first push after 2", "second push after 2"]
    again = write(pond)
    assert again == 5  # two were written by what ran after the first one
    assert diary(pond)[2:] == ["first push after 5", "second push after 5"]
    one, two = runs(pond, again)
    assert (one.config_path, two.config_path) == ("/etc/system.d/a", "/etc/system.d/b")
    assert (one.execution_seq, two.execution_seq) == (1, 2)
    for each in (one, two):
        assert (each.parent_txn_seq, each.kind, each.factory_name) == (5, "post_commit", "diary")
        assert each.state == "post_commit_completed"
        assert each.duration_ms is not None


def test_the_records_of_a_follower(pond: Pond) -> None:
    seq = place(pond, a={"line": "x"})
    (found,) = runs(pond, seq)
    rows = pond.control.detail(found.txn_id).records
    states = ["post_commit_pending", "post_commit_started", "post_commit_completed"]
    assert [row["record_type"] for row in rows] == states
    # What it wrote is a transaction of its own, linked to the same one.
    followers = pond.control.detail(seq).followers
    (written,) = [each for each in followers if each.txn_seq is not None]
    assert (written.txn_seq, written.parent_txn_seq, written.kind) == (3, 2, "post_commit")
    assert (written.state, written.config_path) == ("completed", "/etc/system.d/a")
    order = [row["record_type"] for row in pond.control.records() if row["txn_id"]]
    assert order[-8:] == [
        "data_committed",
        "post_commit_pending",
        "post_commit_started",
        "begin",
        "data_committed",
        "completed",
        "post_commit_completed",
        "completed",
    ]
    assert pond.control.incomplete() == []


def test_what_a_follower_writes_has_no_followers(pond: Pond) -> None:
    place(pond, a={"line": "x"})
    assert pond.read().txn_seq == 3
    assert pond.control.detail(3).followers == []


def test_a_failure_undoes_nothing_and_stops_nobody(pond: Pond) -> None:
    seq = place(pond, a={"line": "x", "fails": "no network"}, b={"line": "y"})
    assert pond.read().exists("/etc/system.d/a")
    assert diary(pond) == ["y push after 2"]
    failed, well = runs(pond, seq)
    assert failed.state == "post_commit_failed"
    assert failed.error_message == "ValueError: no network"
    assert failed.is_failed
    assert well.state == "post_commit_completed"
    assert pond.control.detail(seq).transaction.state == "completed"


def test_modes(pond: Pond) -> None:
    place(pond, a={"line": "x"})
    pond.control.set({"factory.diary.mode": "pull"})
    write(pond)
    pond.control.set({"factory.diary.mode": "off"})
    seq = write(pond)
    assert runs(pond, seq) == []
    pond.control.set({"factory.diary.mode": None})
    write(pond)
    assert [line.split()[1] for line in diary(pond)] == ["push", "pull", "push"]
    with pytest.raises(ConfigError, match="one of push, pull, off"):
        pond.control.set({"factory.diary.mode": "sideways"})


def test_only_executable_nodes_run_wherever_they_are_below(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_directory("/etc/system.d/50-more")
        tx.write_bytes("/etc/system.d/README", b"what is here runs")
        tx.make_factory("/etc/system.d/50-more/a", "diary", {"line": "below"})
        tx.make_factory("/elsewhere", "diary", {"line": "linked"})
        tx.make_link("/etc/system.d/10-link", "/elsewhere")
        tx.make_link("/etc/system.d/90-dangling", "/nowhere")
        tx.commit()
    assert diary(pond) == ["linked push after 2", "below push after 2"]


def test_a_node_that_is_removed_or_changed(pond: Pond) -> None:
    place(pond, a={"line": "x"})
    with pond.write() as tx:
        tx.make_factory("/etc/system.d/a", "diary", {"line": "y"})
        tx.commit()
    assert diary(pond) == ["x push after 2", "y push after 4"]
    assert pond["/etc/system.d/a"].stat().version == 2
    with pond.write() as tx:
        tx.remove("/etc/system.d/a")
        seq = tx.commit().txn_seq
    assert runs(pond, seq) == []


def test_a_factory_that_is_not_installed_is_a_failure_of_its_run(pond: Pond) -> None:
    place(pond, a={"line": "x"})
    registered = dict(FACTORIES._loaded)
    try:
        del FACTORIES._loaded["diary"]
        seq = write(pond)
    finally:
        FACTORIES._loaded.update(registered)
    (found,) = runs(pond, seq)
    assert found.state == "post_commit_failed"
    assert "'diary' is not in millpond.factories" in str(found.error_message)


def test_what_can_not_be_made(pond: Pond) -> None:
    with pond.write() as tx:
        with pytest.raises(ConfigError, match="a diary needs a line"):
            tx.make_factory("/a", "diary", {})
        with pytest.raises(PluginError, match="did you mean 'diary'"):
            tx.make_factory("/a", "dairy", {})
        with pytest.raises(PluginError, match=r"is no factory"):
            tx.make_factory("/a", "words", {})
        assert not tx.exists("/a")
        tx.make_factory("/a", "diary", {"line": "x"})
        row = tx.row("/a")
        tx.commit()
    assert (row.factory, row.entry_type) == ("diary", EntryType.EXECUTABLE)
    assert json.loads(row.config or "") == {"file": "/diary", "line": "x"}
    assert isinstance(Diary(), Executable)


# Crashes


def killed(location: str, where: str) -> None:
    register()
    pond = mp.open(location)

    def at(place: str) -> None:
        if place == where:
            die()

    steps.observe(at)
    write(pond)


def killed_in_a_factory(location: str) -> None:
    register()
    write(mp.open(location))


@pytest.mark.parametrize("where", ["before:data_committed", "before:post_commit"])
def test_what_had_to_run_when_the_process_died_is_run_by_recover(pond: Pond, where: str) -> None:
    place(pond, a={"line": "x"}, b={"line": "y"})
    del pond.control  # another process goes on
    location = pond.location
    assert run(killed, location, where) == -signal.SIGKILL
    again = mp.open(location)
    assert len(diary(again)) == 2
    found = again.recover()
    assert found.completed == (5,)
    assert found.followed == ("/etc/system.d/a", "/etc/system.d/b")
    assert diary(again)[2:] == ["x push after 5", "y push after 5"]
    assert again.recover().is_clean
    assert len(diary(again)) == 4
    assert [each.state for each in runs(again, 5)] == ["post_commit_completed"] * 2


def test_what_ran_when_the_process_died_has_failed_and_the_next_is_run(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_factory("/etc/system.d/a", "killer", {"line": "x"})
        tx.make_factory("/etc/system.d/b", "diary", {"line": "y"})
        pond.control.set({"factory.killer.mode": "off"})
        tx.commit()
    pond.control.set({"factory.killer.mode": None})
    assert run(killed_in_a_factory, pond.location) == -signal.SIGKILL
    again = mp.open(pond.location)
    assert diary(again) == ["y push after 2"]
    assert again.recover().followed == ("/etc/system.d/a", "/etc/system.d/b")
    assert diary(again) == ["y push after 2", "y push after 4"]
    first, second = runs(again, 4)
    assert first.state == "post_commit_failed"
    assert first.error_message == "its process died while it ran"
    assert second.state == "post_commit_completed"
    assert again.recover().is_clean
