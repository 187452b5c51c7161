"""The columns of a file of JSON lines, guessed from all of its lines.

Members may appear in any line, so each is looked at, at every depth. Lines are decoded by msgspec,
block by block, and values are judged column by column. Fractions are decoded once more, as they
are written, only where a double may not be what was written.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from millpond.base.errors import SourceError
from millpond.engine.arrow.guess.again import Again
from millpond.engine.arrow.guess.guessed import Guessed
from millpond.engine.arrow.guess.seen import ITEM, Seen, Unsure
from millpond.engine.arrow.guess.texts import see_fractions, whole_number
from millpond.engine.arrow.source.files import ENGINE
from millpond.engine.arrow.source.jsonlines import check_lines
from millpond.engine.arrow.source.lines import split_lines
from millpond.engine.looks import EXACT
from millpond.plan import types as t
from millpond.plan.unite import innermost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from millpond.engine.arrow.source.lines import Lines

MOST_LEVELS: Final = 100
"""Objects and lists inside each other that become a type."""
_MANY_MEMBERS: Final = 100
_TINY: Final = r"[eE]-[0-9]{3}"
_DECLARE: Final = 'declare it: schema={"…": "string"} reads any value as its JSON text'


class Real(str):
    """A number with a point or an exponent, as it is written."""

    __slots__ = ()


_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Real: "a number",
    str: "text",
    dict: "an object",
    list: "a list",
}
_DOUBLES: Final = msgspec.json.Decoder()
_REALS: Final = msgspec.json.Decoder(float_hook=Real)


def guess_json(path: str, blocks: Callable[[], Iterable[bytes]]) -> Guessed:
    """Guess the columns of a file, whose blocks of lines can be had more than once."""
    try:
        return _guess(path, blocks(), _DOUBLES)
    except Unsure:
        return _guess(path, blocks(), _REALS)


def _guess(path: str, blocks: Iterable[bytes], decoder: Any) -> Guessed:
    top, before = Seen(), 0
    again = Again(top) if decoder is _DOUBLES else None
    for block in blocks:
        lines = split_lines(block)
        if again is not None and pc.match_substring_regex([block], _TINY)[0].as_py():
            raise Unsure
        if len(lines) and not (again is not None and again.see(lines)):
            _look(
                top,
                _Block(path, block, before, lines, _decoded(lines, decoder, path, block, before)),
            )
            if again is not None:
                again.forget()
        before += block.count(b"\n")
    types = {name: _type(seen, (name,), path) for name, seen in top.members.items()}
    large = {name: top.members[name].largest for name in types if innermost(types[name]) == t.LONG}
    return Guessed.of(types, large)


# Lines as values


def _decoded(lines: Lines, decoder: Any, path: str, block: bytes, before: int) -> list[Any]:
    rows: list[Any] | None = None
    if lines.plain is not None:
        try:
            rows = decoder.decode_lines(lines.plain)
        except msgspec.ValidationError as error:  # a number that no double is near to
            raise Unsure from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            rows = None
    if rows is None or len(rows) != len(lines):
        number = partial(_line_number, lines, block, before)
        rows = [
            _one(text, decoder, path, number, index)
            for index, text in enumerate(lines.texts().to_pylist())
        ]
    if set(map(type, rows)) != {dict}:
        check_lines(path, block, before)
    return rows


def _one(text: str, decoder: Any, path: str, number: Callable[[int], int], index: int) -> Any:
    """One line; what msgspec refuses may still be JSON for Python: half a surrogate pair."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise Unsure from error
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(
            text, parse_int=whole_number, parse_float=Real, parse_constant=_no_constant
        )
    except _Constant as error:
        said = f"holds {error}, which is not JSON"
        raise _failed(path, number(index), said, _DECLARE) from error
    except RecursionError as error:
        raise _too_deep(path, number(index)) from error
    except ValueError:
        check_lines(path, text.encode(errors="replace"), number(index) - 1)
        raise


class _Constant(ValueError):  # noqa: N818 - it never leaves this file
    """A word such as NaN where a value should be."""


def _no_constant(text: str) -> Any:
    raise _Constant(text)


def _line_number(lines: Lines, block: bytes, before: int, index: int) -> int:
    return before + block.count(b"\n", 0, int(lines.starts[index])) + 1


# Values, column by column


class _Block(NamedTuple):
    """Some lines, and what is needed to tell where one is."""

    path: str
    content: bytes
    before: int
    lines: Lines
    rows: list[Any]

    def line_of(self, steps: tuple[Any, ...], kind: str) -> int:
        """Return the first line that has a value of a kind at a place."""
        for index, row in enumerate(self.rows):
            if any(_KINDS.get(type(value)) == kind for value in _at(row, steps)):
                return _line_number(self.lines, self.content, self.before, index)
        raise AssertionError("a kind of value that was seen is in some line")


def _at(row: Any, steps: tuple[Any, ...]) -> list[Any]:
    values = [row]
    for step in steps:
        if step is ITEM:
            values = list(chain.from_iterable(v for v in values if type(v) is list))
        else:
            values = [v.get(step) for v in values if type(v) is dict]
    return values


