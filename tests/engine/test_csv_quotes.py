"""CSV fields whose quotes are not doubled, or stand where they mean nothing, on both engines."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base.errors import SourceError
from millpond.engine.csvhead import QuotedStream
from millpond.plan.sources import CsvOptions, File, Scan
from millpond.plan.types import LONG, STRING, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.plan.executor import Executor

COLUMNS = Struct.of(a=STRING, b=STRING)


def read(
    file: Path, engine: Executor, columns: Struct = COLUMNS, csv: CsvOptions | None = None
) -> list[tuple[Any, ...]]:
    plan = Scan("csv", (File(str(file)),), columns, csv=csv)
    return [tuple(row.values()) for batch in engine.execute(plan) for row in batch.to_pylist()]


STRAY = [
    '"a "b" c",1',
    '"a"b"c",1',
    '"a"x,1',
    '"a" x,1',
    '""x,1',
    '""a",1',
    '"a\\"b",1',
    '1,"a "b" c"',
    '1,"a"b',
    '1,"a "b\n2,3"',
]


@pytest.mark.parametrize("line", STRAY)
def test_text_behind_a_closing_quote_is_an_error(
    engine: Executor, tmp_path: Path, line: str
) -> None:
    file = tmp_path / "s tray.csv"
    file.write_text(f"a,b\n1,2\n{line}\n3,4\n")
    for columns in (COLUMNS, Struct.of(a=STRING), Struct.of(b=STRING)):
        with pytest.raises(SourceError, match=r"s tray\.csv can't be read: .*quote") as caught:
            read(file, engine, columns)
        assert caught.value.path == str(file)
        assert "CSV" in str(caught.value.hint)


def test_in_a_header(engine: Executor, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('a,"b "c"" d"\n1,2\n')
    with pytest.raises(SourceError, match=r"a\.csv can't be read: .*quote"):
        read(file, engine, Struct.of(a=STRING))
    file.write_text('"a"\t ,"b ""c"""\n1,2\n')
    assert read(file, engine, Struct.of(**{"a": LONG, 'b "c"': LONG})) == [(1, 2)]


FINE = [
    ('x"a",1', ('x"a"', "1")),
    ('5" pipe,6"', ('5" pipe', '6"')),
    (' "a", "b"', (' "a"', ' "b"')),
    ('"a ""b"" c",1', ('a "b" c', "1")),
    ('"""","""a"""', ('"', '"a"')),
    ('"",""', ("", "")),
    ('"a" ,"" ', ("a", "")),
    ('"a,"  ,"b\n"\t', ("a,", "b\n")),
    (""""it's",'x' y""", ("it's", "'x' y")),
]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_other_quotes(engine: Executor, tmp_path: Path, mark: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(mark + '"a",b\n' + "".join(f"{line}\n" for line, _ in FINE))
    assert read(file, engine) == [wanted for _, wanted in FINE]


def test_a_file_of_many_blocks(engine: Executor, tmp_path: Path) -> None:
    file, count = tmp_path / "a.csv", 150_000
    before = '"a",b\n' + '"1","x ""y"" z"\n' * count
    file.write_text(before + "".join(f"{line}\n" for line, _ in FINE))
    found = read(file, engine)
    assert found == [("1", 'x "y" z')] * count + [wanted for _, wanted in FINE]
    file.write_text(before + STRAY[0])
    with pytest.raises(SourceError, match=r"a\.csv can't be read: .*quote"):
        read(file, engine)


def test_other_characters_without_a_header(engine: Executor, tmp_path: Path) -> None:
    csv = CsvOptions(delimiter="\t", quote="'", has_header=False)
    file = tmp_path / "a.csv.gz"
    file.write_bytes(gzip.compress(b"'a''b' \t\"x\" y\r\n'c\td'\t''\r\n"))
    assert read(file, engine, csv=csv) == [("a'b", '"x" y'), ("c\td", "")]
    for line in (b"'a'b\tx\r\n", b"1\t2\r\n'a'b\tx\r\n"):
        file.write_bytes(gzip.compress(line))
        with pytest.raises(SourceError, match=r"a\.csv\.gz"):
            read(file, engine, csv=csv)


@given(st.text(alphabet='a", \n\r\t').map(str.encode), st.integers(1, 9), st.booleans())
def test_where_pieces_are_cut_does_not_matter(text: bytes, size: int, has_mark: bool) -> None:
    content = (b"\xef\xbb\xbf" if has_mark else b"") + text

    def checked(size: int) -> bytes | None:
        stream = QuotedStream(io.BytesIO(content), CsvOptions())
        try:
            return b"".join(iter(lambda: stream.read(size), b""))
        except ValueError:
            return None

    assert checked(size if not has_mark else size + 3) == checked(1 << 20)
