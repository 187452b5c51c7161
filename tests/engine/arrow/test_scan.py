"""Parquet scans: what is decoded and what is not, and what files may hold."""

from __future__ import annotations

import datetime as dt
import decimal
from collections import ChainMap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millpond.base.errors import SourceError
from millpond.base.settings import ArrowSettings
from millpond.engine.arrow.context import Context
from millpond.engine.arrow.source.files import Files
from millpond.engine.arrow.source.parquet import ParquetSource
from millpond.plan import aggregates as agg
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow_schema
from millpond.plan.counters import Counters
from millpond.plan.expr import col, element, path
from millpond.plan.sources import File, Scan

pytestmark = pytest.mark.usefixtures("each_reader")

N = 100
EVENTS = pa.table(
    {
        "id": list(range(N)),
        "repo": [{"stars": i, "name": f"r{i}"} if i % 7 else None for i in range(N)],
        "commits": [[{"msg": f"m{i}", "size": i + j} for j in range(i % 3)] for i in range(N)],
        "labels": [["p0"] if i == 42 else ["p1", None] if i % 2 else None for i in range(N)],
        "at": pa.array(range(N), pa.timestamp("us", tz="UTC")),
    }
)
LEAVES = 7


def test_a_filter_decodes_its_leaf_and_the_rest_only_where_rows_are_left(
    run: Any, parquet: Any
) -> None:
    rows, counters = run(parquet(EVENTS).filter(path("repo.stars") % 50 == 41))
    assert [row["id"] for row in rows] == [41]
    assert rows[0]["repo"] == {"stars": 41, "name": "r41"}
    assert rows[0]["commits"] == [{"msg": "m41", "size": 41}, {"msg": "m41", "size": 42}]
    assert counters.batches_decoded == 10
    assert counters.columns_decoded == 9 * 1 + LEAVES
    assert counters.columns_skipped == 9 * (LEAVES - 1)
    assert counters.batches_pruned == 0


def test_statistics_prune_row_groups_by_nested_leaves(run: Any, parquet: Any) -> None:
    scan = parquet(EVENTS)
    rows, counters = run(scan.filter(path("repo.stars") > 93).select("id"))
    assert [row["id"] for row in rows] == [94, 95, 96, 97, 99]
    assert (counters.batches_pruned, counters.batches_decoded) == (9, 1)
    assert counters.columns_decoded == 2
    rows, counters = run(scan.filter(path("commits").any(path("size") > 98)).select("id"))
    assert [row["id"] for row in rows] == [98]
    assert counters.batches_pruned == 9


def test_conditions_cascade(run: Any, parquet: Any) -> None:
    plan = parquet(EVENTS).filter(col("id") % 2 == 2).filter(path("repo.name").contains("9"))
    rows, counters = run(plan)
    assert rows == []
    assert counters.columns_decoded == 10, "the second condition's leaf was never read"


def test_a_pruned_schema_reads_no_other_leaf(run: Any, parquet: Any) -> None:
    scan = parquet(EVENTS)
    narrow = t.Struct.of(repo=t.Struct.of(name=t.STRING), commits=t.List(t.Struct.of(size=t.LONG)))
    rows, counters = run(replace(scan, columns=narrow))
    assert rows[10] == {"repo": {"name": "r10"}, "commits": [{"size": 10}]}
    assert (counters.columns_decoded, counters.columns_skipped) == (20, 50)
    chunks = [pq.ParquetFile(scan.files[0].path).metadata.row_group(g) for g in range(10)]
    assert counters.bytes_read == sum(
        c.column(i).total_compressed_size for c in chunks for i in (2, 4)
    )


def test_a_projection_reads_what_it_needs(run: Any, parquet: Any) -> None:
    rows, counters = run(parquet(EVENTS).select(n=path("commits").len(), s=path("repo.stars")))
    assert rows[5] == {"n": 2, "s": 5}
    assert rows[7] == {"n": 1, "s": None}
    assert counters.columns_decoded == 20


def test_no_columns_at_all_still_have_rows(engine: Any, parquet: Any) -> None:
    from millpond.plan import aggregates as agg

    scan = replace(parquet(EVENTS), columns=t.Struct())
    execution = engine.execute(scan.aggregate(n=agg.count()))
    assert [b.to_pylist() for b in execution] == [[{"n": N}]]
    assert execution.counters.batches_decoded == 0
    assert sum(batch.num_rows for batch in engine.execute(scan)) == N


