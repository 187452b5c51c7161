"""Strict JSON scans: what does not fit is an error that names the line, never a null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import PlanError, SourceError
from millpond.plan.sources import File, Scan
from millpond.plan.types import LONG, STRING, Map, Struct

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = Struct.of(a=Struct.of(path=STRING, size=LONG, values=Map(STRING, STRING)))


def scan(path: Path, content: bytes, *, strict: bool = True) -> list[Any]:
    file = path / "x.json"
    file.write_bytes(content)
    plan = Scan("json", (File(str(file)),), COLUMNS, strict=strict)
    found: list[Any] = plan.to_arrow(engine="arrow").to_pylist(maps_as_pydicts="strict")
    return found


@pytest.mark.parametrize(
    "line",
    [
        b'{"a": -1}',
        b'{"a": {"path": ["x"]}}',
        b'{"a": {"path": "x", "size": "9"}}',
        b'{"a": {"path": "x", "size": 9.5}}',
        b'{"a": {"path": "x", "values": {"p": 3}}}',
        b'{"a": {"path": "x\xe2"}}',
        b'{"a": {"path": "\\ud800"}}',
    ],
)
@pytest.mark.parametrize("large", [False, True])
def test_what_does_not_fit_is_named(tmp_path: Path, line: bytes, large: bool) -> None:
    good = b'{"a": {"path": "y", "size": 1, "values": {"p": null}}}\n'
    before = good * (30_000 if large else 2)
    with pytest.raises(SourceError, match=rf"line {before.count(good) + 1} of .*x\.json"):
        scan(tmp_path, before + line + b"\n" + good)
    assert scan(tmp_path, before + line + b"\n" + good, strict=False), "otherwise it is a null"


def test_what_fits_is_read(tmp_path: Path) -> None:
    text = '{"other": [1], "a": {"path": "é", "size": 1, "more": 2}}\n\n{"b": 1}\r\n{"a": null}'
    assert scan(tmp_path, text.encode()) == scan(tmp_path, text.encode(), strict=False)
    assert scan(tmp_path, b"\xef\xbb\xbf" + text.encode())[0]["a"]["path"] == "é"


def test_only_json_is_read_strictly() -> None:
    with pytest.raises(PlanError, match="parquet"):
        Scan("parquet", (), COLUMNS, strict=True)
