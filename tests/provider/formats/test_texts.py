"""CSV and JSON lines: what types are guessed, what options do, and what is refused."""

from __future__ import annotations

import bz2
import gzip
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests.provider.formats.reading import rows, table, types

from millpond.base.errors import MillpondError, SourceError, UrlError

NTZ, UTC_TIME = "timestamp[us]", "timestamp[us, tz=UTC]"


class TestCsv:
    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (["1", "-2", ""], "int64"),
            (["1", "2.5"], "double"),
            (["1e3", "2"], "double"),
            (["1e3", "NaN"], "string"),
            (["1", "-inf"], "string"),
            (["7", "007"], "string"),
            (["0.5", "00.5"], "string"),
            (["0", "-0", "+1", " 2"], "int64"),
            (["9007199254740992", "1.5"], "double"),
            (["9007199254740993", "1.5"], "decimal128(17, 1)"),
            (["-9007199254740993.0", ".25"], "decimal128(18, 2)"),
            (["9007199254740993", "1e1"], "string"),
            (["9223372036854775807", "9223372036854775808"], "decimal128(19, 0)"),
            (["9" * 38], "decimal128(38, 0)"),
            (["9" * 39], "string"),
            (["1", "1e400"], "string"),
            (["1", "1e-400"], "string"),
            (["true", "False"], "bool"),
            (["yes", "no"], "string"),
            (["2024-05-01", "2024-05-02"], "date32[day]"),
            (["2024-05-01", "2024-05-02 10:00"], NTZ),
            (["2024-05-01T10:00:00.5Z", "2024-05-01 10:00+02:00"], UTC_TIME),
            (["2024-05-01T10:00:00.000Z"], UTC_TIME),
            (["2024-05-01T10:00:00.123456000"], NTZ),
            (["2024-05-01T10:00:00.1234567"], "string"),
            (["2024-05-01T10:00:00", "2024-05-01T10:00:00Z"], "string"),
            (["2024-13-01"], "string"),
            (["1", "2024-05-01"], "string"),
            (["0x1F"], "string"),
            (["", ""], "null"),
        ],
    )
    def test_types(self, values: list[str], expected: str) -> None:
        text = "n,v\n" + "".join(f"{n},{value}\n" for n, value in enumerate(values))
        assert types("csv:///a.csv", text) == {"n": "int64", "v": expected}

    def test_values(self) -> None:
        text = 'a,b,"c d"\r\n1,"x, ""y""",2024-05-01\r\n, "" ,\r\n'
        assert rows("csv:///a.csv", text) == [
            {"a": 1, "b": 'x, "y"', "c d": date(2024, 5, 1)},
            {"a": None, "b": ' "" ', "c d": None},
        ]
        assert rows("csv:///a.csv", 'a,b\n1,""\n2,\n')[0]["b"] == ""
        times = rows("csv:///a.csv", "t\n2024-05-01T10:00:00+02:00\n")
        assert times == [{"t": datetime(2024, 5, 1, 8, tzinfo=UTC)}]

    def test_options(self) -> None:
        assert rows("csv:///a?delimiter=;&quote='", "a;b\n'1;2';3\n") == [{"a": "1;2", "b": 3}]
        assert rows("csv:///a?has_header=false", "1,x\n") == [{"f0": 1, "f1": "x"}]
        assert rows("csv:///a.tsv", "a\tb\n1\t2\n") == [{"a": 1, "b": 2}]
        assert rows("csv:///a.tsv?delimiter=,", "a,b\n1,2\n") == [{"a": 1, "b": 2}]
        assert rows("csv:///a?delimiter=tab", "a\tb\n1\t2\n") == [{"a": 1, "b": 2}]
        assert rows("csv:///a?escape=\\", 'a,b\n"say \\"hi\\"",2\n') == [{"a": 'say "hi"', "b": 2}]
        nulls = rows("csv:///a?null_values=NA,-", "a\n1\nNA\n-\n")
        assert nulls == [{"a": 1}, {"a": None}, {"a": None}]

    def test_types_come_from_the_first_rows(self) -> None:
        text = "a,b\n1,\n2.5,x\n"
        assert types("csv:///a?infer_rows=0", text) == {"a": "double", "b": "string"}
        with pytest.raises(
            SourceError, match=r"line 3 of /a: column 'a' holds '2\.5'(.|\n)*infer_rows=0"
        ):
            rows("csv:///a?infer_rows=1", text)
        with pytest.raises(SourceError, match="line 3 of /a: column 'b' holds 'x', and nothing"):
            rows("csv:///a?infer_rows=1", "a,b\n1,\n2,x\n")

    def test_many_blocks(self) -> None:
        lines = [f"{n},{'x' * 1000}\n" for n in range(10_000)]
        found = table("csv:///a", "n,text\n" + "".join(lines))
        assert found.num_rows == 10_000
        assert len(found["n"].chunks) > 1
        assert found["n"].to_pylist() == list(range(10_000))

    def test_a_header_alone(self) -> None:
        found = table("csv:///a", "a,b\n")
        assert (found.num_rows, found.column_names) == (0, ["a", "b"])
        assert types("csv:///a", "a,b\n") == {"a": "null", "b": "null"}

    @pytest.mark.parametrize(
        ("url", "content", "said"),
        [
            ("csv:///a", b"", "is empty"),
            ("csv:///a", b"\n\n", "shows no columns"),
            ("csv:///a", b"a,b\n1\n", "can't be read"),
            ("csv:///a", b"a,a\n1,2\n", "names 2 columns 'a'"),
            ("csv:///a", b"a\n\xff\n", "UTF-8"),
            ("csv:///a.gz", b"a\n1\n", "can't be read as csv(.|\n)*read as gzip"),
        ],
    )
    def test_what_is_wrong(self, url: str, content: bytes, said: str) -> None:
        with pytest.raises(MillpondError, match=said) as caught:
            rows(url, content)
        assert "/a" in caught.value.message

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("csv:///a?sep=;", "unknown option 'sep'(.|\n)*options of csv are delimiter, quote"),
            ("csv:///a?delimiter=", "delimiter(.|\n)*one character"),
            ("csv:///a?infer_rows=many", "infer_rows(.|\n)*a whole number is wanted"),
            ("csv:///a?has_header=maybe", "has_header(.|\n)*true or false is wanted"),
            ("delta:///a?as_of=yesterday", "as_of(.|\n)*a time is wanted: 2024-05-01"),
            ("delta:///a?as_of=2024-05-01&version=1", "don't fit(.|\n)*not both"),
            ("csv:///a?infer_rows=-1", "infer_rows"),
            ("json:///a?delimiter=;", "json has none"),
            ("weblog:///a?x=1", "weblog has none"),
            ("cvs:///a", "did you mean csv"),
        ],
    )
    def test_options_that_there_are_not(self, url: str, said: str) -> None:
        with pytest.raises(UrlError, match=said):
            rows(url, "a\n1\n")


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2"])
def test_compressions(codec: str) -> None:
    plain = b"a\n1\n"
    packed = {
        "gzip": gzip.compress(plain[:2]) + gzip.compress(plain[2:]),
        "zstd": pa.compress(plain, "zstd", asbytes=True),
        "bzip2": bz2.compress(plain),
    }[codec]
    ending = {"gzip": "gz", "zstd": "zst", "bzip2": "bz2"}[codec]
    for url in (f"csv+{codec}:///a", f"csv://{codec}/a", f"csv:///a.csv.{ending}"):
        assert rows(url, packed) == [{"a": 1}]
    with pytest.raises(SourceError, match="can't be read as csv"):
        rows(f"csv+{codec}:///a", packed[:-3])