def test_head_stops_and_counts_what_it_skipped(run: Any, parquet: Any) -> None:
    rows, counters = run(parquet(EVENTS, EVENTS, EVENTS).filter(col("id") >= 15).head(3))
    assert [row["id"] for row in rows] == [15, 16, 17]
    assert (counters.files_opened, counters.batches_decoded) == (1, 1)
    # One pruned, one decoded; eight more of this file, and at least one of each file not opened.
    assert counters.batches_pruned == 1
    assert counters.early_exit_batches_skipped == 8 + 2


def test_constants_prune_files_before_they_are_opened(run: Any, parquet: Any) -> None:
    scan = parquet(EVENTS, EVENTS)
    columns = t.Struct((*scan.columns.fields, t.Field("day", t.DATE), t.Field("n", t.DOUBLE)))
    files = tuple(
        replace(f, constants=(f"2024-05-0{i + 1}", float(i))) for i, f in enumerate(scan.files)
    )
    files = (*files, File("/does/not/exist", constants=(None, None)))
    scan = replace(scan, files=files, columns=columns, constants=("day", "n"))
    rows, counters = run(scan.filter(col("day") == dt.date(2024, 5, 2)).select("id", "day", "n"))
    assert len(rows) == N
    assert rows[0] == {"id": 0, "day": dt.date(2024, 5, 2), "n": 1.0}
    assert (counters.files_opened, counters.files_pruned) == (1, 2)


def test_missing_columns_and_members_are_null(run: Any, tmp_path: Path) -> None:
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": [{"x": 1}, None], "l": [[{"p": 1}], []]}), path_)
    columns = t.Struct.of(
        s=t.Struct.of(x=t.LONG, y=t.STRING),
        l=t.List(t.Struct.of(q=t.LONG)),
        z=t.List(t.LONG),
    )
    rows, _ = run(Scan("parquet", (File(path_),), columns))
    assert rows == [
        {"s": {"x": 1, "y": None}, "l": [{"q": None}], "z": None},
        {"s": None, "l": [], "z": None},
    ]
    rows, counters = run(Scan("parquet", (File(path_),), columns).filter(col("z").is_not_null()))
    assert rows == []
    assert counters.batches_pruned == 1, "a column that is not there is null throughout"


WIDENED = [
    (pa.array([1, None], pa.int8()), t.LONG, [1, None]),
    (pa.array([1, None], pa.int32()), t.DOUBLE, [1.0, None]),
    (pa.array([200], pa.uint8()), t.INTEGER, [200]),
    (pa.array([1.5], pa.float32()), t.DOUBLE, [1.5]),
    (pa.array([7], pa.int32()), t.Decimal(12, 2), [decimal.Decimal("7.00")]),
    (
        pa.array([decimal.Decimal("1.25")], pa.decimal128(5, 2)),
        t.Decimal(10, 4),
        [decimal.Decimal("1.2500")],
    ),
    (pa.array([19723], pa.date32()), t.TIMESTAMP_NTZ, [dt.datetime(2024, 1, 1)]),  # noqa: DTZ001
    (pa.array(["a", None]).dictionary_encode(), t.STRING, ["a", None]),
    (pa.array(["a"], pa.large_string()), t.STRING, ["a"]),
    (pa.array([b"ab"], pa.binary(2)), t.BINARY, [b"ab"]),
    (pa.array([[1], None], pa.large_list(pa.int32())), t.List(t.LONG), [[1], None]),
    (pa.array([[1, 2]], pa.list_(pa.int32(), 2)), t.List(t.LONG), [[1, 2]]),
    (
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
        t.Map(t.STRING, t.LONG),
        [[("k", 1)], None],
    ),
    (
        pa.array([-1, 1_999, None], pa.timestamp("ns")),
        t.TIMESTAMP,
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC),
            None,
        ],
    ),
    (
        pa.array([1_000], pa.timestamp("ms", tz="Europe/Berlin")),
        t.TIMESTAMP_NTZ,
        [dt.datetime(1970, 1, 1, 0, 0, 1)],  # noqa: DTZ001
    ),
]


@pytest.mark.parametrize(("stored", "wanted", "expected"), WIDENED)
def test_narrower_types_are_widened(
    stored: Any, wanted: Any, expected: Any, run: Any, tmp_path: Any
) -> None:
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": pa.StructArray.from_arrays([stored], ["v"]), "v": stored}), path_)
    columns = t.Struct.of(s=t.Struct.of(v=wanted), v=wanted)
    rows, _ = run(Scan("parquet", (File(path_),), columns))
    assert [row["v"] for row in rows] == expected
    assert [row["s"]["v"] for row in rows] == expected
    kept, _ = run(Scan("parquet", (File(path_),), columns).filter(col("v").is_not_null()))
    assert [row["v"] for row in kept] == [v for v in expected if v is not None]


