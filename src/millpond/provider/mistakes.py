"""What pydantic finds wrong in a configuration or in the options of a URL, in our own words."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import BaseModel

from millpond.base.errors import FactoryConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import ValidationError

UNKNOWN: Final = "extra_forbidden"
"""The type of a mistake that is a member which there is not."""
_TIME: Final = "a time is wanted: 2024-05-01, or 2024-05-01T12:30:00Z"
_INTEGER: Final = "a whole number is wanted: 1, 24"
_NUMBER: Final = "a number is wanted: 1, 0.5"
_BOOLEAN: Final = "true or false is wanted"
_WORDS: Final = {
    "missing": "it is missing",
    UNKNOWN: "there is no such member",
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "int_parsing": _INTEGER,
    "int_parsing_size": _INTEGER,
    "int_type": _INTEGER,
    "int_from_float": _INTEGER,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "string_type": "a text is wanted: write it in quotes",
    "list_type": "a list is wanted: [a, b]",
    "tuple_type": "a list is wanted: [a, b]",
    "dict_type": "a mapping is wanted: {name: value}",
    "model_type": "a mapping is wanted: {name: value}",
    "invalid_key": "the name of a member is a text: write it in quotes",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "date_type": _TIME,
    "date_parsing": _TIME,
}
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def mistakes(error: ValidationError) -> list[Mapping[str, Any]]:
    """What is wrong, without the values, which may be secrets."""
    return [dict(each) for each in error.errors(include_url=False, include_input=False)]


def in_words(mistake: Mapping[str, Any]) -> str:
    """What is expected where a mistake was found.

    >>> in_words({"type": "bool_parsing", "msg": "Input should be a valid boolean, …"})
    'true or false is wanted'
    """
    kind, context = str(mistake["type"]), mistake.get("ctx") or {}
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "literal_error":
        return f"{context['expected']} is wanted"
    if kind in ("too_short", "string_too_short"):
        return "it is empty" if context["min_length"] == 1 else "it is too short"
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"a number of {words} {context[name]} is wanted"
    return str(mistake["msg"]).removeprefix("Value error, ")


def wrong_config(
    found: Sequence[Mapping[str, Any]], model: type[BaseModel], factory: str
) -> FactoryConfigError:
    """What is wrong, as one error: the first mistake by its place, and how many more.

    Members that are not known come first: one that is missing may only be misspelt.
    """
    unknown = [each for each in found if each["type"] in (UNKNOWN, "invalid_key")]
    first = (unknown or found)[0]
    place = ".".join(str(part) for part in first["loc"])
    message = f"{place or 'the configuration'}: {in_words(first)}"
    if unknown:
        near = get_close_matches(str(first["loc"][-1]), _members(model, first["loc"][:-1]), n=1)
        message += f"; did you mean {near[0]}?" if near else ""
    others = [".".join(map(str, each["loc"])) for each in unknown[1:]]
    if others:
        message += f" (nor {', '.join(others)})"
    more = len(found) - len(others) - 1
    return FactoryConfigError(
        message + (f" (and {more} more)" if more else ""),
        place=(*first["loc"][:-1], str(first["loc"][-1])) if unknown else tuple(first["loc"]),
        hint=f"pond list-factories {factory or 'NAME'} shows what a configuration has",
    )


def _members(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """What a configuration may have at a place."""
    for part in place:
        field = model.model_fields.get(str(part))
        if field is not None:
            inside = next(_models(field.annotation), None)
            if inside is None:
                return []
            model = inside
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type: that of `list[Input] | None` is `Input`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
