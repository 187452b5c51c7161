"""Files that actions were about, as columns and as names."""

from __future__ import annotations

import pyarrow as pa

from millpond.kernel.seen import Keys, SeenFiles


def keys(*paths: str, vectors: tuple[str | None, ...] = ()) -> Keys:
    ids = pa.array(vectors, pa.string()) if vectors else None
    return Keys(pa.array(paths, pa.string()), ids)


def test_a_file_has_one_text_whatever_stands_beside_it() -> None:
    plain, mixed = keys("a", "b"), keys("a", "b", "c", vectors=(None, "u1", None))
    assert plain.texts().to_pylist() == ["a", "b"]
    assert mixed.texts().to_pylist() == ["a", "b\nu1", "c"]
    assert keys("b", vectors=("u1",)).texts().to_pylist() == ["b\nu1"]


def test_names() -> None:
    assert keys("a", "b").names() == ["a", "b"]
    assert keys("a", "b", vectors=(None, "u1")).names() == ["a", ("b", "u1")]


def test_all_of_them() -> None:
    seen = SeenFiles({"x", ("y", "u1")}, [keys("a"), keys("b", vectors=("u2",))])
    assert len(seen) == 4
    assert set(seen) == {"x", ("y", "u1"), "a", ("b", "u2")}
    assert "a" in seen
    assert ("y", "u1") in seen
    assert "b" not in seen
    assert not SeenFiles(set(), [])


def test_every_way_to_spell_a_path() -> None:
    seen = SeenFiles({"/n", "m"}, [keys("a", "b", vectors=(None, "u1")), keys("/c", "d")])
    found = seen.spelled()
    assert found.schema.types == [pa.string(), pa.string()]
    assert {(row["path"], row["dv"]) for row in found.to_pylist()} == {
        *((prefix + "/n", None) for prefix in ("", "file:", "file://")),
        *((prefix + "/c", None) for prefix in ("", "file:", "file://")),
        *(("m", None), ("a", None), ("b", "u1"), ("d", None)),
    }
    assert SeenFiles(set(), []).spelled().num_rows == 0
