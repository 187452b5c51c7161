"""Secrets stay secret, wherever they are printed."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import pprint

import pytest

from millpond.base.secret import Secret

SECRET = Secret("hunter2")


@pytest.mark.parametrize(
    "shown",
    [
        str(SECRET), repr(SECRET), f"{SECRET}", f"{SECRET!r:>20}", f"{SECRET:>20}",
        pprint.pformat({"key": [SECRET]}), json.dumps({"key": SECRET}, default=str),
        logging.LogRecord("n", 1, "p", 1, "%s %r", (SECRET, SECRET), None).getMessage(),
    ],
)  # fmt: skip
def test_it_is_never_shown(shown: str) -> None:
    assert "hunter2" not in shown
    assert "***" in shown


def test_it_is_given_out_when_asked() -> None:
    assert SECRET.reveal() == "hunter2"


def test_it_is_not_pickled_and_may_be_copied() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(SECRET)
    assert copy.copy(SECRET) is copy.deepcopy([SECRET])[0] is SECRET


def test_equality() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
