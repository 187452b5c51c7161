"""The steward of a pond: transactions, control table, recovery, post-commit, maintenance.

- `pond`: `Pond`, `open_pond`, `create_pond`
- `read`, `write`: scopes; `scope` is what both can do; `handle` is one path in the hand
- `commit`: the eight steps; `race` and `turn` lead to the moment; `steps` names places for tests
- `tables`: the Delta tables behind tables, series and collections; `pending`: what a transaction
  does to one; `rowwriting`, `evolve`: rows on their way in, and what columns become
- `control`: what was done, when and by whom; `recover`: what a crash left
- `places`: what an argument names; `selection`: what several hold; `hostrows`: files here
- `copying`, `comparing`, `describing`, `bounds`, `overlaps`: what commands of the same names do
"""
