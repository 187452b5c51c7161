"""Storage as one small protocol: objects with names, whole or not there, created only once.

- `protocol`: `Store`, what every store promises, and its value objects
- `path`: which names an object can have
- `children`: one directory of a store, without what lies deeper
- `local`, `memory`, `object`: the stores; `object` speaks to S3 and others through obstore
- `open`: from a URL to a store, importing only what that URL needs

`millpond.testing.store` holds the promises as tests.
"""

from millpond.base.store.open import open_store
from millpond.base.store.path import TEMP_PREFIX, check_path, check_prefix
from millpond.base.store.protocol import Capabilities, Data, ObjectMeta, PutMode, Store

__all__ = [
    "TEMP_PREFIX",
    "Capabilities",
    "Data",
    "ObjectMeta",
    "PutMode",
    "Store",
    "check_path",
    "check_prefix",
    "open_store",
]
