"""The commands that change the tree: mkdir, rm, mv, ln, restore; and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.cli.calls import Cli


def paths(cli: Cli, *args: str) -> list[str]:
    return [row["path"] for row in cli.json("list", *args)]


def put(place: Path, path: str, data: bytes) -> None:
    with mp.open(place).write("put") as tx:
        tx.write_bytes(path, data)
        tx.commit()


def last(place: Path) -> int:
    return mp.open(place).read().txn_seq


# mkdir


def test_mkdir_needs_the_directory_above_or_p(cli: Cli, place: Path) -> None:
    said = cli.fails("mkdir", "/a/b", code=6)
    assert "/a" in said
    assert "-p" in said
    assert last(place) == 0
    cli.ok("mkdir", "-p", "/a/b")
    cli.ok("mkdir", "a/c")
    assert paths(cli) == ["/a", "/a/b", "/a/c"]


def test_mkdir_twice(cli: Cli, place: Path) -> None:
    cli.ok("mkdir", "/a")
    assert "already" in cli.fails("mkdir", "/a", code=7)
    said = cli("mkdir", "-p", "/a")
    assert said.exit_code == 0
    assert "nothing had to be done" in said.stderr
    assert last(place) == 1


def test_all_or_none(cli: Cli) -> None:
    cli.fails("mkdir", "/good", "/bad/deep", code=6)
    assert paths(cli) == []


def test_what_was_done_as_json(cli: Cli) -> None:
    assert cli.json("mkdir", "/a") == {"paths": ["/a"], "txn": 1}


# rm


def test_rm_of_a_directory_needs_r(cli: Cli, place: Path) -> None:
    cli.ok("mkdir", "-p", "/a/b")
    assert "-r" in cli.fails("rm", "/a", code=8)
    assert paths(cli) == ["/a", "/a/b"]
    cli.ok("rm", "-r", "/a")
    assert paths(cli) == []


def test_rm_of_patterns(cli: Cli, place: Path) -> None:
    for name in ("/a.csv", "/b.csv", "/c.txt"):
        put(place, name, b"1")
    before = last(place)
    assert cli.json("rm", "*.csv")["paths"] == ["/a.csv", "/b.csv"]
    assert last(place) == before + 1
    assert paths(cli) == ["/c.txt"]
    assert "nothing matches" in cli.fails("rm", "*.csv", code=6)
    assert cli.json("rm", "-f", "*.csv", "/nope")["txn"] is None


def test_rm_takes_what_is_below_along(cli: Cli) -> None:
    cli.ok("mkdir", "-p", "/a/b/c")
    assert cli.json("rm", "-r", "/**/b", "/a/**", "/a/b/c")["paths"] == ["/a/b"]
    assert paths(cli) == ["/a"]


def test_rm_of_what_is_not_there(cli: Cli, place: Path) -> None:
    put(place, "/data.csv", b"1")
    assert "did you mean /data.csv?" in cli.fails("rm", "/dta.csv", code=6)
    cli.fails("rm", "-rf", "/", code=8)


def test_rm_takes_the_link_not_its_target(cli: Cli, place: Path) -> None:
    put(place, "/f", b"1")
    cli.ok("ln", "-s", "f", "/l")
    cli.ok("rm", "/l")
    assert paths(cli) == ["/f"]


# mv


def test_mv_renames_and_moves(cli: Cli, place: Path) -> None:
    put(place, "/f", b"1")
    cli.ok("mkdir", "/d")
    assert cli.json("mv", "/f", "/g")["moved"] == {"/f": "/g"}
    assert cli.json("mv", "/g", "/d")["moved"] == {"/g": "/d/g"}
    assert cli.json("mv", "/d", "/e")["moved"] == {"/d": "/e"}
    assert paths(cli) == ["/e", "/e/g"]


def test_mv_of_several_needs_a_directory(cli: Cli, place: Path) -> None:
    for name in ("/a.csv", "/b.csv"):
        put(place, name, b"1")
    cli.fails("mv", "*.csv", "/all", code=6)
    cli.ok("mkdir", "/all")
    cli.ok("mv", "*.csv", "/all")
    assert paths(cli) == ["/all", "/all/a.csv", "/all/b.csv"]


def test_mv_replaces_nothing(cli: Cli, place: Path) -> None:
    put(place, "/a", b"1")
    put(place, "/b", b"2")
    assert "already" in cli.fails("mv", "/a", "/b", code=7)
    assert mp.open(place)["/b"].read_bytes() == b"2"


def test_mv_to_a_name_with_a_slash_needs_the_directory(cli: Cli, place: Path) -> None:
    put(place, "/a", b"1")
    cli.fails("mv", "/a", "/nope/", code=6)
    cli.ok("mkdir", "/d")
    cli.fails("mv", "/d", "/d/e", code=8)


# ln


def test_ln_makes_symbolic_links_alone(cli: Cli, place: Path) -> None:
    put(place, "/f", b"hello")
    assert "-s" in cli.fails("ln", "/f", "/l", code=2)
    cli.ok("ln", "-s", "/f", "/l")
    assert mp.open(place)["/l"].read_bytes() == b"hello"
    cli.ok("ln", "-s", "/nowhere", "/dangling")
    assert "already" in cli.fails("ln", "-s", "/f", "/l", code=7)


def test_ln_into_a_directory_keeps_the_name(cli: Cli, place: Path) -> None:
    put(place, "/f", b"hello")
    cli.ok("mkdir", "/d")
    assert cli.json("ln", "-s", "../f", "/d")["path"] == "/d/f"
    assert mp.open(place)["/d/f"].read_bytes() == b"hello"


# versions and restore


def test_versions_and_restore(cli: Cli, place: Path) -> None:
    for text in (b"one", b"two", b"three"):
        put(place, "/f", text)
    assert [(v["version"], v["size"], v["txn"]) for v in cli.json("versions", "/f")] == [
        (1, 3, 1), (2, 3, 2), (3, 5, 3),
    ]  # fmt: skip
    assert cli.json("restore", "/f@v1") == {"restored": {"/f@v1": 4}, "txn": 4}
    assert mp.open(place)["/f"].read_bytes() == b"one"
    assert len(cli.ok("versions", "/f").splitlines()) == 5
    assert "it has 1 to 4" in cli.fails("restore", "/f@v9", code=6)


def test_restore_of_a_removed_tree(cli: Cli, place: Path) -> None:
    cli.ok("mkdir", "/a")
    put(place, "/a/f", b"1")
    assert "is there" in cli.fails("restore", "/a", code=7)
    cli.ok("rm", "-r", "/a")
    cli.ok("restore", "/a")
    assert paths(cli) == ["/a", "/a/f"]
    assert "never" in cli.fails("restore", "/nothing", code=6)


def test_versions_of_a_series_show_its_times(cli: Cli, place: Path) -> None:
    with mp.open(place).write() as tx:
        from datetime import UTC, datetime

        time = datetime(2024, 2, 29, tzinfo=UTC)
        tx.append_series("/s", [{"timestamp": time, "value": 1.0}])
        tx.commit()
    [version] = cli.json("versions", "/s")
    assert version["from"] == version["to"] == "2024-02-29T00:00:00+00:00"


# What the pond remembers


def test_the_command_line_is_remembered_without_secrets(
    cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-hush")
    cli.ok("-v", "plain=hush-hush", "-v", "site=north", "mkdir", "/a")
    [begin] = [r for r in mp.open(place).control.records() if r["record_type"] == "begin"]
    assert '"site=***"' in begin["cli_args"]
    assert '"/a"' in begin["cli_args"]
    assert '"USER": "ann"' in begin["environment"]
    everything = "".join(f.read_bytes().decode("latin-1") for f in place.rglob("*") if f.is_file())
    assert "hush-hush" not in everything
