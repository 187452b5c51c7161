"""How one setting is read: each `Parser` turns text or a TOML value into a checked value.

A parser gets text from the environment, typed values from a file, either from a call, and its own
results when a settings object is copied. It raises `ValueError` with what is allowed; who knows
the name and the origin of the setting makes the `ConfigError` (`base/settings.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from millpond.base.redact import HIDDEN, is_sensitive
from millpond.base.secret import Secret

Parser: TypeAlias = Callable[[object], Any]

_SPARK_NAME = re.compile(r"spark(\.[\w-]+)+", re.ASCII)


class SparkConf(Mapping[str, str]):
    """Spark settings by name: immutable, and shown without the values that look like secrets.

    >>> SparkConf({"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.ui.enabled": "false"})
    SparkConf({'spark.hadoop.fs.s3a.secret.key': '***', 'spark.ui.enabled': 'false'})
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, str] | None = None) -> None:
        self._items = dict(sorted((items or {}).items()))

    def __getitem__(self, name: str) -> str:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return f"SparkConf({self.masked()})"

    def masked(self) -> dict[str, str]:
        """A copy that may be shown: options inside of a value may be secrets, too."""
        return {
            k: HIDDEN if is_sensitive(k) or is_sensitive(v) else v for k, v in self._items.items()
        }


def one_of(*allowed: str) -> Parser:
    """One word of a few, whatever its case."""
    by_lower = {word.lower(): word for word in allowed}

    def parse(value: object) -> str:
        if isinstance(value, str) and value.strip().lower() in by_lower:
            return by_lower[value.strip().lower()]
        raise ValueError(f"one of {', '.join(allowed)}")

    return parse


def matching(pattern: str, *, allowed: str) -> Parser:
    """Text of a given shape."""

    def parse(value: object) -> str:
        if isinstance(value, str) and re.fullmatch(pattern, value.strip(), re.ASCII):
            return value.strip()
        raise ValueError(allowed)

    return parse


def positive(value: object) -> int:
    """A whole number above zero; `65_536` may be written with underscores."""
    if isinstance(value, str) and re.fullmatch(r"\d+(_\d+)*", value.strip(), re.ASCII):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ValueError("a whole number above 0")


def amount(value: object) -> float:
    """A number above zero."""
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?|\.\d+", value.strip(), re.ASCII):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return value
    raise ValueError("a number above 0")


def switch(value: object) -> bool:
    """True or false; in the environment also 1, 0, yes, no, on, off."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("true", "1", "yes", "on"):
            return True
        if word in ("false", "0", "no", "off"):
            return False
    raise ValueError("true or false")


def text(value: object) -> str:
    """Any text but the empty one."""
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("a text that is not empty")


def secret(value: object) -> Secret:
    """Text that is hidden from here on."""
    return value if isinstance(value, Secret) else Secret(text(value))


def optional(parse: Parser) -> Parser:
    """What `parse` reads, or None, which stands for "not set"."""

    def parse_optional(value: object) -> Any:
        return None if value is None else parse(value)

    return parse_optional


def spark_conf(value: object) -> SparkConf:
    """A table of `spark.*` names, or `k=v,k=v`.

    >>> dict(spark_conf("spark.ui.enabled=false, spark.cores.max=4"))
    {'spark.cores.max': '4', 'spark.ui.enabled': 'false'}

    In TOML an unquoted dotted name makes nested tables; both spellings mean the same.

    >>> dict(spark_conf({"spark": {"ui": {"enabled": False}}, "spark.cores.max": 4}))
    {'spark.cores.max': '4', 'spark.ui.enabled': 'false'}
    """
    pairs = _split_pairs(value) if isinstance(value, str) else _flat_pairs(value)
    found: dict[str, str] = {}
    for name, item in pairs:
        if not _SPARK_NAME.fullmatch(name):
            raise ValueError(f"names that start with 'spark.', not {name!r}")
        if name in found:
            raise ValueError(f"each name once; {name!r} is there twice")
        found[name] = item
    return SparkConf(found)


def _split_pairs(value: str) -> Iterator[tuple[str, str]]:
    for number, part in enumerate(value.split(","), start=1):
        name, equals, item = (word.strip() for word in part.partition("="))
        if not equals or not _SPARK_NAME.fullmatch(name):
            # The part may be the tail of a secret, so the message counts instead of quoting.
            wrong = "has no '='" if not equals else "has no name that starts with 'spark.'"
            raise ValueError(
                f"k=v,k=v, but part {number} {wrong} (values with a comma go into a file)"
            )
        yield name, item


def _flat_pairs(value: object) -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        raise ValueError("a table of names and values, or k=v,k=v")
    todo: list[tuple[str, object]] = [(str(k), v) for k, v in value.items()]
    while todo:
        name, item = todo.pop()
        if isinstance(item, Mapping):
            todo += [(f"{name}.{k}", v) for k, v in item.items()]
        elif isinstance(item, bool):
            yield name, str(item).lower()
        elif isinstance(item, str | int | float):
            yield name, str(item)
        else:
            raise ValueError(f"texts, numbers and switches, but {name!r} is neither")
