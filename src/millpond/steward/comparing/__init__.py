"""What changed: between two moments of a pond, or between two nodes or versions of one.

- `trees`: which nodes came, went, changed, moved
- `nodes`: two nodes or versions, by `contents` for bytes and `rows` for tables
"""
