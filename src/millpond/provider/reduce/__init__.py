"""Reducing series to buckets of time, from partial aggregates that are kept for each piece."""
