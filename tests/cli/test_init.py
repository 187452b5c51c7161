"""`pond init`, and which pond a command means."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.cli.calls import Cli

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_pond_is_made_where_the_variable_says(place: Path) -> None:
    said = Cli()("init")
    assert said.exit_code == 0
    assert said.stdout == ""
    assert str(place) in said.stderr
    assert mp.open(place).read().txn_seq == 0


def test_the_argument_wins_over_option_and_variable(place: Path, tmp_path: Path) -> None:
    found = Cli().json("--pond", str(tmp_path / "option"), "init", str(tmp_path / "argument"))
    assert found["location"] == str(tmp_path / "argument")
    assert found["id"] == mp.open(tmp_path / "argument").identity()["pond.id"]
    assert not place.exists()
    assert not (tmp_path / "option").exists()


def test_twice_says_that_the_pond_exists_and_changes_nothing(cli: Cli, place: Path) -> None:
    before = mp.open(place).identity()
    said = cli.fails("init", code=7)
    assert f"there is a pond at {place} already" in said
    assert mp.open(place).identity() == before


def test_a_directory_with_something_in_it_is_refused(place: Path) -> None:
    place.mkdir()
    (place / "thesis.txt").write_text("do not lose me")
    said = Cli().fails("init", code=7)
    assert str(place) in said
    assert "hint" in said
    assert [each.name for each in place.iterdir()] == ["thesis.txt"]


def test_a_file_is_refused(place: Path) -> None:
    place.write_text("a file")
    assert "is a file" in Cli().fails("init", code=7)


def test_an_empty_directory_becomes_a_pond(place: Path) -> None:
    place.mkdir()
    Cli().ok("init")
    assert mp.open(place).read().txn_seq == 0


def test_without_any_name_it_is_the_nearest_dot_pond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POND", raising=False)
    monkeypatch.chdir(tmp_path)
    cli = Cli()
    assert "pond init" in cli.fails("status", code=3)
    cli.ok("init")
    assert (tmp_path / ".pond" / "data" / "_delta_log").is_dir()
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert cli.json("status")["location"] == str(tmp_path / ".pond")


def test_a_place_without_a_pond_is_named(tmp_path: Path, place: Path) -> None:
    said = Cli()("--json", "--pond", str(tmp_path / "nowhere"), "status")
    assert said.exit_code == 6
    error = json.loads(said.stderr)
    assert error["error"] == "PondNotFoundError"
    assert "pond init" in error["hint"]
