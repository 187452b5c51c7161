"""`pond list`: what it shows, where it looks, and what it must not import."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli, Real

HEAVY = ("pyarrow", "pandas", "pyspark", "numpy", "obstore", "pydantic", "sqlglot", "rich")


@pytest.fixture
def filled(cli: Cli, place: Path) -> Cli:
    with mp.open(place).write("fill") as tx:
        tx.make_directory("/sensors/north", parents=True)
        tx.make_directory("/empty")
        tx.write_bytes("/sensors/north/a.csv", b"x" * 2048)
        tx.write_bytes("/sensors/north/b.csv", b"xy")
        tx.write_bytes("/sensors/notes.txt", b"hello")
        tx.make_link("/latest", "sensors/north/a.csv")
        tx.make_link("/here", "sensors")
        tx.commit()
    with mp.open(place).write("again") as tx:
        tx.write_bytes("/sensors/notes.txt", b"hello, world")
        tx.commit()
    return cli


def paths(cli: Cli, *args: str) -> list[str]:
    return [row["path"] for row in cli.json("list", *args)]


ALL = [
    "/empty", "/here", "/latest", "/sensors", "/sensors/north", "/sensors/north/a.csv",
    "/sensors/north/b.csv", "/sensors/notes.txt",
]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], ALL),
        (["/"], ALL),
        (["."], ALL),
        (["/sensors"], ALL[3:]),
        (["sensors"], ALL[3:]),
        (["/sensors/"], ALL[4:]),
        (["sensors/"], ALL[4:]),
        (["/sensors", "--depth", "0"], ["/sensors"]),
        (["/sensors/", "--depth", "1"], ["/sensors/north", "/sensors/notes.txt"]),
        (["--depth", "1"], ALL[:4]),
        (["/sensors/notes.txt"], ["/sensors/notes.txt"]),
        (["/empty"], ["/empty"]),
        (["/empty/"], []),
        (["/here"], ["/here"]),
        (["/here/", "--depth", "1"], ["/here/north", "/here/notes.txt"]),
        (["/**/*.csv"], ALL[5:7]),
        (["*/n*"], ["/here/north", "/here/notes.txt", "/sensors/north", "/sensors/notes.txt"]),
        (["s*/"], ALL[4:]),
        (["/sensors/north/[a]*", "/empty"], ["/sensors/north/a.csv", "/empty"]),
    ],
)
def test_what_a_path_means(filled: Cli, args: list[str], expected: list[str]) -> None:
    assert paths(filled, *args) == expected


def test_the_other_name(filled: Cli) -> None:
    assert filled.ok("ls") == filled.ok("list")


def test_people_see_type_size_version_time_and_path(filled: Cli) -> None:
    lines = filled.ok("list").splitlines()
    assert lines[0].split() == ["type", "size", "version", "time", "path"]
    shown = {line.split("  ")[-1].strip(): line for line in lines[1:]}
    assert "2.0 KiB" in shown["/sensors/north/a.csv"]
    assert shown["/sensors/notes.txt"].split()[:4] == ["data", "12", "B", "2"]
    assert shown["/sensors/north/"].startswith("directory")
    assert "/latest -> sensors/north/a.csv" in shown


def test_programs_see_exact_values(filled: Cli, place: Path) -> None:
    found = filled.json("list", "/sensors/notes.txt", "/latest")
    stat = mp.open(place)["/sensors/notes.txt"].stat()
    assert found[0] == {
        "path": "/sensors/notes.txt",
        "type": "data",
        "size": 12,
        "version": 2,
        "time": stat.modified.isoformat() if stat.modified else None,
        "txn": 2,
        "node_id": stat.node_id,
        "blake3": stat.blake3,
        "target": None,
    }
    assert found[1]["target"] == "sensors/north/a.csv"


def test_sorted_by_size_and_time(filled: Cli) -> None:
    assert paths(filled, "--sort", "size")[0] == "/sensors/north/a.csv"
    assert paths(filled, "--sort", "time")[0] == "/sensors/notes.txt"


def test_long_shows_more(filled: Cli) -> None:
    head, line = filled.ok("list", "-l", "/sensors/notes.txt").splitlines()
    assert head.split() == ["type", "size", "version", "time", "txn", "node", "blake3", "path"]
    assert len(line.split()[-2]) == 64


def test_the_past(filled: Cli) -> None:
    [then] = filled.json("list", "/sensors/notes.txt", "--as-of", "1")
    assert (then["version"], then["size"]) == (1, 5)
    assert filled.json("list", "--as-of", "2000-01-01") == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/sensor", "did you mean /sensors?"),
        ("/sensors/north/c.csv", "a.csv"),
        ("/sensors/*.parquet", "nothing matches /sensors/*.parquet"),
        ("/zzz/x/y", "/ has empty, here, latest, sensors"),
    ],
)
def test_what_is_not_there_says_what_is_nearby(filled: Cli, path: str, said: str) -> None:
    assert said in filled.fails("list", path, code=6)


def test_a_file_has_nothing_in_it(filled: Cli) -> None:
    assert "no directory" in filled.fails("list", "/sensors/notes.txt/", code=8)
    assert "no directory" in filled.fails("list", "/sensors/notes.txt/x", code=8)


def test_a_bad_pattern_is_an_error(filled: Cli) -> None:
    assert "not closed" in filled.fails("list", "/sensors/[a", code=8)


def test_a_new_pond_is_empty_and_that_is_no_error(cli: Cli) -> None:
    said = cli("list")
    assert (said.exit_code, said.stdout) == (0, "")
    assert "nothing" in said.stderr
    assert cli.json("list") == []


def test_names_can_not_move_the_cursor(cli: Cli, place: Path) -> None:
    with mp.open(place).write() as tx:
        tx.write_bytes("/two\nlines \x1b[2J", b"1")
        tx.commit()
    text = cli.ok("list")
    assert "/two\\nlines \\x1b[2J" in text
    assert len(text.splitlines()) == 2
    assert paths(cli) == ["/two\nlines \x1b[2J"]


def test_names_with_the_characters_of_patterns(cli: Cli, place: Path) -> None:
    with mp.open(place).write() as tx:
        tx.write_bytes("/a[1].csv", b"1")
        tx.commit()
    assert paths(cli, "/a[1].csv") == ["/a[1].csv"]


def heavy_modules(*args: str) -> list[str]:
    """The heavy modules that the real command has loaded when it is done."""
    code = (
        "import sys\n"
        "from millpond.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(done.stderr.splitlines()[-1].replace("'", '"'))
    return found


@pytest.mark.parametrize(
    "args",
    [["list"], ["list", "/sensors/", "-l"], ["ls", "/**/*.csv"], ["--json", "list", "/here/"]],
    ids=" ".join,
)
def test_it_imports_nothing_heavy(filled: Cli, args: list[str]) -> None:
    assert heavy_modules(*args) == []
    # The same look finds them where there is no index.
    assert "pyarrow" in heavy_modules("list", "--as-of", "1")


def test_right_after_a_write_it_is_quick_too(filled: Cli) -> None:
    filled.ok("mkdir", "/new")
    assert heavy_modules("list") == []
    assert "/new" in paths(filled)


def test_a_lost_index_is_made_anew(filled: Cli, place: Path, real: Real) -> None:
    import shutil

    before = filled.ok("list")
    shutil.rmtree(place / "cache")
    assert "pyarrow" in heavy_modules("list")
    assert heavy_modules("list") == []
    assert real("list").stdout == before


def test_a_directory_that_can_not_be_computed_hides_nothing_else(filled: Cli, place: Path) -> None:
    with mp.open(place).write("broken") as tx:
        for name in ("a", "b"):
            config = {
                "in_pattern": f"/${{env:MISSING_{name}}}/*",
                "out_pattern": "$0",
                "time_column": "time",
                "resolutions": ["1h"],
                "aggregations": [{"type": "avg", "columns": ["x"]}],
            }
            tx.make_factory(f"/broken-{name}", "temporal-reduce", config)
        tx.commit()
    done = filled("--json", "list")
    assert done.exit_code == 3
    shown = [row["path"] for row in json.loads(done.stdout)]
    assert {"/broken-a", "/broken-b", "/sensors/north/a.csv", "/sensors/notes.txt"} <= set(shown)
    for name in ("a", "b"):
        assert f"no variable MISSING_{name}" in done.stderr
        assert f"/broken-{name}" in done.stderr
    assert filled("list", "/sensors").exit_code == 0
    assert "while computing /broken-a" in filled.fails("list", "/**/*.csv", code=3)
