"""The Delta kernel against `deltalake`: open, list, plan, refresh, read, write checkpoints."""
