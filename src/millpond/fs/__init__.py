"""The filesystem of a pond: typed nodes, paths, versions; what is stored, and how it is found.

- `entry`: `Row`, one thing that happened to a node, and the kinds of nodes
- `paths`, `glob`: texts that name nodes
- `tree`: `Tree`, a pond pinned at one version; `working`: a tree with changes that nobody sees yet
- `resolve`, `walk`: from a path to a node, and all nodes below one
- `edit`: what can be done to nodes; `rebase`: whether two writers are in each other's way
- `persistence`: where rows are kept: `memory`, or `oplog/` in a Delta table
- `blobs`: bytes that are too many for a row
"""