def _look(top: Seen, block: _Block) -> None:
    """Take note of the values of a block, at every depth."""
    todo: list[tuple[Seen, tuple[Any, ...], list[Any]]] = [(top, (), block.rows)]
    while todo:
        seen, steps, values = todo.pop()
        kinds = set(map(type, values))
        kinds.discard(type(None))
        for kind in kinds:
            word = _KINDS[kind]
            if word not in seen.lines:
                seen.lines[word] = block.line_of(steps, word)
        if len(seen.lines) > 1:
            raise _mixed(seen, steps, block.path)
        if dict in kinds or list in kinds:
            if len(steps) == MOST_LEVELS:
                raise _too_deep(block.path, block.line_of(steps, *seen.lines))
            todo += reversed(list(_inside(seen, steps, values)))
        else:
            _see_scalars(seen, kinds, values)


def _inside(
    seen: Seen, steps: tuple[Any, ...], values: list[Any]
) -> Iterator[tuple[Seen, tuple[Any, ...], list[Any]]]:
    """Yield the members of objects, or the elements of lists."""
    there = [value for value in values if value is not None]
    if type(there[0]) is list:
        items = list(chain.from_iterable(there))
        seen.items = seen.items or Seen()
        yield seen.items, (*steps, ITEM), items
        return
    names = dict.fromkeys(chain.from_iterable(there))
    if len(names) <= _MANY_MEMBERS:
        columns = {name: [value.get(name) for value in there] for name in names}
    else:  # most lack most of them
        columns = {name: [] for name in names}
        for value in there:
            for name, member in value.items():
                columns[name].append(member)
    for name, column in columns.items():
        yield seen.members.setdefault(name, Seen()), (*steps, name), column


def _see_scalars(seen: Seen, kinds: set[type], values: list[Any]) -> None:
    if int in kinds:
        wholes = _of(int, kinds, values)
        seen.numbers.see_wholes(min(wholes), max(wholes))
    if float in kinds:
        found = _of(float, kinds, values)
        if max(found) >= EXACT or min(found) <= -EXACT:
            raise Unsure
        seen.is_unsure = True
        seen.numbers.see_plain(whole_digits=1, fraction_digits=1, is_exact=True)
    if (int in kinds or float in kinds) and seen.is_unsure and seen.numbers.type != t.DOUBLE:
        raise Unsure
    if Real in kinds:
        see_fractions(seen.numbers, pa.array(_of(Real, kinds, values), pa.string()))
    if str in kinds and seen.texts.is_open:
        texts = [text for text in values if text is not None]
        try:
            seen.texts.see(pa.array(texts, pa.string()))
        except UnicodeEncodeError:  # half a surrogate pair, which no time has
            seen.texts.close()


def _of(kind: type, kinds: set[type], values: list[Any]) -> list[Any]:
    if len(kinds) == 1 and values.count(None) == 0:
        return values
    return [value for value in values if type(value) is kind]


# Types


def _type(seen: Seen, steps: tuple[Any, ...], path: str) -> t.DataType:
    """Return the type of a place: inside of others, what is always null is text."""
    kind = next(iter(seen.lines), None)
    if kind is None:
        return t.NULL if len(steps) == 1 else t.STRING
    if kind == "a boolean":
        return t.BOOLEAN
    if kind == "text":
        return seen.texts.type if seen.texts.is_open else t.STRING
    if kind == "a list":
        assert seen.items is not None
        return t.List(_type(seen.items, (*steps, ITEM), path))
    if kind == "an object":
        members = ((name, _type(one, (*steps, name), path)) for name, one in seen.members.items())
        fields = tuple(t.Field(name, type_) for name, type_ in members)
        if not fields:
            said = f"has a member {_place(steps)!r} that is an object without members"
            hint = f"leave it out of the file, or {_DECLARE}"
            raise _failed(path, seen.lines[kind], said, hint)
        return t.Struct(fields)
    found = seen.numbers.type
    if found is None:
        said = (
            f"has the first number of member {_place(steps)!r}, which has numbers "
            "that no double and no decimal of 38 digits holds exactly"
        )
        hint = 'declare it: schema={"…": "double"} rounds, "string" keeps each as its JSON text'
        raise _failed(path, seen.lines[kind], said, hint)
    return found


def _place(steps: tuple[Any, ...]) -> str:
    return "".join("[]" if step is ITEM else f".{step}" for step in steps).removeprefix(".")


def _mixed(seen: Seen, steps: tuple[Any, ...], path: str) -> SourceError:
    (one, here), (other, there), *_ = sorted(seen.lines.items(), key=lambda kind: kind[1])
    said = f"has {other} in member {_place(steps)!r}, which is {one} in line {here}"
    return _failed(path, there, said, _DECLARE)


def _too_deep(path: str, line: int) -> SourceError:
    said = f"nests lists or objects deeper than {MOST_LEVELS} levels"
    return _failed(path, line, said, _DECLARE)


def _failed(path: str, line: int, said: str, hint: str) -> SourceError:
    return SourceError(f"line {line} of {path} {said}", engine=ENGINE, path=path, hint=hint)
