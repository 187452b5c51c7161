"""`arrow`: the formats of Arrow, the file and the stream; the first bytes tell which."""

from __future__ import annotations

import io
import tempfile
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, ClassVar, Final

from millpond.provider.formats.format import Format, Options, Parsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from millpond.provider.formats.format import Source

_MAGIC: Final = b"ARROW1"
_IN_MEMORY: Final = 16 << 20


class ArrowOptions(Options):
    """There are none."""


class Arrow(Format[ArrowOptions]):
    """Arrow's IPC formats."""

    options = ArrowOptions
    summary: ClassVar[str] = "Arrow IPC, file or stream"
    guesses: ClassVar[bool] = False

    def parse(self, source: Source, options: ArrowOptions) -> Parsed:
        """The rows, batch by batch."""
        import pyarrow as pa

        del options
        stream: IO[bytes] = source.open()
        is_file = stream.peek(len(_MAGIC))[: len(_MAGIC)] == _MAGIC  # type: ignore[attr-defined]
        if is_file:
            stream.close()
            stream = seekable(source)
        try:
            opened = pa.PythonFile(stream, mode="r")
            reader = pa.ipc.open_file(opened) if is_file else pa.ipc.open_stream(opened)
        except pa.ArrowInvalid as error:
            stream.close()
            raise source.failed(
                f"is neither a file nor a stream of Arrow: {error}",
                hint="check what has written it; Feather of version 1 is not read",
            ) from error
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        return Parsed(reader.schema, closing(stream, _checked(source, batches)))


def _checked(source: Source, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches whose offsets, lengths and text are valid: others could crash the process."""
    import pyarrow as pa

    for batch in batches:
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise source.failed(
                f"has a batch that is not valid Arrow: {error}",
                hint="it is damaged, or what has written it breaks the rules of the format",
            ) from error
        yield batch


def closing(stream: IO[bytes], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; behind the last one the stream is closed."""
    with stream:
        yield from batches


def seekable(source: Source) -> IO[bytes]:
    """The bytes of a source as a file to seek in; what is packed is unpacked for it."""
    stream = source.open()
    if source.compression is None and stream.seekable():
        return stream
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - given away
    with stream:
        copyfileobj(stream, spool, io.DEFAULT_BUFFER_SIZE * 16)
    spool.seek(0)
    return spool
