"""`pond copy`: directions, options, messages, exit codes, progress, and how much it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.terminal import on_terminal

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli

LARGE = 300 << 20
MOST_MEGABYTES = 200


@pytest.fixture
def files(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    (found / "d" / "e").mkdir(parents=True)
    (found / "a.txt").write_text("hello")
    (found / "d" / "e" / "b c.txt").write_text("you")
    (found / "s.csv").write_text("time,n\n2024-05-01T00:00:00Z,1\n2024-05-02T00:00:00Z,2\n")
    table = pa.table({"time": pa.array([0, 5_000_000], pa.timestamp("us", "UTC")), "n": [1, 2]})
    pq.write_table(table, found / "s.parquet")
    return found


def paths(cli: Cli) -> list[str]:
    return [row["path"] for row in cli.json("list")]


def test_in_out_and_within(cli: Cli, files: Path, tmp_path: Path) -> None:
    result = cli("copy", f"host://{files}/a.txt", "/a")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "copied 1 file (5 B) in transaction 1\n"
    cli.ok("cp", "./files/d", "/")
    cli.ok("copy", "a", "/d/")
    assert paths(cli) == ["/a", "/d", "/d/a", "/d/e", "/d/e/b c.txt"]
    result = cli("copy", "/d", "host://./out/")
    assert result.stderr == f"copied 2 files (8 B) to {tmp_path}/out/\n"
    assert (tmp_path / "out" / "d" / "e" / "b c.txt").read_text() == "you"


def test_json(cli: Cli, files: Path) -> None:
    found = cli.json("copy", f"host://{files}/a.txt", f"host+table://{files}/s.parquet", "/")
    assert found["txn_seq"] == 1
    assert [
        (one["source"], one["target"], one["type"], one["version"]) for one in found["copied"]
    ] == [
        (f"{files}/a.txt", "/a.txt", "data", 1),
        (f"{files}/s.parquet", "/s.parquet", "table", 1),
    ]
    found = cli.json("copy", "/a.txt", f"host://{files}/new.txt")
    assert found == {
        "copied": [
            {"source": "/a.txt", "target": f"{files}/new.txt", "type": "data", "version": None,
             "size": 5},
        ]
    }  # fmt: skip


def test_every_way_in(cli: Cli, files: Path) -> None:
    cli.ok("copy", f"host+series://{files}/s.parquet", "/parquet")
    cli.ok("copy", f"host+csv+series://{files}/s.csv", "/csv")
    cli.ok("copy", f"host+csv+table://{files}/s.csv", "/table")
    cli.ok("copy", "-p", f"host://{files}/s.csv", "/new/dir/raw.csv")
    kinds = {row["path"]: row["type"] for row in cli.json("list")}
    assert kinds == {
        "/csv": "series", "/new": "directory", "/new/dir": "directory", "/new/dir/raw.csv": "data",
        "/parquet": "series", "/table": "table",
    }  # fmt: skip
    described = cli.json("describe", "/parquet")
    assert described["time"]["last"] == "1970-01-01T00:00:05+00:00"


def test_a_second_copy_makes_a_version(cli: Cli, files: Path) -> None:
    for _ in range(2):
        cli.ok("copy", f"host://{files}/a.txt", "/a")
        cli.ok("copy", f"host+csv+series://{files}/s.csv", "/s")
    assert cli.json("describe", "/a")["version"] == 2
    assert cli.ok("cat", "/s").count("\n") == 5


def test_every_way_out(cli: Cli, files: Path, tmp_path: Path) -> None:
    cli.ok("copy", "-p", f"host+csv+series://{files}/s.csv", "/x/s")
    cli.ok("copy", "/x/s", "./s.csv")
    assert (tmp_path / "s.csv").read_text() == (files / "s.csv").read_text()
    cli.ok("copy", "/x/s", f"host+json://{tmp_path}/lines")
    assert len((tmp_path / "lines").read_text().splitlines()) == 2
    cli.ok("copy", "/x", "./out/", "--strip-prefix", "/x")
    assert pq.read_table(tmp_path / "out" / "s.parquet").num_rows == 2
    assert "--overwrite" in cli.fails("copy", "/x/s", "./s.csv", code=7)
    cli.ok("copy", "/x/s", "./s.csv", "--overwrite")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("host:///nope/x", "/a"), 6, "/nope/x"),
        (("./files/a.tx", "/a"), 6, "a.txt"),
        (("./files/a.txt", "/no/dir/"), 6, "pond mkdir -p /no/dir"),
        (("./files/a.txt", "./b.txt"), 2, "use cp"),
        (("./files/a.txt", "/x", "/y"), 2, "one after the other"),
        (("host+series://./files/s.csv", "/s"), 12, "is not Parquet"),
        (("host+csv://./files/s.csv", "/s"), 8, "host+csv+table://"),
        (("host+csv+series://./files/a.txt", "/s"), 4, "a series needs a column with its time"),
        (("csv:///a", "/b"), 8, "csv+table:///a"),
        (("csv:///a", "./b"), 8, "name the path alone: /a"),
        (("/a", "csv:///b"), 2, "name the path alone: /b"),
        (("/nope", "./x"), 6, "/nope"),
        (("files/a.txt", "/x"), 6, "/files/a.txt"),
        (("./files/a.txt", "/x", "--overwrite"), 2, "out of the pond"),
        (("./files/a.txt", "/x", "--strip-prefix", "/a"), 2, "out of the pond"),
        (("/x", "./y", "-p"), 2, "into the pond"),
        (("/x", "/y", "--time-column", "t"), 2, "into the pond"),
        (("/x",), 2, "TARGET"),
    ],
)
def test_errors(cli: Cli, files: Path, args: tuple[str, ...], code: int, said: str) -> None:
    assert said in cli.fails("copy", *args, code=code)
    assert paths(cli) == []


def test_a_bare_name_of_a_file_here_gets_a_hint(cli: Cli, files: Path) -> None:
    (files.parent / "levels.csv").write_text("x")
    said = cli.fails("copy", "levels.csv", "/in.csv", code=6)
    assert "./levels.csv" in said
    assert "./levels.csv" in cli.fails("cat", "levels.csv", code=6)


def test_errors_are_json_if_that_is_wanted(cli: Cli) -> None:
    said = json.loads(cli.fails("--json", "copy", "./nope", "/a", code=6))
    assert said["error"] == "ObjectNotFoundError"
    assert said["hint"]


def test_help_has_examples(cli: Cli) -> None:
    assert "pond copy host+series:///" in cli.ok("copy", "--help")


def peak(*args: str, cwd: Path) -> tuple[int, str]:
    """The most memory that a call took, in megabytes, and what it said.

    The kernel's counter of the process begins anew with it, unlike that of getrusage.
    """
    source = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from millpond.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as stop: code = stop.code\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) // 1024)\n"
        "sys.exit(code)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", source, *args], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout.splitlines()[-1]), answer.stderr


def test_large_files_take_little_memory(cli: Cli, tmp_path: Path) -> None:
    block = os.urandom(1 << 20)
    with (tmp_path / "large").open("wb") as file:
        for _ in range(LARGE >> 20):
            file.write(block)
    for args in (("./large", "/large"), ("/large", "./again"), ("/large", "/other")):
        megabytes, said = peak("copy", *args, cwd=tmp_path)
        assert "copied 1 file (300.0 MiB)" in said
        assert megabytes < MOST_MEGABYTES
    with (tmp_path / "again").open("rb") as file:
        for _ in range(LARGE >> 20):
            assert file.read(1 << 20) == block
        assert file.read(1) == b""


def test_a_bar_where_somebody_looks(cli: Cli, tmp_path: Path, place: Path) -> None:
    (tmp_path / "f").write_bytes(os.urandom(5 << 20))
    code, seen, data = on_terminal("copy", "./f", "/f", cwd=tmp_path, stream="stderr")
    assert (code, data) == (0, "")
    assert "copying" in seen
    assert "100%" in seen
    assert mp.open(place)["/f"].stat().size == 5 << 20
    assert cli("copy", "./f", "/f").stderr == "copied 1 file (5.0 MiB) in transaction 2\n"
