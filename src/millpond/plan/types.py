"""The types a plan knows: Delta's primitives, decimals, structs, lists and maps, as frozen values.

`arrow.py` beside this file turns them into Arrow types and back; `typejson.py` into Delta's JSON.

>>> schema = Struct.of(id=LONG, tags=List(STRING), at=TIMESTAMP)
>>> print(schema)
struct<id: long, tags: list<string>, at: timestamp>
>>> schema.field("tags").type
List(element=Primitive('string'), contains_null=True)
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from millpond.base.errors import SchemaError, TypeMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True, repr=False)
class Primitive:
    """A type without parameters, by its Delta name."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVE_NAMES:
            raise TypeMismatchError(
                f"unknown type {self.name!r}", hint=f"one of {', '.join(sorted(PRIMITIVE_NAMES))}"
            )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Primitive({self.name!r})"


PRIMITIVE_NAMES: Final = frozenset(
    {
        *("void", "boolean", "byte", "short", "integer", "long", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz", "variant"),
    }
)

NULL: Final = Primitive("void")
"""The type of a literal null: it fits every other type."""
BOOLEAN: Final = Primitive("boolean")
BYTE: Final = Primitive("byte")
SHORT: Final = Primitive("short")
INTEGER: Final = Primitive("integer")
LONG: Final = Primitive("long")
FLOAT: Final = Primitive("float")
DOUBLE: Final = Primitive("double")
STRING: Final = Primitive("string")
BINARY: Final = Primitive("binary")
DATE: Final = Primitive("date")
TIMESTAMP: Final = Primitive("timestamp")
"""Microseconds since the epoch, in UTC."""
TIMESTAMP_NTZ: Final = Primitive("timestamp_ntz")
"""Microseconds of a wall clock in no particular zone."""
VARIANT: Final = Primitive("variant")
"""Known, so that a schema that holds it can be read; no engine computes with it."""


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        whole = {int}.issuperset(map(type, (self.precision, self.scale)))
        if not whole or not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise TypeMismatchError(
                f"decimal({self.precision},{self.scale}) can't exist",
                hint="precision is 1 to 38, scale 0 to precision",
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class List:
    """Any number of elements of one type, in order."""

    element: DataType
    contains_null: bool = True

    def __post_init__(self) -> None:
        _require_type(self.element, "a list's element type")

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key; keys are never null."""

    key: DataType
    value: DataType
    contains_null: bool = True

    def __post_init__(self) -> None:
        _require_type(self.key, "a map's key type")
        _require_type(self.value, "a map's value type")
        if self.key == NULL:
            raise TypeMismatchError("a map's keys are never null, so they are not void")

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column or struct member.

    `metadata` is canonical JSON text, so that a field stays hashable; see `with_metadata`.
    """

    name: str
    type: DataType
    nullable: bool = True
    metadata: str = "{}"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise SchemaError(f"a column's name is a text, not {self.name!r}")
        _require_type(self.type, f"the type of {self.name!r}")
        if not self.name.isascii():
            require_text(self.name, "a column's name")

    def with_metadata(self, values: Mapping[str, Any]) -> Field:
        """A copy that carries these values.

        >>> Field("a", LONG).with_metadata({"id": 7}).metadata_dict()
        {'id': 7}
        """
        text = json.dumps(dict(values), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return replace(self, metadata=text)

    def metadata_dict(self) -> dict[str, Any]:
        """The metadata as a new dictionary."""
        loaded: dict[str, Any] = json.loads(self.metadata)
        return loaded

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.nullable else " not null")


_MAKE_STRUCT: Final = "Struct.of(id=LONG), or Struct((Field('id', LONG),))"


class _Indexed:
    """Where a struct keeps the positions of its fields, outside of what makes it equal."""

    __slots__ = ("_positions",)
    _positions: dict[str, int]


@dataclass(frozen=True, slots=True)
class Struct(_Indexed):
    """Named fields in order. A plan's schema is a struct. Names differ, and case matters.

    >>> Struct((Field("a", LONG), Field("a", STRING)))
    Traceback (most recent call last):
    ...
    millpond.base.errors.SchemaError: the name 'a' stands twice in one struct
      hint: rename one of them
    """

    fields: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        if not isinstance(self.fields, tuple):
            raise TypeMismatchError(
                f"a struct takes a tuple of fields, not {self.fields!r}", hint=_MAKE_STRUCT
            )
        for position, field in enumerate(self.fields):
            if not isinstance(field, Field):
                raise TypeMismatchError(f"a struct takes fields, not {field!r}", hint=_MAKE_STRUCT)
            if seen.setdefault(field.name, position) != position:
                raise SchemaError(
                    f"the name {field.name!r} stands twice in one struct", hint="rename one of them"
                )
        object.__setattr__(self, "_positions", seen)

    @classmethod
    def of(cls, **types: DataType) -> Struct:
        """A struct of nullable fields, by name."""
        return cls(tuple(Field(name, type_) for name, type_ in types.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """The field names in order."""
        return tuple(field.name for field in self.fields)

    def get(self, name: str) -> Field | None:
        """The field of this name, or None."""
        position = self.position(name)
        return None if position is None else self.fields[position]

    def position(self, name: object) -> int | None:
        """Where the field of this name stands, or None."""
        if not isinstance(name, str):
            return None
        try:
            return self._positions.get(name)
        except AttributeError:  # pickle and copy bring the fields alone
            found = {field.name: at for at, field in enumerate(self.fields)}
            object.__setattr__(self, "_positions", found)
            return found.get(name)

    def field(self, name: str) -> Field:
        """The field of this name; an unknown one is an error that names what is near."""
        found = self.get(name)
        if not isinstance(name, str):
            raise SchemaError(f"a column's name is a text, not {name!r}")
        if found is None:
            raise SchemaError(f"there is no column {name!r}", hint=self.near(name))
        return found

    def select(self, names: Iterable[str]) -> Struct:
        """Only these fields, in the given order."""
        return Struct(tuple(self.field(name) for name in names))

    def unused(self, name: str) -> str:
        """A name that no field has: this one, or one like it.

        >>> Struct.of(path=STRING).unused("path")
        'path_'
        """
        while name in self:
            name += "_"
        return name

    def near(self, name: str) -> str:
        """A hint for an unknown name: what is spelled alike, or what there is."""
        if not self.fields:
            return "there are no columns at all"
        near = difflib.get_close_matches(name, self.names[:_NEAR], n=3, cutoff=0.5)
        if near:
            return f"did you mean {' or '.join(repr(n) for n in near)}?"
        shown = ", ".join(self.names[:20]) + (", …" if len(self.names) > 20 else "")
        return f"there are: {shown}"

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, name: object) -> bool:
        return self.position(name) is not None

    def __str__(self) -> str:
        return f"struct<{', '.join(str(field) for field in self.fields)}>"


DataType: TypeAlias = Primitive | Decimal | Struct | List | Map
_TYPES: Final = (Primitive, Decimal, Struct, List, Map)
_NEAR: Final = 1000
"""So many names are compared for a hint: comparing all of a very wide schema takes seconds."""
Schema: TypeAlias = Struct

INTEGRAL: Final = (BYTE, SHORT, INTEGER, LONG)
FRACTIONAL: Final = (FLOAT, DOUBLE)
_WHOLE: Final = frozenset(type_.name for type_ in INTEGRAL)
_REAL: Final = frozenset(type_.name for type_ in FRACTIONAL)
DIGITS: Final[Mapping[Primitive, int]] = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 20}
"""How many decimal digits an integer type needs when it meets a decimal."""


def is_integral(type_: DataType) -> bool:
    """Whether values are whole numbers of fixed width."""
    return isinstance(type_, Primitive) and type_.name in _WHOLE


def is_fractional(type_: DataType) -> bool:
    """Whether values are IEEE floating point numbers."""
    return isinstance(type_, Primitive) and type_.name in _REAL


def is_numeric(type_: DataType) -> bool:
    """Whether values are numbers of any kind."""
    return isinstance(type_, Decimal) or is_integral(type_) or is_fractional(type_)


def is_orderable(type_: DataType) -> bool:
    """Whether values have an order, so that they can be compared, sorted and grouped."""
    return isinstance(type_, Decimal) or (
        isinstance(type_, Primitive) and type_ not in (NULL, VARIANT)
    )


def types_in(type_: DataType) -> Iterator[DataType]:
    """A type, as a schema is one, and every type in it, at any depth."""
    todo: list[DataType] = [type_]
    while todo:
        type_ = todo.pop()
        yield type_
        if isinstance(type_, Struct):
            todo.extend(field.type for field in type_)
        elif isinstance(type_, List):
            todo.append(type_.element)
        elif isinstance(type_, Map):
            todo.extend((type_.key, type_.value))


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The narrowest type that holds both without losing meaning, or None.

    >>> print(common_type(INTEGER, LONG), common_type(LONG, DOUBLE))
    long double
    >>> print(common_type(LONG, Decimal(10, 2)), common_type(LONG, STRING))
    decimal(22,2) None
    """
    if left == right:
        return left
    if left == NULL:
        return right
    if right == NULL:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_numeric(left, right)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if {left, right} == {DATE, TIMESTAMP_NTZ}:
        return TIMESTAMP_NTZ
    if isinstance(left, List) and isinstance(right, List):
        element = common_type(left.element, right.element)
        return None if element is None else List(element, left.contains_null or right.contains_null)
    return None


def _common_numeric(left: DataType, right: DataType) -> DataType | None:
    if is_fractional(left) or is_fractional(right):
        return FLOAT if left == right == FLOAT else DOUBLE
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        whole = max(a.precision - a.scale, b.precision - b.scale)
        return Decimal(whole + scale, scale) if whole + scale <= 38 else None
    return max(left, right, key=INTEGRAL.index)


def _require_type(found: object, what: str) -> None:
    if not isinstance(found, _TYPES):
        raise TypeMismatchError(
            f"{what} is not a type: {found!r}",
            hint="use LONG, STRING, List(...) and the like of millpond.plan.types",
        )


def require_text(text: str, what: str) -> None:
    """Refuse half a surrogate pair: no engine, file or wire can hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeMismatchError(
            f"{what} is not valid Unicode: {text!r}", hint="decode bytes as UTF-8"
        ) from error


def as_decimal(type_: DataType) -> Decimal:
    """The decimal that holds every value of an integer or decimal type."""
    if isinstance(type_, Decimal):
        return type_
    if isinstance(type_, Primitive) and type_ in DIGITS:
        return Decimal(DIGITS[type_], 0)
    raise TypeMismatchError(f"{type_} has no exact decimal form")
