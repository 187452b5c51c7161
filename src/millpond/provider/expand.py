"""`${env:NAME}` and `{{ name }}` in a configuration: filled in when it is used, never stored.

What the environment says may be a secret, and is concealed: see `base/unsaid.py`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

from millpond.base.errors import FactoryConfigError
from millpond.base.unsaid import conceal

if TYPE_CHECKING:
    from collections.abc import Mapping

_REFERENCE: Final = re.compile(
    r"\$\{env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|\{\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}"
)


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
        if found["env"] is not None and value != found["default"]:
            conceal(value, f"${{env:{found['env']}}}")
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
