"""Commits as texts that no good writer writes: what they say is read, or what is wrong is told.

Each is read as it is, a small file, and block by block, as large ones are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.kernel.handmade import add, begin, commit, info, metadata, protocol, remove

from millpond import delta_table
from millpond.base.errors import CorruptLogError
from millpond.engine.arrow.source import jsonfiles, jsonlines
from millpond.kernel import names

if TYPE_CHECKING:
    from pathlib import Path

DV = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}


@pytest.fixture(params=["small", "blocks"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How files are read."""
    if request.param == "blocks":
        monkeypatch.setattr(jsonfiles, "_SMALL_BYTES", 1)
        monkeypatch.setattr(jsonlines, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(jsonlines, "PIECE", 3)
    return str(request.param)


def write(table: Path, version: int, content: str | bytes) -> Path:
    file = table / "_delta_log" / names.commit_name(version)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def text(*actions: Any) -> str:
    return "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions)


def live(table: Path) -> list[str]:
    return sorted(delta_table(table).files(columns=["path"])["path"].to_pylist())


ADDS = [add(name) for name in ("a", "b", "c", "d", "e")]
WAYS = {
    "plain": text(*ADDS),
    "no end": text(*ADDS)[:-1],
    "blank lines": "\n \n" + text(*ADDS).replace("\n", "\n\n\t\n"),
    "CRLF": text(*ADDS).replace("\n", "\r\n"),
    "mark": "\ufeff" + text(*ADDS),
    "spaces": text(*ADDS).replace("{", "{ ").replace("\n", "  \n"),
    "escaped": text(*ADDS).replace('"a"', '"\\u0061"').replace('"path"', '"p\\u0061th"'),
    "other members": text(info(a={"add": {"path": "no"}}), *ADDS, {"x": [1]}, {"add": None}),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("size")
def test_ways_to_write_the_same(tmp_path: Path, way: str) -> None:
    begin(tmp_path, add("first"))
    write(tmp_path, 1, WAYS[way])
    commit(tmp_path, 2, add("last"), remove("e"))
    assert live(tmp_path) == ["a", "b", "c", "d", "first", "last"]


PATHS = [
    "ü#.parquet",
    'quo"te',
    "back\\slash",
    "line\nend",
    "%20 %2520",
    "😀",
    "\u2028",
    "a\tb",
    "=",
]


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.usefixtures("size")
def test_paths_of_any_characters(tmp_path: Path, plain: bool) -> None:
    begin(tmp_path)
    content = "".join(json.dumps(add(path), ensure_ascii=plain) + "\n" for path in PATHS)
    write(tmp_path, 1, content)
    write(tmp_path, 2, json.dumps(remove(PATHS[0]), ensure_ascii=not plain))
    assert live(tmp_path) == sorted(PATHS[1:])


@pytest.mark.usefixtures("size")
def test_files_that_are_named_again(tmp_path: Path) -> None:
    begin(tmp_path, *ADDS, add("a"))
    commit(tmp_path, 1, add("a"), add("a"), remove("b"), add("new"))
    commit(tmp_path, 2, remove("c"), add("c"), add("d", deletionVector=DV), remove("d"))
    commit(tmp_path, 3, remove("new"), add("e", deletionVector=None))
    found = delta_table(tmp_path).files(columns=["path", "deletionVector"])
    rows = {(row["path"], row["deletionVector"] is not None) for row in found.to_pylist()}
    assert len(found) == 4
    assert rows == {("a", False), ("c", False), ("d", True), ("e", False)}


def test_a_vector_that_comes_late_is_seen(tmp_path: Path, size: str) -> None:
    count = 40 if size == "blocks" else 10
    begin(tmp_path, *(add(f"{number:02}") for number in range(count)))
    commit(tmp_path, 1, *(add(f"new {number:02}") for number in range(count)))
    commit(tmp_path, 2, *(add(f"more {number:02}") for number in range(count)), remove("00"))
    late = [remove("07"), add("07", deletionVector=DV)]
    write(tmp_path, 1, text(*(add(f"new {number:02}") for number in range(count)), *late))
    found = delta_table(tmp_path).files().to_pylist()
    assert len(found) == 3 * count - 1
    (row,) = [row for row in found if row["deletionVector"] is not None]
    assert (row["path"], row["deletionVector"]["offset"]) == ("07", 4)


TORN: dict[str, tuple[str | bytes, str]] = {
    "torn": (text(*ADDS) + '{"add":{"path":"f', "is not a JSON object"),
    "torn name": (text(*ADDS) + '{"rem', "is not a JSON object"),
    "no JSON": (text(*ADDS) + "add f\n", "is not a JSON object"),
    "two": (text(*ADDS)[:-1] + text(add("f")), "is not a JSON object"),
    "many lines": (json.dumps(add("f"), indent=1), "is not a JSON object"),
    "list": (text(*ADDS, [add("f")]), "is not a JSON object"),
    "number": (text(*ADDS, {"add": {"path": 7}}), "does not fit"),
    "vector": (text(*ADDS, add("f", deletionVector="x")), "does not fit"),
    "remove": (text(*ADDS, {"remove": ["f"]}), "does not fit"),
    "no UTF-8": (text(*ADDS).encode() + b'{"add":{"path":"\xff"}}\n', "is not UTF-8"),
}


@pytest.mark.parametrize("way", TORN)
@pytest.mark.usefixtures("size")
def test_what_is_broken_is_told(tmp_path: Path, way: str) -> None:
    content, problem = TORN[way]
    begin(tmp_path, add("first"))
    file = write(tmp_path, 1, content)
    commit(tmp_path, 2, add("last"))
    with pytest.raises(
        CorruptLogError, match=f"{file.name} of .* can't be read: .*{problem}"
    ) as it:
        live(tmp_path)
    assert it.value.path == str(file)
    assert live_at(tmp_path, 0) == ["first"]


def live_at(table: Path, version: int) -> list[str]:
    return delta_table(table, version=version).files(columns=["path"])["path"].to_pylist()  # type: ignore[no-any-return]


@pytest.mark.usefixtures("size")
def test_a_commit_of_no_bytes_is_an_error(tmp_path: Path) -> None:
    begin(tmp_path, add("first"))
    write(tmp_path, 1, b"")
    commit(tmp_path, 2, add("last"))
    with pytest.raises(CorruptLogError, match=r"0001\.json of .* is empty"):
        live(tmp_path)


@pytest.mark.usefixtures("size")
def test_an_action_without_a_path_is_an_error(tmp_path: Path) -> None:
    begin(tmp_path, add("first"))
    commit(tmp_path, 1, *ADDS, {"remove": {"deletionTimestamp": 0}})
    with pytest.raises(CorruptLogError, match=r"an action of version 1 of .* has no path"):
        live(tmp_path)


@pytest.mark.usefixtures("size")
def test_a_protocol_among_many_commits_is_found(tmp_path: Path) -> None:
    begin(tmp_path, add("first"))
    for version in range(1, 30):
        commit(tmp_path, version, info(n=version), add(str(version)))
    write(tmp_path, 11, text(add("11"), protocol(1, 4)).replace("protocol", "pr\\u006ftocol"))
    commit(tmp_path, 17, add("17"), metadata(appendOnly="true"))
    opened = delta_table(tmp_path)
    assert opened.protocol.min_writer_version == 4
    assert opened.metadata.configuration == {"delta.appendOnly": "true"}
    assert live(tmp_path) == sorted(["first", *map(str, range(1, 30))])
