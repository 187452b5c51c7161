"""Commands in the process that is ready for them: they do what they would have done by themselves.

No engine runs here: the process lives as long as the one that is written down, which is the test.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import millpond as mp
from millpond.cli.ready import likeness
from millpond.cli.ready.handing import handed_over
from millpond.cli.ready.launching import is_there, launch
from millpond.engine.spark.warm import state

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDED = """
import sys
from millpond.cli.ready.handing import handed_over
code = handed_over(sys.argv)
late = [m for m in ("click", "pyarrow", "pathlib", "typing_extensions") if m in sys.modules]
sys.exit(99 if code is None else 98 if late else code)
"""
"""As `pond`, but a command that is not handed over ends with 99, one that imports much with 98."""
NOT_HANDED, MANY_ROWS = 99, 400_000


@pytest.fixture(scope="module")
def engine() -> Iterator[state.State]:
    """Somebody who lives, and for whom a process is ready."""
    with tempfile.TemporaryDirectory(prefix="mp-") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", place)  # the names of sockets are short
        me = state.State(os.getpid(), 1, secrets.token_urlsafe(8), {})
        state.write(me)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts what is behind &
        launch()
        signal.signal(signal.SIGINT, before)
        assert is_there()
        yield me
        state.remove(me)
        wait_until_gone()


@pytest.fixture(scope="module")
def place(engine: state.State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ready")
    mp.create(place / "pond")
    with mp.open(place / "pond").write() as tx:
        tx.write_bytes("/notes.txt", "grüße\n".encode())
        tx.write_table("/t", mp.values([{"x": n} for n in range(3)]))
        tx.commit()
    rows = "\n".join(f"{n},{'a' * 40}" for n in range(MANY_ROWS))
    (place / "many.csv").write_text("x,y\n" + rows, encoding="utf-8")
    return place


def wait_until_gone() -> None:
    while is_there():  # the suite's own timeout ends a wait that is in vain
        time.sleep(0.05)


def begun(place: Path, *args: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HANDED, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        env={**os.environ, "POND": "pond", **env},  # relative: it is in its place
        # Tests that a script started in the background ignore it, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def called(place: Path, *args: str, **env: str) -> tuple[int, str, str]:
    process = begun(place, *args, **env)
    out, err = process.communicate()
    return process.returncode, out.decode(), err.decode()


def test_a_command_is_the_same_there(place: Path) -> None:
    assert called(place, "cat", "/notes.txt") == (0, "grüße\n", "")
    assert called(place, "cat", "/t", "--format", "json") == (0, '{"x":0}\n{"x":1}\n{"x":2}\n', "")


def test_its_end_is_the_same(place: Path) -> None:
    code, out, err = called(place, "cat", "/nothing")
    alone = subprocess.run(
        [sys.executable, "-c", "from millpond.cli.main import main; main()", "cat", "/nothing"],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "POND": "pond"},
        check=False,
    )
    assert (code, out, err) == (alone.returncode, alone.stdout, alone.stderr)
    assert code not in (0, NOT_HANDED)
    assert called(place, "cat")[0] == 2


def test_it_has_the_environment_of_who_asks(place: Path, tmp_path: Path) -> None:
    code, _, err = called(place, "cat", "/t", POND=str(tmp_path))
    assert code != 0
    assert str(tmp_path) in err


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_ends_it(place: Path, number: signal.Signals, code: int) -> None:
    with begun(place, "cat", f"host+csv://{place}/many.csv") as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == b"x,y\n"  # it writes more than a pipe takes, and waits
        process.send_signal(number)
        rest = process.stdout.read()  # until nobody can write any more
        process.wait()
    assert process.returncode == code
    assert rest.count(b"\n") < MANY_ROWS - 1


def test_it_waits_when_who_asked_waits(place: Path) -> None:
    with begun(place, "cat", f"host+csv://{place}/many.csv") as process:
        assert process.stdout is not None
        process.stdout.read(4)
        process.send_signal(signal.SIGTSTP)
        while "T (stopped)" not in Path(f"/proc/{process.pid}/status").read_text("utf-8"):
            time.sleep(0.02)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read().count(b"\n") >= MANY_ROWS - 1
        process.wait()
    assert process.returncode == 0


def test_a_reader_that_goes_ends_it(place: Path) -> None:
    with begun(place, "cat", f"host+csv://{place}/many.csv") as process:
        assert process.stdout is not None
        process.stdout.read(4)
        process.stdout.close()
        process.wait()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode not in (0, NOT_HANDED)


def test_another_process_is_not_taken_for_it(place: Path) -> None:
    assert called(place, "cat", "/t", PYTHONHASHSEED="3")[0] == NOT_HANDED
    assert called(place, "cat", "/t", TZ="Asia/Tokyo")[0] == NOT_HANDED


def test_without_a_stream_it_runs_by_itself(place: Path) -> None:
    script = f'exec {sys.executable} -c "$0" cat /t <&-'
    said = subprocess.run(["sh", "-c", script, HANDED], cwd=place, check=False)
    assert said.returncode == NOT_HANDED


def test_who_wants_nothing_warm_gets_nothing(place: Path) -> None:
    assert called(place, "cat", "/t", MILLPOND_WARM_USE="never")[0] == NOT_HANDED


def test_what_is_imported_before_is_all_but_spark() -> None:
    code = (
        "import sys; from millpond.cli.ready.keeper import _get_ready; _get_ready();"
        "print(*sorted({'pyspark', 'pandas', 'pyarrow', 'millpond.steward.pond'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["millpond.steward.pond", "pyarrow"]


def test_code_that_has_changed_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "cli" / "ready"
    inner.mkdir(parents=True)
    monkeypatch.setattr(likeness, "__file__", str(inner / "likeness.py"))
    before = likeness.code()
    (tmp_path / "fs").mkdir()
    (tmp_path / "fs" / "tree.py").write_text("", encoding="utf-8")
    assert likeness.code() != before


def test_only_commands_that_gain_are_handed_over(engine: state.State) -> None:
    assert handed_over(["pond", "list"]) is None
    assert handed_over(["pond", "sql"]) is None  # the shell speaks with the terminal


def test_it_ends_with_the_engine(engine: state.State) -> None:
    state.remove(engine)
    wait_until_gone()
    assert not Path(likeness.place()).exists()
    state.write(engine)
    launch()
    assert is_there()
