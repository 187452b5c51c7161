"""Ids: their order, their text, and that kinds do not mix."""

from __future__ import annotations

import os
import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.base import ids
from millpond.base.errors import ConfigError
from millpond.base.ids import Id, NodeId, PondId, TxnId

KINDS = [NodeId, PondId, TxnId]


@pytest.mark.parametrize("kind", KINDS)
def test_text_goes_out_and_in(kind: type[Id]) -> None:
    made = kind.new()
    assert kind.from_str(str(made)) == kind.from_str(str(made).upper()) == made
    assert repr(made) == f"{kind.__name__}('{made}')"
    assert type(pickle.loads(pickle.dumps(made))) is kind


def test_it_is_a_uuid_of_version_7() -> None:
    theirs = uuid.UUID(str(NodeId.new()))
    assert (theirs.version, theirs.variant) == (7, uuid.RFC_4122)


def test_order_is_the_order_of_making() -> None:
    made = [TxnId.new() for _ in range(5000)]
    assert made == sorted(made)
    assert len(set(made)) == 5000
    assert sorted(made, key=str) == sorted(made, key=TxnId.to_bytes) == made


def test_threads_never_get_the_same() -> None:
    def make(_: int) -> list[NodeId]:
        return [NodeId.new() for _ in range(500)]

    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(make, range(16)))
    assert all(batch == sorted(batch) for batch in batches)
    assert len({made for batch in batches for made in batch}) == 8000


def test_a_clock_that_stands_still_or_goes_back_does_not_matter() -> None:
    times = iter([5_000_000, 5_000_000, 3_000_000, 5_999_999, 6_000_000])
    sequence = ids._Sequence(now_ns=lambda: next(times))
    values = [sequence.next() for _ in range(5)]
    assert values == sorted(set(values))
    assert [value >> 80 for value in values] == [5, 5, 5, 5, 6]


def test_a_full_counter_borrows_from_the_next_millisecond() -> None:
    sequence = ids._Sequence(now_ns=lambda: 5_000_000)
    first = sequence.next()
    sequence._counter = (1 << 74) - 1
    assert sequence.next() > first
    assert sequence._millis == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_starts_its_own_sequence() -> None:
    before = ids._SEQUENCE
    ids._restart_sequence()
    assert ids._SEQUENCE is not before


def test_timestamp_is_the_time_of_making() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    stamp = NodeId.new().timestamp
    assert stamp.tzinfo is UTC
    # Other tests may have pushed the sequence ahead, never back.
    assert stamp >= before


def test_kinds_do_not_mix() -> None:
    node = NodeId.new()
    same_bits: Id = TxnId(node.value)
    assert node != same_bits
    assert len({node, TxnId(node.value), NodeId(node.value)}) == 2
    with pytest.raises(TypeError):
        assert node < TxnId.new()  # type: ignore[operator]


@pytest.mark.parametrize(
    "text", ["", "x", "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an id"):
        NodeId.from_str(text)


def test_other_uuids_are_refused() -> None:
    with pytest.raises(ConfigError, match="not one that Millpond makes"):
        NodeId.from_str(str(uuid.uuid4()))
    with pytest.raises(ConfigError, match="128 bits"):
        NodeId(1 << 128)


@given(st.binary(min_size=16, max_size=32))
def test_derived_ids_depend_on_the_digest_alone(digest: bytes) -> None:
    derived = NodeId.from_digest(digest)
    assert derived == NodeId.from_digest(digest)
    assert derived.is_derived
    assert uuid.UUID(str(derived)).version == 8
    with pytest.raises(ConfigError, match="has no timestamp"):
        _ = derived.timestamp


def test_a_short_digest_is_refused() -> None:
    with pytest.raises(ConfigError, match="too short"):
        NodeId.from_digest(b"123")
