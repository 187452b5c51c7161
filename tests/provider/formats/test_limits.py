"""Packed files that unpack to too much, and lines that do not end, are errors in little memory."""

from __future__ import annotations

import bz2
import gzip
import resource
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.provider.formats.reading import rows, table

import millpond as mp
from millpond.base.errors import MillpondError, SourceError
from millpond.plan import types as t

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MIB = 1 << 20
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}
KINDS = {"gz": "gzip", "bz2": "bzip2", "zst": "zstd"}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def doors(file: Path, scheme: str) -> list[Callable[[], Any]]:
    """A file through `mp.scan`, and its bytes through a format."""
    name = f"{scheme}+{KINDS[file.suffix[1:]]}:///a" if file.suffix[1:] in KINDS else scheme
    url = name if ":" in name else f"{scheme}:///a"
    found: list[Callable[[], Any]] = [lambda: rows(url, file.read_bytes())]
    if scheme in ("csv", "json"):
        found.append(lambda: mp.scan(str(file)).to_arrow(engine="arrow"))
    return found


def check(file: Path, scheme: str, said: str, setting: str) -> None:
    for door in doors(file, scheme):
        with pytest.raises(MillpondError) as caught:
            door()
        assert isinstance(caught.value, SourceError)
        assert said in caught.value.message
        assert setting in (caught.value.hint or "")


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("scheme", ["csv", "json"])
def test_files_that_unpack_to_many_times_their_size(
    suffix: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millpond.engine.arrow.source.unpacked.HARMLESS", MIB)
    line = b'{"a": 1}\n' if scheme == "json" else b"a,b\n"
    file = tmp_path / f"a.{scheme}.{suffix}"
    file.write_bytes(PACKERS[suffix](line * MIB))
    monkeypatch.setenv("MILLPOND_LIMITS_UNPACKED_RATIO", "5")
    check(file, scheme, "unpacks to more than 5 times its size", "limits.unpacked_ratio")
    monkeypatch.setenv("MILLPOND_LIMITS_UNPACKED_RATIO", "1000000")
    for door in doors(file, scheme):
        assert door() is not None
    monkeypatch.setenv("MILLPOND_LIMITS_UNPACKED_BYTES", str(2 * MIB))
    check(file, scheme, "unpacks to more than 2,097,152 bytes", "limits.unpacked_bytes")


def test_one_line_of_json_out_of_a_few_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(
        b"".join(
            pa.compress(part, "zstd", asbytes=True)
            for part in (b'{"a":"', *[b"x" * (16 * MIB)] * 40, b'"}\n')
        )
    )
    assert file.stat().st_size < 100_000
    before = peak()
    with pytest.raises(SourceError, match="times its size"):
        mp.scan(str(file)).to_arrow(engine="arrow")
    assert peak() - before < 400 * MIB


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("scheme", ["json", "oteljson", "weblog"])
def test_lines_that_do_not_end(
    scheme: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MILLPOND_LIMITS_LINE_BYTES", str(3 * MIB))
    content = b'{"a": "' + b"x" * (4 * MIB) + b'"}\n'
    file = tmp_path / f"a.{scheme}{suffix}"
    file.write_bytes(gzip.compress(content) if suffix else content)
    check(file, scheme, "is longer than 3,145,728 bytes", "limits.line_bytes")


def test_the_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_LIMITS_LINE_BYTES", str(MIB))
    file = tmp_path / "a.jsonl"
    good = b'{"a": "x"}\n' * 300_000
    file.write_bytes(good + b'{"a": "' + b"x" * (2 * MIB) + b'"}\n')
    with pytest.raises(SourceError, match=f"the line that begins at byte {len(good):,} of"):
        mp.scan(str(file)).to_arrow(engine="arrow")
    file.write_bytes(good + b'{"a": "' + b"x" * (MIB - 20) + b'"}\n')
    assert mp.scan(str(file)).to_arrow(engine="arrow").num_rows == 300_001


def test_a_row_of_csv_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLPOND_LIMITS_LINE_BYTES", str(3 * MIB))
    file = tmp_path / "a.csv"
    file.write_bytes(b'a,b\n1,"' + b"x\n" * (4 * MIB))
    check(file, "csv", "a row", "limits.line_bytes")
    file.write_bytes(b'a,b\n1,"' + b"x\n" * MIB + b'"\n')
    assert mp.scan(str(file)).to_arrow(engine="arrow").num_rows == 1


def test_packed_files_within_the_limits() -> None:
    data = "a,b\n" + "1,x\n" * 100_000
    for suffix, pack in PACKERS.items():
        assert table(f"csv+{KINDS[suffix]}:///a", pack(data.encode())).num_rows == 100_000


DEEP = 100_000
TOO_DEEP = {
    "objects": '{"v":' * DEEP + "1" + "}" * DEEP,
    "lists": '{"v":' + "[" * DEEP + "]" * DEEP + "}",
    "open": '{"v":' * DEEP,
    "resourceMetrics": '{"resourceMetrics":' + "[" * DEEP + "]" * DEEP + "}",
}


@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
def test_what_is_nested_too_deeply_is_an_error_at_every_door(text: str, tmp_path: Path) -> None:
    """It was the end of the process."""
    file = tmp_path / "a.jsonl"
    file.write_text(text + "\n")
    declared = t.Struct.of(v=t.LONG)
    for door in (
        lambda: rows("json:///a", text),
        lambda: rows("oteljson:///a", text),
        lambda: mp.scan(str(file)).to_arrow(engine="arrow"),
        lambda: mp.scan(str(file), schema=declared).to_arrow(engine="arrow"),
    ):
        with pytest.raises(SourceError, match=r"line 1 of .*a(\.jsonl)? ") as caught:
            door()
        assert caught.value.hint
    parsed = mp.values([{"x": text}]).parse_json("x", {"v": "long"}, output="y")
    assert parsed.select("y").to_arrow(engine="arrow").to_pylist()[0]["y"] in (None, {"v": None})


def test_the_depth_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(TOO_DEEP["objects"])
    with pytest.raises(SourceError, match=r"line 1 of .* deeper than 100 levels"):
        mp.scan(str(file)).to_arrow(engine="arrow")
    with pytest.raises(SourceError, match=r"line 1 of .* deeper than 999 levels"):
        mp.scan(str(file), schema=t.Struct.of(v=t.LONG)).to_arrow(engine="arrow")
