"""`pond control`: transactions, settings, SQL over the table, and its upkeep."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def full(cli: Cli) -> Cli:
    """Two transactions that went well, and one that did not."""
    cli.ok("mkdir", "/a")
    cli.ok("mkdir", "/b c")
    cli.fails("mkdir", "/a", code=7)
    return cli


class TestTransactions:
    def test_recent_ones(self, full: Cli) -> None:
        found = full.json("control", "recent")
        assert [(each["txn_seq"], each["state"]) for each in found][-2:] == [
            (2, "completed"),
            (1, "completed"),
        ]
        assert found[-1]["cli_args"] == ["mkdir", "/a"]
        text = full.ok("control", "recent")
        assert "mkdir '/b c'" in text
        assert "completed" in text
        assert len(full.json("control", "recent", "-n", "1")) == 1
        full.fails("control", "recent", "-n", "0", code=2)

    def test_none(self, cli: Cli) -> None:
        result = cli("control", "recent")
        assert (result.stdout, result.stderr) == ("", "there are no transactions yet\n")

    def test_one(self, full: Cli) -> None:
        found = full.json("control", "detail", "2")
        assert found["txn_seq"] == 2
        assert [row["record_type"] for row in found["records"]] == [
            "begin", "data_committed", "completed",
        ]  # fmt: skip
        assert found["followers"] == []
        by_id = full.json("control", "detail", found["txn_id"])
        assert by_id == found
        text = full.ok("control", "detail", "2")
        assert "mkdir '/b c'" in text
        assert "data_committed" in text
        said = full.fails("control", "detail", "99", code=6)
        assert "pond control recent" in said
        full.fails("control", "detail", "zz", code=6)

    def test_open_ones(self, full: Cli, place: Path) -> None:
        assert "no transaction is open" in full("control", "incomplete").stderr
        tx = mp.open(place).write("long work")
        tx.make_directory("/later")
        (found,) = full.json("control", "incomplete")
        assert (found["txn_id"], found["state"]) == (tx.txn_id, "begin")
        assert "long work" in full.ok("control", "incomplete")
        tx.rollback()
        assert full.json("control", "incomplete") == []


class TestSettings:
    def test_shown_set_and_taken_back(self, cli: Cli) -> None:
        def shown() -> dict[str, tuple[str, bool]]:
            rows = cli.json("control", "show-config")
            return {row["setting"]: (row["value"], row["set"]) for row in rows}

        name = "maintain.retention_days"
        assert shown()[name] == ("7", False)
        assert "pond.id" in shown()
        result = cli("control", "set-config", f"{name}=30")
        assert result.stderr == f"{name} is 30 now\n"
        assert shown()[name] == ("30", True)
        assert cli.json("control", "set-config", name, "31")["settings"] == {name: "31"}
        assert cli.json("control", "set-config", "--unset", name)["settings"] == {name: None}
        assert shown()[name] == ("7", False)
        assert "retention" in cli.ok("control", "show-config")

    @pytest.mark.parametrize(
        ("args", "code", "said"),
        [
            (("maintain.retention_day=3",), 3, "did you mean maintain.retention_days"),
            (("maintain.retention_days=soon",), 3, "soon"),
            (("pond.id=1",), 3, "can't be changed"),
            (("nothing",), 2, "NAME=VALUE"),
            ((), 2, "NAME=VALUE"),
        ],
    )
    def test_errors(self, cli: Cli, args: tuple[str, ...], code: int, said: str) -> None:
        assert said in cli.fails("control", "set-config", *args, code=code)


class TestUpkeep:
    def test_sync(self, full: Cli) -> None:
        assert "nothing had to be done" in full("control", "sync").stderr
        assert full.json("control", "sync")["clean"] is True

    def test_a_table_that_is_gone_is_made_again(self, full: Cli, place: Path) -> None:
        shutil.rmtree(place / "control")
        found = full.json("control", "rebuild")
        assert found["added"] == [1, 2]
        assert [each["txn_seq"] for each in full.json("control", "recent")] == [2, 1]
        shutil.rmtree(place / "control")
        result = full("control", "sync")
        assert "transaction 1 was not known" in result.stderr

    def test_rebuild_says_what_it_did(self, full: Cli) -> None:
        assert "made anew" in full("control", "rebuild").stderr


class TestSql:
    pytestmark = pytest.mark.spark

    def test_over_control(self, full: Cli, spark: object) -> None:
        query = "SELECT txn_seq FROM control WHERE record_type = 'completed' ORDER BY txn_seq"
        assert full.ok("control", "sql", query) == "txn_seq\n1\n2\n"
        assert full.ok("control", "sql", query, "--limit", "1", "--format", "json") == (
            '{"txn_seq":1}\n'
        )
        lines = full.ok("--json", "control", "sql", query).splitlines()
        assert [json.loads(line)["txn_seq"] for line in lines] == [1, 2]

    def test_open_transactions_are_in_it(self, full: Cli, place: Path, spark: object) -> None:
        tx = mp.open(place).write()
        tx.make_directory("/later")
        query = f"SELECT record_type FROM control WHERE txn_id = '{tx.txn_id}'"
        assert full.ok("control", "sql", query) == "record_type\nbegin\n"
        tx.rollback()

    def test_errors(self, full: Cli, spark: object) -> None:
        assert "line 1" in full.fails("control", "sql", "SELECT FROM WHERE", code=4)
        assert "nope" in full.fails("control", "sql", "SELECT nope FROM control", code=4)
