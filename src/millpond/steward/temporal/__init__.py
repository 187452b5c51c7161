"""Series and time: time columns, bounds, overlaps."""
