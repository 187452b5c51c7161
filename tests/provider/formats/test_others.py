"""Parquet, Arrow, logs of web servers, metrics of OpenTelemetry, tables in HTML."""

from __future__ import annotations

import gzip
import io
import json
import struct
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.provider.formats.reading import rows, table, types

from millpond.base.errors import SourceError, UrlError


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2024, 5, day, hour, minute, tzinfo=UTC)


class TestBinary:
    def test_parquet(self) -> None:
        sink = io.BytesIO()
        pq.write_table(pa.table({"a": [1, 2], "b": ["x", None]}), sink)
        expected = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
        assert rows("parquet:///a", sink.getvalue()) == expected
        assert rows("parquet+gzip:///a", gzip.compress(sink.getvalue())) == expected
        with pytest.raises(SourceError, match="/a is not Parquet: its end is missing"):
            rows("parquet:///a", sink.getvalue()[:-5])
        with pytest.raises(SourceError, match=r"/a\.csv is not Parquet(.|\n)*csv://"):
            rows("parquet:///a.csv", "a\n1\n")

    def test_arrow_files_and_streams(self) -> None:
        data = pa.table({"a": [1, 2], "t": pa.array([1, None], pa.timestamp("ns", "UTC"))})
        for make in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = io.BytesIO()
            with make(sink, data.schema) as writer:
                writer.write_table(data, max_chunksize=1)
            assert table("arrow:///a", sink.getvalue()) == data
            assert table("arrow+gzip:///a", gzip.compress(sink.getvalue())) == data
        with pytest.raises(SourceError, match="/a is neither a file nor a stream of Arrow"):
            rows("arrow:///a", b"what else, this is no Arrow")

    @pytest.mark.parametrize("make", [pa.ipc.new_file, pa.ipc.new_stream])
    @pytest.mark.parametrize(
        ("column", "good", "bad"),
        [
            (
                pa.array([[7], [8, 9]]),
                struct.pack("<3i", 0, 1, 3),
                struct.pack("<3i", 0, 1 << 30, 3),
            ),
            (pa.array(["a", "bc"]), struct.pack("<3i", 0, 1, 3), struct.pack("<3i", 0, 1 << 30, 3)),
            (pa.array(["text"]), b"text", b"\xff\xfe\xff\xfe"),
            (
                pa.array(["x", "y", "z"]).dictionary_encode(),
                struct.pack("<3i", 0, 1, 2) + bytes(4),
                struct.pack("<3i", 0, 1 << 30, 2) + bytes(4),
            ),
        ],
        ids=["list", "string", "not text", "dictionary"],
    )
    def test_arrow_that_would_crash_the_process(
        self, make: Any, column: pa.Array, good: bytes, bad: bytes
    ) -> None:
        batch = pa.record_batch([column], names=["c"])
        sink = io.BytesIO()
        with make(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = sink.getvalue()
        assert table("arrow:///a", content).num_rows == len(column)
        changed = content[::-1].replace(good[::-1], bad[::-1], 1)[::-1]  # the rows come last
        assert changed != content
        with pytest.raises(SourceError, match="/a has a batch that is not valid Arrow") as caught:
            table("arrow:///a", changed)
        assert caught.value.hint


COMMON = '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326'


class TestWeblog:
    def test_common(self) -> None:
        assert rows("weblog:///a", f"{COMMON}\n\n") == [
            {
                "ip": "127.0.0.1", "ident": None, "user": "frank",
                "timestamp": datetime(2000, 10, 10, 20, 55, 36, tzinfo=UTC),
                "method": "GET", "path": "/a.gif", "protocol": "HTTP/1.0",
                "status": 200, "bytes": 2326, "referer": None, "agent": None,
            }
        ]  # fmt: skip

    def test_combined(self) -> None:
        line = f'{COMMON} "http://x/?q=\\"a\\"" "Mozilla/4.08 [en]"\r\n'
        found = rows("weblog:///a", line)[0]
        assert (found["referer"], found["agent"]) == ('http://x/?q="a"', "Mozilla/4.08 [en]")
        assert rows("weblog:///a", f'{COMMON} "-" "-"')[0]["agent"] is None

    @pytest.mark.parametrize(
        ("request_", "expected"),
        [
            ("-", (None, None, None)),
            ("GET /a b HTTP/1.1", ("GET", "/a b", "HTTP/1.1")),
            ("GET /", ("GET", "/", None)),
            (r"\x16\x03\x01", (None, r"\x16\x03\x01", None)),
        ],
    )
    def test_requests(self, request_: str, expected: tuple[Any, ...]) -> None:
        line = f'h - - [01/May/2024:00:00:00 +0000] "{request_}" 400 -'
        found = rows("weblog:///a", line)[0]
        assert (found["method"], found["path"], found["protocol"]) == expected
        assert (found["status"], found["bytes"]) == (400, None)

    @pytest.mark.parametrize(
        "line",
        [
            "hello",
            COMMON.replace("Oct", "Okt"),
            COMMON.replace("10/Oct", "32/Oct"),
            COMMON.replace(" 200", " two"),
            COMMON[:-8],
        ],
    )
    def test_lines_that_do_not_fit_are_named(self, line: str) -> None:
        with pytest.raises(SourceError, match="line 2 of /a is no line of a web log"):
            rows("weblog:///a", f"{COMMON}\n{line}\n")
        with pytest.raises(SourceError, match="line 1 of /a is not UTF-8"):
            rows("weblog:///a", b"\xff\n")

    def test_many(self) -> None:
        assert table("weblog:///a", f"{COMMON}\n" * 20_000).num_rows == 20_000


def metric(name: str, *points: dict[str, Any], kind: str = "gauge") -> dict[str, Any]:
    return {"name": name, kind: {"dataPoints": list(points)}}


def point(time: datetime, **more: Any) -> dict[str, Any]:
    return {"timeUnixNano": str(int(time.timestamp()) * 10**9), **more}


def line(*metrics: dict[str, Any], **resource: str) -> str:
    attributes = [{"key": k, "value": {"stringValue": v}} for k, v in resource.items()]
    scope = {"scopeMetrics": [{"scope": {}, "metrics": list(metrics)}]}
    return json.dumps({"resourceMetrics": [{"resource": {"attributes": attributes}, **scope}]})


def device(name: str) -> list[dict[str, Any]]:
    return [{"key": "device", "value": {"stringValue": name}}]


class TestOtel:
    def test_points_of_one_time_are_one_row(self) -> None:
        text = "\n".join(
            [
                line(metric("level", point(at(2), asDouble=2.5))),
                line(
                    metric("level", point(at(1), asDouble=1.5)),
                    metric("count", point(at(1), asInt="7"), kind="sum"),
                    metric("times", {"count": 1}, kind="histogram"),
                ),
                line(metric("count", point(at(2), asInt=9007199254740993), kind="sum")),
            ]
        )
        assert rows("oteljson:///a", text) == [
            {"timestamp": at(1), "level": 1.5, "count": 7},
            {"timestamp": at(2), "level": 2.5, "count": 9007199254740993},
        ]

    def test_ints_and_doubles_together_are_doubles(self) -> None:
        text = line(metric("a", point(at(1), asInt="1"), point(at(2), asDouble="NaN")))
        assert types("oteljson:///a", text)["a"] == "double"

    def test_attributes_only_where_they_tell_points_apart(self) -> None:
        text = line(
            metric(
                "free",
                point(at(1), asInt=1, attributes=device("sda")),
                point(at(1), asInt=2, attributes=device("sdb")),
            ),
            metric("load", point(at(1), asInt=3, attributes=device("cpu"))),
        )
        assert rows("oteljson:///a", text) == [
            {"timestamp": at(1), "free{device=sda}": 1, "free{device=sdb}": 2, "load": 3}
        ]
        assert "load{device=cpu}" in types("oteljson:///a?attributes=always", text)

    def test_resources_tell_points_apart_too(self) -> None:
        text = "\n".join(line(metric("up", point(at(1), asInt=1)), host=h) for h in "ab")
        assert rows("oteljson:///a", text) == [
            {"timestamp": at(1), "up{host=a}": 1, "up{host=b}": 1}
        ]

    def test_what_was_sent_twice_and_what_is_nothing(self) -> None:
        text = "\n".join(
            [
                line(metric("a", point(at(1), asInt=1))),
                line(metric("a", point(at(1), asInt=2), point(at(2), flags=1))),
            ]
        )
        assert rows("oteljson:///a", text) == [{"timestamp": at(1), "a": 2}]

    def test_many_rows(self) -> None:
        points = [point(datetime.fromtimestamp(n, UTC), asInt=n) for n in range(20_000, 0, -1)]
        found = table("oteljson:///a", line(metric("a", *points)))
        assert found["a"].to_pylist() == list(range(1, 20_001))

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("{oops", "line 1 of /a is no JSON"),
            ('{"resourceLogs": []}', "line 1 of /a holds no metrics"),
            (line(metric("a", {"asInt": 1})), "line 1 of /a is not OTLP: KeyError"),
            (line(metric("a", point(at(1)))), "line 1 of /a is not OTLP"),
            (line(metric("a", point(at(1), asInt=2**64))), "no 64-bit number"),
            (line(), "/a has no points of gauges or sums"),
            (line(metric("timestamp", point(at(1), asInt=1))), "a metric 'timestamp'"),
        ],
    )
    def test_what_is_wrong(self, text: str, said: str) -> None:
        with pytest.raises(SourceError, match=said):
            rows("oteljson:///a", text)
        with pytest.raises(UrlError, match=r"attributes(.|\n)*'auto' or 'always'"):
            rows("oteljson:///a?attributes=maybe", text)


