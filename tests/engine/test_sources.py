"""Sources that need files or a scope, on both engines: scans, listings, stored paths."""

from __future__ import annotations

import datetime as dt
import gzip
from dataclasses import dataclass
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import PlanError, SourceError
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.expr import col, path
from millpond.plan.make import list_files, stored, values
from millpond.plan.optimizer import optimize
from millpond.plan.sources import CsvOptions, File, Scan
from millpond.plan.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    List,
    Struct,
)

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor
    from millpond.plan.node import Plan
    from millpond.plan.sources import Stored


def rows(plan: Plan, engine: Executor, scope: Any = None) -> list[dict[str, Any]]:
    run = engine.execute(plan, scope)
    found: list[dict[str, Any]] = pa.Table.from_batches(list(run), schema=run.schema).to_pylist()
    return found


def write(folder: Path, name: str, data: dict[str, Any], **options: Any) -> File:
    target = folder / name
    pq.write_table(pa.table(data), target, **options)
    return File(str(target), target.stat().st_size)


def test_files_come_in_their_order_whatever_their_size(engine: Executor, tmp_path: Path) -> None:
    files: list[File] = []
    expected: list[int] = []
    for number, count in enumerate((3, 5000, 1, 400, 0, 20)):
        ids = list(range(len(expected), len(expected) + count))
        expected += ids
        data = {"id": pa.array(ids, pa.int64())}
        files.append(write(tmp_path, f"f{number}.parquet", data, row_group_size=100))
    plan = Scan("parquet", tuple(files), Struct.of(id=LONG))
    assert [r["id"] for r in rows(plan, engine)] == expected
    assert [r["id"] for r in rows(plan.head(5), engine)] == expected[:5]
    assert [r["id"] for r in rows(plan.tail(30), engine)] == expected[-30:]
    assert [r["id"] for r in rows(plan.take([5003, 0]), engine)] == [5003, 0]


def test_many_files_with_constants(engine: Executor, tmp_path: Path) -> None:
    files = []
    for number in range(45):
        file = write(tmp_path, f"{number:02d}.parquet", {"v": [number, number + 100]})
        files.append(File(file.path, file.size, 2, (f"day={number}", number % 3)))
    columns = Struct.of(part=STRING, v=LONG, third=INTEGER)
    plan = Scan("parquet", tuple(files), columns, ("part", "third"))
    found = rows(plan, engine)
    assert [r["v"] for r in found] == [v for n in range(45) for v in (n, n + 100)]
    assert found[3] == {"part": "day=1", "v": 101, "third": 1}
    narrow = optimize(plan.filter(col("third") == 2).select("part"))
    assert [r["part"] for r in rows(narrow, engine)][:4] == ["day=2", "day=2", "day=5", "day=5"]


