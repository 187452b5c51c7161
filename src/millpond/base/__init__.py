"""What every layer may use and what knows no layer: errors, ids, time, settings, plugins, stores.

Import from the module that holds the thing; each does one job and imports little:

- `errors`: the tree under `MillpondError`
- `ids`: `NodeId`, `PondId`, `TxnId`
- `clock`: `Clock`, `SystemClock`, `ManualClock`
- `settings`: `Settings.load()`; `secret`: `Secret`
- `registry`: `Registry` over entry points
- `store`: the `Store` protocol and `open_store()`
"""
