"""Configurations of factories: good ones, good ones with odd values, and damaged text."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final

import yaml
from tests.fuzz.inputs.case import Case
from tests.fuzz.mutation import mutate_string

if TYPE_CHECKING:
    from random import Random

TEMPLATE: Final = """# {{ captures[0] }}
{% for row in inputs[0].rows(limit=2) %}{{ row.level }}
{% endfor %}"""
JOIN: Final = {
    "factory": "timeseries-join",
    "config": {
        "inputs": [{"pattern": "/in/s", "scope": "S"}, {"pattern": "series:///in/r", "scope": "R"}]
    },
}
GOOD: Final[tuple[dict[str, Any], ...]] = (
    JOIN,
    {
        "factory": "temporal-reduce",
        "config": {
            "in_pattern": "series:///in/*",
            "out_pattern": "$0",
            "resolutions": ["1h", "1d"],
            "aggregations": [
                {"type": "avg", "columns": ["*"]},
                {"type": "max", "columns": ["level"]},
            ],
        },
    },
    {"factory": "timeseries-pivot", "config": {"pattern": "/in/*", "columns": ["level"]}},
    {"factory": "dynamic-dir", "config": {"entries": [{"name": "j", **JOIN}]}},
    {"factory": "column-rename", "config": {"renames": {"level": "height"}}},
    {
        "factory": "synthetic-timeseries",
        "config": {
            "start": "2026-03-01T00:00:00Z",
            "end": "2026-03-02T00:00:00Z",
            "interval": "1h",
            "points": [
                {
                    "name": "level",
                    "components": [
                        {"type": "sine", "amplitude": 2.0, "period": "6h", "offset": 1.0},
                        {"type": "noise", "amplitude": 0.5, "seed": 7},
                    ],
                }
            ],
        },
    },
    {
        "factory": "template",
        "config": {
            "in_pattern": "series:///in/*",
            "out_pattern": "$0.md",
            "template": TEMPLATE,
        },
    },
    {
        "factory": "sql-derived-table",
        "config": {"patterns": {"s": "/in/s"}, "query": "SELECT timestamp, level FROM s"},
    },
    {
        "factory": "log-ingest",
        "config": {"active_pattern": "/nowhere/a.log", "pond_path": "/logs"},
    },
    {"factory": "materialize", "config": {"source": "/in/s", "target": "/m"}},
)
ODD: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        float("nan"),
        "",
        " ",
        "x",
        "/",
        "/missing",
        "..",
        "/in/s/x",
        "**",
    ),
    *(
        [],
        {},
        [[]],
        {"a": 1},
        "1h",
        "0h",
        "-1d",
        "1y",
        "999999999d",
        "2026",
        "$0",
        "$9",
        "${env:HOME}",
    ),
    *(
        "{{ 'x' * 3000000000 }}",
        "{% for a in range(999999) %}{% for b in range(999999) %}x{% endfor %}{% endfor %}",
        "{{ ''.__class__ }}",
        "{{ x }}",
        "SELECT 1",
        "\0",
        "\ud800",
        "ü" * 300,
    ),
    *(
        "SELECT TRANSFORM(level) USING 'id' AS (x STRING) FROM s",
        "series:///in/s?x=1",
        "host:///etc/*",
    ),
)
LAUGHS: Final = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in itertools.pairwise("abcdefgh")
)
"""Aliases of aliases: a few hundred bytes that mean millions of values."""
TEXTS: Final = (
    LAUGHS,
    "factory: !!python/object/apply:os.system [id]\n",
    "factory: timeseries-join\nfactory: timeseries-pivot\n",
    "[" * 2000,
    "{a: " * 900,
    "- " * 3000,
    "? {}\n: 1\n",
    "a: &a\n  b: *a\n",
    "--- 1\n--- 2\n",
    "%YAML 9.9\n---\na: 1\n",
    "factory: 2026-03-01\nconfig: 1_000\n",
    "\x85\u2028factory: x",
    "&a *a",
)


def generate(rng: Random) -> Case:
    """A document; its truth is the name of the factory if it is good."""
    kind = rng.random()
    if kind < 0.06:
        return _case(rng.choice(TEXTS))
    good = copy.deepcopy(rng.choice(GOOD))
    if kind < 0.15:
        return _case(yaml.safe_dump(good, sort_keys=rng.random() < 0.5), good["factory"])
    if kind < 0.65:
        for _ in range(rng.choice([1, 1, 2])):
            _change(good, rng)
        try:
            return _case(yaml.safe_dump(good, allow_unicode=True))
        except yaml.YAMLError:
            return _case(repr(good))
    return _case(mutate_string(yaml.safe_dump(good), rng))


def _case(text: str, truth: str | None = None) -> Case:
    return Case(text.encode("utf-8", "surrogatepass"), ".yaml", truth)


def _change(document: Any, rng: Random) -> None:
    """Give one member, however deep, another value; or remove, add or rename one."""
    holders = [document]
    for holder in holders:  # grows while it is walked
        inside = holder.values() if isinstance(holder, dict) else holder
        holders += [value for value in inside if isinstance(value, dict | list) and value]
    holder = rng.choice(holders)
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not names:
        return
    name = rng.choice(names)
    what = rng.random()
    if what < 0.65:
        holder[name] = copy.deepcopy(rng.choice(ODD))
    elif what < 0.8:
        del holder[name]
    elif isinstance(holder, dict):
        holder[rng.choice([*names, "x", "columns", "scope", "transforms", "range"])] = holder[name]
    else:
        holder.append(copy.deepcopy(holder[name]))
