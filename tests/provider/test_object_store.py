"""Computed paths of a pond in an object store: what is kept is there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp

if TYPE_CHECKING:
    from millpond.testing.s3 import S3Server

LINES = "".join(f"{at(h):%Y-%m-%dT%H:%M:%SZ},{h}\n" for h in range(48))


@pytest.mark.s3
def test_a_pipeline_in_an_object_store(s3_server: S3Server) -> None:
    place = s3_server.create_bucket("computed") + "/pond"
    pond = mp.create(place, settings=s3_server.settings())
    with pond.write() as tx:
        tx.write_bytes("/a.csv", f"timestamp,level\n{LINES}".encode())
        tx.commit()
    append(pond, "/b", [{"timestamp": at(h), "flow": 2 * h} for h in range(48)])
    make(pond, "/j", "timeseries-join", inputs=[
        {"pattern": "csv:///a.csv", "scope": "A"}, {"pattern": "/b", "scope": "B"},
    ])  # fmt: skip
    make(pond, "/r", "temporal-reduce", in_pattern="/j", out_pattern="j", resolutions=["1d"],
         aggregations=[{"type": "max"}])  # fmt: skip
    make(pond, "/p", "timeseries-pivot", pattern="/b", columns=["flow"])
    wanted = [
        {"timestamp": at(0), "A.level.max": 23, "B.flow.max": 46},
        {"timestamp": at(24), "A.level.max": 47, "B.flow.max": 94},
    ]
    assert rows_of(pond, "/r/j/res=1d.series") == wanted
    assert len(rows_of(pond, "/p")) == 48
    kept = {meta.path.split("/")[1] for meta in pond.store.list("cache/")}
    assert {"images", "joined", "partials", "reduced"} <= kept
    again = mp.open(place, settings=s3_server.settings())
    with mp.collect_stats() as seen:
        assert rows_of(again, "/r/j/res=1d.series") == wanted
    assert seen.rows_decoded < 20, "what was kept is found by others"
    append(again, "/b", [{"timestamp": at(48), "flow": 1}])
    assert rows_of(again, "/r/j/res=1d.series")[-1]["B.flow.max"] == 1
