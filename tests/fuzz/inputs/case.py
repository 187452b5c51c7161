"""`Case`: one input of a campaign."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """An input, and what an oracle needs to know to judge what Millpond makes of it."""

    content: bytes
    suffix: str
    """How a file with this content is called."""
    truth: Any = None
    """What was meant, where the content says it without damage; None where nobody knows."""


def rng_of(seed: int, kind: str, number: int) -> Random:
    """The random numbers of one case: a case can be generated without those before it."""
    return Random(f"{seed}/{kind}/{number}")
