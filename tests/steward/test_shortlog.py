"""Logs that are read straight: the same as the kernel says, or left to the kernel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.provider.ponds import append, at

import millpond as mp
from millpond.steward.dynamic.shortlog import MOST_COMMITS, Live, fact_of, read_short

if TYPE_CHECKING:
    from millpond.steward.pond import Pond

COLUMNS = ("path", "size", "stats", "deletionVector", "modificationTime", "tags")


@pytest.fixture
def pond(tmp_path: Path) -> Pond:
    return mp.create(tmp_path / "pond")


def short(pond: Pond, path: str, *, since: Live | None = None) -> Live | None:
    row = pond.read().row(path)
    tables, version = pond.tables, row.delta_version or 0
    place = tables.place(row.node_id)
    return read_short(tables.store(row.node_id), place, version, row.time_column, since=since)


def by_kernel(pond: Pond, path: str) -> Live:
    table, row = pond.read().delta(path), pond.read().row(path)
    rows = table.files(columns=COLUMNS).to_arrow().to_pylist()
    files = {each["path"]: fact_of(each, row.time_column) for each in rows}
    return Live(table.version, table.schema, files, is_plain=True)


def agree(pond: Pond, path: str) -> bool:
    return short(pond, path) == by_kernel(pond, path)


def test_it_says_what_the_kernel_says(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1, "n": {"a": [1.5]}}])
    assert agree(pond, "/s")
    append(pond, "/s", [{"timestamp": at(1), "x": 2, "new column %20": "ü"}])
    assert agree(pond, "/s")
    for number in range(3):
        with pond.write() as tx:
            tx.write_table("/t", [{"x": number}])
            tx.commit()
        assert agree(pond, "/t"), "what was overwritten is gone"


def test_long_logs_are_left_to_the_kernel(pond: Pond) -> None:
    for hour in range(MOST_COMMITS):
        append(pond, "/s", [{"timestamp": at(hour)}])
    assert short(pond, "/s") is None
    assert len(pond.read().derivation.rows("/s").pieces()) == MOST_COMMITS


def test_it_goes_on_from_what_is_known(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0), "x": 1}])
    known = by_kernel(pond, "/s")
    append(pond, "/s", [{"timestamp": at(1), "x": 2}])
    append(pond, "/s", [{"timestamp": at(2), "new": "column"}])
    found = short(pond, "/s", since=known)
    assert found == by_kernel(pond, "/s")
    assert len(known.files) == 1, "what was known is as it was"
    assert short(pond, "/s", since=replace(known, is_plain=False)) is None
    assert found is not None
    assert short(pond, "/s", since=replace(found, version=found.version + 1)) is None
    with pond.write() as tx:
        tx.write_table("/t", [{"x": 1}])
        tx.commit()
    known = by_kernel(pond, "/t")
    with pond.write() as tx:
        tx.write_table("/t", [{"x": 2}])
        tx.commit()
    assert short(pond, "/t", since=known) == by_kernel(pond, "/t")


def test_what_is_special_or_damaged_is_left_to_the_kernel(pond: Pond) -> None:
    append(pond, "/s", [{"timestamp": at(0)}])
    row = pond.read().row("/s")
    log = Path(pond.location) / "tables" / row.node_id / "_delta_log"
    commit = log / f"{row.delta_version:020}.json"
    text = commit.read_text()
    vector = '"deletionVector":{"storageType":"i","pathOrInlineDv":"","sizeInBytes":0},'
    protocol = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7}}\n'
    for other in (
        text[:-20],
        text.replace('"path"', '"pfad"'),
        text.replace('"size"', '"s"'),
        text.replace('"dataChange"', f'{vector}"dataChange"'),
        text + protocol,
        text + text,
    ):
        commit.write_text(other)
        assert short(pond, "/s") is None
    commit.unlink()
    assert short(pond, "/s") is None