def test_int96_is_a_timestamp(run: Any, tmp_path: Path) -> None:
    path_ = str(tmp_path / "a.parquet")
    moment = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    pq.write_table(
        pa.table({"at": pa.array([moment, None], pa.timestamp("us", tz="UTC"))}),
        path_,
        use_deprecated_int96_timestamps=True,
    )
    scan = Scan("parquet", (File(path_),), t.Struct.of(at=t.TIMESTAMP))
    assert run(scan.filter(col("at") == moment))[0] == [{"at": moment}]
    assert run(scan.filter(col("at") > moment))[0] == []


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (pa.array([1]), t.INTEGER),
        (pa.array([1]), t.DOUBLE),
        (pa.array(["1"]), t.LONG),
        (pa.array([1.5]), t.FLOAT),
        (pa.array([{"x": 1}]), t.LONG),
        (pa.array([1]), t.Struct.of(x=t.LONG)),
        (pa.array(["x"]), t.BINARY),
        (pa.array([1], pa.int16()), t.BYTE),
        (pa.array([decimal.Decimal("1.25")]), t.Decimal(3, 1)),
        (pa.array([[1]]), t.List(t.STRING)),
    ],
)
def test_other_types_are_errors_that_name_file_and_column(
    stored: Any, wanted: Any, run: Any, tmp_path: Any
) -> None:
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"deep": pa.StructArray.from_arrays([stored], ["v"])}), path_)
    scan = Scan("parquet", (File(path_),), t.Struct.of(deep=t.Struct.of(v=wanted)))
    with pytest.raises(SourceError, match=r"column deep\.v.*a\.parquet") as caught:
        run(scan)
    assert caught.value.path == path_


@pytest.mark.parametrize("stored", [["x"], [[1]], [[{"x": 1}]]])
def test_what_has_no_members_is_an_error_also_where_a_member_is_asked_for(
    stored: Any, run: Any, tmp_path: Any
) -> None:
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": stored}), path_)
    scan = Scan("parquet", (File(path_),), t.Struct.of(v=t.Struct.of(x=t.LONG)))
    for predicate in (path("v.x").is_not_null(), path("v.x") > 1):
        with pytest.raises(SourceError, match=r"column v of .*a\.parquet"):
            run(scan.filter(predicate))


