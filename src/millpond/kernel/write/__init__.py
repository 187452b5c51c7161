"""Writing Delta tables: transactions, checkpoints and the upkeep of a log."""
