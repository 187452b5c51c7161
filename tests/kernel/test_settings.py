"""What a log holds beside files: app transactions, domains, and what commits say of themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.kernel.handmade import add, begin, checkpoint, commit, info, metadata, protocol

from millpond import delta_table
from millpond.base.errors import CorruptLogError, PlanError
from millpond.kernel import names
from millpond.kernel.actions import DOMAIN, TXN, Metadata, Protocol
from millpond.kernel.machine import Terminus
from millpond.kernel.names import LogName
from millpond.kernel.segment import LogFile, LogSegment
from millpond.kernel.settings import ReadHistory, ReadSettings, TableSettings
from millpond.kernel.snapshot import Snapshot
from millpond.plan.arrow import to_arrow

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400_000


def txn(app: str | None, version: int | None, updated: int | None = None) -> dict[str, Any]:
    return {"txn": {"appId": app, "version": version, "lastUpdated": updated}}


def domain(name: str | None, text: str | None, *, removed: bool = False) -> dict[str, Any]:
    found = {"domain": name, "configuration": text, "removed": removed}
    return {"domainMetadata": found}


def file(version: int, modified: int = 0) -> LogFile:
    return LogFile(f"/t/{version}", LogName("commit", version, version), 1, modified)


def snapshot(**configuration: str) -> Snapshot:
    properties = {f"delta.{name}": value for name, value in configuration.items()}
    segment = LogSegment("/t", 1, None, (file(0), file(1)))
    return Snapshot(segment, Protocol(1, 2), Metadata("", "", configuration=properties))


def read(*rows: dict[str, Any], **configuration: str) -> TableSettings:
    types = [("txn", to_arrow(TXN)), ("domainMetadata", to_arrow(DOMAIN))]
    table = pa.Table.from_pylist(list(rows), pa.schema(types))
    state = ReadSettings("/t", snapshot(**configuration), 10 * DAY).next(table)
    assert isinstance(state, Terminus)
    found: TableSettings = state.value
    return found


def test_the_newest_of_each_counts() -> None:
    found = read(txn("a", 3), domain("d", "new"), txn("b", 1), txn("a", 2), domain("d", "old"))
    assert {name: t.version for name, t in found.app_transactions.items()} == {"a": 3, "b": 1}
    assert {name: d.configuration for name, d in found.domain_metadata.items()} == {"d": "new"}


def test_a_domain_that_was_removed_is_gone() -> None:
    assert read(domain("d", "", removed=True), domain("d", "old")).domain_metadata == {}
    assert set(read(domain("d", "x"), domain("d", "", removed=True)).domain_metadata) == {"d"}


def test_app_transactions_expire() -> None:
    rows = [txn("old", 1, 2 * DAY), txn("new", 1, 9 * DAY), txn("ever", 1)]
    assert set(read(*rows).app_transactions) == {"old", "new", "ever"}
    kept = read(*rows, setTransactionRetentionDuration="interval 7 days")
    assert set(kept.app_transactions) == {"new", "ever"}
    with pytest.raises(PlanError, match="not a duration"):
        read(*rows, setTransactionRetentionDuration="a while")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (txn(None, 3), "without id or version"),
        (txn("a", None), "without id or version"),
        (domain(None, "x"), "without a name"),
    ],
)
def test_broken_ones_are_errors(row: dict[str, Any], message: str) -> None:
    with pytest.raises(CorruptLogError, match=message) as caught:
        read(row)
    assert caught.value.hint


def test_the_plan_reads_no_files() -> None:
    text = str(ReadSettings("/t", snapshot(), 0).plan())
    assert "txn" in text
    assert "add" not in text


@pytest.mark.parametrize("kind", ["commits", "classic", "json", "compacted"])
def test_a_whole_log(tmp_path: Path, kind: str) -> None:
    old = [txn("a", 1), domain("d", "1"), domain("gone", "x"), txn("b", 5, 77)]
    begin(tmp_path, *old)
    commit(tmp_path, 1, domain("gone", "", removed=True))
    state = [txn("a", 1), txn("b", 5, 77), domain("d", "1"), domain("gone", "", removed=True)]
    if kind == "classic":
        checkpoint(tmp_path, 1, protocol(), metadata(), *state)
    if kind == "json":
        unique = "80a083e8-7026-4e79-81be-64bd76c43a10"
        name = names.unique_checkpoint_name(1, unique, "json")
        checkpoint(tmp_path, 1, protocol(), metadata(), *state, name=name)
    if kind == "compacted":
        text = "".join(json.dumps(row) + "\n" for row in [protocol(), metadata(), *state])
        (tmp_path / "_delta_log" / names.compaction_name(0, 1)).write_text(text)
    commit(tmp_path, 2, txn("a", 2), add("x"))
    table = delta_table(tmp_path)
    assert {n: t.version for n, t in table.app_transactions.items()} == {"a": 2, "b": 5}
    assert table.app_transactions["b"].last_updated == 77
    assert list(table.domain_metadata) == ["d"]
    before = delta_table(tmp_path, version=0)
    assert sorted(before.domain_metadata) == ["d", "gone"]


class TestReadHistory:
    def history(
        self, *rows: tuple[int, str | None], configuration: dict[str, str] | None = None
    ) -> list[dict[str, Any]]:
        files = (file(0, 5), file(1, 5), file(2, 50))
        table = pa.table(
            {
                "version": pa.array([version for version, _ in rows], pa.int64()),
                "commitInfo": pa.array([text for _, text in rows], pa.string()),
            }
        )
        state = ReadHistory("/t", snapshot(**configuration or {}), files, files).next(table)
        assert isinstance(state, Terminus)
        found: list[dict[str, Any]] = state.value
        return found

    def test_what_commits_say_newest_first(self) -> None:
        found = self.history((2, '{"operation": "WRITE", "timestamp": 7, "mine": {"x": 1}}'))
        assert found == [
            {"version": 2, "operation": "WRITE", "timestamp": 50, "mine": {"x": 1}},
            {"version": 1, "timestamp": 6},
            {"version": 0, "timestamp": 5},
        ]

    def test_a_stated_time_counts_where_the_table_has_them(self) -> None:
        stated = (2, '{"timestamp": 7, "inCommitTimestamp": 9}')
        assert self.history(stated)[0]["timestamp"] == 50
        on = {"enableInCommitTimestamps": "true"}
        assert self.history(stated, configuration=on)[0]["timestamp"] == 9
        on["inCommitTimestampEnablementVersion"] = "3"
        assert self.history(stated, configuration=on)[0]["timestamp"] == 50

    def test_versions_and_times_are_not_a_matter_of_what_commits_say(self) -> None:
        found = self.history((2, '{"version": 7, "timestamp": null, "inCommitTimestamp": true}'))
        assert found[0] == {"version": 2, "timestamp": 50, "inCommitTimestamp": True}

    @pytest.mark.parametrize("text", ["[]", "3", "nonsense"])
    def test_what_is_no_object_says_nothing(self, text: str) -> None:
        assert self.history((2, text))[0] == {"version": 2, "timestamp": 50}


def test_the_history_of_a_log(tmp_path: Path) -> None:
    begin(tmp_path, info(operation="CREATE", timestamp=1))
    commit(tmp_path, 1, add("a"), info(operation="WRITE", timestamp=2))
    commit(tmp_path, 2, add("b"), millis=3000)
    checkpoint(tmp_path, 1, protocol(), metadata(), add("a"))
    table = delta_table(tmp_path)
    found = table.history()
    assert [(row["version"], row.get("operation")) for row in found] == [
        *((2, None), (1, "WRITE"), (0, "CREATE")),
    ]
    assert [row["version"] for row in table.history(1)] == [2]
    assert table.history(0) == []
    assert [row["version"] for row in delta_table(tmp_path, version=1).history()] == [1, 0]
    with pytest.raises(PlanError, match="not negative"):
        table.history(-1)
    (tmp_path / "_delta_log" / names.commit_name(1)).write_text("[[[ broken")
    with pytest.raises(CorruptLogError, match=names.commit_name(1)):
        table.history()
