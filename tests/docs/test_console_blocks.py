"""Every console block of docs/ runs as it stands, top to bottom, and gives what the page shows.

A line that begins with `$ ` is a command, what follows is all that it writes. Times and ids are
not compared, and `...` stands for anything.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from millpond.cli.main import pond

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [p for p in sorted((ROOT / "docs").glob("*.md")) if BLOCK.search(p.read_text())]
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?"), "TIME"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
)


class Step(NamedTuple):
    line: int
    command: str
    shown: str


def steps(page: Path) -> list[Step]:
    """The commands of a page with what they are said to write."""
    text = page.read_text()
    found: list[Step] = []
    for block in BLOCK.finditer(text):
        start = text.count("\n", 0, block.start()) + 2
        for number, line in enumerate(block[1].splitlines()):
            if line.startswith("$ "):
                found.append(Step(start + number, line[2:], ""))
            elif line.startswith("> ") and not found[-1].shown:
                found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line[2:]}")
            else:
                found[-1] = found[-1]._replace(shown=f"{found[-1].shown}{line}\n")
    return found


def run(command: str, shell: dict[str, str]) -> str:
    """What a command writes: `pond` alone in this process, which is quicker, all else in bash."""
    if command.startswith("export "):
        name, _, value = command.removeprefix("export ").partition("=")
        os.environ[name] = value
        return ""
    if command.startswith("pond ") and not re.search(r"[|<>;&$]", command):
        return CliRunner().invoke(pond, shlex.split(command)[1:]).output
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env={**os.environ, **shell}
    )
    return done.stdout + done.stderr


def settled(text: str) -> str:
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_console_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "pond"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m millpond.cli "$@"\n')
    command.chmod(0o755)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("POND", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = {"PATH": f"{command.parent}:{os.environ['PATH']}"}
    checker = doctest.OutputChecker()
    for step in steps(page):
        said = run(step.command, shell).replace(str(tmp_path / "work"), "/home/ann")
        assert checker.check_output(settled(step.shown), settled(said), doctest.ELLIPSIS), (
            f"{page.name}:{step.line}: $ {step.command}\nshown:\n{step.shown}\nsaid:\n{said}"
        )


def test_there_are_such_pages() -> None:
    assert [page.name for page in PAGES]
    assert all(steps(page) for page in PAGES)
