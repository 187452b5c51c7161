"""Random changes of bytes and strings, shared by the generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from random import Random

_BYTES: Final = (0, 1, 0x7F, 0x80, 0xC3, 0xE2, 0xFF, *b"{}[]\",:;'\\\n\r\t #&*!|>%@`$")
_STRINGS: Final = (
    *(
        "",
        "\0",
        "\ud800",
        "\u202e",
        "ü",
        "\U0001f40b",
        "%",
        "%zz",
        "%00",
        "..",
        "//",
        "?",
        "#",
        "@v0",
        "@v9",
    ),
    *("'", '"', "`", "\\", "${x}", "${env:HOME}", "{{ 7*7 }}", "{% for %}", "--", "/*", "*/", ";"),
    *("(", ")", "[", "]", "{", "}", "*", "**", "&a", "*a", "!!python/name:os.system", "<<: ", "\t"),
    *("NULL", "nan", "1e400", "-0", "9" * 40, "0x10", "007", "a" * 5000, "\n", "\r\n", ": ", "- "),
)


def flip_bit(content: bytes, rng: Random) -> bytes:
    """Flip one bit."""
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]


def mutate_bytes(content: bytes, rng: Random) -> bytes:
    """Make one to four changes anywhere."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        content = rng.choice(_CHANGES)(content, rng)
    return content


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: rng.randint(0, len(content))]


def _replace(content: bytes, rng: Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    return content[:at] + bytes([rng.choice(_BYTES)]) + content[at + 1 :]


def _zero(content: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(content))
    count = min(rng.randint(1, 16), len(content) - at)
    return content[:at] + bytes(count) + content[at + count :]


def _insert(content: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(content))
    return content[:at] + bytes(rng.choices(_BYTES, k=rng.randint(1, 4))) + content[at:]


def _remove(content: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(content))
    return content[:at] + content[at + rng.randint(1, 8) :]


def _repeat(content: bytes, rng: Random) -> bytes:
    at = rng.randint(0, len(content))
    piece = content[at : at + rng.randint(1, 64)]
    return content[:at] + piece * rng.randint(2, 20) + content[at:]


def _extreme(content: bytes, rng: Random) -> bytes:
    """Put a length or an offset that is far too large, or negative, at an aligned place."""
    if len(content) < 8:
        return content
    at = rng.randrange(len(content) // 4) * 4
    value = rng.choice([0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 1 << 24, 0])
    return content[:at] + value.to_bytes(4, "little") + content[at + 4 :]


_CHANGES: Final = (flip_bit, flip_bit, _cut, _replace, _zero, _insert, _remove, _repeat, _extreme)


def mutate_string(text: str, rng: Random) -> str:
    """Make one to four changes anywhere."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at = rng.randint(0, len(text))
        end = min(len(text), at + rng.choice([0, 0, 1, 1, 3, 10]))
        kind = rng.random()
        if kind < 0.5:
            text = text[:at] + rng.choice(_STRINGS) + text[end:]
        elif kind < 0.7:
            text = text[:at] + text[end:]
        elif kind < 0.85:
            text = text[:at] + text[at:end] * rng.randint(2, 30) + text[end:]
        else:
            other = rng.randint(0, len(text))
            text = text[:at] + text[other : other + 20] + text[end:]
    return text
