"""JSON lines: objects with values of every kind, some of them nested deep, some damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tests.fuzz.inputs.case import Case
from tests.fuzz.inputs.cells import FRACTIONS, TIMES, WHOLE, WORDS, column
from tests.fuzz.inputs.csv import LARGE
from tests.fuzz.mutation import mutate_bytes

if TYPE_CHECKING:
    from random import Random

NAMES: Final = ("t", "v", "site", "ü", "a.b", "", "n", "with space")
DEPTHS: Final = (3, 30, 200, 1_000, 5_000, 100_000)
MOST_NUMBERS: Final = 2_000


def generate(rng: Random) -> Case:
    """A file of JSON lines; its truth is that it is whole."""
    if rng.random() < 0.03:
        return Case(_deep(rng), ".jsonl", True)
    count = rng.choice([1, 2, 3, 5, 8, 30])
    names = rng.sample(NAMES, rng.randint(1, 4))
    columns = [_column(rng, count) for _ in names]
    lines = [
        _object([(n, v) for n, v in zip(names, row, strict=True) if v is not None], rng)
        for row in zip(*columns, strict=True)
    ]
    if rng.random() < 0.02:
        lines = [f'{{"{"v"}":1}}'] * (LARGE // 8) + lines
    content = "\n".join(lines).encode("utf-8", "surrogatepass") + rng.choice([b"\n", b"", b"\n\n"])
    if rng.random() < 0.4:
        return Case(mutate_bytes(content, rng), ".jsonl")
    return Case(content, ".jsonl", True)


def _column(rng: Random, count: int) -> list[str | None]:
    """Values as JSON texts; None where the key is missing."""
    kind = rng.random()
    if kind < 0.35:
        cells: list[str] = [rng.choice([*WHOLE, *FRACTIONS]) for _ in range(count)]
        if rng.random() < 0.5:
            cells = [rng.choice(WHOLE[:6]) for _ in range(count)]
    elif kind < 0.55:
        cells = [json.dumps(rng.choice(TIMES[: rng.choice([1, 4, 13])])) for _ in range(count)]
    elif kind < 0.75:
        cells = [json.dumps(text, ensure_ascii=False) for text in column(rng, count)]
    else:
        cells = [_value(rng, 0) for _ in range(count)]
    if rng.random() < 0.2:
        cells[-1] = _value(rng, 0)
    gaps = rng.random() < 0.3
    return [rng.choice([None, "null"]) if gaps and rng.random() < 0.3 else cell for cell in cells]


def _value(rng: Random, depth: int) -> str:
    kinds = [
        "null",
        "true",
        rng.choice(WHOLE),
        rng.choice(FRACTIONS),
        json.dumps(rng.choice(WORDS)),
    ]
    if depth < 3:
        inside = [_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
        kinds.append(f"[{','.join(inside)}]")
        kinds.append(_object(list(zip(rng.sample(NAMES, len(inside)), inside, strict=True)), rng))
    return rng.choice(kinds)


def _object(members: list[tuple[str, str]], rng: Random) -> str:
    gap = rng.choice(["", "", " "])
    return f"{{{f',{gap}'.join(f'{json.dumps(n)}:{gap}{v}' for n, v in members)}}}"


def _deep(rng: Random) -> bytes:
    depth = rng.choice(DEPTHS)
    if rng.random() < 0.5:
        return b'{"v":' * depth + b"1" + b"}" * depth
    return b'{"v":' + b"[" * depth + b"]" * depth + b"}"
