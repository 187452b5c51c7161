"""obstore's errors as ours: short, with a next step, and without anything that must stay secret.

The originals end in pages of internals that quote requests, so they are not chained.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from millpond.base.errors import (
    ObjectExistsError,
    ObjectNotFoundError,
    StoreAccessError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUERY = re.compile(r"(https?://[^\s?]+)\?[^\s)]+")
_NO_ANSWER = ("error sending request", "operation timed out", "dns error", "tcp connect error")
_CODE = re.compile(r"<Code>(\w+)</Code>")


@contextlib.contextmanager
def translated(path: str, *, url: str) -> Iterator[None]:
    """Turn the errors of obstore into those of the store."""
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise _no_bucket(path, url=url) from None
        raise ObjectNotFoundError(f"there is no object {path!r} in {url}", path=path) from None
    except (AlreadyExistsError, PreconditionError):
        raise ObjectExistsError(f"{path!r} is already in {url}", path=path) from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreAccessError(
            f"no access to {path!r} in {url}: {_summary(error)}",
            path=path,
            hint="check store.access_key_id, store.secret_access_key and the bucket's policy",
        ) from None
    except NotSupportedError as error:
        raise StoreError(
            f"{url} can't do this with {path!r}: {_summary(error)}",
            path=path,
            hint="a pond needs a store with conditional puts",
        ) from None
    except (BaseError, ValueError) as error:
        if "NoSuchBucket" in str(error):
            raise _no_bucket(path, url=url) from None
        is_away = any(said in str(error) for said in _NO_ANSWER)
        what = f"the store {url} can't be reached" if is_away else f"{path!r} in {url} failed"
        raise StoreError(
            f"{what}: {_summary(error)}",
            path=path,
            hint="check store.endpoint, store.region and the network",
        ) from None


def _no_bucket(path: str, *, url: str) -> StoreError:
    hint = "create the bucket first, or check its name and store.endpoint"
    return StoreError(f"the bucket of {url} does not exist", path=path, hint=hint)


def _summary(error: Exception) -> str:
    """The first line, without what follows '?' in an address, and with S3's own code."""
    text = str(error)
    line = _QUERY.sub(r"\1", text.partition("\n")[0]).removesuffix(
        ': <?xml version="1.0" encoding="UTF-8"?>'
    )
    line = line.partition(": <?xml")[0]
    code = _CODE.search(text)
    return f"{line} ({code[1]})" if code else line
