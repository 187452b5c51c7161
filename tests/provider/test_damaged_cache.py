"""Files under `cache/` that were damaged: they are computed again, and no read gives other rows."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.provider.ponds import append, at, make, rows_of

import millpond as mp
from millpond.base.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millpond.steward.pond import Pond

PATHS = ("/reduced/a/res=1h.series", "/joined", "/pivoted", "/image", "/made", "/delta")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A pond with results of all kinds in its cache, and its rows."""
    place = tmp_path_factory.mktemp("damaged") / "pond"
    pond = mp.create(place)
    with pond.write() as tx:
        tx.make_directory("/in")
        tx.commit()
    for batch in range(5):
        rows: list[dict[str, Any]] = [
            {"timestamp": at(n / 10 + 30 * batch), "level": float(n), "site": f"s{n % 3}"}
            for n in range(300)
        ]
        append(pond, "/in/a", rows)
        append(pond, "/in/b", [{**row, "level": row["level"] * 2} for row in rows])
    with pond.write() as tx:
        lines = "".join(f"{n},2024-01-01T00:{n % 60:02}:00Z\n" for n in range(500))
        tx.write_bytes("/lines.csv", b"n,timestamp\n" + lines.encode())
        tx.commit()
    aggregations = [{"type": "avg", "columns": ["level"]}, {"type": "count", "columns": ["level"]}]
    make(pond, "/reduced", "temporal-reduce", in_pattern="/in/*", out_pattern="$0",
         resolutions=["1h"], aggregations=aggregations)  # fmt: skip
    inputs = [{"pattern": f"/in/{name}", "scope": name} for name in "ab"]
    make(pond, "/joined", "timeseries-join", inputs=inputs)
    make(pond, "/pivoted", "timeseries-pivot", in_pattern="/in/a", pivot_column="site",
         value_column="level")  # fmt: skip
    make(pond, "/image", "timeseries-join", inputs=[{"pattern": "csv:///lines.csv", "scope": "c"}])
    make(pond, "/made", "synthetic-timeseries", start="2024-01-01T00:00:00Z",
         end="2024-01-01T23:00:00Z", interval="1h",
         points=[{"name": "level", "components": [{"type": "line", "slope": 1.0}]}])  # fmt: skip
    laid = place.parent / "delta"
    table = pa.table({"timestamp": pa.array([at(n) for n in range(40)]), "level": range(40)})
    deltalake.write_deltalake(str(laid), table)
    with pond.write() as tx:
        for file in sorted(f for f in laid.rglob("*") if f.is_file()):
            name = f"/laid/{file.relative_to(laid)}"
            tx.make_directory(str(Path(name).parent), parents=True)
            tx.write_file(name, file)
        tx.commit()
    make(pond, "/delta", "timeseries-join", inputs=[{"pattern": "delta:///laid", "scope": "d"}])
    truth = read(pond)
    shutil.rmtree(place / "cache")
    assert read(mp.open(place)) == truth
    kinds = {file.relative_to(place / "cache").parts[0] for file in cached(place)}
    assert kinds >= {"images", "partials", "joined", "pivoted", "facts", "synthetic", "delta"}
    return place, truth


def read(pond: Pond) -> dict[str, Any]:
    return {path: rows_of(pond, path) for path in PATHS}


def cached(place: Path) -> list[Path]:
    return sorted(file for file in (place / "cache").rglob("*") if file.is_file())


def results(place: Path) -> list[Path]:
    """Those that are no index, and no lock."""
    return [f for f in cached(place) if f.suffix in (".parquet", ".json") and f.stat().st_size]


def flip(content: bytes, rng: Random) -> bytes:
    bit = rng.randrange(8 * len(content))
    broken = bytearray(content)
    broken[bit // 8] ^= 1 << bit % 8
    return bytes(broken)


FAULTS: dict[str, Callable[[bytes, Random], bytes]] = {
    "flip": flip,
    "cut": lambda content, rng: content[: rng.randrange(1, len(content))],
    "empty": lambda content, rng: b"",
    "garbage": lambda content, rng: rng.randbytes(len(content)),
    "text": lambda content, rng: b'{"columns": ',
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_damaged_is_computed_again(
    original: tuple[Path, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    place, truth = tmp_path / "pond", original[1]
    rng = Random(name)
    for _ in range(3 if name == "flip" else 1):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(original[0], place)
        damaged = {}
        for file in results(place):
            damaged[file] = FAULTS[name](file.read_bytes(), rng)
            file.write_bytes(damaged[file])
        assert read(mp.open(place)) == truth
        assert read(mp.open(place)) == truth
        kept = {file for file, content in damaged.items()
                if file.exists() and file.read_bytes() == content}  # fmt: skip
        unused = {file.relative_to(place / "cache").parts[0] for file in kept}
        assert unused <= {"partials", "facts"}, "below others that were computed again"


def test_each_file_alone(original: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    place, truth = tmp_path / "pond", original[1]
    shutil.copytree(original[0], place)
    rng = Random(5)
    for file in results(place):
        content = file.read_bytes()
        file.write_bytes(flip(content, rng))
        assert read(mp.open(place)) == truth, file


def test_files_that_took_each_others_places(
    original: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    place, truth = tmp_path / "pond", original[1]
    shutil.copytree(original[0], place)
    for suffix in (".parquet", ".json"):
        files = [file for file in results(place) if file.suffix == suffix]
        contents = [file.read_bytes() for file in files]
        for file, content in zip(files, [*contents[1:], contents[0]], strict=True):
            file.write_bytes(content)
    assert read(mp.open(place)) == truth


def test_damage_is_logged_and_does_not_get_into_stored_rows(
    original: tuple[Path, dict[str, Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, truth = tmp_path / "pond", original[1]
    shutil.copytree(original[0], place)
    for file in results(place):
        file.write_bytes(flip(file.read_bytes(), Random(file.name)))
    pond = mp.open(place)
    with caplog.at_level(logging.WARNING, "millpond"), pond.write() as tx:
        tx.write_table("/stored", tx.plan("/joined"))
        tx.commit()
    assert any("is damaged and is computed again" in each.message for each in caplog.records)
    assert rows_of(mp.open(place), "/stored") == truth["/joined"]


@pytest.mark.parametrize("cut", [False, True])
def test_a_raw_parquet_file_is_checked_before_its_rows_are_read(tmp_path: Path, cut: bool) -> None:
    table = pa.table({"n": range(40_000)})
    file = tmp_path / "numbers.parquet"
    pq.write_table(table, file, use_dictionary=False, compression="none")
    pond = mp.create(tmp_path / "pond")
    with pond.write() as tx:
        tx.write_file("/numbers.parquet", file)
        tx.commit()
    url = "parquet:///numbers.parquet"
    assert pond.read().to_arrow(url).num_rows == 40_000
    [blob] = [f for f in (tmp_path / "pond" / "blobs").rglob("*") if f.is_file()]
    content = bytearray(blob.read_bytes())
    content[5_000] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(content[:-100] if cut else content)
    with pytest.raises(IntegrityError, match=r"/numbers\.parquet"):
        mp.open(tmp_path / "pond").read().to_arrow(url)
