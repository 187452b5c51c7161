"""`${env:NAME}` and `{{ name }}` in a configuration: filled in when it is used, never stored.

What the environment says may be a secret: `unsaid` keeps it out of errors.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import FactoryConfigError, MillpondError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_REFERENCE: Final = re.compile(
    r"\$\{env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|\{\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}"
)
_SHORTEST: Final = 4
"""What is shorter is no secret, and is in many a word."""
_taken: Final[dict[str, str]] = {}
"""What was taken from the environment, and how it was referred to."""


def expanded(value: Any, variables: Mapping[str, str], *, strict: bool = True) -> Any:
    """A configuration with all references filled in, at any depth.

    >>> expanded({"path": "/sites/{{ site }}/*"}, {"site": "weir"})
    {'path': '/sites/weir/*'}
    >>> expanded("{{ site }}", {}, strict=False)
    '{{ site }}'
    """
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _filled(found, variables, strict=strict), value)
    if isinstance(value, dict):
        return {name: expanded(part, variables, strict=strict) for name, part in value.items()}
    if isinstance(value, list):
        return [expanded(part, variables, strict=strict) for part in value]
    return value


def _filled(found: re.Match[str], variables: Mapping[str, str], *, strict: bool) -> str:
    value: str | None
    if found["env"] is not None:
        value = os.environ.get(found["env"], found["default"])
        said = f"the environment has no variable {found['env']}"
        hint = f"set it: export {found['env']}=…; or write ${{env:{found['env']}:-default}}"
    else:
        value = variables.get(found["name"])
        said = f"the variable {found['name']} is not given"
        hint = f"give it: pond -v {found['name']}=…"
    if value is not None:
        if found["env"] is not None and len(value) >= _SHORTEST and value != found["default"]:
            _taken[value] = f"${{env:{found['env']}}}"
        return value
    if strict:
        raise FactoryConfigError(said, hint=hint)
    return found[0]


def has_references(value: Any) -> bool:
    """Whether there is something to be filled in."""
    if isinstance(value, str):
        return _REFERENCE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_references, value.values()))
    return isinstance(value, list) and any(map(has_references, value))


@contextmanager
def unsaid() -> Iterator[None]:
    """Errors that pass through say `${env:NAME}` where they would repeat what was filled in."""
    try:
        yield
    except MillpondError as error:
        error.args = tuple(_masked(each) for each in error.args)
        for name, value in vars(error).items():
            setattr(error, name, _masked(value))
        raise


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        for secret in sorted(_taken, key=len, reverse=True):
            value = value.replace(secret, _taken[secret])
    if type(value) is tuple:
        return tuple(map(_masked, value))
    return value
