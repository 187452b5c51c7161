"""Builds the clients of object stores from settings: the only place that reveals secrets."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from obstore.exceptions import BaseError
from obstore.store import S3Store, from_url

from millpond.base.errors import ConfigError
from millpond.base.store.object import ObjectStore
from millpond.base.store.path import check_path

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

    from millpond.base.settings import Settings, StoreSettings

_KEPT: Final = 256
_RETRY: RetryConfig = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}


def open_s3(rest: str, *, settings: Settings) -> ObjectStore:
    """The store at `bucket/prefix`; what the settings leave open comes from AWS's variables."""
    bucket, _, prefix = rest.strip("/").partition("/")
    if not bucket:
        raise ConfigError("an s3:// location needs a bucket", hint="s3://bucket/prefix")
    if prefix:
        check_path(prefix)
    known = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    return _open_s3(bucket, prefix, settings.store, known)


@lru_cache(maxsize=_KEPT)
def _open_s3(
    bucket: str, prefix: str, given: StoreSettings, known: tuple[tuple[str, str], ...]
) -> ObjectStore:
    """A client takes milliseconds to make, and keeps connections: the same one serves again.

    `known` are AWS's variables, which it reads by itself.
    """
    del known
    # Without this, "create" could not be kept for objects of several parts.
    config: S3Config = {"copy_if_not_exists": "multipart"}
    client: ClientConfig = {"allow_http": given.allow_http}
    if given.endpoint is not None:
        if given.endpoint.startswith("http://") and not given.allow_http:
            raise ConfigError(
                "store.endpoint is not encrypted (http://)",
                setting="store.endpoint",
                hint="use https://, or set store.allow_http = true if this is meant",
            )
        config["endpoint"] = given.endpoint
        config["virtual_hosted_style_request"] = False
    if given.region is not None:
        config["region"] = given.region
    if given.access_key_id is not None:
        config["access_key_id"] = given.access_key_id
    if given.secret_access_key is not None:
        config["secret_access_key"] = given.secret_access_key.reveal()
    if given.session_token is not None:
        config["session_token"] = given.session_token.reveal()
    try:
        raw = S3Store(
            bucket, prefix=prefix or None, config=config, client_options=client, retry_config=_RETRY
        )
    except (BaseError, ValueError) as error:
        raise ConfigError(f"s3://{bucket} can't be opened: {_first_line(error)}") from None
    return ObjectStore(raw, url=f"s3://{bucket}/{prefix}")


# Connections and threads of a client do not survive a fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_s3.cache_clear)


def open_cloud(url: str) -> ObjectStore:
    """Another vendor's store, configured by the variables that its own tools use."""
    try:
        raw = from_url(url, retry_config=_RETRY)
    except (BaseError, ValueError) as error:
        raise ConfigError(f"{url} can't be opened: {_first_line(error)}") from None
    return ObjectStore(raw, url=url)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
