"""`json`: one object a line; its members are columns.

Members may appear in any line, so all lines are looked at before the first row is given;
`infer_rows` looks at the first ones alone, and a member that appears later is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import Field

from millpond.base.errors import EvaluationError, SchemaError
from millpond.engine.arrow.source.jsonlines import check_lines
from millpond.plan import types as t
from millpond.plan.arrow import from_arrow, to_arrow_schema
from millpond.plan.sources import File, Scan
from millpond.plan.unite import united_schema
from millpond.provider.formats.format import Format, Options, Parsed
from millpond.provider.formats.guess import TIMES, Guess, settled, values

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millpond.plan.node import Plan
    from millpond.provider.formats.format import Source

_BLOCK: Final = 4 << 20
_BOM: Final = b"\xef\xbb\xbf"
_HINT: Final = "one JSON object per line is expected, members of the same type in each"


class JsonOptions(Options):
    """How a file is read."""

    infer_rows: Annotated[int, Field(ge=0)] = 0


class JsonLines(Format[JsonOptions]):
    """JSON objects, one a line."""

    options = JsonOptions
    summary: ClassVar[str] = "JSON objects, one a line"

    def parse(self, source: Source, options: JsonOptions) -> Parsed:
        """The rows, in two passes: columns, then values."""
        columns = _guessed(source, options)
        return Parsed(to_arrow_schema(columns), _rows(source, columns))

    def columns(self, source: Source, options: JsonOptions) -> t.Struct | None:
        """The columns."""
        # An engine would leave out members that were not seen, instead of refusing them.
        return _guessed(source, options) if not options.infer_rows else None

    def scan(self, files: list[tuple[str, int]], columns: t.Struct, options: JsonOptions) -> Plan:
        """The rows of files; what does not fit its column is an error."""
        del options
        found = tuple(File(path, size) for path, size in files)
        return Scan("json", found, settled(columns), strict=True)


def _guessed(source: Source, options: JsonOptions) -> t.Struct:
    """The columns of all blocks together; texts that are times everywhere are times."""
    found: dict[str, t.Struct] = {}
    guesses: dict[str, Guess] = {}
    for before, block in _blocks(source, options.infer_rows):
        table = _read(source, block, before, None)
        texts = table.schema.with_metadata(None)
        for index, field in enumerate(texts):
            texts = texts.set(index, field.with_type(_without_times(field.type)))
        columns = t.Struct(
            tuple(t.Field(f.name, _known(source, f.name, from_arrow(f.type))) for f in texts)
        )
        found.setdefault(str(columns), columns)
        if not texts.equals(table.schema):
            table = _read(source, block, before, texts)
        for name in (field.name for field in columns if field.type == t.STRING):
            guess = guesses.setdefault(name, Guess(TIMES))
            for chunk in table[name].chunks:
                guess.see(chunk)
    if not found:
        raise source.failed("shows no columns", hint="JSON lines have one object at least")
    try:
        united = united_schema({f"{source.name} ({n})": c for n, c in enumerate(found.values())},
                               texts=True)  # fmt: skip
    except SchemaError as error:
        raise source.failed(f"holds no such rows: {error.message}", hint=_HINT) from error
    fields = ((f, guesses.get(f.name)) for f in united)
    return t.Struct(
        tuple(
            t.Field(f.name, guess.type if guess and f.type == t.STRING else f.type)
            for f, guess in fields
        )
    )


def _rows(source: Source, columns: t.Struct) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    schema = to_arrow_schema(columns)
    texts = to_arrow_schema(
        t.Struct(tuple(t.Field(f.name, t.STRING) if f.type in TIMES else f for f in columns))
    )
    for before, block in _blocks(source):
        table = _read(source, block, before, texts, strict=True)
        for batch in table.combine_chunks().to_batches():
            arrays = []
            for column, field in zip(batch.columns, columns, strict=True):
                try:
                    is_time = field.type in TIMES
                    arrays.append(values(column, field.type) if is_time else column)
                except EvaluationError as error:
                    said = f"has a member {field.name!r} that is no {field.type}: {error.message}"
                    raise source.failed(said, hint=_HINT) from error
            yield pa.record_batch(arrays, schema=schema)


def _read(
    source: Source, block: bytes, before: int, schema: pa.Schema | None, *, strict: bool = False
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.json as pj

    unexpected = "error" if strict else "infer"
    try:
        return pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=unexpected
            ),
        )
    except pa.ArrowInvalid as error:
        check_lines(source.name, block, before)
        hint = _HINT
        if "unexpected field" in str(error):
            hint = "look at all rows, without the option infer_rows"
        raise source.failed(f"can't be read behind line {before}: {error}", hint=hint) from error


def _blocks(source: Source, rows: int = 0) -> Iterator[tuple[int, bytes]]:
    """Whole lines in blocks, with how many lines were before; so many lines at most, if given."""
    before = 0
    with source.open() as stream:
        held = stream.read(_BLOCK).removeprefix(_BOM)
        while held:
            more = stream.read(_BLOCK)
            end = held.rfind(b"\n") + 1 if more else len(held)
            block, held = held[:end], held[end:] + more
            if rows and before + block.count(b"\n") >= rows:
                lines = block.split(b"\n")[: rows - before]
                block, held = b"\n".join(lines), b""
            if block.strip():
                yield before, block
            before += block.count(b"\n")


def _without_times(type_: pa.DataType) -> pa.DataType:
    """The same type with texts where Arrow took them for times."""
    import pyarrow as pa
    import pyarrow.types as at

    if at.is_timestamp(type_):
        return pa.string()
    if at.is_list(type_):
        return pa.list_(_without_times(type_.value_type))
    if at.is_struct(type_):
        members = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(m.name, _without_times(m.type)) for m in members])
    return type_


def _known(source: Source, name: str, type_: t.DataType, *, is_top: bool = True) -> Any:
    """The type as a column can have it: inside of others, what is always null is text."""
    if isinstance(type_, t.Struct):
        if not type_.fields:
            raise source.failed(
                f"has a member {name!r} that is an object without members",
                hint="leave it out of the file: it holds nothing that a column could",
            )
        members = ((f.name, f.type) for f in type_)
        return t.Struct(
            tuple(t.Field(n, _known(source, f"{name}.{n}", m, is_top=False)) for n, m in members)
        )
    if isinstance(type_, t.List):
        return t.List(_known(source, name, type_.element, is_top=False))
    return t.STRING if type_ == t.NULL and not is_top else type_
