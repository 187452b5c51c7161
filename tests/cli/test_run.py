"""`pond run`: commands and options are those that the factory declares, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import millpond as mp
from millpond.fs.command import CommandArgument, CommandOption, NodeCommand
from millpond.fs.factory import FACTORIES

if TYPE_CHECKING:
    from tests.cli.calls import Cli


class Diary:
    """Writes down how it was run."""

    summary = "writes a line"
    commands: ClassVar[tuple[NodeCommand, ...]] = (
        NodeCommand(
            "write",
            "Write a line.",
            options=(
                CommandOption("times", "How often.", kind="integer", default=1),
                CommandOption("at", "When it was.", kind="time"),
                CommandOption("style", choices=("plain", "loud"), default="plain"),
                CommandOption("dry-run", "Write nothing.", kind="flag"),
            ),
        ),
        NodeCommand(
            "copy",
            "Copy lines.",
            arguments=(
                CommandArgument("target", "Where they go.", kind="path"),
                CommandArgument("words", repeated=True, required=False),
            ),
        ),
        NodeCommand("status", "Show what there is.", reports=True),
        NodeCommand("facts", "Show one thing.", reports=True),
    )

    def check(self, config: dict[str, str]) -> dict[str, str]:
        return config

    def run(self, run: Any) -> object:
        if run.command == "status":
            return [{"line": 1, "text": "one"}, {"line": 2, "text": None}]
        if run.command == "facts":
            return {"lines": 2}
        if not run.options.get("dry_run"):
            with run.write() as tx:
                tx.write_bytes("/diary", f"{run.command} {dict(run.options)}".encode())
                tx.commit()
        run.tell("done")
        return None


@pytest.fixture
def diary(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setitem(FACTORIES._loaded, "diary", Diary)
    with mp.open(place).write() as tx:
        tx.make_factory("/d", "diary", {})
        tx.write_bytes("/file", b"x")
        tx.commit()
    return cli


def test_the_first_command_needs_no_name(diary: Cli) -> None:
    done = diary.json("run", "/d")
    assert (done["transactions"], done["command"], done["told"]) == (1, "write", ["done"])
    assert diary.ok("cat", "/diary") == (
        "write {'times': 1, 'at': None, 'style': 'plain', 'dry_run': False}"
    )
    diary.ok("run", "/d", "--times", "3", "--style", "loud")
    assert "'times': 3, 'at': None, 'style': 'loud'" in diary.ok("cat", "/diary")
    diary.ok("run", "d", "write", "--at", "2026-03-01")
    assert "datetime.datetime(2026, 3, 1, 0, 0, tzinfo=" in diary.ok("cat", "/diary")


def test_arguments(diary: Cli) -> None:
    diary.ok("run", "/d", "copy", "x/y", "a", "b")
    assert diary.ok("cat", "/diary") == "copy {'target': '/x/y', 'words': ('a', 'b')}"
    assert "Missing argument 'TARGET'" in diary.fails("run", "/d", "copy", code=2)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nonsense", "x"], "No such option '--nonsense'"),
        (["statsu"], "There is no command 'statsu'. There are: write, copy, status, facts."),
        (["write", "more"], "unexpected extra argument"),
        (["--times", "often"], "'often' is not a valid integer"),
        (["--style", "rude"], "'rude' is not one of 'plain', 'loud'"),
        (["--at", "soon"], "write it like 2024-02-29T12:00:00Z"),
        (["status", "--times", "1"], "No such option '--times'"),
        (["--mode", "pull"], "No such option '--mode'"),
    ],
)
def test_what_is_not_declared_is_wrong_usage_and_nothing_runs(
    diary: Cli, words: list[str], says: str
) -> None:
    assert says in diary.fails("run", "/d", *words, code=2)
    assert not mp.open(str(Path("pond"))).read().exists("/diary")


def test_help(diary: Cli) -> None:
    text = diary.ok("run", "/d", "--help")
    assert "diary: writes a line." in text
    for words in (
        "copy    Copy lines.",
        "status  Show what there is.",
        "--times",
        "Write nothing.",
    ):
        assert words in text
    assert "Where they go." in diary.ok("run", "/d", "copy", "--help")
    assert "pond run PATH --help" in diary.ok("run", "--help")


def test_what_a_command_reports_is_its_output(diary: Cli) -> None:
    assert diary.ok("run", "/d", "status") == "line  text\n1     one\n2\n"
    assert diary.json("run", "/d", "status") == [
        {"line": 1, "text": "one"}, {"line": 2, "text": None},
    ]  # fmt: skip
    assert diary.json("run", "/d", "facts") == {"lines": 2}


def test_the_setting_names_the_usual_command(diary: Cli) -> None:
    diary.ok("control", "set-config", "factory.diary.mode", "facts")
    assert diary.json("run", "/d") == {"lines": 2}
    hint = diary.fails("control", "set-config", "factory.diary.mode", "copy", code=3)
    assert "write, status, facts, off" in hint, "copy needs an argument, and after commits has none"


def test_only_executable_nodes_run(diary: Cli) -> None:
    assert "can't be run" in diary.fails("run", "/file", code=8)
    diary.fails("run", "/nothing", code=6)


def test_a_factory_without_commands_is_broken(diary: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Diary, "commands", ())
    assert "one at least" in diary.fails("run", "/d", code=1)


def test_log_ingest_shows_what_it_would_do(cli: Cli, place: Path) -> None:
    log = place.parent / "log"
    log.mkdir()
    (log / "app.log").write_text("one\n")
    config = {"active_pattern": f"{log}/app.log", "archived_pattern": f"{log}/app.log.*",
              "pond_path": "/logs"}  # fmt: skip
    with mp.open(place).write() as tx:
        tx.make_factory("/ingest", "log-ingest", config)
        tx.commit()
    done = cli.json("run", "/ingest", "--dry-run")
    assert done["transactions"] == 0
    assert done["told"] == [f"/logs/app.log: 4 bytes of {log}/app.log (new)"]
    [found] = cli.json("run", "/ingest", "status")
    assert (found["versions"], found["stored"], found["new"]) == (0, 0, 4)
    assert not mp.open(place).read().exists("/logs")
    cli.ok("run", "/ingest")
    (log / "app.log").rename(log / "app.log.1")
    (log / "app.log").write_text("three\n")
    assert cli.json("run", "/ingest", "status") == [
        {"path": "/logs/app.log", "active": f"{log}/app.log", "archived": 1, "versions": 1,
         "stored": 4, "new": 6, "skipped": None}
    ]  # fmt: skip
