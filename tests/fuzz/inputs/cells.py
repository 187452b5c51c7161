"""Values as people and programs write them into CSV and JSON: the odd ones among the plain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

WHOLE: Final = (
    *("0", "1", "-1", "42", "2147483648", "9007199254740992", "9007199254740993"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "123456789012345678901234567890"),
)
FRACTIONS: Final = (
    *("1.5", "-2.25", "0.1", "1e3", "1E-7", "2.5e300", "1e400", "-1e400", "5e-324", "1e-400"),
    *("1.0", "-0.0", "3.141592653589793", "0.30000000000000004", "123456789.123456789"),
)
ODD_NUMBERS: Final = ("007", "-01", "+1", ".5", "5.", "1_000", "1,000", "0x1F", "1e", "--1", "١٢")
TIMES: Final = (
    *("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z", "2026-03-01T10:00:00.123456Z"),
    *("2026-03-01T10:00:00+02:00", "2026-03-01T10:00:00", "2026-03-01 10:00:00", "2026-03-01"),
    *("1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
    *("2026-02-30", "2026-03-01T25:00:00Z", "10:00:00", "2026-03-01T10:00:00.123456789Z"),
)
WORDS: Final = (
    *("a", "Weir", "", " ", " a ", "ü", "𝛼β", "it's", 'say "hi"', "a,b", "a;b", "two\nlines"),
    *(
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "null",
        "NULL",
        "None",
        "NA",
        "N/A",
        "true",
        "False",
        "yes",
    ),
    *("\\N", "#1", "=1+1", "\\", "a\\", "x" * 300),
)
PLAIN: Final = ("weir", "mill", "gate")

_POOLS: Final = {
    "whole": (WHOLE,),
    "small": (("1", "2", "3"),),
    "fraction": (FRACTIONS,),
    "number": (WHOLE, FRACTIONS),
    "odd number": (WHOLE, ODD_NUMBERS),
    "time": (TIMES,),
    "one time": (TIMES[:1],),
    "zoned time": (TIMES[:4],),
    "local time": (TIMES[4:6],),
    "date": (("2026-03-01", "1970-01-01", "2024-02-29"),),
    "word": (WORDS,),
    "plain": (PLAIN,),
    "boolean": (("true", "false"),),
    "any": (WHOLE, FRACTIONS, ODD_NUMBERS, TIMES, WORDS, ("true", "false")),
}
KINDS: Final = tuple(_POOLS)


def column(rng: Random, count: int) -> list[str]:
    """The values of one column: mostly of one kind, some with gaps, some with a surprise."""
    pools = _POOLS[rng.choice(KINDS)]
    cells = [rng.choice(rng.choice(pools)) for _ in range(count)]
    if rng.random() < 0.3:
        cells = ["" if rng.random() < 0.3 else cell for cell in cells]
    if rng.random() < 0.15:
        cells[-1] = rng.choice(rng.choice(_POOLS["any"]))
    return cells
