"""What engines tell a command: on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from millpond.cli.attending import Attending, ending_progress
from millpond.cli.context import Context
from millpond.engine.spark.progress import Progress
from millpond.plan.attendant import attend

if TYPE_CHECKING:
    from collections.abc import Iterator


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def look(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Look at standard error; within the test, since pytest sets it anew before it."""
    found = Screen()
    monkeypatch.setattr(sys, "stderr", found)
    return found


@pytest.fixture
def attending() -> Iterator[Attending]:
    found = Attending(Context())
    attend(found)
    yield found
    attend(None)


HALF = Progress(0, 1, tasks_done=1, tasks_total=2)


def test_a_line_that_goes_at_the_end(attending: Attending, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = look(monkeypatch)
    line = attending.on_progress
    assert line is not None
    line(Progress(0, 1, tasks_done=0, tasks_total=0))
    assert screen.getvalue() == ""
    line(HALF)
    shown = "[############            ]  1 of 2 tasks, stage 1 of 1"
    assert screen.getvalue() == f"\r{shown}"
    line(Progress(1, 1, tasks_done=2, tasks_total=2, done=True))
    assert screen.getvalue() == f"\r{shown}\r{' ' * len(shown)}\r"


def test_rows_on_the_same_terminal_end_it(
    attending: Attending, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = look(monkeypatch)
    line = attending.on_progress
    assert line is not None
    line(HALF)
    run = [pa.record_batch({"x": [1]})]
    assert list(ending_progress(run)) == run
    assert not screen.getvalue().endswith("\r")  # the rows go elsewhere
    monkeypatch.setattr(sys, "stdout", Screen())
    assert list(ending_progress(run)) == run
    assert screen.getvalue().endswith(" \r")
    line(HALF)
    assert screen.getvalue().endswith(" \r")


def test_nothing_where_nobody_looks(
    attending: Attending, capsys: pytest.CaptureFixture[str]
) -> None:
    assert attending.on_progress is None
    attending.tell("Spark starts")
    assert capsys.readouterr().err == ""
    attending.tell("it has other settings", hint="stop it")
    attending.tell("it has other settings", hint="stop it")
    assert capsys.readouterr().err == "it has other settings\n  hint: stop it\n"


def test_no_messages_between_json(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = look(monkeypatch)
    context = Context()
    context.out.as_json = True
    attending = Attending(context)
    attending.tell("it has other settings", hint="stop it")
    assert attending.on_progress is None
    assert screen.getvalue() == ""
