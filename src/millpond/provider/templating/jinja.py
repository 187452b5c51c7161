"""Rendering: Jinja2 in a sandbox, without what would give another text the next time.

A template may include or extend others: paths of the pond, relative to itself.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, Final

from jinja2 import BaseLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from millpond.base.errors import FactoryConfigError, MillpondError, PathNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

ESCAPED: Final = (".html", ".htm", ".xhtml", ".xml", ".svg")
"""Files with such names have `<`, `&` and so on in values escaped."""
_CHANGING_FILTERS: Final = ("random",)
_CHANGING_GLOBALS: Final = ("lipsum",)
_FAILURES: Final = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a template can do wrong while it is rendered."""


class _Environment(ImmutableSandboxedEnvironment):
    def join_path(self, template: str, parent: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))


class _Loader(BaseLoader):
    def __init__(self, source: Callable[[str], str]) -> None:
        self._source = source

    def get_source(
        self, environment: object, template: str
    ) -> tuple[str, str, Callable[[], bool] | None]:
        del environment
        return self._source(template), template, None


def render(
    name: str, source: Callable[[str], str], values: Mapping[str, object], *, out: str
) -> bytes:
    """The bytes of a file; `source` gives the text of a template by its name.

    >>> render("/t", {"/t": "{{ a }}"}.__getitem__, {"a": "<"}, out="/x.html")
    b'&lt;'
    """
    environment = _environment(source, is_escaped=out.lower().endswith(ESCAPED))
    try:
        return environment.get_template(name).render(values).encode()
    except MillpondError:
        raise
    except UnicodeEncodeError as error:
        raise FactoryConfigError(f"{out} is no valid Unicode: {error.reason}", file=name) from error
    except _FAILURES as error:
        raise _failed(error, name, values, out) from error


def check_syntax(text: str) -> None:
    """Raise ValueError if a text is no template; it is not rendered."""
    try:
        _environment(lambda _name: text).parse(text)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None


def _environment(source: Callable[[str], str], *, is_escaped: bool = False) -> _Environment:
    made = _Environment(
        loader=_Loader(source),
        undefined=StrictUndefined,
        autoescape=is_escaped,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    for name in _CHANGING_FILTERS:
        del made.filters[name]
    for name in _CHANGING_GLOBALS:
        del made.globals[name]
    made.policies["json.dumps_kwargs"] = {"sort_keys": False, "default": _plain}
    return made


def _plain(value: Any) -> object:
    """What JSON has no words for: times as ISO 8601, numbers of any length as text."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _failed(
    error: BaseException, name: str, values: Mapping[str, object], out: str
) -> MillpondError:
    if isinstance(error, TemplateNotFound):
        return PathNotFoundError(
            f"there is no template {error.name}, for {out}",
            path=out,
            hint="look what is there: pond list",
        )
    file: str
    line: int | None
    if isinstance(error, TemplateSyntaxError):
        file, line = error.filename or name, error.lineno
        said = error.message or "it can't be read"
    else:
        file, line = _place(error.__traceback__, name)
        said = f"{error}" or type(error).__name__
    hint = "https://jinja.palletsprojects.com describes templates"
    if isinstance(error, UndefinedError):
        hint = f"a template sees {', '.join(sorted(values))}"
    return FactoryConfigError(f"{said} (rendering {out})", file=file, line=line, hint=hint)


def _place(trace: TracebackType | None, name: str) -> tuple[str, int | None]:
    """The innermost template that was at work, and its line."""
    found: tuple[str, int | None] = (name, None)
    while trace is not None:
        frame = trace.tb_frame
        if "__jinja_exception__" in frame.f_globals:  # Jinja puts the template's frame there
            found = (frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found
