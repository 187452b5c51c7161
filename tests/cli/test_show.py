"""`pond show`, `status` and `recover`: what happened, and how the pond is."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def lived(cli: Cli, place: Path) -> Cli:
    """A pond with a history."""
    cli.ok("mkdir", "-p", "/a/b")
    for text in (b"one", b"two"):
        with mp.open(place).write("by hand") as tx:
            tx.write_bytes("/a/f", text)
            tx.commit()
    cli.ok("mv", "/a", "/z")
    cli.ok("mv", "/z/f", "/z/b/g")
    cli.ok("rm", "-r", "/z")
    cli.ok("restore", "/z")
    return cli


def test_transactions_newest_first_and_what_they_did(lived: Cli) -> None:
    found = lived.json("show")
    assert [
        (e["txn"], [(c["change"], c["origin"], c["path"]) for c in e["changes"]]) for e in found
    ] == [
        (7, [("restored", None, "/z")]),
        (6, [("removed", None, "/z")]),
        (5, [("moved", "/z/f", "/z/b/g")]),
        (4, [("moved", "/a", "/z")]),
        (3, [("written", None, "/a/f")]),
        (2, [("made", None, "/a/f")]),
        (1, [("made", None, "/a"), ("made", None, "/a/b")]),
    ]
    assert found[-1]["command"] == "mkdir -p /a/b"
    assert found[-2]["command"] == "by hand"
    assert found[-1]["time"] < found[0]["time"]


def test_people_see_a_line_for_each(lived: Cli) -> None:
    lines = lived.ok("show").splitlines()
    assert len(lines) == 8
    assert lines[0].split() == ["txn", "time", "changed", "command"]
    assert "moved /z/f -> /z/b/g" in lines[3]
    few = lived("show", "-n", "2")
    assert len(few.stdout.splitlines()) == 3
    assert "7 in all" in few.stderr
    assert len(lived.ok("show", "--all").splitlines()) == 8


def test_one_transaction(lived: Cli) -> None:
    text = lived.ok("show", "3")
    assert "by hand" in text
    assert "written" in text
    assert lived.json("show", "3")["changes"][0]["version"] == 2
    assert "the newest one is 7" in lived.fails("show", "99", code=6)


def test_paths_are_those_of_the_time(lived: Cli) -> None:
    assert lived.json("show", "2")["changes"][0]["path"] == "/a/f"


def test_a_new_pond_has_no_transactions(cli: Cli) -> None:
    assert cli.json("show") == []
    assert "no transactions" in cli("show").stderr


def test_what_left_the_log_is_in_the_control_table(lived: Cli, place: Path) -> None:
    from millpond.kernel.write.checkpoint import write_checkpoint

    write_checkpoint(mp.open(place).oplog.log.table())
    for version in range(7):
        (place / "data" / "_delta_log" / f"{version:020d}.json").unlink()
    found = lived.json("show")
    assert [e["command"] for e in found][-2:] == ["by hand", "mkdir -p /a/b"]


def test_status(lived: Cli, place: Path) -> None:
    found = lived.json("status")
    pond = mp.open(place)
    assert found["location"] == str(place)
    assert found["id"] == pond.identity()["pond.id"]
    assert (found["transactions"], found["nodes"]) == (7, 3)
    assert found["types"] == {"data": 1, "directory": 2}
    assert found["size"] == 3
    assert found["stored"] > 1000
    assert found["last_command"] == "restore /z"
    assert found["unfinished"] == []
    text = lived.ok("status")
    assert "last command" in text
    assert "1 data, 2 directory" in text


KILLED = """
import os, signal, sys
import millpond as mp
from millpond.steward.committing import steps

def kill(place):
    if place == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

pond = mp.open(sys.argv[1])
steps.observe(kill)
with pond.write("doomed") as tx:
    tx.write_bytes("/f", b"1")
    tx.write_table("/t", [{"a": 1}])
    tx.commit()
"""


@pytest.mark.parametrize(("step", "is_there"), [("before:oplog", False), ("after:oplog", True)])
def test_a_crash_is_shown_and_recovered(cli: Cli, place: Path, step: str, is_there: bool) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(place), step], check=False)
    assert done.returncode == -signal.SIGKILL
    [waiting] = cli.json("status")["unfinished"]
    assert "doomed" in waiting["command"]
    said = cli("status").stderr
    assert "pond recover" in said
    found = cli.json("recover")
    assert (found["completed"], len(found["failed"])) == (([1], 0) if is_there else ([], 1))
    again = cli("recover")
    assert again.exit_code == 0
    assert "nothing had to be done" in again.stderr
    assert cli.json("status")["unfinished"] == []
    assert [row["path"] for row in cli.json("list")] == (["/f", "/t"] if is_there else [])


def test_what_is_at_work_is_left_alone(cli: Cli, place: Path) -> None:
    pond = mp.open(place)
    with pond.write("busy") as tx:
        tx.write_bytes("/f", b"1")
        found = cli.json("recover")
        assert found["running"] == [tx.txn_id]
        assert "left alone" in cli("recover").stderr
        tx.commit()
    assert cli.json("status")["unfinished"] == []
