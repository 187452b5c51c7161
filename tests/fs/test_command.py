"""What a factory declares that it can be told to do, and which values a run is given."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from millpond.base.errors import ConfigError
from millpond.fs.command import CommandArgument, CommandOption, NodeCommand, check_commands

if TYPE_CHECKING:
    from collections.abc import Callable

FETCH = NodeCommand(
    "fetch",
    "Fetch what is new.",
    arguments=(CommandArgument("station", required=False),),
    options=(
        CommandOption("dry-run", kind="flag"),
        CommandOption("from", kind="time"),
        CommandOption("tries", kind="integer", default=3),
        CommandOption("mode", choices=("all", "new"), default="new"),
        CommandOption("tag", repeated=True),
    ),
)


def test_what_is_not_given_is_a_default() -> None:
    assert FETCH.values({}) == {
        "station": None, "dry_run": False, "from": None, "tries": 3, "mode": "new", "tag": (),
    }  # fmt: skip
    since = datetime(2026, 3, 1, tzinfo=UTC)
    found = FETCH.values({"from": since, "tag": ("a", "b"), "dry_run": True})
    assert (found["from"], found["tag"], found["dry_run"]) == (since, ("a", "b"), True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"dryrun": True}, "fetch has no option 'dryrun'"),
        ({"dry_run": "yes"}, "takes a flag, not 'yes'"),
        ({"tries": True}, "takes a integer, not True"),
        ({"tries": "3"}, "takes a integer, not '3'"),
        ({"from": "2026-03-01"}, "takes a time"),
        ({"mode": "old"}, "'mode' is not 'old'"),
        ({"tag": ("a", 1)}, "takes a text, not 1"),
    ],
)
def test_what_is_not_declared_is_an_error(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        FETCH.values(given)


def test_what_is_required_has_to_be_given() -> None:
    needs = NodeCommand("move", arguments=(CommandArgument("target"),))
    assert FETCH.runs_alone
    assert not needs.runs_alone
    with pytest.raises(ConfigError, match="move needs 'target'"):
        needs.values({})


@pytest.mark.parametrize(
    ("declare", "says"),
    [
        (lambda: NodeCommand("Push"), "lowercase words"),
        (lambda: NodeCommand("push it"), "lowercase words"),
        (lambda: CommandOption("--dry-run"), "lowercase words"),
        (lambda: CommandOption("json"), "every command has"),
        (lambda: CommandOption("n", kind="float"), "is one of text, integer"),  # type: ignore[arg-type]
        (lambda: CommandOption("n", kind="integer", choices=("1",)), "its kind is text"),
        (lambda: CommandOption("n", kind="flag", required=True), "false if it is not given"),
        (lambda: CommandArgument("n", kind="flag"), "make it an option"),
        (
            lambda: NodeCommand("x", options=(CommandOption("a-b"),),
                                arguments=(CommandArgument("a-b"),)),
            "'a_b' more than once",
        ),
        (
            lambda: NodeCommand("x", arguments=(CommandArgument("a", repeated=True),
                                                CommandArgument("b"))),
            "only its last argument",
        ),
        (lambda: check_commands(()), "one at least"),
        (lambda: check_commands((FETCH, FETCH)), "'fetch' more than once"),
        (lambda: check_commands(("fetch",)), "a tuple of NodeCommand"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_declaration_that_can_not_be_used(declare: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        declare()
