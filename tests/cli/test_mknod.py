"""`pond mknod`, `apply`, `run`, `list-factories`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.calls import Cli

CONFIG = """\
start: 2024-01-01
end: 2024-01-01T18:00
interval: {{ step }}
points: [{name: level, components: [{type: line, slope: 24}]}]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG.replace("{{ step }}", "6h"))
    return file


@pytest.fixture
def node(tmp_path: Path) -> Path:
    file = tmp_path / "node.yaml"
    indented = "".join(f"  {line}\n" for line in CONFIG.splitlines())
    file.write_text(
        f"factory: synthetic-timeseries\nconfig:\n{indented}".replace("{{ step }}", "6h")
    )
    return file


class TestMknod:
    def test_both_forms(self, cli: Cli, config: Path, node: Path) -> None:
        cli.ok("mknod", "--config", str(node), "/a")
        cli.ok("mknod", "synthetic-timeseries", "/b", "--config-path", str(config))
        assert cli.ok("cat", "/a") == cli.ok("cat", "/b")
        assert cli.ok("cat", "/a").splitlines()[1] == "2024-01-01T00:00:00Z,0.0"
        facts = cli.json("describe", "/a")
        assert facts["factory"] == "synthetic-timeseries"
        assert [column["name"] for column in facts["columns"]] == ["timestamp", "level"]
        assert facts["config"]["interval"] == "6h"
        assert facts["time"] == {"column": "timestamp"}

    def test_what_is_there(self, cli: Cli, node: Path) -> None:
        cli.ok("mknod", "-p", "--config", str(node), "/x/y/a")
        assert "--overwrite" in cli.fails("mknod", "--config", str(node), "/x/y/a", code=7)
        node.write_text(node.read_text().replace("6h", "12h"))
        cli.ok("mknod", "--config", str(node), "/x/y/a", "--overwrite")
        assert len(cli.ok("cat", "/x/y/a").splitlines()) == 3
        assert len(cli.ok("cat", "/x/y/a@v1").splitlines()) == 5, "as it was configured then"
        cli.ok("mkdir", "/d")
        cli.fails("mknod", "--config", str(node), "/d", "--overwrite", code=8)

    def test_mistakes_are_named_by_line(self, cli: Cli, config: Path) -> None:
        config.write_text(config.read_text().replace("6h", "often"))
        said = cli.fails(
            "mknod", "synthetic-timeseries", "/b", "--config-path", str(config), code=3
        )
        assert f"{config}:3: interval: 'often' is no length of time" in said
        assert cli.json("list") == []

    @pytest.mark.parametrize(
        ("data", "said"),
        [(b"\xff\xfea\0", "iconv -f UTF-16 -t UTF-8"), (b"a: 1\nb: \xe9\n", "save it as UTF-8")],
    )
    def test_it_is_in_utf8(self, cli: Cli, config: Path, data: bytes, said: str) -> None:
        config.write_bytes(data)
        line = data.count(b"\n") or 1
        for words in (
            ("mknod", "--config", str(config), "/b"),
            ("mknod", "column-rename", "/b", "--config-path", str(config)),
            ("apply", "-f", str(config)),
            ("apply", "-f", str(config.parent)),
        ):
            shown = cli.fails(*words, code=3)
            assert f"{config}:{line}: it is no text in UTF-8" in shown
            assert said in shown
        result = cli("apply", "-f", "-", stdin=data)
        assert result.exit_code == 3
        assert "it is no text in UTF-8" in result.output

    @pytest.mark.parametrize(
        "words", [("/a",), ("x", "y", "/a"), ("x", "/a", "--config", "{node}")]
    )
    def test_usage(self, cli: Cli, node: Path, words: tuple[str, ...]) -> None:
        cli.fails("mknod", *(word.format(node=node) for word in words), code=2)

    def test_variables(self, cli: Cli, config: Path) -> None:
        config.write_text(CONFIG.replace("{{ step }}", "'{{ step }}'"))
        cli.ok("mknod", "synthetic-timeseries", "/v", "--config-path", str(config))
        assert "pond -v step=" in cli.fails("cat", "/v", code=3)
        assert len(cli.ok("-v", "step=8h", "cat", "/v").splitlines()) == 4

    def test_a_configuration_that_is_not_a_mapping_says_what_it_should_be(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        (tmp_path / "node.yaml").write_text("factory: timeseries-join\nconfig: 1\n")
        error = cli.fails("mknod", "--config", "node.yaml", "/j", code=3)
        assert "node.yaml:2: config is not a mapping" in error
        assert "hint: config: {member: value, …}" in error


class TestApply:
    def test_twice_changes_nothing(self, cli: Cli, tmp_path: Path, node: Path) -> None:
        file = tmp_path / "all.yaml"
        one = node.read_text()
        file.write_text(f"path: /x/a\n{one}---\npath: /x/b\n{one}")
        would = cli.json("apply", "-f", str(file), "--dry-run")
        assert would["made"] == ["/x/a", "/x/b"]
        assert cli.json("list") == []
        assert cli.json("apply", "-f", str(file))["made"] == ["/x/a", "/x/b"]
        before = cli.json("status")["transactions"]
        assert cli.json("apply", "-f", str(file))["unchanged"] == ["/x/a", "/x/b"]
        assert cli.json("status")["transactions"] == before
        file.write_text(file.read_text().replace("6h", "12h", 1))
        done = cli.json("apply", "-f", str(file))
        assert (done["changed"], done["unchanged"]) == (["/x/a"], ["/x/b"])

    def test_all_or_none(self, cli: Cli, tmp_path: Path, node: Path) -> None:
        folder = tmp_path / "pipeline"
        folder.mkdir()
        one = node.read_text()
        (folder / "a.yaml").write_text(f"path: /a\n{one}")
        (folder / "b.yaml").write_text(f"path: /b\n{one.replace('6h', '6 hours')}")
        said = cli.fails("apply", "-f", str(folder), code=3)
        assert "b.yaml:6: interval" in said
        (folder / "b.yaml").write_text(f"path: /a\n{one}")
        assert "/a stands in" in cli.fails("apply", "-f", str(folder), code=3)
        assert cli.json("list") == []


class TestListFactories:
    def test_all(self, cli: Cli) -> None:
        found = {row["factory"]: row for row in cli.json("list-factories")}
        assert found["sql-derived-series"]["creates"] == "series"
        assert found["column-rename"]["creates"] == "transform"

    def test_one(self, cli: Cli) -> None:
        shown = cli.ok("list-factories", "sql-derived-table")
        assert "patterns" in shown
        assert "required" in shown
        schema = cli.json("list-factories", "sql-derived-table")["schema"]
        assert schema["additionalProperties"] is False
        cli.fails("list-factories", "sql-derived", code=1)

    def test_members_of_members(self, cli: Cli) -> None:
        shown = [
            line.split() for line in cli.ok("list-factories", "synthetic-timeseries").splitlines()
        ]
        assert ["interval", "duration", "required"] in shown
        assert ["start", "time", "required"] in shown
        assert ["period", "duration", "1d"] in shown
        lines = cli.ok("list-factories", "timeseries-join").splitlines()
        starts = [line.split("  time")[0].rstrip() for line in lines]
        assert [line for line in lines if line.startswith("  pattern ")]
        assert "    begin" in starts, "as deep as it stands"
        assert "resolutions   list of duration" in cli.ok("list-factories", "temporal-reduce")

    def test_one_that_is_run(self, cli: Cli) -> None:
        assert "pond_path" in cli.ok("list-factories", "log-ingest")
