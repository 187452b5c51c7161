"""Children report what happens to each case, also when they die of it."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from tests.fuzz.children import Outcome, run_cases

from millpond.base.errors import MillpondError


def behave(case: str) -> Outcome:
    if case == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif case == "reads nowhere":
        ctypes.string_at(0)
    elif case == "hangs":
        time.sleep(60)
    elif case == "is large":
        bytearray(1 << 30)
    elif case == "raises":
        raise KeyError("x")
    elif case == "refuses":
        raise MillpondError("this can't be read", hint="write it differently")
    elif case == "only says no":
        raise MillpondError("this can't be read")
    return Outcome("works")


def test_every_case_has_an_outcome() -> None:
    expected = {
        "works": "works",
        "dies": "crash",
        "works again": "works",
        "reads nowhere": "crash",
        "raises": "traceback",
        "refuses": "refused",
        "only says no": "no hint",
        "is large": "memory",
        "hangs": "timeout",
        "works at last": "works",
    }
    outcomes = dict(run_cases(behave, list(expected), timeout=10))
    assert {case: outcome.kind for case, outcome in outcomes.items()} == expected
    assert "SIGSEGV" in outcomes["dies"].detail
    assert "test_children.py" in outcomes["raises"].detail
