"""What several places together hold: bytes behind each other, rows united by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import millpond as mp
from millpond.base import errors as e
from millpond.steward.places import parse_place
from millpond.steward.rows.selection import Which, select

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond
    from millpond.steward.rows.selection import Selection


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.make_directory("/s/deep", parents=True)
        tx.append_series("/s/a", [{"timestamp": at(1), "n": 1}])
        tx.append_series("/s/b", [{"timestamp": at(2), "n": 2, "name": "b"}])
        tx.append_series("/s/deep/c", pa.table({"time": times(3), "n": pa.array([3], pa.int32())}))
        tx.write_table("/t", [{"n": 1}])
        tx.write_bytes("/x.txt", b"x\n")
        tx.write_bytes("/y.txt", b"y\n")
        tx.commit()
    with pond.write() as tx:
        tx.append_series("/s/a", [{"timestamp": at(4), "n": 4}])
        tx.commit()
    return pond


def at(day: int) -> datetime:
    return datetime(2024, 5, day, tzinfo=UTC)


def times(*days: int) -> pa.Array:
    return pa.array([at(day) for day in days], pa.timestamp("us", "UTC"))


def chosen(pond: Pond | None, *texts: str, **which: Any) -> Selection:
    def scope() -> Any:
        assert pond is not None, "no pond is needed for files of this machine"
        return pond.read()

    return select([parse_place(text) for text in texts], scope, Which(**which))


def rows(pond: Pond | None, *texts: str, **which: Any) -> list[Any]:
    plan = chosen(pond, *texts, **which).plan
    assert plan is not None
    return plan.to_pylist(engine="arrow")


class TestPond:
    def test_bytes_come_one_behind_the_other(self, pond: Pond) -> None:
        for texts in (("/*.txt",), ("/x.txt", "/y.txt")):
            found = chosen(pond, *texts)
            assert found.chunks is not None
            assert b"".join(found.chunks) == b"x\ny\n"
            assert found.names == ("/x.txt", "/y.txt")

    def test_rows_are_united_by_name(self, pond: Pond) -> None:
        assert rows(pond, "/s/*") == [
            {"timestamp": at(1), "n": 1, "name": None},
            {"timestamp": at(4), "n": 4, "name": None},
            {"timestamp": at(2), "n": 2, "name": "b"},
        ]

    def test_narrower_types_become_wider(self, pond: Pond) -> None:
        found = chosen(pond, "/s/**").plan
        assert found is not None
        assert str(found.schema.field("n").type) == "long"
        assert [row["n"] for row in found.to_pylist(engine="arrow")] == [1, 4, 2, 3]
        assert found.schema.names == ("timestamp", "n", "name", "time")

    def test_types_that_have_nothing_in_common_name_both_paths(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/u", [{"n": "one"}])
            tx.commit()
        with pytest.raises(e.SchemaError) as caught:
            chosen(pond, "/t", "/u")
        for part in ("'n'", "long in /t", "string in /u"):
            assert part in caught.value.message

    def test_nested_types_that_differ_name_both_paths(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_table("/v", [{"deep": {"a": 1}}])
            tx.write_table("/w", [{"deep": {"b": 1}}])
            tx.commit()
        with pytest.raises(e.SchemaError, match=r"/v.* and .*/w"):
            chosen(pond, "/v", "/w")

    def test_times_hold_for_each(self, pond: Pond) -> None:
        found = rows(pond, "/s/**", time_start=at(2), time_end=at(3))
        assert [row["n"] for row in found] == [2, 3]

    def test_versions(self, pond: Pond) -> None:
        assert [row["n"] for row in rows(pond, "/s/a", version=1)] == [1]
        assert [row["n"] for row in rows(pond, "/s/a@v2")] == [4]
        assert [row["n"] for row in rows(pond, "/s/a@v1", version=1)] == [1]
        with pytest.raises(e.PathTypeError):
            rows(pond, "/s/a@v1", version=2)
        with pytest.raises(e.PathNotFoundError, match="no version 2"):
            rows(pond, "/s/*", version=2)

    @pytest.mark.parametrize(
        ("texts", "kind", "hint"),
        [
            (("/",), e.DirectoryError, "pond list"),
            (("/s",), e.DirectoryError, "/s/*"),
            (("/nope",), e.PathNotFoundError, "/ has"),
            (("/x.tx",), e.PathNotFoundError, "/x.txt"),
            (("/s/x*",), e.PathNotFoundError, "/s has a, b, deep"),
            (("/no/x*",), e.PathNotFoundError, "there is nothing at /no"),
            (("/x.txt/*",), e.NoDirectoryError, "/x.txt is where it ends"),
            (("/x.txt", "/t"), e.PathTypeError, "read them apart"),
        ],
    )
    def test_what_can_not_be(
        self, pond: Pond, texts: tuple[str, ...], kind: type[e.MillpondError], hint: str
    ) -> None:
        with pytest.raises(kind) as caught:
            chosen(pond, *texts)
        assert hint in (caught.value.hint or "")

    def test_bytes_and_tables_have_no_time(self, pond: Pond) -> None:
        for path in ("/x.txt", "/t"):
            with pytest.raises(e.PathTypeError, match="time"):
                chosen(pond, path, time_start=at(1))

    def test_a_name_with_the_letters_of_patterns_is_itself(self, pond: Pond) -> None:
        with pond.write() as tx:
            tx.write_bytes("/[x].txt", b"odd")
            tx.commit()
        found = chosen(pond, "/[x].txt")
        assert found.names == ("/[x].txt",)


class TestHost:
    def test_parquet(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "1.parquet")
        pq.write_table(pa.table({"a": [2], "b": ["x"]}), tmp_path / "2.parquet")
        united = [{"a": 1, "b": None}, {"a": 2, "b": "x"}]
        assert rows(None, f"host+parquet://{tmp_path}/*.parquet") == united
        assert rows(None, f"host+parquet://{tmp_path}") == united
        assert rows(None, *(f"host+parquet://{tmp_path}/{n}.parquet" for n in (1, 2))) == united

    def test_csv_files_whose_numbers_look_different(self, tmp_path: Path) -> None:
        (tmp_path / "1.csv").write_text("v,w\n20,x\n")
        (tmp_path / "2.csv").write_text("u,v\n7,20.5\n")
        assert rows(None, f"host+csv://{tmp_path}/*.csv") == [
            {"v": 20.0, "w": "x", "u": None},
            {"v": 20.5, "w": None, "u": 7},
        ]

    def test_empty_files_beside_others_add_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "1.csv").write_text("")
        (tmp_path / "2.csv").write_text("v\n1\n")
        assert rows(None, f"host+csv://{tmp_path}/*.csv") == [{"v": 1}]

    def test_csv_files_that_do_not_fit_name_both(self, tmp_path: Path) -> None:
        (tmp_path / "1.csv").write_text("v\n20\n")
        (tmp_path / "2.csv").write_text("v\nhigh\n")
        with pytest.raises(e.SchemaError) as caught:
            rows(None, f"host+csv://{tmp_path}/*.csv")
        assert f"{tmp_path}/1.csv" in caught.value.message
        assert f"{tmp_path}/2.csv" in caught.value.message

    def test_json_lines_and_times(self, tmp_path: Path) -> None:
        lines = [f'{{"time": "2024-05-0{day} 00:00:00", "n": {day}}}\n' for day in (1, 2, 3)]
        (tmp_path / "a.jsonl").write_text("".join(lines))
        found = rows(None, f"host+json://{tmp_path}/a.jsonl", time_start=at(2), time_end=at(2))
        assert [row["n"] for row in found] == [2]

    def test_packed_csv(self, tmp_path: Path) -> None:
        import gzip

        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
        assert rows(None, f"host+csv://{tmp_path}/a.csv.gz") == [{"a": 1}]

    def test_delta_tables_have_versions(self, tmp_path: Path) -> None:
        from millpond.kernel.write.create import create_table
        from millpond.plan.types import LONG, Struct

        table = create_table(str(tmp_path / "d"), Struct.of(a=LONG))
        for value in (1, 2):
            tx = table.transaction()
            tx.overwrite([{"a": value}])
            tx.commit()
            table = table.update()
        place = f"host+delta://{tmp_path}/d"
        assert rows(None, place) == [{"a": 2}]
        assert rows(None, place, version=1) == [{"a": 1}]
        with pytest.raises(e.PathTypeError, match="transactions of a pond"):
            rows(None, place, as_of=1)
        with pytest.raises(e.VersionNotFoundError):
            rows(None, place, as_of=datetime(2001, 1, 1, tzinfo=UTC))

    def test_files_have_none(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("a\n1\n")
        for which in ({"version": 1}, {"as_of": 1}):
            with pytest.raises(e.PathTypeError, match="no versions"):
                rows(None, f"host+csv://{tmp_path}/a.csv", **which)

    def test_bytes(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"a\n1\n")
        found = chosen(None, f"host://{tmp_path}/a.csv")
        assert found.chunks is not None
        assert b"".join(found.chunks) == b"a\n1\n"

    @pytest.mark.parametrize(
        ("scheme", "content", "said"),
        [
            ("host+parquet", b"", "is not Parquet: it is empty"),
            ("host+parquet", b"a\n1\n", "is not Parquet"),
            ("host+csv", b"", "is empty"),
            ("host+csv", b"a,b\n1\n", "can't be read"),
            ("host+csv", b"a\n\xff\xfe\n", "UTF-8"),
            ("host+json", b"{oops", "line 1 of"),
            ("host+json", b"", "is empty"),
        ],
    )
    def test_files_that_are_not_what_is_said(
        self, tmp_path: Path, scheme: str, content: bytes, said: str
    ) -> None:
        (tmp_path / "f").write_bytes(content)
        with pytest.raises(e.MillpondError) as caught:
            rows(None, f"{scheme}://{tmp_path}/f")
        assert said in caught.value.message
        assert f"{tmp_path}/f" in caught.value.message

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "levels.csv").write_text("a\n1\n")
        for path in ("level.csv", "*.json"):
            with pytest.raises(e.ObjectNotFoundError) as caught:
                rows(None, f"host+csv://{tmp_path}/{path}")
            assert "levels.csv" in (caught.value.hint or "")
        (tmp_path / "empty").mkdir()
        with pytest.raises(e.ObjectNotFoundError):
            rows(None, f"host+csv://{tmp_path}/empty")
        with pytest.raises(e.TableNotFoundError):
            rows(None, f"host+delta://{tmp_path}/empty")
