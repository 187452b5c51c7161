"""The control table: what was done in a pond, and what is set; rebuildable from the OpLog."""
