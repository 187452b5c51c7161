"""What a pond may remember of who did what, and what a message may show: secrets are left out.

They are known by their position (values of `-v`, user and password of a URL, the parameters that
sign one) and by their names.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENVIRONMENT: Final = ("USER", "LOGNAME", "SUDO_USER", "HOSTNAME", "TZ", "POND", "MILLPOND_ENGINE")
"""The variables that are remembered; no others are."""
HIDDEN: Final = "***"
_VARIABLE: Final = "-v"

_NAMES: Final = (
    r"secret|passw(?:or)?d|passphrase|token|credential|signature|pwd|bearer"
    r"|(?:access|account|api|encryption|private|signing|shared)[._-]?key"
    r"|(?<![a-z])(?:pass|tok|auth|authorization)(?![a-z])"
)
_SENSITIVE: Final = re.compile(_NAMES, re.IGNORECASE)
_NAME: Final = rf"[^=?&;\s,]*(?:{_NAMES})[^=?&;\s,]*"
_VALUE: Final = r"""'[^']*'|"[^"]*"|[^&;\s,]*"""
_PAIR: Final = re.compile(rf"((?:^|[?&;\s,]){_NAME}\s*=\s*)(?:{_VALUE})", re.I)
_ALONE: Final = re.compile(rf"({_NAME}=).*", re.I | re.S)
# A password may have a slash or an @ in it; a port is none, and paths have versions (/a@v3). Of
# abfs://container@account the name before the @ is no secret.
_USER: Final = re.compile(
    r"(://|\b(?:https?|s3a?|gs|abfss?|ftp):/(?!/))"
    r"(?:[^/@\s:]*:(?!\d+(?:/|$))[^\s@]*@(?:[^/\s]*@)?|(?<!abfs://)(?<!abfss://)[^/\s]*@)"
)
# The parameters of signed URLs: of AWS, Google Cloud, Azure, CloudFront, and what is usual.
_SIGNED: Final = re.compile(
    r"([?&](?:sig|x-(?:amz|goog)-[a-z-]+|awsaccesskeyid|googleaccessid|key-pair-id|policy|expires"
    r"|s[eprvt]|spr|sip|ske|skoid|sks|skt|sktid|skv|code|jwt|key|hmac|"
    rf"[^=?&;\s,]*(?:{_NAMES})[^=?&;\s,]*)=)[^&;\s,'\"<>)\]}}]+",
    re.IGNORECASE,
)


def is_sensitive(text: str) -> bool:
    """Whether a name, or an option in a text, is one of those that secrets have.

    >>> [is_sensitive(x) for x in ("spark.x.account.key", "-DtrustStorePassword=x", "keystore")]
    [True, True, False]
    """
    return _SENSITIVE.search(text) is not None


def storable(text: str) -> str:
    r"""Return a text as UTF-8 can hold it: bytes of arguments that are not UTF-8 are shown as \xNN.

    >>> storable("weir"), storable("weir\udcff"), storable("\ud800")
    ('weir', 'weir\\xff', '\\ud800')
    """
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()


def safe_urls(text: str) -> str:
    """Return a text in which URLs show no user, no password and no signature.

    >>> safe_urls("nothing at https://ann:hush@host/x?sv=2024&sig=abc%3D&page=2")
    'nothing at https://***@host/x?sv=***&sig=***&page=2'
    >>> safe_urls("abfss://raw@account/x"), safe_urls("host+csv:///a.csv?delimiter=%3B")
    ('abfss://raw@account/x', 'host+csv:///a.csv?delimiter=%3B')
    """
    if ":/" in text and ("@" in text or "?" in text):
        text = _USER.sub(rf"\1{HIDDEN}@", text)
        text = _SIGNED.sub(rf"\1{HIDDEN}", text)
    return text


def safe_text(text: str) -> str:
    """A text without what looks like a secret.

    >>> safe_text("s3://ann:hush@host/x?token=abc&page=2")
    's3://***@host/x?token=***&page=2'
    >>> safe_text("password=hush"), safe_text("site=north")
    ('password=***', 'site=north')
    """
    return _PAIR.sub(rf"\1{HIDDEN}", safe_urls(storable(text)))


def safe_args(args: Sequence[str]) -> list[str]:
    """Arguments without secrets: values of variables, and what follows an option like `--token`.

    >>> safe_args(["-v", "site=north", "-vdepth=3", "list"])
    ['-v', 'site=***', '-vdepth=***', 'list']
    >>> safe_args(["-v", "api_key=1", "copy", "--password", "x", "/a"])
    ['-v', 'api_key=***', 'copy', '--password', '***', '/a']
    """
    found: list[str] = []
    before = ""
    for arg in map(storable, args):
        alone = _ALONE.fullmatch(arg)  # then the value is all that follows
        name, equals, _ = arg.partition("=")
        if before == _VARIABLE or (arg.startswith(_VARIABLE) and arg != _VARIABLE):
            known = f"{name}={HIDDEN}" if equals else HIDDEN
        elif before.startswith("-") and "=" not in before and is_sensitive(before):
            known = HIDDEN
        else:
            known = safe_text(arg) if alone is None else f"{alone[1]}{HIDDEN}"
        found.append(known)
        before = arg
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
