"""Files as rows: opening them, what to decode of them, and the operators that give their rows.

- `files`, `storefile`: from a path or URL to something that can be read
- `need`: which parts of nested columns expressions touch; `leaves`: which leaf columns those are
- `conform`, `merge`: what a file holds, as the types that a plan wants
- `bounds`, `prune`: what statistics rule out
- `spec`: a scan with the filters and the projection above it, as one unit of work
- `parquet`: Parquet files and their row groups; `jsonfiles`, `jsonlines`: JSON; `csvfile`: CSV;
  `bytesfile`: files as they are
- `scan`: the operator over all of them; `listing`: directories
"""
