"""The parity suite: what every engine must agree on. Subclass `EngineParity` to test your own.

`data` holds the edge tables, `cases` the plans over them (every node), `strategies` random plans,
`compare` what "the same rows" means, `suite` the test classes.
"""

from millpond.testing.engine.compare import assert_same_rows, outcome
from millpond.testing.engine.suite import EngineParity

__all__ = ["EngineParity", "assert_same_rows", "outcome"]
