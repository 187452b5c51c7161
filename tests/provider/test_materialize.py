"""`materialize`: a computed path written down, and written again only if its rows have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.cli.calls import Cli
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp
from millpond.base.errors import FactoryConfigError, PathTypeError
from millpond.steward.running import run_node

if TYPE_CHECKING:
    from pathlib import Path

    from millpond.steward.pond import Pond


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    made = mp.create(tmp_path / "pond")
    append(made, "/s", [{"timestamp": at(hour), "x": hour} for hour in range(3)])
    make(made, "/j", "timeseries-join", inputs=[{"pattern": "/s", "scope": "S"}])
    return made


def test_only_changes_are_written(pond: Pond) -> None:
    make(pond, "/m", "materialize", source="/j", target="/out/joined")
    run_node(pond, "/m")
    assert rows_of(pond, "/out/joined") == rows_of(pond, "/j")
    before = pond.read().txn_seq
    run_node(pond, "/m")
    assert pond.read().txn_seq == before
    append(pond, "/s", [{"timestamp": at(9), "x": 9}])
    assert len(rows_of(pond, "/out/joined")) == 3
    run_node(pond, "/m")
    assert rows_of(pond, "/out/joined") == rows_of(pond, "/j")
    assert pond.read().stat("/out/joined").version == 2
    run_node(pond, "/m", mode="always")
    assert pond.read().stat("/out/joined").version == 3


def test_after_commits(pond: Pond) -> None:
    with pond.write() as tx:
        tx.make_directory("/etc/system.d", parents=True)
        tx.make_factory("/etc/system.d/50-joined", "materialize", {"source": "/j", "target": "/t"})
        tx.commit()
    assert len(rows_of(pond, "/t")) == 3
    append(pond, "/s", [{"timestamp": at(9), "x": 9}])
    assert len(rows_of(pond, "/t")) == 4
    with pond.write() as tx:
        tx.write_bytes("/other", b"x")
        tx.commit()
    assert pond.read().stat("/t").version == 2, "what has not changed is not written"


def test_bad_configurations(pond: Pond) -> None:
    for config, message in (
        ({}, "source: it is missing"),
        ({"source": "/a", "target": "/"}, "target: the root can't be"),
        ({"source": "a", "target": "/b"}, "source: 'a' does not begin with /"),
    ):
        with pytest.raises(FactoryConfigError, match=message):
            make(pond, "/m", "materialize", **config)
    with pytest.raises(PathTypeError, match="can't be run"):
        run_node(pond, "/j")


def test_a_command_that_fails_leaves_no_node(pond: Pond) -> None:
    with pond.write() as tx:
        tx.write_bytes("/raw.txt", b"no rows")
        tx.commit()
    cli, place = Cli(), str(pond.location)
    for source, target in (("/j", "/j"), ("/raw.txt", "/out"), ("/none", "/out")):
        done = cli("--pond", place, "materialize", source, target)
        assert done.exit_code not in (0, 1), done.output
        scope = pond.read()
        assert not scope.exists("/out")
        assert not scope.exists(f"/etc/materialize{target}")
    cli.ok("--pond", place, "materialize", "/j", "/out")
    assert rows_of(pond, "/out") == rows_of(pond, "/j")
