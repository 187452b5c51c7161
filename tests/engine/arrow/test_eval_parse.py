"""Texts as moments: whole columns and single texts are read alike."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.engine.arrow.eval.parse import moments, read_moment
from millpond.plan.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType

YEARS = st.integers(0, 9999) | st.sampled_from([0, 1, 1000, 1900, 2000, 2024, 9599, 9600, 9999])
DAYS = st.builds("{:04}-{:02}-{:02}".format, YEARS, st.integers(0, 13), st.integers(0, 32))
TIMES = st.builds(
    "{}{:02}:{:02}:{:02}".format,
    st.sampled_from("T "),
    st.integers(0, 25),
    st.integers(0, 60),
    st.integers(0, 60),
)
FRACTIONS = st.just("") | st.text("0123456789", min_size=1, max_size=8).map(".{}".format)
ZONES = st.sampled_from(["", "Z", "Z", "+01:00", "-18:00"])
FULL = st.builds("{}{}{}{}".format, DAYS, TIMES, FRACTIONS, ZONES)
FORMS = [DAYS, FULL, DAYS | FULL, st.sampled_from(["9999-12-31", "2024-02-30", "", "now"])]


@given(st.sampled_from(FORMS).flatmap(lambda form: st.lists(form | st.none(), max_size=4)))
def test_columns_are_read_as_single_texts_are(texts: list[str | None]) -> None:
    for type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        for zones in (True, False):
            found = moments(pa.array(texts, pa.string()), type_, zones=zones)
            wanted = [None if t is None else read_moment(t, type_, zones=zones) for t in texts]
            assert found.cast(pa.int32() if type_ == DATE else pa.int64()).to_pylist() == wanted


@pytest.mark.parametrize(
    ("text", "type_", "wanted"),
    [
        ("9999-12-31", DATE, 2_932_896),
        ("0000-01-01", DATE, -719_528),
        ("9999-12-31T23:59:59.999999Z", TIMESTAMP, 253_402_300_799_999_999),
    ],
)
def test_the_first_and_the_last_year(text: str, type_: DataType, wanted: int) -> None:
    assert read_moment(text, type_) == wanted
