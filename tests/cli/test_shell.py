"""The shell of `pond sql`, on a real terminal; and what it completes."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import millpond as mp
from millpond.cli.paging import Paged
from millpond.cli.shellwords import Words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.calls import Cli

    from millpond.steward.pond import Pond


@pytest.fixture
def filled(cli: Cli, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pond:
    pond = mp.open(place)
    with pond.write() as tx:
        tx.make_directory("/sensors")
        tx.write_table("/sensors/weir", [{"site": "a", "level": n} for n in range(300)])
        tx.write_table("/sites", [{"site": "a", "Owner.Name": "Ann"}])
        tx.write_bytes("/note", b"hello")
        tx.commit()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return pond


ENVIRONMENT = {"TERM": "xterm", "PAGER": "cat", "PROMPT_TOOLKIT_NO_CPR": "1"}


class Terminal:
    """`pond sql` on a terminal of its own; `expect` reads until a text comes."""

    def __init__(self, cwd: Path, **env: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "millpond.cli", "sql"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env={
                **os.environ,
                "TERM": "xterm",
                "PAGER": "cat",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                **env,
            },
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def expect(self, text: str) -> str:
        """What was shown up to this text, and the text; the suite's timeout ends a vain wait."""
        while text.encode() not in self._seen:
            try:
                more = os.read(self._ours, 4096)
            except OSError:
                more = b""
            assert more, f"{text!r} did not come: {self._seen.decode()}"
            self._seen += more
        shown, mark, self._seen = self._seen.partition(text.encode())
        return (shown + mark).decode()

    def end(self) -> int:
        while True:
            try:
                if not os.read(self._ours, 4096):
                    break
            except OSError:
                break
        os.close(self._ours)
        return self.process.wait()


@pytest.fixture
def terminal(filled: Pond, tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.wait()


def test_commands_errors_history_and_the_end(terminal: Terminal, tmp_path: Path) -> None:
    terminal.expect("pond>")
    terminal.type("\\d\r")
    shown = terminal.expect('"/sites"')
    assert '"/sensors/weir"' in shown
    assert "/note" not in shown
    terminal.expect("pond>")
    terminal.type('\\d "/sites"\r')
    terminal.expect("Owner.Name")
    terminal.expect("pond>")
    terminal.type("\\nonsense\r")
    terminal.expect("there is no command \\nonsense")
    terminal.expect("pond>")
    # A statement goes on until its semicolon, and the shell goes on after an error.
    terminal.type('SELECT *\rFROM "/nowhere";\r')
    terminal.expect("there is nothing at /nowhere (line 2, column 6)")
    terminal.expect("pond>")
    # Ctrl-C empties the line.
    terminal.type("SELECT unfinished\x03")
    terminal.expect("pond>")
    terminal.type("\\q\r")
    assert terminal.end() == 0
    history = tmp_path / "state" / "millpond" / "sql_history"
    assert "/nowhere" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_the_end_of_input_ends_it(terminal: Terminal) -> None:
    terminal.expect("pond>")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_tab_completes(terminal: Terminal) -> None:
    terminal.expect("pond>")
    terminal.type('SELECT * FROM "/no\t')
    terminal.expect('te"')
    terminal.type(";\r")
    terminal.expect("/note has bytes and no rows (line 1, column 15)")
    terminal.expect("pond>")
    terminal.type("\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ('SELECT * FROM "/s', ["/sensors/", '/sites"']),
        ("SELECT * FROM `/sensors/", ["/sensors/weir`"]),
        ('SELECT * FROM "s', ["/sensors/", '/sites"']),
        ("\\d /se", ["/sensors/"]),
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ('SELECT * FROM "/sites" WHERE ', ['"Owner.Name"', "site"]),
        ('SELECT * FROM "/sensors/*" WHERE lev', ["level"]),
        ('SELECT * FROM "/nowhere/', []),
        ("SELECT 'sel", []),
    ],
)
def test_completions(filled: Pond, typed: str, offered: list[str]) -> None:
    found = Words(filled.read).get_completions(Document(typed), CompleteEvent())
    assert [each.text for each in found] == offered


def test_what_fits_the_screen_needs_no_pager(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("PAGER", f"tee {tmp_path / 'paged'}")
    with Paged() as page:
        page.write("one\n" * 4)
    assert capsys.readouterr().out == "one\n" * 4
    assert not (tmp_path / "paged").exists()
    with Paged() as page:
        page.write("one\n" * 4)
        page.write("two\n" * 4)
    assert (tmp_path / "paged").read_text() == "one\n" * 4 + "two\n" * 4


def test_a_pager_may_be_left_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "head -n 1")
    written = 0
    with Paged() as page:
        while True:
            page.write("row\n" * 1000)
            written += 1
    assert written > 0


@pytest.mark.spark
@pytest.mark.slow
def test_queries_on_spark_are_shown_cancelled_and_go_on(terminal: Terminal) -> None:
    terminal.expect("pond>")
    terminal.type('SELECT count(*) AS n FROM "/sensors/weir";\r')
    assert "300" in terminal.expect("(1 row)")
    terminal.expect("pond>")
    # Stuck on purpose: only Ctrl-C brings it to an end, and the shell is still there.
    terminal.type("SELECT max(hash(id)) AS s FROM range(0, 1000000000000, 1, 4);\r")
    time.sleep(5)  # until it runs; earlier it would be the analysis that is stopped
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.expect("cancelled")
    terminal.expect("pond>")
    terminal.type('SELECT max(level) AS m FROM "/sensors/weir";\r')
    assert "299" in terminal.expect("(1 row)")
    terminal.expect("pond>")
    terminal.type("\x04")
    assert terminal.end() == 0
