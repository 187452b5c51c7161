"""The steward of a pond: transactions, control table, recovery, post-commit, maintenance.

- `pond`: `Pond`, `open_pond`, `create_pond`
- `read`, `write`: scopes; `scope` is what both can do; `handle` is one path in the hand
- `committing`: the eight steps of a commit, races, recovery, post-commit
- `tables`: the Delta tables behind tables, series and collections, and rows on their way in
- `control`: what was done, when and by whom, and what is set
- `index`: what lets `pond list` do without Arrow
- `keeping`: maintenance, `fsck`, the content root
- `temporal`: time columns, bounds, overlaps
- `places`: what an argument names; `rows`: what several hold, and rows out into files
- `copying`, `comparing`, `describing`: what commands of the same names do
"""