def html(*tables: list[list[str]], head: str = "") -> str:
    """Tables as a page."""
    shown = [
        "<table>" + "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>\n" for row in rows_)
        + "</table>"
        for rows_ in tables
    ]  # fmt: skip
    return f"<html><head>{head}</head><body><p>Report</p>{''.join(shown)}</body></html>"


HEADER = ["Date Time", "Temperature (C)", "Depth &amp; more (ft)"]
DATA = [["2024-05-01 00:00:00", "12.5", "3"], ["2024-05-01 00:15:00", "", "4"]]
READINGS = [
    {"timestamp": at(1), "Temperature (C)": 12.5, "Depth & more (ft)": 3},
    {"timestamp": at(1, 0, 15), "Temperature (C)": None, "Depth & more (ft)": 4},
]


class TestExcelHtml:
    def test_one_table(self) -> None:
        assert rows("excelhtml:///a.htm", html([HEADER, *DATA])) == READINGS
        assert (
            rows("excelhtml+gzip:///a", gzip.compress(html([HEADER, *DATA]).encode())) == READINGS
        )

    def test_what_comes_before_the_data(self) -> None:
        preamble = [
            ["Location Properties"], ["Location Name", "Weir"], ["Latitude", "48.2"],
            ["Report Properties", ""], ["Start Time", "2024-05-01 00:00:00"],
            ["Time Offset", "-06:00:00"], ["Duration", "31 days"],
        ]  # fmt: skip
        other = [["Sensor", "Serial"], ["Level TROLL 500", "703243"]]
        for page in (html([*preamble, HEADER, *DATA]), html(preamble, other, [HEADER, *DATA])):
            assert rows("excelhtml:///a", page) == READINGS

    def test_units_in_a_row_of_their_own(self) -> None:
        page = html([["Time", "Temp", "pH"], ["", "C", ""], ["2024-05-01T00:00:00Z", "1", "7"]])
        assert rows("excelhtml:///a", page) == [{"timestamp": at(1), "Temp (C)": 1, "pH": 7}]

    def test_pages_as_they_are_written_by_hand(self) -> None:
        page = (
            "<TABLE><thead><tr><th>Date/Time<th>Level<th>Level<th>Note</thead>"
            "<tr class=data><td>5/1/2024 1:15:00 PM<td><b>1</b>.5<td>2<td>a<br>b"
            "<tr><td>5/1/2024 12:00 AM<td>N/A<td>--<td>"
            '<tr><td colspan="4">End of data</table><script>"<table>"</script>'
        )
        assert rows("excelhtml:///a", page) == [
            {"timestamp": at(1, 13, 15), "Level": 1.5, "Level (2)": 2, "Note": "a b"},
            {"timestamp": at(1), "Level": None, "Level (2)": None, "Note": None},
        ]

    def test_a_table_within_a_table(self) -> None:
        inner = html([HEADER, *DATA])
        page = f"<table><tr><td>left</td><td>{inner}</td></tr></table>"
        assert rows("excelhtml:///a", page) == READINGS

    def test_one_table_in_two_parts(self) -> None:
        assert rows("excelhtml:///a", html([HEADER, DATA[0]], [HEADER, DATA[1]])) == READINGS

    def test_times(self) -> None:
        local = html([["Date and Time", "v"], ["1.5.2024 02:00", "1"]])
        url = "excelhtml:///a?time_format=%25d.%25m.%25Y %25H:%25M&time_zone=Europe/Vienna"
        assert rows(url, local) == [{"timestamp": at(1), "v": 1}]
        for day in ("2024-05-01", "5/1/2024"):
            daily = rows("excelhtml:///a", html([["Date", "v"], [day, "1"]]))
            assert daily == [{"timestamp": at(1), "v": 1}]
        url = "excelhtml:///a?time_zone=America/Denver"
        assert rows(url, html([["Time", "v"], ["2024-05-01 00:00", "1"]]))[0]["timestamp"] == at(
            1, 6
        )

    def test_encodings(self) -> None:
        page = html([["Time", "Temp °C"], ["2024-05-01 00:00:00", "1"]])
        named = html(
            [["Time", "Temp °C"], ["2024-05-01 00:00:00", "1"]],
            head='<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">',
        )
        for url, content in (
            ("excelhtml:///a", page.encode()),
            ("excelhtml:///a", page.encode("utf-8-sig")),
            ("excelhtml:///a", page.encode("utf-16")),
            ("excelhtml:///a", named.encode("cp1252")),
            ("excelhtml:///a?encoding=cp1252", page.encode("cp1252")),
        ):
            assert rows(url, content) == [{"timestamp": at(1), "Temp °C": 1}]
        with pytest.raises(SourceError, match=r"no text in utf-8(.|\n)*encoding=cp1252"):
            rows("excelhtml:///a", page.encode("cp1252"))

    def test_many_rows_in_many_blocks(self) -> None:
        data = [[f"2024-05-01 {n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}", f"{n}"]
                for n in range(40_000)]  # fmt: skip
        found = table("excelhtml:///a", html([["Time", "n"], *data]))
        assert found["n"].to_pylist() == list(range(40_000))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("<p>nothing</p>", "shows no table of readings"),
            (html([["Time", "v"], ["yesterday", "1"]]), "shows no table of readings"),
            (html([["Name", "v"], ["2024-05-01 00:00", "1"]]), "shows no table of readings"),
            (html([HEADER, *DATA, ["2024-05-01 01:00:00", "1"]]), "2 cells in row 4, and not 3"),
            (html([HEADER, *DATA, ["later", "1", "2"]]), "no time in row 4: 'later'"),
            (html([HEADER, *DATA], [["Time", "x"], ["2024-05-01 00:00", "1"]]), "has two tables"),
            (b"PK\x03\x04...", "a workbook of Excel(.|\n)*export it as HTML"),
            (b"\xd0\xcf\x11\xe0...", "a workbook of Excel"),
        ],
    )
    def test_what_is_wrong(self, content: str | bytes, said: str) -> None:
        with pytest.raises(SourceError, match=f"/a (.|\n)*{said}"):
            rows("excelhtml:///a", content)

    @pytest.mark.parametrize("option", ["time_zone=Mars", "encoding=what"])
    def test_options_that_can_not_be(self, option: str) -> None:
        with pytest.raises(UrlError, match=r"a name such as"):
            rows(f"excelhtml:///a?{option}", "")
