"""A package of somebody else adds factories by entry points alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.provider.packages import install

import millpond as mp
from millpond.base.errors import FactoryConfigError, PluginError
from millpond.cli.main import main
from millpond.fs import factory as factories
from millpond.provider import factory as node_factories

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
import millpond as mp
from millpond.provider.factory import Config, NodeFactory, RowsFactory, TransformFactory
from millpond.provider.rows import ALL, Piece, key_of


class CountConfig(Config):
    upto: int
    of: str | None = None


class CountRows:
    time_column = None

    def __init__(self, config, reading):
        self.path = reading.path
        self._config, self._reading = config, reading
        self.key = key_of("count", config.upto)

    @property
    def schema(self):
        return self.plan().schema

    def pieces(self):
        return [Piece(self.key)]

    def plan(self, asked=ALL):
        if self._config.of is not None:
            self._reading.united(self._config.of).plan()
        step = 100 // self._config.upto
        return mp.values([{"n": step * n} for n in range(self._config.upto)])

    def plan_of(self, pieces):
        return self.plan()


class Count(RowsFactory[CountConfig]):
    name = "count"
    creates = "table"
    model = CountConfig
    summary = "numbers"

    def rows(self, config, reading):
        return CountRows(config, reading)


class Less(TransformFactory[Config]):
    model = Config

    def transform(self, plan, config):
        return plan.select("nothing" if "x" in plan.schema.names else mp.col("n") - {}["less"])

    def entry(self, name, config, reading):
        raise RuntimeError("it has no content")


class Half(NodeFactory[CountConfig]):
    creates = "table"
    model = CountConfig
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package."""
    names = {"count": "Count", "less": "Less", "half": "Half", "nothing": "Nothing"}
    place, group = tmp_path / "site", "millpond.factories"
    found = install(place, "pond_count", MODULE, group, names, patch=monkeypatch)
    monkeypatch.setattr(factories, "FACTORIES", found)
    monkeypatch.setattr(node_factories, "FACTORIES", found)


@pytest.fixture
def pond(tmp_path: Path) -> mp.Pond:
    """An empty one."""
    return mp.create(tmp_path / "pond")


def make(pond: mp.Pond, path: str, factory: str, **config: object) -> None:
    with pond.write() as tx:
        tx.make_factory(path, factory, config)
        tx.commit()


@pytest.mark.usefixtures("installed")
class TestFactory:
    """What a person has who installs it."""

    def test_it_is_a_factory_like_others(self, pond: mp.Pond) -> None:
        make(pond, "/count", "count", upto=3)
        assert pond.read()["/count"].to_arrow().column("n").to_pylist() == [0, 33, 66]
        make(
            pond, "/derived", "sql-derived-table", patterns={"c": "/count"}, query="SELECT n FROM c"
        )
        entry = {"name": "c", "factory": "count", "config": {"upto": 2}}
        make(pond, "/dir", "dynamic-dir", entries=[entry])
        assert pond.read()["/dir/c"].to_arrow().num_rows == 2
        with pytest.raises(FactoryConfigError, match="upto: it is missing"):
            make(pond, "/none", "count")

    def test_the_command_lists_it(self, pond: mp.Pond, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit, match=r"^0$"):
            main(["--pond", str(pond.location), "list-factories", "count"])
        assert "upto" in capsys.readouterr().out

    def test_what_it_raises_names_it_and_the_path(self, pond: mp.Pond) -> None:
        make(pond, "/broken", "count", upto=0)
        make(pond, "/of", "count", upto=1, of="/broken")
        with pytest.raises(PluginError, match=r"/broken can't be computed, count failed: Zero"):
            pond.read()["/broken"].to_arrow()
        with pytest.raises(PluginError, match="/broken can't be computed"):
            pond.read()["/of"].to_arrow()

    def test_a_transform_that_fails(self, pond: mp.Pond) -> None:
        make(pond, "/less", "less")
        make(pond, "/t", "sql-derived-table", patterns={"c": "/count"}, query="SELECT n FROM c",
             transforms=["/less"])  # fmt: skip
        make(pond, "/count", "count", upto=3)
        with pytest.raises(PluginError, match=r"/t can't be computed, less failed: KeyError"):
            pond.read()["/t"].to_arrow()
        with pytest.raises(PluginError, match="it has no content"):
            pond.read()["/less"].read_bytes()

    def test_classes_that_lack_something(self, pond: mp.Pond) -> None:
        with pytest.raises(
            PluginError, match=r"'half' of millpond\.factories can't be made: .*entry"
        ):
            make(pond, "/half", "half", upto=3)
        with pytest.raises(PluginError, match="'nothing' of"):
            make(pond, "/nothing", "nothing")
