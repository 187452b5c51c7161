"""Ponds where other libraries look for files: `fsspec` (`pond://`) and `upath` (`pathlib`).

Both packages are found through entry points; `pip install millpond[fsspec]` brings them.
"""
