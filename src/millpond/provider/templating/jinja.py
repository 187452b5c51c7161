"""Rendering: Jinja2 in a sandbox, without what would give another text the next time.

A template may include or extend others: paths of the pond, relative to itself.
"""

from __future__ import annotations

import posixpath
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from jinja2 import BaseLoader, StrictUndefined, TemplateError, TemplateNotFound, TemplateSyntaxError
from jinja2.exceptions import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from millpond.base.errors import FactoryConfigError, MillpondError, PathNotFoundError
from millpond.base.settings import process_limits
from millpond.provider.templating.budget import Budget, BudgetError
from millpond.provider.templating.guards import (
    charged,
    check_call,
    check_format,
    check_operator,
    guarded,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from jinja2 import nodes
    from jinja2.runtime import Context

ESCAPED: Final = (".html", ".htm", ".xhtml", ".xml", ".svg")
"""Files with such names have `<`, `&` and so on in values escaped."""
_CHANGING_FILTERS: Final = ("random",)
_CHANGING_GLOBALS: Final = ("lipsum",)
_FAILURES: Final = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    BudgetError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a template can do wrong while it is rendered."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja, with everything that a template does charged to a budget."""

    intercepted_binops = frozenset({"+", "*", "%", "**"})

    def __init__(self, budget: Budget, **options: Any) -> None:
        super().__init__(finalize=budget.shown, **options)
        self.budget = budget
        self.concat = budget.joined  # type: ignore[method-assign]
        self.measured, self.spent = budget.measured, budget.spent
        for name, filter_ in self.filters.items():
            self.filters[name] = guarded(name, filter_, budget)

    def join_path(self, template: str, parent: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(parent), template))

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return charged(super()._parse(source, name, filename))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        made = super().wrap_str_format(value)
        if made is None:
            return None

        @wraps(made)
        def checked(*args: Any, **named: Any) -> str:
            check_format(self.budget, value.__self__, (*args, *named.values()))
            return made(*args, **named)

        return checked

    @property
    def turn(self) -> None:
        """Charge one turn of a loop."""
        self.budget.turn()

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if type(left) is float or (type(right) is float and operator != "%"):
            return super().call_binop(context, operator, left, right)
        check_operator(self.budget, operator, left, right)
        return self.budget.spent(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **named: Any) -> Any:  # noqa: N805
        args = check_call(__self.budget, __obj, (*args, *named.values()))[: len(args)]
        return __self.budget.spent(super().call(__context, __obj, *args, **named))


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
    budget = Budget(process_limits())
    environment = _environment(source, budget, is_escaped=out.lower().endswith(ESCAPED))
    try:
        content = environment.get_template(name).render(values).encode()
        budget.check(len(content))
        return content
    except MillpondError:
        raise
    except UnicodeEncodeError as error:
        raise FactoryConfigError(
            f"{out} is not valid Unicode: {error.reason}",
            file=name,
            hint="half of a surrogate pair can't be written: look at the escapes of the template",
        ) from error
    except _FAILURES as error:
        raise _failed(error, name, values, out) from error


def check_syntax(text: str) -> None:
    """Raise ValueError if a text is no template; it is not rendered."""
    try:
        _environment(lambda _name: text, Budget(process_limits())).parse(text)
    except TemplateSyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.message}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _environment(
    source: Callable[[str], str], budget: Budget, *, is_escaped: bool = False
) -> _Environment:
    made = _Environment(
        budget,
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
    if isinstance(error, BudgetError):
        hint = f"make less of it, or raise {error.setting}"
    elif isinstance(error, RecursionError):
        said, hint = "it is nested too deeply", "a template that calls itself needs an end"
    elif isinstance(error, MemoryError):
        said, hint = "it needs more memory than there is", "lower limits.template_bytes"
    elif isinstance(error, UndefinedError):
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
