"""The frame of `pond`: exit codes, JSON, pipes, Ctrl-C, colors, completion; as a shell sees it."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

import millpond as mp
from millpond.base import errors
from millpond.cli.exits import KINDS, MEANINGS, exit_code
from millpond.cli.main import pond
from millpond.cli.output import Output, printable
from millpond.cli.table import ALIASES, COMMANDS, find_command

if TYPE_CHECKING:
    from tests.cli.calls import Cli, Real

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
POND = [sys.executable, "-m", "millpond.cli"]


# Commands


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_loaded_and_explains_itself(name: str) -> None:
    command = pond.get_command(click.Context(pond), name)
    assert command is not None
    assert command.name == name
    assert command.help
    assert command.short_help == COMMANDS[name].help
    assert any("--json" in each.opts for each in command.params)


def test_every_command_has_a_heading_in_the_docs() -> None:
    headings = [line for line in DOCS.read_text().splitlines() if line.startswith("###")]
    named = {name for line in headings for name in line.lstrip("# ").split(", ")}
    assert {*COMMANDS, *ALIASES} - {"init"} <= named


def test_other_names_lead_to_the_same_command() -> None:
    assert {alias: entry.name for alias, entry in ALIASES.items()} == {"ls": "list", "cp": "copy"}
    assert find_command("ls") is COMMANDS["list"]


def test_a_wrong_command_names_similar_ones(real: Real) -> None:
    said = real("stauts")
    assert said.returncode == 2
    assert "Did you mean status?" in said.stderr


def test_variables_are_key_and_value(cli: Cli) -> None:
    assert "key=value" in cli.fails("-v", "nonsense", "list", code=2)


# Exit codes


def test_every_exit_code_has_a_meaning_and_is_documented(real: Real) -> None:
    assert {code for _, code in KINDS} < set(MEANINGS)
    text, page = real("--help").stdout, DOCS.read_text()
    for code, meaning in MEANINGS.items():
        assert f"{code}  {meaning}" in text
        assert f"| {code} | {meaning} |" in page


def test_special_kinds_stand_before_general_ones() -> None:
    for number, (kind, code) in enumerate(KINDS):
        for earlier, other in KINDS[:number]:
            assert not issubclass(kind, earlier) or code == other, f"{kind} is never reached"


def test_every_error_of_ponds_has_a_code_of_its_kind() -> None:
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.PathError) and kind is not errors.PathError
    ]
    assert kinds
    for kind in kinds:
        error = kind("message", path="/a")
        assert exit_code(error) in (6, 7, 8)


def test_exit_codes_of_the_real_command(cli: Cli, real: Real) -> None:
    assert real("list").returncode == 0
    assert real("list", "/nope").returncode == 6
    assert real("init").returncode == 7
    assert real("list", "--depth", "-1").returncode == 2
    assert real("list", POND="").returncode == 3
    assert real("settings", MILLPOND_ENGINE="sparc").returncode == 3
    assert real("--pond", "/nowhere/pond", "list").returncode == 6


# JSON


def test_json_may_stand_behind_the_command_too(cli: Cli) -> None:
    cli.ok("mkdir", "/a")
    before, behind = cli.ok("--json", "list"), cli.ok("list", "--json")
    assert before == behind
    assert json.loads(before)[0]["path"] == "/a"


@pytest.mark.parametrize(
    ("args", "code"),
    [(["list", "/nope"], 6), (["swim"], 2), (["list", "--wrong"], 2), (["-v", "x", "list"], 2)],
)
def test_errors_are_json_too(cli: Cli, args: list[str], code: int) -> None:
    said = cli("--json", *args)
    assert said.exit_code == code
    assert said.stdout == ""
    error = json.loads(said.stderr)
    assert error["error"]
    assert error["message"]


# Output


def test_tables_are_aligned_whatever_the_width_of_letters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output().rows([{"name": "水位", "n": 1}, {"name": "abc", "n": 22}], right=("n",), header=False)
    assert capsys.readouterr().out == "水位  1\nabc   22\n"
    Output().rows([{"n": 1, "name": "a"}, {"n": 22, "name": None}], right=("n",))
    assert capsys.readouterr().out == " n  name\n 1  a\n22\n"


def test_nothing_is_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).rows([])
    assert json.loads(capsys.readouterr().out) == []
    Output().rows([])
    assert capsys.readouterr().out == ""


def test_printable_leaves_letters_alone() -> None:
    assert printable("Ærø/水位 1") == "Ærø/水位 1"


def on_terminal(args: list[str], cwd: Path, **env: str) -> bytes:
    """What a command writes to a terminal."""
    outer, inner = os.openpty()
    everything = {**os.environ, "TERM": "xterm", **env}
    with subprocess.Popen([*POND, *args], stdout=inner, cwd=cwd, env=everything):
        os.close(inner)
        found = b""
        while True:
            try:
                piece = os.read(outer, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            found += piece
    os.close(outer)
    return found


def test_colors_on_a_terminal_unless_they_are_not_wanted(cli: Cli, tmp_path: Path) -> None:
    cli.ok("mkdir", "/a")
    env = {"NO_COLOR": ""}
    assert b"\x1b[1m" in on_terminal(["list"], tmp_path, **env)
    assert b"\x1b" not in on_terminal(["list"], tmp_path, NO_COLOR="1")
    assert b"\x1b" not in on_terminal(["list"], tmp_path, **env, TERM="dumb")


# Pipes and Ctrl-C


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_news(
    cli: Cli, place: Path, tmp_path: Path, unbuffered: str
) -> None:
    with mp.open(place).write() as tx:
        for number in range(2000):
            tx.make_link(f"/{number:04d}-{'x' * 100}", "nowhere")
        tx.commit()
    with subprocess.Popen(
        [*POND, "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_ctrl_c(place: Path, tmp_path: Path) -> None:
    log = place / "data" / "_delta_log"
    log.mkdir(parents=True)
    os.mkfifo(log / f"{0:020d}.json")  # whoever reads it waits
    with subprocess.Popen(
        [*POND, "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        # Where tests run in the background, the signal is ignored unless it is set free again.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        # Opening it succeeds once the command waits at the other end.
        with (log / f"{0:020d}.json").open("wb"):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        assert process.returncode == 130
    assert out == b""
    assert b"Traceback" not in err


# Completion


def completed(real: Real, *words: str, **env: str) -> list[str]:
    said = real(
        COMP_WORDS="\n".join(["pond", *words]),
        COMP_CWORD=str(len(words)),
        _POND_COMPLETE="bash_complete",
        **env,
    )
    assert said.stderr == ""
    return [line.partition(",")[2] for line in said.stdout.splitlines() if line]


def test_commands_are_completed(cli: Cli, real: Real) -> None:
    assert completed(real, "re") == ["recover", "restore"]
    assert set(COMMANDS) | set(ALIASES) <= set(completed(real, ""))
    assert "--engine" in completed(real, "--en")
    assert completed(real, "list", "--de") == ["--depth"]


def test_paths_of_the_pond_are_completed(cli: Cli, real: Real, place: Path) -> None:
    cli.ok("mkdir", "-p", "/sensors/north", "/sensors/south", "/second")
    with mp.open(place).write() as tx:
        tx.write_bytes("/sensors/north/a.csv", b"1")
        tx.commit()
    assert completed(real, "list", "/se") == ["/second/", "/sensors/"]
    assert completed(real, "list", "se") == ["second/", "sensors/"]
    assert completed(real, "rm", "-r", "/sensors/n") == ["/sensors/north/"]
    assert completed(real, "mv", "/sensors/north/") == ["/sensors/north/a.csv"]
    assert completed(real, "ln", "-s", "/sensors/s") == ["/sensors/south/"]
    assert completed(real, "list", "/nope/x") == []
    there = ["--pond", str(place)]
    assert completed(real, *there, "list", "/se", POND="") == ["/second/", "/sensors/"]


def test_without_a_pond_nothing_is_completed(real: Real) -> None:
    assert completed(real, "list", "/") == []


def test_bash_itself(cli: Cli, place: Path, tmp_path: Path) -> None:
    with mp.open(place).write() as tx:
        tx.make_directory("/my files")
        tx.write_bytes("/my files/it's *", b"1")
        tx.commit()
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "pond").write_text(f'#!/bin/sh\nexec {sys.executable} -m millpond.cli "$@"\n')
    (bin_ / "pond").chmod(0o755)
    script = """
        compopt() { echo "compopt $*"; }
        eval "$(_POND_COMPLETE=bash_source pond)"
        COMP_WORDS=(pond list /my); COMP_CWORD=2; _pond_completion pond
        printf '%s\\n' "${COMPREPLY[@]}"
        COMP_WORDS=(pond list '/my\\ files/'); _pond_completion pond
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    said = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{bin_}:{os.environ['PATH']}"},
        check=True,
        cwd=tmp_path,
    )
    assert said.stdout.splitlines() == [
        "compopt -o nospace",
        "/my\\ files/",
        "/my\\ files/it\\'s\\ \\*",
    ]
