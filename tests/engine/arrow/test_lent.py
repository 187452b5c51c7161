"""Streams that native code reads in its own threads are free when the block ends."""

from __future__ import annotations

import gc
import io
import threading
import time

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from millpond.base.errors import SourceError
from millpond.engine.arrow.source.lent import Lent, _Door


def doors() -> list[_Door]:
    """The streams that are lent out."""
    return [each for each in gc.get_objects() if isinstance(each, _Door)]


def test_the_block_waits_for_native_code_in_another_thread() -> None:
    freed: list[float] = []
    held: list[pa.NativeFile] = []

    def hold() -> None:
        time.sleep(0.3)
        freed.append(time.monotonic())
        held.clear()

    with Lent(io.BytesIO(b"a")) as lent:
        held.append(lent.file)
        thread = threading.Thread(target=hold)
        thread.start()
    assert freed
    assert not doors()
    thread.join()


def read(content: bytes) -> None:
    with Lent(io.BytesIO(content)) as lent:
        reader = pc.open_csv(lent.file)
        try:
            while reader.read_next_batch().num_rows:
                pass
        finally:
            del reader


def test_a_reader_that_fails_lets_go_of_the_stream() -> None:
    with pytest.raises(pa.ArrowInvalid) as caught:
        read(b"a\n" + b"1\n" * 3_000_000 + b"1,2\n")
    assert caught.value.__traceback__ is not None
    assert not doors()


class Failing(io.BytesIO):
    """A stream that fails while native code reads it."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise SourceError("it is too large", engine="arrow", path="a")
        return super().read(size)


def test_an_error_of_the_stream_itself_does_not_hold_it(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SourceError, match="too large") as caught, Lent(Failing(b"a\n1\n")) as lent:
        pc.read_csv(lent.file)
    assert caught.value.__traceback__ is not None
    assert not doors()
    assert not caplog.records


def test_native_files_need_no_wait() -> None:
    stream = pa.BufferReader(b"a")
    with Lent(stream) as lent:
        assert lent.file is stream
    assert stream.read() == b"a"


def test_what_is_lent_stays_open() -> None:
    stream = io.BytesIO(b"abc")
    with Lent(stream) as lent:
        assert lent.file.read(1) == b"a"
        lent.file.close()
    assert stream.read() == b"bc"


def test_a_python_file_of_arrow_is_a_python_stream() -> None:
    with Lent(pa.PythonFile(io.BytesIO(b"a\n1\n"), mode="r")) as lent:
        assert pc.read_csv(lent.file).num_rows == 1
    assert not doors()
