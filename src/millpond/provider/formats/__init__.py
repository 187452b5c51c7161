"""Formats: how bytes become rows. Plugins of the entry point group `millpond.formats`.

- `format`: what a format is, and the registry; `reader`: a format with its options
- `rows`: the rows of files as factories see them; `../images.py` keeps what was parsed
- `csv`, `jsonlines`, `parquet`, `arrow`, `excelhtml`, `oteljson`, `weblog`, `delta`
"""
