"""Columns of CSV and JSON files, guessed from what the files hold: docs/formats.md has the rules.

`numbers.py` and `texts.py` say what values of one column can be; `csv.py` and `json.py` look at a
file; `files.py` unites what is guessed of several files.
"""
