"""From a URL to a store; imports the one module that the URL's scheme needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from millpond.base.errors import ConfigError

if TYPE_CHECKING:
    import os

    from millpond.base.settings import Settings
    from millpond.base.store.protocol import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CLOUD = ("abfs", "abfss", "adl", "az", "azure", "gs")
_ALLOWED = ("a path", "file://", "memory://", "s3://", *(f"{scheme}://" for scheme in _CLOUD))


def open_store(
    location: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    durable: bool = True,
    private: bool = False,
) -> Store:
    """Open the store at a path or URL; nothing is read or written yet.

    What can be made again need not be `durable`: a local store then does not wait for the disk.
    What a `private` local store writes only its owner can read.

    >>> open_store("memory://example").url
    'memory://example'
    >>> open_store("ftp://example.org/pond")
    Traceback (most recent call last):
    ...
    millpond.base.errors.ConfigError: there is no store for 'ftp://'
      hint: use a path, file://, memory://, s3://, abfs://, abfss://, adl://, az://, azure://, gs://
    """
    url = location if isinstance(location, str) else location.__fspath__()
    match = _SCHEME.match(url)
    if match is None:
        return _open_local(url, durable=durable, private=private)
    scheme, rest = match[1].lower(), url[match.end() :]
    if scheme == "file":
        return _open_local(_file_path(rest), durable=durable, private=private)
    if scheme == "memory":
        from millpond.base.store.memory import MemoryStore

        return MemoryStore.named(rest) if rest else MemoryStore()
    _refuse_credentials(scheme, rest)
    if scheme in ("s3", "s3a"):
        from millpond.base.settings import Settings
        from millpond.base.store.open_cloud import open_s3

        return open_s3(rest, settings=settings or Settings.load())
    if scheme in _CLOUD:
        from millpond.base.store.open_cloud import open_cloud

        return open_cloud(url)
    raise ConfigError(f"there is no store for '{scheme}://'", hint=f"use {', '.join(_ALLOWED)}")


def _open_local(path: str, *, durable: bool, private: bool) -> Store:
    from millpond.base.store.local import LocalStore

    if not path:
        raise ConfigError("the location of the store is empty", hint="'.' is this directory")
    return LocalStore(path, durable=durable, private=private)


def _file_path(rest: str) -> str:
    from urllib.parse import unquote

    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise ConfigError(
            f"file://{rest} names another machine", hint="write file:///absolute/path"
        )
    return unquote(f"/{path}")


def _refuse_credentials(scheme: str, rest: str) -> None:
    """A URL ends up in logs and errors, so it must not carry keys; it isn't quoted here either."""
    host = rest.partition("/")[0]
    # In abfss://container@account the part before '@' is a name; with ':' it is a password.
    if "?" in rest or ("@" in host and (":" in host or scheme in ("s3", "s3a"))):
        raise ConfigError(
            f"a {scheme}:// location must not carry credentials or a query",
            hint="set store.access_key_id and store.secret_access_key, or the vendor's variables",
        )
