"""YAML with places: errors name the file and the line."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest

from millpond.base.errors import FactoryConfigError
from millpond.provider.nodefile import read_config, read_node, read_nodes
from millpond.provider.yamlfile import read_document, read_documents

MADE = """\
factory: synthetic-timeseries
config:
  start: 2024-01-01
  end: 2024-02-01
  interval: 1h
  points:
    - name: level
      components:
        - {type: sine}
"""


def said(text: str) -> tuple[str, int | None]:
    with pytest.raises(FactoryConfigError) as caught:
        read_node(text, "f.yaml")
    return caught.value.message, caught.value.line


def test_lines_are_known() -> None:
    found = read_document(MADE, "f.yaml")
    assert found.lines["config", "points", 0, "components", 0, "type"] == 9
    assert found.value["config"]["start"] == "2024-01-01", "times stay texts"


def test_a_node() -> None:
    spec = read_node(MADE, "f.yaml")
    assert (spec.factory, spec.path) == ("synthetic-timeseries", None)
    assert spec.config["interval"] == "1h"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("{type: sine}", "{type: nose}", 9, "points.0.components.0.type: 'sine', 'tri"),
        ("interval: 1h", "interval: 1x", 5, "interval: '1x' is no length of time"),
        ("interval: 1h", "", 3, "interval: it is missing"),
        ("interval: 1h", "interval: 1h\n  often: 1", 6, "often: there is no such member"),
        ("interval: 1h", "intervall: 1h", 5, "intervall: there is no such member; did you mean"),
        ("interval: 1h", "intervall: 1h", 5, "did you mean interval? (and 1 more)"),
        ("interval: 1h", "intervall: '{{ x }}'", 5, "intervall: there is no such member"),
        ("interval: 1h", "a: 1\n  b: 1", 5, "a: there is no such member (nor b) (and 1 more)"),
        ("{type: sine}", "{type: sine, perid: 1h}", 9, "no such member; did you mean period?"),
        ("{type: sine}", "{type: sine, phase: late}", 9, "0.phase: 'late' is no length of time"),
        ("{type: sine}", "{type: sine, offset: high}", 9, "offset: a number is wanted: 1, 0.5"),
        ("{type: sine}", "{type: sine, seed: 1.5}", 9, "seed: a whole number is wanted"),
        ("end: 2024-02-01", "end: yesterday", 4, "end: a time is wanted: 2024-05-01, or"),
        ("end: 2024-02-01", "end: 2024-13-01", 4, "end: a time is wanted: 2024-05-01, or"),
        ("name: level", "name: 5", 7, "points.0.name: a text is wanted: write it in quotes"),
        ("name: level", "name: ''", 7, "points.0.name: it is empty"),
        ("interval: 1h", "interval: !!int x", 1, "a tag does not fit its value"),
        ("interval: 1h", "interval: !!bool x", 1, "a tag does not fit its value"),
        ("interval: 1h", "interval: !!timestamp 1", 5, "this is no YAML: could not determine"),
        ("interval: 1h", "interval: !!binary aaaa", 5, "this is no YAML: could not determine"),
        ("interval: 1h", "7: 1h", 5, "7: the name of a member is a text"),
        ("interval: 1h", "interval: 1\0h", None, "this is no YAML"),
        ("end: 2024-02-01", "end: 2023-02-01", 3, "before its start"),
        ("synthetic-timeseries", "synthetic", 1, "'synthetic' is not in millpond.factories"),
        ("factory:", "factroy:", 1, "there is no member 'factroy'"),
        ("interval: 1h", "interval: 1h\n  interval: 2h", 6, "'interval' stands twice"),
        ("interval: 1h", "interval: '1h", 10, "this is no YAML"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(old: str, new: str, line: int | None, message: str) -> None:
    found, at = said(MADE.replace(old, new, 1))
    assert message in found
    assert found.startswith("f.yaml:")
    assert at == line


def test_the_hint_names_the_factory() -> None:
    with pytest.raises(FactoryConfigError) as caught:
        read_node(MADE.replace("1h", "often"), "f.yaml")
    assert caught.value.hint == (
        "pond list-factories synthetic-timeseries shows what a configuration has"
    )


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in pairwise("abcdefghij")
)
IN_LITTLE_MEMORY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from millpond.base.errors import FactoryConfigError
from millpond.provider.yamlfile import read_document
try:
    read_document(sys.stdin.read(), "f.yaml")
except FactoryConfigError as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b: 1\na: &a [*a]\n", "f.yaml:2: an alias in this stands for what it is part of"),
        ("a: &a {b: [{c: *a}]}\n", "f.yaml:1: an alias in this stands for what it is part of"),
        ("a: &a {<<: *a}\n", "f.yaml:1: an alias in this stands for what it is part of"),
        ("? &a [*a]\n: 1\n", "f.yaml:1: an alias in this stands for what it is part of"),
        (LAUGHS, "f.yaml:6: with its aliases written out this has more than 100,000 members"),
        ("a: " + "[" * 5_000 + "]" * 5_000, "f.yaml:1: it is nested too deeply"),
    ],
    ids=["itself", "inside", "merge", "key", "laughs", "deep"],
)
def test_aliases_that_never_end(text: str, message: str) -> None:
    call = [sys.executable, "-c", IN_LITTLE_MEMORY]
    done = subprocess.run(call, input=text, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == message, done.stderr[-500:]


def test_aliases() -> None:
    found = read_document("a: &a {x: [1]}\nb: *a\nc: [*a, *a]\nd: {<<: *a, y: 2}\n", "f.yaml")
    one = {"x": [1]}
    assert found.value == {"a": one, "b": one, "c": [one, one], "d": {"x": [1], "y": 2}}


def test_how_many_documents() -> None:
    assert [document.value for document in read_documents("a: 1\n---\n---\nb: 2\n", "f")] == [
        {"a": 1},
        {"b": 2},
    ]
    for text in ("", "a: 1\n---\nb: 2\n", "- a\n"):
        with pytest.raises(FactoryConfigError, match="is wanted"):
            read_document(text, "f.yaml")


def test_nodes_have_paths() -> None:
    specs = read_nodes(f"path: /a\n{MADE}---\npath: /b\n{MADE}", "f.yaml")
    assert [spec.path for spec in specs] == ["/a", "/b"]
    with pytest.raises(FactoryConfigError, match=r"f.yaml:1: path is missing"):
        read_nodes(MADE, "f.yaml")
    with pytest.raises(FactoryConfigError, match="there is nothing in it"):
        read_nodes("# nothing\n", "f.yaml")


def test_a_bare_configuration() -> None:
    spec = read_config('renames: {"Temp*": "T$0"}', "f.yaml", "column-rename")
    assert spec.factory == "column-rename"
    with pytest.raises(FactoryConfigError, match=r"f.yaml:2: casts: x: .*unknown type"):
        read_config("drops: []\ncasts: {x: nonsense}\n", "f.yaml", "column-rename")
