"""Computed paths: reductions, joins and pivots against hand-written Spark; appends; many files."""
