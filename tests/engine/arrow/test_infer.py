"""`scan(paths)`: which files, which schema, which statistics."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import PlanError, SchemaError, SourceError
from millpond.engine.arrow import scan
from millpond.plan import types as t
from millpond.plan.sources import CsvOptions, Scan

DATA = pa.table({"a": [1, 2, None], "s": [{"x": "p"}, {"x": "q"}, None], "l": [[1], [], None]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.parquet", "a.parquet"):
        pq.write_table(DATA, tmp_path / name)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.parquet").write_text("")
    return tmp_path


def paths(plan: object) -> list[str]:
    assert isinstance(plan, Scan)
    return [Path(file.path).name for file in plan.files]


def test_one_many_directory_pattern(run: Any, folder: Path) -> None:
    assert paths(scan(folder / "b.parquet")) == ["b.parquet"]
    assert paths(scan([folder / "b.parquet", str(folder / "a.parquet")])) == [
        "b.parquet",
        "a.parquet",
    ]
    assert paths(scan(folder)) == ["a.parquet", "b.parquet"]
    assert paths(scan(f"{folder}/*.parquet")) == ["a.parquet", "b.parquet"]
    assert paths(scan((folder / "b.parquet").as_uri())) == ["b.parquet"]
    assert len(run(scan(folder))[0]) == 6


def test_sizes_rows_and_statistics(folder: Path) -> None:
    plan = scan(folder)
    assert isinstance(plan, Scan)
    assert [file.rows for file in plan.files] == [3, 3]
    assert plan.files[0].size == (folder / "a.parquet").stat().st_size
    known = {stats.path: stats for stats in plan.stats}
    assert (known["a"].min, known["a"].max) == (1, 2)
    assert known["a"].null_fraction == pytest.approx(1 / 3)
    assert (known["s.x"].min, known["s.x"].max) == ("p", "q")
    assert "l" not in known


def test_of_many_row_groups_some_tell_enough(tmp_path: Path) -> None:
    rows = pa.table({"n": range(1_000), "half": [None, 1] * 500, "late": [None] * 990 + [7] * 10})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=10)
    plan = scan(tmp_path / "a.parquet")
    assert isinstance(plan, Scan)
    known = {stats.path: stats for stats in plan.stats}
    assert (known["n"].min, known["n"].max, known["n"].null_fraction) == (0, 999, 0)
    assert known["half"].null_fraction == pytest.approx(0.5)
    assert known["late"].min == 7
    assert known["late"].null_fraction == pytest.approx(0.9)


def test_columns_and_schema(run: Any, folder: Path) -> None:
    assert scan(folder, columns=["l", "a"]).schema.names == ("l", "a")
    wide = t.Struct.of(a=t.DOUBLE, extra=t.STRING)
    with pytest.raises(SourceError, match="column a"):
        run(scan(folder, schema=wide))
    assert run(scan(folder, schema=t.Struct.of(extra=t.STRING)))[0][0] == {"extra": None}


def test_schemas_are_united_by_name(run: Any, tmp_path: Path) -> None:
    one = pa.table(
        {"n": pa.array([1], pa.int32()), "s": [{"x": 1}], "d": pa.array([1], pa.date32())}
    )
    two = pa.table(
        {
            "s": [{"y": "t", "x": 2}],
            "n": [2**40],
            "d": pa.array([1], pa.timestamp("ms")),
            "z": [1.5],
        }
    )
    pq.write_table(one, tmp_path / "1.parquet")
    pq.write_table(two, tmp_path / "2.parquet")
    plan = scan(tmp_path)
    assert plan.schema == t.Struct.of(
        n=t.LONG, s=t.Struct.of(x=t.LONG, y=t.STRING), d=t.TIMESTAMP_NTZ, z=t.DOUBLE
    )
    rows, _ = run(plan)
    assert rows[0] == {"n": 1, "s": {"x": 1, "y": None}, "d": dt.datetime(1970, 1, 2), "z": None}  # noqa: DTZ001
    assert rows[1]["n"] == 2**40


@pytest.mark.parametrize("other", [pa.array(["x"]), pa.array([1.5]), pa.array([{"n": 1}])])
def test_conflicts_name_both_files_and_types(other: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"n": other}), tmp_path / "2.parquet")
    with pytest.raises(
        SchemaError, match=r"column n is long in .*1\.parquet and .* in .*2\.parquet"
    ):
        scan(tmp_path)


def test_nanoseconds_are_read_as_microseconds(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([1500], pa.timestamp("ns"))}), tmp_path / "1.parquet")
    plan = scan(tmp_path / "1.parquet")
    assert plan.schema == t.Struct.of(at=t.TIMESTAMP_NTZ)
    assert run(plan)[0][0]["at"].microsecond == 1


def test_json_and_csv_are_inferred(run: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        '{"a": 1, "b": {"c": [1.5]}, "n": null}\n{"a": 2, "t": "x"}\n'
    )
    plan = scan(tmp_path / "x.jsonl")
    b = t.Struct.of(c=t.List(t.DOUBLE))
    assert plan.schema == t.Struct.of(a=t.LONG, b=b, n=t.STRING, t=t.STRING)
    assert [row["a"] for row in run(plan)[0]] == [1, 2]
    (tmp_path / "x.csv").write_text("a;day\n1;2024-05-31\n")
    plan = scan(tmp_path / "x.csv", csv=CsvOptions(delimiter=";"))
    assert plan.schema == t.Struct.of(a=t.LONG, day=t.DATE)
    assert run(plan)[0] == [{"a": 1, "day": dt.date(2024, 5, 31)}]
    given = scan(tmp_path / "x.csv", csv=CsvOptions(delimiter=";"), schema=t.Struct.of(a=t.STRING))
    assert run(given)[0] == [{"a": "1"}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{\n  "a": 1\n}\n', 1),
        ('{"a": 1}\n\n{"a": 2, "b', 3),
        ('[{"a": 1}]\n', 1),
        ('{"a": 1} {"a": 2}\n', 1),
    ],
)
def test_json_that_is_not_one_object_a_line_is_refused(
    text: str, line: int, tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(
        SourceError, match=rf"line {line} of .*x\.json is not a JSON object"
    ) as caught:
        scan(tmp_path / "x.json")
    assert "one JSON object per line" in str(caught.value.hint)


def test_csv_that_repeats_a_name_or_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(SourceError, match=r"x\.csv names 2 columns 'a'"):
        scan(tmp_path / "x.csv")
    (tmp_path / "y.csv").write_bytes("a,b\n1,é\n".encode("latin-1"))
    with pytest.raises(SourceError, match=r"y\.csv can't be read: column b is not UTF-8"):
        scan(tmp_path / "y.csv")


@pytest.mark.parametrize(
    "array",
    [pa.array([1], pa.uint64()), pa.array([1], pa.time64("us"))],
    ids=lambda array: str(array.type),
)
def test_a_column_that_cannot_be_read_can_be_left_out(
    array: pa.Array, run: Any, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"c": array, "k": [7]}), tmp_path / "x.parquet")
    with pytest.raises(SchemaError, match=r"column c of .*x\.parquet") as caught:
        scan(tmp_path / "x.parquet")
    assert "columns=[...]" in str(caught.value.hint)
    assert run(scan(tmp_path / "x.parquet", columns=["k"]))[0] == [{"k": 7}]
    assert run(scan(tmp_path / "x.parquet", schema=t.Struct.of(k=t.LONG)))[0] == [{"k": 7}]
    with pytest.raises(SchemaError, match="column c of"):
        scan(tmp_path / "x.parquet", columns=["c"])


def test_columns_that_conflict_can_be_left_out(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "k": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"], "k": [2]}), tmp_path / "2.parquet")
    with pytest.raises(SchemaError, match="column a is long in"):
        scan(tmp_path)
    assert run(scan(tmp_path, columns=["k"]))[0] == [{"k": 1}, {"k": 2}]


def test_a_repeated_column_names_its_file(run: Any, tmp_path: Path) -> None:
    one = pa.array([1])
    pq.write_table(pa.table([one, one, one], names=["a", "b", "a"]), tmp_path / "x.parquet")
    with pytest.raises(SchemaError, match=r"column a of .*x\.parquet: 2 columns"):
        scan(tmp_path / "x.parquet")
    assert run(scan(tmp_path / "x.parquet", columns=["b"]))[0] == [{"b": 1}]


def test_tabs(run: Any, tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("a\tb\n1\tx,y\n")
    assert run(scan(tmp_path / "x.tsv"))[0] == [{"a": 1, "b": "x,y"}]
    (tmp_path / "z.tsv").write_text("a;b\n1;2\n")
    given = scan(tmp_path / "z.tsv", csv=CsvOptions(delimiter=";"))
    assert run(given)[0] == [{"a": 1, "b": 2}]
    (tmp_path / "y.csv").write_text("a,b\n1,2\n")
    with pytest.raises(PlanError, match="different formats"):
        scan(tmp_path)


def test_what_the_system_refuses_is_an_error_of_ours(tmp_path: Path, monkeypatch: Any) -> None:
    with pytest.raises(SourceError, match="too long"):
        scan(tmp_path / f"{'x' * 300}.csv")

    def denied(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(SourceError, match="Permission denied") as caught:
        scan(tmp_path)
    assert caught.value.path == str(tmp_path)
    assert "may read" in str(caught.value.hint)


def test_clear_errors(folder: Path) -> None:
    with pytest.raises(PlanError, match="list is empty"):
        scan([])
    with pytest.raises(SourceError, match="no file matches"):
        scan(f"{folder}/*.json")
    with pytest.raises(SourceError, match="there is no file"):
        scan(folder / "nothing.parquet")
    (folder / "x.txt").write_text("")
    with pytest.raises(PlanError, match=r"format of .*x\.txt is not known"):
        scan(folder / "x.txt")
    (folder / "y.csv").write_text("a\n1\n")
    with pytest.raises(PlanError, match="different formats"):
        scan([folder / "a.parquet", folder / "y.csv"])
    (folder / "broken.parquet").write_text("PAR1")
    with pytest.raises(SourceError, match=r"broken\.parquet can't be read"):
        scan(folder / "broken.parquet")
    (folder / "empty.json").write_text("\n")
    with pytest.raises(SchemaError, match="shows no columns"):
        scan(folder / "empty.json")
