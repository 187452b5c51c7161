"""What a pond may remember of who did what: what looks like a secret is left out."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENVIRONMENT: Final = ("USER", "LOGNAME", "SUDO_USER", "HOSTNAME", "TZ", "POND", "MILLPOND_ENGINE")
"""The variables that are remembered; no others are."""
HIDDEN: Final = "***"

_NAMES: Final = (
    r"secret|password|passwd|passphrase|token|credential|signature"
    r"|(?:access|account|api|encryption|private)[._-]?key"
)
_SENSITIVE: Final = re.compile(_NAMES, re.IGNORECASE)
_NAME: Final = rf"[^=?&;\s,]*(?:{_NAMES})[^=?&;\s,]*"
_VALUE: Final = r"""'[^']*'|"[^"]*"|[^&;\s,]*"""
_PAIR: Final = re.compile(rf"((?:^|[?&;\s,]){_NAME}\s*=\s*)(?:{_VALUE})", re.I)
_ALONE: Final = re.compile(rf"({_NAME}=).*", re.I | re.S)
# A password may have a slash or an @ in it; a port is none, and paths have versions (/a@v3).
_USER: Final = re.compile(r"(://)(?:[^/@\s:]+:(?!\d+(?:/|$))[^\s@]*@(?:[^/\s]*@)?|[^/\s]*@)")


def is_sensitive(text: str) -> bool:
    """Whether a name, or an option in a text, is one of those that secrets have.

    >>> [is_sensitive(x) for x in ("spark.x.account.key", "-DtrustStorePassword=x", "keystore")]
    [True, True, False]
    """
    return _SENSITIVE.search(text) is not None


def safe_text(text: str) -> str:
    """A text without what looks like a secret.

    >>> safe_text("s3://ann:hush@host/x?token=abc&page=2")
    's3://***@host/x?token=***&page=2'
    >>> safe_text("password=hush"), safe_text("site=north")
    ('password=***', 'site=north')
    """
    return _PAIR.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", text))


def safe_args(args: Sequence[str]) -> list[str]:
    """Arguments without secrets; what follows an option like `--token` is one.

    >>> safe_args(["-v", "password=correct horse, battery"])
    ['-v', 'password=***']
    >>> safe_args(["-v", "api_key=1", "copy", "--password", "x", "/a"])
    ['-v', 'api_key=***', 'copy', '--password', '***', '/a']
    """
    found: list[str] = []
    hide = False
    for arg in args:
        alone = _ALONE.fullmatch(arg)  # then the value is all that follows
        known = safe_text(arg) if alone is None else f"{alone[1]}{HIDDEN}"
        found.append(HIDDEN if hide else known)
        hide = arg.startswith("-") and "=" not in arg and is_sensitive(arg)
    return found


def safe_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The few variables that are remembered."""
    env = os.environ if env is None else env
    return {name: safe_text(env[name]) for name in ENVIRONMENT if env.get(name)}


def safe_info(info: Mapping[str, Any]) -> dict[str, Any]:
    """What a caller says of a transaction, without secrets.

    >>> safe_info({"args": ["--token", "abc"], "password": "x", "environment": {"HOME": "/"}})
    {'args': ['--token', '***'], 'password': '***', 'environment': {}}
    """
    found: dict[str, Any] = {}
    for name, value in info.items():
        if name == "environment" and hasattr(value, "items"):
            found[name] = safe_environment(value)
        else:
            found[name] = HIDDEN if is_sensitive(name) else _safe(value)
    return found


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, list | tuple):
        if all(isinstance(item, str) for item in value):
            return safe_args(value)
        return [_safe(item) for item in value]
    if hasattr(value, "items"):
        return {k: HIDDEN if is_sensitive(str(k)) else _safe(v) for k, v in value.items()}
    plain = isinstance(value, int | float | bool | None)
    return value if plain else str(value)  # a Secret shows as ***