@pytest.mark.parametrize("rows", [3, 30_000])
@pytest.mark.parametrize(
    ("stored", "wanted", "misfit"),
    [
        (pa.array([-128, None, 127], pa.int32()), t.BYTE, 128),
        (pa.array([-32_768, None, 32_767], pa.int32()), t.SHORT, 32_768),
        (pa.array([b"a", None, "é".encode()]), t.STRING, b"\xff"),
    ],
    ids=["byte", "short", "string"],
)
def test_types_that_a_file_need_not_note(
    stored: Any, wanted: Any, misfit: Any, rows: int, run: Any, parquet: Any
) -> None:
    def scan(values: pa.Array) -> Scan:
        deep = pa.StructArray.from_arrays([values], ["v"])
        found: Scan = parquet(pa.table({"v": values, "deep": deep}), rows=rows + 1)
        return replace(found, columns=t.Struct.of(v=wanted, deep=t.Struct.of(v=wanted)))

    many = pa.concat_arrays([stored] * (rows // 3))
    texts = many.cast(pa.string()) if wanted == t.STRING else many
    expected = [{"v": value, "deep": {"v": value}} for value in texts.to_pylist()]
    assert run(scan(many))[0] == expected
    one = expected[0]
    assert run(scan(many).filter(path("deep.v") == one["v"]).head(1))[0] == [one]

    wrong = pa.concat_arrays([many, pa.array([misfit], many.type)])
    for plan in (scan(wrong), scan(wrong).filter(col("v") == one["v"])):
        with pytest.raises(SourceError, match=r"column v of .*parquet holds what does not fit"):
            run(plan)


def test_a_null_that_never_should_be(run: Any, parquet: Any) -> None:
    scan = parquet(pa.table({"n": [1, None], "m": [1, 2]}))
    columns = t.Struct((t.Field("n", t.LONG, nullable=False), t.Field("m", t.LONG)))
    with pytest.raises(SourceError, match=r"column n of .* is null in some row"):
        run(replace(scan, columns=columns))
    assert run(replace(scan, columns=columns).filter(col("m") == 1))[0] == [{"n": 1, "m": 1}]


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "garbage", "flipped"])
def test_damaged_files_are_named(damage: Any, run: Any, parquet: Any, tmp_path: Any) -> None:
    scan = parquet(EVENTS, compression="zstd")
    file = Path(scan.files[0].path)
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        broken = {"empty": b"", "cut": data[: len(data) // 2], "garbage": b"PAR1" + b"x" * 100}
        flipped = data[:4] + bytes(b ^ 0xFF for b in data[4:2000]) + data[2000:]
        file.write_bytes(broken.get(damage, flipped))
    with pytest.raises(SourceError) as caught:
        run(scan)
    assert caught.value.path == str(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("rows", [60_000, 400_000])  # as a whole, and in parts
def test_dictionaries_that_end_in_the_middle(rows: int, run: Any, parquet: Any) -> None:
    words = [f"w{row % 20}" for row in range(rows - 5_000)] + [f"text {i}" for i in range(5_000)]
    deep = pa.StructArray.from_arrays([pa.array(words)], ["word"])
    lists = pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), pa.array(words))
    table = pa.table({"word": words, "deep": deep, "list": lists})
    scan = parquet(table, rows=rows, data_page_size=2_000, dictionary_pagesize_limit=500)
    chunks = pq.ParquetFile(scan.files[0].path).metadata.row_group(0)
    for chunk in (chunks.column(leaf) for leaf in range(3)):
        assert chunk.total_uncompressed_size < 4 * chunk.num_values  # so they come as dictionaries
        assert chunk.has_dictionary_page
        assert chunk.data_page_offset - chunk.dictionary_page_offset < 5_000  # not of all texts
    found, _ = run(scan)
    assert found == table.to_pylist()
    one, _ = run(scan.filter(path("deep.word") == "text 7").select("word"))
    assert one == [{"word": "text 7"}]


@pytest.mark.parametrize(
    "query",
    [
        lambda scan: scan,
        lambda scan: scan.filter(path("deep.word") == "c11").select("id"),
        lambda scan: scan.filter(col("words").any(element() == "c11")).select("id"),
        lambda scan: scan.aggregate("word", n=agg.count()),
        lambda scan: scan.top_k(3, "word"),
    ],
    ids=["all", "filter", "any", "group", "top_k"],
)
def test_numbers_that_a_dictionary_has_no_text_for_are_damage(
    query: Any, run: Any, parquet: Any
) -> None:
    count, words = 20_000, [f"c{number:02}" for number in range(50)]
    word = [words[row * 7 % 50] for row in range(count)]
    deep = [{"word": text if row % 3 else None} for row, text in enumerate(word)]
    columns = {"id": range(count), "word": word, "deep": deep, "words": [[text] for text in word]}
    scan = parquet(pa.table(columns), rows=count, compression="none")
    file = Path(scan.files[0].path)
    data, chunks = bytearray(file.read_bytes()), pq.ParquetFile(file).metadata.row_group(0)
    for leaf in (1, 2, 3):  # 50 texts are numbered by six bits, so 63 fits in
        chunk = chunks.column(leaf)
        end = chunk.dictionary_page_offset + chunk.total_compressed_size - 8_000
        data[end : end + 6] = b"\xff" * 6
    file.write_bytes(data)
    with pytest.raises(SourceError, match="names texts that it has not") as caught:
        run(query(scan))
    assert caught.value.path == str(file)


def test_file_urls(run: Any, parquet: Any) -> None:
    scan = parquet(EVENTS)
    url = Path(scan.files[0].path).as_uri()
    assert len(run(replace(scan, files=(File(url),)))[0]) == N


def test_names_with_dots_are_not_paths(run: Any, parquet: Any) -> None:
    scan = parquet(pa.table({"a": [{"b": 1}], "a.b": [2], "a b": ["x"]}))
    rows, counters = run(scan.filter(col("a.b") == 2).select(x=path("a.b"), y=col("a b")))
    assert rows == [{"x": 1, "y": "x"}]
    rows, counters = run(scan.select("a.b"))
    assert (rows, counters.columns_decoded) == ([{"a.b": 2}], 1)


def test_leaves_read_in_parts_make_whole_columns(run: Any, parquet: Any) -> None:
    deep = pa.array(
        [
            None
            if i % 11 == 0
            else {
                "l": None
                if i % 5 == 0
                else [
                    None if j == 1 else {"p": i + j, "q": {"r": str(i), "s": None if i % 2 else i}}
                    for j in range(i % 4)
                ],
                "m": i,
            }
            for i in range(200)
        ]
    )
    table = pa.table({"d": deep, "m": [{f"k{i}": i} for i in range(2)] * 100})
    plan = parquet(table, rows=30)
    plan = plan.filter(path("d.l").any(path("q.s") > 20)).filter(path("d.m") < 190)
    plan = plan.filter(path("d.l").any(path("p") >= 0))
    expected = [
        row
        for row in table.to_pylist()
        if row["d"]
        and row["d"]["l"]
        and row["d"]["m"] < 190
        and any(x and x["q"]["s"] is not None and x["q"]["s"] > 20 for x in row["d"]["l"])
    ]
    rows, counters = run(plan)
    assert rows == expected
    assert len(expected) > 20
    leaves = 6
    assert counters.columns_decoded == counters.batches_decoded * leaves


def test_repeated_texts_are_read_as_dictionaries_and_come_out_as_texts(
    run: Any, parquet: Any
) -> None:
    rows = 12_000
    table = pa.table(
        {
            "k": [None if i % 10 == 0 else f"kind-{i % 5}" for i in range(rows)],
            "s": [{"k": f"x{i % 3}", "n": i} if i % 4 else None for i in range(rows)],
            "l": [[{"t": f"t{i % 2}"}, None] for i in range(rows)],
        }
    )
    scan = parquet(table, rows=5_000)
    assert run(scan)[0] == table.to_pylist()
    assert run(scan.filter(col("k").is_null()))[0] == [
        r for r in table.to_pylist() if r["k"] is None
    ]
    plan = (
        scan.filter(path("s.k").starts_with("x")).filter(~(col("k") == "kind-3")).select("k", "s")
    )
    expected = [
        {"k": r["k"], "s": r["s"]}
        for r in table.to_pylist()
        if r["s"] and r["k"] is not None and r["k"] != "kind-3"
    ]
    assert run(plan)[0] == expected


def test_a_dictionary_that_ends_half_way_in_a_nested_column(run: Any, tmp_path: Path) -> None:
    rows = 20_000
    texts = ["same"] * (rows // 2) + [f"{i}" for i in range(rows // 2)]
    table = pa.table({"s": pa.StructArray.from_arrays([pa.array(texts)], ["t"])})
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(table, path_, dictionary_pagesize_limit=4_000, data_page_size=2_000)
    scan = Scan("parquet", (File(path_),), t.Struct.of(s=t.Struct.of(t=t.STRING)))
    found, _ = run(scan.filter(path("s.t") != "same").select(x=path("s.t")))
    assert [row["x"] for row in found] == texts[rows // 2 :]
    assert run(scan.take([12_000, 3]))[0] == [{"s": {"t": texts[12_000]}}, {"s": {"t": "same"}}]


def test_repeated_texts_are_dictionaries_in_a_part_of_a_row_group_too(
    run: Any, tmp_path: Path
) -> None:
    rows = 12_000
    kinds = pa.array([None if i % 10 == 0 else f"kind-{i % 5}" for i in range(rows)])
    inner = pa.StructArray.from_arrays([kinds, pa.array(range(rows))], ["k", "n"])
    many = [f"text-{i % 5_000}" for i in range(rows)]
    lists = [["a", None, f"e{i % 3}"][: i % 4] for i in range(rows)]
    table = pa.table({"id": list(range(rows)), "s": inner, "many": many, "l": lists})
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(table, path_)
    for share in (0.01, 0.4, 0.8):
        last = int(share * rows)
        scan = Scan("parquet", (File(path_),), from_arrow_schema(table.schema))
        found, _ = run(scan.filter((col("id") <= last) & (path("s.n") % 3 == 0)))
        assert found == table.slice(0, last + 1).to_pylist()[::3]
    context = Context(ArrowSettings(), Counters(), Files())
    source = ParquetSource(path_, {}, context)
    try:
        found = dict(ChainMap(*source.read(0, [1, 3], 6_000)))
        assert found["s"].type == pa.struct({"k": pa.dictionary(pa.int32(), pa.string())})
        assert (len(found["s"]), pa.types.is_dictionary(found["many"].type)) == (6_000, False)
        first = dict(ChainMap(*source.read(0, [1, 3], 1)))
        assert not pa.types.is_dictionary(first["s"].type.field("k").type)
    finally:
        source.close()


def test_a_condition_that_can_fail_never_sees_rows_dropped_before(run: Any, parquet: Any) -> None:
    rows = 12_000
    table = pa.table({"ok": [i % 2 == 0 for i in range(rows)], "t": ["7", "x"] * (rows // 2)})
    plan = parquet(table, rows=rows).filter(col("ok")).filter(col("t").cast(t.LONG) == 7)
    assert len(run(plan)[0]) == rows // 2


def test_lists_of_texts_by_element(run: Any, parquet: Any) -> None:
    rows, counters = run(parquet(EVENTS).filter(path("labels").any(element() == "p0")).select("id"))
    assert [row["id"] for row in rows] == [42]
    assert (counters.batches_pruned, counters.batches_decoded) == (9, 1)


def test_ragged_and_empty_row_groups(run: Any, tmp_path: Path) -> None:
    path_ = str(tmp_path / "a.parquet")
    table = EVENTS.select(["id"])
    with pq.ParquetWriter(path_, table.schema) as writer:
        for start, size in ((0, 1), (1, 0), (1, 40), (41, 59)):
            writer.write_table(table.slice(start, size))
    scan = Scan("parquet", (File(path_),), t.Struct.of(id=t.LONG))
    assert [row["id"] for row in run(scan)[0]] == list(range(N))
    assert [row["id"] for row in run(scan.take([99, 1, 40, 41]))[0]] == [99, 1, 40, 41]
    assert [row["id"] for row in run(scan.tail(61))[0]] == list(range(39, N))


def test_a_time_that_does_not_fit_names_file_and_column(run: Any, tmp_path: Path) -> None:
    path_ = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"at": pa.array([2**62], pa.timestamp("ms"))}), path_)
    with pytest.raises(SourceError, match=r"column at of .*a\.parquet holds what does not fit"):
        run(Scan("parquet", (File(path_),), t.Struct.of(at=t.TIMESTAMP)))


@pytest.mark.parametrize("last", [1, 40, 95, 99])
def test_what_stands_behind_the_last_row_is_not_decoded(
    run: Any, tmp_path: Path, last: int
) -> None:
    target = tmp_path / "one-group.parquet"
    pq.write_table(EVENTS, target)
    columns = t.Struct.of(
        id=t.LONG,
        repo=t.Struct.of(stars=t.LONG, name=t.STRING),
        commits=t.List(t.Struct.of(msg=t.STRING, size=t.LONG)),
        labels=t.List(t.STRING),
    )
    scan = Scan("parquet", (File(str(target)),), columns)
    wanted = col("commits").any(path("size") >= 0) | (col("id") % 7 == 1)
    plan = scan.filter((col("id") <= last) & (path("repo.stars") >= 0) & wanted)
    rows, counters = run(plan)
    expected = [
        {name: row[name] for name in columns.names}
        for row in EVENTS.to_pylist()[: last + 1]
        if row["repo"] and (row["commits"] or row["id"] % 7 == 1)
    ]
    assert rows == expected
    assert counters.batches_decoded == 1


_PAIR = pa.struct([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.map_(pa.string(), pa.int64()), lambda i: [("k", i), ("l", None)]),
        (pa.map_(pa.int64(), pa.string()), lambda i: [(i, "x")]),
        (pa.map_(pa.string(), pa.string()), lambda i: [("k", f"v{i % 3}")]),
        (pa.map_(pa.string(), _PAIR), lambda i: [("k", {"a": i, "b": "x"})]),
        (pa.large_list(_PAIR), lambda i: [{"a": i, "b": "x"}]),
        (pa.list_(_PAIR, 2), lambda i: [{"a": i, "b": "x"}, None]),
        (
            pa.struct([("s", pa.string()), ("m", pa.list_(pa.map_(pa.string(), pa.int64())))]),
            lambda i: {"s": "x", "m": [[("k", i)]]},
        ),
    ],
)
def test_texts_that_repeat_in_maps_and_rarer_lists(
    type_: pa.DataType, value: Any, run: Any, parquet: Any
) -> None:
    """Texts that repeat are read as dictionaries, beside the rest; maps can't be put together."""
    count = 12_000
    column = pa.array([value(i) if i % 5 else None for i in range(count)], type_)
    scan = parquet(pa.table({"n": range(count), "c": column}), rows=count)
    rows, _ = run(scan)
    assert [row["c"] for row in rows] == column.to_pylist()
    rows, _ = run(scan.filter(col("n") % 1_000 == 7))
    assert [row["c"] for row in rows] == column.to_pylist()[7::1_000]
