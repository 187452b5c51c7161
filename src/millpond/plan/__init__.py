"""The plan: what is to be computed, as immutable data. Engines run it; nothing here reads."""