def test_constants_of_every_type(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", {"v": [1]})
    given: dict[str, tuple[DataType, Any]] = {
        "i": (INTEGER, 7),
        "r": (DOUBLE, 1.5),
        "p": (Decimal(10, 2), D("1.25")),
        "d": (DATE, dt.date(1900, 3, 1)),
        "t": (TIMESTAMP, dt.datetime(2024, 1, 2, 3, 4, 5, 678901, dt.UTC)),
        "w": (TIMESTAMP_NTZ, dt.datetime(1899, 1, 2, 3, 4, 5, 678901)),  # noqa: DTZ001
        "b": (BOOLEAN, True),
        "n": (STRING, None),
        "s": (STRING, "a=b/c d%20é"),
    }
    columns = Struct.of(v=LONG, **{name: type_ for name, (type_, _) in given.items()})
    constants = tuple(value for _, value in given.values())
    plan = Scan("parquet", (File(file.path, None, None, constants),), columns, tuple(given))
    assert rows(plan, engine) == [{"v": 1, **{name: v for name, (_, v) in given.items()}}]


def test_missing_columns_are_null_and_narrow_ones_are_widened(
    engine: Executor, tmp_path: Path
) -> None:
    old = write(
        tmp_path,
        "old.parquet",
        {"a": pa.array([1], pa.int32()), "f": pa.array([0.5], pa.float32())},
    )
    nested = pa.array([{"x": 1}], pa.struct([("x", pa.int64())]))
    new = write(tmp_path, "new.parquet", {"f": [2.5], "a": [2**40], "o": nested})
    columns = Struct.of(a=LONG, f=DOUBLE, o=Struct.of(x=LONG, y=STRING), z=List(LONG))
    assert rows(Scan("parquet", (old, new), columns), engine) == [
        {"a": 1, "f": 0.5, "o": None, "z": None},
        {"a": 2**40, "f": 2.5, "o": {"x": 1, "y": None}, "z": None},
    ]


@pytest.mark.parametrize("copies", [1, 20])
def test_nanoseconds_are_rounded_down(engine: Executor, tmp_path: Path, copies: int) -> None:
    given = [1500, -1500, None, 2**63 - 1, -(2**63) + 1, -1, -1000, 999]
    floored = [None if x is None else x // 1000 for x in given]

    def data(unit: str, numbers: list[int | None]) -> dict[str, Any]:
        kind = pa.timestamp(unit)
        at = pa.array(numbers, kind)
        return {
            "at": at,
            "utc": at.cast(pa.timestamp(unit, "UTC")),
            "l": pa.array([[x] for x in at], pa.list_(kind)),
            "o": pa.array([None, *({"x": x} for x in at[1:])], pa.struct([("x", kind)])),
            "m": pa.array([[("k", x)] for x in at], pa.map_(pa.string(), kind)),
        }

    nanos = write(tmp_path, "ns.parquet", data("ns", given))
    micros = write(tmp_path, "us.parquet", data("us", floored))
    columns = from_arrow_schema(pa.table(data("us", floored)).schema)
    expected = rows(Scan("parquet", (micros,), columns), engine)
    both = Scan("parquet", (nanos, micros) * copies, columns)
    assert rows(both, engine) == expected * (2 * copies)


def test_a_file_that_was_written_anew_is_read_as_it_is(engine: Executor, tmp_path: Path) -> None:
    for unit, factor in (("ns", 1000), ("us", 1), ("ns", 1000)):
        times = pa.array([5 * factor], pa.int64()).view(pa.timestamp(unit))
        file = write(tmp_path, "a.parquet", {"at": times})
        plan = Scan("parquet", (file,), Struct.of(at=TIMESTAMP_NTZ))
        assert rows(plan, engine) == [{"at": dt.datetime(1970, 1, 1, 0, 0, 0, 5)}]  # noqa: DTZ001


def test_another_type_in_a_file_is_an_error_that_names_it(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "text.parquet", {"a": ["x"]})
    with pytest.raises(SourceError, match=r"text\.parquet"):
        rows(Scan("parquet", (file,), Struct.of(a=LONG)), engine)


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage"])
def test_a_damaged_file_is_named(engine: Executor, tmp_path: Path, damage: str) -> None:
    file = write(tmp_path, "dam aged.parquet", {"a": list(range(1000))})
    target = tmp_path / "dam aged.parquet"
    data = target.read_bytes()
    if damage == "missing":
        target.unlink()
    else:
        target.write_bytes(
            {"empty": b"", "cut": data[: len(data) // 2], "garbage": b"x" * 500}[damage]
        )
    with pytest.raises(SourceError, match=r"dam(%20| )aged\.parquet"):
        rows(Scan("parquet", (file,), Struct.of(a=LONG)), engine)


@pytest.mark.parametrize("format_", ["parquet", "json", "csv"])
def test_a_directory_is_no_file(engine: Executor, tmp_path: Path, format_: Any) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SourceError, match=r"folder.* is a directory"):
        rows(Scan(format_, (File(str(tmp_path / "folder")),), Struct.of(a=LONG)), engine)


def test_a_parquet_file_without_columns(engine: Executor, tmp_path: Path) -> None:
    file = write(tmp_path, "none.parquet", {})
    for columns in (Struct(), Struct.of(a=LONG)):
        with pytest.raises(SourceError, match=r"none\.parquet holds no columns"):
            rows(Scan("parquet", (file,), columns), engine)


def test_odd_file_names(engine: Executor, tmp_path: Path) -> None:
    names = [
        "a b.parquet",
        "p%20c.parquet",
        "h#x.parquet",
        "q?.parquet",
        "[1]{2}.parquet",
        "é日.parquet",
    ]
    files = tuple(write(tmp_path, name, {"n": [i]}) for i, name in enumerate(names))
    plan = Scan("parquet", files, Struct.of(n=LONG))
    assert [r["n"] for r in rows(plan, engine)] == list(range(len(names)))


def test_pruned_nested_leaves(engine: Executor, tmp_path: Path) -> None:
    table = pa.table(
        {
            "o": [
                {"x": 1, "y": "a", "l": [{"k": 1, "v": "p"}]},
                None,
                {"x": 3, "y": None, "l": None},
            ],
            "w": [1, 2, 3],
        }
    )
    file = write(tmp_path, "n.parquet", {name: table[name] for name in table.column_names})
    plan = Scan("parquet", (file,), from_arrow_schema(table.schema))
    narrow = optimize(plan.select(x=path("o.x"), k=path("o.l[*].k")))
    scan = next(
        n for n in [narrow, *narrow.children, *narrow.children[0].children] if isinstance(n, Scan)
    )
    assert str(scan.columns) == "struct<o: struct<x: long, l: list<struct<k: long>>>>"
    assert rows(narrow, engine) == [
        {"x": 1, "k": [1]},
        {"x": None, "k": None},
        {"x": 3, "k": None},
    ]


def test_json_lines(engine: Executor, tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    target.write_text(
        '{"a": 1, "s": "é", "o": {"x": [1, 2]}, "extra": true}\n'
        '{"s": null, "a": 9007199254740993, "t": "2024-01-02T03:04:05.5Z"}\n'
        "{}\n"
    )
    columns = Struct.of(a=LONG, s=STRING, o=Struct.of(x=List(LONG)), t=TIMESTAMP)
    found = rows(Scan("json", (File(str(target)),), columns), engine)
    assert found == [
        {"a": 1, "s": "é", "o": {"x": [1, 2]}, "t": None},
        {
            "a": 2**53 + 1,
            "s": None,
            "o": None,
            "t": dt.datetime(2024, 1, 2, 3, 4, 5, 500000, dt.UTC),
        },
        {"a": None, "s": None, "o": None, "t": None},
    ]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"a": 1, "b": "cut',
        '[{"a": 1}, {"a": 2}]',
        "[]",
        "null",
        '"text"',
        "7",
        "not json",
        '{"a": 1} {"a": 2}',
        '{"a": 1}}',
        '{"a": 01}',
        '{"other": tru}',
    ],
)
def test_a_line_that_is_no_json_object_is_an_error(
    engine: Executor, tmp_path: Path, line: str
) -> None:
    target = tmp_path / "a b.json"
    target.write_text(f'{{"a": 1}}\n\n{line}\n{{"a": 3}}\n')
    with pytest.raises(SourceError) as caught:
        rows(Scan("json", (File(str(target)),), Struct.of(a=LONG)), engine)
    assert f"{target} is not a JSON object: {line}" in caught.value.message
    assert caught.value.path == str(target)
    assert "one JSON object per line" in str(caught.value.hint)


def test_csv(engine: Executor, tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    target.write_text('b;a;s\n1.5;1;"x;y"\n;2;""\n2;;plain text\n')
    columns = Struct.of(a=LONG, b=DOUBLE, s=STRING)
    plan = Scan("csv", (File(str(target)),), columns, csv=CsvOptions(delimiter=";"))
    assert rows(plan, engine) == [
        {"a": 1, "b": 1.5, "s": "x;y"},
        {"a": 2, "b": None, "s": ""},
        {"a": None, "b": 2.0, "s": "plain text"},
    ]


@pytest.mark.parametrize("has_header", [True, False])
def test_line_ends_inside_quotes_stay_as_they_are(
    engine: Executor, tmp_path: Path, has_header: bool
) -> None:
    columns = Struct.of(a=STRING, b=STRING)
    csv = CsvOptions(has_header=has_header)
    for end in ("\n", "\r\n"):
        texts = ["x\r\ny", "x\ny", "\r\n", 'q "\r\n" q\n']
        quoted = [text.replace('"', '""') for text in texts]
        lines = [f'"{text}","{text}"' for text in quoted] + ["", "1,", '2,""']
        target = tmp_path / f"{len(end)}.csv"
        head = [f"a,b{end}"] if has_header else []
        target.write_bytes("".join(head + [line + end for line in lines]).encode())
        found = rows(Scan("csv", (File(str(target)),), columns, csv=csv), engine)
        plain = [{"a": "1", "b": None}, {"a": "2", "b": ""}]
        assert found == [{"a": text, "b": text} for text in texts] + plain


@pytest.mark.parametrize(
    ("text", "type_"),
    [("abc", INTEGER), ("1.5", LONG), ("2024-13-01", DATE), ("maybe", BOOLEAN), ("1e9", LONG)],
)
def test_a_csv_value_that_does_not_fit_names_file_and_column(
    engine: Executor, tmp_path: Path, text: str, type_: DataType
) -> None:
    target = tmp_path / "b ad.csv"
    target.write_text(f"a,b\n,\n{text},x\n")
    with pytest.raises(SourceError) as caught:
        rows(Scan("csv", (File(str(target)),), Struct.of(a=type_)), engine)
    assert f"{target}: column 'a' holds '{text}', which is not of type {type_}" in str(caught.value)
    assert caught.value.path == str(target)
    assert "schema" in str(caught.value.hint)


@pytest.mark.parametrize("before", [1, 200_000])
def test_a_csv_row_of_some_megabytes(engine: Executor, tmp_path: Path, before: int) -> None:
    target = tmp_path / "long.csv"
    lines = "".join(f"{number},x\n" for number in range(before))
    target.write_text(f"a,b\n{lines}-1,{'y' * (3 << 20)}\n-2,z\n")
    plan = Scan("csv", (File(str(target)),), Struct.of(a=LONG, b=STRING))
    found = rows(plan.select("a", n=col("b").len()), engine)
    assert [row["a"] for row in found] == [*range(before), -1, -2]
    assert [row["n"] for row in found[-3:]] == [1, 3 << 20, 1]


def test_a_csv_header_that_repeats_a_name(engine: Executor, tmp_path: Path) -> None:
    target = tmp_path / "twice.csv"
    target.write_text("a,b,a,,\n1,2,3,,\n")
    file = File(str(target))
    assert rows(Scan("csv", (file,), Struct.of(b=LONG)), engine) == [{"b": 2}]
    with pytest.raises(SourceError, match=r"twice\.csv names 2 columns 'a'") as caught:
        rows(Scan("csv", (file,), Struct.of(a=LONG)), engine)
    assert "rename" in str(caught.value.hint)


def test_csv_that_is_not_utf8(engine: Executor, tmp_path: Path) -> None:
    target = tmp_path / "latin.csv"
    target.write_bytes("a,b\n1,é\n".encode("latin-1"))
    file = File(str(target))
    assert rows(Scan("csv", (file,), Struct.of(a=LONG)), engine) == [{"a": 1}]
    with pytest.raises(SourceError, match=r"latin\.csv") as caught:
        rows(Scan("csv", (file,), Struct.of(b=STRING)), engine)
    assert "UTF-8" in str(caught.value.hint)
    target.write_bytes("a,é\n1,2\n".encode("latin-1"))
    with pytest.raises(SourceError, match="not UTF-8"):
        rows(Scan("csv", (file,), Struct.of(a=LONG)), engine)


@pytest.mark.parametrize("line", ["3", "3,4,5"])
def test_csv_rows_of_other_lengths(engine: Executor, tmp_path: Path, line: str) -> None:
    target = tmp_path / "ragged.csv"
    target.write_text(f"a,b\n1,2\n{line}\n")
    with pytest.raises(SourceError, match=r"ragged\.csv"):
        rows(Scan("csv", (File(str(target)),), Struct.of(a=LONG, b=LONG)), engine)


def test_packed_csv(engine: Executor, tmp_path: Path) -> None:
    target = tmp_path / "a.csv.gz"
    target.write_bytes(gzip.compress(b"a,b\n1,x\n"))
    plan = Scan("csv", (File(str(target)),), Struct.of(b=STRING))
    assert rows(plan, engine) == [{"b": "x"}]


def test_dynamic_scan(engine: Executor, tmp_path: Path) -> None:
    first = write(tmp_path, "one.parquet", {"v": list(range(10))}, row_group_size=4)
    second = write(tmp_path, "two.parquet", {"v": list(range(100, 103))})
    names = values(
        [
            {"path": second.path, "p": "x", "gone": None},
            {"path": first.path, "p": "y", "gone": [0, 5, 9]},
            {"path": second.path, "p": None, "gone": [0, 1, 2]},
        ],
        Struct.of(path=STRING, p=STRING, gone=List(LONG)),
    )
    plan = names.dynamic_scan(Struct.of(v=LONG, p=STRING), constants=["p"], deleted="gone")
    assert [(r["v"], r["p"]) for r in rows(plan, engine)] == [
        *((v, "x") for v in (100, 101, 102)),
        *((v, "y") for v in (1, 2, 3, 4, 6, 7, 8)),
    ]
    filtered = plan.filter(col("v") > 6).select("v")
    assert [r["v"] for r in rows(optimize(filtered), engine)] == [100, 101, 102, 7, 8]


def test_dynamic_scan_of_no_files(engine: Executor) -> None:
    plan = values([], Struct.of(path=STRING)).dynamic_scan(Struct.of(v=LONG))
    assert rows(plan, engine) == []


def test_list_files(engine: Executor, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("b", "a", "c é", "sub/inner"):
        (tmp_path / name).write_bytes(b"xyz")
    found = rows(list_files(str(tmp_path)), engine)
    assert [r["path"].rsplit("/", 1)[-1] for r in found] == ["a", "b", "c é"]
    assert {r["size"] for r in found} == {3}
    later = rows(list_files(str(tmp_path), start_from="b"), engine)
    assert [r["path"].rsplit("/", 1)[-1] for r in later] == ["b", "c é"]


@dataclass(frozen=True)
class Shelf:
    """A scope for tests: paths and the plans that they are."""

    plans: dict[str, Plan]

    def resolve(self, stored: Stored) -> Plan:
        return self.plans[stored.path]


def test_stored_paths_are_bound_at_execution(engine: Executor) -> None:
    schema = Struct.of(a=LONG)
    plan = stored("/levels", schema).filter(col("a") > 1)
    for numbers in ([1, 2, 3], [0]):
        scope = Shelf({"/levels": values([{"a": n} for n in numbers], schema)})
        assert [r["a"] for r in rows(plan, engine, scope)] == [n for n in numbers if n > 1]
    with pytest.raises(PlanError, match="/levels"):
        rows(plan, engine)
