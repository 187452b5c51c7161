"""Opening a table: each phase with made-up rows, then whole logs with everything odd in them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kernel.handmade import (
    Action,
    add,
    begin,
    checkpoint,
    commit,
    hint,
    listing,
    metadata,
    paths,
    protocol,
    remove,
)
from tests.kernel.test_machine import Failing

from millpond import delta_table
from millpond.base.errors import (
    CheckpointError,
    ConfigError,
    CorruptLogError,
    LogGapError,
    MissingActionError,
    PhaseError,
    SourceError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from millpond.kernel import DeltaTable, names
from millpond.kernel.actions import METADATA, PROTOCOL, Metadata, Protocol
from millpond.kernel.machine import Consume, StateMachine, Terminus
from millpond.kernel.names import parse_name
from millpond.kernel.open import (
    Goal,
    ListLog,
    ProtocolMetadata,
    ReadChecksum,
    ReadHint,
    SnapshotBuilder,
    UpdateLog,
    Wanted,
)
from millpond.kernel.segment import LogFile, LogSegment, LogSegmentBuilder
from millpond.kernel.snapshot import Snapshot
from millpond.kernel.times import CommitTimes
from millpond.plan.arrow import to_arrow
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from pathlib import Path

UNIQUE = "80a083e8-7026-4e79-81be-64bd76c43a1{}"


def content(*texts: str | bytes) -> pa.Table:
    return pa.table({"content": pa.array([pa.scalar(t, pa.binary()) for t in texts], pa.binary())})


def phase(state: Any, kind: type[Any]) -> Any:
    assert isinstance(state, Consume)
    assert isinstance(state.phase, kind)
    return state.phase


class TestReadHint:
    def after(self, *texts: str | bytes, wanted: Wanted | None = None) -> int:
        hinted = ReadHint("/t", wanted or Wanted())
        return int(phase(hinted.next(content(*texts)), ListLog).start)

    def test_it_says_where_to_begin(self) -> None:
        assert self.after('{"version": 7, "size": 3}') == 7

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "",
                "{",
                "[]",
                "7",
                "null",
                '{"version": "7"}',
                '{"version": -7}',
                '{"version": 7.5}',
            ),
            *('{"version": true}', '{"size": 3}', b"\xff\xfe", "[" * 100_000),
        ],
    )
    def test_garbage_is_as_none(self, text: str | bytes) -> None:
        assert self.after(text) == 0

    def test_none(self) -> None:
        assert self.after() == 0

    def test_one_that_is_newer_than_the_wanted_version_is_left_aside(self) -> None:
        assert self.after('{"version": 7}', wanted=Wanted(version=6)) == 0
        assert self.after('{"version": 7}', wanted=Wanted(version=7)) == 7
        assert self.after('{"version": 7}', wanted=Wanted(millis=0)) == 0

    def test_the_plan_reads_one_file_if_it_is_there(self) -> None:
        plan = str(ReadHint("/t", Wanted()).plan())
        assert "/t/_delta_log from _last_checkpoint" in plan
        assert "bytes" in plan


def commits(*versions: int) -> list[tuple[str, int]]:
    return [(names.commit_name(version), 1) for version in versions]


class TestListLog:
    def test_the_plan_lists_from_the_hint_on(self) -> None:
        assert "from 00000000000000000007" in str(ListLog("/t", Wanted(), 7).plan())
        assert "from" not in str(ListLog("/t", Wanted(), 0).plan())

    def test_without_a_checksum_protocol_and_metadata_are_read(self) -> None:
        rows = listing(*commits(0, 1), ("whatever.txt", 1))
        found = phase(ListLog("/t", Wanted(), 0).next(rows), ProtocolMetadata)
        assert [file.name.version for file in found.segment.commits] == [0, 1]

    def test_with_a_checksum_that_is_read_first(self) -> None:
        rows = listing(*commits(0), (names.checksum_name(0), 1))
        phase(ListLog("/t", Wanted(), 0).next(rows), ReadChecksum)

    @pytest.mark.parametrize(
        "rows",
        [
            listing(),
            listing(*commits(7, 8)),
            listing(*commits(7, 8), (names.part_name(7, 1, 2), 1)),
            listing(*commits(7), (names.checkpoint_name(7), 0)),
        ],
    )
    def test_a_hint_that_leads_to_no_whole_checkpoint_is_forgotten(self, rows: pa.Table) -> None:
        assert phase(ListLog("/t", Wanted(), 7).next(rows), ListLog).start == 0

    def test_a_version_that_is_not_there(self) -> None:
        with pytest.raises(VersionNotFoundError, match="no version 5") as caught:
            ListLog("/t", Wanted(version=5), 0).next(listing(*commits(0, 1, 2)))
        assert caught.value.hint == "it has versions 0 to 2"
        with pytest.raises(VersionNotFoundError) as caught:
            ListLog("/t", Wanted(version=5), 0).next(listing(*commits(0)))
        assert caught.value.hint == "the latest is 0"

    @pytest.mark.parametrize("left", [(), (3, 4)])
    def test_a_version_that_was_cleaned_up(self, left: tuple[int, ...]) -> None:
        rows = listing(*commits(*left, 5, 6), (names.checkpoint_name(5), 1))
        with pytest.raises(VersionNotFoundError, match="up to version 4") as caught:
            ListLog("/t", Wanted(version=4), 0).next(rows)
        assert "ask for a later version" in str(caught.value)


def log_file(name: str) -> LogFile:
    parsed = parse_name(name)
    assert parsed is not None
    return LogFile(f"/t/_delta_log/{name}", parsed, 1, 0)


def segment(*listed: str) -> LogSegment:
    builder = LogSegmentBuilder("/t")
    for name in listed:
        builder.add_file(log_file(name))
    return builder.build()


PROTOCOLS = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATAS = metadata()
CHECKSUM = {**PROTOCOLS, "metadata": METADATAS["metaData"]}


class TestReadChecksum:
    def ahead(self, at: int) -> ReadChecksum:
        log = [names.commit_name(v) for v in range(4)]
        return ReadChecksum("/t", segment(*log, names.checksum_name(at)), Goal(Wanted()))

    def test_the_versions_own_is_enough(self) -> None:
        found = self.ahead(3).next(content(json.dumps(CHECKSUM)))
        assert isinstance(found, Terminus)
        assert found.value.protocol == Protocol(1, 2)
        assert found.value.metadata.id == "a-table"

    def test_after_an_older_one_only_later_commits_are_read(self) -> None:
        found = phase(self.ahead(1).next(content(json.dumps(CHECKSUM))), ProtocolMetadata)
        assert [file.name.version for file in found.later] == [3, 2]
        assert found.known[0] == Protocol(1, 2)

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{", "[]", "[1]", "null", "{}", '{"protocol": {}}', "[" * 100_000, b"\xff"),
            json.dumps({**CHECKSUM, "protocol": {"minReaderVersion": "1"}}),
            json.dumps({**CHECKSUM, "protocol": [1]}),
            json.dumps({**CHECKSUM, "metadata": {"id": "x"}}),
            json.dumps({**CHECKSUM, "metadata": {**CHECKSUM["metadata"], "configuration": 3}}),
        ],
    )
    def test_a_broken_one_is_as_none(self, text: str | bytes) -> None:
        found = phase(self.ahead(3).next(content(text)), ProtocolMetadata)
        assert (found.later, found.known) == (None, None)


def actions(*lines: Action) -> pa.Table:
    types = [("protocol", to_arrow(PROTOCOL)), ("metaData", to_arrow(METADATA))]
    rows = []
    for line in lines:
        found = {kind: dict(action) for kind, action in line.items()}
        if "metaData" in found:
            pairs = list(found["metaData"]["configuration"].items())
            found["metaData"]["configuration"] = pairs
            found["metaData"]["format"] = {"provider": "parquet", "options": []}
        rows.append(found)
    return pa.Table.from_pylist(rows, pa.schema(types))


class TestProtocolMetadata:
    log = (*map(names.commit_name, range(3)), names.checkpoint_name(0))

    def test_commits_come_before_the_checkpoint_and_reading_stops(self) -> None:
        text = str(ProtocolMetadata("/t", segment(*self.log), Goal(Wanted())).plan())
        assert text.index("json") < text.index("parquet")
        assert text.endswith("Head #5 2")
        assert "first_of_each" in text

    def test_what_is_known_spares_the_checkpoint(self) -> None:
        known = (Protocol(1, 2), Metadata("", "{}"))
        later = (log_file(names.commit_name(2)),)
        text = str(ProtocolMetadata("/t", segment(*self.log), Goal(Wanted()), later, known).plan())
        assert "1 file" in text
        assert "parquet" not in text

    def test_the_first_of_each_counts(self) -> None:
        rows = actions(protocol(2, 5), metadata(), protocol(1, 2))
        found = ProtocolMetadata("/t", segment(*self.log), Goal(Wanted())).next(rows)
        assert isinstance(found, Terminus)
        assert found.value.protocol.min_reader_version == 2

    def test_what_is_known_fills_in(self) -> None:
        known = (Protocol(1, 2), Metadata.from_dict(metadata()["metaData"]))
        later = (log_file(names.commit_name(2)),)
        ahead = ProtocolMetadata("/t", segment(*self.log), Goal(Wanted()), later, known)
        for rows, reader in ((actions(), 1), (actions(protocol(2, 5)), 2)):
            found = ahead.next(rows)
            assert isinstance(found, Terminus)
            assert found.value.protocol.min_reader_version == reader

    @pytest.mark.parametrize(
        ("rows", "what"), [(actions(protocol()), "metadata"), (actions(metadata()), "protocol")]
    )
    def test_what_is_missing_is_named(self, rows: pa.Table, what: str) -> None:
        ahead = ProtocolMetadata("/t", segment(*self.log), Goal(Wanted()))
        with pytest.raises(MissingActionError, match=f"no {what} up to version 2") as caught:
            ahead.next(rows)
        assert caught.value.hint

    def test_a_protocol_without_numbers(self) -> None:
        rows = actions({"protocol": {"minWriterVersion": 2}}, metadata())
        with pytest.raises(CorruptLogError, match="minReaderVersion is None"):
            ProtocolMetadata("/t", segment(*self.log), Goal(Wanted())).next(rows)

    def test_for_a_moment_the_times_of_commits_are_next(self) -> None:
        goal = Goal(Wanted(millis=3), (log_file(names.commit_name(0)),))
        rows = actions(protocol(), metadata())
        phase(ProtocolMetadata("/t", segment(*self.log), goal).next(rows), CommitTimes)

    def test_an_unreadable_file_is_named_for_what_it_is(self) -> None:
        ahead = ProtocolMetadata("/t", segment(*self.log), Goal(Wanted()))
        kinds = {
            names.checkpoint_name(0): CheckpointError,
            f"{names.SIDECARS}/x.parquet": CheckpointError,
            names.commit_name(2): CorruptLogError,
            names.compaction_name(1, 2): CorruptLogError,
            names.staged_name(2, UNIQUE.format(1)): CorruptLogError,
        }
        for name, kind in kinds.items():
            failure = SourceError("no", engine="x", path=f"file:///t/_delta_log/{name}")
            told = ahead.failed(failure)
            assert type(told) is kind
            assert name.rpartition("/")[2] in told.message
            assert told.hint
        elsewhere = SourceError("no", engine="x", path="/elsewhere/x.parquet")
        assert ahead.failed(elsewhere) is elsewhere


class TestUpdateLog:
    def snapshot(self, *listed: str) -> Snapshot:
        given = Metadata.from_dict(metadata()["metaData"])
        return Snapshot(segment(*listed), Protocol(1, 2), given)

    def ahead(self, *listed: str) -> UpdateLog:
        return UpdateLog("/t", self.snapshot(*listed), Wanted())

    def test_nothing_new_is_the_same_snapshot(self) -> None:
        ahead = self.ahead(names.commit_name(0), names.commit_name(1))
        found = ahead.next(listing(*commits(1)))
        assert isinstance(found, Terminus)
        assert found.value is ahead.snapshot
        assert "from 00000000000000000001" in str(ahead.plan())

    def test_only_new_commits_are_read(self) -> None:
        found = self.ahead(names.commit_name(0)).next(listing(*commits(0, 1, 2)))
        ahead = phase(found, ProtocolMetadata)
        assert [file.name.version for file in ahead.later] == [2, 1]
        assert [file.name.version for file in ahead.segment.commits] == [0, 1, 2]

    def test_a_new_checkpoint_stands_for_old_commits_but_is_not_read(self) -> None:
        rows = listing(*commits(1, 2, 3), (names.checkpoint_name(2), 1))
        old = self.ahead(*map(names.commit_name, range(2)))
        ahead = phase(old.next(rows), ProtocolMetadata)
        assert [file.name.version for file in ahead.later] == [3, 2]
        assert ahead.segment.checkpoint.version == 2
        assert [file.name.version for file in ahead.segment.commits] == [3]

    def test_where_commits_were_cleaned_up_the_new_checkpoint_is_read(self) -> None:
        rows = listing(*commits(5, 6), (names.checkpoint_name(5), 1))
        old = self.ahead(names.checkpoint_name(1))
        ahead = phase(old.next(rows), ProtocolMetadata)
        assert (ahead.later, ahead.known) == (None, None)
        assert ahead.segment.checkpoint.version == 5

    def test_another_log_is_opened_anew(self) -> None:
        rows = listing((names.commit_name(0), 99), *commits(1))
        phase(self.ahead(names.commit_name(0)).next(rows), ReadHint)
        phase(self.ahead(names.commit_name(0)).next(listing()), ReadHint)

    def test_a_gap_is_an_error(self) -> None:
        with pytest.raises(LogGapError, match="lacks version 1"):
            self.ahead(names.commit_name(0)).next(listing(*commits(0, 2)))


# ---- whole logs


def live(table: Path, **how: Any) -> list[str]:
    return paths(delta_table(table, **how).files(columns=["path"])["path"].to_pylist())


def chain(table: Path, count: int) -> None:
    """Versions 0 to count - 1; each adds `<version>`, and from 2 on removes `<version - 2>`."""
    for version in range(count):
        lines = [add(str(version))]
        if not version:
            lines = [protocol(), metadata(), *lines]
        if version >= 2:
            lines.append(remove(str(version - 2)))
        commit(table, version, *lines)


def state(version: int) -> list[Action]:
    """What a checkpoint of that chain holds."""
    kept = [add(str(v)) for v in range(max(0, version - 1), version + 1)]
    gone = [remove(str(v)) for v in range(max(0, version - 1))]
    return [protocol(), metadata(), *gone, *kept]


def delete_commits(table: Path, upto: int) -> None:
    for version in range(upto + 1):
        (table / "_delta_log" / names.commit_name(version)).unlink()


ODD = [
    *(
        "0.json",
        "00000000000000000003.jsn",
        "000000000000000000003.json",
        "_commits",
        "3.checkpoint",
    ),
    *(".00000000000000000003.json.crc", "00000000000000000003.json.tmp", "notes.txt"),
    *("00000000000000000003.checkpoint.0000000003.0000000002.parquet", "99999999999999999999.json"),
    *("00000000000000000003.checkpoint.short-uuid.parquet", "00000000000000000009.zip"),
    "00000000000000000003.00000000000000000001.compacted.json",
]


def test_odd_names_in_the_log_mean_nothing(tmp_path: Path) -> None:
    chain(tmp_path, 3)
    for name in ODD:
        (tmp_path / "_delta_log" / name).write_text("not for readers")
    for folder in ("_sidecars", "_staged_commits", "00000000000000000005.json.d"):
        (tmp_path / "_delta_log" / folder).mkdir()
    staged = tmp_path / "_delta_log" / names.staged_name(3, UNIQUE.format(1))
    staged.write_text(json.dumps(add("staged")))
    assert delta_table(tmp_path).version == 2
    assert live(tmp_path) == ["1", "2"]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_gaps(tmp_path: Path, gone: int) -> None:
    chain(tmp_path, 4)
    (tmp_path / "_delta_log" / names.commit_name(gone)).unlink()
    with pytest.raises(LogGapError) as caught:
        delta_table(tmp_path)
    assert caught.value.hint
    if gone:
        assert delta_table(tmp_path, version=gone - 1).version == gone - 1
    with pytest.raises(LogGapError):
        delta_table(tmp_path, version=3)


def write_kind(table: Path, kind: str, version: int) -> None:
    """A checkpoint of each kind."""
    lines = state(version)
    head, files = lines[:2], lines[2:]
    unique = UNIQUE.format(1)
    if kind == "classic":
        checkpoint(table, version, *lines)
    elif kind == "parts":
        for part, some in enumerate(([*head, *files[:1]], files[1:2], files[2:]), start=1):
            checkpoint(table, version, *some, name=names.part_name(version, part, 3))
    else:
        suffix = "json" if "json" in kind else "parquet"
        marker = {"checkpointMetadata": {"version": version}}
        name = names.unique_checkpoint_name(version, unique, suffix)
        if kind.startswith("classic name"):
            name = names.checkpoint_name(version)
        if "sidecars" not in kind:
            checkpoint(table, version, marker, *lines, name=name)
            return
        sidecars = []
        for number, some in enumerate((files[:1], files[1:])):
            file = checkpoint(table, version, *some, name=f"{names.SIDECARS}/{number} %.parquet")
            path = f"{number}%20%25.parquet"
            sidecars.append({"sidecar": {"path": path, "sizeInBytes": file.stat().st_size}})
        checkpoint(table, version, marker, *head, *sidecars, name=name)


KINDS = [
    *("classic", "parts", "json", "parquet", "json, sidecars", "parquet, sidecars"),
    *("classic name, parquet", "classic name, parquet, sidecars"),
]


@pytest.mark.parametrize("hinted", [None, 2, 3, 1, 99, "garbage"])
@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_of_every_kind_with_every_hint(
    tmp_path: Path, kind: str, hinted: int | str | None
) -> None:
    chain(tmp_path, 5)
    write_kind(tmp_path, kind, 3)
    delete_commits(tmp_path, 3)
    if hinted is not None:
        hint(tmp_path, hinted if isinstance(hinted, str) else {"version": hinted, "size": 1})
    found = delta_table(tmp_path)
    assert found.snapshot.segment.checkpoint is not None
    assert (found.version, found.metadata.id) == (4, "a-table")
    assert live(tmp_path) == ["3", "4"]
    assert live(tmp_path, version=3) == ["2", "3"]
    with pytest.raises(VersionNotFoundError):
        delta_table(tmp_path, version=2)


def test_an_incomplete_checkpoint_does_not_count(tmp_path: Path) -> None:
    chain(tmp_path, 5)
    write_kind(tmp_path, "parts", 3)
    (tmp_path / "_delta_log" / names.part_name(3, 2, 3)).unlink()
    hint(tmp_path, {"version": 3, "parts": 3})
    found = delta_table(tmp_path)
    assert found.snapshot.segment.checkpoint is None
    assert live(tmp_path) == ["3", "4"]
    delete_commits(tmp_path, 2)
    with pytest.raises(LogGapError, match="begins at version 3"):
        delta_table(tmp_path)


def test_of_several_checkpoints_at_one_version_one_is_read(tmp_path: Path) -> None:
    chain(tmp_path, 5)
    write_kind(tmp_path, "parts", 3)
    checkpoint(tmp_path, 3, *state(3))
    (tmp_path / "_delta_log" / names.checkpoint_name(3)).write_bytes(b"not read")
    delete_commits(tmp_path, 3)
    assert live(tmp_path) == ["3", "4"]


@pytest.mark.parametrize("kind", ["classic", "parts", "parquet, sidecars"])
def test_an_unreadable_checkpoint_is_named_and_what_still_works(tmp_path: Path, kind: str) -> None:
    chain(tmp_path, 5)
    write_kind(tmp_path, kind, 3)
    names_of = {
        "classic": names.checkpoint_name(3),
        "parts": names.part_name(3, 2, 3),
        "parquet, sidecars": f"{names.SIDECARS}/1 %.parquet",
    }
    file = tmp_path / "_delta_log" / names_of[kind]
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CheckpointError) as caught:
        live(tmp_path)
    assert file.name in str(caught.value)
    assert "every commit" in str(caught.value)
    assert live(tmp_path, version=2) == ["1", "2"]
    if kind != "parquet, sidecars":
        file.unlink()
        assert live(tmp_path) == ["3", "4"]


def test_a_checkpoint_whose_files_are_of_another_type(tmp_path: Path) -> None:
    chain(tmp_path, 2)
    file = checkpoint(tmp_path, 1, protocol(), metadata(), add("1"))
    rows = pq.read_table(file)
    texts = pa.array([None, None, "1"])
    pq.write_table(rows.set_column(rows.schema.get_field_index("add"), "add", texts), file)
    with pytest.raises(CheckpointError, match=r"column add of .* is .*string"):
        live(tmp_path)


def test_a_sidecar_that_is_gone(tmp_path: Path) -> None:
    chain(tmp_path, 5)
    write_kind(tmp_path, "parquet, sidecars", 3)
    (tmp_path / "_delta_log" / names.SIDECARS / "1 %.parquet").unlink()
    with pytest.raises(CheckpointError, match=r"1 %\.parquet"):
        live(tmp_path)


def test_an_unreadable_commit_is_named(tmp_path: Path) -> None:
    chain(tmp_path, 3)
    file = tmp_path / "_delta_log" / names.commit_name(2)
    file.write_text(file.read_text()[:-9])
    with pytest.raises(CorruptLogError, match=names.commit_name(2)) as caught:
        live(tmp_path)
    assert caught.value.hint == "version=1 may still be readable"
    assert live(tmp_path, version=1) == ["0", "1"]


def test_compactions_are_read_instead_of_commits(tmp_path: Path) -> None:
    chain(tmp_path, 5)
    compacted = tmp_path / "_delta_log" / names.compaction_name(1, 3)
    rows = [add("2"), add("3"), remove("0"), remove("1"), metadata()]
    compacted.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for version in (1, 2, 3):
        (tmp_path / "_delta_log" / names.commit_name(version)).write_text("not read")
    assert live(tmp_path) == ["3", "4"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_checksum_is_believed_where_it_stands(tmp_path: Path, version: int) -> None:
    chain(tmp_path, 3)
    known = metadata()["metaData"] | {"id": "from the checksum"}
    text = json.dumps({**PROTOCOLS, "metadata": known})
    (tmp_path / "_delta_log" / names.checksum_name(version)).write_text(text)
    assert delta_table(tmp_path).metadata.id == "from the checksum"
    commit(tmp_path, 3, metadata() | {"protocol": None})
    assert delta_table(tmp_path).metadata.id == "a-table"


@pytest.mark.parametrize("text", ["", "{", '{"protocol": {}}'])
def test_a_garbled_checksum_is_as_none(tmp_path: Path, text: str) -> None:
    chain(tmp_path, 3)
    (tmp_path / "_delta_log" / names.checksum_name(2)).write_text(text)
    assert delta_table(tmp_path).metadata.id == "a-table"


def test_a_checksum_without_a_commit_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / names.checksum_name(0)).write_text(json.dumps(CHECKSUM))
    with pytest.raises(TableNotFoundError):
        delta_table(tmp_path)


@pytest.mark.parametrize("place", ["nowhere", "file", "empty"])
def test_what_is_no_table(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(TableNotFoundError, match="contains _delta_log"):
        delta_table(tmp_path / place)


def test_unknown_actions_and_members_are_ignored(tmp_path: Path) -> None:
    more = add("a", shape={"round": True}, stats=None)
    begin(tmp_path, more, {"hologram": {"path": "b"}}, {"add": None, "remove": None})
    assert live(tmp_path) == ["a"]


@pytest.mark.parametrize("version", [-1, True, "3", 1.0])
def test_what_is_no_version(version: Any) -> None:
    with pytest.raises(VersionNotFoundError, match="is no version"):
        SnapshotBuilder("/t").at_version(version)


def test_what_is_no_location() -> None:
    with pytest.raises(ConfigError, match="no place of a table"):
        delta_table("")


def test_update_reads_what_is_new_and_follows_checkpoints(tmp_path: Path) -> None:
    chain(tmp_path, 2)
    first = delta_table(tmp_path)
    assert first.update() is first
    chain(tmp_path, 5)
    write_kind(tmp_path, "classic", 3)
    for version in (0, 1):  # as they were: only their times would tell another log
        file = tmp_path / "_delta_log" / names.commit_name(version)
        seen = first.snapshot.segment.commits[version]
        os.utime(file, (seen.modified / 1000, seen.modified / 1000))
    newer = first.update()
    assert (first.version, newer.version) == (1, 4)
    assert newer.snapshot.segment.checkpoint is not None
    assert paths(newer.files()["path"].to_pylist()) == ["3", "4"]
    commit(tmp_path, 5, metadata(Struct.of(n=LONG, s=STRING)), add("5"))
    assert newer.update().schema == Struct.of(n=LONG, s=STRING)
    delete_commits(tmp_path, 4)
    checkpoint(tmp_path, 5, *state(5)[:2], add("5"))
    assert paths(first.update().files()["path"].to_pylist()) == ["5"]


def test_a_catalogs_commits_complete_the_log(tmp_path: Path) -> None:
    stated = {"enableInCommitTimestamps": "true"}
    managed = ["catalogManaged"]
    commit(tmp_path, 0, protocol(features=managed), metadata(**stated), add("0"))
    commit(tmp_path, 1, add("not ratified"))
    tail = []
    for version in (1, 2):
        name = names.staged_name(version, UNIQUE.format(version))
        file = tmp_path / "_delta_log" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(add(f"ratified {version}")))
        parsed = names.parse_staged_name(file.name)
        assert parsed is not None
        tail.append(LogFile(str(file), parsed, file.stat().st_size, 0))
    with pytest.raises(UnsupportedFeatureError, match="managed by a catalog"):
        delta_table(tmp_path)
    builder = SnapshotBuilder(tmp_path).with_log_tail(tail[::-1])
    found = DeltaTable(builder.build())
    assert found.version == 2
    assert paths(found.files()["path"].to_pylist()) == ["0", "ratified 1", "ratified 2"]
    with pytest.raises(CorruptLogError, match="gaps"):
        SnapshotBuilder(tmp_path).with_log_tail([tail[0], tail[0]])


@pytest.mark.parametrize(
    ("healthy", "kind", "failing"),
    [
        (0, "at once", "ReadHint"),
        (1, "at once", "ListLog"),
        (1, "in the middle", "ListLog"),
        (2, "at once", "ProtocolMetadata"),
        (2, "in the middle", "ProtocolMetadata"),
    ],
)
def test_an_engine_that_fails_is_asked_again(
    tmp_path: Path, healthy: int, kind: str, failing: str
) -> None:
    chain(tmp_path, 3)
    engine: Any = Failing(["no"] * healthy + [kind])
    machine: StateMachine[Snapshot] = SnapshotBuilder(tmp_path).machine(engine)
    with pytest.raises(PhaseError) as caught:
        machine.run_to_terminal()
    assert caught.value.phase == machine.phase == failing
    assert machine.run_to_terminal().version == 2
