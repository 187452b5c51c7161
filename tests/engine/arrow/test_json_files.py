"""Many JSON files: small ones are parsed together, and rows stay with their files."""

from __future__ import annotations

import datetime as dt
import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millpond.base.errors import SourceError, TypeMismatchError
from millpond.base.store import open_store
from millpond.engine.arrow.source import jsonfiles, jsonlines
from millpond.engine.arrow.source.absent import AbsentMembers
from millpond.engine.arrow.source.lines import split_lines
from millpond.engine.arrow.source.scan import entries_of
from millpond.engine.arrow.source.spec import spec_of
from millpond.plan import types as t
from millpond.plan.bind import bind_predicate
from millpond.plan.expr import col
from millpond.plan.make import values
from millpond.plan.sources import File, OnError, Scan

COLUMNS = t.Struct.of(v=t.LONG, m=t.Map(t.STRING, t.STRING), a=t.LONG, day=t.STRING)


def write(folder: Path, contents: list[bytes | str]) -> list[str]:
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"{number:04d}.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(str(path))
    return paths


def scan(paths: list[str], on_error: OnError = "error") -> Scan:
    files = tuple(File(path, constants=(n, f"d{n}")) for n, path in enumerate(paths))
    return Scan("json", files, COLUMNS, ("v", "day"), on_error=on_error)


def many(folder: Path, count: int, rows: int = 3) -> list[str]:
    return write(
        folder,
        ["".join(f'{{"a":{n * rows + i}}}\n' for i in range(rows)) for n in range(count)],
    )


