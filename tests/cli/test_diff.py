"""`pond diff`: what is shown, and the exit code that scripts look at."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import millpond as mp

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli


@pytest.fixture
def full(cli: Cli, place: Path) -> Cli:
    pond = mp.open(place)
    with pond.write() as tx:
        tx.make_directory("/d")
        tx.write_bytes("/d/f", b"a\nb\n")
        tx.write_table("/t", [{"n": 1}, {"n": 2}])
        tx.write_bytes("/once", b"")
        tx.commit()
    with pond.write() as tx:
        tx.write_bytes("/d/f", b"a\nc\n")
        tx.write_table("/t", [{"n": 2}, {"n": 3, "x": "new"}])
        tx.move("/d", "/moved")
        tx.remove("/once")
        tx.write_bytes("/bin", b"\0")
        tx.commit()
    return cli


def different(cli: Cli, *args: str) -> str:
    result = cli("diff", *args)
    assert result.exit_code == 1, result.output
    return result.stdout


def test_texts(full: Cli) -> None:
    expected = "--- /moved/f@v1\n+++ /moved/f@v2\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    for args in (("/moved/f",), ("/moved/f@v1",), ("/moved/f@v1", "/moved/f@v2")):
        assert different(full, *args) == expected


def test_rows(full: Cli) -> None:
    assert different(full, "/t").splitlines() == [
        "--- /t@v1",
        "+++ /t@v2",
        "column + x: string",
        "1 rows added, 1 removed (compared row by row)",
        '- {"n":1,"x":null}',
        '+ {"n":3,"x":"new"}',
    ]
    assert "{" not in different(full, "/t@v1", "/t@v2", "--limit", "0")


def test_bytes(full: Cli, place: Path) -> None:
    with mp.open(place).write() as tx:
        tx.write_bytes("/bin", b"\0\1")
        tx.commit()
    assert different(full, "/bin") == "/bin@v1 and /bin@v2 differ from byte 1 on (1 B and 2 B)\n"


def test_the_same(full: Cli) -> None:
    result = full("diff", "/t@v1", "/t@v1")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "the same" in result.stderr
    result = full("diff", "--from", "2")
    assert (result.exit_code, result.stdout) == (0, "")


def test_moments_of_the_tree(full: Cli) -> None:
    assert different(full, "--from", "1").splitlines() == [
        "+ /bin",
        "> /d -> /moved",
        "~ /moved/f  v1 -> v2",
        "- /once",
        "~ /t  v1 -> v2",
    ]
    assert different(full, "--from", "0", "--to", "1").splitlines() == [
        "+ /d", "+ /d/f", "+ /once", "+ /t",
    ]  # fmt: skip
    assert different(full, "--from", "1", "--to", "2", "/moved").splitlines()[-1] == ("+ /moved/f")


def test_moments_of_one_node(full: Cli) -> None:
    assert "+ {" in different(full, "--from", "1", "/t")
    assert different(full, "--from", "0", "/t") == "+ /t\n"
    assert different(full, "--from", "1", "/once") == "- /once\n"


def test_json(full: Cli) -> None:
    def read(*args: str) -> Any:
        return json.loads(different(full, "--json", *args))

    found = read("/t")
    assert (found["added"], found["removed"], found["by"], found["same"]) == (1, 1, "rows", False)
    found = read("--from", "1")
    assert (found["from"], found["to"]) == (1, 2)
    assert [(c["change"], c["path"]) for c in found["changes"]] == [
        ("added", "/bin"), ("moved", "/moved"), ("changed", "/moved/f"), ("removed", "/once"),
        ("changed", "/t"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ((), 2),
        (("/a", "/b", "/c"), 2),
        (("--to", "1"), 2),
        (("--from", "1", "/a", "/b"), 2),
        (("/nope",), 6),
        (("--from", "1", "/nope"), 6),
        (("/bin",), 6),
        (("/t", "/bin"), 8),
        (("/moved", "/moved"), 8),
        (("/t@v9", "/t"), 6),
    ],
)
def test_errors(full: Cli, args: tuple[str, ...], code: int) -> None:
    assert full.fails("diff", *args, code=code)


def test_computed_paths(cli: Cli, place: Path, tmp_path: Path) -> None:
    def on_day(day: int) -> None:
        with mp.open(place).write() as tx:
            tx.append_series("/s", [{"timestamp": datetime(2024, 5, day, tzinfo=UTC), "x": day}])
            tx.commit()

    on_day(1)
    config = "in_pattern: /s\nout_pattern: s\nresolutions: [1h]\naggregations: [{type: max}]\n"
    (tmp_path / "r.yaml").write_text(config)
    config = "in_pattern: /s\nout_pattern: p\ntemplate: '{{ inputs[0].last_time.day }}. day'\n"
    (tmp_path / "page.yaml").write_text(config)
    cli.ok("mknod", "temporal-reduce", "/r", "--config-path", str(tmp_path / "r.yaml"))
    cli.ok("mknod", "template", "/page", "--config-path", str(tmp_path / "page.yaml"))
    on_day(2)
    path = "/r/s/res=1h.series"
    assert different(cli, "--from", "3", path).splitlines()[2:] == [
        "1 rows added, 0 removed (compared row by row)",
        '+ {"timestamp":"2024-05-02T00:00:00Z","x.max":2}',
    ]
    cli.ok("diff", "--from", "4", path)
    assert "-1. day\n" in different(cli, "--from", "3", "/page/p")
    assert "column + x.max: long" in different(cli, "/s", path)
