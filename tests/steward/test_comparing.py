"""What changed between moments of a pond, between versions, between nodes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import millpond as mp
from millpond.base import errors as e
from millpond.steward.comparing import contents, rows
from millpond.steward.comparing.nodes import NodeDiff, Side, compare_nodes
from millpond.steward.comparing.trees import compare_trees
from millpond.steward.temporal.bounds import set_bounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millpond.steward.comparing.rows import RowDiff
    from millpond.steward.pond import Pond
    from millpond.steward.write import WriteScope


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def do(pond: Pond, act: Callable[[WriteScope], object]) -> None:
    with pond.write() as tx:
        act(tx)
        tx.commit()


def _write(path: str, content: bytes, tx: WriteScope, *, series: bool = False) -> None:
    tx.write_bytes(path, content, series=series)


def _append(number: int, tx: WriteScope) -> None:
    tx.append_series("/s", [{"time": at(1 + number), "n": number}])


def at(day: int) -> datetime:
    return datetime(2024, 5, day, tzinfo=UTC)


def compared(pond: Pond, old: str, new: str, **how: Any) -> NodeDiff:
    scope = pond.read()
    return compare_nodes(Side(scope, old, old), Side(scope, new, new), **how)


def row_diff(pond: Pond, old: str, new: str, **how: Any) -> RowDiff:
    found = compared(pond, old, new, **how).rows
    assert found is not None
    return found


class TestTrees:
    def changes(self, pond: Pond, prefix: str = "/", *, since: int = 1) -> list[Any]:
        found = compare_trees(pond.read(as_of=since), pond.read(), prefix)
        return [(c.change, c.path, c.old_path, c.old_version, c.new_version) for c in found]

    @pytest.fixture
    def full(self, pond: Pond) -> Pond:
        def first(tx: WriteScope) -> None:
            tx.make_directory("/d/e", parents=True)
            tx.write_bytes("/d/e/f", b"1")
            tx.write_bytes("/g", b"1")
            tx.append_series("/s", [{"time": at(1)}])

        do(pond, first)
        return pond

    def test_nothing(self, full: Pond) -> None:
        assert self.changes(full) == []

    def test_what_came_and_went(self, full: Pond) -> None:
        def then(tx: WriteScope) -> None:
            tx.remove("/d", recursive=True)
            tx.make_directory("/new")
            tx.write_bytes("/new/x", b"")

        do(full, then)
        assert self.changes(full) == [
            ("removed", "/d", None, 1, None),
            ("removed", "/d/e", None, 1, None),
            ("removed", "/d/e/f", None, 1, None),
            ("added", "/new", None, None, 1),
            ("added", "/new/x", None, None, 1),
        ]
        assert [change[1] for change in self.changes(full, "/new")] == ["/new", "/new/x"]

    def test_versions(self, full: Pond) -> None:
        for content in (b"2", b"3"):
            do(full, partial(_write, "/g", content))
        assert self.changes(full) == [("changed", "/g", None, 1, 3)]
        assert self.changes(full, "/g", since=2) == [("changed", "/g", None, 2, 3)]
        assert self.changes(full, "/d") == []

    def test_a_directory_that_was_moved_is_one_change(self, full: Pond) -> None:
        do(full, lambda tx: tx.move("/d", "/moved"))
        assert self.changes(full) == [("moved", "/moved", "/d", 1, 1)]

        def then(tx: WriteScope) -> None:
            tx.write_bytes("/moved/e/f", b"2")
            tx.move("/g", "/moved/h")

        do(full, then)
        assert self.changes(full) == [
            ("moved", "/moved", "/d", 1, 1),
            ("changed", "/moved/e/f", None, 1, 2),
            ("moved", "/moved/h", "/g", 1, 1),
        ]

    def test_what_was_removed_and_made_again_is_another_node(self, full: Pond) -> None:
        do(full, lambda tx: tx.remove("/g"))
        do(full, lambda tx: tx.write_bytes("/g", b"1"))
        assert self.changes(full) == [
            ("added", "/g", None, None, 1),
            ("removed", "/g", None, 1, None),
        ]

    def test_bounds(self, full: Pond) -> None:
        do(full, lambda tx: set_bounds(tx, ["/s"], first=at(1)))
        (change,) = compare_trees(full.read(as_of=1), full.read())
        assert (change.change, change.path, change.what) == ("changed", "/s", "min_override")


class TestContents:
    def test_texts_line_by_line(self, pond: Pond) -> None:
        for text in ("a\nb\nc\n", "a\nB\nc\nd"):
            do(pond, partial(_write, "/f", text.encode()))
        found = compared(pond, "/f@v1", "/f@v2").contents
        assert found is not None
        assert found.lines == (
            "--- /f@v1", "+++ /f@v2", "@@ -1,3 +1,4 @@", " a", "-b", "+B", " c", "+d",
            "\\ No newline at end of file",
        )  # fmt: skip

    def test_the_same(self, pond: Pond) -> None:
        def first(tx: WriteScope) -> None:
            for path in ("/a", "/b"):
                tx.write_bytes(path, b"x" * 100_000)

        do(pond, first)
        assert compared(pond, "/a", "/b").is_same

    def test_series_of_bytes_are_what_they_were_at_a_version(self, pond: Pond) -> None:
        for text in (b"one\n", b"two\n"):
            do(pond, partial(_write, "/log", text, series=True))
        found = compared(pond, "/log@v1", "/log@v2").contents
        assert found is not None
        assert found.lines is not None
        assert found.lines[2:] == ("@@ -1 +1,2 @@", " one", "+two")
        do(pond, lambda tx: tx.write_bytes("/whole", b"one\ntwo\n"))
        assert compared(pond, "/log", "/whole").is_same

    @pytest.mark.parametrize(
        ("old", "new", "position"),
        [
            (b"\0abc", b"\0abd", 3),
            (b"\xff", b"\xff\xff", 1),
            (b"", b"\0", 0),
            (b"\0" + b"x" * 200_000, b"\0" + b"x" * 150_000 + b"y" * 50_000, 150_001),
        ],
    )
    def test_bytes_that_are_no_text(
        self, pond: Pond, old: bytes, new: bytes, position: int
    ) -> None:
        do(pond, lambda tx: tx.write_bytes("/f", old))
        do(pond, lambda tx: tx.write_bytes("/f", new))
        found = compared(pond, "/f@v1", "/f@v2").contents
        assert found is not None
        assert (found.lines, found.first_difference) == (None, position)
        assert (found.old_size, found.new_size) == (len(old), len(new))

    def test_long_texts_are_not_shown(self, pond: Pond, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(contents, "TEXT_BYTES", 10)
        do(pond, lambda tx: tx.write_bytes("/f", b"short"))
        do(pond, lambda tx: tx.write_bytes("/f", b"shortly before noon"))
        found = compared(pond, "/f@v1", "/f@v2").contents
        assert found is not None
        assert (found.lines, found.first_difference) == (None, 5)


class TestRows:
    def test_appends_are_the_rows_of_new_files(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.append_series("/s", [{"time": at(1), "n": 1}]))
        do(pond, lambda tx: tx.append_series("/s", [{"time": at(2), "n": 2, "new": "x"}]))
        found = row_diff(pond, "/s@v1", "/s@v2")
        assert (found.added, found.removed, found.by) == (1, 0, "files")
        assert found.added_rows == ('{"time":"2024-05-02T00:00:00Z","n":2,"new":"x"}',)
        assert found.columns == ("+ new: string",)
        back = row_diff(pond, "/s@v2", "/s@v1")
        assert (back.added, back.removed, back.removed_rows) == (0, 1, found.added_rows)

    def test_rows_that_were_written_anew_are_no_difference(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.write_table("/t", [{"n": n % 3} for n in range(9)]))
        do(pond, lambda tx: tx.write_table("/t", [{"n": n % 3} for n in range(8)] + [{"n": 7}]))
        found = row_diff(pond, "/t@v1", "/t@v2")
        assert (found.added, found.removed, found.by) == (1, 1, "rows")
        assert (found.added_rows, found.removed_rows) == (('{"n":7}',), ('{"n":2}',))
        do(pond, lambda tx: tx.write_table("/t", [{"n": n % 3} for n in range(9)]))
        assert row_diff(pond, "/t@v1", "/t@v3").is_same

    def test_columns_that_are_new_are_null_before(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.write_table("/t", [{"n": 1}, {"n": 2}]))
        do(pond, lambda tx: tx.write_table("/t", [{"n": 1, "x": None}, {"n": 2, "x": 5}]))
        found = row_diff(pond, "/t@v1", "/t@v2")
        assert found.columns == ("+ x: long",)
        assert (found.added_rows, found.removed_rows) == (
            ('{"n":2,"x":5}',), ('{"n":2,"x":null}',),
        )  # fmt: skip

    def test_wider_types(self, pond: Pond) -> None:
        small = pa.table({"n": pa.array([1, 2], pa.int32())})
        do(pond, lambda tx: tx.write_table("/t", small))
        do(pond, lambda tx: tx.write_table("/t", pa.table({"n": [1, 2**40]})))
        found = row_diff(pond, "/t@v1", "/t@v2")
        assert found.columns == ("~ n: integer -> long",)
        assert (found.added, found.removed) == (1, 1)

    def test_two_tables(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.write_table("/a", [{"n": 1}, {"n": 2}]))
        do(pond, lambda tx: tx.write_table("/b", [{"n": 2}, {"n": 1}]))
        assert compared(pond, "/a", "/b").is_same
        do(pond, lambda tx: tx.write_table("/c", [{"other": "x"}]))
        found = row_diff(pond, "/a", "/c")
        assert found.columns == ("- n: long", "+ other: string")
        assert (found.added, found.removed) == (1, 2)

    def test_types_with_nothing_in_common_are_counted(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.write_table("/a", [{"n": 1}, {"n": 2}]))
        do(pond, lambda tx: tx.write_table("/b", [{"n": "x"}]))
        found = row_diff(pond, "/a", "/b")
        assert (found.added, found.removed, found.by) == (1, 2, "counts")
        assert found.columns == ("~ n: long -> string",)

    def test_too_many_rows_are_counted_and_that_is_said(
        self, pond: Pond, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "MOST_ROWS", 3)
        do(pond, lambda tx: tx.write_table("/t", [{"n": 1}, {"n": 2}]))
        do(pond, lambda tx: tx.write_table("/t", [{"n": 1}, {"n": 2}]))
        found = row_diff(pond, "/t@v1", "/t@v2")
        assert (found.added, found.removed, found.by) == (2, 2, "counts")

    def test_compaction_is_no_difference(self, pond: Pond) -> None:
        for number in range(10):
            do(pond, partial(_append, number))
        seq = pond.read().txn_seq
        before = pond.read()
        assert "/s" in {done.path for done in pond.maintain().compacted}
        assert compare_trees(pond.read(as_of=seq), pond.read()) == []
        old, new = Side(before, "/s", "old"), Side(pond.read(), "/s", "new")
        assert compare_nodes(old, new).is_same
        found = row_diff(pond, "/s@v9", "/s@v10")
        assert (found.added, found.removed) == (1, 0)

    def test_odd_values(self, pond: Pond) -> None:
        nan = float("nan")
        first = [{"x": nan, "deep": {"a": [1]}, "text": "a\u2028b\nc"}]
        do(pond, lambda tx: tx.write_table("/t", first))
        do(pond, lambda tx: tx.write_table("/t", first))
        assert row_diff(pond, "/t@v1", "/t@v2").is_same
        do(pond, lambda tx: tx.write_table("/t", [{**first[0], "deep": {"a": [2]}}]))
        found = row_diff(pond, "/t@v2", "/t@v3")
        assert (found.added, found.removed) == (1, 1)

    def test_a_limit_of_what_is_shown(self, pond: Pond) -> None:
        do(pond, lambda tx: tx.write_table("/t", [{"n": n} for n in range(20)]))
        do(pond, lambda tx: tx.write_table("/t", [{"n": n} for n in range(100, 120)]))
        found = row_diff(pond, "/t@v1", "/t@v2", limit=3)
        assert (found.added, found.removed) == (20, 20)
        assert len(found.added_rows) == len(found.removed_rows) == 3
        assert row_diff(pond, "/t@v1", "/t@v2", limit=0).added_rows == ()


def test_what_can_not_be_compared(pond: Pond) -> None:
    def first(tx: WriteScope) -> None:
        tx.make_directory("/d")
        tx.write_bytes("/f", b"")
        tx.write_table("/t", [{"n": 1}])

    do(pond, first)
    with pytest.raises(e.PathTypeError, match="is a table"):
        compared(pond, "/f", "/t")
    with pytest.raises(e.DirectoryError):
        compared(pond, "/d", "/d")
    with pytest.raises(e.PathNotFoundError):
        compared(pond, "/f", "/f@v2")
