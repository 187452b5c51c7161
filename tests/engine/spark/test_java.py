from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from millpond.base.errors import EngineUnavailableError
from millpond.engine.spark.java import Java, find_java, major_version

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def says(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("22-ea", 22), ("", 0)]
)
def test_major_version(text: str, major: int) -> None:
    assert major_version(text) == major


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    program = fake_java(tmp_path / "home", says("21.0.2"))
    fake_java(tmp_path / "other", says("17.0.1"))
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}
    assert find_java(environ) == Java(program, "21.0.2")


def test_path_is_searched_without_java_home(tmp_path: Path) -> None:
    program = fake_java(tmp_path, says("17.0.1"))
    assert find_java({"PATH": str(program.parent)}) == Java(program, "17.0.1")


def test_lines_before_the_version_do_not_matter(tmp_path: Path) -> None:
    fake_java(tmp_path, "echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2\n" + says("17.0.1"))
    assert find_java({"JAVA_HOME": str(tmp_path)}).major == 17


def test_an_old_java_is_named_with_what_to_install(tmp_path: Path) -> None:
    fake_java(tmp_path, says("1.8.0_402"))
    with pytest.raises(EngineUnavailableError, match=r"Java 1\.8\.0_402 .*too old") as caught:
        find_java({"JAVA_HOME": str(tmp_path)})
    assert caught.value.engine == "spark"
    assert "openjdk-17-jre-headless" in str(caught.value)
    assert "JAVA_HOME" in str(caught.value)


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="no Java was found"):
        find_java({"PATH": str(tmp_path)})


def test_java_home_without_a_program_does_not_fall_back(tmp_path: Path) -> None:
    fake_java(tmp_path / "good", says("17"))
    environ = {"JAVA_HOME": str(tmp_path / "bad"), "PATH": str(tmp_path / "good" / "bin")}
    with pytest.raises(EngineUnavailableError, match=r"JAVA_HOME is .*bad"):
        find_java(environ)


def test_a_program_that_is_not_java(tmp_path: Path) -> None:
    fake_java(tmp_path, "echo hello; exit 3")
    with pytest.raises(EngineUnavailableError, match="does not tell its version: hello"):
        find_java({"JAVA_HOME": str(tmp_path)})


def test_the_real_one(tmp_path: Path) -> None:
    assert find_java(os.environ).major >= 17
