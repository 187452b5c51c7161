"""YAML with places: errors name the file and the line."""

from __future__ import annotations

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
        ("{type: sine}", "{type: nose}", 9, "points.0.components.0.type: Input should be"),
        ("interval: 1h", "interval: 1x", 5, "interval: '1x' is no length of time"),
        ("interval: 1h", "", 3, "interval: it is missing"),
        ("interval: 1h", "interval: 1h\n  often: 1", 6, "often: there is no such member"),
        ("end: 2024-02-01", "end: 2023-02-01", 3, "and not after its start"),
        ("synthetic-timeseries", "synthetic", 1, "'synthetic' is not in millpond.factories"),
        ("factory:", "factroy:", 1, "there is no member 'factroy'"),
        ("interval: 1h", "interval: 1h\n  interval: 2h", 6, "'interval' stands twice"),
        ("interval: 1h", "interval: '1h", 10, "this is no YAML"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, line: int, message: str) -> None:
    found, at = said(MADE.replace(old, new, 1))
    assert message in found
    assert found.startswith("f.yaml:")
    assert at == line


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
