"""Strict JSON scans: what does not fit is an error that names the line, never a null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import PlanError, SourceError
from millpond.plan.sources import File, Scan
from millpond.plan.types import BINARY, BOOLEAN, LONG, STRING, List, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millpond.plan.sources import OnError

COLUMNS = Struct.of(
    a=Struct.of(path=STRING, size=LONG, values=Map(STRING, STRING), names=List(STRING), ok=BOOLEAN)
)
GOOD = b'{"a": {"path": "y", "size": 1, "values": {"p": null, "q": ""}, "names": [null, "a"]}}\n'


MISFITS = [
    b'{"a": -1}',
    b'{"a": {"path": ["x"]}}',
    b'{"a": {"path": "x", "size": "9"}}',
    b'{"a": {"path": "x", "size": 9.5}}',
    b'{"a": {"path": "x", "values": {"p": 3}}}',
    b'{"a": {"path": "x", "names": ["p", 3]}}',
    b'{"a": {"path": "x", "names": {"p": "q"}}}',
    b'{"a": {"path": "x", "ok": "true"}}',
    b'{"a": {"path": "x\xe2"}}',
    b'{"a": {"path": "\\ud800"}}',
]


def scan(path: Path, content: bytes, *, strict: bool = True, engine: str = "arrow") -> list[Any]:
    file = path / "x.json"
    file.write_bytes(content)
    on_error: OnError = "error" if strict else "null"
    plan = Scan("json", (File(str(file)),), COLUMNS, strict=strict, on_error=on_error)
    found: list[Any] = plan.to_arrow(engine=engine).to_pylist(maps_as_pydicts="strict")
    return found


@pytest.mark.parametrize("line", MISFITS)
@pytest.mark.parametrize("large", [False, True])
def test_what_does_not_fit_is_named(tmp_path: Path, line: bytes, large: bool) -> None:
    count = 30_000 if large else 2
    content = GOOD * count + line + b"\n" + GOOD
    with pytest.raises(SourceError, match=rf"line {count + 1} of .*x\.json"):
        scan(tmp_path, content)
    assert scan(tmp_path, content, strict=False), "otherwise it is a null"


@pytest.mark.spark
def test_spark_names_what_does_not_fit(tmp_path: Path, spark: SparkSession) -> None:
    for line in MISFITS:
        with pytest.raises(SourceError, match=r"a line of .*x\.json does not fit"):
            scan(tmp_path, GOOD * 2 + line + b"\n" + GOOD, engine="spark")


FITS = (
    '{"other": [1], "a": {"path": "é", "size": 1, "more": 2, "names": [], "values": {}}}\n\n'
    '{"b": 1}\r\n{"a": null}\n{"a": {"path": null, "names": ["x", null], "ok": false}}'
).encode()


def test_what_fits_is_read(tmp_path: Path) -> None:
    assert scan(tmp_path, FITS) == scan(tmp_path, FITS, strict=False)
    assert scan(tmp_path, b"\xef\xbb\xbf" + FITS)[0]["a"]["path"] == "é"


@pytest.mark.spark
def test_spark_reads_what_fits(tmp_path: Path, spark: SparkSession) -> None:
    for content in (FITS, b"\xef\xbb\xbf" + FITS):
        assert scan(tmp_path, content, engine="spark") == scan(tmp_path, content)


def test_what_can_not_be_read_strictly() -> None:
    with pytest.raises(PlanError, match="bytes"):
        Scan("bytes", (), Struct.of(content=BINARY), strict=True)
    with pytest.raises(PlanError, match="does not fit as null"):
        Scan("json", (), Struct.of(a=STRING), strict=True, on_error="null")
    with pytest.raises(PlanError, match="on_error='skip'"):
        Scan("json", (), Struct.of(a=STRING), on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="on_error does not fit a parquet scan"):
        Scan("parquet", (), Struct.of(a=STRING), on_error="null")
