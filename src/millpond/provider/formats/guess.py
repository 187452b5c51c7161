"""The types of columns that are text: what all values look like, and the values themselves.

What a text looks like is said here, what it means by the casts of expressions, so a guess never
gives a type that a value does not fit: docs/formats.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millpond.base.errors import EvaluationError
from millpond.plan import types as t

if TYPE_CHECKING:
    import pyarrow as pa

_CLOCK: Final = r"[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_LOOKS: Final[dict[t.DataType, str]] = {
    t.LONG: r"[+-]?\d{1,19}",
    t.DOUBLE: r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[nN]a[nN]|[iI]nf(inity)?)",
    t.BOOLEAN: r"(?i:true|false)",
    t.DATE: r"\d{4}-\d\d-\d\d",
    t.TIMESTAMP_NTZ: rf"\d{{4}}-\d\d-\d\d({_CLOCK})?",
    t.TIMESTAMP: rf"\d{{4}}-\d\d-\d\d{_CLOCK} ?(Z|[+-]\d\d:?\d\d)",
}
TIMES: Final[tuple[t.DataType, ...]] = (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP)


class Guess:
    """What one column can be, as far as it was seen.

    >>> import pyarrow as pa
    >>> guess = Guess()
    >>> for texts in (["1", None], ["2.5"]):
    ...     guess.see(pa.array(texts))
    >>> print(guess.type)
    double
    """

    def __init__(self, types: tuple[t.DataType, ...] = tuple(_LOOKS)) -> None:
        self._left = list(types)
        self._is_seen = False

    def see(self, texts: pa.Array) -> None:
        """Some values more."""
        if texts.null_count == len(texts):
            return
        self._is_seen = True
        self._left = [type_ for type_ in self._left if _fits(texts, type_)]

    @property
    def type(self) -> t.DataType:
        """The first type that all values fit, or text; NULL if there was none."""
        if not self._is_seen:
            return t.NULL
        return self._left[0] if self._left else t.STRING


def _fits(texts: pa.Array, type_: t.DataType) -> bool:
    import pyarrow.compute as pc

    looks = pc.match_substring_regex(texts, rf"^\s*({_LOOKS[type_]})\s*$")
    if not pc.all(looks).as_py():
        return False
    try:
        values(texts, type_)
    except EvaluationError:
        return False
    return True


def values(texts: pa.Array, type_: t.DataType) -> pa.Array:
    """Texts as values of a type; EvaluationError says which one does not fit."""
    if type_ == t.STRING:
        return texts
    import pyarrow as pa

    from millpond.engine.arrow.eval import evaluate
    from millpond.plan.bound import BoundCast, BoundPath
    from millpond.plan.paths import Name

    cast = BoundCast(BoundPath((Name("text"),), t.STRING), type_)
    return evaluate(cast, pa.record_batch([texts], ["text"]))


def settled(columns: t.Struct) -> t.Struct:
    """Columns of which nothing is known are text."""
    return t.Struct(
        tuple(t.Field(f.name, t.STRING if f.type == t.NULL else f.type) for f in columns)
    )


def known(columns: t.Struct) -> tuple[t.Struct, tuple[str, ...]]:
    """The columns of which something is known, one at least, and the names of the others."""
    found = tuple(field for field in columns if field.type != t.NULL)
    if not found:
        found = settled(t.Struct(columns.fields[:1])).fields
    names = {field.name for field in found}
    return t.Struct(found), tuple(f.name for f in columns if f.name not in names)