def test_rows_keep_their_order_and_their_constants(run: Any, tmp_path: Path) -> None:
    paths = many(tmp_path, 100)
    rows, counters = run(scan(paths))
    assert [(row["v"], row["day"], row["a"]) for row in rows] == [
        (n // 3, f"d{n // 3}", n) for n in range(300)
    ]
    assert (counters.files_opened, counters.rows_decoded) == (100, 300)
    assert counters.bytes_read == sum(Path(path).stat().st_size for path in paths)
    assert counters.batches_decoded == 3  # 8, 64 and 28 files
    assert counters.early_exit_batches_skipped == 0


@pytest.mark.parametrize(("rows", "files"), [(1, 1), (3, 1), (4, 3), (9, 3), (10, 7)])
def test_few_rows_need_few_files(run: Any, tmp_path: Path, rows: int, files: int) -> None:
    found, counters = run(scan(many(tmp_path, 100)).head(rows))
    assert [row["a"] for row in found] == list(range(rows))
    assert counters.files_opened == files
    assert counters.early_exit_batches_skipped == 100 - files


def test_batches_end_where_they_are_large(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(jsonfiles, "_TOGETHER_BYTES", 40)
    rows, counters = run(scan(many(tmp_path, 10, rows=2)))
    assert [row["a"] for row in rows] == list(range(20))
    assert counters.batches_decoded == 4  # 3, 3, 3 and 1 files of 16 to 18 bytes


def test_ends_of_files(run: Any, tmp_path: Path) -> None:
    contents: list[bytes | str] = [
        '{"a":1}',
        "",
        '\n\n{"a":2}\n \n{"a":3}',
        '\ufeff{"a":4}\r\n',
        " ",
        b'{"a":5,"z":"\xff"}\n',
        '{"a":6,"m":{"k":"v"}}\n\n',
    ]
    rows, counters = run(scan(write(tmp_path, contents), "null"))
    assert [(row["v"], row["a"]) for row in rows] == [
        (0, 1),
        (2, 2),
        (2, 3),
        (3, 4),
        (5, 5),
        (6, 6),
    ]
    assert rows[-1]["m"] == [("k", "v")]
    assert (counters.files_opened, counters.rows_decoded) == (7, 6)


def test_blank_files_alone_have_no_rows(run: Any, tmp_path: Path) -> None:
    assert run(scan(write(tmp_path, ["", "\n", " \n\n"])))[0] == []


def test_large_and_packed_files_among_small_ones(
    run: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 100)
    monkeypatch.setattr(jsonlines, "_BLOCK_BYTES", 100)
    lines = [f'{{"a":{n}}}\n' for n in range(80)]
    paths = write(tmp_path, ["".join(lines[:2]), "".join(lines[2:60]), "".join(lines[60:65])])
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress("".join(lines[65:70]).encode()))
    other = tmp_path / "other"
    other.mkdir()
    last = write(other, ["".join(lines[70:75]), "".join(lines[75:])])
    rows, counters = run(scan([*paths, str(packed), *last]))
    assert [row["a"] for row in rows] == list(range(80))
    assert [row["v"] for row in rows] == [0] * 2 + [1] * 58 + [2] * 5 + [3] * 5 + [4] * 5 + [5] * 5
    assert counters.files_opened == 6


def test_a_bad_line_is_found_in_its_file(run: Any, tmp_path: Path) -> None:
    paths = many(tmp_path, 20)
    Path(paths[12]).write_text('{"a":1}\n\n{"a":2]\n')
    with pytest.raises(SourceError, match=r"line 3 of .*0012\.json is not a JSON object") as caught:
        run(scan(paths))
    assert caught.value.path == paths[12]


def test_a_missing_file_is_named(run: Any, tmp_path: Path) -> None:
    paths = many(tmp_path, 5)
    Path(paths[3]).unlink()
    with pytest.raises(SourceError, match=r"there is no file .*0003\.json"):
        run(scan(paths))
    with pytest.raises(SourceError, match=str(tmp_path)):
        run(scan([paths[0], str(tmp_path)]))


def test_files_of_a_store(run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 20)
    store = open_store("memory://lines")
    for number, rows in enumerate((1, 2, 9, 1)):
        store.put(f"{number}.json", b'{"a":1}\n' * rows)
    rows, counters = run(scan([f"memory://lines/{number}.json" for number in range(4)]))
    assert [row["v"] for row in rows] == [0, 1, 1, *[2] * 9, 3]
    assert (counters.files_opened, counters.bytes_read) == (4, 13 * 8)
    with pytest.raises(SourceError, match=r"there is no file memory://lines/7\.json"):
        run(scan(["memory://lines/7.json"]))


def test_odd_values_in_one_file_change_nothing_in_others(run: Any, tmp_path: Path) -> None:
    paths = write(tmp_path, ['{"a":1}', '{"a":"x","m":{"k":1.50}}', '{"a":3}'])
    with pytest.raises(SourceError, match=r"line 1 of .*0001\.json .*member 'a' is \"x\""):
        run(scan(paths))
    rows, _ = run(scan(paths, "null"))
    assert [row["a"] for row in rows] == [1, None, 3]
    assert rows[1]["m"] == [("k", "1.5")]


def test_only_constants_are_wanted(run: Any, tmp_path: Path) -> None:
    rows, _ = run(scan(many(tmp_path, 3)).select("v"))
    assert [row["v"] for row in rows] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    rows, _ = run(scan(many(tmp_path, 3)).filter(col("v") == 1).select("a"))
    assert [row["a"] for row in rows] == [3, 4, 5]


def test_files_that_rows_name(run: Any, tmp_path: Path) -> None:
    paths = many(tmp_path, 10)
    named = values(pa.table({"path": paths, "v": range(10)}))
    columns = t.Struct.of(a=t.LONG, v=t.LONG)
    plan = named.dynamic_scan(columns, format="json", constants=["v"])
    rows, counters = run(plan)
    assert [(row["a"], row["v"]) for row in rows] == [(n, n // 3) for n in range(30)]
    assert counters.batches_decoded == 2  # 8 and 2 files


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("plain", [True, False])
def test_a_line_that_does_not_fit_makes_only_its_piece_slow(
    run: Any, tmp_path: Path, monkeypatch: Any, plain: bool, strict: bool
) -> None:
    monkeypatch.setattr(jsonlines, "PIECE", 4)
    lines = [f'{{"a":{n},"s":"é\\n{n}"}}' for n in range(11)]
    lines[5] = '{"a":"no number","s":"here"}'
    text = "\n".join(lines) + ("\n" if plain else "\n\n \r\n")
    columns = t.Struct.of(a=t.LONG, s=t.STRING)
    file = File(write(tmp_path, [text])[0])
    on_error: OnError = "error" if strict else "null"
    plan = Scan("json", (file,), columns, strict=strict, on_error=on_error)
    if strict:
        with pytest.raises(SourceError, match=r"line 6 of .* does not fit"):
            run(plan)
        return
    rows, _ = run(plan)
    expected = [(n, f"é\n{n}") for n in range(11)]
    expected[5] = (None, "here")  # type: ignore[assignment]
    assert [(row["a"], row["s"]) for row in rows] == expected


def test_lines_of_a_plain_block_stay_where_they_are() -> None:
    block = '{"a":"é"}\n{}\n{"b":[]}'.encode()
    lines = split_lines(block)
    assert lines.plain == block + b"\n"
    assert lines.starts.tolist() == [0, 11, 14]
    assert bytes(lines.bytes_of(0, 2)) == '{"a":"é"}\n{}\n'.encode()
    assert bytes(lines.bytes_of(1, 2)) == b'{}\n{"b":[]}\n'
    assert lines.texts().to_pylist() == ['{"a":"é"}\n', "{}\n", '{"b":[]}\n']


@pytest.mark.parametrize(
    ("block", "texts"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"{}\r\n{}\n", ["{}", "{}"]),
        (b"\xef\xbb\xbf{}\n", ["{}"]),
        (b"{}\n\n {}", ["{}", "{}"]),
        (b'{"a":"\xff"}\n', ['{"a":"\ufffd"}']),
        (b"{\n}\n", ["{", "}"]),
    ],
)
def test_other_lines_become_texts(block: bytes, texts: list[str]) -> None:
    lines = split_lines(block)
    assert lines.plain is None
    assert lines.texts().to_pylist() == texts
    assert len(lines) == len(texts)


def test_many_windows_are_one_block() -> None:
    block = b'{"a":1}\n' * 100_000
    assert split_lines(block).starts.tolist() == list(range(0, len(block), 8))


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert jsonfiles._read_local(str(tmp_path / "pipe")) is None
    assert jsonfiles._read_local(str(tmp_path)) is None
    assert jsonfiles._read_local(str(tmp_path / "pipe"), 7) is None


@pytest.mark.parametrize("size", [None, 0, 1, 5, 6, 7, 1 << 30])
def test_a_size_that_is_known_need_not_be_right(tmp_path: Path, size: int | None) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a":1}'[:6])
    assert jsonfiles._read_local(str(tmp_path / "a.json"), size) == b'{"a":1'


LARGE = b'{"add":{"path":"x","stats":"{\\"n\\":1}"}}\n' * 3_000


@pytest.mark.parametrize(
    ("last", "is_ruled_out"),
    [
        (b"", True),
        (b'{"metaData":{"id":"1"}}\n', False),
        (b'{"meta\\u0044ata":{"id":"1"}}\n', False),
        (b'{"add":{"path":"\\"metaData\\""}}\n', True),
        (b'{"add":{"path":"D"}}\n', True),
        (b'{"add":{"pa', False),
        (b'{"add":{"path":"x"}', False),
        (b"\n{}\n", True),  # a blank line is no row
        (b"{}{}\n", False),
    ],
)
def test_much_text_without_a_name_is_not_read(last: bytes, *, is_ruled_out: bool) -> None:
    plan = Scan("json", (File("f"),), t.Struct.of(metaData=t.Struct.of(id=t.STRING)))
    predicate = bind_predicate(col("metaData").is_not_null(), plan.schema)
    spec = spec_of(plan, [(predicate, None)], None, None)
    assert AbsentMembers(spec).rule_out(LARGE + last) is is_ruled_out
    few = not last.startswith(b"\n") and is_ruled_out  # where it is read, blank lines are seen
    assert AbsentMembers(spec).rule_out(LARGE[:82] + last) is few


@pytest.mark.parametrize(
    ("type_", "given", "found"),
    [
        (t.LONG, (1 << 63) - 1, (1 << 63) - 1),
        (t.LONG, -(1 << 63), -(1 << 63)),
        (t.LONG, None, None),
        (t.INTEGER, 5, 5),
        (t.DOUBLE, 5, 5.0),
        (t.STRING, None, None),
        (t.DATE, "2024-01-02", dt.date(2024, 1, 2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("other", [(), (None,)])
def test_constants_are_values_of_their_types(
    type_: t.DataType, given: Any, found: Any, other: tuple[None, ...]
) -> None:
    entries = entries_of(constants(type_, given, *other))
    values = [entry.constants["c"] for entry in entries]
    assert values == [found, *other]
    assert type(values[0]) is type(found)


@pytest.mark.parametrize(
    ("type_", "given"),
    [
        *((t.LONG, odd) for odd in (1 << 63, -(1 << 63) - 1, True, 5.0, "5")),
        *((t.INTEGER, 1 << 31), (t.DATE, 5), (t.STRING, 5)),
    ],
    ids=str,
)
def test_a_constant_of_another_type_is_an_error(type_: t.DataType, given: Any) -> None:
    for others in ((), (None,), (1,)):
        with pytest.raises(TypeMismatchError, match=f"is not a {type_}"):
            entries_of(constants(type_, given, *others))


def constants(type_: t.DataType, *values: Any) -> Scan:
    files = tuple(File(f"{number}.json", constants=(v,)) for number, v in enumerate(values))
    return Scan("json", files, t.Struct.of(c=type_), ("c",))


def test_files_without_constants() -> None:
    plan = Scan("json", (File("a", 7), File("b", rows=3)), t.Struct.of(c=t.LONG))
    assert [(e.path, e.constants, e.size, e.rows) for e in entries_of(plan)] == [
        ("a", {}, 7, None),
        ("b", {}, None, 3),
    ]
    assert entries_of(constants(t.LONG)) == []