class TestJson:
    def test_values(self) -> None:
        text = (
            '{"t": "2024-05-01T10:00:00.5Z", "n": 1, "deep": {"a": [1]}, "s": "x"}\n\n'
            '{"t": "2024-05-01T12:00:00+02:00", "n": 2.5, "new": true, "deep": {"b": "y"}}\n'
        )
        found = rows("json:///a", text)
        assert found == [
            {"t": datetime(2024, 5, 1, 10, 0, 0, 500_000, UTC), "n": 1.0, "s": "x", "new": None,
             "deep": {"a": [1], "b": None}},
            {"t": datetime(2024, 5, 1, 10, tzinfo=UTC), "n": 2.5, "s": None, "new": True,
             "deep": {"a": None, "b": "y"}},
        ]  # fmt: skip

    def test_types(self) -> None:
        line = '{"d": "2024-05-01", "t": "2024-05-01 10:00:00", "x": null, "l": [], "s": "a"}\n'
        assert types("json:///a", line) == {
            "d": "date32[day]", "t": NTZ, "x": "null", "l": "list<element: string>", "s": "string"
        }  # fmt: skip

    def test_members_that_appear_late(self) -> None:
        lines = ['{"a": 1, "pad": "%s"}\n' % ("x" * 1000) for _ in range(10_000)]
        text = "".join([*lines, '{"a": 0.5, "late": "2024-05-01T00:00:00Z"}\n'])
        found = table("json:///a", text)
        assert found.num_rows == 10_001
        assert found.schema.field("a").type == pa.float64()
        assert found["late"].null_count == 10_000

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('{"a": 1}\n{oops\n', "line 2 of /a is not a JSON object"),
            ("[1]\n", "line 1 of /a is not a JSON object"),
            ('{"a": 1}\n{"a": "x"}\n', "line 2 of /a has text in member 'a'.*a number in line 1"),
            ('{"a": {}}\n', "'a' that is an object without members"),
            ("\n\n", "shows no columns"),
        ],
    )
    def test_what_is_wrong(self, content: str, said: str) -> None:
        with pytest.raises(SourceError, match=said):
            rows("json:///a", content)

    def test_conflicts_between_blocks(self) -> None:
        lines = ['{"a": 1, "pad": "%s"}\n' % ("x" * 1000) for _ in range(10_000)]
        with pytest.raises(SourceError, match=r"line 10001 of /a has text in member 'a'"):
            rows("json:///a", "".join([*lines, '{"a": "x"}\n']))
